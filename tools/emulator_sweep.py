"""Executes originals of public kernels in the emulator: `python -m tools.emulator_sweep` (PORTER_REAL_SOURCES set).

Every kernel that NVRTC compiles, two instances of a template, one small launch each: on its case where there is one,
else on arguments made up from the signature. Executed means that every thread came to the end: nothing refused, stuck,
trapped or ended at a bad access. Goes on where it was stopped; writes bench/results/emulator_sweep.json at the end.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from porter import ir
from porter.case.expressions import Value
from porter.case.instances import instance_values
from porter.case.reader import Case, load_case
from porter.cxx.types import pointee, scalar_name
from porter.files.atomic import write_atomic
from porter.frontend.instances.guess import default_instances
from porter.frontend.instances.reached import instances_from_launches
from porter.frontend.parse.source import ParsedUnit, ParseOptions, parse_source
from porter.model import Instance, KernelInfo, PorterError
from porter.source import Source
from porter.verify import emulator as ptx
from porter.verify.backends.emulator import as_argument
from porter.verify.emulator.decode.lower import lower
from porter.verify.launches.inputs import make_inputs
from porter.verify.launches.made_up import (
    ATTEMPTS,
    BUFFER_BYTES,
    SMEM_BYTES,
    ArgumentGuess,
    Bounds,
    as_device,
    launch_of,
    make_value,
)
from porter.verify.original.build import OriginalBuild, build_original
from tests.real.port_public import CASES, DEFINE, INCLUDE, VARIABLE, sources_folder
from tools.kept_lines import KeptLines, commit
from tools.sweep_launches import EDITS, GIVEN
from tools.sweep_launches import INSTANCES as MORE

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "bench/results/emulator_sweep.json"
STATE = ROOT / ".porter/emulator_sweep"  # what is known of each file, for a sweep that was stopped
REFERENCE = "reference_kernels"
ARCH = "sm_90a"
FILES = (
    "flashinfer/include/flashinfer/norm.cuh",
    "flashinfer/include/flashinfer/norm/*.cuh",
    "flashinfer/include/flashinfer/activation.cuh",
    "flashinfer/include/flashinfer/quantization.cuh",
    "flashinfer/include/flashinfer/pos_enc.cuh",
    "flashinfer/include/flashinfer/sampling.cuh",
    "vllm/csrc/layernorm*.cu",
    "vllm/csrc/activation_kernels.cu",
    "vllm/csrc/*topk*.cu*",
    "vllm/csrc/quantization/activation_kernels.cu",
    "vllm/csrc/quantization/w8a8/fp8/*.cu",
    "vllm/csrc/quantization/w8a8/int8/*.cu",
    "vllm/csrc/quantization/fused_kernels/*.cu",
    "vllm/csrc/moe/moe_align_sum_kernels.cu",
    "vllm/csrc/moe/*topk*.cu",
    "vllm/csrc/moe/topk_softplus_sqrt_kernels.cu",
    "llm.c/dev/cuda/*.cu",
)
SILU = "\n__device__ __forceinline__ float sweep_silu(const float& v) { return v / (1.0f + __expf(-v)); }\n"
EXTRA = {  # templates over functions that no file of FlashInfer defines: text to add, and instances
    "act_and_mul_kernel": (SILU, (("float", "sweep_silu", "4"), ("__nv_bfloat16", "sweep_silu", "8"))),
    "act_and_mul_split_kernel": (SILU, (("float", "sweep_silu", "4", "2"), ("__nv_bfloat16", "sweep_silu", "8", "1"))),
}
DEFINES = (
    "__builtin_ctz(x)=((x)&1?0:(x)&2?1:(x)&4?2:(x)&8?3:(x)&16?4:(x)&32?5:(x)&64?6:(x)&128?7:(x)&256?8:9)",  # < 1024
    "__builtin_huge_valf()=((float)(1e300*1e300))",
)  # host builtins that NVRTC lacks
INSTANCES = 2
BUDGET = 30_000_000  # thread-instructions, about
SECONDS = 60  # a launch
FILE_SECONDS = 1800
ENOUGH = 0.7  # of a kernel's instructions reached by a launch: then other arguments are not tried
WRITING = ("store.global", "store.generic", "atomic", "copy")  # without any, every thread left at a first test
ENDING = ("out-of-bounds", "misaligned", "read-only-write")  # violations that end the thread


@dataclass
class Run:
    """One instance. `outcome`: clean, reported (a race and the like; all threads came to the end), astray (a thread was
    ended at a bad access), stopped (its own trap or assertion), idle (wrote nothing), refused, stuck, slow, failed."""

    file: str
    kernel: str  # with the line of its definition: files have several of one name
    instance: str
    outcome: str
    how: str = ""  # case or made-up arguments
    detail: str = ""
    opcode: str = ""
    template: bool = False
    instructions: int = 0  # of all threads
    reached: float = 0.0  # share of the entry's instructions that some thread reached
    violations: dict[str, int] = field(default_factory=dict)

    @property
    def executed(self) -> bool:
        return self.outcome in ("clean", "reported")


class _Slow(Exception):
    """A launch took longer than SECONDS."""


def _alarm(*_: object) -> None:
    raise _Slow


def base_of(path: Path, sources: Path) -> Path:
    """The folder that names of files are relative to."""
    return ROOT if path.is_relative_to(ROOT / REFERENCE) else sources


def sweep_file(
    path: Path, sources: Path, kernel: str = "", skip: frozenset[str] = frozenset()
) -> Iterator[tuple[str, Iterator[Run]]]:
    """Every kernel that is defined in a file, or those whose name contains `kernel`: (kernel:line, its runs)."""
    name = str(path.relative_to(base_of(path, sources)))
    repository = name.split("/")[0]
    include = tuple(str(sources / repository / folder) for folder in INCLUDE.get(repository, ()))
    options = ParseOptions(include_dirs=include, defines=(*DEFINE.get(repository, ()), *DEFINES), arch=ARCH)
    source = Source.read(path)
    added = {text for kernel, (text, _) in EXTRA.items() if f" {kernel}(" in source.text and repository == "flashinfer"}
    if added:
        source = replace(source, text=source.text + "".join(added))
    for old, new in EDITS.get(name, ()):
        source = replace(source, text=source.text.replace(old, new))
    unit = parse_source(source, options)
    if repository == REFERENCE:
        cases = [load_case(path.with_suffix(".case.toml"))]
    else:
        cases = [c for c in map(load_case, sorted(CASES.glob("*.toml"))) if c.source == name]
    by_kernel = {c.kernel.split("::")[-1]: c for c in cases}
    for info in (k for k in unit.kernels if kernel in k.name):
        label = f"{info.name}:{info.span.line}"
        if label not in skip:
            yield label, _labelled(label, info, _runs(name, info, by_kernel.get(info.name), unit, options))


def _labelled(label: str, info: KernelInfo, runs: Iterator[Run]) -> Iterator[Run]:
    for run in runs:
        run.kernel, run.template = label, info.is_template
        yield run


def _runs(name: str, info: KernelInfo, case: Case | None, unit: ParsedUnit, options: ParseOptions) -> Iterator[Run]:
    try:
        instances = _instances(unit, info, case)
    except PorterError as error:
        yield Run(name, info.name, "", "not compiled", detail=str(error)[:300])
        return
    if not instances:
        yield Run(name, info.name, "", "not compiled", detail="no instance is known")
    for instance in instances:
        try:
            (build,) = build_original(unit.source, options, info, (instance,), unit=unit)
        except PorterError as error:
            yield Run(name, info.name, str(instance), "not compiled", detail=str(error)[:300])
            continue
        yield run_instance(name, info, case, build)


def _instances(unit: ParsedUnit, info: KernelInfo, case: Case | None) -> Sequence[Instance]:
    if info.name in EXTRA and "sweep_silu" in unit.source.text:
        return [Instance(args) for args in EXTRA[info.name][1]]
    known = MORE.get(info.name) or (GIVEN[info.name].instances if info.name in GIVEN else ())
    if known:
        return [Instance(args) for args in known]
    found = [i.instance for i in case.instances] if case else list(instances_from_launches(unit, info))
    if not found:
        found = list(default_instances(info, unit))
    if info.is_template and all(p.default for p in info.template_params):  # NVRTC wants them spelled
        defaults = tuple(p.default for p in info.template_params)
        found = [i if i.args else Instance(defaults) for i in found]
    step = max(1, (len(found) - 1) // (INSTANCES - 1)) if len(found) > INSTANCES else 1
    return found[::step][:INSTANCES]


def run_instance(name: str, info: KernelInfo, case: Case | None, build: OriginalBuild) -> Run:
    """The best of a few launches: the first one that goes well ends the search."""
    run = Run(name, info.name, str(build.instance), "failed")
    try:
        module = ptx.load(build.ptx)
        lower(module, build.entry)
    except ptx.UnsupportedPtx as error:
        run.outcome, run.detail, run.opcode = "refused", str(error), error.opcode
        return run
    except Exception as error:  # whatever the emulator does wrong is what the sweep is for
        run.detail = f"{type(error).__name__}: {error}"
        return run
    order = ("clean", "reported", "idle", "astray", "stopped", "failed", "stuck", "slow", "refused")
    best: Run | None = None
    deadline = time.monotonic() + 2 * SECONDS
    for how, launch in _launches(info, case, build, module):
        if best is not None and best.how == "case" != how and best.executed:
            break
        this = Run(name, info.name, str(build.instance), "failed", how)
        signal.signal(signal.SIGALRM, _alarm)
        signal.alarm(SECONDS)
        try:
            result = launch()
            found = Counter(v.kind for v in result.violations)
            this.violations = dict(found)
            this.instructions = int(result.counts.get("thread_instructions", 0))
            stuck, stopped = found["deadlock"] or found["budget"], found["trap"] or found["assert"]
            this.reached = round(result.counts.get("instructions_reached", 0) / result.counts.get("instructions", 1), 3)
            astray = any(found[kind] for kind in ENDING)
            idle = not any(result.counts.get("by_kind", {}).get(kind) for kind in WRITING)
            this.outcome = (
                "stuck" if stuck else "stopped" if stopped else "astray" if astray else "idle" if idle
                else "reported" if found else "clean"
            )  # fmt: skip
            this.detail = str(result.violations[0])[:300] if found else ""
        except ptx.UnsupportedPtx as error:
            this.outcome, this.detail, this.opcode = "refused", str(error), error.opcode
        except _Slow:
            this.outcome = "slow"
        except Exception as error:
            this.detail = f"{type(error).__name__}: {error}"[:300]
        finally:
            signal.alarm(0)
        if best is None or (order.index(this.outcome), -this.reached) < (order.index(best.outcome), -best.reached):
            best = this
        well = best.outcome == "clean" and best.reached >= ENOUGH
        if well or this.outcome == "refused" or time.monotonic() > deadline:
            break
    assert best is not None
    return best


def _launches(info: KernelInfo, case: Case | None, build: OriginalBuild, module: ptx.Module) -> Iterator[Any]:
    """(how, a function that launches): points of the case first, then made-up arguments."""
    try:
        values = dict(instance_values(info, build.instance))
    except PorterError:  # arguments that are no numbers; only made-up values need them
        values = {}
    checks = ptx.Checks(uninitialised=False)

    def on_case(case: Case, point: Any) -> ptx.Result:
        shape = case.launch_at(point, values)
        buffers = make_inputs(case, point, values)
        args = []
        for p in info.params:
            if pointee(p.type) is None:
                args.append(point.scalars[p.name])
            else:
                args.append(None if p.name in point.null else as_argument(buffers[p.name]))
        return ptx.launch(
            module, build.entry, shape.grid, shape.block, args, smem_bytes=shape.smem, checks=checks, budget=BUDGET,
            cooperative=shape.cooperative, cluster=shape.cluster,
        )  # fmt: skip

    if case is not None:
        chosen = next((i for i in case.instances if i.instance == build.instance), case.instances[0])
        points = case.instance_points(chosen, values)
        fit = [p for p in points if not case.launch_at(p, values).is_empty and p.elements >= 64]
        fit.sort(key=lambda p: p.elements)
        for point in dict.fromkeys((0, len(fit) // 2, len(fit) - 1)) if fit else ():
            yield "case", lambda point=fit[point]: on_case(case, point)

    def made_up(attempt: ArgumentGuess) -> ptx.Result:
        args = [
            _argument(p.type, p.name, parameter, values, attempt)
            for p, parameter in zip(info.params, module.declarations[build.entry].params, strict=True)
        ]
        told = lower(module, build.entry).directives
        bounds = Bounds(*(told.get(name, ()) for name in ("reqntid", "maxntid", "reqnctapercluster")))
        grid, block, cluster = launch_of(attempt, bounds)
        cooperative = "grid_sync" in build.ptx or "%envreg" in build.ptx
        return ptx.launch(
            module, build.entry, grid, block, args, smem_bytes=SMEM_BYTES, checks=checks, budget=BUDGET,
            cluster=cluster, cooperative=cooperative,
        )  # fmt: skip

    if info.name in GIVEN:
        given = GIVEN[info.name]
        yield "given", lambda: ptx.launch(
            module, build.entry, given.grid, given.block, given.arguments(), smem_bytes=given.smem, checks=checks,
            budget=BUDGET, cluster=lower(module, build.entry).directives.get("reqnctapercluster") or (1, 1, 1),
        )  # fmt: skip
        return
    for attempt in ATTEMPTS:
        yield f"made-up: {attempt}", lambda attempt=attempt: made_up(attempt)


def _argument(type_: str, name: str, parameter: Any, values: Mapping[str, Value], attempt: ArgumentGuess) -> object:
    """As porter.verify.launches.made_up, for a parameter that is known by its C++ spelling; structs are zeros."""
    target = pointee(type_)
    if target is None:
        if parameter.is_array:
            return np.full(parameter.size, 0, np.uint8).tobytes()
        floating = parameter.type.kind in "fh" or scalar_name(str(values.get(type_, type_))) in ("f32", "f64")
        if floating:
            return 0.5
        return as_device(make_value(name, ir.Scalar(f"u{8 * parameter.type.bytes}"), attempt))
    spelled = re.sub(r"\bconst\b", "", target).strip()
    dtype = scalar_name(str(values.get(spelled, spelled)))
    if dtype is None or dtype == "void":
        vector = re.match(r"(float|half|__half|__nv_bfloat16|nv_bfloat16|double)", spelled)
        names = {"float": "f32", "double": "f64", "half": "f16", "__half": "f16"}
        if not vector:
            return ptx.Buffer(np.zeros(BUFFER_BYTES, np.uint8), name)
        dtype = names.get(vector.group(1), "bf16")
    return as_device(make_value(name, ir.Pointer(ir.Scalar(dtype)), attempt))


# ---------------------------------------------------------------- the sweep


def record(runs: Sequence[Run], commits: Sequence[str] = ()) -> dict[str, Any]:
    """The numbers that matter, then every instance that is not clean. A kernel counts once, when all its instances are
    executed; what has an instance that NVRTC compiles is a kernel."""
    compiled = [r for r in runs if r.outcome != "not compiled"]
    executed = [r for r in compiled if r.executed]
    by_kernel: dict[tuple[str, str], list[Run]] = {}
    for r in compiled:
        by_kernel.setdefault((r.file, r.kernel), []).append(r)
    good = [k for k, these in by_kernel.items() if all(r.executed for r in these)]
    single = [f"{f} {k}" for (f, k), these in by_kernel.items() if these[0].template and len(these) < INSTANCES]
    reached = sorted(r.reached for r in executed)
    by_repository: dict[str, list[int]] = {}
    for kernel in by_kernel:
        counts = by_repository.setdefault(kernel[0].split("/")[0], [0, 0])
        counts[0] += 1
        counts[1] += kernel in good
    names = {(r.file, r.kernel) for r in runs}
    return {
        "schema": 2,
        "arch": ARCH,
        "date": datetime.date.today().isoformat(),
        "commits": sorted(set(commits)),
        "kernels": len(by_kernel),
        "kernels_executed": len(good),
        "share": round(len(good) / max(1, len(by_kernel)), 4),
        "kernels_not_compiled": len(names - set(by_kernel)),
        "by_repository": {
            name: dict(zip(("kernels", "executed"), n, strict=True)) for name, n in by_repository.items()
        },
        "instances": len(compiled),
        "executed": len(executed),
        "clean": sum(r.outcome == "clean" for r in executed),
        "reported": sum(r.outcome == "reported" for r in executed),
        "on_cases": sum(r.how == "case" for r in executed),
        "median_reached": reached[len(reached) // 2] if reached else 0.0,
        "reached_less_than_half": sum(r < 0.5 for r in reached),
        "refused_by_opcode": dict(Counter(r.opcode for r in compiled if r.outcome == "refused").most_common()),
        "templates_with_one_instance": single,
        "not_executed": [asdict(r) for r in compiled if not r.executed],
        "reported_runs": [asdict(r) for r in executed if r.outcome == "reported"],
        "not_compiled": [asdict(r) for r in runs if r.outcome == "not compiled"],
        "clean_runs": [
            [r.file, r.kernel, r.instance, r.how, r.instructions, r.reached] for r in executed if r.outcome == "clean"
        ],
    }


def paths(sources: Path, only: str = "") -> list[Path]:
    found = sorted((ROOT / REFERENCE).glob("*/*.cu"))
    found += [p for pattern in FILES for p in sorted(sources.glob(pattern))]
    return [p for p in dict.fromkeys(found) if only in str(p)]


def sweep(sources: Path, state: Path, only: str = "", kernel: str = "") -> tuple[list[Run], list[str]]:
    """Runs, and the commits that they were made at. Each file in a process of its own; a kernel that crashes it, or
    takes too long, is `failed`, and a new process goes on behind it. What `state` holds is not run again."""
    runs: list[Run] = []
    commits: set[str] = set()
    for path in paths(sources, only):
        name = str(path.relative_to(base_of(path, sources)))
        kept = kept_lines(state, name)
        start = time.monotonic()
        while not kept.finished:
            command = [sys.executable, "-m", "tools.emulator_sweep", "--file", str(path), "--state", str(state)]
            try:
                done = subprocess.run(
                    [*command, "--kernel", kernel], cwd=ROOT, capture_output=True, text=True, timeout=FILE_SECONDS
                )
                trouble = done.stderr[-500:] or f"exit code {done.returncode}"
            except subprocess.TimeoutExpired:
                trouble = f"not done after {FILE_SECONDS} s"
            if kept.finished:
                break
            begun = kept.begun  # "": not one kernel's fault, the file cannot be read
            kept.end(begun, [asdict(Run(name, begun or "(file)", "", "failed", detail=trouble))])
            if not begun:
                kept.finish()
        these = [Run(**line) for line in kept.results]
        commits |= kept.commits
        told = dict(Counter(r.outcome for r in these))
        print(f"{name}: {told}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        runs += these
    return runs, sorted(commits)


def kept_lines(state: Path, name: str) -> KeptLines:
    return KeptLines(state / (name.replace("/", "!") + ".jsonl"))


def one_file(path: Path, sources: Path, kernel: str, state: Path) -> None:
    """The work of a file's process: goes on behind the last kernel that was done."""
    kept = kept_lines(state, str(path.relative_to(base_of(path, sources))))
    at = commit()
    for label, runs in sweep_file(path, sources, kernel, kept.done):
        kept.begin(label, at)
        kept.end(label, [asdict(run) for run in runs])
    kept.finish()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.emulator_sweep", description=__doc__)
    parser.add_argument("--only", default="", help="files whose path contains this; nothing is recorded then")
    parser.add_argument("--kernel", default="", help="kernels whose name contains this; nothing is kept or recorded")
    parser.add_argument("--again", action="store_true", help="run again what an earlier sweep has run")
    parser.add_argument("--state", type=Path, default=STATE, help="where a sweep that is stopped goes on")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    sources = sources_folder()
    if sources is None:
        print(f"set {VARIABLE}: see tools/real_sources.py", file=sys.stderr)
        return 2
    if args.file:
        one_file(args.file, sources, args.kernel, args.state)
        return 0
    if args.again and not args.kernel:
        for path in paths(sources, args.only):
            kept_lines(args.state, str(path.relative_to(base_of(path, sources)))).path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as fresh:
        found = record(*sweep(sources, Path(fresh) if args.kernel else args.state, args.only, args.kernel))
    if not args.only and not args.kernel:
        write_atomic(RESULT, json.dumps(found, indent=1) + "\n")
    for r in [*found["not_executed"], *found["not_compiled"], *found["reported_runs"]]:
        print(f"{r['file']} {r['kernel']}{r['instance']}: {r['outcome']} {r['opcode']} {r['detail'][:200]}")
    lists = ("not_executed", "not_compiled", "reported_runs", "clean_runs", "templates_with_one_instance")
    print(json.dumps({k: v for k, v in found.items() if k not in lists}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
