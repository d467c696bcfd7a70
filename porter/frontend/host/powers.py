"""Loops that find the next power of two."""

from __future__ import annotations

from porter.frontend.host import terms
from porter.frontend.host.expressions import evaluate, place_of
from porter.frontend.host.nodes import Node
from porter.frontend.host.run import Frame, Run
from porter.frontend.host.terms import Term
from porter.frontend.parse.clang_compat import CursorKind


def next_power(run: Run, frame: Frame, test: Node, body: Node) -> bool:
    """`while (p < n) p *= 2;` from a power of two: the next power of two, up to a limit."""
    statements = body.children if body.kind == CursorKind.COMPOUND_STMT else [body]
    if len(statements) != 1:
        return False
    (s,) = statements
    if s.kind != CursorKind.COMPOUND_ASSIGNMENT_OPERATOR or s.operator not in ("*=", "<<="):
        return False
    factor, place = s.children[1].constant, place_of(run, frame, s.children[0])
    if place is None or factor != (2 if s.operator == "*=" else 1) or not isinstance(place.value, Term):
        return False
    start = place.value.value
    if start is None or start <= 0 or int(start).bit_count() != 1:
        return False
    limits = _limits(test, s.children[0].target_key)
    if not limits:
        return False
    total: Term | None = None
    for limit in limits:
        bound = evaluate(run, frame, limit)
        if not isinstance(bound, Term):
            return False
        power = terms.call("next_pow2", bound)
        total = power if total is None else terms.call("min", total, power)
    assert total is not None
    run.write(place, terms.call("max", total, terms.const(int(start))) if start > 1 else total)
    return True


def _limits(test: Node, key: int) -> list[Node]:
    """The bounds of `p < a && p < b`; [] where the test is another."""
    while test.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR) and len(test.children) == 1:
        test = test.children[0]
    if test.operator == "&&":
        a, b = _limits(test.children[0], key), _limits(test.children[1], key)
        return [*a, *b] if a and b else []
    if test.operator != "<":
        return []
    left = test.children[0]
    while left.kind == CursorKind.UNEXPOSED_EXPR and len(left.children) == 1:
        left = left.children[0]
    return [test.children[1]] if left.kind == CursorKind.DECL_REF_EXPR and left.target_key == key else []
