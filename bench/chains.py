"""Chains of operations that read what the ones before wrote: captured, compared and timed by side."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

import torch

ROUNDS, DISCARDED = 15, 3
ALONE = "gemms"  # the side without operations between its GEMMs
Call = Callable[[], None]


def graph_of(call: Call) -> torch.cuda.CUDAGraph:
    """`call` captured, after it has run three times."""
    from bench.torch_timing import warm_up

    warm_up(call)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


def medians(graphs: Mapping[str, torch.cuda.CUDAGraph], restart: Call, layers: int) -> dict[str, float]:
    """Microseconds a layer of each graph: medians of rounds in which they take turns, each after `restart`."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for turn in range(ROUNDS + DISCARDED):
        for name, graph in graphs.items():
            restart()
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if turn >= DISCARDED:
                times[name].append(begin.elapsed_time(end) * 1e3 / layers)
    return {name: statistics.median(t) for name, t in times.items()}


def summary(us: Mapping[str, float], ours: str = "porter") -> dict[str, Any]:
    """What the operations of each side add to the GEMMs, and ours in parts of what the best other side adds."""
    found: dict[str, Any] = {"us": {name: round(t, 2) for name, t in us.items()}}
    added = {name: t - us[ALONE] for name, t in us.items() if name != ALONE}
    found["added_us"] = {name: round(t, 2) for name, t in added.items()}
    others = [name for name in added if name != ours]
    if ours in added and others:
        best = min(others, key=added.__getitem__)
        found["best"] = best
        found["added_ratio"] = round(added[ours] / added[best], 3) if added[best] > 0 else None
        found["layer_ratio"] = round(us[ours] / us[best], 3)
    return found


def row_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest relative error of a row, in the Euclidean norm; infinite where a number is not finite."""
    f, e = found.float(), expected.float()
    if not bool(torch.isfinite(f).all()):
        return float("inf")
    lengths = torch.linalg.vector_norm(e, dim=-1).clamp_min(1e-12)
    return float((torch.linalg.vector_norm(f - e, dim=-1) / lengths).max())
