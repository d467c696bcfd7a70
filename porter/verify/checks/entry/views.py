"""Shapes and strides of views, as torch has them: pure arithmetic, for stand-ins that have no memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any


class Copies(Exception):
    """The operation would copy elements: it is no view."""


@dataclass(frozen=True)
class View:
    """A strided view: shape and strides in elements, `offset` in elements from the start of its memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    def axis(self, dim: int, extra: int = 0) -> int:
        """A dimension counted from the front. Raises IndexError as torch does."""
        rank = len(self.shape) + extra
        if not -max(rank, 1) <= dim < max(rank, 1):
            raise IndexError(f"Dimension out of range (got {dim}, the tensor has {len(self.shape)})")
        return dim % max(rank, 1)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides; a dimension of length 0 counts as 1, as in torch."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


def is_contiguous(view: View) -> bool:
    """Whether the elements lie row-major without gaps; strides of dimensions of length 1 do not matter."""
    wanted = zip(view.shape, view.strides, contiguous_strides(view.shape), strict=True)
    return view.numel == 0 or all(have == want for length, have, want in wanted if length != 1)


def sizes_of(arguments: Sequence[Any]) -> tuple[int, ...]:
    """`f(2, 3)` and `f((2, 3))` alike."""
    given = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list | tuple) else arguments
    return tuple(int(n) for n in given)


def viewed(view: View, shape: Sequence[int]) -> View:
    """The view in another shape, one length of which may be -1. Raises Copies, and RuntimeError as torch does."""
    lengths = list(shape)
    if lengths.count(-1) == 1:
        known = math.prod(n for n in lengths if n != -1)
        if not known or view.numel % known:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {view.numel}")
        lengths[lengths.index(-1)] = view.numel // known
    if math.prod(lengths) != view.numel or min(lengths, default=0) < 0:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {view.numel}")
    if view.numel == 0 or is_contiguous(view):
        return View(tuple(lengths), contiguous_strides(lengths), view.offset)
    old = [(n, s) for n, s in zip(view.shape, view.strides, strict=True) if n != 1]
    strides = [0] * len(lengths)
    at = len(lengths) - 1
    while old:  # blocks of dimensions that lie next to each other, from the last
        length, step = old.pop()
        total, base = length, step
        while old and old[-1][1] == step * length:
            length, step = old.pop()
            total *= length
        left, step = total, base
        while at >= 0 and (left > 1 or lengths[at] == 1):
            if left % lengths[at]:
                raise Copies
            strides[at] = step
            step *= lengths[at]
            left //= lengths[at]
            at -= 1
        if left != 1:
            raise Copies
    return View(tuple(lengths), tuple(strides), view.offset)


def flatten(view: View, start: int = 0, end: int = -1) -> View:
    if not view.shape:
        return viewed(view, (1,))
    first, last = view.axis(start), view.axis(end)
    return viewed(view, (*view.shape[:first], math.prod(view.shape[first : last + 1]), *view.shape[last + 1 :]))


def unflatten(view: View, dim: int, sizes: Sequence[int]) -> View:
    at = view.axis(dim)
    known = math.prod(n for n in sizes if n != -1)
    lengths = [view.shape[at] // max(known, 1) if n == -1 else n for n in sizes]
    return viewed(view, (*view.shape[:at], *lengths, *view.shape[at + 1 :]))


def squeeze(view: View, dim: int | None = None) -> View:
    axes = range(len(view.shape)) if dim is None else (view.axis(dim),)
    kept = [i for i, n in enumerate(view.shape) if n != 1 or i not in axes]
    return permuted(view, kept)


def unsqueeze(view: View, dim: int) -> View:
    at = view.axis(dim, extra=1)
    step = view.strides[at] * view.shape[at] if at < len(view.shape) else 1
    return View((*view.shape[:at], 1, *view.shape[at:]), (*view.strides[:at], step, *view.strides[at:]), view.offset)


def permuted(view: View, order: Sequence[int]) -> View:
    """The dimensions of `order`, in that order."""
    axes = [view.axis(d) for d in order]
    return View(tuple(view.shape[i] for i in axes), tuple(view.strides[i] for i in axes), view.offset)


def transposed(view: View, one: int, other: int) -> View:
    order = list(range(len(view.shape)))
    a, b = view.axis(one), view.axis(other)
    order[a], order[b] = order[b], order[a]
    return permuted(view, order)


def moved(view: View, source: int, target: int) -> View:
    order = list(range(len(view.shape)))
    order.insert(view.axis(target), order.pop(view.axis(source)))
    return permuted(view, order)


def select(view: View, dim: int, index: int) -> View:
    at = view.axis(dim)
    if not -view.shape[at] <= index < view.shape[at]:
        raise IndexError(f"index {index} is out of bounds for dimension {at} with size {view.shape[at]}")
    kept = permuted(view, [i for i in range(len(view.shape)) if i != at])
    return replace(kept, offset=view.offset + index % view.shape[at] * view.strides[at])


def narrow(view: View, dim: int, start: int, length: int) -> View:
    at = view.axis(dim)
    if length < 0 or not 0 <= start <= view.shape[at] - length:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({view.shape[at]}).")
    shape = (*view.shape[:at], length, *view.shape[at + 1 :])
    return View(shape, view.strides, view.offset + start * view.strides[at])


def expand(view: View, sizes: Sequence[int]) -> View:
    added = len(sizes) - len(view.shape)
    shape, strides = list(sizes), [0] * added + list(view.strides)
    if added < 0:
        raise RuntimeError("expand: fewer sizes than dimensions")
    for i, length in enumerate(view.shape, added):
        if sizes[i] in (-1, length):
            shape[i] = length
        elif length == 1:
            strides[i] = 0
        else:
            raise RuntimeError(f"expand: size {sizes[i]} for a dimension of {length}")
    return View(tuple(shape), tuple(strides), view.offset)


def indexed(view: View, index: object) -> View:
    """What basic indexing gives: whole numbers, slices, None and `...`. Raises Copies for anything else."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if parts.count(Ellipsis) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > len(view.shape):
        raise IndexError(f"too many indices for tensor of dimension {len(view.shape)}")
    whole = [slice(None)] * (len(view.shape) - used)
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = whole
    dim = 0
    for part in parts:
        if part is None:
            view, dim = unsqueeze(view, dim), dim + 1
        elif isinstance(part, slice):
            start, stop, step = part.indices(view.shape[dim])
            if step < 1:
                raise ValueError("step must be greater than zero")
            shape = (*view.shape[:dim], len(range(start, stop, step)), *view.shape[dim + 1 :])
            strides = (*view.strides[:dim], view.strides[dim] * step, *view.strides[dim + 1 :])
            view, dim = View(shape, strides, view.offset + start * view.strides[dim]), dim + 1
        elif isinstance(part, int) and not isinstance(part, bool):
            view = select(view, dim, part)
        else:
            raise Copies
    return view
