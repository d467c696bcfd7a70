"""Cursors with what is asked of them again and again kept: walking libclang anew for every path is too slow."""

from __future__ import annotations

from functools import cached_property

from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.source import Span


class Node:
    """One cursor."""

    def __init__(self, cursor: Cursor, store: Nodes):
        self.cursor = cursor
        self.kind = cursor.kind
        self._store = store

    @cached_property
    def children(self) -> list[Node]:
        return [Node(c, self._store) for c in self.cursor.get_children()]

    @cached_property
    def spelling(self) -> str:
        return self.cursor.spelling or ""

    @cached_property
    def key(self) -> int:
        return int(self.cursor.hash)

    @cached_property
    def target(self) -> Cursor | None:
        """What it refers to."""
        return self.cursor.referenced

    @cached_property
    def target_key(self) -> int:
        return int(self.target.hash) if self.target is not None else 0

    @cached_property
    def operator(self) -> str:
        return cc.unary_op(self.cursor) if self.kind == CursorKind.UNARY_OPERATOR else cc.binary_op(self.cursor)

    @cached_property
    def type_kind(self) -> TypeKind:
        return self.cursor.type.get_canonical().kind

    @cached_property
    def type_text(self) -> str:
        return str(self.cursor.type.get_canonical().spelling)

    @cached_property
    def constant(self) -> bool | int | float | None:
        """The value that clang gives the expression."""
        return cc.evaluate(self.cursor)

    @cached_property
    def span(self) -> Span:
        return cc.span(self.cursor)

    @cached_property
    def expressions(self) -> list[Node]:
        return [c for c in self.children if c.kind.is_expression()]

    def walk(self) -> list[Node]:
        found, queue = [], [self]
        while queue:
            node = queue.pop()
            found.append(node)
            queue.extend(reversed(node.children))
        return found


class Nodes:
    """The nodes of declarations, by cursor."""

    def __init__(self) -> None:
        self._made: dict[int, Node] = {}

    def of(self, cursor: Cursor) -> Node:
        key = int(cursor.hash)
        if key not in self._made:
            self._made[key] = Node(cursor, self)
        return self._made[key]


_FLOATS = (TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.LONGDOUBLE, TypeKind.HALF)
_INTEGERS = (
    TypeKind.INT, TypeKind.UINT, TypeKind.LONG, TypeKind.ULONG, TypeKind.LONGLONG, TypeKind.ULONGLONG, TypeKind.SHORT,
    TypeKind.USHORT, TypeKind.CHAR_S, TypeKind.CHAR_U, TypeKind.SCHAR, TypeKind.UCHAR, TypeKind.BOOL, TypeKind.ENUM,
)  # fmt: skip


def is_float(kind: TypeKind) -> bool:
    return kind in _FLOATS


def is_integer(kind: TypeKind) -> bool:
    """Integers, bools and enumerations."""
    return kind in _INTEGERS
