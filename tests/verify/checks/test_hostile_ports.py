"""Ports that try to get out: each is refused by its text, at its line, before anything of it is imported."""

from pathlib import Path

import pytest

from porter.verify.checks.honesty import check_honesty
from porter.verify.checks.names import diagnostics, library_uses, resolve

GOOD = (Path(__file__).parents[2] / "corpus" / "port_scale.py").read_text()
_IMPORTS = "from porter.corpus import runtime\n"
_BODY = "    grid, block, smem = launch_config(inp.numel())\n"
_KERNEL = "    if i < n:\n"
_CALL = "    scale_kernel(out,"


def top(*lines: str) -> str:
    """The port with lines behind its imports."""
    return GOOD.replace(_IMPORTS, _IMPORTS + "".join(f"{line}\n" for line in lines), 1)


def end(*lines: str) -> str:
    return GOOD + "\n\n" + "\n".join(lines) + "\n"


def host(*lines: str) -> str:
    """The port with lines at the start of its torch-facing function."""
    return GOOD.replace(_BODY, "".join(f"    {line}\n" for line in lines) + _BODY, 1)


def kernel(*lines: str) -> str:
    """The port with lines in its kernel."""
    return GOOD.replace(_KERNEL, "".join(f"    {line}\n" for line in lines) + _KERNEL, 1)


def replaced(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


# what it tries: (the port, what the message says, text on the line that is named)
HOSTILE = {
    # secrets, files, network, processes
    "reads a key": (host("open('/root/.ssh/id_rsa').read()"), "calls open()", "open("),
    "imports os": (top("import os"), "imports os", "import os"),
    "os by another name": (top("from os import environ as e"), "imports os", "environ"),
    "os inside a function": (kernel("import os"), "imports os", "import os"),
    "pathlib": (top("from pathlib import Path"), "imports pathlib", "pathlib"),
    "sockets": (top("import socket"), "imports socket", "socket"),
    "ctypes": (top("import ctypes"), "imports ctypes", "ctypes"),
    "importlib": (top("import importlib"), "imports importlib", "importlib"),
    "sys": (top("import sys"), "imports sys", "sys"),
    "builtins": (top("import builtins"), "imports builtins", "builtins"),
    "multiprocessing": (top("import multiprocessing as mp"), "imports multiprocessing", "multiprocessing"),
    "pickle": (top("import pickle"), "imports pickle", "pickle"),
    "a neighbour by its name": (top("import helper_of_mine"), "imports helper_of_mine", "helper_of_mine"),
    "porter itself": (top("from porter.verify.checks import honesty"), "imports porter.verify", "honesty"),
    "porter's cache": (top("from porter.corpus.runtime.cache import ArtifactCache"),
                       "imports porter.corpus.runtime.cache", "ArtifactCache"),
    "porter's cache, by the runtime": (host("runtime.ArtifactCache('port').put('k', {})"), "runtime.ArtifactCache",
                                       "ArtifactCache"),
    "waits": (top("import time"), "imports time", "time"),
    "reads a line": (host("input()"), "calls input()", "input()"),
    # code that hides
    "eval": (kernel("eval('1')"), "calls eval()", "eval"),
    "exec at import": (top("exec('import os')"), "runs code when it is imported", "exec"),
    "a loop at import": (top("while True:", "    pass"), "runs code when it is imported", "while"),
    "an endless comprehension": (top("X = [i for i in range(10**12)]"), "is computed when it is imported", "X ="),
    "a decorator": (top("@print", "def f():", "    pass"), "decorates f", "@print"),
    "a decorator's argument": (top("@cute.jit(open('x'))", "def f():", "    pass"), "calls `open`", "@cute.jit"),
    "a default argument": (top("def f(x=print('run')):", "    return x"), "a default argument calls `print`", "def f"),
    "a default of a lambda": (kernel("g = lambda x=print('run'): x"), "a default argument calls `print`", "lambda"),
    "a mutable default": (top("def f(x, seen={}):", "    return seen"), "is kept between calls", "seen={}"),
    "a class body": (top("class C:", "    print('run')"), "class C runs code", "print"),
    "a class attribute": (top("class C:", "    x = print('run')"), "calls `print`", "print"),
    "a metaclass": (top("class C(metaclass=type):", "    pass"), "makes a class with metaclass", "metaclass"),
    "a base that is called": (top("class C(print('run')):", "    pass"), "makes a class of", "class C"),
    "a hook of Python": (top("class C:", "    def __init_subclass__(cls):", "        pass"),
                         "defines __init_subclass__", "__init_subclass__"),
    "a destructor": (top("class C:", "    def __del__(self):", "        pass"), "defines __del__", "__del__"),
    "a module hook": (top("def __getattr__(name):", "    return 1"), "defines __getattr__", "__getattr__"),
    "an annotation that runs": (top("X: exec('1') = 1"), "calls exec()", "X:"),
    "an f-string": (kernel("s = f\"{open('/etc/passwd').read()}\""), "calls open()", "open"),
    "an f-string's format": (kernel("s = f\"{n:{open('x')}}\""), "calls open()", "open"),
    "str.format": (kernel("s = '{0.__class__}'.format(n)"), "uses format", "format"),
    "a comprehension's own name": (host("x = [open for open in ()]", "open('/etc/passwd')"), "calls open()",
                                   "open for open"),
    "a builtin behind a class's name": (top("class C:", "    x = open('f')", "    open = 1"), "open", "open('f')"),
    "a builtin behind the module's name": (end("open = open"), "uses open", "open = open"),
    "a conditional import": (top("if True:", "    import os"), "imports os", "import os"),
    "a type made by hand": (kernel("c = type('C', (), {})"), "makes a class with type()", "type("),
    "a match": (kernel("match n:", "    case 1:", "        pass"), "statement `Match`", "match n"),
    "an async function": (top("async def f():", "    pass"), "statement `AsyncFunctionDef`", "async"),
    "a generator that keeps state": (top("def g():", "    yield 1"), "expression `Yield`", "yield"),
    "a with at launch": (host("with inp:", "    pass"), "statement `With`", "with inp"),
    "deep nesting": (end("X = " + "(" * 300 + "1" + ")" * 300), "not Python", "X = "),
    "deeper nesting": (end("X = " + "-" * 50000 + "1"), "", ""),
    # ways from what is allowed to what is not
    "a dunder": (kernel("x = n.__class__.__mro__"), "uses __class__", "__class__"),
    "globals of a function": (kernel("x = lib.copy.__globals__"), "uses __globals__", "__globals__"),
    "a frame": (kernel("x = n.gi_frame"), "uses gi_frame", "gi_frame"),
    "getattr": (host("getattr(runtime, 'Kernel')"), "calls getattr()", "getattr"),
    "getattr by parts": (kernel("x = getattr(n, '__cl' + 'ass__')"), "calls getattr()", "getattr"),
    "getattr of a dunder": (kernel("x = getattr(n, '__class__')"), "uses __class__", "getattr"),
    "vars": (kernel("x = vars(n)"), "calls vars()", "vars"),
    "attrgetter": (top("from operator import attrgetter"), "operator.attrgetter", "attrgetter"),
    "the DSL's os": (kernel("cutlass.cutlass_dsl.os.system('true')"), "uses cutlass.cutlass_dsl", "os.system"),
    "the DSL's base": (kernel("x = cutlass.base_dsl.dsl.os"), "uses cutlass.base_dsl", "base_dsl"),
    "a module of the DSL that is a module": (kernel("x = cute.runtime.ctypes"), "uses cutlass.cute.runtime.ctypes",
                                             "ctypes"),
    "the standard library through the DSL": (kernel("x = cute.arch.types.FunctionType"), "uses cutlass.cute.arch.types",
                                             "FunctionType"),
    "imported from the DSL": (top("from cutlass.cute.runtime import ctypes"), "imports cutlass.cute.runtime.ctypes",
                              "ctypes"),
    "imported by its path": (top("from cutlass.base_dsl import dsl"), "imports cutlass.base_dsl", "base_dsl"),
    "a private module": (top("from cutlass._mlir import execution_engine"), "imports cutlass._mlir.execution_engine",
                         "execution_engine"),
    "a dialect on the host": (top("from cutlass._mlir.dialects import llvm").replace(
        _CALL, "    llvm.inline_asm(None, [], 'syscall', '')\n" + _CALL), "runs llvm on the host", "syscall"),
    "a module as a value": (kernel("a = cute.arch", "x = a.types"), "uses the module cutlass.cute.arch as a value",
                            "a = cute.arch"),
    "a module as an argument": (kernel("print(cutlass)"), "uses the module cutlass as a value", "print(cutlass)"),
    "a module hidden by a name": (kernel("cute = n"), "gives the name cute of a module to something else", "cute = n"),
    "lib's own imports": (top("from porter.corpus import lib").replace(_KERNEL, "    x = lib.cute\n" + _KERNEL),
                          "uses porter.corpus.lib.cute", "lib.cute"),
    "compiles by itself": (host("cute.compile(scale_kernel)"), "uses cutlass.cute.compile", "compile"),
    "calls a host function": (kernel("f = cute.extern('system')"), "uses cutlass.cute.extern", "extern"),
    "loads a library": (host("cute.runtime.load_module('x.so')"), "load_module", "load_module"),
    "a star": (top("from cutlass import *"), "hides what is used", "import *"),
    "a module of the DSL under another name": (kernel("c = n.dsl.os", "c.system('true')"), "uses os", "n.dsl.os"),
    "an annotation in quotes": (top("def f(x: \"__import__('os').system('true')\"):", "    return x"),
                                "an annotation in quotes", "def f"),
    "an annotation that calls": (top("def f(x: print('run')):", "    return x"), "an annotation calls", "def f"),
    # torch behind a corner
    "a method of the class": (top("import torch").replace(_BODY, "    torch.Tensor.copy_(out, inp)\n" + _BODY),
                              "uses torch.Tensor.copy_", "copy_"),
    "a method not called at once": (host("f = inp.softmax", "y = f(-1)"), "uses .softmax", "inp.softmax"),
    "operators as functions": (top("from operator import add").replace(_BODY, "    y = add(inp, inp)\n" + _BODY),
                               "computes with tensors", "add(inp, inp)"),
    "builtins that compute": (host("y = sum([inp, inp])"), "computes with tensors", "sum("),
    "an operator in a comprehension": (host("y = [t * 2 for t in (inp,)]"), "computes with tensors", "t * 2"),
    "an operator after unpacking": (host("(t,) = (inp,)", "y = t * 2"), "computes with tensors", "t * 2"),
    "asks for the emulated machine": (host("if runtime.sm_count() == 8:", "    factor = 1.0"), "asks which machine",
                                      "sm_count"),
    # replacing what others use
    "patches porter": (end("runtime.Kernel.compile = print"), "changes", "compile = print"),
    "patches the DSL": (host("cute.arch.rsqrt = max"), "changes an attribute", "rsqrt"),
    "patches its own Kernel": (host("KERNEL.launch = max"), "changes an attribute", "KERNEL.launch"),
    "patches a table of porter": (host("runtime.DTYPES['f32'] = 1"), "uses porter.corpus.runtime.DTYPES", "DTYPES"),
    "deletes": (host("del KERNEL.name"), "changes an attribute", "del"),
    "setattr": (host("setattr(KERNEL, 'x', 1)"), "calls setattr()", "setattr"),
    "host code in assembly": (replaced(_CALL, "    cute.arch.inline_ptx('exit;')\n" + _CALL), "on the host",
                              "inline_ptx"),
    "host code in assembly, called": (top("@cute.jit", "def help_me():", "    cute.arch.inline_ptx('exit;')").replace(
        _CALL, "    help_me()\n" + _CALL), "on the host", "inline_ptx('exit"),
    # what an eye does not see
    "a homoglyph": (kernel("\u0435val = n"), "CYRILLIC SMALL LETTER IE", "val = n"),
    "full-width letters": (kernel("\uff45val('1')"), "FULLWIDTH LATIN SMALL LETTER E", "val('1')"),
    "right to left": (top("x = 1  # \u202e comment"), "invisible character", "comment"),
    "zero width": (top("y = 'a\u200bb'"), "invisible character", "y ="),
    "another encoding": ("# -*- coding: utf-7 -*-\n" + GOOD, "declares the encoding utf-7", "coding"),
    "latin-1": ("#!python\n# vim: set fileencoding=latin-1 :\n" + GOOD, "declares the encoding latin-1", "latin-1"),
    "a NUL": (end("x = 1\0"), "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_refused_before_it_is_imported(name):
    text, message, line = HOSTILE[name]
    found = check_honesty(text, Path("port.py"))
    assert found and all(d.code == "PRT830" and d.span.file == "port.py" for d in found), found
    matching = [d for d in found if message in d.message]
    assert matching, [d.message for d in found]
    lines = text.split("\n")
    assert any(line in lines[d.span.line - 1] for d in matching), [(d.span.line, d.message) for d in matching]


FINE = {
    "a parameter named as a builtin": replaced("factor: Float32, n: Int32, T", "input: Float32, n: Int32, T").replace(
        "Float32(inp[i]) * factor", "Float32(inp[i]) * input"
    ),
    "a table that is read": top("TABLE = {'bf16': 2}", "def bytes_of(name):", "    return TABLE[name]"),
    "a tuple of numbers": top("OFFSETS = (16, 8, 4, 2, 1)", "HALF = 0.5", "EPS = -1e-6"),
    "a dataclass": top("from dataclasses import dataclass", "@dataclass(frozen=True)", "class C:", "    vec: int = 4"),
    "a class that sets itself up": top("class Choice:", "    def __init__(self, vec):", "        self.vec = vec",
                                       "        self._half = vec // 2"),
    "getattr of a constant in a kernel": kernel("w = getattr(T, 'width')"),
    "an early return for nothing": host("if inp.numel() == 0:", "    return"),
    "a workspace": top("import torch").replace(_BODY, "    work = torch.empty(4, device=inp.device)\n" + _BODY),
    "non-ASCII text": top("# Größe in \u00b5s, caf\u00e9"),
    "a lambda in a kernel": kernel("f = lambda a, b: a + b"),
}  # fmt: skip


@pytest.mark.parametrize("name", FINE)
def test_plain_ports_are_left_alone(name):
    assert check_honesty(FINE[name], Path("port.py")) == []


def test_names_that_lead_outside_are_found_where_the_text_cannot_tell():
    pytest.importorskip("cutlass")
    text = (
        "import cutlass.cute as cute\n"
        "x = cute.nvgpu.warp.cast\n"
        "y = cute.arch.partial\n"
        "z = cute.arch.thread_idx\n"
        "from cutlass.cutlass_dsl import Path, subprocess\n"
        "from cutlass.cute import core\n"
        "c = cute.tensor\n"
    )
    uses = library_uses(text)
    found = diagnostics(Path("port.py"), uses, resolve([(u.module, u.attributes) for u in uses]))
    assert [(d.code, d.span.line) for d in found] == [("PRT830", n) for n in (5, 5, 6, 7)]
    assert "pathlib" in found[0].message and "subprocess" in found[1].message
