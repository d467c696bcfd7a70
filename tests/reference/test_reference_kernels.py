"""reference_kernels/: every kernel parses, fits its case, and has inputs and a float64 reference at every point."""

from __future__ import annotations

import math
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from porter.case.fit import check_case
from porter.case.instances import instance_values
from porter.case.reader import Case, load_case
from porter.frontend.parse.source import ParsedUnit, parse_source
from porter.model import KernelInfo
from porter.source import Source
from porter.verify.launches.inputs import make_inputs, read_buffer, scenarios
from porter.verify.numerics.references import get

ROOT = Path(__file__).resolve().parents[2] / "reference_kernels"
SOURCES = sorted(ROOT.rglob("*.cu"))
CASES = sorted(ROOT.rglob("*.case.toml"))

every_case = pytest.mark.parametrize("path", CASES, ids=lambda p: p.name.split(".")[0])


@cache
def unit_of(source: Path) -> ParsedUnit:
    return parse_source(Source.read(source))


def kernel_of(case: Case) -> KernelInfo:
    kernel = unit_of(case.source_path).kernel(case.kernel)
    assert kernel is not None, f"{case.source} defines no {case.kernel}"
    return kernel


def test_every_kernel_has_a_case_and_every_case_a_kernel() -> None:
    described = {(load_case(p).source_path, load_case(p).kernel) for p in CASES}
    defined = {(s, k.name) for s in SOURCES for k in unit_of(s).kernels}
    assert described == defined
    assert len(defined) >= 16


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_parses_without_a_complaint_and_says_what_it_is(source: Path) -> None:
    unit = unit_of(source)
    assert not unit.diagnostics
    assert all(not k.errors for k in unit.kernels)
    first, second, third, *_ = source.read_text().splitlines()
    assert first == "// SPDX-License-Identifier: Apache-2.0"
    assert second.startswith("// Copyright")
    assert third == "/*"


@every_case
def test_case_fits_the_kernel(path: Path) -> None:
    case = load_case(path)
    kernel = kernel_of(case)
    check_case(case, kernel)
    if kernel.is_template:
        assert len(case.instances) >= 2
    for pointer in case.buffers:
        declared = next(p.type for p in kernel.params if p.name == pointer.name)
        is_const = "const" in declared.split("*")[0]
        assert is_const == (pointer.role == "in"), f"{pointer.name} is {declared} and {pointer.role}"


@every_case
def test_every_instance_has_points_with_a_legal_launch(path: Path) -> None:
    case = load_case(path)
    kernel = kernel_of(case)
    for instance in case.instances:
        values = instance_values(kernel, instance.instance)
        points = case.instance_points(instance, values)
        launches = [case.launch_at(p, values) for p in points]
        assert any(not x.is_empty for x in launches), f"{instance} is never launched"
        for launch in launches:
            assert 1 <= math.prod(launch.block) <= 1024
            assert launch.smem <= 48 * 1024


@every_case
def test_reference_describes_every_output(path: Path) -> None:
    """One small point and one with rows, in every scenario: shapes fit, and ordinary inputs give finite outputs."""
    case = load_case(path)
    kernel = kernel_of(case)
    reference = get(case.reference)
    for instance in case.instances:
        values = instance_values(kernel, instance.instance)
        points = case.instance_points(instance, values)
        for point in (points[0], points[len(points) // 2], points[-1]):
            for scenario in scenarios(case, values):
                buffers = make_inputs(case, point, values, scenario, seed=3)
                given = {n: read_buffer(b) for n, b in buffers.items() if b.spec.is_read and n not in point.null}
                found = reference(given, point.scalars, point.sizes, values)
                for spec in case.buffers:
                    if not spec.is_compared:
                        continue
                    assert found[spec.name].shape == point.shapes[spec.name], f"{spec.name} {point}"
                    pre = found.get(f"{spec.name}:pre")
                    assert (pre is not None) == (spec.dtype_at(values) in ("e4m3", "i8"))
                    if scenario == "normal" and spec.name != "dispatched":  # rows of dropped slots are not written
                        assert np.isfinite(found[spec.name]).all(), f"{spec.name} {point}"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_nvcc_compiles_the_whole_file(source: Path, tmp_path: Path) -> None:
    """Host code included, which porter's own slice leaves out."""
    command = ["nvcc", "-arch=sm_90a", "-std=c++17", "-Werror", "all-warnings", "-ptx", str(source)]
    done = subprocess.run([*command, "-o", str(tmp_path / "k.ptx")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
