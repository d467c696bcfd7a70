"""Small PTX kernels with one planted bug each: the line that must be reported carries `// BUG kind`."""
# ruff: noqa: E501 (lines of PTX)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from porter.verify import emulator as ptx
from tests.verify.emulator.ptx_micro import kernel, store32


@dataclass(frozen=True)
class Plant:
    """`more`: makes the arguments behind `out` (256 words unless `out` says otherwise)."""

    name: str
    body: str
    grid: int = 1
    block: int = 32
    params: tuple[str, ...] = ("u64 out",)
    more: Callable[[], list[object]] = list
    out: Callable[[], object] = lambda: np.zeros(256, np.uint32)
    globals_: str = ""
    options: dict[str, object] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return kernel(self.body, self.params, self.globals_)


TWO = ("u64 out", "u64 data")
ELEMENT = "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;\n"  # %rd3 = &data[global thread]
WORDS = (
    ".shared .align 16 .b32 s[64]; mov.u32 %r3, s; shl.b32 %r4, %r0, 2; add.u32 %r5, %r3, %r4;\n"  # %r5 = &s[thread]
)
LOCAL = ".local .align 16 .b8 l[16]; mov.u64 %rd4, l;\n"
OVERLAPPED: dict[str, object] = {"overlapped": True, "backend": "numpy"}
FIRST = "setp.eq.u32 %p0, %r0, 0;\n"
BLOCK = "mov.u32 %r10, %ctaid.x; setp.eq.u32 %p3, %r10, 0;\n"


def words(n: int) -> Callable[[], list[object]]:
    return lambda: [np.zeros(n, np.uint32)]


def at(n: int, offset: int) -> Callable[[], list[object]]:
    return lambda: [ptx.Buffer(np.zeros(n, np.uint32)).at(offset)]


def unwritten(n: int) -> Callable[[], list[object]]:
    return lambda: [ptx.Buffer(np.zeros(n, np.uint32), initialised=False)]


def message(write: str, release: str, acquire: str, read: str) -> str:
    """Thread 0 of block 0 writes data[1] and raises data[0]; thread 0 of block 1 waits for it and reads."""
    return (
        BLOCK + FIRST + "@!%p0 exit; @!%p3 bra READER;\n" + write + "\n" + release + "\nexit;\n"
        "READER:\n" + acquire + "\nsetp.eq.u32 %p2, %r6, 0; @%p2 bra READER;\n" + read + "\n" + store32("%r7")
    )  # fmt: skip


STORE, READ = "st.global.u32 [%rd1+4], 42;", "ld.global.u32 %r7, [%rd1+4];"
FENCED = READ + " // BUG missing-fence"
GRID_BARRIER = (
    "bar.sync 0;\n" + FIRST + "@!%p0 bra WAITED; mov.u32 %r4, %nctaid.x;\natom.global.add.u32 %r5, [%rd1], 1;\n"
    "SPIN:\nld.acquire.gpu.global.u32 %r6, [%rd1]; // BUG deadlock\n"
    "setp.lt.u32 %p1, %r6, %r4; @%p1 bra SPIN;\nWAITED:\nbar.sync 0; // BUG deadlock\n" + store32("1")
)

PLANTS = [
    # out of bounds
    Plant("read-past-the-end", ELEMENT + "ld.global.u32 %r3, [%rd3]; // BUG out-of-bounds\n" + store32("%r3"), 2, params=TWO, more=words(63)),
    Plant("write-past-the-end", ELEMENT + "st.global.u32 [%rd3], %r0; // BUG out-of-bounds", 2, params=TWO, more=words(63)),
    Plant("read-before-the-start", ELEMENT + "ld.global.u32 %r3, [%rd3]; // BUG out-of-bounds\n" + store32("%r3"), params=TWO, more=at(40, -4)),
    Plant("null-pointer", ELEMENT + "ld.global.u32 %r3, [%rd3]; // BUG out-of-bounds\n" + store32("%r3"), params=TWO, more=lambda: [None]),
    Plant("wild-pointer", ELEMENT + "st.global.u32 [%rd3], %r0; // BUG out-of-bounds", params=TWO, more=lambda: [0x1234567800]),
    Plant("32-bit-index-overflow", "mul.lo.u32 %r3, %r0, 0x40000000; shr.u32 %r3, %r3, 2; mul.wide.u32 %rd2, %r3, 4; add.u64 %rd3, %rd1, %rd2;\nld.global.u32 %r4, [%rd3]; // BUG out-of-bounds\n" + store32("%r4"), params=TWO, more=words(64)),
    Plant("vector-tail", "mul.wide.u32 %rd2, %r1, 16; add.u64 %rd3, %rd1, %rd2;\nld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd3]; // BUG out-of-bounds\n" + store32("%r3"), params=TWO, more=words(126)),
    Plant("atomic-past-the-end", ELEMENT + "red.global.add.u32 [%rd3], 1; // BUG out-of-bounds", params=TWO, more=words(31)),
    Plant("async-copy-past-the-end", WORDS + ELEMENT + "cp.async.ca.shared.global [%r5], [%rd3], 4; // BUG out-of-bounds\ncp.async.wait_all; bar.sync 0;", params=TWO, more=words(31)),
    Plant("write-past-shared", WORDS + "st.shared.u32 [%r5+132], %r0; // BUG out-of-bounds"),
    Plant("read-before-shared", WORDS + "st.shared.u32 [%r5], 1; bar.warp.sync -1;\nsub.u32 %r6, %r5, 4;\nld.shared.u32 %r7, [%r6]; // BUG out-of-bounds\n" + store32("%r7")),
    Plant("read-past-dynamic-shared", "mov.u32 %r3, dyn; shl.b32 %r4, %r0, 2; add.u32 %r3, %r3, %r4; st.shared.u32 [%r3], 1;\nld.shared.u32 %r7, [%r3+4]; // BUG out-of-bounds\n" + store32("%r7"), block=1, globals_=".extern .shared .align 16 .b8 dyn[];", options={"smem_bytes": 4}),
    Plant("shared-atomic-past-the-end", WORDS + "atom.shared.add.u32 %r6, [%r3+256], 1; // BUG out-of-bounds"),
    Plant("generic-shared-address", WORDS + "cvt.u64.u32 %rd5, %r3; cvta.shared.u64 %rd5, %rd5;\nst.u32 [%rd5+256], 1; // BUG out-of-bounds"),
    Plant("matrix-row-past-shared", WORDS + "st.shared.u32 [%r5], 1; st.shared.u32 [%r5+128], 1; bar.warp.sync -1; shl.b32 %r6, %r0, 4; add.u32 %r6, %r6, %r3;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r7, %r8, %r9, %r10}, [%r6]; // BUG out-of-bounds\n" + store32("%r7")),
    Plant("write-past-local", LOCAL + "st.local.u32 [%rd4+16], 1; // BUG out-of-bounds"),
    Plant("read-past-local", LOCAL + "ld.local.u64 %rd5, [%rd4+16]; // BUG out-of-bounds"),
    # misaligned
    Plant("misaligned-word", ELEMENT + "ld.global.u32 %r3, [%rd3+2]; // BUG misaligned\n" + store32("%r3"), params=TWO, more=words(64)),
    Plant("misaligned-vector", ELEMENT + "ld.global.v2.u32 {%r3, %r4}, [%rd3]; // BUG misaligned\n" + store32("%r3"), params=TWO, more=words(64)),
    Plant("misaligned-wide-vector", "ld.global.v8.b32 {%r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10}, [%rd1+16]; // BUG misaligned", params=TWO, more=words(64)),
    Plant("misaligned-atomic", "atom.global.add.u64 %rd5, [%rd1+4], 1; // BUG misaligned", params=TWO, more=words(64)),
    Plant("misaligned-shared", WORDS + "st.shared.u64 [%r5], %rd0; // BUG misaligned"),
    Plant("misaligned-local", LOCAL + "st.local.u32 [%rd4+1], 1; // BUG misaligned"),
    # never written
    Plant("uninitialised-global", ELEMENT + "ld.global.u32 %r3, [%rd3]; // BUG uninitialised-read\n" + store32("%r3"), params=TWO, more=unwritten(32)),
    Plant("uninitialised-shared", WORDS + "setp.gt.u32 %p0, %r0, 99; @%p0 st.shared.u32 [%r5], 1; // never\nld.shared.u32 %r7, [%r5]; // BUG uninitialised-read\n" + store32("%r7")),
    Plant("uninitialised-shared-neighbour", WORDS + "st.shared.u32 [%r5], 1;\nbar.sync 0;\nld.shared.u32 %r7, [%r5+4]; // BUG uninitialised-read\n" + store32("%r7")),
    Plant("uninitialised-local", LOCAL + "st.local.u32 [%rd4], 1;\nld.local.u32 %r7, [%rd4+4]; // BUG uninitialised-read\n" + store32("%r7")),
    Plant("half-initialised-word", ELEMENT + "st.global.u16 [%rd3], 1;\nld.global.u32 %r3, [%rd3]; // BUG uninitialised-read\n" + store32("%r3"), params=TWO, more=unwritten(32)),
    Plant("counter-without-a-start", "atom.global.add.u32 %r3, [%rd1], 1; // BUG uninitialised-read\n" + store32("%r3"), params=TWO, more=unwritten(1)),
    Plant("accumulator-in-shared-without-a-start", WORDS + "red.shared.add.u32 [%r3], 1; // BUG uninitialised-read"),
    # read-only
    Plant("write-to-an-input", ELEMENT + "st.global.u32 [%rd3], 1; // BUG read-only-write", params=TWO, more=lambda: [ptx.Buffer(np.zeros(64, np.uint32), writable=False)]),
    Plant("atomic-on-an-input", "red.global.max.u32 [%rd1], 1; // BUG read-only-write", params=TWO, more=lambda: [ptx.Buffer(np.zeros(64, np.uint32), writable=False)]),
    Plant("write-to-constant-memory", "mov.u64 %rd5, table; cvta.const.u64 %rd5, %rd5;\nst.u32 [%rd5], 1; // BUG read-only-write", globals_=".const .u32 table = 3;"),
    # races in shared memory
    Plant("no-barrier", WORDS + "st.shared.u32 [%r5], %r0;\nxor.b32 %r6, %r4, 128; add.u32 %r6, %r6, %r3;\nld.shared.u32 %r7, [%r6]; // BUG shared-race\n" + store32("%r7"), block=64),
    Plant("no-second-barrier", WORDS + "st.shared.u32 [%r5], %r0;\nbar.sync 0;\nxor.b32 %r6, %r4, 128; add.u32 %r6, %r6, %r3;\nld.shared.u32 %r7, [%r6];\nadd.u32 %r8, %r7, 1;\nst.shared.u32 [%r5], %r8; // BUG shared-race\n" + store32("%r7"), block=64),
    Plant("no-warp-barrier", WORDS + "st.shared.u32 [%r5], %r0;\nxor.b32 %r6, %r4, 4; add.u32 %r6, %r6, %r3;\nld.shared.u32 %r7, [%r6]; // BUG shared-race\n" + store32("%r7")),
    Plant("no-barrier-in-a-loop", WORDS + "mov.u32 %r8, 0;\nLOOP:\nadd.u32 %r9, %r8, %r0;\nst.shared.u32 [%r5], %r9; // BUG shared-race\nbar.sync 0;\nxor.b32 %r6, %r4, 128; add.u32 %r6, %r6, %r3;\nld.shared.u32 %r7, [%r6];\nadd.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 3; @%p1 bra LOOP;\n" + store32("%r7"), block=64),
    Plant("two-writers", WORDS + "st.shared.u32 [%r3], %r0; // BUG shared-race", block=64),
    Plant("warp-reduces-what-others-write", WORDS + "st.shared.u32 [%r5], %r0;\nsetp.ge.u32 %p1, %r0, 32; @%p1 exit;\nld.shared.u32 %r7, [%r5+128]; // BUG shared-race\n" + store32("%r7"), block=64),
    Plant("plain-read-of-a-shared-counter", WORDS + FIRST + "@%p0 st.shared.u32 [%r3], 0;\nbar.sync 0;\nred.shared.add.u32 [%r3], 1;\nld.shared.u32 %r7, [%r3]; // BUG shared-race\n" + store32("%r7"), block=64),
    Plant("another-named-barrier", WORDS + "st.shared.u32 [%r5], %r0;\nshr.u32 %r9, %r0, 5; setp.eq.u32 %p1, %r9, 0;\n@%p1 bar.sync 1, 32;\n@!%p1 bar.sync 2, 32;\nxor.b32 %r6, %r4, 128; add.u32 %r6, %r6, %r3;\nld.shared.u32 %r7, [%r6]; // BUG shared-race\n" + store32("%r7"), block=64),
    Plant("async-copy-read-by-another-warp", WORDS + ELEMENT + "cp.async.ca.shared.global [%r5], [%rd3], 4;\ncp.async.wait_all;\nxor.b32 %r6, %r4, 128; add.u32 %r6, %r6, %r3;\nld.shared.u32 %r7, [%r6]; // BUG shared-race\n" + store32("%r7"), block=64, params=TWO, more=words(64)),
    # races in global memory
    Plant("blocks-write-one-word", "st.global.u32 [%rd1], %r1; // BUG global-race", 2, block=1, params=TWO, more=words(4)),
    Plant("overlapping-tiles", "mov.u32 %r10, %ctaid.x; mad.lo.u32 %r11, %r10, 31, %r0; mul.wide.u32 %rd2, %r11, 4; add.u64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], %r1; // BUG global-race", 2, params=TWO, more=words(64)),
    Plant("read-what-another-block-writes", ELEMENT + "st.global.u32 [%rd3], %r1;\nxor.b32 %r5, %r1, 32; mul.wide.u32 %rd5, %r5, 4; add.u64 %rd6, %rd1, %rd5;\nld.global.u32 %r6, [%rd6]; // BUG global-race\n" + store32("%r6"), 2, params=TWO, more=words(64)),
    Plant("write-what-another-block-reads", BLOCK + "@%p3 ld.global.u32 %r6, [%rd1];\n@!%p3 st.global.u32 [%rd1], 5; // BUG global-race\n", 2, params=TWO, more=words(64)),
    Plant("counter-without-atomics", FIRST + "@!%p0 exit;\nld.global.u32 %r3, [%rd1];\nadd.u32 %r3, %r3, %r1; add.u32 %r3, %r3, 1;\nst.global.u32 [%rd1], %r3; // BUG global-race", 2, params=TWO, more=words(1)),
    Plant("warps-share-scratch-without-a-barrier", ELEMENT + "st.global.u32 [%rd3], %r0;\nxor.b32 %r5, %r0, 32; mul.wide.u32 %rd5, %r5, 4; add.u64 %rd6, %rd1, %rd5;\nld.global.u32 %r6, [%rd6]; // BUG global-race\n" + store32("%r6"), block=64, params=TWO, more=words(64)),
    Plant("atomics-of-cta-scope", "atom.global.cta.add.u32 %r6, [%rd1], 1; // BUG global-race\n" + store32("%r6"), 2, params=TWO, more=words(1)),
    Plant("last-wave-reads-the-first", ELEMENT + "st.global.u32 [%rd3], %r1; // BUG global-race\nsub.u32 %r5, 127, %r1; mul.wide.u32 %rd5, %r5, 4; add.u64 %rd6, %rd1, %rd5;\nld.global.u32 %r6, [%rd6]; // BUG global-race\n" + store32("%r6"), 4, params=TWO, more=words(128), options={"resident": 2}),
    # missing fences
    Plant("relaxed-flag", message(STORE, "st.relaxed.gpu.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r6, [%rd1];", FENCED), 2, params=TWO, more=words(2)),
    Plant("flag-read-relaxed", message(STORE, "st.release.gpu.global.u32 [%rd1], 1;", "ld.relaxed.gpu.global.u32 %r6, [%rd1];", FENCED), 2, params=TWO, more=words(2)),
    Plant("volatile-flag-without-threadfence", message(STORE, "st.volatile.global.u32 [%rd1], 1;", "ld.volatile.global.u32 %r6, [%rd1];", FENCED), 2, params=TWO, more=words(2)),
    Plant("fence-behind-the-flag", message(STORE, "atom.global.exch.b32 %r9, [%rd1], 1; membar.gl;", "ld.acquire.gpu.global.u32 %r6, [%rd1];", FENCED), 2, params=TWO, more=words(2)),
    Plant("fence-of-cta-scope", message(STORE, "membar.cta; atom.global.exch.b32 %r9, [%rd1], 1;", "ld.acquire.gpu.global.u32 %r6, [%rd1];", FENCED), 2, params=TWO, more=words(2)),
    Plant("data-written-behind-the-release", message("", "st.release.gpu.global.u32 [%rd1], 1;\nst.global.u32 [%rd1+4], 42;", "ld.acquire.gpu.global.u32 %r6, [%rd1];", READ + " // BUG global-race"), 2, params=TWO, more=words(2)),
    Plant("plain-flag", message(STORE, "membar.gl;\nst.global.u32 [%rd1], 1; // BUG global-race", "ld.acquire.gpu.global.u32 %r6, [%rd1]; // BUG global-race", READ + " // BUG global-race"), 2, params=TWO, more=words(2)),
    Plant("unlocked-without-release", FIRST + "@!%p0 exit;\nTRY:\natom.acquire.gpu.global.cas.b32 %r3, [%rd1], 0, 1;\nsetp.ne.u32 %p1, %r3, 0; @%p1 bra TRY;\nld.global.u32 %r4, [%rd1+4]; // BUG missing-fence\nadd.u32 %r4, %r4, 1;\nst.global.u32 [%rd1+4], %r4; // BUG missing-fence\nst.relaxed.gpu.global.u32 [%rd1], 0;", 2, params=TWO, more=words(2)),
    # barriers and warps
    Plant("divergent-barrier", "and.b32 %r3, %r0, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra OTHER;\nbar.sync 0; bra END;\nOTHER:\nbar.sync 0; // BUG divergent-barrier\nEND: mov.u32 %r4, 1;"),
    Plant("barrier-in-a-branch", "setp.lt.u32 %p1, %r0, 16; @!%p1 bra SKIP;\nbar.sync 0; // BUG divergent-barrier\nSKIP:\nbar.sync 1; // BUG divergent-barrier\n"),
    Plant("mask-names-a-lane-that-waits-elsewhere", "setp.lt.u32 %p1, %r0, 16; @!%p1 bra OTHER;\nshfl.sync.bfly.b32 %r3, %r0, 1, 31, -1; // BUG divergent-sync\nbra END;\nOTHER:\nshfl.sync.bfly.b32 %r3, %r0, 2, 31, -1; // BUG divergent-sync\nEND:" + store32("%r3")),
    Plant("mask-names-a-lane-of-another-mask", "setp.lt.u32 %p1, %r0, 16; selp.b32 %r4, 0xFFFEFFFF, 0xFFFF0000, %p1;\nshfl.sync.bfly.b32 %r3, %r0, 1, 31, %r4; // BUG divergent-sync\n" + store32("%r3")),
    Plant("one-lane-has-a-smaller-mask", "setp.eq.u32 %p1, %r0, 31; selp.b32 %r4, 0xFFFF0000, -1, %p1;\nvote.sync.ballot.b32 %r3, %p1, %r4; // BUG divergent-sync\n" + store32("%r3")),
    Plant("masks-of-quads-and-of-the-warp", "and.b32 %r3, %r0, 28; mov.u32 %r4, 15; shl.b32 %r4, %r4, %r3; setp.lt.u32 %p1, %r0, 4; selp.b32 %r4, -1, %r4, %p1;\nshfl.sync.idx.b32 %r3, %r0, %r3, 31, %r4; // BUG divergent-sync\n" + store32("%r3")),
    Plant("mask-without-the-lane-itself", "shfl.sync.bfly.b32 %r3, %r0, 1, 31, 0xFFFF; // BUG divergent-sync\n" + store32("%r3")),
    # deadlocks
    Plant("barrier-counts-too-many", "bar.sync 1, 96; // BUG deadlock", block=64),
    Plant("warps-at-different-barriers", "setp.lt.u32 %p1, %r0, 32; @!%p1 bra OTHER;\nbar.sync 0; // BUG deadlock\nbra END;\nOTHER:\nbar.sync 1; // BUG deadlock\nEND:" + store32("%r0"), block=64),
    Plant("grid-barrier-beyond-residency", GRID_BARRIER, 132, block=64, params=TWO, more=words(1), out=lambda: np.zeros(132 * 64, np.uint32), options={"resident": 128}),
    Plant("lock-never-released", FIRST + "@!%p0 exit;\nTRY:\natom.global.cas.b32 %r3, [%rd1], 0, 1; // BUG deadlock\nsetp.ne.u32 %p1, %r3, 0; @%p1 bra TRY;\nst.volatile.global.u32 [%rd1+4], 1;", 2, params=TWO, more=words(2)),
    Plant("flag-never-set", "SPIN:\nld.acquire.gpu.global.u32 %r3, [%rd1]; // BUG deadlock\nsetp.eq.u32 %p1, %r3, 0; @%p1 bra SPIN;", params=TWO, more=words(1)),
    Plant("two-blocks-wait-for-each-other", BLOCK + FIRST + "@!%p0 exit; selp.u64 %rd2, 4, 0, %p3; selp.u64 %rd3, 0, 4, %p3; add.u64 %rd2, %rd2, %rd1; add.u64 %rd3, %rd3, %rd1;\nSPIN:\nld.acquire.gpu.global.u32 %r3, [%rd2]; // BUG deadlock\nsetp.eq.u32 %p1, %r3, 0; @%p1 bra SPIN;\nst.release.gpu.global.u32 [%rd3], 1;", 2, params=TWO, more=words(2)),
    Plant("mbarrier-expects-too-many", ".shared .align 8 .b64 bar; mov.u32 %r10, bar;\n" + FIRST + "@%p0 mbarrier.init.shared.b64 [%r10], 33;\nbar.sync 0;\nmbarrier.arrive.shared.b64 %rd2, [%r10];\nW:\nmbarrier.test_wait.shared.b64 %p1, [%r10], %rd2; // BUG deadlock\n@!%p1 bra W;"),
    Plant("endless-loop", "L:\nbra L; // BUG deadlock"),
    # traps and work without end
    # ld.global.nc of what is written
    Plant("written-before-a-constant-load", ELEMENT + "st.global.u32 [%rd3], %r0;\nld.global.nc.u32 %r3, [%rd3]; // BUG stale-read\n" + store32("%r3"), params=TWO, more=words(64)),
    Plant("written-after-a-constant-load", ELEMENT + "ld.global.nc.u32 %r3, [%rd3];\nadd.u32 %r3, %r3, 1;\nst.global.u32 [%rd3], %r3; // BUG stale-read", params=TWO, more=words(64)),
    Plant("an-atomic-on-what-a-constant-load-reads", "ld.global.nc.u32 %r3, [%rd1];\nred.global.add.u32 [%rd1+4], 1;\nbar.warp.sync -1;\nld.global.nc.v2.u32 {%r4, %r5}, [%rd1]; // BUG stale-read\n" + store32("%r5"), params=TWO, more=words(64)),
    # lanes in step
    Plant("volatile-instead-of-a-warp-barrier", WORDS + "st.volatile.shared.u32 [%r5], %r0;\nxor.b32 %r6, %r4, 4; add.u32 %r6, %r6, %r3;\nld.volatile.shared.u32 %r7, [%r6]; // BUG lockstep\n" + store32("%r7")),
    Plant("volatile-read-then-written-by-a-neighbour", WORDS + "st.shared.u32 [%r5], %r0; bar.warp.sync -1;\nxor.b32 %r6, %r4, 4; add.u32 %r6, %r6, %r3;\nld.volatile.shared.u32 %r7, [%r6];\nadd.u32 %r8, %r7, 1;\nst.volatile.shared.u32 [%r5], %r8; // BUG lockstep\n" + store32("%r7")),
    Plant("volatile-global-exchange-in-a-warp", ELEMENT + "st.volatile.global.u32 [%rd3], %r0;\nxor.b32 %r6, %r0, 1; mul.wide.u32 %rd4, %r6, 4; add.u64 %rd4, %rd1, %rd4;\nld.volatile.global.u32 %r7, [%rd4]; // BUG lockstep\n" + store32("%r7"), params=TWO, more=words(32)),
    # lanes that are not there
    Plant("shuffle-from-lanes-that-returned", "setp.ge.u32 %p1, %r0, 20; @%p1 exit;\nshfl.sync.down.b32 %r7, %r0, 4, 31, -1; // BUG absent-lane\n" + store32("%r7")),
    Plant("shuffle-in-half-a-warp", "shfl.sync.bfly.b32 %r7, %r0, 16, 31, -1; // BUG absent-lane\n" + store32("%r7"), block=16),
    Plant("shuffle-from-a-lane-that-is-computed", "setp.ge.u32 %p1, %r0, 20; @%p1 exit;\nadd.u32 %r3, %r0, 2;\nshfl.sync.idx.b32 %r7, %r0, %r3, 31, -1; // BUG absent-lane\n" + store32("%r7")),
    Plant("shuffle-past-a-narrow-mask", "setp.ge.u32 %p1, %r0, 8; @%p1 bra OTHERS;\nshfl.sync.down.b32 %r7, %r0, 1, 31, 0xff; // BUG absent-lane\n" + store32("%r7") + "\nOTHERS:\nbar.sync 0;"),
    Plant("shuffle-skipped-by-some", "setp.ge.u32 %p1, %r0, 24; @%p1 bra OTHERS;\nxor.b32 %r3, %r0, 1;\nshfl.sync.idx.b32 %r7, %r0, %r3, 31, -1; // BUG skipped-lane\nOTHERS:\n" + store32("%r0")),
    Plant("vote-skipped-by-some", "setp.ge.u32 %p1, %r0, 24; @%p1 bra OTHERS;\nsetp.ge.u32 %p2, %r0, 3;\nvote.sync.ballot.b32 %r7, %p2, -1; // BUG skipped-lane\n" + store32("%r7") + "\nexit;\nOTHERS:\n" + store32("%r0")),
    Plant("warp-barrier-skipped-by-some", "setp.ge.u32 %p1, %r0, 24; @%p1 bra OTHERS;\nbar.warp.sync -1; // BUG skipped-lane\nOTHERS:\n" + store32("%r0")),
    # launched while the kernel before still runs
    Plant("input-read-too-early", "ld.global.u32 %r3, [%rd0+4]; // BUG early-access\ngriddepcontrol.wait;\n" + store32("%r3"), options=OVERLAPPED),
    Plant("output-written-too-early", "st.global.u32 [%rd0], 7; // BUG early-access\ngriddepcontrol.wait;", block=1, options=OVERLAPPED),
    Plant("another-warp-waits", "setp.ge.u32 %p1, %r0, 32; @%p1 bra READ;\ngriddepcontrol.wait;\nexit;\nREAD:\nld.global.u32 %r3, [%rd0+4]; // BUG early-access\nadd.u32 %r4, %r3, 1;", block=64, options=OVERLAPPED),
    Plant("trap", "setp.ne.u32 %p1, %r0, 3; @%p1 exit;\ntrap; // BUG trap"),
    Plant("work-without-end", "mov.u32 %r3, 0;\nL: add.u32 %r3, %r3, 1; mov.u32 %r4, %clock; bra L; // BUG budget", options={"budget": 300_000}),
]  # fmt: skip
