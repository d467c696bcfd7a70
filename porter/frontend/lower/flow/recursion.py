"""Recursion whose depth is known: a function for each set of constant arguments, as templates would be written.

A recursive function is lowered once for every combination of constants that it is called with (parameters it never
changes, arguments that are constant where the call stands); conditions over them choose a branch, so that the last of
the chain calls nothing. Where the depth depends on what a kernel reads, no chain ends: that stays a hole.
"""

from __future__ import annotations

from porter import codes, ir
from porter.emit.evaluate import evaluate
from porter.frontend.lower.body import Endless, FunctionLowering, KernelLowering
from porter.frontend.lower.convert import convert
from porter.frontend.lower.lambdas import written_variables
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind

# parameter -> its value, or the type of the group that it is given, in the order of the parameters
Fixed = tuple[tuple[Cursor, int | ir.Struct], ...]
Constants = tuple[tuple[Cursor, int], ...]
DEPTH = 64  # calls inside one another
_MOST = 256  # functions that the recursive functions of a kernel may become
_FUNCTIONS = (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD)


def is_recursive(kernel: KernelLowering, function: Cursor) -> bool:
    """Whether a function of the project may call itself, directly or through others."""
    known = kernel.recursive.get(function)
    if known is None:
        known = kernel.recursive[function] = function.canonical in _reached(kernel, function)
    return known


def _reached(kernel: KernelLowering, function: Cursor) -> set[Cursor]:
    found: set[Cursor] = set()
    queue = [function]
    while queue:
        for callee in _called(kernel, queue.pop()):
            if callee.canonical not in found:
                found.add(callee.canonical)
                queue.append(callee)
    return found


def _called(kernel: KernelLowering, function: Cursor) -> list[Cursor]:
    """Definitions of the project's functions that a function's own text calls."""
    if function not in kernel.called:
        callees = [c.referenced for c in cc.walk(function) if c.kind is CursorKind.CALL_EXPR]
        own = dict.fromkeys(f for f in callees if f is not None and f.kind in _FUNCTIONS and not kernel.is_prelude(f))
        kernel.called[function] = [ast.definition(f) for f in own]
    return kernel.called[function]


def constant_arguments(fx: FunctionLowering, function: Cursor, args: list[Cursor]) -> Constants:
    """The arguments of a call of a recursive function that are constant here. Endless where the chain of
    calls is too long, or none is in the middle of one."""
    params = [p for p in function.get_arguments() if p is not None]
    written = written_variables(FunctionLowering(fx.kernel, function))
    found: list[tuple[Cursor, int]] = []
    for p, a in zip(params, args, strict=False):
        if p in written or p.type.get_canonical().kind in (*ast.REFERENCES, TypeKind.POINTER):
            continue
        if not ast.is_arithmetic(p.type):
            continue
        with fx.collect() as effects:
            value = known(convert(fx, fx.expr(a), a.type, p.type, a))
        if value is not None and not effects:
            found.append((p, value))
    if not found and fx.folds:
        raise Endless(codes.RECURSIVE_FUNCTION, f"recursive call of {function.spelling}, whose depth is not known here")
    kernel = fx.kernel
    if sum(map(_is_specialised, kernel.open)) >= DEPTH or sum(map(_is_specialised, kernel.functions)) >= _MOST:
        raise Endless(
            codes.RECURSIVE_FUNCTION, f"recursive call of {function.spelling}, more than {DEPTH} deep or too often"
        )
    return tuple(found)


def key_of(base: str, fixed: Fixed) -> str:
    """The key of a function lowered for constants and kinds of groups."""
    values = ", ".join(f"{p.spelling}={v.name if isinstance(v, ir.Struct) else v}" for p, v in fixed)
    return f"{base}{{{values}}}" if values else base


def known(e: ir.Expr) -> int | None:
    """The value of an integer or truth value that is constant; the second operand of && and || may not matter."""
    if isinstance(e, ir.Binary) and e.op in ("&&", "||"):
        a, b = known(e.a), known(e.b)
        decides = int(e.op == "||")
        if a is not None and bool(a) == bool(decides):
            return decides
        return None if a is None or b is None else int(bool(b))
    if isinstance(e, ir.Unary) and e.op == "!":
        a = known(e.x)
        return None if a is None else int(not a)
    return evaluate(e, 0, {})


def ends(stmts: list[ir.Stmt]) -> bool:
    """Whether nothing runs behind statements: the last one returns."""
    if not stmts:
        return False
    last = stmts[-1]
    return isinstance(last, ir.Return) or (isinstance(last, ir.Scope) and ends(list(last.body)))


def _is_specialised(key: str) -> bool:
    return key.endswith("}")
