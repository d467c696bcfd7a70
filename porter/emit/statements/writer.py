"""Statements: the structured body of one function to lines of CuTeDSL, each with the CUDA span it came from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from porter import codes, ir
from porter.emit.evaluate import evaluate
from porter.emit.expressions.expr import ExprWriter
from porter.emit.expressions.ranges import interval, upper
from porter.emit.generic import ConstVariants, InstanceIf, Variants
from porter.emit.spaces import mixed
from porter.emit.statements.for_loops import write_for
from porter.emit.statements.memory import root_pointer
from porter.emit.text import ATOM, COMPARE, TERNARY, Scope, Text, is_null_constant, is_readonly
from porter.model import Hole
from porter.source import NO_SPAN, Span

#: what a line that is written so shows of the patterns that have no pass of their own
_SHOWS = (("lib.c_div(", "c_division"), ("lib.c_mod(", "c_division"), ("lib.dyn_shared(", "dynamic_shared"))


@dataclass
class Line:
    """`by`: names of the patterns that the line shows, in the order in which they came."""

    indent: int
    text: str
    span: Span = NO_SPAN
    by: tuple[str, ...] = ()


@dataclass
class BodyWriter:
    """Collects the lines of one function body."""

    scope: Scope
    assigned: set[str]  # variables assigned after their declaration, anywhere in the function
    several: set[str] = field(default_factory=set)  # those that arms of different instances declare
    lines: list[Line] = field(default_factory=list)
    env: dict[int, dict[str, int]] = field(default_factory=dict)  # trace-time constants by instance
    where: tuple[int, ...] | None = None  # instances the current code belongs to

    roots: dict[str, str] = field(default_factory=dict)  # pointer variable -> a pointer of the same memory space
    _taken: set[str] = field(default_factory=set)  # names that `fresh` knows of, from so many lines
    _looked_at: int = 0

    def __post_init__(self) -> None:
        self.changing = self.assigned | self.several
        self.e = ExprWriter(self.scope)
        self.all_params = self.scope.params
        self.depth = 1

    def find_roots(self, body: tuple[ir.Stmt, ...]) -> None:
        """For pointers that start out null or unset: the pointer that a later assignment derives them from."""
        for n in ir.walk(body):
            value = n.init if isinstance(n, ir.Decl) else n.value if isinstance(n, ir.Assign) else None
            name = (
                n.name
                if isinstance(n, ir.Decl)
                else n.target.name
                if isinstance(n, ir.Assign) and isinstance(n.target, ir.Var)
                else None
            )
            if value is None or name is None or not self.e.is_pointer(value.type):
                continue
            root = root_pointer(value)
            if root is not None and root != name:
                self.roots.setdefault(name, root)

    def carried(self, name: str, text: str, t: ir.Type) -> str:
        """A pointer for a variable that is assigned again: of one type, whatever it points into."""
        how = "generic" if mixed(self.scope.spaces.get(name, frozenset())) else "natural"
        return f"lib.{how}({text}, {self.e.pointer_dtype(t)})"

    def _null(self, name: str, t: ir.Type) -> str:
        seen = {name}
        root = self.roots.get(name)
        while root in self.roots and root not in seen:
            seen.add(root)
            root = self.roots[root]
        dtype = self.e.pointer_dtype(t)
        spaces = self.scope.spaces.get(name, frozenset())
        if mixed(spaces) or spaces == {"generic"}:
            return f"lib.pointer({dtype}, 0)"
        if root and root not in seen and self.e.is_visible(root):
            return f"lib.null_like({self.e.name(root)}, {dtype})"
        return f"lib.pointer({dtype}, 0)"

    # ---- output

    def put(self, text: str, span: Span, *by: str) -> None:
        """Write a line; `by` are patterns of the emitter itself, beside those that rewrote the statement."""
        shown = [name for sign, name in _SHOWS if sign in text]
        if not text.startswith("#") and self.scope.params.named_in(text):
            shown.append("template_parameters")
        self.lines.append(Line(self.depth, text, span, tuple(dict.fromkeys((*span.rewritten, *by, *shown)))))

    def comment(self, s: ir.Stmt) -> None:
        for row in s.comment.splitlines():
            row = row.strip().lstrip("/*").rstrip("*/").strip()
            if row:
                self.put(f"# {row}", s.span)

    def see(self, key: str) -> None:
        """From here on the shown name of a definition means that one."""
        self.scope.visible[self.scope.shown.get(key, key)] = key

    @contextmanager
    def nested(self) -> Iterator[None]:
        """What is declared inside is not visible after it."""
        saved = dict(self.scope.visible)
        yield
        self.scope.visible = saved

    def body(self, stmts: tuple[ir.Stmt, ...], span: Span = NO_SPAN) -> None:
        start = len(self.lines)
        with self.nested():
            for s in stmts:
                self.stmt(s)
        if not any(not x.text.startswith("#") for x in self.lines[start:]):
            self.put("pass", stmts[0].span if stmts else span)

    def block(self, head: str, stmts: tuple[ir.Stmt, ...], span: Span, *by: str) -> None:
        self.put(head, span, *by)
        self.depth += 1
        self.body(stmts, span)
        self.depth -= 1

    def stmt(self, s: ir.Stmt) -> None:
        if s.comment:
            self.comment(s)
        outer = self.scope.params
        self.scope.params = self.scope.source_names(s.span) or self.all_params
        self.e.forget()
        self._write(s)
        self.e.forget()
        self.scope.params = outer

    def _write(self, s: ir.Stmt) -> None:
        match s:
            case ir.Decl():
                self._decl(s)
            case ir.SharedDecl():
                self._shareddecl(s)
            case ir.Assign():
                self._assign(s)
            case ir.Copy():
                self._copy(s)
            case ir.ExprStmt():
                self._exprstmt(s)
            case ir.Asm():
                self._asm(s)
            case ir.If():
                self._if(s)
            case ir.For():
                self._for(s)
            case ir.While():
                self._while(s)
            case ir.Return():
                self._return(s)
            case ir.Scope():
                self._scope(s)
            case ir.HoleStmt():
                self._holestmt(s)
            case InstanceIf():
                self._instanceif(s)
            case _:
                self.hole(codes.UNSTRUCTURED_CONTROL_FLOW, type(s).__name__, "no translation of this statement", s.span)

    def hole(self, code: str, cuda: str, reason: str, span: Span) -> None:
        n = len(self.scope.holes) + 1
        self.scope.holes.append(Hole(code, span, cuda, reason))
        for row in cuda.splitlines()[:12]:
            self.put(f"# CUDA: {row.rstrip()}", span)
        self.put(f'runtime.hole({n}, "{code}")  # {reason}', span)

    # ---- declarations

    def _decl(self, s: ir.Decl) -> None:
        name = self.e.name(s.name)
        self.see(s.name)
        if s.name in self.scope.memory:
            self._memory(s, name)
            return
        if s.init is None:
            self._declare_zero(s, name)
            return
        text = self.e.expr(s.init)
        is_int = all(k[0] in "iub" and k != "bf16" for k in self.e.kinds(s.type)) and not self.e.is_pointer(s.type)
        fixed = s.name not in self.changing
        bound = upper(s.init, self.scope.bounds) if fixed else None
        if bound is not None:
            self.scope.bounds[s.name] = bound
        if text.static and is_int and fixed:
            self.scope.static.add(s.name)
            self._remember(s.name, s.init)
            self.put(f"{self.own_name(s.name, s.type)} = {text.text}", s.span)
            return
        if self.e.is_pointer(s.type):
            if is_null_constant(s.init):
                text = Text(self._null(s.name, s.type))
            elif s.name in self.assigned:
                text = Text(self.carried(s.name, text.text, s.type))
            self.put(f"{name} = {text.text}", s.span)
            return
        value = self.e.settled(s.init) if s.name in self.assigned else self.typed(text, s.type)
        self.put(f"{name} = {value.text}", s.span)

    def own_name(self, key: str, t: ir.Type) -> str:
        """The Python name of a number at trace time: one that no variable of another scope has, unless the DSL takes
        Python's integers for the type of both."""
        shown = self.scope.shown.get(key, key)
        if not self.e.kinds(t) <= {"i32", "bool"} and list(self.scope.shown.values()).count(shown) > 1:
            self.scope.python_names[key] = self.fresh(self.e.name(key))
        return self.e.name(key)

    def typed(self, text: Text, t: ir.Type) -> Text:
        return Text(f"{self.e.dtype(t)}({text.text})") if text.static else text

    def _remember(self, name: str, init: ir.Expr) -> None:
        for i in range(self.scope.params.count):
            v = evaluate(init, i, self.env.get(i, {}))
            if v is not None:
                self.env.setdefault(i, {})[name] = v
        found = interval(init, self.scope.ranges)
        if found is not None:
            self.scope.ranges[name] = found
        self.scope.constants[name] = tuple(self.env.get(i, {}).get(name) for i in range(self.scope.params.count))

    def _declare_zero(self, s: ir.Decl, name: str) -> None:
        t = s.type
        if self.e.is_pointer(t):
            self.put(f"{name} = {self._null(s.name, t)}", s.span)
        elif self.e.kinds(t) == {"bool"}:
            self.put(f"{name} = Boolean(False)", s.span)
        else:
            self.put(f"{name} = {self.e.dtype(t)}({'0.0' if self.e.is_float(t) else '0'})", s.span)

    def _memory(self, s: ir.Decl, name: str) -> None:
        leaves = self.e.leaves(s.type)
        count = self.e.count(leaves)
        self.put(f"{name} = lib.local({self.e.leaf_dtype(leaves)}, {count})", s.span)
        if s.init is not None:
            var = ir.Var(s.name, type=s.type, span=s.span)
            self.put(self.e.store(var, self.e.value(s.init)), s.span)

    def _shareddecl(self, s: ir.SharedDecl) -> None:
        name = self.e.name(s.name)
        self.see(s.name)
        self.scope.memory.add(s.name)
        if s.dynamic:
            elem: ir.Type = s.type
            if isinstance(elem, ir.Array):
                elem = elem.elem
            elif isinstance(elem, Variants):
                elem = Variants(tuple(t.elem if isinstance(t, ir.Array) else t for t in elem.types))
            leaves = self.e.leaves(elem)
            text = f"lib.dyn_shared({self.e.leaf_dtype(leaves)}, {max(16, s.align)})"
            self.put(f"{name} = {self._kept(s, text)}", s.span)
            return
        leaves = self.e.leaves(s.type)
        count = self.e.count(leaves)
        align = max(16, s.align)
        suffix = "" if align == 16 else f", {align}"
        self.put(f"{name} = {self._kept(s, f'lib.shared({self.e.leaf_dtype(leaves)}, {count}{suffix})')}", s.span)

    def _kept(self, s: ir.SharedDecl, text: str) -> str:
        return f"lib.in_register({text})" if s.name in self.scope.kept else text

    # ---- assignments

    def _assign(self, s: ir.Assign) -> None:
        t = s.target
        if isinstance(t, ir.Var) and t.name not in self.scope.memory:
            name = self.e.name(t.name)
            if self.e.is_pointer(t.type):
                text = (
                    self._null(t.name, t.type)
                    if is_null_constant(s.value)
                    else self.carried(t.name, self.e.expr(s.value).text, t.type)
                )
                self.put(f"{name} = {text}", s.span)
                return
            self.put(f"{name} = {self.typed(self.e.expr(s.value), t.type).text}", s.span)
            return
        value = self.e.value(s.value) if not self.e.is_pointer(t.type) else self.e.expr(s.value)
        volatile = isinstance(t, ir.Deref) and t.volatile
        if self.e.kinds(t.type) <= {"f32", "i32"} and not volatile:
            value = self.e.operand(s.value)
        self.put(self.e.store(t, value), s.span)

    def _copy(self, s: ir.Copy) -> None:
        dst, src = self.e.flat(s.target), self.e.flat(s.source)
        leaves = self.e.leaves(s.target.type)
        count = self.e.count(leaves)
        aligns, sizes = self.e.align(s.target.type), self.e.sizes(s.target.type)
        extra = "" if aligns == sizes else f", align={self.e.const(aligns, of_bytes=True)}"
        if is_readonly(s.source):
            extra += ", readonly=True"
        target, source = self.e.pointer_to(dst), self.e.pointer_to(src)
        if tuple(x.scalar for x in dst.leaves) != tuple(x.scalar for x in leaves):
            target = Text(f"lib.view({target.text}, {self.e.leaf_dtype(leaves)})")
        self.put(f"lib.copy({target.text}, {source.text}, {count}{extra})", s.span)

    def _exprstmt(self, s: ir.ExprStmt) -> None:
        if isinstance(s.value, ir.Const):
            return
        if isinstance(s.value, ir.HoleExpr):
            self.hole(s.value.code, s.value.cuda, s.value.reason, s.span)
            return
        self.put(self.e.expr(s.value).text, s.span)

    def _asm(self, s: ir.Asm) -> None:
        from porter.emit.expressions.inline_asm import asm_lines

        lines = asm_lines(self.e, s)
        if lines is None:
            self.hole(codes.UNTRANSLATED_PTX, s.template, "this inline PTX has no translation", s.span)
            return
        for text in lines:
            self.put(text, s.span)

    # ---- control flow

    def _if(self, s: ir.If) -> None:
        cond = self.e.boolean(s.cond)
        head = f"if cutlass.const_expr({cond.text}):" if cond.static else f"if {cond.text}:"
        if s.then or not s.orelse:
            self.block(head, s.then, s.span)
            if s.orelse:
                self._else(s.orelse, s.span)
            return
        text = f"not {cond.at(COMPARE)}"
        self.block(f"if cutlass.const_expr({text}):" if cond.static else f"if {text}:", s.orelse, s.span)

    def _else(self, stmts: tuple[ir.Stmt, ...], span: Span) -> None:
        if len(stmts) == 1 and isinstance(stmts[0], ir.If) and stmts[0].then and not stmts[0].comment:
            inner = stmts[0]
            cond = self.e.boolean(inner.cond)
            if not cond.static:
                self.block(f"elif {cond.text}:", inner.then, inner.span)
                if inner.orelse:
                    self._else(inner.orelse, span)
                return
        self.block("else:", stmts, span)

    def _instanceif(self, s: InstanceIf) -> None:
        saved = self.where
        here = set(saved) if saved is not None else set(range(self.scope.params.count))
        first = True
        for ids, body in s.arms:
            inside = tuple(i for i in ids if i in here)
            if not inside:
                continue
            if set(inside) == here and first:
                for st in body:
                    self.stmt(st)
                return
            cond = self._written_condition(s, inside) or self.scope.params.condition(inside if saved is None else ids)
            self.where = inside
            head = f"{'if' if first else 'elif'} cutlass.const_expr({cond}):"
            self.block(head, body, s.span, "template_parameters")
            first = False
        self.where = saved

    def _written_condition(self, s: InstanceIf, inside: tuple[int, ...]) -> str | None:
        """The source's own condition, when the port can evaluate it at trace time."""
        if s.cond is None or (isinstance(s.cond, ir.Const) and s.cond.origin not in self.scope.params.names):
            return None
        if isinstance(s.cond, ConstVariants) and s.cond.origin not in self.scope.params.names:
            return None
        here = set(self.instances())
        holds = set(s.yes) & here
        if set(inside) not in (holds, here - holds) or not self._evaluable(s.cond):
            return None
        text = self.e.boolean(s.cond)
        if not text.static:
            return None
        return text.text if set(inside) == holds else f"not {text.at(ATOM)}"

    def _evaluable(self, e: ir.Expr) -> bool:
        """Constants that name a parameter, and operators over them: anything else was evaluated for some instance
        only."""
        for n in ir.walk(e):
            if isinstance(n, ir.Const | ConstVariants):
                if isinstance(n, ConstVariants) and n.origin not in self.scope.params.names:
                    return False
            elif not isinstance(n, ir.Binary | ir.Unary | ir.Cast):
                return False
        return True

    def _scope(self, s: ir.Scope) -> None:
        with self.nested():
            for st in s.body:
                self.stmt(st)

    def _while(self, s: ir.While) -> None:
        with self.nested():
            self._visible_while(s)

    def _visible_while(self, s: ir.While) -> None:
        if s.pre:
            # the test has statements of its own: run them before the loop and again at the end of each turn
            flag = self.fresh("again")
            for st in s.pre:
                self.stmt(st)
            self.put(f"{flag} = {self.typed(self.e.boolean(s.cond), ir.BOOL).text}", s.span)
            self.put(f"while {flag}:", s.span)
            self.depth += 1
            self.body(s.body)
            for st in s.pre:
                self.stmt(self._again(st))
            self.put(f"{flag} = {self.typed(self.e.boolean(s.cond), ir.BOOL).text}", s.span)
            self.depth -= 1
            return
        cond = self.e.boolean(s.cond)
        if cond.prec >= TERNARY:
            # a lazy condition needs a flag: conditional expressions in a while test are evaluated outside it
            flag = self.fresh("again")
            self.put(f"{flag} = {cond.text}", s.span)
            self.put(f"while {flag}:", s.span)
            self.depth += 1
            self.body(s.body)
            self.put(f"{flag} = {self.e.boolean(s.cond).text}", s.span)
            self.depth -= 1
            return
        self.block(f"while {cond.text}:", s.body, s.span)

    def _again(self, st: ir.Stmt) -> ir.Stmt:
        """A declaration in a loop test is an assignment the second time."""
        if isinstance(st, ir.Decl) and st.init is not None and st.name not in self.scope.memory:
            return ir.Assign(ir.Var(st.name, type=st.type, span=st.span), st.init, span=st.span)
        return st

    def fresh(self, wanted: str) -> str:
        if not self._taken:
            self._taken = {*self.scope.python_names.values(), *self.all_params.names}
        self._taken |= {x.text.split(" ")[0] for x in self.lines[self._looked_at :]} | set(self.scope.params.names)
        self._looked_at = len(self.lines)
        name, n = wanted, 1
        while name in self._taken:
            n += 1
            name = f"{wanted}_{n}"
        return name

    def _return(self, s: ir.Return) -> None:
        if s.value is None:
            return
        value = self.e.value(s.value) if not self.e.is_pointer(s.value.type) else self.e.expr(s.value)
        self.put(f"return {value.text}", s.span)

    def _holestmt(self, s: ir.HoleStmt) -> None:
        self.hole(s.code, s.cuda, s.reason, s.span)

    # ---- for loops

    def _for(self, s: ir.For) -> None:
        if not write_for(self, s):
            self._as_while(s)

    def instances(self) -> tuple[int, ...]:
        return self.where if self.where is not None else tuple(range(self.scope.params.count))

    def _as_while(self, s: ir.For) -> None:
        with self.nested():
            for st in s.init:
                self.stmt(st)
            cond = s.cond if s.cond is not None else ir.Const(True, type=ir.BOOL)
            self._while(ir.While(cond, (*s.body, *s.step), span=s.span))
