"""The state of one lowering: a kernel being translated and, inside it, one function body at a time.

`expr` and `stmt` dispatch on the cursor kind to handlers that the other lower_* modules register. A construct that
cannot be translated becomes a typed hole at the smallest place that can hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from porter import codes, ir
from porter.frontend.lower.depth import DEPTH, depth
from porter.frontend.lower.flow.function_types import numbered_type
from porter.frontend.lower.types import TypeTable, UnsupportedType
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.parse.clang_compat import Type as ClangType
from porter.source import NO_SPAN, Span


class Untranslatable(Exception):
    """Something without an equivalent: becomes a hole. `code` is PRTnnn."""

    def __init__(self, code: str, reason: str):
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Endless(Untranslatable):
    """A chain of recursive calls whose end is not seen: a hole where the chain begins, not at its last link."""


class NamePool:
    """Unique names: `x`, `x_1`, `x_2`, ... Shared by bodies that end up in one scope."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._reserved: set[str] = set()
        self._outer: set[str] = set()
        self._next: dict[str, int] = {}  # the first number of a name that may be free
        self.kernel_pool: NamePool | None = None

    def reserve(self, names: Iterable[str]) -> None:
        """Keep names (one for each mention) for the owner of the pool: guests do not take them."""
        counts: dict[str, int] = {}
        for name in names:
            n = counts[name] = counts.get(name, -1) + 1
            self._reserved.add(f"{name}_{n}" if n else name)

    def admits(self, outer: str) -> bool:
        """Whether a name of the kernel's scope means the same here; it is then kept free of locals."""
        if outer in self._outer:
            return True
        if outer in self._used and self is not self.kernel_pool:
            return False
        self._outer.add(outer)
        self._used.add(outer)
        return True

    def fresh(self, wanted: str, guest: bool = False) -> str:
        wanted = re.sub(r"\W", "_", wanted) or "v"
        name, n = wanted, 0
        if name in self._used:
            n = self._next.get(wanted, 1)
            while (name := f"{wanted}_{n}") in self._used:
                n += 1
            self._next[wanted] = n
        while name in self._used or (guest and name in self._reserved):
            n += 1
            name = f"{wanted}_{n}"
        self._used.add(name)
        return name


ExprHandler = Callable[["FunctionLowering", Cursor], ir.Expr]
StmtHandler = Callable[["FunctionLowering", Cursor], None]
EXPRESSIONS: dict[CursorKind, ExprHandler] = {}
STATEMENTS: dict[CursorKind, StmtHandler] = {}


def expression(*kinds: CursorKind) -> Callable[[ExprHandler], ExprHandler]:
    """Registers a handler for expression cursors of these kinds."""

    def register(fn: ExprHandler) -> ExprHandler:
        for k in kinds:
            EXPRESSIONS[k] = fn
        return fn

    return register


def statement(*kinds: CursorKind) -> Callable[[StmtHandler], StmtHandler]:
    """Registers a handler for statement cursors; it emits through `fx.emit`."""

    def register(fn: StmtHandler) -> StmtHandler:
        for k in kinds:
            STATEMENTS[k] = fn
        return fn

    return register


class KernelLowering:
    """What the bodies of one kernel share: types, lowered functions, global constants, source text."""

    def __init__(self, texts: ast.Texts, is_prelude: Callable[[Cursor], bool], strict: bool = False):
        self.texts = texts
        self.is_prelude = is_prelude
        self.strict = strict  # re-raise internal errors instead of making holes of them (tests)
        self.types = TypeTable(is_prelude)
        self.functions: dict[str, ir.Function] = {}
        self.captured: dict[str, set[FunctionLowering]] = {}  # key -> bodies whose variables the function uses
        self.impure: dict[str, bool] = {}  # key -> a call does more than compute a value
        self.written: dict[str, frozenset[str]] = {}  # key -> what a call changes (lower_effects.written_by)
        self.keys: dict[Cursor, str] = {}
        self.open: set[str] = set()
        self.globals: dict[str, ir.GlobalConst] = {}
        self.global_names: dict[Cursor, str] = {}
        self.global_pool = NamePool()
        self.lambdas: dict[Cursor, Any] = {}  # closure record -> lower_lambda.Closure
        self.comments: dict[str, Any] = {}  # file -> lower_comments.CommentIndex
        self.symbols: dict[Cursor, ir.Symbol] = {}  # variables that the port takes as parameters
        self.wanted: dict[str, str] = {}  # names of symbols in the case -> names of their parameters
        self.root: Cursor | None = None  # the kernel's own definition
        self.function_numbers: dict[Cursor, int] | None = None  # of functions whose address is taken, found on demand
        self.recursive: dict[Cursor, bool] = {}  # functions -> whether they may call themselves
        self.called: dict[Cursor, list[Cursor]] = {}  # functions -> those that they call
        self.kernel_decls: list[ir.Stmt] = []  # namespace-scope shared arrays, declared in the kernel
        self.internal_errors: list[str] = []

    def span(self, c: Cursor) -> Span:
        return cc.span(c)


class FunctionLowering:
    """One body: its names, the statement list being filled, and where `this` is."""

    def __init__(
        self,
        kernel: KernelLowering,
        cursor: Cursor,
        pool: NamePool | None = None,
        parent: FunctionLowering | None = None,
        guest: bool | None = None,
    ):
        self.kernel = kernel
        self.cursor = cursor
        self.pool = pool or NamePool()
        self.pool.kernel_pool = kernel.global_pool
        # A guest uses the pool of the body that holds the lambda it is about.
        self.guest = pool is not None if guest is None else guest
        self.parent = parent  # the body that holds a lambda
        self.decls: dict[Cursor, ir.Expr] = {}  # variable -> the place that stands for it
        self.anonymous: dict[str, ir.Expr] = {}  # type spelling -> variable of an anonymous union
        self.captured: set[FunctionLowering] = set()
        self.this_class: ClangType | None = None
        self.this_used = False
        self.returns_reference = False
        self.return_type: ir.Type = ir.VOID
        self.constants: dict[str, Any] = {}  # template values and constexpr locals by name, for pragmas
        self.template_names: frozenset[str] = frozenset()
        self.written_variables: set[Cursor] | None = None  # found on demand (lower_lambda)
        self.names_reserved = False
        self.folds = False  # branches over constants are chosen while lowering: a chain of recursive calls ends
        self._temps: set[str] = set()
        self._sink: list[ir.Stmt] = []

    # ------------------------------------------------------------ statements

    def emit(self, s: ir.Stmt, at: Cursor | None = None) -> None:
        if at is not None and s.span is NO_SPAN:
            object.__setattr__(s, "span", self.kernel.span(at))
        fill_spans(s, s.span)
        self._sink.append(s)

    @contextmanager
    def collect(self) -> Iterator[list[ir.Stmt]]:
        """Statements emitted inside go to the yielded list."""
        saved, self._sink = self._sink, []
        try:
            yield self._sink
        finally:
            self._sink = saved

    def emit_all(self, stmts: list[ir.Stmt] | tuple[ir.Stmt, ...]) -> None:
        self._sink.extend(stmts)

    def stmt(self, c: Cursor) -> None:
        """Lower one statement; never raises."""
        with self.collect() as out:
            try:
                handler = STATEMENTS.get(c.kind)
                if handler is not None:
                    handler(self, c)
                elif c.kind.is_expression():
                    self.discard(c)
                else:
                    raise Untranslatable(codes.UNSUPPORTED, f"statement kind {c.kind.name} is not supported")
            except (Untranslatable, UnsupportedType) as e:
                if self.folds and isinstance(e, Endless):
                    raise
                code = e.code
                self.emit(ir.HoleStmt(code, self.text(c), str(e)), c)
            except Exception as e:
                if self.kernel.strict:
                    raise
                self.kernel.internal_errors.append(f"{type(e).__name__}: {e}")
                self.emit(
                    ir.HoleStmt(codes.LOWERING_CRASHED, self.text(c), f"internal error: {type(e).__name__}: {e}"), c
                )
        self.emit_all(out)

    def block(self, c: Cursor) -> tuple[ir.Stmt, ...]:
        """The statements of a body: a compound statement or a single one."""
        from porter.frontend.lower.statements import lower_block  # cycle: what a body holds is lowered by what uses it

        with self.collect() as out:
            lower_block(self, c)
        return tuple(out)

    # ------------------------------------------------------------ expressions

    def expr(self, c: Cursor) -> ir.Expr:
        """Lower an expression. Side effects are emitted before; what cannot be translated is a HoleExpr."""
        try:
            handler = EXPRESSIONS.get(c.kind)
            if handler is None:
                raise Untranslatable(codes.UNSUPPORTED, f"expression kind {c.kind.name} is not supported")
            x = handler(self, c)
        except (Untranslatable, UnsupportedType) as e:
            if self.folds and isinstance(e, Endless):
                raise
            code = e.code
            x = self.hole(c, code, str(e))
        except RecursionError:
            raise
        except Exception as e:
            if self.kernel.strict:
                raise
            self.kernel.internal_errors.append(f"{type(e).__name__}: {e}")
            x = self.hole(c, codes.LOWERING_CRASHED, f"internal error: {type(e).__name__}: {e}")
        fill_spans(x, self.kernel.span(c))
        deep = depth(x) > DEPTH and isinstance(x.type, ir.Scalar | ir.Pointer) and x.type != ir.VOID
        return self.temp(x, "part", c) if deep and not self.is_place(x) else x

    def value(self, c: Cursor) -> ir.Expr:
        """Like `expr`, for an operand whose place does not matter: a deep place is read into a temporary too."""
        x = self.expr(c)
        return self.temp(x, "part", c) if depth(x) > DEPTH and self.is_place(x) else x

    def root(self, c: Cursor) -> ir.Expr:
        """Like `expr`, for the whole right side of a statement: a user call there needs no temporary."""
        from porter.frontend.lower.calls import lower_call  # cycle: what a body holds is lowered by what uses it

        inner = ast.strip(c)
        if inner.kind is CursorKind.CALL_EXPR:
            try:
                x = lower_call(self, inner, root=True)
            except (Untranslatable, UnsupportedType) as e:
                if self.folds and isinstance(e, Endless):
                    raise
                x = self.hole(inner, e.code, str(e))
            fill_spans(x, self.kernel.span(inner))
            return x
        return self.expr(c)

    def discard(self, c: Cursor) -> None:
        """Lower an expression for its effects only."""
        from porter.frontend.lower.effects import discard  # cycle: what a body holds is lowered by what uses it

        discard(self, c)

    def hole(self, c: Cursor, code: str, reason: str) -> ir.HoleExpr:
        try:
            t = self.kernel.types.of(c.type) if c.type.kind is not TypeKind.INVALID else ir.VOID
        except UnsupportedType:
            t = ir.VOID
        return ir.HoleExpr(code, self.text(c), reason, type=t, span=self.kernel.span(c))

    def temp(self, value: ir.Expr, name: str, at: Cursor, ref: bool = False, const: bool = True) -> ir.Var:
        """Keep a value in a new local and return the local."""
        name = self.fresh(name)
        if const and not ref:
            self._temps.add(name)
        self.emit(ir.Decl(name, value.type, value, is_const=const and not ref, ref=ref), at)
        return ir.Var(name, type=value.type, span=self.kernel.span(at))

    def is_temp(self, x: ir.Expr) -> bool:
        """Whether a value is a temporary that nothing will change."""
        return isinstance(x, ir.Var) and x.name in self._temps

    def place(self, c: Cursor, write: bool = False) -> ir.Expr:
        """Lower an lvalue. A value that has no place is kept in a temporary, unless the place will be written."""
        return self.as_place(self.expr(c), c, write)

    def as_place(self, x: ir.Expr, at: Cursor, write: bool = False) -> ir.Expr:
        if self.is_place(x):
            return x
        if write:
            if isinstance(x, ir.Select) and self.is_place(x.a) and self.is_place(x.b):
                # `(c ? a : b) = v`: choose the address.
                t = ir.Pointer(x.type)
                chosen = ir.Select(x.cond, ir.AddressOf(x.a, type=t), ir.AddressOf(x.b, type=t), type=t)
                return ir.Deref(chosen, type=x.type)
            if not isinstance(x.type, ir.Struct):
                raise Untranslatable(codes.UNSUPPORTED, "this expression has no place that could be written")
        return self.temp(x, "tmp", at, const=not write)

    def is_place(self, x: ir.Expr) -> bool:
        if isinstance(x, (ir.Var, ir.Deref, ir.HoleExpr)):
            return True
        if isinstance(x, (ir.Field, ir.Index)):
            return self.is_place(x.base)
        if isinstance(x, ir.Call):
            fn = self.kernel.functions.get(x.function)
            return fn is not None and fn.ret_ref
        return False

    # ------------------------------------------------------------ names and text

    def type(self, t: ClangType) -> ir.Type:
        numbered = numbered_type(t)
        return self.kernel.types.of(t) if numbered is None else numbered

    def text(self, c: Cursor) -> str:
        return self.kernel.texts.of(c)

    def fresh(self, wanted: str) -> str:
        return self.pool.fresh(wanted, self.guest)

    def declare(self, var: Cursor, t: ir.Type, hint: str = "") -> str:
        """A unique name for a declared variable, remembered for later uses."""
        wanted = hint or var.spelling
        name = self.fresh(wanted if wanted and "(" not in wanted else "unnamed")
        self.decls[var] = ir.Var(name, type=t)
        return name

    def lookup(self, var: Cursor) -> ir.Expr | None:
        """The place of a variable of this body or, in a lambda, of the bodies that hold it."""
        fx: FunctionLowering | None = self
        while fx is not None:
            found = fx.decls.get(var)
            if found is None and not var.spelling:
                found = fx.anonymous.get(ast.unqualified(var.type))
            if found is not None:
                if fx is not self:
                    self.captured.add(fx)
                return fresh(found)
            fx = fx.parent
        return None


def fresh(x: ir.Expr) -> ir.Expr:
    """A copy without a span, to be given the span of its use."""
    return replace(x, span=NO_SPAN)


def fill_spans(node: Any, span: Span) -> None:
    """Give `span` to this node and to those below that have none yet."""
    if span is NO_SPAN:
        return
    if isinstance(node, ir.Node) and node.span is NO_SPAN:
        object.__setattr__(node, "span", span)
    for c in ir.children(node):
        if c.span is NO_SPAN:
            fill_spans(c, span)
