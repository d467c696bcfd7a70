"""Shapes that explain what launches touched."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from porter.verify.measure.extents import Extent, Measured, fit

POINTS = [
    {"tokens": 7, "hidden": 64, "heads": 4},
    {"tokens": 33, "hidden": 64, "heads": 4},
    {"tokens": 7, "hidden": 100, "heads": 4},
    {"tokens": 7, "hidden": 64, "heads": 8},
]
NAMES = ["tokens", "hidden", "heads"]


def measured(length: Callable[..., int]) -> list[Measured]:
    return [Measured(p, length(**p)) for p in POINTS]


@pytest.mark.parametrize(
    "length, shape",
    [
        (lambda tokens, hidden, heads: tokens * hidden, ("tokens", "hidden")),
        (lambda tokens, hidden, heads: tokens * heads * hidden, ("tokens", "hidden", "heads")),
        (lambda tokens, hidden, heads: hidden, ("hidden",)),
        (lambda tokens, hidden, heads: tokens + 1, ("tokens + 1",)),
        (lambda tokens, hidden, heads: tokens * -(-hidden // 32), ("tokens", "ceil_div(hidden, 32)")),
        (lambda tokens, hidden, heads: 2 * tokens * hidden, ("tokens", "hidden", "2")),
        (lambda tokens, hidden, heads: 1, ("1",)),
        (lambda tokens, hidden, heads: 13, ("13",)),
    ],
)
def test_products_of_sizes(length: Callable[..., int], shape: tuple[str, ...]) -> None:
    found = fit(measured(length), NAMES)
    assert found is not None and found.shape == shape and found.exact


def test_what_no_product_explains_is_bounded_from_above() -> None:
    found = fit(measured(lambda tokens, hidden, heads: tokens * hidden - 5), NAMES)
    assert found is not None and found.shape == ("tokens", "hidden") and not found.exact


def test_a_launch_that_touched_nothing_says_nothing() -> None:
    found = fit([*measured(lambda tokens, hidden, heads: tokens), Measured(POINTS[0], 0)], NAMES)
    assert found is not None and found.shape == ("tokens",)
    assert fit([Measured(POINTS[0], 0)], NAMES) is None


def test_roles() -> None:
    assert [Extent(8, 0, True).role, Extent(0, 8).role, Extent(8, 8).role, Extent(8, 8, True).role, Extent().role] == [
        "in", "out", "out", "inout", "",
    ]  # fmt: skip
