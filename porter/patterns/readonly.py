"""Loads through `const T* __restrict__` parameters are marked read-only, as nvcc does: ports use `ld.global.nc`.

Assumes what the source promises: the memory behind such a parameter is not written while the kernel runs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from porter import ir


def mark_readonly(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel and its functions with such loads marked."""
    start = {p.name for p in kernel.params if _promised(p)}
    if not start:
        return kernel
    inside = {"": _pointers(kernel.body, start)}
    for key, names in _function_params(kernel, inside[""]).items():
        inside[key] = _pointers(kernel.functions[key].body, names)
    functions = {k: replace(f, body=_mark(f.body, inside.get(k, set()))) for k, f in kernel.functions.items()}
    return replace(kernel, body=_mark(kernel.body, inside[""]), functions=functions)


def _promised(p: ir.FunctionParam) -> bool:
    return isinstance(p.type, ir.Pointer) and p.type.const and p.restrict


def root(e: ir.Expr) -> str | None:
    """The pointer variable that a pointer expression is computed from, without going through memory."""
    while True:
        if isinstance(e, ir.PtrAdd):
            e = e.ptr
        elif isinstance(e, ir.Cast) and isinstance(e.x.type, ir.Pointer):
            e = e.x
        elif isinstance(e, ir.AddressOf | ir.Decay):
            e = e.place
        elif isinstance(e, ir.Field | ir.Index):
            e = e.base
        elif isinstance(e, ir.Deref):
            e = e.ptr
        else:
            return e.name if isinstance(e, ir.Var) else None


def _sources(e: ir.Expr) -> list[ir.Expr]:
    if isinstance(e, ir.Select):
        return [*_sources(e.a), *_sources(e.b)]
    if isinstance(e, ir.Cast) and isinstance(e.x.type, ir.Pointer):
        return _sources(e.x)
    return [e]


def _pointers(body: tuple[ir.Stmt, ...], start: set[str]) -> set[str]:
    """Pointer variables that only ever hold addresses derived from `start`."""
    values: dict[str, list[ir.Expr]] = {}
    for n in ir.walk(body):
        if isinstance(n, ir.Decl) and isinstance(n.type, ir.Pointer) and n.init is not None:
            values.setdefault(n.name, []).append(n.init)
        elif isinstance(n, ir.Assign) and isinstance(n.target, ir.Var) and isinstance(n.target.type, ir.Pointer):
            values.setdefault(n.target.name, []).append(n.value)
    written = {name for n in ir.walk(body) for place in _written_unseen(n) for name in ir.root_variables(place)}
    good = set(start) - written
    # a parameter that the body points elsewhere loses the promise
    good -= {n for n in start if n in values and not _derived(values[n], start)}
    candidates = {n for n in values if n not in start} - written
    # start from the largest set and drop what is derived from something else, until nothing changes
    good |= candidates
    while True:
        bad = {n for n in candidates & good if not _derived(values[n], good)}
        if not bad:
            return good
        good -= bad


def _written_unseen(n: Any) -> list[ir.Expr]:
    """Pointer variables that may get a value without an assignment."""
    if isinstance(n, ir.AddressOf):
        return [n.place]
    return [place for _, place in n.outputs] if isinstance(n, ir.Asm) else []


def _derived(values: list[ir.Expr], good: set[str]) -> bool:
    return all(not _through_memory(e) and root(e) in good for v in values for e in _sources(v))


def _through_memory(e: ir.Expr) -> bool:
    """True when the pointer itself was loaded from memory."""
    while isinstance(e, ir.PtrAdd | ir.Cast):
        e = e.ptr if isinstance(e, ir.PtrAdd) else e.x
    return not isinstance(e, ir.Var | ir.AddressOf | ir.Decay)


def _function_params(kernel: ir.Kernel, at_kernel: set[str]) -> dict[str, set[str]]:
    """Parameters of the functions that get read-only pointers at every call."""
    known: dict[str, set[str]] = {}
    for key, fn in kernel.functions.items():
        known[key] = {p.name for p in fn.params if isinstance(p.type, ir.Pointer) and not p.by_ref}
    while True:
        changed = False
        for caller, body in [("", kernel.body), *((k, f.body) for k, f in kernel.functions.items())]:
            good = at_kernel if not caller else _pointers(body, known[caller])
            for n in ir.walk(body):
                if not isinstance(n, ir.Call) or n.function not in known:
                    continue
                fn = kernel.functions[n.function]
                for p, a in zip(fn.params, n.args, strict=False):
                    if p.name in known[n.function] and not _derived([a], good):
                        known[n.function].discard(p.name)
                        changed = True
        if not changed:
            return known


def _mark(body: tuple[ir.Stmt, ...], good: set[str]) -> Any:
    def one(n: Any) -> Any:
        if isinstance(n, ir.Deref) and not n.volatile and not _through_memory(n.ptr) and root(n.ptr) in good:
            return replace(n, readonly=True)
        return n

    return ir.rewrite(body, one)
