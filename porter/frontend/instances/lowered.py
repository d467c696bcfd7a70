"""A kernel at its instances as IR: the parse of the instantiations and the lowering of each, in one step."""

from __future__ import annotations

from collections.abc import Mapping

from porter import ir
from porter.frontend.instances.choice import try_specialise
from porter.frontend.lower.kernel import lower_kernel
from porter.frontend.parse.faults import faulty_specialisations, find_faults
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
        return _sound(
            unit, tuple(lower_kernel(unit, unit.definition(info), info, i, symbols=symbols) for i in instances)
        )
    requests = [(info, instance) for instance in instances]
    whole, cursors, failures = try_specialise(unit.source, unit.options, requests, stand_ins=unit.stand_ins)
    if failures:
        raise PorterError(*failures.values())
    return _sound(
        whole,
        tuple(lower_kernel(whole, cursors[info.qualified_name, i], info, i, symbols=symbols) for i in instances),
    )


def _sound(unit: ParsedUnit, kernels: tuple[ir.Kernel, ...]) -> tuple[ir.Kernel, ...]:
    """The kernels, unless one calls a specialisation that does not parse: then PorterError with clang's errors."""
    faulty = faulty_specialisations(unit.tu, find_faults(unit.tu))
    errors = dict.fromkeys(e for k in kernels for f in k.functions.values() for e in faulty.get(f.span, ()))
    if errors:
        raise PorterError(*errors)
    return kernels
