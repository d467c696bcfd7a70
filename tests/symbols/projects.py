"""Kernels that reach variables at namespace scope, with their cases: one of each way to declare and reach them."""

from __future__ import annotations

from pathlib import Path

from porter.config import PortConfig
from porter.model import Status, Verdict
from porter.pipeline.inputs import find_case, parse
from porter.pipeline.stages import JudgeOptions, Run, run_checks, translate

HEAD = """
schema = 1
kernel = "k"
source = "k.cu"
[sizes]
n = [5, 33, 300]
[[buffers]]
name = "x"
dtype = "f32"
shape = ["n"]
[[buffers]]
name = "y"
dtype = "f32"
shape = ["n"]
role = "out"
[scalars]
n = "n"
[launch]
grid = ["ceil_div(n, 128)"]
block = [128]
"""

INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"

ARRAY = (
    "__constant__ float weights[5];\n"
    f"__global__ void k(const float* x, float* y, int n) {{ {INDEX} if (i < n) y[i] = weights[i % 5] * x[i]; }}",
    '[[symbols]]\nname = "weights"\ndist = "normal"\n',
)
STRUCT = (
    "struct Curve { float gain; int order; short knots[3]; };\n__constant__ Curve curve;\n"
    "__device__ float bent(const Curve& c, float v) { return c.gain * v + c.order * c.knots[2]; }\n"
    f"__global__ void k(const float* x, float* y, int n) {{ {INDEX} if (i < n) y[i] = bent(curve, x[i]); }}",
    '[[symbols]]\nname = "curve"\nmembers = { gain = 0.75, order = "n + 1", knots = [-7, 2, 11] }\n',
)
SCALAR = (
    "__device__ float bias;\n"
    f"__global__ void k(const float* x, float* y, int n) {{ {INDEX} if (i < n) y[i] = x[i] + bias; }}",
    '[[symbols]]\nname = "bias"\nvalues = 2.5\n',
)
COUNTER = (
    "__device__ unsigned int passed = 40;\n"
    f"__global__ void k(const float* x, float* y, int n) {{ {INDEX}\n"
    "  if (i < n && x[i] > 0) atomicAdd(&passed, 1u);\n  if (i < n) y[i] = x[i]; }",
    '[[symbols]]\nname = "passed"\nrole = "inout"\ninitial = "declared"\n',
)
NAMESPACE = (
    "namespace bands { namespace { __constant__ float level[2][3]; } }\n"
    "namespace other { __constant__ float level[2]; }\n"
    "__device__ float level_of(int r, int c) { return bands::level[r][c]; }\n"
    f"__global__ void k(const float* x, float* y, int n) {{ {INDEX}\n"
    "  if (i < n) y[i] = level_of(i & 1, i % 3) * x[i] + other::level[i & 1]; }",
    '[[symbols]]\nname = "bands::level"\nvalues = [[1, 2, 3], [4, 5, "1 / n"]]\n'
    '[[symbols]]\nname = "other::level"\ndist = "normal"\n',
)
HALF2 = (
    "#include <cuda_fp16.h>\n__constant__ half2 pairs[4];\n"
    f"__global__ void k(const float* x, float* y, int n) {{ {INDEX}\n"
    "  if (i < n) y[i] = __half2float(pairs[i & 3].x) * x[i] + __high2float(pairs[i & 3]); }",
    '[[symbols]]\nname = "pairs"\ndist = "normal"\n',
)
STATIC_LOCAL = (
    f"__global__ void k(const float* x, float* y, int n) {{ static __device__ int launches; {INDEX}\n"
    "  if (i < n) y[i] = x[i]; if (i == 0) launches += n; }",
    '[[symbols]]\nname = "k::launches"\nrole = "inout"\ndist = "randint"\nlow = 1\nhigh = 9\n',
)
EXTERN = (
    "extern __constant__ float4 edges[2];\n"
    f"__global__ void k(const float* x, float* y, int n) {{ {INDEX} const float4* e = edges + (i & 1);\n"
    "  if (i < n) y[i] = x[i] * e->y - edges[0].w; }",
    '[[symbols]]\nname = "edges"\ndist = "normal"\n',
)
TEMPLATE = (
    "template <class T> __constant__ T table[4];\ntemplate <class T> __device__ T step;\n"
    f"template <class T> __global__ void k(const float* x, float* y, int n) {{ {INDEX}\n"
    "  if (i < n) y[i] = x[i] * float(table<T>[i & 3]) + float(step<T>); }\n"
    "template __global__ void k<float>(const float*, float*, int);\n"
    "template __global__ void k<int>(const float*, float*, int);",
    '[[instances]]\nargs = ["float"]\n[[instances]]\nargs = ["int"]\n'
    '[[symbols]]\nname = "table"\ndist = "randint"\nlow = 1\nhigh = 9\n[[symbols]]\nname = "step"\nvalues = 3\n',
)
ALL = {
    "array": ARRAY, "struct": STRUCT, "scalar": SCALAR, "counter": COUNTER, "namespace": NAMESPACE, "half2": HALF2,
    "static_local": STATIC_LOCAL, "extern": EXTERN, "template": TEMPLATE,
}  # fmt: skip


def project(folder: Path, cuda: str, symbols: str) -> Path:
    """The source of a project whose case gives these symbols."""
    (folder / "k.cu").write_text(cuda)
    (folder / "k.case.toml").write_text(HEAD + symbols)
    return folder / "k.cu"


def verified(source: Path, change=None, instantiate: tuple[str, ...] = ()) -> tuple[str, dict[str, Verdict]]:
    """The port of the kernel and what the verifier says of it, after `change` of its text."""
    config = PortConfig(arch=("sm_90a",), seed=5, instantiate=instantiate)
    unit = parse(source, config)
    info = unit.kernels[0]
    case = find_case(unit, info, config)
    made = translate(unit, info, case, config, Run("k"))
    assert not made.module.holes, made.module.holes
    text = made.module.text if change is None else change(made.module.text)
    port = source.with_name("port.py")
    port.write_text(text)
    found = run_checks(port, unit, info, case, config, Run("k"), JudgeOptions(launches=8))
    return text, {v.check: v for v in found}


def passed(verdicts: dict[str, Verdict]) -> bool:
    return all(v.status in (Status.PASS, Status.SKIP) for v in verdicts.values())
