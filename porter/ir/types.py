"""Types of the IR: scalars, pointers, arrays and structs, with their sizes in bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SCALARS = (
    "void", "bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64",
    "f16", "bf16", "f32", "f64", "e4m3", "e5m2", "e8m0", "e2m1",
)  # fmt: skip
SCALAR_BYTES = {
    "void": 1, "bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "e4m3": 1, "e5m2": 1, "e8m0": 1, "e2m1": 1,
}  # fmt: skip


class Type:
    """Base of all types."""


@dataclass(frozen=True)
class Scalar(Type):
    """A scalar: one of SCALARS (char is i8, long is i64, size_t is u64)."""

    name: str

    @property
    def is_float(self) -> bool:
        return self.name in ("f16", "bf16", "f32", "f64", "e4m3", "e5m2", "e8m0", "e2m1")

    @property
    def is_unsigned(self) -> bool:
        return self.name.startswith("u") or self.name == "bool"

    @property
    def is_int(self) -> bool:
        return not self.is_float and self.name != "void"


@dataclass(frozen=True)
class TypeParam(Type):
    """A template type parameter; only in merged (generic) IR."""

    name: str


@dataclass(frozen=True)
class Pointer(Type):
    """A pointer. `space` is filled in by a pass: generic (unknown), global, shared, local."""

    elem: Type
    space: str = "generic"
    const: bool = False


@dataclass(frozen=True)
class Array(Type):
    """A C array; multi-dimensional arrays nest. `length` is an int, or an Expr over parameters in merged IR."""

    elem: Type
    length: Any


@dataclass(frozen=True)
class StructField:
    name: str
    type: Type
    offset: int  # bytes


@dataclass(frozen=True)
class Struct(Type):
    """A struct, class, union or CUDA vector type (float4, half2 have fields x, y, z, w). Bases are fields too."""

    name: str  # C++ spelling, template arguments included: "Vec<float, 4>"
    fields: tuple[StructField, ...]
    size: Any  # bytes: int (or Expr in merged IR)
    align: Any
    is_union: bool = False


VOID, BOOL = Scalar("void"), Scalar("bool")
I8, U8, I16, U16 = Scalar("i8"), Scalar("u8"), Scalar("i16"), Scalar("u16")
I32, U32, I64, U64 = Scalar("i32"), Scalar("u32"), Scalar("i64"), Scalar("u64")
F16, BF16, F32, F64 = Scalar("f16"), Scalar("bf16"), Scalar("f32"), Scalar("f64")
E4M3, E5M2 = Scalar("e4m3"), Scalar("e5m2")


def sizeof(t: Type) -> int:
    """Size in bytes of a concrete type; raises TypeError for a generic one."""
    if isinstance(t, Scalar):
        return SCALAR_BYTES[t.name]
    if isinstance(t, Pointer):
        return 8
    if isinstance(t, Array) and isinstance(t.length, int):
        return sizeof(t.elem) * t.length
    if isinstance(t, Struct) and isinstance(t.size, int):
        return t.size
    raise TypeError(f"no size for {t}")


def alignof(t: Type) -> int:
    """Alignment in bytes of a concrete type."""
    if isinstance(t, Array):
        return alignof(t.elem)
    if isinstance(t, Struct):
        return int(t.align)
    return sizeof(t)
