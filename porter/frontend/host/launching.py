"""Launches as the host makes them: <<<>>>, cudaLaunchKernel, cudaLaunchKernelEx and the cooperative one."""

from __future__ import annotations

from porter.frontend.host import terms
from porter.frontend.host.demand import list_items
from porter.frontend.host.expressions import evaluate
from porter.frontend.host.nodes import Node
from porter.frontend.host.run import Frame, HostLaunch, Run
from porter.frontend.host.terms import Term
from porter.frontend.host.values import FunctionValue, Place, PlacePointer, StructValue, Unknown, Value
from porter.frontend.instances.argument_text import split_arguments
from porter.frontend.launches.sites import is_configuration, name_of_callee
from porter.frontend.parse.clang_compat import CursorKind
from porter.frontend.parse.declarations import qualified_name, template_arguments

Dims = tuple[Term, Term, Term]
_EX = ("cudaLaunchKernelEx", "cudaLaunchKernelExC")


def launch(run: Run, frame: Frame, node: Node) -> Value:
    """Record a launch."""
    children = node.children
    if len(children) > 1 and is_configuration(children[1].cursor):
        parts = [evaluate(run, frame, c) for c in children[1].children[1:]]
        parts += [None] * (4 - len(parts))
        kernel = evaluate(run, frame, children[0])
        arguments = tuple(evaluate(run, frame, c) for c in children[2:])
        _record(run, frame, node, kernel, arguments, _dims(run, parts[0], node), _dims(run, parts[1], node),
                _bytes(parts[2]))  # fmt: skip
        return None
    name, given = name_of_callee(node.cursor), children[1:]
    if name in _EX and len(given) >= 2:
        _by_configuration(run, frame, node, name, given)
    elif name in ("cudaLaunchKernel", "cudaLaunchCooperativeKernel") and len(given) >= 4:
        values = [evaluate(run, frame, c) for c in given]
        arguments = _argument_array(run, values[3])
        _record(run, frame, node, values[0], arguments, _dims(run, values[1], node), _dims(run, values[2], node),
                _bytes(values[4] if len(values) > 4 else None), cooperative="Cooperative" in name)  # fmt: skip
    return terms.ZERO


def _dims(run: Run, value: Value, node: Node) -> Dims | None:
    if isinstance(value, Term):
        return (value, terms.ONE, terms.ONE)
    if isinstance(value, PlacePointer):
        value = value.place.value
    if isinstance(value, StructValue):
        found = []
        for n in "xyz":
            part = value.members[n].value if n in value.members else None
            if part is None and value.name:
                part = run.symbol(f"{value.name}_{n}", "free", node.span, reason="the launcher is given it")
                value.members[n] = Place(part, n)
            found.append(part if isinstance(part, Term) else terms.ONE)
        return (found[0], found[1], found[2])
    if isinstance(value, Unknown):
        return (run.symbol(value.name, "free", node.span, reason="the host code was not seen through"), terms.ONE,
                terms.ONE)  # fmt: skip
    return None


def _bytes(value: Value) -> Term | None:
    if value is None:
        return terms.ZERO
    return value if isinstance(value, Term) else None


def _record(
    run: Run, frame: Frame, node: Node, kernel: Value, arguments: tuple[Value, ...], grid: Dims | None,
    block: Dims | None, smem: Term | None, *, cooperative: bool = False, cluster: Dims | None = None, pdl: bool = False,
) -> None:  # fmt: skip
    if isinstance(kernel, PlacePointer):
        kernel = kernel.place.value
    if not isinstance(kernel, FunctionValue):
        return
    cursor = kernel.cursor
    args = template_arguments(cursor) if cursor is not None and cursor.kind == CursorKind.FUNCTION_DECL else ()
    if not args and kernel.text:
        args = _as_text(frame, kernel.text)
    run.launches.append(
        HostLaunch(
            kernel=cursor if cursor is not None and cursor.kind == CursorKind.FUNCTION_DECL else None,
            name=cursor.spelling,
            template_args=args,
            args=tuple(_seen_from(run, a) for a in arguments),
            grid=_all_seen(run, grid),
            block=_all_seen(run, block),
            smem=_seen_from(run, smem),
            run=run,
            conditions=tuple(run.conditions),
            constraints=tuple(run.constraints),
            host_function=qualified_name(frame.function.cursor) or "",
            span=node.span,
            cooperative=cooperative,
            cluster=_all_seen(run, cluster),
            pdl=pdl,
        )
    )


def _seen_from(run: Run, value: Value) -> Value:
    """A number without the choices that this way has made."""
    if not isinstance(value, Term):
        return value

    def chosen(t: Term) -> Term | None:
        if t.op != "if":
            return None
        known = run.known(t.parts[0])
        return None if known is None else terms.rebuild(t.parts[1 if known else 2], chosen)

    return terms.rebuild(value, chosen)


def _all_seen(run: Run, dims: Dims | None) -> Dims | None:
    if dims is None:
        return None
    x, y, z = (_seen_from(run, d) for d in dims)
    return (x, y, z)


def _as_text(frame: Frame, text: str) -> tuple[str, ...]:
    """Arguments as written in a host template, its own parameters replaced by what they are in this instance."""
    from porter.frontend.parse.declarations import template_of, template_params

    try:
        written = split_arguments(text)
    except ValueError:
        return ()
    template = template_of(frame.function.cursor)
    names = {}
    if template is not None:
        names = dict(zip((p.name for p in template_params(template)), frame.templates, strict=False))
    return tuple(names.get(w.strip(), w.strip()) for w in written)


def _argument_array(run: Run, value: Value) -> tuple[Value, ...]:
    """`void* args[] = {&a, &b}` as (a, b)."""
    items = list_items(run, value)
    if items is None and isinstance(value, PlacePointer):
        items = [p.value for p in value.of] if value.of else list_items(run, value.place.value)
    found = []
    for item in items or []:
        found.append(item.place.value if isinstance(item, PlacePointer) else item)
    return tuple(found)


def _by_configuration(run: Run, frame: Frame, node: Node, name: str, given: list[Node]) -> None:
    value = evaluate(run, frame, given[0])
    config = value.place.value if isinstance(value, PlacePointer) else value
    kernel = evaluate(run, frame, given[1])
    if name == "cudaLaunchKernelExC":
        arguments = _argument_array(run, evaluate(run, frame, given[2])) if len(given) > 2 else ()
    else:
        arguments = tuple(evaluate(run, frame, c) for c in given[2:])
    if not isinstance(config, StructValue):
        return
    members = {n: p.value for n, p in config.members.items()}
    cooperative, pdl, cluster = _attributes(run, node, members.get("attrs"), members.get("numAttrs"))
    _record(run, frame, node, kernel, arguments, _dims(run, members.get("gridDim"), node),
            _dims(run, members.get("blockDim"), node), _bytes(members.get("dynamicSmemBytes")),
            cooperative=cooperative, cluster=cluster, pdl=pdl)  # fmt: skip


def _attributes(run: Run, node: Node, value: Value, count: Value) -> tuple[bool, bool, Dims | None]:
    """(cooperative, programmatic dependent launch, cluster) of a configuration's attributes."""
    if isinstance(value, PlacePointer):
        attributes: list[Value] = [p.value for p in value.of[value.index :]] if value.of else [value.place.value]
        if not value.of and (items := list_items(run, value.place.value)) is not None:
            attributes = items
    else:
        attributes = list_items(run, value) or []
    if isinstance(count, Term) and count.value is not None:
        attributes = attributes[: int(count.value)]
    cooperative = pdl = False
    cluster: Dims | None = None
    for a in attributes:
        if not isinstance(a, StructValue) or "id" not in a.members or "val" not in a.members:
            continue
        which, setting = a.members["id"].value, a.members["val"].value
        if not isinstance(which, Term) or not isinstance(setting, StructValue):
            continue

        def set_to(name: str, setting: StructValue = setting) -> bool:
            found = setting.members[name].value if name in setting.members else None
            return isinstance(found, Term) and found.value not in (0, False)

        if which.value == 2:
            cooperative = set_to("cooperative")
        elif which.value == 6:
            pdl = set_to("programmaticStreamSerializationAllowed")
        elif which.value == 4 and "clusterDim" in setting.members:
            cluster = _dims(run, setting.members["clusterDim"].value, node)
    return cooperative, pdl, cluster
