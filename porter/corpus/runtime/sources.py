"""The source files that a port's compiled code depends on, found from its import statements without importing it."""

from __future__ import annotations

import ast
import hashlib
from functools import lru_cache
from pathlib import Path

_CORPUS = Path(__file__).resolve().parent.parent
_RUNTIME = Path(__file__).resolve().parent


def source_closure(path: Path) -> tuple[tuple[Path, str], ...]:
    """(file, sha256) of a port and of what it imports, transitively: porter.corpus and files of the port's own folder.

    The runtime package itself does not count: it launches kernels, no code of it gets into one.
    Raises OSError when the port cannot be read and SyntaxError when it is not Python.
    """
    found: dict[Path, str] = {}
    todo = [path.resolve()]
    while todo:
        file = todo.pop()
        if file in found or file.is_relative_to(_RUNTIME):
            continue
        stat = file.stat()
        sha, imports = _scan(file, stat.st_mtime_ns, stat.st_size)
        found[file] = sha
        for name in imports:
            todo.extend(_resolve(name, file))
    return tuple(sorted(found.items()))


@lru_cache(maxsize=4096)
def _scan(file: Path, mtime_ns: int, size: int) -> tuple[str, tuple[str, ...]]:
    data = file.read_bytes()
    names: list[str] = []
    for node in ast.walk(ast.parse(data, str(file))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            # `from a import b` may name the module a.b or something inside a
            names += [base, *(f"{base}{'' if base.endswith('.') else '.'}{alias.name}" for alias in node.names)]
    return hashlib.sha256(data).hexdigest(), tuple(dict.fromkeys(names))


def _resolve(name: str, importer: Path) -> list[Path]:
    level = len(name) - len(name.lstrip("."))
    parts = [p for p in name.lstrip(".").split(".") if p]
    if level:
        roots = [importer.parents[level - 1]]
    elif parts[:2] == ["porter", "corpus"]:
        roots, parts = [_CORPUS], parts[2:]
    else:
        roots = [importer.parent]
    files = []
    for root in roots:
        for depth in range(len(parts) + 1):  # the packages on the way are imported too
            at = root.joinpath(*parts[:depth])
            files += [f for f in (at.with_suffix(".py"), at / "__init__.py") if depth and f.is_file()]
            if not depth and (level or root == _CORPUS) and (at / "__init__.py").is_file():
                files.append(at / "__init__.py")
    return files
