"""The CPU backend: PTX executed by porter.verify.emulator over the host buffers' own memory."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from porter.case.reader import LaunchShape
from porter.verify import emulator as ptx
from porter.verify.backends.interface import ORDINARY, Argument, Build, RunOptions, RunResult, Summed, Violation
from porter.verify.emulator.decode import contraction
from porter.verify.launches.buffers import GUARD_BYTES, HostBuffer

BUDGET = 2_000_000_000  # thread instructions a launch, about; a launch of a verification takes a few million
SECONDS = 10.0  # of CPU time a launch


ALL = 1 << 60  # strong writes: more than any launch makes


class EmulatorBackend:
    """Runs builds on the CPU with every check of the emulator on."""

    name = "emulator"
    checked: tuple[str, ...] = (
        "out-of-bounds", "misaligned", "uninitialised-read", "read-only-write", "shared-race", "global-race",
        "missing-fence", "stale-read", "lockstep", "absent-lane", "skipped-lane", "divergent-barrier", "divergent-sync",
        "deadlock", "early-access",
    )  # fmt: skip

    partly = True  # runs some blocks of a grid, where a launch says so
    fuses = True  # runs a Build with `fused` as it says
    sm_count = 8  # of the emulated GPU: launches that fill the machine stay small
    schedules: tuple[int, ...] = (0, 1, 2)
    more_schedules: tuple[int, ...] = tuple(range(3, 19))  # to find out whether an order is open at all

    def __init__(self, budget: int = BUDGET, stop_after: int = -1, seconds: float = SECONDS) -> None:
        self.budget = budget  # thread-instructions of a launch, about
        self.stop_after = stop_after  # strong writes after which a launch is ended; below zero: none is
        self.seconds = seconds  # CPU time of a launch

    def run(
        self, build: Build, shape: LaunchShape, arguments: Sequence[Argument], options: RunOptions = ORDINARY
    ) -> RunResult:
        """One launch, in place. What the emulator does not model comes back as `error`."""
        start = time.perf_counter()
        try:
            given = [as_argument(a) for a in arguments]
            found, result = self.emulate(build, shape, given, options)
        except ptx.PtxError as error:
            return RunResult(error=str(error), seconds=time.perf_counter() - start)
        taken = time.perf_counter() - start
        sums = {a.name: _summed(a, result.sums[a.name]) for a in arguments
                if isinstance(a, HostBuffer) and a.name in result.sums}  # fmt: skip
        instructions = int(result.counts.get("thread_instructions", 0))
        return RunResult(found, taken, instructions, sums=sums, work=result.work, strong_writes=result.strong_writes)

    def directed(self, build: Build) -> tuple[int, ...]:
        """The schedules beside `schedules` in which the order may matter to this kernel; they are below zero."""
        try:
            orders = ptx.telling_orders(module_of(build.ptx), build.entry)
        except ptx.PtxError:
            return ()
        return tuple(-1 - ptx.DIRECTED.index(order) for order in orders)

    alone = -1 - ptx.DIRECTED.index("alone")  # the schedule in which a block starts when the one before has ended

    def ending(self, work: int = 0, strong_writes: int = ALL) -> EmulatorBackend:
        """A backend that ends each launch after so much work (0: as usual), or after so many strong writes."""
        return EmulatorBackend(max(work, 1) if work else self.budget, strong_writes)

    def emulate(
        self, build: Build, shape: LaunchShape, arguments: Sequence[object], options: RunOptions = ORDINARY
    ) -> tuple[tuple[Violation, ...], ptx.Result]:
        """As `run`, with arguments as ptx.launch takes them and all that it tells. Raises PtxError."""
        module = fused_module(build.ptx, build.entry, build.fused) if build.fused else module_of(build.ptx)
        checks, schedule = options.checks, options.schedule
        switches = ptx.Checks(
            uninitialised=checks, shared_races=checks, global_races=checks, bounds=True, alignment=True,
            fill=options.fill, sums=ptx.adds_floats(module, build.entry),
        )  # fmt: skip
        result = ptx.launch(
            module,
            build.entry,
            shape.grid,
            shape.block,
            arguments,
            smem_bytes=shape.smem,
            cooperative=shape.cooperative,
            cluster=shape.cluster,
            checks=switches,
            seed=max(schedule, 0),
            directed=ptx.DIRECTED[-schedule - 1] if schedule < 0 else "",
            budget=min(build.work or self.budget, self.budget),
            seconds=self.seconds,
            variables=as_variables(options.variables),
            overlapped=shape.use_pdl,
            blocks=shape.only,
            stop_after=self.stop_after,
        )
        return tuple(_violation(v) for v in result.violations), result

    def tapped(
        self,
        build: Build,
        shape: LaunchShape,
        arguments: Sequence[Argument],
        variables: Mapping[str, HostBuffer] | None = None,
    ) -> tuple[ptx.Taps, ptx.Module]:
        """One launch with a record of what its threads did. Raises PtxError."""
        module, taps = module_of(build.ptx), ptx.Taps()
        ptx.launch(
            module, build.entry, shape.grid, shape.block, [as_argument(a) for a in arguments], smem_bytes=shape.smem,
            cooperative=shape.cooperative, cluster=shape.cluster, checks=ptx.Checks(uninitialised=False),
            budget=BUDGET, taps=taps, variables=as_variables(variables),
        )  # fmt: skip
        return taps, module


def _summed(buffer: HostBuffer, sums: ptx.Sums) -> Summed:
    """Sums by the words of `raw`: a buffer that is misaligned on purpose begins some elements into its memory."""
    first = (sums.terms.size - buffer.raw.size) if sums.terms.size >= buffer.raw.size else 0
    return Summed(sums.terms[first:], sums.magnitude[first:], sums.rounding)


@lru_cache(maxsize=64)
def module_of(text: str) -> ptx.Module:
    """The parsed PTX, remembered."""
    return ptx.load(text)


@lru_cache(maxsize=32)
def fused_module(text: str, entry: str, way: contraction.Way) -> ptx.Module:
    """The parsed PTX with its products fused into sums, remembered."""
    return contraction.contracted(module_of(text), entry, way)


def as_argument(value: Argument) -> object:
    """A buffer with its guards left outside, its gaps marked uninitialised; numbers and null as they are."""
    if not isinstance(value, HostBuffer):
        return value
    shift = value.raw.ctypes.data - value.allocation.ctypes.data - GUARD_BYTES if value.raw.size else 0
    if not shift:
        return ptx.Buffer(value.raw, value.name, value.initialised, writable=value.spec.role != "in")
    # misaligned on purpose: the device buffer starts at the aligned byte before, which nobody may read
    whole = value.allocation[GUARD_BYTES : GUARD_BYTES + shift + value.raw.nbytes]
    mask = np.zeros(whole.size, bool)
    mask[shift:] = (
        np.repeat(value.initialised, value.itemsize) if isinstance(value.initialised, np.ndarray) else value.initialised
    )
    return ptx.Buffer(whole, value.name, mask, writable=value.spec.role != "in").at(shift)


def as_variables(given: Mapping[str, HostBuffer] | None) -> dict[str, ptx.Buffer]:
    """Module variables over the host buffers' own memory. What they hold counts as initialised."""
    return {name: ptx.Buffer(b.raw, b.name, True, writable=b.spec.role != "in") for name, b in (given or {}).items()}


def _violation(v: ptx.Violation) -> Violation:
    times = f" ({v.count} times)" if v.count > 1 else ""
    where = "" if v.kind == "budget" else f"; block {v.block}, thread {v.thread}"
    message = f"{v.message}{times}{where}"
    file, line = own_place([v.loc, *v.callers] if v.loc else [])
    return Violation(v.kind, message, file, line, v.ptx_line, v.space)


_LIBRARY = ("/porter/corpus/lib/", "/nvidia/", "/include/cub/", "/include/cuda")


def own_place(places: list[tuple[str, int]]) -> tuple[str, int]:
    """The innermost place in the user's own file; library code is only named when nothing else is known."""
    own = [p for p in places if not any(part in p[0] for part in _LIBRARY)]
    return (own or places or [("", 0)])[0]
