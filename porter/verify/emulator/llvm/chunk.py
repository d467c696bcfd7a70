"""The steps of one segment for one chunk of lanes: values in SSA form, memory through accesses.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from porter.verify.emulator.decode.program import (
    Atomic,
    Const,
    Copy,
    Dst,
    Guard,
    HostCall,
    Load,
    MemoryOperand,
    Pure,
    RegSrc,
    SpecialSrc,
    Src,
    Store,
)
from porter.verify.emulator.decode.types import PRED, PtxType
from porter.verify.emulator.llvm.accesses import emit_atomic, emit_load, emit_store
from porter.verify.emulator.llvm.copies import emit_copy
from porter.verify.emulator.llvm.text import BITS, Refused, Value

if TYPE_CHECKING:
    from porter.verify.emulator.llvm.emit import Emitter

_TABLES = {"tid.x": "tid_x", "tid.y": "tid_y", "tid.z": "tid_z"}
_SCALARS = {f"{name}.{axis}": f"{name}_{axis}" for name in ("ctaid", "ntid", "nctaid") for axis in "xyz"}
_SCALARS |= {"dynamic_smem_size": "dynamic_smem", "nwarpid": "warps"}

Work = Pure | Load | Store | Atomic | Copy | HostCall


class Chunk:
    def __init__(self, emitter: Emitter, index: str, active: str, bits: str):
        self.e, self.w, self.b = emitter, emitter.w, emitter.b
        self.index, self.active, self.bits = index, active, bits  # chunk number, <L x i1>, iL
        self.values: dict[int, Value] = {}
        self.written: set[int] = set()
        self.last_site = ""  # the cell of the region cache of the last access

    # registers
    def pointer(self, register: int, size: int) -> str:
        """Where this chunk's lanes of a register lie; `size` bytes a lane (0: one bit)."""
        w = self.w
        base = self.e.slot(register)
        stride = size * w.lanes if size else w.lanes // 8
        return w.op(f"getelementptr i8, ptr {base}, i64 {w.op(f'mul i64 {self.index}, {stride}')}")

    def read(self, register: int) -> Value:
        found = self.values.get(register)
        if found is not None:
            return found
        w, t = self.w, self.e.program.registers[register]
        if register not in self.e.slots:  # never written before it is read
            value = self.b.const(t.raw.itemsize * 8 if t.bits > 1 else 1, 0)
        elif t is PRED:
            bits = w.op(f"load i{w.lanes}, ptr {self.pointer(register, 0)}")
            value = Value(w.op(f"bitcast i{w.lanes} {bits} to {w.vec('i1')}"), "i1")
        else:
            kind = f"i{8 * t.raw.itemsize}"
            value = Value(w.op(f"load {w.vec(kind)}, ptr {self.pointer(register, t.raw.itemsize)}, align 4"), kind)
        self.values[register] = value
        return value

    def store_back(self, live: int) -> None:
        """Registers that live on go to the warp's memory, for the active lanes."""
        w = self.w
        for register in sorted(self.written):
            if not live >> register & 1:
                continue
            t = self.e.program.registers[register]
            value = self.values[register]
            if t is PRED:
                p = self.pointer(register, 0)
                new = w.op(f"bitcast {w.vec('i1')} {value.name} to i{w.lanes}")
                old = w.op(f"load i{w.lanes}, ptr {p}")
                changed = w.op(f"and i{w.lanes} {w.op(f'xor i{w.lanes} {new}, {old}')}, {self.bits}")
                w.do(f"store i{w.lanes} {w.op(f'xor i{w.lanes} {old}, {changed}')}, ptr {p}")
                continue
            value = self.raw(value)
            p = self.pointer(register, t.raw.itemsize)
            old = w.op(f"load {w.vec(value.type)}, ptr {p}, align 4")
            vec = w.vec(value.type)
            new = w.op(f"select {w.vec('i1')} {self.active}, {vec} {value.name}, {vec} {old}")
            w.do(f"store {vec} {new}, ptr {p}, align 4")

    def raw(self, value: Value) -> Value:
        """As bits, with canonical NaN where it is the result of f32 arithmetic."""
        if value.type == "float":
            return self.b.canonical(value)
        return self.b.bits_of(value) if value.type == "double" else value

    def get(self, source: Src, want: PtxType) -> Value:
        b = self.b
        target = {"f32": "float", "f64": "double"}.get(want.name, "i1" if want is PRED else f"i{8 * want.raw.itemsize}")
        if want.bits > 64:
            raise Refused("128-bit values")
        bits = 1 if want is PRED else 8 * want.raw.itemsize
        if isinstance(source, Const):
            value = b.const(bits, source.value)
        elif isinstance(source, SpecialSrc):
            value = b.zext(self.special(source.name), bits)
        else:
            value = self.read(source.index)
            if source.negated:
                value = b.not_(value)
        if value.type == target:
            return value
        value = self.raw(value) if want is not PRED else value
        if BITS[value.type] != bits:
            value = b.zext(value, bits)
        return b._convert("bitcast", value, target)

    def put(self, dst: Dst | None, value: Value, have: PtxType, guard: str | None) -> None:
        if dst is None:
            return
        w, b, t = self.w, self.b, dst.type
        if t is not PRED:
            size = 8 * t.raw.itemsize
            if BITS[value.type] != size:
                value = self.raw(value)
                value = b.sext(value, size) if have.signed and BITS[value.type] < size else b.zext(value, size)
        if guard is not None:
            old = self.read(dst.index)
            if old.type != value.type:
                old, value = self.raw(old), self.raw(value)
            vec = w.vec(value.type)
            value = Value(w.op(f"select {w.vec('i1')} {guard}, {vec} {value.name}, {vec} {old.name}"), value.type)
        self.values[dst.index] = value
        self.written.add(dst.index)

    def special(self, name: str) -> Value:
        w, b = self.w, self.b
        lanes = w.lanes
        if name in _TABLES:
            table = w.op(f"inttoptr i64 %c.{_TABLES[name]} to ptr")
            p = w.op(f"getelementptr i32, ptr {table}, i64 {self.thread0()}")
            return Value(w.op(f"load {w.vec('i32')}, ptr {p}, align 4"), "i32")
        if name in _SCALARS:
            return Value(w.splat("i32", w.op(f"trunc i64 %c.{_SCALARS[name]} to i32")), "i32")
        if name == "warpid":
            return Value(w.splat("i32", "%number"), "i32")
        if name == "laneid" or name.startswith("lanemask_"):
            start = w.splat("i32", w.op(f"trunc i64 {w.op(f'mul i64 {self.index}, {lanes}')} to i32"))
            iota = "<" + ", ".join(f"i32 {k}" for k in range(lanes)) + ">"
            lane = Value(w.op(f"add {w.vec('i32')} {start}, {iota}"), "i32")
            if name == "laneid":
                return lane
            one = b.shl(b.const(32, 1), lane)
            below = b.sub(one, b.const(32, 1))
            upto = b.or_(below, one)
            return {"eq": lambda: one, "lt": lambda: below, "le": lambda: upto, "ge": lambda: b.not_(below),
                    "gt": lambda: b.not_(upto)}[name[9:]]()  # fmt: skip
        raise Refused(f"%{name}")

    # steps
    def step(self, step: Work) -> None:
        guard = self.guard(step.guard)
        if isinstance(step, HostCall):  # output, or an assertion that does not hold
            w = self.w
            go = w.new_label("quiet")
            w.branch(w.op(f"icmp eq i{w.lanes} {self.lanes_of(guard)}, 0"), go, "bail")
            w.start(go)
            return
        if isinstance(step, Pure):
            types = [*step.op.srcs, *[PRED] * step.op.carry_in]
            values = [self.get(s, t) for s, t in zip(step.srcs, types, strict=False)]
            result = step.op.fn(self.b, *values)
            kinds = [*step.op.dsts, *[PRED] * step.op.carry_out]
            results = result if isinstance(result, tuple) and not isinstance(result, Value) else (result,)
            for dst, value, kind in zip(step.dsts, results, kinds, strict=False):
                self.put(dst, value, kind, guard)
        elif isinstance(step, Load):
            emit_load(self, step, guard)
        elif isinstance(step, Store):
            emit_store(self, step, guard)
        elif isinstance(step, Copy):
            emit_copy(self, step, guard)
        else:
            emit_atomic(self, step, guard)

    def guard(self, guard: Guard | None) -> str | None:
        if guard is None:
            return None
        p = self.read(guard.index)
        return self.b.not_(p).name if guard.negated else p.name

    def lanes_of(self, guard: str | None) -> str:
        """iL of the lanes that take part."""
        w = self.w
        if guard is None:
            return self.bits
        p = w.op(f"bitcast {w.vec('i1')} {guard} to i{w.lanes}")
        return w.op(f"and i{w.lanes} {self.bits}, {p}")

    def addresses(self, place: MemoryOperand, extra: int) -> Value:
        """<L x i64> addresses inside the place's space."""
        b = self.b
        offset = place.offset + extra
        if place.base is None:
            return b.const(64, offset)
        if isinstance(place.base, Const):
            return b.const(64, place.base.value + offset)
        assert isinstance(place.base, RegSrc)
        value = self.raw(self.read(place.base.index))
        if BITS[value.type] <= 32:
            value = b.zext(value, 32)
            return b.zext(b.add(value, b.const(32, offset)) if offset else value, 64)
        return b.add(value, b.const(64, offset)) if offset else value

    def thread0(self) -> str:
        """An i64: the first lane's thread in its block."""
        return self.w.op(f"add i64 %thread.base, {self.w.op(f'mul i64 {self.index}, {self.w.lanes}')}")
