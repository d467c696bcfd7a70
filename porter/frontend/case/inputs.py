"""What buffers are filled with: by what the kernel does with them, else a guess by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from porter.frontend.case.body import Body
from porter.frontend.case.derived import DerivedBuffer, DerivedSize

_FREE_RANGE = (8, 33)
_ANY = "1000"  # whole numbers that are no index: one past the largest
_BY_NAME: tuple[tuple[str, str], ...] = (
    (r"cos_?sin|freqs_cis", "cos_sin"),
    (r"scales?$|(^|_)scale(_|$)", "scale"),
    (r"(^|_)(var|variance|rstd|inv_?var|inv_?std|sigma|absmax)(_|$)", "positive"),
    (r"logits|gating", "logits"),
)
_FLOATS = ("f16", "bf16", "f32", "f64")
_WIDE = ("i16", "u16", "i32", "u32", "i64", "u64")


@dataclass(frozen=True)
class Filled:
    """Buffers with their distributions, and the free sizes that these brought in."""

    buffers: tuple[DerivedBuffer, ...]
    sizes: tuple[DerivedSize, ...] = ()


def filled(buffers: tuple[DerivedBuffer, ...], body: Body | None, names: frozenset[str]) -> Filled:
    """Distributions of what is read. `names` are those taken in the case; a range that nobody says becomes a size."""
    known = {b.name: b for b in buffers}
    sizes: dict[str, DerivedSize] = {}
    for b in buffers:
        if b.role not in ("in", "inout") or b.dist:
            continue
        if b.dtype in _WIDE:
            known[b.name] = _whole(known, b, body, names, sizes)
        elif b.dtype is None or b.dtype in _FLOATS or b.dtype not in ("i8", "u8", "bool"):
            found = next((d for pattern, d in _BY_NAME if re.search(pattern, b.name.lower())), "")
            if (found and b.dtype in (*_FLOATS, None)) or (found == "scale" and b.dtype in _FLOATS):
                known[b.name] = replace(b, dist=found, dist_from="a guess by its name")
    return Filled(tuple(known[b.name] for b in buffers), tuple(sizes.values()))


def _whole(
    known: dict[str, DerivedBuffer],
    b: DerivedBuffer,
    body: Body | None,
    names: frozenset[str],
    sizes: dict[str, DerivedSize],
) -> DerivedBuffer:
    """Whole numbers: offsets of segments, a permutation, indices in range, or any."""
    uses = body.indexes.get(b.name, ()) if body is not None else ()
    if body is None:
        return replace(b, low="0", high="TODO")

    def free(stem: str, why: str) -> str:
        name = stem if stem not in names and stem not in known else f"{stem}_count"
        sizes.setdefault(name, DerivedSize(name, _FREE_RANGE, f"a guess: {why}", free=True))
        return name

    if b.name in body.offsets:
        high = free(f"{b.name}_total", f"where the last segment of {b.name} ends")
        return replace(b, dist="offsets", high=high, dist_from="read at i and at i + 1")
    scattered = next((u for u in uses if u.scattered), None)
    if scattered is not None and b.role == "in" and b.shape is not None and len(b.shape) == 1:
        target = known.get(scattered.buffer)
        if target is not None and target.shape is None and not scattered.factors:
            known[target.name] = replace(target, shape=b.shape, shape_from=f"{b.name} holds its indices")
        return replace(b, dist="permutation", dist_from=f"where elements of {scattered.buffer} are written")
    if uses:
        use = uses[0]
        target = known.get(use.buffer)
        high = ""
        if target is not None and target.shape is not None and (len(target.shape) == 1 or use.factors):
            high = target.shape[0]
        high = high or free(f"{use.buffer}_rows" if use.factors else f"{use.buffer}_length",
                            f"how far {b.name} may index {use.buffer}")  # fmt: skip
        return replace(b, dist="randint", low="0", high=high, dist_from=f"an index into {use.buffer}")
    return replace(b, low="0", high=_ANY, dist_from="a guess: it is not an index")
