"""porter's intermediate representation: CUDA kernel bodies, typed and structured, still shaped like the source.

It is not SSA. Expressions are pure apart from reading memory and calling intrinsics; assignments are statements;
every implicit conversion of C++ is an explicit `Cast`; every node knows its `Span`.

Normal form that the front end guarantees (and `validate` checks in part):
* one instance = one concrete body: no dependent types; template arguments are already substituted;
* names of locals and parameters are unique within a function (`x`, `x_1`, ...), so scopes need no care;
* `i++`, `a = b` inside expressions, comma operators and calls of user functions that write through references are
  hoisted into statements (with temporaries), keeping C++ evaluation order;
* both operands of a `Binary` have the same scalar type (shifts excepted; comparisons yield bool). C++ integer promotion
  is therefore visible as casts to i32;
* a read of an lvalue is the place itself used as an expression; `Assign.target` is a place. Places are `Var`, `Field`,
  `Index` (of an array place) and `Deref` (of a pointer value). `p[i]` is `Deref(PtrAdd(p, i))`.
* an array decays by `Decay(place)`; `&x` is `AddressOf(place)`;
* functions whose body is in the user's sources are called by `Call` (callee lowered too, in `Kernel.functions`);
  functions that CUDA, the C++ library or cub provides are `Intrinsic`, named as in C++ (`__shfl_xor_sync`, `fmaxf`,
  `std::max` is `max`, `cub::BlockReduce<float,256>::Sum` is `cub::BlockReduce::Sum`).
  Arithmetic operators, constructors and conversions on half/bf16/fp8 are `Binary`/`Unary`/`Cast`, not calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from porter.source import NO_SPAN, Span

# ---------------------------------------------------------------- types

SCALARS = (
    "void", "bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64",
    "f16", "bf16", "f32", "f64", "e4m3", "e5m2", "e8m0", "e2m1",
)  # fmt: skip
SCALAR_BYTES = {
    "void": 1, "bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "e4m3": 1, "e5m2": 1, "e8m0": 1, "e2m1": 1,
}  # fmt: skip


class Type:
    """Base of all types."""


@dataclass(frozen=True)
class Scalar(Type):
    """A scalar: one of SCALARS (char is i8, long is i64, size_t is u64)."""

    name: str

    @property
    def is_float(self) -> bool:
        return self.name in ("f16", "bf16", "f32", "f64", "e4m3", "e5m2", "e8m0", "e2m1")

    @property
    def is_unsigned(self) -> bool:
        return self.name.startswith("u") or self.name == "bool"

    @property
    def is_int(self) -> bool:
        return not self.is_float and self.name != "void"


@dataclass(frozen=True)
class TypeParam(Type):
    """A template type parameter; only in merged (generic) IR."""

    name: str


@dataclass(frozen=True)
class Pointer(Type):
    """A pointer. `space` is filled in by a pass: generic (unknown), global, shared, local."""

    elem: Type
    space: str = "generic"
    const: bool = False


@dataclass(frozen=True)
class Array(Type):
    """A C array; multi-dimensional arrays nest. `length` is an int, or an Expr over parameters in merged IR."""

    elem: Type
    length: Any


@dataclass(frozen=True)
class StructField:
    name: str
    type: Type
    offset: int  # bytes


@dataclass(frozen=True)
class Struct(Type):
    """A struct, class, union or CUDA vector type (float4, half2 have fields x, y, z, w). Bases are fields too."""

    name: str  # C++ spelling, template arguments included: "Vec<float, 4>"
    fields: tuple[StructField, ...]
    size: Any  # bytes: int (or Expr in merged IR)
    align: Any
    is_union: bool = False


VOID, BOOL = Scalar("void"), Scalar("bool")
I8, U8, I16, U16 = Scalar("i8"), Scalar("u8"), Scalar("i16"), Scalar("u16")
I32, U32, I64, U64 = Scalar("i32"), Scalar("u32"), Scalar("i64"), Scalar("u64")
F16, BF16, F32, F64 = Scalar("f16"), Scalar("bf16"), Scalar("f32"), Scalar("f64")
E4M3, E5M2 = Scalar("e4m3"), Scalar("e5m2")


def sizeof(t: Type) -> int:
    """Size in bytes of a concrete type; raises TypeError for a generic one."""
    if isinstance(t, Scalar):
        return SCALAR_BYTES[t.name]
    if isinstance(t, Pointer):
        return 8
    if isinstance(t, Array) and isinstance(t.length, int):
        return sizeof(t.elem) * t.length
    if isinstance(t, Struct) and isinstance(t.size, int):
        return t.size
    raise TypeError(f"no size for {t}")


def alignof(t: Type) -> int:
    """Alignment in bytes of a concrete type."""
    if isinstance(t, Array):
        return alignof(t.elem)
    if isinstance(t, Struct):
        return int(t.align)
    return sizeof(t)


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, kw_only=True)
class Node:
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


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


# ---------------------------------------------------------------- statements


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


# ---------------------------------------------------------------- walking and rewriting


_FIELDS: dict[type, tuple[str, ...]] = {}


def field_names(kind: type) -> tuple[str, ...]:
    """The names of the fields of a dataclass, in order; () for other types."""
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()
    return names


def children(node: Any) -> list[Any]:
    """Direct IR children of a node, of a tuple of nodes, or nothing."""
    found: list[Any] = []
    if isinstance(node, tuple):
        _nodes_of(node, found)
        return found
    for name in field_names(type(node)):
        v = getattr(node, name)
        if isinstance(v, Node):
            found.append(v)
        elif isinstance(v, tuple):
            _nodes_of(v, found)
    return found


def _nodes_of(values: tuple[Any, ...], found: list[Any]) -> None:
    for v in values:
        if isinstance(v, Node):
            found.append(v)
        elif isinstance(v, tuple):
            _nodes_of(v, found)


def walk(node: Any) -> Iterator[Any]:
    """Every IR node below and including `node`, preorder."""
    waiting = [node] if isinstance(node, Node) else children(node)[::-1]
    while waiting:
        n = waiting.pop()
        yield n
        waiting += children(n)[::-1]


def map_children(node: Any, fn: Any) -> Any:
    """A copy of `node` with fn applied to each direct child node (tuples of nodes are mapped element-wise)."""
    if isinstance(node, tuple):
        return _mapped(node, fn)
    changes = {}
    for name in field_names(type(node)):
        v = getattr(node, name)
        if isinstance(v, Node):
            new = fn(v)
        elif isinstance(v, tuple) and name != "targs":
            new = _mapped(v, fn)
        else:
            continue
        if new is not v:
            changes[name] = new
    return replace(node, **changes) if changes else node


def _mapped(values: tuple[Any, ...], fn: Any) -> tuple[Any, ...]:
    """The tuple with fn applied to its nodes; the tuple itself when that changes none."""
    out = [fn(v) if isinstance(v, Node) else _mapped(v, fn) if isinstance(v, tuple) else v for v in values]
    return tuple(out) if any(new is not v for new, v in zip(out, values, strict=True)) else values


def rewrite(node: Any, fn: Any) -> Any:
    """Bottom-up rewrite: fn(node) -> node for every node (statement tuples are not spliced; see passes for that)."""

    def one(n: Any) -> Any:
        return fn(map_children(n, one))

    return _mapped(node, one) if isinstance(node, tuple) else one(node)
