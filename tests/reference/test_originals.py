"""The original reference kernels in the emulator against their float64 references: two descriptions of one function.

A disagreement is a bug in the kernel, its case, its reference or the emulator; ports are not involved.
"""

from __future__ import annotations

import os
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from porter.case.instances import instance_values
from porter.case.model import CODE_NAMES
from porter.case.reader import load_case
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.source import Source
from porter.verify.backends.emulator import EmulatorBackend
from porter.verify.backends.interface import Build
from porter.verify.execute import EXTREME, InstanceUnderTest, reference_values
from porter.verify.launches.buffers import Buffers, HostBuffer, is_integer
from porter.verify.launches.inputs import make_inputs
from porter.verify.launches.trials import Trial, choose_trials
from porter.verify.numerics.comparison import numbers
from porter.verify.numerics.formats import round_to
from porter.verify.numerics.reference import load_reference
from porter.verify.numerics.references.rounding import SLACK
from porter.verify.numerics.ulps import ulp_size
from porter.verify.original.build import build_original

CASES = sorted((Path(__file__).resolve().parents[2] / "reference_kernels").rglob("*.case.toml"))
SM_COUNT = 8
SEED = int(os.environ.get("PORTER_TEST_SEED", "11"))
# Share of 16-bit elements that may be off by more than their rounding, by up to as many ulp.
RARE = (1e-3, 1.6)  # a rounding in the middle that float32 decides the other way
CANCELS = {
    "gelu_tanh_and_mul_kernel": (5e-2, 4.0),  # 1 + tanh(u) in float32, for u near -3 and below
    "layer_norm_kernel": (2e-2, 1.6),  # x - mean in float32, for rows far from zero
}


@cache
def subjects(path: Path) -> list[InstanceUnderTest]:
    """Every instance of a case, compiled; the port's side is the original again."""
    case = load_case(path)
    source = Source.read(case.source_path)
    options = ParseOptions()
    unit = parse_source(source, options)
    info = unit.kernel(case.kernel)
    assert info is not None
    built = build_original(source, options, case.kernel, [i.instance for i in case.instances], unit=unit)
    found = []
    for instance, b in zip(case.instances, built, strict=True):
        build = Build("original", b.ptx, b.entry, options.arch)
        values = dict(instance_values(info, instance.instance))
        found.append(InstanceUnderTest(case, info, values, build, build, reference=load_reference(case)))
    return found


def disagreement(subject: InstanceUnderTest, buffer: HostBuffer, truth: np.ndarray, pre: np.ndarray | None) -> str:
    """What is wrong with an output, "" when it is what the reference says."""
    got = numbers(buffer.view(), buffer.dtype)
    truth = np.asarray(truth, np.float64)
    share, most = 0.0, 0.0
    if is_integer(buffer.dtype) or buffer.dtype in CODE_NAMES:
        bad = (got != truth) & ~np.isnan(truth)  # NaN: the contract leaves it open
        if pre is not None:
            middle = (got + truth) / 2.0
            bad &= np.abs(pre - middle) > SLACK * np.abs(middle)
    else:
        expected = round_to(truth, buffer.dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            scale = np.max(np.where(np.isfinite(truth), np.abs(truth), 0.0), axis=-1, keepdims=True, initial=0.0)
            error = np.maximum(np.abs(got - truth) - 2.0**-20 * scale, 0.0) / ulp_size(truth, buffer.dtype)
        same = np.isfinite(expected) & np.isfinite(got)
        bad = np.where(same, error > (8.0 if buffer.dtype == "f32" else 0.51), ~_same_special(got, expected))
        if buffer.dtype != "f32":
            share, most = CANCELS.get(subject.case.kernel, RARE)
            with np.errstate(invalid="ignore"):
                # A subnormal in the middle flips by a whole ulp of its own, then a factor makes it large.
                gross = ~same | ((error > most) & (np.abs(got - truth) > 2.0**-10 * scale))
            if not (bad & gross).any() and bad.sum() <= max(2, share * bad.size):
                return ""
    if not bad.any():
        return ""
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{buffer.name}: {int(bad.sum())} of {bad.size}, at {index} {got[index]!r} for {truth[index]!r}"


def _same_special(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (np.isnan(a) & np.isnan(b)) | (a == b)


def check_sets(trial: Trial, buffers: Buffers, truth: dict[str, np.ndarray]) -> list[str]:
    """Outputs without an order inside a segment: the same members in each segment."""
    wrong = []
    for name, buffer in buffers.items():
        if buffer.spec.compare != "set-per-segment":
            continue
        got, want = numbers(buffer.view(), buffer.dtype), truth[name]
        edges = [int(x) for x in truth[buffer.spec.segments]] + [len(got)]
        for start, stop in pairwise(edges):
            if sorted(got[start:stop]) != sorted(want[start:stop]):
                wrong.append(f"{name}[{start}:{stop}] at {trial}")
    return wrong


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.name.split(".")[0])
def test_original_and_reference_agree(path: Path) -> None:
    backend = EmulatorBackend()
    wrong: list[str] = []
    launched = 0
    for number, subject in enumerate(subjects(path)):
        case = subject.case
        for trial in choose_trials(case, case.instances[number], subject.values, seed=SEED):
            shape = case.launch_at(trial.point, subject.values, SM_COUNT)
            if shape.is_empty or trial.scenario in EXTREME:  # where float64 is no judge of float32
                continue
            buffers = make_inputs(case, trial.point, subject.values, trial.scenario, trial.seed, trial.misaligned)
            before = {n: b.copy() for n, b in buffers.items()}
            result = subject.launch(backend, trial, shape, buffers)
            launched += 1
            assert not result.error, f"{trial}: {result.error}"
            wrong += [f"{trial}: {v.kind}: {v.message}" for v in result.violations]
            truth, trouble = reference_values(subject, trial, before)
            wrong += [f"{trial}: {f.message}" for f in trouble]
            wrong += check_sets(trial, buffers, truth)
            for name, buffer in buffers.items():
                if name in trial.point.null:
                    continue
                if buffer.broken_guards():
                    wrong.append(f"{trial}: wrote outside of {name}")
                if buffer.spec.role == "in" and (buffer.raw != before[name].raw).any():
                    wrong.append(f"{trial}: changed {name}")
                if buffer.spec.is_compared and buffer.spec.compare != "set-per-segment" and 0 not in buffer.shape:
                    found = disagreement(subject, buffer, truth[name], truth.get(f"{name}:pre"))
                    if found:
                        wrong.append(f"{subject.values} {trial}: {found}")
    assert launched >= 20
    assert not wrong, "\n".join(wrong[:10])
