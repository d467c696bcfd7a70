"""What each check found, as text: compile log, numerics with histograms, resources, sanitizer, performance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from porter.model import Verdict
from porter.model.facts import (
    Facts,
    NumericsFacts,
    OutputErrors,
    PerformanceFacts,
    ResourcesFacts,
    SanitizerFacts,
    TimingFacts,
)
from porter.regression.charts import ulp_label
from porter.report.render import render
from porter.review.descriptions import CHECK_SIGN
from porter.review.port.reviewed_port import ReviewedPort
from porter.wording import plural

TABS = ("compile", "numerics", "resources", "sanitizer", "performance")


def checks_of(port: ReviewedPort) -> tuple[str, ...]:
    """The checks that have a page: those that every port should have, and what else was recorded."""
    return (*TABS, *(v.check for v in port.verdicts if v.check not in TABS))


def evidence(port: ReviewedPort, check: str) -> str:
    """The page of one check."""
    verdict = port.verdict(check)
    if verdict is None:
        reason = "the port has open holes, so it was not verified" if port.holes else "press v to verify the port"
        return f"{check} was not run: {reason}."
    rows = [f"{CHECK_SIGN[verdict.status]} {verdict.status.value}  {verdict.detail}"]
    if not port.verified:
        rows.append("The port was edited after this.")
    rows += _measured(verdict.facts)
    rows += messages(port, verdict)
    return "\n".join(rows)


def messages(port: ReviewedPort, verdict: Verdict) -> Iterator[str]:
    """The diagnostics of a check with the region of the port that each is in."""
    for d in verdict.diagnostics:
        yield ""
        yield render(d).plain
        here = next((r for r in port.regions if any(d == other for _, other in port.about(r))), None)
        if here is not None:
            yield f"   in {here.name}, port lines {here.first}-{here.last}"


def _measured(facts: Facts) -> Iterator[str]:
    match facts:
        case NumericsFacts():
            yield from _numerics(facts)
        case ResourcesFacts():
            yield from _resources(facts)
        case SanitizerFacts():
            yield from _sanitizer(facts)
        case PerformanceFacts():
            yield from _performance(facts)


def _numerics(facts: NumericsFacts) -> Iterator[str]:
    yield f"seed {facts.seed}, {plural(facts.launches, 'launch')}; inputs {' '.join(facts.scenarios)}"
    for instance, buffers in facts.buffers.items():
        for name, row in buffers.items():
            yield ""
            yield f"{f'{name} {instance}'.strip()}: {row.verdict}, tolerance {row.tolerance}"
            if not row.different:
                yield f"  all {row.elements:,} elements are bit-equal"
            else:
                yield (f"  {row.different:,} of {row.elements:,} elements are not bit-equal, at most {row.max_ulp} ulp")
                yield from _histogram(row)
    found = facts.divergence
    if found is not None:
        yield ""
        yield f"first divergence: CUDA line {found.cuda_line}, port line {found.port_line}: {found.message}"
        yield f"  block {found.block}, thread {found.thread}, launch {found.launch}"
    if facts.smallest is not None:
        yield f"smallest launch that fails: {facts.smallest.to_json()}"


def _histogram(row: OutputErrors) -> Iterator[str]:
    """Elements by distance from the original, bars by the number of digits."""
    counts, rest = row.histogram
    rows = [(ulp_label(n), c) for n, c in enumerate(counts)] + ([("no distance", rest)] if rest > 0 else [])
    for label, count in rows:
        yield f"  {label:>12} {'█' * (4 * len(str(count)) if count else 0):<32} {count:,}"


def _resources(facts: ResourcesFacts) -> Iterator[str]:
    for instance, used in facts.instances.items():
        yield ""
        yield f"{instance or 'kernel':<24} {'original':>12} {'port':>12}"
        for name, count in used.port.items():
            original = used.original.get(name, 0)
            if count or original:
                worse = "  more" if count > original else ""
                yield f"  {name.replace('_', ' '):<22} {original:>12} {count:>12}{worse}"


def _sanitizer(facts: SanitizerFacts) -> Iterator[str]:
    yield f"{plural(facts.launches, 'launch')}, looked for: {', '.join(facts.checked)}"
    yield f"reports about the port {facts.port}, about the original {facts.original}"


def _performance(facts: PerformanceFacts) -> Iterator[str]:
    if facts.counts:
        yield "Counts of one launch on the emulator; they say nothing about time."
    for launch in facts.counts or ():
        yield ""
        yield f"{launch.instance or ''} {_sizes(launch.sizes or {})}".strip() or "launch"
        yield f"  {'':<22} {'original':>12} {'port':>12}"
        for name, count in (launch.port or {}).items():
            yield f"  {name.replace('_', ' '):<22} {(launch.original or {}).get(name, 0):>12} {count:>12}"
    rows = facts.rows or ()
    if rows:
        yield f"Medians in us per launch on {facts.device or 'a GPU'}, original and port alternating."
        yield "spread: the original against itself; a ratio marked = is within twice that."
    same, varied = _common([row.sizes for row in rows])
    if same:
        yield f"Everywhere {_sizes(same)}."
    for kind, title, floor in TIMINGS:
        timed = [(row, row.timings[kind]) for row in rows if kind in row.timings]
        if timed:
            yield ""
            yield f"{title}; floor: {floor}" if floor else title
            yield f"  {'original':>10} {'port':>10} {'ratio':>7}   {'spread':>6} {'floor' if floor else '':>9}  sizes"
        for row, timing in timed:
            yield _timed(timing, _sizes({name: n for name, n in row.sizes.items() if name in varied}))
    yield from (f"not timed: {row.instance} {_sizes(row.sizes)}: {row.error}" for row in rows if row.error)
    for kind, why in {kind: why for row in rows for kind, why in (row.not_done or {}).items()}.items():
        yield f"{kind.replace('_', ' ')} was not timed: {why}"
    host = [row.host_us for row in rows if row.host_us]
    if host:
        sides = " and ".join(f"{side} {min(h[side] for h in host if side in h):.1f} us" for side in host[0])
        yield f"least host time per launch: {sides}"


# What a row of the check was timed as: its key, the title of its table, what its floor is.
TIMINGS = (
    ("graph_cold", "cold L2, which decides", "a copy of as many bytes"),
    ("graph_warm", "warm L2", "an empty kernel of the same grid"),
    ("chain", "between a producer and a consumer, all three together", ""),
    ("chain_pdl", "the same, with programmatic dependent launch", ""),
)


def _common(sizes: Sequence[Mapping[str, int]]) -> tuple[dict[str, int], set[str]]:
    """The sizes that are the same in all rows, and the names of the others. One row has only others."""
    names = {name for row in sizes for name in row}
    same = {n: v for n, v in (sizes[0] if len(sizes) > 1 else {}).items() if all(row.get(n) == v for row in sizes)}
    return same, names - set(same)


def _timed(timing: TimingFacts, sizes: str) -> str:
    """One point: microseconds of both sides, their ratio and how far to trust it, the floor."""
    us, ratio = timing.us, timing.ratio.get("port", 0.0)
    floor = next((us[side] for side in ("copy", "empty") if side in us), None)
    within = " " if timing.counts.get("port", True) else "="
    spread = f"±{100 * (timing.a_vs_a or 0.0):.1f}%" + ("" if timing.settled else "!")
    return (
        f"  {us.get('original', 0.0):>10.2f} {us.get('port', 0.0):>10.2f} {ratio:>7.3f}{within}  {spread:>6} "
        f"{f'{floor:.2f}' if floor is not None else '':>9}  {sizes}"
    )


def _sizes(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{name}={n}" for name, n in sizes.items())
