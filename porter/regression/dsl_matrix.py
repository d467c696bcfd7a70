"""Ports against several versions of CuTeDSL: which compile and still compute the same, and which version changed it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from porter.config import PortConfig
from porter.model import Diagnostic, KernelReport, PorterError, Severity, Status, facts_of
from porter.model.facts import ResourcesFacts
from porter.pipeline.open_ports import find_ports
from porter.regression.all_ports import verify_ports
from porter.regression.settings import Settings
from porter.report.console import Progress, silent
from porter.verify.compile.dsl_environments import environment, order, published
from porter.wording import plural

JSON_SCHEMA = 1
# resources differ with any compiler
JUDGED = ("contract", "honesty", "names", "compile", "numerics", "sanitizer", "determinism")


@dataclass(frozen=True)
class Cell:
    """One port under one version. `check` is the first that is not PASS, "" when all are; `error` says what it said."""

    version: str
    ok: bool
    check: str = ""
    error: str = ""
    registers: int = 0  # of the instance that has most


@dataclass(frozen=True)
class Change:
    """Two versions, one published after the other as far as was looked at, between which the answer about a port
    changed."""

    port: str
    before: Cell
    after: Cell


@dataclass
class Matrix:
    versions: list[str]
    rows: dict[str, dict[str, Cell]] = field(default_factory=dict)  # by port
    changes: list[Change] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 every port is good under every version asked for; 1 one is not; 2 a version could not be had."""
        if any(d.severity is Severity.ERROR for d in self.diagnostics):
            return 2
        return int(not all(row[v].ok for row in self.rows.values() for v in self.versions if v in row))


Verify = Callable[[Sequence[Path], str], dict[str, Cell]]


def dsl_matrix(
    paths: Sequence[Path],
    versions: Sequence[str],
    config: PortConfig,
    settings: Settings | None = None,
    progress: Progress = silent,
    bisect: bool = False,
) -> Matrix:
    """Verify ports under each version; with `bisect`, find the published version at which an answer changed.

    Versions are taken in their order. Raises PorterError when there is no port, PRT880 when there is no version at all.
    """
    settings = replace(settings or Settings(), against="original", update=False, record=False)
    ports = find_ports(paths)
    found = Matrix(sorted(dict.fromkeys(versions), key=order))

    def verify(some: Sequence[Path], version: str) -> dict[str, Cell]:
        environment(version)  # here, so that no port's time limit has to bear it
        report = verify_ports(some, replace(config, dsl=version), settings, progress)
        found.diagnostics += [d for d in report.diagnostics if d not in found.diagnostics]
        return {k.port_path: cell_of(k, version) for k in report.kernels}

    made = []
    for version in found.versions:
        try:
            for port, cell in verify(ports, version).items():
                found.rows.setdefault(port, {})[version] = cell
            made.append(version)
        except PorterError as error:
            found.diagnostics += error.diagnostics
    found.versions = made
    if not made:
        raise PorterError(*found.diagnostics)
    if bisect:
        between = published()
        found.changes = find_changes(found.rows, made, between, verify)
    return found


def find_changes(
    rows: dict[str, dict[str, Cell]], versions: Sequence[str], known: Sequence[str], verify: Verify
) -> list[Change]:
    """Halve the published versions between two neighbours that disagree, all ports at once, until none is left between.

    Between two neighbours the answer is taken to change once.
    """
    spans: list[tuple[str, Cell, Cell]] = []
    for port, row in rows.items():
        cells = [row[v] for v in versions if v in row]
        spans += [(port, a, b) for a, b in pairwise(cells) if a.ok != b.ok]
    changes = []
    while spans:
        wanted: dict[str, list[tuple[str, Cell, Cell]]] = {}
        for span in spans:
            inside = [v for v in known if order(span[1].version) < order(v) < order(span[2].version)]
            if inside:
                wanted.setdefault(inside[len(inside) // 2], []).append(span)
            else:
                changes.append(Change(*span))
        spans = []
        for version, group in wanted.items():
            try:
                answers = verify([Path(port) for port, _, _ in group], version)
            except PorterError as error:  # of a version that cannot be installed here nothing can be said
                known = [v for v in known if v != version]
                if not known:
                    raise error
                spans += group
                continue
            for port, low, high in group:
                middle = answers.get(port, Cell(version, False, "compile", "it could not be verified"))
                spans.append((port, middle, high) if middle.ok == low.ok else (port, low, middle))
    return sorted(changes, key=lambda c: (c.port, order(c.after.version)))


def cell_of(kernel: KernelReport, version: str) -> Cell:
    """What a report says about one version."""
    verdicts = {v.check: v for v in kernel.verdicts}
    resources = facts_of(kernel.verdicts, ResourcesFacts) or ResourcesFacts()
    registers = max((used.port.get("registers", 0) for used in resources.instances.values()), default=0)
    for check in JUDGED:
        verdict = verdicts.get(check)
        if verdict is None or verdict.status is not Status.PASS:
            error = verdict.detail if verdict else _first_error(kernel)
            return Cell(version, False, check, error.splitlines()[0] if error else "", registers)
    return Cell(version, True, registers=registers)


def _first_error(kernel: KernelReport) -> str:
    errors = [d for d in kernel.diagnostics if d.severity is Severity.ERROR]
    errors += [d for v in kernel.verdicts for d in v.diagnostics if d.severity is Severity.ERROR]
    return errors[0].message if errors else "it was not run"


# ---------------------------------------------------------------- what is printed


def matrix_to_json(found: Matrix) -> dict[str, Any]:
    """The object of `--dsl ... --output-format json`; docs/verify.md describes it."""
    from porter.provenance.json import diagnostic_to_json

    def cell(c: Cell) -> dict[str, Any]:
        return {"version": c.version, "ok": c.ok, "check": c.check, "error": c.error, "registers": c.registers}

    return {
        "schema": JSON_SCHEMA,
        "exit_code": found.exit_code,
        "versions": found.versions,
        "ports": [
            {"port": port, "cells": [cell(row[v]) for v in found.versions if v in row]}
            for port, row in sorted(found.rows.items())
        ],
        "changes": [{"port": c.port, "before": cell(c.before), "after": cell(c.after)} for c in found.changes],
        "diagnostics": [diagnostic_to_json(d) for d in found.diagnostics],
    }


def matrix_text(found: Matrix) -> str:
    """A table, one row a port, one column a version, then what changed where, and every error once."""
    names = {port: Path(port).stem for port in found.rows}
    width = max([4, *(len(n) for n in names.values())])
    lines = ["port".ljust(width) + "".join(f"  {v:>14}" for v in found.versions)]
    for port, row in sorted(found.rows.items()):
        cells = [row.get(v) for v in found.versions]
        shown = ["-" if c is None else "PASS" if c.ok else f"{c.check} FAIL" for c in cells]
        lines.append(names[port].ljust(width) + "".join(f"  {s:>14}" for s in shown))
    for change in found.changes:
        word = "breaks with" if change.before.ok else "works from"
        lines.append(
            f"{names.get(change.port, change.port)} {word} {change.after.version}, after {change.before.version}"
        )
    errors = {(c.check, c.error): c for row in found.rows.values() for c in row.values() if not c.ok}
    lines += [f"{c.version} {c.check}: {c.error}" for c in errors.values()]
    good = sum(all(c.ok for c in row.values()) for row in found.rows.values())
    lines.append(f"{plural(len(found.rows), 'port')}, {good} passing under {', '.join(found.versions)}")
    return "\n".join(lines)
