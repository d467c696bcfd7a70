"""Facts about libclang cursors that its Python binding does not give: evaluated constants, opcodes, source text, roles.

Everything here is a pure question about one cursor; nothing here knows the IR.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ctypes import byref, c_uint, c_void_p, cast
from functools import cache
from pathlib import Path
from typing import Any

from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.parse.clang_compat import Type as ClangType

ARITHMETIC = {
    TypeKind.BOOL, TypeKind.CHAR_U, TypeKind.UCHAR, TypeKind.CHAR16, TypeKind.CHAR32, TypeKind.USHORT, TypeKind.UINT,
    TypeKind.ULONG, TypeKind.ULONGLONG, TypeKind.CHAR_S, TypeKind.SCHAR, TypeKind.WCHAR, TypeKind.SHORT, TypeKind.INT,
    TypeKind.LONG, TypeKind.LONGLONG, TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.ENUM, TypeKind.HALF,
}  # fmt: skip
REFERENCES = (TypeKind.LVALUEREFERENCE, TypeKind.RVALUEREFERENCE)
# Cursors of other things than values that stand among the children of an expression.
_NOT_VALUES = {
    CursorKind.TYPE_REF, CursorKind.TEMPLATE_REF, CursorKind.NAMESPACE_REF, CursorKind.MEMBER_REF,
    CursorKind.LABEL_REF, CursorKind.OVERLOADED_DECL_REF, CursorKind.VARIABLE_REF,
}  # fmt: skip


@cache
def lib() -> Any:
    """libclang with the signatures of functions that neither cindex nor clang_compat binds."""
    dll = cc.cindex.conf.lib
    for name, args, result in (("clang_Cursor_getVarDeclInitializer", [Cursor], Cursor),):
        fn = getattr(dll, name)
        fn.argtypes, fn.restype = args, result
    return dll


def is_arithmetic(t: ClangType) -> bool:
    return t.get_canonical().kind in ARITHMETIC


def evaluate(c: Cursor) -> bool | int | float | None:
    """The value of a constant expression of arithmetic or enum type, else None.

    Never asked for other types or for initialiser lists: libclang crashes on some of them.
    """
    if c.kind is CursorKind.INIT_LIST_EXPR or not is_arithmetic(c.type):
        return None
    return cc.evaluate(c)


def initializer(var: Cursor) -> Cursor | None:
    """The initialiser of a variable declaration, or None."""
    c = lib().clang_Cursor_getVarDeclInitializer(var)
    c = Cursor.from_cursor_result(c, var)
    return None if c is None or c.kind.is_invalid() else c


def values(c: Cursor) -> list[Cursor]:
    """The children of an expression or statement that are themselves expressions or statements."""
    return [
        k for k in c.get_children() if (k.kind.is_expression() or k.kind.is_statement()) and k.kind not in _NOT_VALUES
    ]


def arguments(call: Cursor) -> list[Cursor]:
    return [a for a in call.get_arguments() if a is not None]


def strip(c: Cursor) -> Cursor:
    """Through parentheses and wrappers that keep the type."""
    while c.kind in (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR):
        inner = values(c)
        if len(inner) != 1:
            return c
        if c.kind is CursorKind.UNEXPOSED_EXPR and not same_type(c.type, inner[0].type):
            return c
        c = inner[0]
    return c


def unqualified(t: ClangType) -> str:
    """Canonical spelling without top-level qualifiers: equal for types that differ in const and volatile only."""
    text = t.get_canonical().spelling
    while True:
        if text.startswith("const "):
            text = text[6:]
        elif text.startswith("volatile "):
            text = text[9:]
        elif text.endswith((" const", " volatile", " __restrict")) or text.endswith(
            ("*const", "*volatile", "*__restrict")
        ):
            text = re.sub(r"\s*(const|volatile|__restrict)$", "", text)
        else:
            return text


def same_type(a: ClangType, b: ClangType) -> bool:
    return unqualified(a) == unqualified(b)


def is_const(t: ClangType) -> bool:
    """Whether an object of this type, or every element of an array of it, is const."""
    t = t.get_canonical()
    while not t.is_const_qualified() and t.kind in (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY):
        t = t.get_array_element_type().get_canonical()
    return bool(t.is_const_qualified())


def is_record(t: ClangType) -> bool:
    return t.get_canonical().kind is TypeKind.RECORD


def returns_reference(fn: Cursor) -> bool:
    return fn.result_type.get_canonical().kind in REFERENCES


def attributes(c: Cursor) -> set[CursorKind]:
    return {k.kind for k in c.get_children() if k.kind.is_attribute()}


def definition(c: Cursor) -> Cursor:
    d = c.get_definition()
    return d if d is not None else c


def body_of(fn: Cursor) -> Cursor | None:
    """The compound statement of a function definition, or None."""
    for k in fn.get_children():
        if k.kind is CursorKind.COMPOUND_STMT:
            return k
    return None


def qualified_name(c: Cursor) -> str:
    """Namespaces and classes joined by `::`, without template arguments and anonymous namespaces."""
    parts = [c.spelling]
    p = c.semantic_parent
    while p is not None and p.kind is not CursorKind.TRANSLATION_UNIT:
        if p.kind in _SCOPES and p.spelling and not p.spelling.startswith("("):
            parts.append(p.spelling)
        p = p.semantic_parent
    return "::".join(reversed(parts))


_SCOPES = {
    CursorKind.NAMESPACE, CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL, CursorKind.UNION_DECL,
    CursorKind.CLASS_TEMPLATE, CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION, CursorKind.ENUM_DECL,
}  # fmt: skip


_TEMPLATE_PARAMETERS = {
    CursorKind.TEMPLATE_TYPE_PARAMETER, CursorKind.TEMPLATE_NON_TYPE_PARAMETER,
    CursorKind.TEMPLATE_TEMPLATE_PARAMETER,
}  # fmt: skip


def template_parameters(c: Cursor) -> list[Cursor]:
    """The template parameter cursors of the template that a specialisation came from (or of a template itself)."""
    template = c.specialized_template or c
    return [k for k in template.get_children() if k.kind in _TEMPLATE_PARAMETERS]


def is_closure(t: ClangType) -> bool:
    """True for the type of a lambda, or a reference to one."""
    t = t.get_canonical()
    if t.kind in REFERENCES:
        t = t.get_pointee().get_canonical()
    return t.kind is TypeKind.RECORD and unqualified(t).startswith("(lambda at ")


# ---------------------------------------------------------------- text and places


class Texts:
    """Source bytes by file name: what the unit parsed from memory first, the disk second."""

    def __init__(self, memory: Mapping[str, str | bytes] | None = None):
        self._bytes = {k: v.encode() if isinstance(v, str) else v for k, v in (memory or {}).items()}

    def data(self, file: str) -> bytes:
        if file not in self._bytes:
            try:
                self._bytes[file] = Path(file).read_bytes()
            except OSError:
                self._bytes[file] = b""
        return self._bytes[file]

    def known(self) -> list[str]:
        """The files whose text has been needed so far."""
        return list(self._bytes)

    def of(self, c: Cursor, limit: int = 2000) -> str:
        """The text of a cursor's extent; its first line when a macro tore the extent apart."""
        start, end = file_place(c.extent.start), file_place(c.extent.end)
        if start is None:
            return ""
        data = self.data(start[0])
        if end is not None and end[0] == start[0] and start[1] < end[1] <= start[1] + limit:
            return data[start[1] : end[1]].decode("utf-8", "replace")
        stop = data.find(b"\n", start[1])
        return data[start[1] : stop if stop >= 0 else len(data)].decode("utf-8", "replace").strip()

    def identifier_at(self, c: Cursor) -> str:
        """The identifier that stands at the cursor's start, "" when there is none."""
        start = file_place(c.extent.start)
        if start is None:
            return ""
        found = _IDENTIFIER.match(self.data(start[0]), start[1])
        return found.group().decode() if found else ""


_IDENTIFIER = re.compile(rb"[A-Za-z_]\w*")


def file_place(location: Any) -> tuple[str, int] | None:
    """(file, byte offset) of a location; inside a macro argument where the argument is written."""
    file, line, column, offset = c_void_p(), c_uint(), c_uint(), c_uint()
    cc.cindex.conf.lib.clang_getFileLocation(location, byref(file), byref(line), byref(column), byref(offset))
    if not file:
        return None
    handle = cast(file, cc.cindex.c_object_p)
    return cc.cindex.File(handle).name, int(offset.value)


def is_default_argument(a: Cursor) -> bool:
    """True for an argument that the call does not write."""
    if a.kind is not CursorKind.UNEXPOSED_EXPR or next(iter(a.get_children()), None) is not None:
        return False
    start, end = a.extent.start, a.extent.end
    return start.file is None or start.offset >= end.offset
