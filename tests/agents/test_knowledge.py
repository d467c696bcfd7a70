"""The rules that the agent is given are what the installed DSL does: each snippet is compiled and run again."""

from __future__ import annotations

import ast
import copy

import pytest

from porter.agents.knowledge import page, record, stale
from porter.agents.rules import RULES

SNIPPETS = [(rule, s) for rule in RULES for s in rule.snippets]


def test_every_snippet_is_recorded_and_on_the_page():
    assert {s.digest for _, s in SNIPPETS} == set(record()["seen"]), "run python tools/record_rules.py"
    for rule, snippet in SNIPPETS:
        ast.parse(snippet.module)
        assert snippet.code.strip() in page() and rule.text in page()
    assert record()["dsl"] in page()


@pytest.fixture(scope="module")
def now():
    """What the installed DSL does with every snippet."""
    pytest.importorskip("cutlass", reason="needs nvidia-cutlass-dsl")
    from tools.record_rules import record as record_now

    return record_now()


def test_snippets_do_what_is_recorded(now):
    assert stale(record(), now) == [], "run python tools/record_rules.py"


def test_a_record_that_is_out_of_date_is_found(now):
    """Each way in which rules.json can differ from what the DSL does fails the test above."""
    works, refused = (next(s for _, s in SNIPPETS if s.works is w) for w in (True, False))

    def doctored(digest, value, dsl=""):
        found = copy.deepcopy(record())
        found["dsl"] = dsl or found["dsl"]
        if value is None:
            del found["seen"][digest]
        else:
            found["seen"][digest] = value
        return stale(found, now)

    assert "now {'gives'" in doctored(works.digest, {"gives": 12345})[0]
    assert "now {'gives'" in doctored(works.digest, {"refused": "never"})[0]
    assert "now {'gives'" in doctored(works.digest, {"gives": 12345}, "0.0")[0]  # whatever the version
    assert "now {'refused'" in doctored(refused.digest, {"refused": "other words"})[0]
    assert doctored(refused.digest, {"refused": "other words"}, "0.0") == []  # another version may word it otherwise
    assert "now {'refused'" in doctored(refused.digest, {"gives": 1}, "0.0")[0]
    assert "not recorded" in doctored(works.digest, None)[0]
    assert "not for any rule" in doctored("0" * 16, {"gives": 1})[0]
    changed = copy.deepcopy(now)
    changed["seen"][works.digest] = {"refused": "no more"}
    changed["seen"][refused.digest] = {"gives": 1}
    assert [line.split(": ")[2][:7] for line in stale(record(), changed)] == ["is acce", "is refu"]


def test_the_page_says_when_another_version_is_installed(monkeypatch):
    from porter.agents import knowledge

    assert "is installed" not in page()
    monkeypatch.setattr(knowledge, "tool_versions", lambda: {"dsl": "9.9"})
    assert " 9.9 is installed: compile before you rely on one." in page.__wrapped__()
    monkeypatch.setattr(knowledge, "tool_versions", dict)
    assert page.__wrapped__() == page()


def test_a_snippet_that_was_not_seen_is_left_out():
    from porter.agents.knowledge import _section

    seen = {SNIPPETS[0][1].digest: {"refused": "words"}}
    text = _section(RULES[0], seen)
    assert "refused: words" in text and RULES[0].snippets[1].code not in text
    assert _section(RULES[0], {SNIPPETS[0][1].digest: {"gives": 1}}) == ""
