"""The numpy backend: compiles a Program's steps to closures and runs the grid in waves of resident blocks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from porter.verify.emulator.checks.ordering import GPU, LEVELS
from porter.verify.emulator.checks.overlap import EarlyAccess
from porter.verify.emulator.checks.races import RaceChecker
from porter.verify.emulator.checks.taps import Taps
from porter.verify.emulator.checks.traffic import TrafficCounter
from porter.verify.emulator.checks.violations import Checks, Recorder
from porter.verify.emulator.decode.program import (
    Atomic,
    Copy,
    Fence,
    Hint,
    HostCall,
    Load,
    MatrixMove,
    MatrixMultiply,
    Mbarrier,
    Multimem,
    Program,
    Pure,
    Step,
    Store,
    Warp,
)
from porter.verify.emulator.errors import PtxError, PtxSyntaxError, UnsupportedPtx
from porter.verify.emulator.machine.accelerate import Accelerator
from porter.verify.emulator.machine.budget import Budget, OutOfBudget
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.evaluate import Runner, compile_move, compile_pure, guarded
from porter.verify.emulator.machine.hostcalls import compile_hostcall
from porter.verify.emulator.machine.scheduler import Scheduler
from porter.verify.emulator.machine.warps import compile_warp
from porter.verify.emulator.machine.wave import Geometry, Wave
from porter.verify.emulator.memory.access import compile_load, compile_store
from porter.verify.emulator.memory.atomics import compile_atomic
from porter.verify.emulator.memory.buffers import AddressSpace
from porter.verify.emulator.memory.copies import compile_copy
from porter.verify.emulator.memory.mbarriers import compile_mbarrier
from porter.verify.emulator.memory.multimem import compile_multimem
from porter.verify.emulator.ops.numpy_algebra import NumpyAlgebra

WAVE_THREADS = 16384  # registers of a wave this size stay in a core's cache


def _compile_fence(step: Fence) -> Runner:
    level = LEVELS.get(step.scope, GPU)

    def fence(e: Env) -> None:
        for observer in e.wave.sync_observers:
            observer("fence", e.ids, level)

    return fence


def _dependency(e: Env) -> None:
    """griddepcontrol.wait: what the kernel before wrote can be seen from here on."""
    for observer in e.wave.sync_observers:
        observer("dependency", e.ids, 0)


# what operands of types that an instruction does not take make its implementation stumble over
_MISFITS = (IndexError, KeyError, ValueError, TypeError, AttributeError, AssertionError, StopIteration)


def compile_step(step: Step, algebra: NumpyAlgebra, output: list[str], taps: Taps | None = None) -> Runner | None:
    """The closure of one step; None when it does nothing. Raises UnsupportedPtx or PtxSyntaxError."""
    try:
        return _compile(step, algebra, output, taps)
    except PtxError:
        raise
    except _MISFITS as error:
        raise PtxSyntaxError(f"operands or modifiers of {step.source.opcode} do not fit", step.source.line) from error


def _compile(step: Step, algebra: NumpyAlgebra, output: list[str], taps: Taps | None) -> Runner | None:
    run: Runner | None
    match step:
        case Pure(needless=True):
            return None
        case Pure():
            run = compile_move(step) or compile_pure(step, algebra)
        case Load():
            run = compile_load(step)
        case Store():
            run = compile_store(step)
        case Atomic():
            run = compile_atomic(step, algebra)
        case Warp():
            run = compile_warp(step, algebra)
        case Copy():
            run = compile_copy(step)
        case Mbarrier():
            run = compile_mbarrier(step)
        case HostCall():
            run = compile_hostcall(step, output)
        case MatrixMove() | MatrixMultiply():
            from porter.verify.emulator.machine.matrices import compile_matrix

            run = compile_matrix(step, algebra)
        case Multimem():
            run = compile_multimem(step, algebra)
        case Fence():
            run = _compile_fence(step)
        case Hint():
            if not step.waits:
                return None
            run = _dependency
        case _:
            raise UnsupportedPtx(step.source.opcode, step.source.line)
    if taps is not None and run is not None:
        run = taps.wrap(step, run)
    return guarded(step, step.guard, run) if step.guard is not None and run is not None else run


class Grid:
    """Hands out the blocks of a launch: of each rank in the order given. Block b of rank r is r * blocks + b."""

    def __init__(self, orders: list[np.ndarray], blocks: int):
        self.left = orders
        self.blocks = blocks

    def take(self, count: int) -> np.ndarray:
        """The next `count` blocks of every rank."""
        taken = [order[:count] for order in self.left]
        self.left = [order[count:] for order in self.left]
        return np.concatenate(taken)

    def rest(self) -> np.ndarray:
        return np.concatenate(self.left)

    def replace(self, slots: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For slots whose blocks were `before`: those that get a block of the same rank, and which."""
        kept, blocks = [slots[:0]], [self.left[0][:0]]
        for rank, order in enumerate(self.left):
            mine = slots[before // self.blocks == rank][: order.size]
            kept.append(mine)
            blocks.append(order[: mine.size])
            self.left[rank] = order[mine.size :]
        return np.concatenate(kept), np.concatenate(blocks)


def _runners(program: Program, perturb: Any, output: list[str], taps: Taps | None) -> list[list[Runner]]:
    """Closures of every segment; kept with the program unless they belong to this launch."""
    if program.runners is not None and perturb is None and taps is None:
        return program.runners
    algebra = NumpyAlgebra(perturb)
    runners = [[r for step in s.steps if (r := compile_step(step, algebra, output, taps))] for s in program.segments]
    calls = any(isinstance(step, HostCall) for s in program.segments for step in s.steps)
    if perturb is None and taps is None and not calls:
        program.runners = runners
    return runners


def run(
    program: Program,
    geometry: Geometry,
    params: np.ndarray,
    space: AddressSpace,
    checks: Checks,
    recorder: Recorder,
    envregs: dict[int, list[int]],
    resident: int,
    seed: int,
    limit: int,
    seconds: float,
    perturb: Any,
    output: list[str],
    accelerator: Accelerator | None,
    traffic: TrafficCounter | None,
    taps: Taps | None = None,
    early: EarlyAccess | None = None,
    directed: str = "",
    blocks: Sequence[int] = (),
    stopper: Any = None,
) -> tuple[Budget, int, bool]:
    """Runs the whole grid. Returns executions per segment, barriers crossed, and whether a deadlock was met."""
    runners = _runners(program, perturb, output, taps)
    budget = Budget(len(program.segments), limit, seconds)
    count = len(blocks) or geometry.blocks
    if geometry.ranks * count * geometry.block_threads > limit:
        raise OutOfBudget  # before a list of the blocks is made
    order = np.array(blocks, np.int64) if len(blocks) else geometry.order()
    rng = np.random.default_rng(seed) if seed else None
    orders = [order + rank * geometry.blocks for rank in range(geometry.ranks)]
    if rng is not None and geometry.cluster_blocks == 1:
        orders = [rng.permutation(o) for o in orders]
    grid = Grid(orders, geometry.blocks)
    crossed, deadlocked = 0, False
    race_memory: dict[object, object] = {}
    if accelerator is not None and accelerator.wanted() and accelerator.run(grid.rest(), budget, race_memory):
        return budget, accelerator.crossed, False
    with np.errstate(all="ignore"):
        while (taken_blocks := grid.take(resident)).size:
            started = time.thread_time()
            wave = Wave(geometry, program, taken_blocks, params, space, checks, recorder, envregs)
            wave.random = rng
            wave.taps = taps
            if traffic is not None:
                traffic.watch(wave)
            for watcher in (early, stopper):
                if watcher is not None:
                    watcher.watch(wave)
            if checks.shared_races or checks.global_races:
                RaceChecker(program, wave, checks.shared_races, checks.global_races, race_memory)

            def refill(free: np.ndarray, wave: Wave = wave) -> np.ndarray:
                per = geometry.cluster_blocks
                free = free.reshape(-1, per)[:, 0] if per > 1 and free.size % per == 0 else free[: free.size // per]
                return wave.restart(free, grid)

            scheduler = Scheduler(wave, program, runners, budget, refill, directed)
            scheduler.run()
            wave.observers.clear()  # cycles would keep the wave's memory until Python looks for them
            wave.sync_observers.clear()
            crossed += scheduler.barriers.crossed
            deadlocked |= scheduler.deadlocked
            if accelerator is None:
                continue
            left = grid.rest().size
            taken = time.thread_time() - started
            accelerator.past.interpreted += taken
            if recorder.found:
                continue
            seconds = taken * left / taken_blocks.size
            if left and accelerator.wanted(seconds) and accelerator.run(grid.rest(), budget, race_memory):
                crossed += accelerator.crossed
                break
    return budget, crossed, deadlocked


def resident_blocks(program: Program, geometry: Geometry, cooperative: bool, asked: int) -> int:
    """How many blocks run at once: all of a cooperative grid, what a GPU holds when blocks may wait for each other."""
    per_sm = max(1, min(32, 2048 // geometry.padded))
    hardware = 132 * per_sm
    waits = any(s.spins for s in program.segments)
    if asked:
        count = asked
    elif cooperative:
        count = geometry.blocks
    else:
        count = hardware if waits else max(1, WAVE_THREADS // geometry.padded)
    count = max(count, geometry.cluster_blocks)
    return max(1, count // geometry.cluster_blocks * geometry.cluster_blocks)
