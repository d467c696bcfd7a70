"""Hostile inputs by seed: the reference kernels' own files, mutated, and generators of pathological ones.

An input is a folder's content and the command that is run there; the same seed makes the same input.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "reference_kernels"
DATA = Path(__file__).parent / "data"
KINDS = ("source", "case", "record", "ptx", "port")

SCALE = """\
__global__ void scale_kernel(float* x, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * factor;
}
"""
SCALE_CASE = """\
schema = 1
kernel = "scale_kernel"
[sizes]
n = [1, 100]
[[buffers]]
name = "x"
dtype = "f32"
shape = ["n"]
role = "inout"
[scalars]
factor = 2.0
n = "n"
[launch]
grid = ["ceil_div(n, 64)", 1, 1]
block = [64, 1, 1]
"""
SCALE_PTX = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry scale_kernel(.param .u64 x, .param .f32 factor, .param .u32 n)
{
  .reg .pred %p<4>;
  .reg .f32 %f<8>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x];
  ld.param.f32 %f1, [factor];
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r4, %r3, %r5;
  setp.ge.s32 %p1, %r1, %r2;
  @%p1 bra $done;
  mul.wide.s32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.f32 %f2, [%rd4];
  mul.f32 %f3, %f2, %f1;
  st.global.f32 [%rd4], %f3;
$done:
  ret;
}
"""


@dataclass(frozen=True)
class Input:
    """Files by name (a text, bytes, or None for a FIFO) and the arguments of `porter`."""

    kind: str
    seed: int
    command: tuple[str, ...]
    files: dict[str, str | bytes | None] = field(repr=False, default_factory=dict)

    def write(self, folder: Path) -> None:
        import os

        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                os.mkfifo(path)
            elif isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_bytes(content.encode("utf-8", "surrogatepass"))


def make(seed: int) -> Input:
    """The input of a seed; kinds take turns."""
    rng = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    return MAKERS[kind](seed, rng)


# ---------------------------------------------------------------- mutations of text

NUMBERS = ("0", "-1", "4294967296", "9" * 30, "1e400", "0x7fffffffffffffff", "2147483648", "9**9**9", "nan", "1/0")
WORDS = (
    "\0", "\x1b[31m", "\u202e", "é", "\ud800", "'''", '"', "\\", "{", "}", "(", ")", "[", "]", "/*", "*/", "//", "#",
    "#include <a.h>", "#if", "#define X X", "template <", "typename", "...", "::", "->", "lambda", "None", "import os",
    "__syncthreads();", "while (true) {}", "goto x;", "asm volatile(\"\");", "@", ";", "\r", "\t", "\f", "%", "%%p",
)  # fmt: skip


def mutated(text: str, rng: random.Random) -> str:
    """One to four small faults in a text."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((1, 1, 2, 5, 20, 200)))
        lines = text.split("\n")
        match rng.randrange(9):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:at] + text[at:end] * rng.choice((2, 3, 50)) + text[end:]
            case 2:
                text = text[:at] + rng.choice(WORDS) + text[at:]
            case 3:
                text = text[:at]
            case 4:
                a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
                lines[a], lines[b] = lines[b], lines[a]
                text = "\n".join(lines)
            case 5:
                del lines[rng.randrange(len(lines))]
                text = "\n".join(lines)
            case 6:
                lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
                text = "\n".join(lines)
            case _:
                places = [i for i, c in enumerate(text) if c.isdigit()]
                if places:
                    at = rng.choice(places)
                    text = text[:at] + rng.choice(NUMBERS) + text[at + 1 :]
        text = text or " "
    return text


def nested(rng: random.Random, opening: str, inside: str, closing: str) -> str:
    depth = rng.choice((10, 100, 400, 3000, 20_000))
    return opening * depth + inside + closing * depth


# ---------------------------------------------------------------- kinds


def reference(rng: random.Random) -> tuple[str, str, str]:
    """Stem, source and case of a reference kernel."""
    path = rng.choice(sorted(REFERENCE.glob("*/*.cu")))
    return path.stem, path.read_text(), path.with_name(f"{path.stem}.case.toml").read_text()


def expression(rng: random.Random) -> str:
    makers: list[Callable[[], str]] = [
        lambda: nested(rng, "(", "x[i]", ")"),
        lambda: nested(rng, "- ", "x[i]", ""),
        lambda: nested(rng, "x[i] + ", "1.0f", ""),
        lambda: nested(rng, "(x[i] > 0 ? x[i] : ", "1.0f", ")"),
        lambda: nested(rng, "fmaxf(x[i], ", "1.0f", ")"),
        lambda: nested(rng, "(float)(int)", "x[i]", ""),
    ]
    return rng.choice(makers)()


def statement(rng: random.Random) -> str:
    depth = rng.choice((10, 100, 3000))
    bits = rng.choice((4, 10, 26))
    makers: list[Callable[[], str]] = [
        lambda: nested(rng, "{", "x[i] = 1;", "}"),
        lambda: nested(rng, "if (n) ", "x[i] = 1;", ""),
        lambda: nested(rng, "if (n) x[i] = 2; else ", "x[i] = 1;", ""),
        lambda: nested(rng, "for (int j = 0; j < n; ++j) ", "x[i] += 1;", ""),
        lambda: "".join(f"float v{k} = x[{k}]; x[i] += v{k};\n" for k in range(depth)),
        lambda: "float t[] = {" + ",".join("1" for _ in range(depth * 10)) + "}; x[i] = t[n];",
        lambda: f"for (long long j = 0; j < (1LL << 62); ++j) x[i] += {depth};",
        lambda: f"#pragma unroll\nfor (int j = 0; j < {10**bits}; ++j) x[i] += j;",
        lambda: f"float big[{10**bits}]; big[n] = 1; x[i] = big[i];",
        lambda: "switch (n) {" + "".join(f"case {k}: x[i] = {k};\n" for k in range(depth)) + "}",
        lambda: f"x[i] = {expression(rng)};",
    ]
    return rng.choice(makers)()


def source(seed: int, rng: random.Random) -> Input:
    command = ("port", "k.cu", "--no-verify", "-o", "out")
    if rng.random() < 0.6:
        _, text, case = reference(rng)
        return Input("source", seed, command, {"k.cu": mutated(text, rng), "k.case.toml": case})
    head = ""
    files: dict[str, str | bytes | None] = {}
    match rng.randrange(8):
        case 0:
            files["pipe.h"] = None
            head = rng.choice(('#include "pipe.h"\n', "#include <pipe.h>\n"))
        case 1:
            head = f'#include "{rng.choice(("/dev/zero", "/etc", "/dev/tty", "k.cu", "/proc/self/mem"))}"\n'
        case 2:
            levels = rng.choice((5, 12, 18))
            head = "#define M0 x[i] +\n" + "".join(f"#define M{k + 1} M{k} M{k}\n" for k in range(levels))
            body = SCALE.replace("x[i] * factor", f"M{levels} factor")
            return Input("source", seed, command, {"k.cu": head + body, "k.case.toml": SCALE_CASE})
        case 3:
            depth = rng.choice((10, 500, 2000))
            head = "template <int N> struct A { static constexpr int v = A<N - 1>::v; };\n"
            head += f"template <> struct A<0> {{ static constexpr int v = 0; }};\nconstexpr int deep = A<{depth}>::v;\n"
        case 4:
            head = nested(rng, "namespace a {", "", "}") + "\n"
        case 5:
            head = f"__constant__ float table[] = {{{','.join('1' for _ in range(rng.choice((10, 30_000))))}}};\n"
    text = head + SCALE.replace("if (i < n)", statement(rng) + "\n  if (i < n)", 1)
    return Input("source", seed, command, {"k.cu": text, "k.case.toml": SCALE_CASE, **files})


def case(seed: int, rng: random.Random) -> Input:
    emulated = ("emulate", "k.ptx", "--case", "k.case.toml", "--args", "x,factor,n", "--checks", "none")
    ported = ("port", "k.cu", "--no-verify", "-o", "out")
    if rng.random() < 0.4:
        _, text, whole = reference(rng)
        return Input("case", seed, ported, {"k.cu": text, "k.case.toml": mutated(whole, rng)})
    text = SCALE_CASE
    if rng.random() < 0.5:
        text = mutated(text, rng)
    many = rng.choice((10, 200, 30_000))
    numbers = ", ".join(str(k) for k in range(many))
    extra: list[tuple[str, str]] = [
        ("n = [1, 100]", f"n = [{numbers}]"),
        ("n = [1, 100]", f"n = [{rng.choice((2**33, 2**40, 2**64, 2**70))}]"),
        ("n = [1, 100]", f"n = [{'9' * many}]"),
        (
            "n = [1, 100]",
            "n = [1, 100]\n" + "".join(f"s{k} = [{numbers[:400].rpartition(',')[0]}]\n" for k in range(30)),
        ),
        ('shape = ["n"]', f'shape = [{"1, " * rng.choice((5, 40, 71))}"n"]'),
        ('shape = ["n"]', f'shape = ["{nested(rng, "(", "n", ")")}"]'),
        ('shape = ["n"]', 'shape = ["n", "n * 4294967296"]'),
        (
            '"ceil_div(n, 64)"',
            rng.choice(('"9 ** 9 ** 9"', "1000000", "2147483647", '"n / 0"', '"n - 1000"', "1e308", "-5")),
        ),
        ('"ceil_div(n, 64)"', f'"{"*".join(["n"] * many)}"'),
        ("block = [64, 1, 1]", rng.choice(("block = [0]", "block = [1000000]", "block = 1.5", "block = []"))),
        ("factor = 2.0", rng.choice(("factor = nan", "factor = 1e999", f"factor = {'9' * 5000}", "factor = []"))),
        ("factor = 2.0", f"factor = {nested(rng, '[', '', ']')}"),
        ("factor = 2.0", f"factor = {nested(rng, '{a = ', '1', '}')}"),
        ("schema = 1", "schema = 1\n" + "".join(f"a{k}.b = 1\n" for k in range(many))),
        ("schema = 1", "schema = 1\n" + ".".join(["a"] * many) + " = 1"),
        ("schema = 1", 'schema = 1\nsource = "a\\u0000b.cu"'),
    ]
    for old, new in rng.sample(extra, rng.randint(1, 2)):
        text = text.replace(old, new, 1)
    command = rng.choice((emulated, ported))
    return Input("case", seed, command, {"k.cu": SCALE, "k.ptx": SCALE_PTX, "k.case.toml": text})


def record(seed: int, rng: random.Random) -> Input:
    """A port that is there already, with a damaged record beside it: porter writes over it, or shows it."""
    text = (DATA / "scale.port.json").read_text()
    files: dict[str, str | bytes | None] = {"k.cu": SCALE, "k.case.toml": SCALE_CASE}
    files["out/k.py"] = (DATA / "scale.py.txt").read_text()
    match rng.randrange(5):
        case 0:
            value = json.loads(text)
            place, key = _somewhere(value, rng)
            place[key] = rng.choice((None, -1, 2**70, "", "\0", "x" * 5000, [], {}, [[]], {"a": {}}, True, 1.5))
            text = json.dumps(value)
        case 1:
            text = text.replace("{", nested(rng, '{"a": ', "{", ""), 1)
        case 2:
            value = json.loads(text)
            files["pipe"] = None
            value["source"]["path"] = value["case"]["path"] = rng.choice(("../pipe", "/dev/zero", "..", "/dev/tty"))
            text = json.dumps(value)
        case _:
            text = mutated(text, rng)
    files["out/k.port.json"] = text
    command = ("port", "k.cu", "--no-verify", "-o", "out")
    return Input("record", seed, rng.choice((command, (*command, "--force"), ("review", "out", "--check"))), files)


def _somewhere(value: object, rng: random.Random) -> tuple[object, object]:
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))  # type: ignore[arg-type, call-overload]
        key = rng.choice(keys)
        inner = value[key]  # type: ignore[index]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.3:
            return value, key
        value = inner


def ptx(seed: int, rng: random.Random) -> Input:
    text = SCALE_PTX
    match rng.randrange(5):
        case 0:
            text = text.replace(
                "$done:\n", f"$done:\n$again:\n  {rng.choice(('', 'add.s32 %r6, %r6, 1;'))}\n  bra $again;\n", 1
            )
        case 1:
            text = text.replace("  ret;", "  add.s32 %r5, %r5, 1;\n" * rng.choice((10, 5000)) + "  ret;")
        case 2:
            text = text.replace(".reg .b32 %r<16>", f".reg .b32 %r<{rng.choice((10**5, 10**9, 10**15))}>")
            text = text.replace("{\n", f"{{\n.shared .b8 s[{rng.choice((64, 10**6, 10**12))}];\n", 1)
        case _:
            text = mutated(text, rng)
    command = (
        "emulate",
        "k.ptx",
        "--case",
        "k.case.toml",
        "--args",
        "x,factor,n",
        "--checks",
        rng.choice(("all", "none")),
    )
    return Input("ptx", seed, command, {"k.ptx": text, "k.case.toml": SCALE_CASE})


def port(seed: int, rng: random.Random) -> Input:
    """A port that somebody edited, read for a review and held against its record."""
    text = (DATA / "scale.py.txt").read_text()
    match rng.randrange(4):
        case 0:
            text = text.replace("n:", nested(rng, "(", "n", ")") + ":", 1)
        case 1:
            text += "\nx = " + nested(rng, rng.choice(("[", "-", "(", "{1:")), "1", "") + "\n"
        case _:
            text = mutated(text, rng)
    files: dict[str, str | bytes | None] = {"k.cu": SCALE, "k.case.toml": SCALE_CASE, "out/k.py": text}
    files["out/k.port.json"] = (DATA / "scale.port.json").read_text()
    ways = (
        ("review", "out", "--check"),
        ("port", "k.cu", "--no-verify", "-o", "out"),
        ("verify", "out", "--no-record"),
    )
    return Input("port", seed, rng.choices(ways, (10, 10, 1))[0], files)


MAKERS: dict[str, Callable[[int, random.Random], Input]] = {
    "source": source, "case": case, "record": record, "ptx": ptx, "port": port,
}  # fmt: skip
