"""Vectors of halves that the source moves as words: arrays of the elements that they are used as."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from porter.lift.lines import Function, Line, assigned_once, every
from porter.lift.shapes import Elements
from porter.lift.terms import called, factors, product, starts, summands, text_of, total

LIFT = "tensor_access"
WORD, BITS = "Uint32", 32


@dataclass
class _Array:
    """`words` words in registers, seen as `count` elements of `dtype` under other names."""

    line: Line
    words: int
    dtype: str
    count: int
    seen: dict[str, Line]


def words_as_elements(fn: Function, elements: Elements) -> None:
    """Rewrite, in place, arrays of 32-bit words that are filled from or written to memory whole and used as elements of
    the type that the memory holds; names are those of separate scopes."""
    found = assigned_once(fn.body)
    uses = Counter(n.id for x in every(fn.body) if x.node for n in ast.walk(x.node)
                   if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))  # fmt: skip
    arrays = _arrays(found, elements)
    pointers = {
        name: (line, call.args[0])
        for name, (line, value) in found.items()
        if (call := called(value, "lib.view")) is not None and text_of(call.args[1]) == WORD
    }
    copies = [(x, c) for x in every(fn.body) if isinstance(x.node, ast.Expr)
              if (c := called(x.node.value, "lib.copy")) is not None]  # fmt: skip
    while True:
        taken = [c for _, c in copies if _moves(c, arrays, pointers, found, elements)]
        ends = Counter(n for c in taken for a in c.args[:2] for n in starts(a))
        kept = {n: a for n, a in arrays.items() if uses[n] == ends[n] + len(a.seen) and ends[n]}
        through = {n: p for n, p in pointers.items() if uses[n] == ends[n] and ends[n]}
        if (len(kept), len(through)) == (len(arrays), len(pointers)):
            break
        arrays, pointers = kept, through
    if not arrays:
        return
    lines = {id(line) for line, _ in pointers.values()} | {id(s) for a in arrays.values() for s in a.seen.values()}
    for x, call in copies:
        if call in taken:
            x.text, x.entry = (new := x.rewritten(_copy(call, arrays, pointers), LIFT)).text, new.entry
    for name, a in arrays.items():
        a.line.text, a.line.entry = (
            (new := a.line.rewritten(f"{name} = lib.local({a.dtype}, {a.count})", LIFT)).text,
            new.entry,
        )
        for view in a.seen:
            for x in every(fn.body):
                x.text = re.sub(rf"\b{view}\b", name, x.text) if id(x) not in lines else x.text
    fn.body = _without(fn.body, lines)


def _arrays(found: Mapping[str, tuple[Line, ast.expr]], elements: Elements) -> dict[str, _Array]:
    out: dict[str, _Array] = {}
    for name, (line, value) in found.items():
        call = called(value, "lib.local")
        if call is None or text_of(call.args[0]) != WORD or not text_of(call.args[1]).isdigit():
            continue
        views = {v: (at, c) for v, (at, e) in found.items()
                 if (c := called(e, "lib.view")) is not None and text_of(c.args[0]) == name}  # fmt: skip
        dtypes = {text_of(c.args[1]) for _, c in views.values()}
        if len(dtypes) == 1 and (bits := elements.bits.get(next(iter(dtypes)), 0)):
            words = int(text_of(call.args[1]))
            out[name] = _Array(line, words, dtypes.pop(), words * BITS // bits, {v: at for v, (at, _) in views.items()})
    return out


def _moves(
    copy: ast.Call,
    arrays: Mapping[str, _Array],
    pointers: Mapping[str, tuple[Line, ast.expr]],
    found: Mapping[str, tuple[Line, ast.expr]],
    elements: Elements,
) -> bool:
    """Whether a copy moves one of the arrays, whole, from or to memory of its elements, at a multiple of its words."""
    ends = {text_of(a): a for a in copy.args[:2]}
    array = next((n for n in ends if n in arrays), "")
    pointer = next((a for a in ends.values() if starts(a) and starts(a)[0] in pointers), None)
    if not array or pointer is None or text_of(copy.args[2]) != str(arrays[array].words):
        return False
    root = starts(pointers[starts(pointer)[0]][1])
    while len(root) == 1 and root[0] in found:
        root = starts(found[root[0]][1])
    held = len(root) == 1 and elements.of.get(root[0]) == arrays[array].dtype
    return held and all(_scaled(t, arrays[array]) is not None for t in summands(pointer)[1:])


def _scaled(term: ast.expr, array: _Array) -> str | None:
    """A number of words as that of elements; None where it is no multiple of the array's words."""
    parts = factors(term)
    at = next((n for n, f in enumerate(parts) if text_of(f) == str(array.words)), None)
    if at is None:
        return None
    return product([*parts[:at], ast.Constant(array.count), *parts[at + 1 :]])


def _copy(copy: ast.Call, arrays: Mapping[str, _Array], pointers: Mapping[str, tuple[Line, ast.expr]]) -> str:
    array = arrays[next(text_of(a) for a in copy.args[:2] if text_of(a) in arrays)]
    ends = []
    for a in copy.args[:2]:
        first, *rest = summands(a)
        if text_of(first) in pointers:
            base = pointers[text_of(first)][1]
            ends.append(" + ".join([total([base]), *(str(_scaled(t, array)) for t in rest)]))
        else:
            ends.append(text_of(a))
    flags = "".join(f", {k.arg}={text_of(k.value)}" for k in copy.keywords)
    return f"lib.copy({', '.join(ends)}, {array.count}{flags})"


def _without(block: list[Line], lines: set[int]) -> list[Line]:
    kept = [x for x in block if id(x) not in lines]
    for x in kept:
        x.body = _without(x.body, lines)
    return kept
