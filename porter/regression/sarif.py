"""SARIF 2.1.0: what code scanning reads. One run, one result for each finding, one rule for each code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from porter.model import Report, Severity
from porter.provenance.record import tool_versions
from porter.regression.findings import ReportedDiagnostic, findings
from porter.report.code_pages import titles
from porter.source import Span

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def sarif(report: Report) -> str:
    """The report as a SARIF log. Paths are relative to the working folder (%SRCROOT%) where they lie in it."""
    found = list(findings(report))
    known = titles()
    ids = sorted({_rule(f) for f in found})
    rules = [_describe(i, known.get(i, "")) for i in ids]
    driver: dict[str, Any] = {"name": "porter", "rules": rules}
    version = tool_versions().get("porter")
    if version:
        driver["version"] = version
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"uri": Path.cwd().as_uri() + "/"}},
        "invocations": [{"executionSuccessful": report.exit_code in (0, 1), "exitCode": report.exit_code}],
        "results": [_result(f, ids.index(_rule(f))) for f in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _rule(finding: ReportedDiagnostic) -> str:
    return finding.diagnostic.code or f"porter/{finding.check or 'run'}"


def _describe(rule: str, title: str) -> dict[str, Any]:
    text = title or f"the check {rule.removeprefix('porter/')} did not pass"
    return {
        "id": rule,
        "shortDescription": {"text": text},
        "help": {"text": f"`porter explain {rule}` says what to do."},
    }


def _result(finding: ReportedDiagnostic, index: int) -> dict[str, Any]:
    d = finding.diagnostic
    result: dict[str, Any] = {
        "ruleId": _rule(finding),
        "ruleIndex": index,
        "level": LEVEL[d.severity],
        "message": {"text": finding.text},
    }
    span = d.span if d.span.file else Span(finding.kernel.port_path if finding.kernel else "", 0)
    if span.file:
        result["locations"] = [{"physicalLocation": _place(span)}]
    if finding.kernel:
        result["properties"] = {"kernel": finding.kernel.kernel, "check": finding.check}
        if finding.kernel.port_path and span.file != finding.kernel.port_path:
            port = {"physicalLocation": _place(Span(finding.kernel.port_path, 0)), "message": {"text": "the port"}}
            result["relatedLocations"] = [port]
        elif finding.source.file and finding.source.file != span.file:
            text = "the case" if finding.source.file.endswith(".toml") else "the original"
            result["relatedLocations"] = [{"physicalLocation": _place(finding.source), "message": {"text": text}}]
    return result


def _place(span: Span) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _artifact(span.file)}
    if span.line > 0:
        region = {"startLine": span.line, "startColumn": max(span.col, 1)}
        if span.end_line > span.line or (span.end_line == span.line and span.end_col > span.col):
            region |= {"endLine": span.end_line, "endColumn": max(span.end_col, 1)}
        place["region"] = region
    return place


def _artifact(file: str) -> dict[str, str]:
    relative = os.path.relpath(file)
    if relative.startswith(".."):
        return {"uri": Path(file).absolute().as_uri()}
    return {"uri": quote(Path(relative).as_posix()), "uriBaseId": "%SRCROOT%"}
