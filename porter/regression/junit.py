"""JUnit XML: a test suite for each port, a test case for each check."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from porter.model import KernelReport, Report, Severity, Status, Verdict
from porter.regression.findings import ReportedDiagnostic, findings

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report) -> str:
    """The report as one XML document. What went wrong outside of the checks is an error of the suite it is about."""
    root = ElementTree.Element("testsuites", name="porter verify")
    for kernel in report.kernels:
        root.append(_suite(kernel))
    errors = [d for d in report.diagnostics if d.severity is Severity.ERROR]
    if errors:
        suite = ElementTree.SubElement(root, "testsuite", name="porter")
        for d in errors:
            case = ElementTree.SubElement(suite, "testcase", classname="porter", name=clean(d.span.file or d.code))
            _tell(case, "error", d.message, ReportedDiagnostic(d).text, d.code)
        _count(suite)
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(kernel: KernelReport) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=clean(kernel.port_path or kernel.kernel))
    suite.set("time", f"{kernel.seconds.get('total', 0.0):.3f}")
    found = [f for f in findings(Report((kernel,))) if f.check]
    for verdict in kernel.verdicts:
        case = _case(suite, kernel, verdict.check, verdict.seconds or 0.0)
        if verdict.status is Status.SKIP:
            ElementTree.SubElement(case, "skipped", message=clean(verdict.detail))
        elif verdict.status is not Status.PASS:
            tag = "failure" if verdict.status is Status.FAIL else "error"
            _tell(case, tag, verdict.detail, _texts(found, verdict), _code(found, verdict))
    for d in kernel.diagnostics:
        if d.severity is Severity.ERROR:
            _tell(_case(suite, kernel, "porter"), "error", d.message, ReportedDiagnostic(d).text, d.code)
    for number, hole in enumerate(kernel.holes, 1):
        case = _case(suite, kernel, f"hole {number}")
        _tell(case, "failure", f"hole {number} is open: {hole.reason}", f"{hole.span}\n{hole.cuda}", hole.code)
    _count(suite)
    return suite


def _case(suite: ElementTree.Element, kernel: KernelReport, name: str, seconds: float = 0.0) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite,
        "testcase",
        classname=clean(kernel.kernel),
        name=name,
        file=clean(kernel.port_path),
        time=f"{seconds:.3f}",
    )


def _texts(found: Sequence[ReportedDiagnostic], verdict: Verdict) -> str:
    """The findings of a check; of one whose fault another check has told, which one that is."""
    texts = []
    for f in found:
        if f.check == verdict.check:
            span = f.diagnostic.span
            place = f"{span.file}:{span.line}: " if span.line else f"{span.file}: " if span.file else ""
            texts.append(f"{place}{f.diagnostic.code} {f.text}")
    told = next((f.check for f in found if f.diagnostic.severity is Severity.ERROR), "")
    if not any(f.check == verdict.check and f.diagnostic.severity is Severity.ERROR for f in found) and told:
        texts.insert(0, f"{verdict.detail}\nthe fault that {told} shows")
    return "\n\n".join(texts) or verdict.detail


def _code(found: Sequence[ReportedDiagnostic], verdict: Verdict) -> str:
    errors = [f for f in found if f.diagnostic.severity is Severity.ERROR]
    own = [f.diagnostic.code for f in errors if f.check == verdict.check] or [f.diagnostic.code for f in errors]
    return next((code for code in own if code), verdict.check)


def _tell(case: ElementTree.Element, tag: str, message: str, text: str, kind: str) -> None:
    child = ElementTree.SubElement(case, tag, message=clean(message), type=clean(kind))
    child.text = clean(text)


def _count(suite: ElementTree.Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(len(suite.findall(f"testcase/{tag}"))))


def clean(text: str) -> str:
    """Text without the characters that XML cannot have."""
    return _NOT_XML.sub("\ufffd", text)
