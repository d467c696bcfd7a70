"""Whether an instance reaches functions that the sources only declare (a class template without that type)."""

from __future__ import annotations

from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.declarations import has_body, is_prelude

_MAX_FUNCTIONS = 300


def lacks_bodies(kernel: Cursor) -> bool:
    """True when some project function that the kernel calls, directly or not, has no body to translate."""
    queue, seen = [kernel], {kernel.get_usr()}
    while queue and len(seen) < _MAX_FUNCTIONS:
        for c in cc.walk(queue.pop()):
            callee = c.referenced if c.kind == CursorKind.CALL_EXPR else None
            if callee is None or callee.kind not in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD):
                continue
            usr = callee.get_usr()
            if usr in seen or is_prelude(callee):
                continue
            seen.add(usr)
            definition = callee.get_definition() or callee
            if has_body(definition):
                queue.append(definition)
            elif not callee.spelling.startswith(("operator=", "__builtin_")):
                return True
    return False
