"""The threads that run together: registers as arrays over all of them, shared and local memory, special registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from porter.verify.emulator.checks.violations import Checks, Recorder
from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.program import Program
from porter.verify.emulator.decode.types import PtxType
from porter.verify.emulator.machine.drawn import USUAL, Machine
from porter.verify.emulator.memory.buffers import AddressSpace, MemoryRegion

WARP = 32
Dim = tuple[int, int, int]
Observer = Callable[..., None]  # (env, step, resolved, width, value for writes)

_ZERO: dict[np.dtype, np.ndarray] = {}


def zero(dtype: np.dtype) -> np.ndarray:
    found = _ZERO.get(dtype)
    if found is None:
        found = _ZERO[dtype] = np.zeros(1, dtype)
        found.flags.writeable = False
    return found


class Blocks(Protocol):
    def replace(self, slots: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...


class BarrierTap(Protocol):
    def barrier(self, source: Instr, lanes: np.ndarray, wave: Wave) -> None: ...


class Geometry:
    """Sizes of a launch, shared by its waves."""

    def __init__(
        self,
        grid: Dim,
        block: Dim,
        cluster: Dim,
        dynamic_shared: int,
        program: Program,
        ranks: int = 1,
        machine: Machine = USUAL,
    ):
        self.grid, self.block, self.cluster, self.machine = grid, block, cluster, machine
        self.block_threads = block[0] * block[1] * block[2]
        self.warps = -(-self.block_threads // WARP)
        self.padded = self.warps * WARP
        self.blocks = grid[0] * grid[1] * grid[2]  # of one rank
        self.ranks = ranks
        self.cluster_blocks = cluster[0] * cluster[1] * cluster[2]
        self.dynamic_shared = dynamic_shared
        self.shared_size = program.dynamic_offset + dynamic_shared if dynamic_shared else program.static_shared
        self.shared_stride = -(-self.shared_size // 256) * 256
        self.local_stride = program.local_bytes

    def order(self) -> np.ndarray:
        """Linear block numbers, the blocks of one cluster side by side."""
        if self.cluster_blocks == 1:
            return np.arange(self.blocks)
        gx, gy, gz = self.grid
        cx, cy, cz = self.cluster
        n = np.arange(self.blocks).reshape(gz // cz, cz, gy // cy, cy, gx // cx, cx)
        return n.transpose(0, 2, 4, 1, 3, 5).reshape(-1)


def _filled(size: int, byte: int) -> np.ndarray:
    return np.full(size, byte, np.uint8) if byte else np.zeros(size, np.uint8)


class Wave:
    """State of the resident blocks. Thread t: block slot t // padded, lane t % 32; lanes that pad a block are dead."""

    def __init__(
        self,
        geometry: Geometry,
        program: Program,
        blocks: np.ndarray,
        params: np.ndarray,
        space: AddressSpace,
        checks: Checks,
        recorder: Recorder,
        envregs: dict[int, list[int]],
    ):
        g = self.geometry = geometry
        self.program, self.space, self.checks, self.recorder, self.envregs = program, space, checks, recorder, envregs
        self.blocks = blocks  # linear block number of each slot, those of a rank behind those of the rank before
        self.ranks = blocks // g.blocks  # of each slot
        self.slots = int(blocks.size)
        self.threads = self.slots * g.padded
        self.ids = np.arange(self.threads)
        tid = self.ids % g.padded
        self.alive = tid < g.block_threads
        self.alive_count = int(self.alive.sum())
        self.slot_of = self.ids // g.padded
        self.registers: list[np.ndarray] = [zero(_dtype(t)) for t in program.registers]
        self.params = MemoryRegion("param", "parameters", 0, params, None, writable=False)
        self.param_size, self.param_stride = program.param_bytes, params.size // g.ranks
        self.rank_of = self.ranks[self.slot_of] if g.ranks > 1 else None  # of each thread
        track = checks.uninitialised
        size = self.slots * g.shared_stride
        self.shared = MemoryRegion(
            "shared", "shared", 0, _filled(size, checks.fill), np.zeros(size, np.uint8) if track else None
        )
        self.shared_base = self.slot_of * g.shared_stride
        size = self.threads * g.local_stride
        self.local = MemoryRegion(
            "local", "local", 0, _filled(size, checks.fill), np.zeros(size, np.uint8) if track else None
        )
        self.local_base = self.ids * g.local_stride
        self.clock = 0
        self.tainted = np.zeros(self.slots, bool)  # blocks that lost threads: what they miss is no new mistake
        self.memory_version = 0  # grows when memory changes
        self.observers: list[Observer] = []
        self.sync_observers: list[Callable[[str, np.ndarray, int], None]] = []
        self.random: np.random.Generator | None = None  # seeded: the order of lanes in atomics
        self.taps: BarrierTap | None = None
        self._specials: dict[str, np.ndarray] = {}

    def observe(self, *access: object) -> None:
        for observer in self.observers:
            observer(*access)

    def lane_order(self, n: int) -> np.ndarray | None:
        """The order in which n lanes of an atomic take turns; None for lane order."""
        return self.random.permutation(n) if self.random is not None else None

    def restart(self, slots: np.ndarray, grid: Blocks) -> np.ndarray:
        """Gives finished slots to blocks that have not run; returns their threads."""
        slots, blocks = grid.replace(slots, self.blocks[slots])
        if not blocks.size:
            return np.zeros(0, np.int64)
        g = self.geometry
        self.blocks = self.blocks.copy()
        self.blocks[slots] = blocks
        self._specials.clear()
        self.tainted[slots] = False
        for slot in slots:
            for region, size in ((self.shared, g.shared_stride), (self.local, g.padded * g.local_stride)):
                region.data[slot * size : (slot + 1) * size] = self.checks.fill
                if region.shadow is not None:
                    region.shadow[slot * size : (slot + 1) * size] = 0
        lanes = np.flatnonzero(np.isin(self.slot_of, slots) & (self.ids % g.padded < g.block_threads))
        for observer in self.sync_observers:
            observer("restart", lanes, 0)
        self.alive[lanes] = True
        self.alive_count += int(lanes.size)
        return lanes

    def coordinates(self, thread: int) -> tuple[Dim, Dim, int | None]:
        """Block, thread and rank (None where there is only one)."""
        g = self.geometry
        rank, block = divmod(int(self.blocks[thread // g.padded]), g.blocks)
        t = thread % g.padded
        return _unravel(block, g.grid), _unravel(t, g.block), rank if g.ranks > 1 else None

    def special(self, name: str) -> np.ndarray:
        """A special register: one value, or one for each thread."""
        found = self._specials.get(name)
        if found is None:
            if name.startswith(("clock", "globaltimer")):
                machine = self.geometry.machine
                self.clock += machine.tick + self.clock % 7
                value = self.clock + (machine.time if name.startswith("g") else machine.clock)
                value = value >> 32 if name in ("clock_hi", "globaltimer_hi") else value
                bits = 64 if name in ("clock64", "globaltimer") else 32
                return np.array([value & ((1 << bits) - 1)], np.uint64 if bits == 64 else np.uint32)
            found = self._specials[name] = self._make_special(name)
        return found

    def _make_special(self, name: str) -> np.ndarray:
        g = self.geometry
        u32 = np.uint32

        def one(value: int) -> np.ndarray:
            return np.array([value], u32)

        head, _, axis = name.partition(".")
        k = "xyz".find(axis) if axis else -1
        if axis == "w":
            return one(0 if head in ("tid", "ctaid", "clusterid", "cluster_ctaid") else 1)
        if k >= 0:
            block = self.blocks[self.slot_of] % g.blocks
            tid = self.ids % g.padded
            clusters = tuple(g.grid[j] // g.cluster[j] for j in range(3))
            axis_block = _axis(block, g.grid, k)
            table = {
                "tid": lambda: _axis(tid, g.block, k),
                "ntid": lambda: one(g.block[k]),
                "ctaid": lambda: axis_block,
                "nctaid": lambda: one(g.grid[k]),
                "clusterid": lambda: axis_block // g.cluster[k],
                "nclusterid": lambda: one(clusters[k]),
                "cluster_ctaid": lambda: axis_block % g.cluster[k],
                "cluster_nctaid": lambda: one(g.cluster[k]),
            }
            if head in table:
                return np.asarray(table[head]()).astype(u32)
        lane = self.ids % WARP
        if name.startswith("envreg"):
            values = np.array(self.envregs.get(int(name[6:]), [0] * g.ranks), u32)
            return values if self.rank_of is None else values[self.rank_of]
        single = {
            "nwarpid": g.warps,
            "nsmid": g.machine.sms,
            "cluster_nctarank": g.cluster_blocks,
            "dynamic_smem_size": g.dynamic_shared,
            "total_smem_size": g.shared_size,
            "aggr_smem_size": g.shared_size,
            "is_explicit_cluster": int(g.cluster_blocks > 1),
            "reserved_smem_offset_begin": 0,
            "reserved_smem_offset_end": 0,
            "reserved_smem_offset_cap": 0,
        }
        if name in single:
            value = one(single[name])
            return value != 0 if name == "is_explicit_cluster" else value
        if name in ("gridid", "current_graph_exec"):
            return np.array([g.machine.grid_id], np.uint64)
        if name.startswith("pm"):
            noise = g.machine.noise
            return np.array([noise], np.uint64) if name.endswith("_64") else one(noise & 0xFFFFFFFF)
        one_bit = np.left_shift(np.uint64(1), lane.astype(np.uint64))
        per_thread = {
            "laneid": lambda: lane,
            "warpid": lambda: (self.ids % g.padded) // WARP,
            "smid": lambda: g.machine.smid(self.blocks[self.slot_of] % g.blocks),
            "cluster_ctarank": lambda: self.slot_of % g.cluster_blocks,
            "lanemask_eq": lambda: one_bit,
            "lanemask_lt": lambda: one_bit - 1,
            "lanemask_le": lambda: one_bit * 2 - 1,
            "lanemask_ge": lambda: 0xFFFFFFFF - (one_bit - 1),
            "lanemask_gt": lambda: 0xFFFFFFFF - (one_bit * 2 - 1),
        }
        return per_thread[name]().astype(u32)


def _dtype(t: PtxType) -> np.dtype:
    return t.raw


def _axis(linear: np.ndarray, dim: Dim, k: int) -> np.ndarray:
    if k == 0:
        return linear % dim[0]
    if k == 1:
        return linear // dim[0] % dim[1]
    return linear // (dim[0] * dim[1])


def _unravel(linear: int, dim: Dim) -> Dim:
    return linear % dim[0], linear // dim[0] % dim[1], linear // (dim[0] * dim[1])
