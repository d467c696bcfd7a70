"""`--explain-style` and the table of docs/tensor-style.md: what was lifted and what stopped the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from porter.lift.explain import explain, format_remarks
from tests.cli.conftest import porter as porter
from tests.lift.ports import REFERENCE, SOURCES, pointer_form, tensor_form
from tools.lift_table import BEGIN, END, PAGE, RESULT, Row, remarks_of, row_of, table

RECORDED = {k["kernel"]: Row(**k) for k in json.loads(RESULT.read_text(encoding="utf-8"))["kernels"]}


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_the_table_says_what_is_lifted_now(path: Path) -> None:
    """Where this fails, `python -m tools.lift_table --write` makes table and record anew."""
    known = RECORDED[path.stem]
    assert row_of(path.stem, remarks_of(pointer_form(path)), known.style, known.fallback) == known


def test_the_page_shows_the_record() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page[page.index(BEGIN) + len(BEGIN) : page.index(END)].strip() == table(list(RECORDED.values())).strip()


def why(kernel: str, text: str) -> set[str]:
    """What stops the lines with a text in a kernel's port."""
    made = tensor_form(REFERENCE / kernel)
    return {r.why for r in explain(made.module, made.plan) if text in r.text}


@pytest.mark.parametrize(
    ("kernel", "text", "told"),
    [
        ("quant/per_tensor_fp8_quant.cu", "lib.atomic_max(absmax_bits", "an atomic operation takes an address"),
        ("moe/moe_dispatch.cu", "grid_barrier(arrivals)", "the device function grid_barrier takes a pointer"),
        ("norm/rms_norm_dynamic_fp8_quant.cu", "lib.copy(v, x", "the array v also goes to or comes from shared memory"),
        ("norm/rms_norm_dynamic_fp8_quant.cu", "lib.copy(n, parked", "shared memory is not lifted"),
        ("norm/rms_norm.cu", "x = lib.load(", ""),
    ],
)  # fmt: skip
def test_reasons(kernel: str, text: str, told: str) -> None:
    assert why(kernel, text) == {told}


def test_over_pointers_everything_is_left() -> None:
    made = pointer_form(REFERENCE / "norm/qk_norm.cu")
    found = [r for r in explain(made.module, made.plan) if r.why]
    assert {r.why for r in found} == {"a pointer into k or q", "a pointer into k_weight or q_weight"}
    assert all(r.span is not None and r.span.file.endswith("qk_norm.cu") for r in found)


def test_shared_memory_in_a_device_function_is_shared_memory() -> None:
    """Its pointer comes from lib.shared in every call."""
    made = tensor_form(REFERENCE / "norm/fused_add_rms_norm.cu")
    assert {r.why for r in explain(made.module, made.plan) if r.why} == {"shared memory is not lifted"}


def test_the_command_prints_a_line_an_access_and_writes_nothing(porter, tmp_path: Path) -> None:
    done = porter("port", str(REFERENCE / "norm/qk_norm.cu"), "--explain-style")
    assert done.returncode == 0, done.stderr
    made = tensor_form(REFERENCE / "norm/qk_norm.cu")
    assert done.stdout == format_remarks(explain(made.module, made.plan), "qk_norm_kernel")
    assert "  qk_norm.cu:81: cute.local_tile(mRow, (VEC,), (i * 16 + lane,)).store(y.load())" in done.stdout
    assert not (tmp_path / "ported").exists()


def test_two_things_to_print_are_refused(porter) -> None:
    done = porter("port", "k.cu", "--explain-style", "--emit", "py")
    assert done.returncode == 2 and "give one of them" in done.stderr
