"""The GPU backend and its timing on a real device. Needs CuTeDSL and cuda-bindings; some tests need the bundle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench import gpu_verdicts
from porter.case.reader import BufferSpec, LaunchShape
from porter.model import PorterError, Status
from porter.verify.backends import by_name
from porter.verify.backends.gpu import GpuBackend, GpuProcess, has_driver
from porter.verify.backends.gpu_timing import TimingAnswer, TimingJob
from porter.verify.backends.gpu_work import BufferPointer, KernelCall, image_of
from porter.verify.backends.interface import Build, RunResult
from porter.verify.checks.performance import KERNELS, neighbours
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.launches.buffers import GUARD_BYTES, HostBuffer
from tests.gpu.test_ports_gpu import bundle_folder
from tools.gpu.manifest import read_bundle

pytestmark = pytest.mark.gpu
FAULTY = Path(__file__).parent / "faulty_kernels.py"
ONE_BLOCK = LaunchShape((1, 1, 1), (64, 1, 1))


@pytest.fixture(scope="module")
def backend() -> Iterator[GpuBackend]:
    if not has_driver():
        pytest.skip("no NVIDIA driver on this machine")
    process = GpuProcess(0)
    try:
        _ = process.facts
    except PorterError as error:
        pytest.skip(str(error))
    yield GpuBackend(0, process, seconds=20.0)
    process.close()


def compiled(backend: GpuBackend, path: Path, kernel: str) -> Build:
    arch = backend.facts.arch
    (made,) = compile_port(path, [CompileRequest({}, arch)], kernel=kernel)
    assert made.ok, made.error
    return Build("port", made.ptx, made.entry, arch, made.cubin)


def ints(n: int, value: int = 0, role: str = "out") -> HostBuffer:
    allocation = np.full(4 * n + 2 * GUARD_BYTES, 0x5C, np.uint8)
    raw = allocation[GUARD_BYTES : GUARD_BYTES + 4 * n].view(np.uint32)
    raw[:] = value
    return HostBuffer(BufferSpec("out", "u32", ("n",), role=role), "u32", (n,), (1,), allocation, raw)


def run(backend: GpuBackend, kernel: str, out: HostBuffer | None, n: int) -> RunResult:
    return backend.run(compiled(backend, FAULTY, kernel), ONE_BLOCK, [out, n])


def test_the_device_is_described(backend):
    facts = backend.facts
    assert facts.arch.startswith("sm_") and facts.sm_count > 0 and facts.l2_bytes > 0 and facts.name
    assert isinstance(by_name.choose("auto"), GpuBackend)
    with pytest.raises(PorterError, match="does not exist"):
        by_name.choose("gpu:99")


def test_a_launch_writes_what_it_is_given(backend):
    out = ints(50)
    result = run(backend, "FILL", out, 50)
    assert not result.error and not result.violations
    assert (out.raw == 7).all() and not out.broken_guards()


def test_a_write_past_the_end_shows_in_the_guards(backend):
    out = ints(50)
    assert not run(backend, "FILL", out, 53).error
    assert (out.raw == 7).all() and out.broken_guards() == 12


def test_a_fault_is_a_violation_and_the_next_launch_works(backend):
    result = run(backend, "FILL", None, 3)
    assert [v.kind for v in result.violations] == ["out-of-bounds"] and "ILLEGAL_ADDRESS" in result.error
    test_a_launch_writes_what_it_is_given(backend)


def test_a_hang_ends(backend):
    quick = GpuBackend(0, backend.process, seconds=5.0)
    result = run(quick, "SPIN", ints(1), 1)
    assert [v.kind for v in result.violations] == ["hang"]
    test_a_launch_writes_what_it_is_given(backend)


def test_a_launch_that_the_driver_refuses_is_an_error(backend):
    build = compiled(backend, FAULTY, "FILL")
    result = backend.run(build, LaunchShape((1, 1, 1), (2048, 1, 1)), [ints(4), 4])
    assert "CUDA_ERROR" in result.error and not result.violations


# ---------------------------------------------------------------- timing


def times(backend: GpuBackend, quads: tuple[int, int], **more) -> TimingAnswer:
    """The kernel that rewrites a buffer as both sides, with so many 16-byte words each."""
    touch = compiled(backend, KERNELS, "TOUCH")
    buffer = ints(4 * max(quads), role="inout")
    shape = LaunchShape((264, 1, 1), (256, 1, 1))
    calls = [KernelCall(touch.cubin, touch.entry, shape, (BufferPointer(0), n.to_bytes(4, "little"))) for n in quads]
    near = neighbours(backend.facts.arch)
    job = TimingJob(*calls, (image_of(buffer),), 32 * max(quads), near, read=0, written=0, pdl=True, **more)
    answer = backend.process.ask(job, 120.0)
    assert not answer.error, answer.error
    return answer


def test_a_kernel_is_as_fast_as_itself(backend):
    answer = times(backend, (1 << 18, 1 << 18))
    cold = answer.timings["graph_cold"]
    # each side has buffers of its own, whose places in memory alone were seen to make half a hundredth
    assert cold.settled and cold.ratio("port") == pytest.approx(1.0, abs=0.02)
    assert set(answer.timings) == {"graph_cold", "graph_warm", "chain", "chain_pdl"}
    assert cold.median("original") > answer.timings["graph_warm"].median("original"), "cold is slower than warm"
    chain = answer.timings["chain"].median("original")
    assert chain > 2 * answer.timings["graph_warm"].median("original"), "three kernels take longer than one"
    assert answer.timings["graph_warm"].median("empty") < 5.0


def test_four_times_the_work_shows(backend):
    cold = times(backend, (1 << 18, 1 << 20)).timings["graph_cold"]
    assert cold.counts("port") and cold.ratio("port") > 2.0


def test_times_are_those_of_the_hardware(backend):
    """The copy beside a timed kernel runs at a speed that the device can have."""
    answer = times(backend, (1 << 20, 1 << 20))
    gbps = 32 * (1 << 20) / answer.timings["graph_cold"].median("copy") / 1e3
    assert 100 < gbps < 20_000


def test_counters_are_set_back(backend):
    answer = times(backend, (1 << 10, 1 << 10), restored=(0,), once=True)
    assert answer.sets == answer.calls >= 40 and "graph_warm" in answer.not_done


# ---------------------------------------------------------------- verdicts


@pytest.mark.parametrize("kernel", ["rms_norm", "moe_dispatch"])
def test_verdicts_of_a_port(backend, kernel):
    bundle = read_bundle(bundle_folder())
    facts = bundle.kernel(kernel)
    verdicts = {v.check: v for v in gpu_verdicts.verify(bundle, facts, backend, 1, 60.0, 4)}
    for check in ("honesty", "names", "compile", "resources", "numerics", "determinism"):
        assert verdicts[check].status is Status.PASS, f"{check}: {verdicts[check].detail}"
    assert verdicts["sanitizer"].status is Status.SKIP and "not checked here" in verdicts["sanitizer"].detail
    performance = verdicts["performance"]
    assert performance.status in (Status.PASS, Status.FAIL), performance.detail
    assert performance.facts.geomean > 0 and performance.facts.device == backend.facts.name
    assert all("graph_cold" in row.timings for row in performance.facts.rows)
