"""Dynamic quantisation of rows with torch's operators, rounding where the kernels round."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.code_reference import INT8_MAX, dynamic_scale, e4m3, int8, quotient

_LARGEST = 3.4028234663852886e38


def dynamic_per_token_scaled_fp8_quant(result: Any, input: Any, scale: Any, scale_ub: Any = None) -> None:
    """See porter.corpus.ops.quant.per_token.dynamic_per_token_scaled_fp8_quant."""
    if not input.numel():
        return
    x = input.float()
    found = dynamic_scale(x, scale_ub, result.dtype)
    scale.copy_(found.view(scale.shape))
    result.copy_(e4m3(x / found))


def dynamic_scaled_int8_quant(result: Any, input: Any, scale: Any, azp: Any = None) -> None:
    """See porter.corpus.ops.quant.per_token.dynamic_scaled_int8_quant."""
    if not input.numel():
        return
    x = input.float()
    if azp is None:
        largest = x.abs().nan_to_num(nan=0.0, posinf=float("inf")).amax(-1, keepdim=True)
        scale.copy_(quotient(largest, INT8_MAX).view(scale.shape))
        inverse = (largest.new_full((), INT8_MAX) / largest).where(largest != 0, largest.new_zeros(()))
        result.copy_(int8(x * inverse))
        return
    infinity = float("inf")
    least = x.where(x == x, x.new_full((), infinity)).amin(-1, keepdim=True).clamp_max(_LARGEST)
    most = x.where(x == x, x.new_full((), -infinity)).amax(-1, keepdim=True).clamp_min(-_LARGEST)
    found = quotient(most - least, 255.0)
    zero = whole((-128.0 - least / found).round())
    scale.copy_(found.view(scale.shape))
    azp.copy_(zero.view(azp.shape))
    result.copy_(shifted(x * (1.0 / found), zero))


def static_scaled_int8_quant(result: Any, input: Any, scale: Any, azp: Any = None) -> None:
    """See porter.corpus.ops.quant.per_token.static_scaled_int8_quant."""
    x = input.float()
    if azp is None:
        result.copy_(int8(x / scale.view(())))
    else:
        result.copy_(shifted(x * (1.0 / scale.view(())), azp.long().view(())))


def whole(values: Any) -> Any:
    """Integral float32 values as int64 within int32's range, NaN as 0: how a GPU converts them."""
    double = values.double().nan_to_num(nan=0.0, posinf=2.0**31, neginf=-(2.0**31))
    return double.clamp(-(2.0**31), 2.0**31 - 1).long()


def shifted(values: Any, zero: Any) -> Any:
    """float32 values rounded half to even to int32, plus `zero`, as saturating int8 codes."""
    import torch

    return (whole(values.round()) + zero).clamp(-128, 127).to(torch.int8)
