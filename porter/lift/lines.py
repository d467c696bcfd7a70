"""A port as a tree of its lines: what a lift looks at and rewrites, with the line map kept.

The emitter writes one statement a line, so a statement is a line, and a block is the lines indented below it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from porter.model import LineMapEntry, PortedModule, author_of, patterns_named, patterns_of
from porter.syntax import module_tree

INDENT = 4


@dataclass
class Line:
    """One line of a port, without its indentation. `entry`: what the line map says of it."""

    text: str
    entry: LineMapEntry | None = None
    body: list[Line] = field(default_factory=list)
    _parsed: tuple[str, ast.stmt | None] = field(default=("", None), repr=False)

    @property
    def is_code(self) -> bool:
        return bool(self.text) and not self.text.startswith("#")

    @property
    def node(self) -> ast.stmt | None:
        """The statement that the line is, or the head of the one that it begins; None for comments and blank lines."""
        if not self.is_code:
            return None
        if self._parsed[0] != self.text:
            self._parsed = self.text, _statement(self.text)
        return self._parsed[1]

    def rewritten(self, text: str, lift: str) -> Line:
        """The line with another text, whose author names the lift as well."""
        return Line(text, by(self.entry, lift), self.body)


def _statement(text: str) -> ast.stmt | None:
    if text == "else:":
        text = "if True:"
    if text.endswith(":"):
        text = f"{text.removeprefix('el') if text.startswith('elif ') else text} pass"
    try:
        return module_tree(text).body[0]
    except SyntaxError:
        return None


def by(entry: LineMapEntry | None, lift: str) -> LineMapEntry | None:
    """The line map's entry with a lift among its authors."""
    if entry is None:
        return None
    names = tuple(dict.fromkeys((*patterns_of(entry.author), lift)))
    return replace(entry, author=author_of(names))


@dataclass
class Function:
    """A function of the port: the comments before it, the lines of its head from the decorator on, and its body."""

    comments: list[Line]
    head: list[Line]
    body: list[Line]

    @property
    def name(self) -> str:
        return next(x.text for x in self.head if x.text.startswith("def ")).split("(")[0].removeprefix("def ")

    def parameters(self) -> set[str]:
        return {a.arg for a in self.arguments()}

    def constants(self) -> set[str]:
        """The parameters that are known at trace time."""
        return {a.arg for a in self.arguments() if a.annotation and "Constexpr" in ast.unparse(a.annotation)}

    def arguments(self) -> list[ast.arg]:
        head = "\n".join(x.text for x in self.head if not x.text.startswith("@"))
        node = module_tree(f"{head}\n    pass").body[0]
        assert isinstance(node, ast.FunctionDef)
        return node.args.args


def every(lines: list[Line]) -> Iterator[Line]:
    """All lines, in order, nested ones after the line that they belong to."""
    for x in lines:
        yield x
        yield from every(x.body)


def assigned_once(body: list[Line]) -> dict[str, tuple[Line, ast.expr]]:
    """Names that are assigned once, by one plain assignment."""
    times: Counter[str] = Counter()
    found: dict[str, tuple[Line, ast.expr]] = {}
    for x in every(body):
        node = x.node
        if node is None:
            continue
        times.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = (x, node.value)
    return {n: v for n, v in found.items() if times[n] == 1}


def functions_of(module: PortedModule) -> tuple[list[Line], list[Function], list[Line]]:
    """The lines before the port's device functions, those functions with the kernel last, and the lines after it."""
    entries = {e.line: e for e in module.line_map}
    rows = module.text.splitlines()
    lines = [(row, entries.get(n)) for n, row in enumerate(rows, 1)]
    kernel = next(i for i, (row, _) in enumerate(lines) if row == "@cute.kernel")
    starts = [i for i, (row, _) in enumerate(lines[: kernel + 1]) if row in ("@cute.jit", "@cute.kernel")]
    found: list[Function] = []
    end = first = _comments_above(lines, starts[0])
    for i in starts:
        opened = next(j for j in range(i, len(lines)) if lines[j][0].startswith("def "))
        body = next(j for j in range(opened, len(lines)) if lines[j][0].endswith("):")) + 1
        end = body
        while end < len(lines) and (lines[end][0].startswith(" ") or not lines[end][0]):
            end += 1
        last = end
        while not lines[last - 1][0]:
            last -= 1
        above = [Line(row, e) for row, e in lines[_comments_above(lines, i) : i]]
        found.append(Function(above, [Line(row, e) for row, e in lines[i:body]], tree(lines[body:last], INDENT)))
    return [Line(row, e) for row, e in lines[:first]], found, [Line(row, e) for row, e in lines[end:]]


def _comments_above(lines: list[tuple[str, LineMapEntry | None]], at: int) -> int:
    while at > 0 and lines[at - 1][0].startswith("#"):
        at -= 1
    return at


def tree(lines: list[tuple[str, LineMapEntry | None]], indent: int) -> list[Line]:
    """Rows that are indented by `indent` spaces or more, each with its entry of the line map, as a tree."""
    out: list[Line] = []
    i = 0
    while i < len(lines):
        row, entry = lines[i]
        i += 1
        line = Line(row.strip(), entry)
        inner = i
        while inner < len(lines) and (not lines[inner][0] or _indent(lines[inner][0]) > indent):
            inner += 1
        if inner > i and line.is_code:
            line.body = tree(lines[i:inner], indent + INDENT)
            i = inner
        out.append(line)
    return out


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip(" "))


def module_of(module: PortedModule, before: list[Line], functions: list[Function], after: list[Line]) -> PortedModule:
    """The port that these lines are, with its line map."""
    rows: list[str] = []
    entries: list[LineMapEntry] = []

    def put(line: Line, depth: int) -> None:
        rows.append(" " * depth + line.text if line.text else "")
        if line.entry is not None:
            entries.append(replace(line.entry, line=len(rows)))
        for x in line.body:
            put(x, depth + INDENT)

    for x in before:
        put(x, 0)
    for fn in functions:
        for x in (*fn.comments, *fn.head):
            put(Line(x.text.strip(), x.entry), _indent(x.text))
        for x in fn.body:
            put(x, INDENT)
        rows += ["", ""]
    for x in after:
        put(x, 0)
    line_map = tuple(entries)
    return replace(module, text="\n".join(rows) + "\n", line_map=line_map, patterns=patterns_named(line_map))
