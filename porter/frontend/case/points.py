"""The values at which the sizes of a derived case are verified: by name, narrowed by what the host insists on."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from porter.case import expressions
from porter.case.expressions import ExprError, Value
from porter.frontend.host import terms
from porter.frontend.host.terms import Term

# Values to verify a size at, by what its name says. Tails that divide nothing are among them.
SIZES: tuple[tuple[str, tuple[int, ...]], ...] = (
    (r"experts?$", (8, 60)),
    (r"top_?k$|^k$", (1, 2, 8)),
    (r"(token|row|batch|seq|slot)", (0, 1, 7, 33)),
    (r"(head_dim|head_size|rot)", (64, 128)),
    (r"heads?$", (4,)),
    (r"group|block", (128,)),
    (r"(hidden|dim|col|width|size|vocab|^d$|^n$|^[ck]$)", (64, 100, 768)),
    (r"", (1, 32, 100)),
)
_MORE = (1, 2, 3, 4, 8, 16, 32, 64, 96, 128, 256, 512, 768, 1024, 2048, 4096, 8192)
_MOST_VALUES = 4
_MOST_TRIED = 1500
_FEW = 4  # points that a search by chance has to find, else sizes are changed one by one
_MOST_ELEMENTS = 1 << 20  # of all buffers at a point: what the emulator runs in seconds


@dataclass(frozen=True)
class Wanted:
    """A size to find values for. `fixed`: it can have no others; `within`: it can have these as well, and no others."""

    name: str
    values: tuple[int, ...] = ()
    fixed: bool = False
    within: tuple[int, ...] = ()


@dataclass(frozen=True)
class Points:
    """Values of each size; `shapes` are the only combinations, where not every one is allowed."""

    values: dict[str, tuple[int, ...]]
    shapes: tuple[dict[str, int], ...] = ()


def by_name(name: str) -> tuple[int, ...]:
    return next(values for pattern, values in SIZES if re.search(pattern, name.lower()))


def numbers_beside(term: Term, key: str) -> set[int]:
    """Constants that a symbol is compared with or divided by in a term."""
    found: set[int] = set()
    parts = term.parts
    if len(parts) == 2:
        for a, b in (parts, parts[::-1]):
            if key in terms.symbols(a) and b.value is not None and not b.real:
                found.add(int(b.value))
    if term.op in ("min", "max"):
        found |= {int(p.value) for p in parts if p.value is not None and not p.real}
    for p in parts:
        found |= numbers_beside(p, key)
    return found


def choose_points(
    sizes: Sequence[Wanted],
    holds: Callable[[Mapping[str, int]], bool],
    covers: Sequence[Callable[[Mapping[str, int]], bool]],
    beside: Mapping[str, set[int]],
    cost: Callable[[Mapping[str, int]], int] = lambda _: 0,
    score: Callable[[Mapping[str, int]], int] = lambda _: 0,
) -> Points | None:
    """Values of every size such that `holds` is true and each of `covers` holds at some point; None: none were found.

    `beside` are the constants that each size meets in the launcher: limits of its branches and divisors. `cost` is the
    number of elements at a point, `score` how much of what has to hold there does.
    """
    names = [s.name for s in sizes]
    first = {s.name: s.values or by_name(s.name) for s in sizes}
    first = _smaller(sizes, first, cost)
    if _all_hold(names, first, holds, covers, cost):
        return Points(dict(first))
    wide: dict[str, tuple[int, ...]] = {}
    for s in sizes:
        if s.fixed or s.within:
            wide[s.name] = tuple(dict.fromkeys((*s.values, *s.within)))
            continue
        near = {v for c in beside.get(s.name, ()) for v in (c, c - 1, c + 1, 2 * c, c // 2) if 0 < v <= 1 << 20}
        wide[s.name] = tuple(dict.fromkeys((*first[s.name], *sorted(near), *_MORE)))
    good = _search(names, wide, holds, cost)
    if len(good) < _FEW:
        open_ = [s.name for s in sizes if not s.fixed]
        free = frozenset(s.name for s in sizes if not s.fixed and not s.within)
        good += _climbed(open_, free, wide, first, holds, cost, score)
    if not good:
        return None
    chosen: list[dict[str, int]] = []
    for cover in covers:
        if not any(cover(p) for p in chosen):
            fit = [p for p in good if cover(p)]
            if fit:
                chosen.append(min(fit, key=cost))
    chosen = _spread(names, good, chosen, first)
    values = {n: tuple(sorted({p[n] for p in chosen})) for n in names}
    if _all_hold(names, values, holds, covers, cost):
        return Points(values)
    return Points(values, tuple(chosen))


def _smaller(
    sizes: Sequence[Wanted], values: dict[str, tuple[int, ...]], cost: Callable[[Mapping[str, int]], int]
) -> dict[str, tuple[int, ...]]:
    """The values without the largest ones, as long as all of them together are too many elements."""
    values = dict(values)
    while cost({n: max(v) for n, v in values.items() if v}) > _MOST_ELEMENTS:
        open_ = [s.name for s in sizes if not s.fixed and len(values[s.name]) > 1]
        if not open_:
            break
        largest = max(open_, key=lambda n: (len(values[n]) > 2, max(values[n])))
        values[largest] = tuple(v for v in values[largest] if v != max(values[largest]))
    return values


def _all_hold(
    names: Sequence[str],
    values: Mapping[str, tuple[int, ...]],
    holds: Callable[[Mapping[str, int]], bool],
    covers: Sequence[Callable[[Mapping[str, int]], bool]],
    cost: Callable[[Mapping[str, int]], int],
) -> bool:
    total = 1
    for n in names:
        total *= len(values[n])
    if total > _MOST_TRIED:
        return False
    points = [dict(zip(names, c, strict=True)) for c in itertools.product(*(values[n] for n in names))]
    if not all(holds(p) and cost(p) <= _MOST_ELEMENTS for p in points):
        return False
    return all(any(cover(p) for p in points) for cover in covers)


def _search(
    names: Sequence[str],
    values: Mapping[str, tuple[int, ...]],
    holds: Callable[[Mapping[str, int]], bool],
    cost: Callable[[Mapping[str, int]], int],
) -> list[dict[str, int]]:
    total = 1
    for n in names:
        total *= len(values[n])
    draw = random.Random(0)
    if total <= _MOST_TRIED:
        tried = [dict(zip(names, c, strict=True)) for c in itertools.product(*(values[n] for n in names))]
    else:
        tried = [{n: draw.choice(values[n]) for n in names} for _ in range(_MOST_TRIED)]
    return [p for p in tried if holds(p) and cost(p) <= _MOST_ELEMENTS]


def _climbed(
    open_: Sequence[str],
    free: frozenset[str],
    wide: Mapping[str, tuple[int, ...]],
    first: Mapping[str, tuple[int, ...]],
    holds: Callable[[Mapping[str, int]], bool],
    cost: Callable[[Mapping[str, int]], int],
    score: Callable[[Mapping[str, int]], int],
) -> list[dict[str, int]]:
    """Points found by changing one size at a time for the better: sizes that are multiples of others are seldom drawn.

    A size may become a product of others, as the width of a row is of heads and their width.
    """
    draw = random.Random(1)
    good: list[dict[str, int]] = []
    left = _MOST_TRIED

    def better(point: dict[str, int], name: str) -> dict[str, int]:
        nonlocal left
        others = [point[n] for n in point if n != name and 1 < point[n] <= 4096]
        products = {a * b for a, b in itertools.combinations(others, 2)} | {k * a for a in others for k in (1, 2, 3)}
        products |= {a * b * c for a, b, c in itertools.combinations(others[:6], 3)}
        values = dict.fromkeys((point[name], *wide[name]))
        if name in free:
            values |= dict.fromkeys(sorted(p for p in products if p <= 1 << 16))
        tried = [{**point, name: v} for v in values]
        left -= len(tried)
        return max(tried, key=lambda p: (score(p), -(cost(p) > _MOST_ELEMENTS)))

    while left > 0 and len(good) < _FEW:
        point = {n: draw.choice(first[n] or wide[n]) for n in wide}
        before = -1
        while before < (now := score(point)) and left > 0:
            if holds(point) and cost(point) <= _MOST_ELEMENTS:
                good.append(dict(point))
                break
            before = now
            for name in draw.sample(list(open_), len(open_)):
                point = better(point, name)
                if left <= 0:
                    break
        else:
            if holds(point) and cost(point) <= _MOST_ELEMENTS:
                good.append(dict(point))
    near = [{**p, n: v} for p in good for n in open_ for v in (*first[n], 2 * p[n]) if v != p[n]][:_MOST_TRIED]
    return [*good, *(p for p in near if holds(p) and cost(p) <= _MOST_ELEMENTS)]


def _spread(
    names: Sequence[str], good: list[dict[str, int]], chosen: list[dict[str, int]], first: Mapping[str, tuple[int, ...]]
) -> list[dict[str, int]]:
    """A few more points that show other values of every size, those of the first choice before others."""
    most = max(6, len(chosen) + 2)
    seen = {(n, p[n]) for p in chosen for n in names}
    left = sorted(good, key=lambda p: (sum(p[n] not in first[n] for n in names), sum(p.values())))[:600]
    while left and len(chosen) < most:
        best = max(left, key=lambda p: sum((n, p[n]) not in seen for n in names))
        if all((n, best[n]) in seen for n in names):
            break
        chosen.append(best)
        seen |= {(n, best[n]) for n in names}
        left.remove(best)
    for n in names:  # of each size a few values
        kept = sorted({p[n] for p in chosen})
        if len(kept) > 2 * _MOST_VALUES:
            chosen = [p for p in chosen if p[n] in kept[: 2 * _MOST_VALUES]]
    return chosen


def value_of(text: str, names: Mapping[str, Value]) -> Value | None:
    """A case expression at a point, None where it has no value there."""
    try:
        return expressions.evaluate(text, names)
    except ExprError:
        return None
