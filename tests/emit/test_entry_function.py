"""What the torch-facing function of a port takes from operands, and what it asks its caller for."""

from __future__ import annotations

import pytest

from porter.cli import main

HEADS = """
template <typename T, int HEAD, int VEC>
__global__ void scale_heads(T* out, const T* x, int heads) {
  const int row = blockIdx.x;
  for (int i = threadIdx.x; i < heads * HEAD; i += blockDim.x)
    out[row * heads * HEAD + i] = x[row * heads * HEAD + i] * T(VEC);
}
"""
HEADS_CASE = """schema = 1
kernel = "scale_heads"
source = "k.cu"
[[instances]]
args = ["float", 64, 2]
[[instances]]
args = ["float", 128, 4]
[sizes]
tokens = [1, 3]
heads = [2]
[[buffers]]
name = "out"
dtype = "T"
shape = ["tokens", "heads", "HEAD"]
role = "out"
[[buffers]]
name = "x"
dtype = "T"
shape = ["tokens", "heads", "HEAD"]
role = "in"
[scalars]
heads = "heads"
[launch]
grid = ["tokens", 1, 1]
block = [32, 1, 1]
"""
ORDER = """
template <int ORDER>
__global__ void half_of(unsigned char* out, const unsigned char* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < (n + 1) / 2) out[i] = ORDER ? x[2 * i] : (2 * i + 1 < n ? x[2 * i + 1] : 0);
}
"""
ORDER_CASE = """schema = 1
kernel = "half_of"
source = "k.cu"
[[instances]]
args = [0]
[[instances]]
args = [1]
[sizes]
n = [1, 64, 100]
[[buffers]]
name = "out"
dtype = "u8"
shape = ["ceil_div(n, 2)"]
role = "out"
[[buffers]]
name = "x"
dtype = "u8"
shape = ["n"]
role = "in"
[scalars]
n = "n"
[launch]
grid = ["ceil_div(ceil_div(n, 2), 64)", 1, 1]
block = [64, 1, 1]
"""
NAMED = """
__global__ void pick(float* out, const float* table, const int* rows, int width) {
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    out[blockIdx.x * width + i] = table[rows[blockIdx.x] * width + i];
}
"""
NAMED_CASE = """schema = 1
kernel = "pick"
source = "k.cu"
[[instances]]
args = []
[sizes]
tokens = [1, 3]
width = [8, 40]
rows = 16
[[buffers]]
name = "out"
dtype = "f32"
shape = ["tokens", "width"]
role = "out"
[[buffers]]
name = "table"
dtype = "f32"
shape = ["rows", "width"]
role = "in"
[[buffers]]
name = "rows"
dtype = "i32"
shape = ["tokens"]
role = "in"
dist = "positions"
high = "rows"
[scalars]
width = "width"
[launch]
grid = ["tokens", 1, 1]
block = [32, 1, 1]
"""
CONST = """
template <typename T>
__global__ void add(T* out, const T* x, const T amount) { out[threadIdx.x] = x[threadIdx.x] + amount; }
"""
CONST_CASE = """schema = 1
kernel = "add"
source = "k.cu"
[[instances]]
args = ["float"]
[sizes]
n = [32]
[[buffers]]
name = "out"
dtype = "T"
shape = ["n"]
role = "out"
[[buffers]]
name = "x"
dtype = "T"
shape = ["n"]
role = "in"
[scalars]
amount = 1e-5
[launch]
grid = [1, 1, 1]
block = ["n", 1, 1]
"""


@pytest.mark.parametrize(
    ("kernel", "case", "said"),
    [
        # a template number that is a dimension of an operand
        (HEADS, HEADS_CASE, ["HEAD = out.shape[2]", 'if T == "f32" and HEAD == 64:']),
        # one that nothing shows; one element fewer may be a launch of its own
        (ORDER, ORDER_CASE, ["*, ORDER=None", "if ORDER in (None, 0):", "elif ORDER in (None, 1):"]),
        # a size and an operand of one name
        (NAMED, NAMED_CASE, ["rows_size = table.shape[0]", 'runtime.check("table", table, "f32", (rows_size, width)']),
        # a parameter of a template's type that is const
        (CONST, CONST_CASE, ["def run_add(out, x, amount):"]),
    ],
    ids=["dimension", "asked", "named-alike", "const"],
)
def test_the_function_launches_what_is_verified(tmp_path, monkeypatch, capsys, kernel, case, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.cu").write_text(kernel)
    name = case.split('kernel = "')[1].split('"')[0]
    (tmp_path / f"{name}.case.toml").write_text(case)
    code = main(["port", "k.cu", "--case", f"{name}.case.toml", "-o", "ported", "--arch", "sm_90a"])
    told = capsys.readouterr()
    assert code == 0, told.out + told.err
    (port,) = (tmp_path / "ported").glob("*.py")
    text = port.read_text()
    for part in said:
        assert part in text, text
