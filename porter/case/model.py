"""A case in memory: its buffers, sizes, scalars and launch, and the concrete points they give. Read by
porter.case.reader."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from porter import codes
from porter.case import expressions
from porter.case.expressions import ExprError, Value
from porter.case.toml_lines import diagnostic_at
from porter.cxx.types import scalar_name
from porter.model import Instance, PorterError

SCHEMA = 1
ROLES = ("in", "out", "inout", "scratch")
COMPARES = ("exact", "close", "sum", "set-per-segment", "none")
DISTRIBUTIONS = (
    "normal", "positive", "uniform", "randint", "logits", "ids", "counts", "offsets", "permutation", "positions",
    "cos_sin", "scale", "bits", "bool", "arange", "zeros", "ones",
)  # fmt: skip
FLOAT_NAMES = ("f16", "bf16", "f32", "f64")
CODE_NAMES = ("e4m3", "e5m2", "e8m0", "e2m1")
MAX_POINTS = 20_000  # more combinations than this are sampled
MOST_OF_A_NUMBER = 1 << 62  # what a shape, a stride or a launch may be
MOST_ELEMENTS = 1 << 36  # of all buffers at a point
MAX_CANDIDATES = 1_000  # when only a few are wanted

TOP_KEYS = ("schema", "kernel", "source", "derived", "only_shapes", "instances", "sizes", "shapes", "performance",
        "buffers", "symbols", "scalars", "launch", "reference", "tolerance", "original")  # fmt: skip
BUFFER_KEYS = ("name", "dtype", "shape", "strides", "role", "dist", "low", "high", "init", "optional", "compare",
           "compare_reason", "segments", "nonfinite")  # fmt: skip
SYMBOL_KEYS = ("name", "dtype", "shape", "role", "dist", "low", "high", "values", "members", "initial", "compare",
           "compare_reason", "nonfinite")  # fmt: skip
SYMBOL_ROLES = ("in", "out", "inout")
LAUNCH_KEYS = ("grid", "block", "smem", "cooperative", "cluster")
ORIGINAL_KEYS = ("violations", "reason")
VIOLATIONS = (  # as the emulator names them
    "out-of-bounds", "misaligned", "uninitialised-read", "read-only-write", "shared-race", "global-race",
    "missing-fence", "early-access", "stale-read", "lockstep", "absent-lane", "skipped-lane", "divergent-barrier",
    "divergent-sync", "deadlock", "trap", "assert", "budget",
)  # fmt: skip
TOLERANCE_KEYS = ("ulp", "bit_equal", "rtol", "reduction", "reason")


@dataclass(frozen=True)
class CaseInstance:
    """One specialisation to verify: template arguments as C++ text, and when the torch-facing function may take it."""

    args: tuple[str, ...]
    when: str = ""  # expression; "" holds always

    @property
    def instance(self) -> Instance:
        return Instance(self.args)


@dataclass(frozen=True)
class Member:
    """A scalar, or an array of scalars, in a struct: where it lies."""

    path: str  # "scale", "inner.x"
    dtype: str
    offset: int  # bytes
    count: int


@dataclass(frozen=True)
class BufferSpec:
    """One pointer parameter. Shapes and strides are expressions; strides count elements, None means contiguous.

    A `symbol` is a `__constant__` or `__device__` variable of the source by its name there, which the original has in
    its module and the port takes as the parameter `name`. dtype and shape are "" and () until porter has seen its
    declaration.
    """

    name: str
    dtype: str  # an ir scalar name, or the name of a template type parameter
    shape: tuple[str, ...]
    strides: tuple[str, ...] | None = None
    role: str = "in"
    dist: str = ""
    low: str | None = None
    high: str | None = None
    init: float | int | None = None
    optional: bool = False
    compare: str = ""
    compare_reason: str = ""
    segments: str = ""
    nonfinite: bool = True
    line: int = field(default=0, compare=False)
    symbol: str = ""
    values: tuple[str, ...] | None = None  # expressions, one an element; instead of a distribution
    members: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of a struct: path and expressions
    layout: tuple[Member, ...] = ()  # of a struct, from its declaration
    declaration: str = ""  # the symbol's whole name there
    initialised: bool = False  # its declaration gives values
    declared: bool = False  # it starts with what its declaration says
    image: bytes | None = field(default=None, repr=False)  # those bytes, once the original has been compiled

    @property
    def where(self) -> tuple[str, str]:
        """Its table in the case file, as `fail` takes it."""
        return ("symbols", self.symbol) if self.symbol else ("buffers", self.name)

    @property
    def is_fixed(self) -> bool:
        """Whether the case, or the declaration, gives the values themselves, not a distribution."""
        return self.values is not None or bool(self.members) or self.declared

    @property
    def is_read(self) -> bool:
        return self.role in ("in", "inout")

    @property
    def is_compared(self) -> bool:
        return self.role in ("out", "inout") and self.compare != "none"

    def dtype_at(self, values: Mapping[str, Value]) -> str:
        """The ir scalar name for the template arguments `values`; raises ExprError when it names none."""
        bound = values.get(self.dtype, self.dtype)
        name = scalar_name(bound) if isinstance(bound, str) else None
        if name is None:
            raise ExprError(f"buffer {self.name}: {self.dtype} is neither a dtype nor a template type parameter")
        return name

    def compare_at(self, values: Mapping[str, Value]) -> str:
        """The comparison that applies: as given, else close for floats and exact for integers and quantised codes."""
        return self.compare or ("close" if self.dtype_at(values) in FLOAT_NAMES else "exact")


@dataclass(frozen=True)
class LaunchSpec:
    """Launch expressions over sizes, scalars and template values; smem in bytes."""

    grid: tuple[str, str, str]
    block: tuple[str, str, str]
    smem: str = "0"
    cooperative: bool = False
    cluster: tuple[str, str, str] = ("1", "1", "1")


@dataclass(frozen=True)
class LaunchShape:
    """A concrete launch."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    smem: int = 0
    cooperative: bool = False
    cluster: tuple[int, int, int] = (1, 1, 1)
    use_pdl: bool = False  # starts while the kernel before still runs
    only: tuple[int, ...] = ()  # linear numbers of the blocks that are run; (): all

    @property
    def is_empty(self) -> bool:
        """CUDA refuses a launch without blocks: launchers return before it."""
        return 0 in self.grid


@dataclass(frozen=True)
class ToleranceSpec:
    """What a case asks of one buffer instead of the derived tolerance; None: derived."""

    ulp: float | None = None
    bit_equal: float | None = None
    rtol: float | None = None
    reduction: str | None = None
    reason: str = ""


def short(value: int | float | bool) -> str:
    """A number as people write it: whole ones in full, others with six digits."""
    return f"{value:d}" if isinstance(value, int) else f"{value:.0f}" if _is_long(value) else f"{value:g}"


def _is_long(value: float) -> bool:
    return value.is_integer() and 1e6 <= abs(value) < 1e15


@dataclass(frozen=True)
class Point:
    """One concrete set of sizes and scalars, with the shape and element strides of every buffer at them."""

    sizes: dict[str, int]
    scalars: dict[str, int | float | bool]
    shapes: dict[str, tuple[int, ...]]
    strides: dict[str, tuple[int, ...]]
    null: frozenset[str] = frozenset()  # optional buffers that are passed as null pointers

    def __str__(self) -> str:
        parts = [f"{k}={v}" for k, v in self.sizes.items()]
        parts += [f"{k}={short(v)}" for k, v in self.scalars.items() if self.sizes.get(k) != v]
        parts += [f"{k}=null" for k in sorted(self.null)]
        return " ".join(parts)

    def names(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """The names an expression of the case may use at this point."""
        return {**values, **self.sizes, **self.scalars}

    @property
    def elements(self) -> int:
        """How many buffer elements the point spans: the measure of its cost."""
        return sum(span_of(self.shapes[k], self.strides[k]) for k in self.shapes)


def span_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to one past the last of a strided array (0 when it is empty); strides >= 0."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major element strides."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)


@dataclass(frozen=True)
class Case:
    """A case file as read. `text` is its TOML; `path` the file (or the source, for one read from a host launcher)."""

    path: Path
    kernel: str
    source: str
    instances: tuple[CaseInstance, ...]
    sizes: tuple[tuple[str, tuple[int, ...] | str], ...]  # values, or the expression of a derived size
    buffers: tuple[BufferSpec, ...]
    scalars: tuple[tuple[str, tuple[str, ...]], ...]  # expressions; several are variants
    launch: LaunchSpec
    shapes: tuple[dict[str, int], ...] = ()
    only_shapes: bool = False
    performance: tuple[dict[str, int], ...] = ()  # sizes at which it is timed; (): its largest points
    reference: str = ""
    tolerance: tuple[tuple[str, ToleranceSpec], ...] = ()
    fixed_scalars: frozenset[str] = frozenset()  # never varied beyond the values that the case lists
    known_violations: tuple[str, ...] = ()  # kinds of forbidden accesses that the original is known to make
    known_reason: str = ""
    derived: str = ""  # what porter derived it from ("k.cu:7"), until a person has confirmed it
    text: str = field(default="", repr=False, compare=False)

    def buffer(self, name: str) -> BufferSpec:
        return next(b for b in self.buffers if b.name == name)

    @cached_property
    def base_sizes(self) -> tuple[str, ...]:
        return tuple(n for n, v in self.sizes if not isinstance(v, str))

    @property
    def reference_path(self) -> Path | None:
        """The file of a reference that is written as `file.py:function`; None for one of porter's own, or none."""
        file, colon, _ = self.reference.rpartition(":")
        return self.path.parent / file if colon and file.endswith(".py") else None

    @property
    def source_path(self) -> Path:
        return self.path.parent / self.source

    def fail(self, code: str, message: str, *where: str, help: str = "") -> NoReturn:
        """Raise PorterError at a key of the case file (a path like "launch", "grid")."""
        raise PorterError(diagnostic_at(self.path, self.text, code, message, where, help))

    # ---- concrete points

    def points(self, limit: int | None = None, seed: int = 0, values: Mapping[str, Value] | None = None) -> list[Point]:
        """Concrete points, cheapest first: every combination of sizes and scalar variants, and the explicit shapes.

        `values` are the template values of an instance (`instance_values`). With `limit`, a choice by `seed` that
        covers each value of each size and each scalar variant once as far as it fits; explicit shapes come before
        combinations. Raises PorterError where an expression does not evaluate.
        """
        points = self._all_points(seed, values or {}, MAX_POINTS if limit is None else MAX_CANDIDATES)
        return self.choose(points, limit, seed)

    def instance_points(
        self, instance: CaseInstance, values: Mapping[str, Value], limit: int | None = None, seed: int = 0
    ) -> list[Point]:
        """The points at which the instance's `when` holds."""
        points = self._all_points(seed, values, MAX_POINTS if limit is None else MAX_CANDIDATES)
        if instance.when:
            try:
                points = [p for p in points if expressions.evaluate(instance.when, p.names(values))]
            except ExprError as error:
                self.fail(codes.CASE_EXPRESSION, str(error), "instances", "when")
        return self.choose(points, limit, seed)

    def _all_points(self, seed: int, values: Mapping[str, Value], most: int) -> list[Point]:
        points = [self._point(sizes, scalars, dict(values)) for sizes, scalars in self._combinations(seed, most)]
        optional = frozenset(b.name for b in self.buffers if b.optional)
        if optional:
            points += [replace(p, null=optional) for p in points]
        return sorted(points, key=lambda p: p.elements)

    def with_scalar(self, point: Point, name: str, value: int, values: Mapping[str, Value]) -> Point:
        """The point with another value of one scalar, strides and shapes following."""
        scalars = {k: str(value) if k == name else str(v) for k, v in point.scalars.items()}
        base = {k: v for k, v in point.sizes.items() if k in self.base_sizes}
        return replace(self._point(base, scalars, dict(values)), null=point.null)

    def point_at(self, sizes: Mapping[str, int], values: Mapping[str, Value]) -> Point:
        """The point with these base sizes, in the case's lists or not; the others and the scalars take their first."""
        first = {n: v[0] for n, v in self.sizes if not isinstance(v, str)}
        return self._point({**first, **sizes}, {n: v[0] for n, v in self.scalars}, dict(values))

    def point_with(
        self, sizes: Mapping[str, int], scalars: Mapping[str, str], values: Mapping[str, Value], null: frozenset[str]
    ) -> Point:
        """The point with these base sizes and these of the scalars' expressions. Raises PorterError."""
        return replace(self._point(dict(sizes), dict(scalars), dict(values)), null=null)

    def choose(self, points: list[Point], limit: int | None, seed: int) -> list[Point]:
        """At most `limit` of the points, by `seed`, cheapest first, covering what `points()` promises to cover."""
        if limit is None or limit >= len(points):
            return points
        return sorted(self._covering(points, limit, random.Random(seed)), key=lambda p: p.elements)

    def _combinations(self, seed: int, most: int) -> Iterator[tuple[dict[str, int], dict[str, str]]]:
        base = [(n, v) for n, v in self.sizes if not isinstance(v, str)]
        variants = math.prod(len(v) for _, v in self.scalars)

        def scalars(which: int) -> dict[str, str]:
            """The scalars' variants in the order of a product: the last one changes first."""
            found: dict[str, str] = {}
            for name, texts in reversed(self.scalars):
                which, i = divmod(which, len(texts))
                found[name] = texts[i]
            return {name: found[name] for name, _ in self.scalars}

        for index in _some(len(self.shapes) * variants, max(most, len(self.shapes)), seed):
            shape, which = divmod(index, variants)
            yield dict(self.shapes[shape]), scalars(which)
        if self.only_shapes:
            return
        counts = [len(v) for _, v in base]
        for index in _some(math.prod(counts) * variants, most, seed):
            sizes = {}
            rest, which = divmod(index, variants)
            for (name, choices), count in zip(base, counts, strict=True):
                rest, i = divmod(rest, count)
                sizes[name] = choices[i]
            yield sizes, scalars(which)

    def _point(self, base: dict[str, int], scalars: dict[str, str], values: dict[str, Value]) -> Point:
        names: dict[str, Value] = {**values, **base}
        sizes = {}
        for name, value in self.sizes:
            sizes[name] = base[name] if name in base else self._int(value, names, "sizes", name)
            names[name] = sizes[name]
        found: dict[str, int | float | bool] = {}
        for name, text in scalars.items():
            scalar = self._value(text, names, "scalars", name)
            if isinstance(scalar, str):
                self.fail(codes.CASE_EXPRESSION, f"scalar {name} is a type ({scalar}), not a number", "scalars", name)
            found[name] = names[name] = scalar
        shapes, strides = {}, {}
        for b in self.buffers:
            where = b.where
            shapes[b.name] = tuple(self._int(e, names, *where, "shape") for e in b.shape)
            if b.strides is None:
                strides[b.name] = contiguous(shapes[b.name])
            else:
                strides[b.name] = tuple(self._int(e, names, *where, "strides") for e in b.strides)
        point = Point(sizes, found, shapes, strides)
        if point.elements > MOST_ELEMENTS:
            at = _brief(sizes)
            self.fail(
                codes.CASE_EXPRESSION, f"buffers of {point.elements} elements at {at}, of at most 2^36", "buffers"
            )
        return point

    def _covering(self, points: list[Point], limit: int, rng: random.Random) -> list[Point]:
        """A greedy choice of `limit` points: each adds as many unseen size values and scalar variants as possible."""
        explicit = [p for p in points if any(all(p.sizes[k] == s[k] for k in s) for s in self.shapes)]
        rng.shuffle(explicit)
        chosen = explicit[: max(1, limit // 3)] if explicit else []
        rest = [p for p in points if not any(p is c for c in chosen)]
        rng.shuffle(rest)
        rest.sort(key=lambda p: p.elements.bit_length())  # cheap first; random within a power of two
        seen: set[tuple[str, Any]] = set()
        for p in chosen:
            seen |= _facts(p)
        while len(chosen) < limit and rest:
            best = max(rest, key=lambda p: (len(_facts(p) - seen),))
            if not _facts(best) - seen:
                seen.clear()  # everything is covered once: go round again
                continue
            chosen.append(best)
            rest = [p for p in rest if p is not best]
            seen |= _facts(best)
        return chosen

    # ---- evaluation

    def _value(self, text: str, names: Mapping[str, Value], *where: str) -> Value:
        try:
            return expressions.evaluate(text, names)
        except ExprError as error:
            self.fail(codes.CASE_EXPRESSION, str(error), *where)

    def _int(self, text: Any, names: Mapping[str, Value], *where: str) -> int:
        value = self._value(text, names, *where)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(
                codes.CASE_EXPRESSION, f"`{text}` gives {value!r}, not a whole number", *where, help="divide with //"
            )
        if value > MOST_OF_A_NUMBER:
            self.fail(codes.CASE_EXPRESSION, f"`{_short(text)}` is more than 2^62 at {_brief(names)}", *where)
        if value < 0:
            self.fail(codes.CASE_EXPRESSION, f"`{text}` is negative ({value}) at {_brief(names)}", *where)
        return value

    def launch_at(self, point: Point, values: Mapping[str, Value], sm_count: int = 132) -> LaunchShape:
        """The launch at a point; raises PorterError where an expression does not give a whole number."""
        names = {**point.names(values)}

        def dims(which: str, texts: tuple[str, str, str]) -> tuple[int, int, int]:
            found = []
            for t in texts:
                try:
                    v = expressions.evaluate(t, names, sm_count=sm_count)
                except ExprError as error:
                    self.fail(codes.CASE_EXPRESSION, str(error), "launch", which)
                found.append(self._int(v, names, "launch", which))
            return (found[0], found[1], found[2])

        grid, block = dims("grid", self.launch.grid), dims("block", self.launch.block)
        (smem, _, _) = dims("smem", (self.launch.smem, "0", "0"))
        if 0 in block:
            self.fail(codes.CASE_EXPRESSION, f"the block has no threads at {point}: {block}", "launch", "block")
        return LaunchShape(grid, block, smem, self.launch.cooperative, dims("cluster", self.launch.cluster))


def _facts(point: Point) -> set[tuple[str, Any]]:
    facts: set[tuple[str, Any]] = {*point.sizes.items(), ("null", point.null)}
    return facts | {("scalar " + k, v) for k, v in point.scalars.items() if k not in point.sizes}


def _short(text: Any) -> str:
    return str(text) if isinstance(text, str) and len(text) <= 80 else "the expression"


def _some(total: int, most: int, seed: int) -> Iterable[int]:
    """All numbers below `total`, or `most` of them by `seed`."""
    if total <= most:
        return range(total)
    if total < 1 << 62:
        return random.Random(seed).sample(range(total), most)
    draw = random.Random(seed)  # more than `sample` can count: two alike are as good as impossible
    return (draw.randrange(total) for _ in range(most))


def _brief(names: Mapping[str, Value]) -> str:
    shown = ", ".join(f"{k}={v}" for k, v in names.items()) or "no names"
    return shown if len(shown) <= 200 else f"{shown[:197]}..."
