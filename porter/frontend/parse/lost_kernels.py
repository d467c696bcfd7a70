"""Kernels that stand in a file's text and not in clang's AST: what is wrong before or in them took them away."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from porter import codes
from porter.frontend.slice.text import blank, code_of, directives
from porter.model import Diagnostic, KernelInfo
from porter.source import Span

_HEAD = re.compile(r"\b__global__\b")
# What clang says in a kernel or behind it when a class before it is not closed: what came before is to blame.
_UNCLOSED = re.compile(
    r"kernel function .* must be a free function|expected '}'|expected ';' after|function definition is"
    r" not allowed here"
)
_SHOWN = 3  # faults of the file told with such a kernel


def lost_kernels(
    path: str, text: str, known: Collection[Span], skipped: Sequence[tuple[int, int]], faults: Sequence[Diagnostic]
) -> tuple[KernelInfo, ...]:
    """Definitions with `__global__` in `text` that none of `known` covers and the preprocessor does not skip (`skipped`
    are first and last lines), in order. Each has the faults in its text, else those before it, else any of the file.
    """
    found = []
    for name, where in definitions(path, text):
        if any(k.file == path and k.line <= where.line <= k.end_line for k in known):
            continue
        if any(first <= where.line <= last for first, last in skipped):
            continue
        found.append(KernelInfo(name, name, (), (), where, errors=_causes(where, faults)))
    return tuple(found)


def definitions(path: str, text: str) -> Iterator[tuple[str, Span]]:
    """(name, place) of every kernel definition that the text spells out, those of macros left out. Text only."""
    code = code_of(text)
    for d in directives(text, code):
        code = code[: d.start] + blank(code[d.start : d.end]) + code[d.end :]
    for head in _HEAD.finditer(code):
        end = re.compile(r"[;{}]").search(code, head.end())
        if end is None or end.group() != "{":
            continue  # a declaration, or an explicit instantiation
        name = _name(code[head.end() : end.start()])
        if name:
            line = code.count("\n", 0, head.start()) + 1
            column = head.start() - code.rfind("\n", 0, head.start())
            last = _closing(code, end.start())
            yield name, Span(path, line, column, code.count("\n", 0, last) + 1, last - code.rfind("\n", 0, last))


def _name(head: str) -> str:
    """The function's name in `void __launch_bounds__(256) f(T* x) attribute(...)`: before its parameters."""
    depth, names = 0, []
    for m in re.finditer(r"[()]|\b[A-Za-z_]\w*(?=\s*\()", head):
        if m.group() in "()":
            depth += 1 if m.group() == "(" else -1
        elif depth == 0:
            names.append(m.group())
    plain = [n for n in names if not n.startswith("__") and n not in ("alignas", "noexcept", "requires")]
    return next(iter(plain or names), "")


def _closing(code: str, start: int) -> int:
    """Where the brace at `start` is closed; the end of the text when it is not."""
    depth = 0
    for i in range(start, len(code)):
        depth += (code[i] == "{") - (code[i] == "}")
        if depth == 0:
            return i
    return len(code)


def _causes(where: Span, faults: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    own = [f for f in faults if f.span.file == where.file]
    inside = [f for f in own if where.line <= f.span.line <= where.end_line and not _UNCLOSED.match(f.message)]
    before = [f for f in own if f.span.line < where.line]
    causes = inside or before or list(faults)
    if not causes:
        message = "clang takes this for no kernel definition: what stands before it may not be closed"
        return (Diagnostic(codes.PARSE_ERROR, message, where, help="give the folders and macros of the build"),)
    return tuple(causes[:_SHOWN])
