"""Where a kernel touches its buffers: which pointers are rows of a tensor, and which accesses can go through tensors.

An access is lifted only if its address is coordinates of a buffer whose shape is known, whatever array of registers it
fills or empties goes along, and whatever pointer it goes through is used by nothing that stays a pointer.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from porter.lift.lines import Function, Line, assigned_once, every
from porter.lift.shapes import Shape
from porter.lift.terms import called, coordinate, factors, names_in, narrowed, product, starts, summands, text_of, total

Values = Mapping[str, Sequence[int]]
NO_VALUES: Values = {}


@dataclass(frozen=True)
class Address:
    """An element of a buffer: coordinates of all modes but the last, and the terms of the last one's."""

    buffer: str
    coordinates: tuple[str, ...]
    column: tuple[ast.expr, ...]


@dataclass
class Access:
    """One access in a line. `root`: the name that its address starts from; `column`: the terms behind it.

    A vector access has a `count` of elements, and moves them to or from `array`, or from one buffer to another.
    """

    line: Line
    node: ast.expr
    root: str
    column: tuple[ast.expr, ...]
    address: Address
    count: str = ""
    array: str = ""


class Accesses:
    """The accesses of one function's body that can be lifted.

    `own`: pointers whose place in a buffer is no coordinates, so that tensors begin at them. `values`: those that a
    template parameter has over the instances.
    """

    def __init__(
        self, fn: Function, shapes: dict[str, Shape], own: Mapping[str, Shape] = {}, values: Values = NO_VALUES
    ):
        self.fn, self.shapes, self.own, self.values = fn, {**shapes, **own}, own, values
        self.definitions = assigned_once(fn.body)
        self.begun = {name: self.definitions.pop(name)[0] for name in own if name in self.definitions}
        self.arrays = {
            name: (line, text_of(call.args[0]), text_of(call.args[1]))
            for name, (line, value) in self.definitions.items()
            if (call := called(value, "lib.local")) is not None and len(call.args) == 2
        }
        self.pointers = {n: a for n in self.definitions if (a := self.address(ast.Name(n))) is not None}
        self.arms = dict(_arms(fn.body))
        self.found = [a for line in every(fn.body) for a in self._in_line(line)]
        self._settle()

    # ---- addresses

    def address(self, node: ast.expr) -> Address | None:
        """The address that a pointer expression is; None for one that is in no known buffer."""
        found = self._terms(node, set())
        if found is None:
            return None
        buffer, terms = found
        steps = self.shapes[buffer].steps()
        coordinates: list[list[str]] = [[] for _ in steps]
        column: list[ast.expr] = []
        for term in terms:
            for mode, step in enumerate(steps):
                left = self._multiple(term, step)
                if left is not None:
                    coordinates[mode].append(left)
                    break
            else:
                column.append(term)
        return Address(buffer, tuple(" + ".join(c) or "0" for c in coordinates), tuple(column))

    def _terms(self, node: ast.expr, seen: set[str]) -> tuple[str, list[ast.expr]] | None:
        first, *rest = summands(node)
        if not isinstance(first, ast.Name) or first.id in seen:
            return None
        if first.id in self.shapes and first.id not in self.definitions:
            return first.id, rest
        if first.id not in self.definitions:
            return None
        inner = self._terms(self.definitions[first.id][1], seen | {first.id})
        return None if inner is None else (inner[0], [*inner[1], *rest])

    def _multiple(self, term: ast.expr, step: list[str]) -> str | None:
        """What a term is a multiple of a stride by, as a coordinate; None when it is none."""
        left = _without(factors(term), step)
        if left is None and isinstance(term, ast.Name) and term.id in self.definitions:
            value = self.definitions[term.id][1]
            if names_in(value) <= set(self.definitions) | self.fn.parameters():
                left = _without(factors(value), step)
        if left is None:
            return None
        return product(coordinate(f) for f in left) if left else "1"

    # ---- accesses

    def _in_line(self, line: Line) -> list[Access]:
        node = line.node
        if node is None:
            return []
        copy = called(node.value, "lib.copy") if isinstance(node, ast.Expr) else None
        if copy is not None:
            return self._copy(line, copy)
        out = []
        for n in ast.walk(node):
            load = called(n, "lib.ldg")
            if load is not None:
                out += self._access(line, n, load.args[0], ())
            elif isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and self._is_pointer(n.value.id):
                out += self._access(line, n, n.value, tuple(summands(n.slice)))
        return out

    def stranded(self) -> list[str]:
        """Names of pointers, not derived from each other, that accesses go through and none of the found ones does."""
        pointers = {a.arg for a in self.fn.arguments() if a.annotation and text_of(a.annotation) == "cute.Pointer"}
        through = set()
        for a in self.found:
            name = a.root
            while name in self.definitions:
                through.add(name)
                name = starts(self.definitions[name][1])[0]
        derived, out = set[str](), []
        for name, (_, value) in self.definitions.items():
            begun = starts(value)
            if isinstance(value, ast.Call) or name in through or not begun:
                continue
            if any(b in derived for b in begun):
                derived.add(name)
            elif all(b in pointers or b in self.pointers for b in begun):
                derived.add(name)
                out.append(name)
        return out

    def _is_pointer(self, name: str) -> bool:
        return name not in self.arrays and (name in self.pointers or name in self.shapes)

    def _access(
        self, line: Line, node: ast.AST, pointer: ast.expr, more: tuple[ast.expr, ...], count: str = "", array: str = ""
    ) -> list[Access]:
        assert isinstance(node, ast.expr)
        first, *rest = summands(pointer)
        zero = [t for t in more if text_of(t) != "0"]
        whole = pointer
        for term in zero:
            whole = ast.BinOp(whole, ast.Add(), term)
        address = self.address(whole)
        if address is None or not isinstance(first, ast.Name):
            return []
        if "0" in address.coordinates and len(address.column) > 1:
            return []  # more than one mode in the terms of the last one
        return [Access(line, node, first.id, (*rest, *zero), address, count, array)]

    def _copy(self, line: Line, call: ast.Call) -> list[Access]:
        if any(k.arg != "readonly" for k in call.keywords) or len(call.args) != 3:
            return []
        to, source, size = call.args
        count = text_of(size)
        if not names_in(size) <= self.fn.constants():
            return []
        arrays = [self._array(a) for a in (to, source)]
        if all(arrays) or not all(self._is_part(a, n, count) for a, n in zip((to, source), arrays, strict=True) if n):
            return []
        sides = [(to, arrays[1]), (source, arrays[0])]
        ends = [a for pointer, array in sides if not self._array(pointer) for a in
                self._access(line, pointer, pointer, (), count, array)]  # fmt: skip
        wanted = 1 if any(arrays) else 2
        return ends if len(ends) == wanted else []

    def _array(self, node: ast.expr) -> str:
        """The array of registers that one end of a copy is, or is a part of; "" for memory."""
        first = summands(node)[0]
        return first.id if isinstance(first, ast.Name) and first.id in self.arrays else ""

    def _is_part(self, node: ast.expr, array: str, count: str) -> bool:
        """Whether one end of a copy is the whole array, or one of the parts of `count` elements that it has."""
        rest = summands(node)[1:]
        return all(_without(factors(t), [count]) is not None for t in rest) and (
            bool(rest) or self.arrays[array][2] == count
        )

    # ---- what can go together

    def _settle(self) -> None:
        """Drop accesses until everything that the others go through is used by nothing else."""
        uses = Counter(n.id for x in every(self.fn.body) if x.node is not None for n in ast.walk(x.node)
                       if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))  # fmt: skip
        while True:
            arrays = {a for a in self.arrays if self._array_uses(a) == uses[a]}
            roots = Counter(a.root for a in self.found)
            pointers: set[str] = set()
            for p in sorted(self.pointers, key=lambda n: -list(self.pointers).index(n)):
                derived = sum(self._starts_at(q, p) for q in pointers)
                if roots[p] + derived == uses[p]:
                    pointers.add(p)
            kept = [a for a in self.found if self._goes(a, arrays, pointers)]
            whole = Counter(id(a.line) for a in kept if a.count and not a.array)
            kept = [a for a in kept if a.array or not a.count or whole[id(a.line)] == 2]
            vectors: dict[tuple[str, int], set[str]] = defaultdict(set)
            for a in kept:
                vectors[self.home(a)] |= {a.count} if a.count else set()
            kept = [a for a in kept if len(vectors[self.home(a)]) <= 1]
            if len(kept) == len(self.found):
                self.vector = {home: next(iter(v), "") for home, v in vectors.items()}
                self.lifted_pointers = {p for p in pointers if roots[p] or any(self._starts_at(q, p) for q in pointers)}
                self.lifted_arrays = arrays
                return
            self.found = kept

    def _goes(self, a: Access, arrays: set[str], pointers: set[str]) -> bool:
        if a.count and a.address.buffer in self.own and not self.divides(a.address.column, a.count):
            return False  # a tensor that begins at a pointer is aligned where every vector in it shows that it is
        return (not a.array or a.array in arrays) and (a.root in self.shapes or a.root in pointers)

    def index(self, a: Access, column: Iterable[ast.expr]) -> str:
        """The number of a vector access's vector, from the column at which it starts.

        A vector is aligned, and so is its row: the column is a multiple of the vector's elements.
        """
        wide = self.shapes[a.address.buffer].extents[-1] is None
        terms = list(column)
        found = [self._divided(t, a.count, wide) for t in terms]
        if all(f is not None for f in found):
            return " + ".join(f for f in found if f is not None) or "0"
        rest = [t for t, f in zip(terms, found, strict=True) if f is None]  # a multiple too, since the column is one
        whole = total(rest) if len(rest) == 1 and not isinstance(rest[0], ast.BinOp) else f"({total(rest)})"
        index = f"{whole} // {a.count}" if a.count.isalnum() else f"{whole} // ({a.count})"
        return " + ".join([index, *(f for f in found if f is not None)])

    def _divided(self, term: ast.expr, count: str, wide: bool) -> str | None:
        left = divided(term, count, self.values, wide)
        if left is None and isinstance(term, ast.Name) and term.id in self.definitions:
            parts = summands(self.definitions[term.id][1])
            if len(parts) == 1 and _without(factors(parts[0]), [count]) is not None:
                return f"{term.id} // {count}" if count.isalnum() else f"{term.id} // ({count})"
            if len(parts) > 1 and set().union(*map(names_in, parts)) <= set(self.definitions) | self.fn.parameters():
                found = [divided(t, count, self.values, wide) for t in parts]
                left = " + ".join(f for f in found if f is not None) if None not in found else None
        return left

    def divides(self, column: Iterable[ast.expr], count: str) -> bool:
        """Whether each term of a column is a multiple of `count`, whatever its variables are."""
        return all(divided(t, count, self.values) is not None for t in column)

    def _starts_at(self, pointer: str, root: str) -> bool:
        first = summands(self.definitions[pointer][1])[0]
        return isinstance(first, ast.Name) and first.id == root

    def _array_uses(self, name: str) -> int:
        """How often an array is used in ways that a tensor of registers has too: subscripts, whole copies."""
        subscripts = sum(
            1
            for x in every(self.fn.body)
            if x.node is not None
            for n in ast.walk(x.node)
            if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id == name
        )
        return subscripts + sum(1 for a in self.found if a.array == name)

    def home(self, a: Access) -> tuple[str, int]:
        """The buffer of an access, and the arm whose tensor it goes through: 0 for that of the whole kernel.

        What a vector of so many elements promises of the buffer holds where the source accesses it so. A count by a
        template parameter holds at every instance; a number only in the arm of `if constexpr` that has it.
        """
        return a.address.buffer, self._arm(a)

    def _arm(self, a: Access) -> int:
        arm = self.arms.get(id(a.line), 0)
        by_number = arm and any(
            b.count.isdigit() and self.arms.get(id(b.line), 0) == arm
            for b in self.found
            if b.address.buffer == a.address.buffer
        )
        return arm if by_number else 0

    def is_row(self, pointer: str) -> bool:
        """Whether a pointer starts at the first element of the last mode, so that it can be a row of its tensor."""
        here = self.arms.get(id(self.definitions[pointer][0]), 0)
        roots = [a for a in self.found if a.root == pointer]
        return not self.pointers[pointer].column and all(self._arm(a) in (0, here) for a in roots)


def divided(term: ast.expr, count: str, values: Values, wide: bool = False) -> str | None:
    """A term of a column divided by `count`; None where it is not known to be a multiple of it.

    `wide`: a column may not fit in 32 bits, so what the source widens stays so.
    """
    shown = (lambda f: f) if wide else narrowed
    parts = factors(term if wide and called(term, "Int64") is None else narrowed(term))
    left = _without(parts, [count])
    if left is not None:
        return (text_of(shown(left[0])) if len(left) == 1 else product(map(shown, left))) if left else "1"
    for n, f in enumerate(parts):
        number = f.value if isinstance(f, ast.Constant) and isinstance(f.value, int) else 0
        if number and values.get(count) and all(v and number % v == 0 for v in values[count]):
            quotient = ast.BinOp(f, ast.FloorDiv(), ast.Name(count))
            return product([*map(shown, parts[:n]), quotient, *map(shown, parts[n + 1 :])])
    return None


def _without(parts: list[ast.expr], step: list[str]) -> list[ast.expr] | None:
    """The factors that are left when those of a stride are taken out; None when one is missing."""
    left = list(parts)
    for want in step:
        at = next((i for i, f in enumerate(left) if text_of(narrowed(f)) == want), None)
        if at is None:
            return None
        del left[at]
    return left


def _arms(block: list[Line], arm: int = 0) -> Iterator[tuple[int, int]]:
    """For every line inside an arm of a condition on template parameters: (the line's id, the arm's id)."""
    constant = False
    for x in block:
        if x.text.startswith("if "):
            constant = x.text.startswith("if cutlass.const_expr(")
        elif x.is_code and not x.text.startswith(("elif ", "else:")):
            constant = False
        inside = arm or (id(x) if constant and x.body else 0)
        if arm:
            yield id(x), arm
        yield from _arms(x.body, inside)
