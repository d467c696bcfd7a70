"""How a region, its author, its verdicts and its decision are described. Nothing is said by colour alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from porter.model import BASES, Status, Verdict, patterns_of
from porter.patterns.idioms.catalogue import Pattern, assumptions_of
from porter.review.port.regions import Region
from porter.review.port.reviewed_port import ReviewedPort

SIGN = {"accepted": "✓", "rejected": "✗", "stale": "~", "open": "·", "hole": "?"}
CHECK_SIGN = {Status.PASS: "✓", Status.FAIL: "✗", Status.ERROR: "!", Status.SKIP: "–"}


def region_location(port: ReviewedPort, region: Region) -> str:
    """`rms_norm_kernel/3  port 62-70 <- CUDA 71-78`"""
    cuda = line_ranges(port.cuda_now(region))
    places = [f"CUDA {cuda}"] if cuda else []
    for file, _ in region.elsewhere:
        lines = line_ranges(port.lines_in(region, file))
        places.append(f"{Path(file).name} {lines}" if lines else f"{Path(file).name}, which cannot be read")
    behind = f" <- {', '.join(places)}" if places else ""
    port_lines = line_ranges(range(region.first, region.last + 1))
    return f"{region.name}  port {port_lines}{behind}"


def line_ranges(lines: range | tuple[int, ...]) -> str:
    """(3, 4, 5, 9) -> "3-5, 9" """
    parts: list[list[int]] = []
    for n in lines:
        if parts and n == parts[-1][1] + 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def describe_author(port: ReviewedPort, region: Region) -> str:
    """Who wrote a region, and with which patterns on which of its lines."""
    names = []
    for author in dict.fromkeys("translator" if patterns_of(a) else a for a in region.authors):
        kind, _, what = author.partition(":")
        names.append(f"agent, attempt {what}" if kind == "agent" else kind)
    words = ["by " + ", ".join(names)]
    rewrites = [f"{name} ({line_ranges(lines)})" for name, lines in patterns_in(port, region).items()]
    if rewrites:
        words.append(f"{'pattern' if len(rewrites) == 1 else 'patterns'} {', '.join(rewrites)}")
    hole = dict(port.holes).get(region.hole)
    if hole:
        words.append(f"hole {region.hole}, {hole.code}: {hole.reason}")
    return "; ".join(words)


def patterns_in(port: ReviewedPort, region: Region) -> dict[str, tuple[int, ...]]:
    """The patterns that rewrote a region -> the lines of the port that show each."""
    found: dict[str, list[int]] = {}
    for line in range(region.first, region.last + 1):
        for name in patterns_of(port.author(line)):
            found.setdefault(name, []).append(line)
    return {name: tuple(lines) for name, lines in found.items()}


def describe_assumptions(port: ReviewedPort, region: Region) -> list[str]:
    """What the patterns of a region take for granted, a row each, with the answer of the check that backs it.

    What porter has proved comes last.
    """
    answers = {v.check: v.status.value for v in port.verdicts} if port.verified else {}
    named = patterns_in(port, region)
    recorded = port.record.assumptions if port.record else ()
    known = recorded or assumptions_of(named)  # records of earlier versions have none
    rows = []
    for a in sorted((a for a in known if a.pattern in named), key=lambda a: a.basis == "proved"):
        ground = BASES.get(a.basis, a.basis) + (f", {a.check} {answers.get(a.check, 'not run')}" if a.check else "")
        rows.append(f"{a.pattern} assumes ({ground}) {a.text}: {a.how}")
    return rows


def pattern_page(pattern: Pattern) -> str:
    """What a pattern does, what it takes for granted, and a kernel that has it."""
    title = f"{pattern.title[0].upper()}{pattern.title[1:]}"
    rows = [f"# pattern {pattern.name}", "", f"{title}. In porter/{pattern.module}.", ""]
    rows += [f"- {'' if a.basis == 'proved' else 'assumes '}{a.sentence}" for a in pattern.assumes]
    rows += ([""] if pattern.assumes else []) + [pattern.before.rstrip(), ""]
    return "\n".join([*rows, f"`porter patterns {pattern.name}` shows its port.", ""])


def describe_verdicts(port: ReviewedPort, region: Region) -> list[str]:
    """What the verifier says about a region, a row a message; a sentence when it says nothing."""
    found = [f"{v.check} {v.status.value}: {d.code} {d.message}" for v, d in port.about(region)]
    if found:
        return found
    if not port.verdicts:
        return ["not verified yet"]
    if not port.verified:
        return ["edited since it was verified"]
    return ["verified; no message about these lines"]


def summarise_checks(verdicts: Sequence[Verdict]) -> str:
    """All checks in a few words: those that failed or were skipped by name, then how many passed."""
    named = [f"{CHECK_SIGN[v.status]} {v.check}" for v in verdicts if v.status in (Status.FAIL, Status.ERROR)]
    named += [f"{CHECK_SIGN[v.status]} {v.check}" for v in verdicts if v.status is Status.SKIP]
    passed = sum(v.status is Status.PASS for v in verdicts)
    return "  ".join([*named, f"{CHECK_SIGN[Status.PASS]} {passed} {'others' if named else 'checks'}"])


def describe_decision(port: ReviewedPort, region: Region) -> str:
    """Who decided what about a region, when; "" when nobody has."""
    decision = port.decisions.get(region.name)
    if decision is None:
        return ""
    state = "comment" if decision.state == "open" else decision.state
    other = " about another text" if port.state(region) == "stale" else ""
    words = f"{state}{other} by {decision.by}, {decision.at}"
    return f"{words}: {decision.comment}" if decision.comment else words


def describe_region(port: ReviewedPort, region: Region) -> list[str]:
    """All that is known of a region, its place first."""
    state = port.state(region)
    kinds = ", ".join(dict.fromkeys((region.kind, state)))
    rows = [f"{SIGN[state]} {region_location(port, region)}  {kinds}", describe_author(port, region)]
    rows += [words] if (words := describe_decision(port, region)) else []
    rows += describe_verdicts(port, region) + describe_assumptions(port, region)
    return rows + describe_library_calls(port.port_text(region))


@cache
def _library() -> dict[str, str]:
    """Function of the corpus library -> the first line of its documentation."""
    from porter.catalogue.patterns import corpus_entries

    return {e.name: e.summary for e in corpus_entries() if e.module.startswith("porter.corpus.lib")}


def describe_library_calls(text: str) -> list[str]:
    """`lib.rsqrt: ...` for each library function that lines of a port call."""
    names = dict.fromkeys(re.findall(r"\blib\.(\w+)", text))
    found = {name: _library().get(name, "") for name in names}
    return [f"lib.{name}: {text}{'' if text.endswith('.') else ' ...'}" for name, text in found.items() if text]
