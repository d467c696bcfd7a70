"""`--style tensor`: every lift, in order, over one port."""

from __future__ import annotations

import re

from porter.emit.plan import PortPlan
from porter.lift.explain import global_pointers
from porter.lift.kernel import lift_kernel
from porter.lift.lines import functions_of, module_of
from porter.lift.shapes import elements_of, shapes_of, without_shape
from porter.lift.shuffles import name_reductions, operators
from porter.lift.unused import drop_unused_locals, used_functions, used_imports
from porter.model import PortedModule


def lift(module: PortedModule, plan: PortPlan) -> PortedModule:
    """The port over tensors; the same module where nothing can be lifted, or where holes are open."""
    if module.holes or plan.options.standalone:
        return module
    before, functions, after = functions_of(module)
    joins = operators(functions)
    for fn in functions:
        fn.body = name_reductions(fn.body, joins)
    *device, kernel = functions
    values = _values(plan)
    lift_kernel(kernel, shapes_of(plan), without_shape(plan), values, elements_of(plan))
    for fn in device:
        lift_kernel(fn, {}, global_pointers(fn, functions), values)
    if module_of(module, before, functions, after).text == module.text:
        return module
    for fn in functions:
        drop_unused_locals(fn)
    functions = used_functions(functions)
    rest = module_of(module, [], functions, after).text
    used_imports(before, rest)
    return module_of(module, before, functions, after)


def _values(plan: PortPlan) -> dict[str, list[int]]:
    """The numbers that template parameters are, over the instances."""
    names = plan.generic.names
    columns = {n: [v[i] for v in plan.generic.values] for i, n in enumerate(names)}
    return {n: c for n, c in columns.items() if all(isinstance(v, int) for v in c)}


def pointers_left(text: str) -> list[str]:
    """What a lifted kernel still does with pointers, by line: raw loads, copies, arrays as pointers."""
    kernel = text[text.index("@cute.kernel") : text.index("\ndef _launch_") if "\ndef _launch_" in text else len(text)]
    rows = [row.strip() for row in kernel.splitlines()]
    return [r for r in rows if re.search(r"\blib\.(local|copy|view|ldg|natural|store|assume_aligned)\(", r)]
