"""Shapes that the case does not list, and failing launches made small."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from porter.case.reader import Point, parse_case
from porter.verify.backends.interface import Build, RunResult, Violation
from porter.verify.execute import InstanceUnderTest, run_trial
from porter.verify.explain import fails_numerics, fails_sanitizer
from porter.verify.launches.derived import constants_of, derived_trials, is_legal, size_candidates
from porter.verify.launches.shrink import Shrinker
from porter.verify.launches.trials import Trial
from tests.verify.launches.test_trials import BF16, CASE, F32, INFO, NumpyBackend, kernel

PORT = """def launch_config(*, rows, **_):
    return (rows, 1, 1), (128, 1, 1), 0
"""


def test_constants_are_numbers_of_the_code_only():
    text = '#define N 77\n// 99 threads\nint x[48]; const char* s = "55"; /* 7\n*/ z = 1;'
    text += "y = 0x20 + 1.5f * 3e4 - v2 + 0xffffffff;"
    assert constants_of(text) == {48, 32}


@pytest.mark.parametrize(
    ("value", "listed", "legal"),
    [
        (5, {1, 8}, True), (0, {1, 8}, False), (9, {1, 8}, False),
        (96, {64, 128, 192}, False), (128, {64, 192, 320}, True),  # a common factor is kept
        (48, {16, 64}, False), (32, {16, 64}, True),  # powers of two
        (2, {1, 6}, True), (3, {1, 2}, False),
    ],
)  # fmt: skip
def test_what_the_case_lists_says_what_is_legal(value, listed, legal):
    assert is_legal(value, frozenset(listed)) == legal


def test_candidates_lie_beside_constants_and_their_vectors():
    found = size_candidates(CASE, "cols", frozenset({96}), BF16)
    assert {95 // 4 * 4, 96, 768 - 8} & set(found) and 64 not in found and 9216 not in found
    assert {88, 96, 104, 96 * 8} - {768} <= set(found)  # a vector of 8 to both sides, and 96 vectors less one element
    assert all(64 <= v <= 9216 and v % 4 == 0 for v in found)  # 64, 100, 768, 9216 have the factor 4 in common


@pytest.mark.parametrize("seed", range(8))
def test_derived_launches_are_new_small_and_the_instance_s_own(seed):
    for instance, values in zip(CASE.instances, (BF16, F32), strict=True):
        trials = derived_trials(CASE, instance, values, frozenset({128, 256}), seed)
        assert 3 <= len(trials) <= 6
        odd = any(t.point.sizes["cols"] // 8 % 2 for t in trials)  # a last vector without a partner
        assert odd or values is F32
        for t in trials:
            assert t.derived and t.point.elements < 60_000 and t.point.sizes["rows"] > 0
            assert t.point.sizes["rows"] not in (0, 1, 2, 5, 33) or t.point.sizes["cols"] not in (64, 100, 768, 9216)
            assert t.point.sizes["cols"] % (8 if values is BF16 else 4) == 0
        assert trials == derived_trials(CASE, instance, values, frozenset({128, 256}), seed)
    assert trials != derived_trials(CASE, instance, values, frozenset({128, 256}), seed + 1)


def test_sizes_that_are_all_given_are_not_varied():
    text = CASE.text.replace("rows = [0, 1, 5, 33]", "rows = 3").replace("cols = [64, 100, 768]", "cols = 64")
    fixed = parse_case(text.split("[[shapes]]")[0] + text[text.index("[[buffers]]") :], Path("k"))
    assert derived_trials(fixed, fixed.instances[1], F32, frozenset({8}), 1) == []


def subject_of(backend):
    return InstanceUnderTest(
        CASE, INFO, F32, Build("original", "", "k", ""), Build("port", "", "k", ""), reduces=False
    ), backend


@pytest.fixture
def shrinker(tmp_path):
    port = tmp_path / "port.py"
    port.write_text(PORT)

    def make(wrong):
        backend = NumpyBackend(port=wrong)
        subject, _ = subject_of(backend)
        return Shrinker(port, CASE, CASE.instances[1], subject, backend, 8)

    return make


def trial(shape: dict[str, int], **changes) -> Trial:
    return replace(Trial(CASE.point_at(shape, F32), "outlier", 5), **changes)


def first_result(at: Shrinker, chosen: Trial):
    shape = CASE.launch_at(chosen.point, F32)
    return run_trial(at.subject, chosen, at.backend, (shape, shape))


def smallest_of(at: Shrinker, chosen: Trial, fails=fails_numerics) -> tuple[Trial, Point]:
    result = first_result(at, chosen)
    assert fails(result)
    best = at.shrink(result, fails)
    assert fails(best)
    return best.trial, best.trial.point


def last_element(least):
    """Wrong in its last column where there are more than `least` columns."""

    def port(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        view = arguments[0].view()
        if view.size and view.shape[1] > least:
            view[-1, -1] ^= 1 << 30

    return port


def test_a_failure_everywhere_becomes_one_row_of_the_least_width(shrinker):
    found, point = smallest_of(shrinker(last_element(0)), trial({"rows": 33, "cols": 768}))
    assert point.sizes == {"rows": 1, "cols": 64} and found.scenario == "normal" and found.seed == 5


def test_a_failure_above_a_width_shrinks_to_it(shrinker):
    _, point = smallest_of(shrinker(last_element(200)), trial({"rows": 5, "cols": 768}))
    assert point.sizes["rows"] == 1 and 200 < point.sizes["cols"] <= 208


def test_the_distribution_stays_where_it_is_what_fails(shrinker):
    def port(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        words = arguments[2].view().view(np.uint32)
        if (words.view(np.float32) > 100).any():
            arguments[0].view()[...] = 0

    found, point = smallest_of(shrinker(port), trial({"rows": 33, "cols": 768}))
    assert found.scenario == "outlier" and point.sizes["rows"] <= 5


def test_what_the_original_refuses_is_no_smaller_failure(shrinker):
    def refusing(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        return RunResult((Violation("out-of-bounds", "too narrow"),)) if arguments[0].shape[1] < 100 else None

    at = shrinker(last_element(0))
    at.backend.functions["original"] = refusing
    _, point = smallest_of(at, trial({"rows": 33, "cols": 768}))
    assert point.sizes == {"rows": 1, "cols": 100}


def test_violations_shrink_by_kind(shrinker):
    def port(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        kind = "shared-race" if arguments[0].shape[1] > 300 else "misaligned"
        return RunResult((Violation(kind, "x"),))

    _, point = smallest_of(shrinker(port), trial({"rows": 33, "cols": 768}), fails_sanitizer("shared-race", ()))
    assert point.sizes["rows"] == 1 and 300 < point.sizes["cols"] <= 308


def test_no_time_no_smaller_launch(shrinker):
    at = shrinker(last_element(0))
    result = first_result(at, trial({"rows": 33, "cols": 768}))
    assert at.shrink(result, fails_numerics, seconds=0.0) is result


def test_a_port_without_a_launch_there_leaves_the_failure_as_it_is(shrinker):
    at = shrinker(last_element(0))
    at.port_path.write_text("def launch_config(*, rows, **_):\n    return (1 // (rows - 1),), (128,), 0\n")
    _, point = smallest_of(at, trial({"rows": 33, "cols": 768}))
    assert point.sizes == {"rows": 33, "cols": 768}
