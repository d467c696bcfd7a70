"""A kernel instance, as clang instantiated it, to porter's IR: the front end's last step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from porter import codes, ir
from porter.frontend.lower import calls, expressions, lambdas, literals, statements
from porter.frontend.lower.body import FunctionLowering, KernelLowering, Untranslatable
from porter.frontend.lower.comments import arithmetic, comment_before
from porter.frontend.lower.depth import deep_recursion
from porter.frontend.lower.flow import jumps, switch
from porter.frontend.lower.flow.function_pointers import refuse_parameter
from porter.frontend.lower.flow.jumps import unresolved
from porter.frontend.lower.function import parameter, set_template_names, template_arguments
from porter.frontend.lower.library import asm
from porter.frontend.lower.types import UnsupportedType
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.source import ParsedUnit, is_prelude
from porter.model import Instance, KernelInfo
from porter.patterns.symbols import as_parameters

HANDLERS = (asm, calls, expressions, jumps, lambdas, literals, statements, switch)  # they register themselves


@deep_recursion()
def lower_kernel(
    unit: ParsedUnit,
    cursor: Any,
    info: KernelInfo,
    instance: Instance,
    *,
    strict: bool = False,
    symbols: Mapping[str, str] | None = None,
) -> ir.Kernel:
    """The IR of one kernel at one instance.

    `symbols` are the variables that a case gives, by their names there, with the names of the parameters that stand for
    them: they become parameters even where the source fixes their values.

    `cursor` is the FUNCTION_DECL that `instances.specialise` gives. Never raises for what the source holds: constructs
    without an equivalent are HoleStmt and HoleExpr. `strict` re-raises porter's own errors (for tests).
    """
    texts = ast.Texts({str(unit.source.path): unit.source.text, **unit.files})
    kernel = KernelLowering(texts, is_prelude, strict)
    kernel.wanted = dict(symbols or {})
    kernel.root = cursor
    fx = FunctionLowering(kernel, cursor, kernel.global_pool, guest=False)
    set_template_names(fx, cursor)
    params: list[ir.FunctionParam] = []
    holes: list[ir.Stmt] = []
    for p in cursor.get_arguments():
        try:
            refuse_parameter(p)
            params.append(parameter(fx, p))
        except (UnsupportedType, Untranslatable) as e:
            name = fx.declare(p, ir.VOID, p.spelling or "arg")
            params.append(ir.FunctionParam(name, ir.Pointer(ir.VOID)))
            holes.append(ir.HoleStmt(e.code, texts.of(p), f"parameter {name}: {e}", span=kernel.span(p)))
    for name in kernel.wanted.values():
        kernel.global_pool.fresh(name)  # locals of that name give way
    body_cursor = ast.body_of(cursor)
    body = unresolved(fx.block(body_cursor)) if body_cursor is not None else ()
    if body_cursor is None:
        holes.append(ir.HoleStmt(codes.NO_BODY, info.name, "the kernel has no body in the sources", span=info.span))
    bounds, cluster = _annotations(kernel, fx, cursor)
    made = ir.Kernel(
        name=cursor.spelling.split("<")[0],
        qualified_name=info.qualified_name or ast.qualified_name(cursor),
        params=tuple(params),
        body=(*kernel.kernel_decls, *holes, *body),
        functions=dict(kernel.functions),
        targs=tuple(template_arguments(kernel, cursor)),
        globals=tuple(kernel.globals.values()),
        launch_bounds=bounds,
        cluster_dims=cluster,
        span=kernel.span(cursor.specialized_template or cursor),
        comment=comment_before(kernel, cursor),
    )
    return as_parameters(made, tuple(kernel.symbols.values()))


def _annotations(
    kernel: KernelLowering, fx: FunctionLowering, cursor: Cursor
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(launch bounds, cluster dimensions) from the annotations that the prelude makes of the attributes."""
    found: dict[str, tuple[int, ...]] = {}
    holders = [cursor, *([cursor.specialized_template] if cursor.specialized_template else [])]
    for holder in holders:
        for k in holder.get_children():
            if k.kind is not CursorKind.ANNOTATE_ATTR or ":" not in k.spelling:
                continue
            name, text = k.spelling.split(":", 1)
            values = [_number(fx, part) for part in _split(text)]
            if all(v is not None for v in values):
                found.setdefault(name, tuple(v for v in values if v is not None))
    return found.get("launch_bounds", ()), found.get("cluster_dims", ())


def _split(text: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for ch in text:
        depth += ch in "(<["
        depth -= ch in ")>]"
        if ch == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += ch
    return [*parts, current]


def _number(fx: FunctionLowering, text: str) -> int | None:
    """The value of a launch bound: a number, a template parameter, or a namespace constant, with + - * /."""
    text = text.strip()
    if re.fullmatch(r"\d+[uUlL]*", text):
        return int(text.rstrip("uUlL"))
    names: dict[str, object] = dict(fx.constants)
    for name in re.findall(r"[A-Za-z_]\w*", text):
        if name not in names:
            value = _namespace_constant(fx, name)
            if value is not None:
                names[name] = value
    return arithmetic(text, names)


def _namespace_constant(fx: FunctionLowering, name: str) -> int | None:
    """A constexpr integer of the namespaces around the kernel."""
    scope = fx.cursor.semantic_parent
    while scope is not None:
        for k in scope.get_children():
            if k.kind is CursorKind.VAR_DECL and k.spelling == name:
                init = ast.initializer(k)
                value = ast.evaluate(init) if init is not None else None
                return int(value) if value is not None else None
            if k.kind is CursorKind.ENUM_DECL:
                for e in k.get_children():
                    if e.spelling == name:
                        return int(e.enum_value)
        scope = scope.semantic_parent
    return None
