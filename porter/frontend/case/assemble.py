"""From what the host and the body say to a derived case: names, sizes with their values, buffers, scalars, launch."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from porter.case import expressions
from porter.case.expressions import ExprError, Value
from porter.cxx.types import is_const_pointee, normalise, pointee, scalar_name
from porter.frontend.case.body import Body
from porter.frontend.case.comments import commented_shape, comments_of
from porter.frontend.case.derived import (
    DerivedBuffer,
    DerivedCase,
    DerivedInstance,
    DerivedLaunch,
    DerivedScalar,
    DerivedSize,
    Ground,
)
from porter.frontend.case.from_host import Evaluated
from porter.frontend.case.inputs import filled
from porter.frontend.case.names import element_type, is_stride, named, pointee_of_void, vector_element
from porter.frontend.case.points import Wanted, by_name, choose_points, numbers_beside, value_of
from porter.frontend.host import terms
from porter.frontend.host.terms import Term
from porter.ir import SCALARS

if TYPE_CHECKING:
    from porter.frontend.parse.source import ParsedUnit

FLOATS: tuple[tuple[str, str], ...] = ((r"eps", "1e-6"), (r"theta|base", "10000.0"), (r"", "1.0"))
_MOST_SMEM = 232448
THREADS = (128, 256, 64, 512, 1024, 32)  # of a block dimension that is just a size, the first two where they will do
_LONGEST = 4  # elements of a buffer of unknown length, to each of the product of all sizes


def float_by_name(name: str) -> str:
    return next(value for pattern, value in FLOATS if re.search(pattern, name.lower()))


class _Assembly:
    """The parts of one case while it is put together."""

    def __init__(self, unit: ParsedUnit, made: Evaluated, body: Body | None):
        self.unit, self.made, self.body, self.info = unit, made, body, made.info
        self.grounds: list[Ground] = []
        self.strided: dict[str, tuple[str, int]] = {}  # stride symbol -> buffer, dimension
        self.names = named(made)
        self.shown = dict(self.names)

    # ---- terms

    def with_defaults(self, t: Term) -> Term:
        """Without numbers that are not whole (they take their defaults) and with contiguous strides."""

        def replaced(x: Term) -> Term | None:
            if x.op != "sym":
                return None
            key = str(x.args[0])
            symbol = self.made.symbols.get(key)
            if symbol is None:
                return None
            if symbol.real:
                return terms.const(float(float_by_name(symbol.names[-1])))
            if is_stride(key):
                return self.contiguous(key)
            return None

        return terms.rebuild(t, replaced)

    def contiguous(self, key: str) -> Term | None:
        for buffer, dims in self.made.strides.items():
            shape = self.made.shapes.get(buffer)
            for at, symbol in dims.items():
                if shape is not None and symbol.op == "sym" and str(symbol.args[0]) == key:
                    total = terms.ONE
                    for d in shape[at + 1 :]:
                        total = terms.mul(total, d)
                    return total
        return None

    def text(self, t: Term | None) -> str | None:
        """A case expression, None where the language has none."""
        if t is None:
            return None
        found = terms.text_of(self.with_defaults(t), self.names)
        try:
            expressions.parse(found)
        except ExprError:
            return None
        return found

    # ---- parts

    def case(self) -> DerivedCase:
        made = self.made
        scalars = self.scalars()
        buffers = self.buffers()
        instances = tuple(
            DerivedInstance(i.args, self.when(w)) for i, w in zip(made.instances, made.whens, strict=True)
        )
        launch = self.launch()
        filled_ = filled(buffers, self.body, frozenset((*self.names.values(), *(p.name for p in self.info.params))))
        buffers = filled_.buffers
        constraints = tuple(
            (text, s) for s in made.required if (text := self.text(s.condition)) is not None and self.is_over_sizes(s)
        )
        self.grounds += [Ground(text, s.span) for text, s in constraints]
        if made.left_out:
            self.grounds.append(Ground("only the first of several launches is described"))
        case = DerivedCase(
            info=self.info, buffers=buffers, sizes=(), scalars=scalars, launch=launch, instances=instances,
            constraints=tuple(text for text, _ in constraints),
            symbols=self.body.symbols if self.body else (), roles=self.body.roles if self.body else {},
            lowered=self.body.lowered if self.body else None,
            grounds=tuple(dict.fromkeys(self.grounds)),
        )  # fmt: skip
        return self.with_sizes(case, filled_.sizes)

    def is_over_sizes(self, stated: object) -> bool:
        condition: Term = stated.condition  # type: ignore[attr-defined]
        return all(s in self.names for s in terms.symbols(self.with_defaults(condition)))

    def when(self, condition: Term) -> str:
        text = self.text(condition)
        if text is None or condition == terms.TRUE:
            return ""
        return text if all(s in self.names for s in terms.symbols(self.with_defaults(condition))) else ""

    def launch(self) -> DerivedLaunch:
        made = self.made
        open_: dict[str, str] = {}

        def dims(key: str, found: tuple[Term | None, ...]) -> tuple[str, ...] | None:
            texts = [self.text(t) for t in found]
            if any(t is None for t in texts):
                open_[key] = f"the launcher's {key}"
                return None
            return tuple(t for t in texts if t is not None)

        return DerivedLaunch(
            dims("grid", made.grid), dims("block", made.block), self.text(made.smem), made.cooperative,
            dims("cluster", made.cluster) or (), made.pdl, made.host_function, made.span, open_,
        )  # fmt: skip

    def scalars(self) -> tuple[DerivedScalar, ...]:
        found = []
        for p in self.info.params:
            if pointee(p.type) is not None:
                continue
            members = self.made.members.get(p.name)
            if members:
                known = ", ".join(f"{path}: {self.text(t)}" for path, t in members.items() if t is not None)
                reason = f"a {p.type} cannot be passed by a case" + (f" (its members: {known})" if known else "")
                found.append(DerivedScalar(p.name, p.type, (), reason))
                continue
            found.append(self.scalar(p.name, p.type, self.made.scalars.get(p.name)))
        return tuple(found)

    def scalar(self, name: str, ctype: str, t: Term | None) -> DerivedScalar:
        kind = scalar_name(normalise(ctype)) if ctype else None
        if t is None:
            if kind == "bool":
                return DerivedScalar(name, ctype, ("false", "true"))
            if kind in ("f16", "bf16", "f32", "f64"):
                return DerivedScalar(name, ctype, (float_by_name(name),), "a guess by its name", True)
            if kind in SCALARS:
                return self.free_scalar(name, ctype)
            return DerivedScalar(name, ctype, ())
        if t.op == "sym" and is_stride(str(t.args[0])):
            variant = self.stride(name, str(t.args[0]))
            if variant is not None:
                return DerivedScalar(name, ctype, variant)
        if t.op == "sym":
            symbol = self.made.symbols.get(str(t.args[0]))
            if symbol is not None and symbol.boolean and not self.is_used_elsewhere(t):
                return DerivedScalar(name, ctype, ("false", "true"))
            if symbol is not None and symbol.real:
                return DerivedScalar(name, ctype, (float_by_name(name),), "a guess by its name", True)
        text = self.text(t)
        if text is None:
            return self.free_scalar(name, ctype)
        if kind == "bool" and t.value is None and not terms.is_condition(t):
            text = f"{text} != 0" if re.fullmatch(r"\w+", text) else f"({text}) != 0"
        return DerivedScalar(name, ctype, (text,))

    def free_scalar(self, name: str, ctype: str) -> DerivedScalar:
        """A whole number that could not be seen through: a size of its own, called like the parameter."""
        return DerivedScalar(name, ctype, (name,), is_guess=True)

    def is_used_elsewhere(self, t: Term) -> bool:
        key = str(t.args[0])
        conditions = [s.condition for s in self.made.required] + list(self.made.whens)
        others = [x for x in self.made.terms() if x != t] + conditions
        return any(key in terms.symbols(x) for x in others)

    def stride(self, name: str, key: str) -> tuple[str, ...] | None:
        """The variants of a parameter that is a stride: contiguous rows, and rows further apart."""
        whole = self.contiguous(key)
        if whole is None:
            return None
        text = self.text(whole)
        if text is None:
            return None
        for buffer, dims in self.made.strides.items():
            shape = self.made.shapes.get(buffer) or ()
            for at, symbol in dims.items():
                if symbol.op == "sym" and str(symbol.args[0]) == key:
                    self.strided.setdefault(key, (name, at))
                    if at == len(shape) - 2:
                        return (text, f"{text} + 8" if re.fullmatch(r"[\w *]+", text) else f"({text}) + 8")
        return (text,)

    # ---- buffers

    def buffers(self) -> tuple[DerivedBuffer, ...]:
        beside = comments_of(self.info, self.unit.source)
        return tuple(self.buffer(p.name, p.type, beside) for p in self.info.params if pointee(p.type) is not None)

    def buffer(self, name: str, ctype: str, beside: Mapping[str, str]) -> DerivedBuffer:
        made, body = self.made, self.body
        dtype = element_type(made, self.info, name, ctype)
        lanes = body.lanes.get(name, 1) if body else 1
        if dtype is None:
            dtype = vector_element(ctype)
        if dtype is None and body is not None and normalise(pointee(ctype) or "") != "void":
            dtype = body.types.get(name) if name in body.lanes else None
        if dtype is None:
            scalar = scalar_name(made.elements.get(name, ""))
            dtype = scalar if scalar not in (None, "void") else None
            if dtype is None:
                said = body.types.get(name) if body else None
                dtype = pointee_of_void(self.info, name, said, made.values[0], self.unit.source.text)
            lanes = 1
        found = made.shapes.get(name)
        shape: tuple[str, ...] | None = None
        shape_from = made.shape_from.get(name, "")
        if found is not None:
            texts = [self.text(d) for d in found]
            shape = tuple(t for t in texts if t is not None) if all(t is not None for t in texts) else None
            if shape == ():
                shape = ("1",)
        if shape is None:
            shape = self.from_comment(name, beside)
            shape_from = "from the comment beside it" if shape is not None else beside.get(name, "")
        elif lanes > 1 and not shape_from.startswith(("the sizes", "empty", "torch")):
            shape = (*shape, str(lanes))
        seen = body.roles.get(name) if body else None
        const = is_const_pointee(ctype)
        role = "in" if const and seen in (None, "in") else seen or ("in" if body else "out")
        strides = self.strides(name, found)
        unsure = seen is None and not const and body is None
        if body is not None and role == "inout" and name in body.written_first:
            role, unsure = "out", True  # written before it is read
        if body is not None and role == "out" and self.is_partly_written(name):
            unsure = True
        zeroed = made.zeroed.get(name)
        if zeroed is not None and role == "out" and unsure:
            role = "inout"  # what is not written stays zero
        is_zero = zeroed is not None and role == "inout" and not const
        said = f"set to zero by the launcher, line {zeroed.line}" if zeroed and zeroed.line else "made of zeros"
        return DerivedBuffer(
            name, ctype, dtype, shape, "in" if const else role, strides=strides,
            dist="zeros" if is_zero else "", dist_from=said if is_zero else "",
            role_is_guess=unsure,
            optional=bool(body and name in body.optional) or name in made.null, shape_from=shape_from,
        )  # fmt: skip

    def is_partly_written(self, name: str) -> bool:
        """Whether another buffer says which elements are written: the others may have to stay."""
        assert self.body is not None
        if name in self.body.partly:
            return True
        return any(u.buffer == name and u.scattered for uses in self.body.indexes.values() for u in uses)

    def from_comment(self, name: str, beside: Mapping[str, str]) -> tuple[str, ...] | None:
        shape = commented_shape(beside.get(name, ""))
        if shape is None:
            return None
        known = {n: n for n in (*self.names.values(), *(p.name for p in self.info.template_params))}
        for symbol_key, given in self.names.items():
            for alias in self.made.symbols[symbol_key].names if symbol_key in self.made.symbols else ():
                known.setdefault(alias, given)
        found = []
        for part in shape:
            for word in sorted(expressions.names_in(part)):
                if word not in known and scalar_name(word) is None:
                    match = next((k for k in known if stem(k) == stem(word)), None)
                    known[word] = known[match] if match else word
                    if match is None:
                        self.names[word] = word
            found.append(re.sub(r"[A-Za-z_]\w*", lambda m: known.get(m.group(), m.group()), part))
        return tuple(found)

    def strides(self, name: str, shape: tuple[Term, ...] | None) -> tuple[str, ...] | None:
        dims = self.made.strides.get(name)
        if not dims or shape is None or len(shape) < 2:
            return None
        texts: list[str] = []
        for at in range(len(shape) - 1):
            symbol = dims.get(at)
            key = str(symbol.args[0]) if symbol is not None and symbol.op == "sym" else ""
            if key in self.strided:
                texts.append(self.strided[key][0])
                continue
            total = terms.ONE
            for d in shape[at + 1 :]:
                total = terms.mul(total, d)
            text = self.text(total)
            if text is None:
                return None
            if at + 1 in dims and (inner := str(dims[at + 1].args[0])) in self.strided:
                text = f"{self.text(shape[at + 1])} * {self.strided[inner][0]}"
            texts.append(text)
        if not any(key in self.strided for key in (str(s.args[0]) for s in dims.values() if s.op == "sym")):
            return None
        return (*texts, "1")

    # ---- sizes

    def with_sizes(self, case: DerivedCase, more: tuple[DerivedSize, ...]) -> DerivedCase:
        """The case with its sizes and the values that they are verified at."""
        used = self.used_names(case)
        scalars = {s.name for s in case.scalars}
        own = {s.name for s in case.scalars if s.values == (s.name,)}  # a size is called like them
        by_key = {name: key for key, name in self.names.items()}
        wanted: list[Wanted] = []
        sizes: list[DerivedSize] = []
        fixed = self.fixed_values()
        for name in used:
            symbol = self.made.symbols.get(by_key.get(name, ""))
            if symbol is None and name in scalars and name not in own:
                continue
            if symbol is None:
                values = next((s.values for s in more if s.name == name), by_name(name))
                comment = next((s.comment for s in more if s.name == name), "a guess")
                sizes.append(DerivedSize(name, values, comment, True))
                wanted.append(Wanted(name, tuple(values) if not isinstance(values, str) else ()))
                continue
            values = symbol.default or symbol.enumerators or ((0, 1) if symbol.boolean else by_name(name))
            if name in fixed:
                values = (fixed[name],)
            free = symbol.kind == "free"
            comment = f"a guess: {symbol.reason or 'the host code was not seen through'}" if free else ""
            sizes.append(DerivedSize(name, values, comment, free))
            is_fixed = bool(symbol.enumerators) or symbol.boolean or name in fixed
            threads = THREADS if name in (case.launch.block or ()) and not is_fixed else ()
            wanted.append(Wanted(name, threads[:2] or values, is_fixed, threads))
        points = choose_points(
            wanted, lambda p: self.holds(case, p), self.covers(case), self.beside(), self.cost(case),
            lambda p: self.score(case, p),
        )  # fmt: skip
        if points is None:
            grounds = (*case.grounds, Ground("no values were found for which everything above holds"))
            return replace(case, sizes=tuple(sizes), grounds=grounds)
        return replace(
            case,
            sizes=tuple(replace(s, values=points.values[s.name]) for s in sizes),
            shapes=points.shapes,
            only_shapes=bool(points.shapes),
        )

    def used_names(self, case: DerivedCase) -> list[str]:
        """Names that the case's expressions read, in order; those of template parameters and types left out."""
        texts: list[str] = [v for s in case.scalars for v in s.values]
        for b in case.buffers:
            texts += [*(b.shape or ()), *(b.strides or ()), *(x for x in (b.low, b.high) if x and x != "TODO")]
        launch = case.launch
        texts += [*(launch.grid or ()), *(launch.block or ()), *launch.cluster, launch.smem or "0"]
        texts += [*case.constraints, *(i.when for i in case.instances if i.when)]
        skip = {p.name for p in self.info.template_params} | {b.name for b in case.buffers}
        found: dict[str, None] = {}
        for text in texts:
            for name in sorted(expressions.names_in(text)):
                if name not in skip and scalar_name(name) is None and name not in ("true", "false"):
                    found.setdefault(name)
        scalars = {s.name: s for s in case.scalars}
        sizes = set(self.names.values())
        own = {n for n, s in scalars.items() if s.values == (n,)}
        sized = {n for n in sizes if n in scalars and scalars[n].values != ("false", "true")}
        return [n for n in found if n not in scalars or n in own | sized]

    def fixed_values(self) -> dict[str, int]:
        """Sizes that the host checks to be one number."""
        found = {}
        for s in self.made.required:
            c = s.condition
            if c.op == "==" and c.parts[0].op == "sym" and c.parts[1].value is not None:
                name = self.names.get(str(c.parts[0].args[0]))
                if name:
                    found[name] = int(c.parts[1].value)
        return found

    def values_at(self, case: DerivedCase, point: Mapping[str, int], instance: int) -> dict[str, Value]:
        names: dict[str, Value] = {**(self.made.values[instance] if self.made.values else {}), **point}
        for s in case.scalars:
            if s.values and s.name not in names:
                value = value_of(s.values[0], names)
                if value is not None:
                    names[s.name] = value
        return names

    def holds(self, case: DerivedCase, point: Mapping[str, int]) -> bool:
        """Whether a point is one that the host launches the kernel at."""
        names = self.values_at(case, point, 0)
        if not all(value_of(c, names) is not False for c in case.constraints):
            return False
        any_instance = False
        for i, instance in enumerate(case.instances or (None,)):
            at = self.values_at(case, point, i)
            if instance is not None and instance.when and value_of(instance.when, at) is False:
                continue
            if not self.launches(case, at):
                return False
            any_instance = True
        return any_instance

    def score(self, case: DerivedCase, point: Mapping[str, int]) -> int:
        """How much of what the host insists on holds at a point, at the instance where most does."""
        names = self.values_at(case, point, 0)
        shared = sum(value_of(c, names) is not False for c in case.constraints)
        each = []
        for i, instance in enumerate(case.instances or (None,)):
            at = self.values_at(case, point, i)
            chosen = instance is None or not instance.when or value_of(instance.when, at) is not False
            each.append(sum(self.launch_parts(case, at)) + 2 * chosen)
        return shared + max(each)

    def launches(self, case: DerivedCase, names: Mapping[str, Value]) -> bool:
        if not all(self.launch_parts(case, names)):
            return False
        blocks = [value_of(text, names) for text in case.launch.grid or ()]
        return 0 not in blocks or 0 in names.values()  # a launch without blocks is one of empty inputs

    def launch_parts(self, case: DerivedCase, names: Mapping[str, Value]) -> list[bool]:
        """What has to hold for a launch to be one."""
        found, threads = [], 1
        for text in case.launch.block or ():
            v = value_of(text, names)
            found.append(isinstance(v, int) and v >= 1)
            threads *= int(v) if isinstance(v, int) else 1
        found.append(threads <= 1024)
        for text in (*(case.launch.grid or ()), *(d for b in case.buffers for d in b.shape or ())):
            v = value_of(text, names)
            found.append(isinstance(v, int) and v >= 0)
        if 0 not in names.values():
            found += [value_of(text, names) != 0 for text in case.launch.grid or ()]
        smem = value_of(case.launch.smem or "0", names)
        return [*found, isinstance(smem, int | float) and 0 <= smem <= _MOST_SMEM]

    def covers(self, case: DerivedCase) -> list:  # type: ignore[type-arg]
        def cover(i: int, when: str):  # type: ignore[no-untyped-def]
            return lambda point: value_of(when, self.values_at(case, point, i)) is True

        return [cover(i, x.when) for i, x in enumerate(case.instances) if x.when and "aligned(" not in x.when]

    def beside(self) -> dict[str, set[int]]:
        """The constants that each size is compared with or divided by."""
        found: dict[str, set[int]] = {}
        conditions = [s.condition for s in self.made.required] + list(self.made.whens)
        for t in (*self.made.terms(), *conditions):
            for key in terms.symbols(t):
                name = self.names.get(key)
                if name:
                    found.setdefault(name, set()).update(numbers_beside(t, key))
        return found

    def cost(self, case: DerivedCase):  # type: ignore[no-untyped-def]
        is_measured = any(b.shape is None for b in case.buffers)
        counted = {n for s in case.scalars for v in s.values for n in expressions.names_in(v)}

        def elements(point: Mapping[str, int]) -> int:
            names = self.values_at(case, point, 0)
            total = 0
            for b in case.buffers:
                count = 1
                for d in b.shape or ():
                    v = value_of(d, names)
                    count *= int(v) if isinstance(v, int) else 1
                total += count
            if is_measured:  # as long as all sizes together, at worst
                total = max(total, _LONGEST * math.prod(v for n, v in point.items() if v > 0 and n in counted))
            return total

        return elements


def stem(name: str) -> str:
    """`hidden` of hidden_size, `tokens` of num_tokens."""
    return re.sub(r"^(num|n|nr|total)_|_(size|dim|len|length|count|num)$", "", name)


def assembled(unit: ParsedUnit, made: Evaluated, body: Body | None) -> DerivedCase:
    """The case that an evaluated launch and a body give."""
    return _Assembly(unit, made, body).case()
