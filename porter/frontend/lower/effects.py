"""Side effects as statements: assignment, ++ and --, discarded expressions, and operators that evaluate conditionally.

The normal form wants pure expressions, so effects inside an expression are emitted before it, in C++'s order.
"""

from __future__ import annotations

from dataclasses import replace

from porter import codes, ir
from porter.frontend.lower.bits import read_bits, with_bits
from porter.frontend.lower.body import FunctionLowering, KernelLowering, Untranslatable
from porter.frontend.lower.convert import condition, const, to_type
from porter.frontend.lower.flow.recursion import known
from porter.frontend.lower.types import usual_arithmetic
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.ir.if_chains import ELSE_IFS, Link, chain

# Intrinsics that change memory, synchronise, stop, or ask for the time: by prefix and by name.
_EFFECT_PREFIXES = (
    "atomic", "__st", "__sync", "__threadfence", "__trap", "__brkpt", "printf", "vprintf", "__assert", "__pipeline",
    "cub::", "cooperative_groups::", "nvcuda::", "cuda::", "thrust::", "curand", "cuda", "__nanosleep", "__barrier",
    "__match_all", "__builtin_nontemporal_store", "__prof", "clock", "globaltimer",
)  # fmt: skip
_EFFECT_NAMES = frozenset(
    [
        "assert", "memcpy", "memset", "memmove", "malloc", "free", "copy", "copy_n", "fill", "fill_n", "sort", "swap",
        "exchange", "sincos", "sincosf", "__sincosf", "sincospi", "sincospif", "frexp", "frexpf", "modf", "modff",
        "remquo", "remquof",
    ]
)  # fmt: skip
# Methods and functions of cooperative groups that only ask or exchange values.
_QUESTIONS = frozenset(
    [
        "thread_rank", "size", "num_threads", "meta_group_rank", "meta_group_size", "thread_index", "group_index",
        "group_dim", "dim_threads", "block_rank", "num_blocks", "block_index", "dim_blocks", "shfl", "shfl_up",
        "shfl_down", "shfl_xor", "any", "all", "ballot", "match_any", "match_all", "reduce", "this_thread_block",
        "tiled_partition", "coalesced_threads", "this_grid", "this_cluster", "binary_partition", "labeled_partition",
        "inclusive_scan", "exclusive_scan",
    ]
)  # fmt: skip


def intrinsic_has_effect(name: str) -> bool:
    """Whether a call of the intrinsic does more than compute a value from its arguments."""
    if name.startswith("cooperative_groups::") and name.split("::")[-1] in _QUESTIONS:
        return False
    return name in _EFFECT_NAMES or name.startswith(_EFFECT_PREFIXES)


def has_effect(fx: FunctionLowering, x: ir.Expr) -> bool:
    """True when evaluating `x` does more than read."""
    for n in ir.walk(x):
        if isinstance(n, ir.Intrinsic) and intrinsic_has_effect(n.name):
            return True
        if isinstance(n, ir.Call) and fx.kernel.impure.get(n.function, True):
            return True
        if isinstance(n, ir.HoleExpr):
            return True
    return False


def stable(fx: FunctionLowering, place: ir.Expr, at: Cursor) -> ir.Expr:
    """The same place in a form that may be evaluated twice: calls inside it are kept in temporaries."""
    if isinstance(place, ir.Field):
        return replace(place, base=stable(fx, place.base, at))
    if isinstance(place, ir.Index):
        return replace(place, base=stable(fx, place.base, at), index=_stable_value(fx, place.index, at))
    if isinstance(place, ir.Deref):
        ptr = place.ptr
        if isinstance(ptr, ir.PtrAdd):
            ptr = replace(ptr, ptr=_stable_value(fx, ptr.ptr, at), index=_stable_value(fx, ptr.index, at))
        else:
            ptr = _stable_value(fx, ptr, at)
        return replace(place, ptr=ptr)
    if isinstance(place, ir.Call):
        return fx.temp(place, "ref", at, ref=True)
    return place


def _stable_value(fx: FunctionLowering, x: ir.Expr, at: Cursor) -> ir.Expr:
    if any(isinstance(n, (ir.Call, ir.Intrinsic, ir.HoleExpr)) for n in ir.walk(x)):
        return fx.temp(x, "t", at)
    return x


# ---------------------------------------------------------------- assignment


def assign_expression(fx: FunctionLowering, c: Cursor) -> ir.Expr:
    """Emit the assignment of a `=` or `op=` cursor; the value of the expression is the assigned place."""
    from porter.frontend.lower.expressions import bit_field  # cycle: an assignment is an expression

    left, right = ast.values(c)
    op = cc.binary_op(c)
    value = fx.root(right)
    with fx.collect() as pre_bits:
        bits = bit_field(fx, left)
    if bits is not None:
        fx.emit_all(pre_bits)
        return assign_bits(fx, c, *bits, value, op)
    with fx.collect() as before_left:
        target = fx.place(left, write=True)
    if before_left and not isinstance(value, ir.Const) and not fx.is_temp(value):
        # C++17 evaluates the right side first; keep its value before the left side's effects happen.
        value = fx.temp(value, "value", c)
    fx.emit_all(before_left)
    return assign(fx, c, target, value, op)


def assign_bits(fx: FunctionLowering, c: Cursor, base: ir.Expr, field: Cursor, value: ir.Expr, op: str) -> ir.Expr:
    """Emit `base.field op value` for a bit-field; the result is its value, not a place."""
    base = stable(fx, base, c)
    if op != "=":
        value = compound_value(fx, read_bits(base, field), op[:-1], value)
    place, new = with_bits(base, field, value)
    fx.emit(ir.Assign(place, new, op=op), c)
    return read_bits(base, field)


def assign(fx: FunctionLowering, c: Cursor, target: ir.Expr, value: ir.Expr, op: str) -> ir.Expr:
    """Emit `target op value`. For compound operators the computation is done in C++'s common type."""
    if isinstance(target, ir.HoleExpr):
        fx.emit(ir.HoleStmt(target.code, fx.text(c), target.reason), c)
        return target
    if op == "=":
        fx.emit(ir.Assign(target, to_type(value, target.type)), c)
        return target
    target = stable(fx, target, c)
    fx.emit(ir.Assign(target, compound_value(fx, target, op[:-1], value), op=op), c)
    return target


def compound_value(fx: FunctionLowering, target: ir.Expr, op: str, value: ir.Expr) -> ir.Expr:
    """`target op value` converted back to the target's type."""
    from porter.frontend.lower.expressions import operation  # cycle: an assignment is an expression

    t = target.type
    if isinstance(t, ir.Pointer):
        return operation(fx, op, target, value, t)
    if isinstance(value, ir.HoleExpr):
        return replace(value, type=t)
    if not isinstance(t, ir.Scalar) or not isinstance(value.type, ir.Scalar):
        raise Untranslatable(codes.UNSUPPORTED, f"operator {op}= on {t}")
    if op in ("<<", ">>"):
        common = usual_arithmetic(t, t)
        return to_type(ir.Binary(op, to_type(target, common), value, type=common), t)
    common = usual_arithmetic(t, value.type)
    return to_type(ir.Binary(op, to_type(target, common), to_type(value, common), type=common), t)


def increment(fx: FunctionLowering, c: Cursor, operand: Cursor, op: str, wanted: bool) -> ir.Expr:
    """`++x`, `x--`, ...: the change as a statement. The value is the place, or for x++ the value before."""
    from porter.frontend.lower.expressions import bit_field  # cycle: an assignment is an expression

    with fx.collect() as pre_bits:
        bits = bit_field(fx, operand)
    if bits is not None:
        fx.emit_all(pre_bits)
        value = read_bits(*bits)
        before = fx.temp(value, "old", c) if wanted and op.startswith("x") else None
        after = assign_bits(fx, c, *bits, const(1, ir.I32), "+=" if "++" in op else "-=")
        return before if before is not None else after
    place = stable(fx, fx.place(operand, write=True), c)
    t = place.type
    step = 1 if "++" in op else -1
    old: ir.Expr = place
    if wanted and op.startswith("x"):
        old = fx.temp(place, "old", c)
    if isinstance(t, ir.Pointer):
        new: ir.Expr = ir.PtrAdd(place, const(step, ir.I32), type=t)
    elif isinstance(t, ir.Scalar):
        common = usual_arithmetic(t, ir.I32)
        one = const(1.0 if common.is_float else 1, common)
        new = ir.Binary("+" if step > 0 else "-", to_type(place, common), one, type=common)
        new = to_type(new, t)
    else:
        raise Untranslatable(codes.UNSUPPORTED, f"{op} on {t}")
    fx.emit(ir.Assign(place, new, op="+=" if step > 0 else "-="), c)
    return old


# ---------------------------------------------------------------- conditional evaluation


def short_circuit(fx: FunctionLowering, c: Cursor, op: str, a: Cursor, b: Cursor) -> ir.Expr:
    """`a && b`, `a || b`; when b needs statements of its own they run only if C++ would evaluate b."""
    x = condition(fx.expr(a))
    decided = known(x) if fx.folds else None
    if decided is not None and bool(decided) == (op == "||"):
        return const(bool(decided), ir.BOOL)
    with fx.collect() as pre:
        y = condition(fx.expr(b))
    if not pre:
        return ir.Binary(op, x, y, type=ir.BOOL)
    name = fx.fresh("cond")
    result = ir.Var(name, type=ir.BOOL)
    fx.emit(ir.Decl(name, ir.BOOL, x), c)
    test: ir.Expr = result if op == "&&" else ir.Unary("!", result, type=ir.BOOL)
    fx.emit(ir.If(test, (*pre, ir.Assign(result, y))), c)
    return result


def select(fx: FunctionLowering, c: Cursor, test: Cursor, yes: Cursor, no: Cursor) -> ir.Expr:
    """`test ? yes : no`. Arms that need statements of their own become an if with a temporary."""
    links, last = _select_links(test, yes, no)
    if len(links) > ELSE_IFS and c.type.get_canonical().kind is not TypeKind.VOID:
        return _long_select(fx, c, links, last)
    cond = condition(fx.expr(test))
    chosen = known(cond) if fx.folds else None
    if chosen is not None and c.type.get_canonical().kind is not TypeKind.VOID:
        return to_type(fx.expr(yes if chosen else no), fx.type(c.type))
    with fx.collect() as pre_a:
        a = fx.expr(yes)
    with fx.collect() as pre_b:
        b = fx.expr(no)
    if c.type.get_canonical().kind is TypeKind.VOID:
        fx.emit(ir.If(cond, _with_effect(fx, pre_a, a), _with_effect(fx, pre_b, b)), c)
        return const(0, ir.VOID)
    t = fx.type(c.type)
    a, b = to_type(a, t), to_type(b, t)
    if not pre_a and not pre_b:
        return ir.Select(cond, a, b, type=t)
    name = fx.fresh("sel")
    result = ir.Var(name, type=t)
    fx.emit(ir.Decl(name, t), c)
    fx.emit(ir.If(cond, (*pre_a, ir.Assign(result, a)), (*pre_b, ir.Assign(result, b))), c)
    return result


def _select_links(test: Cursor, yes: Cursor, no: Cursor) -> tuple[list[tuple[Cursor, Cursor]], Cursor]:
    """(condition, value) of `a ? x : b ? y : ... : last`, at most one more than a statement takes, and the rest."""
    links = [(test, yes)]
    while len(links) <= ELSE_IFS:
        inner = ast.strip(no)
        if inner.kind is not CursorKind.CONDITIONAL_OPERATOR:
            break
        test, yes, no = ast.values(inner)
        links.append((test, yes))
    return links, no


def _long_select(fx: FunctionLowering, c: Cursor, links: list[tuple[Cursor, Cursor]], last: Cursor) -> ir.Expr:
    """A chain of conditional operators with too many links for one expression: a chain of ifs with a temporary."""
    more = ast.strip(last)
    while more.kind is CursorKind.CONDITIONAL_OPERATOR:
        test, yes, last = ast.values(more)
        links.append((test, yes))
        more = ast.strip(last)
    t = fx.type(c.type)
    result = ir.Var(fx.fresh("sel"), type=t)
    fx.emit(ir.Decl(result.name, t), c)
    arms = []
    for test, yes in links:
        with fx.collect() as pre:
            cond = condition(fx.expr(test))
        arms.append(Link(cond, _kept(fx, result, yes), tuple(pre), fx.kernel.span(test)))
    for s in chain(arms, _kept(fx, result, last), fx.fresh):
        fx.emit(s, c)
    return result


def _kept(fx: FunctionLowering, result: ir.Var, value: Cursor) -> tuple[ir.Stmt, ...]:
    """The statements that assign a value to a temporary."""
    with fx.collect() as out:
        fx.emit(ir.Assign(result, to_type(fx.expr(value), result.type)), value)
    return tuple(out)


def _with_effect(fx: FunctionLowering, pre: list[ir.Stmt], x: ir.Expr) -> tuple[ir.Stmt, ...]:
    return (*pre, ir.ExprStmt(x)) if has_effect(fx, x) else tuple(pre)


# ---------------------------------------------------------------- discarded values


def discard(fx: FunctionLowering, c: Cursor) -> None:
    """Emit what an expression statement does; a value without effect leaves nothing."""
    c = ast.strip(c)
    kind = c.kind
    if kind is CursorKind.UNEXPOSED_EXPR and len(ast.values(c)) == 1:
        discard(fx, ast.values(c)[0])
        return
    if kind is CursorKind.UNARY_OPERATOR:
        op = cc.unary_op(c)
        if op in ("x++", "x--", "++x", "--x"):
            increment(fx, c, ast.values(c)[0], op, wanted=False)
            return
    if kind in (CursorKind.BINARY_OPERATOR, CursorKind.COMPOUND_ASSIGNMENT_OPERATOR):
        op = cc.binary_op(c)
        if op == ",":
            for part in ast.values(c):
                discard(fx, part)
            return
        if op in ("&&", "||"):
            _discard_short_circuit(fx, c, op)
            return
        if op.endswith("=") and op not in ("==", "!=", "<=", ">="):
            assign_expression(fx, c)
            return
    if kind in (CursorKind.CSTYLE_CAST_EXPR, CursorKind.CXX_STATIC_CAST_EXPR, CursorKind.CXX_FUNCTIONAL_CAST_EXPR):
        inner = ast.values(c)
        if inner and c.type.get_canonical().kind is TypeKind.VOID:
            discard(fx, inner[-1])
            return
    if kind is CursorKind.CONDITIONAL_OPERATOR:
        test, yes, no = ast.values(c)
        cond = condition(fx.expr(test))
        with fx.collect() as a:
            discard(fx, yes)
        with fx.collect() as b:
            discard(fx, no)
        if a or b:
            fx.emit(ir.If(cond, tuple(a), tuple(b)), c)
        return
    x = fx.root(c)
    if isinstance(x, ir.HoleExpr):
        fx.emit(ir.HoleStmt(x.code, x.cuda, x.reason), c)
    elif kind is CursorKind.CALL_EXPR and _is_plain_assignment(fx, c) and fx.is_place(x):
        return  # the assignment is emitted already; x is only the assigned place
    elif isinstance(x, ir.Call) or has_effect(fx, x):
        fx.emit(ir.ExprStmt(x), c)


def _is_plain_assignment(fx: FunctionLowering, c: Cursor) -> bool:
    """An overloaded assignment, ++ or -- that lowers to Assign statements, not to a call."""
    callee = c.referenced
    if callee is None or not callee.spelling.startswith("operator"):
        return False
    op = callee.spelling[8:].strip()
    changes = op in ("++", "--") or (op.endswith("=") and op not in ("==", "!=", "<=", ">="))
    return changes and (fx.kernel.is_prelude(callee) or is_plain_copy(callee))


def is_plain_copy(callee: Cursor) -> bool:
    """An operator= that the compiler makes."""
    return callee.kind is CursorKind.CXX_METHOD and callee.spelling == "operator=" and callee.is_default_method()


def _discard_short_circuit(fx: FunctionLowering, c: Cursor, op: str) -> None:
    a, b = ast.values(c)
    cond = condition(fx.expr(a))
    with fx.collect() as then:
        discard(fx, b)
    if then:
        test = cond if op == "&&" else ir.Unary("!", cond, type=ir.BOOL)
        fx.emit(ir.If(test, tuple(then)), c)


# ---------------------------------------------------------------- what a function writes

EVERYTHING = "*"


def written_by(kernel: KernelLowering, function: ir.Function) -> frozenset[str]:
    """What a call of the function may change for others: names of its reference parameters, or EVERYTHING.

    Synchronisation counts as EVERYTHING: other threads may have written meanwhile.
    """
    own = {p.name for p in function.params if not p.by_ref}
    refs = {p.name for p in function.params if p.by_ref}
    for n in ir.walk(function.body):
        if isinstance(n, ir.Decl):
            (refs if n.ref else own).add(n.name)
    params = {p.name for p in function.params if p.by_ref}
    out: set[str] = set()
    for n in ir.walk(function.body):
        if isinstance(n, ir.Assign):
            out.add(_owner(n.target, own, params))
        elif isinstance(n, ir.Asm):
            if n.volatile or n.memory:
                out.add(EVERYTHING)
            out.update(_owner(place, own, params) for _, place in n.outputs)
        elif isinstance(n, (ir.HoleStmt, ir.HoleExpr)):
            out.add(EVERYTHING)
        elif isinstance(n, ir.Intrinsic):
            if intrinsic_has_effect(n.name):
                out.add(EVERYTHING)
        elif isinstance(n, ir.Call):
            inner = kernel.written.get(n.function, frozenset({EVERYTHING}))
            if EVERYTHING in inner:
                out.add(EVERYTHING)
            callee = kernel.functions.get(n.function)
            if callee is not None:
                for p, a in zip(callee.params, n.args, strict=True):
                    if p.name in inner:
                        out.add(_owner(a, own, params))
    out.discard("")
    return frozenset(out)


def _owner(place: ir.Expr, own: set[str], params: set[str]) -> str:
    """Whose memory a place is: "" for the function's own, a reference parameter's name, else EVERYTHING."""
    while True:
        if isinstance(place, (ir.Field, ir.Index)):
            place = place.base
        elif isinstance(place, ir.Deref):
            pointer = place.ptr
            while isinstance(pointer, (ir.PtrAdd, ir.Cast)):
                pointer = pointer.ptr if isinstance(pointer, ir.PtrAdd) else pointer.x
            if not isinstance(pointer, (ir.AddressOf, ir.Decay)):
                return EVERYTHING
            place = pointer.place
        elif isinstance(place, ir.Var):
            return "" if place.name in own else place.name if place.name in params else EVERYTHING
        else:
            return EVERYTHING
