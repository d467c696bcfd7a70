"""Places: memory as base pointer and element offset, reads, stores, addresses and pointer arithmetic."""

from __future__ import annotations

from porter import ir
from porter.emit import spaces
from porter.emit.expressions.ranges import INT_MAX
from porter.emit.generic import ConstVariants, variants
from porter.emit.layout import Leaf
from porter.emit.text import ADD, ATOM, COMPARE, MUL, UNARY, Flat, Text, is_null_constant, is_readonly
from porter.emit.types import TypeWriter


class PlaceWriter(TypeWriter):
    """Writes places in one scope."""

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
        scale = self.const(step, of_bytes=True)
        scale = scale if scale.isidentifier() or scale.isdigit() else f"({scale})"
        bound = self.upper(index)
        text = self.index(index)
        wide = text.static or (bound is not None and bound * max(step) <= INT_MAX) or text.text.startswith("Int64(")
        return zero, (f"{text.at(MUL)} * {scale}" if wide else f"Int64({text.text}) * {scale}",)

    def index(self, e: ir.Expr) -> Text:
        """An index: Int32 is sign-extended by the DSL as C does; unsigned 32-bit values need widening by hand."""
        while isinstance(e, ir.Cast) and e.type in (ir.I64, ir.U64) and self.kinds(e.x.type) <= {"i32"}:
            if e.type == ir.U64 and self.upper(e.x) is None:
                break
            e = e.x
        t = e.type
        if self.kinds(t) <= {"u32"}:
            if self.upper(e) is not None:
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
                return self._signed(e, u) if self.kinds(t) <= {"u64"} and self.upper(e) is None else u
            return u if self.kinds(t) <= {"i64"} else Text(f"Int64({u.text})")
        if self.kinds(t) <= {"i32"}:
            return self.expr(e)
        u = self.expr(e)
        return u if u.static else Text(f"Int32({u.text})")

    def _signed(self, e: ir.Expr, u: Text) -> Text:
        """A u64 known at trace time as the offset that it is modulo 2^64: `p - 4u` goes back, not 2^64 - 4 on."""
        if isinstance(e, ir.Unary) and e.op == "-" and self.upper(e.x) is not None:
            return Text(f"-{self.expr(e.x).at(UNARY)}", UNARY, static=True)
        half = hex(1 << 63)
        return Text(f"(({u.at(ADD)} + {half} & {hex((1 << 64) - 1)}) - {half})", static=True)

    def offset_text(self, f: Flat) -> str:
        """Element offset as text ("0" when there is none)."""
        terms = list(f.dynamic)
        if any(f.consts):
            const = self.const(f.consts, of_bytes=f.leaves[0].mixed)
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

    def null_test(self, pointer: ir.Expr, op: str) -> Text:
        """`pointer == nullptr` or `!=`: zero is null in global memory only."""
        x = self.expr(pointer)
        if spaces.is_number(spaces.space_of(pointer, self.s.spaces)):
            return Text(f"{x.at(ATOM)}.toint() {op} 0", COMPARE)
        test = Text(f"lib.is_null({x.text})")
        return test if op == "==" else Text(f"not {test.text}", COMPARE)

    def pointer_comparison(self, e: ir.Binary) -> Text:
        """Pointers of one memory are compared by the addresses in it, others by generic addresses."""
        if e.op in ("==", "!=") and is_null_constant(e.a) != is_null_constant(e.b):
            return self.null_test(e.a if is_null_constant(e.b) else e.b, e.op)
        found = [spaces.space_of(x, self.s.spaces) for x in (e.a, e.b)]
        alone = all(spaces.is_number(f) or is_null_constant(x) for f, x in zip(found, (e.a, e.b), strict=True))
        if alone or found == [frozenset({"shared"})] * 2:
            texts = [f"{self.expr(x).at(ATOM)}.toint()" for x in (e.a, e.b)]
        else:
            texts = [f"lib.address({self.expr(x).text})" for x in (e.a, e.b)]
        a, b = ("0" if is_null_constant(x) else text for x, text in zip((e.a, e.b), texts, strict=True))
        return Text(f"{a} {e.op} {b}", COMPARE)

    def of_one_alignment(self, a: ir.Expr, b: ir.Expr) -> bool:
        """Whether two pointers surely have one CuTeDSL type: whole arrays have more alignment than places in them."""
        return all(spaces.space_of(x, self.s.spaces) <= {"global"} for x in (a, b))

    def _ptrdiff(self, e: ir.PtrDiff) -> Text:
        size = self.const(self.sizes(self.pointee(e.a.type)), of_bytes=True)
        return Text(f"lib.diff({self.expr(e.a).text}, {self.expr(e.b).text}, {size})")


def _add(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True))
