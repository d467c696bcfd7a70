"""Quantisation of groups of a row with torch's operators, rounding where the kernels round."""

from __future__ import annotations

from typing import Any

LEAST_POWER_OF = 1e-10  # as porter.corpus.lib.quantisation.group_scales
_INFINITE = 255  # ue8m0's code


def per_token_group_fp8_quant(
    input: Any, output_q: Any, output_s: Any, group_size: int, eps: float, fp8_min: float, fp8_max: float,
    scale_ue8m0: bool, dummy_is_scale_transposed: bool = False, dummy_is_tma_aligned: bool = False,
) -> None:  # fmt: skip
    """See porter.corpus.ops.quant.per_token_group.per_token_group_fp8_quant."""
    if not input.numel():
        return
    codes, scale, _ = _quantised(input, group_size, eps, fp8_min, fp8_max, scale_ue8m0)
    output_q.copy_(codes.to(output_q.dtype).view(output_q.shape))
    output_s.copy_(scale.view(output_s.shape))


def per_token_group_quant_int8(
    input: Any, output_q: Any, output_s: Any, group_size: int, eps: float, int8_min: float, int8_max: float
) -> None:
    """See porter.corpus.ops.quant.per_token_group.per_token_group_quant_int8."""
    if not input.numel():
        return
    codes, scale, _ = _quantised(input, group_size, eps, int8_min, int8_max, False)
    output_q.copy_(codes.trunc().clamp(-128, 127).to(output_q.dtype).view(output_q.shape))
    output_s.copy_(scale.view(output_s.shape))


def per_token_group_fp8_quant_packed(
    input: Any, output_q: Any, output_s_packed: Any, group_size: int, eps: float, min_8bit: float, max_8bit: float
) -> None:
    """See porter.corpus.ops.quant.per_token_group.per_token_group_fp8_quant_packed."""
    import torch

    if not input.numel():
        return
    codes, _, power = _quantised(input, group_size, eps, min_8bit, max_8bit, True)
    rows, length = codes.numel() // input.shape[-1], input.shape[-1]
    out = output_q.view(-1, length)
    out[:rows].copy_(codes.to(out.dtype).view(rows, length))
    rounded = -(-rows // 4) * 4
    out[rows:rounded].copy_(torch.zeros_like(out[rows:rounded], dtype=torch.float32).to(out.dtype))
    words = output_s_packed.shape[1]
    bytes_ = torch.nn.functional.pad(power.view(rows, -1), (0, 4 * words - power.numel() // rows)).view(rows, words, 4)
    shifts = torch.arange(0, 32, 8, device=bytes_.device)
    word = (bytes_.long() << shifts).sum(-1)
    output_s_packed.copy_((word - ((word >> 31) << 32)).to(torch.int32))  # as a signed number
    if words > 1 and rounded > rows:  # the columns but the last have memory up to a multiple of four rows
        stride = output_s_packed.stride(1)
        tail = output_s_packed.as_strided(
            (words - 1, rounded - rows), (stride, 1), output_s_packed.storage_offset() + rows
        )
        tail.zero_()


def _quantised(
    input: Any, group: int, eps: float, low: float, high: float, power_of_two: bool
) -> tuple[Any, Any, Any]:
    """(clamped quotients (.., groups, group), scales (.., groups), ue8m0 codes of these or None)."""
    x = input.float().reshape(-1, input.shape[-1] // group, group)
    largest = x.abs().nan_to_num(nan=0.0, posinf=float("inf")).amax(-1, keepdim=True)
    eps, low, high = (x.new_full((), v) for v in (eps, low, high))
    scale, code = largest.maximum(eps) / high, None
    if power_of_two:
        code, scale = _power_of_two(scale)
        code = code.squeeze(-1)
    quotients = x / scale
    clamped = quotients.where(quotients == quotients, low).maximum(low).minimum(high)
    return clamped, scale.squeeze(-1), code


def _power_of_two(scale: Any) -> tuple[Any, Any]:
    """(ue8m0 code, value) of the least power of two that is not below max(scale, 1e-10)."""
    import torch

    fraction, exponent = torch.frexp(scale.clamp_min(LEAST_POWER_OF))  # 0.5 <= fraction < 1
    code = exponent + 127 - (fraction == 0.5).int()
    code = code.masked_fill(scale == float("inf"), _INFINITE)
    return code, (code << 23).view(torch.float32)
