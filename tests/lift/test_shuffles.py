"""Reductions of a warp by name."""

from __future__ import annotations

import pytest

from porter.lift.lines import Line
from porter.lift.shuffles import name_reductions

FULL = "0xffffffff"


def named(head: str, step: str) -> str:
    return name_reductions([Line(head, None, [Line(step)])])[0].text


@pytest.mark.parametrize(
    ("head", "step", "text"),
    [
        ("for o in (16, 8, 4, 2, 1):", f"v = v + lib.shfl_xor(v, o, {FULL}, 32)", "v = lib.warp_sum(v)"),
        ("for o in (16, 8, 4, 2, 1):", f"v = lib.fmax(v, lib.shfl_xor(v, o, {FULL}, 32))", "v = lib.warp_max(v)"),
        ("for o in (4, 2, 1):", f"v = v + lib.shfl_xor(v, o, {FULL}, 32)", "v = lib.warp_sum(v, 8)"),
        ("for o in lib.halving(N // 2):", f"v = v + lib.shfl_xor(v, o, {FULL}, N)", "v = lib.warp_sum(v, N)"),
    ],
)  # fmt: skip
def test_a_reduction_has_its_name(head: str, step: str, text: str) -> None:
    assert named(head, step) == text


@pytest.mark.parametrize(
    ("head", "step"),
    [
        ("for o in (1, 2, 4, 8, 16):", f"v = v + lib.shfl_xor(v, o, {FULL}, 32)"),  # another order of the sum
        ("for o in (16, 8, 4, 2):", f"v = v + lib.shfl_xor(v, o, {FULL}, 32)"),  # two sums left
        ("for o in (12, 6, 3, 1):", f"v = v + lib.shfl_xor(v, o, {FULL}, 32)"),
        ("for o in (16, 8, 4, 2, 1):", f"v = v + lib.shfl_down(v, o, {FULL}, 32)"),
        ("for o in (16, 8, 4, 2, 1):", "v = v + lib.shfl_xor(v, o, mask, 32)"),
        ("for o in (16, 8, 4, 2, 1):", f"v = v + lib.shfl_xor(w, o, {FULL}, 32)"),
        ("for o in (16, 8, 4, 2, 1):", f"v = lib.shfl_xor(v, o, {FULL}, 32) + v"),
        ("for o in (16, 8, 4, 2, 1):", f"v = v * lib.shfl_xor(v, o, {FULL}, 32)"),
        ("for o in (16, 8, 4, 2, 1):", f"v = v + lib.shfl_xor(v, o, {FULL}, 16)"),
    ],
)
def test_other_loops_stay(head: str, step: str) -> None:
    assert named(head, step) == head
