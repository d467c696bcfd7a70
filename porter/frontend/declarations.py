"""What clang's cursors say about kernels: where user declarations are, their names, parameters and attributes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from porter.frontend import clang_compat as cc
from porter.frontend.clang_compat import Cursor, CursorKind
from porter.frontend.hermetic import HEADERS
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
