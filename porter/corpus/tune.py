"""The autotuner: times every candidate of an op's plan on this GPU and writes the device's tuning table.

`python -m porter.corpus.tune rms_norm qk_norm`. Needs a GPU, torch and CuTeDSL, nothing else of porter.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from porter.corpus.configurations import arguments
from porter.corpus.models import options
from porter.corpus.models.calls import ModelCalls
from porter.corpus.runtime import tuning
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import OPS, Op, Unsupported
from porter.corpus.runtime.specialisation import Specialisation, compiled

TOKENS = (1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
MARGIN = 0.99  # a choice must beat the plan's own rule by a hundredth to be kept
CLOSE = 1.03  # choices this near to the quickest are timed again, on other tensors: their places in memory matter too
FINALISTS = 12


@dataclass(frozen=True)
class Case:
    """One op at one size."""

    op: str
    dims: tuple[tuple[str, int], ...]
    tokens: int
    dtype: str

    def arguments(self, device: str) -> tuple[Any, ...]:
        from porter.corpus.ops.workloads import WORKLOADS
        from porter.corpus.runtime.dtypes import torch_type

        return WORKLOADS[self.op].make(self.tokens, torch_type(self.dtype), device, **dict(self.dims))

    def __str__(self) -> str:
        return f"{self.op} {self.dtype} {' '.join(f'{k}={v}' for k, v in self.dims)} tokens={self.tokens}"


@dataclass(frozen=True)
class ModelCase:
    """One call that an engine makes for a model: `call` is its configuration (see porter.corpus.configurations)."""

    op: str
    call: str  # as JSON
    tokens: int

    def arguments(self, device: str) -> tuple[Any, ...]:
        return arguments(json.loads(self.call), self.tokens, device)

    def __str__(self) -> str:
        return f"{self.op} for {', '.join(json.loads(self.call)['for'])}, tokens={self.tokens}"


AnyCase = Case | ModelCase


def model_cases(found: ModelCalls, device: Device) -> dict[ModelCase, tuning.Question]:
    """What there is to tune for a model, with what the plan asks: each entry of the table once."""
    cases: dict[tuple[str, str, int], tuple[ModelCase, tuning.Question]] = {}
    for call in found.calls:
        for tokens in call["tokens"]:
            case = ModelCase(call["op"], json.dumps(call), tokens)
            try:
                _, question = plan_choice(case, device, {})
            except Unsupported:
                continue  # the fallback runs
            except NothingToTune:
                continue
            # the last counts: first layers, which have no residual, come first
            cases[question.op, question.key, question.tokens] = case, question
    return dict(cases.values())


class NothingToTune(ValueError):
    """Raised for a case whose plan has no choices."""


def plan_choice(case: AnyCase, device: Device, choice: tuning.Choice) -> tuple[Specialisation, tuning.Question]:
    """The kernel that a choice leads to, and what the plan asked. Raises ValueError for a choice that does not fit."""
    with tuning.forced(choice) as questions:
        plan = OPS[case.op].plan(device, *case.arguments("meta"))
    if plan is None or not questions:
        raise NothingToTune(f"{case} has nothing to tune")
    return plan[0], questions[0]


def kernels_of(case: AnyCase, device: Device) -> dict[Specialisation, tuning.Choice]:
    """Every different kernel of a case with its choice, the plan's own rule first."""
    kernel, question = plan_choice(case, device, {})
    found: dict[Specialisation, tuning.Choice] = {kernel: question.default}
    for choice in question.candidates():
        try:
            found.setdefault(plan_choice(case, device, choice)[0], choice)
        except ValueError:
            continue
    return found


def tune(cases: Sequence[AnyCase], device: Device, jobs: int, rounds: int) -> list[tuning.Entry]:
    """Compile all candidates in `jobs` processes, then time them one case after the other."""
    candidates = {case: kernels_of(case, device) for case in cases}
    todo = list(dict.fromkeys((k, device.arch) for kernels in candidates.values() for k in kernels))
    print(f"{len(cases)} cases, {len(todo)} kernels to compile", file=sys.stderr, flush=True)
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        broken = {key for key, ok in zip(todo, pool.imap(_compile, todo, chunksize=4), strict=True) if not ok}
    entries = []
    for case, kernels in candidates.items():
        usable = {k: c for k, c in kernels.items() if (k, device.arch) not in broken}
        entry = _best(case, device, usable, rounds)
        entries.append(entry)
        print(
            f"{case}: {dict(entry.choice)} {entry.us:.2f} us, the rule's {entry.default_us:.2f} us", file=sys.stderr,
            flush=True,
        )  # fmt: skip
    return entries


def _compile(key: tuple[Specialisation, str]) -> bool:
    try:
        compiled(*key)
        return True
    except Exception as error:  # a candidate that does not compile is no candidate
        print(f"{key[0]}: {type(error).__name__}: {error}", file=sys.stderr)
        return False


def _best(case: AnyCase, device: Device, kernels: dict[Specialisation, tuning.Choice], rounds: int) -> tuning.Entry:
    op, choices = OPS[case.op], list(kernels.values())
    times = time_choices(op, case, device, choices, rounds)
    order = sorted(range(1, len(times)), key=times.__getitem__)
    close = [0, *(i for i in order[:FINALISTS] if times[i] <= CLOSE * min(times))]
    choices = [choices[i] for i in close]
    times = time_choices(op, case, device, choices, 3 * rounds)
    _, question = plan_choice(case, device, {})
    default_us, best = times[0], min(range(len(times)), key=times.__getitem__)
    if times[best] > MARGIN * default_us:
        best = 0
    return tuning.Entry(
        question.op, question.key, question.tokens, choices[best], round(times[best], 3), round(default_us, 3)
    )


def time_choices(op: Op, case: AnyCase, device: Device, choices: Sequence[tuning.Choice], rounds: int) -> list[float]:
    """Microseconds a launch for each choice: a CUDA graph of launches that rotate through enough arguments to make
    twice the L2 cache, replays interleaved, the median."""
    import torch

    one = case.arguments("cuda")
    nbytes = sum(a.nbytes for a in one if torch.is_tensor(a))
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    sets = max(1, min(1000, -(-2 * l2 // nbytes)))
    calls = max(sets, 20)
    arguments = [one, *(case.arguments("cuda") for _ in range(sets - 1))]
    graphs = []
    for choice in choices:
        with tuning.forced(choice):
            launch = op.launcher(device, tuple(without_memory(a) for a in one))
        launch(*one)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for i in range(calls):
                launch(*arguments[i % sets])
        graphs.append(graph)
    times: list[list[float]] = [[] for _ in choices]
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for turn in range(rounds + 1):
        for graph, found in zip(graphs, times, strict=True):
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            if turn:
                found.append(start.elapsed_time(end) * 1e3 / calls)
    return [statistics.median(t) for t in times]


def without_memory(a: Any) -> Any:
    """A tensor without memory like `a`, strides included; anything else as it is."""
    import torch

    return torch.empty_strided(a.shape, a.stride(), dtype=a.dtype, device="meta") if torch.is_tensor(a) else a


def versions() -> dict[str, str]:
    """What the measurements depend on besides the device."""
    import torch

    found = {"torch": torch.__version__, "cuda": str(torch.version.cuda)}
    for name in ("nvidia-cutlass-dsl", "apache-tvm-ffi"):
        found[name] = importlib.metadata.version(name)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """The command line of the tuner; returns its exit code."""
    parser = argparse.ArgumentParser(prog="porter tune", description=(__doc__ or "").split("\n")[0])
    add_arguments(parser)
    return run(parser.parse_args(argv))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("ops", nargs="*", metavar="OP", help="ops to tune (default: all)")
    parser.add_argument("--tokens", metavar="N,N,...", type=options.numbers, default=TOKENS, help="default: 1 to 8192")
    parser.add_argument(
        "--dims", metavar="NAME=N", action="append", default=[], help="only sizes with this (repeatable)"
    )
    parser.add_argument("--dtype", default="bf16", help="scalar name of the rows (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="timed replays of each candidate (default: %(default)s)")
    parser.add_argument("--jobs", type=int, help="compile processes (default: one per core)")
    parser.add_argument("--output", type=Path, help="file to write (default: the package's table of this device)")
    parser.add_argument("--arch", default="sm_90a", help="of a dry run without a GPU (default: %(default)s)")
    options.add_arguments(parser, "tune")


def run(args: argparse.Namespace) -> int:
    """Tune what the arguments say; 0, or 2 where there is no GPU, no such op, or no such model."""
    import torch

    from porter.corpus.ops.workloads import WORKLOADS
    from porter.corpus.runtime.device import device_of

    known = [name for name, workload in WORKLOADS.items() if workload.tuned]
    unknown = [name for name in args.ops if name not in known]
    try:
        if unknown:
            raise ValueError(f"no workload for {', '.join(unknown)}; known: {', '.join(known)}")
        options.check(args, "ops" if args.ops else "--dims" if args.dims else None)
        if not torch.cuda.is_available() and not args.dry_run:
            raise ValueError("this needs an NVIDIA GPU and a torch that sees it")
        on_gpu = torch.cuda.is_available()
        device = device_of(torch.empty(0, device="cuda")) if on_gpu else Device(args.arch, 132)
        found = None if args.model is None else options.calls(args, device.arch)
        asked = {} if found is None else model_cases(found, device)
    except ValueError as error:
        print(f"porter tune: {error}", file=sys.stderr)
        return 2
    if found is not None and args.dry_run:
        counts = [sum(json.loads(case.call) == call for case in asked) for call in found.calls]
        options.show(args, found, {"entries": counts})
        return 0
    cases: list[AnyCase] = list(asked)
    if found is None:
        cases = [
            Case(name, tuple(dims.items()), tokens, args.dtype)
            for name in args.ops or known
            for dims in WORKLOADS[name].dims
            if not args.dims or any(f"{k}={v}" in args.dims for k, v in dims.items())
            for tokens in args.tokens
        ]
    entries = tune(cases, device, args.jobs or os.cpu_count() or 1, args.rounds)
    output = args.output or tuning.FOLDER / f"{tuning.slug(device.name)}.json"
    tuning.write(output, device, versions(), entries)
    if args.json:
        listed = {} if found is None else options.as_json(found)
        print(json.dumps({**listed, "entries": [asdict(e) for e in entries], "output": str(output)}, indent=1))
    else:
        print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
