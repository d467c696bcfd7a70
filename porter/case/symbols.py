"""[[symbols]] of a case file: values of `__constant__` and `__device__` variables that the kernel reaches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

from porter import codes
from porter.case.model import COMPARES, DISTRIBUTIONS, SYMBOL_KEYS, SYMBOL_ROLES, BufferSpec
from porter.case.toml_lines import key_line

_NAME = re.compile(r"(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
_GIVEN = ("dist", "values", "members", "initial")


class Reader(Protocol):
    """The part of the case's reader that is needed here."""

    text: str

    def fail(self, code: str, message: str, *where: str, help: str = "") -> NoReturn: ...
    def known(self, table: Any, keys: Any, *where: str) -> None: ...
    def typed(self, table: Any, key: str, kind: Any, default: Any, *where: str) -> Any: ...
    def expression(self, value: Any, *where: str) -> str: ...
    def one_of(self, value: str, allowed: tuple[str, ...], *where: str) -> str: ...


def read_symbols(reader: Reader, tables: Sequence[Any], taken: Sequence[str]) -> tuple[BufferSpec, ...]:
    """The symbols as buffers of the port. `taken` are the names of the kernel's own parameters. Raises PorterError."""
    names = [_name(reader, table, i) for i, table in enumerate(tables)]
    found = []
    for table, name in zip(tables, names, strict=True):
        parameter = name.split("::")[-1]
        if parameter in taken or sum(n.split("::")[-1] == parameter for n in names) > 1:
            parameter = name.removeprefix("::").replace("::", "_")
        if parameter in taken:
            parameter = f"{parameter}_symbol"
        found.append(_symbol(reader, table, name, parameter))
    return tuple(found)


def _name(reader: Reader, table: Any, i: int) -> str:
    if not isinstance(table, dict):
        reader.fail(codes.WRONG_VALUE, "write [[symbols]] tables", "symbols", str(i))
    if "name" not in table:
        reader.fail(codes.MISSING_KEY, "the key `name` is missing", "symbols", str(i))
    name = str(reader.typed(table, "name", str, "", "symbols", str(i)))
    if not _NAME.fullmatch(name):
        help_ = "the variable's name without template arguments, `taps` or `filters::taps`"
        reader.fail(codes.WRONG_VALUE, f"`{name}` is not the name of a variable", "symbols", str(i), "name", help=help_)
    return name


def _symbol(reader: Reader, table: dict[str, Any], name: str, parameter: str) -> BufferSpec:
    where = ("symbols", name)
    reader.known(table, SYMBOL_KEYS, *where)
    role = reader.one_of(reader.typed(table, "role", str, "in", *where), SYMBOL_ROLES, *where, "role")
    given = [key for key in _GIVEN if key in table]
    if role != "out" and not given:
        help_ = 'give dist, values or members; or initial = "declared" where the host never writes it'
        reader.fail(codes.MISSING_KEY, "no values are given", *where, help=help_)
    if len(given) > 1:
        reader.fail(codes.WRONG_VALUE, f"`{given[0]}` and `{given[1]}` both say what it holds", *where, given[1])
    if role == "out" and given:
        reader.fail(
            codes.WRONG_VALUE, f"`{given[0]}` is for symbols that the kernel reads; this one is out", *where, given[0]
        )
    initial = reader.typed(table, "initial", str, "", *where)
    if initial:
        reader.one_of(initial, ("declared",), *where, "initial")
    dist = reader.typed(table, "dist", str, "", *where)
    if dist:
        reader.one_of(dist, DISTRIBUTIONS, *where, "dist")
    compare = reader.typed(table, "compare", str, "", *where)
    if compare:
        reader.one_of(compare, tuple(c for c in COMPARES if c != "set-per-segment"), *where, "compare")
    reason = reader.typed(table, "compare_reason", str, "", *where)
    if compare == "none" and not reason.strip():
        reader.fail(codes.MISSING_KEY, 'compare = "none" needs a `compare_reason`', *where, "compare")
    members = reader.typed(table, "members", dict, {}, *where)

    def bound(key: str) -> str | None:
        return reader.expression(table[key], *where, key) if key in table else None

    return BufferSpec(
        parameter,
        reader.typed(table, "dtype", str, "", *where),
        tuple(reader.expression(e, *where, "shape") for e in reader.typed(table, "shape", list, [], *where)),
        role=role,
        dist=dist,
        low=bound("low"),
        high=bound("high"),
        compare=compare,
        compare_reason=reason,
        nonfinite=reader.typed(table, "nonfinite", bool, True, *where),
        line=key_line(reader.text, where),
        symbol=name,
        values=_expressions(reader, table["values"], *where, "values") if "values" in table else None,
        members=tuple((path, _expressions(reader, v, *where, "members")) for path, v in _flat(members, "")),
        declared=bool(initial),
    )


def _expressions(reader: Reader, value: Any, *where: str) -> tuple[str, ...]:
    """Every element in order: nested lists are the rows of an array."""
    if isinstance(value, list):
        return tuple(e for v in value for e in _expressions(reader, v, *where))
    return (reader.expression(value, *where),)


def _flat(table: dict[str, Any], path: str) -> list[tuple[str, Any]]:
    """`inner = { x = 1 }` as `inner.x`."""
    found = []
    for key, value in table.items():
        here = f"{path}.{key}" if path else key
        found += _flat(value, here) if isinstance(value, dict) else [(here, value)]
    return found
