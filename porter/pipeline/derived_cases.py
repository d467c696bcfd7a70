"""A case derived from a source that has none: what host code and comments say is drafted, what they leave open is
measured on the original, and sizes that the original does not take are left out."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from porter.case.expressions import Value
from porter.case.fit import check_case
from porter.case.instances import instance_values
from porter.case.model import Case
from porter.case.reader import parse_case
from porter.case.toml_lines import parsed_toml
from porter.model import KernelInfo, PorterError
from porter.pipeline.guessed_launches import Way, guessed_ways
from porter.verify.backends.interface import Build
from porter.verify.measure.extents import Extent, Fit, Measured, fit
from porter.verify.measure.launches import ELEMENTS, Measurement, measure, probes

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

_OPEN = "TODO"
_GUESS = "# TODO check: a guess"
_HIGH = "4"
_NEED_BOUNDS = ("i16", "u16", "i32", "u32", "i64", "u64")  # whole numbers that are no codes


@dataclass(frozen=True)
class DerivedCase:
    """The TOML text of a case; `open` is what a person has to complete ("" for a case that can be used), `assumptions`
    what was measured or guessed, in words."""

    text: str
    open: str = ""
    assumptions: tuple[str, ...] = ()


def derive_case(unit: ParsedUnit, info: KernelInfo, path: Path) -> DerivedCase:
    """The case of a kernel, as `path` will hold it. The original is run on the emulator: Ctrl-C ends that."""
    from porter.frontend.case import draft
    from porter.frontend.case.text import case_text

    found = draft.derive_case(unit, info)
    text, place = case_text(found)[0], found.place
    source = os.path.relpath(unit.source.path, path.parent).replace(os.sep, "/")
    text = re.sub(r'^source = ".*"$', lambda _: f"source = {json.dumps(source)}", text, count=1, flags=re.M)
    try:
        completed, assumptions = _completed(_marked(text, place), unit, info, path)
    except _Open as reason:
        return DerivedCase(text, str(reason))
    return DerivedCase(completed, "", assumptions)


class _Open(Exception):
    """Something in the draft is for a person to decide."""


def _marked(text: str, place: str) -> str:
    """The draft as a derived case."""
    head = f"# Derived by porter from {place}: read it, and delete the line `derived` when it is right."
    lines = text.split("\n")
    kept = [n for n in lines if not n.startswith("# Drafted by porter")]
    at = next(i for i, n in enumerate(kept) if n.startswith("kernel = "))
    return "\n".join([head, *kept[: at + 1], f'derived = "{place}"', *kept[at + 1 :]])


def _completed(text: str, unit: ParsedUnit, info: KernelInfo, path: Path) -> tuple[str, tuple[str, ...]]:
    data = parsed_toml(text)
    unknown = _open_shapes(text, data)
    probe = text
    assumptions: list[str] = []
    for table in data.get("buffers", []):
        name = table["name"]
        if table.get("high") == _OPEN:
            text = with_key(text, name, "high", _HIGH)
        elif table.get("role") == "inout" and "high" not in table and table.get("dtype") in _NEED_BOUNDS:
            bounds = rf"\1low = 0\nhigh = {_HIGH}\n"
            text = re.sub(rf'(^name = "{re.escape(name)}"\n)', bounds, text, count=1, flags=re.M)
        else:
            continue
        assumptions.append(f"{name} holds numbers below {_HIGH}")
    probe = text
    for name in unknown:
        probe = with_key(probe, name, "shape", f'["{ELEMENTS}"]')
    ways: tuple[Way, ...] = (Way(),)
    if _open_launch(data):
        ways = guessed_ways(unit, info)
        assumptions.append("no launch was found: threads of a block and blocks of the grid are guesses")
    left = _left(parsed_toml(ways[0].applied(probe)))
    if left:
        raise _Open(left)
    runs: list[Measurement] = []
    taken: list[Measurement] = []
    for way in ways:
        case = _case(way.applied(probe), info, path)
        runs = _runs(case, unit, info)
        taken = [m for m in runs if not m.fault and not m.empty]
        if any(e.written for m in taken for e in m.touched.values()):
            text = way.applied(text)
            break
    if not taken:
        raise _Open(next((f"the original: {m.fault}" for m in runs if m.fault), "the original launches no block"))
    text, dropped = _narrowed(text, case, runs)
    assumptions += dropped
    for name in unknown:
        found = _shape(name, case, info, taken)
        if found is None:
            raise _Open(f"no size explains the length of {name}")
        comment = "measured" if found.exact else "an upper bound, measured"
        text = with_key(text, name, "shape", _list(found.shape), comment)
        assumptions.append(f"{name} is [{', '.join(found.shape)}]" + ("" if found.exact else " at most"))
    for spec in case.buffers:
        roles = {m.touched[spec.name].role for m in taken if spec.name in m.touched}
        if spec.role == "out" and "inout" in roles:
            text = with_key(text, spec.name, "role", '"inout"', "read before it is written, measured")
    _case(text, info, path)
    return text, tuple(assumptions)


def _case(text: str, info: KernelInfo, path: Path) -> Case:
    try:
        case = parse_case(text, path)
        check_case(case, info)
    except PorterError as error:
        raise _Open(error.diagnostics[0].message) from None
    return case


def _open_shapes(text: str, data: Mapping[str, Any]) -> list[str]:
    """The buffers whose shape the draft leaves open, or guesses."""
    guessed = set(re.findall(rf'^name = "(\w+)"\n(?:\w+ = .*\n)*?shape = .*{_GUESS}', text, re.M))
    return [b["name"] for b in data.get("buffers", []) if b.get("shape") == [_OPEN] or b["name"] in guessed]


def _left(value: Any, where: str = "") -> str:
    """The first place that is still open; "" for none."""
    if value == _OPEN:
        return where
    if isinstance(value, dict):
        name = value.get("name", "")
        found = [_left(v, f"{k} of {name}" if name else k) for k, v in value.items()]
        found += [k for k in value if k == _OPEN]
    elif isinstance(value, list):
        found = [_left(v, where) for v in value]
    else:
        return ""
    return next((f for f in found if f), "")


def _open_launch(data: Mapping[str, Any]) -> bool:
    launch = data.get("launch", {})
    return _OPEN in (*launch.get("grid", []), *launch.get("block", []))


def _runs(case: Case, unit: ParsedUnit, info: KernelInfo) -> list[Measurement]:
    """Launches of the original at each instance; of several instances each is tried at fewer points."""
    loose = [replace(b, role="inout", high=b.high or _HIGH) if b.role == "out" else b for b in case.buffers]
    case = replace(case, buffers=tuple(loose))
    from porter.verify.original.build import build_original

    instances = [i.instance for i in case.instances]
    try:
        builds = build_original(unit.source, unit.options, info, instances, unit=unit)
    except PorterError as error:
        raise _Open(f"the original does not compile: {error.diagnostics[0].message}") from None
    wanted = probes(case)
    found: list[Measurement] = []
    for number, (instance, build) in enumerate(zip(instances, builds, strict=True)):
        values: dict[str, Value] = dict(instance_values(info, instance))
        made = Build("original", build.ptx, build.entry, unit.options.arch)
        found += measure(case, info, values, made, wanted if number == 0 else wanted[:3])
    return found


def _shape(name: str, case: Case, info: KernelInfo, runs: Sequence[Measurement]) -> Fit | None:
    spec = case.buffer(name)
    measured = []
    for m in runs:
        extent = m.touched.get(name, Extent())
        width = _width(spec.dtype, info, case)
        measured.append(Measured(m.numbers, -(-extent.bytes // width)))
    names = [n for n in _ordered(case) if all(n in m.numbers for m in measured)]
    return fit(measured, names)


def _width(dtype: str, info: KernelInfo, case: Case) -> int:
    from porter import ir

    values = dict(instance_values(info, case.instances[0].instance))
    bound = values.get(dtype, dtype)
    from porter.cxx.types import scalar_name

    name = scalar_name(bound) if isinstance(bound, str) else None
    return ir.SCALAR_BYTES[name] if name else 1


def _ordered(case: Case) -> list[str]:
    """Names that a shape may be made of, outer ones first: what counts rows stands before what a row is long."""
    names = list(case.base_sizes)
    outer = [n for n in names if re.search(r"token|row|batch|seq|slot|^m$|^b$|blocks?$", n, re.I)]
    return [*outer, *(n for n in names if n not in outer)]


def _narrowed(text: str, case: Case, runs: Sequence[Measurement]) -> tuple[str, list[str]]:
    """The text without the sizes at which the original was never clean, and words about each."""
    notes = []
    for name, listed in case.sizes:
        if isinstance(listed, str):
            continue
        bad = []
        for value in listed:
            here = [m for m in runs if m.sizes.get(name) == value and not m.empty]
            if here and all(m.fault for m in here):
                bad.append(value)
        kept = [v for v in listed if v not in bad]
        if bad and any(kept):
            text = re.sub(rf"^{re.escape(name)} = \[.*?\]", f"{name} = {kept}", text, count=1, flags=re.M)
            fault = next(m.fault for m in runs if m.sizes.get(name) == bad[0] and m.fault)
            notes.append(f"{name} = {', '.join(map(str, bad))} is left out: {fault}")
    return text, notes


def with_key(text: str, buffer: str, key: str, value: str, comment: str = "") -> str:
    """The text with a key of one buffer's table replaced."""
    pattern = rf'(^\[\[buffers\]\]\nname = "{re.escape(buffer)}"\n(?:(?!\[).*\n)*?){key} = .*$'
    note = f"  # {comment}" if comment else ""
    return re.sub(pattern, lambda m: f"{m.group(1)}{key} = {value}{note}", text, count=1, flags=re.M)


def _list(items: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{i}"' for i in items) + "]"


