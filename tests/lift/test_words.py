"""Vectors that the source moves as 32-bit words: what becomes a vector of its elements, and what stays words."""

from __future__ import annotations

import pytest

from porter.lift.shapes import Elements
from porter.lift.words import words_as_elements
from tests.lift.ports import body_of, function

HEAD = "def k(out: cute.Pointer, x: cute.Pointer, w: cute.Pointer, n: Int32, T: cutlass.Constexpr):"
KERNEL = f"""
{HEAD}
    row = x + token * n
    words = lib.view(row, Uint32)
    target = lib.view(out, Uint32)
    v = lib.local(Uint32, 4)
    lib.copy(v, words + Int64(i) * 4, 4, readonly=True)
    e = lib.view(v, T)
    r = lib.local(Uint32, 4)
    f = lib.view(r, T)
    for j in cutlass.range_constexpr(8):
        f[j] = T(Float32(e[j]) * 2.0)
    lib.copy(target + Int64(i) * 4, r, 4)
"""


def rewritten(text: str, bits: int = 16, held: str = "T") -> list[str]:
    fn = function(text)
    words_as_elements(fn, Elements({"x": held, "out": held, "w": "Float32"}, {"T": bits}))
    return body_of(fn)


@pytest.mark.parametrize(("bits", "count"), [(16, 8), (8, 16)])
def test_words_are_elements(bits: int, count: int) -> None:
    assert rewritten(KERNEL, bits) == [
        "row = x + token * n",
        f"v = lib.local(T, {count})",
        f"lib.copy(v, row + Int64(i) * {count}, {count}, readonly=True)",
        f"r = lib.local(T, {count})",
        "for j in cutlass.range_constexpr(8):",
        "    r[j] = T(Float32(v[j]) * 2.0)",
        f"lib.copy(out + Int64(i) * {count}, r, {count})",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lib.copy(v, words + Int64(i) * 4, 4", "lib.copy(v, words + Int64(i) * 2, 4"),  # at half a vector
        ("lib.copy(v, words + Int64(i) * 4, 4", "lib.copy(v, words + Int64(i) * 4, 2"),  # half a vector
        ("    e = lib.view(v, T)", "    v[0] = v[0] ^ 1\n    e = lib.view(v, T)"),  # a word as a number
        ("    e = lib.view(v, T)", "    e = lib.view(v, T)\n    h = lib.view(v, Uint16)"),  # of two types
        ("words = lib.view(row, Uint32)", "words = lib.view(w, Uint32)"),  # memory of another type
        ("words = lib.view(row, Uint32)", "words = lib.view(row if n else x, Uint32)"),
        ("    e = lib.view(v, T)", "    e = lib.view(v, T)\n    s = lib.ldg(words)"),
    ],
)
def test_other_words_stay_words(old: str, new: str) -> None:
    assert old in KERNEL
    lines = rewritten(KERNEL.replace(old, new))
    assert "v = lib.local(Uint32, 4)" in lines and any("= lib.view(" in x for x in lines)


def test_a_type_whose_width_differs_by_instance_stays_words() -> None:
    assert rewritten(KERNEL, bits=0) == body_of(function(KERNEL))


def test_memory_of_another_type_stays_words() -> None:
    assert rewritten(KERNEL, held="Float32") == body_of(function(KERNEL))
