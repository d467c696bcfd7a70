"""Enumerators among template arguments as numbers: `ADAM` becomes `(Optimizer_t)0`, which needs no parser to read."""

from __future__ import annotations

import re

from porter.frontend import clang_compat as cc
from porter.frontend.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.declarations import qualified_name
from porter.frontend.parse import ParsedUnit
from porter.model import Instance, KernelInfo

_NAME = re.compile(r"(?:[A-Za-z_]\w*::)*([A-Za-z_]\w*)")


def numbered(unit: ParsedUnit, kernel: KernelInfo, instance: Instance) -> Instance:
    """The instance with its enumerators as numbers, cast to the enumeration where the parameter has that type."""
    args = list(instance.args)
    for i, (text, param) in enumerate(zip(args, kernel.template_params, strict=False)):
        m = _NAME.fullmatch(text.strip())
        if param.kind != "value" or m is None or text in ("true", "false", "nullptr"):
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
