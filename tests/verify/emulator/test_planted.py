"""Planted bugs: each is found, named, and placed at its PTX line (and CUDA line), and nothing else is reported."""

from __future__ import annotations

import re
import time
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from porter.verify import emulator as ptx
from porter.verify.compile.toolkit import find_nvrtc
from porter.verify.emulator.checks.violations import KINDS
from tests.verify.emulator.planted_ptx import PLANTS, Plant
from tests.verify.emulator.ptx_micro import _buffers

CHECKS = ptx.Checks(shared_races=True, global_races=True)
MARK = re.compile(r"BUG ([\w-]+)")
CUDA = Path(__file__).with_name("planted.cu")


def marks(text: str) -> set[tuple[str, int]]:
    return {(m.group(1), n) for n, line in enumerate(text.split("\n"), 1) for m in MARK.finditer(line)}


def launch(plant: Plant, seed: int = 0, backend: str = "auto") -> ptx.Result:
    arguments = _buffers([plant.out(), *plant.more()])
    options = {"checks": CHECKS, "backend": backend} | plant.options
    return ptx.launch(ptx.load(plant.text), "k", plant.grid, plant.block, arguments, seed=seed, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("plant", PLANTS, ids=lambda p: p.name)
def test_planted_in_ptx(plant: Plant, backend: str) -> None:
    """With "llvm", compiled code runs first and must not miss the bug: then the interpreter decides and reports."""
    started = time.perf_counter()
    result = launch(plant, backend=backend)
    assert result.backend == "numpy"
    found = {(v.kind, v.ptx_line) for v in result.violations}
    expected = marks(plant.text)
    if plant.name == "work-without-end":  # ended from outside: no line is to blame
        expected = {("budget", 0)}
    assert expected
    if plant.name == "plain-flag":  # the reader's first look, or the write behind it: the schedule decides
        assert found <= expected and len(found) >= 2
    else:
        assert found == expected, "\n".join(map(str, result.violations))
    if plant.name == "grid-barrier-beyond-residency":
        assert result.deadlock and time.perf_counter() - started < 2.0
    for v in result.violations:
        assert v.message and v.count >= 1


@pytest.mark.parametrize("plant", [p for p in PLANTS if p.name != "work-without-end"], ids=lambda p: p.name)
def test_planted_bugs_are_found_under_other_schedules(plant: Plant) -> None:
    """Which of two racing accesses comes second depends on the schedule; that there is something does not."""
    kinds = {k for k, _ in marks(plant.text)}
    for seed in (1, 2):
        assert {v.kind for v in launch(plant, seed).violations} & kinds


def test_every_kind_is_planted() -> None:
    count = Counter(kind for text in (*(p.text for p in PLANTS), CUDA.read_text()) for kind, _ in marks(text))
    assert set(count) == {*KINDS, "kind"}  # "kind": the head of the CUDA file says what the mark is
    assert len(PLANTS) >= 40


E32 = np.zeros(32, np.float32)
ARGUMENTS = {
    "one_too_far": (2, 32, lambda: [np.zeros(64, np.float32), np.zeros(63, np.float32), 63]),
    "sum_without_barrier": (1, 64, lambda: [np.zeros(64, np.float32), np.ones(64, np.float32)]),
    "tree_without_syncwarp": (1, 32, lambda: [np.zeros(1, np.float32), np.ones(32, np.float32)]),
    "reuse_without_barrier": (1, 64, lambda: [np.zeros(64, np.float32), np.ones(64, np.float32)]),
    "published_without_fence": (2, 32, lambda: [E32.copy(), E32.copy(), np.zeros(1, np.int32)]),
    "histogram_without_atomics": (2, 32, lambda: [np.zeros(8, np.int32), np.zeros(64, np.int32)]),
    "barrier_in_a_branch": (1, 32, lambda: [E32.copy(), np.arange(32, dtype=np.float32) % 2]),
    "index_checked": (1, 32, lambda: [E32.copy(), 31]),
    "accumulates_into_nothing": (1, 32, lambda: [ptx.Buffer(E32.copy(), initialised=False), E32.copy()]),
    "vector_at_any_offset": (1, 32, lambda: [E32.copy(), E32.copy(), 3]),
    "writes_its_input": (1, 32, lambda: [E32.copy(), ptx.Buffer(E32.copy(), writable=False)]),
    "spins_for_good": (1, 1, lambda: [np.zeros(1, np.int32)]),
}  # fmt: skip


@cache
def compiled() -> ptx.Module:
    from porter.verify.original.nvrtc import Program, compile_program

    made = compile_program(
        Program(CUDA.read_text(), CUDA.name, options=["-arch=compute_90a", "-lineinfo", "-std=c++17"])
    )
    assert made.ok, made.log
    return ptx.load(made.ptx)


def cuda_marks(name: str) -> set[tuple[str, int]]:
    text = CUDA.read_text()
    start = text.index(f"void {name}(")
    end = text.find('extern "C"', start)
    first = text.count("\n", 0, start)
    return {(kind, first + n) for kind, n in marks(text[start : end if end > 0 else len(text)])}


@pytest.mark.skipif(find_nvrtc() is None, reason="NVRTC is not installed (nvidia-cuda-nvrtc)")
@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_planted_in_cuda(name: str) -> None:
    grid, block, make = ARGUMENTS[name]
    result = ptx.launch(compiled(), name, grid, block, _buffers(make()), checks=CHECKS)
    places = {(v.kind, v.loc[1]) for v in result.violations if v.loc}
    assert places == cuda_marks(name), "\n".join(map(str, result.violations))
    assert all(v.loc and v.loc[0].endswith("planted.cu") for v in result.violations)
