"""Norms as engines call them: out variants with vLLM's names and schemas where it has one, else FlashInfer's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops import norm_reference as reference
from porter.corpus.ops.rows import (
    access_width,
    as_heads,
    as_rows,
    check_dtype,
    check_vector,
    row_dimensions,
    spread_rows,
)
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, op
from porter.corpus.runtime.tuning import choose

FLOATS = ("bf16", "f16", "f32")
# Where the rounding steps of engines differ; "vllm" is the default everywhere.
ROUNDING = {"vllm": "single", "flashinfer": "single", "hf": "double"}


def rounding(profile: str) -> str:
    if profile not in ROUNDING:
        raise ValueError(f"profile is one of {', '.join(ROUNDING)}, not {profile!r}")
    return ROUNDING[profile]


def weight_dtype(weight: Any, dtype: str, length: int) -> str | None:
    """The scalar name of an optional weight's dtype; raises ValueError unless it is a vector of `length` elements of
    the rows' dtype or float32."""
    if weight is None:
        return None
    check_vector("weight", weight, length)
    return check_dtype("weight", weight, dtype, "f32")


@op(
    "rms_norm(Tensor(a!) result, Tensor input, Tensor? weight, float epsilon, float weight_bias=0.0, "
    "str profile='vllm') -> ()",
    key=lambda result, input, weight, epsilon, weight_bias=0.0, profile="vllm": (
        input.shape, input.stride(), input.dtype, input.get_device(), weight is None, weight_bias, profile
    ),
    fallback=reference.rms_norm,
)  # fmt: skip
def rms_norm(
    device: Device, result: Any, input: Any, weight: Any, epsilon: float, weight_bias: float, profile: str
) -> Plan:
    """`result` = input / sqrt(mean(input^2) + epsilon) * (weight + weight_bias), over the last dimension.

    `input` (..., H) in bfloat16, float16 or float32 with a contiguous last dimension; `result` like it, or `input`
    itself; `weight` (H,) of the same dtype or float32, or None. Computed in float32; the profile says where it is
    rounded: "vllm" and "flashinfer" once, "hf" before the weight is applied and after. Raises ValueError for other
    arguments.
    """
    from porter.corpus.kernels.norm.rms_norm import RmsNorm
    from porter.corpus.lib.rows import Rows

    dtype = check_dtype("input", input, *FLOATS)
    check_dtype("result", result, dtype)
    rows, inner = row_dimensions([("input", input), ("result", result)])
    length = input.shape[-1]
    weights = weight_dtype(weight, dtype, length)
    if rows == 0 or length == 0:
        return None
    vec = access_width(length, [input, result, weight])
    spread = spread_rows(device, "rms_norm", dtype, rows, length, vec)
    kernel = RmsNorm(
        dtype, Rows(length, vec, spread.threads, spread.rows), weights,
        weight_bias, rounding(profile), inner, device.pdl, prefetch=spread.prefetch,
    )  # fmt: skip
    blocks = -(-rows // spread.rows)

    direct = input.dim() == (2 if inner == 1 else 3)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda result, input, weight, epsilon, *_: launch(result, input, weight, epsilon, blocks)
        return lambda result, input, weight, epsilon, *_: launch(
            as_rows(result, inner), as_rows(input, inner), weight, epsilon, blocks
        )

    return kernel, bind


@op(
    "fused_add_rms_norm(Tensor(a!) input, Tensor(b!) residual, Tensor? weight, float epsilon, float weight_bias=0.0, "
    "str profile='vllm') -> ()",
    key=lambda input, residual, weight, epsilon, weight_bias=0.0, profile="vllm": (
        input.shape, input.stride(), input.dtype, input.get_device(), weight is None, weight_bias, profile
    ),
    fallback=reference.fused_add_rms_norm,
)  # fmt: skip
def fused_add_rms_norm(
    device: Device, input: Any, residual: Any, weight: Any, epsilon: float, weight_bias: float, profile: str
) -> Plan:
    """In place: residual = input + residual, input = rms_norm(residual).

    `input` and `residual` (..., H) as for rms_norm, not overlapping. "vllm" and "hf" normalise the sum as it is stored,
    rounded to the tensors' type; "flashinfer" the sum in float32. Raises ValueError for other arguments.
    """
    from porter.corpus.kernels.norm.fused_add_rms_norm import FusedAddRmsNorm
    from porter.corpus.lib.rows import Rows

    dtype = check_dtype("input", input, *FLOATS)
    check_dtype("residual", residual, dtype)
    rows, inner = row_dimensions([("input", input), ("residual", residual)])
    if inner != 1:
        raise Unsupported("rows of fused_add_rms_norm must be at even distances")
    length = input.shape[-1]
    weights = weight_dtype(weight, dtype, length)
    if rows == 0 or length == 0:
        return None
    vec = access_width(length, [input, residual, weight])
    spread = spread_rows(device, "fused_add_rms_norm", dtype, rows, length, vec)
    kernel = FusedAddRmsNorm(
        dtype, Rows(length, vec, spread.threads, spread.rows), weights,
        weight_bias, "unrounded" if profile == "flashinfer" else "rounded", rounding(profile), device.pdl,
        prefetch=spread.prefetch,
    )  # fmt: skip
    blocks, direct = -(-rows // spread.rows), input.dim() == 2

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda input, residual, weight, epsilon, *_: launch(input, residual, weight, epsilon, blocks)
        return lambda input, residual, weight, epsilon, *_: launch(
            as_rows(input, 1), as_rows(residual, 1), weight, epsilon, blocks
        )

    return kernel, bind


@op(
    "qk_norm(Tensor(a!) q, Tensor(b!) k, Tensor q_weight, Tensor k_weight, float epsilon, float weight_bias=0.0, "
    "str profile='vllm') -> ()",
    key=lambda q, k, q_weight, k_weight, epsilon, weight_bias=0.0, profile="vllm": (
        q.shape, q.stride(), k.shape, k.stride(), q.dtype, q.get_device(), q_weight.shape, weight_bias, profile
    ),
    fallback=reference.qk_norm,
)  # fmt: skip
def qk_norm(
    device: Device, q: Any, k: Any, q_weight: Any, k_weight: Any, epsilon: float, weight_bias: float, profile: str
) -> Plan:
    """In place: every head of q and of k becomes its RMS norm, in one launch.

    `q` (T, q_heads, D) or (T, q_heads * D) and `k` likewise, last dimension contiguous, any other strides: parts
    of one packed tensor will do. `q_weight`, `k_weight` (D,) of the same dtype or float32. Arithmetic as in rms_norm.
    Raises ValueError for other arguments.
    """
    from porter.corpus.kernels.norm.qk_norm import QkNorm
    from porter.corpus.lib.rows import Rows

    dtype, length = check_dtype("q", q, *FLOATS), q_weight.shape[-1]
    check_dtype("k", k, dtype)
    check_vector("q_weight", q_weight, length)
    check_vector("k_weight", k_weight, length)
    weight = check_dtype("q_weight", q_weight, dtype, "f32")
    check_dtype("k_weight", k_weight, weight)
    heads_q, heads_k = as_heads("q", q, length), as_heads("k", k, length)
    tokens, q_heads, k_heads = heads_q.shape[0], heads_q.shape[1], heads_k.shape[1]
    if heads_k.shape[0] != tokens:
        raise ValueError(f"q has {tokens} tokens, k {heads_k.shape[0]}")
    if tokens == 0 or length == 0:
        return None
    if q_heads == 0 or k_heads == 0:
        raise Unsupported("q or k has no heads")
    vec = access_width(length, [heads_q, heads_k, q_weight, k_weight])
    threads, per_block, batch = spread_heads(device, dtype, tokens * (q_heads + k_heads), length, vec)
    kernel = QkNorm(
        dtype, q_heads, k_heads, Rows(length, vec, threads, per_block), weight, batch, weight_bias, rounding(profile),
        device.pdl,
    )  # fmt: skip
    blocks = -(-tokens * (q_heads + k_heads) // (per_block * batch))
    direct = q.dim() == 3 and k.dim() == 3

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda q, k, q_weight, k_weight, epsilon, *_: launch(q, k, q_weight, k_weight, epsilon, blocks)
        return lambda q, k, q_weight, k_weight, epsilon, *_: launch(
            as_heads("q", q, length), as_heads("k", k, length), q_weight, k_weight, epsilon, blocks
        )

    return kernel, bind


def spread_heads(device: Device, dtype: str, rows: int, length: int, vec: int) -> tuple[int, int, int]:
    """(threads of a row, rows of a block at once, rows a thread has in flight), a row within a warp."""
    vectors = -(-length // vec)
    threads = min(32, vectors & -vectors)  # no idle lanes: the largest power of two that divides the row
    if -(-vectors // threads) > 8:
        threads = min(32, 1 << (vectors - 1).bit_length())
    accesses = -(-vectors // threads)
    if accesses > 8:
        raise Unsupported(f"heads of {length} elements in accesses of {vec} do not fit into a warp's registers")
    per_warp = 32 // threads
    default = {"threads": threads, "rows": 8 * per_warp, "batch": max(1, 4 // accesses)}
    if rows <= 64 * per_warp * device.sm_count:
        default |= {"rows": per_warp if rows <= 4 * per_warp * device.sm_count else 4 * per_warp, "batch": 1}

    def candidates() -> list[dict[str, int]]:
        lanes = [t for t in (threads // 2, threads, 2 * threads) if 1 <= t <= 32 and vectors <= 8 * t]
        return [
            {"threads": t, "rows": warps * 32 // t, "batch": b}
            for t in lanes
            for warps in (1, 2, 4, 8)
            for b in (1, 2, 4)
        ]

    found = choose(device, "qk_norm", f"{dtype}x{vec} {length}", rows, default, candidates)
    return found["threads"], found["rows"], found["batch"]
