"""Is the case still the one that the port was verified against? Who may edit the case decides what is right."""

from __future__ import annotations

import os
from pathlib import Path

from porter.case import Case
from porter.model import Diagnostic, Status, Verdict
from porter.provenance import PortRecord, sha256_text
from porter.source import Span


def contract_verdicts(record: PortRecord, port: Path, named: bool) -> tuple[Verdict, ...]:
    """FAIL (PRT959) when the recorded case has another text than the recorded hash says, or is gone; else nothing.

    `named`: a person gave the case for this run, so a change of it is meant.
    """
    if named or not record.case or not record.case_sha256:
        return ()
    case = recorded_case(record, port)
    if case.is_file() and sha256_text(case.read_text(encoding="utf-8")) == record.case_sha256:
        return ()
    message = f"the case {case} is not the one that {port} was verified against"
    help_ = f"if the change is meant, say so: `porter verify {port} --case {case}`"
    return (
        Verdict("contract", Status.FAIL, message, (Diagnostic("PRT959", message, Span(str(case), 0), help=help_),)),
    )


def recorded_case(record: PortRecord, port: Path) -> Path:
    """The case file that a port's record names."""
    return Path(os.path.normpath(port.parent / record.case))


def is_recorded_case(record: PortRecord, port: Path, case: Case) -> bool:
    """Whether a case is read from the file that the record names."""
    return bool(record.case) and recorded_case(record, port).resolve() == Path(case.path).resolve()
