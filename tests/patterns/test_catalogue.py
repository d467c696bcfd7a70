"""Every pattern of the catalogue is what the translator does today: its kernel is ported and shows the rewrite."""

from __future__ import annotations

import ast

import pytest

from porter.catalogue.patterns import function_rows, pattern_page, port_of
from porter.model import patterns_of
from porter.patterns.idioms.catalogue import Pattern, all_patterns


@pytest.mark.parametrize("pattern", all_patterns(), ids=lambda p: p.name)
def test_the_port_shows_the_pattern(pattern: Pattern) -> None:
    module = port_of(pattern)
    ast.parse(module.text)
    assert "hole(" not in module.text and pattern.name in module.patterns
    lines = module.text.splitlines()
    named = [lines[e.line - 1] for e in module.line_map if pattern.name in patterns_of(e.author)]
    for shown in pattern.shows:
        assert any(shown in line for line in named), f"{shown} is on no line that names {pattern.name}: {named}"


def test_names_are_unique_and_modules_exist() -> None:
    from pathlib import Path

    import porter

    root = Path(porter.__path__[0])
    names = [p.name for p in all_patterns()]
    assert len(set(names)) == len(names)
    for pattern in all_patterns():
        assert (root / pattern.module).is_file()


def test_a_page_says_whether_the_pattern_is_exact() -> None:
    pages = {p.name: pattern_page(p) for p in all_patterns()}
    assert " Exact. " in pages["guard"] and "Assumes that the order" in pages["cub_block_reduce"]


def test_rows_of_functions_are_unique() -> None:
    rows = function_rows()
    assert len(rows) > 100 and len({cuda for cuda, _ in rows}) > 100
