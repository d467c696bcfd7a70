"""`--standalone`: the functions of porter.corpus.lib that a port uses, copied into it under the prefix `lib_`.

Works on source text: nothing of the corpus is imported. Only porter.corpus.runtime stays an import.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from porter.syntax import module_tree

LIB = Path(__file__).resolve().parent.parent / "corpus" / "lib"
PREFIX = "lib_"


@dataclass(frozen=True)
class LibraryDefinition:
    """One top-level function or constant of the library."""

    name: str
    source: str
    uses: frozenset[str]
    module: str
    order: tuple[str, int]


@lru_cache(maxsize=1)
def library() -> tuple[dict[str, LibraryDefinition], dict[str, tuple[str, ...]]]:
    """Definitions by name, and the import statements of each library module (without those of the library itself)."""
    found: dict[str, LibraryDefinition] = {}
    imports: dict[str, tuple[str, ...]] = {}
    texts = {p.stem: p.read_text(encoding="utf-8") for p in sorted(LIB.rglob("*.py")) if p.stem != "__init__"}
    for module, text in texts.items():
        tree = module_tree(text)
        lines = text.splitlines()
        statements = []
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                if not (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("porter.")):
                    statements.append(ast.unparse(node))
                continue
            names = _defined(node)
            if not names:
                continue
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            source = "\n".join(lines[first - 1 : node.end_lineno])
            uses = frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
            for name in names:
                found[name] = LibraryDefinition(name, source, uses, module, (module, first))
        imports[module] = tuple(statements)
    return found, imports


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [t.id for t in node.targets if isinstance(t, ast.Name)]
    return []


def needed(body: str) -> list[LibraryDefinition]:
    """The definitions that the text needs, through all they use, in an order in which each comes after its needs."""
    known, _ = library()
    out: list[LibraryDefinition] = []
    seen: set[str] = set()

    def visit(name: str) -> None:
        if name in seen or name not in known:
            return
        seen.add(name)
        for other in sorted(known[name].uses - {name}):
            visit(other)
        out.append(known[name])

    for name in sorted(set(re.findall(r"\blib\.(\w+)", body))):
        visit(name)
    return out


def renamed(source: str, names: frozenset[str]) -> str:
    """The source with the library's own names prefixed; attributes and keyword arguments keep theirs."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    edits: list[tuple[int, int, str]] = []
    strings: list[tuple[str, str]] = []
    for i, t in enumerate(tokens):
        if t.type == tokenize.STRING and re.match(r"[rR]?[fF]", t.string):
            # before Python 3.12 an f-string is one token: names inside its braces are replaced by hand
            new = re.sub(r"\{[^{}]*\}", lambda m: re.sub(r"(?<![\w.])(\w+)", _prefixed(names), m[0]), t.string)
            strings.append((t.string, new))
        if t.type != tokenize.NAME or t.string not in names:
            continue
        before = tokens[i - 1].string if i else ""
        after = tokens[i + 1].string if i + 1 < len(tokens) else ""
        if before == "." or (after == "=" and before in ("(", ",")):
            continue
        edits.append((t.start[0], t.start[1], t.string))
    lines = source.splitlines()
    for row, col, name in sorted(edits, reverse=True):
        line = lines[row - 1]
        lines[row - 1] = line[:col] + PREFIX + name + line[col + len(name) :]
    text = "\n".join(lines)
    for old, new in strings:
        text = text.replace(old, new)
    return text


def _prefixed(names: frozenset[str]) -> Callable[[re.Match[str]], str]:
    return lambda m: PREFIX + m[1] if m[1] in names else m[1]


def inline_library(body: str) -> tuple[str, list[str], str]:
    """(the body with `lib.f` renamed to `lib_f`, import statements to add, text of the copied definitions)."""
    definitions = needed(body)
    _, imports = library()
    names = frozenset(d.name for d in definitions)
    modules = sorted({d.module for d in definitions})
    parts = [renamed(d.source, names) for d in definitions]
    separator = [("\n\n\n" if p.startswith(("def ", "@")) else "\n") for p in parts]
    text = "".join(s + p for s, p in zip(separator, parts, strict=True)).strip("\n")
    new_body = re.sub(r"\blib\.(\w+)", rf"{PREFIX}\1", body)
    return new_body, _imports({s for m in modules for s in imports[m]}, text), text


def _imports(statements: set[str], text: str) -> list[str]:
    """One import statement a module, with the names that the text uses."""
    used = {n.id for n in ast.walk(module_tree(text)) if isinstance(n, ast.Name)}
    names: dict[str, set[str]] = {}
    whole_modules: set[str] = set()
    for statement in statements:
        node = module_tree(statement).body[0]
        if isinstance(node, ast.ImportFrom):
            names.setdefault(node.module or "", set()).update(
                a.name for a in node.names if (a.asname or a.name) in used
            )
        else:
            whole_modules.add(statement)
    return [*sorted(whole_modules), *(f"from {m} import {', '.join(sorted(n))}" for m, n in sorted(names.items()) if n)]
