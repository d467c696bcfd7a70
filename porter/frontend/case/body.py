"""What a kernel's body says of its case: roles, which pointers may be null, what whole numbers are used for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from porter import ir
from porter.emit.plan import rewrite_kernel
from porter.frontend.parse.declarations import has_body
from porter.model import Instance, KernelInfo
from porter.patterns.readonly import root
from porter.patterns.roles import pointer_roles

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit


@dataclass(frozen=True)
class Indexed:
    """A buffer is indexed with what another holds; `factors` are the parameters that the index is multiplied with."""

    buffer: str
    factors: frozenset[str] = frozenset()
    scattered: bool = False  # the indexed element is written, by no atomic


@dataclass(frozen=True)
class Body:
    """`types`: the element type of each pointer as its accesses have it (for `void*`)."""

    roles: dict[str, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()
    indexes: dict[str, tuple[Indexed, ...]] = field(default_factory=dict)
    offsets: frozenset[str] = frozenset()  # read at i and at i + 1
    types: dict[str, str] = field(default_factory=dict)
    lanes: dict[str, int] = field(default_factory=dict)  # elements of a vector type that a pointer leads to
    symbols: tuple[ir.Symbol, ...] = ()
    partly: frozenset[str] = frozenset()  # written where what a buffer holds says so
    written_first: frozenset[str] = frozenset()  # read too, but what is accessed first, in the text, is a store
    members: dict[str, tuple[ir.FunctionParam, ...]] = field(default_factory=dict)  # of parameters that are structs
    lowered: ir.Kernel | None = None


def read_body(unit: ParsedUnit, info: KernelInfo, instance: Instance) -> Body | None:
    """What the body says at one instance; None where it cannot be lowered."""
    from porter.frontend.instances.choice import try_specialise

    if not info.is_template:
        return body_of(unit, unit.definition(info), info, instance)
    whole, cursors, failures = try_specialise(unit.source, unit.options, [(info, instance)], stand_ins=unit.stand_ins)
    return None if failures else body_of(whole, cursors[info.qualified_name, instance], info, instance)


def body_of(unit: ParsedUnit, cursor: Any, info: KernelInfo, instance: Instance) -> Body | None:
    """The same of the cursor of an instantiated kernel."""
    from porter.frontend.lower.kernel import lower_kernel

    definition = cursor.get_definition() or cursor
    if not has_body(definition):
        return None
    lowered = lower_kernel(unit, definition, info, instance)
    kernel = lowered
    try:
        kernel = rewrite_kernel(lowered)
    except Exception:  # what the emitter cannot print is its own message; the roles are then those of the body as it is
        kernel = lowered
    roles = pointer_roles(kernel)
    names = {p.name for p in kernel.params}
    indexes, offsets, partly = _indexes(kernel)
    return Body(
        roles,
        frozenset(_null_checked(lowered) & names),
        indexes,
        offsets,
        _cast_to(lowered) | _of_vectors(lowered) | _accessed(kernel),
        _lanes(kernel),
        lowered.symbols,
        partly,
        _written_first(kernel),
        lowered=lowered,
    )


def _written_first(kernel: ir.Kernel) -> frozenset[str]:
    """Pointer parameters whose first access is a plain store: what they held before is not what is read."""
    aliases = _aliases(kernel)
    first: dict[str, str] = {}

    def access(e: object, kind: str) -> None:
        for n in ir.walk(e):
            if isinstance(n, ir.Deref):
                names = aliases.get(root(n.ptr) or "", set())
                for name in names if len(names) == 1 else ():  # of a pointer that leads to several, nothing is certain
                    first.setdefault(name, kind)
            elif isinstance(n, ir.Intrinsic):
                stores = n.name.startswith("__st")
                for a in n.args:
                    for name in aliases.get(root(a) or "", ()) if isinstance(a.type, ir.Pointer) else ():
                        first.setdefault(name, "written" if stores else "read")
            elif isinstance(n, ir.Call):  # what the function does first with a pointer
                for p, a in zip(kernel.functions[n.function].params, n.args, strict=False):
                    names = aliases.get(root(a) or "", set()) if isinstance(a.type, ir.Pointer) else set()
                    roles = pointer_roles(replace(kernel, params=(p,), body=kernel.functions[n.function].body))
                    for name in names:
                        first.setdefault(name, "written" if roles.get(p.name) == "out" else "read")

    for n in ir.walk(kernel.body):
        if isinstance(n, ir.Assign):
            access(n.value, "read")
            access(n.target.ptr if isinstance(n.target, ir.Deref) else n.target, "read")
            if isinstance(n.target, ir.Deref):
                access(n.target, "written")
        elif isinstance(n, ir.Copy):
            access(n.source, "read")
            access(n.target, "written")
        elif isinstance(n, ir.Expr | ir.Asm):
            access(n, "read")
    return frozenset(n for n, kind in first.items() if kind == "written")


def _null_checked(kernel: ir.Kernel) -> set[str]:
    """Pointer parameters that the body compares with null."""
    found: set[str] = set()

    def pointer(e: ir.Expr) -> str | None:
        while isinstance(e, ir.Cast) and isinstance(e.x.type, ir.Pointer):
            e = e.x
        return e.name if isinstance(e, ir.Var) and isinstance(e.type, ir.Pointer) else None

    for n in ir.walk(kernel.body):
        if isinstance(n, ir.Binary) and n.op in ("==", "!="):
            for a, b in ((n.a, n.b), (n.b, n.a)):
                name = pointer(a)
                if name and pointer(b) is None:
                    found.add(name)
        elif isinstance(n, ir.Cast) and n.type == ir.BOOL and isinstance(n.x.type, ir.Pointer):  # noqa: SIM114
            found.add(pointer(n.x) or "")
        elif isinstance(n, ir.Unary) and n.op == "!" and isinstance(n.x.type, ir.Pointer):
            found.add(pointer(n.x) or "")
    return found


def _accessed(kernel: ir.Kernel) -> dict[str, str]:
    """Pointer parameter -> the scalar that it is read or written as, where there is just one."""
    aliases = _aliases(kernel)
    found: dict[str, set[str]] = {}
    for n in ir.walk(kernel.body):
        if isinstance(n, ir.Deref) and isinstance(n.type, ir.Scalar):
            for name in aliases.get(root(n.ptr) or "", ()):
                found.setdefault(name, set()).add(n.type.name)
    return {n: next(iter(t)) for n, t in found.items() if len(t) == 1}


def _cast_to(kernel: ir.Kernel) -> dict[str, str]:
    """`void*` parameter -> the scalar that the body says it leads to, where all its casts say the same."""
    aliases = _aliases(kernel)
    found: dict[str, set[str]] = {}
    for n in ir.walk(kernel.body):
        if not (isinstance(n, ir.Cast) and isinstance(n.type, ir.Pointer) and isinstance(n.x.type, ir.Pointer)):
            continue
        if n.x.type.elem != ir.VOID or n.type.elem == ir.VOID:
            continue
        for name in aliases.get(root(n.x) or "", ()):
            found.setdefault(name, set()).update(_scalars(n.type.elem))
    return {n: next(iter(t)) for n, t in found.items() if len(t) == 1}


def _of_vectors(kernel: ir.Kernel) -> dict[str, str]:
    """Pointer parameter -> the scalar that its elements, which are structs, are made of, where there is just one."""
    found = {}
    for p in kernel.params:
        if isinstance(p.type, ir.Pointer) and isinstance(p.type.elem, ir.Struct):
            kinds = _scalars(p.type.elem) - {"pointer"}
            if len(kinds) == 1:
                found[p.name] = kinds.pop()
    return found


def _scalars(t: ir.Type) -> set[str]:
    """The scalars that an object is made of."""
    if isinstance(t, ir.Scalar):
        return {t.name}
    if isinstance(t, ir.Array):
        return _scalars(t.elem)
    return {s for f in t.fields for s in _scalars(f.type)} if isinstance(t, ir.Struct) else {"pointer"}


def _lanes(kernel: ir.Kernel) -> dict[str, int]:
    found = {}
    for p in kernel.params:
        if isinstance(p.type, ir.Pointer) and isinstance(p.type.elem, ir.Struct):
            kinds = _scalars(p.type.elem)
            if len(kinds) == 1 and "pointer" not in kinds:
                found[p.name] = ir.sizeof(p.type.elem) // ir.SCALAR_BYTES[kinds.pop()]
    return found


def _aliases(kernel: ir.Kernel) -> dict[str, set[str]]:
    """Pointer variable -> the parameters that its address comes from."""
    origin = {p.name: {p.name} for p in kernel.params if isinstance(p.type, ir.Pointer)}
    for _ in range(4):
        before = sum(len(v) for v in origin.values())
        for n in ir.walk(kernel.body):
            name, value = _given(n)
            if name and value is not None and isinstance(value.type, ir.Pointer):
                origin.setdefault(name, set()).update(origin.get(root(value) or "", set()))
        if sum(len(v) for v in origin.values()) == before:
            break
    return origin


def _given(n: object) -> tuple[str, ir.Expr | None]:
    if isinstance(n, ir.Decl) and n.init is not None:
        return n.name, n.init
    if isinstance(n, ir.Assign) and isinstance(n.target, ir.Var):
        return n.target.name, n.value
    return "", None


def _indexes(kernel: ir.Kernel) -> tuple[dict[str, tuple[Indexed, ...]], frozenset[str], frozenset[str]]:
    """For buffers of whole numbers: which buffers what they hold is an index of, and which are offsets of segments; and
    the buffers that are written where such a number says so."""
    aliases = _aliases(kernel)
    whole = {
        p.name
        for p in kernel.params
        if isinstance(p.type, ir.Pointer)
        and isinstance(p.type.elem, ir.Scalar)
        and p.type.elem.name[0] in "iu"
    }
    scalars = {p.name for p in kernel.params if isinstance(p.type, ir.Scalar)}
    if not whole:
        return {}, frozenset(), frozenset()
    holds: dict[str, set[str]] = {}  # variable -> buffers whose elements it is made of

    def sources(e: ir.Expr) -> set[str]:
        found: set[str] = set()
        for n in ir.walk(e):
            if isinstance(n, ir.Var):
                found |= holds.get(n.name, set())
            elif isinstance(n, ir.Deref):
                found |= aliases.get(root(n.ptr) or "", set()) & whole
        return found

    for _ in range(3):
        for n in ir.walk(kernel.body):
            name, value = _given(n)
            if name and value is not None and isinstance(value.type, ir.Scalar):
                holds.setdefault(name, set()).update(sources(value))
    uses: dict[str, set[Indexed]] = {}
    reads: dict[str, list[ir.Expr]] = {}
    written = {
        id(n.target.ptr) for n in ir.walk(kernel.body) if isinstance(n, ir.Assign) and isinstance(n.target, ir.Deref)
    }
    for n in ir.walk(kernel.body):
        if isinstance(n, ir.PtrAdd):
            target = aliases.get(root(n.ptr) or "", set())
            for name in sources(n.index):
                factors = _factors(n.index, name, sources, scalars)
                for t in target - {name}:
                    uses.setdefault(name, set()).add(Indexed(t, factors, id(n) in written))
        elif isinstance(n, ir.Deref) and isinstance(n.ptr, ir.PtrAdd):
            for name in aliases.get(root(n.ptr) or "", set()) & whole:
                reads.setdefault(name, []).append(n.ptr.index)
    offsets = {name for name, at in reads.items() if _consecutive(at)}
    partly: set[str] = set()
    for n in ir.walk(kernel.body):
        if isinstance(n, ir.If | ir.While) and sources(n.cond):
            for m in ir.walk((*n.then, *n.orelse) if isinstance(n, ir.If) else n.body):
                if isinstance(m, ir.Assign | ir.Copy) and isinstance(m.target, ir.Deref):
                    partly |= aliases.get(root(m.target.ptr) or "", set())
    return {n: tuple(sorted(u, key=lambda i: i.buffer)) for n, u in uses.items()}, frozenset(offsets), frozenset(partly)


def _factors(index: ir.Expr, name: str, sources: object, scalars: set[str]) -> frozenset[str]:
    """The parameters by which the part of an index that comes from a buffer is multiplied."""
    found: set[str] = set()
    for n in ir.walk(index):
        if isinstance(n, ir.Binary) and n.op == "*":
            for a, b in ((n.a, n.b), (n.b, n.a)):
                if name in sources(a):  # type: ignore[operator]
                    found |= {v.name for v in ir.walk(b) if isinstance(v, ir.Var) and v.name in scalars}
    return frozenset(found)


def _consecutive(indexes: list[ir.Expr]) -> bool:
    """Whether some i and i + 1 are among the indexes."""
    plain = [_stripped(e) for e in indexes]
    for e in plain:
        if isinstance(e, ir.Binary) and e.op == "+":
            for a, b in ((e.a, e.b), (e.b, e.a)):
                if isinstance(_stripped(b), ir.Const) and _stripped(b).value == 1 and _stripped(a) in plain:  # type: ignore[attr-defined]
                    return True
    return False


def _stripped(e: ir.Expr) -> ir.Expr:
    while isinstance(e, ir.Cast):
        e = e.x
    return e
