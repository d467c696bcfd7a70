"""The emulated machine's control: divergence, barriers, warp instructions, spinning, deadlock, calls."""
# ruff: noqa: E501 (lines of PTX)

from __future__ import annotations

import numpy as np
import pytest

from porter.verify import emulator as ptx
from tests.verify.emulator.ptx_micro import HEADER, REGISTERS, kernel, kinds, run, store32


def test_divergent_loops_reconverge() -> None:
    text = kernel(
        """
        mov.u32 %r3, 0; mov.u32 %r4, 0;
        LOOP: setp.ge.u32 %p0, %r3, %r0; @%p0 bra DONE;
        and.b32 %r5, %r3, 1; setp.eq.u32 %p1, %r5, 0; @%p1 bra EVEN;
        add.u32 %r4, %r4, 10; bra NEXT;
        EVEN: add.u32 %r4, %r4, 1;
        NEXT: add.u32 %r3, %r3, 1; bra LOOP;
        DONE: activemask.b32 %r6;
        """
        + store32("%r4")
        + "add.u64 %rd31, %rd31, 256; st.global.u32 [%rd31], %r6;"
    )
    out = np.zeros(128, np.uint32)
    result = run(text, out, block=64)
    expected = [sum(10 if i & 1 else 1 for i in range(t)) for t in range(64)]
    assert out[:64].tolist() == expected
    assert (out[64:] == 0xFFFFFFFF).all()
    assert result.ok


@pytest.mark.parametrize(("literal", "holds"), [("-1", True), ("1", True), ("0", False)])
@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_a_predicate_that_is_a_literal_guards_and_branches(literal: str, holds: bool, backend: str) -> None:
    text = kernel(
        f"""
        mov.pred %p0, {literal};
        mov.u32 %r3, 0;
        @%p0 bra TAKEN;
        add.u32 %r3, %r3, 1;
        TAKEN:
        @%p0 add.u32 %r3, %r3, 10;
        @!%p0 add.u32 %r3, %r3, 100;
        selp.u32 %r4, 1000, 2000, %p0; add.u32 %r3, %r3, %r4;
        not.pred %p1, %p0;
        @%p1 add.u32 %r3, %r3, 10000;
        """
        + store32("%r3")
    )
    out = np.zeros(32, np.uint32)
    launched = ptx.launch(ptx.load(text), "k", 1, 32, [ptx.Buffer(out, initialised=True)], backend=backend)
    assert launched.ok
    assert (out == (1010 if holds else 1 + 100 + 2000 + 10000)).all()


def test_guards_on_every_kind_of_instruction() -> None:
    text = kernel(
        """
        .shared .align 4 .b32 s[32];
        setp.lt.u32 %p0, %r0, 7;
        mov.u32 %r3, 5; @%p0 mov.u32 %r3, 6; @!%p0 add.u32 %r3, %r3, 100;
        mul.wide.u32 %rd2, %r0, 4; mov.u32 %r4, s; add.u32 %r4, %r4, 0; cvt.u32.u64 %r5, %rd2; add.u32 %r4, %r4, %r5;
        @%p0 st.shared.u32 [%r4], %r3; mov.u32 %r6, 77; @%p0 ld.shared.u32 %r6, [%r4];
        mov.u64 %rd5, 0; @%p0 atom.global.add.u32 %r7, [%rd1], 1;
        vote.sync.ballot.b32 %r8, %p0, -1;
        mov.u32 %r9, 9; @%p0 shfl.sync.bfly.b32 %r9, %r0, 0, 31, 127;
        add.u32 %r6, %r6, %r9; add.u32 %r6, %r6, %r8;
        @%p0 bar.sync 1, 32; @%p0 exit;
        """
        + store32("%r6"),
        ("u64 out", "u64 counter"),
    )
    out, counter = np.zeros(32, np.uint32), np.zeros(1, np.uint32)
    result = run(text, out, counter)
    assert counter[0] == 7
    assert (out[:7] == 0).all()
    assert (out[7:] == 77 + 9 + 127).all()
    assert result.ok


def test_barrier_exchange_in_many_blocks() -> None:
    text = kernel(
        """
        .shared .align 4 .b32 s[96];
        mov.u32 %r3, s; shl.b32 %r4, %r0, 2; add.u32 %r4, %r3, %r4; st.shared.u32 [%r4], %r1;
        bar.sync 0;
        mov.u32 %r5, 95; sub.u32 %r5, %r5, %r0; shl.b32 %r5, %r5, 2; add.u32 %r5, %r3, %r5; ld.shared.u32 %r6, [%r5];
        """
        + store32("%r6")
    )
    out = np.zeros(5 * 96, np.uint32)
    result = run(text, out, grid=5, block=96)
    assert (out.reshape(5, 96) == np.arange(5 * 96).reshape(5, 96)[:, ::-1]).all()
    assert result.ok
    assert result.counts["barriers"] == 5


def test_block_size_that_is_no_multiple_of_a_warp() -> None:
    text = kernel("bar.sync 0; shfl.sync.idx.b32 %r3, %r0, 3, 31, -1;" + store32("%r3"))
    out = np.zeros(3 * 50, np.uint32)
    result = run(text, out, grid=3, block=50)
    assert result.ok
    assert (out.reshape(3, 50)[:, :32] == 3).all() and (out.reshape(3, 50)[:, 32:] == 35).all()


def test_named_barriers_producer_and_consumer() -> None:
    text = kernel(
        """
        .shared .align 4 .b32 s[32];
        mov.u32 %r3, s; and.b32 %r4, %r0, 31; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r3;
        setp.ge.u32 %p0, %r0, 32; @%p0 bra CONSUMER;
        mov.u32 %r5, 0; WORK: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 300; @%p1 bra WORK;
        st.shared.u32 [%r4], %r5; bar.arrive 3, 64; bra END;
        CONSUMER: bar.sync 3, 64; ld.shared.u32 %r6, [%r4];
        """
        + store32("%r6")
        + "END: bar.sync 0;"
    )
    out = np.zeros(64, np.uint32)
    result = run(text, out, block=64)
    assert result.ok, result.violations
    assert (out[32:] == 300).all()


@pytest.mark.parametrize(("combine", "expected"), [("popc.u32", 20), ("and.pred", 0), ("or.pred", 1)])
def test_barrier_reductions(combine: str, expected: int) -> None:
    target = "%r3" if "u32" in combine else "%p1"
    text = kernel(
        f"setp.lt.u32 %p0, %r0, 20; bar.red.{combine} {target}, 0, %p0;"
        + ("" if "u32" in combine else "selp.u32 %r3, 1, 0, %p1;")
        + store32("%r3")
    )
    out = np.zeros(64, np.uint32)
    assert run(text, out, block=64).ok
    assert (out == expected).all()


def test_divergent_barrier_is_reported_where_it_is() -> None:
    text = kernel(
        """
        and.b32 %r3, %r0, 1; setp.eq.u32 %p0, %r3, 0; @%p0 bra OTHER;
        bar.sync 0; bra END;
        OTHER: bar.sync 0;
        END: mov.u32 %r4, 1;
        """
        + store32("%r4")
    )
    result = run(text, np.zeros(32, np.uint32))
    assert kinds(result) == ["divergent-barrier"]
    assert text.split("\n")[result.violations[0].ptx_line - 1].lstrip().startswith(("bar.sync", "OTHER: bar.sync"))


def test_barrier_that_some_warps_never_reach_is_a_deadlock() -> None:
    text = kernel("setp.lt.u32 %p0, %r0, 32; @%p0 bar.sync 0;\n@!%p0 bar.sync 1;" + store32("%r0"))
    result = run(text, np.zeros(64, np.uint32), block=64)
    assert result.deadlock
    assert kinds(result) == ["deadlock", "deadlock"]
    assert "32 threads" in result.violations[0].message


def test_exited_threads_do_not_hold_up_a_barrier() -> None:
    text = kernel("setp.lt.u32 %p0, %r0, 40; @%p0 exit; bar.sync 0;" + store32("%r0"))
    out = np.zeros(96, np.uint32)
    assert run(text, out, block=96).ok
    assert out.tolist() == [0] * 40 + list(range(40, 96))


def test_grid_barrier_by_spinning() -> None:
    text = kernel(
        """
        st.global.u32 [%rd1], %r1; bar.sync 0;
        setp.ne.u32 %p0, %r0, 0; @%p0 bra WAITED;
        mov.u32 %r4, %nctaid.x; membar.gl; atom.global.add.u32 %r3, [%rd1+4], 1;
        SPIN: ld.acquire.gpu.global.u32 %r5, [%rd1+4]; setp.lt.u32 %p1, %r5, %r4; @%p1 bra SPIN;
        WAITED: bar.sync 0;
        """
        + store32("1"),
        ("u64 out", "u64 state"),
    )
    out, state = np.zeros(40 * 64, np.uint32), np.zeros(2, np.uint32)
    assert run(text, out, state, grid=40, block=64).ok
    assert out.all()
    # with fewer resident blocks than the barrier counts, nobody can ever go on
    state[:] = 0
    result = run(text, out, state, grid=40, block=64, resident=39)
    assert result.deadlock
    assert "deadlock" in kinds(result)


def test_a_spin_wait_lets_others_in_the_same_outer_loop_go_on() -> None:
    # block 0 spins above the code in which block 1 works, both in one loop over rounds
    rounds = """
        mov.u32 %r3, %ctaid.x; mov.u32 %r4, 0;
        ROUND: setp.ne.u32 %p0, %r3, 0; @%p0 bra WORK;
        SPIN: ld.acquire.gpu.global.u32 %r5, [%rd1]; setp.le.u32 %p1, %r5, %r4; @%p1 bra SPIN;
        bra NEXT;
        WORK: mov.u32 %r6, 0;
        STEP: add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 100; @%p2 bra STEP;
        add.u32 %r7, %r4, 1; RELEASE
        NEXT: add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 3; @%p3 bra ROUND;
        """
    for release, ends in (("st.release.gpu.global.u32 [%rd1], %r7;", True), ("mov.u32 %r7, 0;", False)):
        text = kernel(rounds.replace("RELEASE", release) + store32("%r4"), ("u64 out", "u64 flag"))
        out = np.zeros(64, np.uint32)
        result = run(text, out, np.zeros(1, np.uint32), grid=2, block=32)
        assert result.ok is ends, result.violations
        assert out.tolist() == ([3] * 64 if ends else [0] * 32 + [3] * 32)
        assert result.deadlock is not ends


def test_a_waiting_block_may_depend_on_one_that_has_not_started() -> None:
    # block 0 ends, the others wait for the last one, which gets block 0's place
    text = kernel(
        """
        mov.u32 %r3, %ctaid.x; setp.eq.u32 %p0, %r3, 0; @%p0 bra END;
        mov.u32 %r4, %nctaid.x; sub.u32 %r4, %r4, 1; setp.eq.u32 %p1, %r3, %r4; @%p1 st.release.gpu.global.u32 [%rd1], 1;
        SPIN: ld.acquire.gpu.global.u32 %r5, [%rd1]; setp.eq.u32 %p2, %r5, 0; @%p2 bra SPIN;
        END: mov.u32 %r6, 1;
        """
        + store32("%r6"),
        ("u64 out", "u64 flag"),
    )
    out = np.zeros(5 * 32, np.uint32)
    result = run(text, out, np.zeros(1, np.uint32), grid=5, block=32, resident=4)
    assert result.ok, result.violations
    assert out.all()


def test_lock_taken_by_every_lane_of_a_warp() -> None:
    text = kernel(
        """
        TRY: atom.global.cas.b32 %r3, [%rd1], 0, 1; setp.ne.u32 %p0, %r3, 0; @%p0 bra TRY;
        ld.volatile.global.u32 %r4, [%rd1+4]; add.u32 %r4, %r4, 1; st.volatile.global.u32 [%rd1+4], %r4;
        membar.gl; atom.global.exch.b32 %r5, [%rd1], 0;
        """
        + store32("%r4"),
        ("u64 out", "u64 lock"),
    )
    lock = np.zeros(2, np.uint32)
    result = run(text, np.zeros(64, np.uint32), lock, grid=2)
    assert result.ok, result.violations
    assert lock.tolist() == [0, 64]


def test_infinite_loop_is_a_deadlock_and_a_counting_one_a_budget() -> None:
    result = run(kernel("L: bra L;"), np.zeros(1, np.uint32))
    assert kinds(result) == ["deadlock"]
    result = run(
        kernel("mov.u32 %r3, 0; L: add.u32 %r3, %r3, 1; mov.u32 %r4, %clock; bra L;"),
        np.zeros(1, np.uint32),
        budget=3_000_000,
    )
    assert kinds(result) == ["budget"]


def test_clock_waits_end() -> None:
    text = kernel(
        "mov.u64 %rd2, %clock64; L: mov.u64 %rd3, %clock64; sub.u64 %rd4, %rd3, %rd2; setp.lt.u64 %p0, %rd4, 5000; @%p0 bra L;"
        + store32("1")
    )
    out = np.zeros(32, np.uint32)
    assert run(text, out).ok and out.all()


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("constant", [True, False])
def test_shfl_against_its_definition(mode: str, constant: bool) -> None:
    rng = np.random.default_rng(hash(mode) & 0xFFFF)
    for _ in range(6):
        segment = int(rng.choice([1, 2, 4, 8, 16, 32]))
        c = ((32 - segment) << 8) | (0 if mode == "up" else 31)
        b = int(rng.integers(0, 32))
        operands = f"{b}, {c}" if constant else "%r5, %r6"
        setup = f"mov.u32 %r5, {b}; mov.u32 %r6, {c}; mul.lo.u32 %r3, %r0, 3;"
        if not constant:
            setup += "setp.gt.u32 %p3, %r0, 1000; @%p3 mov.u32 %r5, 1;"
        text = kernel(
            setup
            + f"shfl.sync.{mode}.b32 %r4|%p0, %r3, {operands}, 0xffffffff; selp.u32 %r7, 1000, 0, %p0; add.u32 %r4, %r4, %r7;"
            + store32("%r4")
        )
        out = np.zeros(64, np.uint32)
        assert run(text, out, block=64).ok
        for lane in range(32):
            mask, bound = (c >> 8) & 31, c & 31
            top = (lane & mask) | (bound & ~mask)
            low = lane & mask
            j, p = {"up": (lane - b, lane - b >= top), "down": (lane + b, lane + b <= top),
                    "bfly": (lane ^ b, (lane ^ b) <= top), "idx": (low | (b & ~mask & 31), (low | (b & ~mask & 31)) <= top)}[mode]  # fmt: skip
            source = j if p else lane
            assert out[lane] == 3 * source + 1000 * p, (mode, segment, b, lane)
            assert out[32 + lane] == 3 * (32 + source) + 1000 * p


def test_shfl_in_divergent_halves_waits_for_its_mask() -> None:
    text = kernel(
        """
        setp.lt.u32 %p0, %r0, 16; mov.u32 %r5, 0; @%p0 bra LOW;
        WORK: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r0; @%p1 bra WORK;
        shfl.sync.bfly.b32 %r3, %r0, 1, 31, 0xffff0000; bra END;
        LOW: shfl.sync.bfly.b32 %r3, %r0, 2, 31, 0x0000ffff;
        END: bar.warp.sync -1;
        """
        + store32("%r3")
    )
    out = np.zeros(32, np.uint32)
    assert run(text, out).ok
    assert out.tolist() == [t ^ 2 for t in range(16)] + [t ^ 1 for t in range(16, 32)]


def test_missing_lane_of_a_sync_mask_is_reported() -> None:
    text = kernel(
        "setp.lt.u32 %p0, %r0, 16; @%p0 bra LOW; bar.sync 0; bra END; LOW: shfl.sync.bfly.b32 %r3, %r0, 1, 31, -1; bar.sync 0; END: mov.u32 %r4, 0;"
        + store32("%r0")
    )
    result = run(text, np.zeros(32, np.uint32))
    assert result.deadlock
    assert "divergent-sync" in kinds(result)


def test_votes_and_matches() -> None:
    text = kernel(
        """
        and.b32 %r3, %r0, 3; setp.eq.u32 %p0, %r3, 1; setp.lt.u32 %p7, %r0, 32;
        vote.sync.ballot.b32 %r4, %p0, -1; vote.sync.any.pred %p1, %p0, -1; vote.sync.all.pred %p2, %p0, -1;
        vote.sync.uni.pred %p3, %p7, -1;
        match.any.sync.b32 %r5, %r3, -1; match.all.sync.b32 %r6|%p4, %r3, -1; match.all.sync.b32 %r7|%p5, 5, -1;
        elect.sync %r8|%p6, -1;
        selp.u32 %r9, 1, 0, %p1; selp.u32 %r10, 2, 0, %p2; selp.u32 %r11, 4, 0, %p3; selp.u32 %r12, 8, 0, %p4;
        selp.u32 %r13, 16, 0, %p5; selp.u32 %r14, 32, 0, %p6;
        or.b32 %r9, %r9, %r10; or.b32 %r9, %r9, %r11; or.b32 %r9, %r9, %r12; or.b32 %r9, %r9, %r13; or.b32 %r9, %r9, %r14;
        """
        + store32("%r4")
        + "st.global.u32 [%rd31+128], %r5; st.global.u32 [%rd31+256], %r9; st.global.u32 [%rd31+384], %r7;"
    )
    out = np.zeros(128, np.uint32)
    assert run(text, out).ok
    assert (out[:32] == 0x22222222).all()
    assert out[32:64].tolist() == [0x11111111 << (t & 3) for t in range(32)]
    assert out[64] == 1 + 4 + 16 + 32 and (out[65:96] == 1 + 4 + 16).all()
    assert (out[96:] == 0xFFFFFFFF).all()


def test_redux() -> None:
    values = np.random.default_rng(3).integers(0, 1 << 32, 32).astype(np.uint32)
    signed = values.view(np.int32)
    half = values[::2]
    cases = {
        "add.u32": values.sum(dtype=np.uint32), "min.s32": signed.min(), "max.s32": signed.max(), "min.u32": values.min(),
        "max.u32": values.max(), "and.b32": np.bitwise_and.reduce(values), "or.b32": np.bitwise_or.reduce(values),
        "xor.b32": np.bitwise_xor.reduce(values),
    }  # fmt: skip
    for name, expected in cases.items():
        text = kernel("mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd2, %rd1; ld.global.u32 %r3, [%rd2];"
                      f"redux.sync.{name} %r4, %r3, 0xffffffff;" + store32("%r4"), ("u64 out", "u64 in"))  # fmt: skip
        out = np.zeros(32, np.uint32)
        assert run(text, out, values).ok
        assert (out == np.uint32(int(expected) & 0xFFFFFFFF)).all(), name
    text = kernel("mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd2, %rd1; ld.global.u32 %r3, [%rd2]; and.b32 %r5, %r0, 1;"
                  "setp.eq.u32 %p0, %r5, 0; mov.u32 %r4, 0; @%p0 redux.sync.add.u32 %r4, %r3, 0x55555555;" + store32("%r4"),
                  ("u64 out", "u64 in"))  # fmt: skip
    out = np.zeros(32, np.uint32)
    assert run(text, out, values).ok
    assert (out[::2] == half.sum(dtype=np.uint32)).all() and not out[1::2].any()


def test_redux_f32() -> None:
    values = np.array([1.5, -3.0, np.nan, 2.0] * 8, np.float32)
    text = kernel("mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd2, %rd1; ld.global.f32 %f0, [%rd2];"
                  "redux.sync.min.f32 %f1, %f0, -1; redux.sync.max.abs.f32 %f2, %f0, -1; redux.sync.max.NaN.f32 %f3, %f0, -1;"
                  "mov.b32 %r3, %f1; mov.b32 %r4, %f2; mov.b32 %r5, %f3;" + store32("%r3")
                  + "st.global.u32 [%rd31+128], %r4; st.global.u32 [%rd31+256], %r5;", ("u64 out", "u64 in"))  # fmt: skip
    out = np.zeros(96, np.uint32)
    assert run(text, out, values).ok
    assert (out[:32].view(np.float32) == -3).all() and (out[32:64].view(np.float32) == 3).all()
    assert (out[64:] == 0x7FFFFFFF).all()


def test_branch_table() -> None:
    text = kernel(
        """
        min.u32 %r3, %r0, 3;
        T: .branchtargets A, B, C, D;
        brx.idx %r3, T;
        A: mov.u32 %r4, 10; bra E;
        B: mov.u32 %r4, 20; bra E;
        C: mov.u32 %r4, 30; bra E;
        D: mov.u32 %r4, 40;
        E: add.u32 %r4, %r4, 1;
        """
        + store32("%r4")
    )
    out = np.zeros(32, np.uint32)
    assert run(text, out).ok
    assert out.tolist() == [11, 21, 31] + [41] * 29


def test_device_functions_nest_and_keep_their_own_registers() -> None:
    functions = """
    .func (.param .b32 r) twice(.param .b32 x)
    { .reg .b32 %r<4>; ld.param.b32 %r1, [x]; add.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }
    .func (.param .b32 r) pick(.param .b32 x, .param .b32 n)
    {
        .local .align 4 .b8 depot[16]; .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<2>;
        ld.param.b32 %r1, [x]; ld.param.b32 %r2, [n]; mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1; st.u32 [%rd2+4], %r1;
        setp.eq.u32 %p0, %r2, 0; @%p0 bra ZERO;
        { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), twice, (a); ld.param.b32 %r3, [b]; }
        st.param.b32 [r], %r3; ret;
        ZERO: ld.local.u32 %r4, [%rd1+4]; st.param.b32 [r], %r4; ret;
    }
    """
    text = kernel(
        """
        and.b32 %r3, %r0, 1;
        { .param .b32 p0; .param .b32 p1; .param .b32 q; st.param.b32 [p0], %r0; st.param.b32 [p1], %r3;
          call (q), pick, (p0, p1); ld.param.b32 %r4, [q]; }
        { .param .b32 p0; .param .b32 q; st.param.b32 [p0], %r4; call (q), twice, (p0); ld.param.b32 %r5, [q]; }
        """
        + store32("%r5"),
        globals_=functions,
    )
    out = np.zeros(64, np.uint32)
    assert run(text, out, block=64).ok
    assert out.tolist() == [2 * t * (2 if t & 1 else 1) for t in range(64)]


SUM = """
.func (.param .b32 r) sum(.param .b32 x) { .reg .b32 %r<6>; .reg .pred %p<2>;
  ld.param.b32 %r0, [x]; mov.u32 %r3, 0; setp.eq.u32 %p0, %r0, 0; @%p0 bra DONE; sub.u32 %r1, %r0, 1;
  { .param .b32 a; .param .b32 q; st.param.b32 [a], %r1; call (q), sum, (a); ld.param.b32 %r2, [q]; }
  add.u32 %r3, %r2, %r0;
DONE: st.param.b32 [r], %r3; ret; }
"""
TWICE = SUM.replace("add.u32 %r3, %r2, %r0;", """
  { .param .b32 a; .param .b32 q; st.param.b32 [a], %r1; call (q), sum, (a); ld.param.b32 %r4, [q]; }
  add.u32 %r3, %r2, %r4; add.u32 %r3, %r3, 1;""")


def call_of(argument: str) -> str:
    return (
        f"{argument} {{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r3; call (q), sum, (a);"
        "ld.param.b32 %r4, [q]; }" + store32("%r4")
    )


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_recursion_is_followed(backend: str) -> None:
    out = np.zeros(32, np.uint32)
    assert run(kernel(call_of("mov.u32 %r3, %r0;"), globals_=SUM), out, block=32, backend=backend).ok
    assert out.tolist() == [t * (t + 1) // 2 for t in range(32)]
    assert run(kernel(call_of("and.b32 %r3, %r0, 3;"), globals_=TWICE), out, block=32, backend=backend).ok
    assert out.tolist() == [2 ** (t & 3) - 1 for t in range(32)]


@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_recursion_that_is_too_deep_is_no_result(backend: str) -> None:
    result = run(kernel(call_of("add.u32 %r3, %r0, 60;"), globals_=SUM), np.zeros(1, np.uint32), backend=backend)
    assert kinds(result) == ["trap"] and "recursion is deeper" in result.violations[0].message
    endless = ".func f(.param .b32 x) { .reg .b32 %r<2>; { .param .b32 a; call f, (a); } ret; }"
    assert kinds(run(kernel("{ .param .b32 a; call f, (a); }", globals_=endless), np.zeros(1, np.uint32))) == ["trap"]


def test_cluster_barrier_and_distributed_shared_memory() -> None:
    text = kernel(
        """
        .shared .align 4 .b32 s[1];
        mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, s; setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u32 [%r4], %r1;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        xor.b32 %r5, %r3, 1; mapa.shared::cluster.u32 %r6, %r4, %r5; ld.shared::cluster.u32 %r7, [%r6];
        """
        + store32("%r7")
    )
    out = np.zeros(6 * 32, np.uint32)
    result = run(text, out, grid=6, block=32, cluster=(2, 1, 1))
    assert result.ok, result.violations
    assert out.reshape(6, 32)[:, 0].tolist() == [32, 0, 96, 64, 160, 128]


def test_seeds_change_the_order_but_not_the_result() -> None:
    text = kernel("atom.global.add.u32 %r3, [%rd1], 1;" + store32("%r3"), ("u64 out", "u64 counter"))
    orders = []
    for seed in (0, 1, 2):
        out, counter = np.zeros(256, np.uint32), np.zeros(1, np.uint32)
        assert run(text, out, counter, grid=4, block=64, seed=seed).ok
        assert counter[0] == 256 and sorted(out.tolist()) == list(range(256))
        orders.append(tuple(out))
    assert len(set(orders)) == 3
    out, counter = np.zeros(256, np.uint32), np.zeros(1, np.uint32)
    run(text, out, counter, grid=4, block=64, seed=2)
    assert tuple(out) == orders[2]


def test_header_and_registers_are_what_the_helpers_say() -> None:
    assert "8.6" in HEADER and "%rd<32>" in REGISTERS
