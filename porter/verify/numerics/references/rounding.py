"""Roundings that belong to a kernel's contract, and quantised codes with what they were before rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from porter.verify.numerics.formats import round_to
from porter.verify.numerics.references.registry import Args

SLACK = 2.0**-18  # relative: what float32 arithmetic may move a value before it is rounded
FP8_MAX = 448.0
FP8_MIN_SCALE = float(np.float32(1.0) / np.float32(448.0 * 512.0))


def element_type(args: Args) -> str:
    """The ir name of the kernel's element type."""
    return str(args["scalar_t"])


def to_element(x: np.ndarray, args: Args) -> np.ndarray:
    """x rounded to the kernel's element type."""
    return round_to(x, element_type(args))


def to_f32(x: np.ndarray | float) -> np.ndarray:
    """x rounded to float32, as float64."""
    return np.asarray(x, np.float64).astype(np.float32).astype(np.float64)


def clamp_fp8(x: np.ndarray) -> np.ndarray:
    """fmaxf(-448, fminf(x, 448)), which sends NaN to 448."""
    return np.fmax(-FP8_MAX, np.fmin(x, FP8_MAX))


def fp8_codes(name: str, pre: np.ndarray) -> dict[str, np.ndarray]:
    """An e4m3 buffer from values that are already clamped."""
    return {name: round_to(pre, "e4m3"), f"{name}:pre": pre}


def int8_codes(name: str, pre: np.ndarray) -> dict[str, np.ndarray]:
    """An int8 buffer: nearest, ties to even, saturated; NaN gives 0."""
    codes = np.clip(np.rint(np.where(np.isnan(pre), 0.0, pre)), -128.0, 127.0)
    return {name: codes, f"{name}:pre": pre}


def nearby(x: np.ndarray, args: Args) -> tuple[np.ndarray, np.ndarray]:
    """x rounded to the element type from slightly below and above: they differ where float32 decides by chance."""
    return to_element(x * (1.0 - SLACK), args), to_element(x * (1.0 + SLACK), args)


def codes_through_element(
    name: str,
    exact: np.ndarray,
    args: Args,
    to_pre: Callable[[np.ndarray], np.ndarray],
    others: Sequence[np.ndarray] = (),
) -> dict[str, np.ndarray]:
    """An e4m3 buffer whose values were rounded to the element type before `to_pre` scaled and clamped them.

    Where `exact` is so near a rounding boundary of the element type that float32 decides by chance, and the outcomes
    have different codes, `name:pre` is put half way between these codes. `others` are values that `exact` may have
    instead, because of such a boundary earlier on.
    """
    found = fp8_codes(name, to_pre(to_element(exact, args)))
    outcomes = [round_to(to_pre(y), "e4m3") for value in (exact, *others) for y in nearby(value, args)]
    low, high = np.minimum.reduce(outcomes), np.maximum.reduce(outcomes)
    undecided = (low != high) & np.isfinite(low) & np.isfinite(high)
    found[f"{name}:pre"] = np.where(undecided, (low + high) / 2.0, found[f"{name}:pre"])
    return found


def ceil_power_of_two(x: np.ndarray) -> np.ndarray:
    """The smallest power of two that is at least x, for positive normal x."""
    fraction, exponent = np.frexp(x)
    return np.where(np.isfinite(x), np.ldexp(1.0, exponent - (fraction == 0.5)), x)
