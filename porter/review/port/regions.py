"""The parts of a port that a person decides on: whole statements with one author, and the CUDA lines behind them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from porter.model import LineMapEntry, patterns_of
from porter.source import Span, lines_of
from porter.syntax import module_tree

LONG = 12  # lines of a compound statement above which its head and the parts of its body are regions of their own
GROUP = 8  # lines of simple statements that are decided on together


@dataclass(frozen=True)
class Region:
    """Lines first..last (from 1, inclusive) of the port and the CUDA lines that they come from.

    `hole_lines` is what becomes a hole when the region is rejected (of a signature, the function's body); None where a
    hole cannot stand.
    """

    name: str  # function/number, as decisions name it
    kind: str  # header, signature, statements, head, hole, launch, text
    function: str
    first: int
    last: int
    authors: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    cuda: tuple[int, ...] = ()  # lines of the source
    elsewhere: tuple[tuple[str, tuple[int, ...]], ...] = ()  # included files, as the map names them, and their lines
    hole: int = 0  # its number, where the region is one
    hole_lines: tuple[int, int] | None = None


def regions_of(text: str, line_map: Sequence[LineMapEntry], source: str = "") -> tuple[Region, ...]:
    """The regions of a port, in order; together they hold every line that is not blank. Lines of another file than
    `source` are elsewhere; without it there is only one.

    A port that is not Python (somebody is editing it) falls into its paragraphs, of which none can become a hole.
    """
    lines = lines_of(text)
    by_line = {e.line: e for e in line_map}
    try:
        parts = list(_module_regions(module_tree(text), by_line))
    except (SyntaxError, ValueError, RecursionError):
        parts = list(_paragraphs(lines))
    return tuple(_named(_with_lines_between(parts, lines), by_line, source))


def _module_regions(tree: ast.Module, by_line: dict[int, LineMapEntry]) -> Iterator[Region]:
    head: list[ast.stmt] = []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            head.append(node)
            continue
        if head:
            yield _one_region("header" if head[0] is tree.body[0] else "launch", "", head)
            head = []
        device = any(_attribute(d) in ("kernel", "jit") for d in node.decorator_list)
        launches = node.name.startswith("_launch_")  # also with a hole in place of its launch
        launches |= any(isinstance(n, ast.Attribute) and n.attr == "launch" for n in ast.walk(node))
        if not device or launches:
            yield _launch_region(node)
            continue
        start = first_line(node.body[0])
        # what is wrong with a signature is wrong with the whole function: its body becomes one hole
        alone = len(node.body) == 1 and _hole_in(node.body[0])
        body = None if alone else (start, node.end_lineno or start)
        yield Region("", "signature", node.name, first_line(node), start - 1, hole_lines=body)
        yield from _body_regions(node.body, node.name, by_line)
    if head:
        yield _one_region("header" if head[0] is tree.body[0] else "launch", "", head)


def _one_region(kind: str, function: str, nodes: list[ast.stmt]) -> Region:
    return Region("", kind, function, first_line(nodes[0]), nodes[-1].end_lineno or 0)


def _launch_region(node: ast.FunctionDef) -> Region:
    """A function of the launch: one region, whose body becomes a hole, or is one."""
    first, last = first_line(node), node.end_lineno or 0
    documented = len(node.body) > 1 and ast.get_docstring(node) is not None
    number = _hole_in(node)
    body = None if number else (first_line(node.body[documented]), last)
    return Region("", "launch", node.name, first, last, hole=number, hole_lines=body)


def _body_regions(body: list[ast.stmt], function: str, by_line: dict[int, LineMapEntry]) -> Iterator[Region]:
    group: list[ast.stmt] = []

    def grouped() -> Iterator[Region]:
        if group:
            first, last = group[0].lineno, group[-1].end_lineno or 0
            yield Region("", "statements", function, first, last, hole_lines=(first, last))
            group.clear()

    for node in body:
        blocks = [b for f in ("body", "orelse") if (b := getattr(node, f, None))]
        number = 0 if blocks else _hole_in(node)
        first, last = node.lineno, node.end_lineno or node.lineno
        if number:
            yield from grouped()
            yield Region("", "hole", function, first, last, hole=number, hole_lines=None)
        elif not blocks:
            if group and (last - group[0].lineno >= GROUP or _author(group[-1], by_line) != _author(node, by_line)):
                yield from grouped()
            group.append(node)
        elif last - first < LONG and not any(_hole_in(n) for n in ast.walk(node)):
            yield from grouped()
            yield Region("", "statements", function, first, last, hole_lines=(first, last))
        else:
            yield from grouped()
            yield Region("", "head", function, first, first_line(blocks[0][0]) - 1, hole_lines=(first, last))
            for block in blocks:
                yield from _body_regions(block, function, by_line)
    yield from grouped()


def _paragraphs(lines: list[str]) -> Iterator[Region]:
    first = 0
    for number, line in enumerate([*lines, ""], 1):
        if line.strip():
            first = first or number
        elif first:
            yield Region("", "text", "", first, number - 1)
            first = 0


def _with_lines_between(parts: list[Region], lines: list[str]) -> Iterator[Region]:
    """The regions with the comments, `else:` and other lines between them, which belong to what follows."""
    taken = 0
    for number, part in enumerate(parts):
        first = next((n for n in range(taken + 1, part.first) if lines[n - 1].strip()), part.first)
        hole_lines = part.hole_lines
        if hole_lines is not None:
            start = hole_lines[0]
            while start - 1 >= first and lines[start - 2].lstrip().startswith("#"):
                start -= 1
            hole_lines = (start, hole_lines[1])
            if lines[part.first - 1].lstrip().startswith("elif"):
                hole_lines = None
        last = max(part.last, first)
        if number == len(parts) - 1:
            last = next((n for n in range(len(lines), last, -1) if lines[n - 1].strip()), last)
        while last > first and not lines[last - 1].strip():
            last -= 1
        if part.kind == "signature":  # comments below it are the first statement's
            last = next((n for n in range(last, first, -1) if not lines[n - 1].lstrip().startswith("#")), last)
        yield replace(part, first=first, last=last, hole_lines=hole_lines)
        taken = last


def _named(parts: Iterator[Region], by_line: dict[int, LineMapEntry], source: str) -> Iterator[Region]:
    counts: dict[str, int] = {}
    for part in parts:
        where = part.function or part.kind
        counts[where] = counts.get(where, 0) + 1
        entries = [by_line[n] for n in range(part.first, part.last + 1) if n in by_line]
        spans = tuple(dict.fromkeys(e.span for e in entries if e.span.line))
        yield replace(
            part,
            name=f"{where}/{counts[where]}",
            authors=tuple(dict.fromkeys(e.author for e in entries)) or ("translator",),
            spans=spans,
            cuda=_cuda_lines(part.kind, tuple(s for s in spans if s.file == source or not source)),
            elsewhere=tuple(
                (file, _cuda_lines(part.kind, tuple(s for s in spans if s.file == file)))
                for file in dict.fromkeys(s.file for s in spans)
                if source and file != source
            ),
        )


def _cuda_lines(kind: str, spans: tuple[Span, ...]) -> tuple[int, ...]:
    """The lines of the spans. A span around all others (a function's) says little and counts by its first line only."""
    found: set[int] = set()
    for span in spans:
        last = max(span.end_line, span.line)
        around = any(o != span and span.line <= o.line and o.end_line <= last for o in spans)
        alone = kind in ("signature", "launch", "header") or (around and last - span.line >= LONG)
        found |= {span.line} if alone else set(range(span.line, last + 1))
    return tuple(sorted(found))


def first_line(node: ast.stmt) -> int:
    """The first line of a statement, decorators included."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def _author(node: ast.stmt, by_line: dict[int, LineMapEntry]) -> str:
    """Who wrote a statement: an agent's attempt, a person, or porter, whose patterns are all the same author."""
    entry = by_line.get(node.lineno)
    if entry is None:
        return ""
    return "translator" if patterns_of(entry.author) else entry.author


def _attribute(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else ""


def _hole_in(node: ast.AST) -> int:
    """The number of the first hole in a statement, 0 without one."""
    for n in ast.walk(node):
        if isinstance(n, ast.Call) and _attribute(n) == "hole" and n.args and isinstance(n.args[0], ast.Constant):
            return int(n.args[0].value) if isinstance(n.args[0].value, int) else 0
    return 0
