"""What a plan works out about tensors seen as rows: views, widths of accesses, and what a tuning table may choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from porter.corpus.runtime.device import Device
from porter.corpus.runtime.dtypes import dtype, name_of
from porter.corpus.runtime.ops import Unsupported
from porter.corpus.runtime.tuning import choose

ACCESS_BYTES = 16
_MOST_ACCESSES = 16  # a thread: more do not stay in registers


def row_dimensions(tensors: Sequence[tuple[str, Any]]) -> tuple[int, int]:
    """(rows, inner) for tensors of one shape whose last dimension is contiguous.

    With inner 1 all leading dimensions of every tensor can be seen as one; otherwise as two of which the second has
    length `inner`. Raises ValueError for different shapes, and Unsupported where not even two are enough.
    """
    name0, first = tensors[0]
    if first.dim() < 1:
        raise ValueError(f"{name0} has no dimension")
    for name, t in tensors:
        if t.shape != first.shape:
            raise ValueError(f"{name} has shape {tuple(t.shape)}, {name0} {tuple(first.shape)}")
        if t.shape[-1] > 1 and t.stride(-1) != 1:
            raise ValueError(f"the last dimension of {name} must be contiguous, it has stride {t.stride(-1)}")
    leading = tuple(first.shape[:-1])
    rows = 1
    for length in leading:
        rows *= length
    if all(_mergeable(t, 0, len(leading)) for _, t in tensors):
        return rows, 1
    for split in range(len(leading) - 1, 0, -1):
        if all(_mergeable(t, 0, split) and _mergeable(t, split, len(leading)) for _, t in tensors):
            inner = 1
            for length in leading[split:]:
                inner *= length
            return rows, inner
    raise Unsupported(f"{name0} has strides {first.stride()}: its rows are not evenly spaced")


def _mergeable(t: Any, start: int, stop: int) -> bool:
    """Whether dimensions start..stop of t are at even distances, so that they can be seen as one."""
    dims = [(t.shape[i], t.stride(i)) for i in range(start, stop) if t.shape[i] != 1]
    return all(outer[1] == inner[0] * inner[1] for outer, inner in pairwise(dims))


def as_rows(t: Any, inner: int) -> Any:
    """The (rows, length) view, or (rows / inner, inner, length)."""
    shape = (-1, t.shape[-1]) if inner == 1 else (-1, inner, t.shape[-1])
    return t if tuple(t.shape[-len(shape) + 1 :]) == shape[1:] and t.dim() == len(shape) else t.view(shape)


def as_heads(name: str, t: Any, length: int) -> Any:
    """The (T, heads, length) view of a (..., heads, length) or (T, heads * length) tensor. Raises ValueError for
    others, Unsupported where the leading dimensions are not evenly spaced."""
    if t.dim() >= 2 and t.shape[-1] > 1 and t.stride(-1) != 1:
        raise ValueError(f"the last dimension of {name} must be contiguous, it has stride {t.stride(-1)}")
    if t.dim() == 2 and length and t.shape[1] % length == 0:
        return t.view(t.shape[0], t.shape[1] // length, length)
    if t.dim() < 3 or t.shape[-1] != length:
        raise ValueError(f"{name} has shape {tuple(t.shape)}: neither (T, heads, {length}) nor (T, heads * {length})")
    if not _mergeable(t, 0, t.dim() - 2):
        raise Unsupported(f"{name} has strides {t.stride()}: its tokens are not evenly spaced")
    return t if t.dim() == 3 else t.flatten(0, -3)


def access_width(
    length: int, tensors: Sequence[Any], vectors: Sequence[Any] = (), most: int = ACCESS_BYTES
) -> int:  # fmt: skip
    """Elements of one access: the largest power of two that divides the row and every stride, to whose bytes every
    address is aligned, and that takes at most `most` bytes in every tensor. `vectors` (weights, None for none) may take
    several accesses of 16 bytes.
    """
    vec, present = 1, [v for v in vectors if v is not None]
    while (
        length % (vec * 2) == 0
        and all(_takes(t, vec * 2, most) for t in tensors)
        and all(v.data_ptr() % min(ACCESS_BYTES, vec * 2 * v.element_size()) == 0 for v in present)
    ):
        vec *= 2
    return vec


def widest_access(device: Device, rows: int) -> int:
    """Bytes of an access of element-wise work: 32 on Blackwell where there are many rows, else 16. (Few rows start
    sooner with more threads; vLLM draws the line there too.)"""
    return 2 * ACCESS_BYTES if device.capability >= 100 and rows > 128 else ACCESS_BYTES


def _takes(t: Any, vec: int, most: int) -> bool:
    size = t.element_size()
    aligned = t.data_ptr() % (vec * size) == 0
    strided = any(t.stride(i) % vec for i in range(t.dim() - 1) if t.shape[i] > 1)
    return vec * size <= most and aligned and not strided


def threads_of_row(length: int, vec: int, accesses: int) -> int:
    """Threads that read a row in about so many accesses each: a power of two below a warp, else whole warps."""
    vectors = -(-length // vec)
    accesses = max(accesses, -(-vectors // 1024))
    if accesses > _MOST_ACCESSES:
        raise Unsupported(f"rows of {length} elements in accesses of {vec} do not fit into a block's registers")
    threads = -(-vectors // accesses)
    if threads <= 32:
        return 1 << (threads - 1).bit_length()
    return -(-threads // 32) * 32


@dataclass(frozen=True)
class RowSpread:
    """How rows are spread over threads. prefetch: what is prefetched into L2 while the previous kernel still runs:
    "none", "weight", "rows" or "all"; rows in the first `prefetch_blocks` blocks, or in all if that is 0.
    prefetch_distance: how many rows further on a block prefetches one into L2 while it waits for its own."""

    threads: int
    rows: int
    prefetch: str
    prefetch_distance: int = 0
    prefetch_blocks: int = 0


def spread_rows(
    device: Device,
    op: str,
    dtype: str,
    rows: int,
    length: int,
    vec: int,
    prefetches_ahead: bool = False,
    wanted: int = 180,
    most: int = 4,
) -> RowSpread:
    """The tuning table's choice, or: few rows get as many threads as leave two accesses each; many rows about `wanted`
    threads of up to `most` accesses, and the blocks that start early prefetch their rows. (Fitted to what the tuner
    found on an H200: six warps, less where codes are written, one access where there are two inputs.)

    `prefetches_ahead`: whether the kernel has a `prefetch_distance`.
    """
    few = rows <= device.sm_count
    vectors = -(-length // vec)
    accesses = min(2, -(-vectors // 256)) if few else min(most, max(1, round(vectors / wanted)))
    threads = threads_of_row(length, vec, accesses)
    if vectors <= 128 and not few:  # a warp and less: fewer lanes leave each more to do
        threads = threads_of_row(length, vec, 4)
    per_block = max(1, 32 // threads)
    while per_block * threads < 128 and threads <= 32 and rows > per_block * 2 * device.sm_count:
        per_block *= 2
    default: dict[str, Any] = {"threads": threads, "rows": per_block, "prefetch": "all", "prefetch_blocks": 0}
    if not few:
        default |= {"prefetch": "rows", "prefetch_blocks": device.early_blocks(threads * per_block)}
    if prefetches_ahead:
        default["prefetch_distance"] = 3 * device.sm_count if rows >= 4 * device.sm_count else 0
    question = f"{dtype}x{vec} {length}"
    return RowSpread(
        **choose(device, op, question, rows, default, lambda: _candidates(device, rows, length, vec, prefetches_ahead))
    )


def _candidates(device: Device, rows: int, length: int, vec: int, prefetches_ahead: bool) -> list[dict[str, Any]]:
    several = rows >= 4 * device.sm_count
    found: list[dict[str, Any]] = []
    for accesses in (1, 2, 3, 4, 5, 6, 7, 8):
        try:
            threads = threads_of_row(length, vec, accesses)
        except Unsupported:
            continue
        alone = max(1, 32 // threads)
        most = 8 if threads <= 64 else 1  # times as many rows a block, where they are short
        for per_block in (n * alone for n in (1, 2, 4, 8) if n <= most and (n == 1 or rows >= n * device.sm_count)):
            here = {"threads": threads, "rows": per_block}
            early = {"prefetch": "rows", "prefetch_blocks": device.early_blocks(threads * per_block)}
            if not several:
                found += [here | {"prefetch": p, "prefetch_blocks": 0} for p in ("none", "weight", "all")]
                continue
            prefetches = [{"prefetch": "none", "prefetch_blocks": 0}, early]
            found += [here | p for p in prefetches]
            if prefetches_ahead and per_block == alone:
                distances = [n * device.sm_count for n in (2, 3, 5, 8) if n * device.sm_count < rows]
                found += [here | p | {"prefetch_distance": n} for n in distances for p in prefetches]
    return list({tuple(c.items()): c for c in found}.values())


def check_vector(name: str, t: Any, length: int) -> None:
    """Raise ValueError unless t is a contiguous vector of `length` elements."""
    if tuple(t.shape) != (length,):
        raise ValueError(f"{name} has shape {tuple(t.shape)}, the rows imply ({length},)")
    if not t.is_contiguous():
        raise ValueError(f"{name} must be contiguous")


def check_dtype(name: str, t: Any, *names: str) -> str:
    """The scalar name of t's dtype; raises ValueError unless it is one of `names`."""
    found = name_of(t.dtype)
    if found not in names:
        raise ValueError(
            f"{name} has dtype {t.dtype}, the kernel takes {', '.join(dtype(n).torch or n for n in names)}"
        )
    return found


def check_scalar(name: str, t: Any) -> None:
    """Raise ValueError unless t holds one float32."""
    check_dtype(name, t, "f32")
    if t.numel() != 1:
        raise ValueError(f"{name} must hold one number, it has shape {tuple(t.shape)}")


def flat_scalar(t: Any) -> Any:
    """The (1,) view of a tensor of one number; None for None."""
    return None if t is None else t.view(1)
