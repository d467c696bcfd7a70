"""Which functions of CUDA's device API porter translates, from the prototypes of CUDA's headers.

`python -m tools.device_functions` writes docs/device-functions.md; `--missing` lists what is not translated.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from porter.files.atomic import write_atomic

ROOT = Path(__file__).resolve().parents[1]
HEADERS = {
    "math": ("crt/math_functions.h",),
    "integers, conversions and rounding": ("crt/device_functions.h", "crt/device_double_functions.h"),
    "half": ("cuda_fp16.h",),
    "bfloat16": ("cuda_bf16.h",),
}
TYPES = {
    "float", "double", "int", "unsigned int", "unsigned", "long long int", "long long", "unsigned long long int",
    "unsigned long long", "long int", "long", "short int", "short", "unsigned short int", "unsigned short",
    "signed char", "unsigned char", "bool", "__half", "__half2", "__nv_bfloat16", "__nv_bfloat162", "float2", "char",
}  # fmt: skip
_PROTOTYPE = re.compile(
    r"(?:__device__|__CUDA_\w+_DECL__|__DEVICE_\w+_DECL__)\s"
    r"(?:__device_builtin__ |__cudart_builtin__ |__host__ |__device__ |static |inline |__inline__ |__forceinline__ )*"
    r"(?P<result>(?:unsigned |signed |long )*[\w]+)\s+(?P<name>\w+)\s*\((?P<args>[^()]*)\)"
)


_NO_CODE = re.compile(r"/\*.*?\*/|//[^\n]*|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.S | re.M)
_INTERNAL = re.compile(r"_[A-Za-z]\w*|__\w+_BITS|(__)?(signbit|isfinite|finite|isinf|isnan)l?")


@dataclass(frozen=True)
class Function:
    name: str
    result: str
    args: tuple[str, ...]

    @property
    def pointers(self) -> bool:
        return any(a.endswith("*") for a in self.args)

    def kernel(self, number: int) -> str:
        """A kernel that calls it once."""
        parameters = [f"{self.result}* r"] if self.result != "void" else []
        parameters += [f"{a.rstrip('*')}* a{i}" for i, a in enumerate(self.args)]
        values = ", ".join(f"a{i} + t" if a.endswith("*") else f"a{i}[t]" for i, a in enumerate(self.args))
        call = f"{self.name}({values})"
        body = f"r[t] = {call};" if self.result != "void" else f"{call};"
        return f"__global__ void f{number}({', '.join(parameters)}) {{ int t = threadIdx.x; {body} }}"


def include_folder() -> Path:
    spec = importlib.util.find_spec("nvidia")
    assert spec and spec.submodule_search_locations
    for place in spec.submodule_search_locations:
        for folder in Path(place).glob("*/include"):
            if (folder / "cuda_fp16.h").is_file():
                return folder
    raise SystemExit("CUDA's headers are not installed: pip install nvidia-cuda-runtime nvidia-cuda-crt")


def functions(family: str) -> Iterator[Function]:
    """The functions that the headers of a family declare, of types that memory can hold, each signature once."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for header in HEADERS[family]:
        path = include_folder() / header
        if not path.is_file():
            continue
        code = _NO_CODE.sub(" ", path.read_text(errors="replace"))
        for found in _PROTOTYPE.finditer(" ".join(code.split())):
            args = tuple(_type(a) for a in found["args"].split(",") if a.strip() not in ("", "void"))
            function = Function(found["name"], _type(found["result"] + " x"), args)
            own = function.name.endswith("_BITS") or function.name[1] != "_" or "long" in args
            if _INTERNAL.fullmatch(function.name) and own:
                continue  # of the host's C library
            usable = {function.result, *(a.rstrip("*") for a in args)} - {"void"} <= TYPES
            if usable and (function.name, args) not in seen:
                seen.add((function.name, args))
                yield function


def callable_here(f: Function) -> bool:
    """Whether a call of one thread has a result to compare, and the original's compiler knows the function."""
    own = re.match(r"__(ld|st|sync|thread|prof|brkpt|trap|nanosleep|shfl|match|reduce|activemask)|clock|atomic", f.name)
    host = re.fullmatch(r"__(signbit|isnan|isinf|finite|isfinite)[dfl]?", f.name)  # of the host's C library
    return bool(f.args) and not own and not host and "_sync" not in f.name


def _type(text: str) -> str:
    """`const float x` is float."""
    words = re.sub(r"\bconst\b|__restrict__", "", text).replace("*", " * ").split()
    star = "*" if "*" in words else ""
    words = [w for w in words if w != "*"]
    base = " ".join(words)
    if base not in TYPES and len(words) > 1:
        base = " ".join(words[:-1])
    return base + star


def status(found: list[Function]) -> list[str]:
    """What porter makes of each: "" translated, else the code and reason of the first hole or error."""
    from porter.config import PortConfig
    from porter.model import Instance, PorterError
    from porter.pipeline.inputs import parse
    from porter.pipeline.stages import Run, translate

    head = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
    text = head + "\n".join(f.kernel(n) for n, f in enumerate(found)) + "\n"
    config = PortConfig(cpu_limit=0)
    unit = parse(Path("device_functions.cu"), config, text)
    answers = []
    infos = {k.name: k for k in unit.kernels}
    for n in range(len(found)):
        info = infos.get(f"f{n}")
        if info is None:
            answers.append("not parsed")
            continue
        try:
            module = translate(unit, info, None, config, Run(info.name), (Instance(),)).module
        except PorterError as error:
            answers.append(f"{error.diagnostics[0].code} {error.diagnostics[0].message}")
            continue
        hole = next(iter(module.holes), None)
        answers.append(f"{hole.code} {hole.reason or hole.cuda}" if hole else "")
    return answers


def page() -> str:
    """docs/device-functions.md."""
    parts = [INTRODUCTION]
    for family in HEADERS:
        found = list(functions(family))
        answers = status(found)
        done = sorted({f.name for f, a in zip(found, answers, strict=True) if not a})
        left = {f.name: a for f, a in zip(found, answers, strict=True) if a and f.name not in done}
        parts.append(f"## {family[0].upper()}{family[1:]}\n\n{len(done)} of {len(done) + len(left)} names.\n")
        parts.append(textwrap.fill(", ".join(f"`{n}`" for n in done), 120, break_long_words=False) + "\n")
        if left:
            parts.append("Not translated:\n")
            parts += [f"- `{name}`: {_reason(said)}" for name, said in sorted(left.items())]
            parts.append("")
    return "\n".join(parts)


def _reason(said: str) -> str:
    return "not declared" if "undeclared" in said else said.split(" ", 1)[1]


INTRODUCTION = """\
<!-- Generated by `python -m tools.device_functions`: do not edit. -->

# CUDA's device functions

What porter translates of the functions that CUDA 13's headers declare for device code. Each is compared with the
original on the emulator, over special values and random ones, to the bit (`tests/emit/test_device_functions.py`). Most
of the math functions become calls of libdevice, which nvcc links too; where the original's compiler and CuTeDSL have
different versions of it (`erf`, `expm1`, `cyl_bessel_i0`), the last bits may differ.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missing", action="store_true", help="list what is not translated, and write nothing")
    args = parser.parse_args()
    if not args.missing:
        write_atomic(ROOT / "docs" / "device-functions.md", page())
        return 0
    for family in HEADERS:
        found = list(functions(family))
        for function, answer in zip(found, status(found), strict=True):
            if answer:
                print(f"{function.result} {function.name}({', '.join(function.args)}): {answer[:90]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
