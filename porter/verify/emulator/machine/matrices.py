"""Matrix instructions of the numpy interpreter: ldmatrix, stmatrix, movmatrix and mma.sync.

Integer products are exact. Floating-point products are summed in f64 along k and rounded once: hardware truncates
inside its adders in a way that is not published, so results of the two may differ in the last bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from porter.verify.emulator.decode.program import MatrixMove, MatrixMultiply
from porter.verify.emulator.decode.types import B32, PtxType
from porter.verify.emulator.errors import UnsupportedPtx
from porter.verify.emulator.machine.environment import Env
from porter.verify.emulator.machine.evaluate import Runner, getter, putter
from porter.verify.emulator.machine.warps import flat, matrix
from porter.verify.emulator.machine.wave import WARP
from porter.verify.emulator.memory.access import LanesKilled, Resolver, address_getter, deposit, fetch
from porter.verify.emulator.ops import narrow
from porter.verify.emulator.ops.numpy_algebra import NumpyAlgebra

_LANE = np.arange(WARP)
_ROW, _WORD = _LANE // 4, _LANE % 4  # which row of an 8x8 matrix of b16 a lane holds, and which 32-bit word of it


def compile_matrix(step: MatrixMove | MatrixMultiply, algebra: NumpyAlgebra) -> Runner:
    if isinstance(step, MatrixMultiply):
        return _multiply(step, algebra)
    if step.kind == "movmatrix":
        return _transpose(step)
    return _move(step)


def _to_lanes(m: np.ndarray, transposed: bool) -> np.ndarray:
    """(warps, 8, 8) of u16 as the (warps, 32) words that the lanes hold."""
    if transposed:
        m = m.transpose(0, 2, 1)
    return np.ascontiguousarray(m).view(np.uint32).reshape(-1, 8, 4)[:, _ROW, _WORD]


def _from_lanes(words: np.ndarray, transposed: bool) -> np.ndarray:
    """The reverse."""
    m = np.ascontiguousarray(words).reshape(-1, 8, 4).view(np.uint16).reshape(-1, 8, 8)
    return m.transpose(0, 2, 1) if transposed else m


def _transpose(step: MatrixMove) -> Runner:
    get, put = getter(step.srcs[0], B32), putter(step.dsts[0], B32)

    def run(e: Env) -> None:
        m = _from_lanes(matrix(e, get(e)), True)
        put(e, flat(e, _to_lanes(m, False)))

    return run


def _move(step: MatrixMove) -> Runner:
    assert step.place is not None
    writes = step.kind == "stmatrix"
    address_of = address_getter(step.place)
    resolver = Resolver(step.source, step.place, 16, writes)
    puts = [putter(d, B32) for d in step.dsts]
    gets = [getter(s, B32) for s in step.srcs]
    count = step.count
    if len(puts if not writes else gets) != count:
        raise UnsupportedPtx(step.source.opcode, step.source.line, "number of registers")

    def run(e: Env) -> None:
        wave = e.wave
        address = e.each(address_of(e))
        rows = e.ids % WARP < 8 * count  # these lanes name the rows
        inner = e.narrowed(rows)
        resolved = resolver(inner, address[rows])
        warps = wave.threads // WARP
        killed = list(resolved.killed)
        if writes:
            lines = np.zeros((warps, 4, 8, 8), np.uint16)
            for k, get in enumerate(gets):
                lines[:, k] = _from_lanes(matrix(e, get(e)), step.transposed)
            data = lines.reshape(wave.threads, 8).view(np.complex128).reshape(-1)[inner.ids]
            if wave.observers:
                wave.observe(inner, step, resolved, 16, data)
            deposit(inner, resolved, 16, data)
        else:
            if wave.observers:
                wave.observe(inner, step, resolved, 16)
            whole = np.zeros(wave.threads, np.complex128)
            whole[inner.ids] = fetch(inner, step.source, resolved, 16)
            lines = whole.view(np.uint16).reshape(warps, 4, 8, 8)
            for k, put in enumerate(puts):
                put(e, flat(e, np.ascontiguousarray(_to_lanes(lines[:, k], step.transposed))))
        if killed:
            raise LanesKilled(np.unique(np.concatenate(killed)))

    return run


def _elements(words: np.ndarray, t: PtxType, b: NumpyAlgebra) -> np.ndarray:
    """(warps, 32) registers as (warps, 32, elements) of f64 or int64."""
    raw = np.ascontiguousarray(words)
    if t.name in ("tf32", "b32"):
        return (raw & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)[..., None]
    if t.name == "f16":
        return raw.view(np.float16).reshape(*words.shape, 2).astype(np.float64)
    if t.name == "bf16":
        halves = raw.view(np.uint16).reshape(*words.shape, 2).astype(np.uint32) << np.uint32(16)
        return halves.view(np.float32).astype(np.float64)
    bytes_ = raw.view(np.uint8).reshape(*words.shape, 4)
    if t.name in ("e4m3", "e5m2"):
        codes = bytes_.reshape(-1).astype(np.uint32)
        return narrow.widen(b, codes, narrow.FORMATS[t.name]).astype(np.float64).reshape(*words.shape, 4)  # type: ignore[no-any-return]
    if t.name in ("s8", "u8"):
        return (bytes_.view(np.int8) if t.signed else bytes_).astype(np.int64)
    raise KeyError(t.name)


def _multiply(step: MatrixMultiply, b: NumpyAlgebra) -> Runner:
    rows, columns, depth = step.shape
    d_type, a_type, b_type, c_type = step.types
    per = {"f16": 2, "bf16": 2, "tf32": 1, "e4m3": 4, "e5m2": 4, "s8": 4, "u8": 4}.get(a_type.name, 0)
    integer = a_type.name in ("s8", "u8")
    half_out = d_type.name == "f16"
    known = d_type.name in (("s32",) if integer else ("f32", "f16")) and c_type is d_type
    if (rows, columns) != (16, 8) or not per or depth % (4 * per) or not known:
        raise UnsupportedPtx(step.source.opcode, step.source.line)
    blocks = depth // (4 * per)
    if len(step.a) != 2 * blocks or len(step.b) != blocks or len(step.dsts) != (2 if half_out else 4):
        raise UnsupportedPtx(step.source.opcode, step.source.line, "number of registers")
    a_get, b_get, c_get = ([getter(s, B32) for s in part] for part in (step.a, step.b, step.c))
    puts = [putter(d, B32) for d in step.dsts]
    saturate = "satfinite" in step.source.mods and integer
    number: Any = np.int64 if integer else np.float64
    g, q = _LANE // 4, _LANE % 4

    def run(e: Env) -> None:
        warps = e.wave.threads // WARP
        left = np.zeros((warps, 16, depth), number)
        right = np.zeros((warps, depth, 8), number)
        for k, get in enumerate(a_get):
            values = _elements(matrix(e, get(e)), a_type, b)
            for j in range(per):
                left[:, g + 8 * (k & 1), (k >> 1) * 4 * per + q * per + j] = values[..., j]
        for k, get in enumerate(b_get):
            values = _elements(matrix(e, get(e)), b_type, b)
            for j in range(per):
                right[:, k * 4 * per + q * per + j, g] = values[..., j]
        total = np.zeros((warps, 16, 8), number)
        for k, get in enumerate(c_get):
            words = np.ascontiguousarray(matrix(e, get(e)))
            if half_out:
                pair = words.view(np.float16).reshape(warps, WARP, 2).astype(np.float64)
                total[:, g + 8 * k, 2 * q], total[:, g + 8 * k, 2 * q + 1] = pair[..., 0], pair[..., 1]
            else:
                one = words.view(np.int32 if integer else np.float32).astype(number)
                total[:, g + 8 * (k >> 1), 2 * q + (k & 1)] = one
        for k in range(depth):
            total = total + left[:, :, k : k + 1] * right[:, k : k + 1, :]
        if integer:
            if saturate:
                total = np.clip(total, -(1 << 31), (1 << 31) - 1)
            out = total.astype(np.int32).view(np.uint32)
        else:
            out = b.canonical(total.astype(np.float32))
        for k, put in enumerate(puts):
            if half_out:
                low, high = (
                    b.f32_to_half(b.f64_to_f32_odd(np.ascontiguousarray(total[:, g + 8 * k, 2 * q + j])))
                    for j in (0, 1)
                )
                put(e, flat(e, low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)))
            else:
                put(e, flat(e, np.ascontiguousarray(out[:, g + 8 * (k >> 1), 2 * q + (k & 1)])))

    return run
