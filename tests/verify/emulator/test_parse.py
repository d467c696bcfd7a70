"""The PTX parser: what it reads, what it refuses, and that damaged text never does anything but raise PtxError."""
# ruff: noqa: E501 (lines of PTX)

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from porter.verify import emulator as ptx
from porter.verify.emulator.decode import ir, parse
from tests.verify.emulator.ptx_micro import HEADER, kernel, run

SAMPLES = Path(__file__).parent / "ptx_samples"


def test_module_outline() -> None:
    module = ptx.load((SAMPLES / "kernels.ptx").read_text())
    assert module.version == "9.0" and module.target == "sm_90a"
    assert {"rms_norm_bf16", "gbar", "sw"} <= set(module.entries)
    assert module.files[1] == "kernels.cu"
    declared = module.declarations["sw"].params[1]
    assert (declared.is_array, declared.size, declared.align) == (True, 24, 8)
    assert not module.functions  # bodies are parsed when they are needed


def test_instructions_carry_line_and_loc() -> None:
    text = (SAMPLES / "kernels.ptx").read_text()
    module = ptx.load(text)
    function = parse.function(module, "rms_norm_bf16")
    lines = text.split("\n")
    for instr in function.code:
        assert instr.opcode in lines[instr.line - 1]
    assert any(i.loc is not None and module.files[i.loc.file] == "kernels.cu" for i in function.code)


def test_operands() -> None:
    body = "mov.b64 {%r3, %r4}, %rd0;\nsetp.lt.and.s32 %p0|%p1, %r3, -7, !%p2;\nld.global.v2.f32 {%f0, _}, [%rd0+-8];\nmov.f32 %f1, 0f3F800000;\nmov.f64 %fd0, 0d4000000000000000;"
    code = parse.function(ptx.load(kernel(body)), "k").code[-6:-1]
    assert isinstance(code[0].operands[0], ir.Vector)
    assert isinstance(code[1].operands[0], ir.Pair) and code[1].operands[2] == ir.Imm(-7)
    assert isinstance(code[1].operands[3], ir.Not)
    assert isinstance(code[2].operands[1], ir.Address) and code[2].operands[1].offset == -8
    assert isinstance(code[2].operands[0], ir.Vector) and isinstance(code[2].operands[0].items[1], ir.Sink)
    assert code[3].operands[1] == ir.Imm(0x3F800000, 32)
    assert code[4].operands[1] == ir.Imm(0x4000000000000000, 64)


def test_scopes_have_registers_and_labels_of_their_own() -> None:
    text = kernel(
        "mov.u32 %r3, 1; { .reg .b32 t; mov.u32 t, 5; L: add.u32 %r3, %r3, t; } { .reg .b64 t; mov.u64 t, 7; L: cvt.u32.u64 %r4, t; bra M; M: add.u32 %r3, %r3, %r4; }"
        "st.global.u32 [%rd0], %r3;"
    )
    out = np.zeros(1, np.uint32)
    assert run(text, out, block=1).ok and out[0] == 13


def test_entries_are_found_by_part_of_their_name() -> None:
    module = ptx.load(HEADER + ".visible .entry first_kernel() { ret; }\n.visible .entry second_kernel() { ret; }")
    assert ptx.launch(module, "first", 1, 1, []).entry == "first_kernel"
    with pytest.raises(ptx.LaunchError, match="more than one"):
        ptx.launch(module, "kernel", 1, 1, [])


@pytest.mark.parametrize("opcode", ["wgmma.fence.sync.aligned;", "tcgen05.wait::ld.sync.aligned;", "frobnicate.u32 %r3, %r4;",
                                    "add.q32 %r3, %r4, %r5;", "add.u32.banana %r3, %r4, %r5;", "ld.global.sideways.u32 %r3, [%rd0];",
                                    "tex.2d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%rd0, {%r3, %r4}];", "shfl.up.b32 %r3, %r4, 1, 0;"])  # fmt: skip
def test_unknown_instructions_are_refused_with_their_line(opcode: str) -> None:
    text = kernel("mov.u32 %r3, 1;\n" + opcode)
    module = ptx.load(text)  # the module itself loads
    with pytest.raises(ptx.UnsupportedPtx) as error:
        ptx.launch(module, "k", 1, 1, [ptx.Buffer(np.zeros(1, np.uint32))])
    assert error.value.opcode == opcode.split()[0].rstrip(";")
    assert opcode in text.split("\n")[error.value.line - 1]


def test_an_unknown_instruction_does_not_spoil_the_other_entries() -> None:
    module = ptx.load(HEADER + ".entry bad() { wgmma.fence.sync.aligned; ret; }\n.entry good() { ret; }")
    assert ptx.launch(module, "good", 1, 1, []).ok


@pytest.mark.parametrize("text", ["", "hello", ".version 8.6\n.target sm_90\n.entry k( {", HEADER + ".entry k() { add.u32 %r1, %r2; ret; }",
                                  HEADER + ".entry k() { bra NOWHERE; }", HEADER + ".entry k() { .reg .b32 %r<2>; mov.u32 %r5, 1; }",
                                  HEADER + ".entry k() { .reg .nothing %r; }", HEADER + ".global .u32 x = banana banana;",
                                  HEADER + ".entry k() { L: L: ret; }", HEADER + ".entry k() { ret; } }{"])  # fmt: skip
def test_malformed_text_raises(text: str) -> None:
    with pytest.raises(ptx.PtxError):
        module = ptx.load(text)
        for entry in module.entries:
            ptx.launch(module, entry, 1, 1, [])
        raise ptx.PtxSyntaxError("nothing to run")


@pytest.mark.parametrize("seed", [1, 2, 3, pytest.param(int.from_bytes(os.urandom(4), "little"), id="fresh")])
def test_damaged_text_never_crashes(seed: int) -> None:
    """Random edits of real PTX: either it still loads and lowers, or PtxError is raised."""
    from porter.verify.emulator.decode.lower import lower
    from porter.verify.emulator.machine.interpret import compile_step
    from porter.verify.emulator.ops.numpy_algebra import NumpyAlgebra

    rng = np.random.default_rng(seed)
    source = (SAMPLES / "rms_cutedsl.ptx").read_text()
    for _ in range(60):
        text = source
        for _ in range(int(rng.integers(1, 5))):
            at, length = int(rng.integers(0, len(text))), int(rng.integers(0, 12))
            piece = ["", ";", "{", "}", "%r9", "[", ",", "\n", ".reg", "0x", "@", "\0", "é"][int(rng.integers(0, 13))]
            text = text[:at] + piece + text[at + length :]
        try:
            module = ptx.load(text)
            for entry in module.entries:
                for segment in lower(module, entry).segments:
                    for step in segment.steps:
                        compile_step(step, NumpyAlgebra(), [])
        except ptx.PtxError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
