"""The rule of porter.corpus.runtime.overlap in launch functions: they refuse overlapping arguments before a launch.

Checked in Python this would take a tenth of a launch; in the compiled function, where addresses and strides are at
hand, it takes about 20 ns for arguments apart and 100 for parts of one packed tensor. CuTeDSL makes that function of
the arguments' description, checks included, and has no words for this one: it is put in front of the call of the host
code.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from porter.corpus.runtime.signature import Argument, Tensor

_FAR = 1 << 62  # the distance of rows that there is one of


@dataclass(frozen=True)
class Pair:
    """Two arguments, by number; exactly: whether they may be the same elements."""

    a: int
    b: int
    exactly: bool


def pairs_of(arguments: Sequence[Argument]) -> tuple[Pair, ...]:
    """What must be apart: a tensor that is written and each other one. A pair of one number: it and itself."""
    tensors = [(i, a) for i, a in enumerate(arguments) if isinstance(a, Tensor)]
    found = [Pair(i, i, False) for i, a in tensors if a.written]
    for at, (i, a) in enumerate(tensors):
        for j, b in tensors[at + 1 :]:
            if a.written or b.written:
                found.append(Pair(i, j, j in a.in_place or i in b.in_place))
    return tuple(found)


@contextlib.contextmanager
def checking(pairs: Sequence[Pair]) -> Iterator[list[int]]:
    """Launch functions compiled meanwhile check these pairs; yields a list that then holds how many each checks."""
    made: list[int] = []
    provider = importlib.import_module("cutlass.cutlass_dsl.tvm_ffi_provider").TVMFFICuteCallProvider
    usual = provider.__call__

    def call(self: Any, block: Any, context: Any) -> Any:
        block = _Check(context).emit(block, pairs)
        made.append(len(pairs))
        return usual(self, block, context)

    if not pairs:
        yield made
        return
    provider.__call__ = call
    try:
        yield made
    finally:
        provider.__call__ = usual


@dataclass(frozen=True)
class _Place:
    """Where a tensor lies: an address, and of each dimension length and distance in bytes, all IR values of 64 bits;
    size: bytes of an element."""

    address: Any
    dims: tuple[tuple[Any, Any], ...]
    size: int


class _Check:
    """Emits the check into a launch function of TVM-FFI, which is in MLIR's LLVM dialect."""

    def __init__(self, context: Any):
        self.context, self.b = context, context.builder
        self.ir = importlib.import_module("cutlass._mlir.ir")
        self.llvm = importlib.import_module("cutlass._mlir.dialects.llvm")

    def emit(self, block: Any, pairs: Sequence[Pair]) -> Any:
        """Of each pair first the ranges, which is all that most calls need; then the dimensions as they are; then in
        every other order, since strides are known at the launch only."""
        for pair in pairs:
            done = block.create_after()
            for step in (self.ranges_apart, self.as_they_are):
                closer = block.create_after()
                with self.ir.InsertionPoint(block):
                    self.b.cond_br(step(pair), done, closer, branch_weights=self.b.BRANCH_WEIGHTS_LIKELY)
                block = closer
            names = [self.context.params[i].name for i in (pair.a, pair.b)]
            block = self.b.check_condition(
                block, functools.partial(self.in_any_order, pair), "ValueError", [f"{names[0]} and {names[1]} overlap"]
            )
            with self.ir.InsertionPoint(block):
                self.b.br(done)
            block = done
        return block

    def ranges_apart(self, pair: Pair) -> Any:
        x, y = self.place(pair.a), self.place(pair.b)
        if pair.a == pair.b:
            return self.apart_in_itself(x.dims, x.size)
        distance = self.sub(y.address, x.address)
        found = self.ranges(distance, x.dims, x.size, y.dims, y.size)
        if pair.exactly and x.size == y.size and len(x.dims) == len(y.dims):
            return self.b.or_(found, self.same(distance, x, y))
        return found

    def as_they_are(self, pair: Pair) -> Any:
        x, y = self.place(pair.a), self.place(pair.b)
        if pair.a == pair.b:
            return self.b.i1(0)
        return self.side_by_side(self.sub(y.address, x.address), x.dims, x.size, y.dims, y.size)

    def in_any_order(self, pair: Pair) -> Any:
        x, y = self.place(pair.a), self.place(pair.b)
        if pair.a == pair.b:
            return self.any_(self.apart_in_itself(order, x.size) for order in permutations(x.dims))
        if len(x.dims) != len(y.dims):
            return self.b.i1(0)
        distance = self.sub(y.address, x.address)
        orders = zip(permutations(x.dims), permutations(y.dims), strict=True)
        return self.any_(self.side_by_side(distance, a, x.size, b, y.size) for a, b in orders)

    def same(self, distance: Any, x: _Place, y: _Place) -> Any:
        strides = [
            self.b.or_(self.b.equal(n, self.b.i64(1)), self.b.equal(s, t))
            for (n, s), (_, t) in zip(x.dims, y.dims, strict=True)
        ]
        return self.all_([self.b.equal(distance, self.b.i64(0)), *strides])

    def ranges(self, distance: Any, a: Any, a_size: int, b: Any, b_size: int) -> Any:
        behind = self.compare("sge", distance, self.extent(a, a_size))
        before = self.compare("sge", self.sub(self.b.i64(0), distance), self.extent(b, b_size))
        return self.b.or_(behind, before)

    def side_by_side(self, distance: Any, a: Any, a_size: int, b: Any, b_size: int) -> Any:
        found = self.ranges(distance, a, a_size, b, b_size)
        if min(len(a), len(b)) < 2:
            return found
        (n, s), (m, t) = a[0], b[0]
        one_a, one_b = self.b.equal(n, self.b.i64(1)), self.b.equal(m, self.b.i64(1))
        far = self.b.i64(_FAR)
        period = self.select(one_a, self.select(one_b, far, t), s)
        equal = self.any_([one_a, one_b, self.b.equal(s, t)])
        fits = [self.compare("sge", period, self.extent(d[1:], size)) for d, size in ((a, a_size), (b, b_size))]
        period = self.select(self.compare("sgt", period, self.b.i64(0)), period, self.b.i64(1))
        rest = self.llvm.srem(distance, period)
        rest = self.select(self.compare("slt", rest, self.b.i64(0)), self.add(rest, period), rest)
        inner = [self.side_by_side(d, a[1:], a_size, b[1:], b_size) for d in (rest, self.sub(rest, period))]
        return self.b.or_(found, self.all_([equal, *fits, *inner]))

    def apart_in_itself(self, dims: Any, size: int) -> Any:
        each = []
        for i, (n, s) in enumerate(dims):
            one = self.b.equal(n, self.b.i64(1))
            each.append(self.b.or_(one, self.compare("sge", s, self.extent(dims[i + 1 :], size))))
        return self.all_(each)

    def extent(self, dims: Any, size: int) -> Any:
        total = self.b.i64(size)
        for n, s in dims:
            total = self.add(total, self.b.mul(self.sub(n, self.b.i64(1)), s))
        return total

    def place(self, index: int) -> _Place:
        param = self.context.params[index]
        size = param.dtype.bits * param.dtype.lanes // 8
        address = self.llvm.ptrtoint(self.b.i64_type, self.context.matched_var_binding[param.data])
        dims = tuple(
            (self.number(n), self.b.mul(self.number(s), self.b.i64(size)))
            for n, s in zip(param.shape, param.strides, strict=True)
        )
        return _Place(address, dims, size)

    def number(self, value: Any) -> Any:
        if isinstance(value, int):
            return self.b.i64(value)
        bound = self.context.matched_var_binding[value]
        return bound if bound.type == self.b.i64_type else self.llvm.sext(self.b.i64_type, bound)

    def add(self, x: Any, y: Any) -> Any:
        return self.llvm.add(x, y, overflow_flags=self.llvm.IntegerOverflowFlags.none)

    def sub(self, x: Any, y: Any) -> Any:
        return self.llvm.sub(x, y, overflow_flags=self.llvm.IntegerOverflowFlags.none)

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        return self.llvm.select(condition, x, y)

    def compare(self, how: str, x: Any, y: Any) -> Any:
        return self.llvm.icmp(getattr(self.llvm.ICmpPredicate, how), x, y)

    def all_(self, conditions: Any) -> Any:
        first, *rest = conditions
        for each in rest:
            first = self.b.and_(first, each)
        return first

    def any_(self, conditions: Any) -> Any:
        first, *rest = conditions
        for each in rest:
            first = self.b.or_(first, each)
        return first
