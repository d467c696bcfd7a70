"""What the agent may look up: corpus kernels, library functions and patterns, ranked by words and constructs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from porter.catalogue.corpus import corpus_entries
from porter.patterns.idioms.catalogue import all_patterns
from porter.patterns.tables.intrinsics import ROWS

SHARE = 0.4  # of the structural match in the score; the words have the rest
SHOWN = 3  # of each kind, with a task
NEAR = 0.2  # of a score, to be shown unasked
HALF = 8.0  # BM25 points that are worth half of what words can give: two or three rare words


@dataclass(frozen=True)
class Exemplar:
    """One thing that can be read. `name` is what read_exemplar takes."""

    name: str
    summary: str
    text: str
    constructs: frozenset[str]


# What a kernel is made of, by the spellings of either language.
CONSTRUCTS = {
    "shuffle": r"__shfl|shuffle|\bshfl_|warp_sum|warp_max|warp_min|redux",
    "vote": r"__ballot|__any_sync|__all_sync|__match_|\bballot\(|\bmatch_any",
    "shared memory": r"__shared__|smem|lib\.shared|dyn_shared|SmemAllocator",
    "barrier": r"__syncthreads|sync_threads|\bbarrier|bar\.sync",
    "atomic": r"\batomic\w*\(|\batom\.",
    "vector access": r"\b(?:float|int|uint|double)[24]\b|lib\.view|load_words|store_words|lib\.copy|load_vector",
    "fp8": r"fp8|e4m3|e5m2|Float8",
    "packed bytes": r"char[24]\b|dp4a|__v[a-z]+[24]\b|byte_perm|pack_int8",
    "half": r"__half|\bhalf\b|bfloat16|BFloat16|Float16",
    "inline ptx": r"\basm\b|inline_asm|inline_ptx|lib\.asm|lib\.pure",
    "reduction": r"BlockReduce|[a-z]_reduce\b|(?:warp|block)_(?:sum|max|min)|>>= *1\b|/= *2\b|__shfl_(?:down|xor)",
    "exponential": r"\b_*expf?\b|softmax|ex2\.|exp2|\bexp_",
    "strided loop": r"\+= *(?:blockDim|gridDim)|range\(\s*tid",
    "early exit": r"\bbreak\b|\bcontinue\b|\bgoto\b|\bgo = |= Boolean\(True\)",
    "choice": r"\bswitch\b|\bcase\b",
    "reference": r"\w&\s*\w+\s*[,)=]|\(\s*\*\s*\w+\s*\)\s*\(",
    "integer division": r"[\w)\]] ?% ?[\w(]|c_div|c_mod",
    "cluster": r"cluster|griddepcontrol",
    "scan": r"exclusive_sum|inclusive_sum|\bscan|prefix|histogram",
}
_PATTERNS = {name: re.compile(pattern) for name, pattern in CONSTRUCTS.items()}
# Words that every kernel has: they tell nothing of it.
_EVERYWHERE = frozenset(
    re.findall(
        r"\w+",
        """
        int unsigned const void float double bool char long short auto if else for while return struct template
        typename global device host restrict extern launch dim thread threads idx dim3 threadidx blockidx blockdim
        griddim block grid def self cute arch cutlass jit import from as in not and or is none true false the of to an
        with by it that no has have are known equivalent cutedsl cuda out hi lo done call through
        """,
    )
)


def constructs_of(text: str) -> frozenset[str]:
    """The constructs that a CUDA or CuTeDSL text uses, comments and docstrings left out."""
    code = _code(text)
    return frozenset(name for name, pattern in _PATTERNS.items() if pattern.search(code))


def _code(text: str) -> str:
    return re.sub(r'"""[\s\S]*?"""|/\*[\s\S]*?\*/|//[^\n]*|^\s*#[^\n]*', " ", text, flags=re.MULTILINE)


def words(text: str) -> list[str]:
    """Names and their parts, in lower case, common ones left out: `__vadd4` gives vadd4, `warpReduce` warp and reduce
    too."""
    found: list[str] = []
    for name in re.findall(r"[A-Za-z_][A-Za-z_0-9]*", text):
        bare = name.strip("_").lower()
        if bare in _EVERYWHERE:
            continue
        parts = [p.lower() for p in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
        found += [w for w in [bare, *(p for p in parts if p != bare)] if len(w) > 1 and w not in _EVERYWHERE]
    return found


def kernel_query(cuda: str, holes: Sequence[tuple[str, str]]) -> str:
    """What to look for: the holes, (CUDA text, reason) each, before the rest; no comments, no host code."""
    code = _code(cuda)
    code = re.sub(r'extern "C"[^{;]*\{[\s\S]*?<<<[\s\S]*?\n\}', " ", code)
    return " ".join([*(f"{text} {reason}" for text, reason in dict.fromkeys(holes)), code])


@lru_cache(maxsize=1)
def exemplars() -> tuple[Exemplar, ...]:
    """All of them, in a fixed order. Reads text only."""
    found: dict[str, Exemplar] = {}
    for entry in corpus_entries():
        module = entry.module.removeprefix("porter.corpus.")
        if module.startswith("lib."):  # its folders are left out: ports know none of them
            module = f"lib.{module.rpartition('.')[2]}"
        name = f"{module}.{entry.name}"
        found[name] = Exemplar(name, f"{entry.signature}: {entry.summary}", entry.source, constructs_of(entry.source))
    for p in all_patterns():
        text = f"{p.title} ({p.promise})\n\n{p.before}\nthe port has: {', '.join(p.shows)}\n"
        found[f"pattern.{p.name}"] = Exemplar(f"pattern.{p.name}", p.title, text, constructs_of(p.before))
    rows = "\n".join(f"{r.cuda}({', '.join(r.when)}) -> {r.emit}" for r in ROWS)
    found["intrinsics"] = Exemplar("intrinsics", "what each CUDA function becomes", rows, frozenset())
    return tuple(found.values())


class Ranker:
    """BM25 over names, summaries and texts, and constructs in common, rare ones before common ones."""

    def __init__(self, items: Sequence[Exemplar]):
        import bm25s

        self.items = tuple(items)
        self.index = bm25s.BM25()
        texts = [words(f"{e.name} {e.name} {e.summary} {e.summary} {e.text}") for e in self.items]
        self.index.index(texts, show_progress=False)
        counts = Counter(c for e in self.items for c in e.constructs)
        self.weights = {c: math.log((1 + len(self.items)) / (1 + counts[c])) for c in CONSTRUCTS}

    def search(self, query: str, count: int = 6) -> list[Exemplar]:
        """The best `count`, best first; the order is the same in every run."""
        return [e for score, e in self.ranked(query)[:count] if score > 0]

    def to_show(self, query: str) -> list[Exemplar]:
        """What is shown with a task: the best patterns and the best code of the corpus, where they are near."""
        near = [e for score, e in self.ranked(query) if score >= NEAR]
        patterns = [e for e in near if e.name.startswith("pattern.")][:SHOWN]
        return patterns + [e for e in near if e not in patterns and not e.name.startswith("pattern.")][:SHOWN]

    def ranked(self, query: str) -> list[tuple[float, Exemplar]]:
        known = [w for w in dict.fromkeys(words(query)) if w in self.index.vocab_dict]
        scores = [float(s) for s in self.index.get_scores(known)] if known else [0.0] * len(self.items)
        wanted = constructs_of(query)
        total = [
            (round((1 - SHARE) * s / (s + HALF) + SHARE * self.shared(wanted, e.constructs), 9), e)
            for s, e in zip(scores, self.items, strict=True)
        ]
        return sorted(total, key=lambda found: (-found[0], found[1].name))

    def shared(self, a: frozenset[str], b: frozenset[str]) -> float:
        """Cosine of two sets of constructs, each weighted by how rare it is."""
        both, one, other = (sum(self.weights[c] for c in s) for s in (a & b, a, b))
        return both / math.sqrt(one * other) if both else 0.0


@lru_cache(maxsize=1)
def ranker() -> Ranker:
    return Ranker(exemplars())
