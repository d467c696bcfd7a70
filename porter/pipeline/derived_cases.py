"""A case derived from a source that has none: what host code and comments say is drafted, what they leave open is
measured on the original, and sizes that the original does not take are left out."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from porter.case.expressions import Value
from porter.case.fit import check_case
from porter.case.instances import instance_values
from porter.case.model import Case
from porter.case.reader import parse_case
from porter.case.toml_lines import parsed_toml
from porter.cxx.types import is_const_pointee, scalar_name
from porter.frontend.case.derived import DerivedBuffer, DerivedCase, DerivedSize
from porter.frontend.case.text import TODO, case_text
from porter.ir import SCALAR_BYTES
from porter.model import KernelInfo, PorterError
from porter.pipeline.guessed_launches import BLOCKS, guessed_launches, with_launch
from porter.verify.backends.interface import Build
from porter.verify.measure.extents import Extent, Fit, Measured, fit
from porter.verify.measure.launches import ELEMENTS, Measurement, measure, probes

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

_HIGH = "4"
SECONDS_OF_OTHERS = 0.5  # of CPU time for each instance after the first
_NEED_BOUNDS = ("i16", "u16", "i32", "u32", "i64", "u64")  # whole numbers that are no codes


@dataclass(frozen=True)
class CaseText:
    """The TOML text of a case; `open` is what a person has to complete ("" for a case that can be used), `assumptions`
    what was measured or guessed, in words."""

    text: str
    open: str = ""
    assumptions: tuple[str, ...] = ()


def derive_case(unit: ParsedUnit, info: KernelInfo, path: Path) -> CaseText:
    """The case of a kernel, as `path` will hold it. The original is run on the emulator: Ctrl-C ends that."""
    from porter.frontend.case import draft

    found = draft.derive_case(unit, info)
    source = os.path.relpath(unit.source.path, path.parent).replace(os.sep, "/")
    try:
        completed, assumptions = _completed(found, unit, info, path)
        text = case_text(completed, source, derived=True)[0]
        _case(text, info, path)
    except _Open as reason:
        return CaseText(case_text(found, source)[0], str(reason))
    return CaseText(text, "", assumptions)


def is_measurable(unit: ParsedUnit, info: KernelInfo, path: Path) -> bool:
    """Whether running the original could complete the draft. Nothing is run here."""
    from porter.frontend.case import draft

    found, _ = _bounded(draft.derive_case(unit, info))
    for name in found.unknown_extents:
        found = found.with_shape(name, (str(ELEMENTS),), "")
    if found.launch.grid is None or found.launch.block is None:
        found = with_launch(found, BLOCKS[0])
    text = case_text(found)[0]
    try:
        return not _left(parsed_toml(text)) and bool(_case(text, info, path))
    except _Open:
        return False


class _Open(Exception):
    """Something in the draft is for a person to decide."""


def _completed(
    found: DerivedCase, unit: ParsedUnit, info: KernelInfo, path: Path
) -> tuple[DerivedCase, tuple[str, ...]]:
    """The case with what host code leaves open filled in, and what that takes for granted. Raises _Open."""
    found, assumptions = _bounded(found)
    found, left_out = _of_numbers(found, info)
    assumptions += left_out
    ways = [found]
    if found.launch.grid is None or found.launch.block is None:
        ways = guessed_launches(found, unit)
        assumptions.append("no launch was found: threads of a block and blocks of the grid are guesses")
    unknown = found.unknown_extents
    tried: list[Measurement] = []
    case: Case | None = None
    runs: list[Measurement] = []
    way = found
    for way in ways:
        case, runs, unknown = _long_enough(way, unknown, unit, info, path)
        tried += runs
        if any(e.written for m in runs if _is_clean(m) for e in m.touched.values()):
            break
    taken = [m for m in runs if _is_clean(m)]
    if case is None or not taken:
        raise _Open(next((f"the original: {m.fault}" for m in tried if m.fault), "the original launches no block"))
    found, dropped = _narrowed(way, runs)
    assumptions += dropped
    for name in unknown:
        if found.roles.get(name) is None and not any(name in m.touched for m in taken):
            found = found.with_shape(name, ("1",), "it is not accessed").with_buffer(name, role="in", strides=None)
            continue
        shape = _shape(name, case, info, taken)
        if shape is None:
            raise _Open(f"no size explains the length of {name}")
        found = found.with_shape(name, shape.shape, "measured" if shape.exact else "an upper bound, measured")
        found = found.with_buffer(name, strides=None)
        assumptions.append(f"{name} is [{', '.join(shape.shape)}]" + ("" if shape.exact else " at most"))
    return _with_measured_roles(found, taken), tuple(assumptions)


def _of_numbers(found: DerivedCase, info: KernelInfo) -> tuple[DerivedCase, list[str]]:
    """The case without the instances at which a buffer holds vectors (`T = __half2`) or a class: its shape counts
    numbers. Raises _Open where no other is left."""
    template_types = {b.dtype for b in found.buffers if b.dtype} & {t.name for t in info.template_params}
    kept, dropped = [], []
    for i in found.instances:
        values = instance_values(info, i.instance)
        given = [values[t] for t in sorted(template_types) if t in values]
        if all(isinstance(v, str) and scalar_name(v) for v in given):
            kept.append(i)
        else:
            dropped.append(f"<{', '.join(i.args)}>")
    if dropped and not kept:
        raise _Open(f"at {dropped[0]} the buffers hold vectors or classes: write the case in numbers")
    told = [f"instances whose buffers hold vectors or classes are left out: {', '.join(dropped)}"] if dropped else []
    return replace(found, instances=tuple(kept)), told


def _is_clean(m: Measurement) -> bool:
    return not m.fault and not m.empty


def _long_enough(
    way: DerivedCase, unknown: tuple[str, ...], unit: ParsedUnit, info: KernelInfo, path: Path
) -> tuple[Case, list[Measurement], tuple[str, ...]]:
    """Launches of the original, and the buffers whose length is to be measured in them: those `unknown`, and those that
    the original accesses outside of the shape that the source seems to say, at most of its sizes."""
    while True:
        probe = way
        for name in unknown:
            probe = probe.with_shape(name, (str(ELEMENTS),), "").with_buffer(name, strides=None)
        text = case_text(probe)[0]
        if left := _left(parsed_toml(text)):
            raise _Open(left)
        case = _case(text, info, path)
        runs = _runs(case, unit, info, unknown)
        launched = [m for m in runs if not m.empty]
        outside = {b.name for b in way.buffers} & {m.outside for m in launched} - set(unknown)
        if not outside or 2 * sum(map(_is_clean, launched)) > len(launched):
            return case, runs, unknown
        unknown = (*unknown, *sorted(outside))


def _with_measured_roles(found: DerivedCase, taken: Sequence[Measurement]) -> DerivedCase:
    """The case with roles that the launches contradict replaced: what is written is no input, and what is read before
    it is written no mere output."""
    for b in found.buffers:
        roles = {m.touched[b.name].role for m in taken if b.name in m.touched}
        if b.role == "out" and "inout" in roles:
            found = found.with_buffer(b.name, role="inout", role_from="read before it is written, measured")
        elif b.role == "in" and roles & {"out", "inout"} and not is_const_pointee(b.type):
            role = "inout" if roles & {"in", "inout"} else "out"
            found = found.with_buffer(b.name, role=role, role_from="written, measured")
    return found


def _bounded(found: DerivedCase) -> tuple[DerivedCase, list[str]]:
    """The case with small numbers in the integers of which nobody says what they may hold."""
    assumptions = []
    for b in found.buffers:
        if b.high == TODO:
            found = found.with_buffer(b.name, high=_HIGH)
        elif b.role in ("in", "inout") and b.high is None and b.dist in ("", "randint") and _is_whole(found, b):
            found = found.with_buffer(b.name, low="0", high=_HIGH)
        else:
            continue
        assumptions.append(f"{b.name} holds numbers below {_HIGH}")
    return found, assumptions


def _is_whole(found: DerivedCase, b: DerivedBuffer) -> bool:
    """Whether the elements are whole numbers at some instance."""
    if b.dtype in _NEED_BOUNDS:
        return True
    try:
        kinds = [instance_values(found.info, i.instance).get(str(b.dtype)) for i in found.instances]
    except PorterError:
        return False
    return any(k in _NEED_BOUNDS for k in kinds)


def _case(text: str, info: KernelInfo, path: Path) -> Case:
    try:
        case = parse_case(text, path)
        check_case(case, info)
    except PorterError as error:
        raise _Open(error.diagnostics[0].message) from None
    return case


def _left(value: Any, where: str = "") -> str:
    """The first place that is still open; "" for none."""
    if value == TODO:
        return where
    if isinstance(value, dict):
        name = value.get("name", "")
        found = [_left(v, f"{k} of {name}" if name else k) for k, v in value.items()]
        found += [k for k in value if k == TODO]
    elif isinstance(value, list):
        found = [_left(v, where) for v in value]
    else:
        return ""
    return next((f for f in found if f), "")


def _runs(case: Case, unit: ParsedUnit, info: KernelInfo, unknown: Sequence[str]) -> list[Measurement]:
    """Launches of the original at each instance; of several instances each is tried at fewer points."""
    from porter.verify.original.build import build_original

    writable = {p.name for p in info.params if not is_const_pointee(p.type)}
    loose = [
        replace(b, role="inout", high=b.high or _HIGH) if b.role == "out" or b.name in writable else b
        for b in case.buffers
    ]
    case = replace(case, buffers=tuple(loose))
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
        if number == 0:
            found += measure(case, info, values, made, wanted, unknown)
        else:
            found += measure(case, info, values, made, wanted[:3], unknown, SECONDS_OF_OTHERS)
    return found


def _shape(name: str, case: Case, info: KernelInfo, runs: Sequence[Measurement]) -> Fit | None:
    width = SCALAR_BYTES[case.buffer(name).dtype_at(instance_values(info, case.instances[0].instance))]
    measured = [Measured(m.numbers, -(-m.touched.get(name, Extent()).bytes // width)) for m in runs]
    names = [n for n in _ordered(case) if all(n in m.numbers for m in measured)]
    return fit(measured, names)


def _ordered(case: Case) -> list[str]:
    """Names that a shape may be made of, outer ones first: what counts rows stands before what a row is long."""
    names = list(case.base_sizes)
    outer = [n for n in names if re.search(r"token|row|batch|seq|slot|^m$|^b$|blocks?$", n, re.I)]
    return [*outer, *(n for n in names if n not in outer)]


def _narrowed(found: DerivedCase, runs: Sequence[Measurement]) -> tuple[DerivedCase, list[str]]:
    """The case without the sizes at which the original was never clean, and words about each."""
    sizes: list[DerivedSize] = []
    notes: list[str] = []
    if found.only_shapes:
        refused = [m for m in runs if m.fault and not any(_is_clean(o) and o.sizes == m.sizes for o in runs)]
        kept_shapes = tuple(s for s in found.shapes if not any(dict(m.sizes) == dict(s) for m in refused))
        if not kept_shapes:
            return found, notes
        for m in refused[:3]:
            notes.append(f"{', '.join(f'{n} = {v}' for n, v in m.sizes.items())} is left out: {m.fault}")
        found = replace(found, shapes=kept_shapes)
        values = {s.name: tuple(sorted({shape[s.name] for shape in kept_shapes})) for s in found.sizes
                  if not isinstance(s.values, str) and all(s.name in shape for shape in kept_shapes)}  # fmt: skip
        return replace(found, sizes=tuple(replace(s, values=values.get(s.name, s.values)) for s in found.sizes)), notes
    for size in found.sizes:
        listed = () if isinstance(size.values, str) else size.values
        bad = [v for v in listed if _refused(size.name, v, runs)]
        kept = tuple(v for v in listed if v not in bad)
        if bad and any(kept):
            fault = next(m.fault for m in runs if m.sizes.get(size.name) == bad[0] and m.fault)
            notes.append(f"{size.name} = {', '.join(map(str, bad))} is left out: {fault}")
            size = replace(size, values=kept)
        sizes.append(size)
    return replace(found, sizes=tuple(sizes)), notes


def _refused(name: str, value: int, runs: Sequence[Measurement]) -> bool:
    here = [m for m in runs if m.sizes.get(name) == value and not m.empty]
    return bool(here) and all(m.fault for m in here)
