"""cp.async and cp.async.bulk: bytes from one space to another, and the barrier that hears of them."""

from __future__ import annotations

import numpy as np

from porter.verify.emulator.decode.program import Copy
from porter.verify.emulator.decode.types import TYPES, U32
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.evaluate import Runner, getter
from porter.verify.emulator.memory.access import LanesKilled, Resolver, address_getter, deposit, fetch
from porter.verify.emulator.memory.mbarriers import complete_bytes


def compile_copy(step: Copy) -> Runner:
    """cp.async and cp.async.bulk: done at once, so wait_group has nothing to wait for."""
    read_at, write_at = address_getter(step.origin), address_getter(step.target)
    assert step.room is not None and step.size is not None
    room_get, size_get = getter(step.room, U32), getter(step.size, U32)
    unit = 16 if step.bulk else 0
    signal = address_getter(step.mbarrier) if step.mbarrier is not None else None

    def run(e: Env) -> None:
        room = int(e.full(room_get(e))[0]) if not step.bulk else 0
        sizes = e.full(size_get(e)).astype(np.int64)
        limits = sizes if step.bulk else np.full(e.n, room)
        width = unit or room
        if width not in (4, 8, 16):
            width = 1
        killed: list[np.ndarray] = []
        source, target = e.each(read_at(e)), e.each(write_at(e))
        reader, writer = (
            Resolver(step.source, step.origin, width, False),
            Resolver(step.source, step.target, width, True),
        )
        for start in range(0, int(limits.max(initial=0)), width):
            inside = limits > start
            inner = e if inside.all() and not e.wide else e.narrowed(inside)
            have = (sizes - start)[inside]
            w = (
                reader(_only(inner, have > 0), source[inside][have > 0] + np.uint64(start))
                if (have > 0).any()
                else None
            )
            value = np.zeros(inner.n, TYPES[f"b{8 * width}"].raw)
            if w is not None:
                value[have > 0] = fetch(_only(inner, have > 0), step.source, w, width)
                killed += w.killed
                if (have < width).any() and width > 1:
                    flat = value.view(np.uint8).reshape(-1, width)
                    flat[np.arange(width)[None, :] >= have[:, None]] = 0
            r = writer(inner, target[inside] + np.uint64(start))
            killed += r.killed
            if e.wave.observers:
                e.wave.observe(inner, step, r, width, value)
            deposit(inner, r, width, value)
        if signal is not None:
            complete_bytes(e, step, e.each(signal(e)), sizes)
        if killed:
            raise LanesKilled(np.unique(np.concatenate(killed)))

    return run


def _only(e: Env, keep: np.ndarray) -> Env:
    return e if keep.all() and not e.wide else e.narrowed(keep)
