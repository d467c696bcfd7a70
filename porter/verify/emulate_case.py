"""One kernel of a PTX module on the points of a case: arguments by name, a launch in the emulator, what came of it.

The port plays no part here: this is for PTX from anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from porter import codes
from porter.case import expressions
from porter.case.expressions import Value
from porter.case.instances import instance_values
from porter.case.reader import Case, CaseInstance, LaunchShape, Point
from porter.model import Diagnostic, KernelInfo, PorterError
from porter.source import Source, Span
from porter.verify import emulator as ptx
from porter.verify.backends.emulator import as_argument, as_variables
from porter.verify.launches.buffers import Buffers, HostBuffer
from porter.verify.launches.inputs import make_inputs, read_buffer, scenarios
from porter.verify.launches.symbols import symbols_of, with_declared_values
from porter.wording import plural


@dataclass(frozen=True)
class EmulatedEntry:
    """An entry, the case that says what to give it, the names of its parameters in order, its template values."""

    module: ptx.Module
    entry: str
    case: Case
    parameters: tuple[str, ...]
    values: Mapping[str, Value]
    instance: CaseInstance = field(default_factory=lambda: CaseInstance(()))
    variables: Mapping[str, str] = field(default_factory=dict)  # symbol of the case -> module variable


@dataclass(frozen=True)
class Output:
    """What a launch left in a buffer. Numbers are those of finite elements; None where there are none."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    not_written: int  # elements that still hold the poison they held before
    not_finite: int
    low: float | None
    high: float | None
    mean: float | None


@dataclass(frozen=True)
class Emulation:
    """One launch."""

    point: Point
    shape: LaunchShape
    result: ptx.Result
    outputs: tuple[Output, ...]


def choose_entry(module: ptx.Module, case: Case, wanted: str, file: str) -> str:
    """The entry named, else the only one that the case's kernel may be. Raises PorterError PRT860 with the choice."""
    name = wanted or case.kernel.split("::")[-1]
    exact = [e for e in module.entries if e == name]
    found = exact or [e for e in module.entries if name in e]
    if not found and not wanted and len(module.entries) == 1:
        found = list(module.entries)
    if len(found) != 1:
        what = "no entry" if not found else plural(len(found), "entry")
        choice = ", ".join((found or module.entries)[:6]) or "none"
        help_ = f"--entry NAME, or a part of it that one entry has: {choice}"
        raise PorterError(
            Diagnostic(codes.PTX_CANNOT_RUN, f"{file} has {what} like `{name}`", Span(file, 0), help=help_)
        )
    return found[0]


def make_subject(
    module: ptx.Module,
    entry: str,
    case: Case,
    instance: int | None = None,
    order: Sequence[str] = (),
    given: Mapping[str, Value] | None = None,
) -> EmulatedEntry:
    """What an entry's parameters are called, and its template values.

    The names come from `order`, else from the PTX where it calls them as the case does, else from the signature in the
    case's source (needs libclang). `given` are template values that need no source. Raises PorterError PRT861, PRT906.
    """
    own = tuple(p.name for p in module.declarations[entry].params)
    symbols = sorted(b.name for b in case.buffers if b.symbol)
    if symbols:
        case = _with_symbols(case, module, entry)
    known = {*(b.name for b in case.buffers), *(n for n, _ in case.scalars)}
    values: dict[str, Value] = dict(given or {})
    types = {b.dtype for b in case.buffers}
    templated = any(i.args for i in case.instances) and not given
    chosen = CaseInstance(())
    names = tuple(order) or (own if set(own) <= known else ())
    if not names or (templated and types):
        info = _signature(case)
        if info is None and not names:
            help_ = f"--args with the case's names for its {plural(len(own), 'parameter')}, or the case's source"
            message = f"the names of the parameters of {entry} are not known"
            raise PorterError(Diagnostic(codes.UNKNOWN_ARGUMENTS, message, Span(str(case.path), 0), help=help_))
        if info is not None:
            names = names or tuple(p.name for p in info.params)
            if len(own) == len(names) + len(symbols):  # of a port
                names = (*names, *symbols)
            if not values:
                chosen = _instance_of(entry, case, info, instance)
                values = dict(instance_values(info, chosen.instance))
    unknown = [n for n in names if n not in known]
    if unknown or len(names) != len(own):
        message = f"{entry} has {plural(len(own), 'parameter')}, the names given are {', '.join(names) or 'none'}"
        if unknown:
            message = f"the case gives no buffer or scalar `{unknown[0]}`"
        raise PorterError(
            Diagnostic(codes.UNKNOWN_ARGUMENTS, message, Span(str(case.path), 0), help="--args NAME,NAME,...")
        )
    variables = {n: v for n, v in symbols_of(case, module.text, entry).items() if n not in names}
    return EmulatedEntry(module, entry, case, names, values, chosen, variables)


def _with_symbols(case: Case, module: ptx.Module, entry: str) -> Case:
    """The case with its symbols as its source declares them. Raises PorterError PRT861 where there is no source."""
    if not case.source_path.is_file():
        message = f"the declarations of the case's symbols are in {case.source_path}, which does not exist"
        raise PorterError(Diagnostic(codes.UNKNOWN_ARGUMENTS, message, Span(str(case.path), 0)))
    from porter.frontend.case.symbols import complete_symbols
    from porter.frontend.parse.source import parse_source

    unit = parse_source(Source.read(case.source_path))
    info = unit.kernel(case.kernel)
    if info is None:
        message = f"{case.source_path} has no kernel `{case.kernel}`, whose symbols the case gives"
        raise PorterError(Diagnostic(codes.UNKNOWN_ARGUMENTS, message, Span(str(case.path), 0)))
    return with_declared_values(complete_symbols(case, unit, info), module.text, entry)


def _instance_of(entry: str, case: Case, info: KernelInfo, wanted: int | None) -> CaseInstance:
    """The instance asked for, else the one whose template arguments are in the entry's mangled name."""
    numbers = range(len(case.instances))
    fits = [n for n in numbers if _mangled(info, case.instances[n].args) in entry] if wanted is None else [wanted]
    if len(fits) != 1 or fits[0] not in numbers:
        texts = ", ".join(f"{n}: {case.instances[n].instance}" for n in numbers)
        message = f"which instance of the case is {entry}?" if wanted is None else f"the case has no instance {wanted}"
        raise PorterError(
            Diagnostic(codes.UNKNOWN_ARGUMENTS, message, Span(str(case.path), 0), help=f"--instance N: {texts}")
        )
    return case.instances[fits[0]]


_LETTERS = {
    "bool": "b", "char": "c", "signed char": "a", "unsigned char": "h", "short": "s", "unsigned short": "t", "int": "i",
    "unsigned int": "j", "unsigned": "j", "long": "l", "unsigned long": "m", "long long": "x",
    "unsigned long long": "y", "float": "f", "double": "d", "int8_t": "a", "uint8_t": "h", "int16_t": "s",
    "uint16_t": "t", "int32_t": "i", "uint32_t": "j", "int64_t": "l", "uint64_t": "m", "size_t": "m",
    "half": "6__half", "nv_bfloat16": "13__nv_bfloat16",
}  # fmt: skip


def _mangled(info: KernelInfo, args: Sequence[str]) -> str:
    """How the Itanium ABI writes template arguments that are scalars, plain classes, whole numbers or bools."""
    parts = []
    for parameter, text in zip(info.template_params, args, strict=False):
        if parameter.kind == "type":
            parts.append(_LETTERS.get(text, f"{len(text)}{text}"))
        else:
            word = {"true": "1", "false": "0"}.get(text, text)
            if not word.lstrip("-").isdigit():
                return "(unknown)"
            number = int(word)
            digits = f"n{-number}" if number < 0 else str(number)
            parts.append(f"L{_LETTERS.get(parameter.type, 'i')}{digits}E")
    return f"I{''.join(parts)}" if parts else ""


def _signature(case: Case) -> KernelInfo | None:
    """The kernel as its source declares it; None where there is no source."""
    if not case.source_path.is_file():
        return None
    from porter.frontend.parse.source import parse_source

    return parse_source(Source.read(case.source_path)).kernel(case.kernel)


def choose_points(subject: EmulatedEntry, wanted: Mapping[str, str], limit: int | None, seed: int) -> list[Point]:
    """The points of the case, `limit` of them by `seed`. `wanted` fixes base sizes, listed in the case or not.

    Raises PorterError PRT861 for a name that is no base size.
    """
    case, values, instance = subject.case, subject.values, subject.instance
    if not wanted:
        return case.instance_points(instance, values, limit, seed)
    unknown = [n for n in wanted if n not in case.base_sizes]
    if unknown:
        help_ = f"sizes of the case: {', '.join(case.base_sizes)}"
        raise PorterError(
            Diagnostic(codes.UNKNOWN_ARGUMENTS, f"no size `{unknown[0]}`", Span(str(case.path), 0), help=help_)
        )
    numbers = {n: int(v) for n, v in wanted.items()}
    listed = [p for p in case.instance_points(instance, values) if all(p.sizes[n] == v for n, v in numbers.items())]
    return case.choose(listed, limit, seed) if listed else [case.point_at(numbers, values)]


def emulate(
    subject: EmulatedEntry,
    point: Point,
    scenario: str = "normal",
    seed: int = 0,
    schedule: int = 0,
    checks: ptx.Checks | None = None,
    backend: str = "auto",
    budget: int | None = None,
) -> Emulation | None:
    """Launch at one point, None where the launch has no blocks. `seed` is of the inputs, `schedule` of the order.

    Raises PorterError PRT860 for PTX that is not modelled or not sound, and for a wrong launch.
    """
    case, values = subject.case, subject.values
    shape = case.launch_at(point, values)
    if shape.is_empty:
        return None
    possible = scenarios(case, values)
    if scenario not in possible:
        help_ = f"for the inputs of this case: {', '.join(possible)}"
        raise PorterError(
            Diagnostic(codes.UNKNOWN_ARGUMENTS, f"no scenario `{scenario}`", Span(str(case.path), 0), help=help_)
        )
    buffers = make_inputs(case, point, values, scenario, seed)
    before = {n: b.view().copy() for n, b in buffers.items() if b.spec.role != "in" and n not in point.null}
    arguments = [_value(subject, name, point, buffers) for name in subject.parameters]
    try:
        result = ptx.launch(
            subject.module, subject.entry, shape.grid, shape.block, arguments, smem_bytes=shape.smem,
            cooperative=shape.cooperative, cluster=shape.cluster, checks=checks, seed=schedule, backend=backend,
            budget=budget, variables=as_variables({v: buffers[n] for n, v in subject.variables.items()}),
        )  # fmt: skip
    except ptx.PtxError as error:
        raise refusal(error, subject.entry) from None
    outputs = tuple(_output(buffers[n], words) for n, words in before.items())
    return Emulation(point, shape, result, outputs)


def refusal(error: ptx.PtxError, name: str) -> PorterError:
    """An error of the emulator as porter's message."""
    line = getattr(error, "line", 0)
    help_ = "docs/emulator.md lists what is not modelled" if isinstance(error, ptx.UnsupportedPtx) else ""
    return PorterError(Diagnostic(codes.PTX_CANNOT_RUN, str(error), Span(name, line), help=help_))


def _value(subject: EmulatedEntry, name: str, point: Point, buffers: Buffers) -> object:
    if name in buffers:
        return None if name in point.null else as_argument(buffers[name])
    return point.scalars[name]


def _output(buffer: HostBuffer, before: np.ndarray) -> Output:
    after = buffer.view()
    untouched = int(np.count_nonzero(after == buffer.poison)) if buffer.spec.role == "out" else 0
    if buffer.spec.init is not None:
        untouched = 0  # it is unknown what was written where the buffer was filled before
    numbers = np.asarray(read_buffer(buffer), np.float64)
    finite = numbers[np.isfinite(numbers)]
    low, high, mean = (float(f(finite)) for f in (np.min, np.max, np.mean)) if finite.size else (None, None, None)
    return Output(
        buffer.name, buffer.dtype, buffer.shape, untouched, int(numbers.size - finite.size), low, high, mean
    )  # fmt: skip


def as_json(made: Emulation) -> dict[str, Any]:
    """A launch as plain data."""
    result = made.result
    return {
        "point": {**made.point.sizes, **made.point.scalars, **dict.fromkeys(sorted(made.point.null))},
        "grid": list(made.shape.grid),
        "block": list(made.shape.block),
        "smem": made.shape.smem,
        "backend": result.backend,
        "seconds": round(result.seconds, 4),
        "violations": [
            {
                "kind": v.kind, "message": v.message, "opcode": v.opcode, "ptx_line": v.ptx_line,
                "file": v.loc[0] if v.loc else "", "line": v.loc[1] if v.loc else 0, "space": v.space,
                "buffer": v.buffer, "offset": v.offset, "block": list(v.block), "thread": list(v.thread),
                "count": v.count,
            }
            for v in result.violations
        ],
        "counts": result.counts,
        "outputs": [
            {
                "name": o.name, "dtype": o.dtype, "shape": list(o.shape), "not_written": o.not_written,
                "not_finite": o.not_finite, "min": o.low, "max": o.high, "mean": o.mean,
            }
            for o in made.outputs
        ],
        "stdout": result.stdout,
    }  # fmt: skip


def template_value(text: str) -> Value:
    """A template value as the command line gives it: a number, true or false, else the name of a type."""
    try:
        return expressions.evaluate(text, {})
    except expressions.ExprError:
        return {"true": True, "false": False}.get(text, text)
