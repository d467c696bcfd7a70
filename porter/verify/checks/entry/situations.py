"""Situations in which a torch-facing function is called: sizes, scalars, strides, addresses, wrong operands.

Stand-ins have no memory, so sizes may be large. What is tried follows from the case and the port's text alone, so that
the answers can be kept; it is drawn with a hash of the port as the seed, which a port cannot aim at.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from porter.case import expressions
from porter.case.expressions import ExprError, Value
from porter.case.reader import BufferSpec, Case, CaseInstance, Point
from porter.ir import SCALAR_BYTES
from porter.model import PorterError
from porter.verify.checks.entry.functions import TorchFacing, is_given
from porter.verify.launches.derived import point_of

LISTED = 24  # points of the case, an instance
NEAR, FAR = 64, 40  # points at the port's constants, and at powers of two
STRIDED = 6
PLACES = 3  # points at which addresses are moved
WRONG = 2  # points at which operands are wrong
MOST_ELEMENTS = 1 << 42
WIDTHS = (7, 8, 15, 16, 31, 32, 34)  # powers of two at which narrower numbers end; the last as vectors of 8
POWERS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 13, 14, 16, 17, 20, 24, 28, 30)


@dataclass(frozen=True)
class Operand:
    """How one operand differs from what the point says; None: it does not. `offset`: bytes off a multiple of 256."""

    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    offset: int = 0

    def __str__(self) -> str:
        parts = [f"dtype {self.dtype}"] if self.dtype else []
        parts += [f"shape {list(self.shape)}"] if self.shape else []
        parts += [f"strides {list(self.strides)}"] if self.strides else []
        parts += [f"an address {self.offset} bytes past a multiple of 256"] if self.offset else []
        return " and ".join(parts)


@dataclass(frozen=True)
class Situation:
    """What a function is called with: base sizes, one expression a scalar, null operands, operands that differ.

    `listed`: the case has this point, so the function has to take it.
    """

    instance: int
    sizes: Mapping[str, int]
    scalars: Mapping[str, str]
    null: frozenset[str]
    listed: bool
    operands: Mapping[str, Operand] = field(default_factory=dict)
    varied: str = ""  # the scalar that has a value of its own here

    def point(self, case: Case, values: Mapping[str, Value]) -> Point | None:
        """The point for an instance's values; None where an expression does not evaluate."""
        try:
            return case.point_with(self.sizes, self.scalars, values, self.null)
        except (PorterError, ExprError):
            return None


def situations(
    case: Case, number: int, values: Mapping[str, Value], function: TorchFacing, seed: str
) -> list[Situation]:
    """What to call a function with for one instance of the case, `values` its template values."""
    rng = random.Random(f"{seed} {function.name} {number}")
    instance = case.instances[number]
    points = case.instance_points(instance, values, LISTED, rng.randrange(1 << 31))
    if not points:
        return []
    listed = [
        Situation(number, {n: p.sizes[n] for n in case.base_sizes}, _texts(case, p, values), p.null, True)
        for p in points
    ]
    full = [s for s, p in zip(listed, points, strict=True) if all(_lengths(case, p))] or listed
    full.sort(key=lambda s: -min(s.sizes.values(), default=0))  # no size that is 1, where there is a choice
    found = list(listed)
    found += _beyond(case, instance, values, function, listed, rng)
    found += _scalars(case, function, full, values, rng)
    found += _strides(case, instance, values, full, rng)
    if any(i.when for i in case.instances):
        found += _conditions(case, values, function, full[:PLACES])
    if any(i.when and expressions.uses_aligned(i.when) for i in case.instances):
        found += _misaligned(case, values, full[:PLACES])
    found += _wrong(case, values, function, full[:WRONG])
    return found


def _lengths(case: Case, point: Point) -> list[int]:
    return [n for b in case.buffers for n in point.shapes[b.name]]


def _texts(case: Case, point: Point, values: Mapping[str, Value]) -> dict[str, str]:
    """Which of the case's expressions gave a point its scalars."""
    names = point.names(values)
    found = {}
    for name, texts in case.scalars:
        fits = [t for t in texts if len(texts) == 1 or expressions.evaluate(t, names) == point.scalars[name]]
        found[name] = fits[0] if fits else str(point.scalars[name])
    return found


def _beyond(
    case: Case,
    instance: CaseInstance,
    values: Mapping[str, Value],
    function: TorchFacing,
    listed: Sequence[Situation],
    rng: random.Random,
) -> list[Situation]:
    """One size moved: to powers of two and beside them, to the port's own constants and beside them, and always to
    where narrower numbers end."""
    near = {c + d for c in function.constants if c < 1 << 31 for d in (-1, 0, 1)}
    far = {(1 << p) + d for p in POWERS for d in (-1, 0, 1)}
    found: list[Situation] = []
    ends = {1 << p for p in WIDTHS}
    for sizes, most in ((near, NEAR), (far, FAR), (ends, len(ends) * len(case.base_sizes))):
        wanted = [(name, v) for name in case.base_sizes for v in sorted(sizes)]
        rng.shuffle(wanted)
        made = 0
        for name, value in wanted:
            start = rng.choice(listed)
            for size in dict.fromkeys((value, value // 8 * 8, value // 128 * 128)):
                moved = replace(start, sizes={**start.sizes, name: size}, listed=False)
                if (at := _at(case, instance, values, moved)) is not None:
                    found.append(at)
                    made += 1
                    break
            if made == most:
                break
    return found


def _at(case: Case, instance: CaseInstance, values: Mapping[str, Value], wanted: Situation) -> Situation | None:
    """The situation if the case's instance is for it, and its buffers are of a size that memory has."""
    if min(wanted.sizes.values(), default=0) < 0:
        return None
    point = point_of(case, instance, values, wanted.sizes, wanted.scalars, wanted.null)
    return wanted if point is not None and point.elements < MOST_ELEMENTS else None


def _scalars(
    case: Case, function: TorchFacing, full: Sequence[Situation], values: Mapping[str, Value], rng: random.Random
) -> Iterator[Situation]:
    """Each scalar that only the caller knows, at values that the case does not list."""
    shaped = shaping(case)
    for name, _ in case.scalars:
        if not is_given(case, name) or not (function.takes(name) or name in shaped):
            continue
        for start in full[:2]:
            value = expressions.evaluate(start.scalars[name], {})
            for other in _others(value, rng):
                yield replace(start, scalars={**start.scalars, name: repr(other)}, listed=False, varied=name)


def shaping(case: Case) -> set[str]:
    """Names that the shape or the strides of a buffer hang on."""
    texts = [str(t) for b in case.buffers for t in (*b.shape, *(b.strides or ()))]
    texts += [v for _, v in case.sizes if isinstance(v, str)]
    return {n for text in texts for n in expressions.names_in(text)}


def _others(value: Value, rng: random.Random) -> list[Value]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, max(2 * value + 1, 3)]
    if isinstance(value, float):
        return [abs(value) * rng.uniform(1.25, 3.0) + rng.uniform(1e-7, 1e-6), abs(value) / rng.uniform(1.5, 7.0)]
    return []


def _strides(
    case: Case, instance: CaseInstance, values: Mapping[str, Value], full: Sequence[Situation], rng: random.Random
) -> Iterator[Situation]:
    """Every stride that is a scalar of the case, larger than the row, each by another amount; also beyond 32 bits."""
    names = stride_scalars(case)
    if not names:
        return
    far = {n: str((1 << 31) + 4096 * rng.randint(1, 9)) for n in names}
    apart = (_at(case, instance, values, replace(s, scalars={**s.scalars, **far}, listed=False)) for s in full)
    yield from islice((s for s in apart if s is not None), 1)
    made = 0
    for start in full:
        point = start.point(case, values)
        if point is None or made >= STRIDED:
            return
        for step in (8, 128, 1):
            strides = {n: str(int(point.scalars[n]) + step * rng.randint(1, 9)) for n in names}
            wanted = replace(start, scalars={**start.scalars, **strides}, listed=False)
            if (found := _at(case, instance, values, wanted)) is not None:
                made += 1
                yield found


def stride_scalars(case: Case) -> list[str]:
    """Scalars of the case that are strides of a buffer."""
    scalars = dict(case.scalars)
    return list(dict.fromkeys(t for b in case.buffers for s in b.strides or () if (t := str(s).strip()) in scalars))


def _conditions(
    case: Case, values: Mapping[str, Value], function: TorchFacing, starts: Sequence[Situation]
) -> Iterator[Situation]:
    """One size or stride moved by itself, also to the numbers of the conditions, so that one no longer holds: another
    instance is for it, or none."""
    strides = stride_scalars(case)
    numbers = {int(n) for i in case.instances for n in re.findall(r"\b\d+\b", i.when or "")} | function.constants
    bounds = sorted({n + d for n in numbers if 1 < n < 1 << 24 for d in (-1, 0, 1)})
    for start in starts:
        point = start.point(case, values)
        if point is None:
            continue
        moved = [
            replace(start, sizes={**start.sizes, name: size}, listed=False)
            for name, v in start.sizes.items()
            for size in dict.fromkeys((v + 1, v - 1, v + 4, v // 2, 2 * v, *bounds))
            if size > 0 and size != v
        ]
        moved += [
            replace(start, scalars={**start.scalars, name: str(int(point.scalars[name]) + step)}, listed=False)
            for name in strides
            for step in (1, 2, 4, 8)
        ]
        for situation in moved:
            at = situation.point(case, values)
            if at is not None and at.elements < MOST_ELEMENTS and not any(n < 0 for n in at.sizes.values()):
                yield situation


def _misaligned(case: Case, values: Mapping[str, Value], starts: Sequence[Situation]) -> Iterator[Situation]:
    """Each buffer alone off its alignment, by one element and by more."""
    for start in starts:
        for buffer in case.buffers:
            size = SCALAR_BYTES[buffer.dtype_at(values)]
            for offset in sorted({size, *(n for n in (4, 8) if n > size)}):
                yield replace(start, operands={buffer.name: Operand(offset=offset)})


DTYPES = ("bool", "i8", "u8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "e4m3", "e5m2")  # that torch has


def _wrong(
    case: Case, values: Mapping[str, Value], function: TorchFacing, starts: Sequence[Situation]
) -> Iterator[Situation]:
    """One operand of another dtype, of strides the kernel does not know, one element short; all of another dtype."""
    for start in starts:
        point = start.point(case, values)
        if point is None:
            continue
        for buffer in case.buffers:
            shape, strides = point.shapes[buffer.name], point.strides[buffer.name]
            if not function.takes(buffer.name) or buffer.name in start.null or 0 in shape:
                continue
            wrong = [Operand(dtype=d) for d in DTYPES if d != buffer.dtype_at(values)]
            wrong += [Operand(strides=s) for s in _gaps(buffer, shape, strides)]
            for at in _dependent(case, function, buffer):
                short = (*shape[:at], shape[at] - 1, *shape[at + 1 :])
                if shape[at] > 1 and not _is_another_launch(case, values, function, start, buffer, at):
                    wrong.append(Operand(shape=short))
            for operand in wrong:
                yield replace(start, operands={buffer.name: operand}, listed=False)
        for together in _of_one_type(case, function, start):
            for dtype in DTYPES:
                if dtype != case.buffer(together[0]).dtype_at(values):
                    yield replace(start, operands={n: Operand(dtype=dtype) for n in together}, listed=False)


def _is_another_launch(
    case: Case, values: Mapping[str, Value], function: TorchFacing, start: Situation, buffer: BufferSpec, at: int
) -> bool:
    """Whether a buffer one element shorter is what a launch of a smaller size takes, beside the others as they are.

    4095 elements packed into bytes need as many bytes as 4096.
    """
    size = str(buffer.shape[at]).strip()
    if size not in start.sizes:
        return False
    smaller = replace(start, sizes={**start.sizes, size: start.sizes[size] - 1})
    here, there = start.point(case, values), smaller.point(case, values)
    others = [b.name for b in case.buffers if b.name != buffer.name and function.takes(b.name)]
    return here is not None and there is not None and all(here.shapes[n] == there.shapes[n] for n in others)


def _of_one_type(case: Case, function: TorchFacing, start: Situation) -> list[list[str]]:
    """Operands whose dtype is the same template parameter: checked against each other, they may all be wrong."""
    found: dict[str, list[str]] = {}
    for buffer in case.buffers:
        if buffer.dtype not in SCALAR_BYTES and function.takes(buffer.name) and buffer.name not in start.null:
            found.setdefault(buffer.dtype, []).append(buffer.name)
    return list(found.values())


def _gaps(buffer: BufferSpec, shape: tuple[int, ...], strides: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Strides that the kernel is not told of."""
    if buffer.strides is None and len(shape) > 1 and shape[0] > 1 and math.prod(shape[1:]) > 0:
        yield (strides[0] + 16, *strides[1:])
    if shape and shape[-1] > 1 and (buffer.strides is None or str(buffer.strides[-1]).strip() == "1"):
        yield tuple(2 * s for s in strides)


def _dependent(case: Case, function: TorchFacing, buffer: BufferSpec) -> list[int]:
    """Dimensions of a buffer whose length other operands say too."""

    def bases(text: object) -> set[str]:
        derived = {n: v for n, v in case.sizes if isinstance(v, str)}
        names, todo = set(), [str(text)]
        while todo:
            for n in expressions.names_in(todo.pop()):
                if n in derived and n not in names:
                    todo.append(derived[n])
                names.add(n)
        return {n for n in names if n not in derived}

    known = {p.operand for p in function.parameters if p.kind in ("size", "scalar")}
    other = [d for b in case.buffers if b.name != buffer.name and not b.optional and function.takes(b.name)
             for d in b.shape]  # fmt: skip
    found = []
    for at, dim in enumerate(buffer.shape):
        others = set().union(
            known, *(bases(d) for d in other), *(bases(d) for i, d in enumerate(buffer.shape) if i != at)
        )
        if bases(dim) and bases(dim) <= others:
            found.append(at)
    return found
