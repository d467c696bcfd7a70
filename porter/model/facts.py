"""What each check measured, as data: a class a check, the `data` of a verdict in JSON.

Fields are the keys of JSON, in that order; a field that is None is left out. Keys that a class does not have (another
release wrote them) are kept in `rest`. Whoever reads takes the facts of a check by their class, see `facts_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Self, get_args, get_origin, get_type_hints

_NOT_FINITE = ("inf", "-inf", "nan")  # as JSON spells them, see provenance.json.plain


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Of a check without facts of its own, or facts that no class takes: all of it is `rest`."""

    rest: dict[str, Any] = field(default_factory=dict, repr=False)

    def to_json(self) -> dict[str, Any]:
        """The keys of JSON; `provenance.json.plain` makes the values what json can write."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "rest"}
        return {name: _to_json(value) for name, value in found.items() if value is not None} | self.rest

    @classmethod
    @cache
    def kinds(cls) -> dict[str, Any]:
        """Field -> type, `rest` aside."""
        hints = get_type_hints(cls)
        return {f.name: hints[f.name] for f in fields(cls) if f.name != "rest"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Raises TypeError where a value has another type than its field."""
        kinds = cls.kinds()
        known = {name: _from_json(kinds[name], value) for name, value in data.items() if name in kinds}
        return cls(**known, rest={name: value for name, value in data.items() if name not in kinds})

    def __bool__(self) -> bool:
        """Is anything known?"""
        return bool(self.to_json())


@dataclass(frozen=True)
class CompileFacts(Facts):
    arches: tuple[str, ...] = ()
    cached: int = 0  # compilations whose result was in the cache


@dataclass(frozen=True)
class UsedResources(Facts):
    """Of one instance, counts by name: registers, spills, local_bytes, shared_bytes, and statistics of the PTX."""

    original: dict[str, int] = field(default_factory=dict)
    port: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ResourcesFacts(Facts):
    """In JSON the labels of the instances are the keys."""

    instances: dict[str, UsedResources] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {label: used.to_json() for label, used in self.instances.items()} | self.rest

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        used = {label for label, both in data.items() if isinstance(both, Mapping) and "port" in both}
        return cls(
            {label: UsedResources.from_json(both) for label, both in data.items() if label in used},
            rest={name: value for name, value in data.items() if name not in used},
        )


@dataclass(frozen=True)
class EntryFacts(Facts):
    calls: int = 0
    functions: tuple[str, ...] | None = None  # where all of them passed


@dataclass(frozen=True)
class OutputErrors(Facts):
    """Of one output over all launches of an instance. `ulps`: elements by distance from the original, in powers of two;
    RMS errors are in ulp, against float64."""

    verdict: str = ""
    elements: int = 0
    different: int = 0  # not bit-equal
    max_ulp: int = 0
    ulps: tuple[int, ...] = ()
    excused: int = 0
    rms_original: float = 0.0
    rms_port: float = 0.0
    tolerance: str = ""

    @property
    def histogram(self) -> tuple[list[int], int]:
        """Elements by distance, those that are bit-equal in the first; and those without one (NaN, integers)."""
        counts = [self.elements - self.different + (self.ulps[0] if self.ulps else 0), *self.ulps[1:]]
        return counts, self.elements - sum(counts)


@dataclass(frozen=True)
class SmallestLaunch(Facts):
    """The smallest launch found that still fails."""

    instance: str = ""
    sizes: dict[str, int] = field(default_factory=dict)
    scalars: dict[str, Any] = field(default_factory=dict)
    null: tuple[str, ...] = ()
    scenario: str = ""
    input_seed: int = 0


@dataclass(frozen=True)
class FirstDivergence(Facts):
    """Where original and port first part. Lines are 0 where none is known."""

    kind: str = ""
    cuda_line: int = 0
    port_line: int = 0
    block: int = 0
    thread: int = 0
    message: str = ""
    launch: str = ""


@dataclass(frozen=True)
class NumericsFacts(Facts):
    seed: int = 0
    launches: int = 0
    scenarios: tuple[str, ...] = ()
    buffers: dict[str, dict[str, OutputErrors]] = field(default_factory=dict)  # by instance, by output
    inputs: str = ""  # a checksum of the bytes of all launches
    smallest: SmallestLaunch | None = None
    divergence: FirstDivergence | None = None
    backend: str | None = None  # its name


@dataclass(frozen=True)
class SanitizerFacts(Facts):
    launches: int = 0
    port: int = 0  # reports about it
    original: int = 0
    checked: tuple[str, ...] = ()  # kinds of violations that were looked for
    known: tuple[str, ...] | None = None  # kinds that the case lets pass
    smallest: SmallestLaunch | None = None


@dataclass(frozen=True)
class DeterminismFacts(Facts):
    launches: int = 0  # that were repeated
    schedules: int = 0


@dataclass(frozen=True)
class TimingFacts(Facts):
    """One kind of timing at one point, by side (original, port, copy, ...): medians in us a call, ratios to the
    baseline, whether these are outside of twice the spread `a_vs_a` of the baseline against itself."""

    us: dict[str, float] = field(default_factory=dict)
    ratio: dict[str, float] = field(default_factory=dict)
    counts: dict[str, bool] = field(default_factory=dict)
    a_vs_a: float | None = None  # None: not known
    rounds: int = 0
    settled: bool = True  # is the spread as small as was wanted?


@dataclass(frozen=True)
class TimedPoint(Facts):
    """One instance at one point of the sizes. In JSON each kind of timing (graph_cold, ...) is a key of its own."""

    instance: str = ""
    sizes: dict[str, int] = field(default_factory=dict)
    grid: tuple[int, ...] = ()
    bytes: int = 0  # that have to move
    sets: int = 0
    calls: int = 0
    timings: dict[str, TimingFacts] = field(default_factory=dict)
    host_us: dict[str, float] = field(default_factory=dict)
    not_done: dict[str, str] | None = None  # kind of timing -> why it was not taken
    error: str | None = None  # why nothing was timed

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in Facts.to_json(self).items():
            found |= value if name == "timings" else {name: value}
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        kinds = [k for k, v in data.items() if k not in cls.kinds() and isinstance(v, Mapping) and "us" in v]
        known = {name: value for name, value in data.items() if name not in kinds}
        return super().from_json(known | {"timings": {kind: data[kind] for kind in kinds}})


@dataclass(frozen=True)
class CountedLaunch(Facts):
    """Counts of one launch on the emulator, by name. They say nothing about time."""

    at: str | None = None  # which launch
    original: dict[str, int] | None = None
    port: dict[str, int] | None = None
    instance: str | None = None
    sizes: dict[str, int] | None = None


@dataclass(frozen=True)
class PerformanceFacts(Facts):
    """Points that a GPU timed, or `counts` of the emulator."""

    device: str | None = None
    rows: tuple[TimedPoint, ...] | None = None
    geomean: float | None = None  # of the port's time over the original's, L2 cold
    worst: float | None = None
    counts: tuple[CountedLaunch, ...] | None = None


@dataclass(frozen=True)
class Worse(Facts):
    """One thing that is worse than it was. `kind`: check, errors, resources, counts, times or revision."""

    kind: str = ""
    what: str = ""
    was: str = ""
    now: str = ""
    instance: str = ""

    def __str__(self) -> str:
        where = f" of {self.instance}" if self.instance else ""
        return f"{self.what}{where}: {self.now}, was {self.was}"


@dataclass(frozen=True)
class RegressionFacts(Facts):
    against: str = ""
    worse: tuple[Worse, ...] = ()


@dataclass(frozen=True)
class ContractFacts(Facts):
    """What a port was compared with. Hashes are SHA-256, those of headers by path."""

    kernel: str = ""
    source: str = ""
    source_sha256: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    std: str = ""
    define: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    arch: tuple[str, ...] = ()
    case: str = ""  # "" where no file is the case
    case_sha256: str = ""
    reference_sha256: str = ""


#: check -> its facts; honesty and names have none
OF_CHECK: dict[str, type[Facts]] = {
    "compile": CompileFacts,
    "resources": ResourcesFacts,
    "entry": EntryFacts,
    "numerics": NumericsFacts,
    "sanitizer": SanitizerFacts,
    "determinism": DeterminismFacts,
    "performance": PerformanceFacts,
    "regression": RegressionFacts,
    "contract": ContractFacts,
}


def facts_from_json(check: str, data: Mapping[str, Any]) -> Facts:
    """The facts of a check. Data of another shape, as a record that somebody edited may have it, are kept as `rest`."""
    if not data:
        return Facts()
    try:
        return OF_CHECK.get(check, Facts).from_json(data)
    except TypeError:
        return Facts(rest=dict(data))


# ---------------------------------------------------------------- one value


def _to_json(value: Any) -> Any:
    if isinstance(value, Facts):
        return value.to_json()
    if isinstance(value, dict):
        return {k: _to_json(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return [_to_json(v) for v in value]
    return value


def _from_json(kind: Any, value: Any) -> Any:
    """A value of JSON as a field of this type. Raises TypeError."""
    if kind is Any:
        return value
    if isinstance(kind, UnionType):
        (kind,) = (k for k in get_args(kind) if k is not NoneType)
    plain, inner = get_origin(kind) or kind, get_args(kind)
    if plain is tuple and isinstance(value, list | tuple):
        return tuple(_from_json(inner[0], v) for v in value)
    if plain is dict and isinstance(value, Mapping):
        return {k: _from_json(inner[1], v) for k, v in value.items()}
    if isinstance(plain, type) and issubclass(plain, Facts) and isinstance(value, Mapping):
        return plain.from_json(value)
    if plain is float and value in _NOT_FINITE:
        return float(value)
    accepted = (int, float) if plain is float else plain
    if plain in (tuple, dict) or not isinstance(value, accepted) or (isinstance(value, bool) and plain is not bool):
        raise TypeError(f"{value!r} is not a {plain.__name__}")
    return value
