"""Block and cluster barriers: who has arrived, who waits, when they go on."""

from __future__ import annotations

import numpy as np

from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.program import Dst
from porter.verify.emulator.machine.wave import WARP, Wave


class Barriers:
    """The 16 named barriers of every block, and the cluster barrier."""

    def __init__(self, wave: Wave):
        self.wave = wave
        n = wave.threads
        self.waits_on = np.full(n, -1, np.int8)  # barrier id; 16: the cluster barrier
        self.goes_to = np.zeros(n, np.int32)  # segment to continue with: tells the barrier instruction too
        self.value = np.zeros(n, bool)  # operand of bar.red
        self.instructions: dict[int, Instr] = {}
        self.reductions: dict[int, tuple[str, Dst | None]] = {}
        self.early = np.zeros((wave.slots, 16), np.int64)  # threads counted by bar.arrive
        self.expected = np.zeros((wave.slots, 16), np.int64)  # 0: the whole block
        self.cluster_arrivals = np.zeros(n, np.int32)
        self.waiting = 0
        self.crossed = 0  # barriers completed, for counts

    def wait(
        self, lanes: np.ndarray, id_: np.ndarray | int, target: int, instr: Instr, count: np.ndarray | None
    ) -> None:
        self.waits_on[lanes] = id_
        self.goes_to[lanes] = target
        self.instructions[target] = instr
        self.waiting += lanes.size
        if count is not None:
            ids = np.broadcast_to(np.asarray(id_), lanes.shape)
            self.expected[self.wave.slot_of[lanes], ids] = count

    def arrive(self, lanes: np.ndarray, id_: np.ndarray, count: np.ndarray | None) -> None:
        """bar.arrive: counted by whole warps, lanes that exited included."""
        wave = self.wave
        slots = wave.slot_of[lanes]
        ids = np.broadcast_to(id_, lanes.shape)
        if count is not None:
            self.expected[slots, ids] = count
        np.add.at(self.early, (slots, ids), 1)
        # absent lanes of the arriving warps count as well
        warps = np.unique(lanes // WARP)
        dead = (~wave.alive).reshape(-1, WARP)[warps].sum(axis=1)
        first = np.searchsorted(lanes, warps * WARP)
        np.add.at(self.early, (slots[first], ids[first]), dead)

    def released(self) -> list[tuple[int, np.ndarray, int, Instr]]:
        """(segment, lanes, barrier id, instruction) of everyone who may go on now; they no longer wait."""
        if not self.waiting:
            return []
        wave = self.wave
        g = wave.geometry
        out: list[tuple[int, np.ndarray, int, Instr]] = []
        alive = wave.alive.reshape(wave.slots, -1)
        for id_ in np.unique(self.waits_on[self.waits_on >= 0]):
            if id_ == 16:
                waiting = self.waits_on == 16
                arrivals = np.where(wave.alive, self.cluster_arrivals, np.iinfo(np.int32).max)
                least = arrivals.reshape(-1, g.padded * g.cluster_blocks).min(axis=1)
                go = waiting & (np.repeat(least, g.padded * g.cluster_blocks) >= self.cluster_arrivals)
                out += self._go(np.flatnonzero(go), 16)
                continue
            here = (self.waits_on == id_).reshape(wave.slots, -1)
            expected = self.expected[:, id_]
            whole = (here == alive).all(axis=1) & here.any(axis=1) & (expected == 0)
            warps = here.reshape(wave.slots, -1, WARP)
            arrived = warps.any(axis=2)
            lanes = (warps | ~alive.reshape(warps.shape)).sum(axis=2)
            counted = (lanes * arrived).sum(axis=1) + self.early[:, id_]
            complete = whole | ((expected > 0) & (counted >= expected) & here.any(axis=1))
            if not complete.any():
                continue
            self.early[complete, id_] = 0
            self.expected[complete, id_] = 0
            self.crossed += int(complete.sum())
            lanes_go = np.flatnonzero((here & complete[:, None]).reshape(-1))
            self._reduce(lanes_go)
            out += self._go(lanes_go, int(id_))
        return out

    def _go(self, lanes: np.ndarray, id_: int) -> list[tuple[int, np.ndarray, int, Instr]]:
        if not lanes.size:
            return []
        self._check_divergence(lanes, id_)
        self.waits_on[lanes] = -1
        self.waiting -= lanes.size
        targets = self.goes_to[lanes]
        return [
            (int(t), part, id_, self.instructions[int(t)])
            for t in np.unique(targets)
            for part in (lanes[targets == t],)
        ]

    def _check_divergence(self, lanes: np.ndarray, id_: int) -> None:
        """Lanes of one warp that wait at different instructions."""
        wave = self.wave
        targets = np.full(wave.threads, -1, np.int32)
        targets[lanes] = self.goes_to[lanes]
        m = targets.reshape(-1, WARP)
        top = m.max(axis=1)
        low = np.where(m < 0, np.iinfo(np.int32).max, m).min(axis=1)
        split = (top >= 0) & (low != top)
        if split.any():
            warp = int(np.flatnonzero(split)[0])
            bad = np.flatnonzero((m[warp] >= 0) & (m[warp] != low[warp])) + warp * WARP
            first, instr = (self.instructions[int(t)] for t in (low[warp], self.goes_to[bad[0]]))
            wave.recorder.add(
                "divergent-barrier", instr, bad, wave.coordinates,
                f"lanes of a warp meet at barrier {id_} from different places (PTX lines {first.line}, {instr.line})",
            )  # fmt: skip

    def _reduce(self, lanes: np.ndarray) -> None:
        """Results of bar.red, written before anyone goes on."""
        from porter.verify.emulator.machine.environment import scattered

        wave = self.wave
        for target in np.unique(self.goes_to[lanes]):
            reduction = self.reductions.get(int(target))
            if reduction is None:
                continue
            combine, dst = reduction
            if dst is None:
                continue
            mine = lanes[self.goes_to[lanes] == target]
            slots = wave.slot_of[mine]
            yes = np.bincount(slots, weights=self.value[mine], minlength=wave.slots).astype(np.int64)
            size = np.bincount(slots, minlength=wave.slots)
            result: np.ndarray
            if combine == "popc":
                result = yes[slots].astype(np.uint32)
            else:
                result = (yes == size)[slots] if combine == "and" else (yes > 0)[slots]
            wave.registers[dst.index] = scattered(wave.registers[dst.index], wave.threads, mine, result)
