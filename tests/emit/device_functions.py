"""Functions of CUDA's device API, original against port on the emulator: special values, then random bits."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from porter.config import PortConfig
from porter.model import Instance
from porter.pipeline.inputs import parse
from porter.pipeline.stages import Run, translate
from porter.verify import emulator as ptx
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.original.build import build_original
from tools.device_functions import Function

LANES = 1024
BYTES = {
    "float": 4, "double": 8, "int": 4, "unsigned int": 4, "unsigned": 4, "bool": 1, "long long int": 8, "long long": 8,
    "unsigned long long int": 8, "unsigned long long": 8, "long int": 8, "long": 8, "short int": 2, "short": 2,
    "unsigned short int": 2, "unsigned short": 2, "signed char": 1, "unsigned char": 1, "char": 1, "__half": 2,
    "__nv_bfloat16": 2, "__half2": 4, "__nv_bfloat162": 4, "float2": 8,
}  # fmt: skip
_F32 = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.0, 3.0, 0.1, 1e-40, -1e-40, 1e-38, 3.4e38, -3.4e38, np.inf,
        -np.inf, np.nan, 65504.0, 65519.0, 65520.0, 255.5, 32767.5, 2147483520.0, -2147483648.0, 4294967296.0, 88.7,
        -103.9, 709.7, 1e10, 0.9999999, 1.0000001, 3.1415927, 16777217.0)  # fmt: skip
_INTS = (0, 1, -1, 2, -2, 127, 128, -128, 255, 256, 32767, 32768, -32768, 65535, 65536, 0x7FFFFFFF, -0x80000000,
         0x80007FFF, 0x7F80FF01, 0x01FF807F, 16777217, -16777217, 0x55555555, 2147483583)  # fmt: skip


@dataclass
class Side:
    ptx: str
    entry: str


def kernel_of(found: Sequence[Function]) -> tuple[str, list[str], list[int]]:
    """(source, parameter types in order, bytes of each): inputs `x<i>` by type and place, an output for each result."""
    inputs: dict[tuple[str, int], str] = {}
    parameters: list[tuple[str, str]] = []
    lines = []
    for n, f in enumerate(found):
        words = []
        for i, a in enumerate(f.args):
            if a.endswith("*"):
                parameters.append((f"p{n}_{i}", a[:-1]))
                words.append(f"p{n}_{i} + t")
                continue
            name = inputs.setdefault((a, i), f"x{len(inputs)}")
            words.append(f"{name}[t]")
        call = f"{f.name}({', '.join(words)})"
        if f.result != "void":
            parameters.append((f"r{n}", f.result))
            call = f"r{n}[t] = {call}"
        lines.append(f"  {call};")
    parameters = [(name, t) for (t, _), name in inputs.items()] + parameters
    declared = ", ".join(f"{t}* {name}" for name, t in parameters)
    head = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
    body = "\n".join(lines)
    text = f"{head}__global__ void k({declared}) {{\n  int t = blockIdx.x * blockDim.x + threadIdx.x;\n{body}\n}}\n"
    return text, [name for name, _ in parameters], [BYTES[t] * LANES for _, t in parameters]


def values(name: str, size: int, seed: int) -> np.ndarray:
    """What a buffer holds: for inputs special values (each with each of another argument), then random bits."""
    if not name.startswith("x"):
        return np.zeros(size, np.uint8)
    rng = np.random.default_rng([seed, int(name[1:])])
    raw = rng.integers(0, 256, size, np.uint8)
    width = size // LANES
    special: np.ndarray
    if width == 4:
        special = np.concatenate([np.array(_F32, "f4").view("u4"), np.array(_INTS, "i8").astype("u4")])
    elif width == 8:
        special = np.concatenate([np.array(_F32, "f8").view("u8"), np.array(_INTS, "i8").view("u8")])
    elif width == 2:
        with np.errstate(over="ignore"):
            halves = np.array(_F32, np.float32).astype(np.float16).view(np.uint16)
        brains = (np.array(_F32, np.float32).view(np.uint32) >> 16).astype(np.uint16)
        special = np.concatenate([halves, brains, np.array(_INTS, np.int64).astype(np.uint16)])
    else:
        return raw
    words = raw.view(f"u{width}").copy()
    count = LANES // 2
    place = np.arange(count)
    step = 1 if name == "x0" else len(special) // 2 + 1  # another pairing for each argument
    words[:count] = special[(place * step + place // len(special) * int(name[1:])) % len(special)]
    if width in (4, 8):  # moderate numbers, where functions are not all zero or infinite
        t = f"f{width}"
        words[count : count + 256] = rng.normal(0, 8, 256).astype(t).view(f"u{width}")
    return words.view(np.uint8)


def differing(found: Sequence[Function], arch: str = "sm_90a", seed: int = 1) -> list[str]:
    """The functions whose results differ in a bit (NaN is NaN), with the first operands; or what stopped them."""
    text, names, sizes = kernel_of(found)
    config = PortConfig(arch=(arch,), cpu_limit=0)
    unit = parse(Path("k.cu"), config, text)
    (info,) = unit.kernels
    module = translate(unit, info, None, config, Run(info.name), (Instance(),)).module
    assert not module.holes, [(h.code, h.cuda) for h in module.holes]
    with tempfile.TemporaryDirectory() as folder:
        port = Path(folder) / "k.py"
        port.write_text(module.text)
        (made,) = compile_port(port, [CompileRequest({}, arch)], jobs=1)
    assert made.ok, made.error
    (original,) = build_original(unit.source, unit.options, info, unit=unit)
    left = run(Side(original.ptx, original.entry), names, sizes, seed)
    right = run(Side(made.ptx, made.entry), names, sizes, seed)
    said = []
    for n, f in enumerate(found):
        outputs = [m for m in names if m == f"r{n}" or m.startswith(f"p{n}_")]
        for m in outputs:
            t = f.result if m.startswith("r") else f.args[int(m.split("_")[1])][:-1]
            bad = unequal(left[m], right[m], t)
            if bad.size:
                at = int(bad[0])
                a, b = (x.reshape(LANES, -1)[at].tobytes()[::-1].hex() for x in (left[m], right[m]))
                said.append(f"{f.name}({', '.join(f.args)}): {bad.size} lanes, first {at}: {a} {b}")
    return said


def run(side: Side, names: Sequence[str], sizes: Sequence[int], seed: int) -> dict[str, np.ndarray]:
    memory = {name: values(name, size, seed).copy() for name, size in zip(names, sizes, strict=True)}
    buffers = [ptx.Buffer(memory[name], name) for name in names]
    result = ptx.launch(ptx.load(side.ptx), side.entry, LANES // 128, 128, buffers)
    assert not result.violations, result.violations[0]
    return memory


def unequal(left: np.ndarray, right: np.ndarray, t: str) -> np.ndarray:
    """Lanes that differ; NaN of one side equals NaN of the other."""
    width = BYTES[t]
    floats = {"float": ("f4", 1), "double": ("f8", 1), "__half": ("f2", 1), "__half2": ("f2", 2), "float2": ("f4", 2)}
    a, b = left.reshape(LANES, width), right.reshape(LANES, width)
    differ = (a != b).any(axis=1)
    if t in floats:
        kind, _ = floats[t]
        x, y = (v.view(kind) for v in (a, b))
        differ = ((v := x.view(f"u{kind[1]}") != y.view(f"u{kind[1]}")) & ~(np.isnan(x) & np.isnan(y))).any(axis=1)
        assert v.shape[0] == LANES
    elif t in ("__nv_bfloat16", "__nv_bfloat162"):
        x, y = ((v.view(np.uint16).astype(np.uint32) << 16).view(np.float32) for v in (a, b))
        differ = ((x.view(np.uint32) != y.view(np.uint32)) & ~(np.isnan(x) & np.isnan(y))).any(axis=1)
    return np.flatnonzero(differ)
