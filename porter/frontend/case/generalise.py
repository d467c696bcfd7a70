"""One expression for all instances: what differs between them is written with the template's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from porter.cxx.types import scalar_name
from porter.frontend.host import terms
from porter.frontend.host.terms import Term
from porter.ir import SCALAR_BYTES

Values = Mapping[str, str | int | bool]  # template parameter -> scalar name, number or bool


def generalised(found: Sequence[Term], values: Sequence[Values]) -> Term | None:
    """A term that gives each of `found` at the template values of its instance; None: there is none."""
    if all(f == found[0] for f in found):
        return found[0]
    if all(f.value is not None and not f.real for f in found):
        numbers = [int(f.value or 0) for f in found]
        return _number(numbers, values) or _chain(found, values)
    shared = _by_a_number(found, values)
    if shared is not None:
        return shared
    first = found[0]
    if all(f.op == first.op and len(f.args) == len(first.args) for f in found):
        parts: list[Term] = []
        for group in zip(*(f.parts for f in found), strict=False):
            part = generalised(group, values)
            if part is None:
                return _chain(found, values)
            parts.append(part)
        if len(parts) == len(first.parts) and all(
            a == b for f in found for a, b in zip(f.args, first.args, strict=True) if not isinstance(a, Term)
        ):
            return terms.made(first.op, parts, first)
    return _chain(found, values)


def _by_a_number(found: Sequence[Term], values: Sequence[Values]) -> Term | None:
    """`n / VEC` where one instance has n / 8 and another, whose VEC is 1, has n; likewise rounded up, and products."""
    for op in ("//", "ceil_div", "*"):
        split: list[tuple[Term, Term]] = []
        for f in found:
            last = f.parts[-1] if f.op == op else None
            if last is None or last.value is None:
                split.append((f, terms.ONE))
            elif op == "*":
                split.append((terms.div(f, last), last))
            else:
                split.append((f.parts[0], last))
        numbers = {n for _, n in split}
        if len(numbers) < 2 or terms.ONE not in numbers or not all(x == split[0][0] for x, _ in split):
            continue
        number = _number([int(n.value or 0) for _, n in split], values)
        if number is not None:
            return terms.mul(split[0][0], number) if op == "*" else Term(op, (split[0][0], number))
    return None


def parameter_values(values: Values) -> dict[Term, int]:
    """Terms over template parameters that are numbers, with their values: the parameter, the size of the type."""
    known: dict[Term, int] = {}
    for name, value in values.items():
        if isinstance(value, bool):
            continue
        if isinstance(value, int):
            known[terms.sym(name)] = value
        else:
            scalar = scalar_name(value)
            if scalar is not None:
                known[Term("sizeof", (name,))] = SCALAR_BYTES[scalar]
    return known


def _number(numbers: list[int], values: Sequence[Values]) -> Term | None:
    tables = [parameter_values(v) for v in values]
    common = [t for t in tables[0] if all(t in other for other in tables)]
    for t in common:
        if all(table[t] == n for table, n in zip(tables, numbers, strict=True)):
            return t
    for t in common:
        if all(table[t] and n % table[t] == 0 for table, n in zip(tables, numbers, strict=True)):
            factors = {n // table[t] for table, n in zip(tables, numbers, strict=True)}
            if len(factors) == 1:
                return terms.mul(t, terms.const(factors.pop()))
        quotients = {
            table[t] // n if n and table[t] % n == 0 else 0 for table, n in zip(tables, numbers, strict=True)
        }
        if len(quotients) == 1 and 0 not in quotients:
            return Term("//", (t, terms.const(quotients.pop())))
        products = {table[t] * n for table, n in zip(tables, numbers, strict=True)}
        if len(products) == 1 and len({table[t] for table in tables}) > 1:
            return Term("//", (terms.const(products.pop()), t))
    for a in common:
        for b in common:
            if all(x[a] * x[b] == n for x, n in zip(tables, numbers, strict=True)):
                return terms.mul(a, b)
            if all(x[b] and x[a] == n * x[b] for x, n in zip(tables, numbers, strict=True)):
                return Term("//", (a, b))
    return None


def _chain(found: Sequence[Term], values: Sequence[Values]) -> Term | None:
    """`a if VEC == 8 else b`, by one parameter that tells the different values apart."""
    names = [n for n, v in values[0].items() if isinstance(v, int)]
    for name in names:
        by: dict[int | bool, set[Term]] = {}
        for f, v in zip(found, values, strict=True):
            value = v.get(name)
            if not isinstance(value, int):
                break
            by.setdefault(value, set()).add(f)
        else:
            if len(by) > 1 and all(len(s) == 1 for s in by.values()):
                entries = [(v, next(iter(s))) for v, s in by.items()]
                whole = entries[-1][1]
                for given, f in reversed(entries[:-1]):
                    parameter = terms.sym(name)
                    test = parameter if given is True else terms.compare("==", parameter, terms.const(given))
                    test = terms.negate(parameter) if given is False else test
                    whole = Term("if", (test, f, whole))
                return whole
    for name, argument in values[0].items():
        if not isinstance(argument, str):
            continue
        sizes: dict[int, set[Term]] = {}
        for f, at in zip(found, values, strict=True):
            scalar = scalar_name(str(at.get(name, "")))
            if scalar is None:
                break
            sizes.setdefault(SCALAR_BYTES[scalar], set()).add(f)
        else:
            if len(sizes) > 1 and all(len(s) == 1 for s in sizes.values()):
                listed = [(b, next(iter(s))) for b, s in sizes.items()]
                whole = listed[-1][1]
                for b, f in reversed(listed[:-1]):
                    whole = Term("if", (Term("==", (Term("sizeof", (name,)), terms.const(b))), f, whole))
                return whole
    return None
