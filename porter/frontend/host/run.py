"""One way through host code: what it decided, what it learned of tensors and pointers, what it launched.

A way is run from the start with the decisions of its prefix; where nothing decides a branch, the way takes one arm and
leaves the other for a later run. So no state is ever copied.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from porter.frontend.host import terms
from porter.frontend.host.nodes import Node, Nodes
from porter.frontend.host.terms import Term
from porter.frontend.host.values import LambdaValue, Place, Region, StructValue, TensorValue, Value
from porter.source import NO_SPAN, Span

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

MAX_STEPS = 60_000
MAX_DEPTH = 40
MAX_WEIGHT = 200


class PathEnds(Exception):
    """The way stops: the program fails here, or nothing sensible can be said of what follows."""


class OutOfBudget(Exception):
    """Too many steps, or too much time."""


class CannotMerge(Exception):
    """The arms of a branch leave values that no expression chooses between: the way has to fork there."""


@dataclass
class Symbol:
    """A named size. `kind`: "param" (a host parameter), "dim" (of a tensor), "free" (could not be seen through)."""

    key: str
    names: list[str]
    kind: str
    span: Span = NO_SPAN
    real: bool = False
    boolean: bool = False
    enumerators: tuple[int, ...] = ()
    default: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Stated:
    """A condition and where the source states it."""

    condition: Term
    span: Span = NO_SPAN


@dataclass
class HostLaunch:
    """A launch as one way reached it. `kernel` is the specialisation's cursor; None: `name` and `arguments` as text."""

    kernel: Any
    name: str
    template_args: tuple[str, ...]
    args: tuple[Value, ...]
    grid: tuple[Term, Term, Term] | None
    block: tuple[Term, Term, Term] | None
    smem: Term | None
    run: Run
    conditions: tuple[Stated, ...]
    constraints: tuple[Stated, ...]
    host_function: str = ""
    span: Span = NO_SPAN
    cooperative: bool = False
    cluster: tuple[Term, Term, Term] | None = None
    pdl: bool = False


@dataclass
class Frame:
    """Variables of one call, by declaration. `outer` is the frame that a lambda was made in."""

    function: Node
    places: dict[int, Place] = field(default_factory=dict)
    outer: Frame | None = None
    this: StructValue | None = None
    result: Value = None
    depth: int = 0
    launching: bool = False
    templates: tuple[str, ...] = ()

    def find(self, key: int) -> Place | None:
        frame: Frame | None = self
        while frame is not None:
            if key in frame.places:
                return frame.places[key]
            frame = frame.outer
        return None


@dataclass
class Hints:
    """What earlier ways showed of tensors, kept from run to run: how many dimensions each has."""

    ranks: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)  # dimensions asked for from the front
    last: dict[str, int] = field(default_factory=dict)  # from the back
    counted: set[str] = field(default_factory=set)  # tensors asked for all their elements
    dimensioned: set[str] = field(default_factory=set)  # whose rank the host states
    same: set[tuple[str, str]] = field(default_factory=set)  # tensors whose sizes the host compares


@dataclass
class Program:
    """What all ways share: the parsed file and its functions."""

    unit: ParsedUnit
    nodes: Nodes = field(default_factory=Nodes)
    launching: dict[str, bool] = field(default_factory=dict)  # USR of a function -> whether a launch is reached from it
    globals: dict[int, Place] = field(default_factory=dict)
    deadline: float = 0.0


class Run:
    """One way. `prefix` are the arms of its first decisions."""

    def __init__(self, program: Program, hints: Hints, prefix: tuple[int, ...] = ()):
        self.program, self.hints, self.prefix = program, hints, prefix
        self.decisions: list[tuple[str, int, int]] = []  # site, arm taken, number of arms
        self.conditions: list[Stated] = []
        self.constraints: list[Stated] = []
        self.guards: list[Term] = []
        self.symbols: dict[str, Symbol] = {}
        self.tensors: dict[str, TensorValue] = {}
        self.dims: dict[tuple[str, str], Term] = {}
        self.dtypes: dict[str, str] = {}  # tensor -> ScalarType enumerator
        self.not_dtypes: dict[str, set[str]] = {}
        self.nulls: dict[str, bool] = {}
        self.regions: dict[str, Region] = {}
        self.launches: list[HostLaunch] = []
        self.journal: list[tuple[Place, Value]] | None = None
        self.steps = 0

    # ---- budget

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS or (self.steps % 256 == 0 and time.process_time() > self.program.deadline):
            raise OutOfBudget

    # ---- places

    def write(self, place: Place, value: Value) -> None:
        if self.journal is not None:
            self.journal.append((place, place.value))
        place.value = value

    def merged(self, condition: Term, then: Callable[[], object], other: Callable[[], object]) -> None:
        """Run both arms of a branch and let every place choose between what they leave. Raises CannotMerge with all
        places as they were before."""
        outer = self.journal
        after: list[dict[int, tuple[Place, Value]]] = []
        before: dict[int, tuple[Place, Value]] = {}
        try:
            for guard, arm in ((condition, then), (terms.negate(condition), other)):
                self.journal = []
                self.guards.append(guard)
                try:
                    arm()
                finally:
                    self.guards.pop()
                    written: dict[int, tuple[Place, Value]] = {}
                    for place, old in self.journal:
                        written.setdefault(id(place), (place, old))
                    now = {key: (place, place.value) for key, (place, _) in written.items()}
                    for place, old in reversed(self.journal):
                        place.value = old
                    for key, entry in written.items():
                        before.setdefault(key, entry)
                    after.append(now)
            chosen = []
            for key, (place, old) in before.items():
                a = after[0].get(key, (place, old))[1]
                b = after[1].get(key, (place, old))[1]
                chosen.append((place, self.choose(condition, a, b)))
        finally:
            self.journal = outer
        for place, value in chosen:
            self.write(place, value)

    def choose(self, condition: Term, a: Value, b: Value) -> Value:
        if a is b:
            return a
        if isinstance(a, Term) and isinstance(b, Term):
            if a.weight + b.weight + condition.weight > MAX_WEIGHT:
                raise CannotMerge  # branches upon branches: ways instead of one expression
            return terms.choose(condition, a, b)
        try:
            same = bool(a == b)
        except Exception:  # values of foreign types
            same = False
        if same:
            return a
        if isinstance(a, StructValue) and isinstance(b, StructValue) and set(a.members) == set(b.members):
            members = {
                n: Place(self.choose(condition, a.members[n].value, b.members[n].value), n) for n in a.members
            }
            return StructValue(a.type, members, a.name)
        if a is None or b is None:
            return b if a is None else a  # not set in one arm: nothing reads it there
        if isinstance(a, LambdaValue) and isinstance(b, LambdaValue) and a.node is b.node:
            return a
        raise CannotMerge

    # ---- decisions

    def known(self, condition: Term) -> bool | None:
        """What the way has already decided of a condition."""
        condition = terms.truth(condition)
        if condition.value is not None:
            return bool(condition.value)
        stated = [s.condition for s in (*self.conditions, *self.constraints)] + self.guards
        if condition in stated:
            return True
        if terms.negate(condition) in stated:
            return False
        return _implied(condition, stated)

    def decide(self, condition: Term, span: Span) -> bool:
        """Which arm of a branch the way takes; a condition that nothing decides becomes one of the way."""
        known = self.known(condition)
        if known is not None:
            return known
        condition = terms.truth(condition)
        arm = self.pick(f"{span}", 2) == 0
        self.conditions.append(Stated(condition if arm else terms.negate(condition), span))
        return arm

    def pick(self, site: str, arms: int) -> int:
        """Which of several arms the way takes."""
        at = len(self.decisions)
        arm = self.prefix[at] if at < len(self.prefix) else 0
        self.decisions.append((site, arm, arms))
        if at > 200:
            raise OutOfBudget
        return arm

    def require(self, condition: Term, span: Span) -> None:
        """A condition that the host insists on. Ends the way where it cannot hold."""
        condition = terms.truth(condition)
        if condition.op == "and":
            for part in condition.parts:
                self.require(part, span)
            return
        for guard in reversed(self.guards):
            condition = terms.either(terms.negate(guard), condition)
        if condition.value is False:
            raise PathEnds
        if condition.value is None and self.known(condition) is None:
            self.constraints.append(Stated(condition, span))

    # ---- symbols

    def symbol(self, name: str, kind: str, span: Span = NO_SPAN, *, key: str = "", real: bool = False,
               boolean: bool = False, default: tuple[int, ...] = (), enumerators: tuple[int, ...] = (),
               reason: str = "") -> Term:  # fmt: skip
        key = key or name
        if key not in self.symbols:
            self.symbols[key] = Symbol(key, [name], kind, span, real, boolean, enumerators, default, reason)
        return terms.sym(key, real)

    def called(self, value: Value, name: str) -> None:
        """A variable holds just this symbol: the size is called like it."""
        if isinstance(value, Term) and value.op == "sym" and name:
            symbol = self.symbols.get(str(value.args[0]))
            if symbol is not None and name not in symbol.names:
                symbol.names.append(name)


def _implied(condition: Term, stated: list[Term]) -> bool | None:
    """Bounds of one number against constants: n <= 64 stated decides n <= 128."""
    low, high = _bounds(condition)
    if low is None and high is None:
        return None
    what = _bounded(condition)
    least: float = float("-inf")
    most: float = float("inf")
    for s in stated:
        if _bounded(s) != what or s.op not in ("<", "<=", "=="):
            continue
        a, b = _bounds(s)
        least = max(least, a) if a is not None else least
        most = min(most, b) if b is not None else most
        if s.op == "==":
            break
    if condition.op == "==":
        return False if low is not None and not least <= low <= most else None
    if (low is None or least >= low) and (high is None or most <= high):
        return True
    if (low is not None and most < low) or (high is not None and least > high):
        return False
    return None


def _bounded(t: Term) -> Term | None:
    if t.op not in ("<", "<=", "=="):
        return None
    a, b = t.parts
    return a if b.value is not None else b if a.value is not None else None


def _bounds(t: Term) -> tuple[float | None, float | None]:
    """(least, most) that a comparison of a whole number with a constant leaves."""
    if t.op not in ("<", "<=", "=="):
        return None, None
    a, b = t.parts
    if b.value is not None:
        return (b.value if t.op == "==" else None), b.value - (t.op == "<")
    if a.value is not None:
        return a.value + (t.op == "<"), (a.value if t.op == "==" else None)
    return None, None
