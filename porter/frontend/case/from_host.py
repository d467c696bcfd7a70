"""A derived case from the launches that evaluating the host code found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from porter.case.instances import instance_values
from porter.cxx.types import pointee, scalar_name
from porter.frontend.case.generalise import Values, generalised
from porter.frontend.host import terms
from porter.frontend.host.demand import sizes
from porter.frontend.host.explore import Entry
from porter.frontend.host.run import HostLaunch, Stated, Symbol
from porter.frontend.host.terms import Term
from porter.frontend.host.values import Null, OptionalValue, PlacePointer, Pointer, StructValue, TensorValue, Value
from porter.frontend.instances.reached import choose_few
from porter.frontend.parse import clang_compat as cc
from porter.frontend.parse.clang_compat import Cursor
from porter.frontend.parse.declarations import template_of
from porter.ir import SCALAR_BYTES
from porter.model import Instance, KernelInfo, PorterError
from porter.source import NO_SPAN, Span

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

_LONGEST = 400  # characters of an expression that chooses between ways


@dataclass
class Evaluated:
    """What the chosen entry function says of one kernel. Terms are over symbols; None is what it does not say."""

    entry: Entry
    info: KernelInfo
    instances: tuple[Instance, ...]
    values: tuple[Values, ...]
    grid: tuple[Term | None, ...] = ()
    block: tuple[Term | None, ...] = ()
    smem: Term | None = None
    cluster: tuple[Term, ...] = ()
    cooperative: bool = False
    pdl: bool = False
    scalars: dict[str, Term | None] = field(default_factory=dict)
    members: dict[str, dict[str, Term | None]] = field(default_factory=dict)  # of parameters that are structs
    shapes: dict[str, tuple[Term, ...] | None] = field(default_factory=dict)
    shape_from: dict[str, str] = field(default_factory=dict)
    strides: dict[str, dict[int, Term]] = field(default_factory=dict)  # buffer -> dimension -> symbol
    elements: dict[str, str] = field(default_factory=dict)  # buffer -> C++ type of what the host's pointer leads to
    zeroed: dict[str, Span] = field(default_factory=dict)  # buffer -> where the host sets it to zero
    null: set[str] = field(default_factory=set)  # parameters that are null on some way
    whens: tuple[Term, ...] = ()  # of each instance
    required: tuple[Stated, ...] = ()
    symbols: dict[str, Symbol] = field(default_factory=dict)
    span: Span = NO_SPAN
    host_function: str = ""
    left_out: bool = False  # ways with other values were left out

    def terms(self) -> Iterable[Term]:
        """Every term of the case."""
        for group in (self.grid, self.block, (self.smem,), self.cluster, self.scalars.values()):
            yield from (t for t in group if t is not None)
        for shape in self.shapes.values():
            yield from shape or ()
        for found in self.members.values():
            yield from (t for t in found.values() if t is not None)


def launches_of_kernel(unit: ParsedUnit, entry: Entry, info: KernelInfo) -> list[HostLaunch]:
    """The launches of one kernel among those of an entry function."""
    found = []
    for launch in entry.launches:
        if launch.kernel is None:
            if launch.name == info.name and len(launch.args) == len(info.params):
                found.append(launch)
            continue
        template = template_of(launch.kernel)
        declared = launch.kernel.get_definition() or launch.kernel
        if template is not None and not _is_explicit(declared, template.get_definition() or template):
            declared = template.get_definition() or template
        place = cc.span(declared)
        same_text = place.file == info.span.file and (place.line, place.col) == (info.span.line, info.span.col)
        if same_text and len(launch.args) == len(info.params):
            found.append(launch)
    return found


def _is_explicit(specialisation: Cursor, template: Cursor) -> bool:
    """Whether a specialisation is written in the source: an instance is named where its template is."""
    return cc.place(specialisation.location) != cc.place(template.location)


def evaluated(unit: ParsedUnit, found: Sequence[Entry], info: KernelInfo) -> Evaluated | None:
    """What the entry that says most of a kernel says; None where none launches it."""
    best: tuple[tuple[int, ...], Evaluated] | None = None
    for entry in _joined(found):
        launches = launches_of_kernel(unit, entry, info)
        if not launches:
            continue
        made = _merged(entry, launches, info)
        if made is None:
            continue
        score = _score(made)
        if best is None or score < best[0]:
            best = (score, made)
    return best[1] if best else None


def _joined(found: Sequence[Entry]) -> list[Entry]:
    """Entries with the instantiations of one host template as one."""
    joined: dict[tuple[str, str], Entry] = {}
    for entry in found:
        key = (entry.name, str(cc.span(entry.function)))
        known = joined.get(key)
        if known is None:
            joined[key] = replace(entry, launches=list(entry.launches))
        else:
            known.launches += entry.launches
            known.called = known.called and entry.called
    return list(joined.values())


def _score(e: Evaluated) -> tuple[int, ...]:
    """Less is better: what is open, then what is fixed to one number."""
    used: set[str] = set()
    for t in e.terms():
        used |= terms.symbols(t)
    free = sum(s in e.symbols and e.symbols[s].kind == "free" for s in used)
    missing = sum(t is None for t in (*e.grid, *e.block, e.smem, *e.scalars.values()))
    whole = [t for t in e.scalars.values() if t is not None and not t.real]
    fixed = sum(t.value is not None and not isinstance(t.value, bool) for t in whole)
    unknown = sum(s is None for s in e.shapes.values())
    is_main = e.entry.name.split("::")[-1] in ("main", "test", "benchmark")
    return (
        int(is_main or (bool(whole) and fixed == len(whole) and len(whole) > 1)),
        missing + free,
        unknown,
        fixed,
        -len(e.instances),
        int(e.entry.called),
    )


def _merged(entry: Entry, launches: list[HostLaunch], info: KernelInfo) -> Evaluated | None:
    """One statement over all ways and instances of an entry function."""
    by_instance: dict[tuple[str, ...], list[HostLaunch]] = {}
    for launch in launches:
        if info.is_template and not launch.template_args:
            continue
        nameless = any(word in a for a in launch.template_args for word in ("(lambda", "(anonymous", "(unnamed"))
        if not nameless:
            by_instance.setdefault(launch.template_args if info.is_template else (), []).append(launch)
    if not by_instance:
        return None
    chosen = choose_few(tuple(Instance(args) for args in by_instance)) if info.is_template else (Instance(()),)
    groups = [by_instance[i.args] for i in chosen]
    try:
        values = tuple(instance_values(info, i) for i in chosen)
    except PorterError:
        return None
    made = Evaluated(entry, info, chosen, values)
    reduced = []
    for group in groups:
        group, left_out = _same_site(group)
        made.left_out = made.left_out or left_out
        made.null |= _null_parameters(group, info)
        reduced.append(_fullest(group))
    _conditions(made, reduced)
    for group in reduced:
        for launch in group:
            for key, symbol in launch.run.symbols.items():
                known = made.symbols.setdefault(key, symbol)
                known.names += [n for n in symbol.names if n not in known.names]
    first = reduced[0][0]
    made.span, made.host_function = first.span, first.host_function or entry.name
    made.cooperative = any(x.cooperative for g in reduced for x in g)
    made.pdl = any(x.pdl for g in reduced for x in g)

    def over(get: object) -> Term | None:
        return _over_all(made, reduced, get)

    made.grid = _trimmed(tuple(over(lambda x, i=i: x.grid[i] if x.grid else None) for i in range(3)))
    made.block = _trimmed(tuple(over(lambda x, i=i: x.block[i] if x.block else None) for i in range(3)))
    made.smem = over(lambda x: x.smem)
    if any(x.cluster for g in reduced for x in g):
        found = [over(lambda x, i=i: x.cluster[i] if x.cluster else terms.ONE) for i in range(3)]
        made.cluster = tuple(f or terms.ONE for f in found)
    for i, p in enumerate(info.params):
        if pointee(p.type) is not None:
            _buffer(made, reduced, i, p.name)
        elif isinstance(first.args[i], StructValue):
            made.scalars[p.name] = None
            _struct(made, reduced, i, p.name)
        else:
            made.scalars[p.name] = over(lambda x, i=i: _as_number(x, x.args[i]))
    _substitute_equal(made)
    return made


def _trimmed(dims: tuple[Term | None, ...]) -> tuple[Term | None, ...]:
    dims = tuple(dims)
    while len(dims) > 1 and dims[-1] == terms.ONE:
        dims = dims[:-1]
    return dims


def _same_site(group: list[HostLaunch]) -> tuple[list[HostLaunch], bool]:
    """The launches of the place that comes first; True when others were left out."""
    site = group[0].span
    kept = [x for x in group if x.span == site]
    return kept, len(kept) < len(group)


def _null_parameters(group: list[HostLaunch], info: KernelInfo) -> set[str]:
    found = set()
    for i, p in enumerate(info.params):
        nulls = [_is_null(x, x.args[i]) for x in group]
        if any(nulls) and pointee(p.type) is not None:
            found.add(p.name)
    return found


def _is_null(launch: HostLaunch, value: Value) -> bool:
    if isinstance(value, Pointer):
        return bool(launch.run.nulls.get(value.region.name))
    return isinstance(value, Null) or (isinstance(value, OptionalValue) and value.present is False)


def _fullest(group: list[HostLaunch]) -> list[HostLaunch]:
    """The launches with the fewest null pointers: null is a variant of them."""
    counts = [sum(_is_null(x, a) for a in x.args) for x in group]
    return [x for x, n in zip(group, counts, strict=True) if n == min(counts)]


def _conditions(made: Evaluated, groups: list[list[HostLaunch]]) -> None:
    """What all ways have in common is required; what the ways of one instance have in common is its `when`."""
    own: list[list[Stated]] = []
    for group in groups:
        common = [s for s in group[0].conditions if all(_states(x.conditions, s) for x in group)]
        own.append(common)
    shared = [s for s in own[0] if all(any(o.condition == s.condition for o in other) for other in own)]
    used: set[str] = set()
    for launch in (x for g in groups for x in g):
        for t in (*(launch.grid or ()), *(launch.block or ()), launch.smem, *launch.args):
            used |= terms.symbols(t) if isinstance(t, Term) else frozenset()
        for value in launch.args:
            if isinstance(value, Pointer) and value.region.tensor is not None:
                used |= {s for d in sizes(launch.run, value.region.tensor) or () for s in terms.symbols(d)}
    whens = []
    for common in own:
        # a number that nothing but the choice depends on says which instance is wanted: its arguments say that already
        common = [s for s in common if terms.symbols(s.condition) <= used]
        mine = [s.condition for s in common if not any(s.condition == o.condition for o in shared)]
        whens.append(terms.both(*_without_implied(mine)))
    required = [s for s in groups[0][0].constraints if all(_states(x.constraints, s) for g in groups for x in g)]
    made.whens = tuple(whens)
    made.required = tuple(s for s in (*required, *shared) if terms.symbols(s.condition) & used)


def _without_implied(conditions: list[Term]) -> list[Term]:
    from porter.frontend.host.run import _implied

    kept = list(conditions)
    for c in conditions:
        others = [k for k in kept if k is not c]
        if len(others) < len(kept) and _implied(c, others) is True:
            kept = others
    return kept


def _states(stated: Iterable[Stated], wanted: Stated) -> bool:
    return any(s.condition == wanted.condition for s in stated)


def _over_all(made: Evaluated, groups: list[list[HostLaunch]], get: object) -> Term | None:
    """One term over the ways of every instance, then over the instances."""
    each = []
    for group in groups:
        found = [get(x) for x in group]  # type: ignore[operator]
        if any(f is None for f in found):
            return None
        each.append(_over_ways(made, group, found))
    return generalised(each, made.values)


def _over_ways(made: Evaluated, group: list[HostLaunch], found: list[Term]) -> Term:
    if all(f == found[0] for f in found):
        return found[0]
    shared = [s.condition for s in group[0].conditions if all(_states(x.conditions, s) for x in group)]
    whole = found[-1]
    for launch, value in list(zip(group, found, strict=True))[-2::-1]:
        mine = terms.both(*(s.condition for s in launch.conditions if s.condition not in shared))
        if mine.value is not None:
            whole = value if mine.value else whole
            continue
        whole = terms.choose(mine, value, whole)
    if len(str(whole)) > _LONGEST:
        made.left_out = True
        return found[0]
    return whole


def _as_number(launch: HostLaunch, value: Value) -> Term | None:
    return value if isinstance(value, Term) else None


# ---------------------------------------------------------------- buffers


def _buffer(made: Evaluated, groups: list[list[HostLaunch]], i: int, name: str) -> None:
    made.shapes[name] = None
    shapes = []
    for group in groups:
        value = group[0].args[i]
        if isinstance(value, PlacePointer) and isinstance(value.place.value, TensorValue):
            value = None
        if not isinstance(value, Pointer):
            return
        if value.element:
            made.elements.setdefault(name, value.element)
        tensor = value.region.tensor
        if value.region.zeroed != NO_SPAN or (tensor is not None and tensor.init == "zeros"):
            made.zeroed[name] = value.region.zeroed
        shapes.append(_shape(made, group[0], name, value))
    if any(s is None for s in shapes):
        return
    known = [s for s in shapes if s is not None]
    if len({len(s) for s in known}) != 1:
        return
    dims = [generalised(column, made.values) for column in zip(*known, strict=True)]
    if all(d is not None for d in dims):
        made.shapes[name] = tuple(d for d in dims if d is not None)


def _shape(made: Evaluated, launch: HostLaunch, name: str, value: Pointer) -> tuple[Term, ...] | None:
    """The dimensions of what a pointer leads to, None where the host does not say them."""
    region, run = value.region, launch.run
    t = region.tensor
    if t is not None:
        dims = sizes(run, t)
        if dims is None and t.said_by.startswith("like "):
            dims = sizes(run, run.tensors[t.said_by[5:]]) if t.said_by[5:] in run.tensors else None
        if dims is None:
            return None
        made.shape_from[name] = t.said_by or f"the sizes of {t.key}"
        if value.offset != terms.ZERO:
            total = terms.ONE
            for d in dims:
                total = terms.mul(total, d)
            return (terms.sub(total, value.offset),)
        for (key, label), symbol in run.dims.items():
            if key == t.key and label.startswith("stride") and not t.said_by:
                index = label.removeprefix("stride")
                at = len(dims) - int(index[4:]) if index.startswith("last") else int(index)
                if 0 <= at < len(dims):
                    made.strides.setdefault(name, {})[at] = symbol
        return tuple(dims)
    if region.bytes is None:
        return None
    made.shape_from[name] = f"{region.said_by}, line {region.span.line}" if region.span.line else region.said_by
    if region.bytes.op == "elements":
        count = region.bytes.parts[0]
    else:
        scalar = scalar_name(value.element)
        width = SCALAR_BYTES.get(scalar or "", 0)
        if not width:
            return None
        count = terms.div(region.bytes, terms.const(width))
    return (terms.sub(count, value.offset),) if value.offset != terms.ZERO else (count,)


def _struct(made: Evaluated, groups: list[list[HostLaunch]], i: int, name: str) -> None:
    """The members of a parameter that is a struct, by their paths."""
    first = groups[0][0].args[i]
    assert isinstance(first, StructValue)
    found: dict[str, Term | None] = {}

    def member(value: Value, path: list[str]) -> Term | None:
        for part in path:
            if not isinstance(value, StructValue) or part not in value.members:
                return None
            value = value.members[part].value
        return value if isinstance(value, Term) else None

    def visit(struct: StructValue, path: list[str]) -> None:
        for part, place in struct.members.items():
            if isinstance(place.value, StructValue):
                visit(place.value, [*path, part])
            else:
                at = [*path, part]
                found[".".join(at)] = _over_all(made, groups, lambda x, at=at: member(x.args[i], at))

    visit(first, [])
    made.members[name] = found


def _substitute_equal(made: Evaluated) -> None:
    """Sizes that the host checks to be equal become one."""
    same: dict[str, Term] = {}

    def replaced(t: Term) -> Term:
        return terms.rebuild(t, lambda x: same.get(str(x.args[0])) if x.op == "sym" else None)

    kept = []
    for stated in made.required:
        c = replaced(stated.condition)
        if c.op == "==":
            a, b = c.parts
            pair = next(
                (
                    (x, y)
                    for x, y in ((a, b), (b, a))
                    if x.op == "sym"
                    and str(x.args[0]) in made.symbols
                    and made.symbols[str(x.args[0])].kind == "dim"
                    and str(x.args[0]) not in terms.symbols(y)
                    and (y.op != "sym" or _named(made, x) <= _named(made, y))
                ),
                None,
            )
            if pair is not None:
                key = str(pair[0].args[0])
                old, new = pair
                same = {
                    k: terms.rebuild(v, lambda x, old=old, new=new: new if x == old else None)  # type: ignore[misc]
                    for k, v in same.items()
                }
                same[key] = pair[1]
                continue
        if c.value is None:
            kept.append(Stated(c, stated.span))
    made.required = tuple(Stated(replaced(s.condition), s.span) for s in kept)
    if not same:
        return
    made.grid = tuple(replaced(t) if t is not None else None for t in made.grid)
    made.block = tuple(replaced(t) if t is not None else None for t in made.block)
    made.smem = replaced(made.smem) if made.smem is not None else None
    made.cluster = tuple(replaced(t) for t in made.cluster)
    made.scalars = {n: replaced(t) if t is not None else None for n, t in made.scalars.items()}
    made.shapes = {n: tuple(replaced(t) for t in s) if s is not None else None for n, s in made.shapes.items()}
    made.whens = tuple(replaced(w) for w in made.whens)


def _named(made: Evaluated, t: Term) -> int:
    """How good a symbol's name is: those of variables are better than those made up for a dimension."""
    symbol = made.symbols.get(str(t.args[0]))
    if symbol is None:
        return 3
    return 2 if symbol.kind == "param" else 1 if len(symbol.names) > 1 else 0


