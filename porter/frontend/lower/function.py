"""One user function, method, constructor or lambda body as an `ir.Function`, once per specialisation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from porter import codes, ir
from porter.frontend.lower.body import Endless, FunctionLowering, KernelLowering, NamePool, Untranslatable
from porter.frontend.lower.comments import comment_before
from porter.frontend.lower.construct import member_initialisers
from porter.frontend.lower.convert import const, typed_value
from porter.frontend.lower.effects import written_by
from porter.frontend.lower.flow.function_types import numbered_type
from porter.frontend.lower.flow.jumps import unresolved
from porter.frontend.lower.flow.recursion import Fixed, key_of
from porter.frontend.lower.lambdas import Closure, closure_record
from porter.frontend.lower.types import UnsupportedType, spelled
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.parse.clang_compat import Type as ClangType


def lower_function(caller: FunctionLowering, d: Cursor, fixed: Fixed = ()) -> ir.Function:
    """The IR function of a definition; for `fixed`, without parameters that have values, and with the types of groups.
    Untranslatable for recursion without an end and for lambdas whose holder is gone."""
    kernel = caller.kernel
    key = key_of(function_key(kernel, d), fixed)
    known = kernel.functions.get(key)
    if known is not None:
        return known
    if key in kernel.open:
        raise Endless(codes.RECURSIVE_FUNCTION, f"recursive call of {d.spelling}")
    kernel.open.add(key)
    try:
        function, fx = _lower(caller, d, key, dict(fixed))
    finally:
        kernel.open.discard(key)
    kernel.captured[key] = set(fx.captured)
    written = written_by(kernel, function)
    kernel.written[key] = written
    kernel.impure[key] = bool(written)
    gone = {p for p, v in fixed if not isinstance(v, ir.Struct)}
    sources = [p for p in d.get_arguments() if p is not None and not ast.is_closure(p.type) and p not in gone]
    formal = function.params[len(function.params) - len(sources) :]
    values = tuple(_by_value(f, c, function, written) for f, c in zip(formal, sources, strict=True))
    function = replace(function, params=(*function.params[: len(function.params) - len(sources)], *values))
    kernel.functions[key] = function
    return function


def _by_value(p: ir.FunctionParam, source: Cursor, function: ir.Function, written: frozenset[str]) -> ir.FunctionParam:
    """References as good as values: `const T&` where nothing others can see is written, `T&&` not written to."""
    if not p.by_ref or function.ret_ref or isinstance(function.ret, ir.Pointer):
        return p
    if not isinstance(p.type, (ir.Scalar, ir.Pointer, ir.Struct)):
        return p
    temporary = source.type.get_canonical().kind is TypeKind.RVALUEREFERENCE
    if (p.const and not written) or (temporary and p.name not in written):
        return replace(p, by_ref=False)
    return p


def function_key(kernel: KernelLowering, d: Cursor) -> str:
    """USR and template arguments; numbered where clang gives two specialisations one USR (lambdas do)."""
    known = kernel.keys.get(d)
    if known is not None:
        return known
    base = spelled(d.get_usr()) or d.spelling
    args = ", ".join(str(v) for _, v in template_arguments(kernel, d, named=False))
    key = f"{base}<{args}>" if args else base
    used = set(kernel.keys.values())
    n, unique = 1, key
    while unique in used:
        n += 1
        unique = f"{key}#{n}"
    kernel.keys[d] = unique
    return unique


def _lower(
    caller: FunctionLowering, d: Cursor, key: str, fixed: Mapping[Cursor, int | ir.Struct]
) -> tuple[ir.Function, FunctionLowering]:
    kernel = caller.kernel
    closure = _closure_of(kernel, d)
    if closure is not None:
        fx = FunctionLowering(kernel, d, closure.holder.pool, closure.holder)
        fx.decls.update(closure.copies)
        if closure.copies:
            fx.captured.add(closure.holder)
        fx.template_names = closure.holder.template_names
        fx.constants = closure.holder.constants
    else:
        fx = FunctionLowering(kernel, d, _pool(kernel, d))
        if d.kind is not CursorKind.FUNCTION_DECL and not d.is_static_method():
            fx.this_class = d.semantic_parent.type.get_canonical()
    set_template_names(fx, d)
    fx.folds = any(not isinstance(v, ir.Struct) for v in fixed.values())
    params: list[ir.FunctionParam] = []
    for p in d.get_arguments():
        if p is None:
            continue
        if ast.is_closure(p.type):
            fx.decls[p] = ir.StructInit((), type=kernel.types.of(p.type))
            continue
        value = fixed.get(p)
        if isinstance(value, int):
            t = fx.type(p.type)
            fx.decls[p] = const(typed_value(value, t), t)
            fx.constants[p.spelling] = value
            continue
        params.append(parameter(fx, p))
        if value is not None:
            params[-1] = replace(params[-1], type=value)
            fx.decls[p] = ir.Var(params[-1].name, type=value)
    result = d.result_type.get_canonical()
    fx.returns_reference = result.kind in ast.REFERENCES
    fx.return_type = ir.VOID if d.kind is CursorKind.CONSTRUCTOR else _return_type(kernel, result)
    body_cursor = ast.body_of(d)
    assert body_cursor is not None
    with fx.collect() as stmts:
        if d.kind is CursorKind.CONSTRUCTOR:
            fx.this_used = True
            member_initialisers(fx, d)
        stmts.extend(unresolved(fx.block(body_cursor)))
    if fx.this_class is not None and fx.this_used:
        is_const = d.kind is not CursorKind.CONSTRUCTOR and d.is_const_method()
        params.insert(0, ir.FunctionParam("this", kernel.types.of(fx.this_class), by_ref=True, const=is_const))
    function = ir.Function(
        key=key,
        name=_name(d),
        params=tuple(params),
        ret=fx.return_type,
        body=tuple(stmts),
        span=kernel.span(d),
        targs=tuple((n, v) for n, v in template_arguments(kernel, d) if n),
        captures_enclosing=bool(fx.captured),
        ret_ref=fx.returns_reference,
        comment=comment_before(kernel, d),
    )
    return function, fx


def _return_type(kernel: KernelLowering, result: ClangType) -> ir.Type:
    if ast.is_closure(result):
        raise Untranslatable(codes.UNSUPPORTED, "function that returns a lambda")
    return numbered_type(result) or kernel.types.of(result)


def _name(d: Cursor) -> str:
    if ast.is_closure(d.semantic_parent.type):
        return spelled(ast.unqualified(d.semantic_parent.type))
    name = d.spelling.split("<")[0] if not d.spelling.startswith("operator") else d.spelling
    parent = d.semantic_parent
    if parent is not None and parent.kind in (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL, CursorKind.UNION_DECL):
        return f"{parent.spelling}::{name}"
    return name


def parameter(fx: FunctionLowering, p: Cursor) -> ir.FunctionParam:
    """A parameter, declared in `fx`."""
    t = p.type.get_canonical()
    by_ref = t.kind in ast.REFERENCES
    inner = t.get_pointee().get_canonical() if by_ref else t
    it = fx.type(t)
    if isinstance(it, ir.Array) and not by_ref:
        it = ir.Pointer(it.elem)
    name = fx.declare(p, it, p.spelling or "arg")
    return ir.FunctionParam(name, it, by_ref, inner.is_const_qualified(), p.type.is_restrict_qualified())


def _closure_of(kernel: KernelLowering, d: Cursor) -> Closure | None:
    """The closure whose body `d` is."""
    parent = d.semantic_parent
    if parent is None or not ast.is_closure(parent.type):
        return None
    closure = kernel.lambdas.get(closure_record(parent.type))
    if closure is None:
        raise Untranslatable(codes.UNSUPPORTED, "lambda that was not created in the kernel's own functions")
    return closure


def _pool(kernel: KernelLowering, d: Cursor) -> NamePool | None:
    """Names for a body: those of the lambda's holder when the function takes or holds a lambda, else its own."""
    types = [p.type for p in d.get_arguments() if p is not None]
    if d.kind is not CursorKind.FUNCTION_DECL:
        types.append(d.semantic_parent.type)
    for t in types:
        found = _mentioned_closure(kernel, t, 0)
        if found is not None:
            return found.holder.pool
    return None


def _mentioned_closure(kernel: KernelLowering, t: ClangType, depth: int) -> Closure | None:
    t = t.get_canonical()
    if t.kind in (*ast.REFERENCES, TypeKind.POINTER):
        t = t.get_pointee().get_canonical()
    if t.kind is not TypeKind.RECORD or depth > 3:
        return None
    if ast.is_closure(t):
        return kernel.lambdas.get(closure_record(t))
    if "(lambda at " not in t.spelling:
        return None
    for i in range(max(0, t.get_num_template_arguments())):
        found = _mentioned_closure(kernel, t.get_template_argument_type(i), depth + 1)
        if found is not None:
            return found
    return None


# ---------------------------------------------------------------- template arguments


def template_arguments(kernel: KernelLowering, d: Cursor, named: bool = True) -> list[tuple[str, Any]]:
    """(parameter name, type or int) of a specialisation, its classes' first. Packs and templates are left out."""
    out: list[tuple[str, Any]] = []
    parent = d.semantic_parent
    if parent is not None and parent.kind in (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL):
        out += template_arguments(kernel, parent, named)
    n = d.get_num_template_arguments()
    if n <= 0:
        return out + (_method_arguments(d) if d.kind is CursorKind.CXX_METHOD else [])
    params = ast.template_parameters(d)
    for i in range(n):
        name = params[i].spelling if i < len(params) else ""
        value = template_argument(kernel, d, i, params[i] if i < len(params) else None)
        if value is not None:
            out.append((name, value))
    return out


def _method_arguments(d: Cursor) -> list[tuple[str, Any]]:
    """Integer template arguments of a method specialisation. libclang tells them only in the USR: `f<#VI3#d#Vb1>`."""
    params = ast.template_parameters(d) if d.specialized_template is not None else []
    found = re.search(rf"@F@{re.escape(d.spelling)}<#(.*)>#", d.get_usr())
    parts = found.group(1).split("#") if found else []
    if len(parts) != len(params):
        return []
    out: list[tuple[str, Any]] = []
    for p, text in zip(params, parts, strict=True):
        value = re.fullmatch(r"V([a-zA-Z])(-?\d+)", text)
        if value:
            out.append((p.spelling, bool(int(value.group(2))) if value.group(1) == "b" else int(value.group(2))))
    return out


def template_argument(kernel: KernelLowering, d: Cursor, i: int, param: Cursor | None) -> Any | None:
    kind = d.get_template_argument_kind(i).name
    if kind == "TYPE":
        t = d.get_template_argument_type(i)
        try:
            return kernel.types.of(t)
        except UnsupportedType:
            return ir.Struct(spelled(ast.unqualified(t)), (), 0, 1)
    if kind == "INTEGRAL":
        t = param.type.get_canonical() if param is not None else None
        if t is not None and t.kind is TypeKind.BOOL:
            return bool(d.get_template_argument_value(i))  # libclang gives true as -1
        if t is not None and t.kind in (
            TypeKind.UINT,
            TypeKind.ULONG,
            TypeKind.ULONGLONG,
            TypeKind.UCHAR,
            TypeKind.USHORT,
        ):
            return int(d.get_template_argument_unsigned_value(i))
        return int(d.get_template_argument_value(i))
    return None


def set_template_names(fx: FunctionLowering, d: Cursor) -> None:
    """The names of the template value parameters in scope and their values (for origins and pragmas)."""
    pairs = template_arguments(fx.kernel, d)
    fx.constants.update({n: v for n, v in pairs if isinstance(v, (bool, int))})
    names = {p.spelling for p in ast.template_parameters(d)} | {n for n, _ in pairs}
    fx.template_names = fx.template_names | {n for n in names if n}
