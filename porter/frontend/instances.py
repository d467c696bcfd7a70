"""Template instances: reading them from text and launches, guessing them, and having clang instantiate them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from porter.frontend import clang_compat as cc
from porter.frontend import codes
from porter.frontend.argument_text import parse_instantiation, split_arguments
from porter.frontend.clang_compat import CursorKind
from porter.frontend.parse import ParsedUnit, ParseOptions, parse_source
from porter.model import Diagnostic, Instance, KernelInfo, Severity
from porter.source import Source

__all__ = ["parse_instantiation", "specialise", "split_arguments"]

_NAMESPACE = "__porter_instances"


def _signature(kernel: KernelInfo) -> str:
    params = ", ".join(
        f"{'typename' if p.kind == 'type' else p.type or p.kind} {p.name}" + (f" = {p.default}" if p.default else "")
        for p in kernel.template_params
    )
    return f"template <{params}> {kernel.qualified_name}"


def bad_instance(kernel: KernelInfo, instance: Instance, reasons: tuple[str, ...] = ()) -> Diagnostic:
    """The user's error: these arguments do not fit this template."""
    return Diagnostic(
        codes.BAD_INSTANCE,
        f"{kernel.name}{instance} does not fit the kernel's template parameters",
        kernel.span,
        Severity.ERROR,
        f"the parameters are: {_signature(kernel)}",
        reasons,
    )


def specialise(
    source: Source,
    options: ParseOptions,
    requests: list[tuple[KernelInfo, Instance]],
    *,
    stand_ins: dict[str, str] | None = None,
) -> tuple[ParsedUnit, dict[tuple[str, Instance], Any]]:
    """Instantiate kernels: the unit that holds them, and the FUNCTION_DECL cursor of each (qualified name, instance).

    The bodies are fully instantiated (no dependent type). A kernel that is no template gives its definition. A request
    whose arguments do not fit is absent from the result, and a PRT006 diagnostic of the unit says why.
    """
    unit, cursors, failures = try_specialise(source, options, requests, stand_ins=stand_ins)
    return replace(unit, diagnostics=(*unit.diagnostics, *failures.values())), cursors


def try_specialise(
    source: Source,
    options: ParseOptions,
    requests: list[tuple[KernelInfo, Instance]],
    *,
    stand_ins: dict[str, str] | None = None,
) -> tuple[ParsedUnit, dict[tuple[str, Instance], Any], dict[tuple[str, Instance], Diagnostic]]:
    """As `specialise`, with the failures by request."""
    lines = [f"namespace {_NAMESPACE} {{"]
    templates = [(k, i) for k, i in requests if k.is_template or i.args]
    for n, (kernel, instance) in enumerate(templates):
        name = f"::{kernel.qualified_name}" if kernel.qualified_name else kernel.name
        lines.append(f"auto* __porter_{n} = &{name}<{', '.join(instance.args)}>;")
    lines.append("}")
    unit = parse_source(source, options, append="\n".join(lines) if templates else "", stand_ins=stand_ins)
    first = source.text.count("\n") + 3  # the line of __porter_0
    reasons: dict[int, list[str]] = {}
    main = str(source.path)
    for d in unit.tu.diagnostics:
        if d.severity < 3:
            continue
        for line in _lines_in(d, main):
            if line >= first:
                reasons.setdefault(line - first, []).extend([d.spelling, *(c.spelling for c in d.children)])
    cursors: dict[tuple[str, Instance], Any] = {}
    failures: dict[tuple[str, Instance], Diagnostic] = {}
    variables = {}
    for c in unit.tu.cursor.get_children():
        if c.kind == CursorKind.NAMESPACE and c.spelling == _NAMESPACE:
            variables = {v.spelling: v for v in c.get_children()}
    for n, (kernel, instance) in enumerate(templates):
        key = (kernel.qualified_name, instance)
        found = _specialisation(variables.get(f"__porter_{n}"))
        if found is None:
            failures[key] = bad_instance(kernel, instance, tuple(reasons.get(n, ()))[:6])
        else:
            cursors[key] = found
    for kernel, instance in requests:
        if not kernel.is_template and not instance.args:
            cursors[(kernel.qualified_name, instance)] = unit.cursors[kernel.span]
    return unit, cursors, failures


def _lines_in(d: Any, main: str) -> set[int]:
    """Lines of the main file that a diagnostic and its notes name ("in instantiation of ... requested here")."""
    places = [d.location, *(c.location for c in d.children)]
    return {p.line for p in places if p.file is not None and p.file.name == main}


def _specialisation(variable: Any) -> Any:
    """The FUNCTION_DECL with a body that `auto* p = &f<...>` names, or None."""
    if variable is None:
        return None
    for c in cc.walk(variable):
        if c.kind == CursorKind.DECL_REF_EXPR:
            f = c.referenced
            if f is not None and f.kind == CursorKind.FUNCTION_DECL:
                f = f.get_definition() or f
                if any(b.kind == CursorKind.COMPOUND_STMT for b in f.get_children()):
                    return f
    return None
