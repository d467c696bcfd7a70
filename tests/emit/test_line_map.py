"""The line map names the patterns behind every line, and naming them changes no text."""

from __future__ import annotations

import pytest

from porter import ir
from porter.emit import plan as planning
from porter.emit.module import emit_module
from porter.emit.plan import PlanOptions, make_plan
from porter.model import patterns_of
from porter.patterns.idioms.catalogue import all_patterns, assumptions_of
from porter.patterns.inline import must_inline
from porter.patterns.library import CG
from porter.patterns.marks import leaves_in, own_nodes
from porter.patterns.tables.intrinsics import LOADS, STORES
from tests.emit.test_ports import ALL
from tests.emit.test_ports import lowered as from_front_end


@pytest.fixture(scope="module", params=ALL)
def lowered(request):
    """(instances as the front end gives them, what planning needs beside them, the plan, the port)."""
    source, case, info, instances, kernels = from_front_end(request.param)
    rest = (info, case, PlanOptions(False, source, instances))
    plan = make_plan(kernels, *rest)
    return kernels, rest, plan, emit_module(plan)


def named(module):
    """Place of the source -> the patterns that lines from there name."""
    found = {}
    for entry in module.line_map:
        found.setdefault(entry.span, set()).update(patterns_of(entry.author))
    return found


def idioms(kernel):
    """(place, pattern) of the idioms of a kernel, read off the IR before any rewrite."""
    reached = [kernel.body]
    for key in {n.function for n in ir.walk((kernel.body, *(f.body for f in kernel.functions.values())))
                if isinstance(n, ir.Call)}:  # fmt: skip
        fn = kernel.functions[key]
        reached.append(fn.body)
        if must_inline(fn):
            kept = (s for s in fn.body if not isinstance(s, ir.Return) and getattr(s, "init", True) is not None)
            yield from ((s.span, "reference_parameter") for s in kept)
        yield from ((n.span, "shared_in_function") for n in ir.walk(fn.body) if isinstance(n, ir.SharedDecl))
    promised = {p.name for p in kernel.params if isinstance(p.type, ir.Pointer) and p.type.const and p.restrict}
    for body in reached:
        for s in (n for n in ir.walk(body) if isinstance(n, ir.Stmt)):
            nodes = list(own_nodes(s))
            calls = {n.name for n in nodes if isinstance(n, ir.Intrinsic)}
            if isinstance(s, ir.If) and not s.is_constexpr and ir.Return in leaves_in(s) and body is kernel.body:
                yield s.span, "guard"
            if isinstance(s, ir.For | ir.While) and leaves_in(s) & {ir.Break, ir.Continue}:
                yield s.span, "loop_exit"
            if isinstance(s, ir.Switch):
                yield s.span, "switch_chain"
            if isinstance(s, ir.Decl) and isinstance(s.type, ir.Struct) and isinstance(s.init, ir.Deref):
                yield s.span, "vector_access"
            if isinstance(s, ir.Assign) and isinstance(s.target.type, ir.Struct) and isinstance(s.target, ir.Deref):
                yield s.span, "vector_access"
            if calls & {*LOADS, *STORES}:
                yield s.span, "access_function"
            if any(name.startswith("cub::") for name in calls):
                yield s.span, "cub_block_reduce"
            if f"{CG}grid_group::sync" in calls:
                yield s.span, "grid_barrier"
            if isinstance(s, ir.SharedDecl) and s.dynamic:
                yield s.span, "dynamic_shared"
            if body is kernel.body and any(
                isinstance(n, ir.Deref) and isinstance(n.ptr, ir.PtrAdd) and isinstance(n.ptr.ptr, ir.Var)
                and n.ptr.ptr.name in promised for n in nodes if not (isinstance(s, ir.Assign) and n is s.target)
            ):  # fmt: skip
                yield s.span, "readonly_load"


def test_every_idiom_of_the_reference_kernels_is_named_where_it_stands(lowered):
    kernels, _, _, module = lowered
    places = named(module)
    wanted = {pair for k in kernels for pair in idioms(k)}
    assert wanted
    missing = [f"{span}: {name}" for span, name in sorted(wanted) if name not in places.get(span, ())]
    assert not missing, missing


def test_what_the_passes_marked_reaches_a_line(lowered):
    _, _, plan, module = lowered
    places = named(module)
    for kernel in plan.concrete:
        for body in (kernel.body, *(f.body for f in kernel.functions.values())):
            heads = {id(part) for n in ir.walk(body) if isinstance(n, ir.For) for part in (*n.init, *n.step)}
            for s in (n for n in ir.walk(body) if isinstance(n, ir.Stmt) and n.span.line and id(n) not in heads):
                assert set(s.span.rewritten) <= places.get(s.span, set()), s
        for p in kernel.params:
            assert set(p.rewritten) <= places[kernel.span]


def test_naming_patterns_changes_no_text(lowered, monkeypatch):
    kernels, rest, _, module = lowered
    monkeypatch.setattr(planning, "mark_changes", lambda before, after, naming: after)
    monkeypatch.setattr(planning, "mark_kernel_changes", lambda before, after, naming, hints=False: after)
    plain = emit_module(make_plan(kernels, *rest))
    assert plain.text == module.text
    assert [(e.line, e.span) for e in plain.line_map] == [(e.line, e.span) for e in module.line_map]


def test_names_are_those_of_the_catalogue(lowered):
    module = lowered[-1]
    assert set(module.patterns) <= {p.name for p in all_patterns()}
    assert set(module.patterns) == set().union(*named(module).values())
    for assumption in assumptions_of(module.patterns):
        assert assumption.pattern in module.patterns and assumption.how
