"""Products and sums that ptxas fuses into one fma, found in a function; and a module in which they are.

PTX's `mul`, `add` and `sub` without a rounding (`.rn`) may be fused. What ptxas 13 does with them was measured for
sm_90a (docs/emulator.md): a product is fused where each of its uses is such a sum in the same basic block, directly or
by way of `mov` and `neg`; types, `.ftz` and the width of packed halves have to agree, a `.sat` of the sum is kept. A
sum of two products takes one of them: which one is ptxas's choice, so there are two ways to fuse.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from porter.verify.emulator.decode.ir import Address, Function, Group, Instr, Module, Not, Operand, Pair, Reg, Vector
from porter.verify.emulator.decode.parse import function

Way = Literal["first", "second"]  # the product that a sum of two takes
Fused = Literal["", "first", "second"]  # a way, or none
WAYS: tuple[Way, ...] = ("first", "second")
TYPES = frozenset({"f16", "bf16", "f16x2", "bf16x2", "f32", "f64"})
_ROUNDINGS = frozenset({"rn", "rz", "rm", "rp", "rna"})
_ENDS = frozenset({"bra", "brx", "ret", "exit", "trap", "call"})
_READS_FIRST = frozenset({"bar", "barrier", "nanosleep", "brx"})  # instructions whose first operand is no result


@dataclass(frozen=True)
class _Term:
    """An operand of a sum that is a product: its factors, whether it is negated, and where it is computed."""

    a: Operand
    b: Operand
    negated: bool
    at: int


@dataclass(frozen=True)
class Sum:
    """A sum in `Function.code` at index `at` and the product that each of its operands may be, or None."""

    at: int
    terms: tuple[_Term | None, _Term | None]


def fusible(module: Module, entry: str) -> Counter[str]:
    """How many sums of a kernel and of the functions it is linked with ptxas may fuse, by opcode (`sub.f16`).

    Those of two products are counted as `add.f32 of two`, since ptxas has a choice there.
    """
    found: Counter[str] = Counter()
    for name in _bodies(module, entry):
        f = function(module, name)
        for s in sums(f):
            found[f.code[s.at].opcode + (" of two" if None not in s.terms else "")] += 1
    return found


def contracted(module: Module, entry: str, way: Way) -> Module:
    """The module with every sum fused that may be; other kernels of it are left out of the work."""
    made = replace(module, text=f"{module.text}\n// contracted: {way} {entry}\n", functions={}, cache={})
    for name in _bodies(module, entry):
        made.functions[name] = _fused(function(module, name), way)
    return made


def _bodies(module: Module, entry: str) -> list[str]:
    """The kernel and the functions that it calls, as far as they have bodies."""
    found, todo = [], [entry]
    while todo:
        name = todo.pop()
        found.append(name)
        for i in function(module, name).code:
            for o in i.operands if i.base == "call" else ():
                callee = module.declarations.get(getattr(o, "name", ""))
                if callee is not None and callee.end and callee.name not in (*found, *todo):
                    todo.append(callee.name)
    return found


def sums(f: Function) -> list[Sum]:
    """The sums of a function that ptxas may fuse with a product."""
    writes: dict[int, list[int]] = defaultdict(list)
    reads: dict[int, list[int]] = defaultdict(list)
    for at, i in enumerate(f.code):
        for reg in _written(i):
            writes[reg.index].append(at)
        for reg in _read(i):
            reads[reg.index].append(at)
    found: dict[int, dict[int, _Term]] = defaultdict(dict)
    for start, end in _blocks(f):
        block = _Block(f, start, end, writes, reads)
        for at in range(start, end):
            if _plain(f.code[at], "mul"):
                for user, side, negated in block.sums_of(at) or ():
                    a, b = f.code[at].operands[1:3]
                    found[user][side] = _Term(a, b, negated, at)
    return [Sum(at, (terms.get(1), terms.get(2))) for at, terms in sorted(found.items())]


@dataclass
class _Block:
    """A basic block, code[start:end], and where registers are written and read."""

    f: Function
    start: int
    end: int
    writes: dict[int, list[int]]
    reads: dict[int, list[int]]

    def sums_of(self, at: int) -> list[tuple[int, int, bool]] | None:
        """(sum, operand, negated) of every use of the product at `at`; None when one of its uses is something else."""
        product = self.f.code[at]
        factors = [o for o in product.operands[1:3] if isinstance(o, Reg)]
        found: list[tuple[int, int, bool]] = []
        todo = [(at, False)]
        while todo:
            place, negated = todo.pop()
            result = self.f.code[place].operands[0]
            users = self._users(result, place) if isinstance(result, Reg) else None
            if not users:
                return None
            for user in users:
                i = self.f.code[user]
                sides = [n for n, o in enumerate(i.operands) if n and o == result]
                if i.pred is None and len(sides) == 1 and (i.base == "mov" or _is_neg(i, product)):
                    todo.append((user, negated != (i.base == "neg")))
                elif len(sides) == 1 and sides[0] in (1, 2) and _same_kind(i, product):
                    if any(at < w < user for reg in factors for w in self.writes[reg.index]):
                        return None
                    found.append((user, sides[0], negated))
                else:
                    return None
        return found

    def _users(self, result: Reg, at: int) -> list[int] | None:
        """Where the value that is written at `at` is read; None when it may be read outside of the block."""
        again = [w for w in self.writes[result.index] if at < w < self.end and self.f.code[w].pred is None]
        stop = again[0] if again else self.end
        inside = [r for r in self.reads[result.index] if at < r < self.end and r <= stop]
        if any(at < w < stop for w in self.writes[result.index]):
            return None  # written under a predicate in between
        if not again and len(inside) < len(self.reads[result.index]):
            return None
        return sorted(set(inside))


def _blocks(f: Function) -> Iterator[tuple[int, int]]:
    starts = {0, *f.labels.values(), *(at + 1 for at, i in enumerate(f.code) if i.base in _ENDS)}
    bounds = [*sorted(s for s in starts if s <= len(f.code)), len(f.code)]
    return ((a, b) for a, b in pairwise(bounds) if a < b)


def _kind(i: Instr) -> tuple[str, ...]:
    """Type and `.ftz` of an instruction."""
    return tuple(m for m in i.mods if m in TYPES or m == "ftz")


def _plain(i: Instr, base: str) -> bool:
    if i.base != base or i.pred is not None or len(i.operands) != 3:
        return False
    types = [m for m in i.mods if m in TYPES]
    return len(types) == 1 and set(i.mods) <= {types[0], "ftz"}


def _same_kind(i: Instr, product: Instr) -> bool:
    """Whether an instruction is a sum without a rounding, of the product's type."""
    allowed = i.base in ("add", "sub") and not set(i.mods) & _ROUNDINGS and len(i.operands) == 3
    return allowed and _kind(i) == _kind(product) and set(i.mods) <= {*_kind(product), "sat"}


def _is_neg(i: Instr, product: Instr) -> bool:
    return i.base == "neg" and _kind(i)[-1:] == _kind(product)[-1:]


def _fused(f: Function, way: Way) -> Function:
    """The function with its sums fused. Products stay where they are; nobody may read them any more."""
    made = replace(f, registers=list(f.registers), code=[], labels={})
    chosen = {s.at: s for s in sums(f)}
    moved: list[int] = []
    for at, i in enumerate(f.code):
        moved.append(len(made.code))
        made.code += _as_fma(made, i, chosen[at], way) if at in chosen else [i]
    moved.append(len(made.code))
    made.labels = {name: moved[at] for name, at in f.labels.items()}
    return made


def _as_fma(f: Function, i: Instr, s: Sum, way: Way) -> list[Instr]:
    """`add` or `sub` as a `fma` behind the negations that it needs."""
    first, second = s.terms
    side = 0 if first is not None and (second is None or way == "first") else 1
    term = s.terms[side]
    assert term is not None
    other = i.operands[2 - side]
    kind = next(m for m in i.mods if m in TYPES)
    out: list[Instr] = []

    def negative(operand: Operand) -> Reg:
        reg = i.operands[0]
        assert isinstance(reg, Reg)
        made = Reg(len(f.registers), reg.type, f"%negated{len(f.registers)}")
        f.registers.append(made)
        out.append(Instr(f"neg.{kind}", (made, operand), i.line, loc=i.loc))
        return made

    minus = term.negated != (i.base == "sub" and side == 1)
    a = negative(term.a) if minus else term.a
    if i.base == "sub" and side == 0:
        other = negative(other)
    opcode = ".".join(["fma", "rn", *i.mods])
    out.append(Instr(opcode, (i.operands[0], a, term.b, other), i.line, i.pred, i.pred_negated, i.loc))
    return out


def _registers(operand: Operand) -> Iterator[Reg]:
    if isinstance(operand, Reg):
        yield operand
    elif isinstance(operand, Not):
        yield operand.operand
    elif isinstance(operand, Address):
        for o in (operand.base, *operand.extra):
            yield from _registers(o)  # type: ignore[arg-type]
    elif isinstance(operand, Vector | Group):
        for o in operand.items:
            yield from _registers(o)
    elif isinstance(operand, Pair):
        yield from _registers(operand.first)
        yield from _registers(operand.second)


def _written(i: Instr) -> list[Reg]:
    first = i.operands[0] if i.operands else None
    if first is None or isinstance(first, Address) or i.base in _READS_FIRST:
        return []
    return list(_registers(first))


def _read(i: Instr) -> list[Reg]:
    from_first = not i.operands or isinstance(i.operands[0], Address) or i.base in _READS_FIRST
    found = [reg for o in i.operands[0 if from_first else 1 :] for reg in _registers(o)]
    return found + ([i.pred] if i.pred is not None else [])
