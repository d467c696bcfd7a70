"""How IR types, numbers and names are written in the port."""

from __future__ import annotations

import math
import struct

from porter import ir

DTYPES = {
    "bool": "Boolean",
    "i8": "Int8",
    "u8": "Uint8",
    "i16": "Int16",
    "u16": "Uint16",
    "i32": "Int32",
    "u32": "Uint32",
    "i64": "Int64",
    "u64": "Uint64",
    "f16": "Float16",
    "bf16": "BFloat16",
    "f32": "Float32",
    "f64": "Float64",
    "e4m3": "Float8E4M3FN",
    "e5m2": "Float8E5M2",
    "e8m0": "Float8E8M0FNU",
    "e2m1": "Float4E2M1FN",
}


def dtype(t: ir.Type) -> str:
    """The CuTeDSL type of a scalar (`Float32`)."""
    assert isinstance(t, ir.Scalar), t
    return DTYPES[t.name]


def memory_dtype(t: ir.Type) -> str:
    """The CuTeDSL type that a scalar has in memory: bool is a byte."""
    return "Uint8" if t == ir.BOOL else dtype(t)


def float_text(value: float, name: str = "f32") -> str:
    """The shortest decimal that reads back as the same float32 (or double), or an expression for inf and NaN."""
    if math.isnan(value):
        return 'float("nan")'
    if math.isinf(value):
        return 'float("inf")' if value > 0 else '-float("inf")'
    if name == "f64":
        return repr(float(value))
    single = struct.unpack("f", struct.pack("f", value))[0]
    for digits in range(1, 18):
        text = f"{single:.{digits}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == single:
            break
    number = float(text)
    return repr(number)
