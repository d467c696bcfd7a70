"""The plan of a port: concrete IR through the rewrites of patterns/, then one generic body over all instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from porter import codes, ir
from porter.case.instances import instance_values
from porter.case.model import Case
from porter.emit import spelling
from porter.emit.arm_names import separate_arms
from porter.emit.definitions import Shown, separate_definitions
from porter.emit.generic import HelperCall, Params
from porter.emit.merge import Mismatch, merge, merge_types
from porter.emit.rounding import keep_rounding
from porter.emit.symbols import with_symbols
from porter.ir.printer import format_kernel
from porter.model import Diagnostic, Instance, KernelInfo, PorterError
from porter.patterns import recognise
from porter.patterns.aggregates import split_aggregates
from porter.patterns.constants import fold_floats
from porter.patterns.exits import function_exits, single_exit
from porter.patterns.first_assignment import declare_at_first_assignment
from porter.patterns.fp8_modes import constant_formats
from porter.patterns.inline import inline
from porter.patterns.library import drop_handles, lower_library
from porter.patterns.marks import mark_changes, mark_kernel_changes, one_pattern
from porter.patterns.names import Names, declared
from porter.patterns.readonly import mark_readonly
from porter.patterns.references import resolve_references
from porter.patterns.shared_params import hoist_shared
from porter.patterns.struct_locals import scalars_for_structs
from porter.patterns.struct_params import flatten_params, references_as_pointers
from porter.patterns.symbols import same_symbols
from porter.patterns.tidy_names import tidy_names
from porter.source import Source


@dataclass(frozen=True)
class PlanOptions:
    """`standalone`: the port inlines what it uses of porter.corpus.lib."""

    standalone: bool = False
    source: Source | None = None
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True)
class Helper:
    """A device function of the port, generic over its specialisations. `shown`: see `definitions`."""

    name: str
    params: tuple[ir.FunctionParam, ...]
    ret: ir.Type
    body: tuple[ir.Stmt, ...]
    generic: Params
    span: Any
    comment: str = ""
    shown: Shown = field(default_factory=dict)


@dataclass(frozen=True)
class PortPlan:
    """Everything the emitter prints. `shown`: the names that the port gives to the definitions of `body`."""

    name: str
    params: tuple[ir.FunctionParam, ...]
    body: tuple[ir.Stmt, ...]
    generic: Params
    helpers: tuple[Helper, ...]
    info: KernelInfo
    case: Case | None
    options: PlanOptions
    launch_bounds: tuple[int, ...] = ()
    globals: tuple[ir.GlobalConst, ...] = ()
    comment: str = ""
    span: Any = None
    symbols: tuple[ir.Symbol, ...] = ()
    concrete: tuple[ir.Kernel, ...] = field(default=(), repr=False)  # after the rewrites, one an instance
    shown: Shown = field(default_factory=dict)

    @property
    def function(self) -> str:
        """The kernel's name in the port."""
        return spelling.function(self.name)

    def template_name(self, name: str) -> str:
        """The source's name of a template parameter, by which a case and a launch give it."""
        return next((t.name for t in self.info.template_params if spelling.parameter(t.name) == name), name)

    def __str__(self) -> str:
        head = [f"plan of {self.name}", f"  template parameters: {', '.join(self.generic.names) or 'none'}"]
        for values in self.generic.values:
            head.append(
                "  instance: " + ", ".join(f"{n}={_show(v)}" for n, v in zip(self.generic.names, values, strict=True))
            )
        head += [f"  function: {h.name}({', '.join(p.name for p in h.params)})" for h in self.helpers]
        return "\n".join([*head, "", *(format_kernel(k) for k in self.concrete)])


def _show(v: Any) -> str:
    return v.name if isinstance(v, ir.Scalar) else repr(v)


def rewrite_kernel(kernel: ir.Kernel) -> ir.Kernel:
    """One concrete instance through all rewrites: what remains is what the emitter can print.

    Every pass but the last, which only chooses names, runs through `mark_changes`: what it changed carries its name.
    """
    names = Names([p.name for p in kernel.params])
    names.taken |= {n for f in kernel.functions.values() for n in declared(f.body)} | set(declared(kernel.body))
    names.taken |= {p.name for f in kernel.functions.values() for p in f.params}
    k = mark_kernel_changes(kernel, references_as_pointers(kernel), one_pattern("kernel_reference"))
    k = mark_kernel_changes(k, flatten_params(k, names), one_pattern("struct_parameter"))
    k = mark_kernel_changes(k, lower_library(k, names), recognise.library)
    k = mark_kernel_changes(k, inline(k, names), recognise.inlined)
    k = mark_kernel_changes(k, constant_formats(k), one_pattern("fp8_format"))
    functions = {key: _rewrite_body(fn, names) for key, fn in k.functions.items()}
    body = _body(k.body, names)
    body = mark_changes(body, single_exit(body, None, names), recognise.exits)
    k = replace(k, body=body, functions=functions)
    k = mark_kernel_changes(k, hoist_shared(k), recognise.shared)
    k = mark_kernel_changes(k, mark_readonly(k), one_pattern("readonly_load"), hints=True)
    functions = {n: replace(f, body=_declared_late(f.body)) for n, f in k.functions.items()}
    return tidy_names(replace(k, body=_declared_late(k.body), functions=functions))


def _body(body: tuple[ir.Stmt, ...], names: Names) -> tuple[ir.Stmt, ...]:
    names.taken |= set(declared(body))
    body = mark_changes(body, drop_handles(body), recognise.handles)
    body = mark_changes(body, resolve_references(body, names), one_pattern("reference_local"))
    body = mark_changes(body, fold_floats(body), one_pattern("constant_arithmetic"))
    body = mark_changes(body, split_aggregates(body, names), recognise.aggregates)
    return mark_changes(body, scalars_for_structs(body, names), one_pattern("struct_local"))


def _rewrite_body(fn: ir.Function, names: Names) -> ir.Function:
    local = Names(names.taken | {p.name for p in fn.params})
    body = _body(fn.body, local)
    return replace(fn, body=mark_changes(body, function_exits(body, fn.ret, local), recognise.exits))


def _declared_late(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    return mark_changes(body, declare_at_first_assignment(body), one_pattern("late_declaration"))


# ---------------------------------------------------------------- helper functions


class _Helpers:
    """Groups the specialisations of device functions, over all instances, into generic functions."""

    def __init__(self, kernels: list[ir.Kernel], reserved: set[str]):
        self.groups: dict[tuple[Any, ...], list[tuple[tuple[Any, ...], ir.Function]]] = {}
        self.order: list[tuple[Any, ...]] = []
        self.names: dict[tuple[Any, ...], str] = {}
        self.of_key: list[dict[str, tuple[Any, ...]]] = []
        taken = Names(reserved)
        for k in kernels:
            table: dict[str, tuple[Any, ...]] = {}
            for key, fn in k.functions.items():
                gid = self._group(fn)
                table[key] = gid
                if gid not in self.names:
                    self.names[gid] = taken.fresh(spelling.function(fn.name or "helper"))
                    self.order.append(gid)
            self.of_key.append(table)

    def _group(self, fn: ir.Function) -> tuple[Any, ...]:
        base = (fn.name, str(fn.span), tuple(n for n, _ in fn.targs), len(fn.params))
        n = 0
        while True:
            gid = (*base, n)
            members = self.groups.setdefault(gid, [])
            values = tuple(_plain(v) for _, v in fn.targs)
            same = [f for v, f in members if v == values]
            if not same:
                if not members or self._mergeable([*(f for _, f in members), fn]):
                    members.append((values, fn))
                    return gid
            elif _same_code(same[0], fn):
                return gid
            n += 1

    def _mergeable(self, fns: list[ir.Function]) -> bool:
        if any([p.name for p in f.params] != [p.name for p in fns[0].params] for f in fns):
            return False  # shared arrays handed down, which one specialisation has and another has not
        try:
            merge_types([f.ret for f in fns])
            return True
        except Mismatch:
            return False

    def call(self, n: Any, i: int, kernel: ir.Kernel) -> Any:
        if isinstance(n, ir.Call) and n.function in self.of_key[i]:
            fn = kernel.functions[n.function]
            targs = tuple((name, _targ(v)) for name, v in fn.targs)
            return HelperCall(self.names[self.of_key[i][n.function]], n.args, targs, type=n.type, span=n.span)
        return n


def _same_code(a: ir.Function, b: ir.Function) -> bool:
    return a.body == b.body or replace(a, key="") == replace(b, key="")


def _plain(v: Any) -> Any:
    return v if isinstance(v, ir.Scalar | int | bool) else str(getattr(v, "name", v))


def _targ(v: Any) -> Any:
    return v if isinstance(v, ir.Type) else ir.Const(v, type=ir.BOOL if isinstance(v, bool) else ir.I32)


def _generic_type(types: list[ir.Type], count: int, where: list[int]) -> ir.Type:
    from porter.emit.generic import Variants

    if all(t == types[0] for t in types):
        return types[0]
    out: list[Any] = [None] * count
    for i, t in zip(where, types, strict=True):
        out[i] = t
    return Variants(tuple(out))


def _taken(k: ir.Kernel) -> tuple[tuple[str, bool], ...]:
    """The parameters that a port of an instance has: names, and whether each is a pointer."""
    return tuple((p.name, isinstance(p.type, ir.Pointer)) for p in k.params)


def alike(kernels: Sequence[ir.Kernel]) -> list[int]:
    """Which of a kernel's instances one port can take: the most that have the same parameters, the first of those."""
    kinds = [
        [(p.name, type(p.type), p.type if isinstance(p.type, ir.Struct) else None) for p in k.params] for k in kernels
    ]
    if all(k == kinds[0] for k in kinds):  # structs become their members only later
        return list(range(len(kernels)))
    taken = [_taken(rewrite_kernel(k)) for k in kernels]
    most = max(taken, key=taken.count, default=())
    return [i for i, t in enumerate(taken) if t == most]


def make_plan(kernels: list[ir.Kernel], info: KernelInfo, case: Case | None, options: PlanOptions) -> PortPlan:
    """Plan the port of one kernel from its instances (all of the same kernel, in the order of the case).

    Raises PorterError PRT603 for instances whose parameters are not the same ones.
    """
    concrete = [spelling.with_python_templates(keep_rounding(rewrite_kernel(k))) for k in same_symbols(kernels)]
    first = concrete[0]
    if len({_taken(k) for k in concrete}) > 1:
        what = f"the instances of {info.name} take different parameters"
        raise PorterError(
            Diagnostic(
                codes.PARAMETERS_DIFFER_BY_INSTANCE, what, info.span, help="port them one at a time, with --instantiate"
            )
        )
    named = _named_values(info, options.instances, len(concrete))
    names = tuple(named[0]) if named else tuple(n for n, _ in first.targs)
    values = tuple(_instance(k, info, names, named[i] if named else {}) for i, k in enumerate(concrete))
    generic = Params(names, values)
    function = spelling.function(first.name)
    helpers = _Helpers(concrete, {function, f"_launch_{function}", *names})
    printed = []
    for gid in helpers.order:
        members = helpers.groups[gid]
        printed.append(_helper(helpers, gid, members, concrete))
    bodies = []
    for i, k in enumerate(concrete):
        bodies.append(ir.rewrite(k.body, lambda n, i=i, k=k: helpers.call(n, i, k)))
    globals_: dict[str, ir.GlobalConst] = {g.name: g for k in concrete for g in k.globals}
    body, shown = separate_definitions(merge(bodies), len(bodies), [*(p.name for p in first.params), *globals_])
    params = tuple(
        replace(p, type=_generic_type([k.params[j].type for k in concrete], len(concrete), list(range(len(concrete)))))
        for j, p in enumerate(first.params)
    )
    return PortPlan(
        first.name,
        params,
        body,
        generic,
        tuple(printed),
        info,
        case and with_symbols(case, first.symbols),
        options,
        first.launch_bounds,
        tuple(globals_.values()),
        first.comment,
        first.span,
        first.symbols,
        tuple(concrete),
        separate_arms(body, shown),
    )


def _named_values(info: KernelInfo, instances: tuple[Instance, ...], count: int) -> list[dict[str, Any]]:
    """The template values of every instance as porter.case.instances reads them; [] where it cannot."""
    try:
        if len(instances) != count:
            return []
        return [{spelling.parameter(n): v for n, v in instance_values(info, i).items()} for i in instances]
    except PorterError:
        return []


def _instance(k: ir.Kernel, info: KernelInfo, names: tuple[str, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Values of the template parameters as the port's constexprs have them (see porter.case.instances).

    Functions and templates given as arguments are known by name only: the bodies of the instances differ.
    """
    given = dict(k.targs)
    out: list[Any] = []
    for name in names:
        v = given.get(name)
        if isinstance(v, ir.Scalar | int) and v != ir.VOID:
            bool_param = any(spelling.parameter(t.name) == name and t.type == "bool" for t in info.template_params)
            out.append(bool(v) if bool_param else v)
        else:
            out.append(named.get(name, str(getattr(v, "name", v))))
    return tuple(out)


def _helper(
    helpers: _Helpers,
    gid: tuple[Any, ...],
    members: list[tuple[tuple[Any, ...], ir.Function]],
    kernels: list[ir.Kernel],
) -> Helper:
    fns = [f for _, f in members]
    generic = Params(tuple(n for n, _ in fns[0].targs), tuple(v for v, _ in members))
    bodies = []
    for f in fns:
        i, k = next((i, k) for i, k in enumerate(kernels) if f.key in k.functions)
        bodies.append(ir.rewrite(f.body, lambda n, i=i, k=k: helpers.call(n, i, k)))
    count = len(fns)
    params = tuple(
        replace(p, type=_generic_type([f.params[j].type for f in fns], count, list(range(count))))
        for j, p in enumerate(fns[0].params)
    )
    ret = _generic_type([f.ret for f in fns], count, list(range(count)))
    outside = [*(p.name for p in params), *(g.name for k in kernels for g in k.globals)]
    body, shown = separate_definitions(merge(bodies), count, outside)
    shown = separate_arms(body, shown)
    return Helper(helpers.names[gid], params, ret, body, generic, fns[0].span, fns[0].comment, shown)
