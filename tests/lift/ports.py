"""Ports of the reference kernels over pointers, and over tensors."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from porter.config import PortConfig
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
