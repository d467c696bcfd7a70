"""The activations of the corpus in the emulator, equal to the bit to references that round where the kernels do."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.activation import reference
from porter.corpus.runtime import tuning
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.specialisation import compiled
from tests.corpus.emulated import run
from tests.corpus.numerics import ulps

ARCHS = ("sm_90a", "sm_100a")
# name, arguments after (out, input)
GATED = [
    ("silu_and_mul", ()),
    ("mul_and_silu", ()),
    ("gelu_and_mul", ()),
    ("gelu_tanh_and_mul", ()),
    ("fatrelu_and_mul", (0.5,)),
    ("silu_and_mul_with_clamp", (2.0, 1.5, 0.25)),
    ("swigluoai_and_mul", (1.702, 2.0)),
]
# Functions of torch whose last float32 bit differs from CUDA's: a rounding to the dtype shows that now and then.
LOOSE = {"gelu_and_mul", "gelu_tanh_and_mul", "silu_and_mul_with_clamp", "swigluoai_and_mul"}


def random(*shape, dtype=torch.bfloat16, seed=1, scale=3.0):
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale).to(dtype)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("name", "options"), GATED)
def test_gated_activations(name, options, arch):
    unequal = outputs = 0
    for shape in ((3, 2 * 1024), (5, 2 * 77)):
        x = random(*shape)
        out = torch.empty(shape[0], shape[1] // 2).bfloat16()
        want = torch.empty_like(out)
        run(getattr(corpus, name), out, x, *options, arch=arch)
        getattr(reference, name)(want, x, *options)
        distance = ulps(out, want)
        if name in LOOSE:
            gate, up = x.float().chunk(2, dim=-1)
            tail = (out.float() - want.float()).abs() <= 5e-7 * (gate * up).abs()  # 1 + erf(x) cancels
            assert ((distance <= 2) | tail).all()
        else:
            assert torch.equal(out, want)
        unequal, outputs = unequal + int((distance > 0).sum()), outputs + distance.numel()
    assert unequal < 1e-2 * outputs  # of both shapes: 1 % of the smaller are three numbers


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", ["relu_squared", "gelu_new", "gelu_fast", "gelu_quick"])
def test_pointwise_activations(name, arch):
    for shape in ((3, 1024), (5, 77)):
        x = random(*shape)
        want = torch.empty_like(x)
        getattr(reference, name)(want, x)
        run(getattr(corpus, name), x, x, arch=arch)  # in place
        assert ulps(x, want).max() <= 1 and (ulps(x, want) > 0).double().mean() < 2e-3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_silu_of_every_16_bit_number_is_the_rounded_quotient(dtype):
    """The quotient without a slow path is div.rn's for all 65536 gates, infinities, NaN and zeros with them."""
    gate = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(dtype)
    one = torch.ones(1 << 16, dtype=dtype)
    out = torch.empty(1, 1 << 16, dtype=dtype)
    run(corpus.silu_and_mul, out, torch.cat([gate, one])[None])
    exact = torch.empty(1, 1 << 16)
    run(corpus.silu_and_mul, exact, torch.cat([gate, one]).float()[None])  # float32 takes div.rn
    want = exact.to(dtype)
    nan = want.isnan()
    assert torch.equal(nan, out.isnan())
    assert torch.equal(out.view(torch.int16)[~nan], want.view(torch.int16)[~nan])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_strided_rows(dtype):
    wide = random(4, 2 * 64 + 24, dtype=dtype)
    x = wide[:, 8 : 8 + 128]
    held = torch.zeros(4, 96, dtype=dtype)
    out = held[:, 16:80]
    want = torch.empty(4, 64, dtype=dtype)
    reference.silu_and_mul(want, x)
    run(corpus.silu_and_mul, out, x)
    torch.testing.assert_close(out, want, atol=0, rtol=0 if dtype != torch.float32 else 1e-6)
    assert not held[:, :16].any() and not held[:, 80:].any()


@pytest.mark.parametrize("arch", ARCHS)
def test_silu_and_mul_quant(arch):
    x, scale = random(3, 2 * 528), torch.tensor([0.03])
    out, want = (torch.empty(3, 528, dtype=torch.float8_e4m3fn) for _ in range(2))
    run(corpus.silu_and_mul_quant, out, x, scale, arch=arch)
    reference.silu_and_mul_quant(want, x, scale)
    assert torch.equal(out.view(torch.uint8), want.view(torch.uint8))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("group", "transposed", "bound"), [(128, False, None), (64, True, 0.01), (128, True, None)])
def test_silu_and_mul_per_block_quant(arch, group, transposed, bound):
    x = random(5, 2 * 384)
    x[1, :384] = 0.0
    out, want = (torch.empty(5, 384, dtype=torch.float8_e4m3fn) for _ in range(2))
    groups = 384 // group
    scales, wanted = (torch.zeros(*((groups, 5) if transposed else (5, groups))) for _ in range(2))
    upper = None if bound is None else torch.tensor([bound])
    run(corpus.silu_and_mul_per_block_quant, out, x, scales, group, upper, transposed, arch=arch)
    reference.silu_and_mul_per_block_quant(want, x, wanted, group, upper, transposed)
    assert ulps(scales, wanted).max() <= 2  # torch's sigmoid is not CUDA's to the last bit
    s = (scales.t() if transposed else scales).repeat_interleave(group, 1)
    gate, up = x[:, :384].float(), x[:, 384:].float()
    y = gate * (1.0 / (1.0 + (-gate).exp())) * up
    again = (y / s).clamp(-448, 448).to(torch.float8_e4m3fn)
    assert (out.view(torch.uint8) == again.view(torch.uint8)).double().mean() > 0.998
    assert ulps(out, again).max() <= 1


@pytest.mark.parametrize("name", ["silu_and_mul", "swigluoai_and_mul", "gelu_quick"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_many_rows_on_blackwell(name, dtype):
    """Accesses of 32 bytes, with a tail of threads and of rows; 16 where that is all that a tensor is aligned to."""
    for pad in (0, 8):
        width = 96 if name == "gelu_quick" else 192
        x = random(131, width + pad, dtype=dtype)[:, :width]
        out, want = (torch.empty(131, 96, dtype=dtype) for _ in range(2))
        run(getattr(corpus, name), out, x, arch="sm_100a", sms=2)
        getattr(reference, name)(want, x)
        torch.testing.assert_close(out, want, rtol=2e-6 if dtype == torch.float32 else 2**-10, atol=1e-6)


@pytest.mark.parametrize(("arch", "rows", "bits"), [("sm_100a", 129, 256), ("sm_100a", 128, 128), ("sm_90a", 129, 128)])
def test_widths_of_accesses(arch, rows, bits):
    op, words = corpus.silu_and_mul.op, bits // 32
    args = [torch.empty(rows, n, dtype=torch.bfloat16, device="meta") for n in (2048, 4096)]
    kernel, _ = op.plan(Device(arch, 132), *args, "vllm")
    ptx = compiled(kernel, arch, "ptx").ptx
    assert re.search(rf"ld\.global(\.L1::no_allocate)?\.v{words}\.b32", ptx) and f"st.global.v{words}.b32" in ptx


def test_infinite_products_get_an_infinite_scale_and_finite_codes():
    x = torch.ones(1, 256).bfloat16()
    x[0, 0], x[0, 128] = 1e38, 1e38
    out, scales = torch.empty(1, 128, dtype=torch.float8_e4m3fn), torch.zeros(1, 1)
    run(corpus.silu_and_mul_per_block_quant, out, x, scales, 128)
    assert scales.isinf().all()
    assert out.float()[0, 0] == 448 and not out.float()[0, 1:].any()


@pytest.mark.parametrize("codes", [torch.float8_e4m3fn, torch.int8])
@pytest.mark.parametrize("bound", [None, 0.01])
@pytest.mark.parametrize("arch", ARCHS)
def test_codes_of_infinities(codes, bound, arch):
    """With a largest scale infinities of both signs saturate, as in C; else they are over infinity, which is NaN."""
    x = torch.ones(1, 256).bfloat16()
    x[0, 128], x[0, 129], x[0, 130] = float("inf"), -float("inf"), float("nan")
    if bound is not None:
        x[0, 131], x[0, 132] = 3e38, -3e38  # too large for a quotient by 0.01
    out, want = (torch.ones(1, 128).to(codes) for _ in range(2))
    scales, wanted = torch.zeros(1, 1), torch.zeros(1, 1)
    upper = None if bound is None else torch.tensor([bound])
    run(corpus.silu_and_mul_per_block_quant, out, x, scales, 128, upper, arch=arch)
    reference.silu_and_mul_per_block_quant(want, x, wanted, 128, upper)
    assert torch.equal(scales, wanted) and torch.equal(out.view(torch.int8), want.view(torch.int8))
    largest, least, nan = (448.0, -448.0, 448.0) if codes != torch.int8 else (127.0, -128.0, 0.0)
    assert out.float()[0, :3].tolist() == ([nan] * 3 if bound is None else [largest, least, nan])
    assert bound is None or out.float()[0, 3:5].tolist() == [largest, least]


def test_no_rows_launch_nothing():
    assert run(corpus.silu_and_mul, torch.empty(0, 64).bfloat16(), torch.empty(0, 128).bfloat16()) == []


def test_wrong_arguments_are_refused():
    x, out = random(4, 128), torch.empty(4, 64).bfloat16()
    with pytest.raises(ValueError, match="must be even"):
        run(corpus.silu_and_mul, out, random(4, 127))
    with pytest.raises(ValueError, match="result has shape"):
        run(corpus.silu_and_mul, torch.empty(4, 32).bfloat16(), x)
    with pytest.raises(ValueError, match="result has dtype"):
        run(corpus.silu_and_mul, out.float(), x)
    with pytest.raises(ValueError, match="group_size is"):
        run(corpus.silu_and_mul_per_block_quant, out.to(torch.float8_e4m3fn), x, torch.zeros(4, 1), 32)
    with pytest.raises(ValueError, match="not whole groups"):
        run(corpus.silu_and_mul_per_block_quant, out.to(torch.float8_e4m3fn), x, torch.zeros(4, 1), 128)
    codes, scales = out.to(torch.float8_e4m3fn), torch.zeros(4, 1)
    with pytest.raises(ValueError, match="scale has dtype"):
        run(corpus.silu_and_mul_quant, codes, x, torch.ones(1).half())
    with pytest.raises(ValueError, match="scale must hold one number"):
        run(corpus.silu_and_mul_quant, codes, x, torch.ones(2))
    with pytest.raises(ValueError, match="scales has dtype"):
        run(corpus.silu_and_mul_per_block_quant, codes, x, scales.double(), 64)
    with pytest.raises(ValueError, match="scale_ub must hold one number"):
        run(corpus.silu_and_mul_per_block_quant, codes, x, scales, 64, torch.ones(4))


def test_the_largest_scale_may_have_no_dimension():
    x = random(3, 256)
    found = []
    for upper in (torch.tensor([0.01]), torch.tensor(0.01)):
        out, scales = torch.empty(3, 128, dtype=torch.float8_e4m3fn), torch.zeros(3, 1)
        run(corpus.silu_and_mul_per_block_quant, out, x, scales, 128, upper)
        found.append((out.view(torch.uint8), scales))
    assert found[0][1].max() == 0.01 and all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize(
    "choice",
    [{"threads": 64, "prefetch_blocks": 4, "streaming": False}, {"threads": 32, "rows": 2, "prefetch_blocks": 3}],
)
def test_only_the_first_blocks_may_ask(choice):
    x = random(9, 2 * 328 * 2)
    out, want = torch.empty(9, 656).bfloat16(), torch.empty(9, 656).bfloat16()
    with tuning.forced(choice):
        run(corpus.silu_and_mul, out, x)
    reference.silu_and_mul(want, x)
    assert torch.equal(out, want)
