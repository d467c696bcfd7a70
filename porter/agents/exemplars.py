"""What the agent may look up: corpus kernels, library functions and patterns, ranked by words and constructs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from porter.corpus_text import corpus_entries
from porter.patterns.catalogue import all_patterns
from porter.patterns.tables.intrinsics import ROWS

SHARE = 0.4  # of the structural match in the score; the words have the rest


@dataclass(frozen=True)
class Exemplar:
    """One thing that can be read. `name` is what read_exemplar takes."""

    name: str
    summary: str
    text: str
    constructs: frozenset[str]


# What a kernel is made of, by the spellings of either language.
CONSTRUCTS = {
    "shuffle": r"__shfl|shuffle|warp_reduce|warp_sum|warp_max|redux",
    "vote": r"__ballot|__any_sync|__all_sync|vote_|__match_",
    "shared memory": r"__shared__|smem|shared_array|SmemAllocator",
    "barrier": r"__syncthreads|sync_threads|barrier",
    "atomic": r"atomic",
    "vector access": r"float4|uint4|int4|reinterpret_cast|128|lib\.view",
    "fp8": r"fp8|e4m3|e5m2|Float8",
    "int8": r"int8|char4|dp4a|packed|__v[a-z]+[24]\b",
    "half": r"__half|bfloat16|BFloat16|Float16",
    "inline ptx": r"\basm\b|inline_asm|inline_ptx|lib\.asm|lib\.pure",
    "reduction": r"BlockReduce|block_sum|block_max|reduce",
    "exponential": r"\bexp|softmax|ex2",
    "loop": r"\bfor\b|\bwhile\b",
    "switch": r"\bswitch\b|\bcase\b",
    "jump": r"\bgoto\b",
    "recursion or pointer to function": r"recursive|\(\s*\*\s*\w+\s*\)\s*\(",
    "cluster": r"cluster|griddepcontrol|grid_constant",
    "sort or scan": r"scan|prefix|sort|histogram",
}


def constructs_of(text: str) -> frozenset[str]:
    """The constructs that a CUDA or CuTeDSL text uses."""
    return frozenset(name for name, pattern in CONSTRUCTS.items() if re.search(pattern, text))


def words(text: str) -> list[str]:
    """Names and their parts, in lower case: `__vadd4` gives vadd4, `warpReduce` also warp and reduce."""
    found: list[str] = []
    for name in re.findall(r"[A-Za-z_][A-Za-z_0-9]*", text):
        bare = name.strip("_").lower()
        parts = [p.lower() for p in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]
        found += [bare, *(p for p in parts if p != bare)] if bare else []
    return found


@lru_cache(maxsize=1)
def exemplars() -> tuple[Exemplar, ...]:
    """All of them, in a fixed order. Reads text only."""
    found: dict[str, Exemplar] = {}
    for entry in corpus_entries():
        name = f"{entry.module.removeprefix('porter.corpus.')}.{entry.name}"
        found[name] = Exemplar(name, f"{entry.signature}: {entry.summary}", entry.source, constructs_of(entry.source))
    for p in all_patterns():
        text = f"{p.title} ({p.promise})\n\n{p.before}\nthe port has: {', '.join(p.shows)}\n"
        found[f"pattern.{p.name}"] = Exemplar(f"pattern.{p.name}", p.title, text, constructs_of(p.before))
    rows = "\n".join(f"{r.cuda}({', '.join(r.when)}) -> {r.emit}" for r in ROWS)
    found["intrinsics"] = Exemplar("intrinsics", "what each CUDA function becomes", rows, frozenset())
    return tuple(found.values())


class Ranker:
    """BM25 over names, summaries and texts, and the share of constructs in common."""

    def __init__(self, items: Sequence[Exemplar]):
        import bm25s

        self.items = tuple(items)
        self.index = bm25s.BM25()
        texts = [words(f"{e.name} {e.name} {e.summary} {e.summary} {e.text}") for e in self.items]
        self.index.index(texts, show_progress=False)

    def search(self, query: str, count: int = 6) -> list[Exemplar]:
        """The best `count`, best first; the order is the same in every run."""
        asked = words(query)
        known = [w for w in asked if w in self.index.vocab_dict]
        scores = [float(s) for s in self.index.get_scores(known)] if known else [0.0] * len(self.items)
        top = max(scores, default=0.0) or 1.0
        wanted = constructs_of(query)

        def score(at: int) -> float:
            has = self.items[at].constructs
            shared = len(wanted & has) / len(wanted | has) if wanted | has else 0.0
            return (1 - SHARE) * scores[at] / top + SHARE * shared

        order = sorted(range(len(self.items)), key=lambda at: (-score(at), self.items[at].name))
        return [self.items[at] for at in order[:count] if score(at) > 0]


@lru_cache(maxsize=1)
def ranker() -> Ranker:
    return Ranker(exemplars())
