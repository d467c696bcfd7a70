"""Where results of a run go: names of ports, drafted cases, the record of a port, messages that point into it."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from porter import codes, ir
from porter.case.reader import Case
from porter.config import PortConfig
from porter.emit.spelling import module as module_name
from porter.files.atomic import writing_failed
from porter.model import (
    Diagnostic,
    Hole,
    Instance,
    KernelInfo,
    PortedModule,
    PorterError,
    Severity,
    Verdict,
    facts_of,
    patterns_named,
)
from porter.model.facts import NumericsFacts
from porter.patterns.idioms.catalogue import assumptions_of
from porter.provenance.baseline import BaselineRun, baseline_run, is_good, with_run
from porter.provenance.hole_markers import open_holes
from porter.provenance.record import PortRecord, reference_sha256, relative, sha256_text, tool_versions
from porter.source import Span, lines_of

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit


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
    style: str = "pointer"  # one of config.STYLES


def each_once(paths: Sequence[Path]) -> list[Path]:
    """The files in their order, one that is named twice (by a link, by a way round) once."""
    found: dict[str, Path] = {}
    for path in paths:
        found.setdefault(os.path.realpath(path), path)
    return list(found.values())


def check_writable(folder: Path) -> None:
    """Say now, not after minutes of work, that the output folder cannot be used. Raises PorterError PRT953."""
    existing = next((p for p in (folder, *folder.absolute().parents) if p.exists()), Path("/"))
    if not existing.is_dir():
        raise writing_failed(folder, NotADirectoryError(20, os.strerror(20)))
    if not os.access(existing, os.W_OK | os.X_OK):
        raise writing_failed(folder, PermissionError(13, os.strerror(13)))


Conflict = tuple[Path, Path]  # a port, and the source that has it already
Claim = Callable[[Sequence[Path], Path], Conflict | None]


def claim_in(taken: dict[Path, Path]) -> Claim:
    """Claims of ports for sources, kept in `taken`. A claim ends at the first port that another source has."""

    def claim(ports: Sequence[Path], source: Path) -> Conflict | None:
        for path in ports:
            owner = taken.setdefault(path, source)
            if owner != source:
                return path, owner
        return None

    return claim


def port_paths(unit: ParsedUnit, kernels: Sequence[KernelInfo], folder: Path, claim: Claim) -> dict[Span, Path]:
    """The port of each kernel, by its span: `<file>.py` when the file has one kernel, else `<kernel>.py`.

    Overloads of one name get `_2`, `_3`. `claim` knows the ports of the run's other files. Raises PorterError PRT957
    when two files want one name.
    """
    stem = module_name(unit.source.path.stem)
    found: dict[Span, Path] = {}
    seen: dict[str, int] = {}
    for info in (*unit.kernels, *(k for k in kernels if k not in unit.kernels)):
        seen[info.name] = seen.get(info.name, 0) + 1
        number = f"_{seen[info.name]}" if seen[info.name] > 1 else ""
        only = len(unit.kernels) == 1 and info in unit.kernels
        found[info.span] = folder / f"{stem if only else module_name(info.name) + number}.py"
    conflict = claim([found[info.span] for info in kernels], unit.source.path)
    if conflict:
        path, other = conflict
        span = next(info.span for info in kernels if found[info.span] == path)
        message = f"{unit.source.path} and {other} would both be ported to {path}"
        help_ = "port them into different folders with -o"
        raise PorterError(Diagnostic(codes.OUTPUT_OF_ANOTHER_ORIGINAL, message, span, help=help_))
    return found


def hole_messages(module: PortedModule, port: str) -> list[Diagnostic]:
    """A message for each hole, with its line in the port."""
    lines = [hole_line(module, hole, number) for number, hole in enumerate(module.holes, 1)]
    return [
        Diagnostic(
            hole.code,
            hole.reason or f"cannot translate `{hole.cuda}`",
            hole.span,
            Severity.WARNING,
            f"write that part by hand, or see `porter explain {hole.code}`",
            (f"port: {port}:{line} (hole {number})",),
            port_line=line,
            hole=number,
        )
        for number, (hole, line) in enumerate(zip(module.holes, lines, strict=True), 1)
    ]


def hole_line(module: PortedModule, hole: Hole, number: int) -> int:
    """The port line that stands for a hole: its marker, else the line mapped to its span, else 1."""
    for line, text in enumerate(lines_of(module.text), 1):
        if number in open_holes(text):
            return line
    return next((e.line for e in module.line_map if e.span == hole.span), 1)


def make_record(made: Translation, target: Path, verdicts: tuple[Verdict, ...], config: PortConfig) -> PortRecord:
    """The provenance of a translated kernel, spans and paths as seen from the port's folder."""
    from porter.frontend.parse.project_headers import project_headers

    folder = target.parent
    patterns = patterns_named(made.module.line_map)  # an agent's port may have lost some of its module's
    return PortRecord(
        kernel=made.info.qualified_name or made.info.name,
        source=relative(made.unit.source.path, folder),
        source_sha256=made.unit.source.sha256,
        source_text=made.unit.source.text,
        headers={relative(name, folder): sha256 for name, sha256 in project_headers(made.unit).items()},
        case=relative(made.case.path, folder) if made.case and made.case.path.exists() else "",
        case_sha256=sha256_text(made.case.text) if made.case else "",
        reference_sha256=reference_sha256(made.case) if made.case else None,
        line_map=tuple(replace(e, span=moved(e.span, folder)) for e in made.module.line_map),
        instances=made.instances,
        arches=config.arch,
        holes=tuple(replace(h, span=moved(h.span, folder)) for h in made.module.holes),
        patterns=patterns,
        symbols={s.name: f"{s.kind} {s.declared}" for s in made.plan.symbols},
        assumptions=assumptions_of(patterns),
        verdicts=verdicts,
        verified_sha256=sha256_text(made.module.text) if verdicts else "",
        options=options_of(replace(config, style=made.style), folder),
        versions=tool_versions(),
        baseline=first_baseline(made, verdicts, config),
    )


def first_baseline(made: Translation, verdicts: tuple[Verdict, ...], config: PortConfig) -> dict[str, Any]:
    """The baseline of a port that has none yet; empty where something failed or was not verified."""
    if not is_good(verdicts) or made.module.holes:
        return {}
    numerics = facts_of(verdicts, NumericsFacts)
    run = BaselineRun(
        backend=(numerics.backend if numerics is not None else None) or "emulator",
        date=now(),
        port_sha256=sha256_text(made.module.text),
        source_sha256=made.unit.source.sha256,
        case_sha256=sha256_text(made.case.text) if made.case else "",
        thorough=config.thorough,
        arches=config.arch,
        versions=tool_versions(),
    )
    return with_run({}, baseline_run(verdicts, run))


def now() -> str:
    """The time as records spell it: ISO 8601, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moved(span: Span, folder: Path) -> Span:
    return replace(span, file=relative(span.file, folder)) if span.file else span


def options_of(config: PortConfig, folder: Path) -> dict[str, Any]:
    """The settings that decide what is emitted, as `.port.json` in `folder` keeps them."""
    return {
        "std": config.std,
        "define": list(config.define),
        "include": [relative(i, folder) for i in config.include],
        **({"math": list(config.math)} if config.math else {}),
        **({"pre_include": [relative(i, folder) for i in config.pre_include]} if config.pre_include else {}),
        "standalone": config.standalone,
        **({"style": config.style} if config.style != "pointer" else {}),
        "instantiate": list(config.instantiate),
    }


def drafted_case_path(unit: ParsedUnit, info: KernelInfo, config: PortConfig) -> Path:
    """Where the case of a kernel that has none is written; kernels of one name have files of their own, as ports do."""
    namesakes = [k.span for k in unit.kernels if k.name == info.name]
    at = namesakes.index(info.span) + 1 if info.span in namesakes else 1
    number = f"_{at}" if at > 1 else ""
    return config.output / f"{unit.source.path.stem}.{info.name}{number}.case.toml"
