"""Where a port must round to half precision by an instruction of its own.

`Float16(Float32(a) * Float32(b))` becomes `mul.f16`, which is the same number; but ptxas may fuse `mul.f16` with the
`add.f16` or `sub.f16` that takes the product into one `fma.rn.f16`, which is not (docs/emulator.md). Where the original
has `mul.f16` itself (`__hmul`, CUDA's operators) that is its own choice. Where it computes in float and rounds with a
`cvt`, nothing can be fused, and the port has to say so: such conversions are marked `rounded`, and written with
`lib.rounded`, which the compiler leaves as they are.

Marked is every rounded product that could become a plain multiplication, if the kernel has a sum in that type that
could become a plain addition; and every such rounded sum, if the kernel has multiplications that are plain in the
original.
What a name may hold is what is ever assigned to it or to what its pointers may name, so too much may be marked, which
costs nothing: the original has that `cvt`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from porter import ir

HALVES = ("f16", "bf16")
PLAIN = {"__hmul": "*", "__hadd": "+", "__hsub": "-"}  # `mul.f16` and the like in the original
TO_HALF = {
    "__float2half", "__float2half_rn", "__float2bfloat16", "__float2bfloat16_rn", "__double2half", "__double2bfloat16",
}  # fmt: skip
TO_FLOAT = {"__half2float", "__bfloat162float", "__internal_halfraw2float"}
SIGNS = {"fabsf", "fabs", "__habs", "abs", "copysignf"}  # the compiler moves a narrowing past these
Key = tuple[str, str]  # function ("" for the kernel), name


def keep_rounding(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with `rounded` on those conversions and operators that ptxas could otherwise fuse, on no others."""
    bodies = {"": kernel.body, **{key: f.body for key, f in kernel.functions.items()}}
    if not any(_is_half(n.type) for body in bodies.values() for n in _expressions(body)):
        return kernel
    flow = _Flow(kernel)
    plain_ops: set[tuple[str, str]] = set()  # (type, operator) of the original's own plain instructions
    port_ops: set[tuple[str, str]] = set()  # ... of what only the port would have
    for scope, body in bodies.items():
        for e in _expressions(body):
            if _is_plain(e):
                plain_ops.add((_name(e.type), _operator(e)))
            else:
                port_ops |= {(_name(e.type), op) for op in flow.narrowed(e, scope)}

    def has_sum(t: str) -> bool:
        return any((t, op) in plain_ops | port_ops for op in "+-")

    def fusible(e: ir.Expr, scope: str) -> bool:
        ops, t = flow.narrowed(e, scope), _name(e.type)
        return ("*" in ops and has_sum(t)) or (bool(ops & {"+", "-"}) and (t, "*") in plain_ops)

    def with_rounding(body: Any, scope: str) -> Any:
        def one(n: Any) -> Any:
            if not isinstance(n, ir.Binary | ir.Cast | ir.Intrinsic):
                return n
            wanted = not _is_plain(n) and _is_half(n.type) and fusible(n, scope)
            return n if n.rounded == wanted else replace(n, rounded=wanted)

        return ir.rewrite(body, one)

    functions = {key: replace(f, body=with_rounding(f.body, key)) for key, f in kernel.functions.items()}
    return replace(kernel, body=with_rounding(kernel.body, ""), functions=functions)


def _expressions(body: Any) -> Iterator[ir.Expr]:
    return (n for n in ir.walk(body) if isinstance(n, ir.Expr))


def _name(t: ir.Type) -> str:
    return t.name if isinstance(t, ir.Scalar) else ""


def _is_half(t: ir.Type) -> bool:
    return _name(t) in HALVES


def _operator(e: ir.Expr) -> str:
    return e.op if isinstance(e, ir.Binary) else PLAIN.get(getattr(e, "name", ""), "")


def _is_plain(e: ir.Expr) -> bool:
    """Whether the original has a plain half instruction here, which it leaves to ptxas to fuse."""
    if isinstance(e, ir.Binary):
        return _is_half(e.type) and not e.rounded
    return isinstance(e, ir.Intrinsic) and e.name in PLAIN and _is_half(e.type)


class _Flow:
    """What the values of a kernel may be made of, by the names that hold them."""

    def __init__(self, kernel: ir.Kernel):
        self.values: dict[Key, list[tuple[str, ir.Expr]]] = defaultdict(list)
        self.same: dict[Key, Key] = {}
        self.returned: dict[str, list[ir.Expr]] = defaultdict(list)
        self.known: dict[tuple[int, str, str], frozenset[str]] = {}
        self.kept: list[ir.Expr] = []  # keeps the ids in `known` alive
        for scope, body in (("", kernel.body), *((key, f.body) for key, f in kernel.functions.items())):
            for n in ir.walk(body):
                if isinstance(n, ir.Decl) and n.init is not None:
                    self._hold((scope, n.name), scope, n.init)
                elif isinstance(n, ir.Assign | ir.Copy):
                    value = n.value if isinstance(n, ir.Assign) else n.source
                    self._hold((scope, _base(n.target)), scope, value)
                elif isinstance(n, ir.Return) and n.value is not None:
                    self.returned[scope].append(n.value)
                elif isinstance(n, ir.Call) and n.function in kernel.functions:
                    for p, a in zip(kernel.functions[n.function].params, n.args, strict=False):
                        self._hold((n.function, p.name), scope, a)

    def _hold(self, key: Key, scope: str, value: ir.Expr) -> None:
        if not isinstance(value.type, ir.Scalar):  # a pointer or an aggregate: both names may hold what either does
            for n in ir.walk(value):
                if isinstance(n, ir.Var):
                    one, two = self._class(key), self._class((scope, n.name))
                    if one != two:
                        self.same[one] = two
                        self.values[two] += self.values.pop(one, [])
        self.values[self._class(key)].append((scope, value))

    def _class(self, key: Key) -> Key:
        while key in self.same:
            key = self.same[key]
        return key

    def narrowed(self, e: ir.Expr, scope: str) -> frozenset[str]:
        """The operators that may be narrowed to the half type that `e` rounds to; none when it rounds nothing."""
        if not _is_half(e.type):
            return frozenset()
        if isinstance(e, ir.Binary):
            return frozenset(e.op) if e.rounded else frozenset()
        if isinstance(e, ir.Cast) and _name(e.x.type) in ("f32", "f64"):
            return self._operators(e.x, scope)
        if isinstance(e, ir.Intrinsic) and e.name in TO_HALF and e.args:
            return self._operators(e.args[0], scope)
        return frozenset()

    def _operators(self, e: ir.Expr, scope: str) -> frozenset[str]:
        """The operators on widened halves whose result `e` may be."""
        return self._ask("operators", e, scope)

    def _wide(self, e: ir.Expr, scope: str) -> bool:
        """Whether `e` may be a half that was widened (or a constant, which may be one)."""
        return bool(self._ask("wide", e, scope))

    def _ask(self, what: str, e: ir.Expr, scope: str) -> frozenset[str]:
        key = (id(e), scope, what)
        if key not in self.known:
            self.known[key] = frozenset()  # what a value holds by way of itself adds nothing
            self.kept.append(e)
            self.known[key] = self._operators_of(e, scope) if what == "operators" else self._wide_of(e, scope)
        return self.known[key]

    def _sources(self, e: ir.Expr, scope: str) -> list[tuple[str, ir.Expr]]:
        """The expressions that `e` may have its value from unchanged."""
        if isinstance(e, ir.Select):
            return [(scope, e.a), (scope, e.b)]
        if isinstance(e, ir.Unary) and e.op == "-":
            return [(scope, e.x)]
        if isinstance(e, ir.Intrinsic) and e.name in SIGNS and e.args:
            return [(scope, e.args[0])]
        if isinstance(e, ir.Cast) and _name(e.type) in ("f32", "f64") and _name(e.x.type) in ("f32", "f64"):
            return [(scope, e.x)]
        if isinstance(e, ir.Call):
            return [(e.function, value) for value in self.returned[e.function]]
        if isinstance(e, ir.StructInit):
            return [(scope, a) for a in ir.children(e) if isinstance(a, ir.Expr)]
        if isinstance(e, ir.Var | ir.Index | ir.Field | ir.Deref):
            return self.values[self._class((scope, _base(e)))]
        return []

    def _operators_of(self, e: ir.Expr, scope: str) -> frozenset[str]:
        if isinstance(e, ir.Binary):
            wide = e.op in ("+", "-", "*") and self._wide(e.a, scope) and self._wide(e.b, scope)
            return frozenset(e.op) if wide else frozenset()
        return frozenset().union(*(self._operators(x, s) for s, x in self._sources(e, scope)))

    def _wide_of(self, e: ir.Expr, scope: str) -> frozenset[str]:
        widened = isinstance(e, ir.Cast) and ir.sizeof(e.x.type) <= 2 and _is_float(e.x.type)
        if widened or isinstance(e, ir.Const) or (isinstance(e, ir.Intrinsic) and e.name in TO_FLOAT):
            return frozenset("w")
        return frozenset().union(*(self._ask("wide", x, s) for s, x in self._sources(e, scope)))


def _is_float(t: ir.Type) -> bool:
    return isinstance(t, ir.Scalar) and t.is_float


def _base(place: ir.Expr) -> str:
    """The variable that a place is in or reached through; "" for what has no single one."""
    base = ir.origin(place)
    return base.name if isinstance(base, ir.Var) else ""
