"""Several ranks in one launch: peer pointers, release and acquire at system scope, multicast addresses, schedules."""
# ruff: noqa: E501 (lines of PTX)

from __future__ import annotations

import numpy as np
import pytest

from porter.verify import emulator as ptx
from porter.verify.emulator.decode.lower import lower
from porter.verify.emulator.decode.program import Multimem
from tests.verify.emulator.ptx_micro import HEADER, REGISTERS, kernel, store32

RACES = ptx.Checks(shared_races=True, global_races=True)
SEEDS = (0, 1, 2, 3)
FLOATS = 64  # a rank's words, two blocks of 32

# Block b of every rank writes its part of its own buffer, raises its flag at every peer, waits for all flags at its own
# rank, then sums the part over all ranks. Arguments: out, 4 data pointers, 4 flag pointers, rank, the rank's input.
ALL_REDUCE = "\n".join([
    HEADER,
    ".visible .entry k(.param .u64 out, .param .align 8 .b8 data[32], .param .align 8 .b8 flags[32], .param .u32 rank, .param .u64 input)",
    "{", REGISTERS,
    """
    ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [input]; ld.param.u32 %r2, [rank];
    ld.param.u64 %rd4, [data]; ld.param.u64 %rd5, [data+8]; ld.param.u64 %rd6, [data+16]; ld.param.u64 %rd7, [data+24];
    ld.param.u64 %rd8, [flags]; ld.param.u64 %rd9, [flags+8]; ld.param.u64 %rd10, [flags+16]; ld.param.u64 %rd11, [flags+24];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r3, %r1, 32, %r0; mul.wide.u32 %rd2, %r3, 4;
    mul.wide.u32 %rd3, %r2, 8; setp.eq.u32 %p1, %r2, 1; setp.eq.u32 %p2, %r2, 2; setp.eq.u32 %p3, %r2, 3;
    mov.u64 %rd12, %rd4; @%p1 mov.u64 %rd12, %rd5; @%p2 mov.u64 %rd12, %rd6; @%p3 mov.u64 %rd12, %rd7;
    mov.u64 %rd13, %rd8; @%p1 mov.u64 %rd13, %rd9; @%p2 mov.u64 %rd13, %rd10; @%p3 mov.u64 %rd13, %rd11;
    add.u64 %rd14, %rd1, %rd2; ld.global.f32 %f0, [%rd14]; add.u64 %rd15, %rd12, %rd2;
    st.global.f32 [%rd15], %f0;
    bar.sync 0;
    setp.ge.u32 %p0, %r0, 4; @%p0 bra WAITED;
    setp.eq.u32 %p1, %r0, 1; setp.eq.u32 %p2, %r0, 2; setp.eq.u32 %p3, %r0, 3;
    mov.u64 %rd16, %rd8; @%p1 mov.u64 %rd16, %rd9; @%p2 mov.u64 %rd16, %rd10; @%p3 mov.u64 %rd16, %rd11;
    mad.lo.u32 %r4, %r1, 4, %r2; mul.wide.u32 %rd17, %r4, 4; add.u64 %rd16, %rd16, %rd17;
    st.release.sys.global.u32 [%rd16], 1;
    mad.lo.u32 %r5, %r1, 4, %r0; mul.wide.u32 %rd18, %r5, 4; add.u64 %rd18, %rd13, %rd18;
    SPIN: ld.acquire.sys.global.u32 %r6, [%rd18]; setp.eq.u32 %p4, %r6, 0; @%p4 bra SPIN;
    WAITED: bar.sync 0;
    add.u64 %rd20, %rd4, %rd2; add.u64 %rd21, %rd5, %rd2; add.u64 %rd22, %rd6, %rd2; add.u64 %rd23, %rd7, %rd2;
    ld.global.f32 %f1, [%rd20];
    ld.global.f32 %f2, [%rd21];
    ld.global.f32 %f3, [%rd22];
    ld.global.f32 %f4, [%rd23];
    add.f32 %f5, %f1, %f2; add.f32 %f5, %f5, %f3; add.f32 %f5, %f5, %f4;
    add.u64 %rd24, %rd0, %rd2; st.global.f32 [%rd24], %f5;
    ret;
    }""",
])  # fmt: skip


def all_reduce(text: str, seed: int) -> tuple[ptx.Result, list[np.ndarray], np.ndarray]:
    inputs = np.random.default_rng(5).standard_normal((4, FLOATS)).astype(np.float32)
    data = [ptx.Buffer(np.zeros(FLOATS, np.float32), f"data{r}", initialised=False) for r in range(4)]
    flags = [ptx.Buffer(np.zeros(8, np.uint32), f"flags{r}") for r in range(4)]
    outs = [np.zeros(FLOATS, np.float32) for _ in range(4)]
    args = [(ptx.Buffer(outs[r], initialised=False), tuple(data), tuple(flags), r, ptx.Buffer(inputs[r], writable=False)) for r in range(4)]  # fmt: skip
    result = ptx.launch_ranks(ptx.load(text), "k", FLOATS // 32, 32, args, checks=RACES, seed=seed)
    return result, outs, ((inputs[0] + inputs[1]) + inputs[2]) + inputs[3]


@pytest.mark.parametrize("seed", SEEDS)
def test_one_shot_all_reduce_on_four_ranks(seed: int) -> None:
    result, outs, expected = all_reduce(ALL_REDUCE, seed)
    assert result.ok, result.violations
    for out in outs:
        assert np.array_equal(out, expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("st.release.sys", "st.relaxed.sys"),
        ("ld.acquire.sys", "ld.relaxed.sys"),
        ("st.release.sys", "st.release.gpu"),
        ("ld.acquire.sys", "ld.acquire.gpu"),
    ],
)
def test_all_reduce_without_its_release_is_reported(before: str, after: str) -> None:
    text = ALL_REDUCE.replace(before, after)
    result, _, _ = all_reduce(text, 0)
    lines = text.split("\n")
    found = {(v.kind, lines[v.ptx_line - 1].strip()) for v in result.violations if "%f" in lines[v.ptx_line - 1]}
    assert {k for k, _ in found} == {"missing-fence"}
    assert all(line.startswith("ld.global.f32 %f") for _, line in found)
    assert all(v.rank is not None for v in result.violations)


# Rank r sends token t (one block each) to the peer: payload first, then the token's flag; the receiver's block t waits.
DISPATCH = kernel(
    """
    ld.param.u64 %rd1, [inbox]; ld.param.u64 %rd2, [peer_inbox]; ld.param.u64 %rd3, [flags]; ld.param.u64 %rd4, [peer_flags]; ld.param.u64 %rd5, [tokens];
    mov.u32 %r3, %ctaid.x; mul.wide.u32 %rd6, %r1, 4; mul.wide.u32 %rd7, %r3, 4;
    add.u64 %rd8, %rd5, %rd6; ld.global.u32 %r4, [%rd8]; add.u64 %rd9, %rd2, %rd6;
    st.global.u32 [%rd9], %r4;
    bar.sync 0;
    setp.ne.u32 %p0, %r0, 0; @%p0 bra GO;
    add.u64 %rd10, %rd4, %rd7; st.release.sys.global.u32 [%rd10], 1;
    add.u64 %rd11, %rd3, %rd7;
    WAIT: ld.acquire.sys.global.u32 %r5, [%rd11]; setp.eq.u32 %p1, %r5, 0; @%p1 bra WAIT;
    GO: bar.sync 0;
    add.u64 %rd12, %rd1, %rd6;
    ld.global.u32 %r6, [%rd12];
    """
    + store32("%r6"),
    ("u64 out", "u64 inbox", "u64 peer_inbox", "u64 flags", "u64 peer_flags", "u64 tokens"),
)  # fmt: skip


def dispatch(text: str, seed: int, resident: int = 0) -> tuple[ptx.Result, list[np.ndarray], list[np.ndarray]]:
    tokens = [np.arange(6 * 64, dtype=np.uint32) + 1000 * r for r in range(2)]
    outs = [np.zeros(6 * 64, np.uint32) for _ in range(2)]
    inbox = [ptx.Buffer(np.zeros(6 * 64, np.uint32), f"inbox{r}", initialised=False) for r in range(2)]
    flags = [ptx.Buffer(np.zeros(6, np.uint32), f"flags{r}") for r in range(2)]
    args = [
        [ptx.Buffer(outs[r]), inbox[r], inbox[1 - r], flags[r], flags[1 - r], ptx.Buffer(tokens[r])] for r in range(2)
    ]
    return ptx.launch_ranks(ptx.load(text), "k", 6, 64, args, checks=RACES, seed=seed, resident=resident), outs, tokens


@pytest.mark.parametrize("seed", SEEDS)
def test_dispatch_between_two_ranks(seed: int) -> None:
    result, outs, tokens = dispatch(DISPATCH, seed)
    assert result.ok, result.violations
    assert np.array_equal(outs[0], tokens[1]) and np.array_equal(outs[1], tokens[0])


def test_dispatch_with_a_relaxed_flag_is_reported() -> None:
    text = DISPATCH.replace("st.release.sys", "st.relaxed.sys")
    result, _, _ = dispatch(text, 0)
    lines = text.split("\n")
    assert {(v.kind, lines[v.ptx_line - 1].strip()) for v in result.violations} == {
        ("missing-fence", "ld.global.u32 %r6, [%rd12];")
    }
    assert "of rank" in result.violations[0].message


def test_ranks_that_wait_for_blocks_that_cannot_start_are_a_deadlock() -> None:
    # in opposite orders: with two blocks at a time rank 0 waits for tokens 0 and 1, rank 1 for 5 and 4
    text = DISPATCH.replace("mov.u32 %r3, %ctaid.x;", "mov.u32 %r3, %ctaid.x; ld.global.u32 %r7, [%rd5]; setp.ge.u32 %p5, %r7, 1000; @%p5 sub.u32 %r3, 5, %r3; mad.lo.u32 %r1, %r3, 64, %r0;")  # fmt: skip
    result, _, _ = dispatch(text, 0, resident=2)
    assert result.deadlock and {v.kind for v in result.violations} == {"deadlock"}
    result, outs, tokens = dispatch(text, 0)
    assert result.ok and np.array_equal(outs[0], tokens[1])


def test_schedules_replay_and_differ() -> None:
    text = kernel("atom.global.sys.add.u32 %r3, [%rd1], 1;" + store32("%r3"), ("u64 out", "u64 ticket"))

    def tickets(seed: int) -> list[int]:
        shared = ptx.Buffer(np.zeros(1, np.uint32))
        outs = [np.zeros(128, np.uint32) for _ in range(2)]
        assert ptx.launch_ranks(ptx.load(text), "k", 2, 64, [(ptx.Buffer(o), shared) for o in outs], checks=RACES, seed=seed).ok  # fmt: skip
        return [int(x) for o in outs for x in o]

    assert tickets(7) == tickets(7)
    assert sorted(tickets(7)) == sorted(tickets(8)) == list(range(256))
    assert len({tuple(tickets(s)) for s in range(6)}) > 3


def test_every_rank_has_its_own_module_variables_and_grid_workspace() -> None:
    text = kernel(
        "mov.u64 %rd2, counter; atom.global.add.u32 %r3, [%rd2], 1; bar.sync 0; ld.relaxed.gpu.global.u32 %r4, [counter]; mov.u32 %r5, %envreg2; st.global.u32 [%rd1], %r5;"
        + store32("%r4"),
        ("u64 out", "u64 workspace"),
        ".global .u32 counter = 5;",
    )
    outs = [np.zeros(32, np.uint32) for _ in range(3)]
    spaces = [np.zeros(1, np.uint32) for _ in range(3)]
    args = [(ptx.Buffer(o), ptx.Buffer(w)) for o, w in zip(outs, spaces, strict=True)]
    assert ptx.launch_ranks(ptx.load(text), "k", 1, 32, args, cooperative=True).ok
    assert all((o == 37).all() for o in outs)
    assert len({int(w[0]) for w in spaces}) == 3


def test_a_pointer_table_reaches_peers() -> None:
    text = kernel(
        "mul.wide.u32 %rd2, %r0, 8; add.u64 %rd3, %rd1, %rd2; ld.global.u64 %rd4, [%rd3]; ld.global.u32 %r3, [%rd4+4];"
        + store32("%r3"),
        ("u64 out", "u64 table"),
    )
    peers = [ptx.Buffer(np.array([0, 10 + r], np.uint32)) for r in range(3)]
    table = ptx.PointerTable(peers)
    outs = [np.zeros(3, np.uint32) for _ in range(2)]
    assert ptx.launch_ranks(ptx.load(text), "k", 1, 3, [(ptx.Buffer(o), table) for o in outs]).ok
    assert outs[0].tolist() == outs[1].tolist() == [10, 11, 12]


def multicast(body: str, arrays: list[np.ndarray], block: int = 4) -> tuple[ptx.Result, list[np.ndarray]]:
    buffers = [ptx.Buffer(a, f"replica{r}") for r, a in enumerate(arrays)]
    group = ptx.Multicast(buffers)
    outs = [np.zeros(block, np.uint32) for _ in arrays]
    text = kernel(body, ("u64 out", "u64 group"))
    # only rank 0 does anything: replicas would race
    args = [(ptx.Buffer(o), group if r == 0 else None) for r, o in enumerate(outs)]
    text = text.replace("mov.u32 %r0, %tid.x;", "mov.u32 %r0, %tid.x; setp.eq.u64 %p15, %rd1, 0; @%p15 exit;")
    return ptx.launch_ranks(ptx.load(text), "k", 1, block, args, checks=RACES), outs


AT = "mul.wide.u32 %rd2, %r0, 4; add.u64 %rd3, %rd1, %rd2;"


def test_multimem_ld_reduce() -> None:
    arrays = [np.arange(4, dtype=np.float32) + 10 * r for r in range(4)]
    result, outs = multicast(AT + "multimem.ld_reduce.relaxed.sys.global.add.f32 %f0, [%rd3]; mov.b32 %r3, %f0;" + store32("%r3"), arrays)  # fmt: skip
    assert result.ok, result.violations
    assert np.array_equal(outs[0].view(np.float32), np.sum(arrays, axis=0))
    words = [np.array([7, 1, 2, 3], np.uint32) << r for r in range(3)]
    result, outs = multicast(AT + "multimem.ld_reduce.weak.global.max.u32 %r3, [%rd3];" + store32("%r3"), words)
    assert result.ok and np.array_equal(outs[0], np.max(words, axis=0))


@pytest.mark.parametrize("wide", ["", ".acc::f32"])
def test_multimem_ld_reduce_of_half_vectors(wide: str) -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(32).astype(np.float16) for _ in range(4)]
    body = f"mul.wide.u32 %rd2, %r0, 16; add.u64 %rd3, %rd1, %rd2; multimem.ld_reduce.relaxed.sys.global.add{wide}.v4.f16x2 {{%r3, %r4, %r5, %r6}}, [%rd3];"
    result, outs = multicast(body + store32("%r6"), arrays)
    assert result.ok, result.violations
    if wide:
        expected = sum(a.astype(np.float32) for a in arrays).astype(np.float16)  # type: ignore[union-attr]
    else:
        expected = ((arrays[0] + arrays[1]) + arrays[2]) + arrays[3]
    assert np.array_equal(outs[0].view(np.float16), expected.reshape(4, 8)[:, 6:].reshape(-1))


def test_multimem_st_and_red() -> None:
    arrays = [np.full(4, r, np.uint32) for r in range(4)]
    result, _ = multicast(AT + "multimem.red.release.sys.global.add.u32 [%rd3], 5;", arrays)
    assert result.ok and [int(a[0]) for a in arrays] == [5, 6, 7, 8]
    result, _ = multicast(AT + "multimem.st.relaxed.sys.global.u32 [%rd3], %r0;", arrays)
    assert result.ok and all(a.tolist() == [0, 1, 2, 3] for a in arrays)


@pytest.mark.parametrize(
    ("text", "order", "scope"),
    [
        ("multimem.ld_reduce.global.add.u32 %r3, [%rd3];", "weak", "sys"),
        ("multimem.st.global.u32 [%rd3], %r0;", "weak", "sys"),
        ("multimem.red.global.add.u32 [%rd3], 5;", "relaxed", "sys"),
        ("multimem.red.relaxed.gpu.global.add.u32 [%rd3], 5;", "relaxed", "gpu"),
        ("multimem.ld_reduce.acquire.sys.global.add.u32 %r3, [%rd3];", "acquire", "sys"),
    ],
)
def test_the_order_of_multimem(text: str, order: str, scope: str) -> None:
    """Without qualifiers ld_reduce and st are weak, red is relaxed; the scope is the system's."""
    program = lower(ptx.load(kernel(AT + text, ("u64 out", "u64 group"))), "k")
    (step,) = [s for segment in program.segments for s in segment.steps if isinstance(s, Multimem)]
    assert (step.access.order, step.access.scope) == (order, scope)


@pytest.mark.parametrize(
    "operation",
    [
        "multimem.ld_reduce.global.add.e4m3x4 %r3, [%rd3];",
        "multimem.ld_reduce.global.add.acc::f16.v2.e5m2x4 {%r3, %r4}, [%rd3];",
    ],
)
def test_multimem_of_fp8_is_refused_by_name(operation: str) -> None:
    with pytest.raises(ptx.UnsupportedPtx, match=r"multimem\.ld_reduce.*e[45]m"):
        ptx.launch(ptx.load(kernel(AT + operation, ("u64 out", "u64 group"))), "k", 1, 4, [None, None])


def test_wrong_uses_of_a_multicast_address() -> None:
    arrays = [np.zeros(4, np.uint32) for _ in range(2)]
    result, _ = multicast(AT + "ld.global.u32 %r3, [%rd3];", arrays)
    assert [v.kind for v in result.violations] == ["out-of-bounds"] and "multicast" in result.violations[0].message
    result, _ = multicast(AT + "multimem.st.relaxed.sys.global.u32 [%rd3+4], %r0;", arrays)
    assert [(v.kind, v.count) for v in result.violations] == [("out-of-bounds", 1)]
    result, _ = multicast(AT + "multimem.st.relaxed.sys.global.u32 [%rd3+1], %r0;", arrays)
    assert result.violations[0].kind == "misaligned"
    text = kernel(AT + "multimem.red.relaxed.sys.global.xadd.u32 [%rd3], 5;", ("u64 out", "u64 group"))
    with pytest.raises(ptx.UnsupportedPtx, match=r"multimem\.red"):
        ptx.launch(ptx.load(text), "k", 1, 4, [None, None])


def test_a_barrier_of_multimem_signals() -> None:
    # every rank adds one to all ranks' counters, waits for its own, then reads a neighbour's word
    text = kernel(
        """
        ld.param.u64 %rd1, [own]; ld.param.u64 %rd2, [next]; ld.param.u64 %rd3, [counter]; ld.param.u64 %rd4, [group]; ld.param.u32 %r3, [rank];
        add.u32 %r4, %r3, 50; st.global.u32 [%rd1], %r4;
        multimem.red.release.sys.global.add.u32 [%rd4], 1;
        SPIN: ld.acquire.sys.global.u32 %r5, [%rd3]; setp.lt.u32 %p0, %r5, 3; @%p0 bra SPIN;
        ld.global.u32 %r6, [%rd2];
        """
        + store32("%r6"),
        ("u64 out", "u64 own", "u64 next", "u64 counter", "u64 group", "u32 rank"),
    )

    def run(text: str, seed: int) -> tuple[ptx.Result, list[int]]:
        words = [ptx.Buffer(np.zeros(1, np.uint32), initialised=False) for _ in range(3)]
        counters = [ptx.Buffer(np.zeros(1, np.uint32)) for _ in range(3)]
        group = ptx.Multicast(counters)
        outs = [np.zeros(1, np.uint32) for _ in range(3)]
        args = [(ptx.Buffer(outs[r]), words[r], words[(r + 1) % 3], counters[r], group, r) for r in range(3)]
        return ptx.launch_ranks(ptx.load(text), "k", 1, 1, args, checks=RACES, seed=seed), [int(o[0]) for o in outs]

    for seed in SEEDS:
        result, got = run(text, seed)
        assert result.ok, result.violations
        assert got == [51, 52, 50]
    result, _ = run(text.replace("red.release", "red.relaxed"), 0)
    assert {v.kind for v in result.violations} == {"missing-fence"}
