"""Workflow commands of GitHub Actions: an annotation at the line of each finding, and the totals."""

from __future__ import annotations

import os
from pathlib import Path

from porter.model import Report, Severity
from porter.regression.findings import ReportedDiagnostic, findings
from porter.report.console import totals

COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def github(report: Report) -> str:
    """One line a finding, and a last one of totals."""
    return "\n".join([*(annotation(f) for f in findings(report)), totals(report)]) + "\n"


def annotation(finding: ReportedDiagnostic) -> str:
    d = finding.diagnostic
    file = d.span.file or (finding.kernel.port_path if finding.kernel else "")
    fields: dict[str, str] = {}
    if file:
        fields["file"] = _from_workspace(file)
    if file and d.span.line:
        fields["line"] = str(d.span.line)
        fields["col"] = str(max(d.span.col, 1))
        if d.span.end_line >= d.span.line:
            fields["endLine"] = str(d.span.end_line)
    who = f"{finding.kernel.kernel} {finding.check}".strip() if finding.kernel else ""
    fields["title"] = f"{d.code} {who}".strip() or "porter"
    joined = ",".join(f"{k}={_property(v)}" for k, v in fields.items())
    return f"::{COMMAND[d.severity]} {joined}::{_data(finding.text)}"


def _from_workspace(file: str) -> str:
    """Annotations name files from the root of the checkout."""
    root = os.environ.get("GITHUB_WORKSPACE")
    path = Path(os.path.relpath(file, root)) if root else Path(os.path.relpath(file))
    return path.as_posix()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
