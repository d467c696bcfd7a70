"""Calls of what CUDA, the C++ library, cub, cooperative groups and PyTorch's scalar types provide."""

from __future__ import annotations

import re
from typing import Any

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable
from porter.frontend.lower.construct import from_raw
from porter.frontend.lower.convert import address_of, const, convert, to_type
from porter.frontend.lower.expressions import member_base, object_of
from porter.frontend.lower.function import template_argument
from porter.frontend.lower.library.functors import function_argument, sum_of_records
from porter.frontend.lower.library.half import COMPARE, assign_scalar, free_operator, limit, referee, scalar_conversion
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor, CursorKind, TypeKind
from porter.frontend.parse.clang_compat import Type as ClangType

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


def library_call(
    fx: FunctionLowering, c: Cursor, callee: Cursor, obj: Cursor | None, args: list[Cursor], root: bool
) -> ir.Expr:
    """A call of a function that the prelude declares."""
    args = [a for a in args if not ast.is_default_argument(a)]
    full = ast.qualified_name(callee)
    name = plain_name(full)
    is_method = callee.kind in (CursorKind.CXX_METHOD, CursorKind.CONVERSION_FUNCTION)
    if is_written_out(callee):
        from porter.frontend.lower.calls import object_place, takes_this  # cycle: its body is called like a user's

        place = object_place(fx, c, callee, obj) if takes_this(callee) else None
        return _prelude_body(fx, c, callee, place, args, root)
    if is_method and (not callee.is_static_method() or (obj is not None and _opaque_owner(fx, callee))):
        return _method(fx, c, callee, obj, args, root, full)
    if callee.spelling.startswith("operator") and not callee.spelling[8:9].isalnum():
        x = free_operator(fx, c, callee.spelling[8:].strip(), args)
        return x if x is not None else intrinsic(fx, c, callee, callee.spelling, args, [])
    if name in PASS_THROUGH and args:
        return fx.expr(args[-1])
    if name == "addressof":
        return address_of(fx.place(args[0], write=True), fx.type(c.type))
    if name in ("__builtin_expect", "__builtin_expect_with_probability"):
        return fx.expr(args[0])
    if name in _ASSUMPTIONS:
        return fx.expr(args[0]) if name.endswith("aligned") else const(0, ir.VOID)
    if VECTOR_MAKERS.match(name):
        return _make_vector(fx, c, args)
    if "numeric_limits" in full:
        return limit(fx, c, callee)
    if _lower_body_instead(fx, callee, full, name):
        return _prelude_body(fx, c, callee, None, args, root)
    if name in ("min", "max") and len(args) == 1:
        return _of_list(fx, c, name, args[0])
    return intrinsic(fx, c, callee, name, args, [])


def is_written_out(callee: Cursor) -> bool:
    """Whether the prelude says that a function's body there is what it does (PORTER_BODY)."""
    definition = ast.definition(callee)
    holders = [definition, *([definition.specialized_template] if definition.specialized_template else [])]
    annotated = any(
        k.kind is CursorKind.ANNOTATE_ATTR and k.spelling == "porter_body" for h in holders for k in h.get_children()
    )
    return annotated and ast.body_of(definition) is not None


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
    from porter.frontend.lower.calls import user_call  # cycle: its body is called like a user's

    return user_call(fx, ast.definition(callee), this, args, c, root)


def _make_vector(fx: FunctionLowering, c: Cursor, args: list[Cursor]) -> ir.Expr:
    t = fx.type(c.type)
    if not isinstance(t, ir.Struct) or len(t.fields) != len(args):
        raise Untranslatable(codes.UNSUPPORTED_NARROW_FLOAT, "vector constructor with a different number of values")
    values = tuple(to_type(fx.expr(a), f.type) for a, f in zip(args, t.fields, strict=True))
    return ir.StructInit(values, type=t)


def _of_list(fx: FunctionLowering, c: Cursor, name: str, arg: Cursor) -> ir.Expr:
    """std::max({a, b, c}) as nested two-operand calls."""
    inner = ast.strip(arg)
    while inner.kind is CursorKind.UNEXPOSED_EXPR and len(ast.values(inner)) == 1:
        inner = ast.strip(ast.values(inner)[0])
    items = ast.values(inner) if inner.kind is CursorKind.INIT_LIST_EXPR else []
    if not items:
        raise Untranslatable(codes.UNSUPPORTED, f"std::{name} of a list that is not written out")
    t = fx.type(c.type)
    result = to_type(fx.expr(items[0]), t)
    for item in items[1:]:
        result = ir.Intrinsic(name, (result, to_type(fx.expr(item), t)), type=t)
    return result


# ---------------------------------------------------------------- methods


def _method(
    fx: FunctionLowering, c: Cursor, callee: Cursor, obj: Cursor | None, args: list[Cursor], root: bool, full: str
) -> ir.Expr:
    from porter.frontend.lower.calls import object_place  # cycle: a method of the library is a call

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
            return scalar_conversion(fx, value(), c)
        if callee.spelling.startswith("operator"):
            op = callee.spelling[8:].strip()
            if op == "=" or (op.endswith("=") and op not in COMPARE):
                new = fx.expr(args[0])
                if isinstance(new.type, ir.Struct):
                    new = from_raw(new, types.scalar_class(record))  # type: ignore[arg-type]
                target = fx.as_place(value(), c, write=True)
                return assign_scalar(fx, c, target, new, op)
            x = value()
            if op == "-" and not args:
                return ir.Unary("-", x, type=x.type)
        raise Untranslatable(codes.UNSUPPORTED_NARROW_FLOAT, f"{full} of a half precision type")
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
        return len(params) == 1 and ast.same_type(referee(params[0]), record)
    return False


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
    written = written_arguments(ast.unqualified(t))
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
        callable_argument = function_argument(fx, a, out, callee)
        if callable_argument is not None:
            out.append(callable_argument)
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
    if name.startswith("__porter_shfl"):  # of any type: in the prelude's own bodies
        name = name.replace("__porter_shfl", "__shfl")
    if name in _PYTORCH_WARP:
        name, out = _PYTORCH_WARP[name], _mask_first(out)
    return ir.Intrinsic(name, tuple(out), targs, type=fx.type(c.type))


# ATen/cuda/DeviceUtils.cuh: the intrinsics with the mask last and, as the lane width, optional.
_PYTORCH_WARP = {
    "WARP_SHFL": "__shfl_sync",
    "WARP_SHFL_XOR": "__shfl_xor_sync",
    "WARP_SHFL_UP": "__shfl_up_sync",
    "WARP_SHFL_DOWN": "__shfl_down_sync",
    "WARP_BALLOT": "__ballot_sync",
}


def _mask_first(args: list[ir.Expr]) -> list[ir.Expr]:
    """WARP_SHFL(value, lane, width, mask) or WARP_BALLOT(predicate, mask) in the order of the intrinsics."""
    count = 1 if len(args) < 2 or (len(args) == 2 and args[1].type == ir.U32) else 3
    mask = args[count] if len(args) > count else ir.Const(0xFFFFFFFF, type=ir.U32)
    width = [ir.Const(32, type=ir.I32)] if count == 3 and len(args) < 3 else []
    return [mask, *args[:count], *width]


def _keeps_arguments(name: str) -> bool:
    """Template arguments say what the function does in these; elsewhere they follow from the arguments."""
    return name.split("::")[0] in ("cub", "cooperative_groups", "nvcuda", "cuda") or name in ("bit_cast",)
