"""One micro-kernel per opcode x type x rounding: the instructions whose results are recorded on hardware and replayed.

A Spec's inputs come from a fixed seed, so only results are stored. Each thread computes one result from its own inputs.
"""
# ruff: noqa: E501, RUF005

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

COUNT = 1024
WIDTH = {"u8": 1, "s8": 1, "b8": 1, "u16": 2, "s16": 2, "b16": 2, "f16": 2, "bf16": 2, "u32": 4, "s32": 4, "b32": 4, "f32": 4,
         "f16x2": 4, "bf16x2": 4, "u16x2": 4, "s16x2": 4, "u64": 8, "s64": 8, "b64": 8, "f64": 8, "pred": 4,
         "e4m3x2": 2, "e5m2x2": 2, "e2m1x2": 1, "tf32": 4, "shift": 4, "byte": 4, "selector": 4}  # fmt: skip
RAW = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_REGISTER = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}


@dataclass(frozen=True)
class Spec:
    name: str  # unique; the opcode and, where needed, a constant operand
    inputs: tuple[str, ...]
    output: str
    code: str  # uses %a0.. and %d (%p for pred outputs)
    approximate: str = ""  # key of the bound, "" for exact

    def values(self) -> list[np.ndarray]:
        """COUNT raw inputs per operand."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        columns = [_column(t, rng) for t in self.inputs]
        specials = [_specials(t) for t in self.inputs]
        # every pair of special values first
        at = 0
        limit = COUNT // 2
        if len(specials) == 1:
            n = min(len(specials[0]), limit)
            columns[0][:n] = specials[0][:n]
        else:
            for x in specials[0]:
                for y in specials[1]:
                    if at >= limit:
                        break
                    columns[0][at], columns[1][at] = x, y
                    if len(columns) > 2:
                        columns[2][at] = specials[2][at % len(specials[2])]
                    at += 1
        return columns

    def ptx(self) -> str:
        """The micro-kernel's text."""
        lines = [f".visible .entry k_{symbol(self.name)}("]
        names = [f"    .param .u64 p{k}" for k in range(len(self.inputs) + 1)]
        lines.append(",\n".join(names))
        lines += [
            ")",
            "{",
            "    .reg .pred %p, %q, %z;",
            "    .reg .b32 %t, %r<8>;",
            "    .reg .b16 %h<8>;",
            "    .reg .b64 %x, %rd<8>;",
        ]
        for k, t in enumerate(self.inputs):
            lines.append(f"    .reg .{register_type(t)} %a{k};")
        if self.output != "pred":
            lines.append(f"    .reg .{register_type(self.output)} %d;")
        lines += ["    mov.u32 %r0, %ctaid.x;", "    mov.u32 %r1, %ntid.x;", "    mov.u32 %r2, %tid.x;",
                  "    mad.lo.u32 %t, %r0, %r1, %r2;"]  # fmt: skip
        for k, t in enumerate(self.inputs):
            width = WIDTH[t]
            lines += [
                f"    mul.wide.u32 %x, %t, {width};",
                f"    ld.param.u64 %rd0, [p{k}];",
                "    add.u64 %x, %x, %rd0;",
            ]
            lines.append(f"    ld.global.{'u8' if width == 1 else _REGISTER[width]} %a{k}, [%x];")
        for line in self.code.strip().split("\n"):
            lines.append("    " + line.strip())
        width = WIDTH[self.output]
        lines += [
            f"    mul.wide.u32 %x, %t, {width};",
            f"    ld.param.u64 %rd0, [p{len(self.inputs)}];",
            "    add.u64 %x, %x, %rd0;",
        ]
        if self.output == "pred":
            lines += ["    selp.u32 %r3, 1, 0, %p;", "    st.global.u32 [%x], %r3;"]
        else:
            lines.append(f"    st.global.{'u8' if width == 1 else _REGISTER[width]} [%x], %d;")
        lines += ["    ret;", "}"]
        return "\n".join(lines)


def symbol(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


def register_type(t: str) -> str:
    return t if t in ("f32", "f64") else _REGISTER[WIDTH[t]]


def _floats(values: list[float], dtype: type) -> list[int]:
    a = np.array(values, dtype)
    return [int(v) for v in a.view(RAW[a.itemsize])]


_F32 = _floats([0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.0, 3.0, np.inf, -np.inf, 3.4028234663852886e38, -3.4028234663852886e38,
                1.1754943508222875e-38, 16777216.0, 2147483648.0, -2147483648.0, 0.3333333432674408, 1e-3, 255.5, -128.5,
                65504.0, 65520.0, 448.0, 464.0, 57344.0], np.float32) + [0x7FC00000, 0xFFC12345, 0x7F812345, 1, 0x80000001, 0x007FFFFF,
                0x80400000, 0x00800001, 0x3F7FFFFF, 0x3F800001]  # fmt: skip
_F64 = _floats([0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 3.0, np.inf, -np.inf, 1.7976931348623157e308, 2.2250738585072014e-308,
                9007199254740993.0, 4294967296.5, -9.3e18, 1e-3, 65519.99, 3.4028235677973366e38, 1e-40, 2.0**-150],
               np.float64) + [0x7FF8000000000000, 0xFFF0000012345678, 1, 0x800FFFFFFFFFFFFF]  # fmt: skip
_F16 = _floats([0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 3.0, np.inf, -np.inf, 65504.0, 6.103515625e-05, 0.333, 2048.0, 127.5],
               np.float16) + [0x7E00, 0xFD01, 1, 0x8001, 0x03FF, 0x8200]  # fmt: skip
_BF16 = [0, 0x8000, 0x3F80, 0xBF80, 0x3F00, 0xBFC0, 0x4040, 0x7F80, 0xFF80, 0x7F7F, 0xFF7F, 0x0080, 0x7FC0, 0xFFA1, 1, 0x8001,
         0x007F, 0x8040, 0x3EAB, 0x4B00]  # fmt: skip


def _specials(t: str) -> list[int]:
    if t in ("f32", "tf32"):
        return _F32
    if t == "f64":
        return _F64
    if t == "f16":
        return _F16
    if t == "bf16":
        return _BF16
    if t in ("f16x2", "bf16x2"):
        base = _F16 if t == "f16x2" else _BF16
        return [base[k] | base[(k * 7 + 3) % len(base)] << 16 for k in range(len(base))]
    if t == "shift":
        return [0, 1, 5, 8, 16, 31, 32, 33, 63, 64, 65, 255, 256, 0xFFFFFFFF]
    if t == "byte":
        return [0, 1, 7, 8, 15, 31, 32, 40, 64, 255]
    if t == "selector":
        return [0x3210, 0x5410, 0x7632, 0x0123, 0x8888, 0xF7C4, 0, 1, 2, 3]
    bits = 8 * WIDTH[t]
    top = 1 << (bits - 1)
    return [
        0,
        1,
        2,
        3,
        7,
        top - 1,
        top,
        top + 1,
        2 * top - 1,
        2 * top - 2,
        0x55 * (top // 64 or 1) & (2 * top - 1),
        100 % top,
    ]


def _column(t: str, rng: np.random.Generator) -> np.ndarray:
    width = WIDTH[t]
    bits = rng.integers(0, 1 << (8 * width), COUNT, dtype=np.uint64) if width < 8 else rng.integers(0, 1 << 63, COUNT, dtype=np.uint64) * np.uint64(2) + rng.integers(0, 2, COUNT, dtype=np.uint64)  # fmt: skip
    out = bits.astype(RAW[width])
    # half of the floats are of everyday size; a quarter of the integers are small
    half = np.arange(COUNT) % 2 == 0
    scale = np.exp2(rng.integers(-8, 9, COUNT).astype(np.float64))
    normal = rng.standard_normal(COUNT) * scale
    if t in ("f32", "tf32"):
        out[half] = normal.astype(np.float32).view(np.uint32)[half]
    elif t == "f64":
        out[half] = normal.view(np.uint64)[half]
    elif t == "f16":
        out[half] = normal.astype(np.float16).view(np.uint16)[half]
    elif t == "bf16":
        out[half] = (normal.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)[half]
    elif t in ("f16x2", "bf16x2"):
        a, b = normal, rng.standard_normal(COUNT)
        if t == "f16x2":
            pair = (
                a.astype(np.float16).view(np.uint16).astype(np.uint32)
                | b.astype(np.float16).view(np.uint16).astype(np.uint32) << 16
            )
        else:
            pair = a.astype(np.float32).view(np.uint32) >> 16 | (
                b.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
            )
        out[half] = pair[half]
    elif t == "shift":
        out = rng.integers(0, 72, COUNT).astype(np.uint32)
    elif t == "byte":
        out = rng.integers(0, 70, COUNT).astype(np.uint32)
    elif t[0] in "us" and width > 1:
        small = np.arange(COUNT) % 4 == 1
        out[small] = rng.integers(-50, 50, COUNT).astype(np.int64).view(np.uint64).astype(RAW[width])[small]
    return out


def _simple(opcode: str, inputs: tuple[str, ...], output: str, approximate: str = "", extra: str = "") -> Spec:
    d = "%p" if output == "pred" else "%d"
    args = ", ".join([d, *(f"%a{k}" for k in range(len(inputs)))])
    return Spec(
        opcode + (f" {extra}" if extra else ""),
        inputs,
        output,
        f"{opcode} {args}{', ' + extra if extra else ''};",
        approximate,
    )


def _float_specs() -> list[Spec]:
    out: list[Spec] = []
    for mode in ("rn", "rz", "rm", "rp"):
        for ftz in ("", ".ftz"):
            for op in ("add", "sub", "mul"):
                out.append(_simple(f"{op}.{mode}{ftz}.f32", ("f32", "f32"), "f32"))
            out.append(_simple(f"fma.{mode}{ftz}.f32", ("f32", "f32", "f32"), "f32"))
            out.append(_simple(f"div.{mode}{ftz}.f32", ("f32", "f32"), "f32"))
            out += [_simple(f"{op}.{mode}{ftz}.f32", ("f32",), "f32") for op in ("rcp", "sqrt")]
        for op in ("add", "sub", "mul", "div"):
            out.append(_simple(f"{op}.{mode}.f64", ("f64", "f64"), "f64"))
        out.append(_simple(f"fma.{mode}.f64", ("f64", "f64", "f64"), "f64"))
        out += [_simple(f"{op}.{mode}.f64", ("f64",), "f64") for op in ("rcp", "sqrt")]
    for op in ("add", "mul"):
        out += [_simple(f"{op}.rn{x}.sat.f32", ("f32", "f32"), "f32") for x in ("", ".ftz")]
    out.append(_simple("fma.rn.sat.f32", ("f32", "f32", "f32"), "f32"))
    for ftz in ("", ".ftz"):
        out += [_simple(f"div.{k}{ftz}.f32", ("f32", "f32"), "f32", "div") for k in ("approx", "full")]
        for op in ("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos"):
            out.append(_simple(f"{op}.approx{ftz}.f32", ("f32",), "f32", op))
        for op in ("min", "max"):
            for kind in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                out.append(_simple(f"{op}{ftz}{kind}.f32", ("f32", "f32"), "f32"))
        out += [_simple(f"{op}{ftz}.f32", ("f32",), "f32") for op in ("abs", "neg")]
        for c in ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"):
            out.append(_simple(f"setp.{c}{ftz}.f32", ("f32", "f32"), "pred"))
        out.append(_simple(f"set.lt{ftz}.f32.f32", ("f32", "f32"), "f32"))
        out.append(_simple(f"slct{ftz}.b32.f32", ("b32", "b32", "f32"), "b32"))
    out.append(_simple("tanh.approx.f32", ("f32",), "f32", "tanh"))
    out.append(_simple("copysign.f32", ("f32", "f32"), "f32"))
    out.append(_simple("copysign.f64", ("f64", "f64"), "f64"))
    for op in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        out += [_simple(f"testp.{op}.{t}", (t,), "pred") for t in ("f32", "f64")]
    for op in ("min", "max"):
        out.append(_simple(f"{op}.f64", ("f64", "f64"), "f64"))
    out += [_simple(f"{op}.f64", ("f64",), "f64") for op in ("abs", "neg")]
    for c in ("eq", "ne", "lt", "geu", "nan"):
        out.append(_simple(f"setp.{c}.f64", ("f64", "f64"), "pred"))
    out.append(_simple("rcp.approx.ftz.f64", ("f64",), "f64", "rcp64"))
    out.append(_simple("rsqrt.approx.f64", ("f64",), "f64", "rsqrt64"))
    out.append(_simple("rsqrt.approx.ftz.f64", ("f64",), "f64", "rsqrt64"))
    return out


def _half_specs() -> list[Spec]:
    out: list[Spec] = []
    for t in ("f16", "bf16", "f16x2", "bf16x2"):
        s = t[:-2] if t.endswith("x2") else t
        variants = ("", ".ftz", ".sat", ".ftz.sat") if s == "f16" else ("",)
        for op in ("add", "sub", "mul"):
            for v in variants:
                out.append(_simple(f"{op}.rn{v}.{t}" if s == "bf16" else f"{op}{v}.{t}", (t, t), t))
        for v in (*variants, ".relu") if s == "bf16" else (*variants, ".relu", ".ftz.relu"):
            out.append(_simple(f"fma.rn{v}.{t}", (t, t, t), t))
        for op in ("min", "max"):
            for v in ("", ".NaN", ".xorsign.abs") + ((".ftz",) if s == "f16" else ()):
                out.append(_simple(f"{op}{v}.{t}", (t, t), t))
        out += [_simple(f"{op}.{t}", (t,), t) for op in ("abs", "neg")]
        out.append(_simple(f"tanh.approx.{t}", (t,), t, "tanh16"))
        out.append(_simple(f"ex2.approx{'.ftz' if s == 'bf16' else ''}.{t}", (t,), t, f"ex2_{s}"))
    for t in ("f16", "bf16"):
        for c in ("eq", "ne", "lt", "geu", "nan", "num"):
            out.append(_simple(f"setp.{c}.{t}", (t, t), "pred"))
        out.append(_simple(f"set.gt.u32.{t}", (t, t), "u32"))
        out.append(_simple(f"set.le.{t}.{t}", (t, t), t))
    out.append(_simple("setp.lt.ftz.f16", ("f16", "f16"), "pred"))
    out.append(_simple("set.ge.f16x2.f16x2", ("f16x2", "f16x2"), "f16x2"))
    out.append(Spec("setp.lt.f16x2 second", ("f16x2", "f16x2"), "pred", "setp.lt.f16x2 %q|%p, %a0, %a1;"))
    return out


def _convert_specs() -> list[Spec]:
    out: list[Spec] = []
    for mode in ("rn", "rz", "rm", "rp"):
        out.append(_simple(f"cvt.{mode}.f32.f64", ("f64",), "f32"))
        out.append(_simple(f"cvt.{mode}.ftz.f32.f64", ("f64",), "f32"))
        out.append(_simple(f"cvt.{mode}.f16.f64", ("f64",), "f16"))
        out.append(_simple(f"cvt.{mode}.f16.f32", ("f32",), "f16"))
        for s in ("s32", "u32", "s64", "u64"):
            out.append(_simple(f"cvt.{mode}.f32.{s}", (s,), "f32"))
            out.append(_simple(f"cvt.{mode}.f64.{s}", (s,), "f64"))
        for s in ("s32", "u64", "s16"):
            out.append(_simple(f"cvt.{mode}.f16.{s}", (s,), "f16"))
    for mode in ("rn", "rz"):
        out.append(_simple(f"cvt.{mode}.bf16.f32", ("f32",), "bf16"))
        out.append(_simple(f"cvt.{mode}.relu.bf16.f32", ("f32",), "bf16"))
        out.append(_simple(f"cvt.{mode}.relu.f16.f32", ("f32",), "f16"))
        for t in ("f16x2", "bf16x2"):
            out.append(_simple(f"cvt.{mode}.{t}.f32", ("f32", "f32"), t))
            out.append(_simple(f"cvt.{mode}.relu.{t}.f32", ("f32", "f32"), t))
    for t in ("e4m3x2", "e5m2x2"):
        out.append(_simple(f"cvt.rn.satfinite.{t}.f32", ("f32", "f32"), t))
        out.append(_simple(f"cvt.rn.satfinite.relu.{t}.f32", ("f32", "f32"), t))
        out.append(_simple(f"cvt.rn.satfinite.{t}.f16x2", ("f16x2",), t))
        out.append(_simple(f"cvt.rn.f16x2.{t}", (t,), "f16x2"))
        out.append(_simple(f"cvt.rn.relu.f16x2.{t}", (t,), "f16x2"))
    out.append(_simple("cvt.rna.tf32.f32", ("f32",), "tf32"))
    for mode in ("rn", "rz"):
        out += [_simple(f"cvt.{mode}{v}.tf32.f32", ("f32",), "tf32") for v in ("", ".relu")]
    out += [_simple("cvt.f32.f16", ("f16",), "f32"), _simple("cvt.ftz.f32.f16", ("f16",), "f32"),
            _simple("cvt.f32.bf16", ("bf16",), "f32"), _simple("cvt.f64.f32", ("f32",), "f64"),
            _simple("cvt.ftz.f64.f32", ("f32",), "f64"), _simple("cvt.f64.f16", ("f16",), "f64"),
            _simple("cvt.sat.f32.f32", ("f32",), "f32"), _simple("cvt.rn.sat.f16.f32", ("f32",), "f16"),
            _simple("cvt.sat.f64.f64", ("f64",), "f64"), _simple("cvt.rn.bf16.f16", ("f16",), "bf16"),
            _simple("cvt.rn.f16.bf16", ("bf16",), "f16"), _simple("cvt.rn.bf16.s32", ("s32",), "bf16"),
            _simple("cvt.rn.bf16.u64", ("u64",), "bf16"), _simple("cvt.rn.bf16.f64", ("f64",), "bf16"),
            _simple("cvt.rz.bf16.s32", ("s32",), "bf16"), _simple("cvt.f64.bf16", ("bf16",), "f64")]  # fmt: skip
    for mode in ("rni", "rzi", "rmi", "rpi"):
        for s in ("f32", "f64", "f16", "bf16"):
            for d in ("s32", "u32", "s64", "u64", "s8", "u8", "s16", "u16"):
                if s in ("f16", "bf16", "f64") and mode in ("rmi", "rpi") and d not in ("s32",):
                    continue
                if s == "bf16" and WIDTH[d] < 4:  # ptxas wants a 16-bit register there
                    continue
                out.append(_int_result(f"cvt.{mode}.{d}.{s}", (s,), d))
        for t in ("f32", "f64", "f16", "bf16"):
            out.append(_simple(f"cvt.{mode}.{t}.{t}", (t,), t))
        out.append(_simple(f"cvt.{mode}.ftz.f32.f32", ("f32",), "f32"))
    out.append(_simple("cvt.rzi.ftz.s32.f32", ("f32",), "s32"))
    out.append(_int_result("cvt.rni.sat.s8.f32", ("f32",), "s8"))
    names = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
    for d in names:
        for s in names:
            if d == s:
                continue
            out.append(_int_result(f"cvt.{d}.{s}", (s,), d))
            if WIDTH[d] <= WIDTH[s] or (d[0] == "u" and s[0] == "s"):
                out.append(_int_result(f"cvt.sat.{d}.{s}", (s,), d))
    for t in ("s8", "u8", "s16", "u16"):
        inputs = ("s32", "s32", "b32") if t in ("s8", "u8") else ("s32", "s32")
        out.append(_simple(f"cvt.pack.sat.{t}.s32" + (".b32" if len(inputs) == 3 else ""), inputs, "b32"))
    return out


def _int_result(opcode: str, inputs: tuple[str, ...], d: str) -> Spec:
    """The result is stored from a 32-bit (64-bit) register, so that the extension of small types is seen."""
    if WIDTH[d] >= 4:
        return _simple(opcode, inputs, d)
    return Spec(opcode, inputs, "b32", f"{opcode} %r4, %a0;\nmov.b32 %d, %r4;")


def _integer_specs() -> list[Spec]:
    out: list[Spec] = []
    for t in ("u16", "s16", "u32", "s32", "u64", "s64"):
        for op in ("add", "sub", "min", "max", "div", "rem"):
            guard = f"or.b{WIDTH[t] * 8} %a1, %a1, 1;\n" if op in ("div", "rem") else ""
            out.append(Spec(f"{op}.{t}", (t, t), t, f"{guard}{op}.{t} %d, %a0, %a1;"))
        for half in ("lo", "hi"):
            out.append(_simple(f"mul.{half}.{t}", (t, t), t))
            out.append(_simple(f"mad.{half}.{t}", (t, t, t), t))
        if WIDTH[t] < 8:
            wide = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}[t]
            out.append(_simple(f"mul.wide.{t}", (t, t), wide))
            out.append(_simple(f"mad.wide.{t}", (t, t, wide), wide))
        out.append(_simple(f"sad.{t}", (t, t, t), t))
        out.append(_simple(f"shr.{t}", (t, "shift"), t))
        for c in ("eq", "ne", "lt", "le", "gt", "ge"):
            out.append(_simple(f"setp.{c}.{t}", (t, t), "pred"))
        if t[0] == "s":
            out += [_simple(f"{op}.{t}", (t,), t) for op in ("abs", "neg")]
        if WIDTH[t] >= 4:
            out.append(_simple(f"bfind.{t}", (t,), "u32"))
            out.append(_simple(f"bfind.shiftamt.{t}", (t,), "u32"))
            out.append(_simple(f"bfe.{t}", (t, "byte", "byte"), t))
    for c in ("lo", "ls", "hi", "hs"):
        out.append(_simple(f"setp.{c}.u32", ("u32", "u32"), "pred"))
    for t in ("b16", "b32", "b64"):
        out += [_simple(f"{op}.{t}", (t, t), t) for op in ("and", "or", "xor")]
        out += [_simple(f"{op}.{t}", (t,), t) for op in ("not", "cnot")]
        out.append(_simple(f"shl.{t}", (t, "shift"), t))
    for t in ("b32", "b64"):
        out += [_simple(f"{op}.{t}", (t,), "u32") for op in ("popc", "clz")]
        out.append(_simple(f"brev.{t}", (t,), t))
        out.append(_simple(f"bfi.{t}", (t, t, "byte", "byte"), t))
    for direction in ("l", "r"):
        out += [_simple(f"shf.{direction}.{k}.b32", ("b32", "b32", "shift"), "b32") for k in ("wrap", "clamp")]
    out.append(_simple("add.sat.s32", ("s32", "s32"), "s32"))
    out.append(_simple("sub.sat.s32", ("s32", "s32"), "s32"))
    out.append(_simple("mad.hi.sat.s32", ("s32", "s32", "s32"), "s32"))
    for op in ("mul24", "mad24"):
        for half in ("lo", "hi"):
            for t in ("u32", "s32"):
                out.append(_simple(f"{op}.{half}.{t}", (t,) * (2 + (op == "mad24")), t))
    out.append(_simple("fns.b32", ("b32", "shift", "s32"), "b32"))
    out.append(Spec("fns small", ("b32", "b32", "s32"), "b32",
                    "and.b32 %a1, %a1, 31;\nrem.s32 %a2, %a2, 6;\nfns.b32 %d, %a0, %a1, %a2;"))  # fmt: skip
    out.pop(-2)  # base above 31 is outside the ISA
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        out.append(_simple(f"prmt.b32{mode}", ("b32", "b32", "selector"), "b32"))
    for table in (0x80, 0xFE, 0x96, 0xEA, 0xF8, 0xCA, 0x1B, 0xE8, 0x6C, 0x0F, 0x00, 0xFF):
        out.append(_simple("lop3.b32", ("b32", "b32", "b32"), "b32", extra=str(table)))
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            acc = "u32" if a == b == "u32" else "s32"
            out.append(_simple(f"dp4a.{a}.{b}", ("b32", "b32", acc), acc))
            out += [_simple(f"dp2a.{half}.{a}.{b}", ("b32", "b32", acc), acc) for half in ("lo", "hi")]
    for kind in ("wrap", "clamp"):
        out.append(_simple(f"bmsk.{kind}.b32", ("shift", "shift"), "b32"))
        out += [_simple(f"szext.{kind}.{t}", (t, "shift"), t) for t in ("u32", "s32")]
    out.append(
        Spec("add.cc.u32 addc.u32", ("u32", "u32", "u32"), "u32", "add.cc.u32 %r4, %a0, %a1;\naddc.u32 %d, %a2, %a0;")
    )
    out.append(
        Spec("sub.cc.u32 subc.u32", ("u32", "u32", "u32"), "u32", "sub.cc.u32 %r4, %a0, %a1;\nsubc.u32 %d, %a2, %a0;")
    )
    out.append(Spec("add.cc addc.cc addc", ("u32", "u32", "u32"), "u32",
                    "add.cc.u32 %r4, %a0, %a1;\naddc.cc.u32 %r5, %a2, %a1;\naddc.u32 %d, 0, 0;"))  # fmt: skip
    out.append(Spec("sub.cc subc.cc subc", ("u32", "u32", "u32"), "u32",
                    "sub.cc.u32 %r4, %a0, %a1;\nsubc.cc.u32 %r5, %a2, %a1;\nsubc.u32 %d, 0, 0;"))  # fmt: skip
    out.append(Spec("mad.lo.cc madc.hi", ("u32", "u32", "u32"), "u32",
                    "mad.lo.cc.u32 %r4, %a0, %a1, %a2;\nmadc.hi.u32 %d, %a0, %a1, 0;"))  # fmt: skip
    out.append(
        Spec("add.cc.u64 addc.u64", ("u64", "u64", "u64"), "u64", "add.cc.u64 %rd4, %a0, %a1;\naddc.u64 %d, %a2, %a0;")
    )
    for t in ("u16x2", "s16x2"):
        out += [_simple(f"{op}.{t}", (t, t), t) for op in ("add", "min", "max")]
    out.append(_simple("min.relu.s32", ("s32", "s32"), "s32"))
    out.append(_simple("max.relu.s16x2", ("s16x2", "s16x2"), "s16x2"))
    out.append(_simple("slct.b32.s32", ("b32", "b32", "s32"), "b32"))
    out.append(
        Spec("setp pair or", ("s32", "s32"), "pred", "setp.lt.s32 %z, %a0, 3;\nsetp.gt.or.s32 %q|%p, %a0, %a1, !%z;")
    )
    out.append(Spec("lop3.or.b32 pred", ("b32", "b32", "b32"), "pred",
                    "setp.lt.s32 %z, %a0, 3;\nlop3.or.b32 %r4|%p, %a0, %a1, %a2, 128, %z;"))  # fmt: skip
    return out


def all_specs() -> list[Spec]:
    """Specs for sm_90a, each name once."""
    specs = _float_specs() + _half_specs() + _convert_specs() + _integer_specs()
    names = [s.name for s in specs]
    assert len(set(names)) == len(names), sorted(n for n in names if names.count(n) > 1)
    return specs


HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"


def module_text(specs: list[Spec]) -> str:
    return HEADER + "\n".join(s.ptx() for s in specs)


def bundle_text(specs: list[Spec]) -> str:
    """One entry `bundle` that runs many specs, each in a scope of its own; its parameters are all their pointers in
    order."""
    names: list[str] = []
    scopes: list[str] = []
    for number, spec in enumerate(specs):
        lines = spec.ptx().split("\n")
        body = lines[lines.index("{") + 1 : -2]
        for k in range(len(spec.inputs) + 1):
            names.append(f"s{number}_{k}")
            body = [line.replace(f"[p{k}]", f"[s{number}_{k}]") for line in body]
        scopes.append("{\n" + "\n".join(body) + "\n}")
    params = ", ".join(f".param .u64 {n}" for n in names)
    return f"{HEADER}.visible .entry bundle({params})\n{{\n" + "\n".join(scopes) + "\nret;\n}\n"
