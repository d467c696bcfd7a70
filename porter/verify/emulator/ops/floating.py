"""add, sub, mul, mad, fma, div, min, max, abs, neg and the special functions: f32 and f64 here, other types sent on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.verify.emulator.decode.ir import Instr
from porter.verify.emulator.decode.types import B32, B64, F32, F64, PtxType
from porter.verify.emulator.ops import half, integer, packed
from porter.verify.emulator.ops.algebra import Algebra
from porter.verify.emulator.ops.approximate import approximate
from porter.verify.emulator.ops.table import Mods, PureOp, pure

V = Any
_ROUNDINGS = ("rn", "rz", "rm", "rp")


def saturate(b: Algebra, x: V) -> V:
    """Clamped to [0, 1]; NaN becomes +0."""
    zero, one = b.const_f(32, 0.0), b.const_f(32, 1.0)
    return b.select(b.flt(zero, x), b.select(b.flt(one, x), one, x), zero)


def finish(ftz: bool, sat: bool, fn: Callable[..., V], exact: Callable[..., V] | None = None) -> Callable[..., V]:
    """f32 `fn` with inputs and output flushed (ftz) and the result clamped (sat).

    Hardware flushes results that are subnormal before rounding: `exact` gives the f64 value that tells (correctly on
    which side of 2^-126 it lies).
    """
    if not ftz and not sat:
        return fn

    def wrapped(b: Algebra, *args: V) -> V:
        if ftz:
            args = tuple(b.ftz(a) for a in args)
        r = fn(b, *args)
        if ftz:
            r = b.ftz(r)
            if exact is not None:
                r = flush_rounded_up(b, r, lambda: exact(b, *args))
        return saturate(b, r) if sat else r

    return wrapped


def flush_rounded_up(b: Algebra, r: V, exact: Callable[[], V]) -> V:
    """Results that rounding lifted to the smallest normal number become zero."""
    u = b.bits_of(r)
    smallest = b.eq(b.and_(u, b.const(32, 0x7FFFFFFF)), b.const(32, 0x00800000))

    def flushed() -> V:
        below = b.flt(b.fabs64(exact()), b.const_f(64, 2.0**-126))
        return b.select(below, b.and_(u, b.const(32, 0x80000000)), u)

    return b.as_f32(b.rarely(smallest, flushed, u))


def exact_mul(b: Algebra, x: V, y: V) -> V:
    return b.fmul(b.fpext(x), b.fpext(y))


def exact_fma(b: Algebra, x: V, y: V, z: V) -> V:
    return b.two_sum_odd(exact_mul(b, x, y), b.fpext(z))


def exact_div(b: Algebra, x: V, y: V) -> V:
    return b.fdiv(b.fpext(x), b.fpext(y))


def directed(b: Algebra, mode: str, exact: V, zero_needs_minus: V = None) -> V:
    r = b.f64_to_f32(exact, mode)
    if mode == "rm" and zero_needs_minus is not None:
        r = b.as_f32(b.or_(b.bits_of(r), b.select(zero_needs_minus, b.const(32, 0x80000000), b.const(32, 0))))
    return r


def add32(mode: str, subtract: bool) -> Callable[..., V]:
    if mode == "rn":
        return (lambda b, x, y: b.fsub(x, y)) if subtract else (lambda b, x, y: b.fadd(x, y))

    def fn(b: Algebra, x: V, y: V) -> V:
        if subtract:
            y = b.as_f32(b.xor(b.bits_of(y), b.const(32, 0x80000000)))
        total = b.two_sum_odd(b.fpext(x), b.fpext(y))
        # an exact zero of operands that differ in sign is -0 when rounding down
        differ = b.ne(b.lshr(b.xor(b.bits_of(x), b.bits_of(y)), b.const(32, 31)), b.const(32, 0))
        return directed(b, mode, total, b.and_(differ, b.feq(total, b.const_f(64, 0.0))))

    return fn


def mul32(mode: str) -> Callable[..., V]:
    if mode == "rn":
        return lambda b, x, y: b.fmul(x, y)
    return lambda b, x, y: b.f64_to_f32(b.fmul(b.fpext(x), b.fpext(y)), mode)


def fma32(mode: str) -> Callable[..., V]:
    if mode == "rn":
        return lambda b, x, y, z: b.fma(x, y, z)

    def fn(b: Algebra, x: V, y: V, z: V) -> V:
        product, z64 = b.fmul(b.fpext(x), b.fpext(y)), b.fpext(z)
        total = b.two_sum_odd(product, z64)
        differ = b.ne(b.lshr(b.xor(b.bits_of(product), b.bits_of(z64)), b.const(64, 63)), b.const(64, 0))
        return directed(b, mode, total, b.and_(differ, b.feq(total, b.const_f(64, 0.0))))

    return fn


def _nudge(b: Algebra, q: V, mode: str, remainder: V, positive_means_below: V) -> V:
    """q (nearest) moved to the directed result; `remainder` has the sign of exact - q if `positive_means_below`."""
    zero = b.const_f(64, 0.0)
    above = b.select(positive_means_below, b.flt(remainder, zero), b.flt(zero, remainder))  # q > exact
    below = b.select(positive_means_below, b.flt(zero, remainder), b.flt(remainder, zero))  # q < exact
    u = b.bits_of(q)
    negative = b.ne(b.lshr(u, b.const(32, 31)), b.const(32, 0))
    plus, minus, none = b.const(32, 1), b.const(32, -1), b.const(32, 0)
    up = b.select(negative, minus, plus)
    down = b.select(negative, plus, minus)
    if mode == "rp":
        step = b.select(below, up, none)
    elif mode == "rm":
        step = b.select(above, down, none)
    else:
        step = b.select(b.select(negative, below, above), minus, none)
    return b.as_f32(b.add(u, step))


def div32(mode: str) -> Callable[..., V]:
    if mode == "rn":
        return lambda b, x, y: b.fdiv(x, y)

    def fn(b: Algebra, x: V, y: V) -> V:
        q = b.fdiv(x, y)
        # an infinite quotient of finite operands is an overflow: compare with the largest finite instead
        finite = b.and_(b.flt(b.fabs(x), b.const_f(32, float("inf"))), b.not_(b.feq(y, b.const_f(32, 0.0))))
        overflow = b.and_(finite, b.eq(b.and_(b.bits_of(q), b.const(32, 0x7FFFFFFF)), b.const(32, 0x7F800000)))
        y64 = b.fpext(y)
        rest = b.fsub(b.fpext(x), b.fmul(b.fpext(q), y64))  # exact: q*y has 48 bits and lies near x
        sign_y = b.flt(b.const_f(64, 0.0), y64)
        moved = _nudge(b, q, mode, rest, sign_y)
        negative = b.ne(b.lshr(b.bits_of(q), b.const(32, 31)), b.const(32, 0))
        never = b.ne(b.const(32, 0), b.const(32, 0))
        stay = {"rz": never, "rp": b.not_(negative), "rm": negative}[mode]
        biggest = b.sub(b.bits_of(q), b.const(32, 1))
        moved = b.select(overflow, b.as_f32(b.select(stay, b.bits_of(q), biggest)), moved)
        return moved

    return fn


def sqrt32(mode: str) -> Callable[..., V]:
    if mode == "rn":
        return lambda b, x: b.fsqrt(x)

    def fn(b: Algebra, x: V) -> V:
        q = b.fsqrt(x)
        q64 = b.fpext(q)
        yes = b.eq(b.const(32, 0), b.const(32, 0))
        return _nudge(b, q, mode, b.fsub(b.fpext(x), b.fmul(q64, q64)), yes)

    return fn


def f64_op(op: str, mode: str) -> Callable[..., V]:
    """f64 arithmetic. Of several NaN operands the last is passed on (of a division the first)."""
    nearest: dict[str, Callable[..., V]] = {
        "add": lambda b, x, y: b.fadd(x, y),
        "sub": lambda b, x, y: b.fsub(x, y),
        "mul": lambda b, x, y: b.fmul(x, y),
        "fma": lambda b, x, y, z: b.fma(x, y, z),
        "div": lambda b, x, y: b.fdiv(x, y),
        "sqrt": lambda b, x: b.fsqrt(x),
        "rcp": lambda b, x: b.fdiv(b.const_f(64, 1.0), x),
    }

    def fn(b: Algebra, *args: V) -> V:
        if mode == "rn":
            r = nearest[op](b, *args)
        elif op == "sub":
            r = b.exact64("add", mode, args[0], b.as_f64(b.xor(b.bits_of(args[1]), b.const(64, 1 << 63))))
        else:
            r = b.exact64(op, mode, *args)
        return b.canonical64(r, *(args if op == "div" else reversed(args)))

    return fn


def _mixed(m: Mods, i: Instr, mode: str, sat: bool) -> PureOp | None:
    """add/sub/fma.f32.{f16,bf16}: the narrow operands are widened exactly."""
    if "f32" not in m.left or not ({"f16", "bf16"} & set(m.left)):
        return None
    m.type()
    t = m.type()
    m.done()
    if i.base == "fma":
        op = fma32(mode)
        wide = lambda b, x, y, z: op(b, half.to_f32(b, t, x), half.to_f32(b, t, y), z)  # noqa: E731
        return PureOp((F32,), (t, t, F32), finish(False, sat, wide))
    op = add32(mode, i.base == "sub")
    return PureOp((F32,), (t, F32), finish(False, sat, lambda b, x, y: op(b, half.to_f32(b, t, x), y)))


@pure("add", "sub")
def add(i: Instr) -> PureOp:
    m = Mods(i)
    mode = m.one_of(*_ROUNDINGS, default="rn")
    subtract = i.base == "sub"
    if "f32" in m.left:
        ftz, sat = m.flag("ftz"), m.flag("sat")
        mixed = _mixed(m, i, mode, sat)
        if mixed:
            return mixed
        t = m.type()
        m.done()
        return PureOp((t,), (t, t), finish(ftz, sat, add32(mode, subtract)))
    if "f64" in m.left:
        t = m.type()
        m.done()
        return PureOp((t,), (t, t), f64_op(i.base, mode))
    if "f32x2" in m.left:
        return packed.arithmetic(m, 2, add32(mode, subtract))
    if half.is_half(m):
        return half.arithmetic(m, i.base, mode)
    return integer.add_int(i, m, m.type(), subtract)


@pure("mul")
def mul(i: Instr) -> PureOp:
    m = Mods(i)
    mode = m.one_of(*_ROUNDINGS, default="rn")
    if "f32" in m.left:
        ftz, sat = m.flag("ftz"), m.flag("sat")
        t = m.type()
        m.done()
        return PureOp((t,), (t, t), finish(ftz, sat, mul32(mode), exact_mul))
    if "f64" in m.left:
        t = m.type()
        m.done()
        return PureOp((t,), (t, t), f64_op("mul", mode))
    if "f32x2" in m.left:
        return packed.arithmetic(m, 2, mul32(mode))
    if half.is_half(m):
        return half.arithmetic(m, "mul", mode)
    return integer.mul_int(i, m, m.type())


@pure("fma", "mad")
def fma(i: Instr) -> PureOp:
    m = Mods(i)
    mode = m.one_of(*_ROUNDINGS, default="rn")
    if "f32" in m.left:
        ftz, sat = m.flag("ftz"), m.flag("sat")
        mixed = _mixed(m, i, mode, sat)
        if mixed:
            return mixed
        t = m.type()
        m.done()
        return PureOp((t,), (t, t, t), finish(ftz, sat, fma32(mode), exact_fma))
    if "f64" in m.left:
        t = m.type()
        m.done()
        return PureOp((t,), (t, t, t), f64_op("fma", mode))
    if "f32x2" in m.left:
        return packed.arithmetic(m, 3, fma32(mode))
    if half.is_half(m):
        return half.arithmetic(m, "fma", mode)
    return integer.mad_int(i, m, m.type())


def _div_approx(b: Algebra, x: V, y: V) -> V:
    exact = b.approximate("div", b.fdiv(b.fpext(x), b.fpext(y)), x)
    q = b.fptrunc(exact)
    huge = b.flt(b.const_f(32, 2.0**126), b.fabs(y))
    huge = b.and_(huge, b.flt(b.fabs(y), b.const_f(32, float("inf"))))

    def beyond() -> V:
        # ISA: for 2^126 < |y| < 2^128 the result is 0, or NaN if x is infinite
        sign = b.and_(b.xor(b.bits_of(x), b.bits_of(y)), b.const(32, 0x80000000))
        infinite = b.eq(b.and_(b.bits_of(x), b.const(32, 0x7FFFFFFF)), b.const(32, 0x7F800000))
        return b.select(b.or_(b.isnan(x), infinite), b.const(32, 0x7FFFFFFF), sign)

    return b.as_f32(b.rarely(huge, beyond, b.bits_of(q)))


def _div_full(b: Algebra, x: V, y: V) -> V:
    return b.fptrunc(b.approximate("div", b.fdiv(b.fpext(x), b.fpext(y)), x))


@pure("div")
def div(i: Instr) -> PureOp:
    m = Mods(i)
    mode = m.one_of(*_ROUNDINGS, "approx", "full")
    if "f32" in m.left:
        ftz = m.flag("ftz")
        t = m.type()
        m.done()
        fn = {"approx": _div_approx, "full": _div_full}.get(mode) or div32(mode or "rn")
        return PureOp((t,), (t, t), finish(ftz, False, fn, exact_div))
    if "f64" in m.left:
        t = m.type()
        m.done()
        return PureOp((t,), (t, t), f64_op("div", mode or "rn"))
    return integer.div_int(i, m, m.type())


@pure("rcp", "sqrt")
def rcp_sqrt(i: Instr) -> PureOp:
    m = Mods(i)
    approx = m.flag("approx")
    mode = m.one_of(*_ROUNDINGS, default="rn")
    ftz = m.flag("ftz")
    t = m.type()
    m.done()
    base = i.base
    if t.name == "f64":
        if approx:  # rcp.approx.ftz.f64: the low word of the result is zero
            return PureOp((F64,), (F64,), lambda b, x: _gross64(b, b.fdiv(b.const_f(64, 1.0), _gross64(b, x))))
        return PureOp((t,), (t,), f64_op(base, mode))
    if approx:
        return PureOp((t,), (t,), finish(ftz, False, lambda b, x: b.fptrunc(approximate(b, base, b.fpext(x)))))
    if base == "rcp":
        op = div32(mode)
        reciprocal = lambda b, x: op(b, b.const_f(32, 1.0), x)  # noqa: E731
        exact = lambda b, x: b.fdiv(b.const_f(64, 1.0), b.fpext(x))  # noqa: E731
        return PureOp((t,), (t,), finish(ftz, False, reciprocal, exact))
    return PureOp((t,), (t,), finish(ftz, False, sqrt32(mode)))


def _gross64(b: Algebra, x: V) -> V:
    """f64 cut to its high word, subnormals flushed: what rcp/rsqrt.approx.ftz.f64 read and give."""
    u = b.and_(b.bits_of(x), b.const(64, 0xFFFFFFFF00000000))
    tiny = b.eq(b.and_(u, b.const(64, 0x7FF << 52)), b.const(64, 0))
    u = b.select(tiny, b.and_(u, b.const(64, 1 << 63)), u)
    return b.as_f64(b.select(b.isnan(b.as_f64(u)), b.const(64, 0x7FFFFFFF00000000), u))


@pure("rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def special(i: Instr) -> PureOp:
    m = Mods(i)
    if not m.flag("approx"):
        raise m.unsupported("needs .approx")
    ftz = m.flag("ftz")
    t = m.type()
    m.done()
    base = i.base
    if t.name == "f64" and base == "rsqrt":
        if not ftz:
            return PureOp((F64,), (F64,), lambda b, x: b.canonical64(b.fdiv(b.const_f(64, 1.0), b.fsqrt(x)), x))
        return PureOp((F64,), (F64,), lambda b, x: _gross64(b, b.fdiv(b.const_f(64, 1.0), b.fsqrt(_gross64(b, x)))))
    if t.name == "f32":
        return PureOp((t,), (t,), finish(ftz, False, lambda b, x: b.fptrunc(approximate(b, base, b.fpext(x)))))
    if base in ("ex2", "tanh"):
        return half.special(m, base, t, ftz)
    raise m.unsupported()


@pure("abs", "neg")
def abs_neg(i: Instr) -> PureOp:
    m = Mods(i)
    ftz = m.flag("ftz")
    t = m.type()
    if t.name in ("f32", "f64"):
        m.done()
        raw: PtxType = B32 if t is F32 else B64
        sign = 1 << (t.bits - 1)

        def fn(b: Algebra, x: V) -> V:
            if ftz:
                x = b.bits_of(b.ftz(b.as_f32(x)))
            r = b.and_(x, b.const(t.bits, sign - 1)) if i.base == "abs" else b.xor(x, b.const(t.bits, sign))
            if t is F32:
                return b.rarely(b.isnan(b.as_f32(x)), lambda: b.const(32, 0x7FFFFFFF), r)
            return b.rarely(b.isnan(b.as_f64(x)), lambda: b.or_(x, b.const(64, 1 << 51)), r)

        return PureOp((raw,), (raw,), fn)
    if t.kind == "h" or t.name in ("f16x2", "bf16x2"):
        return half.abs_neg(m, i.base, t, ftz)
    return integer.abs_neg_int(i, m, t)


def min_max32(op: str, nan: bool, xorsign: bool) -> Callable[..., V]:
    """fmin/fmax rules: NaN only if all are NaN (or any, with .NaN); -0 < +0. Works for two or three operands."""

    def two(b: Algebra, x: V, y: V) -> V:
        ux, uy = b.bits_of(x), b.bits_of(y)
        sign = None
        if xorsign:
            sign = b.and_(b.xor(ux, uy), b.const(32, 0x80000000))
            ux, uy = (b.and_(u, b.const(32, 0x7FFFFFFF)) for u in (ux, uy))
            x, y = b.as_f32(ux), b.as_f32(uy)
        # order as sign-magnitude integers: distinguishes the zeros
        kx, ky = (b.xor(u, b.lshr(b.ashr(u, b.const(32, 31)), b.const(32, 1))) for u in (ux, uy))
        first = b.slt(kx, ky) if op == "min" else b.slt(ky, kx)
        r = b.select(first, ux, uy)
        nan_x, nan_y = b.isnan(x), b.isnan(y)
        either = b.or_(nan_x, nan_y)
        canonical = b.const(32, 0x7FFFFFFF)
        if nan:
            r = b.rarely(either, lambda: canonical, r)
        else:
            r = b.rarely(either, lambda: b.select(nan_x, b.select(nan_y, canonical, uy), ux), r)
        if sign is not None:
            r = b.or_(r, sign) if not nan else b.select(either, r, b.or_(r, sign))
        return b.as_f32(r)

    def fn(b: Algebra, *args: V) -> V:
        r = two(b, args[0], args[1])
        return two(b, r, args[2]) if len(args) == 3 else r

    return fn


def _min_max64(op: str) -> Callable[..., V]:
    def fn(b: Algebra, x: V, y: V) -> V:
        ux, uy = b.bits_of(x), b.bits_of(y)
        kx, ky = (b.xor(u, b.lshr(b.ashr(u, b.const(64, 63)), b.const(64, 1))) for u in (ux, uy))
        r = b.select(b.slt(kx, ky) if op == "min" else b.slt(ky, kx), ux, uy)
        nan_x, nan_y = b.isnan(x), b.isnan(y)
        quiet = b.or_(uy, b.const(64, 1 << 51))
        r = b.select(nan_x, b.select(nan_y, quiet, uy), b.select(nan_y, ux, r))
        return b.as_f64(r)

    return fn


@pure("min", "max")
def min_max(i: Instr) -> PureOp:
    m = Mods(i)
    if "f32" in m.left:
        ftz, nan, xorsign = m.flag("ftz"), m.flag("NaN"), m.flag("xorsign")
        if xorsign:
            m.flag("abs")
        t = m.type()
        m.done()
        n = len(i.operands) - 1
        return PureOp((t,), (t,) * n, finish(ftz, False, min_max32(i.base, nan, xorsign)))
    if "f64" in m.left:
        t = m.type()
        m.done()
        return PureOp((t,), (t, t), _min_max64(i.base))
    if half.is_half(m):
        return half.min_max(m, i.base, len(i.operands) - 1, min_max32)
    return integer.min_max_int(i, m, m.type())
