"""Kernels whose names mean something in Python, in a port or in PTX: every port passes its own checks."""

from __future__ import annotations

import ast
import builtins
import keyword
from itertools import cycle, islice
from pathlib import Path

import pytest

from porter.case.instances import instance_values
from porter.config import PortConfig
from porter.emit import spelling
from porter.model import PorterError, Status
from porter.pipeline.inputs import choose_kernels, find_case, parse
from porter.pipeline.outputs import port_paths
from porter.pipeline.stages import Run, translate
from porter.verify.checks.honesty import check_honesty
from porter.verify.original.nvrtc import require_nvrtc
from porter.verify.run import VerifyRequest, verify_port

CPP = {  # and names of functions that every source has
    "alignas", "alignof", "and", "asm", "assert", "auto", "bool", "break", "case", "catch", "char", "class",
    "compl", "const", "constexpr", "continue", "default", "delete", "do", "double", "else", "enum", "explicit",
    "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable",
    "namespace", "new", "not", "operator", "or", "private", "protected", "public", "register", "return", "short",
    "signed", "sizeof", "static", "struct", "switch", "template", "this", "throw", "true", "try", "typedef",
    "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "while", "xor", "min", "max", "abs",
}  # fmt: skip
OWN = sorted({*spelling.RESERVED, *spelling.OUTSIDE, "self", "name", "values", "again", "_", "__x", "x_"})
NAMES = [n for n in dict.fromkeys([*OWN, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)]) if n not in CPP]
ROLES = 7
KERNEL = """
__device__ float {f}(float a, float* p) {{ if (a > 1.f) return a * p[0]; return a - 1.f; }}
template <int {t}>
__global__ void {k}(float* {p}, int {n}) {{
  __shared__ float {s}[64];
  int {l} = threadIdx.x;
  {s}[{l} % 64] = {p}[{l}];
  __syncthreads();
  for (; {l} < {n}; {l} += blockDim.x) {p}[{l}] = {f}({s}[{l} % 64], {p}) * {t} + fminf({p}[{l}], 3.f);
}}
template __global__ void {k}<2>(float*, int);
template __global__ void {k}<4>(float*, int);
"""
UNICODE = ("größe", "ﬁeld", "x²y".replace("²", "2"), "дельта", "数", "Å", "L" * 300, "é" * 200)


def source(names: list[str], wanted: int) -> str:
    """`wanted` kernels; each name has every role in one of as many as there are names."""
    texts = []
    for i in range(wanted):
        role = list(islice(cycle(names), i * ROLES % len(names), i * ROLES % len(names) + 6))
        texts.append(KERNEL.format(**dict(zip("ftpnsl", role, strict=True)), k=f"{names[i]}"))
    return "\n".join(f"namespace n{i} {{ {t} }}" for i, t in enumerate(texts))


def objections(folder: Path, text: str) -> dict[str, list[str]]:
    """What is wrong with the ports of a source, by kernel."""
    path = folder / "k.cu"
    path.write_text(text, encoding="utf-8")
    config = PortConfig(verify=False)
    unit = parse(path, config)
    found = {}
    for info in choose_kernels(unit, config):
        made = translate(unit, info, None, config, Run(info.name))
        values = [instance_values(info, i) for i in made.instances]
        wrong = [d.message for d in check_honesty(made.module.text, path.with_suffix(".py"), values)]
        found[info.name] = wrong + [h.reason for h in made.module.holes]
    return found


@pytest.mark.parametrize("name", [*NAMES, *UNICODE])
def test_a_name_is_pythons_and_nobody_elses(name: str) -> None:
    used = {*spelling.RESERVED}
    for made in (spelling.identifier(name), spelling.parameter(name), spelling.function(name)):
        ast.parse(f"{made} = 1")
        assert made not in used and made.isidentifier()
    assert spelling.parameter(name) not in spelling.OUTSIDE
    function = spelling.function(name)
    assert function not in dir(builtins) and function.isascii() and len(function) <= spelling.LONGEST + 1
    assert not keyword.iskeyword(spelling.module(name)) and len(spelling.module(name).encode()) < 250


def test_ports_of_kernels_with_such_names_pass_honesty(tmp_path: Path) -> None:
    found = objections(tmp_path, source(NAMES, 30))
    assert len(found) == 30 and not any(found.values()), {k: v for k, v in found.items() if v}


@pytest.mark.slow
def test_every_name_in_every_role(tmp_path: Path) -> None:
    for turn in range(ROLES):
        names = NAMES[turn:] + NAMES[:turn]
        found = objections(tmp_path, source(names, len(names)))
        assert not any(found.values()), {k: v for k, v in found.items() if v}


CASE = """
schema = 1
kernel = "{k}"
[sizes]
{n} = [1, 100]
[[buffers]]
name = "{p}"
dtype = "f32"
shape = ["{n}"]
role = "inout"
[scalars]
"{l}" = "{n}"
[launch]
grid = ["ceil_div({n}, 64)", 1, 1]
block = [64, 1, 1]
[[instances]]
args = ["2"]
[[instances]]
args = ["4"]
"""
SIMPLE = """
__device__ float {f}(float a) {{ return a > 1.f ? a * 2.f : a - 1.f; }}
template <int {t}>
__global__ void {k}(float* {p}, int {l}) {{
  const int {s} = blockIdx.x * blockDim.x + threadIdx.x;
  if ({s} < {l}) {p}[{s}] = {f}({p}[{s}]) * {t};
}}
"""
WHOLE = [  # kernel, function, template, pointer, number, local, size
    ("lambda", "None", "grid_x", "stream", "block", "cute", "tokens"),
    ("type", "hash", "yield", "grid_x", "constexprs", "lib", "rows"),
    ("runtime", "input", "in", "args", "smem_bytes", "torch", "lambda"),
    ("größe", "Å", "T" * 300, "дельта", "é", "数", "count"),
    ("k" * 300, "open", "cutlass", "p" * 300, "len", "tidx", "stream"),
]


def _some(kernels: list[str]) -> list[object]:
    return [pytest.param(n, id=n[0][:7], marks=() if n[0] in kernels else pytest.mark.slow) for n in WHOLE]


@pytest.mark.parametrize("names", _some(["lambda", "runtime"]))
def test_such_ports_are_verified(names: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("cutlass")
    try:
        require_nvrtc()
    except PorterError as error:
        pytest.skip(str(error))
    given = dict(zip("kftplsn", names, strict=True))
    path = tmp_path / "k.cu"
    path.write_text(SIMPLE.format(**given), encoding="utf-8")
    (tmp_path / "k.case.toml").write_text(CASE.format(**given), encoding="utf-8")
    config = PortConfig(verify=False)
    unit = parse(path, config)
    (info,) = choose_kernels(unit, config)
    case = find_case(unit, info, config)
    made = translate(unit, info, case, config, Run(info.name))
    assert not made.module.holes
    (port,) = port_paths(unit, [info], tmp_path, lambda ports, source: None).values()
    port.write_text(made.module.text, encoding="utf-8")
    request = VerifyRequest(port, unit.source, info, case, ("sm_90a",), unit.options, unit, seed=7, launches=4)
    found = verify_port(request)
    if not names[0].isascii():  # NVRTC takes no such letters: only what is said of the port can be judged
        found = [v for v in found if v.check in ("honesty", "names", "compile")]
        assert len(found) == 3
    wrong = [f"{v.check} {v.status.value}: {v.detail}" for v in found if v.status not in (Status.PASS, Status.SKIP)]
    assert not wrong, (wrong, made.module.text)


def test_files_of_kernels_with_such_names_can_be_imported_and_written(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    kernels = ["lambda", "None", "k" * 300, "é" * 200]
    path.write_text("\n".join(f"__global__ void {k}(float* x) {{ x[0] = 1.f; }}" for k in kernels), encoding="utf-8")
    unit = parse(path, PortConfig(verify=False))
    ports = list(port_paths(unit, unit.kernels, tmp_path, lambda ports, source: None).values())
    assert len({*ports}) == len(kernels)
    for port in ports:
        port.write_text("", encoding="utf-8")
        assert port.stem.isidentifier() and not keyword.iskeyword(port.stem)
