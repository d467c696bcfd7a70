"""ldmatrix, stmatrix, movmatrix and mma.sync against plain matrix arithmetic."""
# ruff: noqa: E501 (lines of PTX)

from __future__ import annotations

import numpy as np
import pytest

from porter.verify import emulator as ptx
from tests.verify.emulator.ptx_micro import kernel, kinds, run

LOAD = ".shared .align 16 .b8 s[512]; mov.u32 %r3, s; shl.b32 %r4, %r0, 4; add.u32 %r5, %r3, %r4; cvt.u64.u32 %rd2, %r4; add.u64 %rd3, %rd1, %rd2; ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%rd3]; st.shared.v4.b32 [%r5], {%r20, %r21, %r22, %r23}; bar.sync 0;\n"
OUT = "cvt.u64.u32 %rd4, %r4; add.u64 %rd5, %rd0, %rd4; st.global.v4.b32 [%rd5], {%r10, %r11, %r12, %r13};"


@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix(transposed: bool) -> None:
    trans = ".trans" if transposed else ""
    text = kernel(
        LOAD + f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%r10, %r11, %r12, %r13}}, [%r5];" + OUT,
        ("u64 out", "u64 in"),
    )
    data = np.arange(256, dtype=np.uint16)
    out = np.zeros((32, 4), np.uint32)
    assert run(text, out, data).ok
    matrices = data.reshape(4, 8, 8)
    for lane in range(32):
        for k in range(4):
            m = matrices[k].T if transposed else matrices[k]
            row, column = lane // 4, 2 * (lane % 4)
            assert out[lane, k] == int(m[row, column]) | int(m[row, column + 1]) << 16


def test_stmatrix_reverses_ldmatrix_and_movmatrix_transposes() -> None:
    text = kernel(
        LOAD
        + "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10, %r11}, [%r5]; movmatrix.sync.aligned.m8n8.trans.b16 %r12, %r10; movmatrix.sync.aligned.m8n8.trans.b16 %r13, %r11;"
        "bar.sync 0; stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r5], {%r10, %r11, %r12, %r13}; bar.sync 0; ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r5];"
        + OUT,
        ("u64 out", "u64 in"),
    )
    data = np.random.default_rng(0).integers(0, 1 << 16, 256).astype(np.uint16)
    out = np.zeros(256, np.uint16)
    assert run(text, out, data).ok
    got, want = out.reshape(4, 8, 8), data.reshape(4, 8, 8)
    assert (got[:2] == want[:2]).all()
    assert (got[2] == want[0].T).all() and (got[3] == want[1].T).all()


def test_ldmatrix_out_of_bounds() -> None:
    text = kernel(
        LOAD + "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r5+16];" + OUT,
        ("u64 out", "u64 in"),
    )
    assert kinds(run(text, np.zeros(256, np.uint16), np.zeros(256, np.uint16))) == ["out-of-bounds"]


def encode(t: str, rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """(raw elements, exact values)."""
    if t in ("s8", "u8"):
        raw = rng.integers(0, 256, shape).astype(np.uint8)
        return raw, (raw.view(np.int8) if t == "s8" else raw).astype(np.float64)
    values = rng.integers(-8, 9, shape) / 4.0  # exact in every format
    if t == "f16":
        return values.astype(np.float16).view(np.uint16), values
    if t == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16), values
    if t == "tf32":
        return values.astype(np.float32).view(np.uint32), values
    magnitudes = {"e4m3": (7, 3), "e5m2": (15, 2)}[t]
    bias, bits = magnitudes
    codes = np.arange(256)
    exponent, mantissa = (codes & 127) >> bits, codes & ((1 << bits) - 1)
    table = np.where(
        exponent == 0,
        mantissa / (1 << bits) * 2.0 ** (1 - bias),
        (1 + mantissa / (1 << bits)) * 2.0 ** (exponent - float(bias)),
    )
    table = np.where(codes & 128, -table, table)
    raw = rng.integers(0, 256, shape).astype(np.uint8)
    raw = np.where((raw & 127) > 100, raw & 0x8F, raw).astype(np.uint8)
    return raw, table[raw]


@pytest.mark.parametrize(("t", "u", "depth", "acc"), [
    ("f16", "f16", 16, "f32"), ("f16", "f16", 8, "f32"), ("bf16", "bf16", 16, "f32"), ("bf16", "bf16", 8, "f32"), ("tf32", "tf32", 8, "f32"),
    ("tf32", "tf32", 4, "f32"), ("f16", "f16", 16, "f16"), ("s8", "s8", 32, "s32"), ("u8", "s8", 16, "s32"), ("e4m3", "e4m3", 32, "f32"),
    ("e4m3", "e5m2", 32, "f32"),
])  # fmt: skip
def test_mma(t: str, u: str, depth: int, acc: str) -> None:
    rng = np.random.default_rng(depth + len(t))
    a_raw, a = encode(t, rng, (16, depth))
    b_raw, b = encode(u, rng, (8, depth))  # stored as n x k, column-major B
    if acc == "s32":
        c_raw = rng.integers(-1000, 1000, (16, 8)).astype(np.int32)
    else:
        c_raw = (rng.integers(-8, 8, (16, 8)) / 2.0).astype({"f32": np.float32, "f16": np.float16}[acc])
    per = 4 // a_raw.itemsize
    blocks = depth // (4 * per)
    size, c_size = a_raw.itemsize, c_raw.itemsize
    lines = ["shr.u32 %r3, %r0, 2; and.b32 %r4, %r0, 3;"]
    for k in range(2 * blocks):
        lines.append(f"add.u32 %r5, %r3, {8 * (k & 1)}; mul.lo.u32 %r5, %r5, {depth * size}; mad.lo.u32 %r5, %r4, 4, %r5; add.u32 %r5, %r5, {(k >> 1) * 16};"
                     f"cvt.u64.u32 %rd5, %r5; add.u64 %rd5, %rd5, %rd1; ld.global.b32 %r{10 + k}, [%rd5];")  # fmt: skip
    for k in range(blocks):
        lines.append(f"mul.lo.u32 %r5, %r3, {depth * size}; mad.lo.u32 %r5, %r4, 4, %r5; add.u32 %r5, %r5, {k * 16};"
                     f"cvt.u64.u32 %rd5, %r5; add.u64 %rd5, %rd5, %rd2; ld.global.b32 %r{20 + k}, [%rd5];")  # fmt: skip
    words = 2 if acc == "f16" else 4
    for k in range(words):
        row = 8 * (k if acc == "f16" else k >> 1)
        column = 0 if acc == "f16" else k & 1
        lines.append(f"add.u32 %r5, %r3, {row}; shl.b32 %r6, %r4, 1; add.u32 %r6, %r6, {column}; mad.lo.u32 %r5, %r5, 8, %r6; mul.lo.u32 %r5, %r5, {c_size};"
                     f"cvt.u64.u32 %rd{10 + k}, %r5; add.u64 %rd6, %rd{10 + k}, %rd3; ld.global.b32 %r{30 + k}, [%rd6];")  # fmt: skip
    group = lambda first, n: "{" + ", ".join(f"%r{first + k}" for k in range(n)) + "}"  # noqa: E731
    lines.append(
        f"mma.sync.aligned.m16n8k{depth}.row.col.{acc}.{t}.{u}.{acc} {group(40, words)}, {group(10, 2 * blocks)}, {group(20, blocks)}, {group(30, words)};"
    )
    for k in range(words):
        lines.append(f"add.u64 %rd6, %rd{10 + k}, %rd0; st.global.b32 [%rd6], %r{40 + k};")
    text = kernel("\n".join(lines), ("u64 out", "u64 a", "u64 b", "u64 c"))
    out = np.zeros_like(c_raw)
    result = run(text, out, a_raw, b_raw, c_raw)
    assert result.ok, result.violations
    exact = a @ b.T + c_raw.astype(np.float64)
    assert (out == exact.astype(c_raw.dtype)).all()


def test_other_shapes_are_refused() -> None:
    text = kernel("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%r3, %r4}, {%r5}, {%r6}, {%r3, %r4};")
    with pytest.raises(ptx.UnsupportedPtx, match="m8n8k4"):
        run(text, np.zeros(1, np.uint32))
