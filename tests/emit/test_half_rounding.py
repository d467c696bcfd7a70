"""Half arithmetic is rounded where the original rounds: a port offers ptxas to fuse what the original offers, no more.

Original by NVRTC and port by CuTeDSL are executed as they are and as ptxas may fuse them, on the same bytes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from porter.case.instances import instance_values
from porter.config import PortConfig
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.model import Instance, PorterError
from porter.pipeline.stages import Run, translate
from porter.source import Source
from porter.verify import emulator as ptx
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.emulator.decode import contraction
from porter.verify.original.build import build_original
from porter.verify.original.nvrtc import require_nvrtc

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

COMMON = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <c10/util/Half.h>
#include <c10/util/BFloat16.h>
struct Wide { __half v; };
__device__ __forceinline__ Wide operator*(Wide a, Wide b) {
  return {__float2half_rn(__half2float(a.v) * __half2float(b.v))};
}
__device__ __forceinline__ Wide operator-(Wide a, Wide b) {
  return {__float2half_rn(__half2float(a.v) - __half2float(b.v))};
}
struct Brain { __nv_bfloat16 v; };
__device__ __forceinline__ Brain operator*(Brain a, Brain b) {
  return {__float2bfloat16(__bfloat162float(a.v) * __bfloat162float(b.v))};
}
__device__ __forceinline__ Brain operator+(Brain a, Brain b) {
  return {__float2bfloat16(__bfloat162float(a.v) + __bfloat162float(b.v))};
}
__device__ float product(__half a, __half b) { return __half2float(a) * __half2float(b); }
__device__ __half sum(__half a, float b) { return __float2half(__half2float(a) + b); }
"""
# Kernels of (type* o, const type* x): o[64 * k + t] is result k, x[64 * k + t] operand k.
BODIES = {
    # ---- everything is rounded through float: nothing to fuse in the original
    "classes": ("Wide", "o[t] = x[t] * x[t + 64] - x[t + 128] * x[t + 192];"),
    "bfloat_classes": ("Brain", "o[t] = x[t] * x[t + 64] + x[t + 128];"),
    "torch_half": (
        "c10::Half",
        "o[t] = x[t] * x[t + 64] - x[t + 128]; x0 *= x[t + 64]; x0 += x[t + 128]; o[t + 64] = x0;",
    ),
    "torch_bfloat": ("c10::BFloat16", "o[t] = x[t + 128] - x[t] * x[t + 64];"),
    "variables_functions_arrays": (
        "__half",
        """float p = __half2float(x[t]) * __half2float(x[t + 64]);
  const float c = __half2float(x[t + 128]);
  o[t] = __float2half(__half2float(__float2half(p)) - c);
  __half q = __float2half(product(x[t], x[t + 64]));
  o[t + 64] = sum(q, c);
  float parts[2];
  for (int i = 0; i < 2; i++) parts[i] = __half2float(x[t + 64 * i]) * __half2float(x[t + 64]);
  __half kept[2];
  for (int i = 0; i < 2; i++) kept[i] = __float2half_rn(-parts[i]);
  o[t + 128] = __float2half(__half2float(kept[0]) + __half2float(kept[1]));
  o[t + 192] = __float2half(__half2float(__float2half(__half2float(x[t]) * 3.0f)) + 1.0f);""",
    ),
    "pairs": (
        "__half2",
        """const float2 a = __half22float2(x[t]), b = __half22float2(x[t + 64]), c = __half22float2(x[t + 128]);
  const float2 p = __half22float2(__floats2half2_rn(a.x * b.x, a.y * b.y));
  o[t] = __floats2half2_rn(p.x + c.x, p.y - c.y);""",
    ),
    # ---- one of both is rounded, the other left to ptxas, which then has nothing to fuse it with
    "rounded_product": ("__half", "o[t] = __hadd(__float2half(product(x[t], x[t + 64])), x[t + 128]);"),
    "rounded_sum": ("__half", "o[t] = sum(__hmul(x[t], x[t + 64]), __half2float(x[t + 128]));"),
    "named_rn": ("__half", "o[t] = __hsub_rn(__hmul_rn(x[t], x[t + 64]), x[t + 128]);"),
    "named_rn_pairs": ("__nv_bfloat162", "o[t] = __hadd2(__hmul2_rn(x[t], x[t + 64]), x[t + 128]);"),
    # ---- plain in the original: the port leaves ptxas the same choice
    "operators": ("__half", "o[t] = x[t] * x[t + 64] - x[t + 128];"),
    "functions": ("__nv_bfloat16", "o[t] = __hadd(__hmul(x[t], x[t + 64]), x[t + 128]);"),
    "pair_operators": ("__half2", "o[t] = x[t] * x[t + 64] + x[t + 128];"),
}  # fmt: skip
PLAIN = ("operators", "functions", "pair_operators")


def source() -> Source:
    kernels = [
        f"__global__ void {name}({t}* o, const {t}* x) {{\n  const int t = threadIdx.x;\n"
        f"{'  c10::Half x0 = x[t];' if name == 'torch_half' else ''}\n  {body}\n}}\n"
        for name, (t, body) in BODIES.items()
    ]
    return Source(Path("halves.cu"), COMMON + "".join(kernels))


@pytest.fixture(scope="module")
def ported(tmp_path_factory):
    """The parsed source, and {kernel: port's path}."""
    folder = tmp_path_factory.mktemp("halves")
    unit = parse_source(source(), ParseOptions())
    return unit, {k.name: port(folder, unit, k, (Instance(),)) for k in unit.kernels}


def port(folder, unit, info, instances):
    module = translate(unit, info, None, PortConfig(), Run(info.name), instances).module
    assert not module.holes, module.holes
    path = folder / f"{info.name}.py"
    path.write_text(module.text)
    return path


def results(text: str, entry: str) -> tuple[Counter[str], list[np.ndarray]]:
    """What ptxas may fuse, and what a launch gives as it is and in each way of fusing."""
    module = ptx.load(text)
    made = [module, *(contraction.contracted(module, entry, way) for way in contraction.WAYS)]
    rng = np.random.default_rng(13)
    # halves and bfloat16s of moderate size alike, with few bits, so that products are often near a tie
    words = rng.integers(0x3C00, 0x4200, 1024).astype(np.uint16) | (rng.integers(0, 2, 1024) << 15).astype(np.uint16)
    found = []
    for one in made:
        out, given = np.zeros(1024, np.uint16), words.copy()
        buffers = [ptx.Buffer(a.view(np.uint8), n) for a, n in ((out, "o"), (given, "x"))]
        result = ptx.launch(one, entry, 1, 64, buffers)
        assert not result.violations
        found.append(out)
    return contraction.fusible(module, entry), found


@pytest.mark.parametrize("name", BODIES)
def test_a_port_gives_ptxas_the_choices_that_its_original_gives(ported, name):
    unit, paths = ported
    original = build_original(unit.source, unit.options, name, unit=unit)[0]
    made = compile_port(paths[name], [CompileRequest({}, "sm_90a")])[0]
    assert made.ok, made.error
    theirs, want = results(original.ptx, original.entry)
    mine, got = results(made.ptx, made.entry)
    assert bool(theirs) == bool(mine) == (name in PLAIN), (theirs, mine)
    for a, b in zip(want, got, strict=True):
        assert np.array_equal(a, b)
    if name in PLAIN:  # or these inputs could not show it
        assert not np.array_equal(want[0], want[1])


TEMPLATE = """
template <typename T> __global__ void turn(T* o, const T* x) {
  const int t = threadIdx.x;
  o[t] = x[t] * x[t + 64] - x[t + 128];
}
"""


def test_instances_keep_what_each_has(tmp_path):
    """A float instance leaves its sum to ptxas, instances of PyTorch's halves do not."""
    text = Source(Path("turn.cu"), COMMON + TEMPLATE)
    unit = parse_source(text, ParseOptions())
    info = unit.kernels[0]
    instances = tuple(Instance((t,)) for t in ("float", "c10::Half", "c10::BFloat16"))
    path = port(tmp_path, unit, info, instances)
    assert path.read_text().count("lib.rounded") == 1
    values = [dict(instance_values(info, i)) for i in instances]
    made = compile_port(path, [CompileRequest(v, "sm_90a") for v in values])
    originals = build_original(text, unit.options, info.qualified_name, instances, unit=unit)
    for n, (build, one) in enumerate(zip(originals, made, strict=True)):
        assert one.ok, one.error
        mine = contraction.fusible(ptx.load(one.ptx), one.entry)
        theirs = contraction.fusible(ptx.load(build.ptx), build.entry)
        assert mine == theirs == Counter({} if n else {"sub.f32": 1})
