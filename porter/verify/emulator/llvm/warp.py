"""Warp-level instructions over all 32 lanes of a warp, from register slot to register slot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from porter.verify.emulator.decode.program import Const, Dst, RegSrc, SpecialSrc, Src, Warp
from porter.verify.emulator.llvm.text import Refused

if TYPE_CHECKING:
    from porter.verify.emulator.llvm.emit import Emitter

_V = "<32 x i32>"
_IOTA = "<" + ", ".join(f"i32 {k}" for k in range(32)) + ">"


def emit_warp_step(e: Emitter, step: Warp, mask: str) -> None:
    """`mask`: i32 of the active lanes. Raises Refused."""
    kind = {"shfl": _shfl, "vote": _vote, "redux": _redux, "elect": _elect, "activemask": _activemask, "match": _match}
    if step.kind == "sync":
        return
    if step.kind not in kind:
        raise Refused(step.source.opcode)
    kind[step.kind](e, step, mask)


def _words(e: Emitter, source: Src) -> str:
    """A 32-bit source for all lanes."""
    w = e.w
    if isinstance(source, Const):
        return f"splat (i32 {source.value & 0xFFFFFFFF})"
    if isinstance(source, SpecialSrc):
        if source.name == "laneid":
            return _IOTA
        raise Refused(f"%{source.name}")
    if source.type.bits != 32:
        raise Refused("a warp operand that is not of 32 bits")
    if source.index not in e.slots:
        return "zeroinitializer"
    return w.op(f"load {_V}, ptr {e.slot(source.index)}, align 4")


def _put_words(e: Emitter, dst: Dst | None, value: str, mask: str) -> None:
    if dst is None or dst.index not in e.slots:
        return
    w = e.w
    if dst.type.bits != 32:
        raise Refused("a warp result that is not of 32 bits")
    p = e.slot(dst.index)
    here = w.op(f"bitcast i32 {mask} to <32 x i1>")
    old = w.op(f"load {_V}, ptr {p}, align 4")
    w.do(f"store {_V} {w.op(f'select <32 x i1> {here}, {_V} {value}, {_V} {old}')}, ptr {p}, align 4")


def _put_bits(e: Emitter, dst: Dst | None, bits: str, mask: str) -> None:
    if dst is None or dst.index not in e.slots:
        return
    w = e.w
    p = e.slot(dst.index)
    old = w.op(f"load i32, ptr {p}")
    changed = w.op(f"and i32 {w.op(f'xor i32 {old}, {bits}')}, {mask}")
    w.do(f"store i32 {w.op(f'xor i32 {old}, {changed}')}, ptr {p}")


def _pred_bits(e: Emitter, source: Src) -> str:
    if isinstance(source, Const):
        return "-1" if source.value & 1 else "0"
    assert isinstance(source, RegSrc)
    if source.index not in e.slots:
        return "-1" if source.negated else "0"
    return e.pred_mask(source.index, source.negated)


def _splat(e: Emitter, scalar: str) -> str:
    one = e.w.op(f"insertelement {_V} poison, i32 {scalar}, i64 0")
    return e.w.op(f"shufflevector {_V} {one}, {_V} poison, <32 x i32> zeroinitializer")


def _fixed_lanes(mode: str, b: int, c: int) -> tuple[list[int], int]:
    """Source lanes and the bits of those in range, for operands known when compiling."""
    lanes, inside = [], 0
    bound, segment, b = c & 31, (c >> 8) & 31, b & 31
    for lane in range(32):
        top = (lane & segment) | (bound & ~segment)
        sources = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": (lane & segment) | (b & ~segment & 31)}
        source = sources[mode]
        ok = source >= top if mode == "up" else source <= top
        lanes.append(source if ok else lane)
        inside |= ok << lane
    return lanes, inside


def _shfl(e: Emitter, step: Warp, mask: str) -> None:
    w = e.w
    value = _words(e, step.srcs[0])
    b, c = step.srcs[1:]
    # lanes that are not here show 0
    here = w.op(f"bitcast i32 {mask} to <32 x i1>")
    value = w.op(f"select <32 x i1> {here}, {_V} {value}, {_V} zeroinitializer")
    if isinstance(b, Const) and isinstance(c, Const):
        lanes, inside = _fixed_lanes(step.mode, b.value, c.value)
        order = ", ".join(f"i32 {j}" for j in lanes)
        result = w.op(f"shufflevector {_V} {value}, {_V} poison, <32 x i32> <{order}>")
        there = w.op(f"shufflevector <32 x i1> {here}, <32 x i1> poison, <32 x i32> <{order}>")
        _all_there(e, there, mask)
        _put_words(e, step.dsts[0], result, mask)
        _put_bits(e, step.dsts[1], str(inside if inside < 1 << 31 else inside - (1 << 32)), mask)
        return
    bv = w.op(f"and {_V} {_words(e, b)}, splat (i32 31)")
    cv = _words(e, c)
    bound = w.op(f"and {_V} {cv}, splat (i32 31)")
    segment = w.op(f"and {_V} {w.op(f'lshr {_V} {cv}, splat (i32 8)')}, splat (i32 31)")
    outside = w.op(f"xor {_V} {segment}, splat (i32 -1)")
    low = w.op(f"and {_V} {_IOTA}, {segment}")
    top = w.op(f"or {_V} {low}, {w.op(f'and {_V} {bound}, {outside}')}")
    if step.mode == "up":
        j = w.op(f"sub {_V} {_IOTA}, {bv}")
        ok = w.op(f"icmp sge {_V} {j}, {top}")
    else:
        if step.mode == "down":
            j = w.op(f"add {_V} {_IOTA}, {bv}")
        elif step.mode == "bfly":
            j = w.op(f"xor {_V} {_IOTA}, {bv}")
        else:
            j = w.op(f"or {_V} {low}, {w.op(f'and {_V} {bv}, {outside}')}")
        ok = w.op(f"icmp sle {_V} {j}, {top}")
    j = w.op(f"select <32 x i1> {ok}, {_V} {j}, {_V} {_IOTA}")
    member = w.op(f"lshr {_V} {_splat(e, mask)}, {w.op(f'and {_V} {j}, splat (i32 31)')}")
    _all_there(e, w.op(f"trunc {_V} {member} to <32 x i1>"), mask)
    w.do(f"store {_V} {value}, ptr %scratch, align 4")
    result = "zeroinitializer"
    for lane in range(32):
        index = w.op(f"extractelement {_V} {j}, i64 {lane}")
        p = w.op(f"getelementptr i32, ptr %scratch, i32 {index}")
        result = w.op(f"insertelement {_V} {result}, i32 {w.op(f'load i32, ptr {p}')}, i64 {lane}")
    _put_words(e, step.dsts[0], result, mask)
    _put_bits(e, step.dsts[1], w.op(f"bitcast <32 x i1> {ok} to i32"), mask)


def _all_there(e: Emitter, there: str, mask: str) -> None:
    """Bails out where an active lane takes the value of one that is not here; `there` are bits by reader."""
    w = e.w
    bits = w.op(f"bitcast <32 x i1> {there} to i32")
    absent = w.op(f"and i32 {mask}, {w.op(f'xor i32 {bits}, -1')}")
    fine = w.new_label("sources")
    w.branch(w.op(f"icmp eq i32 {absent}, 0"), fine, "bail")
    w.start(fine)


def _members(e: Emitter, step: Warp, mask: str) -> str:
    """i32 of the lanes that take part; all lanes must name the same mask."""
    w = e.w
    assert step.mask is not None
    if isinstance(step.mask, Const):
        named = str(step.mask.value & 0xFFFFFFFF)
    elif isinstance(step.mask, RegSrc) and step.mask.index in e.slots:
        named = e.uniform(step.mask, mask)
    else:
        raise Refused(step.source.opcode)
    return w.op(f"and i32 {named}, {mask}")


def _vote(e: Emitter, step: Warp, mask: str) -> None:
    w = e.w
    members = _members(e, step, mask)
    yes = w.op(f"and i32 {_pred_bits(e, step.srcs[0])}, {members}")
    if step.mode == "ballot":
        _put_words(e, step.dsts[0], _splat(e, yes), mask)
        return
    every = w.op(f"icmp eq i32 {yes}, {members}")
    none = w.op(f"icmp eq i32 {yes}, 0")
    if step.mode == "all":
        result = every
    elif step.mode == "any":
        result = w.op(f"xor i1 {none}, true")
    else:
        result = w.op(f"or i1 {every}, {none}")
    _put_bits(e, step.dsts[0], w.op(f"sext i1 {result} to i32"), mask)


def _redux(e: Emitter, step: Warp, mask: str) -> None:
    w = e.w
    name = step.mode
    if step.type.name == "f32":
        raise Refused(step.source.opcode)
    signed = step.type.signed
    neutral = {
        "add": 0,
        "or": 0,
        "xor": 0,
        "and": -1,
        "min": 0x7FFFFFFF if signed else -1,
        "max": -0x80000000 if signed else 0,
    }[name]
    here = w.op(f"bitcast i32 {_members(e, step, mask)} to <32 x i1>")
    values = w.op(f"select <32 x i1> {here}, {_V} {_words(e, step.srcs[0])}, {_V} splat (i32 {neutral})")
    function = name if name in ("add", "or", "xor", "and") else ("s" if signed else "u") + name
    w.declare(f"declare i32 @llvm.vector.reduce.{function}.v32i32({_V})")
    result = w.op(f"call i32 @llvm.vector.reduce.{function}.v32i32({_V} {values})")
    _put_words(e, step.dsts[0], _splat(e, result), mask)


def _elect(e: Emitter, step: Warp, mask: str) -> None:
    w = e.w
    members = _members(e, step, mask)
    w.declare("declare i32 @llvm.cttz.i32(i32, i1)")
    leader = w.op(f"call i32 @llvm.cttz.i32(i32 {members}, i1 false)")
    _put_words(e, step.dsts[0], _splat(e, leader), mask)
    bit = w.op(f"and i32 {members}, {w.op(f'sub i32 0, {members}')}")
    _put_bits(e, step.dsts[1], bit, mask)


def _activemask(e: Emitter, step: Warp, mask: str) -> None:
    _put_words(e, step.dsts[0], _splat(e, mask), mask)


def _match(e: Emitter, step: Warp, mask: str) -> None:
    w = e.w
    if step.type.bits != 32:
        raise Refused(step.source.opcode)
    members = _members(e, step, mask)
    values = _words(e, step.srcs[0])
    result, agree = "zeroinitializer", "0"
    for lane in range(32):
        x = w.op(f"extractelement {_V} {values}, i64 {lane}")
        same = w.op(f"bitcast <32 x i1> {w.op(f'icmp eq {_V} {values}, {_splat(e, x)}')} to i32")
        bits = w.op(f"and i32 {same}, {members}")
        if step.mode == "all":
            every = w.op(f"icmp eq i32 {bits}, {members}")
            agree = w.op(
                f"or i32 {agree}, {w.op(f'select i1 {every}, i32 {1 << lane if lane < 31 else -(1 << 31)}, i32 0')}"
            )
            bits = w.op(f"select i1 {every}, i32 {bits}, i32 0")
        result = w.op(f"insertelement {_V} {result}, i32 {bits}, i64 {lane}")
    _put_words(e, step.dsts[0], result, mask)
    if step.mode == "all" and len(step.dsts) > 1:
        _put_bits(e, step.dsts[1], agree, mask)
