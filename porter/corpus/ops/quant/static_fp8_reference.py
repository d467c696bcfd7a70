"""Static and per-tensor fp8 quantisation with torch's operators, rounding where the kernels round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from porter.corpus.ops.code_reference import E4M3_MAX, LEAST_SCALE, fp8, quotient


def static_scaled_fp8_quant(result: Any, input: Any, scale: Any, group_shape: Sequence[int] | None = None) -> None:
    """See porter.corpus.ops.quant.static_fp8.static_scaled_fp8_quant."""
    length = input.shape[-1]
    x = input.reshape(-1, length).float()
    scales = scale.float()
    if scales.numel() == 1:
        scales = scales.reshape(1, 1)
    elif scales.dim() == 1:
        down = x.shape[0] if group_shape is None or group_shape[0] == -1 else group_shape[0]
        scales = scales[None] if down == x.shape[0] else scales[:, None]
    inverse = 1.0 / scales
    inverse = inverse.repeat_interleave(x.shape[0] // max(1, inverse.shape[0]), 0)
    inverse = inverse.repeat_interleave(length // max(1, inverse.shape[1]), 1)
    result.copy_(fp8(x * inverse, result.dtype).view(result.shape))


def dynamic_scaled_fp8_quant(result: Any, input: Any, scale: Any) -> None:
    """See porter.corpus.ops.quant.static_fp8.dynamic_scaled_fp8_quant."""
    x = input.float()
    if not x.numel():
        return
    largest = x.abs().nan_to_num(nan=0.0, posinf=float("inf")).amax()
    found = quotient(largest, E4M3_MAX).clamp_min(LEAST_SCALE)
    scale.copy_(found.view(scale.shape))
    result.copy_(fp8(x * (1.0 / found), result.dtype))
