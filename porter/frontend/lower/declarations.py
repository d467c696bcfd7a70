"""Local declarations: variables, references, shared and static arrays, lambdas, structured bindings."""

from __future__ import annotations

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable
from porter.frontend.lower.comments import spelled_constexpr
from porter.frontend.lower.construct import construct
from porter.frontend.lower.convert import to_type, typed_value
from porter.frontend.lower.globals import alignment, global_variable
from porter.frontend.lower.init import converted_item, init_list
from porter.frontend.lower.library.groups import declared_group
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind

_NAMED_THINGS = {
    CursorKind.TYPE_ALIAS_DECL, CursorKind.TYPEDEF_DECL, CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL,
    CursorKind.UNION_DECL, CursorKind.ENUM_DECL, CursorKind.USING_DECLARATION, CursorKind.USING_DIRECTIVE,
    CursorKind.STATIC_ASSERT, CursorKind.NAMESPACE_ALIAS, CursorKind.FUNCTION_DECL, CursorKind.CLASS_TEMPLATE,
    CursorKind.TYPE_ALIAS_TEMPLATE_DECL,
}  # fmt: skip


def declaration(fx: FunctionLowering, d: Cursor) -> None:
    """Emit what one declarator of a declaration statement does."""
    if d.kind is CursorKind.VAR_DECL:
        variable(fx, d)
    elif d.kind is CursorKind.UNION_DECL and d.is_anonymous_record_decl():
        it = fx.type(d.type)
        name = fx.fresh("unnamed")
        fx.anonymous[ast.unqualified(d.type)] = ir.Var(name, type=it)
        fx.emit(ir.Decl(name, it), d)
    elif d.kind in _NAMED_THINGS or d.kind.is_reference() or d.kind.is_attribute():
        return
    elif d.kind is CursorKind.UNEXPOSED_DECL and d.spelling.startswith("["):
        binding(fx, d)
    elif d.kind is CursorKind.UNEXPOSED_DECL:
        return  # static_assert, empty declaration
    else:
        raise Untranslatable(codes.UNSUPPORTED, f"declaration of kind {d.kind.name}")


def variable(fx: FunctionLowering, d: Cursor) -> None:
    t = d.type.get_canonical()
    attributes = ast.attributes(d)
    init = ast.initializer(d)
    if ast.is_closure(t):
        if init is not None:
            fx.expr(init)  # registers the lambda; a closure is no value
        fx.decls[d] = ir.StructInit((), type=fx.type(t))
        return
    if CursorKind.CUDASHARED_ATTR in attributes:
        shared(fx, d)
        return
    if d.storage_class.name in ("STATIC", "EXTERN"):
        if d.type.is_const_qualified() and ast.is_arithmetic(t) and init is not None and ast.evaluate(init) is not None:
            _plain(fx, d, init)
        elif init is not None and ast.is_const(d.type):
            fx.decls[d] = global_variable(fx, d, d)
        return  # any other is a symbol, where it is used
    group = declared_group(fx, d, init)
    if group is not None:
        name = fx.declare(d, group)
        fx.emit(ir.Decl(name, group, ir.StructInit((), type=group)), d)
        return
    if t.kind in ast.REFERENCES:
        reference(fx, d, init)
        return
    if init is None:
        it = fx.type(t)
        fx.emit(ir.Decl(fx.declare(d, it), it), d)
        return
    inner = ast.strip(init)
    if (
        inner.kind is CursorKind.CALL_EXPR
        and inner.referenced is not None
        and (inner.referenced.kind is CursorKind.CONSTRUCTOR)
    ):
        built(fx, d, inner)
        return
    _plain(fx, d, init)


def _plain(fx: FunctionLowering, d: Cursor, init: Cursor) -> None:
    it = fx.type(d.type)
    if init.kind is CursorKind.INIT_LIST_EXPR:
        value = init_list(fx, init, d.type)
    elif ast.same_type(init.type, d.type):
        value = fx.root(init)
    else:
        value = converted_item(fx, init, d.type)
    is_constexpr = spelled_constexpr(fx, d)
    if is_constexpr and ast.is_arithmetic(d.type):
        known = ast.evaluate(init)
        if known is not None:
            fx.constants[d.spelling] = typed_value(known, it)
    if isinstance(it, (ir.Scalar, ir.Pointer)):
        value = to_type(value, it)
    name = fx.declare(d, it)
    fx.emit(ir.Decl(name, it, value, d.type.is_const_qualified(), is_constexpr), d)


def built(fx: FunctionLowering, d: Cursor, call: Cursor) -> None:
    """`T x(args)`: a declaration, then the constructor on it, unless the constructor is a plain value."""
    it = fx.type(d.type)
    is_const = d.type.is_const_qualified()
    with fx.collect() as pre:
        name = fx.declare(d, it)
        place = ir.Var(name, type=it)
        value = construct(fx, call, target=place)
    if value is not None:
        fx.emit_all(pre)
        if isinstance(it, (ir.Scalar, ir.Pointer)):
            value = to_type(value, it)
        fx.emit(ir.Decl(name, it, value, is_const, spelled_constexpr(fx, d)), d)
        return
    fx.emit(ir.Decl(name, it), d)
    fx.emit_all(pre)


def reference(fx: FunctionLowering, d: Cursor, init: Cursor | None) -> None:
    """`T& r = place`; a reference to a temporary is a variable that holds it."""
    if init is None:
        raise Untranslatable(codes.UNSUPPORTED, f"reference {d.spelling} without an initialiser")
    referee = d.type.get_canonical().get_pointee()
    writes = not referee.is_const_qualified() and d.type.get_canonical().kind is TypeKind.LVALUEREFERENCE
    if ast.is_closure(referee):
        fx.expr(init)
        fx.decls[d] = ir.StructInit((), type=fx.type(referee))
        return
    x = fx.root(init)
    if isinstance(x, ir.Select) and writes:
        x = fx.as_place(x, init, write=True)
    is_ref = fx.is_place(x)
    if not is_ref and writes and not isinstance(x, ir.HoleExpr):
        raise Untranslatable(codes.UNSUPPORTED, f"reference {d.spelling} to something without a place")
    t = x.type if is_ref else fx.type(d.type)
    name = fx.declare(d, t)
    fx.emit(ir.Decl(name, t, x, is_const=referee.is_const_qualified(), ref=is_ref), d)


def shared(fx: FunctionLowering, d: Cursor) -> None:
    it = fx.type(d.type)
    dynamic = isinstance(it, ir.Array) and it.length == 0
    name = fx.declare(d, it)
    fx.emit(ir.SharedDecl(name, it, dynamic, alignment(fx, d), scratch=fx.kernel.is_prelude(d)), d)


def binding(fx: FunctionLowering, d: Cursor) -> None:
    """`auto [a, b] = value`: the names stand for the fields (or elements) of a hidden variable."""
    names = [k for k in d.get_children() if k.kind is CursorKind.UNEXPOSED_DECL]
    values = [k for k in d.get_children() if k.kind.is_expression()]
    if not values:
        raise Untranslatable(codes.UNSUPPORTED, "structured binding without a value")
    text = fx.text(d)
    by_ref = "&" in text.split("[")[0]
    x = fx.root(values[-1])
    if not (by_ref and fx.is_place(x)):
        x = fx.temp(x, "_".join(k.spelling for k in names), d, const=False)
    if isinstance(x.type, ir.Array):
        for i, k in enumerate(names):
            fx.decls[k] = ir.Index(x, ir.Const(i, type=ir.I32), type=x.type.elem)
        return
    if isinstance(x.type, ir.Struct) and x.type.name.startswith("std::tuple<"):
        for k in names:
            if isinstance(x.type, ir.Struct) and len(x.type.fields) >= 1:
                head = x.type.fields[0]
                fx.decls[k] = ir.Field(x, head.name, type=head.type)
                if len(x.type.fields) > 1:
                    x = ir.Field(x, x.type.fields[1].name, type=x.type.fields[1].type)
        return
    if not isinstance(x.type, ir.Struct) or len(x.type.fields) != len(names):
        raise Untranslatable(codes.UNSUPPORTED, "structured binding of a class with other members than names")
    for k, f in zip(names, x.type.fields, strict=True):
        fx.decls[k] = ir.Field(x, f.name, type=f.type)
