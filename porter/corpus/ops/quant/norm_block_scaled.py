"""RMS norms whose output is NVFP4 or MXFP8."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from porter.corpus.ops.norm.functions import weight_dtype
from porter.corpus.ops.quant import block_scaled_reference as reference
from porter.corpus.ops.quant.block_operands import (
    MXFP8,
    NVFP4,
    Format,
    block_scales,
    check_rule,
    code_access,
    code_rows,
    is_plain,
    scales_layout,
    seen_codes,
    seen_scales,
)
from porter.corpus.ops.quant.operands import FLOATS
from porter.corpus.ops.rows import access_width, as_rows, check_dtype, check_scalar, row_dimensions, spread_rows
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op

_USUAL = {"residual is None": True, "is_sf_swizzled_layout": True, "is_sf_8x4_layout": False}
_VEC = 8  # elements of an access: a word of e2m1 codes


def _shared_fallback(
    result: Any, scale: Any, input: Any, weight: Any, given: Any, epsilon: float, residual: Any = None,
    swizzled: bool = True, narrow_tiles: bool = False, recipe: str = "fast",
) -> None:  # fmt: skip
    flags = swizzled, narrow_tiles
    reference.normalised(result, scale, input, weight, epsilon, residual, 16, flags, given, recipe)


def _power_fallback(
    result: Any, scale: Any, input: Any, weight: Any, epsilon: float, residual: Any = None, swizzled: bool = True,
    narrow_tiles: bool = False, rule: str = "ceil",
) -> None:  # fmt: skip
    reference.normalised(result, scale, input, weight, epsilon, residual, 32, (swizzled, narrow_tiles), None, rule)


@op(
    "rms_norm_nvfp4_quant(Tensor(a!) result, Tensor(b!) result_block_scale, Tensor input, Tensor weight, "
    "Tensor input_global_scale, float epsilon, Tensor(c!)? residual=None, bool is_sf_swizzled_layout=True, "
    "bool is_sf_8x4_layout=False, str recipe='fast') -> ()",
    key=compact_key("(input.nbytes, result_block_scale.nbytes)", {**_USUAL, "recipe": "fast"}),
    fallback=_shared_fallback,
)
def rms_norm_nvfp4_quant(
    device: Device, result: Any, result_block_scale: Any, input: Any, weight: Any, input_global_scale: Any,
    epsilon: float, residual: Any, is_sf_swizzled_layout: bool, is_sf_8x4_layout: bool, recipe: str,
) -> Plan:  # fmt: skip
    """`result` and `result_block_scale` = scaled_fp4_quant of rms_norm(input), or of rms_norm(input + residual), which
    residual becomes.

    Equal to the bit to `rms_norm` (or `fused_add_rms_norm`, whose input stays as it is here) of profile "vllm" and the
    quantisation after it; operands as theirs. FlashInfer's `rmsnorm_fp4quant` and `add_rmsnorm_fp4quant` have other
    arguments. Raises ValueError for arguments that do not fit.
    """
    check_scalar("input_global_scale", input_global_scale)
    flags = is_sf_swizzled_layout, is_sf_8x4_layout
    made = _planned(device, "rms_norm_nvfp4_quant", NVFP4, result, result_block_scale, input, weight, residual, flags,
                    recipe)  # fmt: skip
    if made is None:
        return None
    kernel, blocks, plain = made
    columns, held = kernel.scales.columns, kernel.scales.held

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if plain and input_global_scale.dim() == 1:
            return lambda result, scale, input, weight, given, epsilon, residual, *_: launch(
                result, input, residual, weight, scale, given, epsilon, blocks
            )
        return lambda result, scale, input, weight, given, epsilon, residual, *_: launch(
            seen_codes(result), as_rows(input, 1), None if residual is None else as_rows(residual, 1), weight,
            seen_scales(scale, columns, held), given.view(1), epsilon, blocks,
        )  # fmt: skip

    return kernel, bind


@op(
    "rms_norm_mxfp8_quant(Tensor(a!) result, Tensor(b!) result_block_scale, Tensor input, Tensor weight, "
    "float epsilon, Tensor(c!)? residual=None, bool is_sf_swizzled_layout=True, bool is_sf_8x4_layout=False, "
    "str sf_rounding='ceil') -> ()",
    key=compact_key("(input.nbytes, result_block_scale.nbytes)", {**_USUAL, "sf_rounding": "ceil"}),
    fallback=_power_fallback,
)
def rms_norm_mxfp8_quant(
    device: Device, result: Any, result_block_scale: Any, input: Any, weight: Any, epsilon: float, residual: Any,
    is_sf_swizzled_layout: bool, is_sf_8x4_layout: bool, sf_rounding: str,
) -> Plan:  # fmt: skip
    """As rms_norm_nvfp4_quant with mxfp8_quantize; rows of `result` are as long as those of `input`."""
    flags = is_sf_swizzled_layout, is_sf_8x4_layout
    made = _planned(device, "rms_norm_mxfp8_quant", MXFP8, result, result_block_scale, input, weight, residual, flags,
                    sf_rounding)  # fmt: skip
    if made is None:
        return None
    kernel, blocks, plain = made
    columns, held = kernel.scales.columns, kernel.scales.held

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if plain:
            return lambda result, scale, input, weight, epsilon, residual, *_: launch(
                result, input, residual, weight, scale, None, epsilon, blocks
            )
        return lambda result, scale, input, weight, epsilon, residual, *_: launch(
            seen_codes(result), as_rows(input, 1), None if residual is None else as_rows(residual, 1), weight,
            seen_scales(scale, columns, held), None, epsilon, blocks,
        )  # fmt: skip

    return kernel, bind


def _planned(
    device: Device, name: str, format: Format, result: Any, scale: Any, input: Any, weight: Any, residual: Any,
    flags: tuple[bool, bool], rule: str,
) -> tuple[Any, int, bool] | None:  # fmt: skip
    from porter.corpus.kernels.norm.rms_norm_block_scaled import RmsNormBlockScaled
    from porter.corpus.lib.rows import Rows

    dtype = check_dtype("input", input, *FLOATS)
    check_rule(format, rule)
    operands = [("input", input)]
    if residual is not None:
        check_dtype("residual", residual, dtype)
        operands.append(("residual", residual))
    if row_dimensions(operands)[1] != 1:
        raise Unsupported("rows must be evenly spaced")
    d = input.shape[-1]
    rows, length = code_rows(format, "result", result, "input", input, d)
    if length != d:
        raise ValueError(f"result has shape {tuple(result.shape)}, input {tuple(input.shape)}")
    weights = weight_dtype(weight, dtype, d)
    if weights is None:
        raise ValueError("weight is None")
    layout, held = scales_layout(format, "result_block_scale", scale, rows, d, *flags)
    if rows == 0 or d == 0:
        return None
    code_bytes = _VEC // format.per_byte
    narrow = min(_VEC, 16 // input.element_size())  # elements of 16 bytes
    if access_width(d, [t for _, t in operands], [weight]) < narrow or code_access(format, result, d) < code_bytes:
        raise Unsupported("rows are not aligned")
    scales = block_scales(format, layout, rule, device, d, held)
    spread = spread_rows(device, name, dtype, rows, d, _VEC, wanted=128, most=8)
    lanes = max(1, format.group // _VEC)
    if spread.threads < lanes:  # the threads of a block of numbers are in one row
        spread = replace(spread, threads=lanes, rows=max(1, spread.rows * spread.threads // lanes))
    kernel = RmsNormBlockScaled(
        dtype, Rows(d, _VEC, spread.threads, spread.rows), weights, scales, residual is not None, device.pdl,
        spread.prefetch, spread.prefetch_blocks,
    )  # fmt: skip
    written = scale.numel() * scale.element_size() // scales.columns
    plain = input.dim() == 2 and is_plain(result, scale, held)
    return kernel, -(-written // spread.rows), plain
