"""Where a port first parts from its original: both run with taps, their steps matched through the line map.

Steps of one kind at one CUDA line are compared thread by thread, in order. The earliest in the original's order that
differs by more than rounding is named: it is where the port is wrong, or the statement that uses what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from porter.model import LineMapEntry
from porter.provenance.line_map import cuda_span
from porter.verify.checks.tapped_lines import Lines
from porter.verify.emulator import Event, Module, Taps

ROUNDING = 2.0**-16  # relative difference of float32 values that another order of sums explains
_COUNTED = ("shfl", "redux", "barrier", "load.global", "store.global", "store.shared", "atomic.global", "atomic.shared")
_NAMES = {
    "shfl": "a shuffle", "redux": "a warp reduction", "barrier": "a barrier", "load.global": "a load",
    "load.shared": "a load of shared memory", "store.global": "a store", "store.shared": "a store to shared memory",
    "atomic.global": "an atomic", "atomic.shared": "an atomic on shared memory", "ex2": "an exponential",
    "rsqrt": "a reciprocal square root", "cvt": "a conversion", "fma": "a multiply-add", "mul": "a multiplication",
    "add": "an addition", "sub": "a subtraction", "div": "a division", "rcp": "a reciprocal", "max": "a maximum",
    "min": "a minimum", "lg2": "a logarithm", "sqrt": "a square root", "abs": "an absolute value",
}  # fmt: skip


@dataclass(frozen=True)
class Divergence:
    """The first place where two launches part. Lines are 0 where they are not known; `block` and `thread` linear."""

    kind: str
    cuda_line: int
    port_line: int
    block: int
    thread: int
    message: str


@dataclass(frozen=True)
class Side:
    """One kernel's record: its taps, its module, the file that its lines are in."""

    taps: Taps
    module: Module
    file: str


@dataclass
class _Table:
    """All values of one kind at one line: sorted by thread, then by time."""

    thread: np.ndarray
    ordinal: np.ndarray  # of the value within its thread
    time: np.ndarray
    value: np.ndarray
    place: np.ndarray
    has_values: bool
    has_places: bool
    bits: int


@dataclass(frozen=True)
class _Candidate:
    time: float
    key: tuple[int, str]
    thread: int
    message: str


_Tables = dict[tuple[int, str], _Table]  # by CUDA line and kind


def first_divergence(
    original: Side, port: Side, line_map: tuple[LineMapEntry, ...], block_threads: int
) -> Divergence | None:
    """The earliest step at which the port differs from its original; None when none was found.

    `block_threads`: threads of a block, padded to whole warps.
    """
    port_lines: dict[tuple[int, str], int] = {}
    theirs = _tables(port, lambda line: cuda_span(line_map, line).line if line else 0, port_lines)
    spans = _spans(line_map)
    ours = _tables(original, lambda line: _canonical(spans, line), {})
    for tolerance in (ROUNDING, 0.0):
        found = sorted(_candidates(ours, theirs, tolerance), key=lambda c: c.time)
        if found:
            first = found[0]
            line, kind = first.key
            at = port_lines.get(first.key) or next((e.line for e in line_map if e.span.line == line), 0)
            block, thread = divmod(first.thread, block_threads)
            return Divergence(kind, line, at, block, thread, first.message)
    return None


# ---------------------------------------------------------------- lines


def _spans(line_map: Sequence[LineMapEntry]) -> list[tuple[int, int]]:
    return sorted({(e.span.line, max(e.span.end_line, e.span.line)) for e in line_map if e.span.line})


def _canonical(spans: list[tuple[int, int]], line: int) -> int:
    """The first line of the shortest mapped span that covers a CUDA line; the line itself where none does."""
    covering = [(end - start, -start) for start, end in spans if start <= line <= end]
    return -min(covering)[1] if covering and line else (line if spans else 0)


# ---------------------------------------------------------------- tables


def _tables(side: Side, line_of: Callable[[int], int], seen: dict[tuple[int, str], int]) -> _Tables:
    lines = Lines(side.module, side.file)
    grouped: dict[tuple[int, str], list[tuple[int, Event]]] = {}
    for time, event in enumerate(side.taps.events):
        own = lines.of(event.source)
        key = (line_of(own), event.kind)
        seen.setdefault(key, own)
        grouped.setdefault(key, []).append((time, event))
    return {key: _table(events) for key, events in grouped.items()}


def _table(events: list[tuple[int, Event]]) -> _Table:
    memory = events[0][1].places is not None
    bits = {e.bits for _, e in events}
    unit = min(16, *bits) if memory else 0
    columns: list[tuple[np.ndarray, ...]] = []
    for when, e in events:
        values, places = _units(e, unit)
        count = values.shape[1]
        threads = np.repeat(e.threads, count)
        column = np.tile(np.arange(count), e.threads.size)
        columns.append((threads, np.full(threads.size, when), column, values.reshape(-1), places.reshape(-1)))
    thread, time, within, value, place = (np.concatenate(c) for c in zip(*columns, strict=True))
    order = np.lexsort((within, time, thread))
    thread, time, value, place = thread[order], time[order], value[order], place[order]
    starts = np.r_[0, np.flatnonzero(np.diff(thread)) + 1]
    sizes = np.diff(np.r_[starts, thread.size])
    ordinal = np.arange(thread.size) - np.repeat(starts, sizes)
    shown = any(e.values is not None for _, e in events)
    width = unit if memory else max(bits)
    return _Table(thread, ordinal, time, value, place, shown, memory, width)


def _units(e: Event, unit: int) -> tuple[np.ndarray, np.ndarray]:
    """Values and places of an event, memory cut into pieces of `unit` bits so that vector widths do not matter."""
    n = e.threads.size
    if e.places is None:
        values = e.values if e.values is not None else np.zeros((n, 1), np.uint64)
        return values, np.zeros(values.shape, np.int64)
    parts = e.bits // unit
    offsets = np.arange(parts)
    places = (e.places[:, :, None] + offsets * (unit // 8)).reshape(n, -1)
    if e.values is None or e.values.shape[1] != e.places.shape[1]:
        return np.zeros(places.shape, np.uint64), places
    mask = np.uint64((1 << unit) - 1)
    values = (e.values[:, :, None] >> (offsets * unit).astype(np.uint64)) & mask
    return values.reshape(n, -1), places


# ---------------------------------------------------------------- comparison


def _candidates(ours: _Tables, theirs: _Tables, tolerance: float) -> Iterator[_Candidate]:
    uneven = {kind for kind in _COUNTED if _executions(ours, kind) != _executions(theirs, kind)}
    for key, a in ours.items():
        _, kind = key
        b = theirs.get(key)
        if b is None:
            if kind in uneven:
                yield _Candidate(float(a.time[0]), key, int(a.thread[0]), f"{_name(kind)} that the port does not have")
            continue
        yield from _values(key, a, b, tolerance)
        if kind in uneven:
            yield from _counts(key, a, b)


def _executions(tables: _Tables, kind: str) -> int:
    return sum(t.thread.size * t.bits if t.has_places else t.thread.size for (_, k), t in tables.items() if k == kind)


def _values(key: tuple[int, str], a: _Table, b: _Table, tolerance: float) -> Iterator[_Candidate]:
    """The earliest pair of values, or of places, that differs."""
    kind = key[1]
    if a.bits != b.bits:
        return
    loads = kind == "load.global"
    if loads:  # one statement may load its operands in any order
        a, b = _by_place(a), _by_place(b)
    i, j = _paired(a, b)
    if loads or (kind not in _COUNTED and not kind.startswith("load")):  # only where both sides do as much of it
        even = _even(a, b)
        keep = np.isin(a.thread[i], even)
        i, j = i[keep], j[keep]
    bad = np.zeros(i.size, bool)
    if a.has_values and b.has_values and not (kind == "load.global" or kind.startswith("atomic")):
        bad = _different(a.value[i], b.value[j], a.bits, tolerance if kind != "store.global" else 0.0)
    moved = np.zeros(i.size, bool)
    if a.has_places and "global" in kind:
        moved = a.place[i] != b.place[j]
    if not (bad | moved).any():
        return
    where = np.flatnonzero(bad | moved)
    k = int(where[np.argmin(a.time[i[where]])])
    x, y = i[k], j[k]
    if moved[k]:
        message = f"{_name(kind)} of {_offset(a.place[x])} in the original, of {_offset(b.place[y])} in the port"
    else:
        message = (
            f"{_name(kind)} gives {_show(a.value[x], a.bits)} in the original, {_show(b.value[y], b.bits)} in the port"
        )
    yield _Candidate(float(a.time[x]), key, int(a.thread[x]), message)


def _by_place(t: _Table) -> _Table:
    """A table whose values of a thread are in the order of their places."""
    order = np.lexsort((t.place, t.thread))
    return replace(t, thread=t.thread[order], time=t.time[order], value=t.value[order], place=t.place[order])


def _counts(key: tuple[int, str], a: _Table, b: _Table) -> Iterator[_Candidate]:
    """The earliest thread that does something more often on one side."""
    (s, n), (t, m) = (np.unique(x.thread, return_counts=True) for x in (a, b))
    counts = dict(zip(t.tolist(), m.tolist(), strict=True))
    best: _Candidate | None = None
    early = key[1].startswith("load")  # compilers load ahead of the guard: more loads are no mistake
    for thread, count in zip(s.tolist(), n.tolist(), strict=True):
        other = counts.pop(thread, 0)
        if other == count or (other > count and early):
            continue
        at = int(np.searchsorted(a.thread, thread)) + min(other, count - 1)
        time = float(a.time[at]) + (0.5 if other > count else 0.0)
        if best is None or time < best.time:
            more = "fewer" if other < count else "more"
            text = f"{_name(key[1])} that a thread of the port makes {more} times ({other} for {count})"
            best = _Candidate(time, key, thread, text)
    if best is None and counts and not early:
        thread = min(counts)
        best = _Candidate(float(a.time[-1]) + 0.5, key, thread, f"{_name(key[1])} by threads that make none originally")
    if best is not None:
        yield best


def _paired(a: _Table, b: _Table) -> tuple[np.ndarray, np.ndarray]:
    """Indices of values with the same thread and ordinal."""
    _, i, j = np.intersect1d(
        a.thread.astype(np.int64) << 28 | a.ordinal, b.thread.astype(np.int64) << 28 | b.ordinal,
        assume_unique=True, return_indices=True,
    )  # fmt: skip
    return i, j


def _even(a: _Table, b: _Table) -> np.ndarray:
    (s, n), (t, m) = (np.unique(x.thread, return_counts=True) for x in (a, b))
    both, i, j = np.intersect1d(s, t, assume_unique=True, return_indices=True)
    return both[n[i] == m[j]]


def _different(x: np.ndarray, y: np.ndarray, bits: int, tolerance: float) -> np.ndarray:
    differ = x != y
    if bits == 16 and tolerance:
        sign = np.uint64(0x8000)
        ordered = [np.where(v & sign, -(v & ~sign).astype(np.int64), v.astype(np.int64)) for v in (x, y)]
        return differ & (np.abs(ordered[0] - ordered[1]) > 1)
    if bits != 32:
        return differ
    a, b = (v.astype(np.uint32).view(np.float32).astype(np.float64) for v in (x, y))
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.maximum(np.abs(a), np.abs(b))
        near = np.abs(a - b) <= tolerance * size
    ordinary = np.isfinite(a) & np.isfinite(b) & (size >= 2.0**-100)  # small integers look like denormals
    same = (np.isnan(a) & np.isnan(b)) | ((a == 0.0) & (b == 0.0)) | (ordinary & near)
    return differ & ~same


def _name(kind: str) -> str:
    return _NAMES.get(kind, kind)


def _offset(place: np.ndarray | int) -> str:
    return f"byte {int(place) & ((1 << 40) - 1)}"


def _show(bits: np.ndarray | int, width: int) -> str:
    word = int(bits)
    if width == 32:
        number = float(np.array([word], np.uint32).view(np.float32)[0])
        return f"{number:.9g}" if 2.0**-100 < abs(number) < 2.0**100 or word in (0, 1 << 31) else f"0x{word:08x}"
    return f"0x{word:0{width // 4}x}"


def source_line(path: str | Path, line: int) -> str:
    """One line of a file without its surrounding space; "" where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()[line - 1].strip() if line > 0 else ""
    except (OSError, UnicodeDecodeError, IndexError):
        return ""
