"""Names among template arguments as what they stand for: `ADAM` becomes `(Optimizer_t)0`, an alias of a scalar type the
type. Both can then be read without a parser."""

from __future__ import annotations

import re

from porter.cxx.types import scalar_name
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.parse.declarations import qualified_name
from porter.frontend.parse.source import ParsedUnit
from porter.model import Instance, KernelInfo

_NAME = re.compile(r"(?:[A-Za-z_]\w*::)*([A-Za-z_]\w*)")


def resolved(unit: ParsedUnit, kernel: KernelInfo, instance: Instance) -> Instance:
    """The instance with its enumerators as numbers, cast to the enumeration where the parameter has that type, and
    with the file's own names for scalar types as these types; default arguments that are enumerators are written out.
    """
    args = [*instance.args, *_defaults(unit, kernel, len(instance.args))]
    for i, (text, param) in enumerate(zip(args, kernel.template_params, strict=False)):
        m = _NAME.fullmatch(text.strip())
        if m is None or text in ("true", "false", "nullptr"):
            continue
        if param.kind == "type":
            args[i] = _aliased(unit, text.strip())
        if param.kind != "value":
            continue
        found = _enumerators(unit).get(m.group(1), ())
        wanted = text.strip().removeprefix("::")
        fitting = [(name, enum, value) for name, enum, value in found if f"::{name}".endswith(f"::{wanted}")]
        values = {value for _, _, value in fitting}
        if len(values) != 1:
            continue
        is_enum = _type_kind(unit, kernel, i) == TypeKind.ENUM
        args[i] = f"({fitting[0][1]}){fitting[0][2]}" if is_enum and fitting[0][1] else str(fitting[0][2])
    return Instance(tuple(args))


def _defaults(unit: ParsedUnit, kernel: KernelInfo, given: int) -> list[str]:
    """The default arguments behind the first `given` ones, up to the last one that is an enumerator."""
    texts = [p.default.replace(" :: ", "::") for p in kernel.template_params[given:]]
    names = {p.name for p in kernel.template_params}
    if any(not t or names & set(re.findall(r"\w+", t)) for t in texts):
        return []
    last = -1
    for n, text in enumerate(texts):
        m = _NAME.fullmatch(text)
        if m is not None and kernel.template_params[given + n].kind == "value" and _enumerators(unit).get(m.group(1)):
            last = n
    return texts[: last + 1]


def _aliased(unit: ParsedUnit, name: str) -> str:
    """The scalar type that the file calls `name`; the name itself where it is none, or more than one."""
    if scalar_name(name):
        return name
    if "aliases" not in unit.memo:
        aliases: dict[str, list[tuple[str, str]]] = {}
        for c in cc.walk(unit.tu.cursor):
            if c.kind in (CursorKind.TYPEDEF_DECL, CursorKind.TYPE_ALIAS_DECL):
                spelled = c.underlying_typedef_type.get_canonical().spelling
                if scalar_name(spelled):
                    aliases.setdefault(c.spelling, []).append((qualified_name(c), spelled))
        unit.memo["aliases"] = aliases
    wanted = name.removeprefix("::")
    found = unit.memo["aliases"].get(wanted.split("::")[-1], ())
    types = {spelled for full, spelled in found if f"::{full}".endswith(f"::{wanted}")}
    return types.pop() if len(types) == 1 else name


def _type_kind(unit: ParsedUnit, kernel: KernelInfo, index: int) -> TypeKind | None:
    kinds = (
        CursorKind.TEMPLATE_TYPE_PARAMETER,
        CursorKind.TEMPLATE_NON_TYPE_PARAMETER,
        CursorKind.TEMPLATE_TEMPLATE_PARAMETER,
    )
    try:
        params = [c for c in unit.definition(kernel).get_children() if c.kind in kinds]
    except KeyError:
        return None
    return params[index].type.get_canonical().kind if index < len(params) else None


def _enumerators(unit: ParsedUnit) -> dict[str, list[tuple[str, str, int]]]:
    """Plain name -> (qualified name, enumeration, value) of every enumerator, classes' own too; found once per unit.

    An unscoped enumerator is known both as `Enum::NAME` and as `NAME` of the enclosing scope.
    """
    if "enumerators" not in unit.memo:
        found: dict[str, list[tuple[str, str, int]]] = {}
        for c in cc.walk(unit.tu.cursor):
            if c.kind == CursorKind.ENUM_CONSTANT_DECL:
                _add(found, c)
        unit.memo["enumerators"] = found
    return unit.memo["enumerators"]


def _add(found: dict[str, list[tuple[str, str, int]]], c: Cursor) -> None:
    enum = c.semantic_parent
    scope = qualified_name(enum.semantic_parent) if enum.semantic_parent is not None else ""
    spelled = enum.type.get_canonical().spelling
    name = "" if "(" in spelled else spelled.removeprefix("enum ")
    rows = found.setdefault(c.spelling, [])
    value = int(c.enum_value)
    rows.append((f"{qualified_name(enum)}::{c.spelling}", name, value))
    if not enum.is_scoped_enum():
        rows.append((f"{scope}::{c.spelling}" if scope else c.spelling, name, value))
