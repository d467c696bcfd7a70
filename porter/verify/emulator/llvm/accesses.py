"""Loads, stores and atomics of a chunk of lanes: in wide accesses where lanes allow it, else lane by lane.

Where the lanes' addresses are consecutive (a row), or all the same, one access of the host serves all of them. The
runtime does the rest, lane by lane (runtime/lanes.c), and also what these fast ways cannot tell at once: an address in
another memory than the site's last one, or a suspicion of a race.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from porter.verify.emulator.checks.ordering import GPU, level_of
from porter.verify.emulator.decode.program import Atomic, Load, MemoryOperand, Store
from porter.verify.emulator.decode.types import TYPES, PtxType
from porter.verify.emulator.llvm import abi
from porter.verify.emulator.llvm.records import LANES, STRONG
from porter.verify.emulator.llvm.text import Refused, Value

if TYPE_CHECKING:
    from porter.verify.emulator.llvm.chunk import Chunk

WIDEST = 16  # bytes a lane that are accessed at once

# where the runtime finds what it accesses lane by lane, in the scratch memory: addresses, data, operands, compares
DATA, OPERANDS, COMPARES = 512, 1024, 1536


class Access:
    """One access of `per` elements of `part` bytes a lane. `lanes`: iL of those that take part.

    `align`: bytes. `flags`: of the access in the records of the race check.
    """

    def __init__(
        self, chunk: Chunk, place: MemoryOperand, extra: int, part: int, per: int, align: int, lanes: str, flags: int
    ):  # fmt: skip
        self.chunk, self.w, self.e = chunk, chunk.w, chunk.e
        self.n = chunk.w.lanes
        self.per, self.align, self.lanes, self.flags = per, align, lanes, flags
        self.width = part * per
        self.element = f"i{8 * part}"
        self.kind = abi.KINDS[place.space]
        self.races = self.e.guards.race(self.kind)
        self.address = chunk.addresses(place, extra)
        self.site = chunk.last_site = self.e.site()
        self.wide, self.single, self.slow, self.done = (self.w.new_label(x) for x in ("wide", "single", "slow", "done"))

    @property
    def row_type(self) -> str:
        return f"<{self.n * self.per} x {self.element}>"

    def load(self) -> str:
        """<L*per x iE>, lane by lane."""
        w = self.w
        arrivals = [("poison", w.label)]
        self.begin()
        if self.may_be_wide:
            full, first, distance = self.shape()
            other = w.new_label("notrow")
            w.branch(self.is_row(full, distance), self.wide, other)
            w.start(self.wide)
            arrivals.append(self.load_row(first))
            w.start(other)
            equal = w.op(f"icmp eq {w.vec('i64')} {distance}, zeroinitializer")
            w.branch(w.op(f"and i1 {full}, {self.everywhere(equal)}"), self.single, self.slow)
            w.start(self.single)
            arrivals.append(self.load_one(first))
        else:
            w.jump(self.slow)
        w.start(self.slow)
        data = self.lane_by_lane(f"load{self.width}")
        arrivals.append((w.op(f"load {self.row_type}, ptr {data}, align 1"), w.label))
        w.jump(self.done)
        w.start(self.done)
        return w.op(f"phi {self.row_type} " + ", ".join(f"[ {v}, %{label} ]" for v, label in arrivals))

    def store(self, items: str) -> None:
        """`items`: <L*per x iE>, lane by lane."""
        w = self.w
        self.begin()
        if self.may_be_wide:
            full, first, distance = self.shape()
            w.branch(self.is_row(full, distance), self.wide, self.slow)
            w.start(self.wide)
            host, shadow = self.window(first, self.n * self.width, write=True)
            self.check_row("row_write", first)
            w.do(f"store {self.row_type} {items}, ptr {host}, align 1")
            if shadow is not None:
                self.e.call("mark", shadow, str(self.n * self.width))
            w.jump(self.done)
        else:
            w.jump(self.slow)
        w.start(self.slow)
        self.lane_by_lane(f"store{self.width}", items)
        w.jump(self.done)
        w.start(self.done)

    def begin(self) -> None:
        """Goes to `done` where no lane takes part."""
        w = self.w
        start = w.new_label("access")
        w.branch(w.op(f"icmp eq i{self.n} {self.lanes}, 0"), self.done, start)
        w.start(start)

    # in one piece
    @property
    def may_be_wide(self) -> bool:
        return self.kind != abi.LOCAL and not (self.races and self.flags)

    def everywhere(self, condition: str) -> str:
        """An i1: does a <L x i1> hold in all lanes?"""
        w = self.w
        bits = w.op(f"bitcast {w.vec('i1')} {condition} to i{self.n}")
        return w.op(f"icmp eq i{self.n} {bits}, -1")

    def shape(self) -> tuple[str, str, str]:
        """Do all lanes take part; the address of the first; <L x i64> distances of all from it."""
        w = self.w
        words = w.vec("i64")
        first = w.op(f"extractelement {words} {self.address.name}, i64 0")
        distance = w.op(f"sub {words} {self.address.name}, {w.splat('i64', first)}")
        return w.op(f"icmp eq i{self.n} {self.lanes}, -1"), first, distance

    def is_row(self, full: str, distance: str) -> str:
        w = self.w
        steps = "<" + ", ".join(f"i64 {k * self.width}" for k in range(self.n)) + ">"
        consecutive = w.op(f"icmp eq {w.vec('i64')} {distance}, {steps}")
        return w.op(f"and i1 {full}, {self.everywhere(consecutive)}")

    def load_row(self, first: str) -> tuple[str, str]:
        """All that the lanes load, and the block that it comes from."""
        w, total = self.w, self.n * self.width
        host, shadow = self.window(first, total, write=False)
        self.check_row("row_read", first)
        value = w.op(f"load {self.row_type}, ptr {host}, align 1")
        self.verify(shadow, total)
        arrival = value, w.label
        w.jump(self.done)
        return arrival

    def load_one(self, first: str) -> tuple[str, str]:
        """The same where all lanes load from one place."""
        w = self.w
        host, shadow = self.window(first, self.width, write=False)
        if self.races:
            records, offset, thread = self.recorded(first)
            several = w.op(f"or i32 {thread}, {LANES}")
            self.calm(self.e.call("lane_read", "%ctx", "%wp", records, offset, str(self.width), several))
        small = f"<{self.per} x {self.element}>"
        piece = w.op(f"load {small}, ptr {host}, align 1")
        self.verify(shadow, self.width)
        order = ", ".join(f"i32 {k % self.per}" for k in range(self.n * self.per))
        value = w.op(f"shufflevector {small} {piece}, {small} poison, <{self.n * self.per} x i32> <{order}>")
        arrival = value, w.label
        w.jump(self.done)
        return arrival

    def recorded(self, first: str) -> tuple[str, str, str]:
        """Where the records of the memory are, the offset of address `first` in it, the first lane's thread."""
        w = self.w
        if self.kind == abi.SHARED:
            records = w.op(f"getelementptr i64, ptr %ctx, i64 {abi.SLOT['smem_records.writes']}")
            offset = first
        else:
            records = w.op(f"getelementptr i64, ptr {self.site}, i64 {abi.RACE_WORD}")
            offset = w.op(f"sub i64 {first}, {w.op(f'load i64, ptr {self.site}')}")
        return records, offset, w.op(f"trunc i64 {self.chunk.thread0()} to i32")

    def check_row(self, check: str, first: str) -> None:
        """Goes the slow way where weak accesses of a row cannot be told from a race at once."""
        if self.races:
            records, offset, thread = self.recorded(first)
            total, log_width = str(self.n * self.width), str(self.width.bit_length() - 1)
            self.calm(self.e.call(check, "%ctx", "%wp", records, offset, total, log_width, thread))

    def calm(self, ok: str) -> None:
        fine = self.w.new_label("calm")
        self.w.branch(ok, fine, self.slow)
        self.w.start(fine)

    def window(self, first: str, total: int, write: bool) -> tuple[str, str | None]:
        """Pointers for `total` bytes from address `first`: to the bytes and to their shadow (which may be null; None:
        not tracked). Goes the slow way where they are not in the site's memory, or may not be accessed."""
        w, c = self.w, self.site
        own = self.kind in (abi.SHARED, abi.PARAM)  # a memory of its own, from address 0 on
        name = "smem" if self.kind == abi.SHARED else "params"
        offset = first if own else w.op(f"sub i64 {first}, {w.op(f'load i64, ptr {c}')}")
        size = f"%c.{name}_size" if own else self.word(1)
        # inside, and aligned: offset <= size - total (both below 2^63), and no low bit set
        room = w.op(f"sub i64 {size}, {total}")
        bad = w.op(f"or i64 {w.op(f'sub i64 {room}, {offset}')}, {offset}")  # negative if one of them is
        low = w.op(f"and i64 {first}, {self.align - 1}") if self.align > 1 else "0"
        ok = w.op(f"and i1 {w.op(f'icmp sge i64 {bad}, 0')}, {w.op(f'icmp eq i64 {low}, 0')}")
        if write and not own:
            ok = w.op(f"and i1 {ok}, {w.op(f'icmp ne i64 {self.word(4)}, 0')}")
        if write and self.kind == abi.PARAM:
            ok = "false"
        inside = w.new_label("inside")
        w.branch(ok, inside, self.slow)
        w.start(inside)
        delta = f"%c.{name}" if own else self.word(2)
        host = w.op(f"inttoptr i64 {w.op(f'add i64 {first}, {delta}')} to ptr")
        if self.kind == abi.PARAM or not self.e.track:
            return host, None
        moved = "%c.smem_shadow" if own else self.word(3)
        shadow = w.op(f"add i64 {first}, {moved}")
        if not own:
            shadow = w.op(f"select i1 {w.op(f'icmp ne i64 {moved}, 0')}, i64 {shadow}, i64 0")
        return host, w.op(f"inttoptr i64 {shadow} to ptr")

    def word(self, index: int) -> str:
        """A word of the site's row, see abi.REGION_WORDS."""
        w = self.w
        return w.op(f"load i64, ptr {w.op(f'getelementptr i64, ptr {self.site}, i64 {index}')}")

    def verify(self, shadow: str | None, total: int) -> None:
        """Gives up unless `total` bytes are initialised."""
        if shadow is not None:
            self.e.bail_unless(self.e.call("verify", shadow, str(total)))

    # lane by lane
    def lane_by_lane(self, function: str, items: str | None = None, *more: str) -> str:
        """Calls a function of the runtime for the lanes that take part; gives up where it does. Returns its data."""
        w = self.w
        w.do(f"store {w.vec('i64')} {self.address.name}, ptr %scratch, align 8")
        data = scratch(self.chunk, DATA)
        if items is not None:
            w.do(f"store {self.row_type} {items}, ptr {data}, align 1")
        mask = w.op(f"zext i{self.n} {self.lanes} to i32")
        self.e.bail_unless(self.e.call(
            function, "%ctx", "%wp", self.site, "%scratch", mask, str(self.align - 1), data, str(self.kind),
            self.chunk.thread0(), str(self.flags), *more,
        ))  # fmt: skip
        return data


def scratch(chunk: Chunk, offset: int) -> str:
    return chunk.w.op(f"getelementptr i8, ptr %scratch, i64 {offset}")


def flags_of(step: Load | Store | Atomic) -> int:
    """Flags of an access in the records of the race check."""
    level = 0 if getattr(step, "order", "") == "volatile" else level_of(step)  # `lockstep`: the interpreter decides
    return STRONG if level >= GPU or (level and step.place.space == "shared") else 0


def raw_type(t: PtxType) -> PtxType:
    """The same size as bits."""
    return TYPES[f"b{t.bits}"]


def pieces(count: int, part: int) -> tuple[int, int, list[int]]:
    """How `count` elements of `part` bytes are accessed: accesses, elements of each, alignment of each."""
    width = min(part * count, WIDEST)
    accesses = part * count // width
    return accesses, width // part, [part * count, *[width] * (accesses - 1)]


def emit_load(chunk: Chunk, step: Load, guard: str | None) -> None:
    """Raises Refused for elements of more than 64 bits."""
    t = step.type
    if t.bits > 64:
        raise Refused("128-bit loads")
    part = t.bytes
    accesses, per, aligned = pieces(len(step.dsts), part)
    lanes = chunk.lanes_of(guard)
    for k in range(accesses):
        items = Access(chunk, step.place, k * per * part, part, per, aligned[k], lanes, flags_of(step)).load()
        if "nc" in step.source.mods and chunk.e.guards.global_ is not None:
            _read_only(chunk, lanes)
        for j, value in enumerate(split(chunk, items, per, f"i{8 * part}")):
            chunk.put(step.dsts[k * per + j], value, t, guard)


def _read_only(chunk: Chunk, lanes: str) -> None:
    """Gives up where the last load was of memory that the kernel may write."""
    w = chunk.w
    writable = w.op(f"load i64, ptr {w.op(f'getelementptr i64, ptr {chunk.last_site}, i64 4')}")
    none = w.op(f"icmp eq i{w.lanes} {lanes}, 0")
    chunk.e.bail_unless(w.op(f"or i1 {none}, {w.op(f'icmp eq i64 {writable}, 0')}"))


def emit_store(chunk: Chunk, step: Store, guard: str | None) -> None:
    """Raises Refused for elements of more than 64 bits."""
    t = step.type
    if t.bits > 64:
        raise Refused("128-bit stores")
    part = t.bytes
    accesses, per, aligned = pieces(len(step.srcs), part)
    lanes = chunk.lanes_of(guard)
    for k in range(accesses):
        parts = [chunk.get(s, raw_type(t)).name for s in step.srcs[k * per : (k + 1) * per]]
        items = interleave(chunk, parts, f"i{8 * part}")
        Access(chunk, step.place, k * per * part, part, per, aligned[k], lanes, flags_of(step)).store(items)


def split(chunk: Chunk, items: str, per: int, kind: str) -> list[Value]:
    """The `per` vectors that hold each lane's first, second... element of what was loaded."""
    w, n = chunk.w, chunk.w.lanes
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


def interleave(chunk: Chunk, parts: list[str], kind: str) -> str:
    """One vector that holds lane 0 of every part, then lane 1..."""
    w, n = chunk.w, chunk.w.lanes
    size = 1
    while len(parts) > 1:
        vec = f"<{n * size} x {kind}>"
        order = ", ".join(
            f"i32 {(source * n * size) + lane * size + k}"
            for lane in range(n)
            for source in (0, 1)
            for k in range(size)
        )
        parts = [
            w.op(f"shufflevector {vec} {a}, {vec} {b}, <{2 * n * size} x i32> <{order}>")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
        size *= 2
    return parts[0]


_FLOATS = ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64")


def atomic_op(step: Atomic) -> int:
    """The number in abi.ATOMIC_OPS. Raises Refused for what the runtime does not do."""
    op, kind = step.op, step.type.name
    if op in ("min", "max") and kind[0] in "us":
        op += "_signed" if kind[0] == "s" else "_unsigned"
    elif op == "add" and kind in ("f32", "f64"):
        op = "add_float"
    elif (kind in _FLOATS and op not in ("exch", "cas")) or op not in abi.ATOMIC_OPS:
        raise Refused(step.source.opcode)
    return abi.ATOMIC_OPS.index(op)


def emit_atomic(chunk: Chunk, step: Atomic, guard: str | None) -> None:
    """Raises Refused for types and operations that the runtime does not do."""
    w, t = chunk.w, step.type
    if len(step.srcs) != 1 or t.bits not in (32, 64) or step.place.space == "param":
        raise Refused(step.source.opcode)
    op = atomic_op(step)
    vec, raw = w.vec(f"i{t.bits}"), raw_type(t)
    access = Access(chunk, step.place, 0, t.bytes, 1, t.bytes, chunk.lanes_of(guard), flags_of(step))
    operands, compares = scratch(chunk, OPERANDS), scratch(chunk, COMPARES)
    w.do(f"store {vec} {chunk.get(step.srcs[0], raw).name}, ptr {operands}, align 8")
    if step.compare is not None:
        w.do(f"store {vec} {chunk.get(step.compare, raw).name}, ptr {compares}, align 8")
    data = access.lane_by_lane(f"atomic{t.bytes}", None, operands, compares, str(op))
    for dst in step.dsts:
        chunk.put(dst, Value(w.op(f"load {vec}, ptr {data}, align 8"), f"i{t.bits}"), t, guard)
