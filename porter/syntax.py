"""Python text to a syntax tree, by one thread at a time."""

from __future__ import annotations

import ast
import threading

# CPython keeps one recursion counter for the trees of all threads: when a garbage collection lets another thread parse
# meanwhile, both find it changed and raise SystemError (python/cpython issue 106905). Candidates and runs of the agent
# are threads.
_lock = threading.Lock()


def module_tree(text: str | bytes) -> ast.Module:
    """As ast.parse: raises SyntaxError, ValueError, RecursionError or MemoryError for what is no module."""
    with _lock:
        return ast.parse(text)


def expression_tree(text: str) -> ast.expr:
    """The tree of one expression. Raises as module_tree does."""
    with _lock:
        return ast.parse(text, mode="eval").body
