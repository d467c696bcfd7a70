"""NVFP4, MXFP4 and MXFP8 of the corpus in the emulator, to the bit: codes, scales, layouts, padding, refusals."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.quant import block_scaled_reference as reference
from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime import tuning
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import OPS
from porter.corpus.runtime.specialisation import compiled
from tests.corpus.emulated import run
from tests.corpus.inputs import E4M3

ARCHS = ("sm_90a", "sm_100a")
INF, NAN = float("inf"), float("nan")
GROUP = {"scaled_fp4_quant": 16, "mxfp4_quantize": 32, "mxfp8_quantize": 32}
RULES = {name: ("fast", "exact") if group == 16 else ("ceil", "floor") for name, group in GROUP.items()}
LAYOUTS = ("linear", "128x4", "8x4")
FLAGS = {"linear": (False, False), "128x4": (True, False), "8x4": (True, True)}
TILE = {"linear": (1, 1), "128x4": (128, 4), "8x4": (8, 4)}
E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def bits(t):
    return t.contiguous().view(torch.uint8)


def operands(name, x, layout="linear", g=1.0, rule=None, longer=0):
    """All arguments of the op for the numbers `x`; the results are poisoned."""
    rows, length = x.shape[0], x.shape[1] + longer
    tile_rows, tile_columns = TILE[layout]
    size = -(-rows // tile_rows) * tile_rows, -(-(length // GROUP[name]) // tile_columns) * tile_columns
    scale = torch.full(size, 0x5A, dtype=torch.uint8)
    given = (torch.tensor([g]),) if name == "scaled_fp4_quant" else ()
    if name == "mxfp8_quantize":
        codes = torch.full((rows, length), 0x5A, dtype=torch.uint8).view(E4M3)
    else:
        codes = torch.full((rows, length // 2), 0x5A, dtype=torch.uint8)
    return codes, x, scale, *given, *FLAGS[layout], rule or RULES[name][0]


def both(name, arguments, arch="sm_90a", **options):
    """Run the op in the emulator and its reference on copies; both write the same bytes. (codes, scales)."""
    got, want = ([a.clone() if i in (0, 2) else a for i, a in enumerate(arguments)] for _ in "ab")
    run(getattr(corpus, name), *got, arch=arch, **options)
    OPS[name].fallback(*want)
    assert torch.equal(bits(got[2]), bits(want[2])), "scales"
    assert torch.equal(bits(got[0]), bits(want[0])), "codes"
    return got[0], got[2]


def odd_values(rows, length, dtype=torch.bfloat16):
    """Rows of zeros, NaN, infinities, one value, numbers of every size, and numbers around them."""
    x = torch.randn(rows, length, generator=torch.Generator().manual_seed(7)).to(dtype)
    x[0], x[0, 1] = 0.0, -0.0
    x[1, ::3], x[2, 5], x[2, 6] = NAN, INF, -INF
    x[3], x[4] = 3.0, NAN
    if rows > 5:
        x[5] = torch.ldexp(torch.ones(length), torch.arange(length) % 250 - 126).to(dtype)
    return x


def nearest(values):
    """The e2m1 code of each number, by search: the nearest, of two the even one."""
    distance = (values.abs().clamp(max=6)[..., None] - E2M1).abs()
    best = distance == distance.amin(-1, keepdim=True)
    code = torch.where(best.sum(-1) == 1, best.int().argmax(-1), torch.where(best, torch.arange(8) % 2, 9).argmin(-1))
    return torch.where(values.isnan(), 7, code | (values.signbit().long() << 3))


def nibbles(codes):
    return torch.stack([codes & 15, codes >> 4], -1).flatten(-2).long()


# ---------------------------------------------------------------- codes and scales


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", GROUP)
def test_what_is_no_number(name, arch):
    for rule in RULES[name]:
        for dtype in (torch.bfloat16, torch.float32)[: 1 + (rule == RULES[name][0])]:
            codes, scale = both(name, operands(name, odd_values(7, 256, dtype), g=2.0, rule=rule), arch)
            assert not scale[0].any()
            if name == "mxfp8_quantize":
                assert not codes[0].float().any() and codes.float()[2, [5, 6]].tolist() == [448.0, -448.0]
                assert (codes[1].float()[::3] == 448).all()
            else:
                found = nibbles(codes)
                assert found[0, :2].tolist() == [0, 8] and found[2, [5, 6]].tolist() == [7, 15]
                assert (found[1, ::3] == 7).all() and (found[4] == 7).all()


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", ["scaled_fp4_quant", "mxfp4_quantize"])
def test_every_boundary_of_e2m1(name, arch):
    """Half way between two codes goes to the even one, a float32 beside it to its own side; 6 and more to 6."""
    middle = (E2M1[1:] + E2M1[:-1]) / 2
    beside = [torch.nextafter(middle, torch.tensor(end)) for end in (INF, -INF)]
    values = torch.cat([middle, *beside, E2M1, torch.tensor([5.999, 1e-40])])
    values = torch.cat([values, -values])
    group = GROUP[name]
    x = torch.zeros(len(values), group)
    x[:, 0], x[:, 1], x[:, 3] = 6.0, values, -values
    for rule in RULES[name][: 1 if group == 32 else 2]:
        codes, scale = both(name, operands(name, x, rule=rule), arch)
        assert (scale == (0x38 if group == 16 else 127)).all()  # one
        found = nibbles(codes)
        assert torch.equal(found[:, 1], nearest(values)) and torch.equal(found[:, 3], nearest(-values))
        assert (found[:, 0] == 7).all()
        assert torch.equal(found[:, 2], torch.zeros_like(found[:, 2]))


def test_scales_of_nvfp4_are_rounded_to_e4m3():
    """To the nearest, ties to even, saturating at 448; below half the least one a scale, and with it all codes, is
    0."""
    every = torch.arange(127, dtype=torch.uint8).view(E4M3).float()
    wanted = torch.cat([every, (every[1:] + every[:-1]) / 2, torch.tensor([500.0, 1e9, 2.0**-11])])
    x = torch.zeros(len(wanted), 16)
    x[:, 3] = wanted * 6
    x[:, 5] = -x[:, 3] / 3
    for g in (1.0, 448 * 6 / 11.3):
        for rule in RULES["scaled_fp4_quant"]:
            codes, scale = both("scaled_fp4_quant", operands("scaled_fp4_quant", x / g, g=g, rule=rule))
            if g == 1.0:
                assert torch.equal(scale[:, 0], wanted.clamp(max=448).to(E4M3).view(torch.uint8))
            tiny = scale[:, 0] == 0
            assert rule == "exact" or not (codes[tiny] & 0x77).any()


@pytest.mark.parametrize("name", ["mxfp4_quantize", "mxfp8_quantize"])
@pytest.mark.parametrize("arch", ARCHS)
def test_powers_of_two(name, arch):
    """ "ceil": the largest code times a power of two keeps that power, the next number takes the next one. "floor": the
    power changes where the largest number's exponent does."""
    most, top = (448.0, 8) if name == "mxfp8_quantize" else (6.0, 2)
    exponents = torch.arange(-130, 119)
    exact = torch.ldexp(torch.full((len(exponents),), most, dtype=torch.float64), exponents).float()
    above = torch.nextafter(exact, torch.tensor(INF))
    x = torch.zeros(2 * len(exponents), 32)
    x[:, 7] = torch.cat([exact, above])
    _, scale = both(name, operands(name, x), arch)
    first, second = scale[:, 0].long().split(len(exponents))
    assert torch.equal(first, (exponents + 127).clamp_min(0))
    normal = exponents > -120  # below, / most rounds to fewer digits
    assert torch.equal(second[normal], (first + 1)[normal])
    _, scale = both(name, operands(name, x, rule="floor"), arch)
    size = torch.floor(torch.log2(x[:, 7].double()))
    assert torch.equal(scale[:, 0].long(), (size.long() + 127 - top).clamp(0, 254))


def test_recipes_differ():
    """Two approximate reciprocals, or one quotient: the same scales, and codes that differ where a tie is near."""
    x = torch.randn(16, 512, generator=torch.Generator().manual_seed(3)).bfloat16()
    name = "scaled_fp4_quant"
    found = [both(name, operands(name, x, g=617.0, rule=rule)) for rule in RULES[name]]
    assert torch.equal(found[0][1], found[1][1])
    assert (nibbles(found[0][0]) != nibbles(found[1][0])).float().mean() < 1e-3


# ---------------------------------------------------------------- layouts


def where(layout, row, column, columns):
    """The byte at which a scale lies, as the layout is defined."""
    tiles = -(-columns // 4)
    if layout == "128x4":
        return (row // 128 * tiles + column // 4) * 512 + row % 32 * 16 + row % 128 // 32 * 4 + column % 4
    if layout == "8x4":
        return (row // 8 * tiles + column // 4) * 32 + row % 8 * 4 + column % 4
    return row * columns + column


@pytest.mark.parametrize(
    ("name", "layout", "shape", "arch"),
    [("scaled_fp4_quant", "128x4", (3, 80), "sm_90a"), ("scaled_fp4_quant", "128x4", (130, 144), "sm_100a"),
     ("scaled_fp4_quant", "8x4", (11, 96), "sm_90a"), ("mxfp4_quantize", "128x4", (5, 160), "sm_100a"),
     ("mxfp4_quantize", "8x4", (9, 96), "sm_90a"), ("mxfp8_quantize", "128x4", (129, 96), "sm_90a"),
     ("mxfp8_quantize", "8x4", (8, 224), "sm_100a"), ("mxfp8_quantize", "linear", (5, 96), "sm_90a")],
)  # fmt: skip
def test_every_byte_of_a_layout(name, layout, shape, arch):
    """Where each scale lies; zeros for rows and columns that there are none of."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(5)).bfloat16()
    plain, linear = both(name, operands(name, x, g=100.0), arch)
    codes, scale = both(name, operands(name, x, layout, g=100.0), arch)
    assert torch.equal(bits(codes), bits(plain)) and linear.all()
    flat, columns = scale.view(-1), linear.shape[1]
    places = torch.tensor([[where(layout, m, k, columns) for k in range(columns)] for m in range(shape[0])])
    assert torch.equal(flat[places], linear)
    assert int(flat.count_nonzero()) == linear.numel()


@pytest.mark.parametrize("held", [torch.int32, E4M3, "flat", "flat int32"])
def test_scales_as_engines_hold_them(held):
    x = torch.randn(5, 128).bfloat16()
    arguments = operands("scaled_fp4_quant", x, "128x4", g=100.0)
    codes, want = both("scaled_fp4_quant", arguments)
    scale = torch.full_like(want, 0x5A)
    if isinstance(held, str):
        seen = scale.view(-1).view(torch.int32) if "int32" in held else scale.view(-1)
    else:
        seen = scale.view(held)
    got = torch.zeros_like(codes)
    run(corpus.scaled_fp4_quant, got, x, seen, *arguments[3:])
    assert torch.equal(scale, want) and torch.equal(got, codes)


def test_rows_of_mxfp8_may_be_longer():
    """FlashInfer's alignment: codes and scales of what follows are zeros."""
    x = torch.randn(3, 96).bfloat16()
    for layout in LAYOUTS[:2]:
        plain, _ = both("mxfp8_quantize", operands("mxfp8_quantize", x, layout))
        codes, scale = both("mxfp8_quantize", operands("mxfp8_quantize", x, layout, longer=160))
        assert torch.equal(bits(codes[:, :96]), bits(plain)) and not bits(codes[:, 96:]).any()
        assert int(scale.count_nonzero()) == 9


@pytest.mark.parametrize("name", GROUP)
def test_rows_anywhere(name):
    """Rows far apart, at odd addresses, in more dimensions."""
    memory = torch.randn(6, 200).bfloat16()
    for x in (memory[:, :192], memory[:, 8:200], memory[:, 1:193]):
        codes, scale = both(name, operands(name, x, g=50.0))
        plain, same = both(name, operands(name, x.contiguous(), g=50.0))
        assert torch.equal(bits(codes), bits(plain)) and torch.equal(scale, same)
    arguments = list(operands(name, x, g=50.0))
    for i in (0, 1):
        arguments[i] = arguments[i].clone().view(2, 3, -1)
    codes, cube = both(name, arguments)
    assert torch.equal(bits(codes).view(-1), bits(plain).view(-1)) and torch.equal(cube, same)


@pytest.mark.slow  # each is a kernel to compile; the GPU tests try all candidates
@pytest.mark.parametrize("choice", [
    {"vec": 8, "rows": 2, "threads": 32, "prefetch": False, "streaming": True, "prefetch_blocks": 0},
    {"vec": 16, "rows": 4, "threads": 64, "prefetch": True, "streaming": False, "prefetch_blocks": 2},
    {"vec": 32, "rows": 1, "threads": 32, "prefetch": True, "streaming": False, "prefetch_blocks": 0},
    {"vec": 32, "rows": 2, "threads": 64, "prefetch": False, "streaming": False, "prefetch_blocks": 0},
    {"vec": 8, "rows": 4, "threads": 128, "prefetch": True, "streaming": False, "prefetch_blocks": 3},
], ids=lambda c: f"{c['vec']}x{c['rows']}")  # fmt: skip
@pytest.mark.parametrize("name", GROUP)
def test_what_the_tuner_may_choose(name, choice):
    with tuning.forced(choice):
        for layout in LAYOUTS:
            both(name, operands(name, odd_values(9, 288), layout, g=3.0))


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("name", GROUP)
def test_no_rows_launch_nothing(name):
    for layout in LAYOUTS:
        assert run(getattr(corpus, name), *operands(name, torch.zeros(0, 64).bfloat16(), layout)) == []


def test_wrong_operands_are_refused():
    x = torch.randn(4, 96).bfloat16()
    call, good = corpus.scaled_fp4_quant, operands("scaled_fp4_quant", x, "128x4")
    for at, bad, text in (
        (0, good[0][:, :40], "output has shape"), (0, good[0].view(torch.int8), "output has dtype"),
        (0, good[0][:3], "output has shape"), (1, x.double(), "input has dtype"),
        (1, x[:, :88], "whole blocks of 16"), (1, torch.zeros(96, 4).bfloat16().t(), "last dimension of input"),
        (2, good[2][:64], "output_scale has shape"), (2, good[2].half(), "output_scale has dtype"),
        (2, torch.zeros(8, 128).byte().t(), "output_scale must be contiguous"),
        (2, good[2].view(64, 16), "output_scale has shape"), (3, torch.ones(2), "input_scale must hold one"),
        (3, torch.ones(1).double(), "input_scale has dtype"), (6, "ceil", "recipe is fast or exact"),
    ):  # fmt: skip
        arguments = [*good]
        arguments[at] = bad
        with pytest.raises(ValueError, match=text):
            run(call, *arguments)
    with pytest.raises(ValueError, match="is_sf_8x4_layout is a kind"):
        run(call, *good[:4], False, True)
    mx = operands("mxfp8_quantize", x)
    with pytest.raises(ValueError, match="sf_rounding is ceil or floor"):
        run(corpus.mxfp8_quantize, *mx[:-1], "fast")
    with pytest.raises(ValueError, match="output has shape"):
        run(corpus.mxfp8_quantize, mx[0][:, :64], *mx[1:])
    with pytest.raises(ValueError, match="output_scale has dtype"):
        run(corpus.mxfp8_quantize, mx[0], x, mx[2].view(E4M3), *mx[3:])


def test_the_reference_searches_for_codes_as_this_file_does():
    x = torch.cat([torch.randn(4096) * 3, torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1e-40, 5.0, -5.0])])
    assert torch.equal(nibbles(reference.pack_e2m1(x)), nearest(x))


# ---------------------------------------------------------------- activations


def near(name, got, *operands):
    """The fallback gives the same but for numbers whose exponential or norm it rounds to the other side."""
    want = [torch.full_like(bits(t), 0x5A).view(t.dtype) for t in got]
    getattr(torch.ops.porter, name)(*want, *operands)
    for a, b in zip(got, want, strict=True):
        assert (bits(a) != bits(b)).float().mean() < 2e-3


@pytest.mark.parametrize(
    ("name", "act", "quantiser", "layout", "arch"),
    [("silu_and_mul_nvfp4_quant", "silu", "scaled_fp4_quant", "128x4", "sm_90a"),
     ("silu_and_mul_nvfp4_quant", "silu", "scaled_fp4_quant", "linear", "sm_100a"),
     ("silu_and_mul_mxfp4_quant", "silu", "mxfp4_quantize", "8x4", "sm_90a"),
     ("silu_and_mul_mxfp8_quant", "silu", "mxfp8_quantize", "linear", "sm_90a"),
     ("gelu_tanh_and_mul_nvfp4_quant", "gelu_tanh", "scaled_fp4_quant", "linear", "sm_90a"),
     ("gelu_tanh_and_mul_mxfp8_quant", "gelu_tanh", "mxfp8_quantize", "128x4", "sm_100a")],
)  # fmt: skip
def test_activations_are_those_without_quantisation(name, act, quantiser, layout, arch):
    """Equal to the activation with one rounding and a quantisation after it."""
    x = odd_values(7, 320)
    product = torch.zeros(7, 160).bfloat16()
    run(getattr(corpus, f"{act}_and_mul"), product, x, "flashinfer", arch=arch)
    codes, _, scale, *rest = operands(quantiser, product, layout, g=30.0)
    wanted = both(quantiser, (codes, product, scale, *rest), arch)
    got = codes.clone(), scale.clone()
    run(getattr(corpus, name), *got, x, *rest, arch=arch)
    assert torch.equal(bits(got[0]), bits(wanted[0])) and torch.equal(got[1], wanted[1])
    near(name, got, x, *rest)


def test_activations_refuse_by_their_own_names():
    x = torch.randn(4, 192).bfloat16()
    codes, _, scale, *rest = operands("scaled_fp4_quant", x[:, :96])
    call = corpus.silu_and_mul_nvfp4_quant
    for arguments, text in (
        ((codes[:3], scale, x, *rest), "result has shape"), ((codes, scale[:3], x, *rest), "result_block_scale has sh"),
        ((codes, scale, x[:, :191], *rest), "even"), ((codes, scale, x, torch.ones(2), *rest[1:]), "input_global_sc"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            run(call, *arguments)
    assert run(call, codes[:0], scale[:0], x[:0], *rest) == []


# ---------------------------------------------------------------- and back

BACK = {"scaled_fp4_quant": "nvfp4_dequantize", "mxfp4_quantize": "mxfp4_dequantize",
        "mxfp8_quantize": "mxfp8_dequantize"}  # fmt: skip


def restored(name, codes, scale, given, flags, dtype, shape, arch="sm_90a"):
    """What the emulator and the reference make of codes; both write the same."""
    got, want = torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)
    given = () if given is None else (torch.tensor([given]),)
    run(getattr(corpus, BACK[name]), got, codes, scale, *given, *flags, arch=arch)
    OPS[BACK[name]].fallback(want, codes, scale, *given, *flags)
    same = got == want
    assert (same | (got.isnan() & want.isnan())).all()
    return got


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", GROUP)
def test_every_code_with_every_scale_comes_back(name, arch):
    group, fp8 = GROUP[name], name == "mxfp8_quantize"
    scale = torch.arange(128 if group == 16 else 256, dtype=torch.uint8)[:, None].repeat(1, 8 if fp8 else 1)
    if fp8:
        codes = torch.arange(256, dtype=torch.uint8).repeat(256, 1).view(E4M3)
        values = codes.float()
    else:
        every = torch.arange(group, dtype=torch.uint8) % 16
        codes = (every[::2] | (every[1::2] << 4)).repeat(len(scale), 1)
        values = torch.cat([E2M1, -E2M1])[every.long()].repeat(len(scale), 1)
    given = 3.0 if group == 16 else None
    got = restored(name, codes, scale, given, FLAGS["linear"], torch.float32, values.shape, arch)
    factor = scale.view(E4M3).float() / 3 if group == 16 else 2.0 ** (scale.double() - 127)
    factor = factor if group == 16 else factor.masked_fill(scale == 255, NAN)
    want = (values.double().view(len(scale), -1, group) * factor.double()[..., None]).view(values.shape).float()
    assert ((got == want) | (got.isnan() & want.isnan())).all()


@pytest.mark.parametrize(("name", "layout"), [("scaled_fp4_quant", "128x4"), ("mxfp4_quantize", "8x4"),
                                              ("mxfp8_quantize", "linear")])  # fmt: skip
def test_numbers_come_back(name, layout):
    x = torch.randn(5, 96, generator=torch.Generator().manual_seed(2)).bfloat16()
    g = 448 * 6 / x.abs().max().item()
    longer = 32 if name == "mxfp8_quantize" else 0
    codes, scale = both(name, operands(name, x, layout, g=g, longer=longer))
    given = g if name == "scaled_fp4_quant" else None
    for choice in (
        {},
        {"vec": 32, "rows": 2, "threads": 32, "prefetch": True, "streaming": False, "prefetch_blocks": 0},
    ):
        with tuning.forced(choice):
            back = restored(name, codes, scale, given, FLAGS[layout], torch.bfloat16, x.shape).float()
    largest = x.float().view(5, -1, GROUP[name]).abs().amax(-1, keepdim=True)
    away = (back - x.float()).abs().view(5, -1, GROUP[name])
    assert (away <= largest * (0.07 if longer else 0.27)).all()


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("shape", [(3, 5), (130, 8), (8, 33)])
def test_scales_to_tiles_and_back(shape, narrow):
    scales = torch.randint(1, 256, shape, dtype=torch.uint8)
    rows, tile = shape[0], 8 if narrow else 128
    size = -(-rows // tile) * tile * (-(-shape[1] // 4) * 4)
    tiles, back = torch.full((size,), 0x5A, dtype=torch.uint8), torch.zeros_like(scales)
    run(corpus.block_scale_interleave, tiles, scales, narrow)
    layout = "8x4" if narrow else "128x4"
    places = torch.tensor([[where(layout, m, k, shape[1]) for k in range(shape[1])] for m in range(rows)])
    assert torch.equal(tiles[places], scales) and int(tiles.count_nonzero()) == scales.numel()
    want = torch.zeros_like(tiles)
    OPS["block_scale_interleave"].fallback(want, scales, narrow)
    assert torch.equal(want, tiles)
    run(corpus.block_scale_deinterleave, back, tiles.view(-1, -(-shape[1] // 4) * 4), narrow)
    OPS["block_scale_deinterleave"].fallback(want_back := torch.zeros_like(back), tiles, narrow)
    assert torch.equal(back, scales) and torch.equal(want_back, scales)


def test_wrong_layouts_are_refused():
    scales, tiles = torch.zeros(3, 5).byte(), torch.zeros(1024).byte()
    for call, text in (
        (lambda: run(corpus.block_scale_interleave, tiles[:512], scales), "output has shape"),
        (lambda: run(corpus.block_scale_interleave, tiles, scales.half()), "input has dtype"),
        (lambda: run(corpus.block_scale_interleave, tiles, scales[None]), "rows of scales"),
        (lambda: run(corpus.block_scale_deinterleave, torch.zeros(5, 3).byte().t(), tiles), "output must be contig"),
        (lambda: run(corpus.nvfp4_dequantize, torch.zeros(3, 96), torch.zeros(3, 47).byte(), tiles, torch.ones(1)),
         "input has shape"),
        (lambda: run(corpus.mxfp8_dequantize, torch.zeros(3, 96), torch.zeros(3, 96).to(E4M3), tiles), "input_scale"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            call()
    assert run(corpus.block_scale_interleave, tiles[:0], scales[:0]) == []


# ---------------------------------------------------------------- norms


@pytest.mark.parametrize(
    ("quantiser", "layout", "residual", "dtype", "arch"),
    [("scaled_fp4_quant", "128x4", False, torch.bfloat16, "sm_90a"),
     ("scaled_fp4_quant", "linear", True, torch.bfloat16, "sm_100a"),
     ("scaled_fp4_quant", "8x4", True, torch.float32, "sm_90a"),
     ("mxfp8_quantize", "linear", False, torch.float32, "sm_90a"),
     ("mxfp8_quantize", "8x4", True, torch.float16, "sm_100a")],
)  # fmt: skip
def test_norms_are_those_without_quantisation(quantiser, layout, residual, dtype, arch):
    """Equal to the norm and a quantisation after it, whatever is no number; the residual becomes the sum."""
    x, w = odd_values(7, 352, dtype), (torch.rand(352) + 0.5).to(dtype)
    r = torch.randn(7, 352).to(dtype) if residual else None
    norm, total = x.clone(), None if r is None else r.clone()
    if r is None:
        run(corpus.rms_norm, norm, x, w, 1e-6, arch=arch)
    else:
        run(corpus.fused_add_rms_norm, norm, total, w, 1e-6, arch=arch)
    codes, _, scale, *rest = operands(quantiser, norm, layout, g=30.0)
    wanted = both(quantiser, (codes, norm, scale, *rest), arch)
    given = rest[:1] if quantiser == "scaled_fp4_quant" else []
    name = "rms_norm_nvfp4_quant" if given else "rms_norm_mxfp8_quant"
    for choice in ({}, {"threads": 16, "rows": 4, "prefetch": "all", "prefetch_blocks": 0}):
        got, sums = (codes.clone(), scale.clone()), None if r is None else r.clone()
        with tuning.forced(choice):
            run(getattr(corpus, name), *got, x, w, *given, 1e-6, sums, *rest[len(given) :], arch=arch)
        assert torch.equal(bits(got[0]), bits(wanted[0])) and torch.equal(got[1], wanted[1])
        assert r is None or torch.equal(bits(sums), bits(total))
        near(name, got, x, w, *given, 1e-6, None if r is None else r.clone(), *rest[len(given) :])


def test_wrong_norms_are_refused():
    x, w = torch.randn(4, 96).bfloat16(), torch.ones(96).bfloat16()
    codes, _, scale, *rest = operands("mxfp8_quantize", x)
    for arguments, text in (
        ((codes[:3], scale, x, w, 1e-6), "result has shape"), ((codes, scale[:, :2], x, w, 1e-6), "result_block_scale"),
        ((codes, scale, x, w[:64], 1e-6), "weight has"), ((codes, scale, x, w, 1e-6, x.float()), "residual has d"),
        ((codes, scale, x, w, 1e-6, x[:3]), "residual has shape"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            run(corpus.rms_norm_mxfp8_quant, *arguments, *[None] * (6 - len(arguments)), *rest)
    assert run(corpus.rms_norm_mxfp8_quant, codes[:0], scale[:0], x[:0], w, 1e-6, None, *rest) == []


@pytest.mark.parametrize(
    ("name", "dims", "most"),
    [("scaled_fp4_quant", {"hidden": 4096}, 2.1), ("rms_norm_nvfp4_quant", {"hidden": 4096}, 2.2),
     ("silu_and_mul_nvfp4_quant", {"width": 2048}, 3.2)],
)  # fmt: skip
def test_e2m1_by_software_compares_little(name, dims, most):
    """Comparisons go at half the rate of sums and single conversions at an eighth: one of a number's magnitude, one of
    its code (and one of the exponential), and numbers rounded two at a time."""
    args = WORKLOADS[name].make(8192, torch.bfloat16, "meta", **dims)
    kernel = OPS[name].plan(Device("sm_90a", 132), *args)[0]
    ptx = compiled(kernel, "sm_90a", "ptx").ptx
    values = ptx.count("ex2.approx") if "silu" in name else ptx.count("add.rn.f32")
    assert len(re.findall(r"\b(?:min|max)\.f32", ptx)) <= most * values
    assert ptx.count("fma.rn.sat.f32") >= 3 * values and "cvt.rn.bf16.f32" not in ptx and ".local" not in ptx


def test_nan_with_a_sign_is_6():
    x = torch.full((1, 32), 1.0)
    x[0, 3], x[0, 5] = float("nan"), -float("nan")
    x = x.to(torch.bfloat16)
    assert x.view(torch.int16)[0, 5] < 0
    for arch in ARCHS:
        codes, scales = torch.zeros(1, 16, dtype=torch.uint8), torch.zeros(1, 2, dtype=torch.uint8)
        run(corpus.scaled_fp4_quant, codes, x, scales, torch.ones(1), False, arch=arch)
        assert codes[0, 1] >> 4 == codes[0, 2] >> 4 == 7
