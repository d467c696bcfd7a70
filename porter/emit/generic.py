"""Generic IR: what differs between the instances of a kernel, and how it is written in terms of template parameters.

Every instance is lowered to concrete IR on its own; `merge` lays the bodies over one another. Where they differ in a
type or a constant the merged node holds one value an instance (`Variants`, `ConstVariants`); where they differ in
shape the merged body holds an `InstanceIf`. `Params.express` then finds the template parameter, or an expression over
parameters, that yields those values. Specialising the merged IR gives back each instance, by construction.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from porter import ir
from porter.emit import spelling

Value = Any  # a Scalar (type argument), int or bool


@dataclass(frozen=True)
class Variants(ir.Type):
    """One type an instance; None where the node does not occur in the instance."""

    types: tuple[ir.Type | None, ...]


@dataclass(frozen=True)
class ConstVariants(ir.Expr):
    """One constant an instance; None where the node does not occur in the instance."""

    values: tuple[Any, ...]
    origin: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class HelperCall(ir.Expr):
    """A call of a device function that stays a function; `targs` are (parameter, Type or Const) of its template."""

    name: str
    args: tuple[ir.Expr, ...]
    targs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class InstanceIf(ir.Stmt):
    """Arms by instance: (indices of the instances, body).

    `cond` is the source's own `if constexpr` condition where it is one expression for all instances; `yes` are the
    instances in which it holds.
    """

    arms: tuple[tuple[tuple[int, ...], tuple[ir.Stmt, ...]], ...]
    cond: ir.Expr | None = None
    yes: tuple[int, ...] = ()


def variants(t: ir.Type, count: int) -> tuple[ir.Type | None, ...]:
    """The type in each instance."""
    return t.types if isinstance(t, Variants) else (t,) * count


@dataclass(frozen=True)
class Params:
    """Template parameters and their values in each instance.

    `words` are what the source's text leads to at the place that is being written (None: not known). What differs by
    instance is expressed by parameters that are among them only, and by sizes of types only where `sizeof` is.
    """

    names: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]  # per instance, in order of names
    words: frozenset[str] | None = None

    def leads_to(self, word: str) -> bool:
        """Whether the source may mean `word` at this place."""
        return self.words is None or word in self.words

    @property
    def _shown(self) -> tuple[str, ...]:
        return tuple(n for n in self.names if self.leads_to(n))

    @property
    def count(self) -> int:
        return max(len(self.values), 1)

    def named_in(self, text: str) -> bool:
        """Whether a line of the port names a template parameter."""
        return any(name in text and re.search(rf"\b{name}\b", text) for name in self.names)

    def column(self, name: str) -> tuple[Value, ...]:
        i = self.names.index(name)
        return tuple(v[i] for v in self.values)

    # ---- constants

    def express_const(self, values: tuple[Any, ...], origin: str | None = None) -> str | None:
        """Python text over the parameters with these values in the instances, or None when no simple one exists.

        A number that all instances share is that number, unless the source has a parameter there (`origin`).
        """
        present = [i for i, v in enumerate(values) if v is not None]
        if not present:
            return None
        if origin in self.names and self._matches(values, self.column(origin)):
            return origin
        if len({_key(values[i]) for i in present}) == 1:
            return _literal(values[present[0]])
        for n in self._shown:
            if self._matches(values, self.column(n)):
                return n
        ints = [n for n in self._shown if all(isinstance(v, int) and not isinstance(v, bool) for v in self.column(n))]
        types = [
            n for n in self._shown if self.leads_to("sizeof") and all(isinstance(v, ir.Scalar) for v in self.column(n))
        ]
        sizes = {n: tuple(ir.SCALAR_BYTES[v.name] for v in self.column(n)) for n in types}
        for n in types:
            if self._matches(values, sizes[n]):
                return f"{n}.width // 8"
        for n in ints:
            col = self.column(n)
            k = _ratio(values, col, present)
            if k is not None:
                return f"{n} * {k}"
            if all(_int(values[i]) and values[i] and col[i] % values[i] == 0 for i in present):
                d = {col[i] // values[i] for i in present}
                if len(d) == 1 and d != {0}:
                    return f"{n} // {d.pop()}"
            if all(
                _int(values[i]) and col[i] and values[i] * col[i] == values[present[0]] * col[present[0]]
                for i in present
            ):
                return f"{values[present[0]] * col[present[0]]} // {n}"
            diff = {values[i] - col[i] for i in present if _int(values[i])}
            if len(diff) == 1:
                d0 = diff.pop()
                return f"{n} {'+' if d0 > 0 else '-'} {abs(d0)}"
        for n in types:
            if all(
                _int(values[i]) and sizes[n][i] and values[i] * sizes[n][i] == values[present[0]] * sizes[n][present[0]]
                for i in present
            ):
                return f"{values[present[0]] * sizes[n][present[0]] * 8} // {n}.width"
            k = _ratio(values, sizes[n], present)
            if k is not None:
                return f"{n}.width * {k} // 8"
        for n in ints:
            for t in types:
                prod = tuple(a * b for a, b in zip(self.column(n), sizes[t], strict=False))
                if self._matches(values, prod):
                    return f"{n} * {t}.width // 8"
                if all(_int(values[i]) and values[i] * sizes[t][i] == self.column(n)[i] for i in present):
                    return f"{n} * 8 // {t}.width"
            for m in ints:
                a, b = self.column(n), self.column(m)
                if n < m and self._matches(values, tuple(x * y for x, y in zip(a, b, strict=False))):
                    return f"{n} * {m}"
                if n != m and all(b) and self._matches(values, tuple(x // y for x, y in zip(a, b, strict=False))):
                    return f"{n} // {m}"
        return None

    def const_text(self, values: tuple[Any, ...], origin: str | None = None) -> str:
        """Python text with these values; a chain of conditional expressions when no arithmetic does it."""
        text = self.express_const(values, origin)
        if text is not None:
            return text
        return self._pick([(v, _literal(v)) for v in values])

    def size_named(self, origin: str | None, value: Any) -> str | None:
        """The size in bytes of the type parameter that the source names in `sizeof`, where it has this value."""
        found = re.fullmatch(r"sizeof\((\w+)\)", origin or "")
        if found is None or found[1] not in self.names:
            return None
        column = self.column(found[1])
        sized = any(isinstance(t, ir.Scalar) and ir.SCALAR_BYTES[t.name] == value for t in column)
        return f"{found[1]}.width // 8" if sized else None

    # ---- types

    def type_text(self, types: tuple[ir.Type | None, ...], spell: Any) -> str:
        """Text for scalar types by instance: a parameter, a fixed type, or a chain. `spell` prints one Scalar."""
        present = [t for t in types if t is not None]
        if len(set(present)) == 1:
            return str(spell(present[0]))
        for n in self._shown:
            col = self.column(n)
            if all(isinstance(v, ir.Scalar) for v in col) and self._matches(types, col):
                return n
        return self._chain([(t, spell(t) if t is not None else None) for t in types])

    def _pick(self, per_instance: list[tuple[Any, Any]]) -> str:
        """Like `_chain`, as a choice by index: CuTeDSL takes no conditional expression inside a subscript it stores
        to."""
        out, others = _by_text(per_instance)
        for text, where in others:
            out = f"({out}, {text})[{self.condition(where)}]"
        return out

    def _chain(self, per_instance: list[tuple[Any, Any]]) -> str:
        out, others = _by_text(per_instance)
        for text, where in others:
            out = f"{text} if {self.condition(where)} else {out}"
        return f"({out})"

    # ---- which instance

    def condition(self, where: tuple[int, ...]) -> str:
        """A Python condition over the parameters that holds exactly in these instances."""
        others = [i for i in range(len(self.values)) if i not in where]
        if not others:
            return "True"
        for n in self.names:
            col = self.column(n)
            inside, outside = {_key(col[i]) for i in where}, {_key(col[i]) for i in others}
            if not inside & outside:
                if len(outside) == 1 and len(inside) > 1:
                    return f"not ({self._equals(n, col[others[0]])})"
                return " or ".join(dict.fromkeys(self._equals(n, col[i]) for i in where))
        terms = []
        for i in where:
            terms.append(
                "(" + " and ".join(self._equals(n, v) for n, v in zip(self.names, self.values[i], strict=False)) + ")"
            )
        return " or ".join(terms)

    def _equals(self, name: str, value: Value) -> str:
        if isinstance(value, ir.Scalar):
            return f"{name} is {spelling.dtype(value)}"
        if isinstance(value, bool):
            return name if value else f"not {name}"
        return f"{name} == {value!r}"

    def _matches(self, values: tuple[Any, ...], column: tuple[Any, ...]) -> bool:
        return all(v is None or _key(v) == _key(c) for v, c in zip(values, column, strict=False))


def _by_text(per_instance: list[tuple[Any, Any]]) -> tuple[str, list[tuple[str, tuple[int, ...]]]]:
    """The text of most instances, and the others, most frequent first, with their instances."""
    groups: dict[str, list[int]] = {}
    for i, (v, text) in enumerate(per_instance):
        if v is not None:
            groups.setdefault(text, []).append(i)
    *others, (usual, _) = sorted(groups.items(), key=lambda kv: len(kv[1]))
    return usual, [(text, tuple(where)) for text, where in reversed(others)]


def _key(v: Any) -> Any:
    return (type(v).__name__ == "bool", v) if isinstance(v, bool | int) else v


def _literal(v: Any) -> str:
    return spelling.float_text(v) if isinstance(v, float) and not math.isfinite(v) else repr(v)


def _int(v: Any) -> bool:
    return isinstance(v, int) and not isinstance(v, bool)


def _ratio(values: tuple[Any, ...], base: tuple[Any, ...], present: list[int]) -> int | None:
    if not all(_int(values[i]) and base[i] and values[i] % base[i] == 0 for i in present):
        return None
    k = {values[i] // base[i] for i in present}
    return k.pop() if len(k) == 1 else None
