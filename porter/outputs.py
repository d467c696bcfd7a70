"""Where results of a run go: names of ports, drafted cases, the record of a port, messages that point into it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from porter import ir
from porter.atomic import write_atomic, writing_failed
from porter.case import Case
from porter.config import PortConfig
from porter.model import Diagnostic, Hole, Instance, KernelInfo, PortedModule, PorterError, Severity, Verdict
from porter.provenance import PortRecord, relative, sha256_text, tool_versions
from porter.source import Span

if TYPE_CHECKING:
    from porter.frontend.parse import ParsedUnit


@dataclass(frozen=True)
class Translation:
    """One kernel, translated: what verification and provenance need."""

    unit: ParsedUnit
    info: KernelInfo
    case: Case | None  # None only where nothing is written (--emit)
    instances: tuple[Instance, ...]
    kernels: tuple[ir.Kernel, ...]
    plan: Any
    module: PortedModule


def check_writable(folder: Path) -> None:
    """Say now, not after minutes of work, that the output folder cannot be used. Raises PorterError PRT953."""
    existing = next((p for p in (folder, *folder.absolute().parents) if p.exists()), Path("/"))
    if not existing.is_dir():
        raise writing_failed(folder, NotADirectoryError(20, os.strerror(20)))
    if not os.access(existing, os.W_OK | os.X_OK):
        raise writing_failed(folder, PermissionError(13, os.strerror(13)))


def port_paths(
    unit: ParsedUnit, kernels: Sequence[KernelInfo], folder: Path, taken: dict[Path, Path]
) -> dict[Span, Path]:
    """The port of each kernel, by its span: `<file>.py` when the file has one kernel, else `<kernel>.py`.

    Overloads of one name get `_2`, `_3`. `taken` (changed here) knows the ports of the run's other files. Raises
    PorterError PRT957 when two files want one name.
    """
    stem = identifier(unit.source.path.stem)
    found: dict[Span, Path] = {}
    seen: dict[str, int] = {}
    for info in (*unit.kernels, *(k for k in kernels if k not in unit.kernels)):
        seen[info.name] = seen.get(info.name, 0) + 1
        number = f"_{seen[info.name]}" if seen[info.name] > 1 else ""
        only = len(unit.kernels) == 1 and info in unit.kernels
        found[info.span] = folder / f"{stem if only else info.name + number}.py"
    for info in kernels:
        path = found[info.span]
        if taken.setdefault(path, unit.source.path) != unit.source.path:
            message = f"{unit.source.path} and {taken[path]} would both be ported to {path}"
            help_ = "port them into different folders with -o"
            raise PorterError(Diagnostic("PRT957", message, info.span, help=help_))
    return found


def identifier(stem: str) -> str:
    """A file stem as a Python module name."""
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in stem)
    return f"_{name}" if name[:1].isdigit() else name


def hole_messages(module: PortedModule, port: str) -> list[Diagnostic]:
    """A message for each hole, with its line in the port."""
    return [
        Diagnostic(
            hole.code,
            hole.reason or f"cannot translate `{hole.cuda}`",
            hole.span,
            Severity.WARNING,
            f"write that part by hand, or see `porter explain {hole.code}`",
            (f"port: {port}:{hole_line(module, hole, number)} (hole {number})",),
        )
        for number, hole in enumerate(module.holes, 1)
    ]


def hole_line(module: PortedModule, hole: Hole, number: int) -> int:
    """The port line that stands for a hole: the one mapped to its span, else the n-th that names its code."""
    for entry in module.line_map:
        if entry.span == hole.span:
            return entry.line
    marked = [n for n, line in enumerate(module.text.splitlines(), 1) if hole.code in line]
    return marked[min(number, len(marked)) - 1] if marked else 1


def make_record(made: Translation, target: Path, verdicts: tuple[Verdict, ...], config: PortConfig) -> PortRecord:
    """The provenance of a translated kernel, spans and paths as seen from the port's folder."""
    folder = target.parent
    return PortRecord(
        kernel=made.info.qualified_name or made.info.name,
        source=relative(made.unit.source.path, folder),
        source_sha256=made.unit.source.sha256,
        case=relative(made.case.path, folder) if made.case and made.case.path.exists() else "",
        case_sha256=sha256_text(made.case.text) if made.case else "",
        line_map=tuple(replace(e, span=moved(e.span, folder)) for e in made.module.line_map),
        instances=made.instances,
        arches=config.arch,
        holes=tuple(replace(h, span=moved(h.span, folder)) for h in made.module.holes),
        patterns=made.module.patterns,
        verdicts=verdicts,
        verified_sha256=sha256_text(made.module.text) if verdicts else "",
        options=options_of(config),
        versions=tool_versions(),
    )


def moved(span: Span, folder: Path) -> Span:
    return replace(span, file=relative(span.file, folder)) if span.file else span


def options_of(config: PortConfig) -> dict[str, Any]:
    """The settings that decide what is emitted, as `.port.json` keeps them."""
    return {
        "std": config.std,
        "define": list(config.define),
        "include": list(config.include),
        "standalone": config.standalone,
        "instantiate": list(config.instantiate),
    }


def write_drafted_case(unit: ParsedUnit, info: KernelInfo, config: PortConfig) -> PorterError:
    """Draft a case into the output folder and return the PRT910 that says what to do next; never overwrites one."""
    from porter.frontend.draft_case import draft_case

    path = config.output / f"{unit.source.path.stem}.{info.name}.case.toml"
    if path.exists():
        message = f"`{info.name}` has no case; a draft is in {path}"
    else:
        text = draft_case(unit, info)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, text)
        except OSError as error:
            return writing_failed(path, error)
        message = f"`{info.name}` has no case; a draft was written to {path}"
    help_ = f"complete it and run `porter port {unit.source.path} --kernel {info.name} --case {path}`"
    return PorterError(Diagnostic("PRT910", message, info.span, help=help_))
