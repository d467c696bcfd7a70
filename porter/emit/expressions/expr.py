"""Expressions: one IR expression to one CuTeDSL expression, with C's types and evaluation rules kept.

Text is either static (a Python number at trace time) or a DSL value of exactly the IR type. `value` makes a DSL
value out
of static text where CuTeDSL would otherwise infer another type.
"""

from __future__ import annotations

import math
import re
from typing import Any

from porter import codes, ir
from porter.emit import spelling
from porter.emit.expressions.casts import CastWriter
from porter.emit.expressions.ranges import INT_MAX
from porter.emit.generic import ConstVariants, HelperCall, variants
from porter.emit.spaces import mixed, space_of
from porter.emit.text import (
    ADD,
    AND,
    ATOM,
    COMPARE,
    COMPARISONS,
    MUL,
    NOT,
    OR,
    PRECEDENCE,
    SHIFT,
    TERNARY,
    UNARY,
    Text,
    is_null_constant,
    parenthesised,
)
from porter.model import Hole
from porter.patterns.names import raw_name
from porter.patterns.tables.intrinsics import find, has_effect
from porter.wording import plural


class ExprWriter(CastWriter):
    """Writes expressions in one scope."""

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
            bound = self.upper(e)
            return t if bound is not None else self.value(e)
        return self.value(e)

    def expr(self, e: ir.Expr) -> Text:
        """The expression's text. A node asked for again in the same statement is not written again, so that holes
        are counted once and the time is linear in the nodes."""
        return self.once(self._write, e)

    def _write(self, e: ir.Expr) -> Text:
        match e:
            case ir.Const():
                return self._const(e)
            case ir.Builtin():
                return self._builtin(e)
            case ir.Var():
                return self._var(e)
            case ir.Field():
                return self._field(e)
            case ir.Index():
                return self._index(e)
            case ir.Deref():
                return self._deref(e)
            case ir.PtrAdd():
                return self._ptradd(e)
            case ir.PtrDiff():
                return self._ptrdiff(e)
            case ir.AddressOf():
                return self._addressof(e)
            case ir.Decay():
                return self._decay(e)
            case ir.Unary():
                return self._unary(e)
            case ir.Binary():
                return self._binary(e)
            case ir.Cast():
                return self._cast(e)
            case ir.Select():
                return self._select(e)
            case ir.StructInit():
                return self._structinit(e)
            case ir.Intrinsic():
                return self._intrinsic(e)
            case ir.Call():
                return self._call(e)
            case ir.HoleExpr():
                return self._holeexpr(e)
            case ConstVariants():
                return self._constvariants(e)
            case HelperCall():
                return self._helpercall(e)
        return self.hole(codes.UNTRANSLATED_EXPRESSION, type(e).__name__, "no translation of this expression", e)

    def hole(self, code: str, cuda: str, reason: str, e: ir.Expr) -> Text:
        n = len(self.s.holes) + 1
        self.s.holes.append(Hole(code, e.span, cuda, reason))
        if isinstance(e.type, ir.Scalar) and e.type != ir.VOID:
            return Text(f'runtime.hole({n}, "{code}", {self.dtype(e.type)})')
        return Text(f'runtime.hole({n}, "{code}")')

    def _const(self, e: ir.Const) -> Text:
        if self.is_pointer(e.type):
            return Text(f"lib.pointer({self.pointer_dtype(e.type)}, {int(e.value or 0)})")
        if e.origin in self.s.params.names and self._follows(e.origin, e.value):
            return Text(str(e.origin), static=True)
        if (size := self.s.params.size_named(e.origin, e.value)) is not None:
            return Text(size, MUL, static=True)
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
        named = self.s.visible.get(e.origin) if e.origin else None
        if named in self.s.static and self._same_constants(e, named):
            return Text(self.name(named), static=True)
        text = self.s.params_at(e.span).const_text(e.values, e.origin)
        simple = text.isidentifier() or text.isdigit() or text.startswith("(")
        return Text(text, ATOM if simple else MUL, static=True)

    def _same_constants(self, e: ConstVariants, key: str) -> bool:
        """True when a trace-time variable has these values."""
        known = self.s.constants.get(key)
        return known is not None and all(v is None or v == k for v, k in zip(e.values, known, strict=True))

    def _builtin(self, e: ir.Builtin) -> Text:
        if e.name == "warpSize":
            return Text("32", static=True)
        return Text(f"Uint32({self.builtin_i32(e)})")

    def _var(self, e: ir.Var) -> Text:
        if e.name in self.s.static:
            return Text(self.name(e.name), static=True)
        if e.name in self.s.memory:
            return self._read(e)
        return Text(self.name(e.name))

    def _unary(self, e: ir.Unary) -> Text:
        x = self.expr(e.x)
        if e.op == "!":
            if x.static:
                return Text(f"not {x.at(NOT)}", NOT, static=True)
            return Text(f"not {self.boolean(e.x).at(NOT)}", NOT)
        if x.static:
            return self.wrapped(e, Text(f"{e.op}{x.at(UNARY)}", UNARY, static=True))
        if e.op == "-" and self.is_half(e.type):
            return Text(f"{self.dtype(e.type)}(-Float32({x.text}))")
        if e.op == "-" and any(k.startswith("u") for k in self.kinds(e.type)):
            return Text(f"{self.dtype(e.type)}(0) - {x.at(MUL)}", ADD)
        return Text(f"{e.op}{x.at(UNARY)}", UNARY)

    def boolean(self, e: ir.Expr) -> Text:
        """A condition."""
        if isinstance(e, ir.Cast) and self.kinds(e.type) == {"bool"}:
            return self._cast(e)
        return self.expr(e)

    def _binary(self, e: ir.Binary) -> Text:
        if e.op in ("&&", "||"):
            return self._logical(e)
        if self.is_pointer(e.a.type) or self.is_pointer(e.b.type):
            return self.pointer_comparison(e)
        if e.op in COMPARISONS:
            return self._compare(e)
        if self.kinds(e.type) <= {"u32"} and self.upper(e) is not None:
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
            if e.rounded:
                return Text(f"lib.rounded({left} {op} {right}, {self.dtype(e.type)})")
            return Text(f"{self.dtype(e.type)}({left} {op} {right})")
        a, b = self.operand(e.a), self.operand(e.b)
        if self._may_leave_64_bits(op, e):  # the DSL would compute it as Python does, and refuse the result
            a = Text(f"lib.constant({self.dtype(e.type)}, {a.text})")
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
        prec = PRECEDENCE[op]
        return Text(
            f"{a.at(prec)} {op} {b.at(prec - 1 if op in ('-', '/', '%') or prec in (ADD, MUL) else prec)}", prec
        )

    def _may_leave_64_bits(self, op: str, e: ir.Binary) -> bool:
        kinds = self.kinds(e.type)
        wraps = op in ("+", "-", "*", "<<") if kinds & {"u64"} else op == "<<" and bool(kinds & {"i64"})
        return wraps and self.s.trace_constants.may_be_large(e)

    def _static_arith(self, op: str, e: ir.Binary, a: Text, b: Text) -> Text:
        if op in ("/", "%") and not self.is_float(e.type):
            if self.upper(e.a) is None or self.upper(e.b) is None:
                return self.wrapped(e, Text(f"lib.c_{'div' if op == '/' else 'mod'}({a.text}, {b.text})", static=True))
            op = "//" if op == "/" else "%"
        prec = PRECEDENCE[op]
        return self.wrapped(e, Text(f"{a.at(prec)} {op} {b.at(prec - 1)}", prec, static=True))

    def _int_division(self, op: str, e: ir.Binary, a: Text, b: Text) -> Text:
        py = "//" if op == "/" else "%"
        kinds = self.kinds(e.type)
        unsigned = all(k.startswith("u") for k in kinds)
        agree = self.upper(e.a) is not None and self.upper(e.b) is not None
        if unsigned or agree:
            if a.static:
                a = self.value(e.a)
            return Text(f"{a.at(MUL)} {py} {b.at(UNARY)}", MUL)
        return Text(f"lib.c_{'div' if op == '/' else 'mod'}({a.text}, {b.text})")

    def _compare(self, e: ir.Binary) -> Text:
        kinds = self.kinds(e.a.type)
        if kinds <= {"u32"} and self.upper(e.a) is not None and self.upper(e.b) is not None:
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
            return Text(f"{parenthesised(a)} {op} {parenthesised(b)}", prec)
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
        if self.is_pointer(e.type) and is_null_constant(e.a) != is_null_constant(e.b):
            dtype = self.pointer_dtype(e.type)
            other = (b if is_null_constant(e.a) else a).text
            value, null = Text(f"lib.natural({other}, {dtype})"), Text(f"lib.null_like({other}, {dtype})")
            a, b = (null, value) if is_null_constant(e.a) else (value, null)
        elif self.is_pointer(e.type) and mixed(space_of(e, self.s.spaces)):
            dtype = self.pointer_dtype(e.type)
            a, b = (Text(f"lib.generic({x.text}, {dtype})") for x in (a, b))
        elif self.is_pointer(e.type) and not self.of_one_alignment(e.a, e.b):
            dtype = self.pointer_dtype(e.type)
            a, b = (Text(f"lib.natural({x.text}, {dtype})") for x in (a, b))
        else:
            a, b = self.value(e.a), self.value(e.b)
        return Text(f"{a.at(COMPARE)} if {cond.at(COMPARE)} else {b.at(COMPARE)}", TERNARY)

    def _helpercall(self, e: HelperCall) -> Text:
        args = [self.settled(a).text for a in e.args]
        outer = self.s.params
        for i, (name, v) in enumerate(e.targs):
            self.s.params = self.s.argument_params(e.span, raw_name(e.name), name, i) or outer
            args.append(self._targ(v))
        self.s.params = outer
        return Text(f"{self.name(e.name)}({', '.join(args)})")

    def _targ(self, v: Any) -> str:
        if isinstance(v, ir.Type):
            if all(x is None or (isinstance(x, ir.Scalar) and x != ir.VOID) for x in variants(v, self.s.params.count)):
                return self.dtype(v)
            return "None"
        if isinstance(v, ConstVariants):
            return self._constvariants(v).text
        if isinstance(v, ir.Const):
            return self._const(v).text
        return repr(v)

    def _call(self, e: ir.Call) -> Text:
        return self.hole(codes.CALL_WITHOUT_BODY, e.function, "a call of a function without a body", e)

    def _structinit(self, e: ir.StructInit) -> Text:
        return self.hole(codes.UNSPLIT_STRUCT, "{...}", "an aggregate value in this place", e)

    def _holeexpr(self, e: ir.HoleExpr) -> Text:
        return self.hole(e.code, e.cuda, e.reason, e)

    def _intrinsic(self, e: ir.Intrinsic) -> Text:
        from porter.emit.expressions.special import special

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
            return self.hole(codes.UNKNOWN_CUDA_FUNCTION, e.name, f"no CuTeDSL equivalent of {e.name} is known", e)
        args = []
        for i, a in enumerate(e.args):
            kind = row.kinds[i] if i < len(row.kinds) else "v"
            if any(isinstance(t, ir.Struct | ir.Array) for t in variants(a.type, self.s.params.count)):
                # what a scalar instruction would take of it is its first member
                return self.hole(codes.UNSPLIT_STRUCT, e.name, f"{e.name} of an aggregate has no translation", e)
            args.append(self.expr(a) if kind in "sp" else self.value(a))
        args += [Text(t) for t in _DEFAULTS.get(e.name, ())[len(args) :]]
        if e.rounded and self.is_half(e.type):
            return Text(f"lib.rounded({args[0].text}, {self.dtype(e.type)})")
        if row.emit == "{0}":
            return args[0]
        text = row.emit.replace("{T}", self.dtype(e.type) if "{T}" in row.emit else "")
        if "{A}" in text:
            text = text.replace("{A}", self.dtype(e.args[0].type))
        try:
            text = _filled(text, args)
        except IndexError:
            return self.hole(codes.UNKNOWN_CUDA_FUNCTION, e.name, f"{e.name} with {plural(len(e.args), 'argument')}", e)
        return Text(text)


_PLACE = re.compile(r"(?<![^(,\[=] )(?<![^(,\[=\s])\{(\d+)\}(?=\s*[),\]]|$)|\{(\d+)\}")


def _filled(template: str, args: list[Text]) -> str:
    """A row's text with its arguments: in parentheses where an operator of the row stands beside them. Raises
    IndexError."""

    def one(m: re.Match[str]) -> str:
        return args[int(m.group(1))].text if m.group(1) else args[int(m.group(2))].at(ATOM)

    return _PLACE.sub(one, template)


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


def _round_hex(v: int) -> bool:
    return (v & (v + 1)) == 0 or bin(v).count("1") <= 2 or (v & 0xFFF) == 0
