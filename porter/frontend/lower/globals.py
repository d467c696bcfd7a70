"""Variables at namespace scope, static members and static locals: constants, tables, shared arrays, symbols."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable
from porter.frontend.lower.convert import const, typed_value
from porter.frontend.lower.flow.function_pointers import named_in, number_of
from porter.frontend.lower.flow.function_types import function_type, numbered_type
from porter.frontend.lower.init import converted_item, init_list
from porter.frontend.lower.symbols import host_writes, is_wanted, symbol, written_initialiser
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.parse.clang_compat import Type as ClangType


def global_variable(fx: FunctionLowering, c: Cursor, target: Cursor) -> ir.Expr:
    """The place (or constant) of a variable that does not live in a function body."""
    t = fx.type(target.type)
    attributes = ast.attributes(target)
    if CursorKind.CUDASHARED_ATTR in attributes:
        return _shared(fx, target)
    known = fx.kernel.global_names.get(target.canonical)
    if known is not None and fx.pool.admits(known):
        return ir.Var(known, type=t)
    definition = ast.definition(target)
    init = ast.initializer(definition)
    unfilled = written_initialiser(definition) is None
    constant = CursorKind.CUDACONSTANT_ATTR in attributes
    is_const = ast.is_const(target.type)
    on_device = constant or CursorKind.CUDADEVICE_ATTR in attributes or _is_static_local(target)
    functions = numbered_type(target.type) is not None
    if functions and (is_wanted(fx, target) or unfilled or host_writes(fx, definition)):
        raise Untranslatable(codes.FUNCTION_POINTER, f"the host chooses the functions that {target.spelling} points to")
    if on_device and is_wanted(fx, target):
        return symbol(fx, target, t)
    if not is_const and not constant and not _never_written(fx, definition, functions):
        if functions:
            raise Untranslatable(
                codes.FUNCTION_POINTER, f"{target.spelling}, which points to functions, may be written to"
            )
        if on_device:
            return symbol(fx, target, t)
        raise Untranslatable(codes.OUTLIVES_KERNEL, f"mutable variable {target.spelling} at namespace scope")
    if on_device and (unfilled or (constant and not is_const and host_writes(fx, definition))):
        return symbol(fx, target, t)
    if init is None:
        raise Untranslatable(codes.UNKNOWN_CONSTANT_MEMORY, f"values of {target.spelling} are not known")
    value = constant_value(fx, init, target.type)
    if value is None and not isinstance(t, ir.Array):
        return initial_value(fx, init, target.type, target.spelling)
    if value is None:
        raise Untranslatable(codes.UNKNOWN_CONSTANT_MEMORY, f"values of {target.spelling} are not constant expressions")
    if isinstance(t, ir.Scalar):
        return const(value, t, target.spelling)
    name = fx.kernel.global_pool.fresh(target.spelling)
    while not fx.pool.admits(name):  # a local of this body has the name: a second name for the same table
        name = fx.kernel.global_pool.fresh(target.spelling)
    fx.kernel.globals[name] = ir.GlobalConst(name, t, value)
    fx.kernel.global_names[target.canonical] = name
    return ir.Var(name, type=t)


def _is_static_local(var: Cursor) -> bool:
    parent = var.semantic_parent
    return parent is not None and parent.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD)


def initial_value(fx: FunctionLowering, init: Cursor, t: ClangType, name: str) -> ir.Expr:
    """A constant that clang does not evaluate (half, a struct built by a constexpr function): its initialiser."""
    x = init_list(fx, init, t) if init.kind is CursorKind.INIT_LIST_EXPR else converted_item(fx, init, t)
    if isinstance(x, ir.Const):
        return replace(x, origin=name)
    return x


def _never_written(fx: FunctionLowering, var: Cursor, anywhere: bool = False) -> bool:
    """A table with internal linkage (`static __device__ float t[4] = {...}`) that its file only reads from.

    Decided from the text, cautiously: each mention after the definition must be a subscripted read. `anywhere`: linkage
    does not matter, since no other file has values to write.
    """
    place = var.location.file
    if place is None or not (anywhere or var.linkage.name == "INTERNAL"):
        return False
    text = fx.kernel.texts.data(place.name).decode("utf-8", "replace")
    for name in {place.name, *fx.kernel.texts.known()}:
        data = fx.kernel.texts.data(name)
        if name != place.name and var.spelling.encode() in data:
            return False
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    mentions = list(re.finditer(rf"\b{re.escape(var.spelling)}\b", text))
    for m in mentions[1:]:
        rest = text[m.end() :]
        if not rest.lstrip().startswith("[") or text[: m.start()].rstrip().endswith("&"):
            return False
        depth = 0
        for i, ch in enumerate(rest):
            depth += (ch == "[") - (ch == "]")
            if depth == 0 and ch == "]" and not rest[i + 1 :].lstrip().startswith("["):
                after = rest[i + 1 :].lstrip()
                if re.match(r"(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--", after):
                    return False
                break
    return bool(mentions)


def _shared(fx: FunctionLowering, target: Cursor) -> ir.Expr:
    known = fx.kernel.global_names.get(target.canonical)
    t = fx.type(target.type)
    if known is None:
        known = fx.kernel.global_pool.fresh(target.spelling)
        fx.kernel.global_names[target.canonical] = known
        dynamic = isinstance(t, ir.Array) and t.length == 0
        span = fx.kernel.span(target)
        fx.kernel.kernel_decls.append(ir.SharedDecl(known, t, dynamic, alignment(fx, target), span=span))
    if not fx.pool.admits(known):
        raise Untranslatable(codes.UNSUPPORTED, f"shared array {known} is hidden by a local of the same name")
    return ir.Var(known, type=t)


def alignment(fx: FunctionLowering, var: Cursor) -> int:
    """Bytes that __align__ or alignas asks for, 0 when nothing does."""
    if CursorKind.ALIGNED_ATTR not in ast.attributes(var):
        return 0
    for k in var.get_children():
        if k.kind is CursorKind.ALIGNED_ATTR:
            for inner in k.get_children():
                value = ast.evaluate(inner) if inner.kind.is_expression() else None
                if value:
                    return int(value)
    line = fx.text(var)
    start = var.extent.start
    if start.file is not None:
        data = fx.kernel.texts.data(start.file.name)
        begin = max(data.rfind(b"\n", 0, start.offset), data.rfind(b";", 0, start.offset)) + 1
        line = data[begin : start.offset].decode("utf-8", "replace") + line
    found = re.search(r"(?:__align__|alignas|aligned)\s*\(\s*(\d+)", line)
    return int(found.group(1)) if found else 0


def constant_value(fx: FunctionLowering, init: Cursor, t: ClangType) -> Any | None:
    """An initialiser as nested tuples of numbers, None when some part is not constant."""
    c = ast.strip(init)
    kind = t.get_canonical().kind
    if kind is TypeKind.CONSTANTARRAY:
        if c.kind is not CursorKind.INIT_LIST_EXPR:
            return None
        elem, length = t.get_canonical().get_array_element_type(), t.get_canonical().get_array_size()
        rows = [constant_value(fx, k, elem) for k in ast.values(c)]
        if len(rows) > length or any(r is None for r in rows):
            return None
        if len(rows) < length:
            blank = _blank(fx.type(elem))
            if blank is None:
                return None
            rows += [blank] * (length - len(rows))
        return tuple(rows)
    if kind is TypeKind.RECORD and fx.kernel.types.scalar_class(t) is None:
        if c.kind is not CursorKind.INIT_LIST_EXPR:
            return None
        fields = list(t.get_canonical().get_fields())
        items = ast.values(c)
        if len(items) != len(fields) or any(f.is_bitfield() for f in fields):
            return None
        row = [constant_value(fx, k, f.type) for k, f in zip(items, fields, strict=True)]
        return None if any(r is None for r in row) else tuple(row)
    function = named_in(c) if function_type(t) is not None else None
    if function is not None:
        return number_of(fx, function).value
    value = ast.evaluate(c)
    return None if value is None else typed_value(value, fx.type(t))


def _blank(t: ir.Type) -> Any | None:
    if isinstance(t, ir.Scalar):
        return 0.0 if t.is_float else 0
    if isinstance(t, ir.Array):
        inner = _blank(t.elem)
        return None if inner is None else (inner,) * int(t.length)
    if isinstance(t, ir.Struct):
        parts = tuple(_blank(f.type) for f in t.fields)
        return None if any(p is None for p in parts) else parts
    return None
