"""The port as one .py file: header, device functions, kernel, launcher, torch-facing function, with its line map."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from porter import __version__, ir
from porter.emit import spelling
from porter.emit.definitions import Shown, declared_often
from porter.emit.entry import entry_lines
from porter.emit.expressions.expr import ExprWriter
from porter.emit.generic import Params
from porter.emit.layout import leaf
from porter.emit.plan import Helper, PortPlan
from porter.emit.shared_bases import kept_addresses
from porter.emit.source.names import FunctionNames, names_of
from porter.emit.spaces import pointer_spaces
from porter.emit.spelling import identifier, parameter
from porter.emit.standalone import PREFIX, inline_library
from porter.emit.statements.memory import memory_names
from porter.emit.statements.writer import BodyWriter, Line
from porter.emit.symbols import byte_rows, described
from porter.emit.text import BUILTIN_NAMES, Scope
from porter.emit.trace_constants import find_trace_constants
from porter.model import Hole, LineMapEntry, PortedModule, author_of, patterns_named
from porter.patterns.names import assigned_names, declared
from porter.source import NO_SPAN, Span

_BUILTIN_GROUPS = {
    "tid": "cute.arch.thread_idx()",
    "bid": "cute.arch.block_idx()",
    "bdim": "lib.block_dim()",
    "gdim": "cute.arch.grid_dim()",
}


class ModuleWriter:
    """Writes one port."""

    def __init__(self, plan: PortPlan):
        self.plan = plan
        self.source_names = names_of(plan.options.source) if plan.options.source is not None else None
        functions = {f.name: (tuple(q.name for q in f.params), f.body) for f in plan.helpers}
        functions[plan.function] = ((), plan.body)
        memory = {name: memory_names(body) for name, (_, body) in functions.items()}
        self.trace_constants = find_trace_constants(functions, memory)
        self.lines: list[Line] = []
        self.holes: list[Hole] = []

    def put(self, text: str = "", span: Span = NO_SPAN, indent: int = 0, by: tuple[str, ...] = ()) -> None:
        self.lines.append(Line(indent, text, span, by))

    def write(self) -> PortedModule:
        p = self.plan
        for h in p.helpers:
            self._function(h)
        self._kernel()
        self._launcher()
        body = self.lines
        self.lines = []
        text = "\n".join(x.text for x in body)
        imports: list[str] = []
        copied = ""
        if p.options.standalone:
            _, imports, copied = inline_library(text)
            body = [replace(x, text=re.sub(r"\blib\.(\w+)", rf"{PREFIX}\1", x.text)) for x in body]
        self._header(text, imports)
        if copied:
            for row in (
                "# ---- from porter.corpus.lib",
                "",
                "",
                *copied.split("\n"),
                "",
                "",
                f"# ---- {p.name}",
                "",
                "",
            ):
                self.put(row)
        self.lines += body
        entry = entry_lines(p)
        for row in entry:
            self.put(row, p.span or NO_SPAN)
        text = "\n".join("    " * x.indent + x.text if x.text else "" for x in self.lines) + "\n"
        text = re.sub(r"\n{4,}", "\n\n\n", text)
        rows = text.splitlines()
        line_map = self._map(rows)
        return PortedModule(p.name, text, line_map, tuple(self.holes), (), patterns_named(line_map))

    def _map(self, rows: list[str]) -> tuple[LineMapEntry, ...]:
        """Spans by line of the final text: the written lines, in order, found again past collapsed blank lines."""
        out = []
        i = 0
        for n, row in enumerate(rows, 1):
            while (
                i < len(self.lines)
                and ("    " * self.lines[i].indent + self.lines[i].text if self.lines[i].text else "") != row
            ):
                i += 1
            if i >= len(self.lines):
                break
            line = self.lines[i]
            if line.span.line:
                out.append(LineMapEntry(n, line.span, author_of(line.by)))
            i += 1
        return tuple(out)

    # ---- header

    def _header(self, body: str, imports: list[str]) -> None:
        p = self.plan
        file = Path(p.info.span.file or (p.options.source.path if p.options.source else "kernel.cu"))
        for row in licence_lines(p.options.source.text if p.options.source else ""):
            self.put(f"# {row}")
        self.put(f'"""{p.name}, ported from {file.name} by porter {__version__}.')
        if p.case is None:
            self.put("")
            self.put("Not verified: no case says what the kernel is launched with.")
        if p.generic.names:
            self.put("")
            self.put("Template arguments:")
            for values in p.generic.values:
                args = ", ".join(
                    f"{n}={spelling.dtype(v) if isinstance(v, ir.Scalar) else v!r}"
                    for n, v in zip(p.generic.names, values, strict=True)
                )
                self.put(f"    {args}")
        if p.symbols:
            self.put("")
            self.put("Variables of the source that are parameters here:")
            for s in p.symbols:
                self.put(f"    {identifier(s.name)}: {described(s)}")
                for row in byte_rows(s):
                    self.put(f"        {row}")
        self.put('"""')
        self.put("")
        self.put("import cutlass")
        self.put("import cutlass.cute as cute")
        used = [t for t in spelling.DTYPES.values() if re.search(rf"\b{t}\b", body)]
        used_names = {*used, "Int32"}
        for row in imports:
            if row.startswith("from cutlass import "):
                used_names |= set(row.removeprefix("from cutlass import ").split(", "))
        self.put(f"from cutlass import {', '.join(sorted(used_names))}")
        for row in imports:
            if not row.startswith(("from cutlass import ", "import cutlass")):
                self.put(row)
        self.put("")
        if re.search(r"\blib\.", body) and not self.plan.options.standalone:
            self.put("from porter.corpus import lib, runtime")
        else:
            self.put("from porter.corpus import runtime")
        self.put("")
        self.put("")
        for g in p.globals:
            if isinstance(g.type, ir.Scalar):
                self.put(f"{identifier(g.name)} = {_number(g.value, g.type)}")

    def _name_places(self, scope: Scope, span: Span, params: Params, body: tuple[ir.Stmt, ...]) -> None:
        """Tell a function's scope which template parameters the source names where."""
        names = FunctionNames(self.source_names, span, params, body)
        scope.source_names, scope.argument_params = names.params_at, names.params_of_argument

    def _tables(self, w: BodyWriter, body: tuple[ir.Stmt, ...], span: Span) -> None:
        """Constant tables of the source that the body reads."""
        used = {n.name for n in ir.walk(body) if isinstance(n, ir.Var)}
        for g in self.plan.globals:
            if g.name not in used:
                continue
            if isinstance(g.type, ir.Scalar):
                w.scope.static.add(g.name)
                if isinstance(g.value, int):
                    w.scope.ranges[g.name] = int(g.value), int(g.value)
                continue
            scalar = leaf(g.type).scalar
            values = ", ".join(_number(v, scalar) for v in _flatten(g.value))
            w.scope.memory.add(g.name)
            w.put(f"{identifier(g.name)} = lib.table({spelling.memory_dtype(scalar)}, ({values},))", span)

    # ---- functions

    def _scope(
        self, generic: Params, params: tuple[ir.FunctionParam, ...], body: tuple[ir.Stmt, ...], shown: Shown
    ) -> Scope:
        chosen: dict[str, str] = {}
        taken = set(generic.names) | {h.name for h in self.plan.helpers} | {self.plan.function}
        outside = {p.name for p in self.plan.params} if params is self.plan.params else set()
        keys = [x.name for x in params] + declared(body)
        for n in (shown.get(key, key) for key in keys):
            if n in chosen:
                continue
            py = parameter(n) if n in outside else identifier(n)
            while py in taken:
                py += "_"
            taken.add(py)
            chosen[n] = py
        scope = Scope(generic, {key: chosen[shown.get(key, key)] for key in keys}, shown)
        scope.visible = {n: n for n in (*(p.name for p in params), *(g.name for g in self.plan.globals))}
        scope.holes = self.holes
        scope.memory = memory_names(body) | {p.name for p in params if p.by_ref}
        return scope

    def _function(self, h: Helper) -> None:
        scope = self._scope(h.generic, h.params, h.body, h.shown)
        scope.trace_constants = self.trace_constants[h.name]
        e = ExprWriter(scope)
        assigned = assigned_names(h.body)
        rebound = [p for p in h.params if p.name in scope.memory and not p.by_ref]
        for p in h.params:
            if p.by_ref:
                scope.memory.add(p.name)
        args = [f"{scope.python_names[p.name]}: {self._annotation(e, p)}" for p in h.params]
        args += [f"{n}: cutlass.Constexpr" for n in h.generic.names]
        self._comment(h.comment, h.span)
        self.put("@cute.jit", h.span)
        by = [name for p in h.params for name in p.rewritten]
        by += ["template_parameters"] if h.generic.names else []
        self.put(f"def {h.name}({', '.join(args)}):", h.span, by=tuple(dict.fromkeys(by)))
        w = BodyWriter(scope, assigned, declared_often(h.body))
        for p in rebound:
            name = scope.python_names[p.name]
            w.put(f"{name}_value = {name}", h.span)
            leaves = e.leaves(p.type)
            w.put(f"{name} = lib.local({e.leaf_dtype(leaves)}, 1)", h.span)
            w.put(f"{name}[0] = {name}_value", h.span)
        w.find_roots(h.body)
        scope.spaces = pointer_spaces(h.body, {p.name: f"param:{p.name}" for p in h.params})
        self._name_places(scope, h.span, h.generic, h.body)
        self._tables(w, h.body, h.span)
        self._pointer_params(w, h.params, assigned)
        w.body(h.body)
        self._builtins(scope, h.span)
        self.lines += w.lines
        self.put("")
        self.put("")

    def _pointer_params(self, w: BodyWriter, params: tuple[ir.FunctionParam, ...], assigned: set[str]) -> None:
        """A pointer parameter that the body moves needs the one pointer type that loops can carry."""
        for p in params:
            if p.name in assigned and w.e.is_pointer(p.type) and p.name not in w.scope.memory:
                name = w.scope.python_names[p.name]
                w.put(f"{name} = {w.carried(p.name, name, p.type)}", NO_SPAN)

    def _annotation(self, e: ExprWriter, p: ir.FunctionParam) -> str:
        if p.by_ref or e.is_pointer(p.type):
            return "cute.Pointer"
        text = e.dtype(p.type)
        return text if text in spelling.DTYPES.values() else "cutlass.Numeric"

    def _builtins(self, scope: Scope, span: Span) -> None:
        for group, call in _BUILTIN_GROUPS.items():
            used = [BUILTIN_NAMES[b] for b in scope.used_builtins if BUILTIN_NAMES[b][:-1] == group]
            if not used:
                continue
            if used == [f"{group}x"]:
                self.put(f"{group}x = {call}[0]", span, 1)
                continue
            self.put(f"{', '.join(f'{group}{a}' if f'{group}{a}' in used else '_' for a in 'xyz')} = {call}", span, 1)

    def _comment(self, comment: str, span: Span) -> None:
        for row in comment.splitlines():
            row = row.strip().strip("/*").strip()
            if row:
                self.put(f"# {row}", span)

    def _kernel(self) -> None:
        p = self.plan
        span = p.span or NO_SPAN
        scope = self._scope(p.generic, p.params, p.body, p.shown)
        scope.trace_constants = self.trace_constants[p.function]
        e = ExprWriter(scope)
        self.put("@cute.kernel", span)
        self.put(f"def {p.function}(", span)
        for q in p.params:
            note = self._shape_note(e, q)
            self.put(f"{scope.python_names[q.name]}: {self._annotation(e, q)},{note}", span, 1, q.rewritten)
        for n in p.generic.names:
            self.put(f"{n}: cutlass.Constexpr,", span, 1, ("template_parameters",))
        self.put("):", span)
        w = BodyWriter(scope, assigned_names(p.body), declared_often(p.body))
        for q in p.params:
            if q.name in scope.memory and not q.by_ref and not e.is_pointer(q.type):
                name = scope.python_names[q.name]
                leaves = e.leaves(q.type)
                w.put(f"{name}_value = {name}", span)
                w.put(f"{name} = lib.local({e.leaf_dtype(leaves)}, 1)", span)
                w.put(f"{name}[0] = {name}_value", span)
        w.find_roots(p.body)
        scope.spaces = pointer_spaces(p.body, {q.name: "global" for q in p.params if e.is_pointer(q.type)})
        self._name_places(scope, span, p.generic, p.body)
        scope.kept = kept_addresses(p.body, p.helpers, p.generic.count)
        self._tables(w, p.body, span)
        self._pointer_params(w, p.params, w.assigned)
        w.body(p.body)
        self._builtins(scope, span)
        self.lines += w.lines
        self.put("")
        self.put("")

    def _shape_note(self, e: ExprWriter, q: ir.FunctionParam) -> str:
        notes = []
        if e.is_pointer(q.type):
            notes.append(f"{e.pointer_dtype(q.type)}*")
        if self.plan.case is not None:
            for b in self.plan.case.buffers:
                if b.name == q.name:
                    notes.append(f"({', '.join(b.shape)})")
        return f"  # {' '.join(notes)}" if notes else ""

    def _launcher(self) -> None:
        p = self.plan
        span = p.span or NO_SPAN
        scope = self._scope(p.generic, p.params, (), {})
        e = ExprWriter(scope)
        names = [scope.python_names[q.name] for q in p.params]
        self.put("@cute.jit", span)
        self.put(f"def _launch_{p.function}(", span)
        for q, n in zip(p.params, names, strict=True):
            self.put(f"{n}: {self._annotation(e, q)},", span, 1, q.rewritten)
        dims = [f"{k}_{a}" for k in ("grid", "block") for a in "xyz"]
        for d in (*dims, "smem_bytes"):
            self.put(f"{d}: Int32,", span, 1)
        for n in p.generic.names:
            self.put(f"{n}: cutlass.Constexpr,", span, 1, ("template_parameters",))
        self.put("stream,", span, 1)
        self.put("):", span)
        call = f"{p.function}({', '.join([*names, *p.generic.names])}).launch("
        if len(call) <= 110:
            self.put(call, span, 1)
        else:
            self.put(f"{p.function}(", span, 1)
            for n in (*names, *p.generic.names):
                self.put(f"{n},", span, 2)
            self.put(").launch(", span, 1)
        self.put("grid=(grid_x, grid_y, grid_z),", span, 2)
        self.put("block=(block_x, block_y, block_z),", span, 2)
        cluster = self._cluster()
        if cluster:
            self.put(f"cluster=({cluster}),", span, 2)
        if any(isinstance(n, ir.SharedDecl) and n.dynamic for n in ir.walk(p.body)):
            self.put("smem=smem_bytes,", span, 2)
        self.put("stream=stream,", span, 2)
        bounds = p.launch_bounds
        if bounds:
            self.put(f"max_number_threads=[{bounds[0]}, 1, 1],", span, 2)
        if len(bounds) > 1 and bounds[1] > 1:
            self.put(f"min_blocks_per_mp={bounds[1]},", span, 2)
            self.put("preferred_smem_carveout=100,", span, 2)
        grid_sync = any(isinstance(n, ir.Intrinsic) and n.name == "lib.grid_sync" for n in ir.walk(p.body))
        if grid_sync or (p.case is not None and p.case.launch.cooperative):
            self.put("cooperative=True,", span, 2)
        self.put(")", span, 1)
        self.put("")
        self.put("")
        self._descriptor(e, names)

    def _cluster(self) -> str:
        """The cluster's extents as text, "" for a kernel without clusters or with clusters only its host code knows."""
        p = self.plan
        given: tuple[str, ...] = p.case.launch.cluster if p.case is not None else ()
        fixed = tuple(int(d) for d in given) if all(d.isdigit() for d in given) and set(given) != {"1"} else ()
        found = [k.cluster_dims or fixed for k in p.concrete]
        if not any(found):
            return ""
        rows = [(*dims, 1, 1, 1)[:3] for dims in found]
        return ", ".join(p.generic.const_text(tuple(row[axis] for row in rows)) for axis in range(3))

    def _descriptor(self, e: ExprWriter, names: list[str]) -> None:
        p = self.plan
        self.put("KERNEL = runtime.Kernel(")
        self.put(f"launch=_launch_{p.function},", NO_SPAN, 1)
        self.put(f'name="{p.function}",', NO_SPAN, 1)
        self.put("params=(", NO_SPAN, 1)
        for q, n in zip(p.params, names, strict=True):
            kind = "Ptr" if e.is_pointer(q.type) else "Num"
            self.put(f'runtime.{kind}("{n}", {self._dtype_of(e, q)}),', NO_SPAN, 2)
        self.put("),", NO_SPAN, 1)
        listed = "".join(f'"{p.template_name(n)}", ' for n in p.generic.names).strip()
        if len(p.generic.names) > 1:
            listed = listed.rstrip(",")
        self.put(f"constexprs=({listed}),", NO_SPAN, 1)
        self.put(")")
        self.put("")
        self.put("")

    def _dtype_of(self, e: ExprWriter, q: ir.FunctionParam) -> str:
        """The dtype argument of a parameter: a name, or names by the first template parameter that tells them apart."""
        name, params = self._scalar_name(e, q), e.s.params
        if name in params.names or name in ir.SCALAR_BYTES:
            return f'"{self.plan.template_name(name)}"'
        scalars = ["u8" if x.scalar == ir.BOOL else x.scalar.name for x in e.leaves(self._seen(e, q))]
        for by in params.names:
            column = [v.name if isinstance(v, ir.Scalar) else v for v in params.column(by)]
            pairs = dict(zip(column, scalars, strict=True))
            if all(pairs[v] == s for v, s in zip(column, scalars, strict=True)):
                return f'{{{", ".join(f"{v!r}: {s!r}" for v, s in pairs.items())}}}, by="{self.plan.template_name(by)}"'
        return f'"{name}"'

    def _seen(self, e: ExprWriter, q: ir.FunctionParam) -> ir.Type:
        return e.pointee(q.type) if e.is_pointer(q.type) else q.type

    def _scalar_name(self, e: ExprWriter, q: ir.FunctionParam) -> str:
        leaves = e.leaves(self._seen(e, q))
        kinds = {x.scalar.name for x in leaves}
        if e.is_pointer(q.type) and kinds == {"bool"}:
            return "u8"
        if len(kinds) == 1 and (len(e.s.params.values) != 1 or e.leaf_dtype(leaves) not in e.s.params.names):
            return kinds.pop()
        return e.leaf_dtype(leaves)


def _flatten(value: object) -> list[object]:
    return [x for v in value for x in _flatten(v)] if isinstance(value, tuple | list) else [value]


def _number(value: object, t: ir.Scalar) -> str:
    return spelling.float_text(float(value), t.name) if t.is_float and isinstance(value, int | float) else repr(value)


def licence_lines(text: str) -> list[str]:
    """Copyright and SPDX lines from the top of a source, without comment marks."""
    out = []
    for row in text.splitlines()[:60]:
        if re.search(r"SPDX-License-Identifier|SPDX-FileCopyrightText|[Cc]opyright", row):
            clean = re.sub(r"^[\s/*#]+|[\s/*]+$", "", row)
            if clean:
                out.append(clean)
        elif row.strip().startswith("#include"):
            break
    return out


def emit_module(plan: PortPlan) -> PortedModule:
    """The port's text, line map and holes."""
    return ModuleWriter(plan).write()
