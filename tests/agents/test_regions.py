"""Edits stay inside their regions, whatever the code in them tries."""

from __future__ import annotations

import ast

import pytest

from porter.agents.regions import EditRefused, draft_of, replace_code

PORT = '''"""k, ported."""

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Uint32

from porter.corpus import lib, runtime


@cute.jit
def twice(x):
    return x + x


@cute.kernel
def k(out: cute.Pointer, n: Int32):
    i = cute.arch.thread_idx()[0]
    if i < n:
        # CUDA: again: x
        # CUDA: goto again
        runtime.hole(1, "PRT110")  # goto
        out[i] = runtime.hole(2, "PRT503", Uint32) + runtime.hole(3, "PRT503", Uint32)
    while runtime.hole(4, "PRT503"):
        runtime.hole(5, "PRT022")


@cute.jit
def _launch_k(out: cute.Pointer, n: Int32, stream):
    k(out, n).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)


KERNEL = runtime.Kernel(launch=_launch_k, name="k", params=(), constexprs=())
'''


def test_regions_are_holes_bodies_and_helpers():
    draft = draft_of(PORT, every_body=False)
    assert [r.name for r in draft.regions] == ["body:k", "hole-1", "hole-2", "hole-4", "helpers"]
    assert draft.code("hole-1").startswith("# CUDA: again") and draft.open_holes == (1, 2, 3, 4, 5)
    assert "body:twice" in [r.name for r in draft_of(PORT, every_body=True).regions]
    assert not any("_launch" in r.name for r in draft_of(PORT, every_body=True).regions)


def test_filling_moves_the_other_regions():
    draft = replace_code(draft_of(PORT, False), "hole-1", "a = Int32(1)\nif a > 0:\n    a = a + 1")
    assert draft.code("hole-1") == "a = Int32(1)\nif a > 0:\n    a = a + 1"
    assert draft.code("hole-2").startswith("out[i] = runtime.hole(2")
    draft = replace_code(draft, "helpers", "@cute.jit\ndef half(x):\n    return x // 2")
    draft = replace_code(draft, "hole-2", "out[i] = half(n)")
    assert draft.code("hole-2") == "out[i] = half(n)" and draft.code("helpers").startswith("@cute.jit\ndef half")
    draft = replace_code(draft, "helpers", "")
    assert "half(x)" not in draft.text and draft.code("hole-1").startswith("a = Int32(1)")
    ast.parse(draft.text)
    draft = replace_code(draft, "body:k", 'runtime.hole(5, "x")')
    assert [r.name for r in draft.regions] == ["body:k", "helpers"] and draft.open_holes == (5,)


@pytest.mark.parametrize(
    ("region", "code", "why"),
    [
        ("entry", "pass", "no region 'entry'"),
        ("body:_launch_k", "pass", "no region"),
        ("KERNEL", "pass", "no region"),
        ("hole-1", "", "no statement"),
        ("hole-1", "x = (", "not valid Python on its own"),
        ("hole-1", 'x = """', "not valid Python on its own"),
        ("hole-1", "x = 1 \\", "not valid Python on its own"),
        ("hole-1", "else:\n    pass", "not valid Python on its own"),
        ("hole-1", "import os", "imports belong"),
        ("hole-1", 'x = """a\nb"""', "string over several lines"),
        ("hole-1", "x" * 70_000, "too many"),
        ("helpers", "def _launch_k(out, n, stream):\n    pass", "already, outside"),
        ("helpers", "def k(out, n):\n    pass", "already, outside"),
        ("helpers", "KERNEL = None", "already, outside"),
        ("helpers", "import os", "may import from"),
        ("helpers", "from cutlass import Float32 as lib", "already, outside"),
        ("helpers", "from . import x", "may import from"),
        ("helpers", "import math, os", "may import from cutlass and math, not from os"),
        ("helpers", "def f():\n    import os", "an import in helpers stands"),
        ("helpers", "print(1)", "not Expr"),
        ("helpers", "runtime.Kernel.launch = None", "a new name, not `runtime.Kernel.launch`"),
        ("helpers", "lib.x[0] = 1", "a new name, not"),
        ("helpers", "@cute.jit\ndef range(n):\n    return n", "range is a Python builtin"),
        ("helpers", "len = 3", "len is a Python builtin"),
        ("helpers", "x = 1  # \u2028KERNEL = None", r"U\+2028"),
        ("helpers", "x = 1  # \x0cKERNEL = None", r"U\+000C"),
        ("helpers", "x = 1  # \x85KERNEL = None", r"U\+0085"),
        ("hole-1", "pass  # \x1ereturn", r"U\+001E"),
        ("hole-1", "pass  # \u202e", r"U\+202E"),
        ("helpers", "class C:\n    pass", "not ClassDef"),
    ],
)
def test_other_edits_are_refused(region, code, why):
    draft = draft_of(PORT, False)
    with pytest.raises(EditRefused, match=why):
        replace_code(draft, region, code)


def test_a_line_is_what_python_takes_for_one():
    """A comment of the CUDA source may hold a form feed or U+2028, at which str.splitlines would count a line more."""
    port = PORT.replace("# CUDA: again: x", "# CUDA: again: \x0c x \u2028 y \x85")
    draft = draft_of(port, False)
    assert draft.code("hole-2").startswith("out[i] = runtime.hole(2")
    draft = replace_code(replace_code(draft, "hole-1", "a = Int32(1)\r\nb = a"), "hole-2", "out[i] = b")
    assert draft.code("hole-1") == "a = Int32(1)\nb = a" and draft.code("hole-2") == "out[i] = b"
    assert draft.text.startswith(port[: port.index("        # CUDA")]) and draft.open_holes == (4, 5)


def test_code_cannot_leave_its_block():
    draft = replace_code(draft_of(PORT, False), "hole-1", "x = 1\nreturn\n")
    before, after = ast.parse(PORT).body, ast.parse(draft.text).body
    assert [ast.dump(n) for n in before[:-3]] == [ast.dump(n) for n in after[:-3]]
    (kernel,) = [n for n in after if isinstance(n, ast.FunctionDef) and n.name == "k"]
    assert isinstance(kernel.body[1], ast.If) and len(kernel.body[1].body) == 3
