"""What differs from GPU to GPU differs from launch to launch; launches that overlap the kernel before have to wait."""

from __future__ import annotations

import numpy as np
import pytest

from porter.verify.emulator import Buffer, launch, load
from porter.verify.emulator.machine.drawn import SM_COUNTS

HEAD = ".version 8.5\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
REGISTERS = "  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n  ld.param.u64 %rd1, [out];\n"
INDEX = "  mov.u32 %r1, %ctaid.x;\n  mul.wide.u32 %rd2, %r1, 8;\n  add.s64 %rd3, %rd1, %rd2;\n"


def asked(register: str, seed: int, blocks: int = 64) -> np.ndarray:
    wide = "u64" if register in ("clock64", "globaltimer", "gridid") else "u32"
    target = "%rd4" if wide == "u64" else "%r2"
    more = "" if wide == "u64" else "  cvt.u64.u32 %rd4, %r2;\n"
    read = f"  mov.{wide} {target}, %{register};\n{more}"
    text = f"{HEAD}{REGISTERS}{INDEX}{read}  st.global.u64 [%rd3], %rd4;\n  ret;\n}}\n"
    out = np.zeros(blocks, np.uint64)
    assert launch(load(text), "k", blocks, 1, [Buffer(out)], seed=seed).ok
    return out


@pytest.mark.parametrize("register", ["smid", "nsmid", "clock64", "clock", "globaltimer", "gridid"])
def test_answers_change_with_the_schedule_and_can_be_repeated(register):
    answers = [asked(register, seed) for seed in range(12)]
    assert len({a.tobytes() for a in answers}) > 1
    assert (asked(register, 5) == answers[5]).all()


def test_multiprocessors_are_those_of_gpus():
    counts = {int(asked("nsmid", seed)[0]) for seed in range(30)}
    assert counts == set(SM_COUNTS)
    places = np.concatenate([asked("smid", seed) for seed in range(8)])
    assert places.max() >= 64 and places.max() < max(SM_COUNTS)


def test_buffers_lie_elsewhere_in_other_launches():
    text = f"{HEAD}{REGISTERS}{INDEX}  st.global.u64 [%rd3], %rd1;\n  ret;\n}}\n"
    found = set()
    for seed in range(12):
        out = np.zeros(2, np.uint64)
        assert launch(load(text), "k", 2, 1, [Buffer(out)], seed=seed).ok
        found.add(int(out[0]))
    assert min(found) < 1 << 40 < max(found)


WAIT = "  griddepcontrol.wait;\n"
STORE = "  st.global.u64 [%rd3], %rd2;\n"
LOAD = "  ld.global.u64 %rd4, [%rd3];\n"
SOME = "  mov.u32 %r3, %tid.x;\n  setp.lt.u32 %p1, %r3, 1;\n  @%p1 griddepcontrol.wait;\n"


@pytest.mark.parametrize(
    ("body", "threads", "early"),
    [
        (WAIT + LOAD + STORE, 32, 0),
        (LOAD + WAIT + STORE, 32, 1),
        (STORE + WAIT, 32, 1),
        (LOAD + STORE, 32, 2),
        (SOME + LOAD, 64, 1),
        (SOME + "  bar.sync 0;\n" + LOAD, 64, 0),
        ("  prefetch.global.L2 [%rd3];\n" + WAIT + LOAD, 32, 0),
    ],
)
def test_accesses_before_the_wait_are_early(body, threads, early):
    text = f"{HEAD}{REGISTERS}{INDEX}{body}  ret;\n}}\n"
    for overlapped in (True, False):
        out = Buffer(np.zeros(4, np.uint64), "out")
        found = launch(load(text), "k", 2, threads, [out], overlapped=overlapped)
        assert len([v for v in found.violations if v.kind == "early-access"]) == (early if overlapped else 0)
