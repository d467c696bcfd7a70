"""Gated activations whose output is NVFP4, MXFP4 or MXFP8: vLLM's argument order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.quant import block_scaled_reference as reference
from porter.corpus.ops.quant.block_operands import MXFP4, MXFP8, NVFP4, Format, seen_codes, seen_scales
from porter.corpus.ops.quant.block_scaled import planned
from porter.corpus.ops.rows import as_rows, check_scalar
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, compact_key, op

_SIZES = "(input.nbytes, result_block_scale.nbytes)"
_USUAL = {"is_sf_swizzled_layout": True, "is_sf_8x4_layout": False}


def _shared_fallback(act: str) -> Callable[..., None]:
    """The fallback of an activation to NVFP4, whose tensor has a scale of its own."""

    def fallback(
        result: Any, scale: Any, input: Any, given: Any, swizzled: bool = True, narrow_tiles: bool = False,
        recipe: str = "fast",
    ) -> None:  # fmt: skip
        reference.gated(act, result, scale, input, 16, (swizzled, narrow_tiles), given, recipe)

    return fallback


def _power_fallback(act: str) -> Callable[..., None]:
    """The fallback of an activation to MXFP4 or MXFP8, which `result` tells apart."""

    def fallback(
        result: Any, scale: Any, input: Any, swizzled: bool = True, narrow_tiles: bool = False, rule: str = "ceil"
    ) -> None:
        reference.gated(act, result, scale, input, 32, (swizzled, narrow_tiles), None, rule)

    return fallback


@op(
    "silu_and_mul_nvfp4_quant(Tensor(a!) result, Tensor(b!) result_block_scale, Tensor input, "
    "Tensor input_global_scale, bool is_sf_swizzled_layout=True, bool is_sf_8x4_layout=False, str recipe='fast') -> ()",
    key=compact_key(_SIZES, {**_USUAL, "recipe": "fast"}),
    fallback=_shared_fallback("silu"),
)
def silu_and_mul_nvfp4_quant(
    device: Device, result: Any, result_block_scale: Any, input: Any, input_global_scale: Any,
    is_sf_swizzled_layout: bool, is_sf_8x4_layout: bool, recipe: str,
) -> Plan:  # fmt: skip
    """`result` and `result_block_scale` = scaled_fp4_quant of silu(gate) * up, where a row of `input` (..., 2 d) is
    gate, then up. vLLM's operation of this name.

    The activation is computed in float32 and its product with up rounded once to the dtype of `input`: equal to the bit
    to `silu_and_mul` of profile "flashinfer" and the quantisation after it; operands as theirs. Raises ValueError for
    other arguments.
    """
    return _shared(
        device, "silu_and_mul_nvfp4_quant", "silu", result, result_block_scale, input, input_global_scale,
        (is_sf_swizzled_layout, is_sf_8x4_layout), recipe,
    )  # fmt: skip


@op(
    "silu_and_mul_mxfp4_quant(Tensor(a!) result, Tensor(b!) result_block_scale, Tensor input, "
    "bool is_sf_swizzled_layout=True, bool is_sf_8x4_layout=False, str sf_rounding='ceil') -> ()",
    key=compact_key(_SIZES, {**_USUAL, "sf_rounding": "ceil"}),
    fallback=_power_fallback("silu"),
)
def silu_and_mul_mxfp4_quant(
    device: Device, result: Any, result_block_scale: Any, input: Any, is_sf_swizzled_layout: bool,
    is_sf_8x4_layout: bool, sf_rounding: str,
) -> Plan:  # fmt: skip
    """As silu_and_mul_nvfp4_quant with mxfp4_quantize."""
    return _powers(
        device, "silu_and_mul_mxfp4_quant", "silu", MXFP4, result, result_block_scale, input,
        (is_sf_swizzled_layout, is_sf_8x4_layout), sf_rounding,
    )  # fmt: skip


@op(
    "silu_and_mul_mxfp8_quant(Tensor(a!) result, Tensor(b!) result_block_scale, Tensor input, "
    "bool is_sf_swizzled_layout=True, bool is_sf_8x4_layout=False, str sf_rounding='ceil') -> ()",
    key=compact_key(_SIZES, {**_USUAL, "sf_rounding": "ceil"}),
    fallback=_power_fallback("silu"),
)
def silu_and_mul_mxfp8_quant(
    device: Device, result: Any, result_block_scale: Any, input: Any, is_sf_swizzled_layout: bool,
    is_sf_8x4_layout: bool, sf_rounding: str,
) -> Plan:  # fmt: skip
    """As silu_and_mul_nvfp4_quant with mxfp8_quantize."""
    return _powers(
        device, "silu_and_mul_mxfp8_quant", "silu", MXFP8, result, result_block_scale, input,
        (is_sf_swizzled_layout, is_sf_8x4_layout), sf_rounding,
    )  # fmt: skip


@op(
    "gelu_tanh_and_mul_nvfp4_quant(Tensor(a!) result, Tensor(b!) result_block_scale, Tensor input, "
    "Tensor input_global_scale, bool is_sf_swizzled_layout=True, bool is_sf_8x4_layout=False, str recipe='fast') -> ()",
    key=compact_key(_SIZES, {**_USUAL, "recipe": "fast"}),
    fallback=_shared_fallback("gelu_tanh"),
)
def gelu_tanh_and_mul_nvfp4_quant(
    device: Device, result: Any, result_block_scale: Any, input: Any, input_global_scale: Any,
    is_sf_swizzled_layout: bool, is_sf_8x4_layout: bool, recipe: str,
) -> Plan:  # fmt: skip
    """As silu_and_mul_nvfp4_quant with the activation of gelu_tanh_and_mul."""
    return _shared(
        device, "gelu_tanh_and_mul_nvfp4_quant", "gelu_tanh", result, result_block_scale, input, input_global_scale,
        (is_sf_swizzled_layout, is_sf_8x4_layout), recipe,
    )  # fmt: skip


@op(
    "gelu_tanh_and_mul_mxfp8_quant(Tensor(a!) result, Tensor(b!) result_block_scale, Tensor input, "
    "bool is_sf_swizzled_layout=True, bool is_sf_8x4_layout=False, str sf_rounding='ceil') -> ()",
    key=compact_key(_SIZES, {**_USUAL, "sf_rounding": "ceil"}),
    fallback=_power_fallback("gelu_tanh"),
)
def gelu_tanh_and_mul_mxfp8_quant(
    device: Device, result: Any, result_block_scale: Any, input: Any, is_sf_swizzled_layout: bool,
    is_sf_8x4_layout: bool, sf_rounding: str,
) -> Plan:  # fmt: skip
    """As silu_and_mul_mxfp8_quant with the activation of gelu_tanh_and_mul."""
    return _powers(
        device, "gelu_tanh_and_mul_mxfp8_quant", "gelu_tanh", MXFP8, result, result_block_scale, input,
        (is_sf_swizzled_layout, is_sf_8x4_layout), sf_rounding,
    )  # fmt: skip


def _shared(
    device: Device, name: str, act: str, result: Any, scale: Any, input: Any, given: Any, flags: tuple[bool, bool],
    recipe: str,
) -> Plan:  # fmt: skip
    check_scalar("input_global_scale", given)
    made = _planned(device, name, NVFP4, result, scale, input, flags, recipe, act)
    if made is None:
        return None
    kernel, blocks, plain = made
    columns, held, plain = kernel.scales.columns, kernel.scales.held, plain and given.dim() == 1

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if plain:
            return lambda result, scale, input, given, *_: launch(result, input, scale, given, blocks)
        return lambda result, scale, input, given, *_: launch(
            seen_codes(result), as_rows(input, 1), seen_scales(scale, columns, held), given.view(1), blocks
        )

    return kernel, bind


def _powers(
    device: Device, name: str, act: str, format: Format, result: Any, scale: Any, input: Any, flags: tuple[bool, bool],
    rule: str,
) -> Plan:  # fmt: skip
    made = _planned(device, name, format, result, scale, input, flags, rule, act)
    if made is None:
        return None
    kernel, blocks, plain = made
    columns, held = kernel.scales.columns, kernel.scales.held

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if plain:
            return lambda result, scale, input, *_: launch(result, input, scale, None, blocks)
        return lambda result, scale, input, *_: launch(
            seen_codes(result), as_rows(input, 1), seen_scales(scale, columns, held), None, blocks
        )

    return kernel, bind


def _planned(
    device: Device, name: str, format: Format, result: Any, scale: Any, input: Any, flags: tuple[bool, bool], rule: str,
    act: str,
) -> tuple[Any, int, bool] | None:  # fmt: skip
    if input.dim() < 1 or input.shape[-1] % 2:
        raise ValueError(f"the last dimension of input must be even, input has shape {tuple(input.shape)}")
    return planned(device, name, format, ("result", result), input, ("result_block_scale", scale), flags, rule, act)
