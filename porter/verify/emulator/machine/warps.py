"""Warp-level instructions of the numpy interpreter. Every lane that the mask names is here when they run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from porter.verify.emulator.decode.program import Warp
from porter.verify.emulator.decode.types import B32, PRED, S32, TYPES, U32
from porter.verify.emulator.errors import UnsupportedPtx
from porter.verify.emulator.machine.environment import Env, recast
from porter.verify.emulator.machine.evaluate import Runner, getter, putter
from porter.verify.emulator.machine.wave import WARP
from porter.verify.emulator.ops.numpy_algebra import NumpyAlgebra

_LANES = np.arange(WARP, dtype=np.int64)
_BITS = (np.uint64(1) << np.arange(WARP, dtype=np.uint64)).astype(np.uint32)


def matrix(e: Env, x: np.ndarray, fill: object = 0) -> np.ndarray:
    """Values of the active threads as (warps, 32) over the whole wave; `fill` elsewhere."""
    wave = e.wave
    if e.lanes is None:
        return np.broadcast_to(x, (wave.threads,)).reshape(-1, WARP)
    out = np.full(wave.threads, fill, x.dtype)
    out[e.lanes] = e.active(x)
    return out.reshape(-1, WARP)


def flat(e: Env, m: np.ndarray) -> np.ndarray:
    """The reverse: a (warps, 32) matrix as values in the environment's shape."""
    x = m.reshape(-1)
    return x if e.lanes is None or e.wide else x[e.lanes]


def here(e: Env) -> np.ndarray:
    """(warps, 32) mask of active lanes."""
    if e.lanes is None:
        return np.ones((e.wave.threads // WARP, WARP), bool)
    out = np.zeros(e.wave.threads, bool)
    out[e.lanes] = True
    return out.reshape(-1, WARP)


def report_absent(e: Env, step: Warp, readers: np.ndarray, sources: np.ndarray) -> None:
    """Lanes that take the value of a lane which does not execute the shuffle; `sources` are (warps, 32) lanes."""
    wave = e.wave
    lane = int(sources.reshape(-1)[readers[0]])
    thread = int(readers[0]) // WARP * WARP + lane
    why = "has exited" if not wave.alive[thread] else "does not take part"
    if thread % wave.geometry.padded >= wave.geometry.block_threads:
        why = "is beyond the block"
    text = f"the shuffle takes the value of lane {lane}, which {why}: what it gets is undefined"
    wave.recorder.add("absent-lane", step.source, readers, wave.coordinates, text)


def disagreeing(masks: np.ndarray, present: np.ndarray) -> np.ndarray:
    """(warps, 32): lanes whose mask names a lane that is here with another mask. Both are (warps, 32)."""
    if bool((masks == masks[:, :1])[present].all()):  # one mask a warp
        return np.zeros(present.shape, bool)
    named = (masks[:, :, None] & _BITS[None, None, :]) != 0
    return ((masks[:, :, None] != masks[:, None, :]) & named & present[:, None, :]).any(axis=2) & present


def ballot(mask: np.ndarray) -> np.ndarray:
    """(warps,) uint32 from a (warps, 32) mask."""
    return np.packbits(mask, axis=1, bitorder="little").view(np.uint32).reshape(-1)


def compile_warp(step: Warp, algebra: NumpyAlgebra) -> Runner:
    maker = _MAKERS.get(step.kind)
    if maker is None:
        raise UnsupportedPtx(step.source.opcode, step.source.line)
    return maker(step, algebra)


def _shfl(step: Warp, algebra: NumpyAlgebra) -> Runner:
    value_get, b_get, c_get = (getter(s, B32) for s in step.srcs)
    put, put_pred = putter(step.dsts[0], B32), putter(step.dsts[1], PRED)
    mode = step.mode

    def source_lanes(b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(source lane, in range), both (warps, 32) or (1, 32); b and c as matrices of int64."""
        bound, segment = c & 31, (c >> 8) & 31
        b = b & 31
        top = (_LANES & segment) | (bound & ~segment)
        low = _LANES & segment
        if mode == "up":
            j = _LANES - b
            p = j >= top
        elif mode == "down":
            j = _LANES + b
            p = j <= top
        elif mode == "bfly":
            j = _LANES ^ b
            p = j <= top
        else:
            j = low | (b & ~segment)
            p = j <= top
        return np.where(p, j, _LANES), p

    known: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}  # by b and c, when all threads agree on them

    def run(e: Env) -> None:
        x, b, c = value_get(e), b_get(e), c_get(e)
        agreed = None
        if b.size == 1 and c.size == 1:
            if x.size == 1 and step.dsts[1] is None:
                put(e, x)
                return
            key = (int(b[0]), int(c[0]))
            agreed = known.get(key)
            if agreed is None:
                matrices = (np.full((1, WARP), value, np.int64) for value in key)
                agreed = known[key] = source_lanes(*matrices)
        held = matrix(e, x, e.wave.checks.fill * 0x01010101)  # what lanes that are not here show is undefined
        if agreed is not None:
            j, p = agreed
            put(e, flat(e, held[:, j[0]]))
        else:
            j, p = source_lanes(matrix(e, b).astype(np.int64), matrix(e, c).astype(np.int64))
            put(e, flat(e, np.take_along_axis(held, np.broadcast_to(j, held.shape), axis=1)))
        p = np.broadcast_to(p, held.shape)
        if e.lanes is not None:
            present = here(e)
            absent = present & ~np.take_along_axis(present, np.broadcast_to(j, held.shape), axis=1)
            absent &= ~e.wave.tainted[e.wave.slot_of].reshape(-1, WARP)
            if absent.any():
                report_absent(e, step, np.flatnonzero(absent.reshape(-1)), np.broadcast_to(j, held.shape))
        if step.dsts[1] is not None:
            put_pred(e, flat(e, p))

    return run


def _vote(step: Warp, algebra: NumpyAlgebra) -> Runner:
    get = getter(step.srcs[0], PRED)
    mode = step.mode
    put = putter(step.dsts[0], B32 if mode == "ballot" else PRED)
    mask_get = getter(step.mask, U32)  # type: ignore[arg-type]

    def run(e: Env) -> None:
        p = get(e)
        present = here(e)
        yes = matrix(e, p, False) & present
        if e.lanes is not None or mode == "ballot" or p.size != 1:
            members = _members(e, mask_get, present)
        else:
            put(e, p | ~p if mode == "uni" else p)
            return
        count = (yes[:, None, :] & members).sum(axis=2) if members.ndim == 3 else (yes & members).sum(axis=1)[:, None]
        if mode == "ballot":
            bits = ballot(yes)[:, None] & np.broadcast_to(_mask_matrix(e, mask_get), yes.shape)
            put(e, flat(e, bits.astype(np.uint32)))
            return
        size = members.sum(axis=2) if members.ndim == 3 else members.sum(axis=1)[:, None]
        if mode == "all":
            r = count == size
        elif mode == "any":
            r = count > 0
        else:
            r = (count == size) | (count == 0)
        put(e, flat(e, np.ascontiguousarray(np.broadcast_to(r, yes.shape))))

    return run


def _mask_matrix(e: Env, mask_get: Callable[[Env], np.ndarray]) -> np.ndarray:
    return matrix(e, mask_get(e))


def _members(e: Env, mask_get: Callable[[Env], np.ndarray], present: np.ndarray) -> np.ndarray:
    """Which lanes take part: (warps, 32) when all lanes of each warp name the same mask, else (warps, 32, 32)."""
    mask = mask_get(e)
    if mask.size == 1:
        return present & ((mask[0] & _BITS) != 0)
    m = matrix(e, mask)
    groups = (m[:, :, None] & _BITS[None, None, :]) != 0
    return groups & present[:, None, :]


def _match(step: Warp, algebra: NumpyAlgebra) -> Runner:
    t = TYPES[f"b{step.type.bits}"]
    get = getter(step.srcs[0], t)
    mask_get = getter(step.mask, U32)  # type: ignore[arg-type]
    put, put_pred = putter(step.dsts[0], B32), putter(step.dsts[1] if len(step.dsts) > 1 else None, PRED)
    everyone = step.mode == "all"

    def run(e: Env) -> None:
        x = matrix(e, get(e))
        present = here(e)
        members = _members(e, mask_get, present)
        if members.ndim == 2:
            members = np.broadcast_to(members[:, None, :], (*members.shape, WARP))
        same = (x[:, :, None] == x[:, None, :]) & members
        bits = np.packbits(same, axis=2, bitorder="little").view(np.uint32).reshape(x.shape)
        if everyone:
            whole = np.packbits(members, axis=2, bitorder="little").view(np.uint32).reshape(x.shape)
            agree = bits == whole
            put(e, flat(e, np.where(agree, whole, np.uint32(0))))
            put_pred(e, flat(e, agree))
        else:
            put(e, flat(e, bits))

    return run


def _redux(step: Warp, algebra: NumpyAlgebra) -> Runner:
    t = step.type
    name, *flags = step.mode.split(".")
    get = getter(step.srcs[0], TYPES[f"b{t.bits}"] if t.name != "f32" else t)
    put = putter(step.dsts[0], B32)
    mask_get = getter(step.mask, U32)  # type: ignore[arg-type]
    signed = t is S32
    if t.name == "f32":
        from porter.verify.emulator.ops.floating import min_max32

        fold = min_max32(name, "NaN" in flags, False)
    else:
        fold = None

    def run(e: Env) -> None:
        x = matrix(e, get(e))
        members = _members(e, mask_get, here(e))
        if members.ndim == 2:
            members = np.broadcast_to(members[:, None, :], (*members.shape, WARP))
            rows = 1
        else:
            rows = WARP
        members = members[:, :rows]
        wide = np.broadcast_to(x[:, None, :], members.shape)
        if fold is not None:
            values = np.abs(wide) if "abs" in flags else wide
            # lanes outside the mask repeat the first member's value
            first = members.argmax(axis=2)
            chosen = np.where(members, values, np.take_along_axis(values, first[..., None], axis=2))
            r = np.ascontiguousarray(chosen[..., 0])
            for lane in range(1, WARP):
                r = fold(algebra, r, np.ascontiguousarray(chosen[..., lane]))
            result = recast(r, np.dtype(np.uint32))
        else:
            neutral = {"add": 0, "or": 0, "xor": 0, "and": 0xFFFFFFFF, "min": 0x7FFFFFFF if signed else 0xFFFFFFFF,
                       "max": 0x80000000 if signed else 0}[name]  # fmt: skip
            chosen = np.where(members, wide, np.uint32(neutral))
            if signed and name in ("min", "max"):
                chosen = chosen.view(np.int32)
            ufunc = {"add": np.add, "or": np.bitwise_or, "xor": np.bitwise_xor, "and": np.bitwise_and,
                     "min": np.minimum, "max": np.maximum}[name]  # fmt: skip
            result = ufunc.reduce(chosen, axis=2, dtype=chosen.dtype).view(np.uint32)
        put(e, flat(e, np.ascontiguousarray(np.broadcast_to(result, x.shape))))

    return run


def _elect(step: Warp, algebra: NumpyAlgebra) -> Runner:
    put, put_pred = putter(step.dsts[0], B32), putter(step.dsts[1], PRED)
    mask_get = getter(step.mask, U32)  # type: ignore[arg-type]

    def run(e: Env) -> None:
        present = here(e)
        members = _members(e, mask_get, present)
        if members.ndim == 2:
            leader = np.broadcast_to(members.argmax(axis=1)[:, None], present.shape)
        else:
            leader = members.argmax(axis=2)
        put(e, flat(e, leader.astype(np.uint32)))
        put_pred(e, flat(e, leader == _LANES))

    return run


def _activemask(step: Warp, algebra: NumpyAlgebra) -> Runner:
    put = putter(step.dsts[0], B32)

    def run(e: Env) -> None:
        present = here(e)
        put(e, flat(e, np.ascontiguousarray(np.broadcast_to(ballot(present)[:, None], present.shape))))

    return run


_MAKERS: dict[str, Callable[[Warp, NumpyAlgebra], Runner]] = {
    "shfl": _shfl,
    "vote": _vote,
    "match": _match,
    "redux": _redux,
    "elect": _elect,
    "activemask": _activemask,
    "sync": lambda step, algebra: lambda e: None,
}
