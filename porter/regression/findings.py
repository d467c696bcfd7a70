"""Everything that a report has to say about a place, one after the other: what CI formats print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from porter.model import Diagnostic, KernelReport, Report, Severity, Status, Verdict
from porter.source import Span


@dataclass(frozen=True)
class ReportedDiagnostic:
    """A diagnostic with the kernel and the check that it belongs to; `check` is "" for stages before the checks."""

    diagnostic: Diagnostic
    kernel: KernelReport | None = None
    check: str = ""

    @property
    def text(self) -> str:
        """The message with its notes and the next step."""
        d = self.diagnostic
        lines = [d.message, *d.notes, *([f"help: {d.help}"] if d.help else [])]
        return "\n".join(lines)


def findings(report: Report) -> Iterator[ReportedDiagnostic]:
    """Each finding once. A check that failed without a diagnostic, and a hole, are findings at the port."""
    seen: set[tuple[Diagnostic, str, str]] = set()
    for finding in _all(report):
        key = finding.diagnostic, finding.kernel.port_path if finding.kernel else "", finding.check
        if key not in seen:
            seen.add(key)
            yield finding


def _all(report: Report) -> Iterator[ReportedDiagnostic]:
    for d in report.diagnostics:
        yield ReportedDiagnostic(d)
    for kernel in report.kernels:
        for d in kernel.diagnostics:
            yield ReportedDiagnostic(d, kernel)
        for number, hole in enumerate(kernel.holes, 1):
            message = f"hole {number} is open: {hole.reason or hole.cuda}"
            yield ReportedDiagnostic(Diagnostic(hole.code, message, hole.span), kernel)
        for verdict in kernel.verdicts:
            for d in verdict.diagnostics:
                yield ReportedDiagnostic(d, kernel, verdict.check)
            if is_bad(verdict) and not any(d.severity is Severity.ERROR for d in verdict.diagnostics):
                message = f"{verdict.check} {verdict.status.value}: {verdict.detail}"
                yield ReportedDiagnostic(Diagnostic("", message, Span(kernel.port_path, 0)), kernel, verdict.check)


def is_bad(verdict: Verdict) -> bool:
    return verdict.status in (Status.FAIL, Status.ERROR)
