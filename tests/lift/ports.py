"""Ports of the reference kernels over pointers, and over tensors."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from porter.config import PortConfig
from porter.lift.lines import INDENT, Function, Line, tree
from porter.pipeline.inputs import case_if_any, choose_kernels, parse
from porter.pipeline.outputs import Translation
from porter.pipeline.stages import Run, translate
from porter.pipeline.style import in_style

REFERENCE = Path(__file__).parents[2] / "reference_kernels"
SOURCES = sorted(REFERENCE.glob("*/*.cu"))


@cache
def pointer_form(path: Path) -> Translation:
    config = PortConfig()
    unit = parse(path, config)
    (info,) = choose_kernels(unit, config)
    return translate(unit, info, case_if_any(unit, info, config), config, Run(info.name))


def tensor_form(path: Path) -> Translation:
    return in_style(pointer_form(path), "tensor")


def kernel_of(text: str) -> str:
    """The body of a port's kernel."""
    text = text[text.index("@cute.kernel") : text.index("@cute.jit\ndef _launch_")]
    return text[text.index("):\n") + 3 :].rstrip()


def function(text: str) -> Function:
    """The function of the port that is written so: a head on one line, and its body."""
    head, *rows = text.strip("\n").split("\n")
    return Function([], [Line("@cute.kernel"), Line(head)], tree([(row, None) for row in rows], INDENT))


def body_of(fn: Function, block: list[Line] | None = None, depth: int = 0) -> list[str]:
    """The lines of a function's body, indented."""
    out = []
    for x in fn.body if block is None else block:
        out += ["    " * depth + x.text, *body_of(fn, x.body, depth + 1)]
    return out
