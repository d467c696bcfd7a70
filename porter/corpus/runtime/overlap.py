"""Whether tensors share memory: what operations refuse, by addresses and strides.

Tensors are apart if their ranges of addresses are, or if they lie side by side at equal distances, as q and k in rows
of one packed tensor do: then rows are compared, modulo their distance, and within them heads again. What interleaves
at different distances counts as overlapping, although its elements may happen to be apart.
`porter.corpus.runtime.overlap_check` compiles the same rule into launch functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from porter.corpus.runtime.overlap_check import Pair

Dims = Sequence[tuple[int, int]]  # (length, distance in bytes), the largest distance first


def refuse(name: str, args: Sequence[tuple[str, Any]], written: Sequence[str], in_place: Sequence[str]) -> None:
    """Raise ValueError if a tensor that is written shares memory with another one, or with itself.

    `args`: names and values, those that are no tensors among them. `in_place`: what `written[0]` may be exactly.
    """
    tensors = [(n, t) for n, t in args if hasattr(t, "data_ptr") and t.numel() and t.device.type != "meta"]
    for at, (a, x) in enumerate(tensors):
        if a in written and not _apart_in_itself(dims(x), x.element_size()):
            raise ValueError(f"{name}: elements of {a} share memory: it has strides {tuple(x.stride())}")
        for b, y in tensors[at + 1 :]:
            if a not in written and b not in written:
                continue
            exactly = (a == written[0] and b in in_place) or (b == written[0] and a in in_place)
            if apart(x, y) or (exactly and same(x, y)):
                continue
            low, high = max(x.data_ptr(), y.data_ptr()), min(_end(x), _end(y))
            first, other = (a, b) if a in written else (b, a)
            else_ = f", or must be exactly {other}" if exactly else ""
            raise ValueError(
                f"{name}: {a} and {b} overlap: both reach from address {low:#x} to {high:#x}; {first} needs memory "
                f"of its own{else_}"
            )


def checked_launch(launch: Callable[..., None], pairs: Sequence[Pair]) -> Callable[..., None]:
    """A launch function with the check in front of it, for a CuTeDSL that did not take it into its own."""

    def call(*args: Any) -> None:
        for pair in pairs:
            x, y = args[pair.a], args[pair.b]
            if x is None or y is None or (pair.a != pair.b and (apart(x, y) or (pair.exactly and same(x, y)))):
                continue
            if pair.a != pair.b or not _apart_in_itself(dims(x), x.element_size()):
                raise ValueError(f"arguments {pair.a} and {pair.b} overlap")
        launch(*args)

    return call


def same(x: Any, y: Any) -> bool:
    """Whether two tensors are the same elements in the same order."""
    return (
        x.data_ptr() == y.data_ptr()
        and x.shape == y.shape
        and x.element_size() == y.element_size()
        and all(n <= 1 or s == t for n, s, t in zip(x.shape, x.stride(), y.stride(), strict=True))
    )


def apart(x: Any, y: Any) -> bool:
    """Whether the rule above finds that two tensors, neither of them empty, share no memory."""
    return _apart(y.data_ptr() - x.data_ptr(), dims(x), x.element_size(), dims(y), y.element_size())


def dims(t: Any) -> list[tuple[int, int]]:
    """The dimensions of a tensor that matter to where it lies: those that can be seen as one are one."""
    size = t.element_size()
    found: list[tuple[int, int]] = []
    for n, s in sorted(zip(t.shape, t.stride(), strict=True), key=lambda d: d[1]):
        if n == 1:
            continue
        if found and found[-1][0] * found[-1][1] == s * size:
            n, s = n * found[-1][0], found.pop()[1] // size
        found.append((n, s * size))
    return found[::-1]


def extent(dims: Dims, size: int) -> int:
    """Bytes from the first to the last."""
    return sum((n - 1) * s for n, s in dims) + size


def _apart(distance: int, a: Dims, a_size: int, b: Dims, b_size: int) -> bool:
    """Of something at 0 and something at `distance` bytes."""
    if distance >= extent(a, a_size) or -distance >= extent(b, b_size):
        return True
    if not a or not b or a[0][1] != b[0][1]:
        return False
    period = a[0][1]
    if max(extent(a[1:], a_size), extent(b[1:], b_size)) > period:
        return False
    rest = distance % period
    return all(_apart(d, a[1:], a_size, b[1:], b_size) for d in (rest, rest - period))


def _apart_in_itself(dims: Dims, size: int) -> bool:
    return all(s >= extent(dims[i + 1 :], size) for i, (_, s) in enumerate(dims))


def _end(t: Any) -> int:
    return t.data_ptr() + extent(dims(t), t.element_size())
