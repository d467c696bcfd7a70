"""Programs from seeds that reuse names in every scope: the port computes what the original computes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from porter.model import PorterError
from porter.verify.nvrtc import require_nvrtc
from tests.emit.program_generator import TYPES, program
from tests.emit.program_runs import RESULT, run, sweep

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

CI, ALL = 50, 2000


def test_fifty_programs(tmp_path: Path) -> None:
    outcomes = list(run(range(CI), tmp_path))
    assert len(outcomes) == CI
    assert [o for o in outcomes if o.kind != "equal"] == []


def test_programs_have_what_they_are_for() -> None:
    text = "\n".join(program(seed, f"p{seed}")[0] for seed in range(CI))
    for piece in (
        *(f"{t.name} " for t in TYPES),
        *("/", "%", "<<", ">>", "&", "|", "^", "~", "!", "?", "min(", "max("),
    ):
        assert text.count(piece) > 10, piece
    for piece in (
        "+=",
        "-=",
        "*=",
        "/=",
        "%=",
        "&=",
        "|=",
        "^=",
        ">>=",
        "++",
        "--",
        "while (",
        "do {",
        "switch (",
        "[&]",
    ):
        assert text.count(piece) > 2, piece
    assert program(7, "p") == program(7, "p")


def test_the_committed_sweep_found_no_difference() -> None:
    found = json.loads(RESULT.read_text())
    assert found["programs"] >= ALL and found["outcomes"] == {"equal": found["programs"]}


@pytest.mark.slow
def test_two_thousand_programs(tmp_path: Path) -> None:
    assert [o for o in sweep(0, ALL, tmp_path) if o.kind != "equal"] == []
