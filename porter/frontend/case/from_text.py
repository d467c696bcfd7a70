"""A derived case from launches as text, for kernels whose launch could not be evaluated."""

from __future__ import annotations

import re

from porter.case import expressions
from porter.case.instances import instance_values
from porter.cxx.types import is_const_pointee, normalise, pointee, scalar_name
from porter.frontend.case.assemble import float_by_name, stem
from porter.frontend.case.body import Body
from porter.frontend.case.comments import commented_shape, comments_of, translated
from porter.frontend.case.derived import (
    DerivedBuffer,
    DerivedCase,
    DerivedInstance,
    DerivedLaunch,
    DerivedScalar,
    DerivedSize,
)
from porter.frontend.case.inputs import filled
from porter.frontend.case.names import pointee_of_void
from porter.frontend.case.points import by_name
from porter.frontend.instances.argument_text import split_arguments
from porter.model import Instance, KernelInfo, Launch, PorterError
from porter.source import Source


def case_from_text(
    info: KernelInfo,
    launches: tuple[Launch, ...],
    instances: tuple[Instance, ...],
    source: Source | None,
    body: Body | None = None,
) -> DerivedCase:
    """The case as far as the text of a launch, the comments beside the parameters and the body say it."""
    return _Text(info, launches, instances, source, body).case()


class _Text:
    def __init__(
        self,
        info: KernelInfo,
        launches: tuple[Launch, ...],
        instances: tuple[Instance, ...],
        source: Source | None,
        body: Body | None,
    ):
        mine = [x for x in launches if x.kernel.split("::")[-1] == info.name and len(x.args) == len(info.params)]
        self.info, self.instances, self.body = info, instances, body
        self.launch = min(mine, key=_opaque, default=None)
        self.comments = comments_of(info, source) if source else {}
        self.text = source.text if source else ""
        try:
            self.values = dict(instance_values(info, instances[0])) if instances else {}
        except PorterError:
            self.values = {}
        self.sizes: dict[str, DerivedSize] = {}
        self.strides: dict[str, str] = {}  # parameter -> elements of a row

    def case(self) -> DerivedCase:
        info, body = self.info, self.body
        buffers = tuple(self.buffer(p.name, p.type) for p in info.params if pointee(p.type) is not None)
        scalars = tuple(
            self.scalar(i, p.name, p.type) for i, p in enumerate(info.params) if pointee(p.type) is None
        )
        launch = self.derived_launch()
        found = filled(buffers, body, frozenset((*self.sizes, *(p.name for p in info.params))))
        for s in found.sizes:
            self.sizes.setdefault(s.name, s)
        for scalar in scalars:  # what the launcher computes is no free size
            if scalar.name in self.sizes and len(scalar.values) == 1 and scalar.values[0] != scalar.name:
                self.sizes[scalar.name] = DerivedSize(scalar.name, scalar.values[0])
        return DerivedCase(
            info, found.buffers, tuple(self.sizes.values()), scalars, launch,
            tuple(DerivedInstance(i.args) for i in self.instances),
            symbols=body.symbols if body else (), roles=body.roles if body else {},
            lowered=body.lowered if body else None,
        )  # fmt: skip

    def size(self, name: str) -> None:
        if name in self.sizes:
            return
        same = next(
            (s.name for s in self.sizes.values() if stem(s.name) == stem(name) and not isinstance(s.values, str)), None
        )
        if same is not None:
            self.sizes[name] = DerivedSize(name, same, "TODO check: taken to be the same by its name")
        else:
            self.sizes[name] = DerivedSize(name, by_name(name))

    def sizes_of(self, text: str) -> None:
        """Every free name of an expression that is no template parameter becomes a size."""
        templates = {p.name for p in self.info.template_params}
        for name in sorted(expressions.names_in(text) - templates):
            if scalar_name(name) is None:
                self.size(name)

    def buffer(self, name: str, ctype: str) -> DerivedBuffer:
        target = normalise(pointee(ctype) or "")
        templates = {p.name for p in self.info.template_params if p.kind == "type"}
        dtype = target if target in templates else scalar_name(target)
        if dtype is None and target != "void" and self.body is not None:
            dtype = self.body.types.get(name)  # a vector type
        if dtype in (None, "void"):
            said = self.body.types.get(name) if self.body else None
            dtype = pointee_of_void(self.info, name, said, self.values, self.text)
        shape = commented_shape(self.comments.get(name, ""))
        strides: tuple[str, ...] | None = None
        if shape is not None:
            for s in shape:
                self.sizes_of(s)
            stride = self.stride_parameter(name)
            if stride and len(shape) > 1:
                inner = [" * ".join(f"({s})" if " " in s else s for s in shape[i + 1 :]) for i in range(len(shape) - 1)]
                strides = (stride, *inner[1:], "1")
                self.strides[stride] = inner[0]
        seen = self.body.roles.get(name) if self.body else None
        const = is_const_pointee(ctype)
        role = "in" if const else seen or ("in" if self.body else "out")
        return DerivedBuffer(
            name, ctype, dtype, shape, role, strides=strides,
            role_is_guess=seen is None and not const and self.body is None,
            optional=bool(self.body and name in self.body.optional),
            shape_from="from the comment beside it" if shape is not None else self.comments.get(name, ""),
        )  # fmt: skip

    def stride_parameter(self, buffer: str) -> str | None:
        """The parameter that says how far the rows of a buffer are apart, by its name."""
        names = {p.name for p in self.info.params}
        return next((s for s in (f"{buffer}_stride", f"{buffer}_row_stride", f"stride_{buffer}") if s in names), None)

    def scalar(self, number: int, name: str, ctype: str) -> DerivedScalar:
        kind = scalar_name(normalise(ctype))
        if kind == "bool":
            return DerivedScalar(name, ctype, ("false", "true"))
        if kind in ("f16", "bf16", "f32", "f64"):
            return DerivedScalar(name, ctype, (float_by_name(name),), "a guess by its name", True)
        if name in self.strides:
            inner = self.strides[name]
            check = "TODO check: the distance of rows, taken from its name"
            return DerivedScalar(name, ctype, (inner, f"{inner} + 8"), check, True)
        if kind is None:
            return DerivedScalar(name, ctype, ())
        if self.launch is not None:
            text = translated(self.launch.args[number])
            if text is not None:
                self.sizes_of(text)
                return DerivedScalar(name, ctype, (text,))
        self.size(name)
        return DerivedScalar(name, ctype, (name,))

    def derived_launch(self) -> DerivedLaunch:
        launch = self.launch
        if launch is None:
            return DerivedLaunch(None, None)
        open_: dict[str, str] = {}
        parts: list[tuple[str, ...] | None] = []
        for key, texts in (("grid", _dims(launch.grid)), ("block", _dims(launch.block))):
            found = [translated(t) for t in texts]
            dims = tuple(f for f in found if f is not None)
            if len(dims) == len(found):
                for f in dims:
                    self.sizes_of(f)
                parts.append(dims)
            else:
                open_[key] = "of " + " ".join(", ".join(texts).split())
                parts.append(None)
        smem = translated(launch.smem or "0")
        if smem is None:
            open_["smem"] = f"of {launch.smem}"
        else:
            self.sizes_of(smem)
        cluster = tuple(translated(c) or "TODO" for c in launch.cluster)
        return DerivedLaunch(
            parts[0], parts[1], smem, launch.cooperative, cluster, launch.pdl, launch.host_function, launch.span, open_
        )


def _opaque(launch: Launch) -> int:
    """How many launch expressions have no meaning in a case."""
    return sum(translated(t) is None for t in (*_dims(launch.grid), *_dims(launch.block), launch.smem or "0"))


def _dims(text: str) -> list[str]:
    m = re.fullmatch(r"\s*dim3\s*[({](.*)[)}]\s*", text, re.S)
    if not m:
        return [text]
    try:
        return list(split_arguments(m.group(1)))
    except ValueError:  # a comparison, whose `<` is no bracket
        return [text]
