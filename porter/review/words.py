"""The words and signs of the review: states, authors, what a region assumes. Nothing is said by colour alone."""

from __future__ import annotations

import re
from functools import cache

from porter.model import Status
from porter.patterns.catalogue import all_patterns
from porter.review.loaded import Loaded
from porter.review.regions import Region

SIGN = {"accepted": "✓", "rejected": "✗", "stale": "~", "open": "·", "hole": "?"}
CHECK_SIGN = {Status.PASS: "✓", Status.FAIL: "✗", Status.ERROR: "!", Status.SKIP: "–"}


def region_title(loaded: Loaded, region: Region) -> str:
    """`rms_norm_kernel/3  port 62-70 <- CUDA 71-78  statements, open`"""
    cuda = lines_words(loaded.cuda_now(region))
    behind = f" <- CUDA {cuda}" if cuda else ""
    port = lines_words(range(region.first, region.last + 1))
    return f"{region.name}  port {port}{behind}  {region.kind}, {loaded.state(region)}"


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
    """Who wrote a region, and what the rewrites among its authors assume."""
    names = []
    for author in region.authors:
        kind, _, what = author.partition(":")
        if kind == "agent":
            names.append(f"agent, attempt {what}")
        elif kind == "pattern":
            names.append(f"pattern {what}")
        else:
            names.append(kind)
    words = ["by " + ", ".join(names)]
    hole = dict(loaded.holes).get(region.hole)
    if hole:
        words.append(f"hole {region.hole}, {hole.code}: {hole.reason}")
    words += [f"assumes {text}" for text in assumptions(region)]
    return "; ".join(words)


def assumptions(region: Region) -> list[str]:
    """What the patterns that wrote a region assume; nothing for exact ones."""
    named = {a.partition(":")[2] for a in region.authors if a.startswith("pattern:")}
    return [p.assumes for p in all_patterns() if p.name in named and p.assumes]


@cache
def _library() -> dict[str, str]:
    """Function of the corpus library -> the first line of its documentation."""
    from porter.catalogue import corpus_entries

    return {e.name: e.summary for e in corpus_entries() if e.module.startswith("porter.corpus.lib")}


def library_words(text: str) -> list[str]:
    """`lib.rsqrt: ...` for each library function that lines of a port call."""
    names = dict.fromkeys(re.findall(r"\blib\.(\w+)", text))
    found = {name: _library().get(name, "") for name in names}
    return [f"lib.{name}: {text}{'' if text.endswith('.') else ' ...'}" for name, text in found.items() if text]
