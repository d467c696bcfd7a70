"""The torch-facing function of a port and its launch arithmetic, written from the case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from porter import ir
from porter.case import expressions
from porter.case.expressions import names_in, to_python
from porter.case.model import BufferSpec, Case
from porter.emit.plan import PortPlan
from porter.emit.spelling import function, parameter
from porter.emit.symbols import described

_FUNCTIONS = {
    "sizeof": lambda a: f"runtime.dtype({a[0]}).bytes",
    "sm_count": lambda a: "sm_count",
    "aligned": lambda a: f"runtime.aligned({a[0]}, {a[1]})",
}


def python(text: Any, renamed: Mapping[str, str] | None = None) -> str:
    """A case expression as the port prints it, with some sizes under names of their own."""
    names = {n: parameter(n) for n in names_in(str(text))} | dict(renamed or {})
    return to_python(text, names, _FUNCTIONS)


def entry_name(kernel: str, taken: Iterable[str]) -> str:
    """Name of the torch-facing function: the kernel's without `_kernel`."""
    base = kernel.removesuffix("_kernel").removesuffix("Kernel") or kernel
    names = set(taken)
    if base == kernel or base in names or function(base) != base:
        base = f"run_{base}"
    return function(base)


def entry_lines(plan: PortPlan) -> list[str]:
    """Lines of `launch_config` and of the torch-facing function."""
    name = entry_name(plan.function, {h.name for h in plan.helpers})
    if plan.case is None:
        return _without_case(plan, name)
    return [*_launch_config(plan, plan.case), "", "", *EntryWriter(plan, plan.case, name).lines()]


def _launch_config(plan: PortPlan, case: Case) -> list[str]:
    spec = case.launch
    exprs = [*spec.grid, *spec.block, spec.smem]
    used: set[str] = set()
    for text in exprs:
        used |= set(names_in(str(text)))
        if "sm_count" in str(text):
            used.add("sm_count")
    derived = [(n, v) for n, v in case.sizes if isinstance(v, str)]
    lines: list[str] = []
    # derived sizes that the expressions need, in order
    needed = set(used)
    for n, v in reversed(derived):
        if n in needed:
            needed |= set(names_in(v))
    args = sorted(n for n in needed - {n for n, _ in derived})
    head = ", ".join([*("*" for _ in args[:1]), *map(parameter, args), "**_"])
    lines.append(f"def launch_config({head}):")
    lines.append('    """(grid, block, dynamic shared memory in bytes) of a launch."""')
    lines += [f"    {parameter(n)} = {python(v)}" for n, v in derived if n in needed]
    grid = ", ".join(python(x) for x in spec.grid)
    block = ", ".join(python(x) for x in spec.block)
    lines.append(f"    return ({grid}), ({block}), {python(spec.smem)}")
    return lines


class EntryWriter:
    """Writes the torch-facing function of one port."""

    def __init__(self, plan: PortPlan, case: Case, name: str):
        self.plan, self.case, self.name = plan, case, name
        self.buffers = {b.name: b for b in case.buffers}
        self.scalars = dict(case.scalars)
        self.sources: dict[str, str] = {}  # size -> expression that gives it
        self.extra: list[str] = []  # sizes that only the caller knows
        # A size may be called as an operand is, which is a name that the function has already.
        self.renamed = {n: f"{parameter(n)}_size" for n, _ in case.sizes if n in self.buffers}
        self._find_sizes()
        self.shown = self._find_shown()
        self.stride_of = self._stride_scalars()
        self.asked = [p.name for p in plan.params if p.name in self.buffers or self._asked(p.name)]
        self.flags = self._find_flags()

    def _find_sizes(self) -> None:
        base = list(self.case.base_sizes)
        for size in base:
            found = self._size_from_buffer(size)
            if found is None:
                scalar = next((s for s, vs in self.case.scalars if len(vs) == 1 and vs[0].strip() == size), None)
                found = scalar and parameter(scalar)
            if found is None:
                found = self._size(size)
                self.extra.append(size)
            self.sources[size] = found

    def _find_shown(self) -> dict[str, str]:
        """Template numbers that the shape of an operand says, and where: `head_dim` of (tokens, heads, head_dim)."""
        g = self.plan.generic
        sizes = set(map(parameter, self.case.base_sizes))
        numbers = [n for n in g.names if n not in sizes and all(type(v) is int for v in g.column(n))]
        found = {n: self._size_from_buffer(self.plan.template_name(n)) for n in numbers}
        return {n: source for n, source in found.items() if source is not None and parameter(n) == n}

    def _find_flags(self) -> list[str]:
        """Template parameters that no operand and no condition of the case decides: the caller does.

        Every such bool; of numbers those that alone tell apart instances which are otherwise chosen alike.
        """
        g = self.plan.generic
        mentioned = {parameter(n) for i in self.case.instances if i.when for n in names_in(i.when)}
        open_ = [n for n in g.names if n not in mentioned and len(set(g.column(n))) > 1 and n not in self._known()]
        flags = [n for n in open_ if all(isinstance(v, bool) for v in g.column(n))]
        numbers = [n for n in open_ if n not in flags and all(type(v) is int for v in g.column(n))]
        alike: dict[Any, list[dict[str, Any]]] = {}
        for i, values in enumerate(g.values):
            table = dict(zip(g.names, values, strict=True))
            when = self.case.instances[i].when if i < len(self.case.instances) else ""
            chosen_by = tuple(str(table[n]) for n in (*self._known_here(), *flags))
            alike.setdefault((chosen_by, when), []).append(table)
        flags += [n for n in numbers if any(len({t[n] for t in tables}) > 1 for tables in alike.values())]
        return [n for n in g.names if n in flags]

    def _size_from_buffer(self, size: str) -> str | None:
        """Where a size stands in the shape of an operand that is always there: as it is, times or plus a number."""
        dims = [
            (f"{parameter(b.name)}.shape[{i}]", str(dim).replace(" ", ""))
            for b in self.case.buffers
            if not b.optional
            for i, dim in enumerate(b.shape)
        ]
        for source, text in dims:
            if text == size:
                return source
        for source, text in dims:
            for factor in range(2, 65):
                if text in (f"{factor}*{size}", f"{size}*{factor}"):
                    return f"{source} // {factor}"
            for extra in range(1, 65):
                if text in (f"{extra}+{size}", f"{size}+{extra}"):
                    return f"{source} - {extra}"
        return None

    def _stride_scalars(self) -> dict[str, str]:
        out: dict[str, str] = {}
        for b in self.case.buffers:
            for i, s in enumerate(b.strides or ()):
                text = str(s).strip()
                if text in self.scalars and text not in out:
                    out[text] = f"{parameter(b.name)}.stride({i})"
        return out

    def _asked(self, scalar: str) -> bool:
        """True when the caller passes this scalar: nothing else determines it."""
        if scalar in self.stride_of or scalar not in self.scalars:
            return False
        texts = self.scalars[scalar]
        if any(src == parameter(scalar) for src in self.sources.values()):
            return True
        if len(texts) > 1:
            return True
        names = names_in(str(texts[0]))
        known = {n for n, _ in self.case.sizes} | {self.plan.template_name(n) for n in self.plan.generic.names}
        return not names or not names <= known | set(self.scalars)

    def _python(self, text: Any) -> str:
        return python(text, self.renamed)

    def _size(self, name: str) -> str:
        """What the function calls a size."""
        return self.renamed.get(name, parameter(name))

    def lines(self) -> list[str]:
        plan, case = self.plan, self.case
        args = [parameter(n) for n in self.asked]
        keywords = [*map(self._size, self.extra), *(f"{n}=None" for n in self.flags)]
        tail = [f"*, {', '.join(keywords)}"] if keywords else []
        out = [
            f"def {self.name}({', '.join([*args, *tail])}):",
            f'    """{plan.name} on torch tensors, on the current stream.',
            "",
        ]
        symbols = {s.name: s for s in plan.symbols}
        for n in self.asked:
            if n in self.buffers:
                b = self.buffers[n]
                row = f"    {parameter(n)}: {b.role}, {b.dtype} ({', '.join(map(str, b.shape))})"
                row += ", may be None" if b.optional else ""
                out.append(f"{row}; {described(symbols[n])}" if n in symbols else row)
            else:
                out.append(f"    {parameter(n)}: number")
        for n in self.flags:
            what = "flag" if all(isinstance(v, bool) for v in plan.generic.column(n)) else "argument"
            out.append(f"    {n}: template {what}; None takes the first instance that fits")
        out += [
            "",
            "    Raises ValueError for a dtype, shape, stride or device that the kernel does not take.",
            '    """',
        ]
        out += self._types()
        out += [f"    {self._size(n)} = {src}" for n, src in self.sources.items() if self._size(n) != src]
        out += [f"    {n} = {src}" for n, src in self.shown.items()]
        late = self._late()
        derived = {n: v for n, v in case.sizes if isinstance(v, str)}
        out += [f"    {self._size(n)} = {self._python(v)}" for n, v in derived.items() if n not in late]
        for p in plan.params:
            if p.name in self.scalars and p.name not in self.asked and p.name not in late:
                value = self.stride_of.get(p.name) or self._python(self.scalars[p.name][0])
                if parameter(p.name) != value:
                    out.append(f"    {parameter(p.name)} = {value}")
        # stride names that are no kernel parameter still occur in conditions
        for s, src in self.stride_of.items():
            if s not in {p.name for p in plan.params}:
                out.append(f"    {parameter(s)} = {src}")
        early, after = self._checks(late)
        out += early
        out += self._choose()
        if late or after:
            dims = [str(d) for b in case.buffers if b.name in after for d in (*b.shape, *(b.strides or ()))]
            used = {n for text in (*late.values(), *dims) for n in names_in(text)}
            own = [n for n in plan.generic.names if plan.template_name(n) in used and n not in self._known()]
            out += [f'    {n} = constexprs["{plan.template_name(n)}"]' for n in own]
            out += [f"    {self._size(n)} = {self._python(text)}" for n, text in late.items()]
            out += after.values()
        out += self._launch()
        return out

    def _known(self) -> set[str]:
        """Template parameters that the operands show, so that they have a value before an instance is chosen."""
        return set(self._typed_params()) | {parameter(n) for n in self.case.base_sizes} | set(self.shown)

    def _known_here(self) -> list[str]:
        known = self._known()
        return [n for n in self.plan.generic.names if n in known]

    def _late(self) -> dict[str, str]:
        """Derived sizes and scalars that hang on template arguments which only the chosen instance gives."""
        unknown = {self.plan.template_name(n) for n in set(self.plan.generic.names) - self._known()}
        own = {p.name for p in self.plan.params} - {*self.asked, *self.stride_of}
        texts = [(n, v) for n, v in self.case.sizes if isinstance(v, str)]
        texts += [(n, str(v[0])) for n, v in self.case.scalars if n in own]
        late: dict[str, str] = {}
        for n, text in texts:
            if set(names_in(text)) & (unknown | set(late)):
                late[n] = text
        return late

    def _types(self) -> list[str]:
        out = []
        for n in self.plan.generic.names:
            owner = next((b.name for b in self._typed_by(n)), None)
            if owner is not None:
                out.append(f"    {n} = runtime.name_of({parameter(owner)}.dtype)")
        return out

    def _typed_params(self) -> list[str]:
        return [n for n in self.plan.generic.names if self._typed_by(n)]

    def _typed_by(self, n: str) -> list[BufferSpec]:
        """The operands that are always there and have a template parameter's type."""
        own = self.plan.template_name(n)
        return [b for b in self.case.buffers if b.dtype == own and not b.optional]

    def _checks(self, late: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        """The checks of operands, and by operand those whose shape only the chosen instance gives."""
        out = []
        after: dict[str, str] = {}
        unknown = {self.plan.template_name(n) for n in set(self.plan.generic.names) - self._known()} | set(late)
        first = next((b.name for b in self.case.buffers if not b.optional), None)
        for b in self.case.buffers:
            name = parameter(b.name)
            own = parameter(b.dtype)
            dtype = own if own in self.plan.generic.names else f'"{self._dtype(b)}"'
            shape = ", ".join(self._python(d) for d in b.shape) + ("," if len(b.shape) == 1 else "")
            call = f'runtime.check("{b.name}", {name}, {dtype}, ({shape})'
            if b.strides:
                strides = ", ".join(self._python(s) for s in b.strides) + ("," if len(b.strides) == 1 else "")
                call += f", strides=({strides})"
            if first is not None and b.name != first:
                call += f", device={parameter(first)}.device"
            if b.optional:
                call += ", optional=True"
            if {n for text in (*b.shape, *(b.strides or ())) for n in names_in(str(text))} & unknown:
                after[b.name] = f"    {call})"
            else:
                out.append(f"    {call})")
        return out, after

    def _dtype(self, b: BufferSpec) -> str:
        try:
            return b.dtype_at({})
        except expressions.ExprError:
            return b.dtype

    def _choose(self) -> list[str]:
        g = self.plan.generic
        if not g.names:
            return []
        out: list[str] = []
        typed = self._typed_params()
        for i, values in enumerate(g.values):
            table = dict(zip(g.names, values, strict=True))
            conds = [f'{n} == "{table[n].name}"' for n in typed if isinstance(table[n], ir.Scalar)]
            for n in g.names:
                source = self._scalar_template(n)
                if source is not None:
                    conds.append(f"{source} == {table[n]!r}")
            conds += [f"{n} in (None, {table[n]!r})" for n in self.flags]
            when = self.case.instances[i].when if i < len(self.case.instances) else ""
            if when:
                text = self._python(when)
                conds.append(f"({text})" if " or " in text or " if " in text else text)
            text = ", ".join(f'"{self.plan.template_name(n)}": {_constexpr(v)}' for n, v in table.items())
            out.append(f"    {'if' if i == 0 else 'elif'} {' and '.join(conds) or 'True'}:")
            out.append(f"        constexprs = {{{text}}}")
        out.append("    else:")
        told = [*typed, *self.shown, *self.flags, *map(self._size, self.case.base_sizes)]
        what = ", ".join(f"{n}={{{n}}}" for n in told)
        out.append(f'        raise ValueError(f"{self.plan.name}: no instance of the port for {what}")')
        return out

    def _scalar_template(self, n: str) -> str | None:
        """A run-time value that a template parameter of the same name follows (a size named like it)."""
        return n if n in self.shown or n in map(parameter, self.case.base_sizes) else None

    def _launch(self) -> list[str]:
        g = self.plan.generic
        names = [n for n, _ in self.case.sizes] + [s for s in self.scalars]
        used = self._config_names()
        passed = [n for n in names if n in used and parameter(n) not in g.names]
        args = ", ".join(f"{parameter(n)}={self._size(n)}" for n in dict.fromkeys(passed))
        renamed = [n for n in g.names if self.plan.template_name(n) != n and self.plan.template_name(n) in used]
        args = ", ".join(filter(None, [args, *(f'{n}=constexprs["{self.plan.template_name(n)}"]' for n in renamed)]))
        if "sm_count" in used:
            args = ", ".join(filter(None, [args, f"sm_count=runtime.sm_count({self._device()})"]))
        both = ", ".join(filter(None, [args, "**constexprs" if g.names else ""]))
        call_args = ", ".join(parameter(p.name) for p in self.plan.params)
        constexprs = "constexprs" if g.names else "{}"
        return [
            f"    grid, block, smem_bytes = launch_config({both})",
            f"    args = ({call_args},)",
            f"    KERNEL.launch({constexprs}, args, grid=grid, block=block, smem_bytes=smem_bytes)",
        ]

    def _device(self) -> str:
        first = next((b.name for b in self.case.buffers if not b.optional), None)
        return f"{parameter(first)}.device" if first else ""

    def _config_names(self) -> set[str]:
        used: set[str] = set()
        spec = self.case.launch
        for text in (*spec.grid, *spec.block, spec.smem):
            used |= set(names_in(str(text)))
            if "sm_count" in str(text):
                used.add("sm_count")
        for n, v in reversed([(n, v) for n, v in self.case.sizes if isinstance(v, str)]):
            if n in used:
                used |= set(names_in(v))
        return used


def _constexpr(v: Any) -> str:
    return f'"{v.name}"' if isinstance(v, ir.Scalar) else repr(v)


def _without_case(plan: PortPlan, name: str) -> list[str]:
    """No case: the caller gives template arguments and the launch."""
    g = plan.generic
    args = [parameter(p.name) for p in plan.params]
    given = ", ".join(f'"{plan.template_name(n)}": {n}' for n in g.names)
    keywords = ", ".join(["*", *g.names, "grid", "block", "smem_bytes=0"])
    summary = f"{plan.name} on torch tensors or addresses; the caller gives template arguments and the launch."
    doc = [f'    """{summary}"""']
    if plan.symbols:
        rows = [f"    {parameter(s.name)}: {described(s)}" for s in plan.symbols]
        doc = [f'    """{summary}', "", *rows, '    """']
    return [
        f"def {name}({', '.join([*args, keywords])}):",
        *doc,
        f"    KERNEL.launch({{{given}}}, ({', '.join(args)},), grid=grid, block=block, smem_bytes=smem_bytes)",
    ]
