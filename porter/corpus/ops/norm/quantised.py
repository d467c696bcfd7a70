"""RMS norms whose output is quantised, as engines call them: vLLM's names and schemas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from porter.corpus.ops.norm import reference
from porter.corpus.ops.norm.functions import FLOATS, weight_dtype
from porter.corpus.ops.rows import (
    RowSpread,
    access_width,
    as_rows,
    check_dtype,
    check_scalar,
    flat_scalar,
    row_dimensions,
    spread_rows,
)
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op


def quantised_rows(
    device: Device,
    name: str,
    result: Any,
    input: Any,
    weight: Any,
    residual: Any,
    codes: str,
    prefetches_ahead: bool = False,
) -> tuple[str, str, int, int, RowSpread]:
    """What the plans share: (dtype, weight's dtype, rows, elements of an access, spread). Raises ValueError for
    operands that do not fit together."""
    dtype = check_dtype("input", input, *FLOATS)
    operands = [("input", input), ("result", result)]
    if residual is not None:
        check_dtype("residual", residual, dtype)
        operands.append(("residual", residual))
    if result.shape != input.shape:
        raise ValueError(f"result has shape {tuple(result.shape)}, input {tuple(input.shape)}")
    rows, inner = row_dimensions(operands)
    length = input.shape[-1]
    if inner != 1:
        raise Unsupported("rows must be evenly spaced")
    weights = weight_dtype(weight, dtype, length)
    if weights is None:
        raise ValueError("weight is None")
    vec = access_width(length, [t for _, t in operands], [weight])
    spread = spread_rows(
        device, f"{name} {codes}", dtype, max(rows, 1), max(length, 1), vec, prefetches_ahead, wanted=128, most=8
    )
    return dtype, weights, rows, vec, spread


def _static_plan(
    device: Device, name: str, result: Any, input: Any, residual: Any, weight: Any, scale: Any, profile: str
) -> tuple[Any, int] | None:
    from porter.corpus.kernels.norm.rms_norm_static_fp8 import RmsNormStaticFp8
    from porter.corpus.lib.rows import Rows

    if profile not in ("vllm", "flashinfer"):
        raise ValueError(f"profile is vllm or flashinfer, not {profile!r}")
    codes = check_dtype("result", result, "e4m3", "e5m2")
    check_scalar("scale", scale)
    dtype, weights, rows, vec, spread = quantised_rows(
        device, name, result, input, weight, residual, "e4m3", prefetches_ahead=True
    )
    if rows == 0 or input.shape[-1] == 0:
        return None
    exact = profile == "flashinfer"
    kernel = RmsNormStaticFp8(
        dtype, Rows(input.shape[-1], vec, spread.threads, spread.rows), weights,
        None if residual is None else "unrounded" if exact else "rounded", "none" if exact else "single", device.pdl,
        spread.prefetch, spread.prefetch_distance, spread.prefetch_blocks, codes,
    )  # fmt: skip
    return kernel, -(-rows // spread.rows)


@op(
    "rms_norm_static_fp8_quant(Tensor(a!) result, Tensor input, Tensor weight, Tensor scale, float epsilon, "
    "str profile='vllm') -> ()",
    key=compact_key("input.nbytes", {"profile": "vllm"}),
    fallback=reference.rms_norm_static_fp8_quant,
)  # fmt: skip
def rms_norm_static_fp8_quant(
    device: Device, result: Any, input: Any, weight: Any, scale: Any, epsilon: float, profile: str
) -> Plan:
    """`result` (..., H) e4m3 or e5m2 = rms_norm(input) * (1 / scale), saturating.

    `input` (..., H) and `weight` (H,) as for rms_norm; `scale` one float32. "vllm" rounds the norm to the input's type
    before it is scaled, "flashinfer" does not. Raises ValueError for other arguments.
    """
    made = _static_plan(device, "rms_norm_static_fp8_quant", result, input, None, weight, scale, profile)
    if made is None:
        return None
    (kernel, blocks), direct = made, input.dim() == 2 and scale.dim() == 1

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda result, input, weight, scale, epsilon, profile: launch(
                result, input, None, weight, scale, epsilon, blocks
            )
        return lambda result, input, weight, scale, epsilon, *_: launch(
            as_rows(result, 1), as_rows(input, 1), None, weight, scale.view(1), epsilon, blocks
        )

    return kernel, bind


@op(
    "fused_add_rms_norm_static_fp8_quant(Tensor(a!) result, Tensor input, Tensor(b!) residual, Tensor weight, "
    "Tensor scale, float epsilon, str profile='vllm') -> ()",
    key=compact_key("input.nbytes", {"profile": "vllm"}),
    fallback=reference.fused_add_rms_norm_static_fp8_quant,
)  # fmt: skip
def fused_add_rms_norm_static_fp8_quant(
    device: Device, result: Any, input: Any, residual: Any, weight: Any, scale: Any, epsilon: float, profile: str
) -> Plan:
    """residual = input + residual, then `result` = rms_norm(residual) * (1 / scale), e4m3 or e5m2; input stays as is.

    As fused_add_rms_norm and rms_norm_static_fp8_quant. Raises ValueError for arguments that do not fit.
    """
    name = "fused_add_rms_norm_static_fp8_quant"
    made = _static_plan(device, name, result, input, residual, weight, scale, profile)
    if made is None:
        return None
    (kernel, blocks), direct = made, input.dim() == 2 and scale.dim() == 1

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda result, input, residual, weight, scale, epsilon, profile: launch(
                result, input, residual, weight, scale, epsilon, blocks
            )
        return lambda result, input, residual, weight, scale, epsilon, *_: launch(
            as_rows(result, 1), as_rows(input, 1), as_rows(residual, 1), weight, scale.view(1), epsilon, blocks
        )

    return kernel, bind


@op(
    "rms_norm_dynamic_per_token_quant(Tensor(a!) result, Tensor input, Tensor weight, Tensor(b!) scale, "
    "float epsilon, Tensor? scale_ub=None, Tensor(c!)? residual=None) -> ()",
    key=compact_key("input.nbytes", {"scale_ub is None": True, "residual is None": True}),
    fallback=reference.rms_norm_dynamic_per_token_quant,
)  # fmt: skip
def rms_norm_dynamic_per_token_quant(
    device: Device, result: Any, input: Any, weight: Any, scale: Any, epsilon: float, scale_ub: Any, residual: Any
) -> Plan:
    """`result` (..., H) e4m3 or int8 codes of the norm, `scale` (T, 1) or (T,) float32 written.

    The norm n of input, or of input + residual (which residual becomes; the sum is normalised before it is rounded), is
    rounded to the input's type before the weight is applied and after. e4m3: scale = max(min(max |n|, scale_ub) / 448,
    1 / (448 * 512)), code n / scale. int8: scale = max(max |n| / 127, 2^-23), code n * (1 / scale).
    Raises ValueError for arguments that do not fit.
    """
    from porter.corpus.kernels.norm.rms_norm_per_token import RmsNormPerToken
    from porter.corpus.lib.rows import Rows

    name = "rms_norm_dynamic_per_token_quant"
    codes = check_dtype("result", result, "e4m3", "i8")
    check_dtype("scale", scale, "f32")
    if scale_ub is not None:
        check_scalar("scale_ub", scale_ub)
    dtype, weights, rows, vec, spread = quantised_rows(device, name, result, input, weight, residual, codes)
    if scale.numel() != rows or scale.shape[-1] != (1 if scale.dim() > 1 else rows):
        raise ValueError(f"scale has shape {tuple(scale.shape)}, the input has {rows} rows")
    if rows == 0 or input.shape[-1] == 0:
        return None
    kernel = RmsNormPerToken(
        dtype, Rows(input.shape[-1], vec, spread.threads, spread.rows), weights, codes, residual is not None,
        scale_ub is not None, device.pdl, spread.prefetch, spread.prefetch_blocks,
    )  # fmt: skip
    blocks = -(-rows // spread.rows)
    direct = input.dim() == 2 and scale.dim() == 2 and scale_ub is None

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda result, input, weight, scale, epsilon, scale_ub, residual: launch(
                result, input, residual, weight, scale, None, epsilon, blocks
            )
        return lambda result, input, weight, scale, epsilon, scale_ub, residual: launch(
            as_rows(result, 1), as_rows(input, 1), None if residual is None else as_rows(residual, 1), weight,
            scale.view(-1, 1), flat_scalar(scale_ub), epsilon, blocks,
        )  # fmt: skip

    return kernel, bind


@op(
    "rms_norm_per_block_quant(Tensor(a!) result, Tensor input, Tensor weight, Tensor(b!) scale, float epsilon, "
    "Tensor? scale_ub, Tensor(c!)? residual, int group_size, bool is_scale_transposed) -> ()",
    key=compact_key(
        "input.nbytes",
        {"scale_ub is None": True, "residual is None": True, "group_size": 128, "is_scale_transposed": False},
    ),
    fallback=reference.rms_norm_per_block_quant,
)  # fmt: skip
def rms_norm_per_block_quant(
    device: Device, result: Any, input: Any, weight: Any, scale: Any, epsilon: float, scale_ub: Any, residual: Any,
    group_size: int, is_scale_transposed: bool,
) -> Plan:  # fmt: skip
    """As rms_norm_dynamic_per_token_quant with a scale for every `group_size` (64 or 128) elements of a row.

    `scale` (T, H / group_size) float32; with `is_scale_transposed` its strides are (1, S) with S >= T, or it is
    (H / group_size, T), contiguous rows. Raises ValueError for arguments that do not fit.
    """
    from porter.corpus.kernels.norm.rms_norm_per_block import RmsNormPerBlock
    from porter.corpus.lib.rows import Rows

    name = "rms_norm_per_block_quant"
    codes = check_dtype("result", result, "e4m3", "i8")
    check_dtype("scale", scale, "f32")
    if scale_ub is not None:
        check_scalar("scale_ub", scale_ub)
    length = input.shape[-1]
    if group_size not in (64, 128) or length % group_size:
        raise ValueError(f"group_size is 64 or 128 and divides the {length} elements of a row, not {group_size}")
    dtype, weights, rows, vec, spread = quantised_rows(device, name, result, input, weight, residual, codes)
    groups = length // group_size
    by_row = scales_by_row(scale, rows, groups, is_scale_transposed)
    if by_row is None:
        raise ValueError(
            f"scale has shape {tuple(scale.shape)} and strides {scale.stride()}, the kernel writes ({rows}, {groups})"
            f"{' with rows next to each other' if is_scale_transposed else ''}"
        )
    if rows == 0 or length == 0:
        return None
    if group_size > 32 * vec:
        raise Unsupported(f"groups of {group_size} elements in accesses of {vec} do not fit into a warp")
    if spread.threads < group_size // vec:  # the threads of a group are in one row
        lanes = group_size // vec
        spread = replace(spread, threads=lanes, rows=max(1, spread.rows * spread.threads // lanes))
    kernel = RmsNormPerBlock(
        dtype, Rows(length, vec, spread.threads, spread.rows), weights, group_size, codes, is_scale_transposed,
        residual is not None, scale_ub is not None, device.pdl, spread.prefetch, spread.prefetch_blocks,
    )  # fmt: skip
    blocks = -(-rows // spread.rows)
    direct = input.dim() == 2 and by_row is scale and scale_ub is None

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda result, input, weight, scale, epsilon, scale_ub, residual, size, transposed: launch(
                result, input, residual, weight, scale, None, epsilon, blocks
            )
        return lambda result, input, weight, scale, epsilon, scale_ub, residual, *_: launch(
            as_rows(result, 1), as_rows(input, 1), None if residual is None else as_rows(residual, 1), weight,
            scales_by_row(scale, rows, groups, is_scale_transposed), flat_scalar(scale_ub), epsilon, blocks,
        )  # fmt: skip

    return kernel, bind


def scales_by_row(scale: Any, rows: int, groups: int, transposed: bool) -> Any:
    """The (rows, groups) view of scales with the stride that the kernel takes; None where there is none."""
    view = scale
    if transposed and tuple(scale.shape) == (groups, rows) and scale.stride(-1) == 1:
        view = scale.t()
    elif scale.dim() != 2:
        view = scale.view(rows, groups) if scale.is_contiguous() and scale.numel() == rows * groups else scale
    if tuple(view.shape) != (rows, groups):
        return None
    unit, length = (view.stride(0), rows) if transposed else (view.stride(1), groups)
    return view if unit == 1 or length <= 1 else None
