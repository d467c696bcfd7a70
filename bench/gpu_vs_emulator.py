"""Compares what originals and ports left on a GPU (tools/gpu/programs.py) with the emulator, on the same bytes.

`python -m bench.gpu_vs_emulator BUNDLE INPUTS OUTPUTS.npz` writes bench/results/gpu_vs_emulator.json. Every word that a
program may write is compared. A difference is explained when it is no more than approximate instructions may make: the
spread of the output when the emulator moves their results to the bounds of the PTX ISA, and one ulp.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from porter.case.reader import FLOAT_NAMES, LaunchShape, load_case
from porter.corpus.runtime.cubin import _sections
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.model import Instance
from porter.source import Source
from porter.verify import emulator as ptx
from porter.verify.backends.emulator import as_argument
from porter.verify.checks.ptx_stats import function_texts
from porter.verify.compile.worker import CompileRequest, compile_port
from porter.verify.launches.buffers import Buffers
from porter.verify.numerics.formats import decode
from porter.verify.numerics.segments import canonical_rows, groups
from porter.verify.numerics.tolerance import approximations
from porter.verify.numerics.ulps import ulp_distance, ulp_size
from porter.verify.original.build import build_original
from tools.gpu.manifest import Bundle, KernelFacts, Launch, read_bundle
from tools.gpu.programs import SIDES, inputs, key, programs, with_bytes

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "bench/results/gpu_vs_emulator.json"
FLOATS = (*FLOAT_NAMES, "e4m3", "e5m2")
DIRECTIONS: tuple[tuple[float | str, int], ...] = ((-1.0, 0), (1.0, 0), *(("random", seed) for seed in range(6)))


@dataclass
class Comparison:
    """One program (a kernel's original or port) over all its launches; counts are of words."""

    kernel: str
    side: str
    launches: int = 0
    words: int = 0
    written: int = 0  # words that the GPU left other than they were
    different: int = 0
    explained: int = 0
    unexplained: int = 0
    unspecified: int = 0  # differences in words whose value the case leaves open
    max_ulp: int = 0
    approximations: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Program:
    """One instance as the emulator runs it."""

    module: ptx.Module
    entry: str
    text: str


def emulated_programs(bundle: Bundle, kernel: KernelFacts) -> tuple[dict[tuple[int, str], Program], bool]:
    """PTX of every instance and side, compiled here; and whether the original's code is the bundle's."""
    case = bundle.case(kernel)
    path = next((ROOT / "reference_kernels").rglob(f"{kernel.name}.case.toml"))
    source = Source.read(load_case(path).source_path)
    options = ParseOptions(arch=bundle.arch)
    unit = parse_source(source, options)
    info = unit.kernel(case.kernel)
    assert info is not None
    wanted = [Instance(tuple(i.args)) for i in kernel.instances]
    builds = build_original(source, options, info.qualified_name, wanted, ("ptx", "cubin"), unit=unit)
    port = bundle.folder / kernel.port
    compiled = compile_port(port, [CompileRequest(dict(i.values), bundle.arch) for i in kernel.instances])
    texts = function_texts(builds[0].ptx)
    module = ptx.load(builds[0].ptx)
    found = {}
    for n, (build, made) in enumerate(zip(builds, compiled, strict=True)):
        assert made.ok, f"{kernel.name} {wanted[n]}: {made.error}"
        found[n, "original"] = Program(module, build.entry, texts[build.entry])
        found[n, "port"] = Program(ptx.load(made.ptx), made.entry, function_texts(made.ptx)[made.entry])
    same = machine_code(builds[0].cubin) == machine_code((bundle.folder / kernel.cubin).read_bytes())
    return found, same


def machine_code(cubin: bytes) -> dict[str, bytes]:
    """The instructions of each kernel, without line tables, which hold paths."""
    return {s.name: s.data for s in _sections(cubin) if s.name.startswith(".text.")}


def emulate(
    program: Program, kernel: KernelFacts, n: int, launch: Launch, shape: LaunchShape, before: Buffers,
    perturb: ptx.Perturbation | None = None,
) -> tuple[Buffers, list[str]]:  # fmt: skip
    """The buffers after a launch in the emulator, and what it found wrong."""
    after = {name: b.copy() for name, b in before.items()}
    values: list[object] = []
    for p in kernel.instances[n].parameters:
        is_null = p.name in launch.point.null
        values.append(
            launch.scalars[p.name] if p.dtype != "ptr" else None if is_null else as_argument(after[p.name])
        )  # fmt: skip
    result = ptx.launch(
        program.module, program.entry, shape.grid, shape.block, values, smem_bytes=shape.smem,
        cooperative=shape.cooperative, checks=ptx.Checks(uninitialised=False), perturb=perturb,
    )  # fmt: skip
    return after, [str(v) for v in result.violations]


def compare_program(
    bundle: Bundle, kernel: KernelFacts, side: str, made: Mapping[tuple[int, str], Program], arrays: Any, given: Any,
    facts: Mapping[str, Any],
) -> Comparison:  # fmt: skip
    """All launches of one side of a kernel."""
    found = Comparison(kernel.name, side)
    used: set[str] = set()
    for n, at, launch in programs(kernel):
        program = made[n, side]
        used |= set(approximations(program.text))
        before = with_bytes(inputs(bundle, kernel, n, at), given, n, at)
        shape = launch.shape
        if side == "port":
            told = facts[key(n, at)]
            shape = LaunchShape(tuple(told["grid"]), tuple(told["block"]), told["smem"], launch.cooperative)
        emulated, violations = emulate(program, kernel, n, launch, shape, before)
        found.problems += [f"{kernel.instances[n]} at {launch.point}: {v}" for v in violations]
        silicon = {name: b.copy() for name, b in before.items()}
        for name in silicon:
            for written in dict.fromkeys((side, "original")):
                if key(kernel.name, n, at, name, written) in arrays:
                    silicon[name].allocation[:] = arrays[key(kernel.name, n, at, name, written)]
                    break
        found.written += sum(int(np.count_nonzero(b.view() != before[name].view())) for name, b in silicon.items())
        moved = [
            emulate(program, kernel, n, launch, shape, before, ptx.Perturbation(direction, seed=seed))[0]
            for direction, seed in (DIRECTIONS if _differs(launch, emulated, silicon) else ())
        ]
        found.launches += 1
        _compare(found, f"{kernel.instances[n]} at {launch.point} {launch.scenario}", launch, emulated, silicon, moved)
    found.approximations = sorted(used)
    return found


def _differs(launch: Launch, emulated: Buffers, silicon: Buffers) -> bool:
    return any(
        not np.array_equal(b.view(), silicon[n].view())
        for n, b in emulated.items()
        if n not in launch.null and b.dtype in FLOATS
    )


def _compare(
    found: Comparison, where: str, launch: Launch, emulated: Buffers, silicon: Buffers, moved: Sequence[Buffers]
) -> None:
    present = {n: b for n, b in emulated.items() if n not in launch.null and b.spec.role != "in"}
    ours = {n: b.view() for n, b in present.items()}
    theirs = {n: silicon[n].view() for n in present}
    for segments, members in groups(present).items():
        names = [b.name for b in members]
        ours |= canonical_rows([emulated[n] for n in names], emulated[segments])
        theirs |= canonical_rows([silicon[n] for n in names], silicon[segments])
    for name, buffer in present.items():
        found.words += ours[name].size
        outside = silicon[name].copy()
        outside.view()[...] = emulated[name].view()
        if not np.array_equal(outside.allocation, emulated[name].allocation):
            found.problems.append(f"{where}: bytes between or around the elements of {name} differ")
        wrong = ours[name] != theirs[name]
        if buffer.dtype in FLOATS:  # NaNs are equal whatever their payload: the ISA leaves it open
            wrong &= ~(np.isnan(decode(ours[name], buffer.dtype)) & np.isnan(decode(theirs[name], buffer.dtype)))
        count = int(np.count_nonzero(wrong))
        if not count:
            continue
        found.different += count
        if not buffer.spec.is_compared:
            found.unspecified += count
            continue
        excused = np.zeros_like(wrong)
        if buffer.dtype in FLOATS:
            a, b = (decode(x, buffer.dtype).astype(np.float64) for x in (ours[name], theirs[name]))
            spread = np.zeros(a.shape)
            for other in moved:
                with np.errstate(invalid="ignore"):
                    step = np.abs(decode(other[name].view(), buffer.dtype).astype(np.float64) - a)
                spread = np.maximum(spread, np.nan_to_num(step, nan=0.0, posinf=np.inf))
            with np.errstate(invalid="ignore"):
                excused = np.abs(a - b) <= spread + ulp_size(a, buffer.dtype)
            excused &= spread > 0  # what approximate instructions do not move has to be equal
            found.max_ulp = max(found.max_ulp, int(ulp_distance(ours[name], theirs[name], buffer.dtype)[wrong].max()))
        else:  # codes of a quantised output, positions: equal to what one of the moved launches gives
            for other in moved:
                excused |= other[name].view() == theirs[name]
        found.explained += int(np.count_nonzero(wrong & excused))
        bad = wrong & ~excused
        found.unexplained += int(np.count_nonzero(bad))
        if bad.any():
            i = tuple(int(x) for x in np.argwhere(bad)[0])
            values = f"{int(ours[name][i]):#x} here, {int(theirs[name][i]):#x} there"
            found.problems.append(f"{where}: {name}{list(i)} {values} ({int(bad.sum())} of {bad.size} unexplained)")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_vs_emulator", description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("outputs", type=Path)
    parser.add_argument("--kernel", action="append", default=[], help="only this kernel; nothing is recorded then")
    args = parser.parse_args()
    bundle = read_bundle(args.bundle)
    arrays = dict(np.load(args.outputs))
    facts = json.loads(arrays["facts"].tobytes())
    rows: list[Comparison] = []
    other_code = []
    for kernel in bundle.kernels:
        if args.kernel and kernel.name not in args.kernel:
            continue
        made, same = emulated_programs(bundle, kernel)
        if not same:
            other_code.append(kernel.name)
        given = np.load(args.inputs / f"{kernel.name}.npz")
        for side in SIDES:
            row = compare_program(bundle, kernel, side, made, arrays, given, facts["kernels"][kernel.name])
            rows.append(row)
            numbers = (
                f"{row.launches} launches, {row.words} words, {row.different} different, {row.explained} explained"
            )
            print(f"{row.kernel} {side}: {numbers}, {row.unexplained} not; {row.problems[:2]}", flush=True)
    record = {
        "schema": 1,
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "bundle": {"made": bundle.made, "commit": bundle.commit, "arch": bundle.arch, "versions": bundle.versions},
        "gpu": {k: v for k, v in facts.items() if k != "kernels"},
        "programs": len(rows),
        "launches": sum(r.launches for r in rows),
        "words": sum(r.words for r in rows),
        "written": sum(r.written for r in rows),
        "bit_equal_programs": sum(not r.different for r in rows),
        "different_words": sum(r.different for r in rows),
        "explained_words": sum(r.explained for r in rows),
        "unspecified_words": sum(r.unspecified for r in rows),
        "unexplained_words": sum(r.unexplained for r in rows),
        "originals_compiled_to_other_code": other_code,
        "comparisons": [asdict(r) for r in rows],
    }
    if not args.kernel:
        RESULT.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({k: v for k, v in record.items() if k != "comparisons"}, indent=1))
    return int(any(r.unexplained or r.problems for r in rows))


if __name__ == "__main__":
    sys.exit(main())
