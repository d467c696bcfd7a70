"""Operators, conversions and limits of half, bfloat16 and fp8 classes and of their pairs: plain IR operations."""

from __future__ import annotations

from porter import codes, ir
from porter.frontend.lower.body import FunctionLowering, Untranslatable
from porter.frontend.lower.convert import const, to_type
from porter.frontend.lower.effects import assign, stable
from porter.frontend.parse import ast_facts as ast
from porter.frontend.parse.clang_compat import Cursor
from porter.frontend.parse.clang_compat import Type as ClangType
from porter.ir.printer import type_text

PAIR_OPERATORS = {
    "+": "__hadd2", "-": "__hsub2", "*": "__hmul2", "/": "__h2div", "==": "__hbeq2", "!=": "__hbne2", "<": "__hblt2",
    "<=": "__hble2", ">": "__hbgt2", ">=": "__hbge2",
}  # fmt: skip
COMPARE = ("==", "!=", "<", "<=", ">", ">=")

# std::numeric_limits of the scalar classes, which clang cannot evaluate: max, min (smallest normal), epsilon, infinity.
FLOAT_LIMITS: dict[str, tuple[float, float, float, float]] = {
    "f16": (65504.0, 2.0**-14, 2.0**-10, float("inf")),
    "bf16": (float.fromhex("0x1.fep127"), 2.0**-126, 2.0**-7, float("inf")),
    "e4m3": (448.0, 2.0**-6, 2.0**-3, float("nan")),
    "e5m2": (57344.0, 2.0**-14, 2.0**-2, float("inf")),
}


def is_pair(fx: FunctionLowering, t: ClangType) -> bool:
    return ast.unqualified(referee(t)) in ("__half2", "__nv_bfloat162")


def referee(t: ClangType) -> ClangType:
    t = t.get_canonical()
    return t.get_pointee().get_canonical() if t.kind in ast.REFERENCES else t


def free_operator(fx: FunctionLowering, c: Cursor, op: str, args: list[Cursor]) -> ir.Expr | None:
    """An operator function of the scalar and pair classes, None for one of other classes."""
    types = [a.type for a in args]
    if any(fx.kernel.types.scalar_class(t) is not None for t in types):
        return scalar_operator(fx, c, op, args)
    if any(is_pair(fx, t) for t in types):
        return pair_operator(fx, c, op, args)
    return None


def computes_in_float(types: list[ClangType]) -> bool:
    """True for operands of PyTorch's classes, whose operators convert to float and round; CUDA's are instructions."""
    return any(ast.unqualified(referee(t)).startswith(("c10::", "at::")) for t in types)


def scalar_operator(fx: FunctionLowering, c: Cursor, op: str, args: list[Cursor]) -> ir.Expr:
    """An operator on half/bf16/fp8 values: computed in its result type, comparisons in the wider of the two."""
    rounded = computes_in_float([a.type for a in args])
    if op in ("++", "--"):
        place = stable(fx, fx.place(args[0], write=True), c)
        post = len(args) == 2
        old = fx.temp(place, "old", c) if post else place
        one = const(1.0, place.type)
        assign(fx, c, place, ir.Binary(op[0], place, one, rounded, type=place.type), "=")
        return old
    if op == "=" or (op.endswith("=") and op not in COMPARE):
        value = fx.expr(args[1])
        with fx.collect() as pre:
            target = fx.place(args[0], write=True)
        if pre and not isinstance(value, ir.Const):
            value = fx.temp(value, "value", c)
        fx.emit_all(pre)
        return assign_scalar(fx, c, target, value, op, rounded)
    if len(args) == 1:
        x = fx.expr(args[0])
        return x if op == "+" else ir.Unary(op, x, type=x.type)
    x, y = fx.expr(args[0]), fx.expr(args[1])
    if op in COMPARE:
        wide = _wider(x.type, y.type)
        return ir.Binary(op, to_type(x, wide), to_type(y, wide), type=ir.BOOL)
    result = fx.type(c.type)
    return ir.Binary(op, to_type(x, result), to_type(y, result), rounded, type=result)


def assign_scalar(
    fx: FunctionLowering, c: Cursor, target: ir.Expr, value: ir.Expr, op: str, rounded: bool = False
) -> ir.Expr:
    """`target op= value` of a scalar class: in the target's type, as CUDA's and PyTorch's operators do."""
    t = target.type
    if op == "=":
        fx.emit(ir.Assign(target, to_type(value, t)), c)
        return target
    target = stable(fx, target, c)
    if isinstance(t, ir.Scalar) and t.is_float:
        fx.emit(ir.Assign(target, ir.Binary(op[:-1], target, to_type(value, t), rounded, type=t), op=op), c)
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
        raise Untranslatable(codes.UNSUPPORTED_NARROW_FLOAT, f"comparison of {type_text(a)} and {type_text(b)}")
    if {a.name, b.name} == {"f16", "bf16"}:
        return ir.F32
    return a if order.index(a.name) >= order.index(b.name) else b


def pair_operator(fx: FunctionLowering, c: Cursor, op: str, args: list[Cursor]) -> ir.Expr:
    """An operator on half2 or bfloat162: the intrinsic of the same meaning."""
    if op == "=" or (op.endswith("=") and op not in COMPARE):
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
        raise Untranslatable(codes.UNSUPPORTED_NARROW_FLOAT, f"operator {op} on {type_text(x.type)}")
    name = PAIR_OPERATORS.get(op)
    if name is None:
        raise Untranslatable(codes.UNSUPPORTED_NARROW_FLOAT, f"operator {op} on a pair of half precision values")
    return ir.Intrinsic(name, (fx.expr(args[0]), fx.expr(args[1])), type=fx.type(c.type))


def limit(fx: FunctionLowering, c: Cursor, callee: Cursor) -> ir.Expr:
    """numeric_limits<half>::max() and the like; those of plain types were evaluated by clang already."""
    t = fx.type(c.type)
    limits = FLOAT_LIMITS.get(t.name) if isinstance(t, ir.Scalar) else None
    if limits is None:
        raise Untranslatable(codes.UNSUPPORTED_NARROW_FLOAT, f"numeric_limits of {type_text(t)}")
    biggest, smallest, epsilon, infinity = limits
    table = {
        "max": biggest, "lowest": -biggest, "min": smallest, "epsilon": epsilon, "infinity": infinity,
        "quiet_NaN": float("nan"),
    }  # fmt: skip
    if callee.spelling not in table:
        raise Untranslatable(codes.UNSUPPORTED_NARROW_FLOAT, f"numeric_limits::{callee.spelling}")
    return const(table[callee.spelling], t, " ".join(fx.text(c).split()))


def scalar_conversion(fx: FunctionLowering, x: ir.Expr, c: Cursor) -> ir.Expr:
    t = fx.type(c.type)
    if isinstance(t, ir.Struct):  # __half_raw: the bits
        names = {"f16": "__half_as_ushort", "bf16": "__bfloat16_as_ushort"}
        if isinstance(x.type, ir.Scalar) and x.type.name in names and len(t.fields) == 1:
            bits = ir.Intrinsic(names[x.type.name], (x,), type=ir.U16)
            return ir.StructInit((bits,), type=t)
        raise Untranslatable(codes.UNSUPPORTED_NARROW_FLOAT, f"conversion from {type_text(x.type)} to {t.name}")
    return to_type(x, t)
