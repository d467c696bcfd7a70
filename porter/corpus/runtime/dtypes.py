"""One table of scalar names: what each is in cutlass and in torch, and its size. Imports both only on use."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DType:
    """One scalar type. `cutlass` and `torch` are attribute names of those packages; `bits` is the storage width."""

    name: str
    bits: int
    cutlass: str
    torch: str | None
    is_float: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory (a packed 4-bit type counts as one byte)."""
        return max(1, self.bits // 8)


_ROWS = (
    DType("bool", 8, "Boolean", "bool"),
    DType("i8", 8, "Int8", "int8"),
    DType("u8", 8, "Uint8", "uint8"),
    DType("i16", 16, "Int16", "int16"),
    DType("u16", 16, "Uint16", "uint16"),
    DType("i32", 32, "Int32", "int32"),
    DType("u32", 32, "Uint32", "uint32"),
    DType("i64", 64, "Int64", "int64"),
    DType("u64", 64, "Uint64", "uint64"),
    DType("f16", 16, "Float16", "float16", True),
    DType("bf16", 16, "BFloat16", "bfloat16", True),
    DType("f32", 32, "Float32", "float32", True),
    DType("f64", 64, "Float64", "float64", True),
    DType("e4m3", 8, "Float8E4M3FN", "float8_e4m3fn", True),
    DType("e5m2", 8, "Float8E5M2", "float8_e5m2", True),
    DType("e8m0", 8, "Float8E8M0FNU", "float8_e8m0fnu", True),
    DType("e2m1", 4, "Float4E2M1FN", "float4_e2m1fn_x2", True),
)
DTYPES: dict[str, DType] = {row.name: row for row in _ROWS}


def dtype(name: str) -> DType:
    """The row of a scalar name; raises KeyError that lists the names for an unknown one."""
    try:
        return DTYPES[name]
    except KeyError:
        raise KeyError(f"no scalar type is called {name!r}; known: {' '.join(DTYPES)}") from None


def cutlass_type(name: str) -> Any:
    """The cutlass numeric class of a scalar name (`"bf16"` -> `cutlass.BFloat16`)."""
    return getattr(importlib.import_module("cutlass"), dtype(name).cutlass)


def torch_type(name: str) -> Any:
    """The torch dtype of a scalar name; raises TypeError where this torch has none."""
    found = getattr(importlib.import_module("torch"), dtype(name).torch or "", None)
    if found is None:
        raise TypeError(f"this torch has no dtype for {name}")
    return found


def name_of(torch_dtype: Any) -> str:
    """The scalar name of a torch dtype (`torch.bfloat16` -> `"bf16"`); raises TypeError for an unknown one."""
    text = str(torch_dtype).removeprefix("torch.")
    for row in _ROWS:
        if row.torch == text:
            return row.name
    raise TypeError(f"no scalar name for {torch_dtype}")
