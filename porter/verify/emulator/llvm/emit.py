"""A Program as the text of an LLVM module: one function that runs one warp from wherever its lanes are.

Each lane has a program counter. While all lanes of a warp are together, segments jump to each other directly; when
they part, the lanes with the lowest counter go first. A segment is a loop over chunks of lanes; registers that live
from one segment to the next lie in the warp's memory, predicates as one bit a lane.
"""

from __future__ import annotations

from dataclasses import dataclass

from porter.verify.emulator.decode.program import (
    Atomic,
    Barrier,
    Branch,
    Const,
    Copy,
    Exit,
    Fence,
    Goto,
    Hint,
    HostCall,
    Load,
    Program,
    Pure,
    RegSrc,
    Segment,
    Store,
    Switch,
    Warp,
)
from porter.verify.emulator.llvm import abi
from porter.verify.emulator.llvm.abi import (
    BAIL,
    BARRIER,
    COUNT,
    DONE,
    EPOCH,
    LAST,
    PCS,
    REGISTERS,
    WAITING,
    context,
)
from porter.verify.emulator.llvm.algebra import LlvmAlgebra
from porter.verify.emulator.llvm.chunk import Chunk, Work
from porter.verify.emulator.llvm.runtime import signatures
from porter.verify.emulator.llvm.text import Refused, Writer
from porter.verify.emulator.llvm.warp import emit_warp_step

FUEL = 1 << 24  # loop segments a warp may run without meeting a barrier
SPIN = 1 << 6  # the same for what may be a spin wait, which never ends here: each counts for so many


@dataclass(frozen=True)
class Compiled:
    """What the engine needs beside the code."""

    text: str
    warp_stride: int
    sites: int
    segments: int


@dataclass(frozen=True)
class Guards:
    """What the code checks: reads of what was never written; races, with log2 of the granule (None: not at all)."""

    track: bool = True
    shared: int | None = None
    global_: int | None = None

    @property
    def races(self) -> bool:
        return self.shared is not None or self.global_ is not None

    def race(self, kind: int) -> bool:
        """May an access of this kind (abi.KINDS) race?"""
        if kind == abi.GENERIC:
            return self.races
        granule = {abi.SHARED: self.shared, abi.GLOBAL: self.global_}.get(kind)
        return granule is not None


class Emitter:
    def __init__(self, program: Program, lanes: int, guards: Guards):
        self.program, self.lanes, self.guards = program, lanes, guards
        self.track = guards.track
        self.w = Writer(lanes)
        self.b = LlvmAlgebra(self.w)
        self.sites = 0
        self.slots: dict[int, int] = {}  # register -> byte offset in the warp's memory
        self._place_registers()

    def _place_registers(self) -> None:
        crossing = 0
        for segment in self.program.segments:
            crossing |= segment.live_in | segment.live_out
            for step in segment.steps[:1]:
                if segment.warp_sync is step or isinstance(step, Warp):
                    for dst in getattr(step, "dsts", ()):
                        crossing |= 1 << dst.index if dst is not None else 0
        at = REGISTERS
        for index, t in enumerate(self.program.registers):
            if crossing >> index & 1:
                if t.bits > 64:
                    raise Refused("128-bit registers")
                at = (at + 63) // 64 * 64
                self.slots[index] = at
                at += 4 if t.bits == 1 else 32 * t.raw.itemsize
        self.warp_stride = (at + 127) // 64 * 64

    def site(self) -> str:
        """A fresh cell of the region cache, as a pointer name."""
        w = self.w
        name = w.op(f"getelementptr i64, ptr %sites, i64 {self.sites * abi.REGION_WORDS}")
        self.sites += 1
        return name

    def call(self, function: str, *operands: str) -> str:
        """Calls a function of the runtime and returns its result ("": it has none)."""
        result, parameters = signatures()[function]
        self.w.declare(f"declare {result} @{function}({', '.join(parameters)})")
        passed = ", ".join(f"{t} {operand}" for t, operand in zip(parameters, operands, strict=True))
        if result == "void":
            self.w.do(f"call void @{function}({passed})")
            return ""
        return self.w.op(f"call {result} @{function}({passed})")

    def bail_unless(self, condition: str) -> None:
        """Gives the launch up to the interpreter where an i1 does not hold."""
        fine = self.w.new_label("fine")
        self.w.branch(condition, fine, "bail")
        self.w.start(fine)

    def module(self) -> Compiled:
        w, segments = self.w, self.program.segments
        names = [
            n for n in abi.CONTEXT if n not in ("regions", "region_count", "order", "alive", "crossed", "warp_memory")
        ]
        head = "".join(context(n) for n in names)
        pre = [
            "define i32 @warp(ptr %ctx, ptr %wp, i32 %number) {", "entry:", head.rstrip(),
            "  %sites = inttoptr i64 %c.sites to ptr", "  %counts = inttoptr i64 %c.counts to ptr",
            "  %scratch = inttoptr i64 %c.scratch to ptr",
            "  %mask.p = alloca i32", "  %fuel.p = alloca i64", "  %parked.p = alloca i32",
            f"  store i64 {FUEL}, ptr %fuel.p", "  store i32 0, ptr %parked.p",
            "  %awaited.p = alloca i32", "  store i32 0, ptr %awaited.p",
            "  %number64 = zext i32 %number to i64", "  %thread.base = mul i64 %number64, 32",
            f"  %pcs = getelementptr i8, ptr %wp, i64 {PCS}", "  br label %dispatch",
        ]  # fmt: skip
        self.dispatch()
        for segment in segments:
            self.segment(segment)
        w.start("bail")
        w.do(f"ret i32 {BAIL}")
        text = "\n".join([
            *sorted(w.declared),
            *pre, *w.lines, "}",
        ])  # fmt: skip
        return Compiled(text, self.warp_stride, self.sites, len(segments))

    # control ---------------------------------------------------------------------------------------------------------
    def dispatch(self) -> None:
        """Chooses the lanes with the lowest counter and goes where they are."""
        w, n = self.w, len(self.program.segments)
        w.start("dispatch")
        alive = w.op("load i32, ptr %wp")
        none = w.op(f"icmp eq i32 {alive}, 0")
        w.branch(none, "finished", "pick")
        w.start("finished")
        w.do(f"ret i32 {DONE}")
        w.start("pick")
        parked = w.op("load i32, ptr %parked.p")
        awake = w.op(f"xor i32 {parked}, -1")
        free = w.op(f"and i32 {alive}, {awake}")
        pcs = w.op("load <32 x i32>, ptr %pcs, align 64")
        lanes = w.op(f"bitcast i32 {free} to <32 x i1>")
        w.declare("declare i32 @llvm.vector.reduce.umin.v32i32(<32 x i32>)")
        chosen = w.op(f"select <32 x i1> {lanes}, <32 x i32> {pcs}, <32 x i32> splat (i32 2147483647)")
        low = w.op(f"call i32 @llvm.vector.reduce.umin.v32i32(<32 x i32> {chosen})")
        one = w.op(f"insertelement <32 x i32> poison, i32 {low}, i64 0")
        all_low = w.op(f"shufflevector <32 x i32> {one}, <32 x i32> poison, <32 x i32> zeroinitializer")
        same = w.op(f"icmp eq <32 x i32> {pcs}, {all_low}")
        bits = w.op(f"bitcast <32 x i1> {same} to i32")
        mask = w.op(f"and i32 {bits}, {alive}")
        w.do(f"store i32 {mask}, ptr %mask.p")
        still = w.op(f"xor i32 {mask}, -1")
        w.do(f"store i32 {w.op(f'and i32 {parked}, {still}')}, ptr %parked.p")
        targets = [f"i32 {s.index}, label %seg{s.index}" for s in self.program.segments]
        targets += [
            f"i32 {n + s.index}, label %bar{s.index}" for s in self.program.segments if isinstance(s.end, Barrier)
        ]
        w.do(f"switch i32 {low}, label %bail [ {' '.join(targets)} ]")

    def put_pc(self, mask: str, target: str) -> None:
        w = self.w
        lanes = w.op(f"bitcast i32 {mask} to <32 x i1>")
        old = w.op("load <32 x i32>, ptr %pcs, align 64")
        one = w.op(f"insertelement <32 x i32> poison, i32 {target}, i64 0")
        new = w.op(f"shufflevector <32 x i32> {one}, <32 x i32> poison, <32 x i32> zeroinitializer")
        both = w.op(f"select <32 x i1> {lanes}, <32 x i32> {new}, <32 x i32> {old}")
        w.do(f"store <32 x i32> {both}, ptr %pcs, align 64")

    def jump(self, mask: str, target: int) -> None:
        """All lanes in `mask` go to a segment: at once if no other lane is alive, else through dispatch."""
        w = self.w
        rest = self.rest(mask)
        alone, apart = w.new_label("alone"), w.new_label("apart")
        w.branch(w.op(f"icmp eq i32 {rest}, 0"), alone, apart)
        w.start(apart)
        self.put_pc(mask, str(target))
        w.jump("dispatch")
        w.start(alone)
        w.jump(f"seg{target}")

    def rest(self, mask: str) -> str:
        w = self.w
        alive = w.op("load i32, ptr %wp")
        return w.op(f"and i32 {alive}, {w.op(f'xor i32 {mask}, -1')}")

    def segment(self, segment: Segment) -> None:
        w = self.w
        w.start(f"seg{segment.index}")
        mask = w.op("load i32, ptr %mask.p", "mask")
        steps = list(segment.steps)
        if segment.warp_sync is not None:
            if not isinstance(segment.warp_sync, Warp):
                raise Refused(segment.warp_sync.source.opcode)
            self.meet(segment.warp_sync, mask, segment.index)
        count_p = w.op(f"getelementptr i64, ptr %counts, i64 {segment.index}")
        w.declare("declare i32 @llvm.ctpop.i32(i32)")
        members = w.op(f"zext i32 {w.op(f'call i32 @llvm.ctpop.i32(i32 {mask})')} to i64")
        so_far = w.op(f"load i64, ptr {count_p}")
        w.do(f"store i64 {w.op(f'add i64 {so_far}, {members}')}, ptr {count_p}")
        if segment.loop >= 0:
            fuel = w.op(f"sub i64 {w.op('load i64, ptr %fuel.p')}, {SPIN if segment.spins else 1}")
            w.do(f"store i64 {fuel}, ptr %fuel.p")
            on = w.new_label("on")
            w.branch(w.op(f"icmp sgt i64 {fuel}, 0"), on, "bail")
            w.start(on)
        while steps and isinstance(steps[0], Warp):
            step = steps.pop(0)
            assert isinstance(step, Warp)
            if step.guard is not None:
                raise Refused(f"guarded {step.source.opcode}")
            emit_warp_step(self, step, mask)
        stored = False
        work: list[Work] = []
        for step in steps:
            if isinstance(step, (Hint, Fence)) or (isinstance(step, Pure) and step.needless):
                continue
            if not isinstance(step, (Pure, Load, Store, Atomic, Copy, HostCall)):
                raise Refused(step.source.opcode)
            work.append(step)
            if isinstance(step, Load) and step.order != "weak" and stored:
                raise Refused("a strong load behind a store of the same segment")
            stored = stored or isinstance(step, (Store, Copy))
        if work:
            self.chunks(segment, work, mask)
        self.end(segment, mask)

    def meet(self, step: Warp, mask: str, index: int) -> None:
        """Waits until every living lane that the member mask names is here."""
        w = self.w
        assert step.mask is not None
        alive = w.op("load i32, ptr %wp")
        outside = ""
        if isinstance(step.mask, Const):
            members = str(step.mask.value & 0xFFFFFFFF)
            if step.mask.value & 0xFFFFFFFF != 0xFFFFFFFF:
                outside = w.op(f"and i32 {mask}, {step.mask.value & 0xFFFFFFFF ^ 0xFFFFFFFF}")
        elif isinstance(step.mask, RegSrc):
            # lanes may name different masks; waiting for all of them is enough where that ends
            here = w.op(f"bitcast i32 {mask} to <32 x i1>")
            values = w.op(f"load <32 x i32>, ptr {self.slot(step.mask.index)}, align 64")
            kept = w.op(f"select <32 x i1> {here}, <32 x i32> {values}, <32 x i32> zeroinitializer")
            w.declare("declare i32 @llvm.vector.reduce.or.v32i32(<32 x i32>)")
            members = w.op(f"call i32 @llvm.vector.reduce.or.v32i32(<32 x i32> {kept})")
            own = "<" + ", ".join(f"i32 {1 << k if k < 31 else -(1 << 31)}" for k in range(32)) + ">"
            named = w.op(f"icmp ne <32 x i32> {w.op(f'and <32 x i32> {values}, {own}')}, zeroinitializer")
            named_bits = w.op(f"bitcast <32 x i1> {named} to i32")
            outside = w.op(f"and i32 {mask}, {w.op(f'xor i32 {named_bits}, -1')}")
            self.agree(values, mask)
        else:
            raise Refused(step.source.opcode)
        if outside:  # a lane that its own mask does not name is reported
            inside = w.new_label("named")
            w.branch(w.op(f"icmp eq i32 {outside}, 0"), inside, "bail")
            w.start(inside)
        needed = w.op(f"and i32 {members}, {alive}")
        missing = w.op(f"and i32 {needed}, {w.op(f'xor i32 {mask}, -1')}")
        wait, go = w.new_label("park"), w.new_label("met")
        w.branch(w.op(f"icmp eq i32 {missing}, 0"), go, wait)
        w.start(wait)
        leaving = "0"  # lanes that do nothing but exit from where they are are not waited for
        pcs = w.op("load <32 x i32>, ptr %pcs, align 64")
        for segment in self.program.segments:
            if segment.leaves:
                same = w.op(f"icmp eq <32 x i32> {pcs}, splat (i32 {segment.index})")
                there = w.op(f"bitcast <32 x i1> {same} to i32")
                leaving = w.op(f"or i32 {leaving}, {there}")
        awaited = w.op(f"and i32 {missing}, {w.op(f'xor i32 {leaving}, -1')}")
        before = w.op("load i32, ptr %awaited.p")
        w.do(f"store i32 {w.op(f'or i32 {before}, {awaited}')}, ptr %awaited.p")
        self.put_pc(mask, str(index))
        parked = w.op("load i32, ptr %parked.p")
        w.do(f"store i32 {w.op(f'or i32 {parked}, {mask}')}, ptr %parked.p")
        w.jump("dispatch")
        w.start(go)
        came = w.new_label("came")  # a lane that was waited for and exited instead is reported
        never = w.op(f"and i32 {w.op('load i32, ptr %awaited.p')}, {w.op(f'xor i32 {alive}, -1')}")
        w.branch(w.op(f"icmp eq i32 {w.op(f'and i32 {never}, {members}')}, 0"), came, "bail")
        w.start(came)
        w.do("store i32 0, ptr %awaited.p")
        if self.guards.races:  # a new epoch, if the last one has accesses
            at = [w.op(f"getelementptr i8, ptr %wp, i64 {k}") for k in (EPOCH, LAST)]
            epoch, last = (w.op(f"load i32, ptr {p}") for p in at)
            more = w.op(f"zext i1 {w.op(f'icmp eq i32 {epoch}, {last}')} to i32")
            w.do(f"store i32 {w.op(f'add i32 {epoch}, {more}')}, ptr {at[0]}")

    def agree(self, masks: str, here: str) -> None:
        """Bails out where a lane of `here` names one that is here with another of the 32 masks: that is reported."""
        w = self.w
        before, head, body, fine = w.label, *(w.new_label(n) for n in ("masks", "group", "agreed"))
        left, rest = w.fresh("left"), w.fresh("rest")
        w.declare("declare i32 @llvm.cttz.i32(i32, i1)")
        w.jump(head)
        w.start(head)  # lanes with one mask after those with another, starting from the lowest that is left
        w.lines.append(f"  {left} = phi i32 [ {here}, %{before} ], [ {rest}, %{body} ]")
        w.branch(w.op(f"icmp eq i32 {left}, 0"), fine, body)
        w.start(body)
        lane = w.op(f"call i32 @llvm.cttz.i32(i32 {left}, i1 true)")
        own = w.op(f"extractelement <32 x i32> {masks}, i32 {lane}")
        one = w.op(f"insertelement <32 x i32> poison, i32 {own}, i64 0")
        all_ = w.op(f"shufflevector <32 x i32> {one}, <32 x i32> poison, <32 x i32> zeroinitializer")
        equal = w.op(f"bitcast <32 x i1> {w.op(f'icmp eq <32 x i32> {masks}, {all_}')} to i32")
        same, named = w.op(f"and i32 {equal}, {here}"), w.op(f"and i32 {own}, {here}")
        w.lines.append(f"  {rest} = and i32 {left}, {w.op(f'xor i32 {same}, -1')}")
        w.branch(w.op(f"icmp eq i32 {same}, {named}"), head, "bail")
        w.start(fine)

    def slot(self, index: int) -> str:
        """Pointer to a register's 32 lanes."""
        if index not in self.slots:
            raise Refused("a register without a slot")  # only reached through undefined registers
        return self.w.op(f"getelementptr i8, ptr %wp, i64 {self.slots[index]}")

    def chunks(self, segment: Segment, steps: list[Work], mask: str) -> None:
        """The loop over chunks of lanes that runs the steps."""
        w = self.w
        head, body, tail, out = (w.new_label(x) for x in ("chunk", "body", "next", "out"))
        before = w.label
        step_name = w.fresh("c")
        w.jump(head)
        w.start(head)
        c = w.fresh("chunk")
        w.lines.append(f"  {c} = phi i64 [ 0, %{before} ], [ {step_name}, %{tail} ]")
        w.branch(w.op(f"icmp ult i64 {c}, {32 // self.lanes}"), body, out)
        w.start(body)
        shift = w.op(f"trunc i64 {w.op(f'mul i64 {c}, {self.lanes}')} to i32")
        bits = w.op(f"trunc i32 {w.op(f'lshr i32 {mask}, {shift}')} to i{self.lanes}")
        work = w.new_label("work")
        w.branch(w.op(f"icmp eq i{self.lanes} {bits}, 0"), tail, work)
        w.start(work)
        active = w.op(f"bitcast i{self.lanes} {bits} to {w.vec('i1')}")
        chunk = Chunk(self, c, active, bits)
        for step in steps:
            chunk.step(step)
        chunk.store_back(segment.live_out)
        w.jump(tail)
        w.start(tail)
        w.lines.append(f"  {step_name} = add i64 {c}, 1")
        w.jump(head)
        w.start(out)

    def pred_mask(self, index: int, negated: bool) -> str:
        """A predicate's 32 bits."""
        w = self.w
        bits = w.op(f"load i32, ptr {self.slot(index)}")
        return w.op(f"xor i32 {bits}, -1") if negated else bits

    def end(self, segment: Segment, mask: str) -> None:
        w, end = self.w, segment.end
        if isinstance(end, Goto):
            self.jump(mask, end.target)
        elif isinstance(end, Branch):
            if end.guard.index not in self.slots:
                raise Refused("a branch on an undefined predicate")
            p = self.pred_mask(end.guard.index, end.guard.negated)
            taken = w.op(f"and i32 {mask}, {p}")
            other = w.op(f"and i32 {mask}, {w.op(f'xor i32 {p}, -1')}")
            no, some, yes, both = (w.new_label(x) for x in ("none", "some", "all", "both"))
            w.branch(w.op(f"icmp eq i32 {taken}, 0"), no, some)
            w.start(no)
            self.jump(mask, end.other)
            w.start(some)
            w.branch(w.op(f"icmp eq i32 {other}, 0"), yes, both)
            w.start(yes)
            self.jump(mask, end.taken)
            w.start(both)
            self.put_pc(taken, str(end.taken))
            self.put_pc(other, str(end.other))
            w.jump("dispatch")
        elif isinstance(end, Exit):
            if end.trap:
                w.jump("bail")
                return
            w.do(f"store i32 {self.rest(mask)}, ptr %wp")
            w.jump("dispatch")
        elif isinstance(end, Switch):
            self.switch(end, mask)
        else:
            self.barrier(end, segment, mask)

    def switch(self, end: Switch, mask: str) -> None:
        w = self.w
        if not isinstance(end.index, RegSrc):
            raise Refused("a branch table with a constant index")
        # each lane's target becomes its counter
        values = w.op(f"load <32 x i32>, ptr {self.slot(end.index.index)}, align 64")
        pcs = w.op("load <32 x i32>, ptr %pcs, align 64")
        here = w.op(f"bitcast i32 {mask} to <32 x i1>")
        result = pcs
        for k, target in enumerate(end.targets):
            hit = w.op(f"icmp eq <32 x i32> {values}, splat (i32 {k})")
            both = w.op(f"and <32 x i1> {hit}, {here}")
            result = w.op(f"select <32 x i1> {both}, <32 x i32> splat (i32 {target}), <32 x i32> {result}")
        w.do(f"store <32 x i32> {result}, ptr %pcs, align 64")
        w.jump("dispatch")

    def barrier(self, end: Barrier, segment: Segment, mask: str) -> None:
        w = self.w
        if end.kind != "sync":
            raise Refused(f"{end.source.opcode}")
        n = len(self.program.segments)
        together, apart = f"bar{segment.index}", w.new_label("apart")
        w.branch(w.op(f"icmp eq i32 {self.rest(mask)}, 0"), together, apart)
        w.start(apart)  # the other lanes first; they must come here too
        self.put_pc(mask, str(n + segment.index))
        w.jump("dispatch")
        w.start(together)
        here = w.op("load i32, ptr %mask.p")
        full = w.new_label("full")
        w.branch(w.op(f"icmp eq i32 {self.rest(here)}, 0"), full, "bail")
        w.start(full)
        self.put_pc(here, str(end.target))
        for source, offset in ((end.id, BARRIER), (end.count, COUNT)):
            if source is None:
                value = "0"
            elif isinstance(source, Const):
                value = str(source.value)
            elif isinstance(source, RegSrc):
                value = self.uniform(source, here)
            else:
                raise Refused(end.source.opcode)
            w.do(f"store i32 {value}, ptr {w.op(f'getelementptr i8, ptr %wp, i64 {offset}')}")
        w.do(f"ret i32 {WAITING}")

    def uniform(self, source: RegSrc, mask: str) -> str:
        """A 32-bit register's value, which all lanes in `mask` must share."""
        w = self.w
        values = w.op(f"load <32 x i32>, ptr {self.slot(source.index)}, align 64")
        w.declare("declare i32 @llvm.cttz.i32(i32, i1)")
        lane = w.op(f"call i32 @llvm.cttz.i32(i32 {mask}, i1 true)")
        value = w.op(f"extractelement <32 x i32> {values}, i32 {lane}")
        one = w.op(f"insertelement <32 x i32> poison, i32 {value}, i64 0")
        all_ = w.op(f"shufflevector <32 x i32> {one}, <32 x i32> poison, <32 x i32> zeroinitializer")
        same = w.op(f"bitcast <32 x i1> {w.op(f'icmp eq <32 x i32> {values}, {all_}')} to i32")
        differing = w.op(f"and i32 {mask}, {w.op(f'xor i32 {same}, -1')}")
        ok = w.new_label("agree")
        w.branch(w.op(f"icmp eq i32 {differing}, 0"), ok, "bail")
        w.start(ok)
        return value
