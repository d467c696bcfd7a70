"""Codes of fp8 and int8 quantisation with torch's operators, rounding and saturating as the kernels do."""

from __future__ import annotations

from typing import Any

E4M3_MAX = 448.0
LEAST_SCALE = 1.0 / (E4M3_MAX * 512.0)  # of dynamic fp8 scales
INT8_MAX = 127.0
LEAST_INT8_SCALE = 2.0**-23  # of dynamic int8 scales


def e4m3(values: Any) -> Any:
    """float32 values as e4m3 codes, saturating; NaN becomes 448, as in CUDA's `fmaxf(-448, fminf(x, 448))`."""
    import torch

    return values.nan_to_num(nan=E4M3_MAX).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)


def fp8(values: Any, dtype: Any) -> Any:
    """float32 values as codes of float8_e4m3fn or float8_e5m2, saturating; NaN becomes the largest, as `e4m3`."""
    import torch

    most = torch.finfo(dtype).max
    return values.nan_to_num(nan=most, posinf=most, neginf=-most).clamp(-most, most).to(dtype)


def int8(values: Any) -> Any:
    """float32 values as int8 codes, to the nearest, ties to even, saturating; NaN becomes 0, as `cvt.sat` has it."""
    import torch

    return values.nan_to_num(nan=0.0).round().clamp(-128, 127).to(torch.int8)


def dynamic_scale(values: Any, bound: Any, dtype: Any) -> Any:
    """The scale of the last dimension's values for codes of `dtype`, at most `bound` (None for no bound) times its
    largest code; NaN is passed over, as by `fmaxf`."""
    largest = values.abs().nan_to_num(nan=0.0, posinf=float("inf")).amax(-1, keepdim=True)
    if bound is not None:
        largest = largest.minimum(bound.float())
    most, least = (E4M3_MAX, LEAST_SCALE) if dtype.is_floating_point else (INT8_MAX, LEAST_INT8_SCALE)
    return quotient(largest, most).clamp_min(least)


def quotient(values: Any, divisor: float) -> Any:
    """values / divisor to the nearest, also on a GPU, where torch multiplies by the reciprocal of a Python number."""
    return values / values.new_full((), divisor)
