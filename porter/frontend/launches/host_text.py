"""Host expressions as C++ text with the function's own locals written out, so that a launch size reads in terms of the
host function's parameters. Rendered from the AST: text that comes out of a macro has no source text of its own."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

_CASTS = (CursorKind.CSTYLE_CAST_EXPR, CursorKind.CXX_STATIC_CAST_EXPR, CursorKind.CXX_FUNCTIONAL_CAST_EXPR)
_ATOMIC_KINDS = (CursorKind.BINARY_OPERATOR, CursorKind.CONDITIONAL_OPERATOR, CursorKind.UNARY_OPERATOR)
_MAX_DEPTH = 40


class Assignments:
    """What one host function assigns to its locals and to their members, in source order."""

    def __init__(self, function: Cursor):
        self.variables: dict[int, list[Cursor]] = {}  # variable -> values assigned (initialiser left out)
        self.members: dict[int, list[tuple[int, str, Cursor]]] = {}  # variable -> (order, "val.clusterDim.x", value)
        self.order: dict[int, int] = {}  # cursor -> position in the walk
        self.changed: set[int] = set()  # variables changed in ways that no single value describes
        for i, c in enumerate(cc.walk(function)):
            self.order[c.hash] = i
            self._visit(c, i)

    def _visit(self, c: Cursor, i: int) -> None:
        if c.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR or (
            c.kind == CursorKind.UNARY_OPERATOR and cc.unary_op(c) in ("x++", "x--", "++x", "--x")
        ):
            self._mark(next(iter(c.get_children()), None))
            return
        children = list(c.get_children())
        if c.kind == CursorKind.UNARY_OPERATOR and cc.unary_op(c) == "&" and children:
            target = strip(children[0])
            # An address that leaves the function may be written through; launch configurations are read by the runtime.
            if target.kind == CursorKind.DECL_REF_EXPR and not _is_struct(target):
                self._mark(target)
            return
        if c.kind == CursorKind.BINARY_OPERATOR and cc.binary_op(c) == "=" and len(children) == 2:
            target, value = children
        elif c.kind == CursorKind.CALL_EXPR and c.spelling == "operator=" and len(children) == 3:
            target, value = children[0], children[2]
        else:
            return
        path: list[str] = []
        target = strip(target)
        while target.kind in (CursorKind.MEMBER_REF_EXPR, CursorKind.ARRAY_SUBSCRIPT_EXPR):
            parts = list(target.get_children())
            if not parts:
                return
            if target.kind == CursorKind.MEMBER_REF_EXPR:
                path.insert(0, target.spelling)
            target = strip(parts[0])
        if target.kind != CursorKind.DECL_REF_EXPR or target.referenced is None:
            return
        key = target.referenced.hash
        if path:
            self.members.setdefault(key, []).append((i, ".".join(path), value))
        else:
            self.variables.setdefault(key, []).append(value)

    def _mark(self, target: Cursor | None) -> None:
        if target is not None:
            target = strip(target)
            while target.kind in (CursorKind.MEMBER_REF_EXPR, CursorKind.ARRAY_SUBSCRIPT_EXPR):
                target = strip(next(iter(target.get_children()), target))
                if target.kind == CursorKind.MEMBER_REF_EXPR and not list(target.get_children()):
                    return
            if target.kind == CursorKind.DECL_REF_EXPR and target.referenced is not None:
                self.changed.add(target.referenced.hash)

    def latest(self, variable: Cursor, before: Cursor) -> dict[str, Cursor]:
        """Member path -> value last assigned before a cursor."""
        limit = self.order.get(before.hash, 1 << 60)
        return {path: value for i, path, value in self.members.get(variable.hash, []) if i < limit}


def _is_struct(c: Cursor) -> bool:
    return c.type.get_canonical().kind in (TypeKind.RECORD, TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY)


def strip(c: Cursor) -> Cursor:
    """The expression under implicit casts and parentheses."""
    while c.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR):
        children = list(c.get_children())
        if len(children) != 1:
            break
        c = children[0]
    return c


def initialiser(variable: Cursor) -> Cursor | None:
    """The initialising expression of a VAR_DECL, None when it has none."""
    expressions = [c for c in variable.get_children() if c.kind.is_expression()]
    return expressions[-1] if expressions else None


class HostText:
    """Renders expressions of one host function."""

    def __init__(self, unit: ParsedUnit, function: Cursor):
        self._unit = unit
        self._function = function
        self._rendered: dict[int, str] = {}  # by variable: launches of one function share their locals

    @cached_property
    def assignments(self) -> Assignments:
        return Assignments(self._function)

    def render(self, c: Cursor, depth: int = 0) -> str:
        """C++ text of an expression, single-valued locals replaced by what they stand for."""
        if depth > _MAX_DEPTH:
            return self._unit.text(c)
        if _is_default_argument(c):
            return ""
        children = list(c.get_children())
        kind = c.kind
        if kind == CursorKind.UNEXPOSED_EXPR:
            return self.render(children[0], depth + 1) if len(children) == 1 else self._verbatim(c)
        if kind == CursorKind.PAREN_EXPR and children:
            inner = self.render(children[0], depth + 1)
            return inner if inner.startswith("(") and _closes_at_end(inner) else f"({inner})"
        if kind in (CursorKind.INTEGER_LITERAL, CursorKind.FLOATING_LITERAL, CursorKind.CXX_BOOL_LITERAL_EXPR):
            return _literal(c) or self._verbatim(c)
        if kind == CursorKind.CXX_NULL_PTR_LITERAL_EXPR:
            return "nullptr"
        if kind == CursorKind.DECL_REF_EXPR:
            return self._name(c, depth)
        if kind == CursorKind.MEMBER_REF_EXPR:
            if not children:
                return c.spelling
            base = self.render(children[0], depth + 1)
            arrow = children[0].type.get_canonical().kind == TypeKind.POINTER
            return f"{base}{'->' if arrow else '.'}{c.spelling}{self._written_arguments(c)}"
        if kind == CursorKind.BINARY_OPERATOR and len(children) == 2:
            return f"{self._operand(children[0], depth)} {cc.binary_op(c)} {self._operand(children[1], depth)}"
        if kind == CursorKind.UNARY_OPERATOR and len(children) == 1:
            op = cc.unary_op(c)
            x = self._operand(children[0], depth)
            return op.replace("x", x) if "x" in op else f"{op}{x}"
        if kind == CursorKind.CONDITIONAL_OPERATOR and len(children) == 3:
            a, b, d = (self._operand(x, depth) for x in children)
            return f"{a} ? {b} : {d}"
        if kind == CursorKind.ARRAY_SUBSCRIPT_EXPR and len(children) == 2:
            return f"{self._operand(children[0], depth)}[{self.render(children[1], depth + 1)}]"
        if kind in _CASTS and children:
            inner = self.render(children[-1], depth + 1)
            if kind == CursorKind.CXX_FUNCTIONAL_CAST_EXPR and strip(children[-1]).kind == CursorKind.CALL_EXPR:
                return inner  # dim3(a, b)
            return f"static_cast<{c.type.spelling}>({inner})"
        if kind in (CursorKind.CXX_REINTERPRET_CAST_EXPR, CursorKind.CXX_CONST_CAST_EXPR) and children:
            word = "reinterpret_cast" if kind == CursorKind.CXX_REINTERPRET_CAST_EXPR else "const_cast"
            return f"{word}<{c.type.spelling}>({self.render(children[-1], depth + 1)})"
        if kind == CursorKind.CXX_UNARY_EXPR:
            value = cc.evaluate(c)
            return self._verbatim(c) if value is None else str(value)
        if kind == CursorKind.CALL_EXPR:
            return self._call(c, children, depth)
        if kind == CursorKind.INIT_LIST_EXPR:
            return "{" + self._list(children, depth) + "}"
        return self._verbatim(c)

    def _verbatim(self, c: Cursor) -> str:
        value = cc.evaluate(c) if c.kind.is_expression() and not cc.is_verbatim(c) else None
        return str(value) if value is not None else " ".join(self._unit.text(c).split())

    def _written_arguments(self, c: Cursor) -> str:
        """`<float>` of `t.data_ptr<float>`."""
        if not c.spelling or not cc.is_verbatim(c):
            return ""
        tail = self._unit.text(c).rpartition(c.spelling)[2].strip()
        return tail if tail.startswith("<") and tail.endswith(">") else ""

    def _operand(self, c: Cursor, depth: int) -> str:
        text = self.render(c, depth + 1)
        inner = strip_implicit(c)
        # A substituted local may bring in an operator that binds less tightly than the place it lands in.
        if inner.kind == CursorKind.DECL_REF_EXPR and _needs_parentheses(text):
            return f"({text})"
        return text

    def _list(self, children: Iterable[Cursor], depth: int) -> str:
        return ", ".join(t for t in (self.render(x, depth + 1) for x in children) if t)

    def _name(self, c: Cursor, depth: int) -> str:
        target = c.referenced
        if target is None or target.kind != CursorKind.VAR_DECL:
            if target is not None and target.kind == CursorKind.TEMPLATE_NON_TYPE_PARAMETER:
                return target.spelling
            value = cc.evaluate(c) if target is not None and target.kind == CursorKind.ENUM_CONSTANT_DECL else None
            return c.spelling if value is None and c.spelling else self._verbatim(c)
        value = cc.evaluate(c)
        if value is not None:
            return _number(value)
        stands_for = self.value_of(target)
        if stands_for is not None:
            if target.hash not in self._rendered:
                self._rendered[target.hash] = self.render(stands_for, depth + 1)
            return self._rendered[target.hash]
        members = self.assignments.latest(target, c)
        if target.type.get_canonical().spelling == "dim3" and set(members) <= {"x", "y", "z"} and members:
            start = initialiser(target)
            given = _dim3_parts(start) if start is not None else []
            parts = [
                self.render(members[n] if n in members else given[i], depth + 1)
                if n in members or i < len(given)
                else "1"
                for i, n in enumerate("xyz")
            ]
            return dim3_text(parts)
        return c.spelling

    def value_of(self, variable: Cursor) -> Cursor | None:
        """The one expression that a local variable stands for; None when it changes or is not a local."""
        if variable.hash in self.assignments.changed or variable.hash in self.assignments.members:
            return None
        if variable.hash not in self.assignments.order:
            return None
        assigned = self.assignments.variables.get(variable.hash, [])
        start = initialiser(variable)
        if start is not None and _is_default_construction(start):
            start = None
        values = ([start] if start is not None else []) + assigned
        return values[0] if len(values) == 1 else None

    def _call(self, c: Cursor, children: list[Cursor], depth: int) -> str:
        target = c.referenced
        if target is not None and target.kind == CursorKind.CONSTRUCTOR:
            given = [self.render(x, depth + 1) for x in children if x.kind.is_expression()]
            given = [t for t in given if t]
            if c.type.get_canonical().spelling.removeprefix("const ") == "dim3":
                return given[0] if len(given) == 1 else dim3_text(given)
            return given[0] if len(given) == 1 else f"{target.spelling}({', '.join(given)})"
        if target is not None and target.kind == CursorKind.CONVERSION_FUNCTION and children:
            base = next(iter(children[0].get_children()), None)
            return self.render(base, depth + 1) if base is not None else self._verbatim(c)
        if c.spelling == "operator->" and children:
            return self.render(children[0], depth + 1)
        if c.spelling.startswith("operator") and not c.spelling[8:9].isalpha() and len(children) == 3:
            op = c.spelling.removeprefix("operator")
            if op == "[]":
                return f"{self._operand(children[0], depth)}[{self.render(children[2], depth + 1)}]"
            if op != "()":
                return f"{self._operand(children[0], depth)} {op} {self._operand(children[2], depth)}"
        if not children:
            return self._verbatim(c)
        callee = strip(children[0])
        if callee.kind == CursorKind.LAMBDA_EXPR or c.spelling == "operator()":
            return self._verbatim(c)
        arguments = self._list(children[1:], depth)
        if callee.kind == CursorKind.MEMBER_REF_EXPR:
            name = self.render(callee, depth + 1)
        elif cc.is_verbatim(callee):
            name = " ".join(self._unit.text(callee).split())
        else:
            spaces = [x.spelling for x in callee.get_children() if x.kind == CursorKind.NAMESPACE_REF]
            name = "::".join([*spaces, callee.spelling or c.spelling])
        return f"{name}({arguments})"


def strip_implicit(c: Cursor) -> Cursor:
    """The expression under implicit casts only."""
    while c.kind == CursorKind.UNEXPOSED_EXPR:
        children = list(c.get_children())
        if len(children) != 1:
            break
        c = children[0]
    return c


def _is_default_argument(c: Cursor) -> bool:
    return c.kind == CursorKind.UNEXPOSED_EXPR and not cc.extent(c)[0].file


def _is_default_construction(c: Cursor) -> bool:
    c = strip(c)
    if c.kind != CursorKind.CALL_EXPR or c.referenced is None or c.referenced.kind != CursorKind.CONSTRUCTOR:
        return False
    return all(_is_default_argument(x) for x in c.get_children())


def _dim3_parts(c: Cursor) -> list[Cursor]:
    c = strip(c)
    return [x for x in c.get_children() if x.kind.is_expression() and not _is_default_argument(x)]


def dim3_text(parts: list[str]) -> str:
    """`a` for one dimension, `dim3(a, b[, c])` for more; ones at the end are left out."""
    while len(parts) > 1 and parts[-1] == "1":
        parts = parts[:-1]
    return parts[0] if len(parts) == 1 else f"dim3({', '.join(parts)})"


def _literal(c: Cursor) -> str:
    value = cc.evaluate(c)
    return "" if value is None else _number(value)


def _number(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else repr(value)


def _needs_parentheses(text: str) -> bool:
    depth = 0
    for i, ch in enumerate(text):
        depth += (ch in "([{") - (ch in ")]}")
        if depth == 0 and ch == " " and i:
            return True
    return text[:1] in "-!~"


def _closes_at_end(text: str) -> bool:
    depth = 0
    for i, ch in enumerate(text):
        depth += (ch == "(") - (ch == ")")
        if depth == 0:
            return i == len(text) - 1
    return False
