"""Executes originals of public kernels in the emulator: `python -m tools.emulator_sweep` (PORTER_REAL_SOURCES set).

Every kernel that NVRTC compiles, two instances of a template, one small launch each: on its case of tests/real where
there is one, else on arguments made up from the signature. Executed means: to the end, without an instruction that is
not modelled, a deadlock or a spent budget. Accesses that made-up arguments send astray are counted apart.
Writes bench/results/emulator_sweep.json.
"""

from __future__ import annotations

import argparse
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

from porter.case import Case, load_case
from porter.cxx_types import pointee, scalar_name
from porter.expr import Value
from porter.frontend.guess import default_instances
from porter.frontend.parse import ParsedUnit, ParseOptions, parse_source
from porter.frontend.reached import instances_from_launches
from porter.instances import instance_values
from porter.model import Instance, KernelInfo, PorterError
from porter.source import Source
from porter.verify import ptx
from porter.verify.buffers import storage
from porter.verify.emulator import as_argument
from porter.verify.formats import encode
from porter.verify.inputs import make_inputs
from porter.verify.original import OriginalBuild, build_original
from porter.verify.ptx.lower import lower
from tests.real.port_public import CASES, DEFINE, INCLUDE, VARIABLE, sources_folder

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "bench/results/emulator_sweep.json"
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
    "__builtin_ctz(x)=(__ffs(x)-1)",
    "__builtin_huge_valf()=((float)(1e300*1e300))",
)  # host builtins that NVRTC lacks
INSTANCES = 2
BUFFER_BYTES = 1 << 20
BUDGET = 30_000_000  # thread-instructions, about
SECONDS = 60  # a launch
FILE_SECONDS = 1800
# Sizes and least integers in memory that are tried in turn, until a launch goes well. With least 1 (no row is empty, no
# k is 0) floats in memory are as small as the probabilities of a row. Some blocks have several dimensions.
TRIES: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (64, 0, ()),
    (128, 1, ()),
    (128, 1, (16, 16)),
    (64, 1, (4, 8, 4)),
    (32, 1, (32, 4)),
    (256, 0, ()),
    (1024, 1, ()),
    (8, 1, ()),
)
SMALL = re.compile(r"^(B|b|T|NH)$|token|batch|rows?$|seq|len|nnz|top_?k|^k$|^m$", re.I)
ZERO = re.compile(r"offset|start|begin|rank|seed|^is_|^has_|^use_|pos$", re.I)


@dataclass
class Run:
    """One instance. `outcome`: clean, astray (bad accesses: made-up arguments), stopped (by its own trap or
    assertion), refused, stuck, slow, failed."""

    file: str
    kernel: str
    instance: str
    outcome: str
    how: str = ""  # case or made-up arguments
    detail: str = ""
    opcode: str = ""
    instructions: int = 0
    violations: dict[str, int] = field(default_factory=dict)

    @property
    def executed(self) -> bool:
        return self.outcome in ("clean", "astray")


class _Slow(Exception):
    """A launch took longer than SECONDS."""


def _alarm(*_: object) -> None:
    raise _Slow


def sweep_file(path: Path, sources: Path, kernel: str = "") -> Iterator[Run]:
    """Every kernel that is defined in a file, or those whose name contains `kernel`."""
    name = str(path.relative_to(sources))
    repository = name.split("/")[0]
    include = tuple(str(sources / repository / folder) for folder in INCLUDE.get(repository, ()))
    options = ParseOptions(include_dirs=include, defines=(*DEFINE.get(repository, ()), *DEFINES), arch=ARCH)
    source = Source.read(path)
    added = {text for kernel, (text, _) in EXTRA.items() if f" {kernel}(" in source.text and repository == "flashinfer"}
    if added:
        source = replace(source, text=source.text + "".join(added))
    unit = parse_source(source, options)
    cases = {c.kernel.split("::")[-1]: c for c in map(load_case, sorted(CASES.glob("*.toml"))) if c.source == name}
    for info in (k for k in unit.kernels if kernel in k.name):
        case = cases.get(info.name)
        try:
            instances = _instances(unit, info, case)
            if not instances:
                yield Run(name, info.name, "", "not compiled", detail="no instance is known")
                continue
        except PorterError as error:
            yield Run(name, info.name, "", "not compiled", detail=str(error)[:300])
            continue
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
    order = ("clean", "astray", "stopped", "failed", "stuck", "slow", "refused")
    best: Run | None = None
    deadline = time.monotonic() + 2 * SECONDS
    for how, launch in _launches(info, case, build, module):
        this = Run(name, info.name, str(build.instance), "failed", how)
        signal.signal(signal.SIGALRM, _alarm)
        signal.alarm(SECONDS)
        try:
            result = launch()
            found = Counter(v.kind for v in result.violations)
            this.violations = dict(found)
            this.instructions = int(result.counts.get("thread_instructions", 0))
            stuck, stopped = found["deadlock"] or found["budget"], found["trap"] or found["assert"]
            this.outcome = "stuck" if stuck else "stopped" if stopped else "astray" if found else "clean"
            this.detail = str(result.violations[0])[:300] if found else ""
        except ptx.UnsupportedPtx as error:
            this.outcome, this.detail, this.opcode = "refused", str(error), error.opcode
        except _Slow:
            this.outcome = "slow"
        except Exception as error:
            this.detail = f"{type(error).__name__}: {error}"[:300]
        finally:
            signal.alarm(0)
        if best is None or order.index(this.outcome) < order.index(best.outcome):
            best = this
        if best.outcome == "clean" or this.outcome == "refused" or time.monotonic() > deadline:
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
        for point in fit[:2]:
            yield "case", lambda point=point: on_case(case, point)

    def made_up(size: int, least: int, shape: tuple[int, ...]) -> ptx.Result:
        args = [
            _argument(p.type, p.name, parameter, values, size, least)
            for p, parameter in zip(info.params, module.declarations[build.entry].params, strict=True)
        ]
        program = lower(module, build.entry)
        wanted = program.directives.get("reqntid") or program.directives.get("maxntid") or (128,)
        threads = int(np.prod(wanted))
        block: tuple[int, ...] = tuple(wanted) if program.directives.get("reqntid") else (min(threads, 128),)
        if threads > 256 and not program.directives.get("reqntid"):
            block = (min(threads, max(128, size)),)
        if (
            shape
            and not program.directives.get("reqntid")
            and int(np.prod(shape)) <= (threads if wanted[0] > 128 else 256)
        ):
            block = shape
        cluster = program.directives.get("reqnctapercluster") or (1, 1, 1)
        grid = tuple(2 * c if n == 0 else c for n, c in enumerate((*cluster, 1, 1)[:3]))
        cooperative = "grid_sync" in build.ptx or "%envreg" in build.ptx
        return ptx.launch(
            module, build.entry, grid, block, args, smem_bytes=48 << 10, checks=checks, budget=BUDGET,
            cluster=cluster, cooperative=cooperative,
        )  # fmt: skip

    for size, least, shape in TRIES:
        yield f"made-up {size}, {least}", lambda size=size, least=least, shape=shape: made_up(size, least, shape)


def _argument(type_: str, name: str, parameter: Any, values: Mapping[str, Value], size: int, least: int) -> object:
    """Something plausible: ones of the right kind in memory, small numbers for sizes, zero for offsets and flags."""
    target = pointee(type_)
    if target is None:
        if parameter.is_array:
            return np.full(parameter.size, 0, np.uint8).tobytes()
        if parameter.type.kind in "fh" or (scalar_name(str(values.get(type_, type_))) or "") in ("f32", "f64"):
            return 0.5
        if ZERO.search(name) or parameter.type.bytes == 1:
            return 0
        return min(size, 4) if SMALL.search(name) else size
    spelled = re.sub(r"\bconst\b", "", target).strip()
    dtype = scalar_name(str(values.get(spelled, spelled)))
    rng = np.random.default_rng(len(name))
    if dtype is None or dtype == "void":
        vector = re.match(r"(float|half|__half|__nv_bfloat16|nv_bfloat16|double)", spelled)
        names = {"float": "f32", "double": "f64", "half": "f16", "__half": "f16"}
        dtype = names.get(vector.group(1), "bf16") if vector else "u8"
        if not vector:
            return ptx.Buffer(np.zeros(BUFFER_BYTES, np.uint8), name)
    word = storage(dtype)
    count = BUFFER_BYTES // np.dtype(word).itemsize
    if dtype[0] in "iu" or dtype == "bool":
        return ptx.Buffer(
            rng.integers(0 if dtype == "bool" else least, 2 if dtype == "bool" else 4, count).astype(word), name
        )
    return ptx.Buffer(encode(rng.uniform(0.1, 1.0, count) * (2 / size if least else 1), dtype).astype(word), name)


# ---------------------------------------------------------------- the sweep


def record(runs: Sequence[Run]) -> dict[str, Any]:
    """The numbers that matter, then every instance that is not clean."""
    compiled = [r for r in runs if r.outcome != "not compiled"]
    executed = [r for r in compiled if r.executed]
    kernels = {(r.file, r.kernel) for r in compiled}
    good = {k for k in kernels if all(r.executed for r in compiled if (r.file, r.kernel) == k)}
    return {
        "schema": 1,
        "arch": ARCH,
        "kernels": len(kernels),
        "kernels_executed": len(good),
        "instances": len(compiled),
        "executed": len(executed),
        "share": round(len(executed) / max(1, len(compiled)), 4),
        "clean": sum(r.outcome == "clean" for r in executed),
        "astray": sum(r.outcome == "astray" for r in executed),
        "on_cases": sum(r.how == "case" for r in executed),
        "refused_by_opcode": dict(Counter(r.opcode for r in compiled if r.outcome == "refused").most_common()),
        "not_executed": [asdict(r) for r in compiled if not r.executed],
        "astray_runs": [asdict(r) for r in executed if r.outcome == "astray"],
        "not_compiled": [asdict(r) for r in runs if r.outcome == "not compiled"],
        "clean_runs": [[r.file, r.kernel, r.instance, r.how, r.instructions] for r in executed if r.outcome == "clean"],
    }


def paths(sources: Path, only: str = "") -> list[Path]:
    found = dict.fromkeys(p for pattern in FILES for p in sorted(sources.glob(pattern)))
    return [p for p in found if only in str(p)]


def sweep(sources: Path, only: str = "", kernel: str = "") -> list[Run]:
    """Each file in a process of its own: what crashes the compiler or the emulator ends that file only."""
    runs: list[Run] = []
    for path in paths(sources, only):
        start = time.monotonic()
        with tempfile.NamedTemporaryFile("r") as result:
            command = [sys.executable, "-m", "tools.emulator_sweep", "--file", str(path), "--output", result.name]
            command += ["--kernel", kernel]
            try:
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=FILE_SECONDS)
                trouble = "" if done.returncode == 0 else done.stderr[-500:]
            except subprocess.TimeoutExpired:
                trouble = f"not done after {FILE_SECONDS} s"
            these = [Run(**json.loads(line)) for line in result.read().splitlines()]
        if trouble:
            these.append(Run(str(path.relative_to(sources)), "(file)", "", "failed", detail=trouble))
        told = dict(Counter(r.outcome for r in these))
        print(f"{path.relative_to(sources)}: {told}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        runs += these
    return runs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.emulator_sweep", description=__doc__)
    parser.add_argument("--only", default="", help="files whose path contains this; nothing is recorded then")
    parser.add_argument("--kernel", default="", help="kernels whose name contains this; nothing is recorded then")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    sources = sources_folder()
    if sources is None:
        print(f"set {VARIABLE}: see tools/real_sources.py", file=sys.stderr)
        return 2
    if args.file:
        with args.output.open("w") as out:
            for run in sweep_file(args.file, sources, args.kernel):
                out.write(json.dumps(asdict(run)) + "\n")
                out.flush()
        return 0
    found = record(sweep(sources, args.only, args.kernel))
    if not args.only and not args.kernel:
        RESULT.write_text(json.dumps(found, indent=1) + "\n")
    for r in [*found["not_executed"], *found["not_compiled"], *found["astray_runs"]]:
        print(f"{r['file']} {r['kernel']}{r['instance']}: {r['outcome']} {r['opcode']} {r['detail'][:200]}")
    print(json.dumps({k: v for k, v in found.items() if not isinstance(v, list)}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
