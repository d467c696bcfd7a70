"""Statements of the IR, and what is made of them: functions, variables of a module, kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from porter.ir.expressions import Expr
from porter.ir.types import Type
from porter.ir.walk import Node
from porter.source import NO_SPAN, Span


@dataclass(frozen=True, kw_only=True)
class Stmt(Node):
    comment: str = field(default="", compare=False, repr=False)  # comment text that stands before the statement


@dataclass(frozen=True)
class Decl(Stmt):
    """A local variable. `init` None means uninitialised. `is_const` for const/constexpr; `is_constexpr` for constexpr.

    `ref` True: a C++ reference local (`T& r = place`): init is the place it names.
    """

    name: str
    type: Type
    init: Expr | None = None
    is_const: bool = False
    is_constexpr: bool = False
    ref: bool = False


@dataclass(frozen=True)
class SharedDecl(Stmt):
    """`__shared__ T name[...]`; `dynamic` for `extern __shared__` (Array length 0). align in bytes (0: natural).

    `scratch` arrays hold nothing between the block-wide functions that use them: those of one type may be one array.
    """

    name: str
    type: Type
    dynamic: bool = False
    align: int = 0
    scratch: bool = False


@dataclass(frozen=True)
class Assign(Stmt):
    """`target = value` (compound assignment is already expanded; `op` keeps it for printing: '+=')."""

    target: Expr
    value: Expr
    op: str = field(default="=", compare=False)


@dataclass(frozen=True)
class Copy(Stmt):
    """`target = source` for aggregates, both places; made by a pass, so that only `Copy` moves whole aggregates.

    `align` in bytes (an int; 0: natural) is what the types promise, so it bounds the width of the accesses.
    """

    target: Expr
    source: Expr


@dataclass(frozen=True)
class ExprStmt(Stmt):
    """A call for its effects."""

    value: Expr


@dataclass(frozen=True)
class Asm(Stmt):
    """Inline PTX: template with %0.. as written, outputs are (constraint, place), inputs (constraint, expr)."""

    template: str
    outputs: tuple[tuple[str, Expr], ...] = ()
    inputs: tuple[tuple[str, Expr], ...] = ()
    volatile: bool = False
    memory: bool = False  # clobbers memory


@dataclass(frozen=True)
class If(Stmt):
    """`constexpr` True for `if constexpr`: `taken` is the evaluated condition and the other arm is empty."""

    cond: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    is_constexpr: bool = False
    taken: bool | None = None


@dataclass(frozen=True)
class For(Stmt):
    """A C for loop. `unroll`: None, 0 = `#pragma unroll` (full), n = `#pragma unroll n` (1 = do not)."""

    init: tuple[Stmt, ...]
    cond: Expr | None
    step: tuple[Stmt, ...]
    body: tuple[Stmt, ...]
    unroll: int | None = None


@dataclass(frozen=True)
class While(Stmt):
    """`while (cond)`; `pre` runs before each test of cond (side effects hoisted out of it)."""

    cond: Expr
    body: tuple[Stmt, ...]
    pre: tuple[Stmt, ...] = ()


@dataclass(frozen=True)
class DoWhile(Stmt):
    """`do body while (cond)`; `post` runs after body, before each test."""

    body: tuple[Stmt, ...]
    cond: Expr
    post: tuple[Stmt, ...] = ()


@dataclass(frozen=True)
class Switch(Stmt):
    """cases: (values or None for default, body). Bodies end without break; fallthrough is already expanded by the
    front end."""

    value: Expr
    cases: tuple[tuple[tuple[int, ...] | None, tuple[Stmt, ...]], ...]


@dataclass(frozen=True)
class Break(Stmt):
    pass


@dataclass(frozen=True)
class Continue(Stmt):
    pass


@dataclass(frozen=True)
class Return(Stmt):
    value: Expr | None = None


@dataclass(frozen=True)
class Scope(Stmt):
    """A braced block kept for its comments; names are unique already."""

    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class HoleStmt(Stmt):
    """Something that could not be translated: diagnostic code, CUDA text and reason. As an expression use HoleExpr."""

    code: str
    cuda: str
    reason: str


@dataclass(frozen=True)
class HoleExpr(Expr):
    code: str
    cuda: str
    reason: str


# ---------------------------------------------------------------- functions and kernels


@dataclass(frozen=True)
class FunctionParam:
    """by_ref: a C++ reference, or `this` of a method (named `this`). `rewritten`: patterns that made it (see Span)."""

    name: str
    type: Type
    by_ref: bool = False
    const: bool = False
    restrict: bool = False
    rewritten: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Function:
    """A __device__ function, method or lambda body, one per specialisation.

    `key` is unique (mangled name or USR + arguments); `name` is for people; `template` and `targs` are set for a
    specialisation ((parameter name, Type or int) pairs). A lambda has `captures_enclosing` True: its free variables are
    those of the function that holds it, so it is always inlined.
    """

    key: str
    name: str
    params: tuple[FunctionParam, ...]
    ret: Type
    body: tuple[Stmt, ...]
    span: Span = field(default=NO_SPAN, compare=False)
    targs: tuple[tuple[str, Any], ...] = ()
    captures_enclosing: bool = False
    ret_ref: bool = False  # returns a reference: the value of Return is a place
    comment: str = field(default="", compare=False)


@dataclass(frozen=True)
class GlobalConst:
    """A namespace-scope const/constexpr or __constant__ table used by the kernel, with its values (nested tuples)."""

    name: str
    type: Type
    value: Any


@dataclass(frozen=True)
class Symbol:
    """A `__constant__` or `__device__` variable whose values the source does not fix: a parameter of the port.

    The kernel's parameter `name` points to the first element of a variable of type `type`; `declared` is its name in
    the source with its namespaces, or with the function that holds a static local (`ns::taps`).
    """

    name: str
    declared: str
    type: Type
    constant: bool  # `__constant__`: no kernel writes it
    initialised: bool  # the declaration gives its values at the start
    filled: str = ""  # where host code writes it ("cudaMemcpyToSymbolAsync in line 9"); "" where none is seen
    span: Span = field(default=NO_SPAN, compare=False)  # of the declaration

    @property
    def kind(self) -> str:
        """`__constant__` or `__device__`."""
        return "__constant__" if self.constant else "__device__"


@dataclass(frozen=True)
class Kernel:
    """One __global__ function at one instance. `symbols`: parameters that stand for variables, the last of `params`."""

    name: str  # unqualified
    qualified_name: str
    params: tuple[FunctionParam, ...]
    body: tuple[Stmt, ...]
    functions: dict[str, Function]
    targs: tuple[tuple[str, Any], ...] = ()  # (template parameter name, Type or int), in order
    globals: tuple[GlobalConst, ...] = ()
    launch_bounds: tuple[int, ...] = ()  # (max threads[, min blocks[, cluster]])
    cluster_dims: tuple[int, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False)
    comment: str = field(default="", compare=False)
    symbols: tuple[Symbol, ...] = ()  # sorted by name
