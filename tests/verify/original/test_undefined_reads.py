"""Reads of the original that C++ gives no value: found where they certainly happen, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.config import PortConfig
from porter.model import Instance
from porter.pipeline.inputs import parse
from porter.pipeline.stages import lower, show_stage
from porter.verify.original.undefined_reads import undefined_reads


def found(folder: Path, text: str, *args: str) -> list[str]:
    source = folder / "k.cu"
    source.write_text(text)
    unit = parse(source, PortConfig(arch=("sm_90a",)))
    (kernel,) = lower(unit, unit.kernels[0], (Instance(args),))
    return [r.what for r in undefined_reads(kernel)]


HEAD = "__global__ void k(float* out, const float* in, int n) { int i = threadIdx.x; "
PAIR = """template <typename T> __global__ void k(float* out, const float2* in) {
  float2 pair = in[threadIdx.x];
  const T* x = reinterpret_cast<const T*>(&pair);
  float sum = 0.0f;
  for (int i = 0; i < 4; i++) sum += (float)x[i];
  out[threadIdx.x] = sum;
}"""
MODE = """template <int MODE> __global__ void k(float* out, const float* in) {
  float scale;
  if (MODE == 0) scale = in[0]; else if (MODE == 1) scale = in[threadIdx.x];
  out[threadIdx.x] *= scale;
}"""


@pytest.mark.parametrize(
    "text, args, reads",
    [
        (PAIR, ("float",), ["reads bytes 12 to 15 of `pair`, which has 8"]),
        (PAIR, ("__half",), []),
        (PAIR, ("__nv_bfloat16",), []),
        (MODE, ("0",), []),
        (MODE, ("1",), []),
        (MODE, ("2",), ["reads `scale`, which nothing sets"]),
        (HEAD + "float a[4] = {1, 2, 3, 4}; out[i] = a[4]; }", (), ["reads bytes 16 to 19 of `a`, which has 16"]),
        (HEAD + "float4 v = make_float4(1, 2, 3, 4); out[i] = (&v.y)[2] + (&v.y)[-1]; }", (), []),
        (
            HEAD + "float4 v = make_float4(1, 2, 3, 4); float* p = &v.y; out[i] = p[3]; }",
            (),
            ["reads bytes 16 to 19 of `v`, which has 16"],
        ),
        (
            "__device__ float last(int n) { float x[2] = {1, 2}; return x[2]; }" + HEAD + "out[i] = last(n); }",
            (),
            ["reads bytes 8 to 11 of `x`, which has 8"],
        ),
    ],
)
def test_what_is_found(tmp_path, text, args, reads):
    assert found(tmp_path, text, *args) == reads


@pytest.mark.parametrize(
    "body",
    [
        "float x; if (n > 3) x = in[i]; if (n > 3) out[i] = x;",  # set on the way that reads it
        "float x; float* p = &x; *p = in[i]; out[i] = x;",
        "float x, y; sincosf(in[i], &x, &y); out[i] = x + y;",
        'float x; asm("mov.f32 %0, 0f00000000;" : "=f"(x)); out[i] = x;',
        "float x; auto set = [&] { x = in[i]; }; set(); out[i] = x;",
        "float x; float& r = x; r = in[i]; out[i] = x;",
        "float a[4] = {1, 2, 3, 4}; for (int j = 0; j < 8; j++) if (j < 4) out[i] += a[j];",
        "float a[4] = {1, 2, 3, 4}; for (int j = 0; j < 8; j++) { if (j == n) break; out[i] += a[j]; }",
        "float a[4] = {1, 2, 3, 4}; for (int j = 0; j < 8; j++) { if (j > 3) continue; out[i] += a[j]; }",
        "float a[4] = {1, 2, 3, 4}; for (int j = 0; j < 8; j++) { out[i] += a[j]; if (j == n) return; }",
        "float a[4] = {1, 2, 3, 4}; for (int j = 0; j < 8; j++) out[i] += j < 4 ? a[j] : 0.0f;",
        "float a[4] = {1, 2, 3, 4}; float* p = a; p += 2; out[i] = p[-2] + a[n];",
        "float x; float y = x; y = in[i]; out[i] = y;",  # copied, and not used
    ],
)
def test_what_may_be_well_is_not_told(tmp_path, body):
    assert found(tmp_path, HEAD + body + " }") == []


def test_the_port_is_made_and_a_warning_says_where(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text(PAIR)
    config = PortConfig(instantiate=("k<float>", "k<__half>"), arch=("sm_90a",))
    text, messages, code = show_stage(source, config, "py")
    (message,) = [m for m in messages if m.code == "PRT852"]
    assert code == 0 and "def k(" in text and message.span.line == 5
    assert message.message == "k<float> reads bytes 12 to 15 of `pair`, which has 8"
