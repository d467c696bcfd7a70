"""Parse CUDA text once, lower the kernels named, and give their printed IR."""

from __future__ import annotations

import textwrap
from pathlib import Path

from porter import ir
from porter.frontend.instances.choice import parse_instantiation, specialise
from porter.frontend.lower.kernel import lower_kernel
from porter.frontend.parse.source import ParseOptions, parse_source
from porter.ir.printer import format_kernel
from porter.model import Instance
from porter.source import Source


def lower_all(text: str, *instances: str) -> dict[str, ir.Kernel]:
    """Every plain kernel of the text and the named instances of its templates, by name (or instance text)."""
    source = Source(Path("kernels.cu"), textwrap.dedent(text))
    unit = parse_source(source)
    requests = [(k.name, k, Instance()) for k in unit.kernels if not k.is_template]
    for wanted in instances:
        name, instance = parse_instantiation(wanted)
        kernel = unit.kernel(name)
        assert kernel is not None, wanted
        requests.append((wanted, kernel, instance))
    full, cursors = specialise(source, ParseOptions(), [(k, i) for _, k, i in requests], stand_ins=unit.stand_ins)
    out = {}
    for label, kernel, instance in requests:
        cursor = cursors.get((kernel.qualified_name, instance))
        assert cursor is not None, (label, full.diagnostics)
        out[label] = lower_kernel(full, cursor, kernel, instance, strict=True)
    return out


def body(k: ir.Kernel) -> list[str]:
    """The printed lines of the kernel's own body, blanks at both ends removed."""
    lines = format_kernel(k).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("kernel "))
    return [line.strip() for line in lines[start + 1 : -1]]


def function(k: ir.Kernel, name: str) -> list[str]:
    """The printed lines of a function, its head first, one level of indentation removed."""
    lines = format_kernel(k).splitlines()
    start = next(i for i, line in enumerate(lines) if f" {name}(" in line and line.endswith("{") and line[0] != " ")
    end = lines.index("}", start)
    return [lines[start], *(line.strip() for line in lines[start + 1 : end])]


def holes(k: ir.Kernel) -> list[tuple[str, str]]:
    """(code, reason) of every hole of the kernel and its functions."""
    bodies = [k.body, *(f.body for f in k.functions.values())]
    found = [n for b in bodies for n in ir.walk(b) if isinstance(n, (ir.HoleStmt, ir.HoleExpr))]
    return [(h.code, h.reason) for h in found]
