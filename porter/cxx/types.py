"""C++ spellings of scalar types, as engines write them, to the scalar names of porter.ir. The only such table."""

from __future__ import annotations

import re

from porter.ir import SCALARS

_SPELLINGS: dict[str, str] = {
    "void": "void",
    "bool": "bool",
    "char": "i8",
    "signed char": "i8",
    "unsigned char": "u8",
    "short": "i16",
    "short int": "i16",
    "signed short": "i16",
    "unsigned short": "u16",
    "unsigned short int": "u16",
    "int": "i32",
    "signed": "i32",
    "signed int": "i32",
    "unsigned": "u32",
    "unsigned int": "u32",
    "long": "i64",
    "long int": "i64",
    "signed long": "i64",
    "unsigned long": "u64",
    "unsigned long int": "u64",
    "long long": "i64",
    "long long int": "i64",
    "unsigned long long": "u64",
    "unsigned long long int": "u64",
    "int8_t": "i8",
    "uint8_t": "u8",
    "int16_t": "i16",
    "uint16_t": "u16",
    "int32_t": "i32",
    "uint32_t": "u32",
    "int64_t": "i64",
    "uint64_t": "u64",
    "size_t": "u64",
    "ptrdiff_t": "i64",
    "intptr_t": "i64",
    "uintptr_t": "u64",
    "uint": "u32",
    "uchar": "u8",
    "ushort": "u16",
    "ulong": "u64",
    "byte": "u8",
    "float": "f32",
    "double": "f64",
    "__half": "f16",
    "half": "f16",
    "half_t": "f16",
    "Half": "f16",
    "float16": "f16",
    "__nv_half": "f16",
    "_Float16": "f16",
    "__nv_bfloat16": "bf16",
    "nv_bfloat16": "bf16",
    "__bf16": "bf16",
    "bfloat16": "bf16",
    "bfloat16_t": "bf16",
    "BFloat16": "bf16",
    "__nv_fp8_e4m3": "e4m3",
    "__nv_fp8_storage_t": "u8",
    "Float8_e4m3fn": "e4m3",
    "float_e4m3_t": "e4m3",
    "fp8_e4m3": "e4m3",
    "__nv_fp8_e5m2": "e5m2",
    "Float8_e5m2": "e5m2",
    "float_e5m2_t": "e5m2",
    "fp8_e5m2": "e5m2",
    "__nv_fp8_e8m0": "e8m0",
    "Float8_e8m0fnu": "e8m0",
    "float_ue8m0_t": "e8m0",
    "__nv_fp4_e2m1": "e2m1",
    "float_e2m1_t": "e2m1",
}
# namespaces that only prefix one of the spellings above
_NAMESPACES = ("std::", "cuda::std::", "c10::", "at::", "cutlass::", "cute::", "torch::", "ck_tile::")


def normalise(spelling: str) -> str:
    """A type spelling without cv-qualifiers, `typename`/`struct`, a leading `::`, references and doubled blanks."""
    text = re.sub(r"\b(const|volatile|typename|struct|class|__restrict__|__restrict|restrict)\b", " ", spelling)
    text = text.replace("&", " ")
    text = re.sub(r"\s+", " ", text).strip()
    return text.removeprefix("::")


def scalar_name(spelling: str) -> str | None:
    """The ir scalar name ("bf16", "i64") of a C++ scalar spelling, or None when it is not one.

    porter's own names ("bf16") are accepted as well, so case files may use either.
    """
    text = normalise(spelling)
    for ns in _NAMESPACES:
        if text.startswith(ns):
            text = text[len(ns) :]
            break
    if text in _SPELLINGS:
        return _SPELLINGS[text]
    return text if text in SCALARS else None


def pointee(spelling: str) -> str | None:
    """What a pointer parameter type points to ("const T *__restrict__" gives "const T"); None: it is no pointer."""
    text = re.sub(r"\b(__restrict__|__restrict|restrict)\b", " ", spelling)
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\s*const$", "", text)  # T* const: the pointer itself is const
    if text.endswith("*"):
        return text[:-1].strip()
    array = re.fullmatch(r"(.*?)\s*\[\s*\d*\s*\]", text)
    return array.group(1) if array else None


def is_const_pointee(spelling: str) -> bool:
    """True when a pointer parameter points to const data."""
    target = pointee(spelling)
    return target is not None and re.search(r"\bconst\b", target) is not None
