"""Explicit instantiations (`template void f<A>(...);`) read from text, macros too: clang's cursors do not show them."""

from __future__ import annotations

import re

from porter.frontend.instances.argument_text import split_arguments

_EXPLICIT = re.compile(r"\btemplate\s+(?!<)(?:__global__\s+)?[\w:<>*& \t]+?[\s*&]([\w:]+)\s*<", re.M)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)]*)\)((?:[^\n]*\\\n)*[^\n]*)", re.M)
_DEFINE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
_MAX_EXPANSIONS = 500


def explicit_instantiations(
    text: str, skipped: list[tuple[int, int]] | None = None
) -> list[tuple[str, tuple[str, ...]]]:
    """(function name as written, template arguments) in source order, each once; `text` is a whole source file.

    `skipped` are (first, last) lines that the preprocessor leaves out.
    """
    found: dict[tuple[str, tuple[str, ...]], None] = {}
    for piece in _pieces(text, skipped):
        for use in _in(piece):
            found.setdefault(use)
    return list(found)


def _pieces(text: str, skipped: list[tuple[int, int]] | None) -> list[str]:
    """What the uses of macros with `template` in them stand for, then the text without directives and comments."""
    if skipped:
        lines = text.split("\n")
        for first, last in skipped:
            lines[first - 1 : last] = [""] * (last - first + 1)
        text = "\n".join(lines)
    text = re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S))
    plain = _DEFINE.sub(lambda m: "\n" * m.group().count("\n"), text)
    found = []
    macros = {m.group(1): (m.group(2), m.group(3)) for m in _MACRO.finditer(text) if "template" in m.group(3)}
    for name, (params, body) in macros.items():
        for m in list(re.finditer(rf"^[ \t]*{name}\s*\(", plain, re.M))[:_MAX_EXPANSIONS]:
            inside = _balanced(plain, m.end(), "()")
            if inside is not None:
                found.append(_expand(params, body, inside))
    return [*found, plain]


def deduced_instantiations(
    text: str, skipped: list[tuple[int, int]] | None = None
) -> list[tuple[str, str, str]]:
    """(function name as written, return type, parameters) of instantiations that leave their arguments to deduction:
    `template void f(const float*, int);`."""
    found = {}
    for piece in _pieces(text, skipped):
        for m in _DEDUCED.finditer(piece):
            inside = _balanced(piece, m.end(), "()")
            if inside is not None:
                found[m.group(2).removeprefix("::"), " ".join(inside.split())] = m.group(1).strip()
    return [(name, result, params) for (name, params), result in found.items()]


_DEDUCED = re.compile(r"^[ \t]*template\s+(?!<|class\b|struct\b)([\w:<>,*& \t]*?[\w>*&])[\s]+([\w:]+)\s*\(", re.M)


def _expand(params: str, body: str, arguments: str) -> str:
    names = [p.strip() for p in params.split(",")]
    try:
        values = split_arguments(arguments)
    except ValueError:
        return ""
    table = dict(zip(names, values, strict=False))
    body = body.replace("\\\n", "\n")
    body = re.sub(r"\w+", lambda m: table.get(m.group(), m.group()), body)
    return re.sub(r"\s*##\s*", "", body)


def _in(text: str) -> list[tuple[str, tuple[str, ...]]]:
    found = []
    for m in _EXPLICIT.finditer(text):
        inside = _balanced(text, m.end(), "<>")
        if inside is not None:
            try:
                found.append((m.group(1).removeprefix("::"), split_arguments(" ".join(inside.split()))))
            except ValueError:
                continue
    return found


def _balanced(text: str, start: int, brackets: str) -> str | None:
    """What stands between an opening bracket before `start` and the one that closes it; None across a statement."""
    depth = 1
    for i in range(start, min(len(text), start + 2000)):
        depth += (text[i] == brackets[0]) - (text[i] == brackets[1])
        if depth == 0:
            return text[start:i]
        if text[i] in ";{":
            return None
    return None
