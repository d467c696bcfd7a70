"""Checks that a kernel is in the normal form that porter.ir promises. An empty list means it is."""

from __future__ import annotations

from typing import Any

from porter import ir
from porter.ir.printer import format_expr, type_text

_ARITHMETIC = {"+", "-", "*", "/", "%", "&", "|", "^"}
_COMPARISON = {"<", "<=", ">", ">=", "==", "!="}
_LOGICAL = {"&&", "||"}
_OPERATORS = _ARITHMETIC | _COMPARISON | _LOGICAL | {"<<", ">>"}


def validate(k: ir.Kernel) -> list[str]:
    """What is wrong with the kernel, one line each with its CUDA place."""
    checker = _Checker(k)
    checker.body(k.name, k.params, k.body, None)
    for key, f in k.functions.items():
        if key != f.key:
            checker.fault(f, f"function table has {f.key!r} under {key!r}")
        checker.body(f.name, f.params, f.body, f)
    return checker.faults


class _Checker:
    def __init__(self, k: ir.Kernel):
        self.kernel = k
        self.faults: list[str] = []
        self.where = ""
        self.names: set[str] = set()
        self.function: ir.Function | None = None
        self.globals = {g.name for g in k.globals} | {s.name for s in k.body if isinstance(s, ir.SharedDecl)}
        # A lambda's free variables belong to the bodies around it.
        self.everywhere = {n.name for n in ir.walk(k.body) if isinstance(n, (ir.Decl, ir.SharedDecl))}
        self.everywhere |= {p.name for p in k.params}
        for f in k.functions.values():
            self.everywhere |= {p.name for p in f.params}
            self.everywhere |= {n.name for n in ir.walk(f.body) if isinstance(n, (ir.Decl, ir.SharedDecl))}

    def fault(self, node: Any, text: str) -> None:
        self.faults.append(f"{getattr(node, 'span', '')} in {self.where}: {text}")

    def body(
        self, where: str, params: tuple[ir.FunctionParam, ...], body: tuple[ir.Stmt, ...], function: ir.Function | None
    ) -> None:
        self.where, self.function = where, function
        self.names = set()
        for p in params:
            self.declare(p, p.name)
        for n in ir.walk(body):
            if isinstance(n, (ir.Decl, ir.SharedDecl)):
                self.declare(n, n.name)
        for n in ir.walk(body):
            if isinstance(n, ir.Stmt):
                self.stmt(n)
            elif isinstance(n, ir.Expr):
                self.expr(n)
        self.jumps(body, loop=False)

    def declare(self, node: Any, name: str) -> None:
        if name in self.names:
            self.fault(node, f"name {name!r} is declared twice")
        self.names.add(name)

    # ------------------------------------------------------------ places

    def is_place(self, x: ir.Expr) -> bool:
        if isinstance(x, (ir.Var, ir.Deref, ir.HoleExpr)):
            return True
        if isinstance(x, (ir.Field, ir.Index)):
            return self.is_place(x.base)
        if isinstance(x, ir.Call):
            f = self.kernel.functions.get(x.function)
            return f is not None and f.ret_ref
        return False

    def need_place(self, node: Any, x: ir.Expr, what: str) -> None:
        if not self.is_place(x):
            self.fault(node, f"{what} is not a place: {format_expr(x)}")

    # ------------------------------------------------------------ statements

    def stmt(self, s: ir.Stmt) -> None:
        if isinstance(s, ir.Assign):
            self.need_place(s, s.target, "assignment target")
            self.same(s, s.target.type, s.value, "assigned value")
        elif isinstance(s, ir.Decl) and s.init is not None:
            if s.ref:
                self.need_place(s, s.init, "referee")
            self.same(s, s.type, s.init, "initial value")
        elif isinstance(s, (ir.If, ir.While, ir.DoWhile)):
            self.boolean(s, s.cond)
            if isinstance(s, ir.If) and s.is_constexpr:
                if s.taken is None:
                    self.fault(s, "if constexpr without a decision")
                elif (s.orelse if s.taken else s.then) != ():
                    self.fault(s, "if constexpr with both arms")
        elif isinstance(s, ir.For) and s.cond is not None:
            self.boolean(s, s.cond)
        elif isinstance(s, ir.Return):
            self.returned(s)
        elif isinstance(s, ir.Asm):
            for _, x in s.outputs:
                self.need_place(s, x, "asm output")

    def returned(self, s: ir.Return) -> None:
        ret = self.function.ret if self.function is not None else ir.VOID
        if s.value is None:
            if ret != ir.VOID:
                self.fault(s, "return without a value")
            return
        self.same(s, ret, s.value, "returned value")
        if self.function is not None and self.function.ret_ref:
            self.need_place(s, s.value, "returned reference")

    def jumps(self, body: tuple[ir.Stmt, ...], loop: bool) -> None:
        for s in body:
            if isinstance(s, (ir.Break, ir.Continue)) and not loop:
                self.fault(s, f"{type(s).__name__.lower()} outside a loop")
            elif isinstance(s, ir.If):
                self.jumps(s.then, loop)
                self.jumps(s.orelse, loop)
            elif isinstance(s, ir.Scope):
                self.jumps(s.body, loop)
            elif isinstance(s, (ir.For, ir.While, ir.DoWhile)):
                self.jumps(s.body, True)
            elif isinstance(s, ir.Switch):
                for _, b in s.cases:
                    self.jumps(b, loop)
                    self.no_switch_break(b)

    def no_switch_break(self, body: tuple[ir.Stmt, ...]) -> None:
        for s in body:
            if isinstance(s, ir.Break):
                self.fault(s, "break inside a switch case")
            elif isinstance(s, ir.If):
                self.no_switch_break(s.then)
                self.no_switch_break(s.orelse)
            elif isinstance(s, ir.Scope):
                self.no_switch_break(s.body)

    def same(self, node: Any, t: ir.Type, x: ir.Expr, what: str) -> None:
        if isinstance(x, ir.HoleExpr) or _equal(t, x.type):
            return
        self.fault(node, f"{what} has type {type_text(x.type)}, not {type_text(t)}: {format_expr(x)}")

    def boolean(self, node: Any, x: ir.Expr) -> None:
        if x.type != ir.BOOL and not isinstance(x, ir.HoleExpr):
            self.fault(node, f"condition of type {type_text(x.type)}: {format_expr(x)}")

    # ------------------------------------------------------------ expressions

    def expr(self, x: ir.Expr) -> None:
        if not isinstance(x.type, ir.Type):
            self.fault(x, f"no type: {x!r}")
        if x.type == ir.VOID and not isinstance(x, (ir.Intrinsic, ir.Call, ir.HoleExpr, ir.Const, ir.Deref, ir.Var)):
            self.fault(x, f"void value: {format_expr(x)}")
        if isinstance(x, ir.Var):
            self.variable(x)
        elif isinstance(x, ir.Binary):
            self.binary(x)
        elif isinstance(x, ir.Unary):
            if x.type != x.x.type and not isinstance(x.x, ir.HoleExpr):
                self.fault(x, f"operand of {x.op} has another type: {format_expr(x)}")
        elif isinstance(x, ir.Cast):
            self.cast(x)
        elif isinstance(x, ir.Select):
            self.boolean(x, x.cond)
            for arm in (x.a, x.b):
                self.same(x, x.type, arm, "arm of ?:")
        elif isinstance(x, ir.Field):
            self.field(x)
        elif isinstance(x, ir.Index):
            self.need_place(x, x.base, "indexed array") if not isinstance(x.base, (ir.StructInit, ir.Field)) else None
            if not isinstance(x.base.type, ir.Array) and not isinstance(x.base, ir.HoleExpr):
                self.fault(x, f"index into {type_text(x.base.type)}: {format_expr(x)}")
            self.integer(x, x.index)
        elif isinstance(x, ir.Deref):
            self.pointer(x, x.ptr)
        elif isinstance(x, ir.PtrAdd):
            self.pointer(x, x.ptr)
            self.integer(x, x.index)
        elif isinstance(x, (ir.AddressOf, ir.Decay)):
            self.need_place(x, x.place, type(x).__name__)
        elif isinstance(x, ir.StructInit):
            self.struct(x)
        elif isinstance(x, ir.Call):
            self.call(x)

    def variable(self, x: ir.Var) -> None:
        if x.name in self.names or x.name in self.globals:
            return
        f = self.function
        if f is not None and f.captures_enclosing and x.name in self.everywhere:
            return
        self.fault(x, f"unknown name {x.name!r}")

    def binary(self, x: ir.Binary) -> None:
        if isinstance(x.a, ir.HoleExpr) or isinstance(x.b, ir.HoleExpr):
            return
        if x.op not in _OPERATORS:
            self.fault(x, f"unknown operator {x.op!r}")
        elif x.op in ("<<", ">>"):
            if x.type != x.a.type or not _is_int(x.b.type):
                self.fault(x, f"shift types: {format_expr(x)}")
        elif not _equal(x.a.type, x.b.type):
            self.fault(x, f"operands of {x.op} are {type_text(x.a.type)} and {type_text(x.b.type)}: {format_expr(x)}")
        elif x.op in _COMPARISON | _LOGICAL:
            if x.type != ir.BOOL:
                self.fault(x, f"{x.op} of type {type_text(x.type)}")
            if x.op in _LOGICAL and x.a.type != ir.BOOL:
                self.fault(x, f"{x.op} on {type_text(x.a.type)}")
        elif x.type != x.a.type or not isinstance(x.type, ir.Scalar):
            self.fault(x, f"{x.op} of type {type_text(x.type)} on {type_text(x.a.type)}: {format_expr(x)}")
        elif x.type.name in ("bool", "i8", "u8", "i16", "u16"):
            self.fault(x, f"{x.op} without integer promotion: {format_expr(x)}")

    def cast(self, x: ir.Cast) -> None:
        a, b = x.x.type, x.type
        if isinstance(x.x, ir.HoleExpr):
            return
        scalar = isinstance(a, ir.Scalar) and isinstance(b, ir.Scalar)
        pointers = isinstance(a, ir.Pointer) and isinstance(b, ir.Pointer)
        number = (isinstance(a, ir.Pointer) and b == ir.U64) or (a == ir.U64 and isinstance(b, ir.Pointer))
        if not (scalar or pointers or number) or a == b:
            self.fault(x, f"cast from {type_text(a)} to {type_text(b)}: {format_expr(x)}")

    def field(self, x: ir.Field) -> None:
        t = x.base.type
        if isinstance(x.base, ir.HoleExpr):
            return
        if not isinstance(t, ir.Struct):
            self.fault(x, f"field of {type_text(t)}: {format_expr(x)}")
            return
        for f in t.fields:
            if f.name == x.name:
                if not _equal(f.type, x.type):
                    self.fault(x, f"field {x.name} is {type_text(f.type)}, not {type_text(x.type)}")
                return
        self.fault(x, f"{t.name} has no field {x.name!r}")

    def struct(self, x: ir.StructInit) -> None:
        if isinstance(x.type, ir.Array):
            if len(x.values) != x.type.length:
                self.fault(x, f"{len(x.values)} values for {type_text(x.type)}")
            for v in x.values:
                self.same(x, x.type.elem, v, "element")
        elif isinstance(x.type, ir.Struct):
            if len(x.values) != len(x.type.fields):
                self.fault(x, f"{len(x.values)} values for {x.type.name}")
            for f, v in zip(x.type.fields, x.values, strict=False):
                self.same(x, f.type, v, f"member {f.name}")
        else:
            self.fault(x, f"members for {type_text(x.type)}")

    def call(self, x: ir.Call) -> None:
        f = self.kernel.functions.get(x.function)
        if f is None:
            self.fault(x, f"call of unknown function {x.function!r}")
            return
        if len(f.params) != len(x.args):
            self.fault(x, f"{f.name} takes {len(f.params)} arguments, not {len(x.args)}")
        for p, a in zip(f.params, x.args, strict=False):
            self.same(x, p.type, a, f"argument {p.name} of {f.name}")
            if p.by_ref:
                self.need_place(x, a, f"reference argument {p.name} of {f.name}")
        if not _equal(f.ret, x.type):
            self.fault(x, f"{f.name} returns {type_text(f.ret)}, not {type_text(x.type)}")

    def pointer(self, node: Any, x: ir.Expr) -> None:
        if not isinstance(x.type, ir.Pointer) and not isinstance(x, ir.HoleExpr):
            self.fault(node, f"{type_text(x.type)} used as a pointer: {format_expr(x)}")

    def integer(self, node: Any, x: ir.Expr) -> None:
        if not _is_int(x.type) and not isinstance(x, ir.HoleExpr):
            self.fault(node, f"index of type {type_text(x.type)}: {format_expr(x)}")


def _is_int(t: ir.Type) -> bool:
    return isinstance(t, ir.Scalar) and t.is_int


def _equal(a: ir.Type, b: ir.Type) -> bool:
    """Equal, where constness and memory space of a pointee do not count."""
    if isinstance(a, ir.Pointer) and isinstance(b, ir.Pointer):
        return _equal(a.elem, b.elem) or ir.VOID in (a.elem, b.elem)
    if isinstance(a, ir.Array) and isinstance(b, ir.Array):
        return a.length == b.length and _equal(a.elem, b.elem)
    if isinstance(a, ir.Struct) and isinstance(b, ir.Struct):
        handles = not a.fields and not b.fields and a.name.split("::")[0] == b.name.split("::")[0]
        return a.name == b.name or handles  # library handles convert to each other
    return a == b
