"""The emulated machine's memory: spaces, vectors, atomics, asynchronous copies, and what the sanitizer says."""
# ruff: noqa: E501, RUF021 (lines of PTX)

from __future__ import annotations

import struct

import numpy as np
import pytest

from porter.verify import emulator as ptx
from tests.verify.emulator.ptx_micro import kernel, kinds, run, store32


@pytest.mark.parametrize(("suffix", "count", "width"), [("v2.b32", 2, 4), ("v4.b32", 4, 4), ("v2.b64", 2, 8), ("v4.b64", 4, 8),
                                                        ("v8.b32", 8, 4), ("v4.b16", 4, 2), ("v2.b8", 2, 1)])  # fmt: skip
def test_vector_loads_and_stores(suffix: str, count: int, width: int) -> None:
    register = {1: "%h", 2: "%h", 4: "%r", 8: "%rd"}[width]
    first = {"%h": 0, "%r": 10, "%rd": 10}[register]
    regs = "{" + ", ".join(f"{register}{first + k}" for k in range(count)) + "}"
    total = count * width
    text = kernel(
        f"mul.wide.u32 %rd2, %r1, {total}; add.u64 %rd3, %rd1, %rd2; ld.global.nc.L1::no_allocate.{suffix} {regs}, [%rd3];"
        f"xor.b32 %r5, %r1, 63; mul.wide.u32 %rd2, %r5, {total}; add.u64 %rd4, %rd0, %rd2; st.global.{suffix} [%rd4], {regs};",
        ("u64 out", "u64 in"),
    )
    data = np.random.default_rng(1).integers(0, 256, (64, total)).astype(np.uint8)
    out = np.zeros_like(data)
    assert run(text, out, data, grid=2).ok
    assert (out == data[::-1]).all()


def test_sub_word_loads_extend_by_type() -> None:
    text = kernel("ld.global.s8 %r3, [%rd1]; ld.global.u8 %r4, [%rd1]; ld.global.s16 %r5, [%rd1]; ld.global.u16 %r6, [%rd1];"
                  "ld.global.b8 %h1, [%rd1]; cvt.u32.u16 %r7, %h1; ld.global.s32 %rd3, [%rd1]; cvt.u32.u64 %r9, %rd3; shr.u64 %rd3, %rd3, 32;"
                  "cvt.u32.u64 %r8, %rd3; st.global.v4.u32 [%rd0], {%r3, %r4, %r5, %r6}; st.global.v2.u32 [%rd0+16], {%r7, %r8};",
                  ("u64 out", "u64 in"))  # fmt: skip
    out = np.zeros(6, np.uint32)
    assert run(text, out, np.array([0x80, 0x91, 0x92, 0x83], np.uint8), block=1).ok
    assert [hex(v) for v in out] == ["0xffffff80", "0x80", "0xffff9180", "0x9180", "0x80", "0xffffffff"]


def test_generic_addresses_reach_every_space() -> None:
    text = kernel(
        """
        .shared .align 8 .b8 s[256]; .local .align 8 .b8 l[16];
        mov.u64 %rd2, s; cvta.shared.u64 %rd3, %rd2; mov.u64 %rd4, l; cvta.local.u64 %rd5, %rd4;
        shl.b32 %r3, %r0, 2; cvt.u64.u32 %rd6, %r3; add.u64 %rd7, %rd3, %rd6;
        setp.lt.u32 %p0, %r0, 8; selp.b64 %rd8, %rd7, %rd5, %p0; setp.gt.u32 %p1, %r0, 20;
        add.u64 %rd9, %rd1, %rd6; selp.b64 %rd8, %rd9, %rd8, %p1;
        st.u32 [%rd8], %r0; ld.u32 %r4, [%rd8];
        isspacep.shared %p2, %rd8; isspacep.local %p3, %rd8; isspacep.global %p4, %rd8;
        selp.u32 %r5, 100, 0, %p2; selp.u32 %r6, 200, 0, %p3; selp.u32 %r7, 400, 0, %p4;
        add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6; add.u32 %r4, %r4, %r7;
        """
        + store32("%r4"),
        ("u64 out", "u64 g"),
    )
    out, g = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
    assert run(text, out, g).ok
    assert out.tolist() == [t + (100 if t < 8 else 400 if t > 20 else 200) for t in range(32)]
    assert g[21:].tolist() == list(range(21, 32))


def test_struct_parameters_and_scalars() -> None:
    text = (".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out, .param .align 8 .b8 s[16], .param .f32 f,"
            ".param .u16 h, .param .f64 d, .param .s8 c) {\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %h<2>;\n"
            "ld.param.u64 %rd0, [out]; ld.param.u32 %r1, [s]; ld.param.u64 %rd1, [s+8]; ld.param.b32 %r2, [f]; ld.param.u16 %h0, [h];"
            "ld.param.b64 %rd2, [d]; ld.param.s8 %r4, [c]; cvt.u32.u16 %r3, %h0; mov.u64 %rd3, s; ld.param.u32 %r5, [%rd3+8]; st.global.u32 [%rd0], %r1;"
            "st.global.u64 [%rd0+8], %rd1; st.global.v2.u32 [%rd0+16], {%r2, %r3}; st.global.u64 [%rd0+24], %rd2;"
            "st.global.v2.u32 [%rd0+32], {%r4, %r5}; ret; }")  # fmt: skip
    out = np.zeros(40, np.uint8)
    result = run(text, out, struct.pack("<iiq", 7, 0, -5), 1.5, 65535, np.float64(-2.25), -3, block=1)
    assert result.ok
    assert struct.unpack("<i4xqfIdii", out.tobytes()) == (7, -5, 1.5, 65535, -2.25, -3, -5)


def test_wrong_arguments_are_refused() -> None:
    text = kernel("", ("u64 out", "u32 n", "f32 x"))
    out = np.zeros(4, np.uint32)
    with pytest.raises(ptx.LaunchError, match="3 parameters"):
        run(text, out)
    with pytest.raises(ptx.LaunchError, match="does not fit"):
        run(text, out, 1 << 40, 1.0)
    with pytest.raises(ptx.LaunchError, match="u32"):
        run(text, out, 1.5, 1.0)
    with pytest.raises(ptx.LaunchError, match="1024"):
        ptx.launch(ptx.load(text), "k", 1, 2048, [ptx.Buffer(out), 1, 1.0])
    with pytest.raises(ptx.LaunchError, match="no entry"):
        ptx.launch(ptx.load(text), "other", 1, 1, [])


def test_module_variables_and_their_initialisers() -> None:
    variables = """
    .global .align 4 .u32 table[4] = {1, 2, 0x30, 4};
    .const .align 8 .b64 where = generic(table)+8;
    .global .align 8 .u64 pointers[2] = {table+4, where};
    .global .align 4 .f32 pi = 0f40490FDB;
    .global .align 4 .b8 text[4] = {104, 105};
    .global .align 4 .u32 count;
    """
    text = kernel(
        "ld.const.u64 %rd2, [where]; ld.u32 %r3, [%rd2]; mov.u64 %rd3, pointers; ld.global.u64 %rd4, [%rd3]; ld.global.u32 %r4, [%rd4];"
        "ld.global.u32 %r5, [pi]; ld.global.u8 %r6, [text+1]; atom.global.add.u32 %r7, [count], 5; ld.global.u32 %r8, [count];"
        "st.global.v4.u32 [%rd0], {%r3, %r4, %r5, %r6}; st.global.u32 [%rd0+16], %r8;",
        globals_=variables,
    )
    out = np.zeros(8, np.uint32)
    assert run(text, out, block=1).ok
    assert out[:5].tolist() == [0x30, 2, 0x40490FDB, 105, 5]
    out[:] = 0
    assert run(text, out, block=1).ok and out[4] == 5  # module variables start afresh


def test_constant_memory_is_read_only() -> None:
    text = kernel("mov.u64 %rd2, c; st.u32 [%rd2], 1;", globals_=".const .u32 c = 3;")
    assert kinds(run(text, np.zeros(1, np.uint32), block=1)) == ["read-only-write"]


def test_dynamic_shared_memory() -> None:
    text = kernel(
        ".shared .align 4 .b32 fixed; mov.u32 %r3, dyn; shl.b32 %r4, %r0, 2; add.u32 %r4, %r3, %r4; st.shared.u32 [%r4], %r0;"
        "mov.u32 %r7, fixed; st.shared.u32 [%r7], 1; bar.sync 0; xor.b32 %r5, %r0, 1; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r3;"
        "ld.shared.u32 %r6, [%r5]; and.b32 %r8, %r3, 15; add.u32 %r6, %r6, %r8;" + store32("%r6"),
        globals_=".extern .shared .align 16 .b8 dyn[];",
    )
    out = np.zeros(64, np.uint32)
    assert run(text, out, block=64, smem_bytes=256).ok
    assert out.tolist() == [t ^ 1 for t in range(64)]
    result = run(text, out, block=64, smem_bytes=252)
    assert "out-of-bounds" in kinds(result)


@pytest.mark.parametrize(
    "t", ["u32", "s32", "u64", "s64", "f32", "f64", "f16", "bf16", "f16x2", "bf16x2", "b32", "b64"]
)
@pytest.mark.parametrize("op", ["add", "min", "max", "inc", "dec", "and", "or", "xor", "exch"])
def test_atomics_against_a_loop(op: str, t: str) -> None:
    integer = t[0] in "us"
    if (
        (op in ("inc", "dec") and t != "u32")
        or (op in ("and", "or", "xor", "exch") and t[0] != "b")
        or t == "bf16"
        and op == "exch"
    ):
        return
    if t[:2] == "bf" and op not in ("add", "min", "max"):
        return
    if op in ("add", "min", "max") and t in ("b32", "b64"):
        return
    width = {"32": 4, "64": 8, "16": 2, "x2": 4}[t[-2:]]
    rng = np.random.default_rng(len(op) * 100 + len(t))
    raw = {2: np.uint16, 4: np.uint32, 8: np.uint64}[width]
    if integer or t[0] == "b" and t[1] != "f":
        values = rng.integers(0, 1 << 30, 96).astype(raw) - raw(1 << 20) * (raw(t[0] == "s"))
    elif t in ("f32", "f64"):
        values = rng.standard_normal(96).astype({4: np.float32, 8: np.float64}[width]).view(raw)
    else:
        halves = rng.standard_normal(96 * (2 if "x2" in t else 1)).astype(np.float32)
        codes = (
            halves.astype(np.float16).view(np.uint16)
            if t[0] == "f"
            else (halves.view(np.uint32) >> 16).astype(np.uint16)
        )
        values = codes.view(raw)
    register = {2: "%h0", 4: "%r3", 8: "%rd5"}[width]
    result = {2: "%h1", 4: "%r4", 8: "%rd6"}[width]
    noftz = ".noftz" if t in ("f16", "bf16", "f16x2", "bf16x2") and op == "add" else ""
    text = kernel(
        f"mul.wide.u32 %rd2, %r1, {width}; add.u64 %rd3, %rd1, %rd2; ld.global.b{8 * width} {register}, [%rd3];"
        f"and.b32 %r5, %r1, 3; mul.wide.u32 %rd4, %r5, {width}; add.u64 %rd4, %rd4, %rd0; atom.global.{op}{noftz}.{t} {result}, [%rd4], {register};"
        f"add.u64 %rd3, %rd7, %rd2; st.global.b{8 * width} [%rd3], {result};",
        ("u64 out", "u64 in", "u64 a", "u64 b", "u64 c", "u64 d", "u64 e", "u64 old"),
    )
    start = values[:4].copy()
    memory, old = start.copy(), np.zeros(96, raw)
    dummy = ptx.Buffer(np.zeros(4, np.uint32))
    outcome = run(text, memory, values, dummy, dummy, dummy, dummy, dummy, old, grid=3)
    assert outcome.ok, outcome.violations
    expected = start.copy()
    seen = np.zeros(96, raw)
    for i in range(96):
        a = i % 4
        seen[i] = expected[a]
        expected[a] = _combine(op, t, expected[a : a + 1], values[i : i + 1])[0]
    assert (seen == old).all()
    assert (memory == expected).all()


def _combine(op: str, t: str, a: np.ndarray, x: np.ndarray) -> np.ndarray:
    raw = a.dtype
    if op in ("and", "or", "xor"):
        return {"and": a & x, "or": a | x, "xor": a ^ x}[op]
    if op == "exch":
        return x
    if op == "inc":
        return np.where(a >= x, 0, a + 1).astype(raw)
    if op == "dec":
        return np.where((a == 0) | (a > x), x, a - 1).astype(raw)
    if t in ("f16", "f16x2"):
        p, q = (v.view(np.float16).astype(np.float64) for v in (a, x))
        r = {"add": p + q, "min": np.minimum(p, q), "max": np.maximum(p, q)}[op]
        return r.astype(np.float16).view(raw)
    if t in ("bf16", "bf16x2"):
        p, q = ((v.view(np.uint16).astype(np.uint32) << 16).view(np.float32) for v in (a, x))
        r = {"add": p + q, "min": np.minimum(p, q), "max": np.maximum(p, q)}[op].astype(np.float32)
        u = r.view(np.uint32)
        return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16).view(raw)
    kind = {"f32": np.float32, "f64": np.float64}.get(t, np.dtype(f"i{raw.itemsize}") if t[0] == "s" else raw)
    p, q = a.view(kind), x.view(kind)
    return {"add": p + q, "min": np.minimum(p, q), "max": np.maximum(p, q)}[op].view(raw)


def test_cas_of_every_width_and_vector_reductions() -> None:
    text = kernel(
        "mov.b64 %rd2, 7; atom.global.cas.b64 %rd3, [%rd0], 0, %rd2; cvt.u16.u32 %h0, %r0; atom.global.cas.b16 %h1, [%rd0+8], 0, 9;"
        "mov.f32 %f0, 0f3F800000; red.global.add.v4.f32 [%rd0+16], {%f0, %f0, %f0, %f0}; mov.b32 %r5, 0x3c003c00;"
        "red.global.add.noftz.v2.f16x2 [%rd0+32], {%r5, %r5};"
    )
    out = np.zeros(64, np.uint8)
    assert run(text, out).ok
    assert out[:8].view(np.uint64)[0] == 7 and out[8:10].view(np.uint16)[0] == 9
    assert (out[16:32].view(np.float32) == 32).all() and (out[32:40].view(np.float16) == 32).all()


def test_cas_128() -> None:
    text = kernel(
        ".reg .b128 %q<4>; mov.b64 %rd2, 0; mov.b64 %rd3, 5; mov.b128 %q0, {%rd2, %rd2}; mov.b128 %q1, {%rd3, %rd3};"
        "atom.global.cas.b128 %q2, [%rd0], %q0, %q1; mov.b128 {%rd4, %rd5}, %q2; atom.global.exch.b128 %q3, [%rd0+16], %q1;"
        "mul.wide.u32 %rd6, %r0, 8; add.u64 %rd6, %rd6, %rd0; st.global.u64 [%rd6+32], %rd5;"
    )
    out = np.zeros(8, np.uint64)
    assert run(text, out, block=4).ok
    assert out.tolist() == [5, 5, 5, 5, 0, 5, 5, 5]


def test_asynchronous_copies_and_zero_fill() -> None:
    text = kernel(
        """
        .shared .align 16 .b8 s[512];
        mov.u32 %r3, s; shl.b32 %r4, %r0, 4; add.u32 %r5, %r3, %r4; cvt.u64.u32 %rd2, %r4; add.u64 %rd3, %rd1, %rd2;
        setp.lt.u32 %p0, %r0, 16; selp.u32 %r6, 16, 4, %p0; setp.eq.u32 %p1, %r0, 31; @%p1 mov.u32 %r6, 0; @%p1 mov.u64 %rd3, 0;
        cp.async.cg.shared.global.L2::128B [%r5], [%rd3], 16, %r6; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
        ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5]; add.u64 %rd4, %rd0, %rd2; st.global.v4.u32 [%rd4], {%r10, %r11, %r12, %r13};
        """,
        ("u64 out", "u64 in"),
    )
    data = np.arange(1, 129, dtype=np.uint32)
    out = np.full(128, 77, np.uint32)
    result = run(text, out, data)
    assert result.ok, result.violations
    expected = data.reshape(32, 4).copy()
    expected[16:, 1:] = 0
    expected[31] = 0
    assert (out.reshape(32, 4) == expected).all()


def test_mbarrier_with_a_bulk_copy() -> None:
    text = kernel(
        """
        .shared .align 8 .b64 bar; .shared .align 16 .b8 s[512];
        mov.u32 %r3, bar; mov.u32 %r4, s; setp.ne.u32 %p0, %r0, 0; @%p0 bra READY;
        mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
        mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r3], 512;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 512, [%r3];
        READY: bar.sync 0;
        W: mbarrier.try_wait.parity.shared.b64 %p1, [%r3], 0; @!%p1 bra W;
        shl.b32 %r5, %r0, 2; add.u32 %r6, %r4, %r5; ld.shared.u32 %r7, [%r6];
        """
        + store32("%r7"),
        ("u64 out", "u64 in"),
    )
    data = np.arange(128, dtype=np.uint32) * 3
    out = np.zeros(128, np.uint32)
    result = run(text, out, data, block=128)
    assert result.ok, result.violations
    assert (out == data).all()


# Each block of a cluster of two sends two words a lane to the other's shared memory, counted by the other's mbarrier.
SEND = """
    .shared .align 8 .b64 bar; .shared .align 16 .b8 s[256]; mov.u32 %r3, bar; mov.u32 %r4, s; mov.u32 %r8, %cluster_ctarank;
    setp.ne.u32 %p0, %r0, 0; @%p0 bra READY; mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r3], EXPECTED;
    READY: barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned; xor.b32 %r9, %r8, 1;
    shl.b32 %r5, %r0, 3; add.u32 %r6, %r4, %r5; mapa.shared::cluster.u32 %r10, %r6, %r9;
    mapa.shared::cluster.u32 %r11, %r3, %r9; mul.lo.u32 %r12, %r8, 1000; add.u32 %r12, %r12, %r0; add.u32 %r13, %r12, 100;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r10], {%r12, %r13}, [%r11];
    WAIT
    xor.b32 %r5, %r5, 8; add.u32 %r6, %r4, %r5; ld.shared.v2.u32 {%r7, %r14}, [%r6]; add.u32 %r7, %r7, %r14;
    """
WAIT = "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r3], 0; @!%p1 bra W;"


def send(wait: str, expected: int = 256) -> tuple[np.ndarray, ptx.Result]:
    out = np.zeros(64, np.uint32)
    text = kernel(SEND.replace("WAIT", wait).replace("EXPECTED", str(expected)) + store32("%r7"))
    return out, run(text, out, block=32, grid=2, cluster=2, checks=ptx.Checks(shared_races=True))


def test_a_store_to_another_block_is_counted_by_its_mbarrier() -> None:
    out, result = send(WAIT)
    assert result.ok, result.violations
    sender = 1000 * np.repeat([1, 0], 32) + np.tile(np.arange(32) ^ 1, 2)  # neighbours' words, of the other block
    assert (out == 2 * sender + 100).all()


def test_reading_without_waiting_for_the_mbarrier_is_a_race() -> None:
    _, result = send("")
    assert set(kinds(result)) & {"shared-race", "missing-fence"}, kinds(result)


def test_mbarrier_arrivals_by_all_threads() -> None:
    text = kernel(
        """
        .shared .align 8 .b64 bar; mov.u32 %r3, bar; setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared.b64 [%r3], 64; bar.sync 0;
        mbarrier.arrive.shared.b64 %rd2, [%r3];
        W: mbarrier.test_wait.shared.b64 %p1, [%r3], %rd2; @!%p1 bra W;
        """
        + store32("1")
    )
    out = np.zeros(64, np.uint32)
    assert run(text, out, block=64).ok and out.all()


def test_printf_assert_and_trap() -> None:
    result = run(kernel("setp.eq.u32 %p0, %r0, 3; @%p0 trap;" + store32("%r0")), np.zeros(32, np.uint32))
    assert kinds(result) == ["trap"] and result.violations[0].thread == (3, 0, 0)


# --- the sanitizer -----------------------------------------------------------------------------------------------------

COPY = kernel(
    "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; ld.global.u32 %r3, [%rd3];" + store32("%r3"),
    ("u64 out", "u64 in"),
)


def test_reading_past_the_end() -> None:
    out = np.zeros(64, np.uint32)
    result = run(COPY, out, np.arange(60, dtype=np.uint32), grid=2)
    (violation,) = result.violations
    assert (violation.kind, violation.buffer, violation.offset, violation.count) == ("out-of-bounds", "in", 240, 4)
    assert (violation.block, violation.thread) == ((1, 0, 0), (28, 0, 0))
    assert violation.opcode == "ld.global.u32" and "ld.global.u32" in COPY.split("\n")[violation.ptx_line - 1]
    assert out[:60].tolist() == list(range(60)) and not out[60:].any()  # the other threads went on


def test_writing_past_the_end_and_before_the_start() -> None:
    result = run(COPY, np.zeros(32, np.uint32), np.zeros(64, np.uint32), grid=2)
    assert [(v.kind, v.buffer, v.offset) for v in result.violations] == [("out-of-bounds", "out", 128)]
    result = ptx.launch(
        ptx.load(COPY), "k", 1, 32, [ptx.Buffer(np.zeros(32, np.uint32)), ptx.Buffer(np.zeros(32, np.uint32)).at(-4)]
    )
    assert [(v.kind, v.offset) for v in result.violations] == [("out-of-bounds", -4)]


def test_null_and_wild_pointers() -> None:
    result = ptx.launch(ptx.load(COPY), "k", 1, 32, [ptx.Buffer(np.zeros(32, np.uint32)), None])
    assert kinds(result) == ["out-of-bounds"] and "null" in result.violations[0].message
    result = ptx.launch(ptx.load(COPY), "k", 1, 32, [ptx.Buffer(np.zeros(32, np.uint32)), 0x1234567812345678])
    assert kinds(result) == ["out-of-bounds"]


def test_misaligned() -> None:
    result = ptx.launch(
        ptx.load(COPY), "k", 1, 8, [ptx.Buffer(np.zeros(32, np.uint32)), ptx.Buffer(np.zeros(64, np.uint8)).at(2)]
    )
    assert [(v.kind, v.count, v.offset) for v in result.violations] == [("misaligned", 8, 2)]


def test_vector_access_is_checked_as_a_whole() -> None:
    text = kernel("ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd1];" + store32("%r3"), ("u64 out", "u64 in"))
    result = run(text, np.zeros(1, np.uint32), np.zeros(3, np.uint32), block=1)
    assert kinds(result) == ["out-of-bounds"]
    wide = kernel(
        "ld.global.v8.b32 {%r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10}, [%rd1+16];" + store32("%r3"), ("u64 out", "u64 in")
    )
    result = run(wide, np.zeros(1, np.uint32), np.zeros(32, np.uint32), block=1)
    assert kinds(result) == ["misaligned"]


def test_uninitialised_global_shared_local() -> None:
    out = np.zeros(32, np.uint32)
    result = ptx.launch(
        ptx.load(COPY), "k", 1, 32, [ptx.Buffer(out), ptx.Buffer(np.zeros(32, np.uint32), initialised=False)]
    )
    assert [(v.kind, v.buffer, v.count) for v in result.violations] == [("uninitialised-read", "in", 32)]
    mask = np.arange(32) != 17
    result = ptx.launch(
        ptx.load(COPY), "k", 1, 32, [ptx.Buffer(out), ptx.Buffer(np.zeros(32, np.uint32), initialised=mask)]
    )
    assert [(v.kind, v.count, v.offset) for v in result.violations] == [("uninitialised-read", 1, 68)]
    shared = kernel(
        ".shared .align 4 .b32 s[8]; mov.u32 %r3, s; @%p0 st.shared.u32 [%r3], 1; ld.shared.u32 %r4, [%r3+4];"
        + store32("%r4")
    )
    (violation,) = run(shared, out).violations
    assert (violation.kind, violation.space, violation.offset) == ("uninitialised-read", "shared", 4)
    local = kernel(
        ".local .align 4 .b8 l[8]; mov.u64 %rd3, l; st.local.u32 [%rd3], 1; ld.local.u64 %rd4, [%rd3];" + store32("%r0")
    )
    assert [(v.kind, v.space) for v in run(local, out).violations] == [("uninitialised-read", "local")]


def test_written_buffers_count_as_initialised() -> None:
    text = kernel(
        "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd0, %rd2; st.global.u16 [%rd3], 1; st.global.u16 [%rd3+2], 2; ld.global.u32 %r3, [%rd3];"
    )
    out = np.zeros(32, np.uint32)
    assert ptx.launch(ptx.load(text), "k", 1, 32, [ptx.Buffer(out, initialised=False)]).ok
    assert (out == 0x20001).all()


def test_read_only_buffers() -> None:
    out = np.arange(32, dtype=np.uint32)
    result = ptx.launch(
        ptx.load(COPY), "k", 1, 32, [ptx.Buffer(out, "w", writable=False), ptx.Buffer(np.zeros(32, np.uint32))]
    )
    assert [(v.kind, v.buffer, v.count) for v in result.violations] == [("read-only-write", "w", 32)]
    assert out.tolist() == list(range(32))


def test_checks_can_be_switched_off_but_never_touch_foreign_memory() -> None:
    result = run(COPY, np.zeros(32, np.uint32), np.zeros(8, np.uint32), checks=ptx.Checks(bounds=False))
    assert result.ok


def test_shared_and_local_bounds() -> None:
    text = kernel(
        ".shared .align 4 .b32 s[8]; mov.u32 %r3, s; shl.b32 %r4, %r0, 2; add.u32 %r3, %r3, %r4; st.shared.u32 [%r3], 1;"
        + store32("%r0")
    )
    (violation,) = run(text, np.zeros(32, np.uint32)).violations
    assert (violation.kind, violation.space, violation.count, violation.offset) == ("out-of-bounds", "shared", 24, 32)
    text = kernel(".local .align 4 .b8 l[16]; mov.u64 %rd3, l; st.local.u32 [%rd3+16], 1;" + store32("%r0"))
    assert [(v.kind, v.space) for v in run(text, np.zeros(32, np.uint32)).violations] == [("out-of-bounds", "local")]


def test_sparse_buffers_past_two_to_the_31() -> None:
    stride = (1 << 30) + 8
    data = np.zeros(3 * stride, np.uint16)  # 6 GB of address space, committed page by page
    data[::stride] = [11, 22, 33]
    text = kernel(
        f"mul.wide.u32 %rd2, %r0, {2 * stride}; add.u64 %rd3, %rd1, %rd2; ld.global.u16 %h0, [%rd3]; add.u16 %h0, %h0, 1; st.global.u16 [%rd3+2], %h0;"
        "ld.global.u16 %h1, [%rd3+2]; cvt.u32.u16 %r3, %h1;" + store32("%r3"), ("u64 out", "u64 in"))  # fmt: skip
    out = np.zeros(3, np.uint32)
    mask_free = ptx.Buffer(data, initialised=True)
    assert ptx.launch(ptx.load(text), "k", 1, 3, [ptx.Buffer(out), mask_free]).ok
    assert out.tolist() == [12, 23, 34] and data[stride + 1] == 23
    result = ptx.launch(ptx.load(text), "k", 1, 3, [ptx.Buffer(out), ptx.Buffer(data, initialised=False)])
    assert [(v.kind, v.count) for v in result.violations] == [("uninitialised-read", 3)]


def test_a_killed_thread_does_not_cause_second_reports() -> None:
    text = kernel(
        """
        .shared .align 4 .b32 s[32];
        mul.wide.u32 %rd2, %r0, 4; add.u64 %rd3, %rd1, %rd2; ld.global.u32 %r3, [%rd3];
        mov.u32 %r4, s; shl.b32 %r5, %r0, 2; add.u32 %r4, %r4, %r5; st.shared.u32 [%r4], %r3; bar.sync 0;
        xor.b32 %r5, %r5, 124; mov.u32 %r4, s; add.u32 %r4, %r4, %r5; ld.shared.u32 %r6, [%r4];
        """
        + store32("%r6"),
        ("u64 out", "u64 in"),
    )
    assert kinds(run(text, np.zeros(32, np.uint32), np.zeros(20, np.uint32))) == ["out-of-bounds"]


def test_arrays_that_are_not_aligned_are_copied_and_written_back() -> None:
    block = np.zeros(4 * 33, np.uint8)
    shift = 4 - block.ctypes.data % 16 % 4
    data = (
        block[shift + 4 : shift + 4 + 4 * 20].view(np.uint32)
        if (block.ctypes.data + shift + 4) % 16
        else block[8:88].view(np.uint32)
    )
    assert data.ctypes.data % 16
    result = ptx.launch(ptx.load(kernel(store32("%r0"))), "k", 1, 20, [ptx.Buffer(data, initialised=False)])
    assert result.ok and data.tolist() == list(range(20))


def test_atomics_of_blocks_that_are_no_multiple_of_a_warp() -> None:
    text = kernel("mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; atom.global.add.u32 %r3, [%rd3], %r0;" + store32("%r3"),
                  ("u64 out", "u64 data"))  # fmt: skip
    data = np.arange(99, dtype=np.uint32)
    out = np.zeros(99, np.uint32)
    assert run(text, out, data, grid=3, block=33).ok
    assert np.array_equal(out, np.arange(99)) and np.array_equal(data, np.arange(99) + np.arange(99) % 33)


@pytest.mark.parametrize("lanes", [1, 32])
@pytest.mark.parametrize(
    ("space", "flushes"), [("global", True), ("shared", False), ("generic", True), ("generic shared", False)]
)
def test_f32_additions_in_global_memory_flush_subnormals(space: str, flushes: bool, lanes: int) -> None:
    """Inputs and results, with their sign; what is read is the memory as it was."""
    tiny, least = np.float32(1e-40), np.finfo(np.float32).tiny
    starts = np.array([tiny, -tiny, 0.0, least, 1.0], np.float32)
    added = np.array([1.0, -tiny, tiny, -least * np.float32(1.5), tiny], np.float32)
    at = "[%rd8]" if space in ("global", "generic") else "[%r9]" if space == "shared" else "[%rd9]"
    op = f"atom.{space}" if space in ("global", "shared") else "atom"
    body = (
        """
        .shared .align 4 .b32 s[5]; mov.u32 %r9, s; mul.wide.u32 %rd7, %r8, 4; cvt.u32.u64 %r7, %rd7; add.u32 %r9, %r9, %r7;
        cvt.u64.u32 %rd9, %r9; cvta.shared.u64 %rd9, %rd9; add.u64 %rd8, %rd1, %rd7; add.u64 %rd6, %rd2, %rd7;
        ld.global.f32 %f1, [%rd6]; ld.global.f32 %f2, [%rd8]; st.shared.f32 [%r9], %f2; bar.sync 0;
    """
        + f"{op}.add.f32 %f3, {at}, %f1; bar.sync 0; ld.f32 %f4, {'[%rd8]' if at == '[%rd8]' else '[%rd9]'}; mov.b32 %r3, %f3; mov.b32 %r4, %f4;"
    )
    body = f"mov.u32 %r8, 0; L: {body} setp.ne.u32 %p0, %r0, 0; @!%p0 st.global.v2.u32 [%rd0], {{%r3, %r4}}; add.u64 %rd0, %rd0, 8; add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 5; @%p1 bra L;"
    out = np.zeros((5, 2), np.uint32)
    result = run(
        kernel(body, ("u64 out", "u64 words", "u64 added")),
        out,
        starts.copy(),
        added,
        block=lanes,
        checks=ptx.Checks(shared_races=False),
    )
    assert result.ok, result.violations

    def flush(x: np.float32) -> np.float32:
        return np.float32(np.copysign(np.float32(0), x)) if flushes and abs(x) < least else x

    for k in range(5):
        total, first = starts[k], starts[k]
        for _ in range(lanes):
            total = flush(flush(total) + flush(added[k]))
        assert out[k].view(np.float32).tobytes() == np.array([first, total], np.float32).tobytes(), k


@pytest.mark.parametrize("room", [4, 8, 16])
def test_asynchronous_copies_of_any_size_in_compiled_code(room: int) -> None:
    text = kernel(
        f"""
        .shared .align 16 .b8 s[512]; mov.u32 %r3, s; shl.b32 %r4, %r0, 4; add.u32 %r5, %r3, %r4; cvt.u64.u32 %rd2, %r4;
        add.u64 %rd3, %rd1, %rd2; st.shared.v4.u32 [%r5], {{9, 9, 9, 9}}; rem.u32 %r6, %r0, {room + 1}; bar.sync 0;
        setp.ne.u32 %p0, %r0, 30; @%p0 cp.async.ca.shared.global [%r5], [%rd3], {room}, %r6; cp.async.wait_all; bar.sync 0;
        ld.shared.v4.u32 {{%r10, %r11, %r12, %r13}}, [%r5]; add.u64 %rd4, %rd0, %rd2; st.global.v4.u32 [%rd4], {{%r10, %r11, %r12, %r13}};
        """,
        ("u64 out", "u64 in"),
    )
    data = np.random.default_rng(0).integers(1, 256, (32, 16), dtype=np.uint8)
    expected = np.full((32, 4), 9, np.uint32).view(np.uint8)
    for lane in [k for k in range(32) if k != 30]:
        size = lane % (room + 1)
        expected[lane, :room] = [*data[lane, :size], *[0] * (room - size)]
    checks = ptx.Checks(shared_races=True, global_races=True)
    for backend in ("numpy", "llvm"):
        out = np.zeros((32, 4), np.uint32)
        args = [ptx.Buffer(out, initialised=False), ptx.Buffer(data)]
        result = ptx.launch(ptx.load(text), "k", 1, 32, args, checks=checks, backend=backend)
        assert result.ok and result.backend == backend, result
        assert (out.view(np.uint8) == expected).all()
