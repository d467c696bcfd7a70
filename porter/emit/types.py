"""Types as the port spells them: scalars, element types of pointers, sizes and counts, one answer for all instances."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from porter import ir
from porter.emit import spelling
from porter.emit.expressions.ranges import Intervals, fits, upper
from porter.emit.generic import Variants, variants
from porter.emit.layout import Leaf, align_of, leaf
from porter.emit.text import BUILTIN_NAMES, Scope, Text
from porter.patterns.names import raw_name

T = TypeVar("T")


class TypeWriter:
    """Writes types in one scope; the base of the writers of places, casts and expressions."""

    def __init__(self, scope: Scope):
        self.s = scope
        self._known: dict[tuple[str, int], tuple[ir.Expr, Any]] = {}  # by question and node, which it keeps alive
        self._bounds: dict[int, tuple[ir.Expr, int | None]] = {}
        self._intervals: Intervals = {}

    def forget(self) -> None:
        """Answers hold for one statement: the next one may know other bounds and constants."""
        self._known.clear()
        self._bounds.clear()
        self._intervals.clear()

    def once(self, write: Callable[[ir.Expr], T], e: ir.Expr) -> T:
        """What `write` says of a node, asked once a statement."""
        key = (write.__name__, id(e))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (e, write(e))
        answer: T = found[1]
        return answer

    def fits(self, e: ir.Expr) -> bool:
        """ranges.fits with what the scope knows of its variables."""
        return fits(e, self.s.ranges, self._intervals)

    def upper(self, e: ir.Expr) -> int | None:
        """ranges.upper with what the scope knows of its variables."""
        return upper(e, self.s.bounds, self._bounds)

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

    def is_half(self, t: ir.Type) -> bool:
        return bool(self.kinds(t) & {"f16", "bf16"})

    def leaves(self, t: ir.Type) -> tuple[Leaf, ...]:
        """The element view of a type in each instance; bytes everywhere when it is mixed anywhere."""
        out = [leaf(x) if x is not None else None for x in variants(t, self.s.params.count)]
        if any(x is not None and x.mixed for x in out):
            out = [Leaf(ir.U8, x.count * x.size, True) if x is not None else None for x in out]
        first = next(x for x in out if x is not None)
        return tuple(x if x is not None else replace(first, absent=True) for x in out)

    def leaf_dtype(self, leaves: tuple[Leaf, ...]) -> str:
        return self.s.params.type_text(
            tuple(None if x.absent else x.scalar for x in leaves), spelling.memory_dtype
        )

    def pointee(self, t: ir.Type) -> ir.Type:
        ts = variants(t, self.s.params.count)
        elems = tuple(x.elem if isinstance(x, ir.Pointer) else None for x in ts)
        present = [e for e in elems if e is not None]
        return present[0] if all(e == present[0] for e in present) else Variants(elems)

    def pointer_dtype(self, t: ir.Type) -> str:
        """Element type text of a pointer value."""
        return self.leaf_dtype(self.leaves(self.pointee(t)))

    def const(self, values: Iterable[Any], *, of_bytes: bool = False) -> str:
        """Python text of a number that follows from types. `of_bytes`: sizes of types are what it is made of."""
        wanted = tuple(values)
        params = self.s.params
        if of_bytes and params.words is not None:
            params = replace(params, words=params.words | {"sizeof"})
        text = params.express_const(wanted)
        if text is not None:
            return text
        for name, known in self.s.constants.items():  # a constant that the source computed and named
            if (
                name in self.s.static
                and self.is_visible(name)
                and params.leads_to(raw_name(name))
                and all(v is None or v == k for v, k in zip(wanted, known, strict=True))
            ):
                return self.name(name)
        return params.const_text(wanted)

    def count(self, leaves: tuple[Leaf, ...]) -> str:
        """Text of the number of elements of an object."""
        return self.const((None if x.absent else x.count for x in leaves), of_bytes=leaves[0].mixed)

    def sizes(self, t: ir.Type) -> tuple[int, ...]:
        first = next(x for x in variants(t, self.s.params.count) if x is not None)
        return tuple(ir.sizeof(x if x is not None else first) for x in variants(t, self.s.params.count))

    def align(self, t: ir.Type) -> tuple[int, ...]:
        first = next(x for x in variants(t, self.s.params.count) if x is not None)
        return tuple(align_of(x if x is not None else first) for x in variants(t, self.s.params.count))

    def name(self, n: str) -> str:
        return self.s.python_names.get(n, n)

    def is_visible(self, key: str) -> bool:
        """Whether the shown name of a definition means that definition here."""
        return self.s.visible.get(self.s.shown.get(key, key)) == key

    def builtin_i32(self, e: ir.Builtin) -> str:
        self.s.used_builtins.add(e.name)
        return BUILTIN_NAMES[e.name]

    # ---- what the writer of expressions adds

    def expr(self, e: ir.Expr) -> Text:
        raise NotImplementedError

    def value(self, e: ir.Expr) -> Text:
        raise NotImplementedError

    def low32(self, e: ir.Expr) -> Text | None:
        raise NotImplementedError
