"""NVFP4, MXFP4 and MXFP8 back to numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.quant import block_scaled_reference as reference
from porter.corpus.ops.quant.block_operands import (
    MXFP4,
    MXFP8,
    NVFP4,
    RULES,
    Format,
    block_scales,
    code_access,
    code_rows,
    is_plain,
    scales_layout,
    seen_codes,
    seen_scales,
)
from porter.corpus.ops.quant.operands import FLOATS
from porter.corpus.ops.rows import access_width, as_rows, check_dtype, check_scalar
from porter.corpus.ops.spread import spread_elements
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, compact_key, op

_USUAL = {"is_sf_swizzled_layout": True, "is_sf_8x4_layout": False}


@op(
    "nvfp4_dequantize(Tensor(a!) output, Tensor input, Tensor input_scale, Tensor global_scale, "
    "bool is_sf_swizzled_layout=True, bool is_sf_8x4_layout=False) -> ()",
    key=compact_key("(output.nbytes, input_scale.nbytes)", _USUAL),
    fallback=reference.nvfp4_dequantize,
)
def nvfp4_dequantize(
    device: Device, output: Any, input: Any, input_scale: Any, global_scale: Any, is_sf_swizzled_layout: bool,
    is_sf_8x4_layout: bool,
) -> Plan:  # fmt: skip
    """`output` (..., H) in bfloat16, float16 or float32 = code * (scale / global_scale), two roundings to nearest and
    one to the dtype.

    `input`, `input_scale` and the flags as scaled_fp4_quant writes them, `global_scale` what it was given (one
    float32). FlashInfer's `e2m1_and_ufp8sf_scale_to_float` takes the reciprocal of that. Raises ValueError for other
    arguments.
    """
    check_scalar("global_scale", global_scale)
    flags = is_sf_swizzled_layout, is_sf_8x4_layout
    made = _planned(device, "nvfp4_dequantize", NVFP4, output, input, input_scale, flags)
    if made is None:
        return None
    kernel, blocks, plain = made
    columns, held = kernel.scales.columns, kernel.scales.held

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if plain and global_scale.dim() == 1:
            return lambda output, input, scale, given, *_: launch(output, input, scale, given, blocks)
        return lambda output, input, scale, given, *_: launch(
            as_rows(output, 1), seen_codes(input), seen_scales(scale, columns, held), given.view(1), blocks
        )

    return kernel, bind


@op(
    "mxfp4_dequantize(Tensor(a!) output, Tensor input, Tensor input_scale, bool is_sf_swizzled_layout=True, "
    "bool is_sf_8x4_layout=False) -> ()",
    key=compact_key("(output.nbytes, input_scale.nbytes)", _USUAL),
    fallback=reference.mxfp4_dequantize,
)
def mxfp4_dequantize(
    device: Device, output: Any, input: Any, input_scale: Any, is_sf_swizzled_layout: bool, is_sf_8x4_layout: bool
) -> Plan:
    """`output` (..., H) in bfloat16, float16 or float32 = code * scale, from what mxfp4_quantize writes; a scale of 255
    gives NaN. Raises ValueError for other arguments."""
    flags = is_sf_swizzled_layout, is_sf_8x4_layout
    return _powers(_planned(device, "mxfp4_dequantize", MXFP4, output, input, input_scale, flags))


@op(
    "mxfp8_dequantize(Tensor(a!) output, Tensor input, Tensor input_scale, bool is_sf_swizzled_layout=True, "
    "bool is_sf_8x4_layout=False) -> ()",
    key=compact_key("(output.nbytes, input_scale.nbytes)", _USUAL),
    fallback=reference.mxfp8_dequantize,
)
def mxfp8_dequantize(
    device: Device, output: Any, input: Any, input_scale: Any, is_sf_swizzled_layout: bool, is_sf_8x4_layout: bool
) -> Plan:
    """As mxfp4_dequantize from what mxfp8_quantize writes; rows of `input` may be longer than those of `output`, which
    are its start. FlashInfer's `mxfp8_dequantize_host` returns float32 on the CPU."""
    flags = is_sf_swizzled_layout, is_sf_8x4_layout
    return _powers(_planned(device, "mxfp8_dequantize", MXFP8, output, input, input_scale, flags))


def _powers(made: tuple[Any, int, bool] | None) -> Plan:
    if made is None:
        return None
    kernel, blocks, plain = made
    columns, held = kernel.scales.columns, kernel.scales.held

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if plain:
            return lambda output, input, scale, *_: launch(output, input, scale, None, blocks)
        return lambda output, input, scale, *_: launch(
            as_rows(output, 1), seen_codes(input), seen_scales(scale, columns, held), None, blocks
        )

    return kernel, bind


def _planned(
    device: Device, name: str, format: Format, output: Any, input: Any, scale: Any, flags: tuple[bool, bool]
) -> tuple[Any, int, bool] | None:
    from porter.corpus.kernels.quant.block_dequantised import BlockDequantised

    dtype = check_dtype("output", output, *FLOATS)
    if output.dim() < 1:
        raise ValueError("output has no dimension")
    d = output.shape[-1]
    rows, length = code_rows(format, "input", input, "output", output, d)
    layout, held = scales_layout(format, "input_scale", scale, rows, length, *flags)
    if rows == 0 or d == 0:
        return None
    vecs = [v for v in (8, 16, 32) if d % v == 0 and length % v == 0]
    wide = 32 if device.capability >= 100 else 16
    aligned = code_access(format, input, length), access_width(d, [output], most=wide) * output.element_size()
    spread = spread_elements(device, name, dtype, rows, d, 8, vecs)
    scales = block_scales(format, layout, RULES[format.scales][0], device, length, held)
    kernel = BlockDequantised(
        dtype, d, spread.vec or 8, spread.threads, spread.rows, scales, *aligned, device.pdl, spread.prefetch,
        spread.streaming, spread.prefetch_blocks,
    )  # fmt: skip
    return kernel, kernel.blocks(rows), output.dim() == 2 and is_plain(input, scale, held)
