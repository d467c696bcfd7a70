"""Kernel parameters that are structs by value: one parameter a member, as CuTeDSL kernels take scalars and pointers.

Exact for the kernel's body; the port's parameter list is longer than the original's.
"""

from __future__ import annotations

from dataclasses import replace

from porter import codes, ir
from porter.patterns.names import Names, substitute
from porter.wording import plural

MAX_MEMBERS = 64


def members(t: ir.Type, place: ir.Expr) -> list[tuple[str, ir.Expr]]:
    """(name suffix, place) of every scalar or pointer member, in order."""
    if isinstance(t, ir.Scalar | ir.Pointer):
        return [("", place)]
    if isinstance(t, ir.Array):
        parts = []
        for i in range(int(t.length)):
            at = ir.Index(place, ir.Const(i, type=ir.I32), type=t.elem, span=place.span)
            parts += [(f"_{i}{name}", p) for name, p in members(t.elem, at)]
        return parts
    assert isinstance(t, ir.Struct)
    out = []
    for f in t.fields:
        at_field = ir.Field(place, f.name, type=f.type, span=place.span)
        out += [(f"_{f.name}{name}", p) for name, p in members(f.type, at_field)]
    return out


def references_as_pointers(kernel: ir.Kernel) -> ir.Kernel:
    """The kernel with `T& x` parameters as `T* x`: that is what CUDA passes."""
    if not any(p.by_ref for p in kernel.params):
        return kernel
    values: dict[str, ir.Expr] = {}
    params = []
    for p in kernel.params:
        if p.by_ref:
            pointer = ir.Pointer(p.type, const=p.const)
            values[p.name] = ir.Deref(ir.Var(p.name, type=pointer), type=p.type)
            p = replace(p, type=pointer, by_ref=False)
        params.append(p)
    return replace(kernel, params=tuple(params), body=substitute(kernel.body, values))


def flatten_params(kernel: ir.Kernel, names: Names) -> ir.Kernel:
    """The kernel with struct parameters replaced by their members (empty structs disappear)."""
    if not any(isinstance(p.type, ir.Struct | ir.Array) for p in kernel.params):
        return kernel
    params: list[ir.FunctionParam] = []
    prologue: list[ir.Stmt] = []
    for p in kernel.params:
        if not isinstance(p.type, ir.Struct | ir.Array):
            params.append(p)
            continue
        var = ir.Var(p.name, type=p.type, span=kernel.span)
        found = members(p.type, var)
        if len(found) > MAX_MEMBERS or (isinstance(p.type, ir.Struct) and p.type.is_union):
            hole = ir.HoleStmt(
                codes.UNSPLIT_STRUCT_PARAMETER,
                p.name,
                f"parameter {p.name} is a struct of {plural(len(found), 'member')}",
                span=kernel.span,
            )
            prologue += [ir.Decl(p.name, p.type, span=kernel.span), hole]
            continue
        prologue.append(ir.Decl(p.name, p.type, span=kernel.span))
        for suffix, place in found:
            name = names.fresh(f"{p.name}{suffix}")
            params.append(ir.FunctionParam(name, place.type, const=p.const))
            prologue.append(ir.Assign(place, ir.Var(name, type=place.type, span=kernel.span), span=kernel.span))
    return replace(kernel, params=tuple(params), body=(*prologue, *kernel.body))
