"""Quantised norms of the corpus in the emulator, against references that round where the kernels say they do."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.norm import reference
from porter.corpus.runtime import tuning
from tests.corpus.emulated import run
from tests.corpus.numerics import ulps
from tests.corpus.ops.test_norms import EPS, random

E4M3 = torch.float8_e4m3fn


def both(function, want_function, tensors, *rest, **options):
    """Run the op in the emulator and the reference on copies; (the op's tensors, the reference's)."""
    arch = options.pop("arch", "sm_90a")
    got = [None if t is None else t.clone() for t in tensors]
    want = [None if t is None else t.clone() for t in tensors]
    run(function, *got, *rest, arch=arch, **options)
    want_function(*want, *rest, **options)
    return got, want


def codes_agree(got, want, exact=0.999):
    """Codes are at most one apart, and equal but for a thousandth."""
    distance = (got.int() - want.int()).abs() if got.dtype == torch.int8 else ulps(got, want)
    assert distance.max() <= 1 and (distance == 0).double().mean() >= exact


@pytest.mark.parametrize(
    ("arch", "profile", "shape"),
    [("sm_90a", "vllm", (3, 4096)), ("sm_90a", "vllm", (5, 769)), ("sm_90a", "flashinfer", (140, 72)),
     ("sm_100a", "vllm", (140, 72))],
)  # fmt: skip
def test_static_fp8(arch, profile, shape):
    x, w, out = random(*shape), random(shape[-1], seed=3), torch.zeros(shape, dtype=E4M3)
    scale = torch.tensor([0.013])
    got, want = both(
        corpus.rms_norm_static_fp8_quant, reference.rms_norm_static_fp8_quant, (out, x, w, scale), EPS,
        profile=profile, arch=arch,
    )  # fmt: skip
    codes_agree(got[0], want[0])


@pytest.mark.parametrize("profile", ["vllm", "flashinfer"])
def test_static_fp8_with_residual(profile):
    x, r, w = random(4, 2880), random(4, 2880, seed=2), random(2880, seed=3)
    operands = (torch.zeros(4, 2880, dtype=E4M3), x, r, w, torch.tensor(0.02))
    got, want = both(
        corpus.fused_add_rms_norm_static_fp8_quant, reference.fused_add_rms_norm_static_fp8_quant, operands, EPS,
        profile=profile,
    )  # fmt: skip
    codes_agree(got[0], want[0])
    assert torch.equal(got[1], x) and torch.equal(got[2], want[2])


@pytest.mark.parametrize("residual", [False, True])
def test_static_fp8_that_asks_for_rows(residual):
    x, r, w, scale = random(9, 1536), random(9, 1536, seed=2), random(1536, seed=3), torch.tensor([0.02])
    out, want, want_r = torch.zeros(9, 1536, dtype=E4M3), torch.zeros(9, 1536, dtype=E4M3), r.clone()
    with tuning.forced({"threads": 96, "rows": 1, "prefetch": "rows", "prefetch_blocks": 3, "prefetch_distance": 2}):
        if residual:
            run(corpus.fused_add_rms_norm_static_fp8_quant, out, x, r, w, scale, EPS)
            reference.fused_add_rms_norm_static_fp8_quant(want, x, want_r, w, scale, EPS)
        else:
            run(corpus.rms_norm_static_fp8_quant, out, x, w, scale, EPS)
            reference.rms_norm_static_fp8_quant(want, x, w, scale, EPS)
    codes_agree(out, want)
    assert torch.equal(r, want_r)


def test_static_fp8_saturates():
    x, out = random(2, 64), torch.zeros(2, 64, dtype=E4M3)
    run(corpus.rms_norm_static_fp8_quant, out, x, torch.full((64,), 3e4).bfloat16(), torch.tensor([1.0]), EPS)
    assert set(out.float().abs().unique().tolist()) <= {448.0, *out.float().abs().unique().tolist()}
    assert out.float().abs().max() == 448 and torch.equal(out.float().sign(), x.float().sign())


@pytest.mark.parametrize(
    ("arch", "codes", "residual", "bound"),
    [("sm_90a", E4M3, False, None), ("sm_90a", E4M3, True, 1.5), ("sm_90a", torch.int8, True, None),
     ("sm_100a", E4M3, True, None), ("sm_100a", torch.int8, False, None)],
)  # fmt: skip
def test_per_token(arch, codes, residual, bound):
    shape = (3, 5120)
    x, r, w = random(*shape), random(*shape, seed=2) if residual else None, random(shape[-1], seed=3)
    operands = (torch.zeros(shape, dtype=codes), x, w, torch.zeros(3, 1))
    ub = None if bound is None else torch.tensor([bound])
    want_r = None if r is None else r.clone()
    got, want = [t.clone() for t in operands], [t.clone() for t in operands]
    run(corpus.rms_norm_dynamic_per_token_quant, *got, EPS, ub, r, arch=arch)
    reference.rms_norm_dynamic_per_token_quant(*want, EPS, ub, want_r)
    assert torch.equal(got[3], want[3])
    codes_agree(got[0], want[0])
    assert r is None or torch.equal(r, want_r)


def test_per_token_of_rows_of_zeros_and_one_dimensional_scales():
    x, out, scale = torch.zeros(5, 96).bfloat16(), torch.ones(5, 96).to(E4M3), torch.zeros(5)
    run(corpus.rms_norm_dynamic_per_token_quant, out, x, random(96), scale, EPS, None, None)
    assert (scale == 1 / (448 * 512)).all() and not out.float().any()


@pytest.mark.parametrize(
    ("arch", "codes", "group", "transposed", "residual"),
    [("sm_90a", E4M3, 128, False, False), ("sm_90a", torch.int8, 64, True, True), ("sm_90a", E4M3, 128, True, False),
     ("sm_100a", E4M3, 64, False, True)],
)  # fmt: skip
def test_per_block(arch, codes, group, transposed, residual):
    rows, hidden = 5, 1536
    x, r, w = random(rows, hidden), random(rows, hidden, seed=2) if residual else None, random(hidden, seed=3)
    shape = (rows, hidden // group)
    scale = torch.zeros(shape[1], 8).t()[:rows] if transposed else torch.zeros(shape)
    out = torch.zeros(rows, hidden, dtype=codes)
    want_out, want_scale, want_r = out.clone(), torch.zeros(shape), None if r is None else r.clone()
    run(corpus.rms_norm_per_block_quant, out, x, w, scale, EPS, None, r, group, transposed, arch=arch)
    reference.rms_norm_per_block_quant(want_out, x, w, want_scale, EPS, None, want_r, group, False)
    assert torch.equal(scale, want_scale)
    codes_agree(out, want_out)
    assert r is None or torch.equal(r, want_r)


def test_per_block_of_as_many_rows_as_groups():
    """Whether square scales lie transposed is told from their strides."""
    x, w = random(4, 512), random(512, seed=2)
    found = []
    for scale in (torch.zeros(4, 4), torch.zeros(4, 4).t()):
        codes, want, wanted = torch.zeros(4, 512, dtype=E4M3), torch.zeros(4, 512, dtype=E4M3), torch.zeros_like(scale)
        run(corpus.rms_norm_per_block_quant, codes, x, w, scale, EPS, None, None, 128, True)
        reference.rms_norm_per_block_quant(want, x, w, wanted, EPS, None, None, 128, True)
        codes_agree(codes, want)
        assert wanted.stride() == scale.stride() and torch.equal(scale, wanted)
        found.append(scale)
    assert torch.equal(found[0].t(), found[1]) and not torch.equal(*found)


@pytest.mark.parametrize("codes", [E4M3, torch.int8])
def test_per_token_of_infinities_and_nans(codes):
    """As CUDA's clamps leave them: fp8 codes of NaN are 448, a NaN does not count for the scale."""
    x, w = random(4, 64, dtype=torch.float16), torch.ones(64).half()
    w[3], x[1, 5], x[2, 6] = 60000.0, float("inf"), float("nan")
    out, scale = torch.zeros(4, 64, dtype=codes), torch.zeros(4, 1)
    want, want_scale = out.clone(), scale.clone()
    run(corpus.rms_norm_dynamic_per_token_quant, out, x, w, scale, EPS, None, None)
    reference.rms_norm_dynamic_per_token_quant(want, x, w, want_scale, EPS, None, None)
    assert torch.equal(scale, want_scale)
    assert torch.equal(out.view(torch.int8), want.view(torch.int8))


def test_per_block_of_short_rows():
    """A row has fewer accesses than the spread gives threads to a group."""
    x, w, scale, want_scale = random(300, 64), random(64), torch.zeros(300, 1), torch.zeros(300, 1)
    out, want = torch.zeros(300, 64, dtype=E4M3), torch.zeros(300, 64, dtype=E4M3)
    run(corpus.rms_norm_per_block_quant, out, x, w, scale, EPS, None, None, 64, False, sms=8)
    reference.rms_norm_per_block_quant(want, x, w, want_scale, EPS, None, None, 64, False)
    assert (scale == want_scale).double().mean() >= 0.99
    same = (scale == want_scale).view(-1)
    codes_agree(out[same], want[same])


def test_wrong_scales_are_refused():
    x, w, out = random(4, 256), random(256), torch.zeros(4, 256, dtype=E4M3)
    with pytest.raises(ValueError, match="scale has shape"):
        run(corpus.rms_norm_dynamic_per_token_quant, out, x, w, torch.zeros(3, 1), EPS, None, None)
    with pytest.raises(ValueError, match="scale has shape"):
        run(corpus.rms_norm_per_block_quant, out, x, w, torch.zeros(4, 3), EPS, None, None, 128, False)
    with pytest.raises(ValueError, match="group_size is"):
        run(corpus.rms_norm_per_block_quant, out, x, w, torch.zeros(4, 8), EPS, None, None, 32, False)
    with pytest.raises(ValueError, match="must hold one number"):
        run(corpus.rms_norm_static_fp8_quant, out, x, w, torch.zeros(4), EPS)
