"""Long sums, nested operators and long chains: time linear in their length, and text that Python can nest.

constructs/deep.cu says that the values are the original's.
"""

from __future__ import annotations

import ast
import time

import pytest

from porter.config import PortConfig
from porter.pipeline.inputs import choose_instances, parse
from porter.pipeline.stages import Run, translate
from porter.syntax import module_tree

HEAD = """__global__ void k(float* out, const float* x, const int* m, int n) {
  int i = blockIdx.x * 128 + threadIdx.x;
  float v = x[i];
"""
# CuTeDSL goes through the tree by recursion, and Python nests 200 parentheses.
TREE = 120


def kernel(body: str, before: str = "") -> str:
    return f"{before}{HEAD}{body}}}\n"


def joined(form: str, count: int, between: str = " ") -> str:
    return between.join(form.format(j=j) for j in range(count))


FORMS = {
    "sum": lambda n: kernel(f"  out[i] = {joined('x[(i + {j}) % n]', n, ' + ')};\n"),
    "unsigned": lambda n: kernel(f"  out[i] = 1u{joined(' + unsigned(m[i]) * {j}u', n)};\n"),
    "horner": lambda n: kernel(f"  out[i] = {'(' * n}1.5f{joined(' * v + {j}.25f)', n)};\n"),
    "right": lambda n: kernel(f"  out[i] = {joined('x[i + {j}] - (', n)}v{')' * n};\n"),
    "select": lambda n: kernel(f"  out[i] = {joined('m[i] == {j} ? v * {j}.0f :', n)} v;\n"),
    "logical": lambda n: kernel(f"  out[i] = (m[0]{joined(' && m[i + {j}] != {j}', n)}) ? 1.0f : 2.0f;\n"),
    "unary": lambda n: kernel(f"  out[i] = {'- ' * n}v;\n"),
    "not": lambda n: kernel(f"  out[i] = {'! ' * n}(v > 0.0f);\n"),
    "casts": lambda n: kernel(f"  out[i] = {'(float)(int)' * (n // 2)}v;\n"),
    "compares": lambda n: kernel(f"  out[i] = {'(' * n}v{joined(' < {j}.0f)', n)};\n"),
    "parentheses": lambda n: kernel(f"  out[i] = {'(' * n}v{')' * n};\n"),
    "maximum": lambda n: kernel(f"  out[i] = {'fmaxf(' * n}v{joined(', {j}.5f)', n, '')};\n"),
    "calls": lambda n: kernel(
        f"  out[i] = {'f(' * n}v{')' * n};\n", "__device__ float f(float a) { return a * 0.5f + 1.0f; }\n"
    ),
    "inlined": lambda n: kernel(
        f"  out[i] = {'f(' * n}v{')' * n};\n", "__device__ float f(const float& a) { return a * a + 1.0f; }\n"
    ),
    "indices": lambda n: kernel(f"  out[i] = {'m[' * n}i{']' * n};\n"),
    "pointer": lambda n: kernel(f"  out[i] = *(x{joined(' + m[{j}]', n)});\n"),
    "atomics": lambda n: kernel(f"  out[i] = v{joined(' + atomicAdd(out + n, {j}.0f)', n)};\n"),
    "assignments": lambda n: kernel(
        f"  float {joined('a{j}', n, ', ')};\n  {joined('a{j}', n, ' = ')} = v;\n  out[i] = a0;\n"
    ),
    "else_ifs": lambda n: kernel(f"  {joined('if (m[i] == {j}) out[i] = {j}.5f;', n, ' else ')} else out[i] = v;\n"),
    "switch": lambda n: kernel(
        f"  float r = v;\n  switch (m[i]) {{ {joined('case {j}: r += {j}.5f; break;', n)} }}\n  out[i] = r;\n"
    ),
    "statements": lambda n: kernel(f"  {joined('v = v * 0.5f + x[i + {j}];', n)}\n  out[i] = v;\n"),
}
# Clang nests 256 brackets; what needs none goes further.
LENGTHS = {"sum": 2000, "unary": 2000, "else_ifs": 500}


def translated(path, text: str):
    """(port, CPU seconds)."""
    path.write_text(text)
    config = PortConfig(verify=False)
    start = time.process_time()
    unit = parse(path, config)
    (info,) = unit.kernels
    instances = choose_instances(unit, info, None, config)
    module = translate(unit, info, None, config, Run(info.name), instances).module
    return module, time.process_time() - start


def tree_depth(text: str) -> int:
    deepest, waiting = 0, [(module_tree(text), 1)]
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level)
        waiting += [(child, level + 1) for child in ast.iter_child_nodes(node)]
    return deepest


@pytest.mark.parametrize("form", FORMS)
def test_depth_costs_no_more_than_length(form, tmp_path):
    count = LENGTHS.get(form, 200)
    module, seconds = translated(tmp_path / "k.cu", FORMS[form](count))
    assert not module.holes, module.holes[:2]
    assert seconds < 1.0 + 0.01 * count  # at 2^n twenty terms took minutes
    assert tree_depth(module.text) < TREE
    compile(module.text, "port.py", "exec")


def test_a_hole_in_a_long_sum_is_counted_once(tmp_path):
    text = kernel(f"  out[i] = unknown(v){joined(' + x[i + {j}]', 100)};\n", "__device__ float unknown(float);\n")
    module, _ = translated(tmp_path / "k.cu", text)
    assert len(module.holes) == 1 and module.text.count("runtime.hole(") == 1


def test_time_is_linear_in_the_kernels_of_a_file(tmp_path):
    def a_kernel(count: int) -> float:
        path = tmp_path / f"k{count}.cu"
        texts = (kernel(f"  out[i] = v * {j}.5f;\n").replace("void k(", f"void k{j}(") for j in range(count))
        path.write_text("".join(texts))
        config = PortConfig(verify=False)
        start = time.process_time()
        unit = parse(path, config)
        chosen = [unit.kernels[0], unit.kernels[count // 2], unit.kernels[-1]]
        after_parse = time.process_time()
        for info in chosen:
            instances = choose_instances(unit, info, None, config)
            translate(unit, info, None, config, Run(info.name), instances)
        return (after_parse - start) / count + (time.process_time() - after_parse) / len(chosen)

    assert a_kernel(400) < 2 * a_kernel(10) + 0.02
