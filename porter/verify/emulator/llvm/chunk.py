"""The steps of one segment for one chunk of lanes: values in SSA form, memory in wide accesses where lanes allow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from porter.verify.emulator.checks.ordering import GPU, level_of
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
from porter.verify.emulator.llvm import runtime
from porter.verify.emulator.llvm.copies import emit_copy
from porter.verify.emulator.llvm.records import LANES, STRONG
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
            at = w.op(f"add i64 %thread.base, {w.op(f'mul i64 {self.index}, {lanes}')}")
            p = w.op(f"getelementptr i32, ptr {table}, i64 {at}")
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
            self.load(step, guard)
        elif isinstance(step, Store):
            self.store(step, guard)
        elif isinstance(step, Copy):
            emit_copy(self, step, guard)
        else:
            self.atomic(step, guard)

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

    def access(
        self,
        place: MemoryOperand,
        extra: int,
        part: int,
        per: int,
        align: int,
        lanes: str,
        stored: str | None,
        mark: int,
    ) -> str | None:
        """One access of `per` elements of `part` bytes a lane. Loads give <L*per x iE>; stores write `stored`.

        `mark`: the flags of the access in the records of the race check.
        """
        w, e = self.w, self.e
        n, width = w.lanes, part * per
        kind = runtime.KINDS[place.space]
        address = self.addresses(place, extra)
        total = n * width
        element = f"i{8 * part}"
        row_type = f"<{n * per} x {element}>"
        site = self.last_site = e.site()
        races = e.guards.race(kind)
        name, text = (runtime.lane_store if stored else runtime.lane_load)(width, mark if races else None)
        e.use(name, text)
        wide, single, slow, done, start = (w.new_label(x) for x in ("wide", "single", "slow", "done", "access"))
        incoming = [("poison", w.label)]
        w.branch(w.op(f"icmp eq i{n} {lanes}, 0"), done, start)
        w.start(start)
        if kind != runtime.LOCAL and not (races and mark):
            words = w.vec("i64")
            first = w.op(f"extractelement {words} {address.name}, i64 0")
            distance = w.op(f"sub {words} {address.name}, {w.splat('i64', first)}")
            steps = "<" + ", ".join(f"i64 {k * width}" for k in range(n)) + ">"
            in_row = w.op(f"bitcast {w.vec('i1')} {w.op(f'icmp eq {words} {distance}, {steps}')} to i{n}")
            full = w.op(f"icmp eq i{n} {lanes}, -1")
            row = w.op(f"and i1 {full}, {w.op(f'icmp eq i{n} {in_row}, -1')}")
            not_row = w.new_label("notrow") if not stored else slow
            w.branch(row, wide, not_row)
            w.start(wide)
            host, shadow = self.window(kind, site, first, total, align, bool(stored), slow)
            if races:
                self.calm("row.write" if stored else "row.read", kind, site, first, total, width, slow)
            if stored:
                w.do(f"store {row_type} {stored}, ptr {host}, align 1")
                self.mark(shadow, total)
                w.jump(done)
            else:
                value = w.op(f"load {row_type}, ptr {host}, align 1")
                self.verify(shadow, total)
                incoming.append((value, w.label))
                w.jump(done)
                w.start(not_row)
                zeros = w.op(f"icmp eq {words} {distance}, zeroinitializer")
                equal = w.op(f"bitcast {w.vec('i1')} {zeros} to i{n}")
                one = w.op(f"and i1 {full}, {w.op(f'icmp eq i{n} {equal}, -1')}")
                w.branch(one, single, slow)
                w.start(single)
                host, shadow = self.window(kind, site, first, width, align, False, slow)
                if races:
                    self.calm("lane.read", kind, site, first, width, width, slow)
                small = f"<{per} x {element}>"
                piece = w.op(f"load {small}, ptr {host}, align 1")
                self.verify(shadow, width)
                order = ", ".join(f"i32 {k % per}" for k in range(n * per))
                value = w.op(f"shufflevector {small} {piece}, {small} poison, <{n * per} x i32> <{order}>")
                incoming.append((value, w.label))
                w.jump(done)
        else:
            w.jump(slow)
        w.start(slow)
        w.do(f"store {w.vec('i64')} {address.name}, ptr %scratch, align 8")
        data = w.op("getelementptr i8, ptr %scratch, i64 512")
        if stored:
            w.do(f"store {row_type} {stored}, ptr {data}, align 1")
        thread = w.op(f"add i64 %thread.base, {w.op(f'mul i64 {self.index}, {n}')}")
        mask = w.op(f"zext i{n} {lanes} to i32")
        ok = w.op(
            f"call i1 @{name}(ptr %ctx, ptr %wp, ptr {site}, ptr %scratch, i32 {mask}, i64 {align - 1}, ptr {data}, "
            f"i32 {kind}, i64 {thread})"
        )
        good = w.new_label("good")
        w.branch(ok, good, "bail")
        w.start(good)
        if not stored:
            incoming.append((w.op(f"load {row_type}, ptr {data}, align 1"), w.label))
        w.jump(done)
        w.start(done)
        if stored:
            return None
        pairs = ", ".join(f"[ {v}, %{label} ]" for v, label in incoming)
        return w.op(f"phi {row_type} {pairs}")

    def calm(self, check: str, kind: int, site: str, first: str, total: int, width: int, otherwise: str) -> None:
        """Goes `otherwise` where a weak access of all lanes, a row or one place, cannot be told from a race at once."""
        w = self.w
        if kind == runtime.SHARED:
            triple = w.op(f"getelementptr i64, ptr %ctx, i64 {runtime.SLOT['smem_race']}")
            offset = first
        else:
            triple = w.op(f"getelementptr i64, ptr {site}, i64 {runtime.RACE_WORD}")
            offset = w.op(f"sub i64 {first}, {w.op(f'load i64, ptr {site}')}")
        thread = w.op(f"trunc i64 {w.op(f'add i64 %thread.base, {self.lane0()}')} to i32")
        if check == "lane.read":
            last = f"i64 {width}, i32 {w.op(f'or i32 {thread}, {LANES}')}"
        else:
            last = f"i64 {total}, i32 {width.bit_length() - 1}, i32 {thread}"
        ok = w.op(f"call i1 @{check}(ptr %ctx, ptr %wp, ptr {triple}, i64 {offset}, {last})")
        fine = w.new_label("calm")
        w.branch(ok, fine, otherwise)
        w.start(fine)

    def lane0(self) -> str:
        """The first lane of this chunk."""
        return self.w.op(f"mul i64 {self.index}, {self.w.lanes}")

    def window(
        self, kind: int, site: str, first: str, total: int, align: int, write: bool, otherwise: str
    ) -> tuple[str, str | None]:
        """Pointers for `total` bytes from address `first`: to the bytes and to their shadow (an i64 that may be 0)."""
        w = self.w
        if kind in (runtime.SHARED, runtime.PARAM):
            size, host_base = ("%c.smem_size", "%c.smem") if kind == runtime.SHARED else ("%c.params_size", "%c.params")
            offset = first
        else:
            offset = w.op(f"sub i64 {first}, {w.op(f'load i64, ptr {site}')}")
            size = w.op(f"load i64, ptr {w.op(f'getelementptr i64, ptr {site}, i64 1')}")
        # inside, and aligned: offset <= size - total (both below 2^63), and no low bit set
        room = w.op(f"sub i64 {size}, {total}")
        bad = w.op(f"or i64 {w.op(f'sub i64 {room}, {offset}')}, {offset}")  # negative if one of them is
        low = w.op(f"and i64 {first}, {align - 1}") if align > 1 else "0"
        ok = w.op(f"and i1 {w.op(f'icmp sge i64 {bad}, 0')}, {w.op(f'icmp eq i64 {low}, 0')}")
        if write and kind not in (runtime.SHARED, runtime.PARAM):
            writable = w.op(f"load i64, ptr {w.op(f'getelementptr i64, ptr {site}, i64 4')}")
            ok = w.op(f"and i1 {ok}, {w.op(f'icmp ne i64 {writable}, 0')}")
        if write and kind == runtime.PARAM:
            ok = "false"
        inside = w.new_label("inside")
        w.branch(ok, inside, otherwise)
        w.start(inside)
        if kind in (runtime.SHARED, runtime.PARAM):
            host = w.op(f"inttoptr i64 {w.op(f'add i64 {host_base}, {first}')} to ptr")
            if kind == runtime.PARAM or not self.e.track:
                return host, None
            return host, w.op(f"add i64 %c.smem_shadow, {first}")
        delta = w.op(f"load i64, ptr {w.op(f'getelementptr i64, ptr {site}, i64 2')}")
        host = w.op(f"inttoptr i64 {w.op(f'add i64 {first}, {delta}')} to ptr")
        if not self.e.track:
            return host, None
        moved = w.op(f"load i64, ptr {w.op(f'getelementptr i64, ptr {site}, i64 3')}")
        there = w.op(f"icmp ne i64 {moved}, 0")
        return host, w.op(f"select i1 {there}, i64 {w.op(f'add i64 {first}, {moved}')}, i64 0")

    def verify(self, shadow: str | None, total: int) -> None:
        """Bails out unless `total` bytes are initialised."""
        if shadow is None:
            return
        w = self.w
        self.e.use("verify", runtime.VERIFY)
        fine = w.new_label("fine")
        w.branch(w.op(f"call i1 @verify(i64 {shadow}, i64 {total})"), fine, "bail")
        w.start(fine)

    def mark(self, shadow: str | None, total: int) -> None:
        """Marks bytes as initialised."""
        if shadow is None:
            return
        self.e.use("mark", runtime.MARK)
        self.w.do(f"call void @mark(i64 {shadow}, i64 {total})")

    def mark_of(self, step: Load | Store | Atomic) -> int:
        """Flags of an access in the records of the race check."""
        level = 0 if getattr(step, "order", "") == "volatile" else level_of(step)  # `lockstep`: the interpreter decides
        return STRONG if level >= GPU or (level and step.place.space == "shared") else 0

    def load(self, step: Load, guard: str | None) -> None:
        t = step.type
        if t.bits > 64:
            raise Refused("128-bit loads")
        count, part = len(step.dsts), t.bytes
        width = min(part * count, 16)
        loads, per = part * count // width, width // part
        lanes = self.lanes_of(guard)
        kind = f"i{8 * part}"
        for k in range(loads):
            align = part * count if k == 0 else width
            items = self.access(step.place, k * width, part, per, align, lanes, None, self.mark_of(step))
            assert items is not None
            if "nc" in step.source.mods and self.e.guards.global_ is not None:
                self.read_only(lanes)
            for j, value in enumerate(self.parts(items, per, kind)):
                self.put(step.dsts[k * per + j], value, t, guard)

    def read_only(self, lanes: str) -> None:
        """Bails out where the last load was of memory that the kernel may write."""
        w = self.w
        writable = w.op(f"load i64, ptr {w.op(f'getelementptr i64, ptr {self.last_site}, i64 4')}")
        some = w.op(f"icmp ne i{w.lanes} {lanes}, 0")
        bad = w.op(f"and i1 {some}, {w.op(f'icmp ne i64 {writable}, 0')}")
        fine = w.new_label("constant")
        w.branch(bad, "bail", fine)
        w.start(fine)

    def parts(self, items: str, per: int, kind: str) -> list[Value]:
        """The `per` vectors that hold each lane's first, second... element of what `access` loaded."""
        w, n = self.w, self.w.lanes
        found = []
        for j in range(per):
            value = items
            if per > 1:
                order = ", ".join(f"i32 {lane * per + j}" for lane in range(n))
                wide = f"<{n * per} x {kind}>"
                value = w.op(f"shufflevector {wide} {items}, {wide} poison, <{n} x i32> <{order}>")
            # lanes that did not load must not carry poison into what they share with others
            found.append(Value(w.op(f"freeze {w.vec(kind)} {value}"), kind))
        return found

    def store(self, step: Store, guard: str | None) -> None:
        t = step.type
        if t.bits > 64:
            raise Refused("128-bit stores")
        count, part = len(step.srcs), t.bytes
        width = min(part * count, 16)
        stores, per = part * count // width, width // part
        lanes = self.lanes_of(guard)
        kind = f"i{8 * part}"
        raw = PtxType(f"b{t.bits}", t.bits, "b")
        for k in range(stores):
            parts = [self.get(s, _stored(raw)).name for s in step.srcs[k * per : (k + 1) * per]]
            items = self.interleave(parts, kind)
            align = part * count if k == 0 else width
            self.access(step.place, k * width, part, per, align, lanes, items, self.mark_of(step))

    def interleave(self, parts: list[str], kind: str) -> str:
        """One vector that holds lane 0 of every part, then lane 1..."""
        w, n = self.w, self.w.lanes
        size = 1
        while len(parts) > 1:
            vec = f"<{n * size} x {kind}>"
            half = len(parts) // 2
            order = ", ".join(
                f"i32 {(source * n * size) + lane * size + k}"
                for lane in range(n)
                for source in (0, 1)
                for k in range(size)
            )
            # pair part i with part i + half only after their own halves are complete: join neighbours instead
            parts = [
                w.op(f"shufflevector {vec} {parts[2 * i]}, {vec} {parts[2 * i + 1]}, <{2 * n * size} x i32> <{order}>")
                for i in range(half)
            ]
            size *= 2
        return parts[0]

    def atomic(self, step: Atomic, guard: str | None) -> None:
        w, t = self.w, step.type
        if len(step.srcs) != 1 or t.bits not in (32, 64) or step.place.space == "param":
            raise Refused(step.source.opcode)
        try:
            races = self.e.guards.race(runtime.KINDS[step.place.space])
            name, text = runtime.lane_atomic(step.op, t.name, t.bytes, self.mark_of(step) if races else None)
        except KeyError as error:
            raise Refused(step.source.opcode) from error
        self.e.use(name, text)
        kind, vec = f"i{t.bits}", w.vec(f"i{t.bits}")
        raw = _stored(PtxType(f"b{t.bits}", t.bits, "b"))
        lanes = self.lanes_of(guard)
        address = self.addresses(step.place, 0)
        site = self.e.site()
        w.do(f"store {w.vec('i64')} {address.name}, ptr %scratch, align 8")
        data, operands, compares = (w.op(f"getelementptr i8, ptr %scratch, i64 {at}") for at in (512, 1024, 1536))
        w.do(f"store {vec} {self.get(step.srcs[0], raw).name}, ptr {operands}, align 8")
        if step.compare is not None:
            w.do(f"store {vec} {self.get(step.compare, raw).name}, ptr {compares}, align 8")
        thread = w.op(f"add i64 %thread.base, {w.op(f'mul i64 {self.index}, {w.lanes}')}")
        mask = w.op(f"zext i{w.lanes} {lanes} to i32")
        ok = w.op(
            f"call i1 @{name}(ptr %ctx, ptr %wp, ptr {site}, ptr %scratch, i32 {mask}, i64 {t.bytes - 1}, ptr {data}, "
            f"i32 {runtime.KINDS[step.place.space]}, i64 {thread}, ptr {operands}, ptr {compares})"
        )
        good = w.new_label("good")
        w.branch(ok, good, "bail")
        w.start(good)
        for dst in step.dsts:
            self.put(dst, Value(w.op(f"load {vec}, ptr {data}, align 8"), kind), t, guard)


def _stored(raw: PtxType) -> PtxType:
    from porter.verify.emulator.decode.types import TYPES

    return TYPES[raw.name]
