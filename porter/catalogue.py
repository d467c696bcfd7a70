"""What `porter patterns` and `porter corpus` show, read without importing the DSL; docs are generated from it too."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import porter.corpus


@dataclass(frozen=True)
class CorpusEntry:
    """A public function or class of the corpus. `module` is dotted, `source` its whole text."""

    name: str
    module: str
    signature: str
    summary: str
    source: str


def corpus_entries() -> list[CorpusEntry]:
    """Every public function and class of porter.corpus.lib and porter.corpus.kernels, by module, in file order."""
    root = Path(porter.corpus.__path__[0])
    found: list[CorpusEntry] = []
    for part in ("lib", "kernels"):
        for path in sorted((root / part).rglob("*.py")):
            dotted = ".".join(("porter.corpus", *path.relative_to(root).with_suffix("").parts)).removesuffix(
                ".__init__"
            )
            found += _entries(path.read_text(encoding="utf-8"), dotted)
    return found


def _entries(text: str, module: str) -> list[CorpusEntry]:
    lines = text.splitlines(keepends=True)
    found = []
    for node in ast.parse(text).body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.name.startswith("_"):
            continue
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        signature = (
            f"{node.name}({ast.unparse(node.args)})" if isinstance(node, ast.FunctionDef) else f"class {node.name}"
        )
        summary = (ast.get_docstring(node) or "").split("\n")[0]
        found.append(CorpusEntry(node.name, module, signature, summary, "".join(lines[first - 1 : node.end_lineno])))
    return found


def patterns() -> list[Any]:
    """All patterns: objects with name, code, title, exact or assumes, before and after."""
    from porter.patterns import all_patterns

    return list(all_patterns())


def pattern_line(pattern: Any, width: int) -> str:
    return f"{pattern.code}  {pattern.name:<{width}}  {pattern.title}  ({_promise(pattern)})"


def pattern_page(pattern: Any) -> str:
    """One pattern as Markdown: title, whether it is exact, before and after."""
    return (
        f"## {pattern.name}\n\n{pattern.code}: {pattern.title}. {_promise(pattern).capitalize()}.\n\n"
        f"```cuda\n{pattern.before.strip()}\n```\n\n```python\n{pattern.after.strip()}\n```\n"
    )


def _promise(pattern: Any) -> str:
    assumes = getattr(pattern, "assumes", "")
    return f"assumes {assumes}" if assumes else "exact"
