"""Ports edited at random: what is drawn, what is done with it, and the committed result of the whole sweep."""

from __future__ import annotations

import ast
import json

import pytest

from porter.model import PorterError
from porter.verify.original.nvrtc import require_nvrtc
from tools.edit_sweep import PAGE, RESULT, edits_of, kernels, plain, run_edit, section
from tools.mutation.explained import explanation
from tools.mutation.random_edits import KINDS, REGIONS, random_edits


def test_edits_are_one_change_each_and_the_same_again() -> None:
    found = edits_of("rms_norm", 60)
    assert found == edits_of("rms_norm", 60) and len(found) == 60
    assert len({e.digest for e in found}) == 60 and {e.region for e in found} == set(REGIONS)
    for edit in found:
        ast.parse(edit.text)
        assert edit.kind in KINDS and (edit.before, edit.after) != ("", "")
    assert len({e.kind for e in found}) > 12


def test_texts_without_a_place_have_no_edits() -> None:
    assert random_edits('"""Nothing."""\n\n\ndef launch_config(**_):\n    pass\n', "x", 5) == []


def test_lines_of_the_source_do_not_matter_in_ptx() -> None:
    assert plain("// a\n.loc 1 2 3\nadd;\n.section .debug_str {}\n") == plain(".loc 1 9 3\nadd;\n")
    assert plain("add;\n") != plain("sub;\n")


def test_an_explanation_is_of_what_was_changed() -> None:
    row = {"kernel": "k", "kind": "constant", "before": "lib.copy(v, x, VEC, readonly=True)"}
    assert explanation({**row, "after": "lib.copy(v, x, VEC, readonly=False)"})
    assert not explanation({**row, "after": "lib.copy(v, x, 0, readonly=True)"})
    loop = {"kernel": "k", "kind": "constant", "before": "for o in (16, 8, 4, 2, 1):"}
    assert explanation({**loop, "after": "for o in (17, 8, 4, 2, 1):"})
    assert not explanation({**loop, "after": "for o in (15, 8, 4, 2, 1):"})
    again = {"kernel": "k", "kind": "statement", "before": "s = s + x"}
    assert not explanation({**again, "after": "s = s + x; s = s + x"})
    assert explanation({**again, "before": "s = x[0]", "after": "s = x[0]; s = x[0]"})


def test_a_few_edits(tmp_path) -> None:
    pytest.importorskip("cutlass")
    try:
        require_nvrtc()
    except PorterError as error:
        pytest.skip(str(error))
    for edit in edits_of("static_int8_quant", 6):
        row = run_edit("static_int8_quant", edit, tmp_path / "port")
        assert row["outcome"] in ("killed", "equivalent") or explanation(row), row


def test_the_sweep_is_of_every_kernel_and_leaves_little_open() -> None:
    found = json.loads(RESULT.read_text(encoding="utf-8"))["edits"]
    assert {r["kernel"] for r in found} == set(kernels())
    assert len(found) >= 1_500 and len({(r["kernel"], r["number"]) for r in found}) == len(found)
    assert {r["kind"] for r in found} == set(KINDS)
    assert all(r["by"] for r in found if r["outcome"] == "killed")
    assert all(r["detail"] for r in found if r["outcome"] in ("killed", "equivalent", "explained"))
    assert sum(r["outcome"] == "open" for r in found) <= len(found) / 100
    assert section(found) in PAGE.read_text(encoding="utf-8")
