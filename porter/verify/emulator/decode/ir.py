"""PTX as data: modules, functions, instructions, operands. Produced by parse.py, read by every backend."""

from __future__ import annotations

from dataclasses import dataclass, field

from porter.verify.emulator.decode.types import PtxType


@dataclass(frozen=True, slots=True)
class Reg:
    index: int  # into Function.registers
    type: PtxType
    name: str


@dataclass(frozen=True, slots=True)
class Imm:
    """A literal. `value` is an integer, or the raw bits of a float of `float_bits` bits (0: an integer literal)."""

    value: int
    float_bits: int = 0


@dataclass(frozen=True, slots=True)
class Sym:
    """Address of a variable, parameter or function, plus a byte offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Special:
    name: str  # "%tid.x"


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`; `extra` holds operands after a comma inside the brackets (textures, tensor maps)."""

    base: Reg | Sym | Imm
    offset: int = 0
    extra: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`p|q`; either may be the sink `_`."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Not:
    """`!p`."""

    operand: Reg


@dataclass(frozen=True, slots=True)
class Label:
    name: str


@dataclass(frozen=True, slots=True)
class Sink:
    """`_`: a result that is thrown away."""


@dataclass(frozen=True, slots=True)
class Group:
    """`(a, b)` of a call."""

    items: tuple[Operand, ...]


Operand = Reg | Imm | Sym | Special | Address | Vector | Pair | Not | Label | Sink | Group


@dataclass(frozen=True, slots=True)
class Loc:
    """A `.loc`: file number (see Module.files), line, column; `inlined` is the chain of call sites, innermost first.

    `before` is the nearest earlier `.loc` of another file: where a compiler writes no call sites (CuTeDSL), the code
    that called into a library is found there.
    """

    file: int
    line: int
    column: int
    inlined: tuple[tuple[int, int, int], ...] = ()
    before: Loc | None = None

    def chain(self) -> list[tuple[int, int]]:
        """(file number, line) from the innermost place outwards."""
        out = [(self.file, self.line), *((f, line) for f, line, _ in self.inlined)]
        return out if self.inlined or self.before is None else [*out, (self.before.file, self.before.line)]


@dataclass(slots=True)
class Instr:
    opcode: str  # whole, "ld.global.nc.v4.f32"
    operands: tuple[Operand, ...]
    line: int  # 1-based line of the PTX text
    pred: Reg | None = None
    pred_negated: bool = False
    loc: Loc | None = None
    base: str = ""  # "ld"
    mods: tuple[str, ...] = ()  # ("global", "nc", "v4", "f32")

    def __post_init__(self) -> None:
        parts = self.opcode.split(".")
        self.base, self.mods = parts[0], tuple(parts[1:])


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable. `count` 0 means an array without a size (extern shared)."""

    name: str
    space: str  # global const shared local param
    type: PtxType
    count: int
    align: int
    is_array: bool
    init: str = ""  # its initialiser's text, see declarations.initialisers
    line: int = 0
    extern: bool = False

    @property
    def size(self) -> int:
        """Bytes."""
        return self.type.bytes * self.count


@dataclass(slots=True)
class Function:
    """An entry or device function with its body parsed. `labels` maps a name to an index into `code`."""

    name: str
    is_entry: bool
    params: tuple[Variable, ...]
    returns: tuple[Variable, ...]
    line: int
    registers: list[Reg] = field(default_factory=list)
    code: list[Instr] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)  # .local .shared .param declared in the body
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: dict[str, str] = field(default_factory=dict)
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)  # reqntid, maxntid, reqnctapercluster...


@dataclass(slots=True)
class Declaration:
    """An entry or function whose body has been located but not parsed: text[start:end] lies between its braces."""

    name: str
    is_entry: bool
    params: tuple[Variable, ...]
    returns: tuple[Variable, ...]
    directives: dict[str, tuple[int, ...]]
    line: int
    start: int
    end: int  # 0: declared only


@dataclass(slots=True)
class Module:
    text: str  # comments blanked, same line structure as the input
    version: str = ""
    target: str = ""
    address_size: int = 64
    files: dict[int, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    declarations: dict[str, Declaration] = field(default_factory=dict)
    newlines: list[int] = field(default_factory=list)
    functions: dict[str, Function] = field(default_factory=dict)  # bodies parsed so far
    cache: dict[object, object] = field(default_factory=dict)  # what backends derived (by entry)

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(d.name for d in self.declarations.values() if d.is_entry)
