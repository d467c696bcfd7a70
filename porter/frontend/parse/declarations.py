"""What clang's cursors say about kernels: where user declarations are, their names, parameters and attributes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.hermetic import HEADERS
from porter.model import KernelInfo, KernelParam, TemplateParam

_PRELUDE_PREFIX = str(HEADERS) + os.sep

_CONTAINERS = (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL)


def is_prelude(cursor: Cursor) -> bool:
    """True for what porter's own headers (or the compiler) declare and the user's sources do not define."""
    definition = cursor.get_definition()
    place = (definition or cursor).location.file
    return place is None or place.name.startswith(_PRELUDE_PREFIX)


def project_decls(tu: Any) -> Iterator[Cursor]:
    """Namespace-scope declarations that are not porter's own, namespaces opened."""

    def visit(c: Cursor) -> Iterator[Cursor]:
        for child in c.get_children():
            if child.kind in _CONTAINERS:
                yield from visit(child)
            else:
                yield child

    for c in tu.cursor.get_children():
        place = c.location.file
        if place is None or place.name.startswith(_PRELUDE_PREFIX):
            continue
        if c.kind in _CONTAINERS:
            yield from visit(c)
        else:
            yield c


def is_kernel_definition(c: Cursor) -> bool:
    kinds = {child.kind for child in c.get_children()}
    return CursorKind.CUDAGLOBAL_ATTR in kinds and CursorKind.COMPOUND_STMT in kinds


def qualified_name(c: Cursor) -> str:
    """`a::b::name`, anonymous namespaces left out."""
    parts = [c.spelling]
    p = c.semantic_parent
    while p is not None and p.kind != CursorKind.TRANSLATION_UNIT:
        named = p.kind in (CursorKind.NAMESPACE, CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL)
        if named and p.spelling and not p.is_anonymous():
            parts.append(p.spelling)
        p = p.semantic_parent
    return "::".join(reversed(parts))


def template_params(c: Cursor) -> tuple[TemplateParam, ...]:
    """The template parameters of a FUNCTION_TEMPLATE, in order. A pack's name ends with "..."."""
    kinds = {
        CursorKind.TEMPLATE_TYPE_PARAMETER: "type",
        CursorKind.TEMPLATE_NON_TYPE_PARAMETER: "value",
        CursorKind.TEMPLATE_TEMPLATE_PARAMETER: "template",
    }
    params = []
    for child in c.get_children():
        kind = kinds.get(child.kind)
        if kind is None:
            continue
        tokens = cc.token_spellings(child)
        default = " ".join(tokens[tokens.index("=") + 1 :]) if "=" in tokens else ""
        pack = "..." if "..." in tokens else ""
        value_type = child.type.spelling if kind == "value" else ""
        params.append(TemplateParam(child.spelling + pack, kind, value_type, default))
    return tuple(params)


def kernel_info(c: Cursor) -> KernelInfo:
    """What a person needs to know of a kernel definition (errors not filled in)."""
    params = [KernelParam(p.spelling, p.type.spelling) for p in c.get_children() if p.kind == CursorKind.PARM_DECL]
    bounds = ""
    for child in c.get_children():
        if child.kind == CursorKind.ANNOTATE_ATTR and child.spelling.startswith("launch_bounds:"):
            bounds = child.spelling.removeprefix("launch_bounds:")
    return KernelInfo(
        name=c.spelling,
        qualified_name=qualified_name(c),
        params=tuple(params),
        template_params=template_params(c) if c.kind == CursorKind.FUNCTION_TEMPLATE else (),
        span=cc.span(c),
        launch_bounds=bounds,
    )


def has_body(c: Cursor) -> bool:
    """True for a function definition."""
    return any(child.kind == CursorKind.COMPOUND_STMT for child in c.get_children())


def is_kernel(c: Cursor) -> bool:
    """True for a __global__ function, template or specialisation."""
    return any(child.kind == CursorKind.CUDAGLOBAL_ATTR for child in c.get_children())


def is_device_code(c: Cursor) -> bool:
    """True for kernels and functions that exist on the device only."""
    kinds = {child.kind for child in c.get_children()}
    if CursorKind.CUDAGLOBAL_ATTR in kinds:
        return True
    return CursorKind.CUDADEVICE_ATTR in kinds and CursorKind.CUDAHOST_ATTR not in kinds


def may_run_on_device(c: Cursor) -> bool:
    """False for functions that a kernel cannot call: neither `__device__` nor `__global__` nor constexpr."""
    kinds = {child.kind for x in (c, c.canonical) for child in x.get_children()}
    if kinds & {CursorKind.CUDAGLOBAL_ATTR, CursorKind.CUDADEVICE_ATTR}:
        return True
    return "constexpr" in takewhile(lambda token: token != "{", cc.token_spellings(c))


def template_of(function: Cursor) -> Cursor | None:
    """The FUNCTION_TEMPLATE that a specialisation comes from."""
    template = cc.specialised_template(function)
    return template if template is not None and template.kind == CursorKind.FUNCTION_TEMPLATE else None


def template_arguments(function: Cursor, reference: Cursor | None = None) -> tuple[str, ...]:
    """The template arguments of a specialisation as C++ text that is valid at namespace scope; () for no template.

    `reference` is the expression that names it (`k<T, act<T>, 8>`): functions given as arguments are read there.
    """
    count = function.get_num_template_arguments()
    if count <= 0:
        return ()
    template = template_of(function)
    params = [c for c in template.get_children() if c.kind in _TEMPLATE_PARAMETERS] if template is not None else []
    functions = _function_references(reference) if reference is not None else []
    found = []
    for i in range(count):
        kind = function.get_template_argument_kind(i)
        param = params[min(i, len(params) - 1)] if params else None
        if kind == cc.cindex.TemplateArgumentKind.TYPE:
            found.append(_type_text(function.get_template_argument_type(i)))
        elif kind == cc.cindex.TemplateArgumentKind.INTEGRAL:
            found.append(_value_text(function.get_template_argument_value(i), param))
        elif kind == cc.cindex.TemplateArgumentKind.DECLARATION and functions:
            found.append(functions.pop(0))
        elif kind == cc.cindex.TemplateArgumentKind.NULLPTR:
            found.append("nullptr")
        else:
            return ()
    return tuple(found)


_TEMPLATE_PARAMETERS = (
    CursorKind.TEMPLATE_TYPE_PARAMETER,
    CursorKind.TEMPLATE_NON_TYPE_PARAMETER,
    CursorKind.TEMPLATE_TEMPLATE_PARAMETER,
)


def _type_text(t: cc.Type) -> str:
    return t.get_canonical().spelling


def _value_text(value: int, param: Cursor | None) -> str:
    if param is None or param.kind != CursorKind.TEMPLATE_NON_TYPE_PARAMETER:
        return str(value)
    kind = param.type.get_canonical().kind
    if kind == cc.TypeKind.BOOL:  # true comes back as -1: one bit, sign extended
        return "true" if value else "false"
    if kind == cc.TypeKind.ENUM:
        return f"({param.type.get_canonical().spelling}){value}"
    return str(value)


def _function_references(reference: Cursor) -> list[str]:
    """Functions named among the template arguments of an expression.

    A template's own arguments are left out when the expression does not resolve them: the type of the parameter that
    the function is given to determines them.
    """
    found = []
    for c in reference.get_children():
        if c.kind not in (CursorKind.DECL_REF_EXPR, CursorKind.UNEXPOSED_EXPR, CursorKind.UNARY_OPERATOR):
            continue
        for x in cc.walk(c):
            target = x.referenced if x.kind == CursorKind.DECL_REF_EXPR else None
            if target is not None and target.kind == CursorKind.FUNCTION_DECL:
                arguments = template_arguments(target, x)
                found.append(qualified_name(target) + (f"<{', '.join(arguments)}>" if arguments else ""))
                break
            if x.kind == CursorKind.OVERLOADED_DECL_REF:
                found.append(qualified_name(cc.overloaded(x) or x))
                break
    return found
