"""NVFP4, MXFP4 and MXFP8 of the corpus on a GPU: the whole grid, all that the tuner may choose, compositions."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.runtime import tuning
from porter.corpus.runtime.device import device_of
from porter.corpus.runtime.ops import OPS
from tests.corpus.block_cases import BLOCKS, quantise, results
from tests.corpus.inputs import Inputs
from tests.corpus.on_gpu import grid, label, repeat, sweep

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
FORMATS = {"scaled_fp4_quant": (16, False), "mxfp4_quantize": (32, False), "mxfp8_quantize": (32, True)}


def bits(t):
    return t.contiguous().view(torch.uint8)


@pytest.mark.parametrize(("op", "dtype", "length"), grid(BLOCKS), ids=label)
def test_block_scales(op, dtype, length, found):
    found(sweep(op, dtype, length))


@pytest.mark.parametrize("op", BLOCKS, ids=label)
def test_block_scales_come_out_the_same_again(op):
    repeat(op)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("shape", [(3, 1536), (129, 2880), (1024, 4096)])
def test_the_exact_recipe_to_the_bit(shape, dtype):
    for kind in ("normal", "small", "large", "outlier", "special"):
        got, want = (quantise(16, False)(Inputs(3, dtype, kind, "cuda"), *shape, "exact 128x4") for _ in range(2))
        corpus.scaled_fp4_quant(*got)
        OPS["scaled_fp4_quant"].fallback(*want)
        assert torch.equal(got[0], want[0]) and torch.equal(got[2], want[2]), kind


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("tokens", [1, 129, 4096])
def test_all_that_the_tuner_may_choose(name, tokens):
    op, make = OPS[name], quantise(*FORMATS[name])
    args = make(Inputs(5, torch.bfloat16, "normal", "cuda"), tokens, 2880, "128x4")
    getattr(corpus, name)(*args)
    with tuning.forced({}) as questions:
        op.plan(device_of(args[1]), *args)
    for choice in questions[0].candidates():
        got = make(Inputs(5, torch.bfloat16, "normal", "cuda"), tokens, 2880, "128x4")
        with tuning.forced(choice):
            op.launcher(device_of(args[1]), got)(*got)
        assert torch.equal(bits(got[0]), bits(args[0])) and torch.equal(got[2], args[2]), choice


@pytest.mark.parametrize("layout", ["linear", "128x4", "8x4"])
@pytest.mark.parametrize("tokens", [1, 7, 129, 2048])
@pytest.mark.parametrize("hidden", [96, 2880, 7168])
def test_fused_operations_are_compositions(tokens, hidden, layout):
    """Activations and norms give the bytes of the plain operation and the quantisation after it."""
    new = Inputs(7, torch.bfloat16, "normal", "cuda")
    x, w, r = new(tokens, hidden), new.weight(hidden), new(tokens, hidden)
    gates = new(tokens, 2 * hidden)
    for quantiser, (group, fp8) in FORMATS.items():
        given = (new.number(400.0),) if group == 16 else ()
        short = {"scaled_fp4_quant": "nvfp4", "mxfp4_quantize": "mxfp4", "mxfp8_quantize": "mxfp8"}[quantiser]

        def compare(name, plain, *operands, group=group, fp8=fp8, given=given, quantiser=quantiser):
            codes, scales, flags = results(new, tokens, hidden, layout, group, fp8)
            getattr(corpus, quantiser)(codes, plain, scales, *given, *flags)
            got, found, _ = results(new, tokens, hidden, layout, group, fp8)
            getattr(corpus, name)(got, found, *operands, *flags)
            assert torch.equal(bits(got), bits(codes)) and torch.equal(found, scales), name

        plain = torch.empty_like(x)
        for act in ("silu", "gelu_tanh"):
            getattr(corpus, f"{act}_and_mul")(plain, gates, "flashinfer")
            if hasattr(corpus, f"{act}_and_mul_{short}_quant"):
                compare(f"{act}_and_mul_{short}_quant", plain, gates, *given)
        if short != "mxfp4":
            corpus.rms_norm(plain, x, w, 1e-6)
            compare(f"rms_norm_{short}_quant", plain, x, w, *given, 1e-6, None)
            plain, total, mine = x.clone(), r.clone(), r.clone()
            corpus.fused_add_rms_norm(plain, total, w, 1e-6)
            compare(f"rms_norm_{short}_quant", plain, x, w, *given, 1e-6, mine)
            assert torch.equal(mine, total)


def test_more_than_2_to_the_31_elements():
    tokens, hidden = (1 << 31) // 1152 + 1000, 1152
    x = torch.empty(tokens, hidden, dtype=torch.bfloat16, device="cuda").normal_()
    for name, (group, fp8) in FORMATS.items():
        given = (torch.full((1,), 400.0, device="cuda"),) if group == 16 else ()
        out = torch.empty(tokens, hidden if fp8 else hidden // 2, dtype=torch.uint8, device="cuda")
        out = out.view(torch.float8_e4m3fn) if fp8 else out
        scales = torch.empty(tokens, hidden // group, dtype=torch.uint8, device="cuda")
        rule = "exact" if group == 16 else "ceil"
        getattr(corpus, name)(out, x, scales, *given, False, False, rule)
        for part in (slice(0, 300), slice(tokens // 2, tokens // 2 + 300), slice(tokens - 300, tokens)):
            want, held = torch.empty_like(out[part]), torch.empty_like(scales[part])
            OPS[name].fallback(want, x[part], held, *given, False, False, rule)
            assert torch.equal(bits(out[part]), bits(want)) and torch.equal(scales[part], held), name
