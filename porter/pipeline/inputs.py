"""What a run works on: the source, its kernels, the case of each, the template arguments to port for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from porter import codes, ir
from porter.case.expressions import ExprError
from porter.case.fit import check_case
from porter.case.instances import instance_values
from porter.case.reader import FLOAT_NAMES, Case, CaseInstance, case_path_for, load_case
from porter.config import PortConfig
from porter.model import Diagnostic, Instance, KernelInfo, KernelReport, PorterError, Severity
from porter.pipeline.outputs import drafted_case_path
from porter.plain_files import NotPlain, is_plain, read_plain_text
from porter.process.limits import limited
from porter.report.code_pages import named
from porter.source import Source, Span

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit


def parse(path: Path, config: PortConfig, text: str | None = None) -> ParsedUnit:
    """Read and parse one file, or `text` in its place. Raises PorterError PRT010 when it cannot be read."""
    from porter.frontend.parse.source import ParseOptions, parse_source

    first = tuple(os.path.abspath(p) for p in config.pre_include)
    options = ParseOptions(config.include, config.define, config.std, config.arch[0], config.math, first)
    source = read_source(path) if text is None else Source(path, text)
    with limited(f"parsing {path}", Span(str(path), 0), config.cpu_limit, "cpu_limit", config.memory_limit):
        return parse_source(source, options)


def read_source(path: Path) -> Source:
    """The file's text. Raises PorterError PRT010 for a file that is missing, a folder, unreadable or not text."""
    try:
        return Source.read(path)
    except FileNotFoundError:
        near = sorted(p.name for p in path.parent.glob("*.cu"))[:5] if path.parent.is_dir() else []
        help_ = f"{path.parent}/ has {', '.join(near)}" if near else "check the path"
        raise PorterError(
            Diagnostic(codes.UNREADABLE_SOURCE, f"there is no file {path}", Span(str(path), 0), help=help_)
        ) from None
    except IsADirectoryError:
        help_ = f"name files, as in {path}/*.cu, or use --analyze"
        raise PorterError(
            Diagnostic(codes.UNREADABLE_SOURCE, f"{path} is a folder", Span(str(path), 0), help=help_)
        ) from None
    except NotPlain as error:
        message = f"cannot read {shown_path(path)}: {error.strerror}"
        help_ = "name a file of CUDA source text"
        raise PorterError(Diagnostic(codes.UNREADABLE_SOURCE, message, Span(shown_path(path), 0), help=help_)) from None
    except UnicodeDecodeError:
        raise PorterError(
            Diagnostic(codes.UNREADABLE_SOURCE, f"{path} is not UTF-8 text", Span(str(path), 0))
        ) from None
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise PorterError(Diagnostic(codes.UNREADABLE_SOURCE, message, Span(str(path), 0))) from None


def shown_path(path: Path) -> str:
    return str(path).replace("\0", "\\0")


def choose_kernels(unit: ParsedUnit, config: PortConfig) -> tuple[KernelInfo, ...]:
    """The kernels to port: those named with --kernel, else all of the file. Raises PorterError PRT001 or PRT956."""
    everything = {k.name: k for k in (*unit.header_kernels, *unit.kernels)}
    everything |= {k.qualified_name: k for k in (*unit.header_kernels, *unit.kernels)}
    if config.kernel:
        for name in config.kernel:
            named(name, everything, f"kernel in {unit.source.path}", "porter port --analyze")
        asked = set(config.kernel)
        return tuple(k for k in (*unit.kernels, *unit.header_kernels) if asked & {k.name, k.qualified_name})
    if not unit.kernels:
        errors = tuple(d for d in unit.diagnostics if d.severity is Severity.ERROR)[:5]
        help_ = "porter ports functions declared __global__"
        if unit.header_kernels:
            help_ = f"its headers have some: name one with --kernel, such as {unit.header_kernels[0].name}"
        message = f"no kernel in {unit.source.path}"
        raise PorterError(*errors, Diagnostic(codes.NO_KERNEL, message, Span(str(unit.source.path), 0), help=help_))
    return unit.kernels


def file_messages(unit: ParsedUnit) -> tuple[Diagnostic, ...]:
    """What parsing said outside the kernels: warnings, since the kernels themselves are whole."""
    return tuple(replace(d, severity=Severity.WARNING) for d in unit.diagnostics)


# ---------------------------------------------------------------- cases


def find_case(unit: ParsedUnit, info: KernelInfo, config: PortConfig) -> Case:
    """The case of a kernel: given, beside the source, or read from its launcher where that says everything. Writes
    nothing.

    Raises PorterError: the file's own errors, or PRT910 where there is none.
    """
    case = known_case(unit, info, config)
    if case is not None:
        return case
    if config.case:
        raise other_kernels_case(info, config.case)
    draft = drafted_case_path(unit, info, config)
    message, help_ = f"`{info.name}` has no case", f"`porter port {unit.source.path}` drafts one"
    if draft.exists():
        message, help_ = f"{message}; a draft is in {draft}", f"complete {draft}"
    raise PorterError(Diagnostic(codes.NO_CASE, message, info.span, help=help_))


def other_kernels_case(info: KernelInfo, path: Path) -> PorterError:
    other = load_case(path).kernel
    message = f"{path} is the case of `{other}`, not of `{info.name}`"
    return PorterError(Diagnostic(codes.NO_CASE, message, Span(str(path), 1), help=f"port it with --kernel {other}"))


def known_case(unit: ParsedUnit, info: KernelInfo, config: PortConfig) -> Case | None:
    """As find_case, but None where there is none."""
    from porter.frontend.case.draft import case_from_launch

    case = case_if_any(unit, info, config)
    if case is None and not config.case:
        case = case_from_launch(unit, info)
        case = case and with_instances(case, instances_asked(info, config), unit, info)
    return case


def case_if_any(unit: ParsedUnit, info: KernelInfo, config: PortConfig) -> Case | None:
    """The case of a kernel where one is given, lies beside the source, or is in the output folder without anything left
    to complete. Raises PorterError when it is broken."""
    path = config.case or case_path_for(unit.source.path, info.name) or completed_draft(unit, info, config)
    case = load_case(path) if path else None
    if case is None or case.kernel not in (info.name, info.qualified_name):
        return None
    check_case(case, info)
    return with_instances(case, instances_asked(info, config), unit, info)


def completed_draft(unit: ParsedUnit, info: KernelInfo, config: PortConfig) -> Path | None:
    """The case of a kernel in the output folder, where nothing in it is left to be completed."""
    path = drafted_case_path(unit, info, config)
    if not is_plain(path):
        return None
    try:
        text = read_plain_text(path)
    except (OSError, UnicodeDecodeError):
        return path  # reading it as a case says what is wrong
    return None if re.search(r"^[^#]*\bTODO\b", text, re.M) else path


def with_instances(case: Case, instances: tuple[Instance, ...], unit: ParsedUnit, info: KernelInfo) -> Case:
    """The case for other instances than its own; one that it has keeps its `when`. Symbols get what their declarations
    say."""
    from porter.frontend.case.symbols import complete_symbols

    if instances:
        known = {i.args: i for i in case.instances}
        case = replace(case, instances=tuple(known.get(i.args, CaseInstance(i.args)) for i in instances))
    return complete_symbols(case, unit, info, some=bool(instances))


def check_dtypes(case: Case, info: KernelInfo, instances: Sequence[Instance], kernels: Sequence[ir.Kernel]) -> None:
    """Raises PorterError PRT905 where a buffer's dtype cannot be what the kernel's parameter points to.

    Bytes may stand for codes and whole numbers for bits of the same size; floats of another kind never do.
    """
    for instance, kernel in zip(instances, kernels, strict=True):
        values = instance_values(info, instance)
        for p in kernel.params:
            spec = next((b for b in case.buffers if b.name == p.name), None)
            if spec is None or not isinstance(p.type, ir.Pointer) or not isinstance(p.type.elem, ir.Scalar):
                continue
            try:
                given, real = spec.dtype_at(values), p.type.elem
            except ExprError as error:
                case.fail(codes.CASE_DOES_NOT_FIT, str(error), *spec.where, "dtype")
            floats = given in FLOAT_NAMES and real.name in FLOAT_NAMES
            if real != ir.VOID and (
                ir.SCALAR_BYTES[given] != ir.SCALAR_BYTES[real.name] or (floats and given != real.name)
            ):
                message = f"`{p.name}` is a buffer of {given} here, and {info.name}{instance} takes {real.name}"
                case.fail(codes.CASE_DOES_NOT_FIT, message, *spec.where, "dtype")


# ---------------------------------------------------------------- instances


def choose_instances(unit: ParsedUnit, info: KernelInfo, case: Case | None, config: PortConfig) -> tuple[Instance, ...]:
    """Template arguments to port for: --instantiate, else the case, else the file's launches, else a guess by name.

    Raises PorterError PRT008 when nothing fits, after what stops all arguments alike (PRT004).
    """
    from porter.frontend.instances.choice import resolved

    asked = instances_asked(info, config)
    if asked:
        return tuple(resolved(unit, info, i) for i in asked)
    if case is not None and case.instances:
        return tuple(i.instance for i in case.instances)
    if not info.is_template:
        return (Instance(),)
    from porter.frontend.instances.choice import (
        choose_few,
        default_instances,
        instances_from_launches,
        no_default_instance,
        obstacles,
    )

    found = choose_few(instances_from_launches(unit, info)) or default_instances(info, unit)
    if not found:
        raise PorterError(*obstacles(unit, info), no_default_instance(info))
    return tuple(resolved(unit, info, i) for i in found)


def are_guessed(unit: ParsedUnit, info: KernelInfo, case: Case | None, config: PortConfig) -> bool:
    """Whether `choose_instances` guesses the template arguments: nobody named any, and no launch is seen."""
    from porter.frontend.instances.choice import instances_from_launches

    if not info.is_template or instances_asked(info, config) or (case is not None and case.instances):
        return False
    return not instances_from_launches(unit, info)


def instances_asked(info: KernelInfo, config: PortConfig) -> tuple[Instance, ...]:
    """What --instantiate names for this kernel."""
    from porter.frontend.instances.choice import parse_instantiation

    asked = [parse_instantiation(text) for text in config.instantiate]
    return tuple(dict.fromkeys(i for name, i in asked if name in (info.name, info.qualified_name)))


def instances_without_when(case: Case, info: KernelInfo, config: PortConfig) -> list[Diagnostic]:
    """A warning for every --instantiate of a kernel that its case does not know: no `when` limits where it is tried."""
    if not case.path.is_file():
        return []
    known = {i.args for i in load_case(case.path).instances}
    return [
        Diagnostic(
            codes.INSTANCE_NOT_IN_CASE,
            f"{info.name}{instance} is not an instance of {case.path}: it is tried at every point of the case",
            Span(str(case.path), 0),
            Severity.WARNING,
            "add it to the case, with a `when` if it does not take every size",
        )
        for instance in instances_asked(info, config)
        if instance.args not in known
    ]


def unused_instantiations(kernels: tuple[KernelReport, ...], config: PortConfig) -> Iterator[Diagnostic]:
    """A message for every --instantiate that names no kernel of the run."""
    from porter.frontend.instances.choice import parse_instantiation

    names = {k.kernel: k for k in kernels}
    for text in config.instantiate if kernels else ():
        name = parse_instantiation(text)[0].split("::")[-1]
        if name not in names:
            try:
                named(name, names, "kernel here", "porter port --analyze")
            except PorterError as error:
                yield from error.diagnostics
