"""What a port compares values with becomes inputs; scales are tried at their steps; indices at both ends."""

from __future__ import annotations

import numpy as np
import pytest

from porter.verify.launches.own_values import (
    around,
    index_of,
    index_scenario,
    indices,
    number_of,
    own_numbers,
    scenario_of,
)
from porter.verify.launches.rounding import steps

PORT = """
    setp.gt.f32 %p1, %r1, 0f42150000;
    max.f32 %r2, %r3, 0f3089705F;
    setp.eq.f32 %p2, %r4, 0f00000000;
    min.f32 %r5, %r6, 0f43E00000;
    mul.f32 %r7, %r8, 0f41200000;
    setp.lt.s32 %p3, %r9, 1107296256;
"""


def test_numbers_that_only_the_port_compares_values_with():
    assert own_numbers("", PORT) == pytest.approx([1e-9, 37.25, 448.0])
    assert own_numbers("fma.rn.f32 %r1, %r2, 0fC2150000, %r3;\nmax.f32 %r2, %r3, 0f43E00000;", PORT) == [
        pytest.approx(1e-9)
    ]
    assert own_numbers(PORT, PORT) == [] and own_numbers(PORT, "") == []


def test_names_of_scenarios():
    assert number_of(scenario_of(1e-9)) == 1e-9 and number_of("normal") is None
    assert index_of(index_scenario(600)) == 600 and index_of("around 2.0") is None


@pytest.mark.parametrize("number", [37.25, 1e-9, 5.5e5])
def test_values_are_at_a_number_beside_it_and_in_every_distance(number):
    x = around((9, 256), number, "f32", np.random.default_rng(1))
    near = np.abs(np.abs(x) - number) / number
    assert (x == number).any() and (x == -number).any()
    assert ((near > 0) & (near < 2.0**-20)).any() and (near > 0.25).any()
    rows = np.sqrt(np.mean(x * x, axis=1)) / np.sqrt(number)
    assert ((rows > 0.8) & (rows < 1.25)).any()  # whose mean square is of the number's size


def test_indices_are_beside_a_number_wherever_they_are_counted_from():
    x = np.zeros(40, np.int64)
    indices(x, 300, (0, 310), (0, 930), np.random.default_rng(1))
    assert {299, 300, 301, 609, 610, 611} <= set(x.tolist())
    y = np.zeros(4, np.int64)
    indices(y, 300, (0,), (0, 100), np.random.default_rng(1))  # none is in the range
    assert not y.any()


@pytest.mark.parametrize(("target", "largest"), [("e4m3", 448.0), ("i8", 127.0), ("e2m1", 6.0)])
@pytest.mark.parametrize("columns", [128, 1000])
def test_scales_are_at_their_steps_and_one_unit_beside(target, largest, columns):
    x = steps((12, columns), target, "f32", np.random.default_rng(2)).astype(np.float32)
    for width in (columns, 128):  # scales of rows, and of groups
        groups = np.abs(x[:, : columns // width * width].reshape(12, -1, width)).max(axis=2)
        scales = np.concatenate([(groups / np.float32(largest)).ravel(), groups.ravel()])
        kept = set((scales.astype(np.float32).view(np.uint32) & 0x7FFFFF).tolist())
        assert {0, 1} <= kept and 0x7FFFFF in kept
    least, most = np.abs(x).max(axis=1).min(), np.abs(x).max()
    assert least > 0 and most <= 448.0 * 64
    halves = steps((7, 96), target, "f16", np.random.default_rng(3))
    assert (halves.astype(np.float16).astype(np.float64)[np.abs(halves) >= 1.0 * 2.0**5] != 0).all()
