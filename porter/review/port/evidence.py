"""What each check found, as text: compile log, numerics with histograms, resources, sanitizer, performance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from porter.model import Verdict
from porter.regression.charts import ulp_label
from porter.report.render import render
from porter.review.port.loaded import Loaded
from porter.review.words import CHECK_SIGN

TABS = ("compile", "numerics", "resources", "sanitizer", "performance")


def checks_of(loaded: Loaded) -> tuple[str, ...]:
    """The checks that have a page: those that every port should have, and what else was recorded."""
    return (*TABS, *(v.check for v in loaded.verdicts if v.check not in TABS))


def evidence(loaded: Loaded, check: str) -> str:
    """The page of one check."""
    verdict = loaded.verdict(check)
    if verdict is None:
        reason = "the port has open holes, so it was not verified" if loaded.holes else "press v to verify the port"
        return f"{check} was not run: {reason}."
    rows = [f"{CHECK_SIGN[verdict.status]} {verdict.status.value}  {verdict.detail}"]
    if not loaded.verified:
        rows.append("This is about an earlier text of the port.")
    rows += _BODIES.get(check, _nothing)(verdict.data)
    rows += messages(loaded, verdict)
    return "\n".join(rows)


def messages(loaded: Loaded, verdict: Verdict) -> Iterator[str]:
    """The diagnostics of a check with the region of the port that each is in."""
    for d in verdict.diagnostics:
        yield ""
        yield render(d).plain
        here = next((r for r in loaded.regions if any(d == other for _, other in loaded.about(r))), None)
        if here is not None:
            yield f"   in {here.name}, port lines {here.first}-{here.last}"


def _nothing(data: Mapping[str, Any]) -> list[str]:
    return []


def _numerics(data: Mapping[str, Any]) -> Iterator[str]:
    inputs = " ".join(data.get("scenarios", []))
    yield f"seed {data.get('seed', '?')}, {data.get('launches', 0)} launches; inputs {inputs}"
    for instance, buffers in data.get("buffers", {}).items():
        for name, row in buffers.items():
            yield ""
            yield f"{f'{name} {instance}'.strip()}: {row.get('verdict', '')}, tolerance {row.get('tolerance', '')}"
            different, elements = int(row.get("different", 0)), int(row.get("elements", 0))
            if not different:
                yield f"  all {elements:,} elements are bit-equal"
            else:
                yield f"  {different:,} of {elements:,} elements are not bit-equal, at most {row.get('max_ulp', 0)} ulp"
                yield from _histogram(elements, different, [int(c) for c in row.get("ulps", [])])
    found = data.get("divergence")
    if found:
        yield ""
        yield f"first divergence: CUDA line {found['cuda_line']}, port line {found['port_line']}: {found['message']}"
        yield f"  block {found['block']}, thread {found['thread']}, launch {found['launch']}"
    smallest = data.get("smallest")
    if smallest:
        yield f"smallest launch that fails: {smallest}"


def _histogram(elements: int, different: int, ulps: list[int]) -> Iterator[str]:
    """Elements by distance from the original, bars by the number of digits."""
    counts = [elements - different + (ulps[0] if ulps else 0), *ulps[1:]]
    rest = elements - sum(counts)
    rows = [(ulp_label(n), c) for n, c in enumerate(counts)] + ([("no distance", rest)] if rest > 0 else [])
    for label, count in rows:
        yield f"  {label:>12} {'█' * (4 * len(str(count)) if count else 0):<32} {count:,}"


def _resources(data: Mapping[str, Any]) -> Iterator[str]:
    for instance, both in data.items():
        if not isinstance(both, Mapping) or "port" not in both:
            continue
        original, port = both.get("original", {}), both["port"]
        yield ""
        yield f"{instance or 'kernel':<24} {'original':>12} {'port':>12}"
        for name in port:
            if isinstance(port[name], int | float) and (port[name] or original.get(name)):
                worse = "  more" if port[name] > original.get(name, 0) else ""
                yield f"  {name.replace('_', ' '):<22} {original.get(name, 0):>12} {port[name]:>12}{worse}"


def _sanitizer(data: Mapping[str, Any]) -> Iterator[str]:
    yield f"{data.get('launches', 0)} launches, looked for: {', '.join(data.get('checked', []))}"
    yield f"reports about the port {data.get('port', 0)}, about the original {data.get('original', 0)}"


def _performance(data: Mapping[str, Any]) -> Iterator[str]:
    if data.get("counts"):
        yield "Counts of one launch on the emulator; they say nothing about time."
    for row in data.get("counts", ()):
        yield ""
        yield f"{row.get('instance', '')} {_sizes(row.get('sizes', {}))}".strip() or "launch"
        yield f"  {'':<22} {'original':>12} {'port':>12}"
        for name, count in row.get("port", {}).items():
            yield f"  {name.replace('_', ' '):<22} {row.get('original', {}).get(name, 0):>12} {count:>12}"
    rows = list(data.get("rows", ()))
    if rows:
        yield f"Medians in us a launch on {data.get('device', 'a GPU')}, original and port in turns."
        yield "spread: the original against itself; a ratio with = is within twice of that."
    same, varied = _common([row.get("sizes", {}) for row in rows])
    if same:
        yield f"Everywhere {_sizes(same)}."
    for kind, title, floor in TIMINGS:
        timed = [(row, row[kind]) for row in rows if isinstance(row.get(kind), Mapping)]
        if timed:
            yield ""
            yield f"{title}; floor: {floor}" if floor else title
            yield f"  {'original':>10} {'port':>10} {'ratio':>7}   {'spread':>6} {'floor' if floor else '':>9}  sizes"
        for row, timing in timed:
            yield _timed(timing, _sizes({name: n for name, n in row.get("sizes", {}).items() if name in varied}))
    yield from (
        f"not timed: {row.get('instance', '')} {_sizes(row.get('sizes', {}))}: {row['error']}"
        for row in rows
        if row.get("error")
    )
    for kind, why in {kind: why for row in rows for kind, why in row.get("not_done", {}).items()}.items():
        yield f"{kind.replace('_', ' ')} was not timed: {why}"
    host = [row["host_us"] for row in rows if row.get("host_us")]
    if host:
        sides = " and ".join(f"{side} {min(h[side] for h in host if side in h):.1f} us" for side in host[0])
        yield f"the host needs at least, a launch: {sides}"


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


def _timed(timing: Mapping[str, Any], sizes: str) -> str:
    """One point: microseconds of both sides, their ratio and how far to trust it, the floor."""
    us, ratio = timing.get("us", {}), timing.get("ratio", {}).get("port", 0.0)
    floor = next((us[side] for side in ("copy", "empty") if side in us), None)
    within = " " if timing.get("counts", {}).get("port", True) else "="
    spread = f"±{100 * timing.get('a_vs_a', 0.0):.1f}%" + ("" if timing.get("settled", True) else "!")
    return (
        f"  {us.get('original', 0.0):>10.2f} {us.get('port', 0.0):>10.2f} {ratio:>7.3f}{within}  {spread:>6} "
        f"{f'{floor:.2f}' if floor is not None else '':>9}  {sizes}"
    )


def _sizes(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{name}={n}" for name, n in sizes.items())


_BODIES: dict[str, Any] = {
    "numerics": _numerics,
    "resources": _resources,
    "sanitizer": _sanitizer,
    "performance": _performance,
}
