"""What can be known without a GPU of the bundle, of the arguments and of the checks that run on one."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("clang", reason="a bundle is made where libclang is")
torch = pytest.importorskip("torch")

from bench import ports_vs_originals  # noqa: E402
from porter.verify.launches.inputs import make_inputs  # noqa: E402
from tests.gpu import one_kernel, test_ports_gpu  # noqa: E402
from tests.gpu.one_kernel import KernelRun, gaps, wrong_operands  # noqa: E402
from tools.gpu.bundle import make_bundle  # noqa: E402
from tools.gpu.cubin_facts import entries, parameter_layout, toolchain  # noqa: E402
from tools.gpu.manifest import Bundle, InstanceFacts, KernelFacts, Launch, chosen_instance, read_bundle  # noqa: E402
from tools.gpu.original import pack  # noqa: E402
from tools.gpu.tensors import fetch, upload  # noqa: E402

SOME = ("rms_norm", "moe_dispatch", "moe_align_block_size")  # strides and narrow instances, a cooperative launch, sets
# A template flag that no operand shows: the function takes the instance that comes first.
NO_FUNCTION = {("per_token_group_fp8_quant", "<__nv_bfloat16, 8, true>")}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The bundle in PORTER_GPU_BUNDLE, else a small one made now."""
    folder = os.environ.get("PORTER_GPU_BUNDLE", "")
    if folder:
        return read_bundle(Path(folder))
    made = make_bundle(tmp_path_factory.mktemp("gpu") / "bundle", SOME)
    assert read_bundle(made.folder) == made
    return made


def instances(bundle: Bundle) -> list[tuple[KernelFacts, int, InstanceFacts]]:
    return [(k, n, i) for k in bundle.kernels for n, i in enumerate(k.instances)]


def cubin_of(bundle: Bundle, kernel: KernelFacts) -> bytes:
    return (bundle.folder / kernel.cubin).read_bytes()


def test_cubins_hold_the_kernels(bundle: Bundle) -> None:
    assert entries((bundle.folder / bundle.empty).read_bytes()) == ["empty_kernel"]
    for kernel in bundle.kernels:
        cubin = cubin_of(bundle, kernel)
        assert {i.entry for i in kernel.instances} == set(entries(cubin))
        assert (
            toolchain(cubin).split(".")[0] == "13"
        )  # a driver of CUDA 13.0 loads cubins of any 13.x, but not their PTX


def test_arguments_are_as_large_as_the_parameters(bundle: Bundle) -> None:
    for kernel, _, instance in instances(bundle):
        assert [(p.offset, p.size) for p in instance.parameters] == parameter_layout(
            cubin_of(bundle, kernel), instance.entry
        )
        at = 0
        for p in instance.parameters:
            assert p.offset == -(-at // p.size) * p.size, f"{kernel.name}: a parameter lies before {p.name}"
            at = p.offset + p.size
        for launch in instance.launches:
            values = [1 if p.dtype == "ptr" else launch.scalars[p.name] for p in instance.parameters]
            assert [len(b) for b in pack(instance.parameters, values)] == [p.size for p in instance.parameters]


def test_packing_refuses_another_size(bundle: Bundle) -> None:
    instance = bundle.kernels[0].instances[0]
    wrong = [replace(p, size=p.size + 4) for p in instance.parameters]
    with pytest.raises(ValueError, match="the kernel takes"):
        pack(wrong, [1] * len(wrong))


def test_launches_are_those_of_the_case(bundle: Bundle) -> None:
    for kernel, n, instance in instances(bundle):
        case = bundle.case(kernel)
        values = [dict(i.values) for i in kernel.instances]
        routes = {launch.route for launch in instance.launches}
        if (kernel.name, str(instance)) not in NO_FUNCTION:
            assert "function" in routes, f"{kernel.name} {instance}: no launch goes through the port's function"
        for launch in instance.launches:
            expected = case.launch_at(launch.point, values[n])
            assert launch.shape == expected
            assert (launch.route == "empty") == expected.is_empty
            if launch.route == "function":
                assert chosen_instance(case, values, n, launch.point, frozenset(launch.misaligned)) == n
            rebuilt = [p for p in case.instance_points(case.instances[n], values[n]) if p == launch.point]
            assert rebuilt or launch.far
        if any(b.strides for b in case.buffers):
            assert any(gaps(launch, b) for launch in instance.launches for b in launch.shapes)


def shown(bundle: Bundle, name: str, **wanted: Any) -> tuple[KernelFacts, InstanceFacts, Launch]:
    kernel = bundle.kernel(name)
    for instance in kernel.instances:
        for launch in instance.launches:
            if launch.route == "function" and all(bool(getattr(launch, k)) == v for k, v in wanted.items()):
                return kernel, instance, launch
    raise AssertionError(f"{name} has no such launch")


@pytest.mark.parametrize("misaligned", [False, True])
def test_tensors_are_the_buffers(bundle: Bundle, misaligned: bool) -> None:
    """Elements, strides, alignment and guards survive the way to a device and back."""
    kernel, instance, launch = shown(bundle, "rms_norm", misaligned=misaligned, far=False)
    trial = launch.trial(7)
    host = make_inputs(bundle.case(kernel), trial.point, dict(instance.values), "normal", 7, trial.misaligned)
    device = upload(host, "cpu")
    for name, buffer in host.items():
        tensor = device[name].tensor
        assert tuple(tensor.shape) == buffer.shape and tensor.stride() == buffer.strides
        assert (device[name].address % 16 != 0) == (name in launch.misaligned)
        assert torch.equal(tensor.view(torch.int16), torch.from_numpy(buffer.view().astype(np.int16)))
    device["out"].tensor.fill_(1.0)
    device["input"].allocation[0] ^= 0xFF
    back = fetch(device, host)
    assert (back["out"].view() == 0x3F80).all() or (back["out"].view() == 0x3C00).all()
    assert back["input"].broken_guards() == 1 and back["out"].broken_guards() == 0
    assert np.array_equal(back["weight"].allocation, host["weight"].allocation)


class NoOriginal:
    """Stands for a cubin on the device: packs its arguments and computes nothing."""

    def __init__(self, cubin: bytes, entry: str, parameters: Any = ()):
        self.parameters = parameters

    def launch(self, shape: Any, values: Any, stream: int) -> None:
        pack(self.parameters, values)


@pytest.fixture
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = SimpleNamespace(cuda_stream=0, synchronize=lambda: None)
    monkeypatch.setattr(one_kernel, "Original", NoOriginal)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda *_: stream)
    monkeypatch.setattr(torch.cuda, "Stream", lambda *_: stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "_sleep", lambda _: None)


def run_of(bundle: Bundle, name: str, launched: Callable[..., None]) -> KernelRun:
    run = KernelRun(bundle, bundle.kernel(name), 5, torch.device("cpu"))
    run.port._launch = launched
    return run


def nothing(constexprs: Any, args: Any, **_: Any) -> None:
    """A kernel that does nothing, as the stand-in for the original does: so both agree."""


@pytest.mark.usefixtures("without_gpu")
@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("check", ["matches", "zero_rows", "strided", "narrower", "stream", "determinism"])
def test_checks_pass_where_both_sides_agree(bundle: Bundle, name: str, check: str) -> None:
    got = one_kernel.answer(one_kernel.CHECKS[check], run_of(bundle, name, nothing))
    assert got.status in ("pass", "skip"), got.detail
    if check == "matches":
        assert "bit-equal" in got.detail and all(i["launches"] for i in got.data.values())


@pytest.mark.usefixtures("without_gpu")
def test_matches_fails_for_a_port_that_writes_something_else(bundle: Bundle) -> None:
    def writes(constexprs: Any, args: Any, **_: Any) -> None:
        if args[0].numel():
            args[0].view(-1)[-1] = 1.0

    got = one_kernel.answer(one_kernel.matches, run_of(bundle, "rms_norm", writes))
    assert got.status == "fail" and "out" in got.detail


@pytest.mark.usefixtures("without_gpu")
def test_matches_fails_for_a_port_that_writes_past_the_end(bundle: Bundle) -> None:
    def writes(constexprs: Any, args: Any, **_: Any) -> None:
        args[0].as_strided((1,), (1,), args[0].storage_offset() + args[0].numel()).fill_(1.0)

    run = run_of(bundle, "rms_norm", writes)
    n, launch = 0, run.shown(0)
    result, wrong = one_kernel.one_launch(run, run.subject(n), n, launch, run.trial(n, launch, 0))
    assert not wrong and any("outside of the buffer" in f.message for f in result.findings)


@pytest.mark.usefixtures("without_gpu")
def test_matches_fails_for_a_port_that_takes_another_instance(bundle: Bundle) -> None:
    run = run_of(bundle, "rms_norm", nothing)
    real = run.port.function

    def always_narrow(**arguments: Any) -> None:
        real(**arguments)
        constexprs, shape = run.port.launched or ({}, None)
        assert shape is not None
        run.port.launched = ({**constexprs, "VEC": 1}, shape)

    run.port.function = always_narrow
    got = one_kernel.answer(one_kernel.matches, run)
    assert got.status == "fail" and "chose" in got.detail


@pytest.mark.usefixtures("without_gpu")
def test_determinism_fails_for_a_port_that_changes(bundle: Bundle) -> None:
    calls = iter(range(10_000))

    def counts(constexprs: Any, args: Any, **_: Any) -> None:
        args[0].fill_(float(next(calls) // 19))

    got = one_kernel.answer(one_kernel.determinism, run_of(bundle, "rms_norm", counts))
    assert got.status == "fail" and "differ" in got.detail


@pytest.mark.usefixtures("without_gpu")
def test_narrower_fails_for_a_port_that_misaligns(bundle: Bundle) -> None:
    run = run_of(bundle, "rms_norm", nothing)
    run.port.module.runtime = SimpleNamespace(
        **{**{n: getattr(run.port.module.runtime, n) for n in ("check", "name_of")}, "aligned": lambda *_: True}
    )
    got = one_kernel.answer(one_kernel.narrower, run)
    assert got.status == "fail" and "chose" in got.detail


def test_ports_refuse_wrong_operands(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every port of the bundle, on CPU tensors: dtype, rank and stride, and that no CPU tensor reaches a kernel."""
    monkeypatch.setattr(one_kernel, "Original", NoOriginal)
    for kernel in bundle.kernels:
        run = KernelRun(bundle, kernel, 5, torch.device("cpu"))
        launch = run.shown(0)
        host = run.inputs(0, run.trial(0, launch, 0))
        tensors = {name: b.tensor for name, b in upload(host, "cpu", launch.point.null).items()}
        for what, wrong in wrong_operands(tensors):
            with pytest.raises(ValueError):
                run.port.call(launch, wrong)
                pytest.fail(f"{kernel.name}: {what}")


def test_the_list_of_checks_is_one(bundle: Bundle) -> None:
    assert tuple(one_kernel.CHECKS) == test_ports_gpu.CHECKS
    assert set(ports_vs_originals.SHAPES) == set(test_ports_gpu.KERNELS)


def test_every_benchmark_shape_has_an_instance(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports_vs_originals, "Original", NoOriginal)
    device = SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: device)
    for kernel in bundle.kernels:
        for sizes in ports_vs_originals.SHAPES[kernel.name]:
            subject = ports_vs_originals.subject_of(bundle, kernel, sizes, SimpleNamespace(), {})  # type: ignore[arg-type]
            assert not subject.launch.shape.is_empty


def test_nothing_there_needs_the_compilers_here() -> None:
    """Where the GPU is, there is no libclang, no NVRTC and no llvmlite."""
    program = """
import sys
for name in ("clang", "llvmlite"):
    sys.modules[name] = None
import bench.ports_vs_originals, tests.gpu.one_kernel, tests.gpu.test_ports_gpu
wrong = [m for m in sys.modules if m.startswith(("porter.frontend", "porter.emit", "porter.verify.original.nvrtc"))]
assert not wrong, wrong
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_gpu_tests_skip_with_a_reason(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PORTER_GPU_BUNDLE"}
    root = Path(__file__).resolve().parents[2]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        "-m",
        "gpu",
        "-k",
        "rms_norm-matches",
    ]
    command += ["tests/gpu/test_ports_gpu.py", f"--basetemp={tmp_path}/t"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "PORTER_GPU_BUNDLE is not set" in done.stdout, done.stdout[-2000:]
