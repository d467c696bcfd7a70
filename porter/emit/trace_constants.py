"""Which variables may hold a number that the DSL knows at trace time: it computes with those as Python does.

CuTeDSL folds operations on such numbers in Python's integers and wraps the result to the type, but refuses one of more
than 64 bits; a fraction it does not round at all (`lib.constant`). Constants go through variables, parameters of device
functions and what these return.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from porter import ir
from porter.emit.generic import ConstVariants, HelperCall

_KEEPS = ir.Const | ConstVariants | ir.Binary | ir.Unary | ir.Cast | ir.Select


@dataclass
class TraceConstants:
    """What may be constant in one function, by key of the definition; `large`: what does not only count in small
    steps."""

    names: set[str] = field(default_factory=set)
    large: set[str] = field(default_factory=set)
    returning: set[str] = field(default_factory=set)  # functions that may return a constant
    seen: dict[int, tuple[ir.Expr, bool]] = field(default_factory=dict)  # answers by id; the node keeps its id taken

    def may_be(self, e: ir.Expr) -> bool:
        """Whether the DSL may know the value: nothing is read from memory, and no index of the launch."""
        known = self.seen.get(id(e))
        if known is None:
            if isinstance(e, ir.Var):
                found = e.name in self.names
            elif isinstance(e, HelperCall):
                found = e.name in self.returning
            else:
                found = isinstance(e, _KEEPS) and all(self.may_be(c) for c in ir.children(e))
            self.seen[id(e)] = known = (e, found)
        return known[1]

    def may_be_large(self, e: ir.Expr) -> bool:
        """Whether it may also be near the ends of a 64-bit type."""
        if not self.may_be(e):
            return False
        return not counts(e) or any(isinstance(n, ir.Var) and n.name in self.large for n in ir.walk(e))


def counts(e: ir.Expr) -> bool:
    """A small constant, a variable, or one more or less by a small constant."""
    while isinstance(e, ir.Cast):
        e = e.x
    if isinstance(e, ir.Binary) and e.op in ("+", "-"):
        return isinstance(e.b, ir.Const) and counts(e.b) and counts(e.a)
    return isinstance(e, ir.Var) or (isinstance(e, ir.Const) and isinstance(e.value, int) and 0 <= e.value < 1 << 32)


@dataclass(frozen=True)
class _Function:
    values: dict[str, list[ir.Expr]]  # what is assigned to each variable
    calls: list[HelperCall]
    returns: list[ir.Expr]


def find_trace_constants(
    functions: Mapping[str, tuple[tuple[str, ...], Any]], memory: Mapping[str, set[str]]
) -> dict[str, TraceConstants]:
    """For each function, by name: `functions` are (parameters, body), `memory` the locals that live in memory."""
    out = {name: TraceConstants() for name in functions}
    facts = {name: _collected(body, memory[name]) for name, (_, body) in functions.items()}
    changed = True
    while changed:
        changed = False
        for name, f in facts.items():
            here = out[name]
            here.seen.clear()
            here.returning = {n for n, g in facts.items() if any(out[n].may_be(e) for e in g.returns)}
            changed = _grow(here, f) or changed
            for call in f.calls:
                there = out.get(call.name)
                if there is None:
                    continue
                for parameter, argument in zip(functions[call.name][0], call.args, strict=False):
                    if parameter in memory[call.name]:
                        continue
                    given = ({parameter} if here.may_be(argument) else set()) - there.names
                    big = ({parameter} if here.may_be_large(argument) else set()) - there.large
                    there.names |= given
                    there.large |= big
                    there.seen.clear()
                    changed = changed or bool(given or big)
    return out


def _grow(here: TraceConstants, f: _Function) -> bool:
    """Adds what follows from the names known so far, in the order of the text; whether there was anything."""
    before = len(here.names), len(here.large)
    for name, values in f.values.items():
        if name not in here.names and any(here.may_be(v) for v in values):
            here.names.add(name)
        if name in here.names and name not in here.large and any(here.may_be_large(v) for v in values):
            here.large.add(name)
    here.seen.clear()
    return before != (len(here.names), len(here.large))


def _collected(body: Any, memory: set[str]) -> _Function:
    found = _Function({}, [], [])
    for n in ir.walk(body):
        if isinstance(n, ir.Decl) and n.name not in memory:
            found.values.setdefault(n.name, []).append(n.init or ir.Const(0))
        elif isinstance(n, ir.Assign) and isinstance(n.target, ir.Var) and n.target.name not in memory:
            found.values.setdefault(n.target.name, []).append(n.value)
        elif isinstance(n, HelperCall):
            found.calls.append(n)
        elif isinstance(n, ir.Return) and n.value is not None:
            found.returns.append(n.value)
    return found
