"""The rules that the agent is given are what the installed DSL does: each snippet is compiled and run again."""

from __future__ import annotations

import ast

import pytest

from porter.agents.knowledge import page, record
from porter.agents.rules import RULES

SNIPPETS = [(rule, s) for rule in RULES for s in rule.snippets]


def test_every_snippet_is_recorded_and_on_the_page():
    assert {s.digest for _, s in SNIPPETS} == set(record()["seen"]), "run python tools/record_rules.py"
    for rule, snippet in SNIPPETS:
        ast.parse(snippet.module)
        assert snippet.code.strip() in page() and rule.text in page()
    assert record()["dsl"] in page()


def test_snippets_do_what_is_recorded():
    pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")
    from porter.corpus.runtime.dsl import dsl_version
    from tools.record_rules import try_out

    seen = record()["seen"]
    same = dsl_version() == record()["dsl"]
    for rule, snippet in SNIPPETS:
        found = try_out(snippet)
        assert ("gives" in found) is snippet.works, (rule.name, found)
        if snippet.works or same:
            assert found == seen[snippet.digest], rule.name


def test_a_snippet_that_was_not_seen_is_left_out():
    from porter.agents.knowledge import _section

    seen = {SNIPPETS[0][1].digest: {"refused": "words"}}
    text = _section(RULES[0], seen)
    assert "refused: words" in text and RULES[0].snippets[1].code not in text
    assert _section(RULES[0], {SNIPPETS[0][1].digest: {"gives": 1}}) == ""
