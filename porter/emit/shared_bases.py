"""Which shared arrays keep their address in a register: those that a loop reaches under a condition, at places that
change from turn to turn.

NVVM takes the address of a shared array for a constant and writes it out in each basic block that needs it. NVRTC's
writes it out before the loop, CuTeDSL's does so inside, where ptxas makes of it a read of a special register: six
instructions more a turn, and a branch around an `if` that predicates would do for. Out of code that runs in every turn
ptxas moves it again, and places like `s[tid]` have an address of their own from before the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from porter import ir
from porter.emit.generic import ConstVariants, HelperCall, Params
from porter.emit.statements.loops import trips
from porter.patterns.names import assigned_names


class _Function(Protocol):
    """What is needed of a device function that stays a function."""

    @property
    def name(self) -> str: ...
    @property
    def params(self) -> tuple[ir.FunctionParam, ...]: ...
    @property
    def body(self) -> tuple[ir.Stmt, ...]: ...
    @property
    def generic(self) -> Params: ...


def kept_addresses(body: tuple[ir.Stmt, ...], functions: Iterable[_Function], instances: int) -> frozenset[str]:
    """Names of the shared arrays that a kernel's body, or a function that they are passed to, reaches so."""
    arrays = {n.name for n in ir.walk(body) if isinstance(n, ir.SharedDecl)}
    if not arrays:
        return frozenset()
    functions = tuple(functions)
    known: dict[str, frozenset[str]] = {}
    for _ in functions:  # a function may pass its parameter on to another
        flags = _by_position(functions, known)
        new = {f.name: _Search({p.name for p in f.params}, flags, f.generic.count).run(f.body) for f in functions}
        if new == known:
            break
        known = new
    return _Search(arrays, _by_position(functions, known), instances).run(body)


def _by_position(functions: Iterable[_Function], known: Mapping[str, frozenset[str]]) -> dict[str, tuple[bool, ...]]:
    return {f.name: tuple(p.name in known.get(f.name, ()) for p in f.params) for f in functions}


class _Search:
    """Collects those of `bases` that are reached so; `functions` says it of each parameter of a function."""

    def __init__(self, bases: set[str], functions: Mapping[str, tuple[bool, ...]], instances: int):
        self.bases, self.functions, self.instances = bases, functions, instances
        self.found: set[str] = set()

    def run(self, body: Any) -> frozenset[str]:
        self._visit(body, frozenset(), False)
        return frozenset(self.found)

    def _visit(self, node: Any, varying: frozenset[str], sometimes: bool) -> None:
        """`varying`: variables that the loops around the node set; `sometimes`: not in every turn of the inmost one."""
        if isinstance(node, ir.For | ir.While | ir.DoWhile) and not self._unrolled(node):
            varying, sometimes = varying | self._set_by(node), False
        elif isinstance(node, ir.PtrAdd | ir.Index):
            base = node.ptr if isinstance(node, ir.PtrAdd) else node.base
            if sometimes and _varies(node.index, varying):
                self._move(base)
        elif isinstance(node, HelperCall):
            self._call(node, varying, sometimes)
        elif isinstance(node, ir.If | ir.Select) or (isinstance(node, ir.Binary) and node.op in ("&&", "||")):
            condition = node.a if isinstance(node, ir.Binary) else node.cond
            self._visit(condition, varying, sometimes)
            for child in ir.children(node):
                if child is not condition:
                    self._visit(child, varying, sometimes or not _known(condition))
            return
        for child in ir.children(node):
            self._visit(child, varying, sometimes)

    def _call(self, node: HelperCall, varying: frozenset[str], sometimes: bool) -> None:
        flags = self.functions.get(node.name, ())
        for i, argument in enumerate(node.args):
            moves = sometimes and any(_varies(a, varying) for a in node.args)
            if moves or (i < len(flags) and flags[i]):
                self._move(argument)

    def _move(self, pointer: ir.Expr) -> None:
        base = ir.origin(pointer)
        if isinstance(base, ir.Var) and base.name in self.bases:
            self.found.add(base.name)

    def _unrolled(self, loop: ir.Stmt) -> bool:
        return isinstance(loop, ir.For) and all(trips(loop, i, {}) is not None for i in range(self.instances))

    def _set_by(self, loop: ir.Stmt) -> frozenset[str]:
        """Variables that change from turn to turn; the counters of unrolled loops and what is the same number in every
        turn (`lane = threadIdx.x & 31`) do not."""
        names = assigned_names(loop)
        for n in ir.walk(loop):
            if isinstance(n, ir.For) and self._unrolled(n):
                names -= {d.name for d in n.init if isinstance(d, ir.Decl)}
        inits = [(n.name, n.init) for n in ir.walk(loop) if isinstance(n, ir.Decl) and n.init is not None]
        while new := {name for name, init in inits if name not in names and _varies(init, frozenset(names))}:
            names |= new
        return frozenset(names)


def _known(condition: ir.Expr) -> bool:
    """A condition that is a number in each instance: the compiler sees one arm."""
    while isinstance(condition, ir.Cast | ir.Unary):
        condition = condition.x
    return isinstance(condition, ir.Const | ConstVariants)


def _varies(e: ir.Expr, varying: frozenset[str]) -> bool:
    """Whether a value may differ between turns in which `varying` change (none: there is no loop)."""
    unknown = ir.Deref | ir.Intrinsic | ir.Call | HelperCall
    return bool(varying) and any(
        isinstance(n, unknown) or (isinstance(n, ir.Var) and n.name in varying) for n in ir.walk(e)
    )
