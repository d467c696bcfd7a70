"""Races in shared and global memory: planted ones are found at their line, correct synchronisation is quiet."""
# ruff: noqa: E501 (lines of PTX)

from __future__ import annotations

import numpy as np
import pytest

from porter.verify import emulator as ptx
from tests.verify.emulator.ptx_micro import kernel, kinds, run, store32

RACES = ptx.Checks(shared_races=True, global_races=True)
SHARED = ".shared .align 4 .b32 s[256]; mov.u32 %r3, s; shl.b32 %r4, %r0, 2; add.u32 %r5, %r3, %r4;\n"


def found(text: str, *more: object, out: int = 256, **options: object) -> list[tuple[str, str]]:
    """(kind, the source line it points at) of every violation."""
    result = run(text, np.zeros(out, np.uint32), *more, checks=RACES, **options)
    lines = text.split("\n")
    return [(v.kind, lines[v.ptx_line - 1].strip()) for v in result.violations]


def exchange(between: str) -> str:
    """Each thread writes its word, then reads the word of the thread `between` steps on."""
    return kernel(
        SHARED + "st.shared.u32 [%r5], %r0;\n" + between + "\nxor.b32 %r6, %r4, 128; add.u32 %r6, %r6, %r3;\n"
        "ld.shared.u32 %r7, [%r6];\n" + store32("%r7")
    )


def test_missing_barrier_between_write_and_read() -> None:
    assert found(exchange(""), block=64) == [("shared-race", "ld.shared.u32 %r7, [%r6];")]
    assert found(exchange("bar.sync 0;"), block=64) == []


def test_missing_barrier_before_a_second_write() -> None:
    body = (
        SHARED
        + "st.shared.u32 [%r5], %r0;\nbar.sync 0;\nxor.b32 %r6, %r4, 128; add.u32 %r6, %r6, %r3;\nld.shared.u32 %r7, [%r6];\n"
    )
    tail = "add.u32 %r8, %r0, 100;\nst.shared.u32 [%r5], %r8;\n" + store32("%r7")
    assert found(kernel(body + tail), block=64) == [("shared-race", "st.shared.u32 [%r5], %r8;")]
    assert found(kernel(body + "bar.sync 0;\n" + tail), block=64) == []


def test_two_warps_write_one_word() -> None:
    text = kernel(SHARED + "st.shared.u32 [%r3], %r0;\n" + store32("%r0"))
    assert ("shared-race", "st.shared.u32 [%r3], %r0;") in found(text, block=64)
    same = kernel(SHARED + "st.shared.u32 [%r3], 7;\n" + store32("%r0"))
    assert found(same, block=64) == []  # all write the same value


def test_lanes_of_one_warp_need_a_warp_barrier() -> None:
    body = (
        SHARED
        + "st.shared.u32 [%r5], %r0;\n{}\nxor.b32 %r6, %r4, 4; add.u32 %r6, %r6, %r3;\nld.shared.u32 %r7, [%r6];\n"
        + store32("%r7")
    )
    assert found(kernel(body.format(""))) == [("shared-race", "ld.shared.u32 %r7, [%r6];")]
    assert found(kernel(body.format("bar.warp.sync -1;"))) == []


def test_named_barriers_order_only_their_warps() -> None:
    body = (
        SHARED + "shr.u32 %r9, %r0, 6; setp.eq.u32 %p0, %r9, 0;\nst.shared.u32 [%r5], %r0;\n"
        "@%p0 bar.sync 1, 64;\n@!%p0 bar.sync 2, 64;\nxor.b32 %r6, %r4, {}; add.u32 %r6, %r6, %r3;\nld.shared.u32 %r7, [%r6];\n"
    ) + store32("%r7")
    assert found(kernel(body.format(128)), block=128) == []  # the partner is in the same half
    assert found(kernel(body.format(256)), block=128) == [("shared-race", "ld.shared.u32 %r7, [%r6];")]


def test_producer_arrives_consumer_waits() -> None:
    body = (
        (
            SHARED
            + "setp.ge.u32 %p0, %r0, 32; @%p0 bra CONSUMER;\nst.shared.u32 [%r5], %r0; bar.arrive 3, 64; bra END;\n"
            "CONSUMER: {}\nxor.b32 %r6, %r4, 128; add.u32 %r6, %r6, %r3;\nld.shared.u32 %r7, [%r6];\n"
        )
        + store32("%r7")
        + "END: bar.sync 0;"
    )
    assert found(kernel(body.format("bar.sync 3, 64;")), block=64) == []


def test_shared_atomics_do_not_race_with_each_other_but_with_plain_accesses() -> None:
    text = kernel(
        SHARED
        + "setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u32 [%r3], 0;\n{}\natom.shared.add.u32 %r6, [%r3], 1;\n{}\nld.shared.u32 %r7, [%r3];\n".format(
            "bar.sync 0;", "bar.sync 0;"
        )
        + store32("%r7")
    )
    assert found(text, block=128) == []
    missing = text.replace("bar.sync 0;\nld.shared", "ld.shared")
    assert found(missing, block=128) == [("shared-race", "ld.shared.u32 %r7, [%r3];")]


def test_mbarrier_orders_its_waiters() -> None:
    text = kernel(
        SHARED
        + ".shared .align 8 .b64 bar; mov.u32 %r10, bar; setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared.b64 [%r10], 64; bar.sync 0;\n"
        "st.shared.u32 [%r5], %r0; mbarrier.arrive.shared.b64 %rd2, [%r10];\nW: mbarrier.test_wait.shared.b64 %p1, [%r10], %rd2; @!%p1 bra W;\n"
        "xor.b32 %r6, %r4, 128; add.u32 %r6, %r6, %r3;\nld.shared.u32 %r7, [%r6];\n" + store32("%r7")
    )
    assert found(text, block=64) == []


def test_blocks_that_write_the_same_words() -> None:
    text = kernel("mul.wide.u32 %rd30, %r0, 4; add.u64 %rd31, %rd0, %rd30;\nst.global.u32 [%rd31], %r1;")
    assert found(text, grid=2) == [("global-race", "st.global.u32 [%rd31], %r1;")]
    assert found(text, grid=1) == []


def test_blocks_of_different_waves_race_too() -> None:
    text = kernel("mul.wide.u32 %rd30, %r0, 4; add.u64 %rd31, %rd0, %rd30;\nst.global.u32 [%rd31], %r1;")
    assert found(text, grid=4, resident=2)[0][0] == "global-race"


def test_reading_what_another_block_writes() -> None:
    text = kernel(
        "mul.wide.u32 %rd30, %r1, 4; add.u64 %rd31, %rd1, %rd30; st.global.u32 [%rd31], %r1;\nxor.b32 %r5, %r1, 32;"
        "mul.wide.u32 %rd28, %r5, 4; add.u64 %rd29, %rd1, %rd28;\nld.global.u32 %r6, [%rd29];\n" + store32("%r6"),
        ("u64 out", "u64 data"),
    )
    assert found(text, np.zeros(64, np.uint32), grid=2) == [("global-race", "ld.global.u32 %r6, [%rd29];")]


def test_write_after_read_by_another_block() -> None:
    # block 0 reads what block 1 overwrites later
    text = kernel(
        "mov.u32 %r3, %ctaid.x; setp.eq.u32 %p0, %r3, 0; mov.u32 %r6, 0; @%p0 ld.global.u32 %r6, [%rd1];\n"
        "@!%p0 st.global.u32 [%rd1], 5;\n" + store32("%r6"),
        ("u64 out", "u64 data"),
    )
    assert found(text, np.zeros(64, np.uint32), grid=2) == [("global-race", "@!%p0 st.global.u32 [%rd1], 5;")]


def message_passing(release: str, acquire: str) -> str:
    """Block 0 writes data and raises a flag, block 1 waits for the flag and reads."""
    return kernel(
        "mov.u32 %r3, %ctaid.x; setp.ne.u32 %p0, %r3, 0; @%p0 bra READER;\nmul.wide.u32 %rd2, %r0, 4; add.u64 %rd3, %rd1, %rd2;\n"
        "st.global.u32 [%rd3+4], 42; bar.sync 0; setp.ne.u32 %p1, %r0, 0; @%p1 bra END;\n" + release + "\nbra END;\n"
        "READER: setp.ne.u32 %p1, %r0, 0; @%p1 bra GO;\nW:" + acquire + "setp.eq.u32 %p2, %r5, 0; @%p2 bra W;\n"
        "GO: bar.sync 0; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd3, %rd1, %rd2;\nld.global.u32 %r6, [%rd3+4];\n"
        + store32("%r6")
        + "END:",
        ("u64 out", "u64 data"),
    )


@pytest.mark.parametrize(("release", "acquire", "good"), [
    ("st.release.gpu.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r5, [%rd1];", True),
    ("fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd1], 1;", "ld.relaxed.gpu.global.u32 %r5, [%rd1]; fence.acq_rel.gpu;", True),
    ("membar.gl; atom.global.add.u32 %r9, [%rd1], 1;", "ld.volatile.global.u32 %r5, [%rd1]; membar.gl;", True),
    ("atom.release.gpu.global.exch.b32 %r9, [%rd1], 1;", "atom.acquire.gpu.global.or.b32 %r5, [%rd1], 0;", True),
    ("st.relaxed.gpu.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r5, [%rd1];", False),
    ("st.release.gpu.global.u32 [%rd1], 1;", "ld.relaxed.gpu.global.u32 %r5, [%rd1];", False),
    ("atom.global.add.u32 %r9, [%rd1], 1;", "ld.volatile.global.u32 %r5, [%rd1]; membar.gl;", False),
    ("st.release.sys.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r5, [%rd1];", True),
    ("st.release.gpu.global.u32 [%rd1], 1;", "ld.acquire.cta.global.u32 %r5, [%rd1];", False),
    ("st.release.cta.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r5, [%rd1];", False),
    ("membar.cta; atom.global.add.u32 %r9, [%rd1], 1;", "ld.volatile.global.u32 %r5, [%rd1]; membar.gl;", False),
    ("membar.gl; atom.global.add.u32 %r9, [%rd1], 1;", "ld.volatile.global.u32 %r5, [%rd1]; membar.cta;", False),
    ("fence.acq_rel.cta; st.relaxed.gpu.global.u32 [%rd1], 1;", "ld.relaxed.gpu.global.u32 %r5, [%rd1]; fence.acq_rel.gpu;", False),
])  # fmt: skip
def test_message_passing(release: str, acquire: str, good: bool) -> None:
    reports = found(message_passing(release, acquire), np.zeros(64, np.uint32), grid=2)
    narrow = [r for r in reports if "%rd3+4" not in r[1]]  # the flag itself: scopes that leave the other block out
    assert bool(narrow) == (".cta.global" in release + acquire)
    assert [r for r in reports if r not in narrow] == (
        [] if good else [("missing-fence", "ld.global.u32 %r6, [%rd3+4];")]
    )


def test_cta_scope_is_enough_inside_a_block() -> None:
    text = kernel(
        "setp.ge.u32 %p0, %r0, 32; @%p0 bra READER;\nst.global.u32 [%rd1+4], 42;\nst.release.cta.global.u32 [%rd1], 1; bra END;\n"
        "READER: ld.acquire.cta.global.u32 %r5, [%rd1]; setp.eq.u32 %p2, %r5, 0; @%p2 bra READER;\n"
        "ld.global.u32 %r6, [%rd1+4];\n" + store32("%r6") + "END:", ("u64 out", "u64 data"))  # fmt: skip
    assert found(text, np.zeros(2, np.uint32), block=64) == []


def test_atomics_of_narrow_scope_race_between_blocks() -> None:
    text = kernel("atom.global.cta.add.u32 %r6, [%rd1], 1;\n" + store32("%r6"), ("u64 out", "u64 data"))
    assert found(text, np.zeros(1, np.uint32), grid=2) == [("global-race", "atom.global.cta.add.u32 %r6, [%rd1], 1;")]
    assert found(text, np.zeros(1, np.uint32), grid=1, block=64) == []
    assert found(text.replace(".cta.add", ".gpu.add"), np.zeros(1, np.uint32), grid=2) == []


def test_missing_block_barrier_before_the_release_is_found() -> None:
    text = message_passing("st.release.gpu.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r5, [%rd1];")
    text = text.replace("42; bar.sync 0;", "42;")
    reports = found(text, np.zeros(128, np.uint32), grid=2, block=64)
    assert ("global-race", "ld.global.u32 %r6, [%rd3+4];") in reports


def test_plain_flag_is_a_race() -> None:
    text = message_passing("membar.gl; st.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r5, [%rd1];")
    assert "global-race" in {k for k, _ in found(text, np.zeros(64, np.uint32), grid=2)}


def test_two_threads_of_a_block_without_a_barrier() -> None:
    text = kernel(
        "mul.wide.u32 %rd30, %r0, 4; add.u64 %rd31, %rd0, %rd30; st.global.u32 [%rd31], %r0;\n{}\nxor.b32 %r5, %r0, 32; mul.wide.u32 %rd28, %r5, 4;"
        "add.u64 %rd29, %rd0, %rd28;\nld.global.u32 %r6, [%rd29];"
    )
    assert found(text.replace("{}", ""), block=64) == [("global-race", "ld.global.u32 %r6, [%rd29];")]
    assert found(text.replace("{}", "bar.sync 0;"), block=64) == []


def test_byte_neighbours_do_not_race() -> None:
    text = kernel(".shared .b8 s[64]; mov.u32 %r3, s; add.u32 %r3, %r3, %r0; cvt.u16.u32 %h0, %r0; st.shared.u8 [%r3], %h0;\n"
                  "cvt.u64.u32 %rd2, %r1; add.u64 %rd3, %rd0, %rd2; st.global.u8 [%rd3], %h0;")  # fmt: skip
    assert found(text, block=64, grid=2) == []


def test_disjoint_tiles_and_shared_inputs_are_quiet() -> None:
    text = kernel("ld.global.u32 %r3, [%rd1];" + store32("%r3"), ("u64 out", "u64 in"))
    assert found(text, np.zeros(4, np.uint32), grid=4, block=64) == []


def test_reports_name_both_sides() -> None:
    result = run(exchange(""), np.zeros(64, np.uint32), block=64, checks=RACES)
    (violation,) = result.violations
    assert "written by thread (32, 0, 0) of block (0, 0, 0)" in violation.message and "PTX line" in violation.message
    assert kinds(result) == ["shared-race"]
