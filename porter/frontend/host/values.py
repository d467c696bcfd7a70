"""What host expressions evaluate to: numbers as terms, tensors, pointers, structs, functions. Places hold them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from porter.frontend.host.terms import Term
from porter.source import NO_SPAN, Span


@dataclass(eq=False)
class Place:
    """A variable, a member or an element: what can be assigned to."""

    value: Any = None
    name: str = ""


@dataclass(eq=False)
class Region:
    """Memory that pointers lead to: a tensor's, an allocation, or what a parameter points to.

    `bytes` is its length where the host says it, `count` its elements.
    """

    name: str
    span: Span = NO_SPAN
    bytes: Term | None = None
    tensor: TensorValue | None = None
    said_by: str = ""  # what gave the length, for a person
    zeroed: Span = NO_SPAN  # where the host sets all of it to zero


@dataclass(frozen=True)
class Pointer:
    region: Region
    offset: Term  # elements
    element: str = ""  # C++ spelling of what it points to


@dataclass(frozen=True)
class PlacePointer:
    """The address of a variable of the host."""

    place: Place
    index: int = 0
    of: tuple[Place, ...] = ()  # the array that the place is in


@dataclass(frozen=True)
class Null:
    pass


@dataclass(eq=False)
class TensorValue:
    """A tensor. `key` names what its sizes, strides and type are kept under; dims None: as many as are asked for."""

    key: str
    span: Span = NO_SPAN
    dims: list[Term] | None = None
    dtype: str = ""  # key of the tensor whose type it has, or "=Float" for one that is said
    contiguous: bool = True
    init: str = ""  # "zeros", "ones"
    region: Region | None = None
    said_by: str = ""


@dataclass(frozen=True)
class TypeOf:
    """The element type of a tensor, as far as a path has not decided it."""

    key: str


@dataclass(frozen=True)
class Options:
    """TensorOptions: the type is all that matters."""

    dtype: str


@dataclass(frozen=True)
class ListValue:
    """sizes(), strides(), an initialiser list, a vector. `of` (tensor, "size" or "stride"): what is asked for."""

    items: tuple[Any, ...] = ()
    of: tuple[TensorValue, str] | None = None


@dataclass(eq=False)
class StructValue:
    type: str
    members: dict[str, Place] = field(default_factory=dict)
    name: str = ""  # of the parameter that it came in by: its members are made on demand


@dataclass(eq=False)
class ArrayValue:
    items: list[Place]


@dataclass(eq=False)
class OptionalValue:
    """std::optional: `present` None is for a path to decide."""

    key: str
    value: Any
    present: bool | None = None


@dataclass(frozen=True)
class FunctionValue:
    """A function, by its cursor, with template arguments as text where the reference resolves none."""

    cursor: Any
    text: str = ""


@dataclass(frozen=True, eq=False)
class LambdaValue:
    node: Any
    frame: Any


@dataclass(frozen=True)
class Text:
    value: str


@dataclass(frozen=True)
class Unknown:
    """What cannot be seen through: `name` is what a size made of it is called."""

    name: str
    span: Span = NO_SPAN


Value = Any
