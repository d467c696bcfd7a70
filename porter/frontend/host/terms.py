"""Numbers of host code as expressions over named sizes, simplified as they are built and printed in the language of
cases.

Integers are sums of products, so that every spelling of a rounded-up quotient, and `numel() / size(-1)`, come out as
one form. Division is that of launch sizes: no operand is negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache


@dataclass(frozen=True)
class Term:
    """`op` over `args`. A constant holds its value, a symbol its key, a type its name; all other args are terms."""

    op: str
    args: tuple[object, ...] = ()
    real: bool = False  # a floating-point number
    weight: int = field(default=1, init=False, compare=False, repr=False)  # how many operations it is written with

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", 1 + sum(a.weight for a in self.args if isinstance(a, Term)))

    def __str__(self) -> str:
        return text_of(self, {})

    @property
    def value(self) -> int | float | bool | None:
        """The number that it is, None where it is not constant."""
        return self.args[0] if self.op == "const" else None  # type: ignore[return-value]

    @property
    def parts(self) -> tuple[Term, ...]:
        return tuple(a for a in self.args if isinstance(a, Term))


def const(value: int | float | bool) -> Term:
    return Term("const", (value,), isinstance(value, float))


def sym(key: str, real: bool = False) -> Term:
    return Term("sym", (key,), real)


ZERO, ONE, TRUE, FALSE = const(0), const(1), const(True), const(False)

Monomial = tuple[Term, ...]


@lru_cache(maxsize=20_000)
def _order(t: Term) -> str:
    return repr((t.op, t.args))


def _polynomial(t: Term) -> dict[Monomial, int]:
    """Product of atoms -> coefficient."""
    if t.op == "const":
        return {(): int(t.args[0])} if t.args[0] else {}  # type: ignore[call-overload]
    if t.op == "+":
        total: dict[Monomial, int] = {}
        for part in t.parts:
            for m, c in _polynomial(part).items():
                total[m] = total.get(m, 0) + c
        return {m: c for m, c in total.items() if c}
    if t.op == "*":
        product: dict[Monomial, int] = {(): 1}
        for part in t.parts:
            new: dict[Monomial, int] = {}
            for m, c in product.items():
                for n, d in _polynomial(part).items():
                    key = tuple(sorted((*m, *n), key=_order))
                    new[key] = new.get(key, 0) + c * d
            product = {m: c for m, c in new.items() if c}
        return product
    return {(t,): 1}


def _term(poly: Mapping[Monomial, int]) -> Term:
    parts: list[Term] = []
    for m, c in poly.items():
        if not c:
            continue
        factors = list(m) if c == 1 and m else [*m, const(c)]
        parts.append(factors[0] if len(factors) == 1 else Term("*", tuple(factors)))
    # constants last, so that `n + 255` reads as it is written
    parts.sort(key=lambda p: p.op == "const")
    if not parts:
        return ZERO
    return parts[0] if len(parts) == 1 else Term("+", tuple(parts))


def add(a: Term, b: Term) -> Term:
    if a.real or b.real:
        return _real("+", a, b)
    return _term(_polynomial(Term("+", (a, b))))


def neg(a: Term) -> Term:
    if a.real:
        return const(-a.args[0]) if a.op == "const" else Term("neg", (a,), True)  # type: ignore[operator]
    return mul(a, const(-1))


def sub(a: Term, b: Term) -> Term:
    if a.real or b.real:
        return _real("-", a, b)
    return add(a, neg(b))


def mul(a: Term, b: Term) -> Term:
    if a.real or b.real:
        return _real("*", a, b)
    return _term(_polynomial(Term("*", (a, b))))


_REAL: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
}  # fmt: skip


def _real(op: str, a: Term, b: Term) -> Term:
    x, y = a.value, b.value
    if x is not None and y is not None and not (op == "/" and y == 0):
        try:
            return const(float(_REAL[op](x, y)))
        except (OverflowError, ValueError):
            pass
    return Term(f"real{op}", (a, b), True)


def _exact(a: Term, b: Term) -> Term | None:
    """a / b where b divides every product of a: n*k/k. None: not seen to."""
    whole = _polynomial(b)
    if len(whole) != 1:
        return None
    ((atoms, factor),) = whole.items()
    found: dict[Monomial, int] = {}
    for m, c in _polynomial(a).items():
        rest = list(m)
        for atom in atoms:
            if atom not in rest:
                return None
            rest.remove(atom)
        if c % factor:
            return None
        found[tuple(rest)] = found.get(tuple(rest), 0) + c // factor
    return _term(found)


def div(a: Term, b: Term) -> Term:
    """The quotient of integers, `ceil_div` where the dividend was rounded up for it; of floats, their quotient."""
    if a.real or b.real:
        return _real("/", a, b)
    if b.value == 0:
        return Term("//", (a, b))
    if a.value is not None and b.value is not None:
        x, y = int(a.value), int(b.value)
        return const(abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1))
    if b == ONE:
        return a
    exact = _exact(a, b)
    if exact is not None:
        return exact
    less = sub(a, sub(b, ONE))
    have, want = _polynomial(a), _polynomial(sub(b, ONE))
    if all(have.get(m, 0) == c for m, c in want.items()) and less.value is None:
        return ceil_div(less, b)
    if a.op == "//" and b.value is not None and isinstance(a.args[1], Term) and a.args[1].value is not None:
        return div(a.parts[0], mul(a.parts[1], b))
    return Term("//", (a, b))


def ceil_div(a: Term, b: Term) -> Term:
    if a.value is not None and b.value:
        return const(-(-int(a.value) // int(b.value)))
    if b == ONE:
        return a
    exact = _exact(a, b)
    if exact is not None:
        return exact
    return Term("ceil_div", (a, b))


def mod(a: Term, b: Term) -> Term:
    if a.value is not None and b.value:
        return const(int(math.fmod(int(a.value), int(b.value))))
    if b == ONE or _exact(a, b) is not None:
        return ZERO
    return Term("%", (a, b))


def plus_one_where_rest(a: Term) -> Term:
    """`a / b + (a % b != 0)` and `(a - 1) / b + 1` are rounded-up quotients too."""
    if a.op != "+":
        return a
    for p in a.parts:
        others = [q for q in a.parts if q is not p]
        if p.op == "//" and len(others) == 1:
            n, d = p.parts
            if others[0] == Term("!=", (Term("%", (n, d)), ZERO)) or others[0] == Term("<", (ZERO, Term("%", (n, d)))):
                return ceil_div(n, d)
            if others[0] == ONE and _polynomial(n).get((), 0) == -1:
                return ceil_div(add(n, ONE), d)
    return a


def call(name: str, *args: Term) -> Term:
    """min, max, abs, sqrt, next_pow2, int and the bitwise operators."""
    values = [a.value for a in args]
    real = name == "sqrt" or (name != "int" and any(a.real for a in args))
    if all(v is not None for v in values):
        folded = _fold(name, [v for v in values if v is not None])
        if folded is not None:
            return const(folded)
    if name in ("min", "max"):
        if args[0] == args[1]:
            return args[0]
        flat: list[Term] = []
        for a in args:
            for part in a.parts if a.op == name else (a,):
                if part not in flat:
                    flat.append(part)
        return Term(name, tuple(flat), real)
    if name == "int" and not args[0].real:
        return args[0]
    if name == "<<" and args[1].value is not None:
        return mul(args[0], const(1 << int(args[1].value)))
    if name == ">>" and args[1].value is not None:
        return div(args[0], const(1 << int(args[1].value)))
    if name == "&" and args[1].value is not None and args[1].value > 0 and (int(args[1].value) + 1).bit_count() == 1:
        return mod(args[0], const(int(args[1].value) + 1))
    if name == "&" and args[1].op == "~" and args[1].parts[0].value is not None:
        return call("&", args[0], const(~int(args[1].parts[0].value)))
    if name == "&" and args[1].value is not None and args[1].value < 0 and (-int(args[1].value)).bit_count() == 1:
        step = const(-int(args[1].value))
        return mul(div(args[0], step), step)
    return Term(name, args, real)


def _fold(name: str, values: list[int | float | bool]) -> int | float | bool | None:
    whole = all(not isinstance(v, float) for v in values)
    try:
        if name in ("min", "max"):
            return (min if name == "min" else max)(values)
        if name == "abs":
            return abs(values[0])
        if name == "sqrt":
            return math.sqrt(values[0])
        if name == "int":
            return int(values[0])
        if name == "next_pow2":
            return 1 if values[0] <= 1 else 1 << (int(values[0]) - 1).bit_length()
        if whole:
            a, b = int(values[0]), int(values[-1])
            if name in ("<<", ">>") and not 0 <= b < 64:
                return None
            table: dict[str, Callable[[], int]] = {
                "<<": lambda: a << b, ">>": lambda: a >> b, "&": lambda: a & b, "|": lambda: a | b,
                "^": lambda: a ^ b, "~": lambda: ~a,
            }  # fmt: skip
            return table[name]() if name in table else None
    except (ValueError, OverflowError):
        return None
    return None


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip


def compare(op: str, a: Term, b: Term) -> Term:
    if op in (">", ">="):
        op, a, b = op.replace(">", "<"), b, a
    if a.value is not None and b.value is not None:
        return const(_COMPARE[op](a.value, b.value))
    if a == b:
        return const(op in ("<=", "=="))
    if op in ("==", "!=") and a.value is not None:
        a, b = b, a
    if op in ("==", "!=") and b.value in (True, False) and isinstance(b.value, bool) and is_condition(a):
        return a if (op == "==") == b.value else negate(a)
    return Term(op, (a, b))


_NEGATED = {"<": "<=", "<=": "<", "==": "!=", "!=": "=="}


def is_condition(t: Term) -> bool:
    return t.op in (*_COMPARE, "and", "or", "not", "aligned") or isinstance(t.value, bool)


def truth(a: Term) -> Term:
    """The condition that a number is: not zero."""
    if a.value is not None:
        return const(bool(a.value))
    return a if is_condition(a) else compare("!=", a, ZERO)


def negate(a: Term) -> Term:
    a = truth(a)
    if a.value is not None:
        return const(not a.value)
    if a.op == "not":
        return a.parts[0]
    if a.op in ("==", "!="):
        return Term(_NEGATED[a.op], a.args)
    if a.op in ("<", "<="):
        return Term(_NEGATED[a.op], (a.args[1], a.args[0]))
    if a.op in ("and", "or"):
        return both(*(negate(p) for p in a.parts)) if a.op == "or" else either(*(negate(p) for p in a.parts))
    return Term("not", (a,))


def both(*conditions: Term) -> Term:
    return _joined("and", conditions, TRUE, FALSE)


def either(*conditions: Term) -> Term:
    return _joined("or", conditions, FALSE, TRUE)


def _joined(op: str, conditions: tuple[Term, ...], neutral: Term, absorbing: Term) -> Term:
    parts: list[Term] = []
    for c in map(truth, conditions):
        for p in c.parts if c.op == op else (c,):
            if p.value is not None:
                if bool(p.value) == bool(absorbing.value):
                    return absorbing
            elif negate(p) in parts:
                return absorbing
            elif p not in parts:
                parts.append(p)
    if not parts:
        return neutral
    return parts[0] if len(parts) == 1 else Term(op, tuple(parts))


def choose(condition: Term, a: Term, b: Term) -> Term:
    """`condition ? a : b`; a minimum, a maximum or a rounded-up quotient where that is what it is."""
    condition = truth(condition)
    if condition.value is not None:
        return a if condition.value else b
    if a == b:
        return a
    if condition.op in ("<", "<="):
        x, y = condition.parts
        if (a, b) == (x, y):
            return call("min", x, y)
        if (a, b) == (y, x):
            return call("max", x, y)
    if condition.op in ("==", "!=") and condition.parts[0].op == "%" and condition.parts[1] == ZERO:
        n, d = condition.parts[0].parts
        even, uneven = (a, b) if condition.op == "==" else (b, a)
        if even == div(n, d) and uneven == add(div(n, d), ONE):
            return ceil_div(n, d)
    return Term("if", (condition, a, b), a.real or b.real)


def symbols(t: Term) -> frozenset[str]:
    """The keys of the symbols in a term."""
    if t.op == "sym":
        return frozenset((str(t.args[0]),))
    found: frozenset[str] = frozenset()
    for p in t.parts:
        found |= symbols(p)
    return found


def rebuild(t: Term, f: Callable[[Term], Term | None]) -> Term:
    """The term with parts replaced (`f` gives None for what stays), simplified again."""
    new = f(t)
    if new is not None:
        return new
    parts = tuple(rebuild(a, f) if isinstance(a, Term) else a for a in t.args)
    if parts == t.args:
        return t
    terms = [p for p in parts if isinstance(p, Term)]
    return made(t.op, terms, t)


def made(op: str, parts: list[Term], like: Term) -> Term:
    """A term of an operation, through the constructor that simplifies it."""
    if op in ("+", "*"):
        total = parts[0]
        for p in parts[1:]:
            total = add(total, p) if op == "+" else mul(total, p)
        return total
    if op in ("real+", "real-", "real*", "real/"):
        return _real(op[4:], parts[0], parts[1])
    simple: dict[str, Callable[..., Term]] = {
        "//": div, "%": mod, "ceil_div": ceil_div, "and": both, "or": either, "not": negate, "if": choose, "neg": neg,
    }  # fmt: skip
    if op in simple:
        return simple[op](*parts)
    if op in _COMPARE:
        return compare(op, parts[0], parts[1])
    if op in ("min", "max") and len(parts) > 1:
        total = parts[0]
        for p in parts[1:]:
            total = call(op, total, p)
        return total
    if op in ("abs", "sqrt", "next_pow2", "int", "<<", ">>", "&", "|", "^", "~"):
        return call(op, *parts)
    rest = iter(parts)
    return Term(op, tuple(next(rest) if isinstance(a, Term) else a for a in like.args), like.real)


# ---------------------------------------------------------------- printing

_LEVEL = {"if": 0, "or": 1, "and": 2, "not": 3, "cmp": 4, "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "*": 10,
          "//": 10, "%": 10, "neg": 11, "~": 11}  # fmt: skip


def text_of(t: Term, names: Mapping[str, str]) -> str:
    """The term as a case expression; `names` gives symbols their names (else their keys)."""
    return _print(t, names)[0]


def _print(t: Term, names: Mapping[str, str]) -> tuple[str, int]:
    def at(x: object, level: int) -> str:
        assert isinstance(x, Term)
        text, own = _print(x, names)
        return text if own >= level else f"({text})"

    op = t.op
    if op == "const":
        value = t.args[0]
        text = repr(value)
        return text, 14 if not text.startswith("-") else 11
    if op == "sym":
        key = str(t.args[0])
        return names.get(key, key), 14
    if op == "sizeof":
        return f"sizeof({t.args[0]})", 14
    if op == "sm_count":
        return "sm_count()", 14
    if op == "aligned":
        return f"aligned({t.args[0]}, {t.args[1]})", 14
    if op == "+":
        out = ""
        for p in t.parts:
            negative = _negative(p)
            if negative is not None:
                out += (" - " if out else "-") + at(negative, 10)
            else:
                out += (" + " if out else "") + at(p, 9)
        return out, 9
    if op == "*":
        return " * ".join(at(p, 10 if i == 0 else 11) for i, p in enumerate(t.parts)), 10
    if op in ("//", "%"):
        return f"{at(t.args[0], 10)} {op} {at(t.args[1], 11)}", 10
    if op in ("real+", "real-"):
        return f"{at(t.args[0], 9)} {op[4]} {at(t.args[1], 10)}", 9
    if op in ("real*", "real/"):
        return f"{at(t.args[0], 10)} {op[4]} {at(t.args[1], 11)}", 10
    if op == "neg":
        return f"-{at(t.args[0], 11)}", 11
    if op == "~":
        return f"~{at(t.args[0], 11)}", 11
    if op in _COMPARE:
        return f"{at(t.args[0], 5)} {op} {at(t.args[1], 5)}", 4
    if op in ("and", "or"):
        level = _LEVEL[op]
        return f" {op} ".join(at(p, level + 1) for p in t.parts), level
    if op == "not":
        return f"not {at(t.args[0], 3)}", 3
    if op == "if":
        return f"{at(t.args[1], 1)} if {at(t.args[0], 1)} else {at(t.args[2], 0)}", 0
    if op in ("<<", ">>", "&", "|", "^"):
        level = _LEVEL[op]
        return f"{at(t.args[0], level)} {op} {at(t.args[1], level + 1)}", level
    return f"{op}({', '.join(_print(p, names)[0] for p in t.parts)})", 14


def _negative(t: Term) -> Term | None:
    """The term without its sign, where a constant factor of it is negative."""
    value = t.value
    if value is not None:
        return const(-value) if value < 0 else None
    if t.op == "*":
        factor = t.parts[-1].value
        if factor is not None and factor < 0:
            return mul(t, const(-1))
    return None
