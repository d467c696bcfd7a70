"""NVFP4, MXFP4 and MXFP8 with torch's operators, rounding where the kernels round."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.activation import reference as activations
from porter.corpus.ops.code_reference import E4M3_MAX, e4m3, quotient
from porter.corpus.ops.norm import reference as norms

_E2M1_MAX = 6.0
_LARGEST = 3.4028234663852886e38
_NORMAL = 2.0**-126
# Between two codes, and whether half way goes to the upper one, which is even.
_BETWEEN = ((0.25, False), (0.75, True), (1.25, False), (1.75, True), (2.5, False), (3.5, True), (5.0, False))
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
TILE_ROWS = {"linear": 1, "8x4": 8, "128x4": 128}


def layout_of(is_sf_swizzled_layout: bool, is_sf_8x4_layout: bool) -> str:
    """The layout of scales that the two flags stand for."""
    return "linear" if not is_sf_swizzled_layout else "8x4" if is_sf_8x4_layout else "128x4"


def scaled_fp4_quant(
    output: Any, input: Any, output_scale: Any, input_scale: Any, is_sf_swizzled_layout: bool = True,
    is_sf_8x4_layout: bool = False, recipe: str = "fast",
) -> None:  # fmt: skip
    """See porter.corpus.ops.quant.block_scaled.scaled_fp4_quant."""
    _quantise(output, input, output_scale, layout_of(is_sf_swizzled_layout, is_sf_8x4_layout), 16, input_scale, recipe)


def mxfp4_quantize(
    output: Any, input: Any, output_scale: Any, is_sf_swizzled_layout: bool = True, is_sf_8x4_layout: bool = False,
    sf_rounding: str = "ceil",
) -> None:  # fmt: skip
    """See porter.corpus.ops.quant.block_scaled.mxfp4_quantize."""
    _quantise(output, input, output_scale, layout_of(is_sf_swizzled_layout, is_sf_8x4_layout), 32, None, sf_rounding)


def mxfp8_quantize(
    output: Any, input: Any, output_scale: Any, is_sf_swizzled_layout: bool = True, is_sf_8x4_layout: bool = False,
    sf_rounding: str = "ceil",
) -> None:  # fmt: skip
    """See porter.corpus.ops.quant.block_scaled.mxfp8_quantize."""
    _quantise(output, input, output_scale, layout_of(is_sf_swizzled_layout, is_sf_8x4_layout), 32, None, sf_rounding)


def _quantise(output: Any, x: Any, output_scale: Any, layout: str, group: int, given: Any, rule: str) -> None:
    """Codes and scales of x; e4m3 codes where `output` holds them, and zeros where its rows are longer."""
    import torch

    rows = x.numel() // x.shape[-1] if x.numel() else 0
    if not rows:
        return
    fp8, length = output.dtype == torch.float8_e4m3fn, x.shape[-1]
    blocks = x.float().reshape(rows, length // group, group)
    largest = blocks.abs().nan_to_num(nan=0.0, posinf=float("inf")).amax(-1, keepdim=True)
    if group == 16:
        code, inverse = _shared(largest, given.reshape(1, 1, 1).float(), rule)
    else:
        code, inverse = _power(largest, rule, fp8)
    scaled = (blocks * inverse).view(rows, length)
    longer = output.shape[-1] * (1 if fp8 else 2) - length
    if fp8:
        codes = torch.nn.functional.pad(e4m3(scaled).view(torch.uint8), (0, longer)).view(output.dtype)
    else:
        codes = pack_e2m1(scaled)
    as_bytes(output).copy_(as_bytes(codes).view(output.shape))
    code = torch.nn.functional.pad(code.squeeze(-1), (0, longer // group))
    held = as_bytes(output_scale)
    held.copy_(interleaved(code, layout).view(held.shape))


def _shared(largest: Any, given: Any, rule: str) -> tuple[Any, Any]:
    """(e4m3 codes of scales as bytes, what values are multiplied by)."""
    import torch

    if rule == "exact":
        scale = (quotient(largest, _E2M1_MAX) * given).nan_to_num(nan=_LARGEST, posinf=float("inf")).clamp_max(_LARGEST)
    else:
        scale = given * (largest * largest.new_full((), 1.0 / _E2M1_MAX))
    code = scale.clamp_max(E4M3_MAX).to(torch.float8_e4m3fn)  # NaN stays
    held = code.float()
    if rule == "exact":
        inverse = (given / held).nan_to_num(nan=_LARGEST, posinf=_LARGEST)
    else:
        inverse = _flushed(1.0 / _flushed(held * _flushed(1.0 / _flushed(given))))
        inverse = inverse.masked_fill(held == 0, 0.0)
    return code.view(torch.uint8), inverse


def _flushed(x: Any) -> Any:
    """Zero where x is denormal, as `.ftz` has it."""
    return x.masked_fill(x.abs() < _NORMAL, 0.0)


def _power(largest: Any, rule: str, fp8: bool) -> tuple[Any, Any]:
    """(ue8m0 codes of scales, their reciprocals)."""
    import torch

    most, top = (E4M3_MAX, 8) if fp8 else (_E2M1_MAX, 2)
    if rule == "ceil":
        fraction, exponent = torch.frexp((largest * largest.new_full((), 1.0 / most)).double())  # 0.5 <= fraction < 1
        code = exponent + 127 - (fraction == 0.5).int()
        code = code.masked_fill(largest == 0, 0).masked_fill(largest == float("inf"), 254).clamp(0, 254)
    else:
        code = torch.frexp(largest.double())[1] - 1 + 127
        code = code.masked_fill(largest == 0, 0).masked_fill(largest == float("inf"), 254).clamp(0, 254)
        code = (code - top).clamp_min(0)
    inverse = _power_of_two(127 - code.long())
    return code.to(torch.uint8), inverse.masked_fill(code == 0, 0.0) if fp8 else inverse


def _power_of_two(exponent: Any) -> Any:
    """float32 powers of two with int64 exponents from -149 to 127, exact on every device."""
    import torch

    return ((exponent + 1023) << 52).view(torch.float64).float()


def pack_e2m1(values: Any) -> Any:
    """float32 values as e2m1 codes, two a byte, the even one in the low half: to the nearest, ties to the even code,
    at most 6, NaN 6."""
    import torch

    size, code = values.abs(), torch.zeros(values.shape, dtype=torch.uint8, device=values.device)
    for between, up in _BETWEEN:
        code += (size >= between) if up else (size > between)
    code = torch.where(values.isnan(), 7, code | (values.signbit().to(torch.uint8) << 3)).to(torch.uint8)
    return code[..., ::2] | (code[..., 1::2] << 4)


def unpack_e2m1(codes: Any) -> Any:
    """float32 values of bytes of two e2m1 codes."""
    import torch

    table = torch.tensor([*_E2M1, *(-v for v in _E2M1)], device=codes.device)
    return table[torch.stack([codes & 15, codes >> 4], -1).flatten(-2).long()]


def interleaved(scales: Any, layout: str) -> Any:
    """Bytes of scales (rows, columns) as they lie in memory: (rows of whole tiles, columns of whole tiles)."""
    import torch

    if layout == "linear":
        return scales
    tile = TILE_ROWS[layout]
    scales = torch.nn.functional.pad(scales, (0, -scales.shape[1] % 4, 0, -scales.shape[0] % tile))
    rows, columns = scales.shape
    if layout == "8x4":
        return scales.view(rows // 8, 8, columns // 4, 4).permute(0, 2, 1, 3).reshape(rows, columns)
    return scales.view(rows // 128, 4, 32, columns // 4, 4).permute(0, 3, 2, 1, 4).reshape(rows, columns)


def as_bytes(t: Any) -> Any:
    """The bytes of a tensor, its last dimension in bytes."""
    import torch

    return t if t.dtype == torch.uint8 else t.view(torch.uint8)


def gated(
    act: str, result: Any, scale: Any, input: Any, group: int, flags: tuple[bool, bool], given: Any, rule: str
) -> None:
    """See porter.corpus.ops.quant.gated_block_scaled."""
    product = input.new_empty((*input.shape[:-1], input.shape[-1] // 2))
    found = {"silu": activations.silu_and_mul, "gelu_tanh": activations.gelu_tanh_and_mul}
    found[act](product, input, "flashinfer")
    _quantise(result, product, scale, layout_of(*flags), group, given, rule)


def normalised(
    result: Any, scale: Any, input: Any, weight: Any, epsilon: float, residual: Any, group: int,
    flags: tuple[bool, bool], given: Any, rule: str,
) -> None:  # fmt: skip
    """See porter.corpus.ops.quant.norm_block_scaled."""
    norm = input.clone()
    if residual is None:
        norms.rms_norm(norm, input, weight, epsilon)
    else:
        norms.fused_add_rms_norm(norm, residual, weight, epsilon)
    _quantise(result, norm, scale, layout_of(*flags), group, given, rule)


def dequantise(
    output: Any, input: Any, scale: Any, given: Any, flags: tuple[bool, bool], group: int
) -> None:
    """See porter.corpus.ops.quant.block_dequantised."""
    import torch

    if not output.numel():
        return
    fp8, d = input.dtype == torch.float8_e4m3fn, output.shape[-1]
    codes = (input.float() if fp8 else unpack_e2m1(as_bytes(input))).reshape(-1, input.shape[-1] * (1 if fp8 else 2))
    rows, length = codes.shape
    code = deinterleaved(as_bytes(scale).reshape(-1), rows, length // group, layout_of(*flags))
    if group == 16:
        factor = code.contiguous().view(torch.float8_e4m3fn).float() / given.float()
    else:
        factor = _power_of_two(code.long() - 127).masked_fill(code == 255, float("nan"))
    values = (codes.view(rows, -1, group) * factor[..., None]).view(rows, length)[:, :d]
    output.copy_(values.to(output.dtype).view(output.shape))


def deinterleaved(flat: Any, rows: int, columns: int, layout: str) -> Any:
    """The (rows, columns) bytes of scales that lie in memory as `layout` has them."""
    import torch

    size = -(-rows // TILE_ROWS[layout]) * TILE_ROWS[layout], columns if layout == "linear" else -(-columns // 4) * 4
    places = torch.arange(size[0] * size[1], device=flat.device).view(size)
    found = torch.empty_like(flat)
    found[interleaved(places, layout).reshape(-1)] = flat
    return found.view(size)[:rows, :columns]


def block_scale_interleave(output: Any, input: Any, is_sf_8x4_layout: bool = False) -> None:
    """See porter.corpus.ops.quant.block_layouts.block_scale_interleave."""
    if input.numel():
        held = as_bytes(output)
        held.copy_(interleaved(as_bytes(input), layout_of(True, is_sf_8x4_layout)).view(held.shape))


def block_scale_deinterleave(output: Any, input: Any, is_sf_8x4_layout: bool = False) -> None:
    """See porter.corpus.ops.quant.block_layouts.block_scale_deinterleave."""
    if output.numel():
        held = as_bytes(output)
        rows, columns = held.shape
        held.copy_(deinterleaved(as_bytes(input).reshape(-1), rows, columns, layout_of(True, is_sf_8x4_layout)))


def nvfp4_dequantize(
    output: Any, input: Any, input_scale: Any, global_scale: Any, is_sf_swizzled_layout: bool = True,
    is_sf_8x4_layout: bool = False,
) -> None:  # fmt: skip
    """See porter.corpus.ops.quant.block_dequantised.nvfp4_dequantize."""
    dequantise(output, input, input_scale, global_scale, (is_sf_swizzled_layout, is_sf_8x4_layout), 16)


def mxfp4_dequantize(
    output: Any, input: Any, input_scale: Any, is_sf_swizzled_layout: bool = True, is_sf_8x4_layout: bool = False
) -> None:
    """See porter.corpus.ops.quant.block_dequantised.mxfp4_dequantize."""
    dequantise(output, input, input_scale, None, (is_sf_swizzled_layout, is_sf_8x4_layout), 32)


def mxfp8_dequantize(
    output: Any, input: Any, input_scale: Any, is_sf_swizzled_layout: bool = True, is_sf_8x4_layout: bool = False
) -> None:
    """See porter.corpus.ops.quant.block_dequantised.mxfp8_dequantize."""
    dequantise(output, input, input_scale, None, (is_sf_swizzled_layout, is_sf_8x4_layout), 32)
