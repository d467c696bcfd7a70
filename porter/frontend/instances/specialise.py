"""Having clang instantiate kernels: references to specialisations are appended to the text, not to the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from porter import codes
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.declarations import has_body
from porter.frontend.parse.faults import is_tolerated
from porter.frontend.parse.source import ParsedUnit, ParseOptions, parse_source
from porter.model import Diagnostic, Instance, KernelInfo, Severity, TemplateParam
from porter.source import Source

_NAMESPACE = "__porter_instances"
Request = tuple[KernelInfo, Instance]
Key = tuple[str, Instance]  # qualified name of the kernel, instance


def signature(kernel: KernelInfo) -> str:
    """`template <typename T, int VEC = 8> a::kernel`, for messages."""
    params = ", ".join(
        f"{'typename' if p.kind == 'type' else p.type or p.kind} {p.name}" + (f" = {p.default}" if p.default else "")
        for p in kernel.template_params
    )
    return f"template <{params}> {kernel.qualified_name}"


def bad_instance(kernel: KernelInfo, instance: Instance, reasons: tuple[str, ...] = ()) -> Diagnostic:
    """The user's error: these arguments do not fit this template."""
    if not kernel.is_template:
        help_text = f"{kernel.name} is not a template: name it without arguments"
    else:
        help_text = f"the parameters are: {signature(kernel)}"
    return Diagnostic(
        codes.INSTANCE_DOES_NOT_FIT,
        f"{kernel.name}{instance or ' without arguments'} does not fit the kernel's template parameters",
        kernel.span,
        Severity.ERROR,
        help_text,
        reasons,
    )


def specialise(
    source: Source,
    options: ParseOptions,
    requests: Sequence[Request],
    *,
    stand_ins: dict[str, str] | None = None,
) -> tuple[ParsedUnit, dict[Key, Any]]:
    """Instantiate kernels: the unit that holds them, and the FUNCTION_DECL cursor of each (qualified name, instance).

    The bodies are fully instantiated (no dependent type). A kernel that is no template gives its definition. A request
    whose arguments do not fit is absent from the result, and a PRT006 diagnostic of the unit says why.
    """
    unit, cursors, failures = try_specialise(source, options, requests, stand_ins=stand_ins)
    return replace(unit, diagnostics=(*unit.diagnostics, *failures.values())), cursors


def try_specialise(
    source: Source,
    options: ParseOptions,
    requests: Sequence[Request],
    *,
    stand_ins: dict[str, str] | None = None,
) -> tuple[ParsedUnit, dict[Key, Any], dict[Key, Diagnostic]]:
    """As `specialise`, with the failures by request."""
    templates = [(k, i) for k, i in requests if k.is_template or i.args]
    lines = [f"auto* __porter_{n} = &::{k.qualified_name}<{', '.join(i.args)}>;" for n, (k, i) in enumerate(templates)]
    append = "\n".join([f"namespace {_NAMESPACE} {{", *lines, "}"]) if templates else ""
    if any(_overloaded(source, k) for k, _ in templates):
        typed = [_typed_reference(n, k, i) for n, (k, i) in enumerate(templates)]
        heads = " ".join(head for head, _ in typed)
        # the declarations of the types share the line of the namespace: request n stays on line first + n
        append = "\n".join([f"{heads} namespace {_NAMESPACE} {{", *(line for _, line in typed), "}"])
    check = [requests[0][0].span] if len(requests) == 1 else []
    unit = parse_source(source, options, append=append, stand_ins=stand_ins, check=check)
    first = source.text.count("\n") + 3  # the line of __porter_0
    reasons = _reasons(unit, str(source.path), first)
    # What is wrong in the appended lines is told per request.
    own = tuple(d for d in unit.diagnostics if d.span.file != str(source.path) or d.span.line < first - 1)
    unit = replace(unit, diagnostics=own)
    variables: dict[str, Cursor] = {}
    for c in unit.tu.cursor.get_children():
        if c.kind == CursorKind.NAMESPACE and c.spelling == _NAMESPACE:
            variables = {v.spelling: v for v in c.get_children()}
    cursors: dict[Key, Any] = {}
    failures: dict[Key, Diagnostic] = {}
    for n, (kernel, instance) in enumerate(templates):
        found = _specialisation(variables.get(f"__porter_{n}"))
        if found is None or n in reasons:
            because = tuple(dict.fromkeys(reasons.get(n, ())))[:6]
            failures[kernel.qualified_name, instance] = bad_instance(kernel, instance, because)
        else:
            cursors[kernel.qualified_name, instance] = found
    if len(requests) == 1 and cursors:
        # With one request, a fault in a function it reaches that the template did not have is this instance's.
        ((kernel, instance),) = requests
        again = next((k for k in (*unit.kernels, *unit.header_kernels) if k.span == kernel.span), kernel)
        before = {(e.span, e.message) for e in kernel.errors}
        later = [e for e in again.errors if (e.span, e.message) not in before]
        if later:
            cursors.clear()
            because = tuple(f"{e.span}: {e.message}" for e in later[:6])
            failures[kernel.qualified_name, instance] = bad_instance(kernel, instance, because)
    for kernel, instance in requests:
        if not kernel.is_template and not instance.args:
            cursors[kernel.qualified_name, instance] = unit.cursors[kernel.span]
    return unit, cursors, failures


def _overloaded(source: Source, kernel: KernelInfo) -> bool:
    """Whether the file may hold several kernels of this name, which `&name<...>` cannot tell apart."""
    return len(re.findall(rf"__global__[^;{{]*?\b{re.escape(kernel.name)}\s*\(", source.text)) > 1


def _typed_reference(n: int, kernel: KernelInfo, instance: Instance) -> tuple[str, str]:
    """(an alias template of the kernel's type in its own namespace, the reference that uses it)."""
    scope = kernel.qualified_name.split("::")[:-1]
    formal = ", ".join(_formal(p) for p in kernel.template_params)
    alias = f"template <{formal}> using __porter_type_{n} = void({', '.join(p.type for p in kernel.params)});"
    if not kernel.is_template:
        alias = f"using __porter_type_{n} = void({', '.join(p.type for p in kernel.params)});"
    head = " ".join([*(f"namespace {s} {{" for s in scope), alias, *("}" for _ in scope)])
    args = f"<{', '.join(instance.args)}>"
    qualified = "::".join(["", *scope, f"__porter_type_{n}"])
    return head, f"{qualified}{args if kernel.is_template else ''}* __porter_{n} = &::{kernel.qualified_name}{args};"


def _formal(p: TemplateParam) -> str:
    default = f" = {p.default}" if p.default else ""
    name, pack = p.name.removesuffix("..."), "..." if p.name.endswith("...") else ""
    if p.kind == "type":
        return f"typename{pack} {name}{default}"
    return f"{p.type}{pack} {name}{default}"


def _reasons(unit: ParsedUnit, main: str, first: int) -> dict[int, list[str]]:
    """Request number -> what clang says about its line, or about the body that it made clang instantiate."""
    reasons: dict[int, list[str]] = {}
    for d in unit.tu.diagnostics:
        if d.severity < 3 or is_tolerated(d.spelling):
            continue
        places = [cc.place(x.location) for x in (d, *d.children)]
        for line in {p.line for p in places if p.file == main and p.line >= first}:
            place = "" if places[0].line == line else f"{places[0].file}:{places[0].line}: "
            notes = [
                c.spelling for c in d.children if not c.spelling.startswith(("in instantiation of", "in file included"))
            ]
            reasons.setdefault(line - first, []).extend([place + d.spelling, *notes])
    return reasons


def _specialisation(variable: Cursor | None) -> Cursor | None:
    """The FUNCTION_DECL with a body that `auto* p = &f<...>` names."""
    if variable is None:
        return None
    for c in cc.walk(variable):
        f = c.referenced if c.kind == CursorKind.DECL_REF_EXPR else None
        if f is not None and f.kind == CursorKind.FUNCTION_DECL:
            f = f.get_definition() or f
            if has_body(f):
                return f
    return None
