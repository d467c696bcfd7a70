"""From what the launches showed to verdicts: one line for a person, diagnostics, and the numbers behind them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from porter import codes
from porter.case.reader import Case
from porter.model import Diagnostic, Instance, Severity, Status, Verdict
from porter.model.facts import DeterminismFacts, NumericsFacts, OutputErrors, SanitizerFacts
from porter.source import Span
from porter.verify.backends.interface import Violation
from porter.verify.execute import TrialResult, is_endless
from porter.verify.numerics.comparison import Finding, Ledger
from porter.verify.numerics.tolerance import derive, is_loosened
from porter.verify.original_faults import at_fault, faulty_kinds, own_violations
from porter.verify.repeat import Repeated
from porter.verify.violation_help import ORIGINAL_DOES, PORT_DOES
from porter.wording import plural

OTHER_ORDER = " under another order of blocks and warps"
OPEN_ORDER = 'say in the case what is open: compare = "sum" for sums of floats, "set-per-segment" for places, or "none"'
MOST = 8  # diagnostics a check prints; the rest is counted
_HELP = {
    codes.WRONG_RESULT: "run again with --seed {seed} to get the same launch",
    codes.WRITE_OUTSIDE_ELEMENTS: "look at the guard of the last elements and at row strides",
    codes.INPUT_CHANGED: "an input the kernel changes is `inout` in the case",
    codes.LESS_ACCURATE: "a rounding or an accumulator has less precision than in the original",
    codes.ORDER_DEPENDENT: OPEN_ORDER,
    codes.REFERENCE_DISAGREES: "the case's reference, its inputs, or the emulator: porter cannot say which is wrong",
}


@dataclass
class InstanceRun:
    """Everything about one instance: its launches, a ledger for each output."""

    instance: Instance
    dtypes: dict[str, str]
    results: list[TrialResult] = field(default_factory=list)
    planned: int = 0
    repeats: list[Repeated] = field(default_factory=list)

    def ledgers(self) -> dict[str, Ledger]:
        found: dict[str, Ledger] = {}
        for result in self.results:
            for name, comparison in result.comparisons.items():
                ledger = found.setdefault(name, Ledger(name, self.dtypes[name]))
                ledger.add(comparison, result.tolerances[name], str(result.trial))
        return found


def numerics_verdict(
    case: Case, runs: Sequence[InstanceRun], seed: int, scenarios: Iterable[str], backend: str | None = None
) -> Verdict:
    """PASS when every buffer of every launch is as it must be; ERROR when that could not be found out."""
    diagnostics: list[Diagnostic] = []
    undecided: list[Diagnostic] = []
    buffers: dict[str, dict[str, OutputErrors]] = {}
    answers: list[str] = []
    launches = 0
    endless = any(is_endless(side) for run in runs for r in run.results for side in (r.original, r.port))
    for run in runs:
        label = str(run.instance)
        rows: dict[str, OutputErrors] = {}
        launches += sum(1 for r in run.results if r.comparisons)
        all_findings = [(r, f) for r in run.results for f in (*r.findings, *r.contraction)]
        found = [replace(f, launch=f.launch or str(r.trial)) for r, f in all_findings]
        for name, ledger in run.ledgers().items():
            verdict = ledger.close()
            answers.append(verdict)
            found += ledger.findings
            was, now = ledger.rms
            why = ledger.tolerance.why if ledger.tolerance else ""
            rows[name] = OutputErrors(
                verdict, ledger.elements, ledger.different, ledger.max_ulp, tuple(ledger.ulps), ledger.excused,
                round(was, 4), round(now, 4), why,
            )  # fmt: skip
        buffers[label] = rows
        for f in _first_of_each(found):
            (diagnostics if f.is_port else undecided).append(_diagnostic(case, f, label, seed))
        errors = [r for r in run.results if r.error]
        for r in errors[:1]:
            message = about(label, f"{r.error} (at {r.trial}; {len(errors)} of {plural(len(run.results), 'launch')})")
            (diagnostics if r.error_in_port else undecided).append(
                Diagnostic(codes.KERNEL_NOT_RUN, message, _case_span(case))
            )
        if endless:
            continue
        if run.planned > len(run.results):
            message = f"{len(run.results)} of {plural(run.planned, 'launch')} finished before time ran out"
            message = about(label, message)
            undecided.append(
                Diagnostic(codes.LAUNCHES_NOT_RUN, message, help="allow more time, or fewer and smaller sizes")
            )
        if not run.results or not any(r.comparisons for r in run.results):
            undecided.append(
                Diagnostic(codes.LAUNCHES_NOT_RUN, about(label, "no launch wrote anything that could be compared"))
            )
    notes = loosened(case)
    inputs = zlib.crc32(" ".join(f"{r.trial} {r.inputs:08x}" for run in runs for r in run.results).encode())
    facts = NumericsFacts(seed, launches, tuple(scenarios), buffers, f"{inputs:08x}", backend=backend)
    if diagnostics:
        detail = f"{plural(len(diagnostics), 'difference')} ({_worst(answers)}); seed {seed}"
        return Verdict("numerics", Status.FAIL, detail, (*_most(diagnostics), *notes), facts)
    if endless and not undecided:
        return Verdict("numerics", Status.SKIP, "a launch did not end: see sanitizer", tuple(notes), facts)
    if undecided:
        return Verdict("numerics", Status.ERROR, undecided[0].message, (*_most(undecided), *notes), facts)
    detail = f"{_worst(answers)} in {plural(launches, 'launch')} of {plural(len(runs), 'instance')}; seed {seed}"
    return Verdict("numerics", Status.PASS, detail, tuple(notes), facts)


def loosened(case: Case) -> list[Diagnostic]:
    """A note for each tolerance of the case that accepts more than the derived one would."""
    notes = []
    for name, spec in case.tolerance:
        for dtype in ("bf16", "f32", "i32"):
            given = derive(dtype, "close" if dtype != "i32" else "exact", 4096, spec=spec)
            if is_loosened(derive(dtype, "close" if dtype != "i32" else "exact", 4096), given):
                reason = spec.reason or "no reason is given"
                message = f"the case loosens the tolerance of {name}: {reason}"
                notes.append(Diagnostic(codes.RELAXED_COMPARISON, message, _case_span(case), Severity.WARNING))
                break
    for buffer in case.buffers:
        if buffer.compare in ("none", "sum", "set-per-segment"):
            message = f"{buffer.name} is compared as `{buffer.compare}`: {buffer.compare_reason}"
            notes.append(
                Diagnostic(codes.RELAXED_COMPARISON, message, Span(str(case.path), buffer.line), Severity.NOTE)
            )
    return notes


def sanitizer_verdict(
    case: Case, runs: Sequence[InstanceRun], checked: Sequence[str], backend: str = "the backend"
) -> Verdict:
    """PASS when neither side did anything forbidden. A port may do what its original does only where the case says so.
    Where the original is at fault, the port is judged by its other launches alone.

    `checked` are the kinds of violations that were looked for; the verdict claims nothing about others, and is SKIP
    when there are none: a GPU stops a kernel that faults, and sees nothing else.
    """
    port: list[Diagnostic] = []
    original: list[Diagnostic] = []
    known: set[str] = set()
    launches = 0
    for run in runs:
        kinds = faulty_kinds(run.results, case.known_violations)
        for result in run.results:
            launches += bool(result.comparisons)
            known |= {v.kind for v in result.original.violations} & set(case.known_violations)
            of_port = own_violations(result, kinds, case.known_violations)
            port += [_violation(v, codes.PORT_VIOLATION, "the port", run, result) for v in of_port]
            of_original = at_fault(result, case.known_violations)
            original += [_violation(v, codes.ORIGINAL_VIOLATION, "the original", run, result) for v in of_original]
        for repeated in run.repeats:
            at = TrialResult(repeated.trial)
            port += [_violation(v, codes.PORT_VIOLATION, "the port", run, at, OTHER_ORDER) for v in repeated.port]
            original += [
                _violation(v, codes.ORIGINAL_VIOLATION, "the original", run, at, OTHER_ORDER) for v in repeated.original
            ]
    port, original = _distinct(port), _distinct(original)
    notes = tuple(
        Diagnostic(
            codes.RELAXED_COMPARISON,
            f"{kind} of the original is tolerated: {case.known_reason}",
            _case_span(case),
            Severity.WARNING,
        )
        for kind in sorted(known)
    )
    facts = SanitizerFacts(launches, len(port), len(original), tuple(checked))
    if port:
        return Verdict("sanitizer", Status.FAIL, port[0].message, _most([*port, *original]), facts)
    if original:
        detail = f"the original itself: {original[0].message}"
        return Verdict("sanitizer", Status.ERROR, detail, _most(original), facts)
    if not launches:
        return Verdict("sanitizer", Status.ERROR, "nothing was run", (), facts)
    if not checked:
        detail = f"not checked here: {plural(launches, 'launch')} on {backend} finished without a fault"
        return Verdict("sanitizer", Status.SKIP, f"{detail}; --backend emulator checks it", notes, facts)
    detail = f"{plural(launches, 'launch')} without {', '.join(c for c in checked if c not in known)}"
    if known:
        detail += f"; {', '.join(sorted(known))} as in the original: {case.known_reason}"
        facts = replace(facts, known=tuple(sorted(known)))
    return Verdict("sanitizer", Status.PASS, detail, notes, facts)


def determinism_verdict(repeats: Sequence[Repeated]) -> Verdict:
    """PASS when repeats under other schedules gave the same bits; ERROR where those of the original did not."""

    def diagnostics(of_port: bool) -> list[Diagnostic]:
        found = [f for r in repeats for f in r.findings if f.is_port is of_port]
        help_ = "" if of_port else OPEN_ORDER
        return [Diagnostic(f.code, about(f.buffer, f"{f.message} (at {f.launch})"), help=help_) for f in found]

    schedules = max((r.schedules for r in repeats), default=0)
    facts = DeterminismFacts(len(repeats), schedules)
    if port := diagnostics(True):
        return Verdict("determinism", Status.FAIL, port[0].message, _most([*port, *diagnostics(False)]), facts)
    if original := diagnostics(False):
        return Verdict("determinism", Status.ERROR, original[0].message, _most(original), facts)
    if not repeats:
        return Verdict("determinism", Status.ERROR, "nothing was run", (), facts)
    detail = f"{plural(len(repeats), 'launch')} with equal results under {plural(schedules, 'schedule')}"
    return Verdict("determinism", Status.PASS, detail, (), facts)


def about(label: str, text: str) -> str:
    """What a text is about, where there is a name for it, and the text."""
    return f"{label}: {text}" if label else text


def _violation(v: Violation, code: str, who: str, run: InstanceRun, result: TrialResult, when: str = "") -> Diagnostic:
    message = f"{who}{when}: {v.kind}: {v.message}"
    help = ORIGINAL_DOES.get(v.kind, "") if code == codes.ORIGINAL_VIOLATION else PORT_DOES.get(v.kind, "")
    notes = (f"{run.instance} at {result.trial}".strip(),)
    return Diagnostic(code, message, Span(v.file, v.line) if v.file else Span("", 0), help=help, notes=notes)


def _distinct(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """One diagnostic a place and kind, the first one; it says how many more there were like it."""
    groups: dict[tuple[object, ...], list[Diagnostic]] = {}
    for d in diagnostics:
        kind = ":".join(d.message.split(":")[:2])
        place = d.span if d.span.line else re.split(" at |; block", d.message)[0]
        groups.setdefault((d.code, kind, place), []).append(d)
    return [_with_more(same) for same in groups.values()]


def _with_more(same: Sequence[Diagnostic]) -> Diagnostic:
    more = len({(d.message, d.notes) for d in same}) - 1
    if not more:
        return same[0]
    return replace(same[0], notes=(*same[0].notes, f"and {more} more like it, in other launches or of the same line"))


def _first_of_each(findings: list[Finding]) -> list[Finding]:
    """One finding per buffer, code and side; a launch with small numbers tells as much as the others."""
    return list({(f.buffer, f.code, f.is_port): f for f in reversed(findings)}.values())[::-1]


def _diagnostic(case: Case, f: Finding, label: str, seed: int) -> Diagnostic:
    where = " ".join(n for n in (label, f.buffer) if n)
    message = about(where, f.message)
    notes = (f"at {f.launch}",) if f.launch else ()
    line = next((b.line for b in case.buffers if b.name == f.buffer), 0)
    help = _HELP.get(f.code, "").format(seed=seed)
    return Diagnostic(f.code, message, Span(str(case.path), line), help=help, notes=notes)


def _case_span(case: Case) -> Span:
    return Span(str(Path(case.path)), 1)


def _most(diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    if len(diagnostics) <= MOST:
        return tuple(diagnostics)
    more = Diagnostic(diagnostics[MOST].code, f"and {len(diagnostics) - MOST} more", severity=Severity.NOTE)
    return (*diagnostics[:MOST], more)


_ORDER = ("different", "worse", "within-bound", "closer-or-equal", "bit-equal")


def _worst(answers: Sequence[str]) -> str:
    return next((a for a in _ORDER if a in answers), "nothing compared")
