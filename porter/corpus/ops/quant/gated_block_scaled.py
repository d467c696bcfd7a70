"""Gated activations whose output is NVFP4, MXFP4 or MXFP8: vLLM's argument order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.quant import block_scaled_reference as reference
from porter.corpus.ops.quant.block_operands import MXFP4, MXFP8, NVFP4, Format, seen_codes, seen_scales
from porter.corpus.ops.quant.block_scaled import planned
from porter.corpus.ops.rows import as_rows, check_scalar
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, op, usually

_LAYOUT = "bool is_sf_swizzled_layout=True, bool is_sf_8x4_layout=False"
_USUAL = {"is_sf_swizzled_layout": True, "is_sf_8x4_layout": False}
_SIZES = "(input.nbytes, result_block_scale.nbytes)"
_DOC = """`result` and `result_block_scale` = {quantiser} of {act}(gate) * up, where a row of `input` (..., 2 d) is
    gate, then up.

    The activation is computed in float32 and its product with up rounded once to the dtype of `input`: equal to the bit
    to `{act}_and_mul` of profile "flashinfer" and `{quantiser}` after it.{also} Operands as theirs. Raises ValueError
    for other arguments."""


def _shared(name: str, act: str, also: str = "") -> Any:
    """Declares `{act}_and_mul` with NVFP4 output."""

    def plan(
        device: Device, result: Any, result_block_scale: Any, input: Any, input_global_scale: Any,
        is_sf_swizzled_layout: bool, is_sf_8x4_layout: bool, recipe: str,
    ) -> Plan:  # fmt: skip
        check_scalar("input_global_scale", input_global_scale)
        flags = is_sf_swizzled_layout, is_sf_8x4_layout
        made = _planned(device, name, NVFP4, result, result_block_scale, input, flags, recipe, act)
        if made is None:
            return None
        kernel, blocks, plain = made
        columns, held = kernel.scales.columns, kernel.scales.held

        def bind(launch: Callable[..., None]) -> Callable[..., None]:
            if plain and input_global_scale.dim() == 1:
                return lambda result, scale, input, given, *_: launch(result, input, scale, given, blocks)
            return lambda result, scale, input, given, *_: launch(
                seen_codes(result), as_rows(input, 1), seen_scales(scale, columns, held), given.view(1), blocks
            )

        return kernel, bind

    def fallback(
        result: Any, scale: Any, input: Any, given: Any, swizzled: bool = True, narrow_tiles: bool = False,
        recipe: str = "fast",
    ) -> None:  # fmt: skip
        reference.gated(act, result, scale, input, 16, (swizzled, narrow_tiles), given, recipe)

    plan.__doc__, plan.__name__ = _DOC.format(quantiser="scaled_fp4_quant", act=act, also=also), name
    schema = (
        f"{name}(Tensor(a!) result, Tensor(b!) result_block_scale, Tensor input, Tensor input_global_scale, {_LAYOUT}, "
        "str recipe='fast') -> ()"
    )
    return op(schema, key=usually(_SIZES, {**_USUAL, "recipe": "fast"}), fallback=fallback)(plan)


def _powers(name: str, act: str, format: Format) -> Any:
    """Declares `{act}_and_mul` with MXFP4 or MXFP8 output."""

    def plan(
        device: Device, result: Any, result_block_scale: Any, input: Any, is_sf_swizzled_layout: bool,
        is_sf_8x4_layout: bool, sf_rounding: str,
    ) -> Plan:  # fmt: skip
        flags = is_sf_swizzled_layout, is_sf_8x4_layout
        made = _planned(device, name, format, result, result_block_scale, input, flags, sf_rounding, act)
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

    def fallback(
        result: Any, scale: Any, input: Any, swizzled: bool = True, narrow_tiles: bool = False, rule: str = "ceil"
    ) -> None:
        reference.gated(act, result, scale, input, 32, (swizzled, narrow_tiles), None, rule)

    quantiser = "mxfp4_quantize" if format is MXFP4 else "mxfp8_quantize"
    plan.__doc__, plan.__name__ = _DOC.format(quantiser=quantiser, act=act, also=""), name
    schema = (
        f"{name}(Tensor(a!) result, Tensor(b!) result_block_scale, Tensor input, {_LAYOUT}, str sf_rounding='ceil')"
        " -> ()"
    )
    return op(schema, key=usually(_SIZES, {**_USUAL, "sf_rounding": "ceil"}), fallback=fallback)(plan)


def _planned(
    device: Device, name: str, format: Format, result: Any, scale: Any, input: Any, flags: tuple[bool, bool], rule: str,
    act: str,
) -> tuple[Any, int, bool] | None:  # fmt: skip
    if input.dim() < 1 or input.shape[-1] % 2:
        raise ValueError(f"the last dimension of input must be even, input has shape {tuple(input.shape)}")
    return planned(
        device, name, format, ("result", result), input, ("result_block_scale", scale), flags, rule, act
    )


silu_and_mul_nvfp4_quant = _shared("silu_and_mul_nvfp4_quant", "silu", " vLLM's operation of this name.")
silu_and_mul_mxfp4_quant = _powers("silu_and_mul_mxfp4_quant", "silu", MXFP4)
silu_and_mul_mxfp8_quant = _powers("silu_and_mul_mxfp8_quant", "silu", MXFP8)
gelu_tanh_and_mul_nvfp4_quant = _shared("gelu_tanh_and_mul_nvfp4_quant", "gelu_tanh")
gelu_tanh_and_mul_mxfp8_quant = _powers("gelu_tanh_and_mul_mxfp8_quant", "gelu_tanh", MXFP8)
