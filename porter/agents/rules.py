"""Rules of CuTeDSL that ports run into, each with snippets that show it. What a snippet does is recorded, not claimed:
`tools/record_rules.py` compiles and runs them, a test repeats that with the DSL that is installed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

INPUT = (-7, 3, 100, 0)  # a[0..3] of every snippet; n is 2, tidx 0
HEAD = '''\
"""A snippet of a rule."""

import cutlass
import cutlass.cute as cute
from cutlass import Boolean, Float32, Int32, Int64, Uint32

from porter.corpus import lib, runtime


@cute.jit
def helper(x):
    return x + 1


@cute.kernel
def k(out: cute.Pointer, a: cute.Pointer, n: Int32):
    tidx = cute.arch.thread_idx()[0]
'''
TAIL = """

@cute.jit
def _launch_k(
    out: cute.Pointer, a: cute.Pointer, n: Int32, grid_x: Int32, grid_y: Int32, grid_z: Int32, block_x: Int32,
    block_y: Int32, block_z: Int32, smem_bytes: Int32, stream,
):
    k(out, a, n).launch(grid=(grid_x, grid_y, grid_z), block=(block_x, block_y, block_z), stream=stream)


KERNEL = runtime.Kernel(
    launch=_launch_k,
    name="k",
    params=(runtime.Ptr("out", "i32"), runtime.Ptr("a", "i32"), runtime.Num("n", "i32")),
    constexprs=(),
)
"""


@dataclass(frozen=True)
class Snippet:
    """Statements of a kernel that writes out[0]. `works` False: the DSL is expected to refuse it."""

    code: str
    works: bool = True

    @property
    def module(self) -> str:
        body = "".join(f"    {line}\n" for line in self.code.strip("\n").splitlines())
        return HEAD + body + TAIL

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.module.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Rule:
    name: str
    text: str
    snippets: tuple[Snippet, ...]


def yes(code: str) -> Snippet:
    return Snippet(code)


def no(code: str) -> Snippet:
    return Snippet(code, works=False)


RULES = (
    Rule(
        "early exit",
        "return, break and continue are refused inside a loop or branch whose condition is known at run time only. Use "
        "a flag, or put the rest under an else.",
        (
            no("for i in range(n):\n    if a[i] > 0:\n        break\nout[0] = Int32(1)"),
            yes("go = Boolean(True)\ni = Int32(0)\nwhile go:\n    go = a[i] <= 0\n    i = i + 1\nout[0] = i"),
        ),
    ),
    Rule(
        "and, or",
        "`and` and `or` on run-time values evaluate both sides, so a guard does not protect what follows it. A "
        "nested if, or `x if c else y`, evaluates one side only. `&` and `|` of comparisons need parentheses.",
        (
            yes("x = Int32(5)\nif n > 0:\n    if a[1] > 0:\n        x = a[1]\nout[0] = x"),
            yes("out[0] = a[1] if n > 1 else Int32(0)"),
            yes("out[0] = Int32(1) if (n > 0) & (a[1] > 0) else Int32(0)"),
        ),
    ),
    Rule(
        "names born in a branch",
        "A name that is first given a value inside a run-time branch or loop does not exist after it. Give it a value "
        "of its final type before.",
        (
            no("if n > 0:\n    x = Int32(1)\nelse:\n    x = Int32(2)\nout[0] = x"),
            yes("x = Int32(0)\nif n > 0:\n    x = Int32(1)\nelse:\n    x = Int32(2)\nout[0] = x"),
        ),
    ),
    Rule(
        "one type",
        "A variable keeps one DSL type on all paths; both arms of a conditional expression have the same type. Convert "
        "with Int32(x), Float32(x).",
        (
            no("x = Int32(0)\nif n > 0:\n    x = Float32(1.0)\nout[0] = Int32(x)"),
            yes("x = Float32(0.0)\nif n > 0:\n    x = Float32(a[1])\nout[0] = Int32(x)"),
        ),
    ),
    Rule(
        "division",
        "`//` rounds down; C's `/` and `%` on signed integers truncate: lib.c_div, lib.c_mod. With run-time operands "
        "`%` is C's remainder.",
        (
            yes("out[0] = a[0] // n"),
            yes("out[0] = lib.c_div(a[0], n)"),
            yes("out[0] = lib.c_mod(a[0], n)"),
        ),
    ),
    Rule(
        "shifts",
        "`>>` of Int32 keeps the sign, of Uint32 it does not.",
        (yes("out[0] = a[0] >> 28"), yes("out[0] = Int32(Uint32(a[0]) >> Uint32(28))")),
    ),
    Rule(
        "unsigned loads",
        "What is loaded through a pointer is signed, whatever the pointer's type: write Uint32(p[i]) before comparing, "
        "shifting or widening.",
        (
            yes("out[0] = Int32(1) if Uint32(a[0]) > Uint32(100) else Int32(0)"),
            yes("out[0] = Int32(1) if a[0] > 100 else Int32(0)"),
        ),
    ),
    Rule(
        "loops",
        "range(...) over run-time bounds is a loop of the kernel; cutlass.range_constexpr(...) is unrolled, its "
        "variable a Python int, and its body may use break. while takes a run-time condition.",
        (
            yes("s = Int32(0)\nfor i in range(n):\n    s = s + a[i]\nout[0] = s"),
            yes("s = Int32(0)\nfor i in cutlass.range_constexpr(3):\n    s = s + a[i] * (1 << i)\nout[0] = s"),
            yes("x = a[2]\nwhile x > 9:\n    x = x // 2\nout[0] = x"),
        ),
    ),
    Rule(
        "registers and shared memory",
        "lib.local(T, n) is an array of one thread, lib.shared(T, n) one of the block; both are pointers that are "
        "indexed. cute.arch.sync_threads() is the barrier.",
        (
            yes("p = lib.local(Int32, 2)\np[0] = a[0]\np[1] = a[1]\nout[0] = p[(n & 1)] + p[1]"),
            yes("s = lib.shared(Int32, 32)\ns[tidx] = a[1]\ncute.arch.sync_threads()\nout[0] = s[0]"),
        ),
    ),
    Rule(
        "helpers",
        "A device function is a function under @cute.jit. Its parameters are values: what it assigns to them the "
        "caller does not see, so results are returned.",
        (yes("out[0] = helper(a[1])"),),
    ),
    Rule(
        "inline PTX",
        "lib.pure(template, T, *args) is one instruction without side effects; $0 is the result, $1... the operands.",
        (yes('out[0] = lib.pure("bfind.s32 $0, $1;", Int32, a[2])'),),
    ),
)
