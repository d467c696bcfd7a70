"""Comments beside a kernel's parameters: `// [tokens, hidden]` and `// (B, O)` say how long buffers are."""

from __future__ import annotations

import re

from porter.case import expressions
from porter.case.expressions import ExprError
from porter.cxx.expressions import to_case_expression
from porter.frontend.instances.argument_text import split_arguments
from porter.model import KernelInfo
from porter.source import Source


def comments_of(info: KernelInfo, source: Source) -> dict[str, str]:
    """The comment on the line of each parameter of the kernel's declaration."""
    start = max(info.span.line - 1, 0)
    found: dict[str, str] = {}
    for line in source.lines[start : start + 3 * len(info.params) + 10]:
        code, mark, comment = line.partition("//")
        if not mark:
            code, mark, comment = line.partition("/*")
            comment = comment.partition("*/")[0]
        for parameter in info.params:
            if mark and parameter.name not in found and re.search(rf"\b{re.escape(parameter.name)}\s*[,)]?", code):
                found[parameter.name] = comment.strip()
        if "{" in code:
            break
    return found


def commented_shape(comment: str) -> tuple[str, ...] | None:
    """The dimensions that a comment begins with, as case expressions; None where one is no expression."""
    m = re.match(r"(?:shape:?\s*)?[\[(]([^\])]*)[\])]", comment)
    if not m:
        return None
    try:
        parts = split_arguments(m.group(1))
    except ValueError:
        return None
    shape = [translated(part) for part in parts]
    if not shape or any(s is None for s in shape):
        return None
    if m.group().endswith(")") and not all(re.fullmatch(r"[\w *+/-]+", p.strip()) for p in parts):
        return None
    if m.group().endswith(")") and any(" " in p.strip() and re.fullmatch(r"[a-z ]+", p.strip()) for p in parts):
        return None  # words in parentheses
    return tuple(s for s in shape if s is not None)


def translated(text: str) -> str | None:
    """A C++ expression in the language of cases, None where it has no meaning there."""
    try:
        found = to_case_expression(text)
    except ValueError:
        return None
    if found is None:
        return None
    try:
        expressions.parse(found)
    except ExprError:
        return None
    return found
