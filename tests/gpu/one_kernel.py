"""All GPU checks of one kernel, in a process of its own: a fault or a hang ends this process, not the test run.

`python -m tests.gpu.one_kernel BUNDLE KERNEL SEED RESULT.json`
"""

from __future__ import annotations

import json
import random
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from porter.corpus.runtime import arch_for
from porter.model import Instance
from porter.verify.backends.interface import Build
from porter.verify.execute import InstanceUnderTest, TrialResult, compare
from porter.verify.launches.buffers import Buffers
from porter.verify.launches.inputs import make_inputs
from porter.verify.launches.trials import Trial
from porter.verify.numerics.reference import load_reference
from porter.verify.repeat import comparable
from porter.verify.verdicts import InstanceRun
from tools.gpu.manifest import Bundle, InstanceFacts, KernelFacts, Launch, chosen_instance, read_bundle
from tools.gpu.original import Original
from tools.gpu.port import Port
from tools.gpu.tensors import DeviceBuffer, DeviceBuffers, fetch, pristine_of, restore, upload, view

REPEATS = 20
FILL = 0x6E  # what device memory holds before a run that has to bring everything itself


class Skip(Exception):
    """A check that does not apply to this kernel; the message says why."""


@dataclass
class Answer:
    """What a check gave: pass, fail, skip or error, a line for a person, numbers."""

    status: str
    detail: str = ""
    data: dict[str, Any] = field(default_factory=dict)


@dataclass
class KernelRun:
    """One kernel's instances on the device, original and port."""

    bundle: Bundle
    facts: KernelFacts
    seed: int
    device: Any

    def __post_init__(self) -> None:
        self.case = self.bundle.case(self.facts)
        self.port = Port(self.bundle, self.facts)
        cubin = (self.bundle.folder / self.facts.cubin).read_bytes()
        self.originals = [Original(cubin, i.entry, i.parameters) for i in self.facts.instances]
        self.reference = load_reference(self.case)
        self.values = [dict(i.values) for i in self.facts.instances]

    def subject(self, n: int) -> InstanceUnderTest:
        instance = self.facts.instances[n]
        sides = [Build(label, "", instance.entry, self.bundle.arch) for label in ("original", "port")]
        used = (frozenset(instance.approximations[0]), frozenset(instance.approximations[1]))
        info = self.facts.info(n)
        return InstanceUnderTest(
            self.case, info, self.values[n], sides[0], sides[1], used, instance.reduces, self.reference
        )

    def trial(self, n: int, launch: Launch, at: int) -> Trial:
        return launch.trial(random.Random(f"{self.seed} {self.facts.name} {n} {at}").randrange(1 << 31))

    def inputs(self, n: int, trial: Trial) -> Buffers:
        return make_inputs(self.case, trial.point, self.values[n], trial.scenario, trial.seed, trial.misaligned)

    def run_original(self, n: int, launch: Launch, buffers: DeviceBuffers) -> None:
        found: list[int | float | bool] = []
        for p in self.facts.instances[n].parameters:
            if p.dtype == "ptr":
                found.append(buffers[p.name].address if p.name in buffers else 0)
            else:
                found.append(launch.scalars[p.name])
        self.originals[n].launch(launch.shape, found, torch.cuda.current_stream().cuda_stream)

    def run_port(self, n: int, launch: Launch, buffers: DeviceBuffers) -> None:
        tensors = {name: b.tensor for name, b in buffers.items()}
        if launch.route == "direct":
            self.port.run_instance(self.facts.instances[n], launch, tensors)
        else:
            self.port.call(launch, tensors)

    def shown(self, n: int) -> Launch:
        """The largest launch of an instance that goes through the function (of all where none does), plain inputs."""
        launches = [i for i in self.facts.instances[n].launches if i.route != "empty" and not i.far]
        through = [i for i in launches if i.route == "function"] or launches
        aligned = [i for i in through if not i.misaligned] or through
        return replace(max(aligned, key=lambda i: i.point.elements), scenario="normal")

    def each_instance(self) -> list[tuple[int, InstanceFacts]]:
        return list(enumerate(self.facts.instances))


# ---------------------------------------------------------------- checks: each raises AssertionError, or returns facts


def compiles(run: KernelRun) -> Answer:
    """Every instance compiles here and loads."""
    seconds = []
    for _, instance in run.each_instance():
        start = time.perf_counter()
        run.port.kernel.prepare(run.port.constexprs(instance), run.device)
        seconds.append(round(time.perf_counter() - start, 2))
    return Answer("pass", f"{len(seconds)} instances, {sum(seconds):.1f} s", {"seconds": seconds})


def matches(run: KernelRun) -> Answer:
    """Every buffer of every launch, guards included, against the original on the same bytes."""
    data: dict[str, Any] = {}
    problems: list[str] = []
    doubts: list[str] = []  # about the original or its reference
    total = 0
    for n, instance in run.each_instance():
        subject = run.subject(n)
        verdicts = InstanceRun(Instance(tuple(instance.args)), {b.name: b.dtype for b in instance.buffers})
        through = 0
        for at, launch in enumerate(instance.launches):
            if launch.far:
                continue
            try:
                result, chosen = one_launch(run, subject, n, launch, run.trial(n, launch, at))
            except Exception as error:
                raise RuntimeError(f"{instance} at {launch.trial(0)}: {type(error).__name__}: {error}") from error
            verdicts.results.append(result)
            through += launch.route == "function"
            total += 1
            if chosen:
                problems.append(f"{instance}: {chosen} (at {result.trial})")
            for f in result.findings:
                told = f"{instance} {f.buffer}: {f.message} (at {result.trial})"
                (problems if f.is_port else doubts).append(told)
        rows = {}
        for name, ledger in verdicts.ledgers().items():
            verdict = ledger.close()
            was, now = ledger.rms
            rows[name] = {
                "verdict": verdict, "elements": ledger.elements, "different": ledger.different,
                "max_ulp": ledger.max_ulp, "rms_original": round(was, 4), "rms_port": round(now, 4),
                "tolerance": ledger.tolerance.why if ledger.tolerance else "",
            }  # fmt: skip
            for f in ledger.findings:
                told = f"{instance} {name}: {f.message} (at {f.launch})"
                (problems if f.is_port else doubts).append(told)
        data[str(instance)] = {"launches": len(verdicts.results), "through_function": through, "buffers": rows}
    different = [r for i in data.values() for r in i["buffers"].values() if r["different"]]
    detail = f"bit-equal in {total} launches" if not different else f"{len(different)} outputs not bit-equal"
    if problems:
        return Answer("fail", f"{len(problems)} problems: " + " | ".join(problems[:3])[:1500], data)
    if doubts:
        detail += f"; {len(doubts)} doubts about the original: {doubts[0][:300]}"
    return Answer("pass", detail, data)


def one_launch(
    run: KernelRun, subject: InstanceUnderTest, n: int, launch: Launch, trial: Trial
) -> tuple[TrialResult, str]:
    """Both sides on the same bytes. The text says what is wrong with the instance or the launch that the port chose."""
    before = run.inputs(n, trial)
    originals = upload(before, run.device, trial.point.null)
    ports = upload(before, run.device, trial.point.null)
    result = TrialResult(trial)
    wrong = ""
    if launch.route != "empty":
        run.run_original(n, launch, originals)
    run.run_port(n, launch, ports)
    torch.cuda.synchronize()
    if run.port.launched is None:
        wrong = "the port launched nothing"
    elif launch.route == "function":
        constexprs, shape = run.port.launched
        if constexprs != run.port.constexprs(run.facts.instances[n]):
            wrong = f"the port's function chose {constexprs}"
        elif (shape.grid, shape.block, shape.smem) != (launch.shape.grid, launch.shape.block, launch.smem):
            wrong = f"the port launches {shape}, the original {launch.shape}"
    after = fetch(originals, before), fetch(ports, before)
    if launch.route == "empty":
        for name, buffer in before.items():
            if not np.array_equal(after[1][name].allocation, buffer.allocation):
                wrong = f"a launch without blocks changed {name}"
    else:
        compare(subject, trial, before, after[0], after[1], result)
    return result, wrong


def zero_rows(run: KernelRun) -> Answer:
    """Operands without elements are taken: nothing is launched, or nothing but what the original does."""
    empty = [
        (n, at, launch)
        for n, i in run.each_instance()
        for at, launch in enumerate(i.launches)
        if any(0 in s for s in launch.shapes.values())
    ]
    if not empty:
        raise Skip("no launch of the case has operands without elements")
    for n, at, launch in empty:
        result, wrong = one_launch(run, run.subject(n), n, launch, run.trial(n, launch, at))
        assert not wrong, wrong
        assert not any(f.is_port for f in result.findings), result.findings[0].message
    return Answer("pass", f"{len(empty)} launches")


def strided(run: KernelRun) -> Answer:
    """Rows further apart than they are long: the launches of `matches` that have them, once more by themselves."""
    found = 0
    for n, instance in run.each_instance():
        for at, launch in enumerate(instance.launches):
            apart = [b for b in launch.shapes if gaps(launch, b)]
            if apart and launch.route != "empty" and not launch.far:
                result, wrong = one_launch(run, run.subject(n), n, launch, run.trial(n, launch, at + 1000))
                assert not wrong, wrong
                assert not any(f.is_port for f in result.findings), result.findings[0].message
                found += 1
    if not found:
        raise Skip("no operand of the case has strides")
    return Answer("pass", f"{found} launches")


def gaps(launch: Launch, buffer: str) -> bool:
    """True when the rows of a buffer do not touch."""
    point = launch.point
    used = int(np.prod(point.shapes[buffer], dtype=np.int64))
    span = 1 + sum((n - 1) * s for n, s in zip(point.shapes[buffer], point.strides[buffer], strict=True))
    return used > 0 and span > used


def narrower(run: KernelRun) -> Answer:
    """Each operand one element off its alignment: a narrower instance takes it, or ValueError is raised."""
    took, refused = 0, 0
    for n, instance in run.each_instance():
        launch = run.shown(n)
        when = run.case.instances[n].when
        for buffer in [b.name for b in run.case.buffers if f"aligned({b.name}," in when.replace(" ", "")]:
            if launch.route != "function" or launch.misaligned:
                continue
            other = replace(launch, misaligned=[buffer])
            choice = chosen_instance(run.case, list(run.values), n, other.point, frozenset([buffer]))
            if choice is None:
                refused += 1
                trial = run.trial(n, other, 0)
                ports = upload(run.inputs(n, trial), run.device, trial.point.null)
                expect_value_error(run, other, {k: b.tensor for k, b in ports.items()}, f"misaligned {buffer}")
                continue
            shape = run.case.launch_at(other.point, run.values[choice])
            other = replace(other, grid=list(shape.grid), block=list(shape.block), smem=shape.smem)
            result, wrong = one_launch(run, run.subject(choice), choice, other, run.trial(choice, other, 0))
            assert not wrong, f"{instance}, {buffer} misaligned: {wrong}"
            assert not any(f.is_port for f in result.findings), f"{buffer}: {result.findings[0].message}"
            took += choice != n
    if not took and not refused:
        raise Skip("no instance asks for alignment")
    return Answer("pass", f"{took} taken by a narrower instance, {refused} refused")


def expect_value_error(run: KernelRun, launch: Launch, tensors: dict[str, Any], what: str) -> None:
    try:
        run.port.call(launch, tensors)
    except ValueError:
        return
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__} instead of ValueError: {error}") from error
    torch.cuda.synchronize()
    raise AssertionError(f"{what}: no ValueError")


def refuses(run: KernelRun) -> Answer:
    """A wrong dtype, device, rank or stride of any operand raises ValueError and launches nothing."""
    launch = run.shown(0)
    trial = run.trial(0, launch, 0)
    buffers = upload(run.inputs(0, trial), run.device, trial.point.null)
    tensors = {name: b.tensor for name, b in buffers.items()}
    tried = 0
    for what, wrong in wrong_operands(tensors):
        expect_value_error(run, launch, wrong, what)
        tried += 1
    return Answer("pass", f"{tried} wrong calls")


def wrong_operands(tensors: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(what is wrong, operands) for each operand: dtype, device, one dimension more, elements two apart."""
    found: list[tuple[str, dict[str, Any]]] = []
    for name, t in tensors.items():
        found.append(
            (f"{name} as float64", {**tensors, name: torch.zeros(t.shape, dtype=torch.float64, device=t.device)})
        )
        found.append((f"{name} with a dimension more", {**tensors, name: t.unsqueeze(0)}))
        if t.is_cuda:
            found.append((f"{name} on the CPU", {**tensors, name: t.cpu()}))
        if t.numel() and t.shape[-1] > 1:
            wide = torch.empty((*t.shape[:-1], 2 * t.shape[-1]), dtype=t.dtype, device=t.device)[..., ::2]
            found.append((f"{name} with elements two apart", {**tensors, name: wide}))
    found.append(("everything on the CPU", {name: t.cpu() for name, t in tensors.items()}))
    return found


def graph(run: KernelRun) -> Answer:
    """Captured in a CUDA graph and replayed on inputs that come later, the port gives what it gives when called."""
    for n, instance in run.each_instance():
        launch = run.shown(n)
        trials = [run.trial(n, launch, at) for at in (2000, 2001)]
        inputs = [run.inputs(n, t) for t in trials]
        buffers = upload(inputs[0], run.device, trials[0].point.null)
        sources = [upload(i, run.device, trials[0].point.null) for i in inputs]
        pristine = pristine_of(buffers)
        run.run_port(n, launch, buffers)  # loads the kernel: a capture must not
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            restore(buffers, pristine)
            run.run_port(n, launch, buffers)
        for source, host, trial in zip(sources, inputs, trials, strict=True):
            for name, buffer in source.items():
                pristine[name].copy_(buffer.allocation)
                buffers[name].allocation.fill_(FILL)
            captured.replay()
            torch.cuda.synchronize()
            run.run_port(n, launch, source)
            torch.cuda.synchronize()
            assert_same(fetch(buffers, host), fetch(source, host), trial, f"{instance}: replay and call")
    return Answer("pass", f"{len(run.facts.instances)} instances, 2 replays each")


def stream(run: KernelRun) -> Answer:
    """The port runs on torch's current stream: behind what was queued there, not beside it."""
    for n, instance in run.each_instance():
        launch = run.shown(n)
        trial = run.trial(n, launch, 3000)
        host = run.inputs(n, trial)
        buffers, called = (upload(host, run.device, trial.point.null) for _ in range(2))
        pristine = pristine_of(buffers)
        run.run_port(n, launch, called)
        for buffer in buffers.values():
            buffer.allocation.fill_(FILL)
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)  # some 10 ms
            restore(buffers, pristine)
            run.run_port(n, launch, buffers)
        side.synchronize()
        assert_same(fetch(buffers, host), fetch(called, host), trial, f"{instance}: on a side stream and called")
    return Answer("pass", f"{len(run.facts.instances)} instances")


def determinism(run: KernelRun) -> Answer:
    """Twenty runs on the same bytes give the same bits (the same sets, where the case says so)."""
    for n, instance in run.each_instance():
        launch = run.shown(n)
        trial = run.trial(n, launch, 4000)
        host = run.inputs(n, trial)
        buffers = upload(host, run.device, trial.point.null)
        pristine = pristine_of(buffers)
        first: Buffers | None = None
        for _ in range(REPEATS):
            restore(buffers, pristine)
            run.run_port(n, launch, buffers)
            torch.cuda.synchronize()
            now = fetch(buffers, host)
            if first is None:
                first = now
            assert_same(now, first, trial, f"{instance}: runs")
    return Answer("pass", f"{REPEATS} runs of {len(run.facts.instances)} instances")


def assert_same(a: Buffers, b: Buffers, trial: Trial, what: str) -> None:
    """Every compared output holds the same bits on both sides."""
    one, two = comparable(a, trial), comparable(b, trial)
    for name, words in one.items():
        different = int(np.count_nonzero(words != two[name]))
        assert different == 0, f"{what} differ in {different} of {words.size} elements of {name} (at {trial})"


def far_rows(run: KernelRun) -> Answer:
    """Rows that start more than 2^31 elements apart from the first."""
    launches = 0
    for n, instance in run.each_instance():
        for at, launch in enumerate(instance.launches):
            if launch.far:
                far_launch(run, n, launch, at)
                launches += 1
    if not launches:
        raise Skip("no parameter of the kernel is a 64-bit stride")
    return Answer("pass", f"{launches} launches")


def far_launch(run: KernelRun, n: int, launch: Launch, at: int) -> None:
    """Strided buffers at full size on the device: filled with one byte, rows put in, run, rows taken out again."""
    trial = run.trial(n, launch, at)
    before = run.inputs(n, trial)
    need = sum(b.raw.nbytes for b in before.values() if b.sparse)
    if torch.cuda.mem_get_info(run.device)[0] < need + (2 << 30):
        raise Skip(f"needs {need >> 30} GiB of device memory")
    originals = far_side(run.run_original, run, n, launch, before)
    ports = far_side(run.run_port, run, n, launch, before)
    result = TrialResult(trial)
    compare(run.subject(n), trial, before, originals, ports, result)
    assert not any(f.is_port for f in result.findings), result.findings[0].message


def far_side(side: Callable[..., None], run: KernelRun, n: int, launch: Launch, before: Buffers) -> Buffers:
    """Run one side and bring back what it wrote; nothing may have changed between the rows."""
    sparse = [k for k, b in before.items() if b.sparse]
    device = upload({k: b for k, b in before.items() if not b.sparse}, run.device, frozenset(launch.null))
    for name in sparse:
        buffer = before[name]
        allocation = torch.full((buffer.allocation.size,), FILL, dtype=torch.uint8, device=run.device)
        device[name] = DeviceBuffer(allocation, view(buffer, allocation))
        words(device[name]).copy_(torch.from_numpy(signed(buffer.view())))
    side(n, launch, device)
    torch.cuda.synchronize()
    found = fetch({k: b for k, b in device.items() if k not in sparse}, before)
    for name in sparse:
        rows = words(device[name])
        found[name].view()[...] = rows.cpu().numpy().view(before[name].raw.dtype)
        rows.fill_(int.from_bytes(bytes([FILL]) * rows.element_size(), "little"))
        for part in device[name].allocation.split(1 << 28):
            assert bool((part == FILL).all()), f"bytes between the rows of {name} were changed ({side.__name__})"
        del rows, part
    device.clear()
    torch.cuda.empty_cache()
    return found


def words(buffer: DeviceBuffer) -> torch.Tensor:
    """The elements as integers, so that they can be filled with bits."""
    size = buffer.tensor.element_size()
    return buffer.tensor.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size])


def signed(elements: np.ndarray) -> np.ndarray:
    """The same words in a type that torch shares with `words`."""
    whole = np.ascontiguousarray(elements)
    return whole if whole.itemsize == 1 else whole.view(f"i{whole.itemsize}")


CHECKS: dict[str, Callable[[KernelRun], Answer]] = {
    "compiles": compiles, "matches": matches, "zero_rows": zero_rows, "strided": strided, "narrower": narrower,
    "refuses": refuses, "graph": graph, "stream": stream, "determinism": determinism, "far_rows": far_rows,
}  # fmt: skip


def answer(check: Callable[[KernelRun], Answer], run: KernelRun) -> Answer:
    """What a check says; never raises."""
    try:
        return check(run)
    except Skip as reason:
        return Answer("skip", str(reason))
    except AssertionError as error:
        return Answer("fail", str(error)[:1500])
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        return Answer("error", text[:1500])


def main(folder: str, name: str, seed: str, result: str) -> None:
    start = time.perf_counter()
    answers: dict[str, Answer] = {}

    def save() -> None:
        data = {"answers": {k: asdict(v) for k, v in answers.items()}, "seconds": round(time.perf_counter() - start, 1)}
        Path(result).write_text(json.dumps(data))

    try:
        bundle = read_bundle(Path(folder))
        device = torch.device("cuda", torch.cuda.current_device())
        torch.zeros(1, device=device)  # makes torch's context the current one
        torch.cuda.synchronize()
        assert arch_for(device.index) == bundle.arch, (
            f"the bundle is for {bundle.arch}, this is {arch_for(device.index)}"
        )
        run = KernelRun(bundle, bundle.kernel(name), int(seed), device)
    except Exception as error:
        answers = {c: Answer("error", f"{type(error).__name__}: {error}"[:1500]) for c in CHECKS}
        save()
        return
    for check, function in CHECKS.items():
        answers[check] = answer(function, run)
        save()  # after each: a hang loses only what comes after


if __name__ == "__main__":
    main(*sys.argv[1:5])
