"""The symbols of a case beside their declarations: element types, shapes, members; and what the case does not give."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from porter import codes, ir
from porter.case.model import Member
from porter.case.reader import BufferSpec, Case
from porter.case.toml_lines import suggestion
from porter.cxx.types import scalar_name
from porter.emit.symbols import dimensions, members
from porter.frontend.lower.symbols import same_name
from porter.model import KernelInfo
from porter.wording import plural

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit


def wanted(case: Case | None) -> dict[str, str]:
    """The symbols that a case gives, with the parameters that stand for them."""
    return {b.symbol: b.name for b in case.buffers if b.symbol} if case is not None else {}


def complete_symbols(case: Case, unit: ParsedUnit, info: KernelInfo, some: bool = False) -> Case:
    """The case with dtype, shape and members of each symbol as declared. A case without symbols is itself.

    With `some` the case is for some of its instances: symbols that only others reach are left out. Raises PorterError:
    PRT905 for a symbol that no instance of the kernel reaches, PRT902 and PRT903 for values that do not fit the
    declaration.
    """
    if not any(b.symbol for b in case.buffers):
        return case
    from porter.frontend.instances.lowered import lowered

    instances = tuple(i.instance for i in case.instances)
    every: dict[str, list[ir.Symbol]] = {}
    for kernel in lowered(unit, info, instances, wanted(case)):
        for symbol in kernel.symbols:
            every.setdefault(symbol.name, []).append(symbol)
    here = [b for b in case.buffers if not (some and b.symbol and b.name not in every)]
    buffers = [_completed(case, info, b, every) if b.symbol else b for b in here]
    return replace(case, buffers=tuple(buffers))


def _completed(case: Case, info: KernelInfo, spec: BufferSpec, every: dict[str, list[ir.Symbol]]) -> BufferSpec:
    symbols = every.get(spec.name, [])
    if not symbols or same_name(symbols[0].declared, {spec.symbol: ""}) is None:
        known = sorted({s.declared for found in every.values() for s in found})
        help_ = suggestion(spec.symbol, known) if known else "it reaches no variable whose values a case has to give"
        case.fail(
            codes.CASE_DOES_NOT_FIT, f"{info.name} reaches no variable `{spec.symbol}`", *spec.where, "name", help=help_
        )
    meant = {
        s.declared for found in every.values() for s in found if same_name(s.declared, wanted(case)) == spec.symbol
    }
    if len(meant) > 1:
        text = f"`{spec.symbol}` may be {' or '.join(sorted(meant))}"
        case.fail(codes.CASE_DOES_NOT_FIT, text, *spec.where, "name", help="write the name with its namespaces")
    first = symbols[0]
    if first.constant and spec.role != "in":
        case.fail(codes.WRONG_VALUE, "a kernel only reads __constant__ memory", *spec.where, "role")
    if spec.declared and first.filled:
        message = f"the host writes {first.declared} ({first.filled}): it does not hold what its declaration says"
        case.fail(codes.WRONG_VALUE, message, *spec.where, "initial", help="give dist, values or members")
    seen = {dimensions(s.type) for s in symbols}
    dtype, shape = _element(case, info, spec, symbols), dimensions(first.type)[1]
    if len({s for _, s in seen}) > 1:
        case.fail(codes.CASE_DOES_NOT_FIT, f"{first.declared} has another shape in each instance", *spec.where)
    layout = members(first.type) if not isinstance(first.type, ir.Array) else ()
    if spec.members:
        _check_members(case, spec, layout)
    elif layout and dtype == "u8" and not (spec.dtype or spec.is_fixed or spec.role == "out"):
        inside = ", ".join(m.path for m in layout[:6])
        case.fail(codes.MISSING_KEY, f"{first.declared} has members of several types: `{spec.dist}` fits none of them",
                  *spec.where, help=f"give members = {{ ... }} for {inside}")  # fmt: skip
    count = math.prod(shape)
    if spec.values is not None and len(spec.values) != count:
        text = f"{plural(len(spec.values), 'value')} for the {plural(count, 'element')} of {first.declared} ({dtype})"
        case.fail(codes.WRONG_VALUE, text, *spec.where, "values")
    return replace(
        spec,
        layout=layout,
        dtype=spec.dtype or dtype,
        shape=spec.shape or tuple(map(str, shape)),
        declaration=first.declared,
        initialised=all(s.initialised for s in symbols),
    )


def _element(case: Case, info: KernelInfo, spec: BufferSpec, symbols: list[ir.Symbol]) -> str:
    """The dtype of a symbol, or the template parameter that decides it."""
    found = [dimensions(s.type)[0] for s in symbols]
    if len(set(found)) == 1 or spec.dtype:
        return found[0]
    types = [i for i, t in enumerate(info.template_params) if t.kind == "type"]
    for i in types:
        if [scalar_name(x.args[i]) if i < len(x.args) else None for x in case.instances] == found:
            return info.template_params[i].name
    case.fail(codes.MISSING_KEY, "its type differs between the instances: give dtype", *spec.where)


def _check_members(case: Case, spec: BufferSpec, layout: tuple[Member, ...]) -> None:
    names = [m.path for m in layout]
    if not names:
        case.fail(codes.WRONG_VALUE, "it is not a struct", *spec.where, "members", help="give dist or values")
    for path, _ in spec.members:
        if path not in names:
            case.fail(codes.UNKNOWN_KEY, f"no member `{path}`", *spec.where, "members", help=suggestion(path, names))
    counts = {m.path: m.count for m in layout}
    for path, values in spec.members:
        if len(values) != counts[path]:
            text = f"{plural(len(values), 'value')} for the {plural(counts[path], 'element')} of `{path}`"
            case.fail(codes.WRONG_VALUE, text, *spec.where, "members")
    given = {path for path, _ in spec.members}
    missing = [n for n in names if n not in given]
    if missing:
        case.fail(codes.MISSING_KEY, f"no value for the member `{missing[0]}`", *spec.where, "members")
