"""Whether a case fits a kernel: its parameters, its template arguments, the names in its expressions."""

from __future__ import annotations

from porter import codes
from porter.case import expressions
from porter.case.model import Case, CaseInstance
from porter.case.toml_lines import suggestion
from porter.cxx.types import pointee, scalar_name
from porter.model import KernelInfo
from porter.wording import plural


def check_case(case: Case, info: KernelInfo) -> None:
    """Raise PorterError where a case does not fit the kernel: parameters, template arguments, names in expressions."""
    pointers = [p.name for p in info.params if pointee(p.type) is not None]
    others = [p.name for p in info.params if pointee(p.type) is None]
    given = {b.name for b in case.buffers}
    scalars = {n for n, _ in case.scalars}
    for b in case.buffers:
        if b.name not in pointers and not b.symbol:
            case.fail(codes.CASE_DOES_NOT_FIT, f"{info.name} has no pointer parameter `{b.name}`", "buffers", b.name,
                      "name", help=suggestion(b.name, pointers))  # fmt: skip
    for name in pointers:
        if name not in given:
            case.fail(codes.CASE_DOES_NOT_FIT, f"no [[buffers]] entry for the pointer parameter `{name}`", "buffers")
    for name in others:
        if name not in scalars:
            case.fail(codes.CASE_DOES_NOT_FIT, f"no value for the parameter `{name}`", "scalars")
    templates = [t.name for t in info.template_params]
    for i, inst in enumerate(case.instances):
        if len(inst.args) > len(templates):
            text = f"{plural(len(inst.args), 'template argument')} for {plural(len(templates), 'parameter')}"
            case.fail(codes.CASE_INSTANCE, text, "instances", str(i), "args")
    if templates and case.instances == (CaseInstance(()),) and not all(t.default for t in info.template_params):
        case.fail(codes.CASE_INSTANCE, f"{info.name} is a template: give [[instances]]",
                  help="at least two, so that the port is verified as a template")  # fmt: skip
    _check_names(case, templates, scalars)


def _check_names(case: Case, templates: list[str], scalars: set[str]) -> None:
    sizes = {n for n, _ in case.sizes}
    buffers = {b.name for b in case.buffers}
    known = {*sizes, *scalars, *templates}
    texts: list[tuple[str, tuple[str, ...]]] = []
    for b in case.buffers:
        texts += [(e, (*b.where, "shape")) for e in b.shape]
        texts += [(e, (*b.where, "strides")) for e in b.strides or ()]
        texts += [(e, (*b.where, key)) for key, e in (("low", b.low), ("high", b.high)) if e is not None]
        texts += [(e, (*b.where, "values")) for e in b.values or ()]
        texts += [(e, (*b.where, "members")) for _, given in b.members for e in given]
    texts += [(e, ("launch", "grid")) for e in case.launch.grid] + [(e, ("launch", "block")) for e in case.launch.block]
    texts += [(case.launch.smem, ("launch", "smem"))] + [(e, ("launch", "cluster")) for e in case.launch.cluster]
    texts += [(i.when, ("instances", str(n), "when")) for n, i in enumerate(case.instances) if i.when]
    texts += [(v, ("sizes", n)) for n, v in case.sizes if isinstance(v, str)]
    texts += [(e, ("scalars", n)) for n, v in case.scalars for e in v]
    for text, where in texts:
        allowed = known | buffers if expressions.uses_aligned(text) else known
        for name in sorted(expressions.names_in(text) - allowed):
            if scalar_name(name) is None:
                case.fail(
                    codes.CASE_EXPRESSION,
                    f"unknown name `{name}` in `{text}`",
                    *where,
                    help=suggestion(name, sorted(known)),
                )
