"""Which instances of a kernel the file's own host code reaches, through dispatch macros and host templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from porter.cxx.types import normalise
from porter.frontend.instances.explicit import deduced_instantiations, explicit_instantiations
from porter.frontend.launches.sites import host_functions, launched_kernels
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.declarations import (
    has_body,
    is_device_code,
    is_prelude,
    project_decls,
    qualified_name,
    template_arguments,
    template_of,
)
from porter.frontend.parse.source import ParsedUnit, parse_source, skipped_lines
from porter.model import Instance, KernelInfo
from porter.source import Span

_MAX_FUNCTIONS = 3000
_SEEDS = "__porter_seeds"


def instances_from_launches(unit: ParsedUnit, kernel: KernelInfo) -> tuple[Instance, ...]:
    """The concrete instances of a kernel that launches and explicit instantiations of the file reach, in source order.

    Launches inside host templates count for each instantiation of the host template that non-template code reaches.
    Instances over types that have no name at namespace scope (lambdas, local types) are left out.
    """
    if not kernel.is_template:
        return (Instance(),) if any(launch.kernel == kernel.name for launch in unit.launches) else ()
    found: dict[Instance, None] = {}
    for name, args in explicit_in(unit):
        if name in (kernel.name, kernel.qualified_name):
            found.setdefault(Instance(at_namespace_scope(unit, kernel, args)))
    for place, args in _all_reached(unit):
        if place == kernel.span:
            found.setdefault(Instance(args))
    own = _specialised(unit, kernel)
    return tuple(i for i in found if tuple(map(normalise, i.args)) not in own)


def _specialised(unit: ParsedUnit, kernel: KernelInfo) -> set[tuple[str, ...]]:
    """The arguments of a template's explicit specialisations: kernels of their own, not instances of it."""
    found = set()
    for info in (*unit.kernels, *unit.header_kernels):
        c = unit.cursors.get(info.span) if info.name == kernel.name and info.span != kernel.span else None
        template = template_of(c) if c is not None and c.kind == CursorKind.FUNCTION_DECL else None
        if c is not None and template is not None and cc.span(template.get_definition() or template) == kernel.span:
            found.add(tuple(map(normalise, template_arguments(c))))
    return found


def at_namespace_scope(unit: ParsedUnit, kernel: KernelInfo, args: tuple[str, ...]) -> tuple[str, ...]:
    """Arguments as written beside the kernel: names of its namespaces in full, constants as their values."""
    scope = kernel.qualified_name.split("::")[:-1]
    key = f"names in {'::'.join(scope)}"
    if key not in unit.memo:
        unit.memo[key] = _names_in(unit, scope)
    names: dict[str, str] = unit.memo[key]
    return tuple(re.sub(r"(?<![\w:.])[A-Za-z_]\w*", lambda m: names.get(m.group(), m.group()), a) for a in args)


def _names_in(unit: ParsedUnit, scope: list[str]) -> dict[str, str]:
    """Name -> text at namespace scope of what the project declares in a namespace and those around it."""
    places = ["::".join(scope[:n]) for n in range(len(scope), -1, -1)]
    found: dict[str, tuple[int, str]] = {}
    for c in project_decls(unit.tu):
        unscoped = c.kind == CursorKind.ENUM_DECL and not c.is_scoped_enum()
        for x in (c, *(c.get_children() if unscoped else ())):
            place, _, name = qualified_name(x).rpartition("::")
            if place in places and (name not in found or places.index(place) < found[name][0]):
                found[name] = (places.index(place), _text_of(x))
    return {name: full for name, (_, full) in found.items()}


def _text_of(c: Cursor) -> str:
    """What stands for a declaration in template arguments: an integer constant's value, else its full name."""
    if c.kind == CursorKind.ENUM_CONSTANT_DECL and not c.semantic_parent.is_anonymous():
        return f"({qualified_name(c.semantic_parent)}){c.enum_value}"
    value = cc.evaluate(c) if c.kind == CursorKind.VAR_DECL and c.type.is_const_qualified() else None
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else qualified_name(c)


def _all_reached(unit: ParsedUnit) -> list[tuple[Span, tuple[str, ...]]]:
    """(definition of the template, arguments) of every concrete kernel that host code launches; found once per unit."""
    if "reached" not in unit.memo:
        whole = with_seeds(unit, explicit_in(unit))
        unit.memo["reached"] = _launched(whole)
    return unit.memo["reached"]


def _launched(unit: ParsedUnit) -> list[tuple[Span, tuple[str, ...]]]:
    found: dict[tuple[Span, tuple[str, ...]], None] = {}
    for function in reached_functions(unit):
        for launched, args in launched_kernels(unit, function):
            template = template_of(launched)
            nameless = any(word in a for a in args for word in ("(lambda", "(anonymous", "(unnamed"))
            if template is not None and args and not nameless:
                found.setdefault((cc.span(template.get_definition() or template), args))
    return list(found)


def explicit_in(unit: ParsedUnit) -> list[tuple[str, tuple[str, ...]]]:
    """The explicit instantiations that the preprocessor leaves in."""
    return _left_in(unit, explicit_instantiations)


def _deduced(unit: ParsedUnit) -> list[tuple[str, str, str]]:
    """The explicit instantiations without arguments that the preprocessor leaves in."""
    return _left_in(unit, deduced_instantiations)


def _left_in(unit: ParsedUnit, find: Callable[..., list[Any]]) -> list[Any]:
    """What `find` sees in the source outside of the lines that the preprocessor skips; found once per unit."""
    if find.__name__ not in unit.memo:
        text = unit.source.text
        found = find(text)
        if found and re.search(r"^[ \t]*#[ \t]*(if|elif)", text, re.M):
            found = find(text, skipped_lines(unit))
        unit.memo[find.__name__] = found
    return unit.memo[find.__name__]


def choose_few(instances: tuple[Instance, ...], limit: int = 4) -> tuple[Instance, ...]:
    """At most `limit` instances that together show as many different arguments as possible, 16-bit types first."""
    left = sorted(instances, key=lambda i: not any("loat16" in a or "alf" in a for a in i.args))
    chosen: list[Instance] = []
    seen: set[tuple[int, str]] = set()
    while left and len(chosen) < limit:
        best = max(left, key=lambda i: len(set(enumerate(i.args)) - seen))
        if chosen and not set(enumerate(best.args)) - seen:
            break
        chosen.append(best)
        seen |= set(enumerate(best.args))
        left.remove(best)
    return tuple(chosen)


def instances_from_host_templates(
    unit: ParsedUnit, kernel: KernelInfo, seeds: list[tuple[str, tuple[str, ...]]]
) -> tuple[Instance, ...]:
    """The instances that host templates launch when given these template arguments; bad arguments add nothing."""
    whole = with_seeds(unit, seeds)
    return () if whole is unit else tuple(Instance(a) for place, a in _launched(whole) if place == kernel.span)


def with_seeds(unit: ParsedUnit, seeds: list[tuple[str, tuple[str, ...]]]) -> ParsedUnit:
    """The unit with instantiations of host templates referred to, so that their bodies can be walked."""
    deduced = _deduced(unit)
    if not seeds and not deduced:
        return unit
    kernels = {k.name for k in (*unit.kernels, *unit.header_kernels)}
    names = {f.spelling: f for f in host_functions(unit, own_file=False) if f.spelling not in kernels}
    lines = []
    for i, (name, args) in enumerate(seeds):
        if name.split("::")[-1] in names:
            function = names[name.split("::")[-1]]
            full = qualified_name(function)
            # in the function's namespaces: arguments are written there, with names that mean nothing outside
            scopes = [*_namespaces(function), f"{_SEEDS}{i}"]
            seed = f"inline auto* seed() {{ return &::{full}<{', '.join(args)}>; }}"
            lines.append(" ".join([*(f"namespace {s} {{" for s in scopes), seed, *("}" for _ in scopes)]))
    for i, (name, result, params) in enumerate(deduced):
        if name.split("::")[-1] in names:
            full = qualified_name(names[name.split("::")[-1]])
            scope = full.rpartition("::")[0]
            line = f"inline auto {_SEEDS}_typed{i}() {{ return static_cast<{result} (*)({params})>(&::{full}); }}"
            lines.append(f"namespace {scope} {{ {line} }}" if scope else line)
    if not lines:
        return unit
    append = "\n".join(lines)
    return parse_source(unit.source, unit.options, append=append, stand_ins=unit.stand_ins, check=())


def _namespaces(c: Cursor) -> list[str]:
    """The named namespaces around a declaration, outermost first."""
    found: list[str] = []
    p = c.semantic_parent
    while p is not None and p.kind != CursorKind.TRANSLATION_UNIT:
        if p.kind == CursorKind.NAMESPACE and p.spelling:
            found.insert(0, p.spelling)
        p = p.semantic_parent
    return found


def reached_functions(unit: ParsedUnit) -> Iterator[Cursor]:
    """Non-template host functions of the file, then the project functions and instantiations that they use."""
    queue = [
        f
        for f in host_functions(unit)
        if f.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR)
        and not _in_class_template(f)
    ]
    seen = {f.get_usr() for f in queue}
    while queue and len(seen) < _MAX_FUNCTIONS:
        function = queue.pop(0)
        yield function
        for c in cc.walk(function):
            if c.kind not in (CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR):
                continue
            target = c.referenced
            if target is None or target.kind not in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD):
                continue
            usr = target.get_usr()
            if usr in seen:
                continue
            seen.add(usr)
            target = target.get_definition() or target
            if has_body(target) and not is_device_code(target) and not is_prelude(target):
                queue.append(target)


def _in_class_template(c: Cursor) -> bool:
    p = c.semantic_parent
    while p is not None and p.kind != CursorKind.TRANSLATION_UNIT:
        if p.kind in (CursorKind.CLASS_TEMPLATE, CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION):
            return True
        p = p.semantic_parent
    return False
