"""Comments and pragmas: text that the AST does not keep, found in the source around a statement."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace

from porter import ir
from porter.frontend.lower.body import FunctionLowering, KernelLowering
from porter.frontend.parse.clang_compat import Cursor
from porter.syntax import expression_tree

_PIECES = re.compile(rb'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


@dataclass(frozen=True)
class Comment:
    start: int
    end: int
    text: str
    own_line: bool  # nothing but blanks stands before it on its line


class CommentIndex:
    """The comments of one file by byte offset."""

    def __init__(self, data: bytes):
        self.data = data
        self.all: list[Comment] = []
        for m in _PIECES.finditer(data):
            raw = m.group()
            if raw[:2] in (b"//", b"/*"):
                line = data.rfind(b"\n", 0, m.start()) + 1
                own = not data[line : m.start()].strip()
                self.all.append(Comment(m.start(), m.end(), _clean(raw.decode("utf-8", "replace")), own))
        self._starts = [c.start for c in self.all]

    def between(self, start: int, end: int) -> list[Comment]:
        i = bisect_left(self._starts, start)
        out = []
        while i < len(self.all) and self.all[i].start < end:
            out.append(self.all[i])
            i += 1
        return out

    def trails(self, comment: Comment, at: int) -> bool:
        """Whether the comment stands behind the code that ends at `at`, on its line."""
        line_end = self.data.find(b"\n", at)
        return not comment.own_line and (line_end < 0 or comment.start < line_end)


def _clean(raw: str) -> str:
    if raw.startswith("//"):
        return raw[2:].lstrip("/").strip()
    lines = [line.strip().lstrip("*").strip() for line in raw[2:-2].splitlines()]
    return "\n".join(lines).strip()


def index_of(kernel: KernelLowering, file: str) -> CommentIndex:
    found = kernel.comments.get(file)
    if found is None:
        found = kernel.comments[file] = CommentIndex(kernel.texts.data(file))
    return found


def join(comments: list[Comment]) -> str:
    return "\n".join(c.text for c in comments if c.text)


def comment_before(kernel: KernelLowering, d: Cursor) -> str:
    """The comment block that ends right above a declaration."""
    source = d.specialized_template or d
    start = source.extent.start
    if start.file is None:
        return ""
    index = index_of(kernel, start.file.name)
    block: list[Comment] = []
    at = start.offset
    for c in reversed(index.between(0, start.offset)):
        gap = index.data[c.end : at]
        if gap.strip() or gap.count(b"\n") > 1 or not c.own_line:
            break
        block.insert(0, c)
        at = c.start
    return join(block)


def attach(stmts: list[ir.Stmt], text: str) -> None:
    """Put comment text before the first statement of a list."""
    if text and stmts:
        first = stmts[0]
        stmts[0] = replace(first, comment="\n".join(t for t in (first.comment, text) if t))


# ---------------------------------------------------------------- #pragma unroll

_UNROLL = re.compile(r"#?\s*(?:pragma\s+)?(?:GCC\s+)?(no)?unroll\b\s*(\(?[^\n\\\"]*)")


def unroll_of(fx: FunctionLowering, wrapper: Cursor, loop: Cursor) -> int | None:
    """The unroll count that the text before a loop asks for: 0 full, 1 none, n; None when it asks nothing.

    `wrapper` is the attributed statement that clang builds around a loop with a pragma.
    """
    start, end = wrapper.extent.start, loop.extent.start
    if start.file is None:
        return 0
    data = fx.kernel.texts.data(start.file.name)
    if end.file is None or end.file.name != start.file.name or end.offset < start.offset:
        end = start
    text = data[start.offset : end.offset].decode("utf-8", "replace")
    if "unroll" not in text.lower():
        # A macro that expands to _Pragma: its use stands here or on the line before.
        line = data.rfind(b"\n", 0, max(0, data.rfind(b"\n", 0, start.offset))) + 1
        text = data[line : end.offset].decode("utf-8", "replace") + text
    pragmas = list(_UNROLL.finditer(text))
    if not pragmas:
        macro = re.findall(r"\b(\w*UNROLL\w*)\b\s*(?:\(\s*(\w+)\s*\))?", text)
        if not macro:
            return None if "[[" in text else 0
        name, argument = macro[-1]
        if argument:
            return _count(fx, argument)
        return 1 if name.upper().startswith("NO") else 0
    if pragmas[-1].group(1):
        return 1
    return _count(fx, pragmas[-1].group(2))


def _count(fx: FunctionLowering, text: str) -> int:
    text = re.split(r"//|/\*", text)[0].strip().strip("()\"' ")
    if not text:
        return 0
    if re.fullmatch(r"\d+", text):
        return int(text)
    value = fx.constants.get(text)
    if value is None and re.fullmatch(r"[\w\s+*/()-]+", text):
        value = arithmetic(text, fx.constants)
    return int(value) if value is not None else 0


def arithmetic(text: str, names: dict[str, object]) -> int | None:
    """A small integer expression over known names, None when it is anything else."""
    import ast as python_ast

    try:
        tree = expression_tree(text.replace("/", "//"))
    except SyntaxError:
        return None

    def value(n: python_ast.AST) -> int:
        if isinstance(n, python_ast.Constant) and isinstance(n.value, int):
            return n.value
        if isinstance(n, python_ast.Name):
            found = names[n.id]
            if isinstance(found, int):
                return int(found)
        if isinstance(n, python_ast.BinOp):
            a, b = value(n.left), value(n.right)
            if isinstance(n.op, python_ast.Add):
                return a + b
            if isinstance(n.op, python_ast.Sub):
                return a - b
            if isinstance(n.op, python_ast.Mult):
                return a * b
            if isinstance(n.op, python_ast.FloorDiv) and b:
                return a // b
        raise KeyError(text)

    try:
        return value(tree)
    except KeyError:
        return None


def spelled_constexpr(fx: FunctionLowering, var: Cursor) -> bool:
    """Whether a variable declaration says `constexpr`."""
    text = fx.text(var)
    head = text.split(var.spelling)[0] if var.spelling else text
    if "constexpr" in head:
        return True
    start = var.extent.start
    if start.file is None:
        return False
    data = fx.kernel.texts.data(start.file.name)
    begin = max(data.rfind(b";", 0, start.offset), data.rfind(b"{", 0, start.offset), data.rfind(b"}", 0, start.offset))
    return b"constexpr" in data[begin + 1 : start.offset]


__all__ = [
    "CommentIndex", "attach", "comment_before", "index_of", "join", "spelled_constexpr", "unroll_of",
]  # fmt: skip
