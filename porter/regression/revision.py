"""The port as of a git revision, as a second oracle: the same bytes through both, its figures as the baseline."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from porter import codes
from porter.files.git import git
from porter.model import Diagnostic, PorterError, Status, Verdict
from porter.model.facts import Worse
from porter.pipeline.drafts import drafted
from porter.pipeline.stages import JudgeOptions, Run, run_checks
from porter.provenance.baseline import BaselineRun, compare, regression_verdict
from porter.provenance.record import PortRecord, record_path
from porter.provenance.store import is_same_file, parse_record
from porter.regression.contract import recorded_flags
from porter.regression.open_port import OpenPort
from porter.report.console import silent
from porter.source import Span


def port_at(port: Path, revision: str) -> tuple[str, str | None, PortRecord | None]:
    """(commit, text of the port there, its record there), None for what it had not. Raises PorterError PRT877."""
    folder = port.resolve().parent
    named = git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if not named.ok:
        why = named.error or f"`{revision}` names no commit"
        raise _unreadable(port, f"{port} cannot be compared with revision `{revision}`: {why}")
    commit = named.line
    shown = git(folder, "show", "--end-of-options", f"{commit}:./{port.name}")
    noted = git(folder, "show", "--end-of-options", f"{commit}:./{record_path(port).name}")
    record: PortRecord | None = None
    if noted.ok:
        with contextlib.suppress(PorterError):  # one that cannot be read says nothing
            record = parse_record(noted.text, record_path(port))
    return commit, shown.text if shown.ok else None, record


def another_original(port: OpenPort, then: PortRecord) -> Iterator[Worse]:
    """Where the record at a revision says that the port is compared with another original, or with less of it."""
    now = port.record
    folder = port.path.parent
    old, new = recorded_flags(then, folder), recorded_flags(now, folder)
    same_source = then.source_sha256 in ("", port.unit.source.sha256)
    same_source = same_source or is_same_file(folder / then.source, folder / now.source)
    instances = ", ".join(str(i) for i in then.instances if i not in now.instances)
    arches = ", ".join(a for a in then.arches if a not in now.arches)
    rows = [
        ("the kernel", then.kernel, now.kernel, then.kernel == now.kernel),
        ("the source", then.source, now.source, same_source),
        ("the flags", old.text(), new.text(), replace(old, arch=()) == replace(new, arch=())),
        ("instances left out", "none", instances, not instances),
        ("architectures left out", "none", arches, not arches),
    ]
    for what, was, has, same in rows:
        if not same:
            yield Worse("revision", what, was or "none", has or "none")


def against_revision(port: OpenPort, achieved: BaselineRun, revision: str, run: Run) -> Verdict:
    """The verdict of `regression` against the port at a revision, on the inputs that the port was just verified with.

    The earlier port is compiled with today's DSL and today's corpus library. Raises PorterError PRT877.
    """
    commit, text, then_record = port_at(port.path, revision)
    name = f"the port at {revision} ({commit[:10]})"
    if text is None:
        return Verdict("regression", Status.SKIP, f"there was no {port.path.name} at {revision} ({commit[:10]})")
    other = list(another_original(port, then_record)) if then_record else []
    if other:
        return regression_verdict(other, name, str(port.path))
    if text == port.text:
        return Verdict("regression", Status.PASS, f"the same text as {name}")
    quiet = Run(run.kernel, silent)
    config = replace(port.config, seed=achieved.seed)
    with drafted(text, port.path.name) as draft:
        earlier = draft.path
        with run.stage("revision"):
            then = run_checks(earlier, port.unit, port.info, port.case, config, quiet)
            direct = run_checks(port.path, port.unit, port.info, port.case, config, quiet, JudgeOptions(earlier))
    old = replace(port, text=text).baseline_run(then, achieved.backend)
    worse = compare(old, achieved)
    notes: list[Diagnostic] = []
    trusted = old.checks.get("numerics") == Status.PASS.value
    numerics = next(v for v in direct if v.check == "numerics")
    if numerics.status is not Status.PASS:
        details = [d.message for d in numerics.diagnostics[:3]] or [numerics.detail]
        message = f"the port does not agree with {name}: {details[0]}"
        if trusted:
            worse.append(Worse("revision", "outputs", "those of the revision", details[0]))
        else:
            notes.append(
                Diagnostic(codes.DIFFERS_FROM_REVISION, f"{message}; that port failed numerics itself", _place(port))
            )
    return regression_verdict(worse, name, str(port.path), notes)


def _place(port: OpenPort) -> Span:
    return Span(str(port.path), 0)


def _unreadable(port: Path, message: str) -> PorterError:
    help_ = "the port must lie in a git repository that has the revision"
    return PorterError(Diagnostic(codes.UNREADABLE_REVISION, message, Span(str(port), 0), help=help_))
