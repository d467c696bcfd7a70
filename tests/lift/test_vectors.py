"""Loops over lanes as vector arithmetic: what is written, and what stays a loop."""

from __future__ import annotations

import pytest

from porter.lift.lines import Line
from porter.lift.vectors import LaneLoop


def written(*lines: str, changing: str = "", arrays: dict[str, str] | None = None) -> list[str | None]:
    loop = LaneLoop("j", {"x": "scalar_t", "w": "scalar_t", "f": "Float32"}, {"scalar_t"}, set(changing.split()))
    return [loop.statement(Line(text).node, arrays or {}) for text in lines]


@pytest.mark.parametrize(
    ("loop", "vector"),
    [
        ("s = s + Float32(x[j])", "s = lib.total(x.to(Float32), s)"),
        ("s = s + Float32(x[j]) * Float32(w[j])", "s = lib.total(x.to(Float32) * w.to(Float32), s)"),
        ("m = lib.fmax(m, f[j])", "m = lib.largest(f, m)"),
        ("g = (f[j] - mean) * rstd", "g = (f - mean) * rstd"),
        ("g = rstd * f[j]", "g = f * rstd"),
        ("g = 2.0 + f[j] * f[j]", "g = f * f + 2.0"),
        ("g = f[j] * (f[j] + 1.0)", "g = f * (f + 1.0)"),
        ("g = cute.math.exp(f[j] - m)", "g = cute.math.exp(f - m)"),
        ("g = Float32(scalar_t(f[j] * rstd))", "g = (f * rstd).to(scalar_t).to(Float32)"),
    ],
)
def test_same_operations_on_every_lane(loop: str, vector: str) -> None:
    assert written(loop) == [vector]


@pytest.mark.parametrize(
    "loop",
    [
        "g = f[j] / s",  # a slow path would keep the registers of all lanes
        "g = s - f[j]",  # a number less a vector
        "g = x[j] * w[j]",  # half precision rounds after every operation
        "g = cute.math.tanh(f[j])",
        "g = f[j + 1] * rstd",
        "g = f[0] * rstd",
        "g = cute.math.abs(f[j])",
        "s = Float32(x[j]) + s",  # another order
        "s = s + rstd",
        "m = lib.fmin(m, f[j])",
        "g = Int8(Int32(f[j]))",
        "g = f[j] if f[j] > 0.0 else Float32(0.0)",
        "f[j] = f[j] * rstd",  # an array that is no vector yet
    ],
)
def test_other_chains_stay_lanes(loop: str) -> None:
    assert written(loop) == [None]


def test_what_differs_by_lane_is_no_number() -> None:
    """A name that the loop assigns without a vector in it is another one at every lane."""
    assert written("g = f[j] * k", changing="k") == [None]


def test_temporaries_are_vectors() -> None:
    lines = ("d = Float32(x[j]) - mean", "s = s + d * d")
    assert written(*lines) == ["d = x.to(Float32) - mean", "s = lib.total(d * d, s)"]


def test_an_array_is_filled_with_its_own_type_once() -> None:
    arrays = {"y": "scalar_t"}
    assert written("y[j] = scalar_t(f[j] * rstd)", arrays=arrays) == ["y = (f * rstd).to(scalar_t)"]
    assert written("y[j] = f[j] * rstd", arrays=arrays) == [None]
    assert written("y[j] = scalar_t(f[j])", "y[j] = scalar_t(f[j])", arrays=arrays)[1] is None
