"""What a source says of a kernel's case, before it is text: every part with where it comes from, and what nobody says
left open. The text of a draft is printed from it (`case/text.py`), and whatever measures the original fills it in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from porter import ir
from porter.model import Instance, KernelInfo
from porter.source import NO_SPAN, Span


@dataclass(frozen=True)
class Ground:
    """A statement that the case rests on, and the place in the source that says so (NO_SPAN: a guess of porter's)."""

    text: str
    span: Span = NO_SPAN

    @property
    def is_guess(self) -> bool:
        return self.span == NO_SPAN

    def __str__(self) -> str:
        return self.text if self.is_guess else f"{self.text} ({self.span})"


@dataclass(frozen=True)
class DerivedSize:
    """A named size: the values it is verified at, or the case expression that it is equal to.

    `free` marks a size that stands for what could not be seen through: a guess with a default.
    """

    name: str
    values: tuple[int, ...] | str
    comment: str = ""
    free: bool = False


@dataclass(frozen=True)
class DerivedBuffer:
    """One pointer parameter. `shape` None: nobody says how long it is (an unknown extent, to be measured)."""

    name: str
    type: str  # C++ spelling of the parameter
    dtype: str | None  # an ir scalar name or a template type parameter; None: nobody says
    shape: tuple[str, ...] | None
    role: str  # in, out or inout
    strides: tuple[str, ...] | None = None
    role_is_guess: bool = False
    dist: str = ""
    low: str | None = None
    high: str | None = None  # "TODO" for an integer that is read and of which nobody says what it may hold
    optional: bool = False
    shape_from: str = ""  # what the shape was read from, for the comment beside it
    role_from: str = ""  # likewise
    dist_from: str = ""


@dataclass(frozen=True)
class DerivedScalar:
    """A parameter that is no pointer: case expressions, several are variants. () when a case cannot pass its type."""

    name: str
    type: str
    values: tuple[str, ...]
    comment: str = ""
    is_guess: bool = False


@dataclass(frozen=True)
class DerivedLaunch:
    """Case expressions over sizes, scalars and template parameters; None for a part that is not known."""

    grid: tuple[str, ...] | None
    block: tuple[str, ...] | None
    smem: str | None = "0"
    cooperative: bool = False
    cluster: tuple[str, ...] = ()
    pdl: bool = False
    host_function: str = ""
    span: Span = NO_SPAN
    open: dict[str, str] = field(default_factory=dict)  # key of a part that is not known -> why
    guess: str = ""  # what the comment beside grid and block says, where both are porter's


@dataclass(frozen=True)
class DerivedInstance:
    """Template arguments as C++ text, and the condition under which the host launches them."""

    args: tuple[str, ...]
    when: str = ""

    @property
    def instance(self) -> Instance:
        return Instance(self.args)


@dataclass(frozen=True)
class DerivedCase:
    """A case as far as the source says it. `open` names what a person (or a measurement) still has to say."""

    info: KernelInfo
    buffers: tuple[DerivedBuffer, ...]
    sizes: tuple[DerivedSize, ...]
    scalars: tuple[DerivedScalar, ...]
    launch: DerivedLaunch
    instances: tuple[DerivedInstance, ...] = ()
    shapes: tuple[dict[str, int], ...] = ()  # explicit points, where sizes depend on each other
    only_shapes: bool = False
    constraints: tuple[str, ...] = ()  # case expressions that hold at every point
    symbols: tuple[ir.Symbol, ...] = ()
    roles: dict[str, str] = field(default_factory=dict)  # of pointers and symbols, from the kernel's body
    lowered: ir.Kernel | None = None  # at the first instance, where its body could be read
    grounds: tuple[Ground, ...] = ()

    @property
    def place(self) -> str:
        """`k.cu:7`: the launch that it is derived from; the kernel itself where no launch is seen."""
        span = self.launch.span if self.launch.span.file else self.info.span
        return f"{Path(span.file).name}:{span.line}"

    @property
    def unknown_extents(self) -> tuple[str, ...]:
        """Buffers whose length nobody says."""
        return tuple(b.name for b in self.buffers if b.shape is None)

    def with_buffer(self, name: str, **changes: Any) -> DerivedCase:
        """The same with fields of one buffer changed."""
        return replace(self, buffers=tuple(replace(b, **changes) if b.name == name else b for b in self.buffers))

    def with_shape(self, name: str, shape: tuple[str, ...], shape_from: str) -> DerivedCase:
        """The same with the shape of one buffer (case expressions over sizes and scalars) filled in."""
        return self.with_buffer(name, shape=shape, shape_from=shape_from)
