"""Pointers to functions: numbers of the functions whose addresses the kernel takes, and calls as choices among them.

The set is closed where all pointers come from the kernel's own code and constant tables: every function whose address
that code takes has a number, from 1 on (0 is the null pointer), and a call through a pointer asks for the number. What
comes from the host (a parameter of the kernel, memory that it fills) has targets that nobody sees: that stays a hole.
"""

from __future__ import annotations

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, KernelLowering, Untranslatable
from porter.frontend.lower.flow.function_types import NUMBER, concerns_functions, function_type
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.ir.if_chains import ELSE_IFS

_WRAPPERS = (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR)


def number_of(fx: FunctionLowering, target: Cursor) -> ir.Const:
    """The value of a function's address."""
    numbers = _numbers(fx.kernel)
    found = numbers.get(ast.definition(target).canonical)
    if found is None or ast.body_of(ast.definition(target)) is None:
        raise Untranslatable(codes.FUNCTION_POINTER, f"function {target.spelling} used as a value")
    return ir.Const(found, type=NUMBER)


def named_in(c: Cursor) -> Cursor | None:
    """The function that an initialiser or operand names, with or without `&`; None for other expressions."""
    while c.kind in _WRAPPERS or (c.kind is CursorKind.UNARY_OPERATOR and function_type(c.type) is not None):
        inner = ast.values(c)
        if len(inner) != 1:
            return None
        c = inner[0]
    f = c.referenced if c.kind is CursorKind.DECL_REF_EXPR else None
    return f if f is not None and f.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD) else None


def called_result(c: Cursor) -> bool:
    """Whether a call calls what another call returns: `pick(n)(x)`."""
    heads = ast.values(c)
    head = heads[0] if heads else None
    while head is not None and (head.kind in _WRAPPERS or head.kind is CursorKind.UNARY_OPERATOR):
        inner = ast.values(head)
        head = inner[0] if len(inner) == 1 else None
    return head is not None and head.kind is CursorKind.CALL_EXPR and function_type(head.type) is not None


def call_through(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    """A call through a pointer: of the function itself where the pointer is known, else a choice by number."""
    from porter.frontend.lower.calls import user_call  # cycle: a call through a pointer is a call

    heads = ast.values(c)
    called = function_type(heads[0].type) if heads else None
    if called is None:
        raise Untranslatable(codes.FUNCTION_POINTER, "call through a pointer to a member")
    pointer = fx.expr(heads[0])
    if isinstance(pointer, ir.HoleExpr):
        raise Untranslatable(pointer.code, pointer.reason)
    if pointer.type != NUMBER:
        raise Untranslatable(codes.FUNCTION_POINTER, "call through a pointer to function")
    targets = [f for f in _numbers(fx.kernel) if ast.same_type(f.type, called)]
    if isinstance(pointer, ir.Const):
        targets = [f for f in targets if _numbers(fx.kernel)[f] == pointer.value]
    if not targets or len(targets) > ELSE_IFS:
        how = "none is seen" if not targets else f"there are {len(targets)}"
        raise Untranslatable(codes.FUNCTION_POINTER, f"call through a pointer to function, of whose targets {how}")
    args = ast.arguments(c)
    if len(targets) == 1:
        return user_call(fx, ast.definition(targets[0]), None, args, c)
    chosen = pointer if fx.is_temp(pointer) else fx.temp(pointer, "chosen", c)
    result = fx.type(c.type)
    name = "" if result == ir.VOID else fx.fresh("result")
    if name:
        fx.emit(ir.Decl(name, result), c)
    arms: list[tuple[ir.Expr, tuple[ir.Stmt, ...]]] = []
    for f in targets:
        with fx.collect() as stmts:
            value = user_call(fx, ast.definition(f), None, args, c)
            if name:
                fx.emit(ir.Assign(ir.Var(name, type=result), value), c)
            elif isinstance(value, ir.Call):
                fx.emit(ir.ExprStmt(value), c)
        number = ir.Const(_numbers(fx.kernel)[f], type=NUMBER)
        arms.append((ir.Binary("==", chosen, number, type=ir.BOOL), tuple(stmts)))
    chain: tuple[ir.Stmt, ...] = arms[-1][1]  # one of them it is
    for test, arm in reversed(arms[:-1]):
        chain = (ir.If(test, arm, chain),)
    fx.emit_all(_at(fx, chain, c))
    return ir.Var(name, type=result) if name else ir.Const(0, type=ir.VOID)


def _at(fx: FunctionLowering, stmts: tuple[ir.Stmt, ...], c: Cursor) -> list[ir.Stmt]:
    with fx.collect() as out:
        for s in stmts:
            fx.emit(s, c)
    return out


def _numbers(kernel: KernelLowering) -> dict[Cursor, int]:
    """Canonical cursor -> number of each function whose address the kernel's code takes, in the order of the text."""
    if kernel.function_numbers is None:
        kernel.function_numbers = {f: n for n, f in enumerate(_taken(kernel), 1)}
    return kernel.function_numbers


def _taken(kernel: KernelLowering) -> list[Cursor]:
    """Functions of the project named other than to be called, in the kernel and all that it reaches."""
    found: dict[Cursor, None] = {}
    queue = [kernel.root] if kernel.root is not None else []
    seen = {c.canonical for c in queue}
    while queue:
        owner = queue.pop(0)
        for c, called in _references(owner, False):
            target = c.referenced
            if target is None or kernel.is_prelude(target):
                continue
            definition = ast.definition(target)
            if target.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD):
                if not called and not (target.kind is CursorKind.CXX_METHOD and not target.is_static_method()):
                    found.setdefault(definition.canonical)
            elif target.kind is not CursorKind.VAR_DECL or target.semantic_parent.kind is CursorKind.FUNCTION_DECL:
                continue
            if definition.canonical not in seen:
                seen.add(definition.canonical)
                queue.append(definition)
    return list(found)


def _references(c: Cursor, called: bool) -> list[tuple[Cursor, bool]]:
    """(reference, whether it is what a call calls) of every name below a cursor."""
    out = [(c, called)] if c.kind in (CursorKind.DECL_REF_EXPR, CursorKind.MEMBER_REF_EXPR) else []
    heads = ast.values(c)[:1] if c.kind is CursorKind.CALL_EXPR else []
    for k in c.get_children():
        head = (called and c.kind in _WRAPPERS) or any(k == h for h in heads)
        out += _references(k, head)
    return out


def refuse_parameter(p: Cursor) -> None:
    """Raises Untranslatable for a kernel's parameter that leads to functions: the host chooses them."""
    if concerns_functions(p.type):
        raise Untranslatable(codes.FUNCTION_POINTER, "the host chooses the function that it points to")
