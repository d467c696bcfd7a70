"""PTX fundamental types: name, width, kind, and the numpy dtype that holds one value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class PtxType:
    """`kind`: b bits, u unsigned, s signed, f f32 or f64, h 16-bit float, x packed or narrow float, p predicate."""

    name: str
    bits: int
    kind: str

    @property
    def bytes(self) -> int:
        return (self.bits + 7) // 8

    @property
    def signed(self) -> bool:
        return self.kind == "s"

    @property
    def dtype(self) -> np.dtype:
        """The dtype of a register of this type (unsigned bits, except f32 and f64; b128 is a pair of uint64)."""
        return _DTYPES[self]

    @property
    def raw(self) -> np.dtype:
        """The unsigned dtype of the same width (bool for predicates)."""
        return _RAW[self.bits]

    def __str__(self) -> str:
        return self.name


_RAW = {
    1: np.dtype(np.bool_),
    4: np.dtype(np.uint8),
    8: np.dtype(np.uint8),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
    128: np.dtype(np.complex128),  # moved as a whole only; taken apart by mov
}

TYPES: dict[str, PtxType] = {}


def _add(kind: str, bits: int, *names: str) -> None:
    for name in names:
        TYPES[name] = PtxType(name, bits, kind)


for _bits in (8, 16, 32, 64):
    for _kind in "bus":
        _add(_kind, _bits, f"{_kind}{_bits}")
_add("b", 128, "b128")
_add("p", 1, "pred")
_add("f", 32, "f32")
_add("f", 64, "f64")
_add("h", 16, "f16", "bf16")
_add("x", 32, "f16x2", "bf16x2", "tf32", "e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "u16x2", "s16x2", "u8x4", "s8x4")
_add("x", 64, "f32x2")
_add("x", 16, "e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "ue8m0x2", "e2m1x4")
_add("x", 8, "e2m1x2", "e4m3", "e5m2", "e2m3", "e3m2", "ue8m0")

_DTYPES = {
    t: (np.dtype(np.float32) if t.name == "f32" else np.dtype(np.float64) if t.name == "f64" else _RAW[t.bits])
    for t in TYPES.values()
}

PRED = TYPES["pred"]
B8, B16, B32, B64, B128 = (TYPES[n] for n in ("b8", "b16", "b32", "b64", "b128"))
U8, U16, U32, U64 = (TYPES[n] for n in ("u8", "u16", "u32", "u64"))
S8, S16, S32, S64 = (TYPES[n] for n in ("s8", "s16", "s32", "s64"))
F16, BF16, F32, F64 = (TYPES[n] for n in ("f16", "bf16", "f32", "f64"))
F16X2, BF16X2, F32X2 = (TYPES[n] for n in ("f16x2", "bf16x2", "f32x2"))
