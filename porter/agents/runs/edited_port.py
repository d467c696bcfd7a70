"""Runs of the agent that start from a port as it is: edited by a person or an earlier run, not the translator's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from porter import codes
from porter.config import PortConfig
from porter.model import Diagnostic, KernelReport, LineMapEntry, Report, Severity, Verdict
from porter.pipeline.open_ports import moved_map
from porter.pipeline.outputs import Translation, hole_messages
from porter.pipeline.stages import Run, verify
from porter.provenance.hole_markers import open_holes
from porter.provenance.store import current_line_map, read_record
from porter.report.console import Progress
from porter.source import Span
from porter.syntax import module_tree


@dataclass(frozen=True)
class EditedStart:
    """What a run needs to know of the port it starts from: the translator's own text, and the lines' origins."""

    translated: str
    line_map: tuple[LineMapEntry, ...]


def edited_start(made: Translation, target: Path) -> EditedStart | None:
    """The start of a run where the port on disk is this kernel's and not the translator's text; else None.

    Raises PorterError PRT955 for a record that cannot be read.
    """
    try:
        text = target.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    record = read_record(target)
    if record is None or text == made.module.text or record.kernel != (made.info.qualified_name or made.info.name):
        return None
    try:
        module_tree(text)
    except (SyntaxError, ValueError):
        return None
    return EditedStart(made.module.text, moved_map(current_line_map(target), target.parent))


def started_from_edit(made: Translation, start: EditedStart, text: str) -> Translation:
    """The translation with the edited text in place of its own."""
    holes = made.module.holes
    left = holes if open_holes(text) else ()  # all of them while one is open: the marks are their numbers
    return replace(made, module=replace(made.module, text=text, line_map=start.line_map, holes=left))


def with_edited(
    report: Report, config: PortConfig, translation: Callable[[KernelReport, Path], Translation], progress: Progress
) -> Report:
    """The report with the ports that were edited as they are, verified now, instead of the refusal to overwrite them.

    `translation` makes the translation of a kernel whose port is a path. With `force` there is nothing to do.
    """
    return replace(report, kernels=tuple(_as_it_is(k, config, translation, progress) for k in report.kernels))


def _as_it_is(
    kernel: KernelReport,
    config: PortConfig,
    translation: Callable[[KernelReport, Path], Translation],
    progress: Progress,
) -> KernelReport:
    if not kernel.edited_port:
        return kernel
    target = Path(kernel.edited_port)
    run = Run(kernel.kernel, progress, dict(kernel.seconds))
    verdicts: tuple[Verdict, ...] = ()
    with run.guard(f"verifying {target}", Span(str(target), 0)):
        made = translation(kernel, target)
        start = edited_start(made, target)
        if start is None or made.case is None:
            return kernel
        made = started_from_edit(made, start, target.read_text(encoding="utf-8"))
        note = Diagnostic(
            codes.PORT_EDITED, f"the agent starts from {target} as it is", Span(str(target), 0), Severity.NOTE,
            "it was edited since porter wrote it; --force starts from the translator's port instead",
        )  # fmt: skip
        still = [n for n in open_holes(made.module.text) if n <= len(made.module.holes)]
        open_ = tuple(made.module.holes[n - 1] for n in still)
        warnings = hole_messages(made.module, str(target))
        run.diagnostics += [note, *made.module.notes, *(warnings[n - 1] for n in still)]
        if not open_:
            verdicts = verify(made, target, config, run)
        return replace(
            kernel, instances=made.instances, port_path=str(target), holes=open_, verdicts=verdicts,
            diagnostics=tuple(run.diagnostics), seconds=run.seconds,
        )  # fmt: skip
    return replace(kernel, diagnostics=(*kernel.diagnostics, *run.diagnostics))
