"""The GPU backend without a GPU: packing, guards, launch attributes, faults and hangs, on stand-ins for the driver."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from porter.case.reader import BufferSpec, LaunchShape
from porter.model import PorterError
from porter.verify.backends import by_name, gpu, gpu_driver
from porter.verify.backends.emulator import EmulatorBackend
from porter.verify.backends.gpu import GpuBackend, GpuProcess
from porter.verify.backends.gpu_child import answer
from porter.verify.backends.gpu_driver import Device, DeviceFacts, GpuError
from porter.verify.backends.gpu_timing import Neighbours, TimingJob
from porter.verify.backends.gpu_work import BufferPointer, BufferVariable, Image, RunJob, call_of, image_of, store
from porter.verify.backends.interface import Build
from porter.verify.launches.buffers import GUARD_BYTES, HostBuffer
from tests.verify.backends.fake_driver import CUresult, FakeDriver

PTX = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry {entry}(.param .u64 a, .param .u64 b, .param .f32 scale, .param .u32 n) {{ ret; }}
"""
SIZES = [8, 8, 4, 4]
SHAPE = LaunchShape((2, 1, 1), (32, 1, 1))


def build(entry: str, label: str = "port") -> Build:
    return Build(label, PTX.format(entry=entry), entry, "sm_90a", b"\x7fELF " + entry.encode())


def buffer(name: str, values: list[int], role: str = "in", shape=None, strides=None) -> HostBuffer:
    raw = np.array(values, np.uint32)
    allocation = np.full(raw.nbytes + 2 * GUARD_BYTES, 0x5C, np.uint8)
    allocation[GUARD_BYTES : GUARD_BYTES + raw.nbytes] = raw.view(np.uint8)
    inside = allocation[GUARD_BYTES : GUARD_BYTES + raw.nbytes].view(np.uint32)
    spec = BufferSpec(name, "u32", ("n",), role=role)
    return HostBuffer(spec, "u32", shape or (raw.size,), strides or (1,), allocation, inside)


def scaled_copy(config, arguments):
    a, b, scale, n = (struct.unpack(f, d)[0] for f, d in zip("QQfI", arguments, strict=True))
    source, target = ((ctypes.c_uint32 * n).from_address(p) for p in (a, b))
    for i in range(n):
        target[i] = int(source[i] * scale)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    names = ("copy", "fast", "slow", "fault", "empty", "touch")
    kernels = {n: (lambda config, arguments: None) for n in names}
    kernels["copy"] = scaled_copy
    kernels["fault"] = lambda config, arguments: CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    driver = FakeDriver(kernels, {n: SIZES for n in names} | {"empty": [], "touch": [8, 4]})
    monkeypatch.setattr(gpu_driver, "load_driver", lambda: driver)
    return driver


# ---------------------------------------------------------------- bytes and launches


def test_arguments_are_packed_as_the_ptx_declares_them():
    a, b = buffer("a", [1, 2]), buffer("b", [0, 0], "out")
    call, buffers = call_of(build("copy"), SHAPE, [a, b, 2.5, 7])
    assert call.arguments == (BufferPointer(0), BufferPointer(1), struct.pack("<f", 2.5), struct.pack("<I", 7))
    assert buffers == [a, b]
    call, buffers = call_of(build("copy"), SHAPE, [None, b, 1, -1])
    assert call.arguments == (bytes(8), BufferPointer(0), struct.pack("<f", 1), b"\xff" * 4) and buffers == [b]
    with pytest.raises(ValueError, match="no cubin"):
        call_of(Build("port", PTX.format(entry="k"), "k", "sm_90a"), SHAPE, [a, b, 1.0, 1])


def test_images_of_sparse_buffers_hold_rows_and_guards_only():
    b = buffer("a", list(range(40)), shape=(3, 4), strides=(16, 1))
    b.sparse = True
    image = image_of(b)
    offsets = [offset for offset, _ in image.segments]
    assert offsets == [0, 256, 256 + 64, 256 + 128, 256 + 160]
    assert [d.size for _, d in image.segments] == [256, 16, 16, 16, 256]
    store(b, image, [np.zeros(d.size, np.uint8) for _, d in image.segments])
    assert b.raw[4] == 4 and not b.view().any() and b.broken_guards() == 512


def test_a_launch_reads_and_writes_device_copies(fake):
    device = Device()
    assert device.facts.arch == "sm_90a" and device.facts.driver == "13.0" and device.facts.name == "Fake"
    a, b = buffer("a", [1, 2, 3]), buffer("b", [9, 9, 9], "out")
    call, buffers = call_of(build("copy"), SHAPE, [a, b, 3.0, 3])
    images = tuple(image_of(x) for x in buffers)
    found = answer(device, RunJob(call, images))
    assert not found.error
    for x, image, segments in zip(buffers, images, found.segments, strict=True):
        store(x, image, segments)
    assert list(b.raw) == [3, 6, 9] and list(a.raw) == [1, 2, 3] and not b.broken_guards()
    assert not fake.memory, "device memory is freed"


def test_module_variables_take_their_values_before_the_launch_and_give_them_back(fake):
    fake.variables = {b"count": 8}

    def counts(config, arguments):
        held = (ctypes.c_uint32 * 2).from_address(fake.placed[b"count"])
        held[1] += held[0]

    fake.kernels["copy"] = counts
    device = Device()
    for start in (5, 70):  # the module is loaded once, and starts afresh each time
        count, a = buffer("count", [start, 1], "inout"), buffer("a", [0])
        call, buffers = call_of(build("copy"), SHAPE, [a, a, 1.0, 1], {"count": count})
        assert buffers[-1] is count
        images = tuple(image_of(x) for x in buffers)
        found = answer(device, RunJob(call, images))
        assert not found.error
        store(count, images[-1], found.segments[-1])
        assert list(count.raw) == [start, start + 1] and not count.broken_guards()
    call, buffers = call_of(build("copy"), SHAPE, [a, a, 1.0, 1], {"count": buffer("count", [1])})
    found = answer(device, RunJob(call, tuple(image_of(x) for x in buffers)))
    assert "count has 8 bytes, its values have 4" in found.error
    call, buffers = call_of(build("copy"), SHAPE, [a, a, 1.0, 1], {"other": buffer("other", [1])})
    found = answer(device, RunJob(call, tuple(image_of(x) for x in buffers)))
    assert "cuModuleGetGlobal of other" in found.error


def test_timed_originals_have_their_variables(fake):
    fake.variables = {b"count": 4}
    seen = []
    fake.kernels["slow"] = lambda config, arguments: seen.append(
        ctypes.c_uint32.from_address(fake.placed[b"count"]).value
    )
    timed = job("slow", "fast")
    count = buffer("count", [41])
    variable = BufferVariable("count", len(timed.images), 4)
    timed = replace(timed, original=replace(timed.original, variables=(variable,)))
    found = answer(Device(), replace(timed, images=(*timed.images, image_of(count))))
    assert not found.error and "graph_cold" in found.timings
    assert seen and set(seen) == {41}


def test_launch_attributes(fake):
    device = Device()
    function = device.function(b"\x7fELF copy", "copy")
    shape = LaunchShape((4, 1, 1), (64, 2, 1), 100_000, True, (2, 1, 1))
    function.prepare(shape, [bytes(n) for n in SIZES], pdl=True)
    assert fake.smem["copy"] == 100_000
    found = {a.id: a.value for a in gpu_driver._attributes(fake, shape, True)}
    assert found["COOPERATIVE"].cooperative == 1
    cluster = found["CLUSTER_DIMENSION"].clusterDim
    assert (cluster.x, cluster.y, cluster.z) == (2, 1, 1)
    assert found["PROGRAMMATIC_STREAM_SERIALIZATION"].programmaticStreamSerializationAllowed == 1
    assert gpu_driver._attributes(fake, SHAPE, False) == []


def test_ptx_never_reaches_the_driver(fake):
    with pytest.raises(GpuError, match="not a cubin"):
        Device().function(PTX.encode(), "copy")


def test_errors_of_the_driver_are_answers(fake):
    device = Device()
    job = RunJob(call_of(build("fault"), SHAPE, [None, None, 1.0, 1])[0], ())
    found = answer(device, job)
    assert found.fault == "CUDA_ERROR_ILLEGAL_ADDRESS" and "text of 700" in found.error
    fake.broken = CUresult.CUDA_SUCCESS
    other = Build("port", PTX.format(entry="copy"), "copy", "sm_100a", b"\x7fELF other")
    found = answer(device, RunJob(call_of(other, SHAPE, [None, None, 1.0, 1])[0], ()))
    assert "NO_BINARY_FOR_GPU" in found.error and not found.fault
    with pytest.raises(GpuError, match="gpu:3 does not exist: this machine shows 1 CUDA device"):
        Device(3)


# ---------------------------------------------------------------- timing


def job(original: str, port: str, **more) -> TimingJob:
    host = [buffer("a", list(range(64))), buffer("b", [0] * 64, "out")]
    calls = [call_of(build(e), SHAPE, [*host, 1.0, 64])[0] for e in (original, port)]
    near = Neighbours(b"\x7fELF empty", "empty", b"\x7fELF touch", "touch")
    images = tuple(image_of(b) for b in host)
    return TimingJob(*calls, images, 512, near, read=0, written=1, **more)


def test_timing_measures_both_sides_and_their_neighbours(fake):
    found = answer(Device(), job("slow", "fast", pdl=True))
    assert not found.error, found.error
    cold, warm = found.timings["graph_cold"], found.timings["graph_warm"]
    assert cold.median("original") == pytest.approx(10.0) and cold.median("port") == pytest.approx(5.0)
    assert cold.median("copy") == pytest.approx(1.0), "the sweep before a replay is not timed"
    assert cold.ratio("port") == pytest.approx(0.5) and cold.settled and cold.counts("port")
    assert warm.median("empty") == pytest.approx(5.0)
    assert found.timings["chain"].median("original") == pytest.approx(20.0), "producer, kernel, consumer"
    assert set(found.timings) == {"graph_cold", "graph_warm", "chain", "chain_pdl"}
    assert set(found.host_us) == {"original", "port"}
    assert not fake.memory and not fake.loaded_while_capturing
    touched = [arguments for entry, _, arguments in fake.launches if entry == "touch"]
    assert {struct.unpack("<I", a[1])[0] for a in touched} == {16}, "256 bytes are 16 quads, guards are not touched"
    early = [c for e, c, _ in fake.launches if any(a.id == "PROGRAMMATIC_STREAM_SERIALIZATION" for a in c.attrs)]
    assert early and all(c.attrs for c in early)


def test_cold_sets_are_different_memory(fake):
    answer(Device(), job("slow", "fast"))
    addresses = {arguments[0] for entry, _, arguments in fake.launches if entry == "slow"}
    assert len(addresses) == -(-2 * 4096 // (2 * (256 + 512)))


def test_counters_are_set_back_and_never_reused(fake):
    seen = []

    def count(config, arguments):
        n = (ctypes.c_uint32 * 1).from_address(struct.unpack("<Q", arguments[1])[0])
        seen.append(n[0])
        n[0] += 1

    fake.kernels["fast"] = fake.kernels["slow"] = count
    found = answer(Device(), job("slow", "fast", restored=(1,), once=True))
    assert set(seen) == {0}, "a call found what an earlier one had left"
    assert "graph_warm" in found.not_done and "graph_warm" not in found.timings and not found.host_us


def test_a_fault_while_timing_is_an_answer(fake):
    found = answer(Device(), job("slow", "fault"))
    assert found.fault == "CUDA_ERROR_ILLEGAL_ADDRESS" and not found.timings


# ---------------------------------------------------------------- the child process


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch):
    root = str(Path(__file__).resolve().parents[3])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    made = GpuProcess(0, (sys.executable, "-m", "tests.verify.backends.fake_gpu_child"))
    yield made
    made.close()


def run(process: GpuProcess, entry: str, seconds: float = 20.0):
    a, b = buffer("a", [1, 2, 3]), buffer("b", [9, 9, 9], "out")
    return GpuBackend(0, process, seconds).run(build(entry), SHAPE, [a, b, 1.0, 3]), b


def test_a_launch_goes_through_the_child(process):
    result, b = run(process, "copy")
    assert not result.error and not result.violations and list(b.raw) == [1, 2, 3]
    assert GpuBackend(0, process).sm_count == 132


@pytest.mark.parametrize(
    ("entry", "kinds", "words"),
    [
        ("fault", ["out-of-bounds"], "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("die", [], "exit 11.*Segmentation fault"),
        ("refused", [], "CUDA_ERROR_INVALID_VALUE"),
    ],
)
def test_the_parent_survives_what_the_child_does_not(process, entry, kinds, words):
    result, b = run(process, entry)
    assert [v.kind for v in result.violations] == kinds
    assert re.search(words, result.error), result.error
    assert list(b.raw) == [9, 9, 9], "nothing is made up"
    again, b = run(process, "copy")
    assert not again.error and list(b.raw) == [1, 2, 3], "a new child serves the next launch"


def test_a_kernel_that_never_ends_is_ended(process):
    process.facts  # noqa: B018 (starts the child)
    result, _ = run(process, "hang", seconds=0.3)
    assert [v.kind for v in result.violations] == ["hang"] and "0.3 s" in result.error
    assert not run(process, "copy")[0].error


def test_another_device_that_is_not_there(monkeypatch, process):
    process.index = 2
    with pytest.raises(PorterError, match="gpu:2 does not exist"):
        _ = process.facts


# ---------------------------------------------------------------- choosing


def test_without_a_driver_auto_is_the_emulator(monkeypatch):
    monkeypatch.setattr(gpu, "has_driver", lambda: False)
    assert isinstance(by_name.choose("auto"), EmulatorBackend)
    assert isinstance(by_name.choose("emulator"), EmulatorBackend)
    for name in ("gpu", "gpu:1"):
        with pytest.raises(PorterError, match="no NVIDIA driver") as raised:
            by_name.choose(name)
        assert raised.value.diagnostics[0].code == "PRT878"
    for name in ("cpu", "gpu:x", "emulator:1"):
        with pytest.raises(PorterError):
            by_name.choose(name)


def test_a_gpu_of_another_architecture_is_none(monkeypatch):
    facts = DeviceFacts(0, "Fake", (9, 0), 132, 1, 1, "13.0")
    assert facts.runs("sm_90a") and facts.runs("sm_90")
    assert not any(facts.runs(a) for a in ("sm_100a", "sm_89", "sm_80", "compute_90"))
    assert DeviceFacts(0, "Fake", (8, 9), 1, 1, 1, "13.0").runs("sm_80")
    monkeypatch.setattr(gpu, "has_driver", lambda: True)
    monkeypatch.setattr(GpuProcess, "facts", facts)
    assert isinstance(by_name.choose("auto", "sm_90a"), GpuBackend)
    assert isinstance(by_name.choose("auto", "sm_100a"), EmulatorBackend)
    with pytest.raises(PorterError, match="Fake is sm_90a and cannot run cubins for sm_100a"):
        by_name.choose("gpu", "sm_100a")


@pytest.mark.skipif(gpu.has_driver(), reason="for machines without a driver")
def test_the_real_child_says_what_is_missing():
    process = GpuProcess(0)
    with pytest.raises(PorterError) as raised:
        _ = process.facts
    message = raised.value.diagnostics[0].message
    assert "driver" in message or "cuda-bindings" in message
    assert "Traceback" not in message


def test_image_is_plain_data():
    image = Image(3, 0, ((0, np.zeros(3, np.uint8)),))
    assert "array" not in repr(image), "megabytes do not belong in messages"
