"""A kernel at its instances as IR: the parse of the instantiations and the lowering of each, in one step."""

from __future__ import annotations

from collections.abc import Mapping

from porter import ir
from porter.frontend.instances.choice import try_specialise
from porter.frontend.lower.kernel import lower_kernel
from porter.frontend.parse.source import ParsedUnit
from porter.model import Instance, KernelInfo, PorterError


def lowered(
    unit: ParsedUnit, info: KernelInfo, instances: tuple[Instance, ...], symbols: Mapping[str, str]
) -> tuple[ir.Kernel, ...]:
    """The kernel's typed IR at each instance, with the symbols that each reaches (`ir.Kernel.symbols`).

    Variables in `symbols` are parameters. Raises PorterError: parse errors inside it, arguments that do not fit.
    """
    if info.errors:
        raise PorterError(*info.errors)
    if not info.is_template and not any(i.args for i in instances) and info.span in unit.cursors:
        # nothing to instantiate: parsing again would make the time of a file quadratic in its kernels
        return tuple(lower_kernel(unit, unit.definition(info), info, i, symbols=symbols) for i in instances)
    requests = [(info, instance) for instance in instances]
    whole, cursors, failures = try_specialise(unit.source, unit.options, requests, stand_ins=unit.stand_ins)
    if failures:
        raise PorterError(*failures.values())
    return tuple(lower_kernel(whole, cursors[info.qualified_name, i], info, i, symbols=symbols) for i in instances)
