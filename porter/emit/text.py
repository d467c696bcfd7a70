"""What writing gives and needs: text with its binding strength, places as base and offset, a function's scope."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from porter import ir
from porter.emit.generic import Params
from porter.emit.layout import Leaf
from porter.emit.spaces import Spaces
from porter.emit.trace_constants import TraceConstants
from porter.model import Hole
from porter.source import Span

# binding strengths of Python operators, for parentheses
ATOM, POW, UNARY, MUL, ADD, SHIFT, AND, XOR, OR, COMPARE, NOT, TERNARY = range(12)
PRECEDENCE = {
    "*": MUL,
    "/": MUL,
    "%": MUL,
    "//": MUL,
    "+": ADD,
    "-": ADD,
    "<<": SHIFT,
    ">>": SHIFT,
    "&": AND,
    "^": XOR,
    "|": OR,
}
COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}

BUILTIN_NAMES = {
    "threadIdx.x": "tidx",
    "threadIdx.y": "tidy",
    "threadIdx.z": "tidz",
    "blockIdx.x": "bidx",
    "blockIdx.y": "bidy",
    "blockIdx.z": "bidz",
    "blockDim.x": "bdimx",
    "blockDim.y": "bdimy",
    "blockDim.z": "bdimz",
    "gridDim.x": "gdimx",
    "gridDim.y": "gdimy",
    "gridDim.z": "gdimz",
}


@dataclass(frozen=True)
class Text:
    """Python text of an expression, how tightly it binds, and whether it is a Python number at trace time."""

    text: str
    prec: int = ATOM
    static: bool = False

    def at(self, prec: int) -> str:
        """The text, in parentheses unless it binds at least as tightly as `prec`."""
        return self.text if self.prec <= prec else f"({self.text})"


@dataclass(frozen=True)
class Flat:
    """A place as base pointer text plus an element offset in units of `leaves` (one an instance)."""

    base: Text
    consts: tuple[int, ...]  # constant part of the offset, per instance, in elements
    dynamic: tuple[str, ...]  # other terms
    leaves: tuple[Leaf, ...]


@dataclass
class Scope:
    """What is known of the variables of one function while its text is written, by the key of their definition.

    `visible`: which definition a shown name means where the writer is.
    """

    params: Params
    python_names: dict[str, str] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)
    visible: dict[str, str] = field(default_factory=dict)
    memory: set[str] = field(default_factory=set)  # locals that live in an array and are reached by pointer
    static: set[str] = field(default_factory=set)  # Python numbers at trace time
    bounds: dict[str, int] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)  # of Python numbers at trace time
    constants: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # values of static variables by instance
    trace_constants: TraceConstants = field(default_factory=TraceConstants)
    used_builtins: set[str] = field(default_factory=set)
    holes: list[Hole] = field(default_factory=list)
    spaces: Spaces = field(default_factory=dict)  # what memory pointers point into
    source_names: Callable[[Span], Params | None] = lambda place: None  # the parameters that the source names there
    argument_params: Callable[[Span, str, str, int], Params | None] = lambda *call: None  # for one template argument
    kept: frozenset[str] = frozenset()  # shared arrays whose address stays in a register

    def params_at(self, place: Span) -> Params:
        """The parameters that the source names at a place, or in the statement around it."""
        return self.source_names(place) or self.params


def is_readonly(place: ir.Expr) -> bool:
    """True for a place in memory that the source promises not to change."""
    while isinstance(place, ir.Field | ir.Index):
        place = place.base
    return isinstance(place, ir.Deref) and place.readonly


def parenthesised(t: Text) -> str:
    return t.text if t.prec < AND else f"({t.text})"


def is_null_constant(e: ir.Expr) -> bool:
    """A null pointer constant, or zero."""
    while isinstance(e, ir.Cast):
        e = e.x
    return isinstance(e, ir.Const) and not e.value
