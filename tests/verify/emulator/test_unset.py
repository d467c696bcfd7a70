"""Registers that nothing was written to hold no zeros, on both backends alike; what is written first is as it was."""

from __future__ import annotations

import numpy as np
import pytest

from porter.verify import emulator as ptx
from tests.verify.emulator.ptx_micro import kernel, store32

ODD = "and.b32 %r3, %r0, 1; setp.eq.u32 %p1, %r3, 1;\n"
SET = np.arange(32, dtype=np.uint32)

# what a thread stores -> where it is what the program says
UNSET = {
    "left-out-in-a-branch": ODD + "@%p1 bra ON; mov.u32 %r5, %r0;\nON:\n" + store32("%r5"),
    "set-under-a-guard": ODD + "@!%p1 mov.u32 %r5, %r0;\n" + store32("%r5"),
    "of-64-bits": ODD + "@%p1 bra ON; cvt.u64.u32 %rd5, %r0;\nON: cvt.u32.u64 %r6, %rd5;\n" + store32("%r6"),
    "a-predicate": ODD + "@%p1 bra ON; setp.ge.u32 %p2, %r0, 32;\nON: selp.b32 %r6, 77, %r0, %p2;\n" + store32("%r6"),
    "set-in-a-loop-that-may-not-run": "and.b32 %r3, %r0, 1; mov.u32 %r4, 0;\nNEXT: setp.ge.u32 %p1, %r4, %r3;\n"
    "@%p1 bra DONE; mov.u32 %r5, %r0; add.u32 %r4, %r4, 1; bra NEXT;\nDONE:\n" + store32("%r5"),
}  # fmt: skip


def stored(body: str, backend: str) -> np.ndarray:
    out = np.zeros(64, np.uint32)
    result = ptx.launch(ptx.load(kernel(body, ("u64 out",), "")), "k", 1, 32, [ptx.Buffer(out)], backend=backend)
    assert not result.violations
    return out[:32]


@pytest.mark.parametrize("name", UNSET)
def test_what_was_never_set_shows(name: str) -> None:
    one, other = (stored(UNSET[name], backend) for backend in ("numpy", "llvm"))
    assert (one == other).all()
    right = one == SET
    assert right.sum() == 16 and not (one[~right] == 0).any()


def test_what_is_set_before_it_is_read_stays() -> None:
    guarded = ODD + "@!%p1 mov.u32 %r5, %r0;\n@%p1 mov.u32 %r5, 7;\n" + store32("%r5")
    both = ODD + "@%p1 bra ON; mov.u32 %r5, %r0; bra END;\nON: mov.u32 %r5, 7;\nEND:\n" + store32("%r5")
    for body in (guarded, both):
        for backend in ("numpy", "llvm"):
            assert (stored(body, backend) == np.where(SET % 2, 7, SET)).all()
