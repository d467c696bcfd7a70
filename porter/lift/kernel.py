"""A kernel over tensors: buffers as `lib.tensor`, pointers to rows as rows, vectors loaded and stored whole."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from porter.lift.accesses import NO_VALUES, Access, Accesses, Address, Values, divided
from porter.lift.lines import Function, Line, by, every
from porter.lift.scopes import separate, together, without_marks
from porter.lift.shapes import Shape
from porter.lift.terms import called, expression, factors, names_in, starts, summands, text_of, total
from porter.lift.vectors import LaneLoop
from porter.lift.words import Elements, words_as_elements

_GRID = re.compile(r"(\w+|_)(, \w+)* = (cute\.arch|lib\.block_dim)")  # a thread's place in grid and block
TENSOR, VECTOR, LANES = "tensor", "tensor_access", "vector_arithmetic"


def lift_kernel(
    fn: Function,
    shapes: dict[str, Shape],
    unknown: Iterable[str] = (),
    values: Values = NO_VALUES,
    elements: Elements | None = None,
) -> None:
    """Rewrite a kernel in place, or a device function.

    `unknown`: pointers to buffers whose shape it cannot say; `values`: those of template parameters over the instances.
    """
    separate(fn.body)
    if elements is not None:
        words_as_elements(fn, elements)
    known = Accesses(fn, shapes).found
    unknown = [*unknown, *(n for n, shape in shapes.items() if any(_ignores_rows(a, n, shape) for a in known))]
    shapes = {**shapes, **{name: _flat(fn, name) for name in unknown}}
    own = {name: Shape(name, (None,), None) for name in Accesses(fn, shapes, {}, values).stranded()}
    _Kernel(fn, shapes, own, values).rewrite()
    together(fn.body)


def _ignores_rows(a: Access, name: str, shape: Shape) -> bool:
    """Whether an access goes by the number of the element in the whole buffer, not by the row and the column in it."""
    at = a.address
    rows = at.buffer == name and shape.strides is None and bool(at.coordinates)
    return rows and set(at.coordinates) == {"0"} and bool(at.column)


def _flat(fn: Function, name: str) -> Shape:
    """A buffer of unknown shape as its accesses have it: rows of a fixed length, where each access has one term that is
    a multiple of the same number, else elements one after the other."""
    alone = Shape(name, (None,), None)
    rows = [[n for t in a.address.column for n in _numbers(t)] for a in Accesses(fn, {name: alone}).found]
    if rows and all(len(r) == 1 for r in rows) and len({r[0] for r in rows}) == 1:
        return Shape(name, (None, str(rows[0][0])), None)
    return alone


def _numbers(term: ast.expr) -> list[int]:
    found = [f.value for f in factors(term) if isinstance(f, ast.Constant) and isinstance(f.value, int)]
    return [n for n in found if n > 1]


class _Kernel:
    def __init__(self, fn: Function, shapes: dict[str, Shape], own: dict[str, Shape], values: Values):
        self.fn, self.shapes, self.own = fn, {**shapes, **own}, own
        self.accesses = Accesses(fn, shapes, own, values)
        self.lifted = {id(a.line): [] for a in self.accesses.found}  # type: dict[int, list[Access]]
        for a in self.accesses.found:
            self.lifted[id(a.line)].append(a)
        self.taken = {n.id for x in every(fn.body) if x.node is not None for n in ast.walk(x.node)
                      if isinstance(n, ast.Name)} | set(shapes)  # fmt: skip
        self.tensors: dict[tuple[str, int], str] = {}  # by buffer and arm
        self.tiled = {p for p in self.accesses.lifted_pointers if self._only_vectors(p)}
        self.values: dict[str, str] = {}  # arrays that are vectors, with their dtypes
        self.declared: dict[str, tuple[list[Line], Line]] = {}  # arrays not yet known to be vectors

    def rewrite(self) -> None:
        heads = {id(x): x for x in every(self.fn.body) if x.body}
        self.fn.body = self._block(self.fn.body)
        entry = by(self.fn.head[-1].entry, TENSOR)
        at = 0
        while at < len(self.fn.body) and _GRID.match(self.fn.body[at].text):
            at += 1
        for (buffer, arm), name in reversed(self.tensors.items()):
            line = Line(self._declaration(buffer, arm, name), entry)
            if buffer in self.own:
                self._begin(buffer, line, heads.get(arm))
            elif arm:
                heads[arm].body.insert(0, line)
            else:
                self.fn.body.insert(at, line)

    def _begin(self, pointer: str, line: Line, arm: Line | None) -> None:
        """Put the declaration of a tensor that begins at a pointer behind that pointer's; the pointer itself goes where
        nothing else uses it."""
        at = self.accesses.begun[pointer]
        line = Line(line.text, by(at.entry, TENSOR))
        if arm is not None and at not in list(every(arm.body)):
            arm.body.insert(0, line)
            return
        value = at.node.value if isinstance(at.node, ast.Assign) else None
        assert value is not None
        block, n = _place(self.fn.body, at)
        if any(_uses(x, pointer) for x in every(self.fn.body)):
            block.insert(n + 1, line)
        else:
            text = line.text.replace(f"lib.tensor({pointer}, ", f"lib.tensor({text_of(value)}, ", 1)
            block[n] = at.rewritten(text, TENSOR)

    # ---- tensors

    def _tensor(self, buffer: str, arm: int) -> str:
        if (buffer, arm) not in self.tensors:
            name = "m" + "".join(part[:1].upper() + part[1:] for part in without_marks(buffer).split("_") if part)
            if arm:  # DSL loops take a name for one type: that of an arm is not that of the whole kernel
                name += self.accesses.vector.get((buffer, arm), "")
            while name in self.taken:
                name += "_"
            self.tensors[buffer, arm] = name
        return self.tensors[buffer, arm]

    def _declaration(self, buffer: str, arm: int, name: str) -> str:
        shape = self.shapes[buffer]
        extents = [e or "None" for e in shape.extents]
        args = [buffer, f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"]
        if shape.strides is not None:
            args.append(f"({', '.join(shape.strides)}{',' if len(extents) == 1 else ''})")
        vector = self.accesses.vector.get((buffer, arm), "")
        return f"{name} = lib.tensor({', '.join(args)}{f', vector={vector}' if vector else ''})"

    def _slice(self, address: Address, arm: int) -> str:
        """The last mode of a tensor at the coordinates of an address."""
        name = self._tensor(address.buffer, arm)
        return f"{name}[{', '.join(address.coordinates)}, None]" if address.coordinates else name

    def _only_vectors(self, pointer: str) -> bool:
        roots = [a for a in self.accesses.found if a.root == pointer]
        return bool(roots) and all(a.count for a in roots) and self.accesses.is_row(pointer)

    def _vector(self, a: Access) -> str:
        """The elements of a vector access, as a tensor of them."""
        count = a.count
        if a.root in self.accesses.lifted_pointers and self.accesses.is_row(a.root):
            index = self.accesses.index(a, a.column)
            if a.root in self.tiled:
                return f"{a.root}[None, {index}]"
            return f"cute.local_tile({a.root}, ({count},), ({index},))"
        row = self._slice(a.address, self.accesses.home(a)[1])
        return f"cute.local_tile({row}, ({count},), ({self.accesses.index(a, a.address.column)},))"

    def _element(self, a: Access) -> str:
        if a.root in self.accesses.lifted_pointers and self.accesses.is_row(a.root):
            return f"{a.root}[{total(a.column) or '0'}]"
        where = [*a.address.coordinates, total(a.address.column) or "0"]
        return f"{self._tensor(*self.accesses.home(a))}[{', '.join(where)}]"

    # ---- lines

    def _block(self, block: list[Line]) -> list[Line]:
        out: list[Line] = []
        for n, x in enumerate(block):
            node = x.node
            name = _assigned(node)
            if name is not None and name in self.accesses.lifted_pointers:
                out += self._pointer(x, name)
            elif name is not None and name in self.accesses.lifted_arrays:
                self._array(x, name, block[n + 1 :], out)
            elif id(x) in self.lifted and any(a.count for a in self.lifted[id(x)]):
                self._copy(x, self.lifted[id(x)], out)
            elif (lanes := self._lanes(x)) is not None:
                out += lanes
            else:
                if id(x) in self.lifted:
                    x = self._elements(x, self.lifted[id(x)])
                x.body = self._block(x.body)
                out.append(x)
        return out

    def _pointer(self, x: Line, name: str) -> list[Line]:
        if not self.accesses.is_row(name):
            return []  # its accesses say where they are by themselves
        roots = [a for a in self.accesses.found if a.root == name]
        if not roots:
            return []
        row = self._slice(self.accesses.pointers[name], self.accesses.home(roots[0])[1])
        if name in self.tiled:
            count = next(a.count for a in self.accesses.found if a.root == name)
            row = f"cute.local_tile({row}, ({count},), (None,))"
        return [x.rewritten(f"{name} = {row}", TENSOR)]

    def _array(self, x: Line, name: str, rest: list[Line], out: list[Line]) -> None:
        _, dtype, count = self.accesses.arrays[name]
        line = x.rewritten(f"{name} = cute.make_rmem_tensor({count}, {dtype})", VECTOR)
        if self._is_filled_once(name, rest):
            self.declared[name] = (out, line)
        out.append(line)

    def _is_filled_once(self, name: str, rest: list[Line]) -> bool:
        """Whether one statement of this block gives all elements before anything reads one, and no branch does."""
        if any(a.array == name and self._part(a.line, a) != name for a in self.accesses.found):
            return False
        first = next((i for i, x in enumerate(rest) if any(_uses(y, name) for y in every([x]))), None)
        if first is None:
            return False
        writes = [y for x in rest for y in every([x]) if self._writes(y, name)]
        if len(writes) != 1 or not (writes[0] is rest[first] or writes[0] in rest[first].body):
            return False
        return all(_constant_path(rest, y) for x in rest for y in every([x]) if _uses(y, name))

    def _writes(self, x: Line, name: str) -> bool:
        node = x.node
        if any(a.array == name and _is_source(x, a) for a in self.lifted.get(id(x), [])):
            return True
        targets = node.targets if isinstance(node, ast.Assign) else []
        return any(isinstance(t, ast.Subscript) and text_of(t.value) == name for t in targets)

    def _copy(self, x: Line, found: list[Access], out: list[Line]) -> None:
        readonly = ", readonly=True" if "readonly=True" in x.text else ""
        if len(found) == 2:
            to, source = found
            text = f"{self._vector(to)}.store(lib.load({self._vector(source)}{readonly}))"
            out.append(x.rewritten(text, VECTOR))
            return
        (a,) = found
        array = self._part(x, a)
        if not _is_source(x, a):
            value = a.array if a.array in self.values else f"{array}.load()"
            out.append(x.rewritten(f"{self._vector(a)}.store({value})", VECTOR))
            return
        loaded = f"lib.load({self._vector(a)}{readonly})"
        if a.array in self.declared:
            self._is_vector(a.array, self.accesses.arrays[a.array][1])
            out.append(x.rewritten(f"{a.array} = {loaded}", VECTOR))
            return
        out.append(x.rewritten(f"{array}.store({loaded})", VECTOR))

    def _part(self, x: Line, a: Access) -> str:
        """The array of registers that a copy moves, or the part of it."""
        assert isinstance(x.node, ast.Expr) and isinstance(x.node.value, ast.Call)
        end = next(e for e in x.node.value.args[:2] if starts(e) == [a.array])
        rest = [divided(t, a.count, {}) for t in summands(end)[1:]]
        if not rest:
            return a.array
        return f"cute.local_tile({a.array}, ({a.count},), ({' + '.join(str(r) for r in rest)},))"

    def _is_vector(self, array: str, dtype: str) -> None:
        lines, line = self.declared.pop(array)
        lines[:] = [x for x in lines if x is not line]
        self.values[array] = dtype

    def _lanes(self, x: Line) -> list[Line] | None:
        loop = x.node
        if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
            return None
        lanes = called(loop.iter, "cutlass.range_constexpr")
        if lanes is None or len(lanes.args) != 1:
            return None
        count = text_of(lanes.args[0])
        values = {n: t for n, t in self.values.items() if self.accesses.arrays[n][2] == count}
        targets = {n: self.accesses.arrays[n][1] for n in self.declared if self.accesses.arrays[n][2] == count}
        changing = {n.id for y in every(x.body) if y.node is not None for n in ast.walk(y.node)
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}  # fmt: skip
        floats = {t for _, t, _ in self.accesses.arrays.values() if t.isidentifier() and t not in _NARROW}
        writer = LaneLoop(loop.target.id, values, floats, changing)
        out = []
        for y in x.body:
            if not y.is_code:
                out.append(y)
                continue
            text = None if y.body else writer.statement(y.node, targets)
            if text is None:
                return None
            out.append(y.rewritten(text, LANES))
        if not writer.filled and not any("lib.total(" in y.text or "lib.largest(" in y.text for y in out):
            return None
        inside = {id(y) for y in every([x])}
        outside = [y for y in every(self.fn.body) if id(y) not in inside]
        if any(_uses(y, n) and _assigned(y.node) != n for n in writer.made for y in outside):
            return None
        for array in writer.filled:
            self._is_vector(array, targets[array])
        return out

    def _elements(self, x: Line, found: list[Access]) -> Line:
        node = x.node
        assert node is not None
        by_node = {text_of(a.node): self._element(a) for a in found}

        class Put(ast.NodeTransformer):
            def visit(self, n: ast.AST) -> ast.AST:
                if isinstance(n, ast.Subscript | ast.Call) and text_of(n) in by_node:
                    new = expression(by_node[text_of(n)])
                    if isinstance(n, ast.Subscript):
                        new.ctx = n.ctx  # type: ignore[attr-defined]
                    return new
                return super().visit(n)

        text = x.text
        for old, new in by_node.items():
            if old in text:
                text = text.replace(old, new)
            else:
                text = _head(ast.unparse(Put().visit(node)), x.text)
                break
        return Line(text, by(x.entry, TENSOR), x.body)


_NARROW = {"Float8E4M3FN", "Float8E5M2", "Float8E8M0FNU", "Int8", "Uint8", "Int16", "Uint16", "Int32", "Uint32",
           "Int64", "Uint64", "Boolean", "Float64"}  # fmt: skip


def _head(unparsed: str, text: str) -> str:
    """The head of a block as it stood, out of what ast prints of it with a body."""
    if not text.endswith(":"):
        return unparsed
    head = unparsed.split("\n")[0].removesuffix(" pass")
    return "el" + head if text.startswith("elif") else head


def _assigned(node: ast.stmt | None) -> str | None:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def _is_source(x: Line, a: Access) -> bool:
    """Whether a copy fills the access's array (and does not empty it)."""
    copy = called(x.node.value, "lib.copy") if isinstance(x.node, ast.Expr) else None
    return copy is not None and starts(copy.args[0]) == [a.array]


def _place(block: list[Line], wanted: Line) -> tuple[list[Line], int]:
    """The block that a line is in, and its number there."""
    for n, x in enumerate(block):
        if x is wanted:
            return block, n
        if wanted in list(every(x.body)):
            return _place(x.body, wanted)
    raise ValueError(wanted.text)


def _uses(x: Line, name: str) -> bool:
    return x.node is not None and name in names_in(x.node)


def _constant_path(block: list[Line], wanted: Line) -> bool:
    """Whether only trace-time loops stand around a line of the block."""
    for x in block:
        if x is wanted:
            return True
        if wanted in list(every(x.body)):
            return x.text.startswith("for ") and "range_constexpr(" in x.text and _constant_path(x.body, wanted)
    return False
