"""What a call of a torch-facing function did: launches it asked for, uses of its tensors that nothing allows.

Runs in the fenced child that imports the port; the standard library and porter.corpus only.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from porter.corpus.runtime.dtypes import DType
from porter.corpus.runtime.kernel import Kernel
from porter.verify.checks.entry.standins import StandInFacts, facts_of

MOST = 8  # launches and refused uses that are kept of one call


class RefusedUse(RuntimeError):
    """The function did something that is not launching; what, is in the record."""


class Record:
    """The record of one call. `file`: the port, whose lines are named. `stream`: the handle of the current stream."""

    def __init__(self, file: str, stream: int):
        self.file = file
        self.stream = stream
        self.launches: list[dict[str, Any]] = []
        self.uses: list[dict[str, Any]] = []

    def use(self, what: str, tensor: str = "", **details: Any) -> None:
        """Note a use that the judge has to see."""
        if len(self.uses) < MOST:
            self.uses.append({"what": what, "tensor": tensor, "line": self.line(), **details})

    def refuse(self, what: str, tensor: str = "") -> RefusedUse:
        """Note a use that is never allowed; the exception to raise."""
        self.use(what, tensor)
        return RefusedUse(what)

    def line(self) -> int:
        """The port's line that is being run, 0 outside of it."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.file:
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return 0

    def launch(
        self,
        kernel: Kernel,
        constexprs: Mapping[str, Any],
        args: Sequence[Any],
        *,
        grid: Sequence[int],
        block: Sequence[int],
        smem_bytes: int = 0,
        stream: Any = None,
        device: Any = None,
    ) -> None:
        """In the place of `Kernel.launch`: takes and refuses what that does, and notes the launch."""
        if 0 in grid:
            return
        if len(args) != len(kernel.params):
            raise TypeError(f"{kernel.name} takes {len(kernel.params)} arguments, got {len(args)}")
        kernel._values(constexprs)
        found = []
        place = "" if device is None else _place(device)
        for is_pointer, parameter, value in zip(kernel._pointer, kernel.params, args, strict=True):
            facts = facts_of(value)
            if is_pointer and facts is not None:
                place = place or facts.device
                if not facts.device.startswith("cuda") or facts.device != place:
                    raise ValueError(
                        f"{kernel.name}: {parameter.name} is on {facts.device}, not on the launch's device"
                    )
                found.append({"address": facts.address, "tensor": facts.described()})
            else:
                declared = None if is_pointer else kernel.scalar(parameter, constexprs)
                found.append(_number(passed(value, declared), is_pointer))
        if len(self.launches) == MOST:
            raise RefusedUse("launches without end")
        handle = getattr(stream, "cuda_stream", stream)
        self.launches.append({
            "constexprs": {str(k): _number(v, False) if not isinstance(v, str) else v for k, v in constexprs.items()},
            "args": found, "grid": _whole(grid), "block": _whole(block), "smem": _whole([smem_bytes]),
            "stream": handle is None or handle == self.stream, "line": self.line(),
        })  # fmt: skip

    @contextmanager
    def in_place_of_launches(self) -> Iterator[None]:
        """While this lasts, kernels are not launched but noted."""
        record = self

        def launch(kernel: Kernel, *args: Any, **kwargs: Any) -> None:
            record.launch(kernel, *args, **kwargs)

        def prepare(kernel: Kernel, constexprs: Mapping[str, Any], device: Any = None) -> Any:
            def launcher(*_: Any) -> None:
                raise record.refuse("calls what KERNEL.prepare returned")

            return launcher

        def compile(kernel: Kernel, *_: Any, **__: Any) -> Any:
            raise record.refuse("calls KERNEL.compile()")

        others = {"launch": launch, "prepare": prepare, "compile": compile}
        kept = {name: getattr(Kernel, name) for name in others}
        try:
            for name, other in others.items():
                setattr(Kernel, name, other)
            yield
        finally:
            for name, own in kept.items():
                setattr(Kernel, name, own)


def returned(value: Any) -> list[Any]:
    """What a function returned, as facts of tensors and names of other types."""
    if value is None:
        return []
    facts = facts_of(value)
    if facts is not None:
        return [facts.described()]
    if type(value) in (tuple, list):
        return [one for item in value for one in returned(item)]
    return [type(value).__name__]


def passed(value: Any, declared: DType | None) -> Any:
    """What the launch function is given of a number: as much of it as the type holds that KERNEL declares for it."""
    if declared is None or type(value) not in (int, float):
        return value
    if declared.is_float:
        return _rounded(float(value), declared)
    if type(value) is not int or declared.name == "bool":
        return value
    held = value & ((1 << declared.bits) - 1)
    return held - (1 << declared.bits) if declared.name.startswith("i") and held >> (declared.bits - 1) else held


def _rounded(value: float, declared: DType) -> float:
    """The nearest number of a floating type, as a float."""
    if value - value != 0 or declared.name not in ("f16", "bf16", "f32"):
        return value
    try:
        if declared.name == "bf16":
            bits = int.from_bytes(struct.pack("<f", value), "little")
            bits += 0x7FFF + (bits >> 16 & 1)
            return float(struct.unpack("<f", (bits & 0xFFFF0000).to_bytes(4, "little"))[0])
        form = "<e" if declared.name == "f16" else "<f"
        return float(struct.unpack(form, struct.pack(form, value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _place(device: Any) -> str:
    text = f"cuda:{device}" if type(device) is int else str(device)
    return "cuda:0" if text == "cuda" else text


def _number(value: Any, is_pointer: bool) -> dict[str, Any]:
    if value is None and is_pointer:
        return {"address": 0}
    if type(value) is bool and not is_pointer:
        return {"bool": value}
    if type(value) is int:
        return {"address" if is_pointer else "int": str(value)}
    if type(value) is float and not is_pointer:
        return {"float": value.hex()}
    facts: StandInFacts | None = facts_of(value)
    return {"other": f"the tensor {facts.name}" if facts else f"a {type(value).__name__}"}


def _whole(values: Sequence[Any]) -> list[int | str]:
    return [v if type(v) is int and abs(v) < 1 << 62 else f"a {type(v).__name__}" for v in list(values)[:4]]
