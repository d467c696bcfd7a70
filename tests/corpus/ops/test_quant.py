"""Quantisation of the corpus in the emulator, to the bit: ties, NaN, infinities, zeros, layouts, refusals."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.quant.workloads import QUANT
from porter.corpus.runtime import tuning
from porter.corpus.runtime.ops import OPS
from tests.corpus.emulated import run
from tests.corpus.inputs import E4M3
from tests.corpus.quant_cases import E5M2, EPS

ARCHS = ("sm_90a", "sm_100a")
INF, NAN = float("inf"), float("nan")
LEAST = torch.tensor(1 / (448 * 512))


def bits(t):
    return t.contiguous().view(torch.uint8)


def both(name, arguments, written, arch="sm_90a", **options):
    """Run the op in the emulator and its reference on copies; both write the same bits. The emulator's arguments."""
    got, want = ([a.clone() if torch.is_tensor(a) else a for a in arguments] for _ in range(2))
    run(getattr(corpus, name), *got, arch=arch, **options)
    OPS[name].fallback(*OPS[name].bind(tuple(want), {}))
    for i in written:
        assert torch.equal(bits(got[i]), bits(want[i])), f"argument {i}"
    return got


def odd_values(rows, length, dtype=torch.bfloat16):
    """Rows of zeros, NaN, infinities, one value, and numbers around them."""
    x = torch.randn(rows, length, generator=torch.Generator().manual_seed(7)).to(dtype)
    x[0] = 0.0
    x[1, ::3], x[2, 5], x[2, 6] = NAN, INF, -INF
    x[3], x[4] = 3.0, NAN
    return x


# ---------------------------------------------------------------- fp8 with given scales


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("codes", "largest"), [(E4M3, 448.0), (E5M2, 57344.0)])
def test_static_fp8_of_ties_and_what_is_no_number(arch, codes, largest):
    """Half way between two codes goes to the even one; what is too large, infinite or NaN to the largest."""
    every = torch.arange(256, dtype=torch.uint8).view(codes).float()
    every = every[every.isfinite() & (every >= 0)].sort().values
    ties = (every[1:] + every[:-1]) / 2
    x = torch.cat([ties, -ties, torch.tensor([INF, -INF, NAN, 1e9, -1e9, -0.0])])[None].float()
    out = torch.zeros(x.shape, dtype=codes)
    both("static_scaled_fp8_quant", (out, x, torch.tensor([1.0]), None), (0,), arch)
    run(corpus.static_scaled_fp8_quant, out, x, torch.tensor([1.0]), arch=arch)
    assert torch.equal(out[0, : len(ties)].float(), ties.to(codes).float())
    assert out[0, -6:].float().tolist() == [largest, -largest, largest, largest, -largest, 0.0]
    assert (out.view(torch.uint8)[0, : len(ties)] % 2 == 0).all()


def test_static_fp8_multiplies_by_the_reciprocal():
    """Not a division: some quotients fall on the other side of a tie."""
    scale = torch.tensor([0.013])
    exact = torch.arange(1, 4097, dtype=torch.float32)[None] * 0.013 * 0.0625
    out = torch.zeros(exact.shape, dtype=E4M3)
    run(corpus.static_scaled_fp8_quant, out, exact, scale)
    assert torch.equal(bits(out), bits((exact * (1 / scale)).clamp(-448, 448).to(E4M3)))
    assert not torch.equal(bits(out), bits((exact / scale).clamp(-448, 448).to(E4M3)))


@pytest.mark.parametrize(
    ("shape", "group", "length"),
    [((6, 1), (1, -1), 96), ((1, 96), (-1, 1), 96), ((3, 6), (2, 16), 96), ((2, 24), None, 96), ((6, 7), (1, 11), 77),
     ((77,), (-1, 1), 77), ((2,), (3, -1), 77)],
)  # fmt: skip
def test_static_fp8_of_any_block(shape, group, length):
    x, scale = torch.randn(6, length).half(), torch.rand(shape) + 0.01
    both("static_scaled_fp8_quant", (torch.zeros(6, length, dtype=E4M3), x, scale, group), (0,), sms=2)


@pytest.mark.parametrize("name", ["strides", "offset by four bytes"])
def test_static_fp8_of_scales_anywhere(name):
    memory = torch.rand(96, 8) + 0.01
    scale = memory[:, :6].t() if name == "strides" else memory.view(-1)[1 : 1 + 6 * 96].view(6, 96)
    run_scale = torch.zeros(6, 96, dtype=E4M3)
    x = torch.randn(6, 96).bfloat16()
    run(corpus.static_scaled_fp8_quant, run_scale, x, scale)
    assert torch.equal(bits(run_scale), bits((x.float() * (1 / scale)).clamp(-448, 448).to(E4M3)))


def test_wrong_given_scales_are_refused():
    x, out = torch.randn(6, 96).bfloat16(), torch.zeros(6, 96, dtype=E4M3)
    for scale, group, text in (
        (torch.ones(96), None, "group_shape must say"), (torch.ones(5), (1, -1), "scale has shape"),
        (torch.ones(4, 96), None, "does not divide"), (torch.ones(3, 6), (3, 16), "implies"),
        (torch.ones(18), (2, 16), "scale must be"), (torch.ones(2, 2, 2), None, "neither"),
        (torch.ones(96), (4, 1), "group_shape"), (torch.ones(96), (0, 1), "group_shape is two numbers"),
        (torch.ones(1).double(), None, "scale has dtype"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            run(corpus.static_scaled_fp8_quant, out, x, scale, group)
    with pytest.raises(ValueError, match="result has dtype"):
        run(corpus.static_scaled_fp8_quant, out.to(torch.int8), x, torch.ones(1))
    with pytest.raises(ValueError, match="result has shape"):
        run(corpus.static_scaled_fp8_quant, out[:5], x, torch.ones(1))


# ---------------------------------------------------------------- fp8 with one scale that is computed

LAUNCHES = (
    {}, {"launches": 2, "threads": 64, "most": 3, "kept": 0}, {"launches": 1, "threads": 64, "most": 3, "kept": 2},
    {"launches": 1, "threads": 64, "most": 5, "kept": 0}, {"launches": 1, "threads": 64, "most": 1, "kept": 4},
)  # fmt: skip


@pytest.mark.parametrize(("arch", "shape"), [("sm_90a", (37, 96)), ("sm_90a", (3, 77)), ("sm_100a", (37, 96))])
@pytest.mark.parametrize("choice", LAUNCHES, ids=lambda c: "-".join(map(str, c.values())))
def test_one_launch_and_two_give_the_same(arch, choice, shape):
    x = torch.randn(*shape).bfloat16()
    x[-1, -1], x[0, 0] = -30.0, NAN
    with tuning.forced(choice):
        got = both("dynamic_scaled_fp8_quant", (torch.zeros(shape, dtype=E4M3), x, torch.zeros(1)), (0, 2), arch)
    assert got[2] == torch.tensor(30.0) / 448 and got[0].float()[-1, -1] == -448 and got[0].float()[0, 0] == 448


@pytest.mark.parametrize("choice", LAUNCHES[:3], ids=lambda c: "-".join(map(str, c.values())))
@pytest.mark.parametrize("value", [0.0, 1e-9, INF])
def test_one_scale_of_little_and_of_infinity(choice, value):
    x = torch.full((9, 96), value)
    with tuning.forced(choice):
        got = both("dynamic_scaled_fp8_quant", (torch.zeros(9, 96, dtype=E4M3), x, torch.zeros(1)), (0, 2))
    assert got[2] == (LEAST if value < 1 else INF)


def test_both_ways_are_candidates():
    """The tuner measures one launch against two."""
    with tuning.forced({}) as questions:
        run(corpus.dynamic_scaled_fp8_quant, torch.zeros(16, 4096, dtype=E4M3), torch.randn(16, 4096), torch.zeros(1))
    found = questions[0].candidates()
    assert {c["launches"] for c in found} == {1, 2} and any(c["launches"] == c["most"] == 1 for c in found)
    assert all(c["most"] <= 132 for c in found if c["launches"] == 1)


# ---------------------------------------------------------------- a scale for each row


@pytest.mark.parametrize(
    ("arch", "length", "dtype"),
    [("sm_90a", 96, torch.bfloat16), ("sm_90a", 77, torch.float32), ("sm_100a", 96, torch.float32)],
)
def test_rows_of_what_is_no_number(arch, length, dtype):
    x = odd_values(7, length, dtype)
    out, scale = torch.zeros(7, length, dtype=E4M3), torch.zeros(7, 1)
    got = both("dynamic_per_token_scaled_fp8_quant", (out, x, scale, None), (0, 2), arch)
    assert got[2][0] == LEAST and got[2][2] == INF and got[2][4] == LEAST
    assert not got[0][0].float().any() and (got[0].float()[4] == 448).all()
    assert got[0].float()[2, [5, 6]].tolist() == [448.0, 448.0] and not got[0].float()[2, 7:].any()
    codes, zero = out.to(torch.int8), torch.zeros(7, 1, dtype=torch.int32)
    got = both("dynamic_scaled_int8_quant", (codes, x, scale, None), (0, 2), arch)
    assert got[2][0] == 0 and not got[0][0].any() and not got[0][4].any()
    got = both("dynamic_scaled_int8_quant", (codes, x, scale, zero), (0, 2, 3), arch)
    assert got[2][3] == 0 and got[3][3] == -(1 << 31) and (got[0][3] == -1).all()


def test_rows_are_divided_by_their_scale():
    """Not multiplied by its reciprocal: some quotients fall on the other side of a tie."""
    every = torch.arange(127, dtype=torch.uint8).view(E4M3).float()
    ties = torch.cat([(every[1:] + every[:-1]) / 2, every[-1:]])
    x = (ties * torch.linspace(0.3, 9, 64)[:, None]).contiguous()
    out, scale = torch.zeros(x.shape, dtype=E4M3), torch.zeros(64, 1)
    got = both("dynamic_per_token_scaled_fp8_quant", (out, x, scale, None), (0, 2))
    assert torch.equal(got[2], (x.abs().amax(-1, keepdim=True) / torch.full((), 448.0)))
    assert not torch.equal(bits(got[0]), bits((x * (1 / got[2])).clamp(-448, 448).to(E4M3)))


def test_a_bound_saturates():
    x, out, scale = torch.randn(4, 96), torch.zeros(4, 96, dtype=E4M3), torch.zeros(4)
    got = both("dynamic_per_token_scaled_fp8_quant", (out, x, scale, torch.tensor([0.5])), (0, 2))
    assert (got[2] == torch.tensor(0.5) / 448).all() and (got[0].float().abs() == 448).any()


def test_int8_ties_and_zero_points():
    """Half way goes to the even code; a zero point is added after rounding, whatever its size."""
    x = torch.arange(-130, 130)[None] + 0.5
    out, one = torch.zeros(x.shape, dtype=torch.int8), torch.tensor([1.0])
    both("static_scaled_int8_quant", (out, x, one, None), (0,))
    for zero in (0, 1, -128, 127, 1000, (1 << 31) - 1, -(1 << 31)):
        got = both("static_scaled_int8_quant", (out, x, one, torch.tensor([zero], dtype=torch.int32)), (0,))
        assert torch.equal(got[0].long(), (x.round().long() + zero).clamp(-128, 127))


@pytest.mark.parametrize("scale", [1e-38, 1e-31, 0.013, 3e38, 0.0, -1.0, INF, NAN])
def test_int8_divides_by_any_scale(scale):
    x = torch.cat([torch.randn(90) * abs(scale if 0 < abs(scale) < 1e38 else 1.0) * 50,
                   torch.tensor([INF, -INF, NAN, 3e38, -3e38, 0.0])])[None]  # fmt: skip
    both("static_scaled_int8_quant", (torch.zeros(x.shape, dtype=torch.int8), x, torch.tensor([scale]), None), (0,))


def test_wrong_rows_are_refused():
    x, q, i = torch.randn(4, 96).bfloat16(), torch.zeros(4, 96, dtype=E4M3), torch.zeros(4, 96, dtype=torch.int8)
    for call, text in (
        (lambda: run(corpus.dynamic_per_token_scaled_fp8_quant, q, x, torch.zeros(3, 1)), "scale has shape"),
        (lambda: run(corpus.dynamic_per_token_scaled_fp8_quant, q, x, torch.zeros(4, 2)[:, :1]), "scale must be cont"),
        (lambda: run(corpus.dynamic_per_token_scaled_fp8_quant, i, x, torch.zeros(4, 1)), "result has dtype"),
        (lambda: run(corpus.dynamic_per_token_scaled_fp8_quant, q, x.int(), torch.zeros(4, 1)), "input has dtype"),
        (lambda: run(corpus.dynamic_per_token_scaled_fp8_quant, q, x, torch.zeros(4, 1), torch.ones(2)), "scale_ub"),
        (lambda: run(corpus.dynamic_per_token_scaled_fp8_quant, q, torch.zeros(96, 4).bfloat16().t(),
                     torch.zeros(4, 1)), "last dimension of input"),
        (lambda: run(corpus.dynamic_scaled_int8_quant, i, x, torch.zeros(4, 1), torch.zeros(4, 1)), "azp has dtype"),
        (lambda: run(corpus.dynamic_scaled_int8_quant, i, x, torch.zeros(4, 1), torch.zeros(3).int()), "azp has shape"),
        (lambda: run(corpus.static_scaled_int8_quant, i, x, torch.zeros(2)), "scale must hold one"),
        (lambda: run(corpus.static_scaled_int8_quant, i, x, torch.zeros(1), torch.zeros(2).int()), "azp must hold one"),
        (lambda: run(corpus.dynamic_scaled_fp8_quant, q, x, torch.zeros(2)), "scale must hold one"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            call()


# ---------------------------------------------------------------- a scale for each group


@pytest.mark.parametrize(
    ("arch", "group", "power", "vec"),
    [("sm_90a", 64, False, 8), ("sm_90a", 128, True, 16), ("sm_100a", 128, False, 16), ("sm_100a", 64, True, 8)],
)
def test_groups_of_what_is_no_number(arch, group, power, vec):
    x = odd_values(7, 384)
    arguments = x, torch.zeros(7, 384, dtype=E4M3), torch.zeros(7, 384 // group), group, EPS, -448.0, 448.0, power
    with tuning.forced({"vec": vec}):
        got = both("per_token_group_fp8_quant", arguments, (1, 2), arch)
    least = torch.tensor(2.0**-33 if power else 1e-10) / (1 if power else torch.tensor(448.0))
    assert got[2][0, 0] == least and got[2][4, 0] == least and got[2][2, 0] == INF
    assert (got[1].float()[4] == -448).all()  # NaN, as a clamp that asks for the larger of it and -448 leaves it
    if not power:
        codes = torch.zeros(7, 384, dtype=torch.int8)
        got = both("per_token_group_quant_int8", (x, codes, got[2], group, EPS, -128.0, 127.0), (1, 2), arch)
        assert (got[1][4] == -128).all()


def test_group_scales_that_are_powers_of_two():
    """A power of two stays; the next number above it takes the next power."""
    exponents = torch.arange(-30, 30)
    exact = torch.ldexp(torch.full((60,), 448.0), exponents)
    above = torch.nextafter(exact, torch.tensor(INF))
    x = torch.zeros(2, 60 * 64)
    x[0, ::64], x[1, ::64] = exact, above
    arguments = x, torch.zeros(2, 60 * 64, dtype=E4M3), torch.zeros(2, 60), 64, EPS, -448.0, 448.0, True
    got = both("per_token_group_fp8_quant", arguments, (1, 2))
    assert torch.equal(got[2][0], torch.ldexp(torch.ones(60), exponents))
    moved = above / torch.full((), 448.0) > exact / torch.full((), 448.0)
    assert moved.any() and torch.equal(got[2][1], got[2][0] * torch.where(moved, 2.0, 1.0))


def test_group_codes_of_int8_are_cut_off():
    x = torch.zeros(1, 64)
    x[0, :5] = torch.tensor([127.0, 1.99, -1.99, 0.5, -0.99])
    got = both("per_token_group_quant_int8", (x, torch.zeros(1, 64, dtype=torch.int8), torch.zeros(1, 1), 64, EPS,
                                              -128.0, 127.0), (1, 2))  # fmt: skip
    assert got[1][0, :5].tolist() == [127, 1, -1, 0, 0]


@pytest.mark.parametrize(
    ("arch", "rows", "length", "group", "per_thread"),
    [("sm_90a", 1, 128, 128, 1), ("sm_90a", 6, 640, 128, 2), ("sm_90a", 5, 320, 64, 1), ("sm_100a", 4, 1024, 64, 2),
     ("sm_100a", 5, 640, 128, 1)],
)  # fmt: skip
def test_packed_scales_and_their_padding(arch, rows, length, group, per_thread):
    """Every byte of the memory is what it must be: codes, zeros, or untouched."""
    x, groups, padded = odd_values(7, length)[-rows:], length // group, -(-rows // 4) * 4
    words = -(-groups // 4)
    memory = torch.full((words, padded), 0x5A5A5A5A, dtype=torch.int32)
    q = torch.ones(padded, length).to(E4M3)
    with tuning.forced({"rows": per_thread, "threads": 32}):
        run(corpus.per_token_group_fp8_quant_packed, x, q, memory.t()[:rows], group, EPS, -448.0, 448.0, arch=arch)
    flat, scale = torch.zeros(rows, length, dtype=E4M3), torch.zeros(rows, groups)
    OPS["per_token_group_fp8_quant"].fallback(x, flat, scale, group, EPS, -448.0, 448.0, True)
    want = torch.zeros(padded, 4 * words, dtype=torch.uint8)
    want[:rows, :groups] = (scale.view(torch.int32) >> 23).to(torch.uint8)
    want[rows:, -4:] = 0x5A  # past the end of what must be there
    assert torch.equal(bits(memory.t().clone(memory_format=torch.contiguous_format)).view(padded, -1), want)
    assert torch.equal(bits(q[:rows]), bits(flat)) and not q[rows:].float().any()


def test_a_group_of_zeros_is_packed_as_0x5e():
    x, packed = torch.zeros(4, 512).bfloat16(), torch.zeros(1, 4, dtype=torch.int32).t()
    run(corpus.per_token_group_fp8_quant_packed, x, torch.zeros(4, 512, dtype=E4M3), packed, 128, EPS, -448.0, 448.0)
    assert (packed == 0x5E5E5E5E).all()


@pytest.mark.parametrize(("pad", "power"), [(0, True), (3, False)])
def test_columns_of_scales(pad, power):
    """The scales of a group are neighbours; memory beyond the rows stays as it is."""
    x, out, memory = torch.randn(5, 384).bfloat16(), torch.zeros(5, 384, dtype=E4M3), torch.full((3, 5 + pad), 7.0)
    plain, by_row = out.clone(), torch.zeros(5, 3)
    run(corpus.per_token_group_fp8_quant, x, out, memory.t()[:5], 128, EPS, -448.0, 448.0, power, True, pad > 0)
    run(corpus.per_token_group_fp8_quant, x, plain, by_row, 128, EPS, -448.0, 448.0, power)
    assert torch.equal(memory[:, :5].t(), by_row) and (memory[:, 5:] == 7).all() and torch.equal(bits(out), bits(plain))


def test_wrong_groups_are_refused():
    x, q, s = torch.randn(4, 384).bfloat16(), torch.zeros(4, 384, dtype=E4M3), torch.zeros(4, 3)
    call, packed = corpus.per_token_group_fp8_quant, corpus.per_token_group_fp8_quant_packed
    limits = EPS, -448.0, 448.0
    for arguments, text in (
        ((x, q, s, 32, *limits, False), "group_size is"), ((x[:, :320], q[:, :320], s, 128, *limits, False), "divide"),
        ((x, q, torch.zeros(4, 4), 128, *limits, False), "output_s has shape"),
        ((x, q, torch.zeros(8, 6)[::2, ::2], 128, *limits, False), "output_s has strides"),
        ((x, q, s.half(), 128, *limits, False), "output_s has dtype"),
        ((x, q.to(torch.int8), s, 128, *limits, False), "output_q has dtype"),
        ((x, q[:3], s, 128, *limits, False), "output_q has shape"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            run(call, *arguments)
    for scales in (torch.zeros(4, 1).int(), torch.zeros(2, 4).int().t(), torch.zeros(1, 8).int().t()[:4, :1]):
        if scales.shape == (4, 1):
            continue
        with pytest.raises(ValueError, match="output_s_packed has shape"):
            run(packed, x, q, scales, 128, *limits)
    with pytest.raises(ValueError, match="strides"):
        run(packed, x.repeat(1, 2), q.repeat(1, 2), torch.zeros(4, 2).int(), 128, *limits)
    with pytest.raises(ValueError, match="output_q has shape"):
        run(packed, x, q[:3], torch.zeros(1, 4).int().t(), 128, *limits)


# ---------------------------------------------------------------- all of them


def _arguments(name, rows, length):
    return QUANT[name].make(rows, torch.bfloat16, "cpu", hidden=length)


@pytest.mark.parametrize("name", QUANT)
def test_no_rows_launch_nothing(name):
    assert run(getattr(corpus, name), *_arguments(name, 0, 256)) == []
    getattr(torch.ops.porter, name)(*_arguments(name, 0, 256))


@pytest.mark.parametrize("name", [n for n in QUANT if "packed" not in n])
def test_more_dimensions_than_two(name):
    arguments = _arguments(name, 6, 256)
    written = [i for i, a in enumerate(arguments) if torch.is_tensor(a) and a.dtype != torch.bfloat16]
    cube = [a.view(2, 3, -1) if (i in written and a.shape[:1] == (6,)) or (torch.is_tensor(a) and a.shape == (6, 256))
            else a for i, a in enumerate(arguments)]  # fmt: skip
    flat = both(name, arguments, written)
    got = both(name, cube, written)
    for i in written:
        assert torch.equal(bits(got[i]).view(-1), bits(flat[i]).view(-1))


def test_group_shapes_are_lists_in_torch():
    x, scale, out = torch.randn(4, 96), torch.rand(96) + 0.1, torch.zeros(4, 96, dtype=E4M3)
    torch.ops.porter.static_scaled_fp8_quant(out, x, scale, [-1, 1])
    assert torch.equal(bits(out), bits((x * (1 / scale)).clamp(-448, 448).to(E4M3)))
    corpus.static_scaled_fp8_quant(out.zero_(), x, scale, (-1, 1))
    assert out.float().any()


ELEMENTS = (
    {"vec": 16, "rows": 4, "threads": 64, "prefetch": True, "streaming": False, "prefetch_blocks": 3},
    {"vec": 8, "rows": 2, "threads": 32, "prefetch": False, "streaming": True, "prefetch_blocks": 0},
    {"vec": 8, "rows": 4, "threads": 128, "prefetch": True, "streaming": False, "prefetch_blocks": 3},
)
ROWS = (
    {"threads": 64, "rows": 2, "prefetch": "rows", "prefetch_blocks": 2},
    {"threads": 16, "rows": 8, "prefetch": "none", "prefetch_blocks": 0},
    {"threads": 96, "rows": 1, "prefetch": "all", "prefetch_blocks": 0},
)  # fmt: skip


@pytest.mark.parametrize("choice", ELEMENTS, ids=lambda c: f"{c['vec']}x{c['rows']}")
@pytest.mark.parametrize("scale", ["one", "columns", "rows", "blocks", "int8", "azp", "groups", "int8 groups"])
def test_what_the_tuner_may_choose_for_elements(choice, scale):
    x, out = torch.randn(9, 768).bfloat16(), torch.zeros(9, 768, dtype=torch.int8 if "int8" in scale else E4M3)
    with tuning.forced(choice):
        if "groups" in scale:
            name = "per_token_group_quant_int8" if "int8" in scale else "per_token_group_fp8_quant"
            limits = (-128.0, 127.0) if "int8" in scale else (-448.0, 448.0, False)
            both(name, (x, out, torch.zeros(9, 6), 128, EPS, *limits), (1, 2))
        elif scale in ("int8", "azp"):
            zero = torch.tensor([5], dtype=torch.int32) if scale == "azp" else None
            both("static_scaled_int8_quant", (out.to(torch.int8), x, torch.tensor([0.02]), zero), (0,))
        else:
            shape, group = {"one": ((1,), None), "columns": ((768,), (-1, 1)), "rows": ((9,), (1, -1)),
                            "blocks": ((3, 24), None)}[scale]  # fmt: skip
            both("static_scaled_fp8_quant", (out, x, torch.rand(shape) + 0.01, group), (0,))


@pytest.mark.parametrize("choice", ROWS, ids=lambda c: str(c["threads"]))
@pytest.mark.parametrize("codes", [E4M3, torch.int8, torch.int32])
def test_what_the_tuner_may_choose_for_rows(choice, codes):
    """int32 stands for zero points."""
    x, scale = odd_values(9, 768), torch.zeros(9, 1)
    x[6:] = torch.randn(3, 768)
    with tuning.forced(choice):
        if codes == E4M3:
            both("dynamic_per_token_scaled_fp8_quant", (torch.zeros(9, 768, dtype=E4M3), x, scale, None), (0, 2))
        else:
            zero = torch.zeros(9, 1, dtype=torch.int32) if codes == torch.int32 else None
            written = (0, 2, 3) if zero is not None else (0, 2)
            both("dynamic_scaled_int8_quant", (torch.zeros(9, 768, dtype=torch.int8), x, scale, zero), written)


@pytest.mark.parametrize("name", ["rms_norm", "fused_add_rms_norm", "silu_and_mul"])
def test_other_static_quantisers_to_e5m2(name):
    """Saturating at 57344, NaN too; the same as without quantisation and a static one after it."""
    x, w, scale = odd_values(7, 192), torch.rand(192).bfloat16() + 0.5, torch.tensor([2e-5])
    x[5:] = torch.randn(2, 192) * 3
    if name == "silu_and_mul":
        plain, codes = torch.zeros(7, 96).bfloat16(), torch.zeros(7, 96, dtype=E5M2)
        run(corpus.silu_and_mul, plain, x)
        got = both("silu_and_mul_quant", (codes, x, scale), (0,))[0]
    else:
        residual = torch.randn(7, 192).bfloat16()
        plain, codes = torch.zeros(7, 192).bfloat16(), torch.zeros(7, 192, dtype=E5M2)
        if name == "rms_norm":
            run(corpus.rms_norm, plain, x, w, 1e-6)
            got = both("rms_norm_static_fp8_quant", (codes, x, w, scale, 1e-6), (0,))[0]
        else:
            got = both("fused_add_rms_norm_static_fp8_quant", (codes, x, residual, w, scale, 1e-6), (0,))[0]
            plain = x.clone()
            run(corpus.fused_add_rms_norm, plain, residual, w, 1e-6)
    want = torch.zeros(plain.shape, dtype=E5M2)
    run(corpus.static_scaled_fp8_quant, want, plain, scale)
    assert torch.equal(bits(got), bits(want)) and (got.float().abs() == 57344).any()
