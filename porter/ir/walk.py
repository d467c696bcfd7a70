"""Walking and rewriting the IR: what every node has, and functions over whole trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from porter.source import NO_SPAN, Span


@dataclass(frozen=True, kw_only=True)
class Node:
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


_FIELDS: dict[type, tuple[str, ...]] = {}


def field_names(kind: type) -> tuple[str, ...]:
    """The names of the fields of a dataclass, in order; () for other types."""
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()
    return names


def children(node: Any) -> list[Any]:
    """Direct IR children of a node, of a tuple of nodes, or nothing."""
    found: list[Any] = []
    if isinstance(node, tuple):
        _nodes_of(node, found)
        return found
    for name in field_names(type(node)):
        v = getattr(node, name)
        if isinstance(v, Node):
            found.append(v)
        elif isinstance(v, tuple):
            _nodes_of(v, found)
    return found


def _nodes_of(values: tuple[Any, ...], found: list[Any]) -> None:
    for v in values:
        if isinstance(v, Node):
            found.append(v)
        elif isinstance(v, tuple):
            _nodes_of(v, found)


def walk(node: Any) -> Iterator[Any]:
    """Every IR node below and including `node`, preorder."""
    waiting = [node] if isinstance(node, Node) else children(node)[::-1]
    while waiting:
        n = waiting.pop()
        yield n
        waiting += children(n)[::-1]


def map_children(node: Any, fn: Any) -> Any:
    """A copy of `node` with fn applied to each direct child node (tuples of nodes are mapped element-wise)."""
    if isinstance(node, tuple):
        return _mapped(node, fn)
    changes = {}
    for name in field_names(type(node)):
        v = getattr(node, name)
        if isinstance(v, Node):
            new = fn(v)
        elif isinstance(v, tuple) and name != "targs":
            new = _mapped(v, fn)
        else:
            continue
        if new is not v:
            changes[name] = new
    return replace(node, **changes) if changes else node


def _mapped(values: tuple[Any, ...], fn: Any) -> tuple[Any, ...]:
    """The tuple with fn applied to its nodes; the tuple itself when that changes none."""
    out = [fn(v) if isinstance(v, Node) else _mapped(v, fn) if isinstance(v, tuple) else v for v in values]
    return tuple(out) if any(new is not v for new, v in zip(out, values, strict=True)) else values


def rewrite(node: Any, fn: Any) -> Any:
    """Bottom-up rewrite: fn(node) -> node for every node (statement tuples are not spliced; see passes for that)."""

    def one(n: Any) -> Any:
        return fn(map_children(n, one))

    return _mapped(node, one) if isinstance(node, tuple) else one(node)
