"""Chains of else-ifs in IR: long ones as several statements.

A chain nests a level with every link, and CuTeDSL makes functions of the branches, one inside the other. After so many
links a flag says that none of them was taken, and the chain goes on beside the statement instead of inside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from porter import ir
from porter.source import NO_SPAN, Span

ELSE_IFS = 24  # links of one statement


@dataclass(frozen=True)
class Link:
    """`if (cond) body`; `pre` runs before the test of `cond`, and only when that is reached."""

    cond: ir.Expr
    body: tuple[ir.Stmt, ...]
    pre: tuple[ir.Stmt, ...] = ()
    span: Span = NO_SPAN


def chain(links: Sequence[Link], last: tuple[ir.Stmt, ...], fresh: Callable[[str], str]) -> tuple[ir.Stmt, ...]:
    """The statements of `if ... else if ... else last`; `fresh` gives names that are not taken."""
    if len(links) <= ELSE_IFS:
        return _nested(links, last)
    span = links[0].span
    rest = ir.Var(fresh("rest"), type=ir.BOOL, span=span)

    def now(value: bool) -> ir.Stmt:
        return ir.Assign(rest, ir.Const(value, type=ir.BOOL, span=span), span=span)

    out: list[ir.Stmt] = [ir.Decl(rest.name, ir.BOOL, ir.Const(False, type=ir.BOOL, span=span), span=span)]
    for start in range(0, len(links), ELSE_IFS):
        part = links[start : start + ELSE_IFS]
        is_last = start + ELSE_IFS >= len(links)
        nested = _nested(part, last if is_last else (now(True),))
        if start == 0:
            out += nested
            continue
        body = nested if is_last else (now(False), *nested)
        out.append(ir.If(rest, body, span=part[0].span))
    return tuple(out)


def _nested(links: Sequence[Link], last: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    for link in reversed(links):
        last = (*link.pre, ir.If(link.cond, link.body, last, span=link.span))
    return last
