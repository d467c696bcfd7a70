"""Malformed PTX: loading, lowering and launching end in PtxError or in a report, soon, and never in anything else."""
# ruff: noqa: E501, SIM905 (lines of PTX)

from __future__ import annotations

import os
import string
import time
from pathlib import Path

import numpy as np
import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from porter.verify import emulator as ptx  # noqa: E402
from porter.verify.emulator.decode.lower import lower  # noqa: E402
from porter.verify.emulator.machine.interpret import compile_step  # noqa: E402
from porter.verify.emulator.ops.numpy_algebra import NumpyAlgebra  # noqa: E402
from tests.verify.emulator.planted_ptx import PLANTS  # noqa: E402
from tests.verify.emulator.ptx_micro import HEADER, REGISTERS  # noqa: E402

# The same examples in every run, a thousand times more with PORTER_FUZZ=1000.
MORE = int(os.environ.get("PORTER_FUZZ", "1"))
settings.register_profile(
    "ptx", derandomize=MORE == 1, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("ptx")
SECONDS = 5.0  # an input of a few kilobytes takes milliseconds; the rest is a margin

SAMPLES = [(Path(__file__).with_name("ptx_samples") / "rms_cutedsl.ptx").read_text(), *(p.text for p in PLANTS[::6])]
WORDS = (
    *"; { } [ ] ( ) , | ! @ _ < > : . + - = * / \\ ' \" \0 é \n".split(" "), " ", "//", "/*", "*/", "%r9", "%rd1", "%p",
    "%f", "%tid.x", "%tid", "%laneid", "%envreg9", "0x", "0f3F800000", "0d0", "-1", "99999999999999999999", "1e400",
    "WARP_SZ", ".reg", ".b32", ".b64", ".pred", ".v4", ".entry", ".func", ".visible", ".extern", ".param", ".shared",
    ".global", ".const", ".local", ".align", ".version", ".target", ".loc", ".file", ".section", ".pragma", ".branchtargets",
    ".callprototype", ".maxntid", ".reqntid", "ret", "exit", "bra", "brx.idx", "call", "call.uni", "mov", "add", "mad.lo",
    "ld", "st", "atom", "red", "bar.sync", "shfl.sync.idx.b32", "mbarrier.init.shared.b64", "cp.async.bulk", "multimem.red",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "ldmatrix.sync.aligned.m8n8.x4.shared.b16", "cvt.rn.f16x2.f32",
    "setp.lt.u32", "selp.b32", "prmt.b32", "bfe.u32", "vote.sync.ballot.b32", "fence.acq_rel.gpu", "createpolicy", "dp4a.u32.u32",
    ".f32", ".u32", ".s64", ".f16x2", ".approx", ".rn", ".ftz", ".sat", ".wide", ".global.v4", "L", "k", "$x", "x", "1", "0",
)  # fmt: skip


def swallow(text: str | bytes) -> None:
    """Loads, lowers and compiles everything of a text. PtxError is the only way out besides success."""
    started = time.process_time()
    try:
        module = ptx.load(text)
        for entry in module.entries:
            try:
                for segment in lower(module, entry).segments:
                    for step in segment.steps:
                        compile_step(step, NumpyAlgebra(), [])
            except ptx.PtxError as error:
                assert str(error)
    except ptx.PtxError as error:
        assert str(error)
    assert time.process_time() - started < SECONDS


def execute(text: str) -> None:
    """Launches what can be launched, with a small budget. Whatever the code does, it stays inside the emulator."""
    started = time.process_time()
    try:
        module = ptx.load(text)
        for entry in module.entries[:2]:
            arguments: list[object] = []
            for p in module.declarations[entry].params:
                wide = p.size == 8 and not p.is_array
                arguments.append(ptx.Buffer(np.zeros(64, np.uint32)) if wide else bytes(min(p.size, 1 << 16)))
            ptx.launch(
                module, entry, 2, 32, arguments, budget=100_000, checks=ptx.Checks(shared_races=True, global_races=True)
            )
    except ptx.PtxError as error:
        assert str(error)
    assert time.process_time() - started < 2 * SECONDS


edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 40), st.one_of(st.sampled_from(WORDS), st.text(max_size=6))), min_size=1, max_size=6
)  # fmt: skip


def damaged(source: str, changes: list[tuple[float, int, str]]) -> str:
    for place, length, piece in changes:
        at = int(place * len(source))
        source = source[:at] + piece + source[at + length :]
    return source


@given(st.binary(max_size=400))
@settings(max_examples=100 * MORE)
def test_bytes(data: bytes) -> None:
    swallow(data)
    swallow(HEADER.encode() + data)


@given(st.text(st.sampled_from(string.printable), max_size=300))
@settings(max_examples=100 * MORE)
def test_text_in_a_body(text: str) -> None:
    swallow(f"{HEADER}.entry k() {{ {REGISTERS} {text} ret; }}")


@given(st.lists(st.sampled_from(WORDS), max_size=60))
@settings(max_examples=300 * MORE)
def test_words(words: list[str]) -> None:
    text = " ".join(words)
    swallow(HEADER + text)
    swallow(f"{HEADER}.entry k(.param .u64 x) {{ {REGISTERS} L: {text} ret; }}")


OPCODES = st.builds(
    lambda base, mods: ".".join([base, *mods]),
    st.sampled_from([w.split(".")[0] for w in WORDS if w[:1].isalpha()]),
    st.lists(st.sampled_from(sorted({m for w in WORDS for m in w.split(".")[1:] if m.isidentifier()} | {"sync", "add", "cas", "bulk", "shared", "f64", "bf16x2", "x4", "b8"})), max_size=6),
)  # fmt: skip
OPERANDS = st.lists(
    st.sampled_from(
        ["%r1", "%rd2", "%p3", "%f1", "%fd2", "%h1", "_", "-1", "5", "0f3F800000", "[%rd0]", "[%r1+4]", "[x]", "[%rd0, %r1]",
         "{%r1, %r2}", "{%f1, %f2, %f3, %f4}", "{}", "!%p1", "%r1|%p2", "%tid.x", "%tid", "%clock64", "L", "k", "(%r1)", "x", "WARP_SZ"]
    ),
    max_size=6,
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(["", "", "@%p1 ", "@!%p2 "]), OPCODES, OPERANDS), min_size=1, max_size=4))
@settings(max_examples=500 * MORE)
def test_instructions(instructions: list[tuple[str, str, list[str]]]) -> None:
    body = "\n".join(f"{guard}{opcode} {', '.join(operands)};" for guard, opcode, operands in instructions)
    text = f"{HEADER}.visible .entry k(.param .u64 x) {{ {REGISTERS} ld.param.u64 %rd0, [x]; L: {body} ret; }}"
    swallow(text)
    execute(text)


@given(st.sampled_from(SAMPLES), edits)
@settings(max_examples=200 * MORE)
def test_damaged_kernels_load(source: str, changes: list[tuple[float, int, str]]) -> None:
    swallow(damaged(source, changes))


@given(st.sampled_from([p.text for p in PLANTS if not p.options]), edits)
@settings(max_examples=150 * MORE)
def test_damaged_kernels_run(source: str, changes: list[tuple[float, int, str]]) -> None:
    execute(damaged(source, changes))


@pytest.mark.parametrize(
    "text",
    [
        HEADER + ".entry k() {" * 3000,
        HEADER + ".entry k() " + "{" * 20000 + "}" * 20000,
        HEADER + ".entry k() { mov.u32 %r1, " + "{" * 5000 + "}" * 5000 + "; }",
        HEADER + "/*" * 50000,
        HEADER + '"' * 20001,
        HEADER + '.pragma "' + "\\" * 40001,
        HEADER + ".global .b8 x[99999999999999];",
        HEADER + ".global .b8 x[99999999999999];\n.entry k() { .reg .b32 %r; ld.global.u32 %r, [x]; ret; }",
        HEADER + ".func f(.param .b32 a) { ret; }\n.entry k() { call f; ret; }",
        HEADER + ".entry k() { .shared .b8 x[99999999999999]; ret; }",
        HEADER + ".entry k() { .local .b8 x[99999999999999]; ret; }",
        HEADER + ".entry k() { .reg .b32 %r<2000000000>; mov.u32 %r7, 1; ret; }",
        HEADER + ".entry k(.param .b8 x[99999999999999]) { ret; }",
        HEADER + ".global .u32 x = " + "(" * 10000 + "1" + ")" * 10000 + ";",
        HEADER + ".global .u32 x[] = {" + "1," * 50000 + "};",
        HEADER + ".entry k() { " + "a" * 100000 + "; }",
        HEADER + ".entry k() { add.u32 " + "%r1, " * 20000 + "; }",
        HEADER + ".file 1 " + "9" * 6000 + "\n.loc " + "9" * 6000 + " 1 1",
        HEADER + ".entry k() { .reg .b32 %r<4>; mov.u32 %r1, " + "9" * 6000 + "; ret; }",
        HEADER + ".func f() { call f; ret; }\n.entry k() { call f; ret; }",
        HEADER + "".join(f".func f{i}() {{ call f{i + 1}; call f{i + 1}; ret; }}\n" for i in range(40)) + ".func f40() { ret; }\n.entry k() { call f0; ret; }",
    ],
    ids=lambda t: t[len(HEADER) : len(HEADER) + 30].replace("\n", " "),
)  # fmt: skip
def test_text_made_to_hang(text: str) -> None:
    swallow(text)
    execute(text)
