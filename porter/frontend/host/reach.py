"""Which functions launch kernels, themselves or through others."""

from __future__ import annotations

from porter.frontend.host.nodes import Node
from porter.frontend.host.run import Program
from porter.frontend.launches.sites import is_launch
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.declarations import has_body, is_device_code, is_kernel, is_prelude

_FUNCTIONS = (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR)


def launches(program: Program, function: Cursor) -> bool:
    """Whether a launch is reached from a function."""
    key = function.get_usr()
    if key not in program.launching:
        program.launching[key] = False  # for a recursion
        body = function.get_definition() or function
        program.launching[key] = has_body(body) and launches_within(program, program.nodes.of(body))
    return program.launching[key]


def launches_within(program: Program, node: Node) -> bool:
    """Whether a launch is reached from a statement; naming a kernel counts, since it is given to what launches it."""
    for x in node.walk():
        if x.kind == CursorKind.CALL_EXPR and is_launch(x.cursor):
            return True
        target = x.target if x.kind in (CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR) else None
        if target is None or target.kind not in _FUNCTIONS:
            continue
        if is_kernel(target):
            return True
        if not is_prelude(target) and not is_device_code(target) and launches(program, target):
            return True
    return False
