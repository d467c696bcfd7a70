"""Inputs of verification: what each distribution holds, poison, guards, strides; same seed, same bytes."""

from pathlib import Path

import numpy as np
import pytest

from porter.case.reader import parse_case
from porter.model import PorterError
from porter.verify.launches.buffers import poison_word
from porter.verify.launches.inputs import make_inputs, read_buffer, scenarios
from porter.verify.numerics.formats import decode

HEAD = """kernel = "k"
[sizes]
rows = 16
cols = 64
[launch]
grid = 1
block = 32
[scalars]
stride = "cols + 8"
[[buffers]]
name = "out"
dtype = "T"
shape = ["rows", "cols"]
strides = ["stride", 1]
role = "out"
"""


def case_of(*buffers):
    text = HEAD
    for b in buffers:
        text += "[[buffers]]\n" + "\n".join(
            f"{k} = {v!r}".replace("True", "true").replace("False", "false") for k, v in b.items()
        )
        text += "\n"
    return parse_case(text, Path("k.case.toml"))


def make(buffer, scenario="normal", dtype="bf16", seed=3):
    case = case_of({"name": "x", "dtype": "T", "shape": ["rows", "cols"], **buffer})
    values = {"T": dtype}
    (point,) = case.points(values=values)
    return make_inputs(case, point, values, scenario, seed)


def values_of(buffer, scenario="normal", dtype="bf16", seed=3):
    return read_buffer(make(buffer, scenario, dtype, seed)["x"])


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "e4m3"])
def test_normal_and_its_scenarios(dtype):
    x = values_of({}, "normal", dtype)
    assert 0.85 < x.std() < 1.15 and abs(x.mean()) < 0.15 and np.isfinite(x).all()
    small, large = values_of({}, "small", dtype), values_of({}, "large", dtype)
    assert np.abs(small).max() < 1e-3
    assert np.abs(large).max() > (400 if dtype == "e4m3" else 1e4) and np.isfinite(large).all()
    outlier = values_of({}, "outlier", dtype)
    scale = np.abs(outlier).mean(axis=0)
    assert scale.max() > 100 * np.median(scale)
    denormal = values_of({}, "denormal", dtype)
    least = {"f32": 2.0**-126, "bf16": 2.0**-126, "f16": 2.0**-14, "e4m3": 2.0**-6}[dtype]
    assert (np.abs(denormal) <= least).all() and np.count_nonzero(denormal) > denormal.size / 4
    zeros = values_of({}, "zeros", dtype)
    assert (zeros == 0).all() and np.signbit(zeros).any() and not np.signbit(zeros).all()


@pytest.mark.parametrize("seed", range(6))
def test_a_nan_stands_beside_the_largest_of_its_row(seed):
    """A maximum that NaN passes through loses it in every way of dealing elements to threads by vectors of two."""
    case = case_of({"name": "x", "dtype": "T", "shape": ["rows", "cols"]})
    (point, *_) = [p for p in case.points(values={"T": "f32"}) if p.sizes["rows"] > 3]
    with_nan = read_buffer(make_inputs(case, point, {"T": "f32"}, "nonfinite", seed)["x"])
    found = False
    for row in with_nan[np.isnan(with_nan).any(axis=1)]:
        largest = int(np.nanargmax(np.where(np.isfinite(row), np.abs(row), -1.0)))
        found |= bool(np.isnan(row[[largest ^ 1 if largest ^ 1 < row.size else largest - 1]]).all())
    assert found


def test_nonfinite_leaves_half_of_the_rows_clean():
    x = values_of({}, "nonfinite")
    assert np.isnan(x).any() and (x == np.inf).any() and (x == -np.inf).any()
    assert np.isfinite(x).all(axis=1).sum() >= 8
    assert np.isfinite(values_of({"nonfinite": False}, "nonfinite")).all()
    assert "nonfinite" not in scenarios(
        case_of({"name": "x", "dtype": "T", "shape": ["rows"], "nonfinite": False}), {"T": "f32"}
    )


def test_weights_stay_ordinary_while_the_main_input_scales():
    case = case_of(
        {"name": "x", "dtype": "T", "shape": ["rows", "cols"]}, {"name": "weight", "dtype": "T", "shape": ["cols"]}
    )
    (point,) = case.points(values={"T": "f32"})
    made = make_inputs(case, point, {"T": "f32"}, "large", 1)
    assert np.abs(read_buffer(made["x"])).mean() > 1e3 and np.abs(read_buffer(made["weight"])).mean() < 2


def test_logits_have_ties_equal_rows_and_what_is_not_a_number():
    def logits(scenario):
        return values_of({"dist": "logits"}, scenario, "f32")

    assert 2.5 < logits("normal").std() < 3.5
    tied = logits("ties")
    assert sum((row == row.max()).sum() > 1 for row in tied) >= 4
    equal = logits("equal")
    assert any((row == row[0]).all() for row in equal) and not all((row == row[0]).all() for row in equal)
    minus = logits("neg_inf")
    assert np.isneginf(minus).all(axis=1).any() and not np.isneginf(minus).all(axis=1).all()
    nan = logits("nan_rows")
    assert np.isnan(nan).all(axis=1).any() and (~np.isnan(nan)).all(axis=1).any()


def test_ids_leave_their_range_only_when_asked_to():
    buffer = {"dist": "ids", "dtype": "i32", "low": 0, "high": "cols"}
    x = values_of(buffer)
    assert x.min() >= 0 and x.max() < 64
    bad = values_of(buffer, "bad_ids")
    assert (bad == -1).any() and (bad >= 64).any() and ((bad >= 0) & (bad < 64)).mean() > 0.4
    _, counts = np.unique(values_of(buffer, "skewed"), return_counts=True)
    assert counts.max() > 0.8 * 16 * 64


def test_whole_number_distributions():
    assert set(np.unique(values_of({"dist": "bool", "dtype": "bool"}))) == {False, True}
    x = values_of({"dtype": "i8"})
    assert x.min() < -120 and x.max() > 120
    extreme = values_of({"dtype": "i32", "dist": "randint", "low": -5, "high": 9}, "extremes")
    assert set(np.unique(extreme)) == {-5, 8}
    offsets = values_of({"dtype": "i64", "dist": "offsets", "high": 100})
    assert (np.diff(offsets, axis=1) >= 0).all() and (offsets[:, 0] == 0).all() and (offsets[:, -1] == 100).all()
    counts = values_of({"dtype": "i32", "dist": "counts", "high": 7}, "skewed")
    assert counts.sum() == 7
    order = values_of({"dtype": "i32", "dist": "permutation"})
    assert (np.sort(order, axis=1) == np.arange(64)).all()
    assert values_of({"dtype": "i64", "dist": "positions", "high": 50}).max() == 49
    assert (values_of({"dist": "arange", "dtype": "i32"}).reshape(-1) == np.arange(16 * 64)).all()


def test_other_float_distributions():
    assert (values_of({"dist": "positive"}) >= 0).all()
    scale = values_of({"dist": "scale"}, dtype="f32")
    assert (scale > 0).all() and scale.max() <= 4
    table = values_of({"dist": "cos_sin"}, dtype="f32")
    assert np.allclose(table[:, :32] ** 2 + table[:, 32:] ** 2, 1, atol=1e-6) and (table[0, :32] == 1).all()
    assert np.isfinite(values_of({"dist": "bits"}, dtype="e4m3")).all()
    uniform = values_of({"dist": "uniform", "low": 2, "high": "2.5"}, dtype="f32")
    assert uniform.min() >= 2 and uniform.max() <= 2.5
    assert (values_of({"dist": "ones"}) == 1).all() and (values_of({"dist": "zeros", "dtype": "i32"}) == 0).all()


def test_an_integer_input_needs_a_bound():
    with pytest.raises(PorterError) as error:
        values_of({"dtype": "i32"})
    assert error.value.diagnostics[0].code == "PRT902" and "high" in error.value.diagnostics[0].message


def test_seeds_replay_and_differ():
    same = [make({}, seed=5)["x"].raw.tobytes() for _ in range(2)]
    assert same[0] == same[1] != make({}, seed=6)["x"].raw.tobytes()
    case = case_of(*({"name": n, "dtype": "T", "shape": ["rows", "cols"]} for n in ("x", "y")))
    (point,) = case.points(values={"T": "f32"})
    made = make_inputs(case, point, {"T": "f32"}, "normal", 5)
    assert made["x"].raw.tobytes() != made["y"].raw.tobytes()


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f64", "e4m3", "e5m2"])
def test_outputs_and_gaps_are_poisoned_with_nan(dtype):
    made = make({"strides": ["stride", 1]}, dtype=dtype)
    assert np.isnan(decode(made["out"].raw, dtype)).all()
    assert made["out"].initialised is False
    x = made["x"]
    mask = x.element_mask()
    assert x.raw.size == 15 * 72 + 64 and mask.sum() == 16 * 64
    assert np.isfinite(decode(x.raw[mask], dtype)).all() and np.isnan(decode(x.raw[~mask], dtype)).all()
    assert (np.asarray(x.initialised) == mask).all()


def test_integer_poison_is_no_likely_value():
    rng = np.random.default_rng(0)
    words = {poison_word("i32", rng) for _ in range(50)}
    assert len(words) == 50 and not words & {0, 0xFFFFFFFF} and min(words) >= 1 << 28


def test_init_fills_what_the_launcher_would():
    case = case_of({"name": "counter", "dtype": "i32", "shape": [3], "role": "scratch", "init": -1})
    (point,) = case.points(values={"T": "f32"})
    counter = make_inputs(case, point, {"T": "f32"})["counter"]
    assert (read_buffer(counter) == -1).all() and counter.initialised is True


def test_guards_alignment_and_copies():
    made = make({})
    x = made["x"]
    assert x.raw.ctypes.data % 256 == 0 and x.broken_guards() == 0
    twin = x.copy()
    assert (twin.allocation == x.allocation).all() and twin.raw.ctypes.data % 256 == 0
    twin.raw[0] ^= 1
    assert twin.broken_guards() == 0 and twin.raw[0] != x.raw[0]
    end = twin.raw.ctypes.data - twin.allocation.ctypes.data + twin.raw.nbytes
    twin.allocation[end] ^= 0xFF
    assert twin.broken_guards() == 1
    case = case_of({"name": "x", "dtype": "T", "shape": ["rows", "cols"]})
    (point,) = case.points(values={"T": "bf16"})
    shifted = make_inputs(case, point, {"T": "bf16"}, seed=3, misaligned=frozenset({"x"}))["x"]
    assert shifted.raw.ctypes.data % 256 == 2 and shifted.copy().raw.ctypes.data % 256 == 2
    assert (shifted.view() == x.view()).all()


def test_empty_buffers_have_no_elements():
    case = parse_case(
        HEAD.replace("rows = 16", "rows = 0") + '[[buffers]]\nname = "x"\ndtype = "T"\nshape = ["rows", "cols"]\n',
        Path("k"),
    )
    (point,) = case.points(values={"T": "f32"})
    made = make_inputs(case, point, {"T": "f32"}, "nonfinite")
    assert made["x"].raw.size == 0 and made["x"].view().shape == (0, 64) and made["x"].copy().broken_guards() == 0
