"""What operations on routed entries share: checks of ids and index vectors, and how a sort is spread."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.rows import check_dtype
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Unsupported
from porter.corpus.runtime.tuning import choose

IDS = ("i32", "i64", "u32")
_LANE_ENTRIES = 8  # that a lane reads at once at most


def check_ids(topk_ids: Any) -> tuple[str, int]:
    """(dtype, how many) of contiguous expert ids. Raises ValueError for others."""
    index = check_dtype("topk_ids", topk_ids, *IDS)
    if not topk_ids.is_contiguous():
        raise ValueError("topk_ids must be contiguous")
    if topk_ids.numel() >= 1 << 31:
        raise ValueError(f"topk_ids holds {topk_ids.numel()} ids, places are 32-bit numbers")
    return index, topk_ids.numel()


def check_int32(name: str, t: Any, length: int | None = None, least: int = 0) -> None:
    """Raise ValueError unless t holds int32 numbers, contiguous: `length` of them, or `least` and more."""
    check_integers(name, t, ("i32",), length, least)


def check_integers(name: str, t: Any, dtypes: tuple[str, ...], length: int | None = None, least: int = 0) -> str:
    """The dtype of t, which must be one of `dtypes`, otherwise as `check_int32`."""
    found = check_dtype(name, t, *dtypes)
    if not t.is_contiguous():
        raise ValueError(f"{name} must be contiguous")
    if length is not None and t.numel() != length:
        raise ValueError(f"{name} holds {t.numel()} numbers, not {length}")
    if t.numel() < least:
        raise ValueError(f"{name} holds {t.numel()} numbers, less than {least}")
    return found


def spread_sort(
    device: Device, op: str, entries: int, bins: int, alone: bool = False, shared: int = 0, **options: Any
) -> Any:  # fmt: skip
    """An ExpertSort by the tuning table or a rule: warps of a block ("warps") and blocks of the cluster ("cluster").

    Entries fill a block first, then a cluster; `alone`: one block sorts all of them. `shared`: bytes of shared memory
    that the kernel needs besides. Raises Unsupported where one warp's counters do not fit.
    """
    from porter.corpus.lib.moe.sorting import ExpertSort, sort_warps

    most = sort_warps(bins, 32, shared)
    if most == 0:
        raise Unsupported(f"counters of {bins} experts do not fit into shared memory")
    clusters = device.capability >= 90 and not alone

    def choice(warps: int, cluster: int) -> dict[str, int]:
        return {"warps": min(warps, most), "cluster": cluster}

    def candidates() -> list[dict[str, int]]:
        return [choice(w, c) for w in (4, 8, 16, 32) if w <= most for c in ((1, 2, 4, 8) if clusters else (1,))]

    warps = 4
    while warps < 32 and warps * 64 < entries:
        warps *= 2
    cluster = 1
    while clusters and cluster < 8 and cluster * warps * 128 < entries:
        cluster *= 2
    found = choose(device, op, f"{bins}", entries, choice(warps, cluster), candidates)
    lanes = found["warps"] * found["cluster"] * 32
    unroll = 1
    while unroll < _LANE_ENTRIES and unroll * lanes < entries:
        unroll *= 2
    return ExpertSort(bins, warps=found["warps"], cluster=found["cluster"], unroll=unroll, **options)
