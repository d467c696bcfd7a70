"""Template argument lists as text: splitting them and reading `kernel<type, value>` as a person writes it."""

from __future__ import annotations

import re

from porter import codes
from porter.model import Diagnostic, Instance, PorterError


def split_arguments(text: str) -> tuple[str, ...]:
    """Split at top-level commas. <> () [] {} nest; within ( [ { a < or > is an operator. ValueError if unbalanced."""
    closes = {")": "(", "]": "[", "}": "{", ">": "<"}
    parts: list[str] = []
    stack: list[str] = []
    current = ""
    for ch in text:
        in_expression = bool(stack) and stack[-1] != "<"
        if ch in "([{" or (ch == "<" and not in_expression):
            stack.append(ch)
        elif ch in closes and not (ch == ">" and in_expression) and (not stack or stack.pop() != closes[ch]):
            raise ValueError(f"unbalanced '{ch}' in '{text}'")
        if ch == "," and not stack:
            parts.append(current.strip())
            current = ""
        else:
            current += ch
    if stack:
        raise ValueError(f"unbalanced '{stack[-1]}' in '{text}'")
    if current.strip() or parts:
        parts.append(current.strip())
    return tuple(parts)


def parse_instantiation(text: str) -> tuple[str, Instance]:
    """`k<__nv_bfloat16, 8>` to (`k`, Instance). A bare name is the empty instance. Raises PorterError (PRT007)."""
    m = re.fullmatch(r"\s*([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)\s*(?:<(.*)>)?\s*", text, re.S)
    try:
        args = split_arguments(m.group(2) or "") if m else ()
    except ValueError:
        m, args = None, ()
    if not m or not all(args):
        raise PorterError(
            Diagnostic(
                codes.UNREADABLE_INSTANCE,
                f"cannot read instantiation '{text}'",
                help="write it as kernel<type, value, ...>, for example k<__nv_bfloat16, 8>",
            )
        )
    return m.group(1), Instance(args)
