"""Workloads of ops that launch another op's kernels with other choices, and of embedding and top-k."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.element_workloads import ELEMENTS, POSITIONS, ROTARY_HEADS
from porter.corpus.ops.norm_workloads import NORMS
from porter.corpus.ops.workload import Workload, empty, normal

WIDTHS = ({"width": 2048}, {"width": 14336})
HIDDEN = ({"width": 2048}, {"width": 4096}, {"width": 8192})
VOCABULARY = 4096  # rows of a GPU's part of the table
CHOSEN = ({"length": 128, "k": 8}, {"length": 256, "k": 8}, {"length": 4096, "k": 64})
LATENT_HEADS = ({"heads": 16, "rope": 64, "nope": 512}, {"heads": 128, "rope": 64, "nope": 512})


def _gated(*numbers: float) -> Workload:
    """As silu_and_mul, with `numbers` for the profile if there are any."""

    def make(*args: Any, **dims: Any) -> tuple[Any, ...]:
        out, x, profile = ELEMENTS["silu_and_mul"].make(*args, **dims)
        return out, x, *(numbers or (profile,))

    return Workload(make, ELEMENTS["silu_and_mul"].traffic, WIDTHS, tuned=False)


def _pointwise(tokens: int, dtype: Any, device: Any, width: int) -> tuple[Any, ...]:
    return empty(tokens, width, dtype=dtype, device=device), normal(tokens, width, dtype=dtype, device=device)


def _embedding(tokens: int, dtype: Any, device: Any, width: int) -> tuple[Any, ...]:
    import torch

    table = normal(VOCABULARY, width, dtype=dtype, device=device)
    indices = torch.randint(0, 2 * VOCABULARY, (tokens,), device=device)
    return empty(tokens, width, dtype=dtype, device=device), indices, table, 0, -1


def _topk(tokens: int, dtype: Any, device: Any, length: int, k: int) -> tuple[Any, ...]:
    values, indices = (empty(tokens, k, dtype=t, device=device) for t in ("float32", "int32"))
    return values, indices, normal(tokens, length, dtype=dtype, device=device), False


def _rotary_fp8(tokens: int, dtype: Any, device: Any, **dims: int) -> tuple[Any, ...]:
    positions, q, k, head, table, *_ = ELEMENTS["rotary_embedding"].make(tokens, dtype, device, **dims)
    outs = (empty(*t.shape, dtype="float8_e4m3fn", device=device) for t in (q, k))
    return *outs, positions, q, k, head, table, True, 1.0, 1.0, 0, False


def _rope_quantize(tokens: int, dtype: Any, device: Any, heads: int, rope: int, nope: int) -> tuple[Any, ...]:
    import torch

    shapes = (tokens, heads, rope), (tokens, rope), (tokens, heads, nope), (tokens, nope)
    q_rope, k_rope, q_nope, k_nope = (normal(*s, dtype=dtype, device=device) for s in shapes)
    q_out, k_out, q_nope_out, k_nope_out = (empty(*s, dtype="float8_e4m3fn", device=device) for s in shapes)
    table = normal(POSITIONS, rope, dtype=dtype, device=device)
    positions = torch.randint(0, POSITIONS, (tokens,), device=device)
    return q_rope, k_rope, q_nope, k_nope, table, positions, True, 1.0, 1.0, q_out, k_out, q_nope_out, k_nope_out


VARIANTS: dict[str, Workload] = {
    **{name: _gated() for name in ("mul_and_silu", "gelu_and_mul", "gelu_tanh_and_mul")},
    "fatrelu_and_mul": _gated(0.1),
    "silu_and_mul_with_clamp": _gated(7.0, 1.0, 0.0),
    "swigluoai_and_mul": _gated(1.702, 7.0),
    **{
        name: Workload(_pointwise, lambda t, e, width: 2 * t * width * e, WIDTHS, tuned=name == "relu_squared")
        for name in ("relu_squared", "gelu_new", "gelu_fast", "gelu_quick")
    },
    "embedding": Workload(_embedding, lambda t, e, width: t * (2 * width * e + 8), HIDDEN),
    "topk": Workload(_topk, lambda t, e, length, k: t * (length * e + 8 * k), CHOSEN, tuned=False),
    "rotary_embedding_fp8": Workload(
        _rotary_fp8, lambda t, e, q_heads, k_heads, head: t * head * ((q_heads + k_heads) * (e + 1) + e),
        ROTARY_HEADS, tuned=False,
    ),
    "rope_quantize_fp8": Workload(
        _rope_quantize, lambda t, e, heads, rope, nope: t * ((heads + 1) * (rope + nope) * (e + 1) + rope * e),
        LATENT_HEADS, tuned=False,
    ),
    "fused_qk_norm_rope": Workload(
        NORMS["qk_norm_rope"].make, NORMS["qk_norm_rope"].traffic, NORMS["qk_norm_rope"].dims, tuned=False
    ),
}  # fmt: skip
