"""Registers decide between the forms where they leave room for fewer blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from porter.config import PortConfig
from porter.pipeline import style
from porter.pipeline.style import resident_blocks, verified_over_tensors
from porter.verify.compile.worker import CompileRequest, CompileResult
from tests.lift.ports import REFERENCE, pointer_form

PTX = ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n"


@pytest.mark.parametrize(
    ("registers", "threads", "blocks"),
    [
        (32, 1024, 2),
        (33, 1024, 1),  # 40 a thread: registers come in units of 8 for each of a warp's threads
        (48, 128, 10),
        (56, 128, 9),
        (16, 32, 32),  # blocks
        (16, 256, 8),  # threads
        (255, 1024, 0),
    ],
)
def test_resident_blocks(registers: int, threads: int, blocks: int) -> None:
    assert resident_blocks(registers, threads) == blocks


@pytest.mark.parametrize(("over_tensors", "kept"), [(32, True), (40, False), (30, True)])
def test_the_form_with_fewer_blocks_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, over_tensors: int, kept: bool
) -> None:
    """permute_rows runs in blocks of up to 1,024 threads."""
    made = pointer_form(REFERENCE / "moe/permute_rows.cu")

    def compiled(draft: Any, info: Any, instances: Sequence[Any], arches: Sequence[str], jobs: int) -> Any:
        registers = over_tensors if "lib.tensor(" in draft.path.read_text() else 32
        return [CompileResult(CompileRequest({}, a), True, PTX, registers=registers) for _ in instances for a in arches]

    monkeypatch.setattr(style, "compiled", compiled)
    monkeypatch.setattr(style, "is_good", lambda verdicts: True)
    monkeypatch.setattr(style, "_block_sizes", lambda made, instance: [1024])
    _, _, notes = verified_over_tensors(made, PortConfig(arch=("sm_90a",)), lambda m: ())
    assert [n.code for n in notes] == ([] if kept else ["PRT974"])
    if notes:
        assert "40 registers a thread for 32 would leave room for 1 block of 1024 threads" in notes[0].message


def test_block_sizes_are_the_case_s() -> None:
    made = pointer_form(REFERENCE / "norm/rms_norm.cu")
    sizes = style._block_sizes(made, made.instances[0])
    assert sizes and all(32 <= s <= 1024 for s in sizes)
