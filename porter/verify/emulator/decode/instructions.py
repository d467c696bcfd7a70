"""One PTX instruction to Steps: memory, warp and special instructions here, the rest from the table of operations."""

from __future__ import annotations

from collections.abc import Callable

from porter.verify.emulator.decode.ir import Address, Instr, Operand, Pair, Reg, Sink, Special, Vector
from porter.verify.emulator.decode.operands import Frame, Site
from porter.verify.emulator.decode.program import (
    Atomic,
    Const,
    Copy,
    Dst,
    Fence,
    Hint,
    Load,
    MatrixMove,
    MatrixMultiply,
    Mbarrier,
    Multimem,
    Pure,
    RegSrc,
    Src,
    Step,
    Store,
    Warp,
)
from porter.verify.emulator.decode.types import B32, F32, PRED, TYPES, PtxType
from porter.verify.emulator.errors import UnsupportedPtx
from porter.verify.emulator.ops import resolve
from porter.verify.emulator.ops.table import Mods

Decoder = Callable[[Site, Frame, Instr], list[Step]]
_DECODERS: dict[str, Decoder] = {}
_SPACES = ("global", "shared", "local", "param", "const")
_SCOPES = ("cta", "cluster", "gpu", "sys")
_CACHE = frozenset(("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified", "noftz"))
_REFUSED = frozenset(("wgmma", "tcgen05", "tex", "tld4", "txq", "suld", "sust", "sured", "suq", "clusterlaunchcontrol"))


def decoder(*bases: str) -> Callable[[Decoder], Decoder]:
    def register(fn: Decoder) -> Decoder:
        for base in bases:
            _DECODERS[base] = fn
        return fn

    return register


def decode_step(site: Site, frame: Frame, i: Instr) -> list[Step]:
    """The steps of one instruction. Raises UnsupportedPtx."""
    if i.base in _REFUSED:
        raise UnsupportedPtx(i.opcode, i.line, f"{i.base} is not modelled")
    special = _DECODERS.get(i.base)
    if special is not None:
        return special(site, frame, i)
    return [pure(site, frame, i)]


def pure(site: Site, frame: Frame, i: Instr) -> Pure:
    op = resolve(i)
    if op is None:
        raise UnsupportedPtx(i.opcode, i.line)
    if not i.operands:
        raise UnsupportedPtx(i.opcode, i.line, "operands are missing")
    first, rest = i.operands[0], list(i.operands[1:])
    if len(rest) == 1 and isinstance(rest[0], Vector):
        rest = list(rest[0].items)
    targets: list[Operand] = [first]
    if isinstance(first, Pair):
        targets = [first.first, first.second]
    elif isinstance(first, Vector):
        targets = list(first.items)
    if len(rest) < len(op.srcs) or len(targets) > len(op.dsts):
        raise UnsupportedPtx(i.opcode, i.line, "wrong number of operands")
    srcs = [site.source(frame, i, x, t.bits, t) for x, t in zip(rest, op.srcs, strict=False)]
    dsts = [site.destination(frame, i, x) for x in targets]
    if op.carry_in:
        srcs.append(RegSrc(frame.carry, PRED))
    if op.carry_out:
        dsts.append(Dst(frame.carry, PRED))
    while len(dsts) < len(op.dsts) + op.carry_out:
        dsts.append(None)
    return Pure(i, op=op, dsts=tuple(dsts), srcs=tuple(srcs))


class _Memory:
    """The modifiers that ld, st, atom and red share."""

    def __init__(self, i: Instr):
        self.space, self.order, self.scope, self.count = "", "", "", 1
        self.types: list[PtxType] = []
        self.rest: list[str] = []
        for mod in i.mods:
            head = mod.split("::")[0]
            if head in _SPACES and not self.space:
                self.space = head
            elif mod in _SCOPES:
                self.scope = mod
            elif mod in ("weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"):
                self.order = "relaxed" if mod == "mmio" and not self.order else mod if mod != "mmio" else self.order
            elif mod in ("v2", "v4", "v8"):
                self.count = int(mod[1])
            elif mod in TYPES:
                self.types.append(TYPES[mod])
            elif mod in _CACHE or head in ("L1", "L2", "level"):
                continue
            else:
                self.rest.append(mod)

    def only(self, i: Instr, allowed: int = 0) -> None:
        if len(self.rest) > allowed:
            raise UnsupportedPtx(i.opcode, i.line, f"unknown modifier .{self.rest[allowed]}")
        if not self.types:
            raise UnsupportedPtx(i.opcode, i.line, "it has no type")


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


@decoder("ld", "ldu")
def load(site: Site, frame: Frame, i: Instr) -> list[Step]:
    m = _Memory(i)
    m.only(i)
    dsts = tuple(site.destination(frame, i, x) for x in _items(i.operands[0]))
    if len(dsts) != m.count:
        raise UnsupportedPtx(i.opcode, i.line, "vector size and registers differ")
    place = site.place(frame, i, i.operands[1], m.space)
    return [Load(i, place=place, type=m.types[0], dsts=dsts, order=m.order or "weak", scope=m.scope)]


@decoder("st")
def store(site: Site, frame: Frame, i: Instr) -> list[Step]:
    m = _Memory(i)
    signals = m.rest == ["async", "mbarrier::complete_tx::bytes"]
    m.only(i, 2 if signals else 0)
    t = m.types[0]
    srcs = tuple(site.source(frame, i, x, t.bits, t) for x in _items(i.operands[1]))
    if len(srcs) != m.count:
        raise UnsupportedPtx(i.opcode, i.line, "vector size and registers differ")
    place = site.place(frame, i, i.operands[0], m.space)
    stored = Store(i, place=place, type=t, srcs=srcs, order=m.order or "weak", scope=m.scope)
    if not signals:
        return [stored]
    # st.async: done at once, then counted by the mbarrier
    nbytes = Const(t.bytes * m.count, 32)
    return [stored, Mbarrier(i, kind="complete_tx", place=site.place(frame, i, i.operands[2], m.space), srcs=(nbytes,))]


@decoder("atom", "red")
def atomic(site: Site, frame: Frame, i: Instr) -> list[Step]:
    m = _Memory(i)
    if "async" in i.mods:
        raise UnsupportedPtx(i.opcode, i.line)
    m.only(i, 1)
    op = m.rest[0] if m.rest else ""
    if op not in ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"):
        raise UnsupportedPtx(i.opcode, i.line, "unknown atomic operation")
    t = m.types[0]
    operands = list(i.operands)
    dsts: tuple[Dst | None, ...] = ()
    if i.base == "atom":
        dsts = tuple(site.destination(frame, i, x) for x in _items(operands.pop(0)))
    place = site.place(frame, i, operands.pop(0), m.space)
    values = [tuple(site.source(frame, i, x, t.bits, t) for x in _items(o)) for o in operands]
    if op == "cas":
        compare, srcs = values[0][0], values[1]
    else:
        compare, srcs = None, values[0]
    if len(srcs) != m.count or (dsts and len(dsts) != m.count):
        raise UnsupportedPtx(i.opcode, i.line, "vector size and registers differ")
    return [
        Atomic(
            i,
            place=place,
            type=t,
            op=op,
            dsts=dsts,
            srcs=srcs,
            compare=compare,
            order=m.order or "relaxed",
            scope=m.scope or "gpu",
        )
    ]


@decoder("multimem")
def multimem(site: Site, frame: Frame, i: Instr) -> list[Step]:
    kind, *mods = i.mods
    if kind not in ("ld_reduce", "st", "red"):
        raise UnsupportedPtx(i.opcode, i.line)
    wide = "acc::f32" in mods
    m = _Memory(Instr(".".join(["multimem", *(x for x in mods if x != "acc::f32")]), (), i.line))
    m.only(i, kind != "st")
    op, t = (m.rest[0] if m.rest else ""), m.types[0]
    if kind != "st" and op not in ("add", "min", "max", "and", "or", "xor"):
        raise UnsupportedPtx(i.opcode, i.line, "unknown reduction")
    if t.bits < 16 or t.bytes * m.count > 16:
        raise UnsupportedPtx(i.opcode, i.line, "type or size")
    address, data = (i.operands[1], i.operands[0]) if kind == "ld_reduce" else (i.operands[0], i.operands[1])
    place = site.place(frame, i, address, "global")
    # without qualifiers only red is strong; its scope is the system's
    order, scope = m.order or ("relaxed" if kind == "red" else "weak"), m.scope or "sys"
    if len(_items(data)) != m.count:
        raise UnsupportedPtx(i.opcode, i.line, "vector size and registers differ")
    if kind == "ld_reduce":
        dsts = tuple(site.destination(frame, i, x) for x in _items(data))
        load_ = Load(i, place=place, type=t, dsts=dsts, order=order, scope=scope)
        return [Multimem(i, access=load_, op=op, wide=wide, dsts=dsts)]
    srcs = tuple(site.source(frame, i, x, t.bits, t) for x in _items(data))
    if kind == "st":
        return [Multimem(i, access=Store(i, place=place, type=t, srcs=srcs, order=order, scope=scope))]
    return [Multimem(i, access=Atomic(i, place=place, type=t, op=op, srcs=srcs, order=order, scope=scope))]


@decoder("mov")
def mov(site: Site, frame: Frame, i: Instr) -> list[Step]:
    source = i.operands[1]
    if (
        isinstance(source, Special)
        and source.name.split(".")[0] in ("%tid", "%ntid", "%ctaid", "%nctaid")
        and "." not in source.name
    ):
        raise UnsupportedPtx(i.opcode, i.line, "vector special registers")
    return [pure(site, frame, i)]


def _pair(site: Site, frame: Frame, i: Instr, operand: Operand) -> tuple[Dst | None, Dst | None]:
    if isinstance(operand, Pair):
        return site.destination(frame, i, operand.first), site.destination(frame, i, operand.second)
    return site.destination(frame, i, operand), None


@decoder("shfl")
def shfl(site: Site, frame: Frame, i: Instr) -> list[Step]:
    m = Mods(i)
    sync = m.flag("sync")
    mode = m.one_of("up", "down", "bfly", "idx")
    m.type()
    m.done()
    if not sync or not mode:
        raise m.unsupported("only shfl.sync")
    dsts = _pair(site, frame, i, i.operands[0])
    srcs = tuple(site.source(frame, i, x, 32) for x in i.operands[1:4])
    mask = site.source(frame, i, i.operands[4], 32)
    return [Warp(i, kind="shfl", mode=mode, type=B32, dsts=dsts, srcs=srcs, mask=mask)]


@decoder("vote")
def vote(site: Site, frame: Frame, i: Instr) -> list[Step]:
    m = Mods(i)
    sync = m.flag("sync")
    mode = m.one_of("all", "any", "uni", "ballot")
    m.type()
    m.done()
    if not sync:
        raise m.unsupported("only vote.sync")
    dst = site.destination(frame, i, i.operands[0])
    src = site.source(frame, i, i.operands[1], 1)
    return [
        Warp(
            i,
            kind="vote",
            mode=mode,
            type=PRED,
            dsts=(dst,),
            srcs=(src,),
            mask=site.source(frame, i, i.operands[2], 32),
        )
    ]


@decoder("match")
def match(site: Site, frame: Frame, i: Instr) -> list[Step]:
    m = Mods(i)
    mode = m.one_of("any", "all")
    m.flag("sync")
    t = m.type()
    m.done()
    dsts = _pair(site, frame, i, i.operands[0])
    src = site.source(frame, i, i.operands[1], t.bits)
    return [
        Warp(i, kind="match", mode=mode, type=t, dsts=dsts, srcs=(src,), mask=site.source(frame, i, i.operands[2], 32))
    ]


@decoder("redux")
def redux(site: Site, frame: Frame, i: Instr) -> list[Step]:
    m = Mods(i)
    m.flag("sync")
    mode = m.one_of("add", "min", "max", "and", "or", "xor")
    absolute, nan = m.flag("abs"), m.flag("NaN")
    t = m.type()
    m.done()
    mode += (".abs" if absolute else "") + (".NaN" if nan else "")
    dst = site.destination(frame, i, i.operands[0])
    src = site.source(frame, i, i.operands[1], 32, t)
    return [
        Warp(
            i, kind="redux", mode=mode, type=t, dsts=(dst,), srcs=(src,), mask=site.source(frame, i, i.operands[2], 32)
        )
    ]


@decoder("elect")
def elect(site: Site, frame: Frame, i: Instr) -> list[Step]:
    dsts = _pair(site, frame, i, i.operands[0])
    return [Warp(i, kind="elect", type=PRED, dsts=dsts, mask=site.source(frame, i, i.operands[1], 32))]


@decoder("activemask")
def activemask(site: Site, frame: Frame, i: Instr) -> list[Step]:
    return [Warp(i, kind="activemask", type=B32, dsts=(site.destination(frame, i, i.operands[0]),))]


@decoder("bar", "barrier")
def bar_warp(site: Site, frame: Frame, i: Instr) -> list[Step]:
    return [Warp(i, kind="sync", type=B32, mask=site.source(frame, i, i.operands[0], 32))]


@decoder("membar", "fence")
def fence(site: Site, frame: Frame, i: Instr) -> list[Step]:
    scopes = {"gl": "gpu", "cta": "cta", "sys": "sys", "gpu": "gpu", "cluster": "cluster"}
    scope = next((scopes[m] for m in i.mods if m in scopes), "gpu")
    order = next((m for m in i.mods if m in ("sc", "acq_rel", "acquire", "release", "proxy")), "sc")
    return [Fence(i, scope=scope, order=order)]


@decoder(
    "prefetch", "prefetchu", "nanosleep", "griddepcontrol", "discard", "applypriority", "setmaxnreg", "pmevent", "brkpt"
)
def hint(site: Site, frame: Frame, i: Instr) -> list[Step]:
    if i.base == "brkpt":
        raise UnsupportedPtx(i.opcode, i.line)
    return [Hint(i, waits=i.base == "griddepcontrol" and "wait" in i.mods)]


@decoder("createpolicy")
def createpolicy(site: Site, frame: Frame, i: Instr) -> list[Step]:
    dst = site.destination(frame, i, i.operands[0])
    op = resolve(Instr("mov.b64", i.operands, i.line))
    assert op is not None
    return [Pure(i, op=op, dsts=(dst,), srcs=(Const(0, 64),))]


@decoder("getctarank")
def getctarank(site: Site, frame: Frame, i: Instr) -> list[Step]:
    raise UnsupportedPtx(i.opcode, i.line)


@decoder("cp")
def cp(site: Site, frame: Frame, i: Instr) -> list[Step]:
    mods = i.mods
    if mods[:1] != ("async",):
        raise UnsupportedPtx(i.opcode, i.line)
    if "prefetch" in mods and "tensor" not in mods:
        return [Hint(i)]
    if "tensor" in mods or "reduce" in mods:
        raise UnsupportedPtx(i.opcode, i.line, "tensor and bulk-reduce copies are not modelled")
    if "commit_group" in mods or "wait_group" in mods or "wait_all" in mods:
        return [Hint(i)]  # copies are done at once
    if "mbarrier" in mods:
        space = "shared" if any(x.startswith("shared") for x in mods) else ""
        place = site.place(frame, i, i.operands[0], space)
        return [Mbarrier(i, kind="arrive_async", place=place, noinc="noinc" in mods)]
    if "bulk" in mods:
        return _bulk(site, frame, i)
    target = site.place(frame, i, i.operands[0], "shared")
    origin = site.place(frame, i, i.operands[1], "global")
    room = site.source(frame, i, i.operands[2], 32)
    size: Src = room
    if len(i.operands) > 3 and not (len(i.operands) == 4 and _is_policy(i.operands[3])):
        extra = i.operands[3]
        if isinstance(extra, Reg) and extra.type is PRED:
            raise UnsupportedPtx(i.opcode, i.line, "ignore-src")
        size = site.source(frame, i, extra, 32)
    return [Copy(i, target=target, origin=origin, room=room, size=size)]


def _is_policy(operand: Operand) -> bool:
    return isinstance(operand, Reg) and operand.type.bits == 64


def _bulk(site: Site, frame: Frame, i: Instr) -> list[Step]:
    mods = [m for m in i.mods if m not in ("async", "bulk")]
    spaces = [m.split("::")[0] for m in mods if m.split("::")[0] in ("shared", "global")]
    if len(spaces) != 2:
        raise UnsupportedPtx(i.opcode, i.line)
    if any("multicast" in m for m in mods):
        raise UnsupportedPtx(i.opcode, i.line)
    target = site.place(frame, i, i.operands[0], spaces[0])
    origin = site.place(frame, i, i.operands[1], spaces[1])
    size = site.source(frame, i, i.operands[2], 32)
    signal = None
    if any(m.startswith("mbarrier") for m in mods):
        signal = site.place(frame, i, i.operands[3], "shared")
    return [Copy(i, target=target, origin=origin, room=size, size=size, mbarrier=signal, bulk=True)]


@decoder("mbarrier")
def mbarrier(site: Site, frame: Frame, i: Instr) -> list[Step]:
    mods = list(i.mods)
    kind = mods.pop(0)
    operands = list(i.operands)
    if kind == "pending_count":
        dst = site.destination(frame, i, operands[0])
        return [Mbarrier(i, kind=kind, dsts=(dst,), srcs=(site.source(frame, i, operands[1], 64),))]
    dsts: tuple[Dst | None, ...] = ()
    if operands and not isinstance(operands[0], Address):
        first = operands.pop(0)
        dsts = (None if isinstance(first, Sink) else site.destination(frame, i, first),)
    space = next((m.split("::")[0] for m in mods if m.startswith("shared")), "")
    place = site.place(frame, i, operands.pop(0), space)
    expect = "expect_tx" in mods
    parity = "parity" in mods
    bits = 64 if kind in ("test_wait", "try_wait") and not parity else 32
    srcs = tuple(site.source(frame, i, x, bits if k == 0 else 32) for k, x in enumerate(operands))
    if kind not in ("init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait", "try_wait"):
        raise UnsupportedPtx(i.opcode, i.line)
    return [
        Mbarrier(
            i,
            kind=kind,
            place=place,
            dsts=dsts,
            srcs=srcs,
            parity=parity,
            expect=expect,
            complete="noComplete" not in mods,
        )
    ]


@decoder("ldmatrix", "stmatrix")
def matrix_memory(site: Site, frame: Frame, i: Instr) -> list[Step]:
    mods = list(i.mods)
    if "m8n8" not in mods or "b16" not in mods:
        raise UnsupportedPtx(i.opcode, i.line)
    count = next((int(m[1]) for m in mods if m in ("x1", "x2", "x4")), 1)
    transposed = "trans" in mods
    registers, address = (i.operands[0], i.operands[1]) if i.base == "ldmatrix" else (i.operands[1], i.operands[0])
    place = site.place(frame, i, address, "shared")
    step = MatrixMove(i, kind=i.base, place=place, count=count, transposed=transposed)
    if i.base == "ldmatrix":
        step.dsts = tuple(site.destination(frame, i, x) for x in _items(registers))
    else:
        step.srcs = tuple(site.source(frame, i, x, 32) for x in _items(registers))
    return [step]


@decoder("movmatrix")
def movmatrix(site: Site, frame: Frame, i: Instr) -> list[Step]:
    dst = site.destination(frame, i, i.operands[0])
    return [
        MatrixMove(i, kind="movmatrix", dsts=(dst,), srcs=(site.source(frame, i, i.operands[1], 32),), transposed=True)
    ]


@decoder("mma")
def mma(site: Site, frame: Frame, i: Instr) -> list[Step]:
    mods = list(i.mods)
    shape_name = next((m for m in mods if m.startswith("m") and "n" in m and "k" in m), "")
    types = tuple(TYPES[m] for m in mods if m in TYPES)
    known = {"sync", "aligned", "row", "col", "satfinite", "kind::f8f6f4"}
    unknown = [m for m in mods if m not in known and m != shape_name and m not in TYPES]
    if not shape_name or len(types) != 4 or unknown:
        raise UnsupportedPtx(i.opcode, i.line)
    left, k = shape_name[1:].split("k")
    rows, columns = left.split("n")
    d, a, b, c = i.operands[:4]
    read = lambda op: tuple(site.source(frame, i, x, 32, F32) for x in _items(op))  # noqa: E731
    return [
        MatrixMultiply(
            i, shape=(int(rows), int(columns), int(k)), types=types,
            dsts=tuple(site.destination(frame, i, x) for x in _items(d)), a=read(a), b=read(b), c=read(c),
        )
    ]  # fmt: skip
