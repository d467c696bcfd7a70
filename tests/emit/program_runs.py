"""Runs programs of the generator: original by NVRTC and port by CuTeDSL, on the emulator, on the same bytes.

`python -m tests.emit.program_runs --programs 2000 --record` is the sweep whose result is committed;
`--seed S` shows one program, its port and where they differ.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from porter import __version__
from porter.emit.module import emit_module
from porter.emit.plan import PlanOptions, make_plan
from porter.frontend.instances.choice import specialise
from porter.frontend.lower.kernel import lower_kernel
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.model import Instance
from porter.source import Source
from porter.verify import emulator as ptx
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.original.nvrtc import Program, compile_program
from tests.emit.program_generator import BLOCK, GRID, INPUTS, INSTANCES, program

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "bench/results/programs.json"
OPTIONS = ["--gpu-architecture=sm_90a", "--std=c++17", "-default-device"]
THREADS = BLOCK * GRID
BATCH = 20  # programs of one file: one parse, one NVRTC compilation


@dataclass(frozen=True)
class Outcome:
    """What became of a program: `kind` is equal, different, hole, not_ported, not_compiled or violation."""

    seed: int
    kind: str
    detail: str = ""


def inputs(seed: int) -> np.ndarray:
    """Small and large numbers of both signs, zeros and ends of ranges."""
    rng = np.random.default_rng(seed)
    count = THREADS * INPUTS
    values = rng.integers(0, 2**32, count, dtype=np.uint64)
    small = rng.random(count)
    values = np.where(small < 0.5, rng.integers(-20, 20, count).astype(np.uint64), values)
    edges = np.array([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F, 0x80, 0xFF, 0x8000], np.uint64)
    values = np.where(small > 0.9, rng.choice(edges, count), values)
    return values.astype(np.uint32)


def run(seeds: Sequence[int], folder: Path, others: Sequence[tuple[int, bool]] = ()) -> Iterator[Outcome]:
    """The outcome of the program of each seed. With `others` the port that is made for INSTANCES runs at these
    template arguments instead, beside the original there: programs of templates only."""
    names = {seed: f"p{seed}" for seed in seeds}
    made = {seed: program(seed, name) for seed, name in names.items()}
    file = folder / f"programs_{seeds[0]}.cu"
    file.write_text("\n".join(text for text, _ in made.values()))
    source = Source.read(file)
    arguments = {seed: _arguments(template, INSTANCES) for seed, (_, template) in made.items()}
    ran = {seed: _arguments(template, others or INSTANCES) for seed, (_, template) in made.items()}
    expressions = [names[seed] + str(i) for seed in seeds for i in ran[seed]]
    original = compile_program(Program(source.text, file.name, options=OPTIONS, expressions=expressions))
    if not original.ok:
        raise AssertionError(f"the generator wrote what NVRTC does not take:\n{original.log}")
    module = ptx.load(original.ptx)
    unit = parse_source(source, ParseOptions())
    infos = {info.name: info for info in unit.kernels}
    jobs = [(infos[names[seed]], i) for seed in seeds for i in arguments[seed]]
    whole, cursors = specialise(source, ParseOptions(), jobs)
    for seed in seeds:
        info = infos[names[seed]]
        try:
            kernels = [lower_kernel(whole, cursors[info.qualified_name, i], info, i) for i in arguments[seed]]
            port = emit_module(make_plan(kernels, info, None, PlanOptions(source=source, instances=arguments[seed])))
        except Exception as error:  # a defect of porter: an outcome like the others
            yield Outcome(seed, "not_ported", f"{type(error).__name__}: {error}")
            continue
        if port.holes:
            yield Outcome(seed, "hole", str(port.holes[0]))
            continue
        path = folder / f"{names[seed]}.py"
        path.write_text(port.text)
        entries = [original.lowered[names[seed] + str(i)] for i in ran[seed]]
        constexprs = [{"N": n, "F": f} for n, f in others or INSTANCES] if made[seed][1] else [{}]
        yield _compared(seed, path, module, entries, constexprs)


def _arguments(template: bool, values: Sequence[tuple[int, bool]]) -> tuple[Instance, ...]:
    if not template:
        return (Instance(),)
    return tuple(Instance((str(n), str(f).lower())) for n, f in values)


def _compared(
    seed: int, port: Path, module: Any, entries: Sequence[str], constexprs: Sequence[dict[str, Any]]
) -> Outcome:
    made = compile_port(port, [CompileRequest(c, "sm_90a") for c in constexprs])
    for which, (result, entry) in enumerate(zip(made, entries, strict=True)):
        if not result.ok:
            return Outcome(seed, "not_compiled", f"line {result.line}: {result.error[:300]}")
        ported = ptx.load(result.ptx)
        for draw in (1, 2):
            found = []
            for code, name in ((module, entry), (ported, result.entry)):
                out = np.zeros(THREADS, np.uint64)
                buffers = [ptx.Buffer(a, name=n, initialised=True) for n, a in (("in", inputs(draw)), ("out", out))]
                launched = ptx.launch(code, name, grid=GRID, block=BLOCK, args=[*buffers, np.int32(THREADS - 9)])
                # LLVM joins loads of a local array over elements that nobody reads, and drops what was stored there
                seen = [v for v in launched.violations if "of local" not in str(v)]
                if seen:
                    side = "original" if code is module else "port"
                    return Outcome(seed, "violation", f"{side}: {seen[0]}")
                found.append(out)
            wrong = np.flatnonzero(found[0] != found[1])
            if len(wrong):
                at = int(wrong[0])
                values = f"{found[0][at]:#x} in the original, {found[1][at]:#x} in the port"
                return Outcome(
                    seed, "different", f"instance {which}, draw {draw}, {len(wrong)} threads, [{at}]: {values}"
                )
    return Outcome(seed, "equal")


def sweep(first: int, count: int, folder: Path) -> Iterator[Outcome]:
    """The outcomes of `count` programs from seed `first` on."""
    seeds = range(first, first + count)
    for start in range(0, count, BATCH):
        yield from run(seeds[start : start + BATCH], folder)


def record(outcomes: Sequence[Outcome], first: int, seconds: float) -> dict[str, Any]:
    """The committed result of a sweep."""

    def git(*args: str) -> str:
        return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    dirty = "+" if git("status", "--porcelain", "--untracked-files=no") else ""
    return {
        "schema": 1,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": git("rev-parse", "--short=10", "HEAD") + dirty,
        "versions": {"porter": __version__, **{p: version(p) for p in ("nvidia-cutlass-dsl", "nvidia-cuda-nvrtc")}},
        "arch": "sm_90a",
        "first_seed": first,
        "programs": len(outcomes),
        "templates": sum(o.seed % 4 == 3 for o in outcomes),
        "cpu_seconds": round(seconds),
        "outcomes": dict(sorted(Counter(o.kind for o in outcomes).items())),
        "not_equal": [{"seed": o.seed, "kind": o.kind, "detail": o.detail} for o in outcomes if o.kind != "equal"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="show this program, its port and the outcome")
    parser.add_argument("--record", action="store_true", help=f"write {RESULT.relative_to(ROOT)}")
    args = parser.parse_args()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.seed is not None:
            outcomes = list(run([args.seed], folder))
            print(program(args.seed, f"p{args.seed}")[0])
            for port in folder.glob("*.py"):
                print(port.read_text().partition("@cute.jit\ndef _launch")[0])
            print(outcomes[0])
            return outcomes[0].kind != "equal"
        start = time.process_time()
        for outcome in sweep(args.first, args.programs, folder):
            outcomes.append(outcome)
            if outcome.kind != "equal":
                print(outcome, flush=True)
            if len(outcomes) % 100 == 0:
                print(len(outcomes), file=sys.stderr, flush=True)
        result = record(outcomes, args.first, time.process_time() - start)
    print(json.dumps(result["outcomes"]))
    if args.record:
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
    return any(o.kind != "equal" for o in outcomes)


if __name__ == "__main__":
    sys.exit(main())
