"""From a parsed entry to a Program: inlines device functions, lays out frames, decodes instructions, cuts segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from porter.verify.emulator.decode import parse
from porter.verify.emulator.decode.instructions import decode_step
from porter.verify.emulator.decode.ir import Address, Function, Group, Instr, Label, Module, Operand, Reg, Sym, Variable
from porter.verify.emulator.decode.liveness import mark_leaving, mark_liveness, mark_loops
from porter.verify.emulator.decode.operands import Frame, Site
from porter.verify.emulator.decode.program import (
    Barrier,
    Branch,
    Exit,
    Goto,
    Guard,
    HostCall,
    Program,
    RegSrc,
    Segment,
    Step,
    Switch,
    Warp,
)
from porter.verify.emulator.decode.program import MatrixMove as _Move
from porter.verify.emulator.decode.program import MatrixMultiply as _Multiply
from porter.verify.emulator.decode.simplify import propagate_constants
from porter.verify.emulator.decode.types import PRED, PtxType
from porter.verify.emulator.errors import PtxError, PtxSyntaxError, UnsupportedPtx
from porter.verify.emulator.memory.layout import align_up, place_variables

T = TypeVar("T")
HOST_FUNCTIONS = ("vprintf", "__assertfail")
MOST_LOCAL = 512 << 10  # bytes a thread, of all GPUs so far
MOST_PARAMETERS = 32764  # bytes, of PTX 8.1 and later
TOO_MUCH = "the functions called are too much code to be inlined"
RECURSION = (32, 6)  # calls of a function inside itself that are followed; the second where it calls itself twice
MOST_INSTRUCTIONS, MOST_CALLS = 100_000, 100  # of an entry with what it calls; large kernels have some ten thousand
_BARRIER_BASES = ("bar", "barrier")


@dataclass(slots=True)
class _Item:
    """A flat instruction or a label."""

    label: str = ""
    instr: Instr | None = None
    frame: Frame | None = None
    jump: str = ""  # a plain jump made by inlining


@dataclass(slots=True)
class _Builder:
    module: Module
    items: list[_Item] = field(default_factory=list)
    registers: list[PtxType] = field(default_factory=list)
    shared: dict[str, tuple[int, Variable]] = field(default_factory=dict)
    shared_top: int = 0
    extern_align: int = 16
    extern: set[str] = field(default_factory=set)
    local_top: int = 0
    local_bytes: int = 0
    recursion: int = RECURSION[0]
    instances: int = 0

    def place_shared(self, key: str, variable: Variable) -> None:
        if key in self.shared or key in self.extern:
            return
        if variable.count == 0:
            self.extern.add(key)
            self.extern_align = max(self.extern_align, variable.align)
            return
        self.shared_top = align_up(self.shared_top, variable.align)
        self.shared[key] = (self.shared_top, variable)
        self.shared_top += variable.size

    def local(self, variable: Variable) -> int:
        self.local_top = align_up(self.local_top, max(variable.align, 1))
        at = self.local_top
        self.local_top += variable.size
        self.local_bytes = max(self.local_bytes, self.local_top)
        if self.local_bytes > MOST_LOCAL:
            raise PtxSyntaxError(f"more than {MOST_LOCAL} bytes of local memory", variable.line)
        return at

    def inline(
        self, function: Function, arguments: dict[str, tuple[str, int]], stack: tuple[str, ...], exit_label: str
    ) -> Frame:
        self.instances += 1
        tag = f"#{self.instances}"
        frame = Frame(tag, len(self.registers), {}, function)
        self.registers += [r.type for r in function.registers]
        frame.carry = len(self.registers)
        self.registers.append(PRED)
        frame.symbols.update(arguments)
        saved = self.local_top
        for name, variable in function.variables.items():
            if variable.space in ("local", "param"):
                frame.symbols[name] = ("local", self.local(variable))
            elif variable.space == "shared":
                key = f"{function.name}/{name}"
                self.place_shared(key, variable)
                frame.symbols[name] = ("shared:" + key, 0)
            else:
                raise UnsupportedPtx(f".{variable.space} variable inside a function", function.line)
        positions: dict[int, list[str]] = {}
        for name, index in function.labels.items():
            positions.setdefault(index, []).append(name)
        for index, instr in enumerate(function.code):
            self.items += [_Item(label=n + tag) for n in positions.get(index, ())]
            if instr.base == "call":
                if len(self.items) > MOST_INSTRUCTIONS or len(stack) > MOST_CALLS:
                    raise UnsupportedPtx(instr.opcode, instr.line, TOO_MUCH)
                _checked(instr, lambda i=instr: self.call(i, frame, (*stack, function.name)))  # type: ignore[misc]
            elif instr.base == "ret" and exit_label:
                if instr.pred is not None:
                    self.items.append(_Item(instr=instr, frame=frame, jump=exit_label))
                else:
                    self.items.append(_Item(jump=exit_label, frame=frame))
            else:
                self.items.append(_Item(instr=instr, frame=frame))
        self.items += [_Item(label=n + tag) for n in positions.get(len(function.code), ())]
        self.local_top = saved
        return frame

    def call(self, instr: Instr, frame: Frame, stack: tuple[str, ...]) -> None:
        returns, name, arguments = _call_parts(instr)
        if name in HOST_FUNCTIONS:
            self.items.append(_Item(instr=instr, frame=frame))
            return
        declaration = self.module.declarations.get(name)
        if declaration is None or not declaration.end:
            raise UnsupportedPtx(f"call of {name}", instr.line, "no body in this module")
        if stack.count(name) >= self.recursion:  # how deep it goes is known when it runs
            trap = Instr("trap.recursion", (), instr.line, instr.pred, instr.pred_negated, instr.loc)
            self.items.append(_Item(instr=trap, frame=frame))
            return
        callee = parse.function(self.module, name)
        after = f"@after{self.instances + 1}_{len(self.items)}"
        if instr.pred is not None:
            self.items.append(
                _Item(instr=Instr("@skip", (), instr.line, instr.pred, not instr.pred_negated), frame=frame, jump=after)
            )
        symbols: dict[str, tuple[str, int]] = {}
        copies: list[tuple[Variable, Operand]] = []
        for variable, operand in (
            *zip(callee.params, arguments, strict=True),
            *zip(callee.returns, returns, strict=True),
        ):
            if isinstance(operand, Sym) and variable.space == "param":
                symbols[variable.name] = frame.symbol(operand.name, instr)
            else:
                copies.append((variable, operand))
        if copies:
            raise UnsupportedPtx(instr.opcode, instr.line, f"call of {name} with register parameters")
        self.inline(callee, symbols, stack, after)
        self.items.append(_Item(label=after))


def _call_parts(instr: Instr) -> tuple[tuple[Operand, ...], str, tuple[Operand, ...]]:
    operands = list(instr.operands)
    returns: tuple[Operand, ...] = ()
    if operands and isinstance(operands[0], Group):
        returns = operands.pop(0).items  # type: ignore[union-attr]
    if not operands:
        raise PtxSyntaxError("call without a target", instr.line)
    target = operands.pop(0)
    if not isinstance(target, Sym):
        raise UnsupportedPtx("indirect call", instr.line, "function pointers are not modelled")
    arguments: tuple[Operand, ...] = ()
    if operands and isinstance(operands[0], Group):
        arguments = operands[0].items
    return returns, target.name, arguments


def lower(module: Module, entry: str) -> Program:
    """The program of one entry, cached in the module. Raises UnsupportedPtx (line and opcode) or PtxSyntaxError."""
    key = ("program", entry)
    if key not in module.cache:
        module.cache[key] = _lower(module, entry)
    return module.cache[key]  # type: ignore[return-value]


def _lower(module: Module, entry: str) -> Program:
    try:
        return _inlined(module, entry, RECURSION[0])
    except UnsupportedPtx as error:
        if TOO_MUCH not in str(error):
            raise
        return _inlined(module, entry, RECURSION[1])


def _inlined(module: Module, entry: str, recursion: int) -> Program:
    function = parse.function(module, entry)
    builder = _Builder(module, recursion=recursion)
    param_offsets: dict[str, int] = {}
    top = 0
    for variable in function.params:
        top = align_up(top, max(variable.align, 1))
        param_offsets[variable.name] = top
        top += variable.size
        if top > MOST_PARAMETERS:
            raise PtxSyntaxError(f"more than {MOST_PARAMETERS} bytes of parameters", function.line)
    for name, variable in module.variables.items():
        if variable.space == "shared":
            builder.place_shared(name, variable)
    arguments = {name: ("param", offset) for name, offset in param_offsets.items()}
    builder.inline(function, arguments, (), "")
    dynamic = align_up(builder.shared_top, builder.extern_align)
    shared = {key: at for key, (at, _) in builder.shared.items()} | dict.fromkeys(builder.extern, dynamic)
    placed = place_variables(module)
    site = Site(module, shared, {name: p.address for name, p in placed.items()})
    segments = _cut(builder, site)
    propagate_constants(segments)
    mark_liveness(segments)
    mark_loops(segments)
    mark_leaving(segments)
    return Program(
        entry, segments, builder.registers, align_up(builder.local_bytes, 16), builder.shared_top, dynamic,
        param_offsets, top, function.directives, frozenset(site.used),
    )  # fmt: skip


class _Cutter:
    """Collects segments; targets are labels first and become indices at the end."""

    def __init__(self) -> None:
        self.segments: list[Segment] = [Segment(0)]
        self.labels: dict[str, int] = {}
        self.pending: list[tuple[Segment, str, tuple[str, ...]]] = []
        self.open = True  # does control fall into the current segment's end?

    @property
    def current(self) -> Segment:
        return self.segments[-1]

    def start(self) -> Segment:
        """A new segment that the current one falls into, unless it has ended already."""
        segment = Segment(len(self.segments))
        if self.open:
            self.current.end = Goto(segment.index)
        self.segments.append(segment)
        self.open = True
        return segment

    def fresh(self) -> Segment:
        """The current segment if it is still empty, else a new one."""
        if not self.open or self.current.steps:
            return self.start()
        return self.current


def _cut(builder: _Builder, site: Site) -> list[Segment]:
    cut = _Cutter()
    fixes: list[tuple[Segment, str, tuple[str, ...], Guard | None]] = []
    for item in builder.items:
        if item.label:
            segment = cut.fresh()
            cut.labels[item.label] = segment.index
            continue
        instr, frame = item.instr, item.frame
        assert frame is not None
        if not cut.open:
            cut.start()  # unreachable, or reached by a label handled above
        guard = None
        if instr is not None and instr.pred is not None:
            guard = Guard(frame.base + instr.pred.index, instr.pred_negated)
        if item.jump:
            fixes.append((cut.current, "jump", (item.jump,), guard))
            cut.open = guard is not None
            if guard:
                here = cut.current
                after = cut.start()
                here.end = Branch(guard, -1, after.index)
            continue
        assert instr is not None
        base = instr.base
        if base in ("bra", "brx"):
            tag = frame.tag
            names = tuple(op.name + tag for op in instr.operands if isinstance(op, Label))
            if not names or (base == "bra" and len(names) > 1):
                raise PtxSyntaxError(f"{instr.opcode} needs a label", instr.line)
            here = cut.current
            if base == "brx":
                if guard:
                    raise UnsupportedPtx(instr.opcode, instr.line, "predicated")
                index = site.source(frame, instr, instr.operands[0], 32)
                here.end = Switch(index, tuple(-1 for _ in names))
                cut.open = False
            elif guard is None:
                cut.open = False
            else:
                after = cut.start()
                here.end = Branch(guard, -1, after.index)
            here.jump = instr
            fixes.append((here, base, names, guard))
        elif base in ("exit", "ret", "trap"):
            here = cut.current
            if guard is None:
                here.end = Exit(instr, base == "trap")
                cut.open = False
            else:
                stop = cut.start()
                stop.end = Exit(instr, base == "trap")
                cut.open = False
                after = cut.start()
                here.end = Branch(guard, stop.index, after.index)
        elif base in _BARRIER_BASES and instr.mods[:1] != ("warp",):
            _checked(instr, lambda i=instr, f=frame, g=guard: _barrier(cut, site, f, i, g))  # type: ignore[misc]
        else:
            _step(cut, site, frame, instr, guard)
    if cut.open:
        cut.current.end = Exit(None)
    for segment, kind, names, guard in fixes:
        targets = []
        for name in names:
            if name not in cut.labels:
                raise PtxSyntaxError(f"unknown label {name}")
            targets.append(cut.labels[name])
        if kind == "brx":
            assert isinstance(segment.end, Switch)
            segment.end = Switch(segment.end.index, tuple(targets))
        elif guard is None:
            segment.end = Goto(targets[0])
        else:
            assert isinstance(segment.end, Branch)
            segment.end = Branch(guard, targets[0], segment.end.other)
    return cut.segments


def _skip_around(cut: _Cutter, guard: Guard | None) -> Segment | None:
    """For a guarded instruction that must own a segment: the branch around it. Returns the branching segment."""
    if guard is None:
        return None
    here = cut.current
    inside = cut.start()
    here.end = Branch(guard, inside.index, -1)
    return here


def _land(cut: _Cutter, branching: Segment | None) -> None:
    if branching is None:
        return
    after = cut.start()
    assert isinstance(branching.end, Branch)
    branching.end = Branch(branching.end.guard, branching.end.taken, after.index)


def _checked(instr: Instr, decode: Callable[[], T]) -> T:
    """Runs a decoder; whatever it stumbles over becomes a PtxSyntaxError of the instruction's line."""
    try:
        return decode()
    except PtxError:
        raise
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, AssertionError, StopIteration) as error:
        raise PtxSyntaxError(f"operands or modifiers of {instr.opcode} do not fit", instr.line) from error


def _step(cut: _Cutter, site: Site, frame: Frame, instr: Instr, guard: Guard | None) -> None:
    decode = _host_call if instr.base == "call" else decode_step
    steps = _checked(instr, lambda: decode(site, frame, instr))
    for step in steps:
        if isinstance(step, (Warp, _Move, _Multiply)) and _meets(step):
            branching = _skip_around(cut, guard)
            segment = cut.fresh()
            segment.steps.append(step)
            segment.warp_sync = step
            _land(cut, branching)
        elif isinstance(step, Warp):  # a segment of its own all the same: backends treat it as a whole-warp step
            step.guard = guard
            cut.fresh().steps.append(step)
        else:
            step.guard = guard
            cut.current.steps.append(step)


def _meets(step: Step) -> bool:
    return not isinstance(step, Warp) or step.mask is not None


def _host_call(site: Site, frame: Frame, instr: Instr) -> list[Step]:
    returns, name, arguments = _call_parts(instr)
    places = [
        site.place(frame, instr, Address(a), "param") for a in (*arguments, *returns) if isinstance(a, (Sym, Reg))
    ]
    call = HostCall(instr, name=name, args=tuple(places[: len(arguments)]))
    call.result = places[-1] if returns else None
    return [call]


def _barrier(cut: _Cutter, site: Site, frame: Frame, instr: Instr, guard: Guard | None) -> None:
    branching = _skip_around(cut, guard)
    mods = [m for m in instr.mods if m != "cta"]
    aligned = instr.base == "bar" or "aligned" in mods
    here = cut.current
    operands = list(instr.operands)
    if "cluster" in mods:
        kind = "cluster_arrive" if "arrive" in mods else "cluster_wait"
        if kind == "cluster_wait" and "wait" not in mods:
            raise UnsupportedPtx(instr.opcode, instr.line)
        after = cut.start()
        here.end = Barrier(instr, kind, after.index, aligned=aligned)
    else:
        kind = next((k for k in ("sync", "arrive", "red") if k in mods), "")
        if not kind:
            raise UnsupportedPtx(instr.opcode, instr.line)
        dst = value = None
        combine = ""
        if kind == "red":
            combine = next(m for m in mods if m in ("popc", "and", "or"))
            d = operands.pop(0)
            dst = site.destination(frame, instr, d)
            value = site.source(frame, instr, operands.pop(), 1)
        ids = [site.source(frame, instr, op, 32) for op in operands]
        after = cut.start()
        here.end = Barrier(
            instr,
            kind,
            after.index,
            ids[0],
            ids[1] if len(ids) > 1 else None,
            combine,
            value if isinstance(value, RegSrc) else None,
            dst,
            aligned,
        )
    if branching is not None:
        assert isinstance(branching.end, Branch)
        branching.end = Branch(branching.end.guard, branching.end.taken, after.index)
