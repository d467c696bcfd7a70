"""The page of CuTeDSL rules that the agent is given: snippets that the installed DSL was seen to accept or refuse."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

PAGE = Path(__file__).with_name("knowledge.md")


@lru_cache(maxsize=1)
def page() -> str:
    """The page, "" before it was generated."""
    return PAGE.read_text(encoding="utf-8") if PAGE.exists() else "No rules have been recorded.\n"
