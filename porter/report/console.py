"""What a person or a program reads of a run: progress on stderr, the summary or JSON on stdout. Decides nothing."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from porter import codes
from porter.model import Diagnostic, Hole, Instance, KernelReport, Report, Severity, Status, Verdict
from porter.provenance.json import (
    diagnostic_from_json,
    diagnostic_to_json,
    hole_from_json,
    hole_to_json,
    instances_to_json,
    verdict_from_json,
    verdict_to_json,
)
from porter.source import Source
from porter.wording import plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

JSON_SCHEMA = 1
FEW = 2  # of the faults that no kernel needs
STATUS_STYLE = {Status.PASS: "green", Status.FAIL: "bold red", Status.SKIP: "yellow", Status.ERROR: "bold red"}


@dataclass(frozen=True)
class StageEvent:
    """A stage of one kernel changed: `state` is running, done or error, of a check passed, failed, error or skipped."""

    kernel: str
    stage: str
    state: str
    note: str = ""
    seconds: float = 0.0


class Progress(Protocol):
    """Where the pipeline says what it is doing."""

    def __call__(self, event: StageEvent) -> None: ...


def silent(event: StageEvent) -> None:
    """Progress nobody watches."""


def console(stream: TextIO, color: str = "auto") -> Console:
    """A rich console for a stream. `color`: auto, always or never; auto honours NO_COLOR and pipes."""
    from porter.report.terminal import styled

    wide = None if stream.isatty() else 200  # a pipe has no width to wrap at
    if color == "always":
        return styled(stream, force_terminal=True, color_system="standard", highlight=False, width=wide, soft_wrap=True)
    if color == "never":
        return styled(stream, color_system=None, highlight=False, width=wide, soft_wrap=True)
    return styled(stream, highlight=False, width=wide, soft_wrap=True)


# ---------------------------------------------------------------- the summary


def print_diagnostics(diagnostics: tuple[Diagnostic, ...], out: Console) -> None:
    """Each message once, an empty line between two. Of the faults that no kernel needs the first two, and how many more
    there are: host code of a large project can have hundreds."""
    from porter.report.render import render

    once = list(dict.fromkeys(diagnostics))
    needless = [d for d in once if d.code == codes.PARSE_ERROR and d.severity is Severity.WARNING]
    untold = set(needless[FEW:])
    for d in once:
        if d not in untold:
            out.print(render(d))
            out.print()
    if untold:
        more = f"{plural(len(untold), 'more such error')} in code that no kernel needs; --output-format json lists all"
        out.print(render(Diagnostic(codes.PARSE_ERROR, more, severity=Severity.WARNING)))
        out.print()


def print_report(report: Report, out: Console) -> None:
    """The summary of a run, kernel by kernel, and one line of totals."""
    for kernel in report.kernels:
        _print_kernel(kernel, out)
    if report.kernels:
        out.print(totals(report))


def print_run(report: Report, output_format: str, color: str) -> None:
    """What a command says at its end: JSON on stdout, or the summary on stdout and the messages on stderr."""
    if output_format == "json":
        print_json(report_to_json(report))
        return
    print_report(report, console(sys.stdout, color))
    print_diagnostics(worth_saying(report), console(sys.stderr, color))


def messages(report: Report) -> tuple[Diagnostic, ...]:
    """All messages of a run: of the files, then of each kernel's stages and checks."""
    found = list(report.diagnostics)
    for kernel in report.kernels:
        found += [*kernel.diagnostics, *(d for v in kernel.verdicts for d in v.diagnostics)]
    return tuple(found)


def worth_saying(report: Report) -> tuple[Diagnostic, ...]:
    """The messages of a run for people: where every kernel is verified, nothing of code that no kernel needs."""
    found = messages(report)
    if not report.kernels or not all(is_verified(k) for k in report.kernels):
        return found
    return tuple(d for d in found if d.code != codes.PARSE_ERROR or d.severity is Severity.ERROR)


def _print_kernel(kernel: KernelReport, out: Console) -> None:
    from rich.text import Text

    head = Text(kernel.kernel, "bold")
    head.append(f"  {kernel.source.path}", "dim")
    if kernel.port_path:
        head.append(" -> ").append(kernel.port_path, "cyan")
    out.print(head)
    if kernel.instances and any(i.args for i in kernel.instances):
        guessed = "  (guessed: no launch names them)" if kernel.guessed else ""
        out.print(Text("  instances   " + "  ".join(str(i) for i in kernel.instances) + guessed))
    for verdict in kernel.verdicts:
        out.print(verdict_line(verdict))
    if agrees(kernel):
        out.print(Text(f"  agrees      with its original; the case was derived from {kernel.derived}", "yellow"))
    elif kernel.unverified:
        out.print(Text(f"  unverified  {kernel.unverified}", "yellow"))
    if kernel.holes:
        out.print(Text(f"  {plural(len(kernel.holes), 'hole')}: {holes_by_code(kernel.holes)}", "red"))
    if kernel.unchanged:
        out.print(Text("  unchanged   since it was ported and verified: nothing was done again", "dim"))
    if kernel.seconds:
        out.print(Text("  time        " + times(kernel.seconds), "dim"))
    out.print()


def verdict_line(verdict: Verdict) -> Text:
    from rich.text import Text

    line = Text(f"  {verdict.check:<12}").append(f"{verdict.status.value:<5}", STATUS_STYLE[verdict.status])
    return line.append(f" {verdict.detail}") if verdict.detail else line


def holes_by_code(holes: tuple[Hole, ...]) -> str:
    counts: dict[str, int] = {}
    for hole in holes:
        counts[hole.code] = counts.get(hole.code, 0) + 1
    return ", ".join(f"{code} x{n}" if n > 1 else code for code, n in sorted(counts.items()))


def times(seconds: dict[str, float]) -> str:
    """`parse 0.21 s  plan 0.01 s  ...  total 3.2 s`"""
    rows = [f"{stage} {value:.2f} s" for stage, value in seconds.items() if stage != "total"]
    return "  ".join([*rows, f"total {seconds.get('total', sum(seconds.values())):.2f} s"])


def totals(report: Report) -> str:
    """One line: how many kernels, how many verified, holes left, checks failed."""
    n = len(report.kernels)
    ported = sum(bool(k.port_path) for k in report.kernels)
    verified = sum(is_verified(k) for k in report.kernels)
    holes = sum(len(k.holes) for k in report.kernels)
    failed = sum(v.status in (Status.FAIL, Status.ERROR) for k in report.kernels for v in k.verdicts)
    parts = [plural(n, "kernel"), f"{ported} ported", f"{verified} verified"]
    agree = sum(agrees(k) for k in report.kernels)
    if agree:
        parts.append(f"{agree} {'agrees' if agree == 1 else 'agree'}")
    parts.append(plural(holes, "hole"))
    if failed:
        parts.append(f"{plural(failed, 'check')} failed")
    return ", ".join(parts)


def is_verified(kernel: KernelReport) -> bool:
    """True when numerics ran and passed, no check failed and nothing is left open."""
    return not kernel.derived and _passes(kernel)


def agrees(kernel: KernelReport) -> bool:
    """True when it would be verified if somebody had confirmed its case."""
    return bool(kernel.derived) and _passes(kernel)


def _passes(kernel: KernelReport) -> bool:
    passed = any(v.check == "numerics" and v.status is Status.PASS for v in kernel.verdicts)
    return (
        passed
        and kernel.passed
        and not kernel.unverified
        and not any(d.severity is Severity.ERROR for d in kernel.diagnostics)
    )


def state(kernel: KernelReport) -> str:
    """One word for a kernel after a run: verified, agrees, failed, open (holes are left), unverified, or not-ported."""
    if is_verified(kernel):
        return "verified"
    if agrees(kernel):
        return "agrees"
    if not kernel.port_path:
        return "not-ported"
    if kernel.holes:
        return "open"
    return "failed" if kernel.verdicts else "unverified"


# ---------------------------------------------------------------- JSON


def report_to_json(report: Report) -> dict[str, Any]:
    """The `--output-format json` object (docs/cli.md describes it)."""
    return {
        "schema": JSON_SCHEMA,
        "exit_code": report.exit_code,
        "kernels": [kernel_to_json(k) for k in report.kernels],
        "diagnostics": [diagnostic_to_json(d) for d in report.diagnostics],
    }


def kernel_to_json(kernel: KernelReport) -> dict[str, Any]:
    return {
        "kernel": kernel.kernel,
        "source": str(kernel.source.path),
        "port": kernel.port_path,
        "ok": kernel.ok,
        "verified": is_verified(kernel),
        "state": state(kernel),
        "case_derived_from": kernel.derived,
        "unchanged": kernel.unchanged,
        "instances": instances_to_json(kernel.instances),
        "instances_guessed": kernel.guessed,
        "holes": [hole_to_json(h) for h in kernel.holes],
        "verdicts": [verdict_to_json(v) for v in kernel.verdicts],
        "diagnostics": [diagnostic_to_json(d) for d in kernel.diagnostics],
        "seconds": {k: round(v, 4) for k, v in kernel.seconds.items()},
        **({"edited_port": kernel.edited_port} if kernel.edited_port else {}),
    }


def kernel_from_json(value: dict[str, Any]) -> KernelReport:
    """The inverse of kernel_to_json."""
    return KernelReport(
        value["kernel"],
        Source.read(value["source"]),
        tuple(Instance(tuple(args)) for args in value["instances"]),
        value["port"],
        tuple(hole_from_json(h) for h in value["holes"]),
        tuple(verdict_from_json(v) for v in value["verdicts"]),
        tuple(diagnostic_from_json(d) for d in value["diagnostics"]),
        dict(value["seconds"]),
        value.get("case_derived_from", ""),
        edited_port=value.get("edited_port", ""),
        guessed=value.get("instances_guessed", False),
    )


def print_json(value: dict[str, Any], stream: TextIO | None = None) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False), file=stream or sys.stdout)
