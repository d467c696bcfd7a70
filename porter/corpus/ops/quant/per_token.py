"""fp8 and int8 codes with a scale computed for each row, and int8 codes with given scales: vLLM's names and schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.quant import per_token_reference as reference
from porter.corpus.ops.quant.operands import element_accesses, element_widths, input_and_codes, row_scales
from porter.corpus.ops.rows import access_width, as_rows, check_dtype, check_scalar, flat_scalar, spread_rows
from porter.corpus.ops.spread import spread_elements
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, compact_key, op


@op(
    "dynamic_per_token_scaled_fp8_quant(Tensor(a!) result, Tensor input, Tensor(b!) scale, "
    "Tensor? scale_ub=None) -> ()",
    key=compact_key("input.nbytes", {"scale_ub is None": True}),
    fallback=reference.dynamic_per_token_scaled_fp8_quant,
)
def dynamic_per_token_scaled_fp8_quant(device: Device, result: Any, input: Any, scale: Any, scale_ub: Any) -> Plan:
    """`scale` = max(min(max |row|, scale_ub) / 448, 1 / (448 * 512)), `result` (..., H) e4m3 = row / scale, saturating.

    `input` (..., H) in bfloat16, float16 or float32, last dimension contiguous; `scale` (T, 1) or (T,) float32;
    `scale_ub` one float32. Quotients are rounded to nearest before they become codes. NaN does not count for the scale,
    its code is 448. SGLang's `sgl_per_token_quant_fp8(input, output_q, output_s)` is this without the least scale.
    Raises ValueError for other arguments.
    """
    if scale_ub is not None:
        check_scalar("scale_ub", scale_ub)
    made = _rows_plan(device, "dynamic_per_token_scaled_fp8_quant", result, input, "e4m3", False, scale_ub is not None)
    row_scales("scale", scale, _rows(input))
    if made is None:
        return None
    (kernel, blocks), direct = made, input.dim() == scale.dim() == 2 and scale_ub is None

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda result, input, scale, _: launch(result, input, scale, None, None, blocks)
        return lambda result, input, scale, scale_ub: launch(
            as_rows(result, 1), as_rows(input, 1), scale.view(-1, 1), None, flat_scalar(scale_ub), blocks
        )

    return kernel, bind


@op(
    "dynamic_scaled_int8_quant(Tensor(a!) result, Tensor input, Tensor(b!) scale, Tensor(c!)? azp=None) -> ()",
    key=compact_key("input.nbytes", {"azp is None": True}),
    fallback=reference.dynamic_scaled_int8_quant,
)
def dynamic_scaled_int8_quant(device: Device, result: Any, input: Any, scale: Any, azp: Any) -> Plan:
    """`result` (..., H) int8, with a scale for each row and, where `azp` is given, a zero point for each.

    Without: scale = max |row| / 127, code row * (127 / max |row|), 0 in a row of zeros. With: scale =
    (max - min) / 255, azp = -128 - min / scale rounded half to even, code row * (1 / scale) rounded half to even, plus
    azp. Codes saturate; those of NaN are 0 (plus azp), and it does not count for max and min. `input` as for
    dynamic_per_token_scaled_fp8_quant, `scale` (T, 1) or (T,) float32, `azp` likewise int32. Rows of one value have
    scale 0 and what the divisions by it give, as in vLLM: azp -2^31 and codes -1 where it is above 0. Raises ValueError
    for other arguments.
    """
    made = _rows_plan(device, "dynamic_scaled_int8_quant", result, input, "i8", azp is not None, False)
    row_scales("scale", scale, _rows(input))
    if azp is not None:
        row_scales("azp", azp, _rows(input), "i32")
    if made is None:
        return None
    (kernel, blocks), direct = made, input.dim() == scale.dim() == 2 and azp is None

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda result, input, scale, _: launch(result, input, scale, None, None, blocks)
        return lambda result, input, scale, azp: launch(
            as_rows(result, 1), as_rows(input, 1), scale.view(-1, 1), None if azp is None else azp.view(-1, 1), None,
            blocks,
        )  # fmt: skip

    return kernel, bind


@op(
    "static_scaled_int8_quant(Tensor(a!) result, Tensor input, Tensor scale, Tensor? azp=None) -> ()",
    key=compact_key("input.nbytes", {"azp is None": True}),
    fallback=reference.static_scaled_int8_quant,
)
def static_scaled_int8_quant(device: Device, result: Any, input: Any, scale: Any, azp: Any) -> Plan:
    """`result` (..., H) int8 = input / scale rounded half to even; with `azp` input * (1 / scale) rounded half to even,
    plus azp.

    `input` as for dynamic_per_token_scaled_fp8_quant; `scale` one float32, `azp` one int32. Codes saturate; those of
    NaN are 0, plus azp. Raises ValueError for other arguments.
    """
    from porter.corpus.kernels.quant.static import StaticQuant

    dtype, _, rows = input_and_codes(input, "result", result, "i8")
    check_scalar("scale", scale)
    if azp is not None:
        check_dtype("azp", azp, "i32")
        if azp.numel() != 1:
            raise ValueError(f"azp must hold one number, it has shape {tuple(azp.shape)}")
    length = input.shape[-1]
    if rows == 0 or length == 0:
        return None
    vec = access_width(length, [input, result])
    vecs = element_widths(length, vec)
    spread = spread_elements(device, "static_scaled_int8_quant", dtype, rows, length, vec, vecs)
    kernel = StaticQuant(
        dtype, length, spread.vec, spread.threads, spread.rows, "i8", length, "all", azp is not None, False,
        *element_accesses(input, result), device.pdl, spread.prefetch, spread.streaming, spread.prefetch_blocks,
    )  # fmt: skip
    blocks, direct = kernel.blocks(rows), input.dim() == 2 and scale.dim() == 1 and (azp is None or azp.dim() == 1)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda result, input, scale, azp: launch(result, input, scale, azp, blocks)
        return lambda result, input, scale, azp: launch(
            as_rows(result, 1), as_rows(input, 1), scale.view(1), flat_scalar(azp), blocks
        )

    return kernel, bind


def _rows(input: Any) -> int:
    return input.numel() // input.shape[-1] if input.shape[-1] else 0


def _rows_plan(
    device: Device, name: str, result: Any, input: Any, codes: str, shifted: bool, bounded: bool
) -> tuple[Any, int] | None:
    from porter.corpus.kernels.quant.per_token import PerToken
    from porter.corpus.lib.rows import Rows

    dtype, _, rows = input_and_codes(input, "result", result, codes)
    length = input.shape[-1]
    if rows == 0 or length == 0:
        return None
    vec = access_width(length, [input, result])
    spread = spread_rows(device, name, dtype, rows, length, vec, wanted=128, most=8)
    prefetch = {"all": "rows", "weight": "none"}.get(spread.prefetch, spread.prefetch)  # there is no weight
    kernel = PerToken(
        dtype, Rows(length, vec, spread.threads, spread.rows), codes, shifted, bounded, device.pdl, prefetch,
        spread.prefetch_blocks,
    )  # fmt: skip
    return kernel, -(-rows // spread.rows)
