"""Two CUDA kernels, one in the place of the original, the other in that of its port: what the verifier says of them.

For faults in which only the launches count: no port is written, nothing is read. NVRTC compiles both.
"""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path

from porter.case.reader import Case, CaseInstance, parse_case
from porter.frontend.parse.source import parse_source
from porter.model import Verdict
from porter.source import Source
from porter.verify.backends.emulator import EmulatorBackend
from porter.verify.backends.interface import Build
from porter.verify.execute import InstanceUnderTest
from porter.verify.launched import launch_instance, repeat_launches
from porter.verify.launches.derived import constants_of
from porter.verify.launches.far_rows import at_the_edges
from porter.verify.launches.planned import planned_trials
from porter.verify.numerics.tolerance import adds_products, approximations, has_reduction
from porter.verify.original.nvrtc import Program, compile_program
from porter.verify.verdicts import determinism_verdict, numerics_verdict, sanitizer_verdict


@lru_cache(maxsize=64)
def compiled(text: str, entry: str) -> Build:
    made = compile_program(Program(text, "k.cu", options=["-arch=compute_90a", "-lineinfo", "-std=c++17"]))
    assert made.ok, made.log
    return Build("original", made.ptx, entry, "sm_90a")


def extern(text: str) -> str:
    return text.replace("__global__", 'extern "C" __global__')


def judge(original: str, port: str, case: Case | str, seed: int = 1, reference: object = None) -> dict[str, Verdict]:
    """numerics, sanitizer and determinism of a kernel in the place of a port."""
    case = parse_case(case, Path("k.case.toml")) if isinstance(case, str) else case
    (info,) = parse_source(Source(Path("k.cu"), original)).kernels
    builds = [compiled(extern(t), info.name) for t in (original, port)]
    subject = InstanceUnderTest(
        case, info, {}, builds[0], Build("port", builds[1].ptx, info.name, "sm_90a"),
        (approximations(builds[0].ptx), approximations(builds[1].ptx)),
        any(has_reduction(b.ptx) for b in builds), reference, any(adds_products(b.ptx) for b in builds),  # type: ignore[arg-type]
    )  # fmt: skip
    instance = CaseInstance(())
    trials = planned_trials(case, instance, {}, info, constants_of(original), seed, 12, False, True)
    pairs = [(case.launch_at(t.point, {}, 8),) * 2 for t in trials]
    trials, pairs = at_the_edges(trials, pairs)  # type: ignore[arg-type]
    launched = [launch_instance(subject, instance.instance, trials, pairs, EmulatorBackend(), time.perf_counter() + 60)]  # type: ignore[arg-type]
    repeat_launches(launched)
    runs = [run for run, _ in launched]
    return {
        "numerics": numerics_verdict(case, runs, seed, ["normal"]),
        "sanitizer": sanitizer_verdict(case, runs, EmulatorBackend.checked, "emulator"),
        "determinism": determinism_verdict([r for run in runs for r in run.repeats]),
    }


def failing(verdicts: dict[str, Verdict]) -> dict[str, str]:
    """Checks that did not pass, with their status."""
    return {name: v.status.value for name, v in verdicts.items() if v.status.value != "PASS"}
