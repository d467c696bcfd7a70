"""What a case says of the kernel's buffers, in the names that the kernel has for it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from porter import ir
from porter.case.model import BufferSpec, Case
from porter.emit.plan import PortPlan
from porter.emit.spelling import parameter
from porter.lift.terms import expression, factors, names_in, narrowed, text_of


@dataclass(frozen=True)
class Shape:
    """Extents and strides in elements of a buffer, as text over the kernel's parameters.

    None is an extent that the kernel does not know: that of the first mode, or of any where strides are given; nothing
    reads them. Strides of None follow from the extents, the last mode contiguous.
    """

    name: str
    extents: tuple[str | None, ...]
    strides: tuple[str, ...] | None

    def steps(self) -> list[list[str]]:
        """The factors of each mode's stride but the last one's, which is 1."""
        if self.strides is not None:
            return [_factors(s) for s in self.strides[:-1]]
        inner = self.extents[1:]
        return [[f for e in inner[i:] if e is not None for f in _factors(e)] for i in range(len(inner))]


@dataclass(frozen=True)
class Elements:
    """What a port's buffers hold. `of`: the type of each pointer parameter, as the port spells it; `bits`: the width of
    a type, where it is the same at every instance."""

    of: Mapping[str, str]
    bits: Mapping[str, int]


def _factors(text: str) -> list[str]:
    return [f for f in (text_of(narrowed(f)) for f in factors(expression(text))) if f != "1"]


def shapes_of(plan: PortPlan) -> dict[str, Shape]:
    """The buffers of the plan's case that can be tensors: those whose shape the kernel can say, by its parameters."""
    case = plan.case
    if case is None:
        return {}
    known = _known(plan, case)
    pointers = {p.name for p in plan.params}
    out: dict[str, Shape] = {}
    for b in case.buffers:
        if b.name in pointers and not b.symbol:
            shape = _shape(b, known)
            if shape is not None:
                out[parameter(b.name)] = shape
    return out


def without_shape(plan: PortPlan) -> dict[str, str]:
    """Why a pointer parameter has no tensor, by parameter."""
    case, known = plan.case, shapes_of(plan)
    buffers = {b.name: b for b in case.buffers} if case is not None else {}
    out = {}
    for p in plan.params:
        name = parameter(p.name)
        if name in known:
            continue
        b = buffers.get(p.name)
        if case is None or b is None:
            out[name] = "no case says its shape"
        else:
            names = _known(plan, case)
            said = [*map(str, b.strides or b.shape[1:])]
            missing = [t for t in said if _said(t, names) is None]
            told = f"the kernel has no name for {missing[0]}" if missing else "its last mode is not contiguous"
            out[name] = told
    return out


def elements_of(plan: PortPlan) -> Elements:
    """The types of the buffers' elements that are template parameters, and how wide these are."""
    names, buffers = plan.generic.names, plan.case.buffers if plan.case is not None else ()
    spelled = {plan.template_name(t): t for t in names}
    of = {parameter(b.name): spelled[b.dtype] for b in buffers if b.dtype in spelled}
    bits = {}
    for n, t in enumerate(names):
        widths = {8 * ir.sizeof(v[n]) if isinstance(v[n], ir.Scalar) else 0 for v in plan.generic.values}
        if len(widths) == 1 and widths != {0}:
            bits[t] = widths.pop()
    return Elements(of, bits)


def _known(plan: PortPlan, case: Case) -> dict[str, str]:
    """Names of the case -> what the kernel calls them: its own parameters, sizes that one of them is, template
    parameters that a size equals wherever an instance may be taken."""
    params = {p.name for p in plan.params}
    known = {name: parameter(name) for name, _ in case.scalars if name in params}
    for name, values in case.scalars:
        if name in params and len(values) == 1 and _names_the_size(name, values[0].strip()):
            known.setdefault(values[0].strip(), parameter(name))
    whens = [i.when for i in case.instances]
    for t in plan.generic.names:
        equal = [set(re.findall(rf"(\w+) == {re.escape(plan.template_name(t))}\b", w)) for w in whens]
        for size in set.intersection(*equal) if equal else ():
            known.setdefault(size, t)
        for size in _equal_everywhere(plan, t, whens):
            if _names_the_size(t, size):
                known.setdefault(size, t)
        known.setdefault(plan.template_name(t), t)
    return known


def _equal_everywhere(plan: PortPlan, template: str, whens: list[str]) -> set[str]:
    """The sizes that every instance's condition sets to its value of a template parameter (`num_experts == 64`)."""
    at = plan.generic.names.index(template)
    values = [v[at] for v in plan.generic.values]
    if not values or len(values) != len(whens):
        return set()
    return set.intersection(
        *(
            {n for n, number in re.findall(r"(\w+) == (\d+)\b", w) if number == str(v)}
            for w, v in zip(whens, values, strict=True)
        )
    )


def _names_the_size(param: str, size: str) -> bool:
    """Whether a parameter whose value is a size in the case is that size by its name too: a number that happens to be
    equal there (the first id of a rank that owns the second half) says nothing of the buffer."""
    a, b = param.lower().replace("_", ""), size.lower().replace("_", "")
    return size.isidentifier() and (b in a or a in b)


def _shape(b: BufferSpec, known: dict[str, str]) -> Shape | None:
    extents = [_said(str(d), known) for d in b.shape]
    if not extents or (b.strides is None and any(e is None for e in extents[1:])):
        return None
    strides = None
    if b.strides is not None:
        found = [_said(str(s), known) for s in b.strides]
        if any(s is None for s in found) or found[-1] != "1":
            return None
        strides = tuple(s for s in found if s is not None)
    return Shape(b.name, tuple(extents), strides)


def _said(text: str, known: dict[str, str]) -> str | None:
    """An expression of the case in the kernel's names; None where it has none for a part of it."""
    try:
        node = expression(text)
    except SyntaxError:
        return None
    if not names_in(node) <= set(known) or any(isinstance(n, ast.Call | ast.IfExp) for n in ast.walk(node)):
        return None
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            n.id = known[n.id]
    return text_of(node)
