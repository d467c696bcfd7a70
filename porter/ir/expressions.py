"""Expressions of the IR. They are pure apart from reading memory and calling intrinsics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from porter.ir.types import VOID, Type
from porter.ir.walk import Node


@dataclass(frozen=True, kw_only=True)
class Expr(Node):
    type: Type = VOID


@dataclass(frozen=True)
class Const(Expr):
    """A literal or an evaluated constant (bool, int or float; float also for inf and nan).

    `origin` names the template parameter or the constexpr expression it came from when the source says so
    (`VEC`, `sizeof(T)`); it is a hint for naming, never needed for meaning.
    """

    value: Any
    origin: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Param(Expr):
    """A template value parameter, or an expression over them in Python syntax; only in merged IR."""

    text: str


@dataclass(frozen=True)
class Builtin(Expr):
    """threadIdx.x, blockIdx.y, blockDim.z, gridDim.x, warpSize (always 32): `name` is that spelling. Type u32
    (warpSize i32)."""

    name: str


@dataclass(frozen=True)
class Var(Expr):
    """A local variable, parameter, shared array or namespace-scope constant, by its unique name. A place."""

    name: str


@dataclass(frozen=True)
class Field(Expr):
    """`base.name`, base a place (or a struct value). A place."""

    base: Expr
    name: str


@dataclass(frozen=True)
class Index(Expr):
    """`base[index]`, base an array *place* (not a pointer). A place."""

    base: Expr
    index: Expr


@dataclass(frozen=True)
class Deref(Expr):
    """`*ptr`. A place. `volatile` where the pointee is volatile.

    `readonly` is set by a pass where the source promises that nobody writes the memory while the kernel runs (`__ldg`,
    `const T* __restrict__`): a hint for the load instruction, without meaning otherwise.
    """

    ptr: Expr
    volatile: bool = False
    readonly: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class PtrAdd(Expr):
    """`ptr + index` in elements of the pointee; index is i32/u32/i64/u64 as in the source after promotion, may be
    negative."""

    ptr: Expr
    index: Expr


@dataclass(frozen=True)
class PtrDiff(Expr):
    """`a - b` in elements; type i64."""

    a: Expr
    b: Expr


@dataclass(frozen=True)
class AddressOf(Expr):
    place: Expr


@dataclass(frozen=True)
class SymbolAddress(Expr):
    """The address of a variable at namespace scope, by `Symbol.name`. Inside the front end only: kernels and functions
    take it as a parameter in the end."""

    name: str


@dataclass(frozen=True)
class Decay(Expr):
    """Array place to pointer to its first element."""

    place: Expr


@dataclass(frozen=True)
class Unary(Expr):
    """op in '-', '~', '!'."""

    op: str
    x: Expr


@dataclass(frozen=True)
class Binary(Expr):
    """C semantics. op in + - * / % << >> & | ^ < <= > >= == != && ||. `/` and `%` truncate. && and || short-circuit.

    `rounded`: the original computes in float and rounds (classes of half precision that are not CUDA's), so nothing may
    be fused with it. A pass keeps it where the port has to take care of that (emit/rounding.py).
    """

    op: str
    a: Expr
    b: Expr
    rounded: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Cast(Expr):
    """Value conversion between scalars (C semantics; float to int truncates, f32 to bf16/f16/fp8 rounds to nearest even
    (fp8: saturates)), or reinterpretation between pointer types, or pointer <-> u64.
    `rounded`: see emit/rounding.py."""

    x: Expr
    rounded: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Select(Expr):
    """`cond ? a : b`; only the chosen arm is evaluated."""

    cond: Expr
    a: Expr
    b: Expr


@dataclass(frozen=True)
class StructInit(Expr):
    """A struct or array value from its members in order (`float4{a,b,c,d}`, `make_float4(...)`, `int a[2] = {1,
    2}`)."""

    values: tuple[Expr, ...]


@dataclass(frozen=True)
class Intrinsic(Expr):
    """A call of something CUDA provides. `targs` are template arguments as types or ints; args in source order.

    For a method (`cub::BlockReduce::Sum`, `cooperative_groups::grid_group::sync`) the object is args[0].
    An argument passed by reference is a place. `rounded`: see emit/rounding.py.
    """

    name: str
    args: tuple[Expr, ...] = ()
    targs: tuple[Any, ...] = ()
    rounded: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Call(Expr):
    """A call of a user function: key into Kernel.functions. By-reference arguments are places."""

    function: str
    args: tuple[Expr, ...] = ()


def root_variables(place: Expr | None) -> set[str]:
    """The variable that a place is a part of; none for memory behind a pointer."""
    while isinstance(place, Field | Index):
        place = place.base
    return {place.name} if isinstance(place, Var) else set()


def origin(e: Expr) -> Expr:
    """What a place or pointer is computed from, through members, elements, addresses, casts and memory behind pointers:
    mostly the variable that it starts at."""
    while True:
        if isinstance(e, PtrAdd | Deref):
            e = e.ptr
        elif isinstance(e, Cast):
            e = e.x
        elif isinstance(e, AddressOf | Decay):
            e = e.place
        elif isinstance(e, Field | Index):
            e = e.base
        else:
            return e
