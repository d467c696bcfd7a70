"""What a kernel does with the memory behind each pointer parameter: reads it, writes it, or both."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from porter import ir
from porter.patterns.readonly import root

_ATOMIC = ("atomic",)


def pointer_roles(kernel: ir.Kernel) -> dict[str, str]:
    """Parameter name to "in", "out" or "inout", as far as the kernel's body and functions show it.

    Pointers that reach memory by ways that cannot be followed (stored in structs, passed to inline PTX) count as both.
    """
    start = {p.name: {p.name} for p in kernel.params if isinstance(p.type, ir.Pointer)}
    reads: set[str] = set()
    writes: set[str] = set()
    _body(kernel, kernel.body, start, reads, writes, 0)
    both = {n: "inout" if n in writes and n in reads else "out" if n in writes else "in" for n in start}
    return {n: r for n, r in both.items() if n in reads | writes}


def _body(
    kernel: ir.Kernel,
    body: tuple[ir.Stmt, ...],
    start: dict[str, set[str]],
    reads: set[str],
    writes: set[str],
    depth: int,
) -> None:
    origin = _origins(body, start)

    def of(e: ir.Expr) -> set[str]:
        return origin.get(root(e) or "", set())

    targets: Counter[int] = Counter()
    for n in ir.walk(body):
        if isinstance(n, ir.Assign | ir.Copy):
            place: Any = n.target
            inner = place
            while isinstance(inner, ir.Field | ir.Index):
                inner = inner.base
            if isinstance(inner, ir.Deref):
                writes |= of(inner.ptr)
                targets[id(inner)] += 1
        elif isinstance(n, ir.Asm):
            for _, e in (*n.inputs, *n.outputs):
                if isinstance(e.type, ir.Pointer):
                    loads, stores = _asm_accesses(n.template)
                    reads |= of(e) if loads else set()
                    writes |= of(e) if stores else set()
        elif isinstance(n, ir.Intrinsic):
            pointers = [a for a in n.args if isinstance(a.type, ir.Pointer)]
            if n.name.startswith(_ATOMIC):
                reads.update(*(of(a) for a in pointers))
                writes.update(*(of(a) for a in pointers))
            elif n.name.startswith("__st") and pointers:
                writes |= of(pointers[0])
            elif n.name in ("memcpy", "cub::BlockStore::Store") and pointers:
                writes |= of(pointers[0])
                reads.update(*(of(a) for a in pointers[1:]))
            elif not n.name.startswith("__cvta"):
                reads.update(*(of(a) for a in pointers))
        elif isinstance(n, ir.Call) and n.function in kernel.functions and depth < 12:
            fn = kernel.functions[n.function]
            inner_start = {p.name: of(a) for p, a in zip(fn.params, n.args, strict=False) if of(a)}
            if inner_start:
                _body(kernel, fn.body, inner_start, reads, writes, depth + 1)
    # `x[i] += 1` is written out as `x[i] = x[i] + 1`, where both sides may be one object
    seen = Counter(id(n) for n in ir.walk(body) if isinstance(n, ir.Deref))
    for n in ir.walk(body):
        if isinstance(n, ir.Deref) and seen[id(n)] > targets[id(n)]:
            reads |= of(n.ptr)


def _asm_accesses(template: str) -> tuple[bool, bool]:
    """(may read, may write) of inline PTX that is given a pointer: what is not a plain load or store counts as both."""
    names = {m.group(1) for m in re.finditer(r"(?:^|[;{\s])(?:@!?\w+\s+)?([a-z]\w*)[.\s]", template)}
    memory = names & {"ld", "ldu", "st", "atom", "red", "cp", "prefetch", "stmatrix", "ldmatrix", "multimem"}
    if memory and memory <= {"ld", "ldu", "prefetch"}:
        return True, False
    if memory == {"st"}:
        return False, True
    return True, True


def _origins(body: tuple[ir.Stmt, ...], start: dict[str, set[str]]) -> dict[str, set[str]]:
    """For every pointer variable (and reference) the parameters that its address may come from."""
    origin = {k: set(v) for k, v in start.items()}
    while True:
        changed = False
        for n in ir.walk(body):
            if isinstance(n, ir.Decl) and n.init is not None:
                name, value = n.name, n.init
            elif isinstance(n, ir.Assign) and isinstance(n.target, ir.Var):
                name, value = n.target.name, n.value
            else:
                continue
            is_ref = isinstance(n, ir.Decl) and n.ref
            if not isinstance(value.type, ir.Pointer) and not is_ref:
                continue
            for arm in _arms(value):
                new = origin.get(root(arm) or "", set()) - origin.get(name, set())
                if new:
                    origin.setdefault(name, set()).update(new)
                    changed = True
        if not changed:
            return origin


def _arms(e: ir.Expr) -> list[ir.Expr]:
    return [*_arms(e.a), *_arms(e.b)] if isinstance(e, ir.Select) else [e]
