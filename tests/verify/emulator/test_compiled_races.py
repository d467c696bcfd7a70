"""The race check of compiled code: it may suspect too much, never miss what the interpreter reports."""
# ruff: noqa: E501 (lines of PTX)

from __future__ import annotations

import contextlib
import os

import numpy as np
import pytest

from porter.verify import emulator as ptx
from porter.verify.emulator.llvm import records
from tests.verify.emulator.ptx_micro import kernel, store32

CHECKS = ptx.Checks(shared_races=True, global_races=True)
BLOCK, GRID = 96, 2
SEEDS = int(os.environ.get("PORTER_FUZZ", "1"))


class _Accesses:
    """Random accesses of few words by three warps of two blocks, with and without synchronisation between them."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.register = 20

    def pick(self, *options: str) -> str:
        return options[int(self.rng.integers(len(options)))]

    def fresh(self) -> str:
        self.register += 1
        return f"%r{20 + self.register % 30}"

    def place(self) -> tuple[str, str]:
        """(space, address): of the thread's own word mostly, its mirror, its neighbour's, or one for all."""
        own = ["%r10", "%r10", "%r10", "%r11", "%r12", "%r13"]
        which = int(self.rng.integers(6))
        if self.rng.integers(3):
            return "shared", f"[{own[which]}]"
        return "global", f"[%rd{[10, 10, 10, 11, 12, 13][which]}]"

    def statement(self) -> None:
        guard = self.pick("", "", "", "@%p0 ", "@%p1 ", "@!%p2 ")
        space, at = self.place()
        choice = int(self.rng.integers(14))
        if choice < 4:
            order = self.pick("", "", "", ".volatile", ".relaxed.gpu")
            self.lines.append(f"{guard}ld{order}.{space}.u32 {self.fresh()}, {at};")
        elif choice < 8:
            order = self.pick("", "", "", ".volatile", ".relaxed.gpu")
            value = self.pick("%r0", "7", "7", self.fresh())
            self.lines.append(f"{guard}st{order}.{space}.u32 {at}, {value};")
        elif choice == 8:
            scope = self.pick("", "", ".cta")
            self.lines.append(f"{guard}atom{scope}.{space}.add.u32 {self.fresh()}, {at}, {self.pick('1', '0')};")
        elif choice == 9:
            wide = self.pick("%r14", "%r14", "%r15")
            self.lines.append(
                f"{guard}{self.pick(f'st.shared.v2.u32 [{wide}], {{%r0, %r1}};', f'ld.shared.v2.u32 {{%r16, %r17}}, [{wide}];')}"
            )
        elif choice == 10:
            self.lines.append("bar.warp.sync -1;")
        elif choice == 11:
            self.lines.append(self.pick("bar.sync 0;", "bar.sync 1, 96;", "membar.gl;"))
        elif choice == 12:
            self.lines.append(self.pick("@%p1 bar.sync 2, 32;", "@!%p1 bar.sync 2, 64;"))
        else:
            self.lines.append("bar.sync 0;")

    def text(self) -> str:
        setup = [
            ".shared .align 16 .b32 s[256]; mov.u32 %r30, s; shl.b32 %r31, %r0, 2; add.u32 %r10, %r30, %r31;",
            "sub.u32 %r33, 95, %r0; shl.b32 %r33, %r33, 2; add.u32 %r11, %r30, %r33;",
            "xor.b32 %r33, %r0, 1; shl.b32 %r33, %r33, 2; add.u32 %r12, %r30, %r33; add.u32 %r13, %r30, 400;",
            "shl.b32 %r33, %r0, 3; add.u32 %r14, %r30, %r33; xor.b32 %r33, %r33, 8; add.u32 %r15, %r30, %r33;",
            "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd10, %rd1, %rd2; sub.u32 %r33, 191, %r1; mul.wide.u32 %rd2, %r33, 4;",
            "add.u64 %rd11, %rd1, %rd2; xor.b32 %r33, %r1, 1; mul.wide.u32 %rd2, %r33, 4; add.u64 %rd12, %rd1, %rd2;",
            "add.u64 %rd13, %rd1, 1000; setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 32; setp.lt.u32 %p2, %r0, 90;",
            "@!%p2 bra ON;" if self.rng.integers(4) == 0 else "",
            "mov.u32 %r18, 0; st.shared.u32 [%r10], 0; st.shared.u32 [%r10+384], 0; st.shared.u32 [%r10+640], 0;",
            "ON: bar.sync 0;",
        ]
        for _ in range(int(self.rng.integers(2, 9))):
            self.statement()
        return kernel("\n".join([*setup, *self.lines, store32("%r0")]), ("u64 out", "u64 work"))


def both(
    text: str, seeds: int = 0, grid: int = GRID, block: int = BLOCK, words: int = 512
) -> tuple[ptx.Result, ptx.Result]:
    module = ptx.load(text)
    results = []
    for backend, seed in [("llvm", 0), ("numpy", 0), *(("numpy", k + 1) for k in range(seeds))]:
        arguments = [ptx.Buffer(np.zeros(grid * block, np.uint32)), ptx.Buffer(np.zeros(words, np.uint32))]
        results.append(
            ptx.launch(module, "k", grid, block, arguments, checks=CHECKS, backend=backend, seed=seed, budget=3_000_000)
        )  # type: ignore[arg-type]
    compiled, interpreted = results[0], results[1]
    if compiled.backend == "llvm":  # it saw nothing: then nobody may
        for other in results[1:]:
            assert other.ok, f"compiled code missed {other.violations[0]}\n{text}"
    assert [str(v) for v in compiled.violations] == [str(v) for v in interpreted.violations]
    return compiled, interpreted


@pytest.mark.parametrize("seed", range(24 * SEEDS))
def test_random_accesses(seed: int) -> None:
    both(_Accesses(seed).text(), 2)


def test_the_random_accesses_are_worth_it() -> None:
    """Of those that are right most stay in compiled code, and many are wrong."""
    results = [both(_Accesses(1000 + seed).text()) for seed in range(24)]
    right = [c.backend for c, i in results if i.ok]
    assert 5 <= len(right) <= 20
    assert right.count("llvm") >= 0.6 * len(right)


ONE_WORD = "setp.eq.u32 %p0, %r0, 0; mov.u32 %r3, %ctaid.x; setp.eq.u32 %p1, %r3, {block}; and.pred %p0, %p0, %p1;\n"


@pytest.mark.parametrize("late", [records.RENUMBER + 5000, 0])
def test_epochs_start_anew(late: int) -> None:
    """More blocks than epochs: what the first block read is still known when the last one writes it."""
    grid = records.RENUMBER + 6000
    body = (
        ONE_WORD.format(block=3) + "@%p0 ld.global.u32 %r4, [%rd1];\n"
        + ONE_WORD.format(block=late or grid + 1) + "@%p0 st.global.u32 [%rd1], 5;"
    )  # fmt: skip
    arguments = [None, ptx.Buffer(np.zeros(1, np.uint32))]
    # the interpreter would take long to repeat it: the engine is asked directly
    from porter.verify.emulator.machine import accelerate

    seen: list[str] = []
    run = accelerate.Accelerator.run

    def watched(self: accelerate.Accelerator, *rest: object) -> bool:
        done = run(self, *rest)  # type: ignore[arg-type]
        seen.append(self.refusal)
        if not done:
            raise KeyboardInterrupt
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accelerate.Accelerator, "run", watched)
        with contextlib.suppress(KeyboardInterrupt):
            ptx.launch(
                ptx.load(kernel(body, ("u64 out", "u64 word"))), "k", grid, 32, arguments, checks=CHECKS, backend="llvm"
            )  # type: ignore[arg-type]
    assert seen == ([f"block {late} needs the interpreter"] if late else [""])


@pytest.mark.parametrize(
    "first", ["ld.global.u32 %r4, [%rd1];", "st.global.u32 [%rd1], 4;", "atom.global.add.u32 %r4, [%rd1], 1;"]
)
@pytest.mark.parametrize(
    "second", ["ld.global.u32 %r4, [%rd1];", "st.global.u32 [%rd1], 5;", "atom.global.add.u32 %r4, [%rd1], 1;"]
)
def test_races_with_blocks_that_the_interpreter_has_run(
    first: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from porter.verify.emulator.machine import accelerate, interpret

    monkeypatch.setattr(accelerate, "COMPILING", -1.0)
    monkeypatch.setattr(accelerate, "LOADING", 0.0)
    monkeypatch.setattr(interpret, "WAVE_THREADS", 64)
    body = ONE_WORD.format(block=1) + f"@%p0 {first}\n" + ONE_WORD.format(block=7) + f"@%p0 {second}"
    arguments = [None, ptx.Buffer(np.zeros(1, np.uint32))]
    result = ptx.launch(ptx.load(kernel(body, ("u64 out", "u64 word"))), "k", 8, 32, arguments, checks=CHECKS)  # type: ignore[arg-type]
    fine = first[:4] == second[:4] != "st.g"
    assert [v.kind for v in result.violations] == ([] if fine else ["global-race"])
    assert result.backend == ("llvm" if fine else "numpy")


def test_a_kernel_is_compiled_when_its_launches_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from porter.verify.emulator.machine import accelerate

    module = ptx.load(kernel(store32("%r1")))
    backends = []
    for launch in range(3):
        if launch == 1:
            monkeypatch.setattr(accelerate, "COMPILING", -1.0)
            monkeypatch.setattr(accelerate, "LOADING", 0.0)
        out = ptx.Buffer(np.zeros(64, np.uint32), initialised=False)
        result = ptx.launch(module, "k", 2, 32, [out], checks=CHECKS)
        assert result.ok and (out.array == np.arange(64)).all()
        backends.append(result.backend)
    assert backends == ["numpy", "llvm", "llvm"]


def test_an_entry_that_compiled_code_gives_back_is_left_to_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    from porter.verify.emulator.machine import accelerate

    monkeypatch.setattr(accelerate, "COMPILING", -1.0)
    monkeypatch.setattr(accelerate, "LOADING", -1.0)
    module = ptx.load(kernel("st.global.u32 [%rd1], %r1;", ("u64 out", "u64 word")))
    refusals = []
    for _ in range(3):
        result = ptx.launch(module, "k", 2, 32, [None, ptx.Buffer(np.zeros(1, np.uint32))], checks=CHECKS)
        assert {v.kind for v in result.violations} == {"global-race"}
        refusals.append(bool(result.refusal))
    assert refusals == [True, True, False]


def test_an_assertion_that_holds_is_compiled() -> None:
    """printf and __assertfail are left to the interpreter when they are reached, not when they are there."""
    text = kernel(
        "setp.lt.u32 %p0, %r0, 32; @%p0 bra FINE;\n{ .param .b64 a; st.param.b64 [a], 0; .param .b64 b; st.param.b64 [b], 0; .param .b32 r;"
        "call.uni (r), vprintf, (a, b); }\nFINE: " + store32("5"),
        globals_=".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);",
    )
    out = np.zeros(32, np.uint32)
    result = ptx.launch(ptx.load(text), "k", 1, 32, [ptx.Buffer(out)], checks=CHECKS, backend="llvm")
    assert result.ok and result.backend == "llvm" and (out == 5).all()
