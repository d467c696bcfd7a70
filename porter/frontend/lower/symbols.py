"""`__constant__` and `__device__` variables whose values the source does not fix: parameters of the kernel.

While bodies are lowered such a variable is the place behind an `ir.SymbolAddress`. `patterns.symbols` then makes it a
pointer that the kernel, and each function that reaches it, takes as a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind

_CALLS = re.compile(r"\b(\w*(?:ToSymbol|SymbolAddress|ModuleGetGlobal)\w*)\s*(?:<[^;]*?>)?\s*\(([^;]*);")


def is_wanted(fx: FunctionLowering, target: Cursor) -> bool:
    """Whether the case gives the values of a variable."""
    return same_name(declared_name(target), fx.kernel.wanted) is not None


def symbol(fx: FunctionLowering, target: Cursor, t: ir.Type) -> ir.Expr:
    """The place of a variable that the port takes as a parameter. Raises Untranslatable where a case cannot fill it."""
    known = fx.kernel.symbols.get(target.canonical)
    if known is None:
        known = fx.kernel.symbols[target.canonical] = _made(fx, target, t)
    pointer = ir.Pointer(t, const=known.constant)
    return ir.Deref(ir.SymbolAddress(known.name, type=pointer), type=t)


def _made(fx: FunctionLowering, target: Cursor, t: ir.Type) -> ir.Symbol:
    constant = CursorKind.CUDACONSTANT_ATTR in ast.attributes(target)
    name = declared_name(target)
    code = codes.UNKNOWN_CONSTANT_MEMORY if constant else codes.OUTLIVES_KERNEL
    why = _cannot_be_given(t)
    if why:
        raise Untranslatable(code, f"{target.spelling} {why}")
    if any(s.declared == name for s in fx.kernel.symbols.values()):
        raise Untranslatable(code, f"the kernel reads two variables called {name}, which a case cannot tell apart")
    definition = ast.definition(target)
    found = same_name(name, fx.kernel.wanted)
    parameter = fx.kernel.wanted[found] if found is not None else ""
    if not parameter or any(s.name == parameter for s in fx.kernel.symbols.values()):
        parameter = fx.kernel.global_pool.fresh(target.spelling)
    initialised = _has_initialiser(definition, t)
    filled = host_writes(fx, definition)
    return ir.Symbol(parameter, name, t, constant, initialised, filled, fx.kernel.span(definition))


def template_symbol(fx: FunctionLowering, c: Cursor, target: Cursor) -> ir.Expr | None:
    """The place of a specialised variable template in `__constant__` or `__device__` memory; None where it is another
    thing, or a constant that nothing changes."""
    if target.kind is not CursorKind.UNEXPOSED_DECL or not ast.attributes(target) & _MEMORY:
        return None
    t = fx.type(c.type)
    fixed = ast.is_const(c.type) or (CursorKind.CUDACONSTANT_ATTR in ast.attributes(target))
    fixed = fixed and _has_initialiser(target, t) and not host_writes(fx, target)
    return None if fixed and not is_wanted(fx, target) else symbol(fx, target, t)


_MEMORY = {CursorKind.CUDACONSTANT_ATTR, CursorKind.CUDADEVICE_ATTR}


def _has_initialiser(var: Cursor, t: ir.Type) -> bool:
    """Whether a declaration says what a variable holds at the start."""
    if var.kind is CursorKind.VAR_DECL:
        return written_initialiser(var) is not None
    values = ast.values(var)  # of a template: the lengths of an array are among them
    return bool(values) and (not isinstance(t, ir.Array) or values[-1].kind is CursorKind.INIT_LIST_EXPR)


def written_initialiser(var: Cursor) -> Cursor | None:
    """The initialiser that a declaration writes out. For a class without one clang gives the default constructor, whose
    place is the variable's name: what that leaves in device memory is for the host to fill."""
    init = ast.initializer(var)
    return None if init is None or init.extent.start.offset <= var.location.offset else init


def _cannot_be_given(t: ir.Type) -> str:
    """Why a case cannot give the bytes of a type; "" when it can."""
    if isinstance(t, ir.Pointer):
        return "holds an address, which a case cannot give"
    if isinstance(t, ir.Array):
        return "has no length here" if not t.length else _cannot_be_given(t.elem)
    if isinstance(t, ir.Struct) and t.is_union:
        return "is a union, of which a case cannot say which member it gives"
    if isinstance(t, ir.Struct):
        return next((why for f in t.fields if (why := _cannot_be_given(f.type))), "")
    return ""


def declared_name(var: Cursor) -> str:
    """A variable's name with its namespaces; a static local's with the name of its function."""
    parent = var.semantic_parent
    if parent is not None and parent.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD):
        return f"{ast.qualified_name(parent).split('<')[0]}::{var.spelling}"
    return ast.qualified_name(var).split("<")[0]


def same_name(name: str, wanted: Mapping[str, Any]) -> str | None:
    """The one of the `wanted` names that means a variable: its whole name, or the longest end of it."""
    parts = name.split("::")
    ends = [text for text in wanted if (given := text.removeprefix("::").split("::")) == parts[-len(given) :]]
    return max(ends, key=lambda text: text.count("::"), default=None)


def host_writes(fx: FunctionLowering, var: Cursor) -> str:
    """Where a file of the parse hands a variable to a call that can change it; "" where none does.

    A variable that no such call names keeps its values, unless another file of the build fills it (external linkage):
    files that declare it `extern` say so themselves.
    """
    name = re.compile(rb"\b" + re.escape(var.spelling).encode() + rb"\b")
    place = var.location.file
    files = {place.name} if place is not None else set()
    for file in sorted(files | set(fx.kernel.texts.known())):
        data = fx.kernel.texts.data(file)
        if not name.search(data):
            continue
        text = data.decode("utf-8", "replace")
        for m in _CALLS.finditer(text):
            if re.search(rf"\b{re.escape(var.spelling)}\b", m.group(2)):
                return f"{m.group(1)} in line {text.count(chr(10), 0, m.start()) + 1}"
    return ""
