"""mbarrier objects of the numpy interpreter: a 64-bit word in shared memory, in a layout of our own.

Bits 0-19 pending arrivals, 20-39 arrivals expected per phase, 40-62 outstanding transaction bytes (two's complement),
63 the parity of the phase that is under way.
"""

from __future__ import annotations

import numpy as np

from porter.verify.emulator.decode.program import Copy, Mbarrier, MemoryOperand
from porter.verify.emulator.decode.types import B64, PRED, U32
from porter.verify.emulator.errors import UnsupportedPtx
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.evaluate import Runner, getter, putter
from porter.verify.emulator.memory.access import Resolver, address_getter

_COUNT = (1 << 20) - 1
_TX = (1 << 23) - 1


def _pack(pending: int, expected: int, tx: int, phase: int) -> int:
    return (pending & _COUNT) | (expected & _COUNT) << 20 | (tx & _TX) << 40 | (phase & 1) << 63


def _unpack(word: int) -> tuple[int, int, int, int]:
    tx = (word >> 40) & _TX
    return word & _COUNT, (word >> 20) & _COUNT, tx - (1 << 23) if tx >> 22 else tx, word >> 63


def _update(word: int, arrivals: int, tx: int, drop: int = 0) -> int:
    """The word after `arrivals` arrivals and `tx` more outstanding bytes; flips the phase when both reach zero."""
    pending, expected, outstanding, phase = _unpack(word)
    pending -= arrivals
    expected -= drop
    outstanding += tx
    if pending <= 0 and outstanding == 0:
        pending, phase = expected, phase ^ 1
    return _pack(pending, expected, outstanding, phase)


def complete_bytes(e: Env, step: Copy, address: np.ndarray, sizes: np.ndarray) -> None:
    """A bulk copy signals that its bytes have arrived."""
    resolved = Resolver(step.source, step.mbarrier or MemoryOperand("shared", None, 0), 8, True)(e, address)
    for piece in resolved.pieces:
        view = piece.region.view(8)
        lanes = range(e.n) if piece.positions is None else piece.positions
        for lane, offset in zip(lanes, piece.offsets, strict=True):
            view[offset >> 3] = np.uint64(_update(int(view[offset >> 3]), 0, -int(sizes[lane])))
    e.wave.memory_version += 1
    resolved.finish()


def compile_mbarrier(step: Mbarrier) -> Runner:
    kind = step.kind
    if kind == "pending_count":
        get, put = getter(step.srcs[0], B64), putter(step.dsts[0], U32)
        return lambda e: put(e, (get(e) & np.uint64(_COUNT)).astype(np.uint32))
    assert step.place is not None
    address_of = address_getter(step.place)
    waits = kind in ("test_wait", "try_wait")
    resolver = Resolver(step.source, step.place, 8, not waits)
    if waits:
        token = getter(step.srcs[0], U32 if step.parity else B64)
        put_done = putter(step.dsts[0], PRED)

        def wait(e: Env) -> None:
            from porter.verify.emulator.memory.access import fetch

            resolved = resolver(e, address_of(e))
            if e.wave.observers:
                e.wave.observe(e, step, resolved, 8)
            words = fetch(e, step.source, resolved, 8)
            phase = words >> np.uint64(63)
            t = e.active(token(e))
            old = (t & np.uint32(1)).astype(np.uint64) if step.parity else t >> np.uint64(63)
            put_done(e, e.spread(phase != old))
            resolved.finish()

        return wait
    counts = [getter(s, U32) for s in step.srcs]
    put = putter(step.dsts[0] if step.dsts else None, B64)
    if kind not in ("init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "arrive_async"):
        raise UnsupportedPtx(step.source.opcode, step.source.line)

    def run(e: Env) -> None:
        resolved = resolver(e, e.each(address_of(e)))
        if e.wave.observers:
            e.wave.observe(e, step, resolved, 8, None)
        values = [e.full(g(e)) for g in counts]
        tokens = np.zeros(e.n, np.uint64)
        for piece in resolved.pieces:
            region = piece.region
            view = region.view(8)
            lanes = range(e.n) if piece.positions is None else piece.positions
            for lane, offset in zip(lanes, piece.offsets, strict=True):
                at = offset >> 3
                word = int(view[at])
                tokens[lane] = word
                first = int(values[0][lane]) if values else 1
                if kind == "init":
                    new = _pack(first, first, 0, 0)
                elif kind == "inval":
                    new = 0
                elif kind == "arrive":
                    new = _update(_update_tx(word, first), 1, 0) if step.expect else _update(word, first, 0)
                elif kind == "arrive_drop":
                    new = _update(word, first, 0, first)
                elif kind == "expect_tx":
                    new = _update_tx(word, first)
                elif kind == "complete_tx":
                    new = _update(word, 0, -first)
                else:
                    new = _update(word, 1, 0) if step.noinc else word
                view[at] = np.uint64(new)
            if region.shadow is not None:
                region.shadow_view(8)[piece.offsets >> 3] = np.uint64(0x0101010101010101)
        e.wave.memory_version += 1
        put(e, e.spread(tokens))
        resolved.finish()

    return run


def _update_tx(word: int, tx: int) -> int:
    pending, expected, outstanding, phase = _unpack(word)
    return _pack(pending, expected, outstanding + tx, phase)
