"""Everything that a report has to say about a place, one after the other: what CI formats print.

One fault of a port shows in several checks, instances and buffers; here it is one finding, at the port's line. A
forbidden access is found with its line; what else numerics, sanitizer and determinism say follows from it. Where they
have no line, it is the one at which original and port first part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from porter import codes
from porter.model import Diagnostic, KernelReport, Report, Severity, Status, Verdict
from porter.source import NO_SPAN, Span

LAUNCHED = ("numerics", "sanitizer", "determinism")
#: what a fault in the port's text makes the checks of launches say, and what tells more of it
FOLLOWS = (
    codes.WRONG_RESULT,
    codes.WRITE_OUTSIDE_ELEMENTS,
    codes.INPUT_CHANGED,
    codes.LESS_ACCURATE,
    codes.PORT_VIOLATION,
    codes.CONTRACTION,
    codes.ORDER_DEPENDENT,
)
TELLS_MORE = (codes.FIRST_DIVERGENCE, codes.SMALLEST_FAILING_LAUNCH)


@dataclass(frozen=True)
class ReportedDiagnostic:
    """A diagnostic with the kernel and the check that it belongs to; `check` is "" for stages before the checks.

    `source` is the place in the CUDA source or the case, where the diagnostic's own is one in the port.
    """

    diagnostic: Diagnostic
    kernel: KernelReport | None = None
    check: str = ""
    source: Span = NO_SPAN

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
        failed = {v.check for v in kernel.verdicts if is_bad(v)}
        yield from _of_launches(kernel)
        for verdict in kernel.verdicts:
            rest = [d for d in verdict.diagnostics if not _is_told(d, verdict, failed)]
            for d in rest:
                yield at_port(ReportedDiagnostic(d, kernel, verdict.check))
            if is_bad(verdict) and not any(d.severity is Severity.ERROR for d in verdict.diagnostics):
                message = f"{verdict.check} {verdict.status.value}: {verdict.detail}"
                yield ReportedDiagnostic(Diagnostic("", message, Span(kernel.port_path, 0)), kernel, verdict.check)


def _is_told(d: Diagnostic, verdict: Verdict, failed: set[str]) -> bool:
    """Whether another finding says it."""
    if verdict.check in LAUNCHED and is_bad(verdict):
        return d.code in (*FOLLOWS, *TELLS_MORE)
    if d.severity is not Severity.ERROR or verdict.check != "regression":
        return False
    return (d.code == codes.CHECK_NO_LONGER_PASSES and d.message.split(" ")[0].rstrip(":") in failed) or (
        d.code == codes.ERRORS_GREW and "numerics" in failed
    )


def _of_launches(kernel: KernelReport) -> Iterator[ReportedDiagnostic]:
    """The faults that launches showed: one for each line of the port that is named, else one."""
    bad = [v for v in kernel.verdicts if v.check in LAUNCHED and is_bad(v)]
    said = [(v.check, d) for v in bad for d in v.diagnostics if d.code in FOLLOWS and d.severity is Severity.ERROR]
    if not said:
        return
    more = [d for v in bad for d in v.diagnostics if d.code in TELLS_MORE]
    faults: dict[object, list[tuple[str, Diagnostic]]] = {}
    for check, d in said:
        if d.code == codes.PORT_VIOLATION:
            faults.setdefault(_port_line(d, kernel) or d.message, []).append((check, d))
    rest = [(check, d) for check, d in said if d.code != codes.PORT_VIOLATION]
    if not faults:
        faults[0], rest = rest, []
    for number, group in enumerate(faults.values()):
        check, first = group[0]
        others = [*group[1:], *(rest if not number else [])]
        lines = [_port_line(d, kernel) for _, d in group] + [_port_line(d, kernel) for d in more]
        line = next((n for n in lines if n), 0)
        notes = (*first.notes, *(f"{c}: {d.message}" for c, d in _few(others)))
        notes += tuple(dict.fromkeys(d.message for d in more)) if not number else ()
        place = Span(kernel.port_path, line) if kernel.port_path else first.span
        yield ReportedDiagnostic(replace(first, span=place, notes=notes), kernel, check, first.span)


def _few(others: Sequence[tuple[str, Diagnostic]]) -> list[tuple[str, Diagnostic]]:
    """One for each check and code."""
    return list({(check, d.code): (check, d) for check, d in reversed(others)}.values())[::-1]


def at_port(finding: ReportedDiagnostic) -> ReportedDiagnostic:
    """The finding at the line of the port that its notes name."""
    line = _port_line(finding.diagnostic, finding.kernel) if finding.kernel else 0
    if not line or finding.kernel is None:
        return finding
    at = Span(finding.kernel.port_path, line)
    return replace(finding, diagnostic=replace(finding.diagnostic, span=at), source=finding.diagnostic.span)


def _port_line(d: Diagnostic, kernel: KernelReport | None) -> int:
    """The line of the port that a diagnostic is about, 0 where it names none."""
    if kernel is None or not kernel.port_path:
        return 0
    if d.span.file == kernel.port_path:
        return d.span.line
    named = (re.fullmatch(rf"port: {re.escape(kernel.port_path)}:(\d+)", n) for n in d.notes)
    return next((int(m[1]) for m in named if m), 0)


def is_bad(verdict: Verdict) -> bool:
    return verdict.status in (Status.FAIL, Status.ERROR)
