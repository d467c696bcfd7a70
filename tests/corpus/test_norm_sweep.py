"""The norms of the corpus in the emulator over a large grid; the result is committed as norm_sweep.json.

`python -m pytest -m slow tests/corpus/test_norm_sweep.py`; a quarter of an hour on two cores.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops import norm_reference as reference
from tests.corpus.emulated import run
from tests.corpus.test_norms import EPS, exact_rms_norm, ulps

RESULT = Path(__file__).with_name("norm_sweep.json")
TOKENS = (0, 1, 3, 40)
SMS = 8  # so that 40 rows are spread as many rows are
HIDDEN = (64, 96, 128, 576, 768, 769, 1536, 2048, 2880, 4096, 5120, 5125, 7168, 8192, 16384, 32768)
FEW = (64, 128, 769, 2880, 4096, 7168)
HEADS = (64, 80, 96, 128, 192, 256)
KINDS = (("sm_90a", "bfloat16"), ("sm_90a", "float16"), ("sm_90a", "float32"), ("sm_100a", "bfloat16"))
MANTISSA = {torch.bfloat16: 7, torch.float16: 10, torch.float32: 23}
E4M3 = torch.float8_e4m3fn
CANCELLING = ("layer_norm", "qk_norm_rope", "rms_norm_gated")  # differences, or exponentials: float32 results vary more


class Inputs:
    """Numbers of one case: normal, small, large and with outliers, by its seed."""

    def __init__(self, seed: int, dtype: torch.dtype):
        self.generator, self.dtype = torch.Generator().manual_seed(seed), dtype
        self.scale = (1.0, 1e-2, 30.0)[seed % 3]

    def __call__(self, *shape: int) -> torch.Tensor:
        x = torch.randn(*shape, generator=self.generator) * self.scale
        x[..., 0] *= 50  # an outlier
        return x.to(self.dtype)

    def like(self, x: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.zeros(x.shape, dtype=dtype or x.dtype)


Case = Callable[[Inputs, int, int, str], Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]]]


def rms_norm(new: Inputs, tokens: int, hidden: int, arch: str) -> Any:
    x, w = new(tokens, hidden), new(hidden)
    out, want = new.like(x), new.like(x)
    run(corpus.rms_norm, out, x, w, EPS, arch=arch, sms=SMS)
    reference.rms_norm(want, x, w, EPS)
    yield out, want, exact_rms_norm(x, w)


def fused_add_rms_norm(new: Inputs, tokens: int, hidden: int, arch: str) -> Any:
    x, r, w = new(tokens, hidden), new(tokens, hidden), new(hidden)
    a, b, want, want_r = x.clone(), r.clone(), x.clone(), r.clone()
    run(corpus.fused_add_rms_norm, a, b, w, EPS, arch=arch, sms=SMS)
    reference.fused_add_rms_norm(want, want_r, w, EPS)
    assert torch.equal(b, want_r)
    yield a, want, exact_rms_norm(want_r, w)


def layer_norm(new: Inputs, tokens: int, hidden: int, arch: str) -> Any:
    x, w = new(tokens, hidden), new(hidden)
    out, want = new.like(x), new.like(x)
    run(corpus.layer_norm, out, x, w, None, EPS, arch=arch, sms=SMS)
    reference.layer_norm(want, x, w, None, EPS)
    yield near(out, want), want, None


def rms_norm_gated(new: Inputs, tokens: int, hidden: int, arch: str) -> Any:
    x, z, w = new(tokens, hidden), new(tokens, hidden), new(hidden)
    out, want = new.like(x), new.like(x)
    run(corpus.rms_norm_gated, out, x, z, w, EPS, tokens % 2 == 0, arch=arch, sms=SMS)
    reference.rms_norm_gated(want, x, z, w, EPS, tokens % 2 == 0)
    yield out, want, None


def rms_norm_static_fp8_quant(new: Inputs, tokens: int, hidden: int, arch: str) -> Any:
    x, w, scale = new(tokens, hidden), new(hidden), torch.tensor([0.05])
    out, want = new.like(x, E4M3), new.like(x, E4M3)
    run(corpus.rms_norm_static_fp8_quant, out, x, w, scale, EPS, arch=arch, sms=SMS)
    reference.rms_norm_static_fp8_quant(want, x, w, scale, EPS)
    yield out, want, None


def rms_norm_dynamic_per_token_quant(new: Inputs, tokens: int, hidden: int, arch: str) -> Any:
    codes = (E4M3, torch.int8)[hidden // 64 % 2]
    x, r, w = new(tokens, hidden), new(tokens, hidden), new(hidden)
    out, want, scale, want_scale = (
        new.like(x, codes),
        new.like(x, codes),
        torch.zeros(tokens, 1),
        torch.zeros(tokens, 1),
    )
    want_r = r.clone()
    run(corpus.rms_norm_dynamic_per_token_quant, out, x, w, scale, EPS, None, r, arch=arch, sms=SMS)
    reference.rms_norm_dynamic_per_token_quant(want, x, w, want_scale, EPS, None, want_r)
    assert torch.equal(r, want_r)
    same = torch.isclose(scale, want_scale, rtol=1e-6, atol=0).view(-1)
    assert tokens < 10 or same.double().mean() >= 0.9
    yield out[same], want[same], None


def rms_norm_per_block_quant(new: Inputs, tokens: int, hidden: int, arch: str) -> Any:
    if hidden % 64:
        return
    x, w, groups = new(tokens, hidden), new(hidden), hidden // 64
    out, want = new.like(x, E4M3), new.like(x, E4M3)
    scale, want_scale = torch.zeros(tokens, groups), torch.zeros(tokens, groups)
    run(corpus.rms_norm_per_block_quant, out, x, w, scale, EPS, None, None, 64, False, arch=arch, sms=SMS)
    reference.rms_norm_per_block_quant(want, x, w, want_scale, EPS, None, None, 64, False)
    same = torch.isclose(scale, want_scale, rtol=1e-6, atol=0)
    assert tokens == 0 or same.double().mean() >= 0.99
    yield out.view(tokens, groups, 64)[same], want.view(tokens, groups, 64)[same], None


def qk_norm(new: Inputs, tokens: int, head: int, arch: str) -> Any:
    packed, wq, wk = new(tokens, 9 * head), new(head), new(head)
    want = packed.clone()
    run(corpus.qk_norm, packed[:, : 6 * head], packed[:, 6 * head : 8 * head], wq, wk, EPS, arch=arch, sms=SMS)
    reference.qk_norm(want[:, : 6 * head], want[:, 6 * head : 8 * head], wq, wk, EPS)
    yield packed, want, None


def qk_norm_rope(new: Inputs, tokens: int, head: int, arch: str) -> Any:
    qkv, wq, wk = new(tokens, 9 * head), new(head), new(head)
    angles = torch.rand(64, head // 2, generator=new.generator) * 6.28
    table = torch.cat([angles.cos(), angles.sin()], -1)
    positions, want = torch.randint(0, 64, (tokens,), generator=new.generator), qkv.clone()
    run(corpus.qk_norm_rope, qkv, 6, 2, 1, head, EPS, wq, wk, table, tokens % 2 == 1, positions, arch=arch, sms=SMS)
    reference.qk_norm_rope(want, 6, 2, 1, head, EPS, wq, wk, table, tokens % 2 == 1, positions)
    yield near(qkv, want), want, None


def near(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """`got`, with `want` where both are differences that cancel: there the reference is as far off as the kernel."""
    if got.numel() == 0:
        return got
    bound = want.double().abs().amax() * 2.0 ** -min(MANTISSA[got.dtype] + 6, 21)
    return torch.where((got.double() - want.double()).abs() <= bound, want, got)


SWEEPS: dict[str, tuple[Case, tuple[int, ...]]] = {
    "rms_norm": (rms_norm, HIDDEN),
    "fused_add_rms_norm": (fused_add_rms_norm, HIDDEN),
    "layer_norm": (layer_norm, FEW),
    "rms_norm_gated": (rms_norm_gated, FEW),
    "rms_norm_static_fp8_quant": (rms_norm_static_fp8_quant, FEW),
    "rms_norm_dynamic_per_token_quant": (rms_norm_dynamic_per_token_quant, FEW),
    "rms_norm_per_block_quant": (rms_norm_per_block_quant, FEW),
    "qk_norm": (qk_norm, HEADS),
    "qk_norm_rope": (qk_norm_rope, HEADS),
}


def error_in_units(got: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype) -> float:
    """Largest distance from the exact value, in units in the last place of the exact value's binade, where the type can
    hold it; beyond, the result is infinite."""
    fits = exact.abs() <= torch.finfo(dtype).max
    assert got[exact.abs() > torch.finfo(dtype).max * 1.001].isinf().all()
    got, exact = got[fits], exact[fits]
    size = exact.abs().clamp_min(2.0**-14)
    unit = 2.0 ** (size.log2().floor() - MANTISSA[dtype])
    return float(((got.double() - exact).abs() / unit).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SWEEPS))
def test_sweep(name: str) -> None:
    case, lengths = SWEEPS[name]
    cases = elements = equal = worst = 0
    error: dict[str, float] = {}
    for arch, kind in KINDS:
        dtype = getattr(torch, kind)
        for length in lengths:
            for tokens in TOKENS if length <= 8192 else TOKENS[:-1]:
                new = Inputs(cases, dtype)
                cases += 1
                for got, want, exact in case(new, tokens, length, arch):
                    if got.numel() == 0:
                        continue
                    distance = (got.int() - want.int()).abs() if got.dtype == torch.int8 else ulps(got, want)
                    limit = 1 if got.element_size() < 4 else 64 if name in CANCELLING else 8
                    assert distance.max() <= limit, (arch, kind, tokens, length, int(distance.max()))
                    if got.element_size() < 4:
                        elements += got.numel()
                        equal += int((distance == 0).sum())
                        worst = max(worst, int(distance.max()))
                    if exact is not None:
                        error[kind] = max(error.get(kind, 0.0), error_in_units(got, exact, dtype))
    assert equal >= 0.999 * elements, (name, equal / elements)
    record(name, {
        "cases": cases, "elements": elements, "bit_equal": math.floor(equal / elements * 1e6) / 1e6,
        "worst_units": worst, "error_from_float64_in_units": {k: round(v, 4) for k, v in error.items()},
    })  # fmt: skip


def record(name: str, row: dict[str, Any]) -> None:
    held = json.loads(RESULT.read_text()) if RESULT.is_file() else {"schema": 1, "device": "emulated", "ops": {}}
    held["ops"][name] = row
    held["ops"] = dict(sorted(held["ops"].items()))
    RESULT.write_text(json.dumps(held, indent=1) + "\n")


def test_the_committed_sweep_covers_every_norm() -> None:
    held = json.loads(RESULT.read_text())["ops"]
    assert set(held) == set(SWEEPS)
    for name, row in held.items():
        assert row["bit_equal"] >= 0.999 and row["worst_units"] <= 1, name
        for kind, error in row["error_from_float64_in_units"].items():
            assert error <= (0.51 if kind != "float32" else 4.0), (name, kind)
