"""What the quantising operations check about their operands, and how they see scales."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.rows import access_width, check_dtype, row_dimensions
from porter.corpus.runtime.ops import Unsupported

FLOATS = ("bf16", "f16", "f32")


def input_and_codes(input: Any, name: str, codes: Any, *kinds: str) -> tuple[str, str, int]:
    """(dtype of `input`, scalar name of the codes, rows) of an input and the codes, called `name`, made of it.

    Raises ValueError unless the codes are of one of `kinds` and both have the same shape and contiguous rows,
    Unsupported for rows that are not evenly spaced."""
    dtype, kind = check_dtype("input", input, *FLOATS), check_dtype(name, codes, *kinds)
    rows, inner = row_dimensions([("input", input), (name, codes)])
    if inner != 1:
        raise Unsupported("rows must be evenly spaced")
    return dtype, kind, rows


def element_accesses(input: Any, codes: Any) -> tuple[int, int]:
    """Bytes of the widest access to the rows of input and of codes."""
    length = input.shape[-1]
    return access_width(length, [input]) * input.element_size(), access_width(length, [codes])


def element_widths(length: int, vec: int) -> tuple[int, ...]:
    """Elements of a thread that the tuning table may choose from: one access of the input, or two where the row is a
    whole number of those (codes are then written in accesses twice as wide)."""
    return (vec,) if vec == 1 or length % (2 * vec) else (vec, 2 * vec)


def row_scales(name: str, scale: Any, rows: int, dtype: str = "f32") -> None:
    """Raise ValueError unless `scale` holds a number of `dtype` for each row: shape (rows,) or (..., 1)."""
    check_dtype(name, scale, dtype)
    if scale.numel() != rows or scale.shape[-1:] != (1 if scale.dim() > 1 else rows,):
        raise ValueError(f"{name} has shape {tuple(scale.shape)}, the input has {rows} rows")
    if not scale.is_contiguous():
        raise ValueError(f"{name} must be contiguous")
