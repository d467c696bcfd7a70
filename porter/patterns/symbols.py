"""Variables at namespace scope that the port takes as parameters: pointers, handed down to functions that reach them.

`__constant__` memory that the host fills and `__device__` variables are given to a port like any buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from porter import ir
from porter.patterns.names import Names, declared
from porter.source import Span


def as_parameters(kernel: ir.Kernel, symbols: tuple[ir.Symbol, ...]) -> ir.Kernel:
    """The kernel with a pointer parameter for each symbol, handed down to the functions that reach it."""
    if not symbols:
        return kernel
    by_name = {s.name: s for s in symbols}
    needs = _needs(kernel)
    functions = {}
    for key, fn in kernel.functions.items():
        names = Names([*_mentioned(fn.body), *(p.name for p in fn.params)])
        given = {s: names.fresh(s) for s in sorted(needs[key])}
        extra = tuple(parameter(by_name[s], name) for s, name in given.items())
        body = _resolved(fn.body, by_name, given, needs)
        functions[key] = replace(fn, body=body, params=(*fn.params, *extra))
    ordered = sorted(symbols, key=lambda s: s.name)
    body = _resolved(kernel.body, by_name, {name: name for name in by_name}, needs)
    params = (*kernel.params, *(parameter(s) for s in ordered))
    return replace(kernel, params=params, body=body, functions=functions, symbols=tuple(ordered))


def parameter(s: ir.Symbol, name: str = "") -> ir.FunctionParam:
    """The pointer that stands for a symbol. Nobody writes constant memory while a kernel runs."""
    elem = s.type.elem if isinstance(s.type, ir.Array) else s.type
    return ir.FunctionParam(name or s.name, ir.Pointer(elem, const=s.constant), restrict=s.constant)


def _mentioned(body: tuple[ir.Stmt, ...]) -> list[str]:
    return [*declared(body), *(n.name for n in ir.walk(body) if isinstance(n, ir.Var))]


def _needs(kernel: ir.Kernel) -> dict[str, set[str]]:
    """The symbols that each function reaches by itself or through others."""
    own = {
        key: {n.name for n in ir.walk(fn.body) if isinstance(n, ir.SymbolAddress)}
        for key, fn in kernel.functions.items()
    }
    calls = {
        key: {n.function for n in ir.walk(fn.body) if isinstance(n, ir.Call)} for key, fn in kernel.functions.items()
    }
    while True:
        grown = {key: own[key].union(*(own.get(c, set()) for c in calls[key])) for key in own}
        if grown == own:
            return own
        own = grown


def _resolved(
    body: tuple[ir.Stmt, ...], symbols: Mapping[str, ir.Symbol], given: Mapping[str, str], needs: Mapping[str, set[str]]
) -> Any:
    """A body whose symbols are the pointers `given`, which its calls hand on."""

    def pointer(name: str, span: Span) -> ir.Var:
        return ir.Var(given[name], type=parameter(symbols[name]).type, span=span)

    def one(n: Any) -> Any:
        if isinstance(n, ir.SymbolAddress):
            var = pointer(n.name, n.span)
            return var if var.type == n.type else ir.Cast(var, type=n.type, span=n.span)
        if isinstance(n, ir.Call) and needs.get(n.function):
            return replace(n, args=(*n.args, *(pointer(s, n.span) for s in sorted(needs[n.function]))))
        array = _array_behind(n)
        if array is not None and isinstance(n, ir.Decay):
            return replace(array, span=n.span)
        if array is not None and isinstance(n, ir.Index):
            return ir.Deref(ir.PtrAdd(array, n.index, type=array.type, span=n.span), type=n.type, span=n.span)
        return n

    return ir.rewrite(body, one)


def _array_behind(n: Any) -> ir.Expr | None:
    """The pointer to the first element, of an expression over the whole array of a symbol."""
    place = n.place if isinstance(n, ir.Decay) else n.base if isinstance(n, ir.Index) else None
    if isinstance(place, ir.Deref) and isinstance(place.type, ir.Array) and isinstance(place.ptr, ir.Cast):
        inner = place.ptr.x
        if isinstance(inner, ir.Var) and isinstance(inner.type, ir.Pointer) and inner.type.elem == place.type.elem:
            return inner
    return None


def same_symbols(kernels: list[ir.Kernel]) -> list[ir.Kernel]:
    """The instances of a kernel with the same symbols: one that reads fewer takes those of the others too."""
    every = {s.declared: s for k in reversed(kernels) for s in k.symbols}
    ordered = sorted(every.values(), key=lambda s: s.name)
    if all([s.declared for s in k.symbols] == [s.declared for s in ordered] for k in kernels):
        return kernels
    made = []
    for k in kernels:
        own = {s.declared: s for s in k.symbols}
        first = len(k.params) - len(k.symbols)
        symbols = tuple(own.get(s.declared, s) for s in ordered)
        made.append(replace(k, symbols=symbols, params=(*k.params[:first], *(parameter(s) for s in symbols))))
    return made
