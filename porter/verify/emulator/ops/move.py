"""Address space conversions and packing: cvta, isspacep, mapa, getctarank, and mov between scalars and vectors."""

from __future__ import annotations

from typing import Any

from porter.verify.emulator.decode.ir import Instr, Vector
from porter.verify.emulator.decode.types import B64, PRED, TYPES, U32
from porter.verify.emulator.memory.layout import CLUSTER_SHIFT, WINDOW_BITS, WINDOWS
from porter.verify.emulator.ops.algebra import Algebra
from porter.verify.emulator.ops.table import Mods, PureOp, pure

V = Any


def space_of(mods: list[str]) -> str:
    """Takes the state space out of a list of modifiers ("global", "shared", ...); "" for none."""
    for mod in mods:
        space = mod.split("::")[0]
        if space in ("global", "shared", "local", "param", "const"):
            mods.remove(mod)
            return space
    return ""


@pure("cvta")
def cvta(i: Instr) -> PureOp:
    m = Mods(i)
    to = m.flag("to")
    space = space_of(m.left)
    t = m.type()
    m.done()
    base = WINDOWS.get(space, 0)
    if t.bits != 64:
        raise m.unsupported("only 64-bit addresses")
    if not base:
        return PureOp((t,), (t,), lambda b, x: x)
    if to:
        return PureOp((t,), (t,), lambda b, x: b.sub(x, b.const(64, base)))
    return PureOp((t,), (t,), lambda b, x: b.add(x, b.const(64, base)))


@pure("isspacep")
def isspacep(i: Instr) -> PureOp:
    m = Mods(i)
    space = space_of(m.left)
    m.done()

    def fn(b: Algebra, x: V) -> V:
        window = b.lshr(x, b.const(64, WINDOW_BITS))
        if space in WINDOWS:
            return b.eq(window, b.const(64, WINDOWS[space] >> WINDOW_BITS))
        if space == "const":
            return b.ne(x, x)
        return b.ult(x, b.const(64, min(WINDOWS.values())))

    return PureOp((PRED,), (B64,), fn)


@pure("mapa")
def mapa(i: Instr) -> PureOp:
    """The address of the same variable in another block of the cluster."""
    m = Mods(i)
    space = space_of(m.left)
    t = m.type()
    m.done()

    def fn(b: Algebra, x: V, rank: V) -> V:
        r = rank if t.bits == 32 else b.zext(rank, 64)
        part = b.shl(b.add(r, b.const(t.bits, 1)), b.const(t.bits, CLUSTER_SHIFT))
        low = b.and_(x, b.const(t.bits, (1 << CLUSTER_SHIFT) - 1))
        base = 0 if space == "shared" else WINDOWS["shared"]
        return b.add(b.or_(low, part), b.const(t.bits, base))

    return PureOp((t,), (t, U32), fn)


@pure("mov")
def mov(i: Instr) -> PureOp:
    """Only the packing and unpacking forms; plain moves are the backend's own."""
    m = Mods(i)
    t = m.type()
    m.done()
    d, s = i.operands
    if isinstance(s, Vector):
        return pack(m, t.bits, len(s.items))
    if isinstance(d, Vector):
        return unpack(m, t.bits, len(d.items))
    raw = TYPES[f"b{t.bits}"] if t.bits > 1 else PRED
    return PureOp((raw,), (raw,), lambda b, x: x)


def pack(m: Mods, bits: int, n: int) -> PureOp:
    if bits > 64:
        return PureOp((TYPES["b128"],), (B64, B64), lambda b, low, high: b.pair128(low, high))
    part = TYPES[f"b{bits // n}"]

    def fn(b: Algebra, *items: V) -> V:
        r = b.zext(items[0], bits)
        for k, item in enumerate(items[1:], 1):
            r = b.or_(r, b.shl(b.zext(item, bits), b.const(bits, k * bits // n)))
        return r

    return PureOp((TYPES[f"b{bits}"],), (part,) * n, fn)


def unpack(m: Mods, bits: int, n: int) -> PureOp:
    if bits > 64:
        return PureOp((B64, B64), (TYPES["b128"],), lambda b, x: b.split128(x))
    part = TYPES[f"b{bits // n}"]

    def fn(b: Algebra, x: V) -> tuple[V, ...]:
        return tuple(b.trunc(b.lshr(x, b.const(bits, k * bits // n)) if k else x, bits // n) for k in range(n))

    return PureOp((part,) * n, (TYPES[f"b{bits}"],), fn)
