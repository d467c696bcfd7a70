"""Launch sites of host code: <<<>>>, cudaLaunchKernel(Ex) and cudaLaunchCooperativeKernel as porter.model.Launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from porter.frontend.instances.argument_text import split_arguments
from porter.frontend.launches.host_text import HostText, initialiser, strip
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor, CursorKind
from porter.frontend.parse.declarations import (
    has_body,
    is_device_code,
    is_kernel,
    project_decls,
    qualified_name,
    template_arguments,
)
from porter.model import Launch

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

_FUNCTIONS = (CursorKind.FUNCTION_DECL, CursorKind.FUNCTION_TEMPLATE, CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR)
_CLASSES = (
    CursorKind.STRUCT_DECL,
    CursorKind.CLASS_DECL,
    CursorKind.CLASS_TEMPLATE,
    CursorKind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
)
_CONFIG_FIELDS = ("gridDim", "blockDim", "dynamicSmemBytes", "stream", "attrs", "numAttrs")
_LAUNCH_CALLS = ("cudaLaunchKernelEx", "cudaLaunchKernelExC", "cudaLaunchKernel", "cudaLaunchCooperativeKernel")


@dataclass(frozen=True)
class _Callee:
    """What is launched: a kernel's name, its template arguments as text, and the specialisation when it is concrete."""

    name: str
    template_args: tuple[str, ...] = ()
    function: Cursor | None = None


@dataclass
class _Config:
    grid: str = ""
    block: str = ""
    smem: str = "0"
    stream: str = ""
    cluster: tuple[str, ...] = ()
    pdl: bool = False
    cooperative: bool = False
    extra: list[str] = field(default_factory=list)


def host_functions(unit: ParsedUnit, *, own_file: bool = True) -> Iterator[Cursor]:
    """Host functions with a body, templates included; of the file itself, or of all project files."""
    path = str(unit.source.path)

    def visit(c: Cursor) -> Iterator[Cursor]:
        if c.kind in _CLASSES:
            for child in c.get_children():
                yield from visit(child)
        elif c.kind in _FUNCTIONS and has_body(c) and not is_device_code(c):
            yield c

    for c in project_decls(unit.tu):
        if not own_file or cc.extent(c)[0].file == path:
            yield from visit(c)


def find_launches(unit: ParsedUnit) -> tuple[Launch, ...]:
    """The launch sites of the file's host functions, in order; one entry per kernel, template arguments and place.

    `grid` and `block` are `a` or `dim3(a, b, c)`. Sites inside host templates keep the template's parameter names.
    """
    found: dict[tuple[str, tuple[str, ...], str], Launch] = {}
    for function in host_functions(unit):
        for launch, _ in launches_of(unit, function):
            found.setdefault((launch.kernel, launch.template_args, str(launch.span)), launch)
    return tuple(found.values())


def launched_kernels(unit: ParsedUnit, function: Cursor) -> Iterator[tuple[Cursor, tuple[str, ...]]]:
    """The kernels that one host function (or instantiation of one) launches, where concrete, with their arguments."""
    sites = _sites(function)
    text = HostText(unit, function) if sites else None
    for site in sites:
        children = list(site.get_children())
        chevron = len(children) > 1 and is_configuration(children[1])
        place = 0 if chevron else 2 if name_of_callee(site) in ("cudaLaunchKernelEx", "cudaLaunchKernelExC") else 1
        if text is not None and place < len(children):
            callee = _callee(unit, text, children[place])
            if callee.function is not None:
                yield callee.function, callee.template_args


def _sites(function: Cursor) -> list[Cursor]:
    return [c for c in cc.walk(function) if c.kind == CursorKind.CALL_EXPR and is_launch(c)]


def launches_of(unit: ParsedUnit, function: Cursor) -> Iterator[tuple[Launch, Cursor | None]]:
    """The launches of one host function (or instantiation of one) with the specialisation launched, where concrete."""
    sites = _sites(function)
    if not sites:
        return
    text = HostText(unit, function)
    for site in sites:
        found = _triple_chevron(unit, text, site) or _runtime_call(unit, text, site)
        if found is None:
            continue
        callee, config, arguments = found
        yield (
            Launch(
                kernel=callee.name,
                args=arguments,
                grid=config.grid,
                block=config.block,
                smem=config.smem,
                stream=config.stream,
                cooperative=config.cooperative,
                cluster=config.cluster,
                pdl=config.pdl,
                template_args=callee.template_args,
                host_function=qualified_name(function),
                span=cc.span(site),
            ),
            callee.function,
        )


def is_launch(c: Cursor) -> bool:
    if name_of_callee(c) in _LAUNCH_CALLS:
        return True
    children = list(c.get_children())
    return len(children) > 1 and is_configuration(children[1])


def is_configuration(c: Cursor) -> bool:
    return c.kind == CursorKind.CALL_EXPR and c.spelling in ("cudaConfigureCall", "__cudaPushCallConfiguration")


def name_of_callee(c: Cursor) -> str:
    if c.spelling:
        return c.spelling
    first = next(iter(c.get_children()), None)
    if first is None:
        return ""
    for x in cc.walk(first):
        if x.kind in (CursorKind.OVERLOADED_DECL_REF, CursorKind.DECL_REF_EXPR) and x.spelling:
            return x.spelling
    return ""


def _triple_chevron(unit: ParsedUnit, text: HostText, site: Cursor) -> tuple[_Callee, _Config, tuple[str, ...]] | None:
    children = list(site.get_children())
    if len(children) < 2 or not is_configuration(children[1]):
        return None
    parts = [text.render(c) for c in list(children[1].get_children())[1:]] + ["", "", "", ""]
    config = _Config(parts[0], parts[1], parts[2] or "0", _stream(parts[3]))
    return _callee(unit, text, children[0]), config, tuple(text.render(c) for c in children[2:])


def _stream(text: str) -> str:
    return "" if text in ("0", "nullptr") else text


def _runtime_call(unit: ParsedUnit, text: HostText, site: Cursor) -> tuple[_Callee, _Config, tuple[str, ...]] | None:
    name = name_of_callee(site)
    arguments = list(site.get_children())[1:]
    if name == "cudaLaunchKernelEx" and len(arguments) >= 2:
        config = _read_config(text, arguments[0], site)
        return _callee(unit, text, arguments[1]), config, tuple(text.render(c) for c in arguments[2:])
    if name == "cudaLaunchKernelExC" and len(arguments) == 3:
        config = _read_config(text, arguments[0], site)
        return _callee(unit, text, arguments[1]), config, _argument_array(text, arguments[2])
    if name in ("cudaLaunchKernel", "cudaLaunchCooperativeKernel") and len(arguments) >= 4:
        parts = [text.render(c) for c in arguments]
        smem = parts[4] if len(parts) > 4 and parts[4] else "0"
        stream = _stream(parts[5]) if len(parts) > 5 else ""
        config = _Config(parts[1], parts[2], smem, stream, cooperative="Cooperative" in name)
        return _callee(unit, text, arguments[0]), config, _argument_array(text, arguments[3])
    return None


def _variable(c: Cursor) -> Cursor | None:
    """The variable that `&x`, `x` or `x` decayed names."""
    c = strip(c)
    if c.kind == CursorKind.UNARY_OPERATOR and cc.unary_op(c) == "&":
        c = strip(next(iter(c.get_children()), c))
    if c.kind == CursorKind.DECL_REF_EXPR and c.referenced is not None:
        return c.referenced if c.referenced.kind == CursorKind.VAR_DECL else None
    return None


def _argument_array(text: HostText, c: Cursor) -> tuple[str, ...]:
    """`void* args[] = {&a, &b}` as (a, b)."""
    variable = _variable(c)
    start = strip(initialiser(variable) or c) if variable is not None else strip(c)
    if start.kind != CursorKind.INIT_LIST_EXPR:
        return ()
    parts = []
    for item in start.get_children():
        item = strip(item)
        while item.kind in (CursorKind.CSTYLE_CAST_EXPR, CursorKind.CXX_REINTERPRET_CAST_EXPR):
            item = strip(list(item.get_children())[-1])
        if item.kind == CursorKind.UNARY_OPERATOR and cc.unary_op(item) == "&":
            item = next(iter(item.get_children()), item)
        parts.append(text.render(item))
    return tuple(parts)


def _read_config(text: HostText, c: Cursor, site: Cursor) -> _Config:
    """A cudaLaunchConfig_t variable: its initialiser, then the member assignments before the launch."""
    config = _Config()
    variable = _variable(c)
    if variable is None:
        return config
    values: dict[str, Cursor] = {}
    start = initialiser(variable)
    if start is not None and strip(start).kind == CursorKind.INIT_LIST_EXPR:
        values |= _init_list_fields(strip(start))
    values |= text.assignments.latest(variable, site)
    config.grid = text.render(values["gridDim"]) if "gridDim" in values else ""
    config.block = text.render(values["blockDim"]) if "blockDim" in values else ""
    config.smem = text.render(values["dynamicSmemBytes"]) if "dynamicSmemBytes" in values else "0"
    config.stream = _stream(text.render(values["stream"])) if "stream" in values else ""
    attributes = _variable(values["attrs"]) if "attrs" in values else None
    if attributes is not None:
        _read_attributes(text, attributes, site, config)
    return config


def _init_list_fields(start: Cursor) -> dict[str, Cursor]:
    fields: dict[str, Cursor] = {}
    for i, item in enumerate(start.get_children()):
        parts = list(item.get_children())
        if item.kind == CursorKind.UNEXPOSED_EXPR and parts and parts[0].kind == CursorKind.MEMBER_REF:
            fields[parts[0].spelling] = parts[-1]  # .gridDim = ...
        elif i < len(_CONFIG_FIELDS):
            fields[_CONFIG_FIELDS[i]] = item
    return fields


def _read_attributes(text: HostText, attributes: Cursor, site: Cursor, config: _Config) -> None:
    limit = text.assignments.order.get(site.hash, 1 << 60)
    cluster: dict[str, str] = {}
    for order, path, value in text.assignments.members.get(attributes.hash, []):
        if order >= limit:
            continue
        rendered = text.render(value)
        if path.endswith("programmaticStreamSerializationAllowed"):
            config.pdl = rendered not in ("0", "false")
        elif path.endswith("cooperative"):
            config.cooperative = rendered not in ("0", "false")
        elif ".clusterDim." in f".{path}":
            cluster[path[-1]] = rendered
    if cluster:
        config.cluster = tuple(cluster.get(n, "1") for n in "xyz")


def _callee(unit: ParsedUnit, text: HostText, c: Cursor) -> _Callee:
    """The kernel that an expression names, through casts and local function pointers."""
    for x in cc.walk(c):
        if x.kind == CursorKind.DECL_REF_EXPR:
            target = x.referenced
            if target is not None and target.kind == CursorKind.FUNCTION_DECL and is_kernel(target):
                return _Callee(target.spelling, template_arguments(target, x), target)
            if target is not None and target.kind == CursorKind.VAR_DECL:
                start = initialiser(target)
                value = text.value_of(target) or start
                if value is not None and value.hash != c.hash:
                    found = _callee(unit, text, value)
                    if found.name:
                        return found
            dependent = _dependent_callee(unit, x)
            if dependent is not None:
                return dependent
        elif x.kind == CursorKind.OVERLOADED_DECL_REF:
            return _Callee(x.spelling)
    return _Callee(strip(c).spelling)


def _dependent_callee(unit: ParsedUnit, x: Cursor) -> _Callee | None:
    """`k<T, VEC>` inside a host template: the name and the arguments as written."""
    name = ""
    arguments: list[str] = []
    for child in x.get_children():
        if child.kind == CursorKind.OVERLOADED_DECL_REF and not name:
            name = child.spelling
        elif name and child.kind != CursorKind.NAMESPACE_REF:
            inner = _dependent_callee(unit, child) if not child.spelling else None
            given = f"<{', '.join(inner.template_args)}>" if inner and inner.template_args else ""
            arguments.append(inner.name + given if inner else child.spelling or unit.text(child))
    if not name:
        return None
    written = unit.text(x)
    if cc.is_verbatim(x) and "<" in written:
        inside = written[written.index("<") + 1 : written.rindex(">")] if ">" in written else ""
        try:
            return _Callee(name, split_arguments(" ".join(inside.split())))
        except ValueError:
            pass
    return _Callee(name, tuple(arguments))
