"""Expressions: one IR expression to one CuTeDSL expression, with C's types and evaluation rules kept.

Text is either static (a Python number at trace time) or a DSL value of exactly the IR type. `value` makes a DSL
value out
of static text where CuTeDSL would otherwise infer another type.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from porter import ir
from porter.emit import spelling
from porter.emit.generic import ConstVariants, HelperCall, Params, Variants, variants
from porter.emit.layout import Leaf, align_of, leaf
from porter.emit.ranges import INT_MAX, upper
from porter.model import Hole
from porter.patterns.tables.intrinsics import find, has_effect

# binding strengths of Python operators, for parentheses
ATOM, POW, UNARY, MUL, ADD, SHIFT, AND, XOR, OR, COMPARE, NOT, TERNARY = range(12)
_PREC = {
    "*": MUL,
    "/": MUL,
    "%": MUL,
    "//": MUL,
    "+": ADD,
    "-": ADD,
    "<<": SHIFT,
    ">>": SHIFT,
    "&": AND,
    "^": XOR,
    "|": OR,
}
_COMPARE = {"<", "<=", ">", ">=", "==", "!="}

BUILTIN_NAMES = {
    "threadIdx.x": "tidx",
    "threadIdx.y": "tidy",
    "threadIdx.z": "tidz",
    "blockIdx.x": "bidx",
    "blockIdx.y": "bidy",
    "blockIdx.z": "bidz",
    "blockDim.x": "bdimx",
    "blockDim.y": "bdimy",
    "blockDim.z": "bdimz",
    "gridDim.x": "gdimx",
    "gridDim.y": "gdimy",
    "gridDim.z": "gdimz",
}


@dataclass(frozen=True)
class Text:
    """Python text of an expression, how tightly it binds, and whether it is a Python number at trace time."""

    text: str
    prec: int = ATOM
    static: bool = False

    def at(self, prec: int) -> str:
        """The text, in parentheses unless it binds at least as tightly as `prec`."""
        return self.text if self.prec <= prec else f"({self.text})"


@dataclass(frozen=True)
class Flat:
    """A place as base pointer text plus an element offset in units of `leaves` (one an instance)."""

    base: Text
    consts: tuple[int, ...]  # constant part of the offset, per instance, in elements
    dynamic: tuple[str, ...]  # other terms
    leaves: tuple[Leaf, ...]


@dataclass
class Scope:
    """What is known of the names of one function while its text is written."""

    params: Params
    python_names: dict[str, str] = field(default_factory=dict)
    memory: set[str] = field(default_factory=set)  # locals that live in an array and are reached by pointer
    static: set[str] = field(default_factory=set)  # Python numbers at trace time
    bounds: dict[str, int] = field(default_factory=dict)
    constants: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # values of static variables by instance
    used_builtins: set[str] = field(default_factory=set)
    holes: list[Hole] = field(default_factory=list)
    patterns: set[str] = field(default_factory=set)


class ExprWriter:
    """Writes expressions in one scope."""

    def __init__(self, scope: Scope):
        self.s = scope

    # ---- types

    def dtype(self, t: ir.Type, *, memory: bool = False) -> str:
        """CuTeDSL type text of a scalar type (a template parameter where it is one)."""
        spell = spelling.memory_dtype if memory else spelling.dtype
        return self.s.params.type_text(variants(t, self.s.params.count), spell)

    def kinds(self, t: ir.Type) -> set[str]:
        """Scalar names the type has over the instances."""
        return {x.name for x in variants(t, self.s.params.count) if isinstance(x, ir.Scalar)}

    def is_float(self, t: ir.Type) -> bool:
        return all(isinstance(x, ir.Scalar) and x.is_float for x in variants(t, self.s.params.count) if x is not None)

    def is_pointer(self, t: ir.Type) -> bool:
        return all(isinstance(x, ir.Pointer) for x in variants(t, self.s.params.count) if x is not None)

    def leaves(self, t: ir.Type) -> tuple[Leaf, ...]:
        """The element view of a type in each instance; bytes everywhere when it is mixed anywhere."""
        out = [leaf(x) if x is not None else None for x in variants(t, self.s.params.count)]
        if any(x is not None and x.mixed for x in out):
            out = [Leaf(ir.U8, x.count * x.size, True) if x is not None else None for x in out]
        first = next(x for x in out if x is not None)
        return tuple(x if x is not None else first for x in out)

    def leaf_dtype(self, leaves: tuple[Leaf, ...]) -> str:
        return self.s.params.type_text(tuple(x.scalar for x in leaves), spelling.memory_dtype)

    def pointee(self, t: ir.Type) -> ir.Type:
        ts = variants(t, self.s.params.count)
        elems = tuple(x.elem if isinstance(x, ir.Pointer) else None for x in ts)
        present = [e for e in elems if e is not None]
        return present[0] if all(e == present[0] for e in present) else Variants(elems)

    def pointer_dtype(self, t: ir.Type) -> str:
        """Element type text of a pointer value."""
        return self.leaf_dtype(self.leaves(self.pointee(t)))

    def const(self, values: Iterable[Any]) -> str:
        wanted = tuple(values)
        text = self.s.params.express_const(wanted)
        if text is not None:
            return text
        for name, known in self.s.constants.items():  # a constant that the source computed and named
            if name in self.s.static and all(v is None or v == k for v, k in zip(wanted, known, strict=True)):
                return self.name(name)
        return self.s.params.const_text(wanted)

    def sizes(self, t: ir.Type) -> tuple[int, ...]:
        first = next(x for x in variants(t, self.s.params.count) if x is not None)
        return tuple(ir.sizeof(x if x is not None else first) for x in variants(t, self.s.params.count))

    # ---- entry points

    def value(self, e: ir.Expr) -> Text:
        """A DSL value of the expression's type: static text is wrapped in its type."""
        t = self.expr(e)
        if t.static and not self.is_pointer(e.type):
            return Text(f"{self.dtype(e.type)}({t.text})")
        return t

    def settled(self, e: ir.Expr) -> Text:
        """As value; a fraction is not left to the DSL's arithmetic at trace time, which does not round."""
        if isinstance(e, ir.Const) and isinstance(e.value, float) and math.isfinite(e.value) and e.value % 1.0:
            return Text(f"lib.constant({self.dtype(e.type)}, {self.expr(e).text})")
        return self.value(e)

    def operand(self, e: ir.Expr) -> Text:
        """Text that may stand beside a DSL value: static numbers stay bare where that keeps the type."""
        t = self.expr(e)
        if not t.static:
            return t
        if isinstance(e, ir.Const) and isinstance(e.value, int) and not isinstance(e.value, bool):
            kinds = self.kinds(e.type)
            if kinds <= {"i32"} or (0 <= e.value <= INT_MAX and kinds <= {"i32", "u32", "i64", "u64"}):
                return t
            return self.value(e)
        if self.is_float(e.type) and self.kinds(e.type) <= {"f32"}:
            return t if "float(" not in t.text else self.value(e)
        if self.kinds(e.type) <= {"i32", "u32", "i64", "u64"}:
            bound = upper(e, self.s.bounds)
            return t if bound is not None else self.value(e)
        return self.value(e)

    def expr(self, e: ir.Expr) -> Text:
        method = getattr(self, "_" + type(e).__name__.lower(), None)
        if method is None:
            return self.hole("PRT501", type(e).__name__, "no translation of this expression", e)
        out: Text = method(e)
        return out

    def hole(self, code: str, cuda: str, reason: str, e: ir.Expr) -> Text:
        n = len(self.s.holes) + 1
        self.s.holes.append(Hole(code, e.span, cuda, reason))
        if isinstance(e.type, ir.Scalar) and e.type != ir.VOID:
            return Text(f'runtime.hole({n}, "{code}", {self.dtype(e.type)})')
        return Text(f'runtime.hole({n}, "{code}")')

    # ---- leaves

    def _const(self, e: ir.Const) -> Text:
        if self.is_pointer(e.type):
            return Text(f"lib.pointer({self.pointer_dtype(e.type)}, {int(e.value or 0)})")
        if e.origin in self.s.params.names and self._follows(e.origin, e.value):
            return Text(str(e.origin), static=True)
        if isinstance(e.value, float) or (
            isinstance(e.value, int) and not isinstance(e.value, bool) and self.is_float(e.type)
        ):
            text = spelling.float_text(float(e.value), "f64" if "f64" in self.kinds(e.type) else "f32")
            return Text(text, UNARY if text.startswith("-") else ATOM, static=True)
        if isinstance(e.value, int) and not isinstance(e.value, bool):
            text = hex(e.value) if e.value > 0xFFFF and _round_hex(e.value) else str(e.value)
            return Text(text, UNARY if e.value < 0 else ATOM, static=True)
        return Text(repr(e.value), static=True)

    def _follows(self, origin: str, value: Any) -> bool:
        col = self.s.params.column(origin)
        return (any(v == value for v in col) and len(set(map(str, col))) == 1) or all(v == value for v in col)

    def _constvariants(self, e: ConstVariants) -> Text:
        if e.origin and e.origin in self.s.static and self._same_constants(e):
            return Text(self.name(e.origin), static=True)
        text = self.s.params.const_text(e.values, e.origin)
        simple = text.isidentifier() or text.isdigit() or text.startswith("(")
        return Text(text, ATOM if simple else MUL, static=True)

    def _same_constants(self, e: ConstVariants) -> bool:
        """True when the trace-time variable named by the constant's origin has these values."""
        known = self.s.constants.get(str(e.origin))
        return known is not None and all(v is None or v == k for v, k in zip(e.values, known, strict=True))

    def _builtin(self, e: ir.Builtin) -> Text:
        if e.name == "warpSize":
            return Text("32", static=True)
        return Text(f"Uint32({self._builtin_i32(e)})")

    def _builtin_i32(self, e: ir.Builtin) -> str:
        self.s.used_builtins.add(e.name)
        return BUILTIN_NAMES[e.name]

    def name(self, n: str) -> str:
        return self.s.python_names.get(n, n)

    def _var(self, e: ir.Var) -> Text:
        if e.name in self.s.static:
            return Text(self.name(e.name), static=True)
        if e.name in self.s.memory:
            return self._read(e)
        return Text(self.name(e.name))

    # ---- places

    def flat(self, e: ir.Expr) -> Flat:
        if isinstance(e, ir.Var):
            return Flat(Text(self.name(e.name)), (0,) * self.s.params.count, (), self.leaves(e.type))
        if isinstance(e, ir.Deref):
            ls = self.leaves(e.type)
            if isinstance(e.ptr, ir.PtrAdd):
                base = self.expr(e.ptr.ptr)
                consts, dyn = self._scaled(e.ptr.index, tuple(x.count for x in ls))
                return Flat(base, consts, dyn, ls)
            if isinstance(e.ptr, ir.AddressOf):
                inner = self.flat(e.ptr.place)
                if inner.leaves == ls or all(a.scalar == b.scalar for a, b in zip(inner.leaves, ls, strict=True)):
                    return inner
            return Flat(self.expr(e.ptr), (0,) * self.s.params.count, (), ls)
        if isinstance(e, ir.Field):
            whole = self.flat(e.base)
            structs = variants(e.base.type, self.s.params.count)
            offs = []
            for st, lf in zip(structs, whole.leaves, strict=True):
                off = next((f.offset for f in st.fields if f.name == e.name), 0) if isinstance(st, ir.Struct) else 0
                offs.append(off // lf.size)
            return Flat(whole.base, _add(whole.consts, tuple(offs)), whole.dynamic, whole.leaves)
        if isinstance(e, ir.Index):
            whole = self.flat(e.base)
            step = tuple(s // lf.size for s, lf in zip(self.sizes(e.type), whole.leaves, strict=True))
            consts, dyn = self._scaled(e.index, step)
            return Flat(whole.base, _add(whole.consts, consts), (*whole.dynamic, *dyn), whole.leaves)
        # a value used as a place: only aggregates made by holes come here
        return Flat(self.expr(e), (0,) * self.s.params.count, (), self.leaves(e.type))

    def _scaled(self, index: ir.Expr, step: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[str, ...]]:
        zero = (0,) * self.s.params.count
        if isinstance(index, ir.Const) and isinstance(index.value, int):
            return tuple(index.value * s for s in step), ()
        if isinstance(index, ir.Cast) and isinstance(index.x, ir.Const) and isinstance(index.x.value, int):
            return self._scaled(index.x, step)
        if isinstance(index, ConstVariants):
            return tuple((v or 0) * s for v, s in zip(index.values, step, strict=True)), ()
        if all(s == 1 for s in step):
            return zero, (self.index(index).at(ADD),)
        scale = self.const(step)
        scale = scale if scale.isidentifier() or scale.isdigit() else f"({scale})"
        bound = upper(index, self.s.bounds)
        text = self.index(index)
        wide = text.static or (bound is not None and bound * max(step) <= INT_MAX) or text.text.startswith("Int64(")
        return zero, (f"{text.at(MUL)} * {scale}" if wide else f"Int64({text.text}) * {scale}",)

    def index(self, e: ir.Expr) -> Text:
        """An index: Int32 is sign-extended by the DSL as C does; unsigned 32-bit values need widening by hand."""
        while isinstance(e, ir.Cast) and e.type in (ir.I64, ir.U64) and self.kinds(e.x.type) <= {"i32"}:
            if e.type == ir.U64 and upper(e.x, self.s.bounds) is None:
                break
            e = e.x
        t = e.type
        if self.kinds(t) <= {"u32"}:
            if upper(e, self.s.bounds) is not None:
                low = self.low32(e)
                if low is not None:
                    return low
            u = self.expr(e)
            return u if u.static else Text(f"Int64({u.text})")
        if self.kinds(t) <= {"u64", "i64"}:
            if isinstance(e, ir.Cast) and self.kinds(e.x.type) <= {"u32"}:
                return self.index(e.x)
            u = self.expr(e)
            if u.static:
                return u
            return u if self.kinds(t) <= {"i64"} else Text(f"Int64({u.text})")
        if self.kinds(t) <= {"i32"}:
            return self.expr(e)
        u = self.expr(e)
        return u if u.static else Text(f"Int32({u.text})")

    def offset_text(self, f: Flat) -> str:
        """Element offset as text ("0" when there is none)."""
        terms = list(f.dynamic)
        if any(f.consts):
            const = self.const(f.consts)
            terms.append(const if const.isidentifier() or const.lstrip("-").isdigit() else f"({const})")
        return " + ".join(terms) if terms else "0"

    def pointer_to(self, f: Flat) -> Text:
        off = self.offset_text(f)
        return f.base if off == "0" else Text(f"{f.base.at(ADD)} + {off}", ADD)

    def _read(self, place: ir.Expr) -> Text:
        if isinstance(place, ir.Deref) and place.volatile:
            t = self.dtype(place.type)
            return Text(f"lib.ld_volatile({self.pointer_to(self.flat(place)).text}, {t})")
        f = self.flat(place)
        wanted = self.leaves(place.type)
        if is_readonly(place) and not (f.leaves[0].mixed and not wanted[0].mixed):
            raw = f"lib.ldg({self.pointer_to(f).text})"
            return self._loaded(place, raw)
        if self.is_pointer(place.type):
            raw = self._element(f, wanted)
            return Text(f"lib.pointer({self.pointer_dtype(place.type)}, {raw})")
        return self._loaded(place, self._element(f, wanted))

    def _loaded(self, place: ir.Expr, raw: str) -> Text:
        """The value of a place from the text that reads its memory."""
        if self.is_pointer(place.type):
            return Text(f"lib.pointer({self.pointer_dtype(place.type)}, {raw})")
        kinds = self.kinds(place.type)
        if kinds == {"bool"}:
            return Text(f"{raw} != 0", COMPARE)
        if any(k.startswith("u") for k in kinds):  # CuTeDSL reads unsigned memory as signed
            return Text(f"{self.dtype(place.type)}({raw})")
        return Text(raw)

    def _element(self, f: Flat, wanted: tuple[Leaf, ...]) -> str:
        if f.leaves[0].mixed and not wanted[0].mixed:
            return f"{self._retyped(f, wanted)}[0]"
        return f"{f.base.at(ATOM)}[{self.offset_text(f)}]"

    def _retyped(self, f: Flat, wanted: tuple[Leaf, ...]) -> str:
        dtype = self.leaf_dtype(wanted)
        if f.dynamic:
            return f"lib.natural({self.pointer_to(f).text}, {dtype})"
        return f"lib.view({self.pointer_to(f).text}, {dtype})"

    def store(self, place: ir.Expr, value: Text) -> str:
        """A statement that stores a value into a memory place."""
        if isinstance(place, ir.Deref) and place.volatile:
            return f"lib.st_volatile({self.pointer_to(self.flat(place)).text}, {value.text})"
        f = self.flat(place)
        wanted = self.leaves(place.type)
        text = value.text
        if self.is_pointer(place.type):
            text = f"lib.address({text})"
        elif self.kinds(place.type) == {"bool"} and not value.static:
            text = f"Uint8({text})"
        if f.leaves[0].mixed and not wanted[0].mixed:
            # an assignment to a subscript of a call makes CuTeDSL take every name in it for written
            return f"lib.store({self._retyped(f, wanted)}, {text})"
        if not f.base.text.isidentifier() or " if " in self.offset_text(f):
            # the DSL's preprocessor cannot rewrite a conditional expression inside the target of an assignment
            return f"lib.store({self.pointer_to(f).text}, {text})"
        return f"{self._element(f, wanted)} = {text}"

    def _field(self, e: ir.Field) -> Text:
        return self._read(e)

    def _index(self, e: ir.Index) -> Text:
        return self._read(e)

    def _deref(self, e: ir.Deref) -> Text:
        return self._read(e)

    def _decay(self, e: ir.Decay) -> Text:
        return self._address(e.place, e.type)

    def _addressof(self, e: ir.AddressOf) -> Text:
        return self._address(e.place, e.type)

    def _address(self, place: ir.Expr, t: ir.Type) -> Text:
        f = self.flat(place)
        wanted = self.leaves(self.pointee(t))
        if tuple(x.scalar for x in f.leaves) != tuple(x.scalar for x in wanted):
            return Text(self._retyped(f, wanted))
        return self.pointer_to(f)

    def _ptradd(self, e: ir.PtrAdd) -> Text:
        ls = self.leaves(self.pointee(e.type))
        base = self.expr(e.ptr)
        consts, dyn = self._scaled(e.index, tuple(x.count for x in ls))
        return self.pointer_to(Flat(base, consts, dyn, ls))

    def _ptrdiff(self, e: ir.PtrDiff) -> Text:
        size = self.const(self.sizes(self.pointee(e.a.type)))
        return Text(f"lib.diff({self.expr(e.a).text}, {self.expr(e.b).text}, {size})")

    # ---- operators

    def _unary(self, e: ir.Unary) -> Text:
        x = self.expr(e.x)
        if e.op == "!":
            if x.static:
                return Text(f"not {x.at(NOT)}", NOT, static=True)
            return Text(f"not {self.boolean(e.x).at(NOT)}", NOT)
        if x.static:
            return Text(f"{e.op}{x.at(UNARY)}", UNARY, static=True)
        if e.op == "-" and self.is_half(e.type):
            return Text(f"{self.dtype(e.type)}(-Float32({x.text}))")
        if e.op == "-" and any(k.startswith("u") for k in self.kinds(e.type)):
            return Text(f"{self.dtype(e.type)}(0) - {x.at(MUL)}", ADD)
        return Text(f"{e.op}{x.at(UNARY)}", UNARY)

    def is_half(self, t: ir.Type) -> bool:
        return bool(self.kinds(t) & {"f16", "bf16"})

    def boolean(self, e: ir.Expr) -> Text:
        """A condition."""
        if isinstance(e, ir.Cast) and self.kinds(e.type) == {"bool"}:
            return self._cast(e)
        return self.expr(e)

    def _binary(self, e: ir.Binary) -> Text:
        if e.op in ("&&", "||"):
            return self._logical(e)
        if self.is_pointer(e.a.type) or self.is_pointer(e.b.type):
            a = f"{self.expr(e.a).at(ATOM)}.toint()" if not _null(e.a) else "0"
            b = f"{self.expr(e.b).at(ATOM)}.toint()" if not _null(e.b) else "0"
            return Text(f"{a} {e.op} {b}", COMPARE)
        if e.op in _COMPARE:
            return self._compare(e)
        if self.kinds(e.type) <= {"u32"} and upper(e, self.s.bounds) is not None:
            low = self.low32(e)
            if low is not None and not low.static:
                return Text(f"Uint32({low.text})")
            if low is not None:
                return low
        return self._arith(e.op, e)

    def _arith(self, op: str, e: ir.Binary) -> Text:
        xa, xb = self.expr(e.a), self.expr(e.b)
        if xa.static and xb.static:
            return self._static_arith(op, e, xa, xb)
        if self.is_half(e.type):
            left, right = (f"Float32({x.text})" for x in (self.value(e.a), self.value(e.b)))
            return Text(f"{self.dtype(e.type)}({left} {op} {right})")
        a, b = self.operand(e.a), self.operand(e.b)
        if op in ("<<", ">>"):
            if not b.static and self.kinds(e.b.type) != self.kinds(e.a.type):
                b = Text(f"{self.dtype(e.a.type)}({b.text})")
            if a.static:
                a = self.value(e.a)
            return Text(f"{a.at(ADD)} {op} {b.at(ADD)}", SHIFT)
        if op in ("/", "%") and not self.is_float(e.type):
            return self._int_division(op, e, a, b)
        if a.static and self.kinds(e.type) <= {"f64"}:
            a = self.value(e.a)
        if b.static and self.kinds(e.type) <= {"f64"}:
            b = self.value(e.b)
        prec = _PREC[op]
        return Text(
            f"{a.at(prec)} {op} {b.at(prec - 1 if op in ('-', '/', '%') or prec in (ADD, MUL) else prec)}", prec
        )

    def _static_arith(self, op: str, e: ir.Binary, a: Text, b: Text) -> Text:
        if op in ("/", "%") and not self.is_float(e.type):
            if upper(e.a, self.s.bounds) is None or upper(e.b, self.s.bounds) is None:
                return Text(f"lib.c_{'div' if op == '/' else 'mod'}({a.text}, {b.text})", static=True)
            op = "//" if op == "/" else "%"
        prec = _PREC[op]
        return Text(f"{a.at(prec)} {op} {b.at(prec - 1)}", prec, static=True)

    def _int_division(self, op: str, e: ir.Binary, a: Text, b: Text) -> Text:
        py = "//" if op == "/" else "%"
        kinds = self.kinds(e.type)
        unsigned = all(k.startswith("u") for k in kinds)
        agree = upper(e.a, self.s.bounds) is not None and upper(e.b, self.s.bounds) is not None
        if unsigned or agree:
            if a.static:
                a = self.value(e.a)
            return Text(f"{a.at(MUL)} {py} {b.at(UNARY)}", MUL)
        return Text(f"lib.c_{'div' if op == '/' else 'mod'}({a.text}, {b.text})")

    def _compare(self, e: ir.Binary) -> Text:
        kinds = self.kinds(e.a.type)
        if kinds <= {"u32"} and upper(e.a, self.s.bounds) is not None and upper(e.b, self.s.bounds) is not None:
            a32, b32 = self.low32(e.a), self.low32(e.b)
            if a32 is not None and b32 is not None:
                return Text(f"{a32.at(OR)} {e.op} {b32.at(OR)}", COMPARE, static=a32.static and b32.static)
        if self.is_half(e.a.type):
            a, b = self.value(e.a), self.value(e.b)
            return Text(f"Float32({a.text}) {e.op} Float32({b.text})", COMPARE)
        xa, xb = self.expr(e.a), self.expr(e.b)
        if xa.static and xb.static:
            return Text(f"{xa.at(OR)} {e.op} {xb.at(OR)}", COMPARE, static=True)
        if kinds == {"bool"}:
            return Text(f"Int32({xa.text}) {e.op} Int32({xb.text})", COMPARE)
        a, b = self.operand(e.a), self.operand(e.b)
        return Text(f"{a.at(OR)} {e.op} {b.at(OR)}", COMPARE)

    def _logical(self, e: ir.Binary) -> Text:
        """`&` and `|` evaluate both sides; where the right side must not run, the lazy conditional expression keeps
        C's order."""
        a, b = self.boolean(e.a), self.boolean(e.b)
        if a.static and b.static:
            return Text(f"{a.at(COMPARE)} {'and' if e.op == '&&' else 'or'} {b.at(COMPARE)}", TERNARY, static=True)
        if a.static:
            a = Text(f"Boolean({a.text})")
        if b.static:
            b = Text(f"Boolean({b.text})")
        if safe_to_evaluate(e.b):
            op, prec = ("&", AND) if e.op == "&&" else ("|", OR)
            return Text(f"{_paren(a)} {op} {_paren(b)}", prec)
        if e.op == "&&":
            return Text(f"{b.at(COMPARE)} if {a.at(COMPARE)} else Boolean(False)", TERNARY)
        return Text(f"Boolean(True) if {a.at(COMPARE)} else {b.at(COMPARE)}", TERNARY)

    def _select(self, e: ir.Select) -> Text:
        if isinstance(e.cond, ir.Const):
            return self.expr(e.a if e.cond.value else e.b)
        cond = self.boolean(e.cond)
        a, b = self.expr(e.a), self.expr(e.b)
        if cond.static and a.static and b.static:
            return Text(f"{a.at(COMPARE)} if {cond.at(COMPARE)} else {b.at(COMPARE)}", TERNARY, static=True)
        if self.is_pointer(e.type) and _null(e.a) != _null(e.b):
            dtype = self.pointer_dtype(e.type)
            other = (b if _null(e.a) else a).text
            keep, null = Text(f"lib.natural({other}, {dtype})"), Text(f"lib.null_like({other}, {dtype})")
            a, b = (null, keep) if _null(e.a) else (keep, null)
        else:
            a, b = self.value(e.a), self.value(e.b)
        return Text(f"{a.at(COMPARE)} if {cond.at(COMPARE)} else {b.at(COMPARE)}", TERNARY)

    # ---- casts

    def _cast(self, e: ir.Cast) -> Text:
        to, src = e.type, e.x.type
        if self.is_pointer(to):
            return self._pointer_cast(e)
        if self.is_pointer(src):
            inner = f"lib.address({self.expr(e.x).text})"
            if self.kinds(to) == {"bool"}:
                return Text(f"{self.expr(e.x).at(ATOM)}.toint() != 0", COMPARE)
            return Text(inner if self.kinds(to) == {"i64"} else f"{self.dtype(to)}({inner})")
        kinds, from_kinds = self.kinds(to), self.kinds(src)
        x = self.expr(e.x)
        if kinds == {"bool"}:
            if from_kinds == {"bool"}:
                return x
            if x.static:
                return Text(f"{x.at(OR)} != 0", COMPARE, static=True)
            if self.is_half(src) or "f32" in from_kinds:
                return Text(f"Float32({x.text}) != 0.0" if self.is_half(src) else f"{x.at(OR)} != 0.0", COMPARE)
            return Text(f"{x.at(OR)} != 0", COMPARE)
        if x.static:
            return self._static_cast(e, x, kinds, from_kinds)
        if kinds == {"i32"} and from_kinds <= {"u32"}:
            low = self.low32(e.x)
            if low is not None:
                return low if not low.static else Text(f"Int32({low.text})")
        if (
            kinds == {"u32"}
            and from_kinds <= {"i32"}
            and isinstance(e.x, ir.Cast)
            and self.kinds(e.x.x.type) <= {"u32"}
        ):
            return self.expr(e.x.x)
        if kinds == from_kinds and to == src:
            return x
        if self.is_float(src) and kinds & {"i8", "u8", "i16", "u16"}:
            return Text(f"{self.dtype(to)}(Int32({self._as_f32(e.x, x)}))")
        if self.is_float(src) and not self.is_float(to) and self.is_half(src):
            return Text(f"{self.dtype(to)}(Float32({x.text}))")
        if kinds & {"f16", "bf16", "e4m3", "e5m2"} and not self.is_float(src):
            return Text(f"{self.dtype(to)}(Float32({x.text}))")
        if (
            kinds & {"f16", "bf16", "e4m3", "e5m2"}
            and from_kinds & {"f16", "bf16", "e4m3", "e5m2"}
            and kinds != from_kinds
        ):
            return Text(f"{self.dtype(to)}(Float32({x.text}))")
        return Text(f"{self.dtype(to)}({x.text})")

    def _as_f32(self, e: ir.Expr, x: Text) -> str:
        return x.text if self.kinds(e.type) == {"f32"} else f"Float32({x.text})"

    def _static_cast(self, e: ir.Cast, x: Text, kinds: set[str], from_kinds: set[str]) -> Text:
        ints = {"i32", "u32", "i64", "u64", "i16", "u16", "i8", "u8"}
        if kinds <= ints and from_kinds <= ints | {"bool"}:
            if isinstance(e.x, ir.Const) and int(e.x.value) < 0 and any(k.startswith("u") for k in kinds):
                return self._const(ir.Const(int(e.x.value) % (1 << (8 * ir.sizeof(e.type))), type=e.type))
            if from_kinds == {"bool"}:
                return (
                    Text(f"int({x.text})", static=True)
                    if not isinstance(e.x, ir.Const)
                    else Text(str(int(e.x.value)), static=True)
                )
            return x
        if self.is_float(e.type) and kinds <= {"f32", "f64"} and isinstance(e.x, ir.Const | ConstVariants):
            if isinstance(e.x, ir.Const) and e.x.origin not in self.s.params.names:
                return self._const(ir.Const(float(e.x.value), type=e.type))
            return Text(f"float({x.text})", static=True)
        return Text(f"{self.dtype(e.type)}({self.value(e.x).text})")

    def _pointer_cast(self, e: ir.Cast) -> Text:
        to = self.pointer_dtype(e.type)
        if not self.is_pointer(e.x.type):
            if _null(e.x):
                return Text(f"lib.pointer({to}, 0)")
            return Text(f"lib.pointer({to}, {self.value(e.x).text})")
        inner = e.x
        while isinstance(inner, ir.Cast) and self.is_pointer(inner.x.type):
            inner = inner.x
        if self.pointer_dtype(inner.type) == to:
            return self.expr(inner)
        return Text(f"lib.view({self.expr(inner).text}, {to})")

    # ---- unsigned arithmetic on small values

    def low32(self, e: ir.Expr) -> Text | None:
        """Int32 text with the same low 32 bits as the u32/i32 expression, or None; exact modulo 2^32."""
        if isinstance(e, ir.Builtin):
            if e.name == "warpSize":
                return Text("32", static=True)
            return Text(self._builtin_i32(e))
        if isinstance(e, ir.Const) and isinstance(e.value, int) and not isinstance(e.value, bool):
            v = e.value & 0xFFFFFFFF
            v = v - (1 << 32) if v > INT_MAX else v
            return self._const(ir.Const(v, e.origin, type=ir.I32))
        if isinstance(e, ConstVariants) and upper(e, {}) is not None:
            return self._constvariants(e)
        if isinstance(e, ir.Var) and e.name in self.s.static and upper(e, self.s.bounds) is not None:
            return self._var(e)
        if isinstance(e, ir.Cast) and self.kinds(e.type) <= {"u32", "i32"} and self.kinds(e.x.type) <= {"u32", "i32"}:
            if self.kinds(e.x.type) <= {"i32"}:
                return self.expr(e.x)
            return self.low32(e.x)
        if self.kinds(e.type) <= {"i32"}:
            return self.expr(e)
        if isinstance(e, ir.Binary) and e.op in ("+", "-", "*", "&", "|", "^"):
            a, b = self.low32(e.a), self.low32(e.b)
            if a is None or b is None:
                return None
            prec = _PREC[e.op]
            return Text(f"{a.at(prec)} {e.op} {b.at(prec - 1)}", prec, static=a.static and b.static)
        if isinstance(e, ir.Binary) and e.op in ("/", "%", ">>"):
            if upper(e.a, self.s.bounds) is None or upper(e.b, self.s.bounds) is None:
                return None
            a, b = self.low32(e.a), self.low32(e.b)
            if a is None or b is None:
                return None
            op = "//" if e.op == "/" else e.op
            prec = _PREC[op]
            return Text(f"{a.at(prec)} {op} {b.at(prec - 1)}", prec, static=a.static and b.static)
        if isinstance(e, ir.Var) and e.name not in self.s.memory:
            return Text(f"Int32({self._var(e).text})")
        return None

    # ---- calls

    def _helpercall(self, e: HelperCall) -> Text:
        args = [self.settled(a).text for a in e.args]
        for _, v in e.targs:
            args.append(self._targ(v))
        return Text(f"{self.name(e.name)}({', '.join(args)})")

    def _targ(self, v: Any) -> str:
        if isinstance(v, ir.Type):
            if all(x is None or isinstance(x, ir.Scalar) for x in variants(v, self.s.params.count)):
                return self.dtype(v)
            return "None"
        if isinstance(v, ConstVariants):
            return self._constvariants(v).text
        if isinstance(v, ir.Const):
            return self._const(v).text
        return repr(v)

    def _call(self, e: ir.Call) -> Text:
        return self.hole("PRT107", e.function, "a call of a function without a body", e)

    def _structinit(self, e: ir.StructInit) -> Text:
        return self.hole("PRT502", "{...}", "an aggregate value in this place", e)

    def _holeexpr(self, e: ir.HoleExpr) -> Text:
        return self.hole(e.code, e.cuda, e.reason, e)

    def _intrinsic(self, e: ir.Intrinsic) -> Text:
        from porter.emit.special import special

        special_text = special(self, e)
        if special_text is not None:
            return special_text
        arg0 = ""
        if e.args:
            ks = self.kinds(e.args[0].type)
            if self.is_pointer(e.args[0].type):
                ks = self.kinds(self.pointee(e.args[0].type))
            arg0 = "bf16" if ks and ks <= {"f16", "bf16", "f32"} and len(ks) > 1 else next(iter(sorted(ks)), "")
            if ks and ks <= {"f16", "bf16"}:
                arg0 = sorted(ks)[0]
        row = find(e.name, arg0)
        if row is None:
            return self.hole("PRT503", e.name, f"no CuTeDSL equivalent of {e.name} is known", e)
        args = []
        for i, a in enumerate(e.args):
            kind = row.kinds[i] if i < len(row.kinds) else "v"
            args.append(self.expr(a).text if kind in "sp" else self.value(a).text)
        args += _DEFAULTS.get(e.name, ())[len(args) :]
        text = row.emit.replace("{T}", self.dtype(e.type) if "{T}" in row.emit else "")
        if "{A}" in text:
            text = text.replace("{A}", self.dtype(e.args[0].type))
        try:
            text = text.format(*args)
        except IndexError:
            return self.hole("PRT503", e.name, f"{e.name} with {len(e.args)} arguments", e)
        return Text(text)

    def align(self, t: ir.Type) -> tuple[int, ...]:
        first = next(x for x in variants(t, self.s.params.count) if x is not None)
        return tuple(align_of(x if x is not None else first) for x in variants(t, self.s.params.count))


_DEFAULTS = {
    "__shfl_xor_sync": ("0xFFFFFFFF", "", "", "32"),
    "__shfl_down_sync": ("0xFFFFFFFF", "", "", "32"),
    "__shfl_up_sync": ("0xFFFFFFFF", "", "", "32"),
    "__shfl_sync": ("0xFFFFFFFF", "", "", "32"),
    "__syncwarp": ("0xFFFFFFFF",),
}


def safe_to_evaluate(e: Any) -> bool:
    """True when evaluating the expression where C would not costs nothing and cannot fault: no loads, divisions or
    calls."""
    for n in ir.walk(e):
        if isinstance(n, ir.Deref | ir.Index | ir.Field | HelperCall | ir.Call | ir.HoleExpr):
            return False
        if isinstance(n, ir.Binary) and n.op in ("/", "%"):
            t = n.type
            divisor_ok = isinstance(n.b, ir.Const) and n.b.value != 0
            if not (isinstance(t, ir.Scalar) and t.is_float) and not divisor_ok:
                return False
        if isinstance(n, ir.Intrinsic) and has_effect(n.name):
            return False
    return True


def is_readonly(place: ir.Expr) -> bool:
    """True for a place in memory that the source promises not to change."""
    while isinstance(place, ir.Field | ir.Index):
        place = place.base
    return isinstance(place, ir.Deref) and place.readonly


def _paren(t: Text) -> str:
    return t.text if t.prec < AND else f"({t.text})"


def _null(e: ir.Expr) -> bool:
    while isinstance(e, ir.Cast):
        e = e.x
    return isinstance(e, ir.Const) and not e.value


def _add(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _round_hex(v: int) -> bool:
    return (v & (v + 1)) == 0 or bin(v).count("1") <= 2 or (v & 0xFFF) == 0
