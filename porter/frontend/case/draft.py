"""A case drafted for a kernel that has none: what the source says is filled in, what a person must decide is a TODO.

Nothing is guessed quietly: each guess has a comment, and a TODO is a name the case reader refuses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from porter import ir
from porter.case import expressions
from porter.case.expressions import ExprError
from porter.case.reader import Case, check_case, parse_case
from porter.cxx.expressions import to_case_expression
from porter.cxx.types import is_const_pointee, normalise, pointee, scalar_name
from porter.frontend.case.draft_symbols import draft_symbol
from porter.frontend.instances.argument_text import split_arguments
from porter.model import Instance, KernelInfo, KernelParam, Launch, PorterError
from porter.patterns.roles import pointer_roles
from porter.source import Source

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

TODO = "TODO"
# Values to verify a size at, by what its name says. Tails that divide nothing are among them.
_SIZES: tuple[tuple[str, str], ...] = (
    (r"experts?$", "[8, 60]"),
    (r"top_?k$|^k$", "[1, 2, 8]"),
    (r"(token|row|batch|seq|slot)", "[0, 1, 7, 33]"),
    (r"(head_dim|head_size|rot)", "[64, 128]"),
    (r"heads?$", "[4]"),
    (r"group|block", "[128]"),
    (r"(hidden|dim|col|width|size|vocab|^d$|^n$|^[ck]$)", "[64, 100, 768]"),
    (r"", "[1, 32, 100]"),
)
_FLOATS: tuple[tuple[str, str], ...] = ((r"eps", "1e-6"), (r"theta|base", "10000.0"), (r"", "1.0"))


@dataclass
class _Draft:
    """The parts of a drafted case; `todo` counts what a person has to decide."""

    info: KernelInfo
    launch: Launch | None
    instances: tuple[Instance, ...]
    comments: dict[str, str]  # parameter -> the comment beside it
    sizes: dict[str, str] = field(default_factory=dict)  # name -> TOML value
    scalars: dict[str, str] = field(default_factory=dict)
    strides: dict[str, str] = field(default_factory=dict)  # parameter -> elements of a row
    roles: dict[str, str] = field(default_factory=dict)  # what the kernel's body does with each pointer
    symbols: tuple[ir.Symbol, ...] = ()  # variables whose values a case gives
    todo: int = 0

    def need(self, reason: str) -> str:
        self.todo += 1
        return f"# TODO {reason}"


def draft_case(unit: ParsedUnit, info: KernelInfo) -> str:
    """TOML text of a case for a parsed kernel, from its parameters, its launch in the file and its instances."""
    return _text(_make(unit, info))


def draft_case_text(
    info: KernelInfo, launches: tuple[Launch, ...], instances: tuple[Instance, ...], source: Source | None = None
) -> str:
    """The same from its parts; `source` is read for the comments beside the parameters."""
    return _text(_from_parts(info, launches, instances, source))


def case_from_launch(unit: ParsedUnit, info: KernelInfo) -> Case | None:
    """A case without a file: where launcher and comments give every shape, scalar and launch expression; else None.

    Shapes and roles taken from comments and `const` are checked by the run itself: with a buffer too small or an output
    that is read, the original's own accesses are reported, and nothing passes.
    """
    draft = _make(unit, info)
    text = _text(draft)
    if draft.todo:
        return None
    try:
        case = parse_case(text, Path(str(unit.source.path)).with_suffix(".case.toml"))
        check_case(case, info)
    except PorterError:
        return None
    span = draft.launch.span if draft.launch else info.span
    return replace(case, derived=f"{Path(span.file or str(unit.source.path)).name}:{span.line}")


def _make(unit: ParsedUnit, info: KernelInfo) -> _Draft:
    instances: tuple[Instance, ...] = ()
    if info.is_template:
        from porter.frontend.instances.choice import default_instances, instances_from_launches

        instances = tuple(instances_from_launches(unit, info)) or tuple(default_instances(info))
    draft = _from_parts(info, unit.launches, instances, unit.source)
    kernel = _lowered(unit, info, instances[0] if instances else Instance())
    if kernel is not None:
        draft.roles, draft.symbols = pointer_roles(kernel), kernel.symbols
    return draft


def _lowered(unit: ParsedUnit, info: KernelInfo, instance: Instance) -> ir.Kernel | None:
    """The kernel's body, as far as it can be lowered at this instance."""
    from porter.frontend.instances.choice import try_specialise
    from porter.frontend.lower.kernel import lower_kernel

    whole, cursors, failures = try_specialise(unit.source, unit.options, [(info, instance)], stand_ins=unit.stand_ins)
    return None if failures else lower_kernel(whole, cursors[info.qualified_name, instance], info, instance)


def _from_parts(
    info: KernelInfo, launches: tuple[Launch, ...], instances: tuple[Instance, ...], source: Source | None
) -> _Draft:
    mine = [x for x in launches if x.kernel.split("::")[-1] == info.name and len(x.args) == len(info.params)]
    launch = min(mine, key=lambda x: _opaque(x), default=None)
    return _Draft(info, launch, instances, _comments(info, source) if source else {})


def _opaque(launch: Launch) -> int:
    """How many launch expressions have no meaning in a case."""
    return sum(_translate(t) is None for t in (*_dims(launch.grid), *_dims(launch.block), launch.smem or "0"))


def _translate(text: str) -> str | None:
    found = to_case_expression(text)
    if found is None:
        return None
    try:
        expressions.parse(found)
    except ExprError:
        return None
    return found


def _dims(text: str) -> list[str]:
    m = re.fullmatch(r"\s*dim3\s*[({](.*)[)}]\s*", text, re.S)
    return list(split_arguments(m.group(1))) if m else [text]


def _comments(info: KernelInfo, source: Source) -> dict[str, str]:
    """The comment on the line of each parameter of the kernel's declaration."""
    start = max(info.span.line - 1, 0)
    found: dict[str, str] = {}
    for line in source.lines[start : start + 3 * len(info.params) + 10]:
        code, mark, comment = line.partition("//")
        for parameter in info.params:
            if mark and parameter.name not in found and re.search(rf"\b{re.escape(parameter.name)}\s*[,)]?", code):
                found[parameter.name] = comment.strip()
        if "{" in code:
            break
    return found


def _text(draft: _Draft) -> str:
    info = draft.info
    buffers = [_buffer(draft, p) for p in info.params if pointee(p.type) is not None]
    for number, parameter in enumerate(info.params):
        if pointee(parameter.type) is None:
            draft.scalars[parameter.name] = _scalar(draft, number, parameter)
    launch = _launch(draft)
    for name, value in draft.scalars.items():  # what the launcher computes is no free size
        if name in draft.sizes and value.startswith('"') and value.strip('"') != name:
            draft.sizes[name] = value
    lines = [
        f"# Drafted by porter from {Path(info.span.file).name or 'the kernel'}. Complete every TODO.",
        "# The format is described at the top of porter/case/reader.py.",
        "schema = 1",
        f'kernel = "{info.name}"',
        f'source = "{Path(info.span.file).name}"' if info.span.file else "",
        "",
        *_instances(draft),
        "[sizes]",
        *(f"{name} = {value}" for name, value in draft.sizes.items() if value.startswith("[")),
        *(f"{name} = {value}" for name, value in draft.sizes.items() if not value.startswith("[")),
    ]
    if not draft.sizes:
        lines.append(f"{TODO} = [1]  {draft.need('name the sizes that shapes are made of')}")
    for rows in buffers:
        lines += ["", *rows]
    for symbol in draft.symbols:
        lines += ["", *draft_symbol(symbol, draft.roles.get(symbol.name, ""), draft.need)]
    lines += ["", "[scalars]", *(f"{name} = {value}" for name, value in draft.scalars.items()), "", *launch]
    lines += [
        "",
        "# [reference]",
        "# function = a float64 reference: porter.verify.numerics.references, file.py:function",
    ]
    return "\n".join(lines) + "\n"


def _instances(draft: _Draft) -> list[str]:
    if not draft.info.is_template:
        return []
    lines: list[str] = []
    for instance in draft.instances:
        args = ", ".join(a if re.fullmatch(r"-?\d+", a) or a in ("true", "false") else f'"{a}"' for a in instance.args)
        lines += ["[[instances]]", f"args = [{args}]", ""]
    if len(draft.instances) < 2:
        names = ", ".join(p.name for p in draft.info.template_params)
        lines += [draft.need(f"give at least two [[instances]] with args for <{names}>"), ""]
    return lines


def _strings(texts: list[str]) -> str:
    return "[" + ", ".join(f'"{t}"' for t in texts) + "]"


def _size(draft: _Draft, name: str) -> None:
    if name in draft.sizes:
        return
    stem = _stem(name)
    same = next((s for s, v in draft.sizes.items() if _stem(s) == stem and v.startswith("[")), None)
    if same is not None:
        draft.sizes[name] = f'"{same}"  {draft.need("check: taken to be the same by its name")}'
    else:
        draft.sizes[name] = next(values for pattern, values in _SIZES if re.search(pattern, name.lower()))


def _stem(name: str) -> str:
    """`hidden` of hidden_size, `tokens` of num_tokens."""
    return re.sub(r"^(num|n|nr|total)_|_(size|dim|len|length|count|num)$", "", name)


def _sizes_of(draft: _Draft, text: str) -> None:
    """Every free name of an expression that is no template parameter becomes a size."""
    templates = {p.name for p in draft.info.template_params}
    for name in sorted(expressions.names_in(text) - templates):
        if scalar_name(name) is None:
            _size(draft, name)


def _buffer(draft: _Draft, parameter: KernelParam) -> list[str]:
    target = normalise(pointee(parameter.type) or "")
    templates = {p.name for p in draft.info.template_params if p.kind == "type"}
    dtype = target if target in templates else scalar_name(target)
    lines = ["[[buffers]]", f'name = "{parameter.name}"']
    if dtype is None:
        lines.append(f'dtype = "{TODO}"  {draft.need(f"the element type of {parameter.type}")}')
    else:
        lines.append(f'dtype = "{dtype}"')
    shape = _commented_shape(draft, parameter.name)
    if shape is None:
        comment = draft.comments.get(parameter.name, "")
        count = _only_count(draft)
        if count is not None and not comment:
            draft.need("its dimensions")
            _sizes_of(draft, count)
            lines.append(f'shape = ["{count}"]  # TODO check: a guess, the only whole number among the parameters')
        else:
            lines.append(f'shape = ["{TODO}"]  {draft.need("its dimensions" + (f" ({comment})" if comment else ""))}')
    else:
        lines.append(f"shape = {_strings(shape)}  # from the comment beside it")
        stride = _stride_parameter(draft, parameter.name)
        if stride and len(shape) > 1:
            inner = [" * ".join(f"({s})" if " " in s else s for s in shape[i + 1 :]) for i in range(len(shape) - 1)]
            lines.append(f"strides = {_strings([stride, *inner[1:]])[:-1]}, 1]")
            draft.strides[stride] = inner[0]
    seen = draft.roles.get(parameter.name)
    role = "in" if is_const_pointee(parameter.type) else seen or "out"
    unsure = seen is None and role != "in"
    lines.append(f'role = "{role}"' + ("  # not const; `inout` if the kernel reads it" if unsure else ""))
    concrete = scalar_name(target)
    if role == "in" and concrete is not None and concrete[0] in "iu" and concrete not in ("i8", "u8"):
        lines.append(f'low = 0\nhigh = "{TODO}"  {draft.need("one past the largest value it may hold")}')
    return lines


def _only_count(draft: _Draft) -> str | None:
    """The one integer parameter of the kernel, when there is just one."""
    whole = ("i32", "u32", "i64", "u64")
    found = [p.name for p in draft.info.params if (scalar_name(normalise(p.type)) or "") in whole]
    return found[0] if len(found) == 1 else None


def _stride_parameter(draft: _Draft, buffer: str) -> str | None:
    """The parameter that says how far the rows of a buffer are apart, by its name."""
    names = {p.name for p in draft.info.params}
    return next((s for s in (f"{buffer}_stride", f"{buffer}_row_stride", f"stride_{buffer}") if s in names), None)


def _commented_shape(draft: _Draft, name: str) -> list[str] | None:
    """`[tokens, hidden]` in the comment beside a parameter, when each dimension is an expression."""
    m = re.match(r"\[([^\]]*)\]", draft.comments.get(name, ""))
    if not m:
        return None
    shape = [_translate(part) for part in split_arguments(m.group(1))]
    if not shape or any(s is None for s in shape):
        return None
    known = [s for s in shape if s is not None]
    for s in known:
        _sizes_of(draft, s)
    return known


def _scalar(draft: _Draft, number: int, parameter: KernelParam) -> str:
    kind = scalar_name(normalise(parameter.type))
    if kind == "bool":
        return "[false, true]"
    if kind in ("f16", "bf16", "f32", "f64"):
        value = next(v for pattern, v in _FLOATS if re.search(pattern, parameter.name.lower()))
        return f"{value}  # a guess by its name"
    if parameter.name in draft.strides:
        inner = draft.strides[parameter.name]
        return f'["{inner}", "{inner} + 8"]  {draft.need("check: the distance of rows, taken from its name")}'
    if kind is None:
        return f'"{TODO}"  {draft.need(f"a {parameter.type} cannot be passed by a case")}'
    if draft.launch is not None:
        text = _translate(draft.launch.args[number])
        if text is not None:
            _sizes_of(draft, text)
            return f'"{text}"'
        lost = draft.launch.args[number]
        return f'"{TODO}"  {draft.need(f"the launcher passes {lost}")}'
    _size(draft, parameter.name)
    return f'"{parameter.name}"'


def _launch(draft: _Draft) -> list[str]:
    launch = draft.launch
    lines = ["[launch]"]
    if launch is None:
        reason = "no launch of this kernel was found in the file"
        return [*lines, f'grid = ["{TODO}"]  {draft.need(reason)}', f'block = ["{TODO}"]  {draft.need(reason)}']
    where = f"from {launch.host_function}, line {launch.span.line}" if launch.host_function else "from the launch"
    lines[0] += f"  # {where}"
    for key, texts in (("grid", _dims(launch.grid)), ("block", _dims(launch.block))):
        found = [_translate(t) for t in texts]
        if all(f is not None for f in found):
            dims = [f for f in found if f is not None]
            for f in dims:
                _sizes_of(draft, f)
            lines.append(f"{key} = {_strings(dims)}")
        else:
            lines.append(f'{key} = ["{TODO}"]  {draft.need("of " + " ".join(", ".join(texts).split()))}')
    smem = _translate(launch.smem or "0")
    if smem is None:
        lines.append(f'smem = "{TODO}"  {draft.need("of " + launch.smem)}')
    elif smem != "0":
        _sizes_of(draft, smem)
        lines.append(f'smem = "{smem}"')
    if launch.cooperative:
        lines.append("cooperative = true")
    if launch.cluster:
        lines.append(f"cluster = [{', '.join(launch.cluster)}]")
    return lines
