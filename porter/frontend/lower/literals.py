"""Literals and what clang evaluates by itself: numbers, strings, sizes."""

from __future__ import annotations

import re

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable, expression
from porter.frontend.lower.convert import const, typed_value
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind


@expression(CursorKind.INTEGER_LITERAL, CursorKind.FLOATING_LITERAL, CursorKind.CHARACTER_LITERAL)
@expression(CursorKind.CXX_BOOL_LITERAL_EXPR)
def literal(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    t = fx.type(c.type)
    value = ast.evaluate(c)
    if value is None:
        raise Untranslatable(codes.UNRESOLVED, "literal without a value")
    return const(typed_value(value, t), t)


@expression(CursorKind.CXX_NULL_PTR_LITERAL_EXPR)
def null_pointer(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    return const(0, ir.Pointer(ir.VOID))


@expression(CursorKind.STRING_LITERAL)
def string_literal(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    return const(unescaped(c.spelling), ir.Pointer(ir.I8, const=True))


def unescaped(literal: str) -> str:
    """The characters of a C string literal as clang spells it (pieces already joined)."""
    body = literal[literal.find('"') + 1 : literal.rfind('"')]
    return re.sub(r"\\(x[0-9a-fA-F]+|[0-7]{1,3}|.)", _unescape, body, flags=re.S)


def _unescape(m: re.Match[str]) -> str:
    code = m.group(1)
    if code[0] == "x":
        return chr(int(code[1:], 16))
    if code.isdigit():
        return chr(int(code, 8))
    return {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}.get(code, code)


@expression(CursorKind.CXX_UNARY_EXPR, CursorKind.SIZE_OF_PACK_EXPR)
def size_of(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    return evaluated(fx, c, fx.text(c))


def evaluated(fx: FunctionLowering, c: Cursor, origin: str | None) -> ir.Const:
    """The constant that clang computes for `c`; Untranslatable when it has none."""
    value = ast.evaluate(c)
    if value is None:
        raise Untranslatable(codes.UNRESOLVED, "not a constant expression")
    t = fx.type(c.type)
    return const(typed_value(value, t), t, tidy(origin))


def tidy(origin: str | None) -> str | None:
    """Origin text on one line, without what a macro left behind."""
    if origin is None:
        return None
    origin = " ".join(origin.split())
    return origin if 0 < len(origin) <= 80 else None
