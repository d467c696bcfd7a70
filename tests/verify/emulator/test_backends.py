"""The two backends against each other: every operation, whole kernels, and random programs must give the same bits."""
# ruff: noqa: E501 (lines of PTX)

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from porter.verify import emulator as ptx
from tests.verify.emulator.golden.specs import COUNT, RAW, WIDTH, Spec, all_specs, bundle_text
from tests.verify.emulator.ptx_micro import kernel, run

SAMPLES = Path(__file__).parent / "ptx_samples"
# f64 in a directed rounding is left to the interpreter
SPECS = [s for s in all_specs() if not any(f".{m}.f64" in s.name for m in ("rz", "rm", "rp"))]
BUNDLES = [SPECS[k::24] for k in range(24)]


def run_bundle(specs: list[Spec], backend: str) -> tuple[ptx.Result, list[np.ndarray]]:
    module = ptx.load(bundle_text(specs))
    outs = [np.zeros(COUNT, RAW[WIDTH[s.output]]) for s in specs]
    args: list[object] = []
    for spec, out in zip(specs, outs, strict=True):
        args += [*(ptx.Buffer(v) for v in spec.values()), ptx.Buffer(out)]
    return ptx.launch(module, "bundle", COUNT // 256, 256, args, backend=backend), outs


@pytest.mark.parametrize("number", range(len(BUNDLES)))
def test_every_operation(number: int) -> None:
    specs = BUNDLES[number]
    first, numpy_outs = run_bundle(specs, "numpy")
    second, llvm_outs = run_bundle(specs, "llvm")
    assert first.ok and second.ok
    # directed conversions of 64-bit integers to f64 share the exact path of the interpreter
    assert second.backend == "llvm" or "rounded" in second.refusal
    different = [s.name for s, a, b in zip(specs, numpy_outs, llvm_outs, strict=True) if not np.array_equal(a, b)]
    assert not different


@pytest.mark.parametrize("track", [True, False])
def test_a_norm(track: bool) -> None:
    module = ptx.load((SAMPLES / "kernels.ptx").read_text())
    rng = np.random.default_rng(9)
    x = (rng.standard_normal((50, 1024)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    outs = []
    for backend in ("numpy", "llvm"):
        out = np.zeros_like(x)
        args = [ptx.Buffer(out, initialised=False), ptx.Buffer(x, writable=False), ptx.Buffer(x[0].copy()), 1024, 1e-6]
        checks = ptx.Checks(uninitialised=track)
        result = ptx.launch(module, "rms_norm_bf16", 50, 96, args, backend=backend, checks=checks)
        assert result.ok and result.backend == backend
        outs.append((out, result.counts))
    assert (outs[0][0] == outs[1][0]).all()
    assert outs[0][1] == outs[1][1]  # the same instructions and barriers


def test_auto_hands_over_to_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from porter.verify.emulator.machine import accelerate, interpret

    monkeypatch.setattr(accelerate, "COMPILING", -1.0)
    monkeypatch.setattr(accelerate, "LOADING", 0.0)
    monkeypatch.setattr(interpret, "WAVE_THREADS", 256)
    text = kernel(
        "mul.lo.u32 %r3, %r1, %r1; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd0, %rd2; st.global.u32 [%rd3], %r3;"
    )
    out = np.zeros(4096, np.uint32)
    result = ptx.launch(ptx.load(text), "k", 32, 128, [ptx.Buffer(out, initialised=False)])
    assert result.ok and result.backend == "llvm"
    assert (out == np.arange(4096, dtype=np.uint32) ** 2).all()
    assert result.counts["by_kind"]["store.global"] == 4096


def test_a_bail_out_leaves_no_trace() -> None:
    # every thread adds to memory before one of them reads out of bounds
    text = kernel(
        "atom.global.add.u32 %r3, [%rd1], 1; setp.eq.u32 %p0, %r1, 77; mov.u64 %rd4, %rd1; @%p0 add.u64 %rd4, %rd4, 4096;"
        "ld.global.u32 %r4, [%rd4]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd0, %rd2; st.global.u32 [%rd3], 5;",
        ("u64 out", "u64 counter"),
    )
    out, counter = np.zeros(128, np.uint32), np.full(1, 1000, np.uint32)
    module = ptx.load(text)
    result = ptx.launch(module, "k", 4, 32, [ptx.Buffer(out, initialised=False), ptx.Buffer(counter)], backend="llvm")
    assert [v.kind for v in result.violations] == ["out-of-bounds"]
    assert result.backend == "numpy" and "interpreter" in result.refusal
    assert counter[0] == 1128 and (out == 5).sum() == 127


def test_a_spin_wait_comes_back() -> None:
    text = kernel(
        "mov.u32 %r3, %ctaid.x; setp.eq.u32 %p0, %r3, 1; @%p0 st.release.gpu.global.u32 [%rd1], 1;"
        "W: ld.acquire.gpu.global.u32 %r4, [%rd1]; setp.eq.u32 %p1, %r4, 0; @%p1 bra W;"
        "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd0, %rd2; st.global.u32 [%rd3], 5;",
        ("u64 out", "u64 flag"),
    )
    out = np.zeros(64, np.uint32)
    result = ptx.launch(
        ptx.load(text), "k", 2, 32, [ptx.Buffer(out), ptx.Buffer(np.zeros(1, np.uint32))], backend="llvm"
    )
    assert result.ok and result.backend == "numpy" and (out == 5).all()


_BINARY = ["add.s32", "sub.s32", "mul.lo.s32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.u32", "mul.hi.u32", "rem.u32",
           "shl.b32", "shr.s32", "add.f32", "mul.ftz.f32", "sub.rz.f32", "max.f32", "prmt.b32 # , 0x5410"]  # fmt: skip


class _Programs:
    """Random structured programs over %r10..%r17."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.labels = 0
        self.lines: list[str] = []

    def register(self) -> str:
        return f"%r{10 + int(self.rng.integers(8))}"

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def statement(self, depth: int, together: bool) -> None:
        choice = int(self.rng.integers(12))
        if choice < 5 or depth > 3:
            self.arithmetic("")
        elif choice == 5:
            self.condition("%p1")
            self.arithmetic(["@%p1 ", "@!%p1 "][int(self.rng.integers(2))])
        elif choice in (6, 7):
            other, end = self.label(), self.label()
            self.condition("%p2")
            self.lines.append(f"@%p2 bra {other};")
            self.block(depth + 1, False)
            self.lines += [f"bra {end};", f"{other}:"]
            self.block(depth + 1, False)
            self.lines.append(f"{end}:")
        elif choice == 8:
            # a loop whose count depends on the thread, on a counter of its own depth
            counter, top, end = f"%r{20 + depth}", self.label(), self.label()
            self.lines += [
                f"and.b32 {counter}, {self.register()}, 3;",
                f"{top}:",
                f"setp.eq.u32 %p3, {counter}, 0;",
                f"@%p3 bra {end};",
            ]
            self.block(depth + 1, False)
            self.lines += [f"sub.u32 {counter}, {counter}, 1;", f"bra {top};", f"{end}:"]
        elif choice == 9 and together:
            mode, amount = [("bfly", 5), ("up", 3), ("down", 7), ("idx", 9)][int(self.rng.integers(4))]
            c = 0 if mode == "up" else 31
            self.lines.append(f"shfl.sync.{mode}.b32 {self.register()}|%p1, {self.register()}, {amount}, {c}, -1;")
        elif choice == 10 and together:
            self.condition("%p1")
            self.lines.append(f"vote.sync.ballot.b32 {self.register()}, %p1, -1;")
        elif choice == 11 and together:
            a, b = self.register(), self.register()
            self.lines += ["bar.sync 0;", f"st.shared.b32 [%r31], {a};", "bar.sync 0;", f"ld.shared.b32 {b}, [%r32];"]
        else:
            self.arithmetic("")

    def condition(self, p: str) -> None:
        compare = ["lt.s32", "gt.u32", "eq.s32", "geu.f32"][int(self.rng.integers(4))]
        other = self.register() if self.rng.integers(2) else str(int(self.rng.integers(64)))
        if "f32" in compare:
            other = self.register()
        self.lines.append(f"setp.{compare} {p}, {self.register()}, {other};")

    def arithmetic(self, guard: str) -> None:
        op = _BINARY[int(self.rng.integers(len(_BINARY)))]
        op, _, tail = op.partition(" # ")
        a, b = self.register(), self.register()
        if op == "rem.u32":
            self.lines.append(f"or.b32 %r40, {b}, 1;")
            b = "%r40"
        self.lines.append(f"{guard}{op} {self.register()}, {a}, {b}{tail};")

    def block(self, depth: int, together: bool) -> None:
        for _ in range(int(self.rng.integers(1, 5))):
            self.statement(depth, together)

    def text(self) -> str:
        setup = [".shared .align 4 .b32 s[96]; mov.u32 %r30, s; shl.b32 %r31, %r0, 2; add.u32 %r31, %r31, %r30;",
                 "mov.u32 %r33, 95; sub.u32 %r33, %r33, %r0; shl.b32 %r32, %r33, 2; add.u32 %r32, %r32, %r30;"]  # fmt: skip
        setup += [f"mad.lo.u32 %r{10 + k}, %r1, {int(self.rng.integers(1, 1 << 31))}, {k};" for k in range(8)]
        for _ in range(12):
            self.statement(0, True)
        finish = ["mul.wide.u32 %rd2, %r1, 32; add.u64 %rd3, %rd0, %rd2;", "st.global.v4.b32 [%rd3], {%r10, %r11, %r12, %r13};",
                  "st.global.v4.b32 [%rd3+16], {%r14, %r15, %r16, %r17};"]  # fmt: skip
        return kernel("\n".join([*setup, *self.lines, *finish]))


@pytest.mark.parametrize("seed", [*range(1, 13), pytest.param(int.from_bytes(os.urandom(3), "little"), id="fresh")])
def test_random_programs(seed: int) -> None:
    """`run` compares both backends; the second launch of the interpreter in small waves must agree as well."""
    text = _Programs(seed).text()
    out = np.zeros(2 * 96 * 8, np.uint32)
    assert run(text, out, grid=2, block=96).ok
    again = np.zeros_like(out)
    assert run(text, again, grid=2, block=96, resident=1).ok
    assert (out == again).all()
    assert len(np.unique(out)) > 50


def test_a_snapshot_gives_back_every_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constant stretches, copies in memory and copies in a file, odd tails included."""
    from porter.verify.emulator.machine import accelerate

    monkeypatch.setattr(accelerate, "STRETCH", 64)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 256, n, dtype=np.uint8) for n in (1, 63, 64, 500, 1000)] + [np.full(333, 7, np.uint8)]
    arrays[3][64:192] = 0
    wanted = [a.copy() for a in arrays]
    snapshot = accelerate.Snapshot(200)
    for a in arrays:
        snapshot.add(a)
    kinds = {None if what is None else what.nbytes for _, what in snapshot.pieces}
    assert None in kinds and 8 in kinds and 64 in kinds  # a file, constants, memory
    for a in arrays:
        a[:] = 99
    snapshot.restore()
    assert all(np.array_equal(a, w) for a, w in zip(arrays, wanted, strict=True))
