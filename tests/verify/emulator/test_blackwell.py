"""What only sm_100a has: narrow float formats and packed f32 pairs, against exact models (not recorded on hardware)."""
# ruff: noqa: E501 (lines of PTX)

from __future__ import annotations

import numpy as np
import pytest

from porter.verify import emulator as ptx
from tests.verify.emulator.ptx_micro import kernel, run

# name: exponent bits, mantissa bits, bias
FORMATS = {"e2m1": (2, 1, 1), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3), "e4m3": (4, 3, 7), "e5m2": (5, 2, 15)}


def values_of(fmt: str) -> np.ndarray:
    """The value of every code; NaN and infinity where the format has them."""
    exponent_bits, mantissa_bits, bias = FORMATS[fmt]
    codes = np.arange(1 << (1 + exponent_bits + mantissa_bits))
    magnitude = codes & ((1 << (exponent_bits + mantissa_bits)) - 1)
    e, m = magnitude >> mantissa_bits, magnitude & ((1 << mantissa_bits) - 1)
    v = np.where(
        e == 0, m * 2.0 ** (1 - bias - mantissa_bits), (1 + m / (1 << mantissa_bits)) * 2.0 ** (e - float(bias))
    )
    if fmt == "e4m3":
        v = np.where(magnitude == 0x7F, np.nan, v)
    if fmt == "e5m2":
        v = np.where(magnitude == 0x7C, np.inf, np.where(magnitude > 0x7C, np.nan, v))
    return np.where(codes >> (exponent_bits + mantissa_bits), -v, v)


def nearest_even(fmt: str, x: np.ndarray) -> np.ndarray:
    """Codes of the finite values nearest to x, ties to the even code; NaN becomes the largest positive (or the NaN code)."""
    v = values_of(fmt)
    half = v.size // 2
    finite = np.flatnonzero(np.isfinite(v[:half]))
    table = v[finite]
    out = np.zeros(x.shape, np.int64)
    for i, value in enumerate(x):
        if np.isnan(value):
            out[i] = 0x7F if fmt in ("e4m3", "e5m2") else half - 1
            continue
        distance = np.abs(table - min(abs(float(value)), table.max()))
        best = np.flatnonzero(distance == distance.min())
        code = best[0] if best.size == 1 else best[best % 2 == 0][0]
        out[i] = finite[code] + (half if np.signbit(value) else 0)
    return out


def interesting(fmt: str) -> np.ndarray:
    """All values, all midpoints, and their neighbours in f32."""
    v = values_of(fmt)
    v = np.unique(v[np.isfinite(v)])
    mids = (v[1:] + v[:-1]) / 2
    points = np.concatenate([v, mids, v[-1:] * 1.2, v[-1:] * 100, [np.inf, np.nan, 1e-30]]).astype(np.float32)
    points = np.concatenate(
        [points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(-np.inf)), [-0.0]]
    )
    return np.concatenate([points, -points]).astype(np.float32)


def pairs(fmt: str) -> tuple[np.ndarray, np.ndarray]:
    x = interesting(fmt)
    x = np.resize(x, (x.size + 63) // 64 * 64)
    return x, np.roll(x, 17)


def convert(opcode: str, x: np.ndarray, y: np.ndarray, width: int) -> np.ndarray:
    """Runs `opcode d, x, y` for every element."""
    byte = width == 1
    register = ".reg .b8 %q;" if byte else ""
    move = "cvt.u32.u8 %r5, %q;" if byte else "cvt.u32.u16 %r5, %h0;"
    text = kernel(
        f"{register} mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd1, %rd4; ld.global.f32 %f0, [%rd5]; add.u64 %rd5, %rd2, %rd4; ld.global.f32 %f1, [%rd5];"
        f"{opcode} {'%q' if byte else '%h0'}, %f0, %f1; {move} add.u64 %rd5, %rd0, %rd4; st.global.u32 [%rd5], %r5;",
        ("u64 out", "u64 x", "u64 y"),
    ).replace("sm_90a", "sm_100a")
    out = np.zeros(x.size, np.uint32)
    assert run(text, out, x.copy(), y.copy(), grid=x.size // 64, block=64).ok
    return out


@pytest.mark.parametrize("fmt", ["e2m1", "e2m3", "e3m2", "e4m3", "e5m2"])
def test_narrowing_pairs(fmt: str) -> None:
    x, y = pairs(fmt)
    step = 4 if fmt == "e2m1" else 8
    got = convert(f"cvt.rn.satfinite.{fmt}x2.f32", x, y, 1 if fmt == "e2m1" else 2)
    want = nearest_even(fmt, x) << step | nearest_even(fmt, y)
    assert (got == want).all(), [
        (float(a), float(b), hex(p), hex(int(q))) for a, b, p, q in zip(x, y, got, want, strict=True) if p != q
    ][:5]


@pytest.mark.parametrize("fmt", ["e2m1", "e2m3", "e3m2", "e4m3", "e5m2"])
def test_widening_every_pair_of_codes(fmt: str) -> None:
    v = values_of(fmt).astype(np.float16)
    step, width = (4, 1) if fmt == "e2m1" else (8, 2)
    a, b = np.meshgrid(np.arange(v.size), np.arange(v.size))
    codes = (a.reshape(-1) << step | b.reshape(-1)).astype(np.uint8 if width == 1 else np.uint16)
    codes = codes[:: max(1, codes.size // 4096)]
    codes = np.resize(codes, (codes.size + 63) // 64 * 64)
    load = "ld.global.u8 %r4, [%rd5]; cvt.u8.u32 %q, %r4;" if width == 1 else "ld.global.u16 %h0, [%rd5];"
    text = kernel(
        f".reg .b8 %q; mul.wide.u32 %rd4, %r1, {width}; add.u64 %rd5, %rd1, %rd4; {load} cvt.rn.f16x2.{fmt}x2 %r5, {'%q' if width == 1 else '%h0'};"
        "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd0, %rd4; st.global.u32 [%rd5], %r5;", ("u64 out", "u64 in"))  # fmt: skip
    out = np.zeros(codes.size, np.uint32)
    assert run(text, out, codes, grid=codes.size // 64, block=64).ok
    halves = out.view(np.float16).reshape(-1, 2)
    low, high = codes & ((1 << step) - 1), codes >> step
    for got, code in ((halves[:, 0], low), (halves[:, 1], high)):
        want = v[code]
        assert ((got == want) | (np.isnan(got) & np.isnan(want))).all()
        assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


@pytest.mark.parametrize("mode", ["rz", "rp"])
def test_exponent_bytes(mode: str) -> None:
    powers = np.float32(2.0) ** np.arange(-126, 128).astype(np.float32)
    x = np.concatenate(
        [
            powers,
            np.nextafter(powers, np.float32(np.inf)),
            np.nextafter(powers, np.float32(0)),
            [0, np.inf, np.nan, 1e-40, 6e-39],
        ]
    )
    x = np.resize(np.concatenate([x, -x]).astype(np.float32), 1600 - 1600 % 64)
    for finite in ("", ".satfinite"):
        got = convert(f"cvt.{mode}{finite}.ue8m0x2.f32", x, np.roll(x, 5), 2)
        for value, code in zip(x, got >> 8, strict=True):
            magnitude = abs(float(value))
            if np.isnan(magnitude):
                assert code == 0xFF
                continue
            top = 254 if finite else 255
            if np.isinf(magnitude):
                assert code == top
                continue
            if mode == "rp":  # the smallest power of two that is not below the value
                want = next((k for k in range(255) if 2.0 ** (k - 127) >= magnitude), top)
            else:
                want = next((k for k in range(254, -1, -1) if 2.0 ** (k - 127) <= magnitude), 0)
            assert code == want, (value, hex(int(code)), want)


def test_exponent_bytes_widen_to_bf16() -> None:
    codes = np.arange(256, dtype=np.uint16)
    text = kernel("mul.wide.u32 %rd4, %r1, 2; add.u64 %rd5, %rd1, %rd4; ld.global.u16 %h0, [%rd5]; cvt.rn.bf16x2.ue8m0x2 %r5, %h0;"
                  "mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd0, %rd4; st.global.u32 [%rd5], %r5;", ("u64 out", "u64 in"))  # fmt: skip
    out = np.zeros(256, np.uint32)
    assert run(text, out, codes, grid=4, block=64).ok
    got = (out << np.uint32(16)).view(np.float32).astype(np.float64)
    assert np.isnan(got[255]) and (got[:255] == 2.0 ** (np.arange(255) - 127.0)).all()


@pytest.mark.parametrize("op", ["add", "mul", "fma"])
@pytest.mark.parametrize("ftz", ["", ".ftz"])
def test_packed_pairs_equal_two_scalars(op: str, ftz: str) -> None:
    rng = np.random.default_rng(len(op))
    inputs = [rng.integers(0, 1 << 32, 128).astype(np.uint32) for _ in range(3)]
    n = 3 if op == "fma" else 2
    names = [f"%rd{10 + k}" for k in range(n)]
    loads = "".join(f"add.u64 %rd6, %rd{k + 1}, %rd5; ld.global.b64 %rd{10 + k}, [%rd6];" for k in range(n))
    params = ("u64 out", "u64 a", "u64 b", "u64 c")
    packed = kernel(
        "mul.wide.u32 %rd5, %r1, 8;"
        + loads
        + f"{op}.rn{ftz}.f32x2 %rd20, {', '.join(names)}; add.u64 %rd6, %rd0, %rd5; st.global.b64 [%rd6], %rd20;",
        params,
    )
    scalar = kernel("mul.wide.u32 %rd5, %r1, 4;" + loads.replace("b64 %rd1", "f32 %f1") + f"{op}.rn{ftz}.f32 %f20, {', '.join(names).replace('%rd', '%f')};"
                    "add.u64 %rd6, %rd0, %rd5; st.global.f32 [%rd6], %f20;", params)  # fmt: skip
    a, b = np.zeros(128, np.uint32), np.zeros(128, np.uint32)
    assert run(packed.replace("sm_90a", "sm_100a"), a, *inputs, grid=2).ok
    assert run(scalar, b, *inputs, grid=4).ok
    assert (a == b).all()


def test_three_operand_minimum_and_mixed_precision() -> None:
    text = kernel(
        "mov.f32 %f0, 0f40400000; mov.f32 %f1, 0fBF800000; mov.f32 %f2, 0f7FC00000; min.f32 %f3, %f0, %f1, %f2; max.NaN.f32 %f4, %f0, %f1, %f2;"
        "mov.b16 %h0, 0x3E00; add.rn.f32.f16 %f5, %h0, %f0; mov.b16 %h1, 0x4040; fma.rn.f32.bf16 %f6, %h1, %h1, %f1;"
        "st.global.v4.f32 [%rd0], {%f3, %f4, %f5, %f6};"
    ).replace("sm_90a", "sm_100a")
    out = np.zeros(4, np.float32)
    assert run(text, out, block=1).ok
    assert out[0] == -1 and np.isnan(out[1]) and out[2] == 4.5 and out[3] == 8.0


def test_nvfp4_block_quantiser() -> None:
    """Sixteen values to eight bytes of e2m1 and one e4m3 scale, the way inference kernels do it."""
    text = kernel(
        """
        .reg .b8 %q<4>;
        mul.wide.u32 %rd4, %r1, 64; add.u64 %rd5, %rd2, %rd4;
        ld.global.v8.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%rd5]; ld.global.v8.f32 {%f8, %f9, %f10, %f11, %f12, %f13, %f14, %f15}, [%rd5+32];
        abs.f32 %f16, %f0;
        """
        + "".join(f"abs.f32 %f17, %f{k}; max.f32 %f16, %f16, %f17;" for k in range(1, 16))
        + """
        mul.f32 %f18, %f16, 0f3E2AAAAB; mov.f32 %f19, 0f00000000; cvt.rn.satfinite.e4m3x2.f32 %h0, %f19, %f18;
        cvt.rn.f16x2.e4m3x2 %r5, %h0; mov.b32 {%h1, %h2}, %r5; cvt.f32.f16 %f20, %h1; rcp.rn.f32 %f21, %f20;
        """
        + "".join(f"mul.f32 %f{k}, %f{k}, %f21;" for k in range(16))
        + "".join(
            "".join(f"cvt.rn.satfinite.e2m1x2.f32 %q{j}, %f{8 * h + 2 * j + 1}, %f{8 * h + 2 * j};" for j in range(4))
            + f"mov.b32 %r{10 + h}, {{%q0, %q1, %q2, %q3}};"
            for h in range(2)
        )
        + "mul.wide.u32 %rd6, %r1, 8; add.u64 %rd7, %rd0, %rd6; st.global.v2.b32 [%rd7], {%r10, %r11}; cvt.u32.u16 %r12, %h0; cvt.u64.u32 %rd8, %r1; add.u64 %rd9, %rd1, %rd8; st.global.u8 [%rd9], %r12;",
        ("u64 out", "u64 scales", "u64 in"),
    ).replace("sm_90a", "sm_100a")
    x = (np.random.default_rng(8).standard_normal((64, 16)) * 4).astype(np.float32)
    out, scales = np.zeros((64, 8), np.uint8), np.zeros(64, np.uint8)
    assert run(text, out, scales, x, grid=2).ok
    largest = np.abs(x).max(axis=1) * np.float32(0.16666667)
    assert (scales == nearest_even("e4m3", largest)).all()
    scaled = x * (np.float32(1) / values_of("e4m3")[scales].astype(np.float32))[:, None]
    codes = nearest_even("e2m1", scaled.reshape(-1)).reshape(64, 16)
    assert (out == (codes[:, ::2] | codes[:, 1::2] << 4)).all()


def test_wide_accesses_need_their_alignment() -> None:
    text = kernel(
        "ld.global.v4.b64 {%rd10, %rd11, %rd12, %rd13}, [%rd1+16]; st.global.b64 [%rd0], %rd10;", ("u64 out", "u64 in")
    )
    result = run(text, np.zeros(2, np.uint64), np.zeros(16, np.uint64), block=1)
    assert [v.kind for v in result.violations] == ["misaligned"]
    assert isinstance(result, ptx.Result)
