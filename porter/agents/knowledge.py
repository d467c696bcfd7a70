"""The page of CuTeDSL rules that the agent is given: rules, and what their snippets were seen to do. A snippet that was
changed since it was recorded, or did not do what it should, is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from porter.agents.rules import INPUT, RULES, Rule, Snippet
from porter.provenance.record import tool_versions

RECORD = Path(__file__).with_name("rules.json")


@lru_cache(maxsize=1)
def record() -> dict[str, Any]:
    """`dsl`: the version; `seen`: by digest of a snippet, {"gives": out[0]} or {"refused": the DSL's words}."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"dsl": "", "seen": {}}


@lru_cache(maxsize=1)
def page() -> str:
    """The page as Markdown. The same text for the same record, so that it can be cached."""
    found = record()
    installed = tool_versions().get("dsl", found["dsl"])
    other = f" {installed} is installed: compile before you rely on one." if installed != found["dsl"] else ""
    parts = [
        f"# CuTeDSL {found['dsl']}: rules\n\nSnippets are bodies of a kernel `k(out, a, n)` of Int32; a is "
        f"{list(INPUT)}, n is 2. What they do was seen with this version.{other}\n"
    ]
    return "\n".join([*parts, *filter(None, (_section(rule, found["seen"]) for rule in RULES))])


def stale(found: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What of a record is not so `now` (a record made with the installed DSL): a line each, nothing when it holds.

    Of another version only the words of a refusal may differ.
    """
    old, new = found["seen"], now["seen"]
    lines = [f"{digest}: recorded, but not for any rule" for digest in old if digest not in new]
    for rule in RULES:
        for snippet in rule.snippets:
            was, is_ = old.get(snippet.digest), new[snippet.digest]
            name = f"{rule.name}: {snippet.code.splitlines()[0]}"
            if was is None:
                lines.append(f"{name}: not recorded")
            elif ("gives" in is_) is not snippet.works:
                lines.append(f"{name}: is {'refused' if snippet.works else 'accepted'} now: {is_}")
            elif was != is_ and ("gives" in was or "gives" in is_ or found["dsl"] == now["dsl"]):
                lines.append(f"{name}: recorded {was}, now {is_}")
    return lines


def _section(rule: Rule, seen: Mapping[str, Any]) -> str:
    shown = [text for s in rule.snippets if (text := _shown(s, seen.get(s.digest)))]
    return f"## {rule.name}\n\n{rule.text}\n\n" + "\n".join(shown) if shown else ""


def _shown(snippet: Snippet, seen: Mapping[str, Any] | None) -> str:
    if seen is None or ("gives" in seen) is not snippet.works:
        return ""
    what = f"gives {seen['gives']}" if snippet.works else f"refused: {seen['refused']}"
    return f"```python\n{snippet.code.strip()}\n```\n{what}\n"
