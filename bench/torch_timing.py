"""Calls on torch tensors as CUDA graphs over rotating sets of inputs, for porter.verify.backends.timing. Needs a
GPU."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from porter.verify.backends.timing import CALLS, Rotation, cold_rotation

Call = Callable[[], Any]


class TorchGraph:
    """Calls captured in one graph. `replay_us` gives microseconds a call."""

    def __init__(self, calls: Sequence[Call]):
        self.calls = len(calls)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for call in calls:
                call()
        self.start, self.stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def replay_us(self, before: Call | None = None) -> float:
        if before is not None:
            before()
        self.start.record()
        self.graph.replay()
        self.stop.record()
        self.stop.synchronize()
        return self.start.elapsed_time(self.stop) * 1e3 / self.calls


class Sweep:
    """Writes over more than the L2 cache, so that what a replay reads comes from memory."""

    def __init__(self, device: Any):
        self.l2 = torch.cuda.get_device_properties(device).L2_cache_size
        self.block = torch.empty(2 * self.l2, dtype=torch.uint8, device=device)

    def __call__(self) -> None:
        self.block.fill_(1)


def rotation_for(moved: int, held: int, l2: int, calls: int = CALLS) -> Rotation:
    """Sets of inputs of which a call moves `moved` bytes, and which take `held` bytes of the device's free memory."""
    free, _ = torch.cuda.mem_get_info()
    return cold_rotation(moved, l2, int(free * moved / max(held, moved, 1)), calls)


def warm_up(call: Call, times: int = 3) -> None:
    """Compile, load and tune whatever the call needs, on a stream of its own as capturing asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(times):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()


def copy_ceiling(device: Any, nbytes: int = 1 << 32, rounds: int = 11) -> float:
    """GB/s of a device copy, reads and writes counted: what a kernel bound by memory can reach.

    Not in a graph: there a copy is a node for the copy engines, which reach two thirds of what kernels do.
    """
    source = torch.zeros(nbytes // 2, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(rounds + 1):
        start.record()
        target.copy_(source)
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1e3)
    return nbytes / statistics.median(times[1:]) / 1e3


def host_us(call: Call, calls: int = 200, batches: int = 5) -> float:
    """Host microseconds of a call that only launches: the median over batches, the queue emptied between them."""
    found = []
    for _ in range(batches):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        found.append((time.perf_counter() - start) * 1e6 / calls)
    torch.cuda.synchronize()
    return round(statistics.median(found), 2)


def grid_of(call: Call) -> tuple[tuple[int, int, int], tuple[int, int, int]] | None:
    """(grid, block) of the first kernel that a call launches, read from a captured graph; None where torch or
    cuda-bindings cannot tell."""
    try:
        from cuda.bindings import driver

        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(graph):
            call()
        handle = driver.CUgraph(graph.raw_cuda_graph())
        _, _, count = driver.cuGraphGetNodes(handle, 0)
        _, nodes, _ = driver.cuGraphGetNodes(handle, count)
        for node in nodes:
            _, kind = driver.cuGraphNodeGetType(node)
            if kind == driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL:
                _, p = driver.cuGraphKernelNodeGetParams(node)
                return (p.gridDimX, p.gridDimY, p.gridDimZ), (p.blockDimX, p.blockDimY, p.blockDimZ)
    except Exception:  # a convenience: without it the grid is taken from the rows
        torch.cuda.synchronize()
    return None
