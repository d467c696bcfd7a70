"""What the emitter says of a text's binding is so: a text that binds more loosely than it says is a wrong expression in
the next operator."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from porter.config import PortConfig
from porter.emit.module import emit_module
from porter.emit.plan import PlanOptions, make_plan
from porter.emit.text import ADD, AND, ATOM, COMPARE, MUL, NOT, OR, SHIFT, TERNARY, UNARY, XOR, Text
from porter.pipeline.inputs import case_if_any, choose_instances, parse
from porter.pipeline.stages import lower

ROOT = Path(__file__).parents[2]
SOURCES = [*sorted((Path(__file__).parent / "constructs").glob("*.cu")),
           *sorted((ROOT / "reference_kernels").glob("*/*.cu"))]  # fmt: skip
OPERATORS = {
    ast.Mult: MUL, ast.Div: MUL, ast.Mod: MUL, ast.FloorDiv: MUL, ast.Add: ADD, ast.Sub: ADD, ast.LShift: SHIFT,
    ast.RShift: SHIFT, ast.BitAnd: AND, ast.BitXor: XOR, ast.BitOr: OR, ast.Not: NOT, ast.USub: UNARY,
    ast.Invert: UNARY, ast.UAdd: UNARY,
}  # fmt: skip


def binding(text: str) -> int:
    """How tightly a Python expression binds."""
    node = ast.parse(text, mode="eval").body
    if node.col_offset or node.end_col_offset != len(text.encode()):
        return ATOM  # in parentheses
    if isinstance(node, ast.BinOp | ast.UnaryOp):
        return OPERATORS[type(node.op)]
    return COMPARE if isinstance(node, ast.Compare) else TERNARY if isinstance(node, ast.IfExp | ast.BoolOp) else ATOM


def test_binding_of_texts():
    found = [binding(t) for t in ("f(a + b)", "(a + b)", "(a) + (b)", "-a * b", "not a", "a if b else c", "a < b")]
    assert found == [ATOM, ATOM, ADD, MUL, NOT, TERNARY, COMPARE]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_no_text_binds_more_loosely_than_it_says(path, monkeypatch):
    wrong = []
    make = Text.__init__

    def checked(self, text: str, prec: int = ATOM, static: bool = False) -> None:
        make(self, text, prec, static)
        if text and binding(text) > prec:
            wrong.append(text)

    config = PortConfig(verify=False)
    unit = parse(path, config)
    for info in unit.kernels:
        case = case_if_any(unit, info, config)
        instances = choose_instances(unit, info, case, config)
        kernels = lower(unit, info, instances, case)
        with monkeypatch.context() as patch:
            patch.setattr(Text, "__init__", checked)
            emit_module(make_plan(list(kernels), info, case, PlanOptions(False, unit.source, instances)))
    assert not wrong, wrong[:5]
