"""Times an original and its port on a device: cold and warm graphs, a chain with neighbours, the host's cost. No torch.

Runs in the GPU child process. What the graphs hold and how rounds are counted is porter.verify.backends.timing's.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from porter.case.reader import LaunchShape
from porter.verify.backends.gpu_driver import Device, Graph
from porter.verify.backends.gpu_work import BufferPointer, Image, KernelCall
from porter.verify.backends.timing import (
    CALLS,
    MOST_ROUNDS,
    ROUNDS,
    SPREAD,
    Timing,
    cold_rotation,
    interleave,
    warm_calls,
)

SIDES = ("original", "port")
TOUCH_BLOCKS, TOUCH_THREADS = 1056, 256


@dataclass(frozen=True)
class Neighbours:
    """Cubins beside the two sides: a kernel that does nothing; one that reads and rewrites (pointer, count of
    16 bytes)."""

    empty: bytes = field(repr=False)
    empty_entry: str
    touch: bytes = field(repr=False)
    touch_entry: str


@dataclass(frozen=True)
class TimingJob:
    """Both sides at one point. Their calls point to the same buffers, `images`, by number.

    nbytes: what has to move, for the copy. restored: buffers that a call changes, set back before each replay. once: a
    second call on the same bytes would do something else, so a set serves one call a replay. read, written: buffers
    that the producer writes and the consumer reads.
    pdl: both sides wait for what they depend on (griddepcontrol), so that they may start early.
    """

    original: KernelCall
    port: KernelCall
    images: tuple[Image, ...]
    nbytes: int
    neighbours: Neighbours
    restored: tuple[int, ...] = ()
    once: bool = False
    read: int | None = None
    written: int | None = None
    pdl: bool = False
    rounds: int = ROUNDS
    most: int = MOST_ROUNDS
    spread: float = SPREAD
    seconds: float = 10.0  # each kind of timing stops asking for rounds after this long


@dataclass(frozen=True)
class TimingAnswer:
    """A Timing for each kind that was done ("graph_cold", "graph_warm", "chain", "chain_pdl"); why others were not."""

    timings: dict[str, Timing] = field(default_factory=dict)
    not_done: dict[str, str] = field(default_factory=dict)
    host_us: dict[str, float] = field(default_factory=dict)
    sets: int = 0
    calls: int = 0
    error: str = ""
    fault: str = ""


class _Bench:
    """The buffer sets of a job on the device, and the launches over them."""

    def __init__(self, device: Device, job: TimingJob):
        self.device, self.job = device, job
        self._owned: list[int] = []
        self._graphs: list[Graph] = []
        set_bytes = sum(i.nbytes for i in job.images)
        self.rotation = cold_rotation(set_bytes, device.facts.l2_bytes, device.free_bytes(), once=job.once)
        self.sets = [[self._new(i.nbytes) for i in job.images] for _ in range(self.rotation.sets)]
        for base, image in zip(self.sets[0], job.images, strict=True):
            for offset, data in image.segments:
                device.upload(base + offset, data)
        self.pristine = {n: self._new(job.images[n].nbytes) for n in job.restored}
        for n, base in self.pristine.items():
            device.copy(base, self.sets[0][n], job.images[n].nbytes)
        for other in self.sets[1:]:
            for source, target, image in zip(self.sets[0], other, job.images, strict=True):
                device.copy(target, source, image.nbytes)
        self.sweep_bytes = 2 * device.facts.l2_bytes
        self.sweep_block = self._new(self.sweep_bytes)
        self.variables = [
            (
                device.variable(c.cubin, v.symbol, v.nbytes),
                self.sets[0][v.buffer] + job.images[v.buffer].origin,
                v.nbytes,
            )
            for c in self._calls().values()
            for v in c.variables
        ]
        self._fill_variables()
        self.functions = {name: device.function(c.cubin, c.entry) for name, c in self._calls().items()}
        near = job.neighbours
        self.empty = device.function(near.empty, near.empty_entry)
        self.touch = device.function(near.touch, near.touch_entry)
        device.synchronize()

    def _calls(self) -> dict[str, KernelCall]:
        return {"original": self.job.original, "port": self.job.port}

    def _new(self, nbytes: int) -> int:
        self._owned.append(self.device.allocate(nbytes))
        return self._owned[-1]

    def launch(self, side: str, number: int, pdl: bool = False) -> Callable[[], None]:
        """One side on the buffers of a set."""
        call, bases = self._calls()[side], self.sets[number]
        arguments = [
            (bases[a.buffer] + self.job.images[a.buffer].origin).to_bytes(8, "little")
            if isinstance(a, BufferPointer)
            else a
            for a in call.arguments
        ]
        return self.functions[side].prepare(call.shape, arguments, pdl)

    def nothing(self) -> Callable[[], None]:
        """An empty kernel in the original's grid."""
        shape = self.job.original.shape
        return self.empty.prepare(LaunchShape(shape.grid, shape.block), [])

    def touches(self, buffer: int, number: int, pdl: bool = False) -> Callable[[], None]:
        """A kernel that reads and rewrites a buffer of a set: the neighbour that makes or uses it."""
        image = self.job.images[buffer]
        address = self.sets[number][buffer] + image.origin
        quads = max(0, image.nbytes - 2 * image.origin) // 16
        arguments = [address.to_bytes(8, "little"), quads.to_bytes(4, "little")]
        return self.touch.prepare(LaunchShape((TOUCH_BLOCKS, 1, 1), (TOUCH_THREADS, 1, 1)), arguments, pdl)

    def restore(self) -> None:
        for n, source in self.pristine.items():
            for bases in self.sets:
                self.device.copy(bases[n], source, self.job.images[n].nbytes)
        self._fill_variables()

    def _fill_variables(self) -> None:
        """Module variables as they are at the start: one of each, whichever set of buffers a call works on."""
        for target, source, nbytes in self.variables:
            self.device.copy(target, source, nbytes)

    def sweep(self) -> None:
        self.restore()
        self.device.fill(self.sweep_block, 1, self.sweep_bytes)

    def graph(self, calls: Sequence[Callable[[], None]], timed: int = 0) -> Graph:
        self._graphs.append(self.device.capture(calls, timed))
        return self._graphs[-1]

    def timing(self, graphs: Mapping[str, Graph], before: Callable[[], None] | None) -> Timing:
        job = self.job
        replays = {name: _replay(graph, before) for name, graph in graphs.items()}
        return interleave(replays, "original", job.rounds, job.most, job.spread, job.seconds)

    def close(self) -> None:
        for graph in self._graphs:
            graph.destroy()
        for address in self._owned:
            self.device.free(address)


def _replay(graph: Graph, before: Callable[[], None] | None) -> Callable[[], float]:
    return lambda: graph.replay_us(before)


def time_job(device: Device, job: TimingJob) -> TimingAnswer:
    """All kinds of timing of one point. Raises GpuError when a kernel faults."""
    bench = _Bench(device, job)
    timings: dict[str, Timing] = {}
    not_done: dict[str, str] = {}
    for side in SIDES:  # loads both, so that a capture does not have to; and shows a fault before anything is timed
        bench.restore()
        bench.launch(side, 0)()
        device.synchronize()
    bench.nothing()()
    timings["graph_cold"] = bench.timing(_cold(bench), bench.sweep)
    if job.once:
        not_done["graph_warm"] = "a call uses up or changes what the next one would start from"
    else:
        graphs = _warm(bench, timings["graph_cold"].median("original"))
        timings["graph_warm"] = bench.timing(graphs, bench.restore if job.restored else None)
    if job.read is None or job.written is None:
        not_done["chain"] = "no buffer is read, or none is written"
    else:
        timings["chain"] = bench.timing(_chain(bench, job.read, job.written, False), bench.restore)
        if job.pdl:
            timings["chain_pdl"] = bench.timing(_chain(bench, job.read, job.written, True), bench.restore)
        else:
            not_done["chain_pdl"] = "only one side waits with griddepcontrol, or neither"
    bench.restore()
    host = {} if job.once else {side: _host_us(device, bench.launch(side, 0)) for side in SIDES}
    rotation = bench.rotation
    bench.close()
    return TimingAnswer(timings, not_done, host, rotation.sets, rotation.calls)


def _cold(bench: _Bench) -> dict[str, Graph]:
    """Both sides over all sets, and a copy of as many bytes."""
    rotation, device = bench.rotation, bench.device
    graphs = {}
    for side in SIDES:
        launches = [bench.launch(side, n) for n in range(rotation.sets)]
        graphs[side] = bench.graph([launches[i % rotation.sets] for i in range(rotation.calls)])
    half = max(bench.job.nbytes // 2, 16)
    source, target = (bench._new(half * rotation.sets) for _ in range(2))

    def copy(n: int) -> Callable[[], None]:
        return lambda: device.copy(target + n * half, source + n * half, half)

    graphs["copy"] = bench.graph([copy(i % rotation.sets) for i in range(rotation.calls)])
    return graphs


def _warm(bench: _Bench, us: float) -> dict[str, Graph]:
    """Both sides on one set again and again, and an empty kernel in the same grid."""
    calls = warm_calls(us)
    graphs = {side: bench.graph([bench.launch(side, 0)] * calls) for side in SIDES}
    graphs["empty"] = bench.graph([bench.nothing()] * calls)
    return graphs


def _chain(bench: _Bench, read: int, written: int, pdl: bool) -> dict[str, Graph]:
    """Producer, kernel, consumer, over all sets; the time is of the three together."""
    graphs = {}
    count = max(bench.rotation.sets, 1)
    chains = count if bench.job.once else max(count, CALLS)
    for side in SIDES:
        calls: list[Callable[[], None]] = []
        for n in range(chains):
            at = n % count
            calls += [bench.touches(read, at), bench.launch(side, at, pdl), bench.touches(written, at, pdl)]
        graphs[side] = bench.graph(calls, timed=chains)
    return graphs


def _host_us(device: Device, launch: Callable[[], None], calls: int = 200, batches: int = 5) -> float:
    """Host microseconds of a launch through cuda-bindings, the queue emptied between batches; the median."""
    found = []
    for _ in range(batches):
        device.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            launch()
        found.append((time.perf_counter() - start) * 1e6 / calls)
    device.synchronize()
    return statistics.median(found)
