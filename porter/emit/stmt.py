"""Statements: the structured body of one function to lines of CuTeDSL, each with the CUDA span it came from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from porter import ir
from porter.emit.evaluate import evaluate
from porter.emit.expressions.expr import ExprWriter
from porter.emit.expressions.ranges import INT_MAX, interval, upper
from porter.emit.generic import ConstVariants, InstanceIf, Variants
from porter.emit.loops import LongStride, Range, as_long_stride, as_range, counted, is_light, step_of, trips
from porter.emit.spaces import mixed
from porter.emit.text import ATOM, COMPARE, TERNARY, Scope, Text, is_readonly
from porter.model import Hole
from porter.source import NO_SPAN, Span

UNROLL_TRIPS = 16  # loops with at most so many known trips are unrolled at trace time without a pragma
COUNTED_UNROLL = 4  # what nvcc unrolls small loops by when it can count their turns
MAX_UNROLL = 256  # beyond this a trace-time unroll takes seconds; the compiler unrolls instead


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
                self.hole("PRT110", type(s).__name__, "no translation of this statement", s.span)

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
            if is_null(s.init):
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
                    if is_null(s.value)
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
            self.hole("PRT506", s.template, "this inline PTX has no translation", s.span)
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
        here = set(self._instances())
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
        known = [trips(s, i, self.env.get(i, {})) for i in self._instances()]
        if all(k is not None for k in known) and self._unrolled(s, [k for k in known if k is not None]):
            return
        r = as_range(s, self.scope.memory)
        if r is not None and self._range(s, r):
            return
        long = as_long_stride(s, self.scope.memory)
        if long is not None:
            self._long_stride(s, long)
            return
        self._as_while(s)

    def _instances(self) -> tuple[int, ...]:
        return self.where if self.where is not None else tuple(range(self.scope.params.count))

    def _unrolled(self, s: ir.For, known: list[list[int]]) -> bool:
        head = counted(s)
        assert head is not None
        name = head[0]
        longest = max(len(k) for k in known)
        wanted = s.unroll == 0 or (s.unroll or 0) > 1 or longest <= UNROLL_TRIPS or self._indexes_local(s)
        geometric = as_range(s, self.scope.memory) is None
        if s.unroll == 1 or longest > MAX_UNROLL or not (wanted or geometric):
            return False
        weight = sum(1 for _ in ir.walk(s.body))
        if longest * weight > 60000:
            return False
        iterable = self._iterable(s, known)
        if iterable is None:
            return False
        py = self.own_name(name, head[1])
        if " if " in iterable and not iterable.startswith(("cutlass.", "lib.")):
            # CuTeDSL cannot take a conditional expression as what a loop runs over
            table = self.fresh(f"{py}_values")
            self.put(f"{table} = {iterable}", s.span, "constant_loop")
            iterable = table
        self.scope.static.add(name)
        values = [v for k in known for v in k] or [0]
        self.scope.ranges[name] = min(values), max(values)
        if min(values) >= 0:
            self.scope.bounds[name] = max(values)
        with self.nested():
            self.see(name)
            self.block(f"for {py} in {iterable}:", s.body, s.span, "constant_loop")
        return True

    def _iterable(self, s: ir.For, known: list[list[int]]) -> str | None:
        r = as_range(s, self.scope.memory)
        if (r is not None and not r.unsigned_compare) or (r is not None and all(v >= 0 for k in known for v in k)):
            start, stop, step = self.e.expr(r.start), self.e.expr(r.stop), self.e.expr(r.step)
            if start.static and stop.static and step.static:
                return self._range_text("cutlass.range_constexpr", r, start, stop, step)
        if all(k == known[0] for k in known):
            if len(known[0]) == 1:
                return f"({known[0][0]},)"
            return f"({', '.join(map(str, known[0]))})"
        head = counted(s)
        assert head is not None
        step_op = step_of(s, head[0])
        start = self.e.expr(head[2])
        if step_op is not None and start.static and isinstance(step_op[1], ir.Const):
            halves = (step_op[0] == ">>" and step_op[1].value == 1) or (step_op[0] == "/" and step_op[1].value == 2)
            if halves and all(k == [v for v in _halving(k[0] if k else 0)] for k in known):
                return f"lib.halving({start.text})"
        table = [tuple(k) for k in known]
        full: list[Any] = [None] * self.scope.params.count
        for i, k in zip(self._instances(), table, strict=True):
            full[i] = k
        return self.scope.params.const_text(tuple(full))

    def _indexes_local(self, s: ir.For) -> bool:
        """True when the loop variable picks elements of a thread-private array, which registers cannot do at run
        time."""
        head = counted(s)
        if head is None:
            return False
        for n in ir.walk(s.body):
            if isinstance(n, ir.Index) and any(isinstance(v, ir.Var) and v.name == head[0] for v in ir.walk(n.index)):
                root: ir.Expr = n.base
                while isinstance(root, ir.Field | ir.Index):
                    root = root.base
                if isinstance(root, ir.Var) and root.name in self.scope.memory:
                    return True
        return False

    def _range_text(self, fn: str, r: Range, start: Text, stop: Text, step: Text, extra: str = "") -> str:
        stop_text = stop.text
        if r.inclusive:
            stop_text = f"{stop.at(4)} {'-' if r.descending else '+'} 1"
        step_text = step.text
        if r.descending:
            step_text = step_text[1:] if step_text.startswith("-") else f"-{step.at(ATOM)}"
        if step_text == "1" and start.text in ("0", "Int32(0)"):
            return f"{fn}({stop_text}{extra})"
        if step_text == "1":
            return f"{fn}({start.text}, {stop_text}{extra})"
        return f"{fn}({start.text}, {stop_text}, {step_text}{extra})"

    def _range(self, s: ir.For, r: Range) -> bool:
        kinds = self.e.kinds(r.type)
        bounds = self.scope.bounds
        if kinds != {"i32"} and not (
            kinds == {"u32"} and upper(r.start, bounds) is not None and upper(r.stop, bounds) is not None
        ):
            return False
        nonneg = upper(r.start, bounds) is not None and not r.descending
        if r.unsigned_compare and not (nonneg and upper(r.stop, bounds) is not None):
            return False
        step_known = upper(r.step, bounds)
        if step_known is None and (kinds == {"u32"} or not isinstance(r.step, ir.Const | ConstVariants)):
            return False  # the sign of the step is unknown
        if kinds == {"u32"} and r.inclusive and (r.descending or upper(r.stop, bounds) == INT_MAX):
            return False  # one past the end is no number of the type, or no Int32
        start, stop, step = self._int32(r.start), self._int32(r.stop), self._int32(r.step)
        if start is None or stop is None or step is None:
            return False
        if r.descending and not step.static:
            return False
        fn = "range"
        extra = ""
        if s.unroll is not None:
            fn = "cutlass.range"
            extra = (
                ", unroll_full=True"
                if s.unroll == 0 and start.static and stop.static
                else f", unroll={max(s.unroll, 1)}"
            )
            if s.unroll == 0 and not (start.static and stop.static):
                fn, extra = "range", ""
        if nonneg:
            bounds[r.var] = INT_MAX
        py = self.e.name(r.var)
        by = "counted_loop" if step.text == "1" else "strided_loop"
        if kinds == {"u32"} and by == "strided_loop":
            most = (upper(r.stop, bounds) or 0) + (step_known if step_known is not None else INT_MAX)
            by = "counted_loop" if most <= INT_MAX else "unsigned_stride"
        if kinds == {"u32"}:
            inner = self.fresh(f"{py}_i32")
            self.put(f"for {inner} in {self._range_text(fn, r, start, stop, step, extra)}:", s.span, by)
            self.depth += 1
            self.put(f"{py} = Uint32({inner})", s.span)
            self.body(s.body)
            self.depth -= 1
            return True
        self.block(f"for {py} in {self._range_text(fn, r, start, stop, step, extra)}:", s.body, s.span, by)
        return True

    def _long_stride(self, s: ir.For, r: LongStride) -> None:
        """A loop over the number of its turns, which the compiler counts as it counts the original's."""
        with self.nested():
            py = self.own_name(r.var, ir.I64)
            first, turn = self.fresh(f"{py}_first"), self.fresh(f"{py}_turn")
            start, stop = (self.typed(self.e.value(x), ir.I64).text for x in (r.start, r.stop))
            self.put(f"{first} = {start}", s.span, "long_stride")
            turns = f"lib.trips({first}, {stop}, {r.step})"
            unroll = COUNTED_UNROLL if s.unroll is None and is_light(s.body) else s.unroll
            loop = f"cutlass.range({turns}, unroll={unroll})" if unroll else f"range({turns})"
            self.put(f"for {turn} in {loop}:", s.span, "long_stride")
            self.depth += 1
            self.see(r.var)
            self.put(f"{py} = {first} + {turn} * {r.step}", s.span, "long_stride")
            self.body(s.body)
            self.depth -= 1

    def _int32(self, e: ir.Expr) -> Text | None:
        if self.e.kinds(e.type) <= {"i32"}:
            return self.e.expr(e)
        if self.e.kinds(e.type) <= {"u32"}:
            return self.e.low32(e)
        return None

    def _as_while(self, s: ir.For) -> None:
        with self.nested():
            for st in s.init:
                self.stmt(st)
            cond = s.cond if s.cond is not None else ir.Const(True, type=ir.BOOL)
            self._while(ir.While(cond, (*s.body, *s.step), span=s.span))


def is_null(e: ir.Expr) -> bool:
    """A null pointer constant."""
    while isinstance(e, ir.Cast):
        e = e.x
    return isinstance(e, ir.Const) and not e.value


def root_pointer(e: ir.Expr) -> str | None:
    """The pointer variable or array that a pointer expression is computed from."""
    while True:
        if isinstance(e, ir.PtrAdd):
            e = e.ptr
        elif isinstance(e, ir.Cast):
            e = e.x
        elif isinstance(e, ir.Select):
            e = e.b if is_null(e.a) else e.a
        elif isinstance(e, ir.AddressOf | ir.Decay):
            e = e.place
        elif isinstance(e, ir.Field | ir.Index):
            e = e.base
        elif isinstance(e, ir.Deref):
            e = e.ptr
        else:
            return e.name if isinstance(e, ir.Var) else None


def _halving(v: int) -> list[int]:
    out = []
    while v > 0:
        out.append(v)
        v >>= 1
    return out


def memory_names(body: Any) -> set[str]:
    """Locals that need an address: aggregates, and scalars whose address is taken or that are passed by place."""
    out: set[str] = set()
    for n in ir.walk(body):
        if isinstance(n, ir.Decl) and any(isinstance(t, ir.Array | ir.Struct) for t in _types(n.type)):
            out.add(n.name)
        elif isinstance(n, ir.AddressOf | ir.Decay):
            root: ir.Expr = n.place
            while isinstance(root, ir.Field | ir.Index):
                root = root.base
            if isinstance(root, ir.Var):
                out.add(root.name)
        elif isinstance(n, ir.SharedDecl):
            out.add(n.name)
    return out


def _types(t: ir.Type) -> tuple[Any, ...]:
    return t.types if isinstance(t, Variants) else (t,)
