"""What a torch-facing function has to launch in a situation: the instance, the arguments, or nothing at all."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from porter.case import expressions
from porter.case.expressions import ExprError, Value
from porter.case.reader import Case, Point
from porter.cxx.types import normalise, pointee, scalar_name
from porter.emit.spelling import parameter
from porter.ir import SCALAR_BYTES
from porter.model import KernelInfo
from porter.verify.checks.entry import views
from porter.verify.checks.entry.functions import TorchFacing
from porter.verify.checks.entry.situations import Situation
from porter.verify.checks.entry.views import View

_START = 0x7E << 40


@dataclass(frozen=True)
class GivenTensor:
    """A tensor of the call: what the stand-in says."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start: int

    @property
    def address(self) -> int:
        return self.start if math.prod(self.shape) else 0


@dataclass(frozen=True)
class ExpectedLaunch:
    """The launch of an instance at a point. `arguments`: a buffer's name, or (value, scalar name of its type)."""

    number: int
    values: Mapping[str, Value]
    point: Point
    arguments: tuple[tuple[str, str | tuple[Value, str]], ...]  # of the kernel's parameters, in order


@dataclass(frozen=True)
class EntryCall:
    """A call of a function in a situation. `wanted` None: no instance is for it, so the function has to raise."""

    function: TorchFacing
    situation: Situation
    given: Mapping[str, GivenTensor]
    arguments: Mapping[str, Mapping[str, Any]]
    wanted: ExpectedLaunch | None
    device: str
    sm_count: int

    def question(self) -> dict[str, Any]:
        """The call as the child is asked for it."""
        tensors = [
            {"name": g.name, "dtype": g.dtype, "view": [g.shape, g.strides], "address": g.start, "device": self.device}
            for g in self.given.values()
        ]  # fmt: skip
        config = None
        if self.wanted is not None:
            names = {**self.wanted.point.names(self.wanted.values), "sm_count": self.sm_count}
            config = {**{parameter(k): v for k, v in names.items()}, **names}
        return {
            "function": self.function.name, "arguments": self.arguments, "tensors": tensors, "device": self.device,
            "sm_count": self.sm_count, "config": config,
        }  # fmt: skip


def call_in(
    situation: Situation,
    case: Case,
    info: KernelInfo,
    instances: Sequence[Mapping[str, Value]],
    function: TorchFacing,
    device: str = "cuda:0",
    sm_count: int = 132,
) -> EntryCall | None:
    """The call of a function in a situation; None where it cannot be put to this function.

    `instances`: the template values of all instances of the case, in order.
    """
    values = instances[situation.instance]
    point = situation.point(case, values)
    if point is None:
        return None
    given: dict[str, GivenTensor] = {}
    noise = zlib.crc32(repr(situation).encode())  # addresses show no pattern that a function could go by
    for at, buffer in enumerate(case.buffers):
        name = buffer.name
        shape, strides = point.shapes[name], point.strides[name]
        strides = strides if buffer.strides else views.contiguous_strides(shape)
        if not function.takes(name):
            if not views.is_contiguous(View(shape, strides)):
                return None  # what the function allocates is for it to say
            continue
        if name in point.null:
            continue
        other = situation.operands.get(name)
        if other is not None and other.shape is not None:
            shape, strides = other.shape, strides if buffer.strides else views.contiguous_strides(other.shape)
        strides = other.strides if other is not None and other.strides is not None else strides
        dtype = other.dtype if other is not None and other.dtype else buffer.dtype_at(values)
        start = (
            _START + ((at + noise) % 61 + 1 << 32) + 256 * ((noise >> at % 13) % 4093) + (other.offset if other else 0)
        )
        given[name] = GivenTensor(name, dtype, shape, strides, start)
    if not set(situation.operands) <= set(given):
        return None
    places = {name: n for n, name in enumerate(given)}
    tables: dict[str, Mapping[str, Value]] = {"scalar": point.scalars, "size": point.sizes, "template": values}
    arguments: dict[str, dict[str, Any]] = {}
    for p in function.parameters:
        if p.kind == "buffer":
            arguments[p.name] = {"tensor": places[p.operand]} if p.operand in places else {"null": True}
        else:
            arguments[p.name] = {"value": tables[p.kind][p.operand]}
    wanted = _choose(situation, case, info, instances, function, given)
    if wanted is not None and not _takes_its_scalars(function, wanted, arguments):
        return None
    return EntryCall(function, situation, given, arguments, wanted, device, sm_count)


def _takes_its_scalars(
    function: TorchFacing, wanted: ExpectedLaunch, arguments: Mapping[str, Mapping[str, Any]]
) -> bool:
    """Whether the scalars and sizes that are passed are those of the instance that is wanted."""
    tables: dict[str, Mapping[str, Value]] = {"scalar": wanted.point.scalars, "size": wanted.point.sizes}
    asked = [p for p in function.parameters if p.kind in tables]
    return all(arguments[p.name]["value"] == tables[p.kind][p.operand] for p in asked)


def _choose(
    situation: Situation,
    case: Case,
    info: KernelInfo,
    instances: Sequence[Mapping[str, Value]],
    function: TorchFacing,
    given: Mapping[str, GivenTensor],
) -> ExpectedLaunch | None:
    """The first instance of the case whose operands these are and whose `when` holds for them."""

    def aligned(buffer: str, nbytes: int) -> bool:
        return buffer not in given or given[buffer].address % nbytes == 0

    own = instances[situation.instance]
    flags = [p.operand for p in function.parameters if p.kind == "template"]
    for number, (instance, values) in enumerate(zip(case.instances, instances, strict=True)):
        if any(values.get(n) != own.get(n) for n in flags):
            continue
        if any(n in situation.sizes and situation.sizes[n] != v for n, v in values.items()):
            continue
        point = situation.point(case, values)
        if point is None or not all(_is(g, case, point, values) for g in given.values()):
            continue
        try:
            if instance.when and not expressions.evaluate(instance.when, point.names(values), aligned=aligned):
                continue
        except ExprError:
            continue
        return ExpectedLaunch(number, values, point, tuple(_arguments(case, info, point, values)))
    return None


def _is(given: GivenTensor, case: Case, point: Point, values: Mapping[str, Value]) -> bool:
    """Whether a tensor is what an instance takes at a point."""
    buffer = case.buffer(given.name)
    shape = point.shapes[given.name]
    dtype = buffer.dtype_at(values)
    bytes_ = {given.dtype, dtype} <= {"u8", "bool"}  # `runtime.check` takes either for the other
    if (given.dtype != dtype and not bytes_) or given.shape != shape:
        return False
    if buffer.strides is None:
        return views.is_contiguous(View(given.shape, given.strides))
    wanted = zip(shape, given.strides, point.strides[given.name], strict=True)
    return 0 in shape or all(have == want for length, have, want in wanted if length > 1)


def _arguments(case: Case, info: KernelInfo, point: Point, values: Mapping[str, Value]) -> Any:
    for p in info.params:
        if pointee(p.type) is not None:
            yield p.name, p.name
        else:
            dtype = scalar_name(p.type) or str(values.get(normalise(p.type), ""))
            yield p.name, (point.scalars[p.name], dtype if dtype in SCALAR_BYTES else "")
    yield from ((b.name, b.name) for b in sorted(case.buffers, key=lambda b: b.name) if b.symbol)
