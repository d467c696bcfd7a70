"""Norms as engines call them: out variants with vLLM's names and schemas where it has one, else FlashInfer's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from porter.corpus.ops.norm import reference
from porter.corpus.ops.rows import (
    RowSpread,
    access_width,
    as_rows,
    check_dtype,
    check_vector,
    row_dimensions,
    spread_rows,
)
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op

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
    key=compact_key("input.nbytes", {"weight is None": False, "weight_bias": 0.0, "profile": "vllm"}),
    fallback=reference.rms_norm,
    in_place=("input",),
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
    vec = access_width(length, [input, result], [weight])
    spread = spread_rows(device, "rms_norm", dtype, rows, length, vec, prefetches_ahead=True)
    kernel = RmsNorm(
        dtype, Rows(length, vec, spread.threads, spread.rows), weights,
        weight_bias, rounding(profile), inner, device.pdl, prefetch=spread.prefetch,
        prefetch_distance=spread.prefetch_distance, prefetch_blocks=spread.prefetch_blocks,
    )  # fmt: skip
    blocks = -(-rows // spread.rows)

    direct = input.dim() == (2 if inner == 1 else 3)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda result, input, weight, epsilon, bias, profile: launch(result, input, weight, epsilon, blocks)
        return lambda result, input, weight, epsilon, *_: launch(
            as_rows(result, inner), as_rows(input, inner), weight, epsilon, blocks
        )

    return kernel, bind


@op(
    "fused_add_rms_norm(Tensor(a!) input, Tensor(b!) residual, Tensor? weight, float epsilon, float weight_bias=0.0, "
    "str profile='vllm') -> ()",
    key=compact_key("input.nbytes", {"weight is None": False, "weight_bias": 0.0, "profile": "vllm"}),
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
        raise Unsupported("rows of fused_add_rms_norm must be evenly spaced")
    length = input.shape[-1]
    weights = weight_dtype(weight, dtype, length)
    if rows == 0 or length == 0:
        return None
    vec = access_width(length, [input, residual], [weight])
    spread = spread_rows(
        device, "fused_add_rms_norm", dtype, rows, length, vec, prefetches_ahead=True, wanted=1024, most=1
    )
    kernel = FusedAddRmsNorm(
        dtype, Rows(length, vec, spread.threads, spread.rows), weights,
        weight_bias, "unrounded" if profile == "flashinfer" else "rounded", rounding(profile), device.pdl,
        prefetch=spread.prefetch, prefetch_distance=spread.prefetch_distance, prefetch_blocks=spread.prefetch_blocks,
    )  # fmt: skip
    blocks, direct = -(-rows // spread.rows), input.dim() == 2

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda input, residual, weight, epsilon, bias, profile: launch(
                input, residual, weight, epsilon, blocks
            )
        return lambda input, residual, weight, epsilon, *_: launch(
            as_rows(input, 1), as_rows(residual, 1), weight, epsilon, blocks
        )

    return kernel, bind


@op(
    "layer_norm(Tensor(a!) result, Tensor input, Tensor? weight, Tensor? bias, float epsilon) -> ()",
    key=compact_key("input.nbytes", {"weight is None": False, "bias is None": False}),
    fallback=reference.layer_norm,
    in_place=("input",),
)  # fmt: skip
def layer_norm(device: Device, result: Any, input: Any, weight: Any, bias: Any, epsilon: float) -> Plan:
    """`result` = (input - mean) / sqrt(variance + epsilon) * weight + bias, over the last dimension.

    Operands as for rms_norm; `weight` and `bias` (H,) of the input's dtype or float32, or None. The variance is the
    mean of the squared deviations. Computed in float32, rounded once. Raises ValueError for other arguments.
    """
    from porter.corpus.kernels.norm.layer_norm import LayerNorm
    from porter.corpus.lib.rows import Rows

    shape = plain_rows(device, "layer_norm", [("input", input), ("result", result)], [weight, bias])
    weights, biases = (weight_dtype(t, shape.dtype, shape.length) for t in (weight, bias))
    if shape.rows == 0 or shape.length == 0:
        return None
    spread, blocks = shape.spread, shape.blocks
    kernel = LayerNorm(
        shape.dtype, Rows(shape.length, shape.vec, spread.threads, spread.rows), weights, biases, device.pdl,
        spread.prefetch, spread.prefetch_blocks,
    )  # fmt: skip

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if shape.direct:
            return lambda result, input, weight, bias, epsilon: launch(result, input, weight, bias, epsilon, blocks)
        return lambda result, input, weight, bias, epsilon: launch(
            as_rows(result, 1), as_rows(input, 1), weight, bias, epsilon, blocks
        )

    return kernel, bind


@op(
    "rms_norm_gated(Tensor(a!) result, Tensor input, Tensor gate, Tensor weight, float epsilon, "
    "bool norm_before_gate=True, str activation='silu') -> ()",
    key=compact_key("input.nbytes", {"norm_before_gate": True, "activation": "silu"}),
    fallback=reference.rms_norm_gated,
    in_place=("input", "gate"),
)  # fmt: skip
def rms_norm_gated(
    device: Device, result: Any, input: Any, gate: Any, weight: Any, epsilon: float, norm_before_gate: bool,
    activation: str,
) -> Plan:  # fmt: skip
    """`result` = rms_norm(input) * act(gate), or rms_norm(input * act(gate)) when not `norm_before_gate`.

    `gate` (..., H) like the input; `result` may be either of them itself; `activation` "silu" (also "swish") or
    "sigmoid". Computed in float32, rounded once. Raises ValueError for other arguments.
    """
    from porter.corpus.kernels.norm.gated_rms_norm import GatedRmsNorm
    from porter.corpus.lib.rows import Rows

    activations = {"silu": "silu", "swish": "silu", "sigmoid": "sigmoid"}
    if activation not in activations:
        raise ValueError(f"activation is one of {', '.join(activations)}, not {activation!r}")
    shape = plain_rows(device, "rms_norm_gated", [("input", input), ("result", result), ("gate", gate)], [weight])
    weights = weight_dtype(weight, shape.dtype, shape.length)
    if weights is None:
        raise ValueError("weight is None")
    if shape.rows == 0 or shape.length == 0:
        return None
    spread, blocks = shape.spread, shape.blocks
    kernel = GatedRmsNorm(
        shape.dtype, Rows(shape.length, shape.vec, spread.threads, spread.rows), weights,
        "after" if norm_before_gate else "before", activations[activation], device.pdl, spread.prefetch,
        spread.prefetch_blocks,
    )  # fmt: skip

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if shape.direct:
            return lambda result, input, gate, weight, epsilon, first, activation: launch(
                result, input, gate, weight, epsilon, blocks
            )
        return lambda result, input, gate, weight, epsilon, *_: launch(
            as_rows(result, 1), as_rows(input, 1), as_rows(gate, 1), weight, epsilon, blocks
        )

    return kernel, bind


@op(
    "rms_norm_silu(Tensor(a!) result, Tensor input, Tensor weight, float epsilon) -> ()",
    key="input.nbytes",
    fallback=reference.rms_norm_silu,
    in_place=("input",),
)
def rms_norm_silu(device: Device, result: Any, input: Any, weight: Any, epsilon: float) -> Plan:
    """`result` = silu(rms_norm(input)), computed in float32 and rounded once. Operands as for rms_norm."""
    from porter.corpus.kernels.norm.gated_rms_norm import GatedRmsNorm
    from porter.corpus.lib.rows import Rows

    shape = plain_rows(device, "rms_norm_silu", [("input", input), ("result", result)], [weight])
    weights = weight_dtype(weight, shape.dtype, shape.length)
    if weights is None:
        raise ValueError("weight is None")
    if shape.rows == 0 or shape.length == 0:
        return None
    spread, blocks = shape.spread, shape.blocks
    kernel = GatedRmsNorm(
        shape.dtype, Rows(shape.length, shape.vec, spread.threads, spread.rows), weights, "self", "silu", device.pdl,
        spread.prefetch, spread.prefetch_blocks,
    )  # fmt: skip

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if shape.direct:
            return lambda result, input, weight, epsilon: launch(result, input, None, weight, epsilon, blocks)
        return lambda result, input, weight, epsilon: launch(
            as_rows(result, 1), as_rows(input, 1), None, weight, epsilon, blocks
        )

    return kernel, bind


@dataclass(frozen=True)
class PlainRows:
    """Operands of one dtype and shape, seen as (rows, length)."""

    dtype: str
    rows: int
    length: int
    vec: int
    spread: RowSpread
    direct: bool  # they are (rows, length) as they are

    @property
    def blocks(self) -> int:
        return -(-self.rows // self.spread.rows)


def plain_rows(device: Device, name: str, operands: list[tuple[str, Any]], vectors: list[Any]) -> PlainRows:
    """Check operands and spread their rows. Raises ValueError, and Unsupported for rows at uneven distances."""
    dtype = check_dtype(*operands[0], *FLOATS)
    for each in operands[1:]:
        check_dtype(*each, dtype)
    rows, inner = row_dimensions(operands)
    if inner != 1:
        raise Unsupported("rows must be evenly spaced")
    length = operands[0][1].shape[-1]
    vec = access_width(length, [t for _, t in operands], vectors)
    spread = spread_rows(device, name, dtype, max(rows, 1), max(length, 1), vec)
    return PlainRows(dtype, rows, length, vec, spread, operands[0][1].dim() == 2)
