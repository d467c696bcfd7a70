"""Static shared arrays declared inside device functions: the kernel declares them once and passes them down.

CUDA gives such an array one instance a block whatever calls the function; a CuTeDSL helper would allocate at each call.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from porter import ir
from porter.patterns.names import Names, declared, substitute

SCRATCH = "reduce_"  # names of the scratch arrays that patterns make: one serves all functions of a kernel


def hoist_shared(kernel: ir.Kernel) -> ir.Kernel:
    """Functions take their shared arrays as parameters (their own and those of the functions they call)."""
    kernel = _one_scratch_a_type(kernel)
    own: dict[str, list[ir.SharedDecl]] = {}
    names = _all_names(kernel)
    functions: dict[str, ir.Function] = {}
    for key, fn in kernel.functions.items():
        decls = [n for n in ir.walk(fn.body) if isinstance(n, ir.SharedDecl)]
        values: dict[str, ir.Expr] = {}
        mine = []
        for d in decls:
            again = any(d.name == x.name and d.type == x.type for v in own.values() for x in v)
            name = d.name if d.scratch or (again and (d.dynamic or d.name.startswith(SCRATCH))) else names.fresh(d.name)
            values[d.name] = ir.Var(name, type=d.type)
            mine.append(replace(d, name=name))
        own[key] = mine
        functions[key] = replace(fn, body=substitute(fn.body, values) if values else fn.body)
    if not any(own.values()):
        return _first(kernel)
    needs = {key: _needs(key, functions, own, set()) for key in functions}

    def call(n: Any) -> Any:
        if isinstance(n, ir.Call) and needs.get(n.function):
            extra = tuple(
                ir.AddressOf(ir.Var(d.name, type=d.type), type=ir.Pointer(d.type, "shared")) for d in needs[n.function]
            )
            return replace(n, args=(*n.args, *extra))
        return n

    for key, fn in functions.items():
        body = ir.rewrite(_without_shared(fn.body), call)
        params = (*fn.params, *(ir.FunctionParam(d.name, d.type, by_ref=True) for d in needs[key]))
        functions[key] = replace(fn, body=body, params=params)
    body = ir.rewrite(kernel.body, call)
    used = {n.function for n in ir.walk(kernel.body) if isinstance(n, ir.Call)}
    decls, seen = [], set()
    for key in functions:
        if key in used:
            for d in needs[key]:
                if d.name not in seen:
                    seen.add(d.name)
                    decls.append(d)
    return _first(replace(kernel, body=(*decls, *body), functions=functions))


def _one_scratch_a_type(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with one name for all scratch arrays of a type, wherever inlining has put them."""
    names = _all_names(kernel)
    names.taken |= {n for fn in kernel.functions.values() for n in declared(fn.body)}
    chosen: dict[ir.Type, str] = {}

    def renamed(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        values: dict[str, ir.Expr] = {}
        for d in ir.walk(body):
            if isinstance(d, ir.SharedDecl) and d.scratch:
                if d.type not in chosen:
                    chosen[d.type] = names.fresh(f"scratch_{_word(d.type)}")
                values[d.name] = ir.Var(chosen[d.type], type=d.type)
        return substitute(body, values) if values else body

    body = renamed(kernel.body)
    functions = {key: replace(fn, body=renamed(fn.body)) for key, fn in kernel.functions.items()}
    return replace(kernel, body=body, functions=functions) if chosen else kernel


def _all_names(kernel: ir.Kernel) -> Names:
    """Names of the kernel's variables and of the locals of its functions: shared arrays are passed to any of them."""
    names = Names([*(p.name for p in kernel.params), *declared(kernel.body)])
    for fn in kernel.functions.values():
        names.taken |= {p.name for p in fn.params}
        names.taken |= {n.name for n in ir.walk(fn.body) if isinstance(n, ir.Decl)}
    return names


def _word(t: ir.Type) -> str:
    """A word for the element type: the same in all instances that use the array for the same thing."""
    while isinstance(t, ir.Array):
        t = t.elem
    name = t.name if isinstance(t, ir.Scalar | ir.Struct) else "pointer"
    return re.sub(r"\W+", "_", name.split("<")[0].split("::")[-1])


def _needs(
    key: str, functions: dict[str, ir.Function], own: dict[str, list[ir.SharedDecl]], seen: set[str]
) -> list[ir.SharedDecl]:
    if key in seen or key not in functions:
        return []
    seen.add(key)
    out = list(own[key])
    for n in ir.walk(functions[key].body):
        if isinstance(n, ir.Call):
            out += [d for d in _needs(n.function, functions, own, seen) if d.name not in {x.name for x in out}]
    return out


def _without_shared(stmts: Any) -> Any:
    """Statement lists without shared declarations."""
    if isinstance(stmts, tuple):
        return tuple(_without_shared(s) for s in stmts if not isinstance(s, ir.SharedDecl))
    if isinstance(stmts, ir.Stmt):
        return ir.map_children(stmts, lambda c: _without_shared(c)) if not _has_lists(stmts) else _lists(stmts)
    return stmts


def _has_lists(s: ir.Stmt) -> bool:
    return any(isinstance(n, ir.SharedDecl) for n in ir.walk(s))


def _lists(s: ir.Stmt) -> ir.Stmt:
    changes = {}
    for name in ("then", "orelse", "body", "init", "step", "pre", "post"):
        v = getattr(s, name, None)
        if isinstance(v, tuple):
            changes[name] = _without_shared(v)
    if isinstance(s, ir.Switch):
        return replace(s, cases=tuple((v, _without_shared(b)) for v, b in s.cases))
    return replace(s, **changes)


def _first(kernel: ir.Kernel) -> ir.Kernel:
    """Shared arrays of nested scopes move to the top of the kernel: their lifetime is the block's anyway."""
    nested: list[ir.SharedDecl] = []
    top: list[ir.Stmt] = []
    scratch: set[str] = set()
    for s in kernel.body:
        if isinstance(s, ir.SharedDecl):
            if s.name not in scratch:
                top.append(s)
            scratch |= {s.name} if s.scratch else set()
            continue
        for n in ir.walk(s):
            if isinstance(n, ir.SharedDecl) and n.name not in scratch:
                nested.append(n)
                scratch |= {n.name} if n.scratch else set()
        top.append(_without_shared(s) if any(isinstance(n, ir.SharedDecl) for n in ir.walk(s)) else s)
    return replace(kernel, body=(*nested, *top))
