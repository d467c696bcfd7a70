"""Comparison of outputs whose order within a segment is unspecified: both sides are put into one canonical order first.

Buffers that share a segments buffer are reordered together, row by row: one permutation must fit all of them, so that
an index and the row it names cannot come from different tokens.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from porter.verify.launches.buffers import HostBuffer, words_to_int


def segment_ranges(offsets: HostBuffer, rows_shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Half-open row ranges. `offsets` holds E+1 offsets into the rows, or E counts of rows that are [E, capacity, ...].

    Row numbers are those of the flattened leading dimensions. Offsets that are not ascending or out of range give the
    ranges as far as they make sense (the offsets buffer itself is compared as well, and fails there).
    """
    numbers = [int(x) for x in words_to_int(offsets.view().reshape(-1), offsets.dtype)]
    if len(rows_shape) >= 2 and rows_shape[0] == len(numbers):
        capacity = rows_shape[1]
        return [(e * capacity, e * capacity + min(max(n, 0), capacity)) for e, n in enumerate(numbers)]
    count = rows_shape[0] if rows_shape else 0
    inside = [min(max(n, 0), count) for n in numbers]
    return [(a, b) for a, b in itertools.pairwise(inside) if a < b]


def canonical_rows(buffers: Sequence[HostBuffer], offsets: HostBuffer) -> dict[str, np.ndarray]:
    """The words of each buffer (shape kept) with the rows of every segment in a canonical order, the same for all.

    Raises ValueError when the buffers do not have the same number of rows.
    """
    if not buffers:
        return {}
    leading = _leading(buffers[0], offsets)
    rows = [b.view().reshape(leading, -1) if b.view().size else b.view().reshape(leading, 0) for b in buffers]
    for buffer, found in zip(buffers, rows, strict=True):
        if _leading(buffer, offsets) != leading:
            raise ValueError(f"{buffer.name} has {len(found)} rows, {buffers[0].name} {leading}")
    order = np.arange(leading)
    keys = [np.ascontiguousarray(r) for r in rows]
    for start, stop in segment_ranges(offsets, buffers[0].shape):
        joined = np.concatenate([k[start:stop].view(np.uint8).reshape(stop - start, -1) for k in keys], axis=1)
        if joined.shape[1] == 0:
            continue
        packed = np.ascontiguousarray(joined).view(np.dtype((np.void, joined.shape[1]))).reshape(-1)
        order[start:stop] = start + np.argsort(packed, kind="stable")
    return {b.name: r[order].reshape(b.shape) for b, r in zip(buffers, rows, strict=True)}


def _leading(buffer: HostBuffer, offsets: HostBuffer) -> int:
    """Rows: [E, capacity, ...] with E counts flattens two dimensions, everything else one."""
    count = offsets.view().size
    if len(buffer.shape) >= 2 and buffer.shape[0] == count:
        return buffer.shape[0] * buffer.shape[1]
    return buffer.shape[0] if buffer.shape else 1


def groups(buffers: Mapping[str, HostBuffer]) -> dict[str, list[HostBuffer]]:
    """Buffers to be compared per segment, by the name of their segments buffer."""
    found: dict[str, list[HostBuffer]] = {}
    for buffer in buffers.values():
        if buffer.spec.compare == "set-per-segment":
            found.setdefault(buffer.spec.segments, []).append(buffer)
    return found
