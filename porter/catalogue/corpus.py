"""The corpus as text: its public functions and classes, read from their files without importing the DSL."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import porter.corpus
from porter.syntax import module_tree


@dataclass(frozen=True)
class CorpusEntry:
    """A public function or class of the corpus. `module` is dotted, `source` its whole text; `summary` is the first
    line of its documentation, `paragraph` the first paragraph, on one line."""

    name: str
    module: str
    signature: str
    summary: str
    paragraph: str
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
    for node in module_tree(text).body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.name.startswith("_"):
            continue
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        signature = (
            f"{node.name}({ast.unparse(node.args)})" if isinstance(node, ast.FunctionDef) else f"class {node.name}"
        )
        documentation = ast.get_docstring(node) or ""
        summary, paragraph = documentation.split("\n")[0], " ".join(documentation.split("\n\n")[0].split())
        source = "".join(lines[first - 1 : node.end_lineno])
        found.append(CorpusEntry(node.name, module, signature, summary, paragraph, source))
    return found
