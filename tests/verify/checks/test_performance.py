"""The performance check without a GPU: what is timed, what fails the gate, what is flagged, counts instead of times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from porter.case.reader import LaunchShape, load_case
from porter.model import Status
from porter.model.facts import CountedLaunch
from porter.verify import emulator as ptx
from porter.verify.backends.gpu_timing import Neighbours, TimingAnswer
from porter.verify.backends.interface import Build
from porter.verify.backends.timing import AGAIN, Timing
from porter.verify.checks.performance import (
    TimedRow,
    counts_verdict,
    launch_counts,
    moved_bytes,
    performance_verdict,
    points_to_time,
    time_points,
    timing_job,
)
from porter.verify.execute import LaunchArguments
from porter.verify.launches.inputs import make_inputs

ROOT = Path(__file__).resolve().parents[3]
CASE = load_case(next((ROOT / "reference_kernels").rglob("rms_norm.case.toml")))
COUNTERS = load_case(next((ROOT / "reference_kernels").rglob("per_tensor_fp8_quant.case.toml")))
BF16 = {"scalar_t": "bf16", "VEC": 8}
INSTANCES = list(zip(CASE.instances, [BF16, {"scalar_t": "f16", "VEC": 8}, {"scalar_t": "bf16", "VEC": 1},
                                      {"scalar_t": "f16", "VEC": 1}], strict=True))  # fmt: skip


def timing(original: float, port: float, noise: float = 0.0) -> Timing:
    wobble = [1.0 + noise * (-1) ** n for n in range(12)]
    times = {"original": [original] * 12, "port": [port] * 12, AGAIN: [original * w for w in wobble]}
    return Timing("original", times)


def row(original: float, port: float, noise: float = 0.0, error: str = "") -> TimedRow:
    answer = TimingAnswer({} if error else {"graph_cold": timing(original, port, noise)}, error=error)
    return TimedRow("<float>", {"tokens": 4}, (4, 1, 1), 1024, answer)


def gate(*rows: TimedRow):
    return performance_verdict(CASE, rows, "H200")


def test_equal_times_pass_and_the_line_says_where():
    verdict = gate(row(10, 10.2), row(20, 19.0))
    assert verdict.status is Status.PASS and "H200" in verdict.detail and "worst 1.020 at tokens=4" in verdict.detail
    assert verdict.facts.geomean == pytest.approx(0.9844, abs=1e-3)


def test_one_slow_point_fails():
    verdict = gate(row(10, 9), row(10, 9), row(10, 11.5))
    assert verdict.status is Status.FAIL and [d.code for d in verdict.diagnostics] == ["PRT870"]
    assert "1.15x" in verdict.detail


def test_a_slow_mean_fails_without_a_slow_point():
    assert gate(row(10, 10.7), row(10, 10.7)).status is Status.FAIL
    assert gate(row(10, 10.4), row(10, 10.4)).status is Status.PASS


def test_what_lies_within_the_spread_does_not_count():
    noisy = gate(row(10, 11.5, noise=0.2))
    assert noisy.status is Status.PASS
    assert [d.code for d in noisy.diagnostics] == ["PRT872"], "but it is said that the time is not known well"


def test_too_fast_is_flagged():
    verdict = gate(row(10, 4.5))
    assert verdict.status is Status.PASS and [d.code for d in verdict.diagnostics] == ["PRT871"]


def test_what_was_not_timed_is_an_error_not_a_pass():
    verdict = gate(row(10, 10), row(10, 10, error="cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE"))
    assert verdict.status is Status.ERROR and "INVALID_VALUE" in verdict.detail
    assert gate().status is Status.ERROR
    assert gate(row(10, 12), row(10, 10, error="x")).status is Status.FAIL


def test_points_prefer_bf16_and_take_given_sizes():
    given = [{"tokens": 4096, "hidden": 8192}, {"tokens": 5, "hidden": 100}, {"hidden": 768}]
    found = points_to_time(CASE, INSTANCES, given)
    assert [(t.instance, t.point.sizes["hidden"]) for t in found] == [(0, 8192), (2, 100), (0, 768)]
    assert not any(t.point.null for t in found)
    default = points_to_time(CASE, INSTANCES)
    assert 1 <= len(default) <= 4 and default[-1].point.elements == max(t.point.elements for t in default)


def test_the_case_may_say_what_is_timed(tmp_path):
    text = CASE.text.replace("[[buffers]]", "[[performance]]\ntokens = 77\nhidden = 512\n[[buffers]]", 1)
    (tmp_path / "rms_norm.cu").write_text("")
    (tmp_path / "a.case.toml").write_text(text.replace("schema = 1", 'schema = 1\nsource = "rms_norm.cu"'))
    case = load_case(tmp_path / "a.case.toml")
    assert case.performance == ({"tokens": 77, "hidden": 512},)
    assert [t.point.sizes for t in points_to_time(case, INSTANCES)] == [{"tokens": 77, "hidden": 512}]


def job_of(case, values, sizes, text: str):
    point = case.point_at(sizes, values)
    host = make_inputs(case, point, values, "normal", 1)
    build = Build("original", text, "k", "sm_90a", b"\x7fELF")
    given = LaunchArguments([host[b.name] for b in case.buffers])
    shape = LaunchShape((1, 1, 1), (32, 1, 1))
    near = Neighbours(b"", "", b"", "")
    return host, timing_job((build, build), (shape, shape), (given, given), host, near, 1.0)


def declared(case, body: str = "") -> str:
    parameters = ", ".join(f".param .u64 p{n}" for n in range(len(case.buffers)))
    return f".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k({parameters}) {{ {body} ret; }}\n"


def test_a_job_knows_its_bytes_and_its_neighbours():
    host, job = job_of(CASE, BF16, {"tokens": 4, "hidden": 64}, declared(CASE))
    assert job.nbytes == moved_bytes(host) == 2 * (4 * 64 + 4 * 64 + 64)
    names = [b.name for b in CASE.buffers]
    assert (names[job.read], names[job.written]) == ("input", "out")
    assert not job.once and not job.restored and not job.pdl
    _, early = job_of(CASE, BF16, {"tokens": 4, "hidden": 64}, declared(CASE, "griddepcontrol.wait;"))
    assert early.pdl


def test_counters_are_used_once():
    values = {"scalar_t": "bf16", "VEC": 8}
    _, job = job_of(COUNTERS, values, {}, declared(COUNTERS))
    assert job.once and job.restored


def test_time_that_is_over_is_said():
    made = []
    rows = time_points(None, [(row(1, 1), lambda: made.append(1))], deadline=0.0)  # type: ignore[arg-type]
    assert not made and "time limit for performance was reached" in rows[0].answer.error


KERNEL = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x) {
  .reg .b64 %a<4>; .reg .b32 %r<4>; .shared .align 4 .b8 s[4096];
  .reg .b64 %o;
  ld.param.u64 %a1, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %o, %r1, 4; add.s64 %a2, %a1, %o;
  ld.global.u32 %r2, [%a2];
  mul.lo.u32 %r3, %r1, STRIDE; mov.u32 %r0, s; add.u32 %r3, %r3, %r0;
  st.shared.u32 [%r3], %r2;
  bar.sync 0;
  ret;
}
"""


def test_counts_see_bank_conflicts():
    found = {}
    for stride in (4, 128):
        build = Build("port", KERNEL.replace("STRIDE", str(stride)), "k", "sm_90a")
        data = ptx.Buffer(np.zeros(32, np.uint32), "x")
        found[stride] = launch_counts(build, LaunchShape((1, 1, 1), (32, 1, 1)), [data])
    assert found[4]["sectors"] == 4 == found[128]["sectors"] and found[4]["barriers"] == 1
    assert found[4]["bank_conflicts"] == 0 and found[128]["bank_conflicts"] == 31
    verdict = counts_verdict(CountedLaunch(original=found[4], port=found[128]))
    assert verdict.status is Status.SKIP and "bank conflicts 31 (0)" in verdict.detail
    assert " us" not in verdict.detail and "emulator" in verdict.detail
