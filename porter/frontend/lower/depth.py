"""Deep expressions as several statements.

C++ writes sums of thousands of terms; Python nests parentheses 200 deep, CuTeDSL rewrites trees by recursion, and so do
porter's passes. What is deeper than DEPTH is kept in temporaries where it is lowered: statements that an operand needs
go before the expression anyway, under the condition under which C++ evaluates it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from porter import ir

DEPTH = 32  # of an expression's tree; a level can become three parentheses of the port
_FRAMES = 50_000  # Python calls that may be open; lowering takes about six for a level of clang's tree


def depth(x: ir.Expr) -> int:
    """Nodes on the longest way down from an expression, itself included. Every node is asked once."""
    known = x.__dict__.get("_depth")
    if known is None:
        known = 1 + max((depth(c) for c in ir.children(x) if isinstance(c, ir.Expr)), default=0)
        object.__setattr__(x, "_depth", known)
    return int(known)


_lock = threading.Lock()
_inside = 0  # threads
_before = 0  # the limit that the first one found


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Python's limit on open calls high enough for clang's tree of an expression of thousands of terms.

    The limit is the process's: the first thread raises it, the last one puts it back. Back it must go, since Python's
    own parser, which reads text that others wrote, takes the same limit and would use up the C stack.
    """
    global _inside, _before
    with _lock:
        if not _inside:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, _FRAMES))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                sys.setrecursionlimit(_before)
