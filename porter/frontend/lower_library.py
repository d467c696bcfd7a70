"""Calls of what CUDA, the C++ library, cub, cooperative groups and PyTorch's scalar types provide."""

from __future__ import annotations

import re
from typing import Any

from porter import ir
from porter.frontend import ast_facts as ast
from porter.frontend.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.clang_compat import Type as ClangType
from porter.frontend.lower_body import FunctionLowering, Untranslatable
from porter.frontend.lower_convert import const, convert, to_type
from porter.frontend.lower_effects import assign, stable
from porter.frontend.lower_function import lower_function, template_argument

# Functions of the C++ library that are one thing in CUDA too, whatever body the prelude gives them.
STD_INTRINSICS = frozenset(
    [
        "min",
        "max",
        "clamp",
        "abs",
        "swap",
        "exchange",
        "bit_cast",
        "popcount",
        "memcpy",
        "memset",
        "memmove",
        "isnan",
        "isinf",
        "isfinite",
        "fma",
        "sqrt",
        "pow",
        "exp",
        "log",
        "gcd",
        "lcm",
        "unreachable",
        "copy",
        "fill",
        "copy_n",
        "fill_n",
    ]
)
PASS_THROUGH = frozenset(["move", "forward", "as_const", "launder", "ref", "cref", "identity"])
_ASSUMPTIONS = frozenset(
    ["__builtin_assume", "__builtin_assume_porter", "__builtin_assume_aligned", "__builtin_prefetch"]
)
VECTOR_MAKERS = re.compile(
    r"make_(?:(?:u?char|u?short|u?int|u?long|u?longlong|float|double)[1234](?:_32a)?|half2|bfloat162)$"
)
PAIR_OPERATORS = {
    "+": "__hadd2", "-": "__hsub2", "*": "__hmul2", "/": "__h2div", "==": "__hbeq2", "!=": "__hbne2", "<": "__hblt2",
    "<=": "__hble2", ">": "__hbgt2", ">=": "__hbge2",
}  # fmt: skip
_COMPARE = ("==", "!=", "<", "<=", ">", ">=")

# std::numeric_limits of the scalar classes, which clang cannot evaluate: max, min (smallest normal), epsilon, infinity.
FLOAT_LIMITS: dict[str, tuple[float, float, float, float]] = {
    "f16": (65504.0, 2.0**-14, 2.0**-10, float("inf")),
    "bf16": (float.fromhex("0x1.fep127"), 2.0**-126, 2.0**-7, float("inf")),
    "e4m3": (448.0, 2.0**-6, 2.0**-3, float("nan")),
    "e5m2": (57344.0, 2.0**-14, 2.0**-2, float("inf")),
}


def library_call(
    fx: FunctionLowering, c: Cursor, callee: Cursor, obj: Cursor | None, args: list[Cursor], root: bool
) -> ir.Expr:
    """A call of a function that the prelude declares."""
    args = [a for a in args if not ast.is_default_argument(a)]
    full = ast.qualified_name(callee)
    name = plain_name(full)
    is_method = callee.kind in (CursorKind.CXX_METHOD, CursorKind.CONVERSION_FUNCTION)
    if is_method and (not callee.is_static_method() or (obj is not None and _opaque_owner(fx, callee))):
        return _method(fx, c, callee, obj, args, root, full)
    if callee.spelling.startswith("operator") and not callee.spelling[8:9].isalnum():
        return _free_operator(fx, c, callee, callee.spelling[8:].strip(), args)
    if name in PASS_THROUGH and args:
        return fx.expr(args[-1])
    if name == "addressof":
        from porter.frontend.lower_convert import address_of

        return address_of(fx.place(args[0], write=True), fx.type(c.type))
    if name in ("__builtin_expect", "__builtin_expect_with_probability"):
        return fx.expr(args[0])
    if name in _ASSUMPTIONS:
        return fx.expr(args[0]) if name.endswith("aligned") else const(0, ir.VOID)
    if VECTOR_MAKERS.match(name):
        return _make_vector(fx, c, args)
    if "numeric_limits" in full:
        return _limit(fx, c, callee)
    if _lower_body_instead(fx, callee, full, name):
        return _prelude_body(fx, c, callee, None, args, root)
    if name in ("min", "max") and len(args) == 1:
        return _of_list(fx, c, name, args[0])
    return intrinsic(fx, c, callee, name, args, [])


def _opaque_owner(fx: FunctionLowering, callee: Cursor) -> bool:
    return fx.kernel.types.is_opaque(callee.semantic_parent.type)


def plain_name(full: str) -> str:
    """`std::max` and `cuda::std::max` are `max`; other namespaces stay."""
    for prefix in ("cuda::std::", "std::"):
        if full.startswith(prefix):
            return full[len(prefix) :]
    return full


def _lower_body_instead(fx: FunctionLowering, callee: Cursor, full: str, name: str) -> bool:
    """Library functions that are ordinary C++ (std::get, std::plus): their prelude body is lowered like user code."""
    if name in STD_INTRINSICS or "::" not in full or full.split("::")[0] in ("cub", "cooperative_groups", "nvcuda"):
        return False
    if full.startswith("cuda::") and not full.startswith("cuda::std::"):
        return False
    return ast.body_of(ast.definition(callee)) is not None


def _prelude_body(
    fx: FunctionLowering, c: Cursor, callee: Cursor, this: ir.Expr | None, args: list[Cursor], root: bool
) -> ir.Expr:
    from porter.frontend.lower_calls import user_call

    return user_call(fx, ast.definition(callee), this, args, c, root)


# ---------------------------------------------------------------- scalar classes and vectors


def _is_pair(fx: FunctionLowering, t: ClangType) -> bool:
    return ast.bare(_referee(t)) in ("__half2", "__nv_bfloat162")


def _referee(t: ClangType) -> ClangType:
    t = t.get_canonical()
    return t.get_pointee().get_canonical() if t.kind in ast.REFERENCES else t


def _free_operator(fx: FunctionLowering, c: Cursor, callee: Cursor, op: str, args: list[Cursor]) -> ir.Expr:
    types = [a.type for a in args]
    if any(fx.kernel.types.scalar_class(t) is not None for t in types):
        return _scalar_operator(fx, c, op, args)
    if any(_is_pair(fx, t) for t in types):
        return _pair_operator(fx, c, op, args)
    return intrinsic(fx, c, callee, f"operator{op}", args, [])


def _scalar_operator(fx: FunctionLowering, c: Cursor, op: str, args: list[Cursor]) -> ir.Expr:
    """An operator on half/bf16/fp8 values: computed in its result type, comparisons in the wider of the two."""
    if op in ("++", "--"):
        place = stable(fx, fx.place(args[0], write=True), c)
        post = len(args) == 2
        old = fx.temp(place, "old", c) if post else place
        one = const(1.0, place.type)
        assign(fx, c, place, ir.Binary(op[0], place, one, type=place.type), "=")
        return old
    if op == "=" or (op.endswith("=") and op not in _COMPARE):
        value = fx.expr(args[1])
        with fx.collect() as pre:
            target = fx.place(args[0], write=True)
        if pre and not isinstance(value, ir.Const):
            value = fx.temp(value, "value", c)
        fx.emit_all(pre)
        return assign_scalar(fx, c, target, value, op)
    if len(args) == 1:
        x = fx.expr(args[0])
        return x if op == "+" else ir.Unary(op, x, type=x.type)
    x, y = fx.expr(args[0]), fx.expr(args[1])
    if op in _COMPARE:
        wide = _wider(x.type, y.type)
        return ir.Binary(op, to_type(x, wide), to_type(y, wide), type=ir.BOOL)
    result = fx.type(c.type)
    return ir.Binary(op, to_type(x, result), to_type(y, result), type=result)


def assign_scalar(fx: FunctionLowering, c: Cursor, target: ir.Expr, value: ir.Expr, op: str) -> ir.Expr:
    """`target op= value` of a scalar class: in the target's type, as CUDA's and PyTorch's operators do."""
    t = target.type
    if op == "=":
        fx.emit(ir.Assign(target, to_type(value, t)), c)
        return target
    target = stable(fx, target, c)
    if isinstance(t, ir.Scalar) and t.is_float:
        fx.emit(ir.Assign(target, ir.Binary(op[:-1], target, to_type(value, t), type=t), op=op), c)
        return target
    # float += half: C++ computes in float
    return assign(fx, c, target, value, op)


def _wider(a: ir.Type, b: ir.Type) -> ir.Type:
    order = [
        "bool",
        "i8",
        "u8",
        "i16",
        "u16",
        "i32",
        "u32",
        "i64",
        "u64",
        "e2m1",
        "e8m0",
        "e5m2",
        "e4m3",
        "bf16",
        "f16",
    ]
    order += ["f32", "f64"]
    if not isinstance(a, ir.Scalar) or not isinstance(b, ir.Scalar):
        raise Untranslatable("PRT512", f"comparison of {a} and {b}")
    if {a.name, b.name} == {"f16", "bf16"}:
        return ir.F32
    return a if order.index(a.name) >= order.index(b.name) else b


def _pair_operator(fx: FunctionLowering, c: Cursor, op: str, args: list[Cursor]) -> ir.Expr:
    """An operator on half2 or bfloat162: the intrinsic of the same meaning."""
    if op == "=" or (op.endswith("=") and op not in _COMPARE):
        value = fx.expr(args[1])
        target = fx.place(args[0], write=True)
        if op != "=":
            target = stable(fx, target, c)
            value = ir.Intrinsic(PAIR_OPERATORS[op[:-1]], (target, value), type=target.type)
        fx.emit(ir.Assign(target, value, op=op), c)
        return target
    if len(args) == 1:
        x = fx.expr(args[0])
        if op == "+":
            return x
        if op == "-":
            return ir.Intrinsic("__hneg2", (x,), type=x.type)
        raise Untranslatable("PRT512", f"operator {op} on {x.type}")
    name = PAIR_OPERATORS.get(op)
    if name is None:
        raise Untranslatable("PRT512", f"operator {op} on a pair of half precision values")
    return ir.Intrinsic(name, (fx.expr(args[0]), fx.expr(args[1])), type=fx.type(c.type))


def _make_vector(fx: FunctionLowering, c: Cursor, args: list[Cursor]) -> ir.Expr:
    t = fx.type(c.type)
    if not isinstance(t, ir.Struct) or len(t.fields) != len(args):
        raise Untranslatable("PRT512", "vector constructor with a different number of values")
    values = tuple(to_type(fx.expr(a), f.type) for a, f in zip(args, t.fields, strict=True))
    return ir.StructInit(values, type=t)


def _limit(fx: FunctionLowering, c: Cursor, callee: Cursor) -> ir.Expr:
    """numeric_limits<half>::max() and the like; those of plain types were evaluated by clang already."""
    t = fx.type(c.type)
    limits = FLOAT_LIMITS.get(t.name) if isinstance(t, ir.Scalar) else None
    if limits is None:
        raise Untranslatable("PRT512", f"numeric_limits of {t}")
    biggest, smallest, epsilon, infinity = limits
    table = {
        "max": biggest, "lowest": -biggest, "min": smallest, "epsilon": epsilon, "infinity": infinity,
        "quiet_NaN": float("nan"),
    }  # fmt: skip
    if callee.spelling not in table:
        raise Untranslatable("PRT512", f"numeric_limits::{callee.spelling}")
    return const(table[callee.spelling], t, " ".join(fx.text(c).split()))


def _of_list(fx: FunctionLowering, c: Cursor, name: str, arg: Cursor) -> ir.Expr:
    """std::max({a, b, c}) as nested two-operand calls."""
    inner = ast.strip(arg)
    while inner.kind is CursorKind.UNEXPOSED_EXPR and len(ast.values(inner)) == 1:
        inner = ast.strip(ast.values(inner)[0])
    items = ast.values(inner) if inner.kind is CursorKind.INIT_LIST_EXPR else []
    if not items:
        raise Untranslatable("PRT022", f"std::{name} of a list that is not written out")
    t = fx.type(c.type)
    result = to_type(fx.expr(items[0]), t)
    for item in items[1:]:
        result = ir.Intrinsic(name, (result, to_type(fx.expr(item), t)), type=t)
    return result


# ---------------------------------------------------------------- methods


def _method(
    fx: FunctionLowering, c: Cursor, callee: Cursor, obj: Cursor | None, args: list[Cursor], root: bool, full: str
) -> ir.Expr:
    from porter.frontend.lower_calls import object_place
    from porter.frontend.lower_expr import member_base, object_of

    record = callee.semantic_parent.type.get_canonical()
    types = fx.kernel.types

    def value() -> ir.Expr:
        if obj is None:
            return object_of(fx, c, None)[0]
        if (
            obj.kind is CursorKind.MEMBER_REF_EXPR
            and obj.referenced is not None
            and (obj.referenced.kind is not CursorKind.FIELD_DECL)
        ):
            return object_of(fx, obj, member_base(obj))[0]
        return fx.expr(obj)

    if types.scalar_class(record) is not None:
        if callee.kind is CursorKind.CONVERSION_FUNCTION:
            return _scalar_conversion(fx, value(), c)
        if callee.spelling.startswith("operator"):
            op = callee.spelling[8:].strip()
            if op == "=" or (op.endswith("=") and op not in _COMPARE):
                new = fx.expr(args[0])
                if isinstance(new.type, ir.Struct):
                    from porter.frontend.lower_construct import from_raw

                    new = from_raw(new, types.scalar_class(record))  # type: ignore[arg-type]
                target = fx.as_place(value(), c, write=True)
                return assign_scalar(fx, c, target, new, op)
            x = value()
            if op == "-" and not args:
                return ir.Unary("-", x, type=x.type)
        raise Untranslatable("PRT512", f"{full} of a half precision type")
    if callee.spelling == "operator=" and args and _is_assignment_of_same(callee, record):
        new = convert(fx, fx.root(args[0]), args[0].type, record, args[0])
        target = fx.as_place(value(), c, write=True)
        fx.emit(ir.Assign(target, new), c)
        return target
    if callee.kind is CursorKind.CONVERSION_FUNCTION and ast.qualified_name(record.get_declaration()) == "dim3":
        x = value()
        return ir.StructInit(tuple(ir.Field(x, axis, type=ir.U32) for axis in "xyz"), type=fx.type(c.type))
    functor_call = callee.spelling == "operator()"
    if (functor_call or not types.is_opaque(record)) and ast.body_of(ast.definition(callee)) is not None:
        place = object_place(fx, c, callee, obj)
        return _prelude_body(fx, c, callee, place, args, root)
    x = value()
    class_args = _class_arguments(fx, record)
    return intrinsic(fx, c, callee, plain_name(full), args, [x], tuple(class_args))


def _is_assignment_of_same(callee: Cursor, record: ClangType) -> bool:
    """A plain copy assignment that the prelude does not spell out."""
    if callee.is_default_method() or ast.body_of(ast.definition(callee)) is None:
        params = list(callee.type.get_canonical().argument_types())
        return len(params) == 1 and ast.same_type(_referee(params[0]), record)
    return False


def _scalar_conversion(fx: FunctionLowering, x: ir.Expr, c: Cursor) -> ir.Expr:
    t = fx.type(c.type)
    if isinstance(t, ir.Struct):  # __half_raw: the bits
        names = {"f16": "__half_as_ushort", "bf16": "__bfloat16_as_ushort"}
        if isinstance(x.type, ir.Scalar) and x.type.name in names and len(t.fields) == 1:
            bits = ir.Intrinsic(names[x.type.name], (x,), type=ir.U16)
            return ir.StructInit((bits,), type=t)
        raise Untranslatable("PRT512", f"conversion from {x.type} to {t.name}")
    return to_type(x, t)


# ---------------------------------------------------------------- intrinsics


def opaque_value(fx: FunctionLowering, c: Cursor, t: ClangType, args: list[Cursor]) -> ir.Expr | None:
    """A library handle built: `cub::BlockReduce<float, 256>(storage)`; None when it is default-constructed."""
    args = [a for a in args if not ast.is_default_argument(a)]
    ctor = c.referenced
    if len(args) == 1 and ctor is not None and (ctor.is_copy_constructor() or ctor.is_move_constructor()):
        return fx.expr(args[0])
    if len(args) == 1 and ast.same_type(args[0].type, t):
        return fx.expr(args[0])
    if not args and not fx.text(c).rstrip().endswith((")", "}")):
        return None
    if not args:
        return ir.StructInit((), type=fx.type(t))
    name = plain_name(ast.qualified_name(t.get_declaration()))
    return intrinsic(fx, c, ctor, name, args, [], tuple(_class_arguments(fx, t)))


def _class_arguments(fx: FunctionLowering, t: ClangType) -> list[Any]:
    decl = t.get_canonical().get_declaration()
    owner = decl.semantic_parent
    out: list[Any] = []
    if owner is not None and owner.kind in (CursorKind.STRUCT_DECL, CursorKind.CLASS_DECL):
        out += _class_arguments(fx, owner.type)
    written = written_arguments(ast.bare(t))
    return out + _arguments_of(fx, decl)[: written if written else None]


def written_arguments(spelling: str) -> int:
    """How many template arguments a canonical type spelling shows: clang leaves out those equal to their defaults."""
    if not spelling.endswith(">"):
        return 0
    depth = count = 0
    for ch in reversed(spelling):
        depth += (ch == ">") - (ch == "<")
        if depth == 0:
            return count + 1
        count += ch == "," and depth == 1
    return 0


def _arguments_of(fx: FunctionLowering, decl: Cursor) -> list[Any]:
    n = decl.get_num_template_arguments()
    params = ast.template_parameters(decl) if n > 0 else []
    values = [template_argument(fx.kernel, decl, i, params[i] if i < len(params) else None) for i in range(max(0, n))]
    return [v for v in values if v is not None]


def intrinsic(
    fx: FunctionLowering,
    c: Cursor,
    callee: Cursor | None,
    name: str,
    args: list[Cursor],
    before: list[ir.Expr],
    targs: tuple[Any, ...] = (),
) -> ir.Expr:
    """The call as an `ir.Intrinsic`; arguments bound to non-const references are places."""
    params = list(callee.type.get_canonical().argument_types()) if callee is not None else []
    out = list(before)
    for i, a in enumerate(args):
        p = params[i].get_canonical() if i < len(params) else None
        f = named_function(a)
        if f is not None and not fx.kernel.is_prelude(f):
            out.append(ir.Intrinsic("function", (), (lower_function(fx, ast.definition(f)).key,), type=ir.VOID))
        elif _is_functor(fx, a.type):
            out.append(functor(fx, a, out))
        elif p is not None and p.kind is TypeKind.LVALUEREFERENCE and not p.get_pointee().is_const_qualified():
            out.append(fx.place(a, write=True))
        else:
            out.append(fx.expr(a))
    addition = sum_of_records(fx, name, args)
    if addition is not None:
        out.append(addition)
    if not targs and callee is not None and callee.kind is CursorKind.FUNCTION_DECL and _keeps_arguments(name):
        # Types follow from the arguments; numbers (tiled_partition<32>) do not.
        targs = tuple(a for a in _arguments_of(fx, callee) if not isinstance(a, ir.Type))
    if name == "__assert_porter":
        name = "assert"
    return ir.Intrinsic(name, tuple(out), targs, type=fx.type(c.type))


def _keeps_arguments(name: str) -> bool:
    """Template arguments say what the function does in these; elsewhere they follow from the arguments."""
    return name.split("::")[0] in ("cub", "cooperative_groups", "nvcuda", "cuda") or name in ("bit_cast",)


def _is_functor(fx: FunctionLowering, t: ClangType) -> bool:
    """A user's functor or a lambda, handed to a library algorithm."""
    t = _referee(t)
    if ast.is_closure(t):
        return True
    if t.kind is not TypeKind.RECORD or fx.kernel.types.scalar_class(t) is not None:
        return False
    decl = ast.definition(t.get_declaration())
    return not fx.kernel.is_prelude(decl) and call_operator(decl) is not None


def named_function(a: Cursor) -> Cursor | None:
    """The function that an argument names (`reduce(group, x, my_max)`)."""
    while a.kind in (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR, CursorKind.UNARY_OPERATOR):
        inner = ast.values(a)
        if len(inner) != 1:
            return None
        a = inner[0]
    f = a.referenced if a.kind is CursorKind.DECL_REF_EXPR else None
    return f if f is not None and f.kind is CursorKind.FUNCTION_DECL else None


def call_operator(record: Cursor) -> Cursor | None:
    for k in record.get_children():
        if k.kind in (CursorKind.CXX_METHOD, CursorKind.FUNCTION_TEMPLATE) and k.spelling == "operator()":
            return k
    return None


def functor(fx: FunctionLowering, a: Cursor, others: list[ir.Expr]) -> ir.Expr:
    """A functor argument: Intrinsic `function` with the key of its operator() in targs and the object as argument.

    `others` are the arguments before it: they say which instance of a generic operator() is meant.
    """
    value = fx.expr(a)
    record = ast.definition(_referee(a.type).get_declaration())
    op = call_operator(record)
    if op is not None and op.kind is CursorKind.FUNCTION_TEMPLATE:
        f = _instance_for(fx, op, others)
        if f is None:
            raise Untranslatable("PRT310", "generic functor handed to a library algorithm")
    elif op is not None:
        f = lower_function(fx, ast.definition(op))
    else:
        raise Untranslatable("PRT310", "functor without a call operator")
    fx.captured |= fx.kernel.captured.get(f.key, set()) - {fx}
    takes_object = bool(f.params) and f.params[0].name == "this"
    objects = (fx.as_place(value, a),) if takes_object else ()
    return ir.Intrinsic("function", objects, (f.key,), type=value.type)


def _instance_for(fx: FunctionLowering, op: Cursor, others: list[ir.Expr]) -> ir.Function | None:
    """The instance of a generic operator() that the kernel calls itself with values of the types at hand."""
    types = [x.type for x in others]
    for cursor, key in fx.kernel.keys.items():
        f = fx.kernel.functions.get(key)
        if f is None or cursor.specialized_template is None or cursor.specialized_template != op:
            continue
        if any(p.type in types for p in f.params if p.name != "this"):
            return f
    return None


def sum_of_records(fx: FunctionLowering, name: str, args: list[Cursor]) -> ir.Expr | None:
    """The user's operator+ that cub's sums apply to values of a user class, as a `function` argument."""
    if not name.startswith("cub::") or not name.endswith("Sum") or not args:
        return None
    t = _referee(args[0].type)
    if t.kind is not TypeKind.RECORD or fx.kernel.types.scalar_class(t) is not None:
        return None
    record = ast.definition(t.get_declaration())
    if fx.kernel.is_prelude(record):
        return None
    for k in record.get_children():
        if k.kind is CursorKind.CXX_METHOD and k.spelling == "operator+" and ast.body_of(ast.definition(k)) is not None:
            return ir.Intrinsic("function", (), (lower_function(fx, ast.definition(k)).key,), type=ir.VOID)
    raise Untranslatable("PRT310", "sum of a class whose operator+ is not a method")
