"""Names of a body told apart by scope: locals of scopes beside each other share a name in a port.

`separate` gives each of them a name of its own while lifts look at the body, and `together` takes it back.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from porter.lift.lines import Line, every

_MARK = "__scope"
_MARKED = re.compile(rf"{_MARK}\d+\b")


def separate(body: list[Line]) -> None:
    """Rename, in place, every local that several scopes beside each other declare."""
    declared: dict[str, list[list[Line]]] = defaultdict(list)
    _declarations(body, declared)
    for name, scopes in declared.items():
        if len(scopes) < 2:
            continue
        lines = [{id(x) for x in every(s)} for s in scopes]
        if any(a & b for i, a in enumerate(lines) for b in lines[i + 1 :]):
            continue
        inside = set().union(*lines)
        if any(_mentions(x, name) and id(x) not in inside for x in every(body)):
            continue
        for n, scope in enumerate(scopes, 1):
            for x in every(scope):
                if x.is_code:
                    x.text = _renamed(x.text, name, f"{name}{_MARK}{n}")


def together(body: list[Line]) -> None:
    """Give the locals their shared names again, in place."""
    for x in every(body):
        x.text = without_marks(x.text)


def without_marks(text: str) -> str:
    """Text in which the locals have their shared names."""
    return _MARKED.sub("", text)


def _declarations(block: list[Line], found: dict[str, list[list[Line]]]) -> None:
    seen: set[str] = set()
    for i, x in enumerate(block):
        node = x.node
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name not in seen:
                seen.add(name)
                found[name].append(block[i:])
        _declarations(x.body, found)


def _mentions(line: Line, name: str) -> bool:
    return line.is_code and re.search(rf"(?<![\w.]){name}\b(?!=)", line.text) is not None


def _renamed(text: str, name: str, new: str) -> str:
    return re.sub(rf"(?<![\w.]){name}\b(?!=)", new, text)
