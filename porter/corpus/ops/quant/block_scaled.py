"""Numbers to codes with a scale of one byte for every 16 or 32 of a row (NVFP4, MXFP4, MXFP8): engines' names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.quant import block_scaled_reference as reference
from porter.corpus.ops.quant.block_operands import (
    MXFP4,
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
from porter.corpus.ops.rows import access_width, as_rows, check_dtype, check_scalar
from porter.corpus.ops.spread import spread_elements
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, compact_key, op

_LAYOUT = {"is_sf_swizzled_layout": True, "is_sf_8x4_layout": False}


@op(
    "scaled_fp4_quant(Tensor(a!) output, Tensor input, Tensor(b!) output_scale, Tensor input_scale, "
    "bool is_sf_swizzled_layout=True, bool is_sf_8x4_layout=False, str recipe='fast') -> ()",
    key=compact_key("(input.nbytes, output_scale.nbytes)", {**_LAYOUT, "recipe": "fast"}),
    fallback=reference.scaled_fp4_quant,
)
def scaled_fp4_quant(
    device: Device, output: Any, input: Any, output_scale: Any, input_scale: Any, is_sf_swizzled_layout: bool,
    is_sf_8x4_layout: bool, recipe: str,
) -> Plan:  # fmt: skip
    """NVFP4: `output` (..., H / 2) uint8, two e2m1 codes a byte, the even one in the low half; `output_scale` an e4m3
    scale for every 16 numbers of a row.

    `input` (..., H) in bfloat16, float16 or float32, last dimension contiguous. `input_scale` is one float32, g, as a
    rule 448 * 6 over the largest magnitude of the tensor. A scale is e4m3(g * (max |block| / 6)), saturating. Recipe
    "fast", as vLLM and FlashInfer have it: / 6 is a product with 1/6, and what a block is multiplied by, 1 / (scale /
    g), is made of two approximate reciprocals (0 where the scale is 0). "exact", as Transformer Engine has it: g /
    scale, rounded to nearest, at most the largest float32. Codes are to the nearest, ties to even, at most 6. NaN is
    passed over by scales and becomes the code 6; so does infinity, whose block has the scale 448.

    `output_scale`: bytes, float8_e4m3fn, or four scales in an int32; contiguous, flat or with the rows' length. Linear:
    (T, H / 16). Swizzled: rows rounded up to 128, columns to 4, in tiles of 128x4 bytes, 32 groups of 16 that hold
    rows 32 apart, as tensor cores take them; or rows rounded up to 8, in tiles of 8x4. What fills up is zero. Raises
    ValueError for other arguments. FlashInfer's `fp4_quantize` returns new tensors; its `global_scale` is g.
    """
    check_scalar("input_scale", input_scale)
    made = _plan(
        device, "scaled_fp4_quant", NVFP4, output, input, output_scale, is_sf_swizzled_layout, is_sf_8x4_layout, recipe
    )
    if made is None:
        return None
    kernel, blocks, plain = made
    columns, held = kernel.scales.columns, kernel.scales.held

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if plain and input_scale.dim() == 1:
            return lambda output, input, output_scale, input_scale, *_: launch(
                output, input, output_scale, input_scale, blocks
            )
        return lambda output, input, output_scale, input_scale, *_: launch(
            seen_codes(output), as_rows(input, 1), seen_scales(output_scale, columns, held), input_scale.view(1), blocks
        )

    return kernel, bind


@op(
    "mxfp4_quantize(Tensor(a!) output, Tensor input, Tensor(b!) output_scale, bool is_sf_swizzled_layout=True, "
    "bool is_sf_8x4_layout=False, str sf_rounding='ceil') -> ()",
    key=compact_key("(input.nbytes, output_scale.nbytes)", {**_LAYOUT, "sf_rounding": "ceil"}),
    fallback=reference.mxfp4_quantize,
)
def mxfp4_quantize(
    device: Device, output: Any, input: Any, output_scale: Any, is_sf_swizzled_layout: bool, is_sf_8x4_layout: bool,
    sf_rounding: str,
) -> Plan:  # fmt: skip
    """MXFP4: codes as scaled_fp4_quant writes them, with a power of two for every 32 numbers, ue8m0 (exponent plus
    127).

    `sf_rounding` "ceil": the least power that is not below max |block| / 6, so that no code saturates; "floor", as the
    OCP specification has it: a quarter of the largest power not above max |block|. From 2^-127 to 2^127. Codes are
    those of number / scale. A block with an infinity has the largest scale, a block of zeros the least (byte 0).

    `output_scale`: bytes, float8_e8m0fnu or int32, laid out as scaled_fp4_quant's. FlashInfer's function of this name
    returns new tensors. Raises ValueError for other arguments.
    """
    return _power_of_two(
        device, "mxfp4_quantize", MXFP4, output, input, output_scale, is_sf_swizzled_layout, is_sf_8x4_layout,
        sf_rounding,
    )  # fmt: skip


@op(
    "mxfp8_quantize(Tensor(a!) output, Tensor input, Tensor(b!) output_scale, bool is_sf_swizzled_layout=True, "
    "bool is_sf_8x4_layout=False, str sf_rounding='ceil') -> ()",
    key=compact_key("(input.nbytes, output_scale.nbytes)", {**_LAYOUT, "sf_rounding": "ceil"}),
    fallback=reference.mxfp8_quantize,
)
def mxfp8_quantize(
    device: Device, output: Any, input: Any, output_scale: Any, is_sf_swizzled_layout: bool, is_sf_8x4_layout: bool,
    sf_rounding: str,
) -> Plan:  # fmt: skip
    """MXFP8: `output` (..., H) float8_e4m3fn with a power of two for every 32 numbers, as mxfp4_quantize has it.

    "ceil": the least power that is not below max |block| / 448; "floor": 2^-8 times the largest power not above max
    |block|, and codes saturate at 448. With the least scale, byte 0, all codes are zeros. The code of NaN is 448.

    Rows of `output` may be longer, whole blocks again: what follows, and its scales, is zero (FlashInfer's `alignment`;
    its function of this name returns new tensors). Raises ValueError for other arguments.
    """
    return _power_of_two(
        device, "mxfp8_quantize", MXFP8, output, input, output_scale, is_sf_swizzled_layout, is_sf_8x4_layout,
        sf_rounding,
    )  # fmt: skip


def _power_of_two(
    device: Device, name: str, format: Format, output: Any, input: Any, output_scale: Any, swizzled: bool,
    narrow_tiles: bool, rule: str,
) -> Plan:  # fmt: skip
    made = _plan(device, name, format, output, input, output_scale, swizzled, narrow_tiles, rule)
    if made is None:
        return None
    kernel, blocks, plain = made
    columns, held = kernel.scales.columns, kernel.scales.held

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if plain:
            return lambda output, input, output_scale, *_: launch(output, input, output_scale, None, blocks)
        return lambda output, input, output_scale, *_: launch(
            seen_codes(output), as_rows(input, 1), seen_scales(output_scale, columns, held), None, blocks
        )

    return kernel, bind


def _plan(
    device: Device, name: str, format: Format, output: Any, input: Any, output_scale: Any, swizzled: bool,
    narrow_tiles: bool, rule: str,
) -> tuple[Any, int, bool] | None:  # fmt: skip
    if input.dim() < 1:
        raise ValueError("input has no dimension")
    return planned(
        device, name, format, ("output", output), input, ("output_scale", output_scale), (swizzled, narrow_tiles), rule
    )


def planned(
    device: Device, name: str, format: Format, codes: tuple[str, Any], input: Any, scales: tuple[str, Any],
    flags: tuple[bool, bool], rule: str, act: str = "",
) -> tuple[Any, int, bool] | None:  # fmt: skip
    """(kernel, blocks, whether it takes the operands as they are); None where there is nothing to do. codes, scales:
    with their names. With `act`, rows of input are gate and up."""
    dtype = check_dtype("input", input, *FLOATS)
    check_rule(format, rule)
    d = input.shape[-1] // (2 if act else 1)
    rows, length = code_rows(format, *codes, "input", input, d)
    layout, held = scales_layout(format, *scales, rows, length, *flags)
    if rows == 0 or d == 0:
        return None
    described = block_scales(format, layout, rule, device, length, held)
    kernel = _kernel(device, name, format, codes[1], input, described, rows, d, dtype, act)
    plain = input.dim() == 2 and is_plain(codes[1], scales[1], held)
    written = scales[1].numel() * scales[1].element_size() // described.columns
    return kernel, kernel.blocks(written), plain


def _kernel(
    device: Device, name: str, format: Format, output: Any, input: Any, scales: Any, rows: int, d: int, dtype: str,
    act: str,
) -> Any:  # fmt: skip
    from porter.corpus.kernels.quant.block_scaled import BlockScaled

    length = scales.length
    vecs = [v for v in (8, 16, 32) if d % v == 0 and length % v == 0]
    # 16 bytes of a thread fill what neighbours read; Blackwell has accesses of 32
    vec = 16 if device.capability >= 100 and input.element_size() == 2 and 16 in vecs else 8
    wide = 32 if device.capability >= 100 else 16
    halves = [input, input[..., d:]] if act else [input]
    aligned = access_width(d, halves, most=wide) * input.element_size(), code_access(format, output, length)
    spread = spread_elements(device, name, dtype, rows, d, vec, vecs)
    written = -(-rows // reference.TILE_ROWS[scales.layout]) * reference.TILE_ROWS[scales.layout]
    return BlockScaled(
        dtype, d, spread.vec or vec, spread.threads, spread.rows, scales, act, 4 * written > 5 * rows, *aligned,
        device.pdl, spread.prefetch, spread.streaming, spread.prefetch_blocks,
    )  # fmt: skip
