"""Template arguments given as C++ text, as values: type parameters to scalar names, value parameters to numbers."""

from __future__ import annotations

import re
from pathlib import Path

from porter import codes
from porter.case import expressions
from porter.case.expressions import ExprError
from porter.cxx.expressions import to_case_expression
from porter.cxx.types import normalise, scalar_name
from porter.model import Diagnostic, Instance, KernelInfo, PorterError, TemplateParam
from porter.wording import plural

TemplateValue = str | int | bool
_ENUMERATOR = "an enumerator is given by its value: Mode(1)"


def instance_values(info: KernelInfo, instance: Instance) -> dict[str, TemplateValue]:
    """Template parameter name to value, in order: a scalar type as its ir name ("bf16"), a number as int or bool.

    A type that is no scalar keeps its C++ spelling. Missing arguments come from the parameters' defaults, which may use
    earlier parameters. Raises PorterError PRT906 for a wrong number of arguments or a value that is not a number.
    """
    params = info.template_params
    if len(instance.args) > len(params):
        raise _error(info, f"{plural(len(instance.args), 'template argument')} for {plural(len(params), 'parameter')}")
    values: dict[str, TemplateValue] = {}
    for i, param in enumerate(params):
        text = instance.args[i] if i < len(instance.args) else param.default
        if not text:
            raise _error(info, f"no argument for the template parameter `{param.name}`")
        values[param.name] = _value(info, param, text, values)
    return values


def _value(info: KernelInfo, param: TemplateParam, text: str, earlier: dict[str, TemplateValue]) -> TemplateValue:
    if param.kind in ("type", "template"):
        if text in earlier:
            return earlier[text]
        return scalar_name(text) or normalise(text)
    if "(*)" in param.type or "(&)" in param.type:  # a function: the instances' bodies differ where it is called
        return normalise(text)
    inner = re.fullmatch(r"(?:static_cast\s*<[\w:\s]+>|[\w:]+)\s*[({](.*)[)}]", text.strip())
    inner = inner or re.fullmatch(r"\([\w:\s]+\)\s*(-?\w+)", text.strip())  # (Mode)1
    translated = to_case_expression(text) or (to_case_expression(inner.group(1)) if inner else None)
    if translated is None:
        raise _error(info, f"`{text}` for `{param.name}` is not a number", _ENUMERATOR)
    try:
        value = expressions.evaluate(translated, earlier)
    except ExprError as error:
        raise _error(info, f"`{text}` for `{param.name}`: {error}", _ENUMERATOR) from None
    if param.type == "bool":
        return bool(value)
    if isinstance(value, float | str):
        raise _error(info, f"`{text}` for `{param.name}` is not a whole number")
    return value


def _error(info: KernelInfo, message: str, help: str = "") -> PorterError:
    where = f"{Path(info.span.file).name}: " if info.span.file else ""
    return PorterError(Diagnostic(codes.CASE_INSTANCE, f"{where}{info.name}: {message}", info.span, help=help))
