"""The runtime of compiled code: its LLVM IR is that of its C, every function does what the interpreter does."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from porter.verify import emulator as ptx
from porter.verify.emulator.llvm import abi, runtime
from tests.verify.emulator.ptx_micro import kernel
from tools import emulator_runtime

CHECKED = ptx.Checks(shared_races=True, global_races=True)
UNCHECKED = ptx.Checks(uninitialised=False)


# what is committed
def test_what_is_committed_is_of_this_source() -> None:
    assert emulator_runtime.CONSTANTS.read_text(encoding="utf-8") == abi.header()
    found = re.search(r"^; ([0-9a-f]{32})$", runtime.text(), re.MULTILINE)
    assert found is not None and found.group(1) == emulator_runtime.digest(), "run `python -m tools.emulator_runtime`"


def test_what_is_committed_is_what_clang_makes() -> None:
    path, reason = emulator_runtime.clang()
    if path is None:
        pytest.skip(reason)
    assert emulator_runtime.compiled(path) == runtime.text()


@pytest.mark.parametrize("change", ["a source", "a number of abi.py", "a flag", "the release"])
def test_the_digest_tells_a_change(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = emulator_runtime.digest()
    if change == "a source":
        for path in emulator_runtime.FOLDER.glob("*.[ch]"):
            (tmp_path / path.name).write_text(path.read_text(encoding="utf-8") + "\n" * (path.name == "races.c"))
        monkeypatch.setattr(emulator_runtime, "FOLDER", tmp_path)
        monkeypatch.setattr(emulator_runtime, "CONSTANTS", tmp_path / "constants.h")
    elif change == "a number of abi.py":
        monkeypatch.setattr(abi, "RACE_WORD", abi.RACE_WORD + 1)
    elif change == "a flag":
        monkeypatch.setattr(emulator_runtime, "FLAGS", (*emulator_runtime.FLAGS, "-O1"))
    else:
        monkeypatch.setattr(emulator_runtime, "RELEASE", "19.1.0")
    assert emulator_runtime.digest() != before


def test_the_code_depends_on_no_target() -> None:
    """Nothing that only one CPU, or only one release of LLVM, has."""
    text = runtime.text()
    for word in ("target ", "attributes #", "llvm.x86", "nocapture", "lifetime", "!"):
        assert word not in text, word
    assert len(text) < 100_000


def test_the_package_holds_what_is_needed() -> None:
    root = emulator_runtime.FOLDER.parents[4]
    patterns = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["porter"]
    for path in (runtime.COMPILED, *emulator_runtime.FOLDER.glob("*.[ch]")):
        name = path.relative_to(root / "porter").as_posix()
        assert any(fnmatch.fnmatch(name, p) for p in patterns), name


def test_functions_are_called_as_they_are_declared() -> None:
    signatures = runtime.signatures()
    assert signatures["verify"] == ("i1", ("ptr", "i64"))
    assert signatures["run"] == ("i64", ("ptr", "i64", "i64"))
    assert {f"{way}{width}" for way in ("load", "store") for width in (1, 2, 4, 8, 16)} <= set(signatures)
    assert "resolve" not in signatures, "internal functions are not called from outside"


# what it does
def _same(text: str, checks: ptx.Checks, *arrays: np.ndarray, block: int = 64) -> list[np.ndarray]:
    """Runs kernel `k` with both backends; compiled code must have done it all. Returns the memory."""
    found = []
    for backend in ("numpy", "llvm"):
        copies = [a.copy() for a in arrays]
        module = ptx.load(text)
        result = ptx.launch(module, "k", 2, block, [ptx.Buffer(a) for a in copies], checks=checks, backend=backend)
        assert result.ok and result.backend == backend, (result.violations[:1], result.refusal)
        found.append(copies)
    for a, b in zip(*found, strict=True):
        assert np.array_equal(a, b)
    return found[1]


ATOMICS = [
    *[(op, t) for op in ("add", "min", "max") for t in ("u32", "s32", "u64")],
    *[(op, t) for op in ("min", "max") for t in ("s64",)],
    *[(op, f"b{bits}") for op in ("and", "or", "xor", "exch", "cas") for bits in (32, 64)],
    ("inc", "u32"), ("dec", "u32"), ("add", "f32"), ("add", "f64"),
]  # fmt: skip


@pytest.mark.parametrize("op, kind", ATOMICS)
def test_every_atomic(op: str, kind: str) -> None:
    """Each in global, shared and generic memory, one address a lane, with and without checks."""
    bits, size = int(kind[1:]), int(kind[1:]) // 8
    value, register = ("%r", "%r") if bits == 32 else ("%rd", "%rd")
    if kind[0] == "f":
        value = register = "%f" if bits == 32 else "%fd"
    old, x, compare = f"{register}3", f"{value}4", f"{value}5"
    operands = f"{compare}, {x}" if op == "cas" else x
    b = f"b{bits}"
    text = kernel(
        f".shared .align 16 .b8 s[{64 * size}]; mov.u32 %r10, s; mul.lo.u32 %r11, %r0, {size};"
        f"add.u32 %r10, %r10, %r11; mul.lo.u32 %r12, %r1, {size}; cvt.u64.u32 %rd10, %r12; add.u64 %rd11, %rd0, %rd10;"
        f"add.u64 %rd12, %rd1, %rd10; add.u64 %rd13, %rd2, %rd10; ld.global.{b} {x}, [%rd12];"
        f"ld.global.{b} {compare}, [%rd11];"
        f"st.shared.{b} [%r10], {compare}; atom.global.{op}.{kind} {old}, [%rd11], {operands};"
        f"st.global.{b} [%rd13], {old}; atom.shared.{op}.{kind} {old}, [%r10], {operands};"
        f"ld.shared.{b} {old}, [%r10]; st.global.{b} [%rd13+{128 * size}], {old}; cvt.u64.u32 %rd14, %r10;"
        f"cvta.shared.u64 %rd14, %rd14; atom.{op}.{kind} {old}, [%rd14], {operands};"
        f"ld.shared.{b} {old}, [%r10]; st.global.{b} [%rd13+{256 * size}], {old};",
        ("u64 memory", "u64 operands", "u64 out"),
    )
    rng = np.random.default_rng(bits)
    words = np.dtype(f"u{size}")
    memory = rng.integers(0, 1 << 63, 128, dtype=np.uint64).astype(words)
    operand = rng.integers(0, 1 << 63, 128, dtype=np.uint64).astype(words)
    operand[::5] = memory[::5]
    operand[1::5], memory[2::5] = 0, 0
    memory[3::5] = np.iinfo(words).max
    if kind == "f32":  # subnormals, infinities, NaN
        memory[::3] &= np.uint32(0x807FFFFF)
        operand[::3] &= np.uint32(0x807FFFFF)
        memory[1::7], operand[1::7], operand[2::7] = 0x7F800000, 0xFF800000, 0x7FC12345
    if kind == "f64":
        for k, x in enumerate((0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48 | 5, 0xFFFC << 48 | 9, 0x7FF0 << 48 | 3)):
            memory[k + 10 :: 23], operand[6 * k + 10 :: 29] = x, x
    if op in ("inc", "dec"):
        memory[::2] %= np.uint32(5)
        operand[::2] %= np.uint32(5)
    for checks in (UNCHECKED, CHECKED):
        after, _, out = _same(text, checks, memory, operand, np.zeros(384, words))
        assert np.array_equal(out[:128], memory)
        assert not np.array_equal(after, memory)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("space", ["global", "shared", "local", ""])
def test_scattered_accesses(space: str, width: int) -> None:
    """Lanes that are no row: each stores to a place of its own and loads it, and what another one has stored."""
    part = min(width, 8)
    many = width // part
    vector, registers = (".v2", "{%rd4, %rd5}") if many == 2 else ("", "%rd4")
    kind = f"b{8 * part}"
    where = {"global": "", "": "", "shared": f".shared .align 16 .b8 s[{64 * width}];",
             "local": f".local .align 16 .b8 s[{64 * width}];"}[space]  # fmt: skip
    base = "mov.u64 %rd10, %rd1; mad.lo.u32 %r6, %r7, 64, %r0;" if not where else "mov.u64 %rd10, s; mov.u32 %r6, %r0;"
    own = f"mul.lo.u32 %r8, %r6, 37; and.b32 %r8, %r8, {127 if not where else 63}; mul.lo.u32 %r8, %r8, {width};"
    text = kernel(
        f"{where} mov.u32 %r7, %ctaid.x; {base} {own} cvt.u64.u32 %rd11, %r8; add.u64 %rd10, %rd10, %rd11;"
        "cvt.u64.u32 %rd4, %r1; add.u64 %rd4, %rd4, 3; mov.u64 %rd5, 77;"
        + (f"cvt.u{8 * part}.u64 %h4, %rd4;" if part < 4 else "")
        + f"st{'.' * bool(space)}{space}{vector}.{kind} [%rd10], {registers}; mov.u64 %rd4, 0; mov.u64 %rd5, 0;"
        f"ld{'.' * bool(space)}{space}{vector}.{kind} {registers}, [%rd10]; add.u64 %rd4, %rd4, %rd5;"
        "mul.wide.u32 %rd12, %r1, 8; add.u64 %rd12, %rd0, %rd12; st.global.u64 [%rd12], %rd4;",
        ("u64 out", "u64 memory"),
    )
    out = _same(text, CHECKED, np.zeros(128, np.uint64), np.zeros(128 * width, np.uint8))[0]
    mask = (1 << 8 * part) - 1
    assert [int(x) for x in out] == [((k + 3) & mask) + 77 * (many == 2) for k in range(128)]
