"""What a port once achieved, kept in its `.port.json`, and whether a run is worse: verdicts, errors, resources, times.

One run is kept for each backend: errors and times of one say nothing about another. docs/verify.md states the rules.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from porter import codes
from porter.model import Diagnostic, Severity, Status, Verdict, facts_of
from porter.model.facts import CountedLaunch, NumericsFacts, PerformanceFacts, RegressionFacts, ResourcesFacts, Worse
from porter.provenance.json import plain
from porter.provenance.schema import DamagedRecord
from porter.source import Span

SCHEMA = 1
FREE_REGISTERS = 32  # up to here every block size reaches full occupancy
REGISTER_RATIO, SHARED_RATIO = 1.10, 1.10
LOCAL_SLACK, SHARED_SLACK = 16, 256  # bytes a thread, bytes a block
RMS_RATIO, ROUNDING_RMS = 1.05, 0.29  # as the verifier judges errors against float64; ulp
COUNTS, COUNT_RATIO = ("instructions", "sectors", "bank_conflicts"), 1.10
LEAST_SPREAD = 0.01  # of times: what is not known to be quieter is taken to be this noisy
RESOURCES = (
    "registers", "spills", "local_bytes", "shared_bytes", "instructions", "loads", "stores", "loads_128", "stores_128",
    "loads_256", "stores_256", "barriers", "shuffles", "atomics",
)  # fmt: skip
ANSWERS = ("bit-equal", "closer-or-equal", "within-bound", "worse", "different")  # best first


@dataclass(frozen=True)
class BaselineRun:
    """What one backend answered: statuses by check, error figures by instance and buffer, counts by instance, times."""

    backend: str
    date: str  # ISO 8601, UTC
    port_sha256: str
    source_sha256: str = ""
    case_sha256: str = ""
    seed: int = 0
    inputs: str = ""  # a checksum of the bytes of all launches: the seed gives the same ones to the same porter only
    thorough: bool = False
    arches: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)
    errors: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    resources: dict[str, dict[str, int]] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)  # of one emulated launch, original and port
    times: dict[str, dict[str, float]] = field(default_factory=dict)  # launch: port_us, original_us, ratio, spread
    device: str = ""  # that the times are of
    seconds: dict[str, float] = field(default_factory=dict)  # of the verification, by stage; nobody compares these

    @property
    def name(self) -> str:
        """For messages: which run this is."""
        return f"the baseline of {self.date[:10]} (port {self.port_sha256[:8]}, {self.backend}, seed {self.seed})"


CODES = {
    "check": codes.CHECK_NO_LONGER_PASSES,
    "errors": codes.ERRORS_GREW,
    "resources": codes.RESOURCES_GREW,
    "counts": codes.RESOURCES_GREW,
    "times": codes.SLOWER_THAN_BASELINE,
    "revision": codes.DIFFERS_FROM_REVISION,
}


# ---------------------------------------------------------------- from verdicts


def baseline_run(verdicts: Sequence[Verdict], run: BaselineRun) -> BaselineRun:
    """`run` (who, when, of what) with what the verdicts say."""
    numerics = facts_of(verdicts, NumericsFacts)
    resources = facts_of(verdicts, ResourcesFacts) or ResourcesFacts()
    performance = facts_of(verdicts, PerformanceFacts) or PerformanceFacts()
    return replace(
        run,
        seed=numerics.seed if numerics is not None else run.seed,
        inputs=numerics.inputs if numerics is not None else "",
        checks={v.check: v.status.value for v in verdicts},
        errors=plain(numerics.to_json()["buffers"]) if numerics is not None else {},
        resources={label: _resources(used.port) for label, used in resources.instances.items()},
        counts=_counts(performance),
        times=_times(performance),
        device=performance.device or "",
    )


def _resources(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: int(counts[name]) for name in RESOURCES if name in counts}


def _counts(facts: PerformanceFacts) -> dict[str, dict[str, int]]:
    """What the emulator counted in one launch of each side, where nothing was timed."""
    launch = facts.counts[0] if facts.counts else CountedLaunch()
    sides = {"original": launch.original, "port": launch.port}
    return {side: {k: int(n) for k, n in found.items()} for side, found in sides.items() if found is not None}


def _times(facts: PerformanceFacts) -> dict[str, dict[str, float]]:
    """Medians and spreads of a performance verdict, by instance, sizes and kind of timing (graph_cold, ...).

    A timing whose spread is not known (too few rounds) is left out: nothing could be said to be outside of it.
    """
    found: dict[str, dict[str, float]] = {}
    for row in facts.rows or ():
        sizes = " ".join(f"{k}={v}" for k, v in row.sizes.items())
        for kind, timing in row.timings.items():
            us, ratio = timing.us, timing.ratio
            if {"port", "original"} <= set(us) and "port" in ratio and timing.a_vs_a is not None:
                numbers = (us["port"], us["original"], ratio["port"], timing.a_vs_a)
                if all(math.isfinite(n) for n in numbers):
                    label = " ".join(part for part in (row.instance, sizes, kind) if part)
                    found[label] = dict(zip(("port_us", "original_us", "ratio", "spread"), numbers, strict=True))
    return found


def is_good(verdicts: Sequence[Verdict]) -> bool:
    """Whether these answers may become a baseline: numerics passed, and nothing failed."""
    passed = any(v.check == "numerics" and v.status is Status.PASS for v in verdicts)
    return passed and all(v.status in (Status.PASS, Status.SKIP) for v in verdicts)


# ---------------------------------------------------------------- comparing


def compare(was: BaselineRun, now: BaselineRun) -> list[Worse]:
    """Everything that is worse than it was: checks first, then errors, resources, counts and times."""
    rules = (worse_checks, worse_errors, worse_resources, worse_counts, worse_times)
    return [worse for rule in rules for worse in rule(was, now)]


def worse_checks(was: BaselineRun, now: BaselineRun) -> Iterator[Worse]:
    """Checks that had passed and do not pass now. `performance` may be SKIP: that machine has no GPU."""
    for check, status in was.checks.items():
        answer = now.checks.get(check, "not run")
        skipped = answer == Status.SKIP.value and check == "performance"
        if status == Status.PASS.value and answer != status and not skipped:
            yield Worse("check", check, status, answer)


def worse_errors(was: BaselineRun, now: BaselineRun) -> Iterator[Worse]:
    """Error figures that grew. With different seeds they may grow by chance: see same_inputs."""
    for instance, buffer, old, new in _pairs(was.errors, now.errors):
        label = f"{buffer} of {instance}" if instance else buffer
        a, b = str(old.get("verdict", "")), str(new.get("verdict", ""))
        if a in ANSWERS and b in ANSWERS and ANSWERS.index(b) > ANSWERS.index(a):
            yield Worse("errors", f"{label}: agreement with the original", a, b)
        for figure in ("max_ulp", "excused"):
            if new.get(figure, 0) > old.get(figure, 0):
                yield Worse("errors", f"{label}: {figure}", str(old.get(figure, 0)), str(new[figure]))
        if b == "bit-equal":
            continue  # its errors are the original's
        share, before = _share(new), _share(old)
        if share > 1.1 * before and new.get("different", 0) > old.get("different", 0) + 2:
            yield Worse("errors", f"{label}: elements that are not bit-equal", f"{before:.3%}", f"{share:.3%}")
        rms, rms_before = float(new.get("rms_port", 0)), float(old.get("rms_port", 0))
        if rms > RMS_RATIO * max(rms_before, ROUNDING_RMS):
            yield Worse("errors", f"{label}: RMS error against float64 (ulp)", f"{rms_before:g}", f"{rms:g}")


def _share(row: Mapping[str, Any]) -> float:
    return float(row.get("different", 0)) / max(float(row.get("elements", 0)), 1.0)


def worse_resources(was: BaselineRun, now: BaselineRun) -> Iterator[Worse]:
    """Registers, spills, local and shared memory, wide accesses, barriers, by the rules of docs/verify.md."""
    if was.arches[:1] != now.arches[:1]:
        return
    for instance, old in was.resources.items():
        new = now.resources.get(instance)
        if new is None:
            continue

        def count(counts: Mapping[str, int], *names: str) -> int:
            return sum(counts.get(n, 0) for n in names)

        rows = [
            ("registers", max(FREE_REGISTERS, REGISTER_RATIO * count(old, "registers"))),
            ("spills", count(old, "spills")),
            ("local_bytes", count(old, "local_bytes") + LOCAL_SLACK),
            ("shared_bytes", SHARED_RATIO * count(old, "shared_bytes") + SHARED_SLACK),
            ("barriers", count(old, "barriers")),
        ]
        for name, most in rows:
            if name in old and count(new, name) > most:
                yield Worse("resources", name, str(old[name]), str(new.get(name, 0)), instance)
        for kind in ("loads", "stores"):
            wide = f"{kind}_128", f"{kind}_256"
            narrow_was, narrow = (count(c, kind) - count(c, *wide) for c in (old, new))
            if count(new, *wide) < count(old, *wide) and narrow > narrow_was:
                what = f"global {kind} of 128 bits or more"
                yield Worse("resources", what, str(count(old, *wide)), str(count(new, *wide)), instance)


def worse_counts(was: BaselineRun, now: BaselineRun) -> Iterator[Worse]:
    """Counts of an emulated launch, as multiples of the original's, that grew. Other seeds count other launches."""
    if {"original", "port"} <= set(was.counts) and {"original", "port"} <= set(now.counts):
        for name in COUNTS:
            a, b = (r.counts["port"].get(name, 0) / max(r.counts["original"].get(name, 0), 1) for r in (was, now))
            if b > COUNT_RATIO * a:
                old, new = (
                    f"{x:.2f}x the original's ({r.counts['port'].get(name, 0)})" for x, r in ((a, was), (b, now))
                )
                yield Worse("counts", f"{name.replace('_', ' ')} of an emulated launch", old, new)


def worse_times(was: BaselineRun, now: BaselineRun) -> Iterator[Worse]:
    """Times, as multiples of the original's in the same run, that grew by more than twice the spread on one device."""
    if not was.device or was.device != now.device:
        return
    for launch, old in was.times.items():
        new = now.times.get(launch)
        if new is None:
            continue
        spread = max(old["spread"], new["spread"], LEAST_SPREAD)
        if new["ratio"] > old["ratio"] * (1 + 2 * spread):
            before, after = (f"{t['ratio']:.3f}x the original's ({t['port_us']:.2f} us)" for t in (old, new))
            yield Worse("times", f"time at {launch}", before, f"{after}, spread {spread:.1%}")


def same_inputs(was: BaselineRun, now: BaselineRun) -> bool:
    """Whether both runs saw the same bytes, so that grown errors are the port's doing."""
    return was.inputs == now.inputs


def _pairs(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    for instance, buffers in was.items():
        for buffer, old in buffers.items():
            new = now.get(instance, {}).get(buffer)
            if new is not None:
                yield instance, buffer, old, new


def what_changed(was: BaselineRun, now: BaselineRun) -> tuple[str, ...]:
    """What is not as it was: the port, its source, the case, versions by name."""
    files = (("port", "port_sha256"), ("source", "source_sha256"), ("case", "case_sha256"))
    found = [name for name, key in files if getattr(was, key) != getattr(now, key)]
    return (*found, *(k for k in sorted({*was.versions, *now.versions}) if was.versions.get(k) != now.versions.get(k)))


def _next_step(failed: bool, changed: Sequence[str] | None) -> str:
    """`changed`: None where nobody knows."""
    accept = "" if failed else ", or accept it with `porter verify --update`"  # no baseline takes a failed check
    if changed is None or "port" in changed:
        return ("undo what broke it" if failed else "undo it") + accept
    if changed:
        what = ", ".join(f"the {n}" if n in ("source", "case") else n for n in changed)
        return f"the port is unchanged; what changed: {what}{accept}"
    return "port, source, case and versions are unchanged: the inputs of this seed show it" + accept


def regression_verdict(
    worse: Sequence[Worse],
    against: str,
    port: str,
    notes: Sequence[Diagnostic] = (),
    changed: Sequence[str] | None = None,
) -> Verdict:
    """The verdict of the check `regression`: FAIL names what is worse than `against`. `changed`: see `what_changed`."""
    failed = any(w.kind in ("check", "revision") for w in worse)
    help_ = _next_step(failed, changed)
    found = [Diagnostic(CODES[w.kind], f"{w}, in {against}", Span(port, 0), Severity.ERROR, help_) for w in worse]
    facts = RegressionFacts(against, tuple(worse))
    if worse:
        more = f" (and {len(worse) - 1} more)" if len(worse) > 1 else ""
        return Verdict("regression", Status.FAIL, f"{worse[0]}{more}; against {against}", (*found, *notes), facts)
    return Verdict("regression", Status.PASS, f"no worse than {against}", tuple(notes), facts)


# ---------------------------------------------------------------- JSON


def with_run(baseline: Mapping[str, Any], run: BaselineRun) -> dict[str, Any]:
    """The `baseline` of a record with the run of one backend put in place of its earlier one."""
    runs = {**dict(baseline.get("runs", {})), run.backend: _run_to_json(run)}
    return {"schema": SCHEMA, "runs": runs, "sha256": _digest(runs)}


def run_of(baseline: Mapping[str, Any], backend: str) -> BaselineRun | None:
    """The run of a backend that a record's `baseline` has, or None. `check_baseline` has accepted it before."""
    found = baseline.get("runs", {}).get(backend)
    if found is None:
        return None
    return BaselineRun(**{**found, "backend": backend, "arches": tuple(found.get("arches", ()))})


def check_baseline(value: Any) -> None:
    """Raises DamagedRecord when a record's `baseline` is not one that porter wrote."""
    if value == {}:
        return
    if not isinstance(value, dict) or not isinstance(value.get("runs"), dict):
        raise DamagedRecord("baseline.runs", "is not an object")
    if value.get("schema") != SCHEMA:
        raise DamagedRecord("baseline.schema", f"is {value.get('schema')!r}, this porter reads {SCHEMA}")
    known = set(BaselineRun.__dataclass_fields__)
    for backend, run in value["runs"].items():
        if not isinstance(run, dict):
            raise DamagedRecord(f"baseline.runs.{backend}", "is not an object")
        for key in run:
            if key not in known:
                raise DamagedRecord(f"baseline.runs.{backend}", f"has the unknown key `{key}`")
        for key in ("date", "port_sha256", "checks"):
            if key not in run:
                raise DamagedRecord(f"baseline.runs.{backend}", f"has no `{key}`")
        statuses = run["checks"] if isinstance(run["checks"], dict) else {}
        bad = {Status.FAIL.value, Status.ERROR.value} & {*statuses.values()}
        if bad or statuses.get("numerics") != Status.PASS.value:
            raise DamagedRecord(f"baseline.runs.{backend}.checks", "are not those of a port that is verified")
    if value.get("sha256") != _digest(value["runs"]):
        raise DamagedRecord("baseline.sha256", "does not fit `baseline.runs`: it was edited or damaged")


def _run_to_json(run: BaselineRun) -> dict[str, Any]:
    return plain({k: v for k, v in asdict(run).items() if k != "backend"})


def _digest(runs: Mapping[str, Any]) -> str:
    text = json.dumps(runs, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
