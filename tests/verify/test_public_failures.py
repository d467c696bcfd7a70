"""Failures of other verifiers that their users have reported, each as a test of this one, with its issue."""

from __future__ import annotations

import json
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from porter.case.reader import parse_case
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.model import PorterError, Status
from porter.provenance.json import verdict_data
from porter.source import Source
from porter.verify.checks.honesty import check_honesty
from porter.verify.launches.buffers import HostBuffer, allocate
from porter.verify.launches.trials import choose_trials
from porter.verify.numerics.comparison import Ledger, compare_output
from porter.verify.numerics.formats import encode
from porter.verify.numerics.tolerance import derive
from porter.verify.original.nvrtc import require_nvrtc
from porter.verify.run import VerifyRequest, verify_port
from tests.cli.conftest import porter as porter
from tests.verify.checks.cheats.subjects import sources, subject
from tests.verify.test_run import CASE, CUDA, PORT, REFERENCE

# ---------------------------------------------------------------- KernelBench#165: zeros pass an absolute tolerance

ROWS, COLUMNS = 4, 16384


def buffer(words: np.ndarray, dtype: str) -> HostBuffer:
    """An output buffer that holds these words."""
    sizes = f"rows = {words.shape[0]}\ncols = {words.shape[1]}"
    text = f"""kernel = "k"
[sizes]
{sizes}
[launch]
grid = 1
block = 32
[[buffers]]
name = "out"
dtype = "O"
shape = ["rows", "cols"]
role = "out"
"""
    case = parse_case(text, Path("k.case.toml"))
    (point,) = case.points(values={"O": dtype})
    made = allocate(case, point, {"O": dtype}, 0, frozenset())["out"]
    made.view()[...] = words
    return made


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


SMALL = {  # the four tasks, whose outputs are all below 1e-2
    "softmax": softmax,
    "l2 norm": lambda x: x / np.sqrt((x * x).sum(-1, keepdims=True)),
    "frobenius norm": lambda x: x / np.sqrt((x * x).sum()),
    "min-reduce": lambda x: np.repeat(np.abs(x).min(-1, keepdims=True), 8, -1),
}


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("name", SMALL)
def test_zeros_are_not_close_to_small_numbers(name, dtype):
    x = np.random.default_rng(165).standard_normal((ROWS, COLUMNS))
    truth = SMALL[name](x)
    assert np.abs(truth).max() < 1e-1
    original = buffer(encode(truth, dtype), dtype)
    zeros = buffer(np.zeros_like(encode(truth, dtype)), dtype)
    tolerance = derive(dtype, "close", COLUMNS)
    ledger = Ledger("out", dtype)
    ledger.add(compare_output(original, original, zeros, tolerance, truth), tolerance, "zeros")
    assert ledger.close() in ("different", "worse")
    same = Ledger("out", dtype)
    same.add(compare_output(original, original, original, tolerance, truth), tolerance, "the same")
    assert same.close() == "bit-equal"


# ---------------------------------------------------------------- KernelBench#146: out of memory while comparing; #40


def test_comparing_takes_a_bounded_multiple_of_the_buffer():
    words = encode(np.random.default_rng(146).standard_normal((1024, 4096)), "f32")
    other = words.copy()
    other[::7, ::5] ^= 1
    original, port = buffer(words, "f32"), buffer(other, "f32")
    tolerance = derive("f32", "close", 4096)
    tracemalloc.start()
    compare_output(original, original, port, tolerance, np.asarray(words.view(np.float32), np.float64))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 * words.nbytes, f"{peak / words.nbytes:.1f} times the buffer"


@pytest.mark.parametrize("path", sources(), ids=lambda p: p.stem)
def test_shapes_are_more_than_one_warp_of_one_block(path):
    """KernelBench#40: shapes so small that only the launch is seen. Some launch has many blocks or much of a row."""
    unit = parse_source(Source.read(path), ParseOptions())
    case = parse_case(path.with_suffix(".case.toml").read_text(), path.with_suffix(".case.toml"))
    info = next(k for k in unit.kernels if k.name == case.kernel.split("::")[-1])
    from porter.case.instances import instance_values

    for instance in case.instances:
        values = dict(instance_values(info, instance.instance))
        trials = choose_trials(case, instance, values, 40)
        shapes = [case.launch_at(t.point, values, 8) for t in trials]
        assert max(t.point.elements for t in trials) >= 512
        assert any(np.prod(s.grid) > 1 for s in shapes) or any(np.prod(s.block) >= 128 for s in shapes)


# ---------------------------------------------------------------- BackendBench#41, #104, #133: failures that look good


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    pytest.importorskip("cutlass")
    try:
        require_nvrtc()
    except PorterError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("scale")
    patch = pytest.MonkeyPatch()
    patch.setenv("PORTER_CACHE", str(tmp_path_factory.mktemp("cache")))
    (folder / "scale.cu").write_text(CUDA)
    (folder / "scale_reference.py").write_text(REFERENCE)
    unit = parse_source(Source.read(folder / "scale.cu"), ParseOptions())
    case = parse_case(CASE, folder / "scale.case.toml")
    yield VerifyRequest(folder / "port.py", unit.source, unit.kernels[0], case, unit=unit, seed=11)
    patch.undo()


def test_what_could_not_be_tested_has_no_speed_and_did_not_pass(base):
    """An operator that fails was reported as a speed-up of 1.0, one that cannot be tested as right."""
    base.port_path.write_text(PORT)
    broken = Source(base.source.path, CUDA.replace("float(inp[i])", "flaot(inp[i])"))
    wrong = PORT.replace("* factor", "* Float32(0.0)")
    for changes, text in (({"source": broken, "unit": None}, PORT), ({}, wrong), ({}, "import os\n" + PORT)):
        base.port_path.write_text(text)
        found = {v.check: v for v in verify_port(replace(base, **changes))}
        assert found["numerics"].status is not Status.PASS
        assert found["performance"].status is Status.SKIP and found["performance"].detail
        told = json.dumps([[v.detail, verdict_data(v)] for v in found.values()], default=str).lower()
        assert "speedup" not in told and "speed-up" not in told


def test_a_launch_that_writes_nothing_is_no_speed_up(base):
    """BackendBench#41: kernels that are fast because they do nothing."""
    base.port_path.write_text(PORT.replace("    if i < n:\n", "    if i < n - n:\n"))
    found = {v.check: v for v in verify_port(base)}
    assert found["numerics"].status is Status.FAIL
    assert any("PRT80" in d.code for d in found["numerics"].diagnostics)


# ---------------------------------------------------------------- KernelAgent#53: torch.matmul in the accepted solution


@pytest.mark.parametrize(
    "line",
    [
        "out = torch.matmul(inp, inp)", "out = inp @ inp", "out = inp.matmul(inp)", "torch.mm(inp, inp, out=out)",
        "out = torch.einsum('ij,jk->ik', inp, inp)", "torch.ops.aten.mm.out(inp, inp, out=out)",
        "out = torch.nn.functional.linear(inp, inp)", "out = torch.compile(scale)(inp)",
        "f = torch.matmul; out = f(inp, inp)", "from torch import matmul; out = matmul(inp, inp)",
        "out = getattr(torch, 'mat' + 'mul')(inp, inp)", "out = torch.Tensor.__matmul__(inp, inp)",
    ],
)  # fmt: skip
def test_torch_in_a_solution_is_found(line):
    body = "    grid, block, smem = launch_config(inp.numel())\n"
    text = PORT.replace(body, f"    {line}\n{body}").replace("import cutlass\n", "import torch\nimport cutlass\n", 1)
    found = check_honesty(text, Path("port.py"))
    number = text[: text.index(line)].count("\n") + 1
    assert any(d.span.line == number for d in found), found


# ---------------------------------------------------------------- Hyperloom#591, #324, AgentKernelArena#31: lost work

TEMPLATE = """template <typename T, int VEC>
__global__ void scale_kernel(T* __restrict__ out, const T* __restrict__ inp, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = T(float(inp[i]) * factor * float(VEC));
}
"""


def test_a_source_of_templates_alone_stops_at_once_and_says_what_is_missing(porter, tmp_path):
    """`functions: []` there: no harness could be made, and the whole budget went into trying."""
    (tmp_path / "scale.cu").write_text(TEMPLATE)
    start = time.monotonic()
    done = porter("port", "scale.cu", "-o", "out")
    assert done.returncode != 0 and time.monotonic() - start < 30
    said = done.stderr + done.stdout
    assert "PRT9" in said and "scale_kernel" in said and ("--instantiate" in said or "case" in said)
    assert "1 verified" not in said


def test_a_port_that_fails_is_kept_and_named_not_silently_reverted(porter, tmp_path):
    """A viable candidate was silently reverted; the best patch was not picked up."""
    pytest.importorskip("cutlass")
    plain = TEMPLATE.replace("template <typename T, int VEC>\n", "").replace("T*", "float*").replace("T(", "float(")
    (tmp_path / "scale.cu").write_text(plain.replace(" * float(VEC)", ""))
    case = 'kernel = "scale_kernel"\n' + CASE[CASE.index("[sizes]") : CASE.index("[reference]")]
    (tmp_path / "scale.case.toml").write_text(case.replace('dtype = "T"', 'dtype = "f32"'))
    assert porter("port", "scale.cu", "-o", "out", "--arch", "sm_90a").returncode == 0
    port = tmp_path / "out/scale.py"
    edited = port.read_text().replace("* factor", "* (factor + Float32(1.0))")
    assert edited != port.read_text()
    port.write_text(edited)
    done = porter("verify", "out/scale.py", "--arch", "sm_90a")
    assert done.returncode == 1 and "numerics" in done.stdout and port.read_text() == edited
    record = json.loads((tmp_path / "out/scale.port.json").read_text())
    assert {v["check"]: v["status"] for v in record["verdicts"]}["numerics"] == "FAIL"
    again = porter("port", "scale.cu", "-o", "out", "--arch", "sm_90a")
    assert again.returncode != 0 and port.read_text() == edited, "a person's edit is not replaced in silence"


def test_the_true_ports_of_these_tests_pass(base):
    base.port_path.write_text(PORT)
    assert {v.status for v in verify_port(base)} <= {Status.PASS, Status.SKIP}
    assert subject("silu_and_mul").port.text
