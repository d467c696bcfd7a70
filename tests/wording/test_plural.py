"""Counts and their nouns, and that messages have no other way of writing them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from porter.wording import plural

PORTER = Path(__file__).parents[2] / "porter"


@pytest.mark.parametrize(
    ("count", "noun", "words"),
    [
        (1, "kernel", "1 kernel"),
        (0, "kernel", "0 kernels"),
        (2, "launch", "2 launches"),
        (1, "launch", "1 launch"),
        (3, "entry", "3 entries"),
        (2, "array", "2 arrays"),
        (2, "template argument", "2 template arguments"),
    ],
)
def test_a_noun_agrees_with_its_count(count: int, noun: str, words: str):
    assert plural(count, noun) == words


def test_messages_add_no_s_of_their_own():
    own = re.compile(r"""\{\s*(['"])e?s\1\s*(\*|if )|\{\s*''\s*if .* else\s*'s'""")
    found = [path for path in PORTER.rglob("*.py") if own.search(path.read_text(encoding="utf-8"))]
    assert found == []
