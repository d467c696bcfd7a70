"""What threads did, step by step: values of float arithmetic, shuffles, shared and global accesses, barriers.

For finding where two kernels part. Recording follows the numpy interpreter, which it makes several times slower.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np

from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.program import Atomic, Load, Pure, RegSrc, Step, Store, Warp
from porter.verify.emulator.decode.types import TYPES
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.evaluate import Runner, getter
from porter.verify.emulator.machine.wave import Wave
from porter.verify.emulator.memory.access import address_getter
from porter.verify.emulator.memory.layout import SHARED_WINDOW, WINDOW_BITS

LIMIT = 8_000_000  # values; recording stops there


@dataclass(frozen=True, slots=True)
class Event:
    """One execution of one instruction. `threads` number the grid's threads (blocks padded to whole warps).

    `values` are bit patterns (uint64), a row for each thread; `places` the bytes accessed: the buffer's hash above bit
    40, the offset in it below (offsets into the block's own memory for shared). None where there is nothing to show.
    """

    kind: str
    source: Instr
    threads: np.ndarray
    values: np.ndarray | None
    places: np.ndarray | None
    bits: int  # of a value


@dataclass
class Taps:
    """The events of one launch, in the order in which they happened."""

    events: list[Event] = field(default_factory=list)
    recorded: int = 0

    @property
    def truncated(self) -> bool:
        return self.recorded >= LIMIT

    def wrap(self, step: Step, run: Runner) -> Runner:
        """`run`, and a record of what it did."""
        match step:
            case Pure() if _is_float(step):
                return self._results(step, run, step.source.base)
            case Warp() if step.kind in ("shfl", "redux"):
                return self._results(step, run, step.kind)
            case Load() if step.place.space in ("global", "shared", ""):
                return self._access(step, run, "load")
            case Store() if step.place.space in ("global", "shared", ""):
                return self._access(step, run, "store")
            case Atomic():
                return self._access(step, run, "atomic")
        return run

    def barrier(self, source: Instr, lanes: np.ndarray, wave: Wave) -> None:
        self._add(Event("barrier", source, _threads(wave, lanes), None, None, 0))

    def _add(self, event: Event) -> None:
        if not self.truncated:
            self.events.append(event)
            self.recorded += event.threads.size * (1 if event.values is None else event.values.shape[1])

    def _results(self, step: Pure | Warp, run: Runner, kind: str) -> Runner:
        dsts = [d for d in step.dsts if d is not None and d.type.bits in (16, 32, 64)]
        if not dsts:
            return run
        bits = dsts[0].type.bits

        def tapped(e: Env) -> None:
            run(e)
            if not self.truncated:
                values = [_bits(e.full(e.v[d.index])) for d in dsts]
                self._add(Event(kind, step.source, _threads(e.wave, e.ids), np.stack(values, axis=1), None, bits))

        return tapped

    def _access(self, step: Load | Store | Atomic, run: Runner, kind: str) -> Runner:
        address = address_getter(step.place)
        raw = TYPES[f"b{step.type.bits}"]
        sources = () if isinstance(step, Load) else step.srcs
        gets = [getter(s, raw) for s in sources if not (isinstance(s, RegSrc) and s.negated)]
        loaded = [d.index for d in step.dsts if d is not None] if isinstance(step, Load) else []
        count = max(len(sources), len(step.dsts) if isinstance(step, Load) else 1)
        width = step.type.bytes
        space = step.place.space

        def tapped(e: Env) -> None:
            record = not self.truncated
            if record:
                at = e.each(address(e))
                where, name = _place(e, at, space)
                places = where[:, None] + np.arange(count) * width
                values = np.stack([_bits(e.full(g(e))) for g in gets], axis=1) if gets else None
            run(e)
            if record:
                if loaded:
                    values = np.stack([_bits(e.full(e.v[d])) for d in loaded], axis=1)
                self._add(Event(f"{kind}.{name}", step.source, _threads(e.wave, e.ids), values, places, step.type.bits))

        return tapped


def _is_float(step: Pure) -> bool:
    types = [*step.op.dsts, *step.op.srcs]
    return step.source.base not in ("mov", "setp", "selp", "slct") and any(t.kind == "f" for t in types)


def _bits(x: np.ndarray) -> np.ndarray:
    raw = np.ascontiguousarray(x)
    return raw.view(f"u{raw.dtype.itemsize}").astype(np.uint64) if raw.dtype.kind != "b" else raw.astype(np.uint64)


def _threads(wave: Wave, lanes: np.ndarray) -> np.ndarray:
    g = wave.geometry
    return wave.blocks[wave.slot_of[lanes]] * g.padded + lanes % g.padded


def _place(e: Env, address: np.ndarray, space: str) -> tuple[np.ndarray, str]:
    """Buffer and offset of global addresses, the address itself of others."""
    first = int(address[0]) if address.size else 0
    if space == "shared" or (space == "" and first >> WINDOW_BITS == SHARED_WINDOW >> WINDOW_BITS):
        return (address & np.uint64(0xFFFFFF)).astype(np.int64), "shared"
    if space == "" and first >> WINDOW_BITS > SHARED_WINDOW >> WINDOW_BITS:
        return (address & np.uint64(0xFFFFFFFF)).astype(np.int64), "local"
    regions = e.wave.space
    index = regions.index_of(address)
    found = np.zeros(address.size, np.int64)
    for k in np.unique(index):
        here = index == k
        if k >= 0:
            region = regions.regions[k]
            name = zlib.crc32(region.name.encode()) & 0x3FFFFF
            found[here] = (name << 40) + (address[here] - np.uint64(region.base)).astype(np.int64)
    return found, "global"
