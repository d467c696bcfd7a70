"""Tensors that begin at a pointer, and buffers of which no shape is known."""

from __future__ import annotations

import pytest

from porter.lift.kernel import lift_kernel
from porter.lift.shapes import Shape
from tests.lift.ports import body_of, function

HEAD = "def k(a: cute.Pointer, b: cute.Pointer, n: Int32, T: cutlass.Constexpr, V: cutlass.Constexpr):"


def lifted(body: str, unknown: tuple[str, ...] = (), known: tuple[str, ...] = ("a", "b"), **values: list[int]) -> str:
    fn = function(HEAD + "\n" + "\n".join(f"    {row}" for row in body.strip("\n").split("\n")))
    lift_kernel(fn, {name: Shape(name, (None, "n"), None) for name in known}, unknown, values)
    return "\n".join(body_of(fn))


CHOICE = """
row = a + i * n if first else b + j * n
v = lib.local(T, V)
lib.copy(v, row + {at}, V)
y = lib.local(T, V)
for l in cutlass.range_constexpr(V):
    y[l] = T(Float32(v[l]) / s)
lib.copy(row + {at}, y, V)
"""


def test_a_row_of_one_buffer_or_of_another() -> None:
    text = lifted(CHOICE.format(at="lane * V"))
    assert "mRow = lib.tensor(row, (None,), vector=V)" in text
    assert "v = lib.load(cute.local_tile(mRow, (V,), (lane,)))" in text
    assert "cute.local_tile(mRow, (V,), (lane,)).store(y.load())" in text


@pytest.mark.parametrize("at", ["lane", "lane * V + 1", "lane * V + offset"])
def test_a_pointer_that_need_not_be_aligned_stays_one(at: str) -> None:
    """Nothing shows that the pointer is a multiple of the vector where an index is not written as one."""
    text = lifted(CHOICE.format(at=at))
    assert "lib.tensor(" not in text and f"lib.copy(v, row + {at}, V)" in text


@pytest.mark.parametrize(("number", "values", "lifts"), [(128, [8, 1], True), (128, [3], False), (12, [8, 4], False)])
def test_a_fixed_step_divides_by_every_value_of_the_vector(number: int, values: list[int], lifts: bool) -> None:
    text = lifted(CHOICE.format(at=f"g * {number}"), V=values)
    assert (f"cute.local_tile(mRow, (V,), (g * ({number} // V),))" in text) is lifts


def test_elements_need_no_alignment() -> None:
    text = lifted("row = a + i * n if first else b\nrow[j + 1] = lib.ldg(row + j)")
    assert text.split("\n")[1:] == ["mRow = lib.tensor(row, (None,))", "mRow[j + 1] = mRow[j]"]


def test_the_pointer_goes_where_nothing_else_uses_it() -> None:
    """It is a value of the tensor's own line only where it had one use."""
    text = lifted("row = a + i * n if first else b\nlib.atomic_add(row + 1, 2)\nrow[j] = 1")
    assert text.split("\n") == [
        "row = a + i * n if first else b",
        "mRow = lib.tensor(row, (None,))",
        "lib.atomic_add(row + 1, 2)",
        "mRow[j] = 1",
    ]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("a[g] = 1", ["mA = lib.tensor(a, (None,))", "mA[g] = 1"]),
        ("a[g * 128 + j] = 1\na[h * 128] = 2", ["mA = lib.tensor(a, (None, 128))", "mA[g, j] = 1", "mA[h, 0] = 2"]),
        ("a[g * 128 + j] = 1\na[h * 64] = 2", ["mA = lib.tensor(a, (None,))", "mA[g * 128 + j] = 1", "mA[h * 64] = 2"]),
    ],
)
def test_a_buffer_of_unknown_shape_has_the_rows_of_its_accesses(body: str, lines: list[str]) -> None:
    assert lifted(body, unknown=("a",), known=()).split("\n") == lines


PARTS = """
x = lib.local(T, 4 * V)
for i in cutlass.range_constexpr(4):
    lib.copy(x + {part}, a + r * n + i * V, V)
s = x[0] + x[V]
"""


def test_parts_of_an_array() -> None:
    text = lifted(PARTS.format(part="i * V"))
    assert "x = cute.make_rmem_tensor(4 * V, T)" in text
    assert "cute.local_tile(x, (V,), (i,)).store(lib.load(cute.local_tile(mA[r, None], (V,), (i,))))" in text


@pytest.mark.parametrize("part", ["i", "i * V + 1", "i * 2"])
def test_other_parts_of_an_array_stay_pointers(part: str) -> None:
    assert "x = lib.local(T, 4 * V)" in lifted(PARTS.format(part=part))


@pytest.mark.parametrize(
    ("rows", "whole", "index"),
    [
        ("a[i * n + j] = 1", "mA = lib.tensor(a, (None, n))", "mA[i, j] = 1"),
        ("a[i * n + j] = 1\na[slot] = 2", "mA = lib.tensor(a, (None,))", "mA[slot] = 2"),
        ("a[slot] = 2\na[i * n] = 1", "mA = lib.tensor(a, (None,))", "mA[i * n] = 1"),
    ],
)
def test_a_buffer_that_is_indexed_by_element_has_no_rows(rows: str, whole: str, index: str) -> None:
    text = lifted(rows, known=("a",))
    assert whole in text.split("\n") and index in text.split("\n")


@pytest.mark.parametrize(
    ("definition", "index"),
    [
        ("f(i) * V", "m // V + c // V"),  # a multiple, so the rest is one too
        ("f(i)", "(c + m) // V"),
        ("f(i) + V", "(c + m) // V"),
    ],
)
def test_what_is_a_multiple_by_its_definition_is_divided_by_itself(definition: str, index: str) -> None:
    text = lifted(f"c = {definition}\nv = lib.local(T, V)\nlib.copy(v, a + r * n + c + m, V)\ns = v[0]", known=("a",))
    assert f"v = lib.load(cute.local_tile(mA[r, None], (V,), ({index},)))" in text
