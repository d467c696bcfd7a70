"""How IR types, numbers and names are written in the port.

Names: the one place that knows which a port uses itself. What is told apart is who else has names in the same scope.
Any Python scope of a port has the modules it imports, the types and the built-in functions that it calls. Parameters of
the kernel, template parameters and sizes of the case are names of the launcher and of the torch-facing function too.
A function must not be taken for a built-in one.
"""

from __future__ import annotations

import builtins
import hashlib
import keyword
import math
import struct
import unicodedata
from dataclasses import replace
from typing import Any

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


# ---------------------------------------------------------------- names

LONGEST = 100  # letters of a function's or a module's name: others hang on it, in the PTX and as files

#: names that mean something of the port's in any of its scopes
RESERVED = {
    *keyword.kwlist, *DTYPES.values(), "cutlass", "cute", "lib", "runtime", "torch", "KERNEL", "launch_config",
    "range", "min", "max", "print", "abs", "len", "int", "float", "bool", "type", "tuple", "list", "dict", "set",
    "isinstance", "super",
    *(f"{group}{axis}" for group in ("tid", "bid", "bdim", "gdim") for axis in "xyz"),
}  # fmt: skip
#: names of the launcher and of the torch-facing function
OUTSIDE = {
    *(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"), "smem_bytes", "stream", "grid", "block",
    "args", "constexprs",
}  # fmt: skip
_BUILT_IN = set(dir(builtins))


def identifier(name: str) -> str:
    """A legal Python name close to a C++ one that no port uses itself: of a local, in one function."""
    clean = _legal(_ascii(name))
    return clean + "_" if clean in RESERVED else clean


def parameter(name: str) -> str:
    """... of a parameter of the kernel, a template parameter, a size or a scalar of the case."""
    clean = identifier(name)
    return clean + "_" if clean in OUTSIDE else clean


def function(name: str) -> str:
    """... of a kernel or a device function: not long, since what is in the PTX is named after it."""
    clean = identifier(_short(_ascii(name)))
    return clean + "_" if clean in _BUILT_IN else clean


def module(stem: str) -> str:
    """... of a port's file, without its suffix."""
    clean = _short("".join(c if c.isalnum() or c == "_" else "_" for c in _ascii(stem)))
    clean = f"_{clean}" if clean[:1].isdigit() else clean
    return clean + "_" if keyword.iskeyword(clean) else clean


def _ascii(name: str) -> str:
    """Other letters as numbers: Python reads some as others, people take some for others; `honesty` refuses them."""
    return "".join(c if c.isascii() else f"u{ord(c):x}" for c in unicodedata.normalize("NFC", name))


def _legal(name: str) -> str:
    """Letters, digits and underscores as Python allows them; names with two underscores in front are Python's own."""
    clean = "".join(c if f"a{c}".isidentifier() else "_" for c in name) or "v"
    return clean if clean.isidentifier() and not clean.startswith("__") else "v" + clean


def _short(name: str) -> str:
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def with_python_templates(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with its template parameters, and those of its functions, named as `parameter` says."""
    given = (kernel.targs, *(f.targs for f in kernel.functions.values()))
    changed = {n for targs in given for n, _ in targs if parameter(n) != n}
    if not changed:
        return kernel

    def named(targs: Any) -> Any:
        return tuple((parameter(n), v) for n, v in targs)

    def one(node: Any) -> Any:
        origin = getattr(node, "origin", None)
        return replace(node, origin=parameter(str(origin))) if origin in changed else node

    functions = {
        key: replace(f, targs=named(f.targs), body=ir.rewrite(f.body, one)) for key, f in kernel.functions.items()
    }
    return replace(kernel, targs=named(kernel.targs), functions=functions, body=ir.rewrite(kernel.body, one))
