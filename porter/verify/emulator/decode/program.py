"""A kernel made ready to run, the same for every backend: calls inlined, symbols resolved, code cut into segments.

A segment is straight-line code. A warp-synchronising instruction starts a segment (its lanes must all be there first);
a branch, barrier or exit ends one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.types import PtxType
from porter.verify.emulator.ops import PureOp


@dataclass(frozen=True, slots=True)
class RegSrc:
    index: int
    type: PtxType
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Const:
    """An integer of `bits` bits."""

    value: int
    bits: int


@dataclass(frozen=True, slots=True)
class SpecialSrc:
    name: str
    bits: int


Src = RegSrc | Const | SpecialSrc


@dataclass(frozen=True, slots=True)
class Dst:
    index: int
    type: PtxType  # of the register


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p`."""

    index: int
    negated: bool


@dataclass(frozen=True, slots=True)
class MemoryOperand:
    """A memory operand: space ("" generic), base (None: absolute) and byte offset."""

    space: str
    base: Src | None
    offset: int


@dataclass(slots=True)
class Step:
    """One instruction that does not change control flow. `source` is the PTX instruction, for reports.

    `reads` names the fields with what it reads: operands, places in memory, tuples of these, or a step within.
    """

    reads: ClassVar[tuple[str, ...]] = ()
    source: Instr
    guard: Guard | None = None


@dataclass(slots=True)
class Pure(Step):
    reads = ("srcs",)
    op: PureOp = None  # type: ignore[assignment]
    needless: bool = False  # its constant has been put into all uses
    dsts: tuple[Dst | None, ...] = ()
    srcs: tuple[Src, ...] = ()


@dataclass(slots=True)
class Load(Step):
    reads = ("place",)
    place: MemoryOperand = None  # type: ignore[assignment]
    type: PtxType = None  # type: ignore[assignment]
    dsts: tuple[Dst | None, ...] = ()
    order: str = "weak"  # weak relaxed acquire volatile
    scope: str = ""


@dataclass(slots=True)
class Store(Step):
    reads = ("place", "srcs")
    place: MemoryOperand = None  # type: ignore[assignment]
    type: PtxType = None  # type: ignore[assignment]
    srcs: tuple[Src, ...] = ()
    order: str = "weak"
    scope: str = ""


@dataclass(slots=True)
class Atomic(Step):
    """`op` is add min max inc dec and or xor exch cas; one result and operand per vector element."""

    reads = ("place", "srcs", "compare")
    place: MemoryOperand = None  # type: ignore[assignment]
    type: PtxType = None  # type: ignore[assignment]
    op: str = ""
    dsts: tuple[Dst | None, ...] = ()
    srcs: tuple[Src, ...] = ()
    compare: Src | None = None
    order: str = "relaxed"
    scope: str = "gpu"


@dataclass(slots=True)
class Warp(Step):
    """shfl vote match redux elect activemask and bar.warp.sync; `mask` None: whoever is here."""

    reads = ("srcs", "mask")
    kind: str = ""
    mode: str = ""
    type: PtxType = None  # type: ignore[assignment]
    dsts: tuple[Dst | None, ...] = ()
    srcs: tuple[Src, ...] = ()
    mask: Src | None = None


@dataclass(slots=True)
class Fence(Step):
    scope: str = ""
    order: str = ""


@dataclass(slots=True)
class Copy(Step):
    """cp.async and cp.async.bulk, done at once: `size` bytes from one place to another, zero filled up to `room`."""

    reads = ("target", "origin", "room", "size", "mbarrier")
    target: MemoryOperand = None  # type: ignore[assignment]
    origin: MemoryOperand = None  # type: ignore[assignment]
    room: Src | None = None
    size: Src | None = None
    mbarrier: MemoryOperand | None = None
    bulk: bool = False


@dataclass(slots=True)
class Mbarrier(Step):
    reads = ("place", "srcs")
    kind: str = ""  # init inval arrive arrive_drop expect_tx complete_tx test_wait try_wait pending_count
    place: MemoryOperand | None = None
    dsts: tuple[Dst | None, ...] = ()
    srcs: tuple[Src, ...] = ()
    parity: bool = False
    noinc: bool = False
    expect: bool = False  # arrive.expect_tx
    complete: bool = True


@dataclass(slots=True)
class MatrixMove(Step):
    """ldmatrix, stmatrix, movmatrix."""

    reads = ("place", "srcs")
    kind: str = ""
    place: MemoryOperand | None = None
    dsts: tuple[Dst | None, ...] = ()
    srcs: tuple[Src, ...] = ()
    count: int = 1
    transposed: bool = False


@dataclass(slots=True)
class MatrixMultiply(Step):
    """mma.sync."""

    reads = ("a", "b", "c")
    shape: tuple[int, int, int] = (0, 0, 0)
    types: tuple[PtxType, ...] = ()  # d a b c
    dsts: tuple[Dst | None, ...] = ()
    a: tuple[Src, ...] = ()
    b: tuple[Src, ...] = ()
    c: tuple[Src, ...] = ()


@dataclass(slots=True)
class Multimem(Step):
    """multimem.ld_reduce, st, red: `access` done to every replica behind a multicast address; ld_reduce combines."""

    reads = ("access",)
    access: Load | Store | Atomic = None  # type: ignore[assignment]
    op: str = ""
    wide: bool = False  # half types are summed in f32
    dsts: tuple[Dst | None, ...] = ()


@dataclass(slots=True)
class HostCall(Step):
    """vprintf, __assertfail: `args` are the values of the call's parameters."""

    reads = ("args", "result")
    name: str = ""
    args: tuple[MemoryOperand, ...] = ()
    result: MemoryOperand | None = None


@dataclass(slots=True)
class Hint(Step):
    """An instruction without effect on results: prefetch, nanosleep, griddepcontrol...

    `waits`: it is griddepcontrol.wait, which matters in launches that overlap the kernel before.
    """

    waits: bool = False


@dataclass(frozen=True, slots=True)
class Goto:
    target: int


@dataclass(frozen=True, slots=True)
class Branch:
    guard: Guard
    taken: int
    other: int


@dataclass(frozen=True, slots=True)
class Switch:
    reads: ClassVar[tuple[str, ...]] = ("index",)
    index: Src
    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Exit:
    source: Instr | None
    trap: bool = False


@dataclass(frozen=True, slots=True)
class Barrier:
    """`kind`: sync, red (with `combine` popc/and/or), arrive, cluster_arrive, cluster_wait."""

    reads: ClassVar[tuple[str, ...]] = ("id", "count", "value")
    source: Instr
    kind: str
    target: int
    id: Src | None = None
    count: Src | None = None
    combine: str = ""
    value: RegSrc | None = None
    dst: Dst | None = None
    aligned: bool = True


Terminator = Goto | Branch | Switch | Exit | Barrier


@dataclass(slots=True)
class Segment:
    index: int
    steps: list[Step] = field(default_factory=list)
    end: Terminator = Exit(None)
    jump: Instr | None = None  # the branch at its end
    warp_sync: Warp | MatrixMove | MatrixMultiply | None = None  # steps[0], when its lanes must meet first
    live_in: int = 0  # bit sets of registers
    live_out: int = 0
    defines: int = 0
    loop: int = -1  # number of the loop it lies in, -1 for none
    spins: bool = False  # part of a loop that reads memory others may change
    leaves: bool = False  # does nothing but exit

    @property
    def successors(self) -> tuple[int, ...]:
        match self.end:
            case Goto(target) | Barrier(target=target):
                return (target,)
            case Branch(taken=taken, other=other):
                return (taken, other)
            case Switch(targets=targets):
                return targets
        return ()


@dataclass(slots=True)
class Program:
    """Everything a backend needs to run one entry."""

    entry: str
    segments: list[Segment]
    registers: list[PtxType]
    local_bytes: int
    static_shared: int  # bytes, dynamic part excluded
    dynamic_offset: int
    param_offsets: dict[str, int]
    param_bytes: int
    directives: dict[str, tuple[int, ...]]
    globals: frozenset[str]  # module variables that the code names
    runners: list[list[Any]] | None = None  # the numpy backend's closures
