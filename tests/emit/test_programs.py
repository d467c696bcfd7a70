"""Programs from seeds that reuse names in every scope: the port computes what the original computes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from porter import ir
from porter.emit import plan
from porter.model import PorterError
from porter.patterns.names import declared
from porter.verify.original.nvrtc import require_nvrtc
from tests.emit.program_generator import TYPES, program
from tests.emit.program_runs import RESULT, run, sweep
from tests.emit.stages import emitted

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)

CI = [seed for seed in range(58) if seed % 4 != 3 or seed < 24]  # fewer of the templates, which are compiled twice
ALL = 2000


def test_fifty_programs(tmp_path: Path) -> None:
    outcomes = list(run(CI, tmp_path))
    assert len(outcomes) == len(CI) == 50
    assert [o for o in outcomes if o.kind != "equal"] == []


def test_passes_keep_every_local_of_a_function_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the emitter relies on until names are made short again."""
    shorten = plan.tidy_names
    seen = 0

    def checked(kernel: ir.Kernel) -> ir.Kernel:
        nonlocal seen
        for body in (kernel.body, *(f.body for f in kernel.functions.values())):
            names = declared(body)
            assert len(names) == len(set(names))
            seen += len(names)
        return shorten(kernel)

    monkeypatch.setattr(plan, "tidy_names", checked)
    for seed in range(60, 67):
        emitted(tmp_path, "py", *_one(seed))
    assert seen > 100


def _one(seed: int) -> tuple[str, tuple[str, ...]]:
    text, template = program(seed, "k")
    return text, ("k<3, true>", "k<8, false>") if template else ()


def test_programs_have_what_they_are_for() -> None:
    text = "\n".join(program(seed, f"p{seed}")[0] for seed in CI)
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
    assert found["programs"] >= ALL
    # run again after what they showed was mended
    mended = {o["seed"] for o in found.get("run_again", ()) if o["kind"] == "equal"}
    assert {o["seed"] for o in found["not_equal"]} <= mended
    assert found["outcomes"]["equal"] + len(found["not_equal"]) == found["programs"]


@pytest.mark.slow
def test_two_thousand_programs(tmp_path: Path) -> None:
    assert [o for o in sweep(0, ALL, tmp_path) if o.kind != "equal"] == []
