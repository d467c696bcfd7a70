"""The words and signs of the review: states, authors, what a region assumes. Nothing is said by colour alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from porter.model import BASES, Status, Verdict, patterns_of
from porter.patterns.idioms.catalogue import Pattern, assumptions_of
from porter.review.port.loaded import Loaded
from porter.review.port.regions import Region

SIGN = {"accepted": "✓", "rejected": "✗", "stale": "~", "open": "·", "hole": "?"}
CHECK_SIGN = {Status.PASS: "✓", Status.FAIL: "✗", Status.ERROR: "!", Status.SKIP: "–"}


def region_place(loaded: Loaded, region: Region) -> str:
    """`rms_norm_kernel/3  port 62-70 <- CUDA 71-78`"""
    cuda = lines_words(loaded.cuda_now(region))
    places = [f"CUDA {cuda}"] if cuda else []
    for file, _ in region.elsewhere:
        lines = lines_words(loaded.lines_in(region, file))
        places.append(f"{Path(file).name} {lines}" if lines else f"{Path(file).name}, which cannot be read")
    behind = f" <- {', '.join(places)}" if places else ""
    port = lines_words(range(region.first, region.last + 1))
    return f"{region.name}  port {port}{behind}"


def lines_words(lines: range | tuple[int, ...]) -> str:
    """(3, 4, 5, 9) -> "3-5, 9" """
    parts: list[list[int]] = []
    for n in lines:
        if parts and n == parts[-1][1] + 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def author_words(loaded: Loaded, region: Region) -> str:
    """Who wrote a region, and with which patterns on which of its lines."""
    names = []
    for author in dict.fromkeys("translator" if patterns_of(a) else a for a in region.authors):
        kind, _, what = author.partition(":")
        names.append(f"agent, attempt {what}" if kind == "agent" else kind)
    words = ["by " + ", ".join(names)]
    rewrites = [f"{name} ({lines_words(lines)})" for name, lines in patterns_in(loaded, region).items()]
    if rewrites:
        words.append(f"{'pattern' if len(rewrites) == 1 else 'patterns'} {', '.join(rewrites)}")
    hole = dict(loaded.holes).get(region.hole)
    if hole:
        words.append(f"hole {region.hole}, {hole.code}: {hole.reason}")
    return "; ".join(words)


def patterns_in(loaded: Loaded, region: Region) -> dict[str, tuple[int, ...]]:
    """The patterns that rewrote a region -> the lines of the port that show each."""
    found: dict[str, list[int]] = {}
    for line in range(region.first, region.last + 1):
        for name in patterns_of(loaded.author(line)):
            found.setdefault(name, []).append(line)
    return {name: tuple(lines) for name, lines in found.items()}


def assumption_words(loaded: Loaded, region: Region) -> list[str]:
    """What the patterns of a region take for granted, a row each, with the answer of the check that backs it.

    What porter has proved comes last.
    """
    answers = {v.check: v.status.value for v in loaded.verdicts} if loaded.verified else {}
    named = patterns_in(loaded, region)
    recorded = loaded.record.assumptions if loaded.record else ()
    known = recorded or assumptions_of(named)  # records of earlier versions have none
    rows = []
    for a in sorted((a for a in known if a.pattern in named), key=lambda a: a.basis == "proved"):
        ground = BASES.get(a.basis, a.basis) + (f", {a.check} {answers.get(a.check, 'not run')}" if a.check else "")
        rows.append(f"{a.pattern} assumes ({ground}) {a.text}: {a.how}")
    return rows


def pattern_words(pattern: Pattern) -> str:
    """What a pattern does, what it takes for granted, and a kernel that has it."""
    title = f"{pattern.title[0].upper()}{pattern.title[1:]}"
    rows = [f"# pattern {pattern.name}", "", f"{title}. In porter/{pattern.module}.", ""]
    rows += [f"- {'' if a.basis == 'proved' else 'assumes '}{a.sentence}" for a in pattern.assumes]
    rows += ([""] if pattern.assumes else []) + [pattern.before.rstrip(), ""]
    return "\n".join([*rows, f"`porter patterns {pattern.name}` shows its port.", ""])


def verdict_words(loaded: Loaded, region: Region) -> list[str]:
    """What the verifier says about a region, a row a message; a sentence when it says nothing."""
    found = [f"{v.check} {v.status.value}: {d.code} {d.message}" for v, d in loaded.about(region)]
    if found:
        return found
    if not loaded.verdicts:
        return ["not verified yet"]
    if not loaded.verified:
        return ["edited since it was verified"]
    return ["verified; no message about these lines"]


def checks_words(verdicts: Sequence[Verdict]) -> str:
    """All checks in a few words: those that failed or were skipped by name, then how many passed."""
    named = [f"{CHECK_SIGN[v.status]} {v.check}" for v in verdicts if v.status in (Status.FAIL, Status.ERROR)]
    named += [f"{CHECK_SIGN[v.status]} {v.check}" for v in verdicts if v.status is Status.SKIP]
    passed = sum(v.status is Status.PASS for v in verdicts)
    return "  ".join([*named, f"{CHECK_SIGN[Status.PASS]} {passed} {'others' if named else 'checks'}"])


def decision_words(loaded: Loaded, region: Region) -> str:
    """Who decided what about a region, when; "" when nobody has."""
    decision = loaded.decisions.get(region.name)
    if decision is None:
        return ""
    state = "comment" if decision.state == "open" else decision.state
    other = " about another text" if loaded.state(region) == "stale" else ""
    words = f"{state}{other} by {decision.by}, {decision.at}"
    return f"{words}: {decision.comment}" if decision.comment else words


def about_rows(loaded: Loaded, region: Region) -> list[str]:
    """All that is known of a region, its place first."""
    state = loaded.state(region)
    kinds = ", ".join(dict.fromkeys((region.kind, state)))
    rows = [f"{SIGN[state]} {region_place(loaded, region)}  {kinds}", author_words(loaded, region)]
    rows += [words] if (words := decision_words(loaded, region)) else []
    rows += verdict_words(loaded, region) + assumption_words(loaded, region)
    return rows + library_words(loaded.port_text(region))


@cache
def _library() -> dict[str, str]:
    """Function of the corpus library -> the first line of its documentation."""
    from porter.catalogue.patterns import corpus_entries

    return {e.name: e.summary for e in corpus_entries() if e.module.startswith("porter.corpus.lib")}


def library_words(text: str) -> list[str]:
    """`lib.rsqrt: ...` for each library function that lines of a port call."""
    names = dict.fromkeys(re.findall(r"\blib\.(\w+)", text))
    found = {name: _library().get(name, "") for name in names}
    return [f"lib.{name}: {text}{'' if text.endswith('.') else ' ...'}" for name, text in found.items() if text]
