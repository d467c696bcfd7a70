"""Statements: blocks with their comments, declarations, branches, loops, returns."""

from __future__ import annotations

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable, statement
from porter.frontend.lower.comments import attach, index_of, join, unroll_of
from porter.frontend.lower.convert import condition, const, convert
from porter.frontend.lower.declarations import declaration
from porter.frontend.lower.flow.jumps import resolve
from porter.frontend.lower.flow.recursion import ends, known
from porter.frontend.lower.init import init_list
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.ir.if_chains import ELSE_IFS, Link, chain

# ---------------------------------------------------------------- blocks


def lower_block(fx: FunctionLowering, c: Cursor) -> None:
    """Emit the statements of a compound statement (or the one statement), comments attached."""
    if c.kind is not CursorKind.COMPOUND_STMT:
        fx.stmt(c)
        return
    start = c.extent.start
    if start.file is None:
        for k in c.get_children():
            fx.stmt(k)
        return
    index = index_of(fx.kernel, start.file.name)
    at = start.offset + 1
    groups: list[list[ir.Stmt]] = []
    for k in c.get_children():
        with fx.collect() as out:
            fx.stmt(k)
        where = k.extent
        inside = where.start.file is not None and where.start.file.name == start.file.name
        if inside and where.start.offset >= at:
            leading = []
            for comment in index.between(at, where.start.offset):
                if groups and index.trails(comment, at):
                    attach(groups[-1], comment.text)
                else:
                    leading.append(comment)
            attach(out, join(leading))
        groups.append(out)
        if inside:
            at = max(at, where.end.offset)
        if fx.folds and ends(out):
            break
    for comment in index.between(at, c.extent.end.offset):
        if groups and index.trails(comment, at):
            attach(groups[-1], comment.text)
    fx.emit_all(resolve(fx, [s for out in groups for s in out]))


@statement(CursorKind.COMPOUND_STMT)
def compound(fx: FunctionLowering, c: Cursor) -> None:
    body = fx.block(c)
    if body:
        fx.emit(ir.Scope(body), c)


@statement(CursorKind.NULL_STMT)
def null(fx: FunctionLowering, c: Cursor) -> None:
    pass


@statement(CursorKind.UNEXPOSED_STMT)
def attributed(fx: FunctionLowering, c: Cursor) -> None:
    """A statement with attributes: a loop with `#pragma unroll`, `[[likely]]`, `[[fallthrough]]`."""
    inner = ast.values(c)
    if len(inner) != 1:
        raise Untranslatable(codes.UNSUPPORTED, "statement of a kind that libclang does not show")
    loop = inner[0]
    with fx.collect() as out:
        fx.stmt(loop)
    if loop.kind in (CursorKind.FOR_STMT, CursorKind.CXX_FOR_RANGE_STMT):
        count = unroll_of(fx, c, loop)
        for i, s in enumerate(out):
            if isinstance(s, ir.For) and i == len(out) - 1:
                out[i] = ir.For(s.init, s.cond, s.step, s.body, count, comment=s.comment, span=s.span)
    fx.emit_all(out)


@statement(CursorKind.DECL_STMT)
def declarations(fx: FunctionLowering, c: Cursor) -> None:
    for d in c.get_children():
        declaration(fx, d)


# ---------------------------------------------------------------- branches


@statement(CursorKind.IF_STMT)
def if_statement(fx: FunctionLowering, c: Cursor) -> None:
    parts = [k for k in c.get_children() if k.kind.is_expression() or k.kind.is_statement() or k.kind.is_declaration()]
    if parts and parts[0].kind is CursorKind.DECL_STMT:
        fx.stmt(parts.pop(0))  # if (init; cond)
    test: ir.Expr | None = None
    if parts and parts[0].kind is CursorKind.VAR_DECL:  # if (T x = ...)
        declaration(fx, parts.pop(0))
        if not (parts and parts[0].kind.is_expression()):
            raise Untranslatable(codes.UNSUPPORTED, "condition that libclang does not show")
    if len(parts) == 4 and parts[0].kind.is_expression():
        fx.discard(parts.pop(0))
    links, last = _else_ifs(fx, c, parts)
    if len(links) > ELSE_IFS:
        _long_chain(fx, c, links, last)
        return
    head, *arms = parts
    is_constexpr, taken = _constexpr_condition(fx, c, head)
    test = condition(fx.expr(head))
    chosen = known(test) if fx.folds else None
    if chosen is not None:
        arm = arms[0] if chosen else arms[1] if len(arms) > 1 else None
        if arm is not None:
            fx.emit(ir.Scope(fx.block(arm)), c)
        return
    then = fx.block(arms[0]) if arms else ()
    orelse = fx.block(arms[1]) if len(arms) > 1 else ()
    if is_constexpr and taken is not None:
        then, orelse = (then, ()) if taken else ((), orelse)
    fx.emit(ir.If(test, then, orelse, is_constexpr, taken), c)


def _else_ifs(
    fx: FunctionLowering, c: Cursor, parts: list[Cursor], most: int | None = ELSE_IFS + 1
) -> tuple[list[tuple[Cursor, list[Cursor]]], Cursor | None]:
    """(statement, condition and body) of the links of a chain, `most` at most, and the else of the last one.

    A link with `constexpr` or a declaration of its own ends the chain: it is a statement in the else of the one before.
    """
    links: list[tuple[Cursor, list[Cursor]]] = []
    while len(parts) in (2, 3) and parts[0].kind.is_expression() and not _constexpr_condition(fx, c, parts[0])[0]:
        links.append((c, parts[:2]))
        if len(parts) == 2:
            return links, None
        c = parts[2]
        if c.kind is not CursorKind.IF_STMT or len(links) == most:
            return links, c
        parts = ast.values(c)
        if any(k.kind.is_declaration() for k in c.get_children()):
            return links, c
    return links, c


def _long_chain(fx: FunctionLowering, c: Cursor, links: list[tuple[Cursor, list[Cursor]]], last: Cursor | None) -> None:
    """More else-ifs than one statement takes."""
    while last is not None and last.kind is CursorKind.IF_STMT:
        more, after = _else_ifs(fx, last, ast.values(last), None)
        if not more:
            break
        links, last = [*links, *more], after
    arms = []
    for at, (head, body) in links:
        with fx.collect() as pre:
            cond = condition(fx.expr(head))
        arms.append(Link(cond, fx.block(body), tuple(pre), fx.kernel.span(at)))
    for s in chain(arms, fx.block(last) if last is not None else (), fx.fresh):
        fx.emit(s, c)


def _constexpr_condition(fx: FunctionLowering, c: Cursor, head: Cursor) -> tuple[bool, bool | None]:
    """(written `if constexpr`, evaluated condition)."""
    text = fx.text(
        c,
    ).lstrip()
    if not (text.startswith("if") and text[2:].lstrip().startswith("constexpr")):
        start, at = c.extent.start, head.extent.start
        if start.file is None or at.file is None:
            return False, None
        data = fx.kernel.texts.data(start.file.name)
        gap = data[start.offset : start.offset + 40].decode("utf-8", "replace")
        if gap.replace("\n", " ").split("(")[0].split() != ["if", "constexpr"]:
            return False, None
    value = ast.evaluate(head)
    return (True, bool(value)) if value is not None else (False, None)


# ---------------------------------------------------------------- loops


def loop_condition(fx: FunctionLowering, c: Cursor) -> tuple[ir.Expr, tuple[ir.Stmt, ...]]:
    """A loop's condition and the statements that must run before each test."""
    with fx.collect() as pre:
        test = condition(fx.expr(c))
    return test, tuple(pre)


@statement(CursorKind.WHILE_STMT)
def while_statement(fx: FunctionLowering, c: Cursor) -> None:
    parts = [k for k in c.get_children() if k.kind.is_expression() or k.kind.is_statement() or k.kind.is_declaration()]
    if parts[0].kind.is_declaration():
        raise Untranslatable(codes.UNSUPPORTED, "declaration as a loop condition")
    test, pre = loop_condition(fx, parts[0])
    body = fx.block(parts[1]) if len(parts) > 1 else ()
    fx.emit(ir.While(test, body, pre), c)


@statement(CursorKind.DO_STMT)
def do_statement(fx: FunctionLowering, c: Cursor) -> None:
    parts = ast.values(c)
    body = fx.block(parts[0])
    test, post = loop_condition(fx, parts[-1])
    if isinstance(test, ir.Const) and not test.value and not post and not _leaves(body):
        fx.emit(ir.Scope(body), c)  # do { ... } while (0)
        return
    fx.emit(ir.DoWhile(body, test, post), c)


def _leaves(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a break or continue of the enclosing loop stands in the body."""
    for s in body:
        if isinstance(s, (ir.Break, ir.Continue)):
            return True
        if isinstance(s, ir.If) and (_leaves(s.then) or _leaves(s.orelse)):
            return True
        if isinstance(s, ir.Scope) and _leaves(s.body):
            return True
        if isinstance(s, ir.Switch) and any(_leaves(b) for _, b in s.cases):
            return True
    return False


@statement(CursorKind.FOR_STMT)
def for_statement(fx: FunctionLowering, c: Cursor) -> None:
    init_c, cond_c, step_c, body_c = for_parts(fx, c)
    with fx.collect() as init:
        if init_c is not None:
            fx.stmt(init_c)
    test: ir.Expr | None = None
    pre: tuple[ir.Stmt, ...] = ()
    if cond_c is not None:
        test, pre = loop_condition(fx, cond_c)
    body = fx.block(body_c)
    with fx.collect() as step:
        if step_c is not None:
            fx.stmt(step_c)
    if pre and test is not None:
        leave = ir.If(ir.Unary("!", test, type=ir.BOOL), (ir.Break(),))
        body = (*pre, leave, *body)
        test = None
    fx.emit(ir.For(tuple(init), test, tuple(step), body), c)


def for_parts(fx: FunctionLowering, c: Cursor) -> tuple[Cursor | None, Cursor | None, Cursor | None, Cursor]:
    """init, condition, step and body. libclang gives only the parts that are there: a condition is of type bool."""
    parts = [k for k in c.get_children() if k.kind.is_expression() or k.kind.is_statement() or k.kind.is_declaration()]
    *head, body = parts
    if any(k.kind is CursorKind.VAR_DECL for k in head):
        raise Untranslatable(codes.UNSUPPORTED, "declaration as a loop condition")
    if len(head) == 3:
        return head[0], head[1], head[2], body
    init = cond = step = None
    rest = list(head)
    if rest and rest[0].kind is CursorKind.DECL_STMT:
        init = rest.pop(0)
    kinds = [k.type.get_canonical().kind is TypeKind.BOOL for k in rest]
    if len(rest) == 2 and not kinds[0] and init is None:
        init = rest.pop(0)
        kinds.pop(0)
    if len(rest) == 2:
        return init, rest[0], rest[1], body
    if len(rest) == 1:
        if kinds[0]:
            cond = rest[0]
        elif init is None and _semicolons_before(fx, c, rest[0]) == 0:
            init = rest[0]
        else:
            step = rest[0]
    return init, cond, step, body


def _semicolons_before(fx: FunctionLowering, c: Cursor, part: Cursor) -> int:
    start, at = c.extent.start, part.extent.start
    if start.file is None:
        return 2
    return fx.kernel.texts.data(start.file.name)[start.offset : at.offset].count(b";")


@statement(CursorKind.CXX_FOR_RANGE_STMT)
def range_for(fx: FunctionLowering, c: Cursor) -> None:
    """`for (auto& x : array)` as a counted loop over the array."""
    parts = list(c.get_children())
    var = next(k for k in parts if k.kind is CursorKind.VAR_DECL)
    rest = [k for k in parts if k.kind.is_expression() or k.kind.is_statement()]
    if len(rest) != 2:
        raise Untranslatable(codes.UNSUPPORTED, "range for with an initialiser")
    source, body_c = rest
    array = fx.place(source)
    if (
        isinstance(array.type, ir.Struct)
        and len(array.type.fields) == 1
        and (isinstance(array.type.fields[0].type, ir.Array) and array.type.name.startswith("std::array<"))
    ):
        inner = array.type.fields[0]
        array = ir.Field(array, inner.name, type=inner.type)
    if not isinstance(array.type, ir.Array):
        raise Untranslatable(codes.RANGE_FOR_OVER_NO_ARRAY, "range for over something that is not an array")
    name = fx.fresh("i")
    index = ir.Var(name, type=ir.I32)
    element = ir.Index(array, index, type=array.type.elem)
    ref = var.type.get_canonical().kind in ast.REFERENCES
    with fx.collect() as body:
        if ref:
            x_name = fx.declare(var, element.type)
            fx.emit(ir.Decl(x_name, element.type, element, ref=True), var)
        else:
            elem_type = source.type.get_canonical()
            while elem_type.kind is TypeKind.CONSTANTARRAY:
                elem_type = elem_type.get_array_element_type()
                break
            value = convert(fx, element, elem_type, var.type, var) if ast.is_arithmetic(var.type) else element
            x_name = fx.declare(var, value.type)
            fx.emit(ir.Decl(x_name, value.type, value, is_const=var.type.is_const_qualified()), var)
        body.extend(fx.block(body_c))
    fx.emit(
        ir.For(
            (ir.Decl(name, ir.I32, const(0, ir.I32)),),
            ir.Binary("<", index, const(int(array.type.length), ir.I32), type=ir.BOOL),
            (ir.Assign(index, ir.Binary("+", index, const(1, ir.I32), type=ir.I32), op="+="),),
            tuple(body),
        ),
        c,
    )


# ---------------------------------------------------------------- jumps


@statement(CursorKind.BREAK_STMT)
def break_statement(fx: FunctionLowering, c: Cursor) -> None:
    fx.emit(ir.Break(), c)


@statement(CursorKind.CONTINUE_STMT)
def continue_statement(fx: FunctionLowering, c: Cursor) -> None:
    fx.emit(ir.Continue(), c)


@statement(CursorKind.RETURN_STMT)
def return_statement(fx: FunctionLowering, c: Cursor) -> None:
    inner = ast.values(c)
    if not inner:
        fx.emit(ir.Return(), c)
        return
    if fx.return_type == ir.VOID:
        fx.discard(inner[0])
        fx.emit(ir.Return(), c)
        return
    if fx.returns_reference:
        fx.emit(ir.Return(fx.place(inner[0], write=True)), c)
        return
    value = fx.root(inner[0])
    if inner[0].kind is CursorKind.INIT_LIST_EXPR:
        value = init_list(fx, inner[0], fx.cursor.result_type)
    fx.emit(ir.Return(value), c)
