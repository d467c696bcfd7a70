"""`--style tensor`: every lift, in order, over one port."""

from __future__ import annotations

import re
from dataclasses import replace

from porter.emit.plan import PortPlan
from porter.lift.kernel import lift_kernel
from porter.lift.lines import functions_of, module_of
from porter.lift.shapes import shapes_of
from porter.lift.shuffles import name_reductions
from porter.model import PortedModule


def lift(module: PortedModule, plan: PortPlan) -> PortedModule:
    """The port over tensors; the same module where nothing can be lifted, or where holes are open."""
    if module.holes or plan.options.standalone:
        return module
    before, functions, after = functions_of(module)
    for fn in functions:
        fn.body = name_reductions(fn.body)
    lift_kernel(functions[-1], shapes_of(plan))
    lifted = module_of(module, before, functions, after)
    return lifted if lifted.text != module.text else replace(module)


def pointers_left(text: str) -> list[str]:
    """What a lifted kernel still does with pointers, by line: raw loads, copies, arrays as pointers."""
    kernel = text[text.index("@cute.kernel") : text.index("\ndef _launch_") if "\ndef _launch_" in text else len(text)]
    rows = [row.strip() for row in kernel.splitlines()]
    return [r for r in rows if re.search(r"\blib\.(local|copy|view|ldg|natural|store|assume_aligned)\(", r)]
