"""Stand-ins that are torch.Tensors, for ports that import torch: every function of torch is seen before it runs.

A stand-in is a tensor without storage that says it is on a GPU. Functions of torch meet a mode first: allocations give
stand-ins, questions about dtypes are answered, anything else is refused by name. Operators that reach the dispatcher
otherwise are refused there. Runs in the fenced child that imports the port, and only where that has loaded torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from porter.corpus.runtime.dtypes import torch_type
from porter.verify.checks.entry import standins
from porter.verify.checks.entry.record import Record
from porter.verify.checks.entry.standins import StandInFacts, allocate, asked, facts_of, refused

_PLAIN = ("promote_types", "device", "finfo", "iinfo", "__get__")  # of what is no tensor
_CAPABILITY = (9, 0)


def _function(cls: type, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
    return _called(function, args, kwargs or {})


def _dispatched(cls: type, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
    raise refused(str(function), next((a for a in args if facts_of(a)), None))


def _make_class() -> Any:
    def getattribute(self: Any, name: str) -> Any:
        if name in ("__torch_function__", "__torch_dispatch__"):  # torch itself asks for them
            return getattr(type(self), name)
        return type(self) if name == "__class__" else asked(self, name)

    members: dict[str, Any] = {"__module__": "torch", "__getattribute__": getattribute}
    standins.refuses_specials(members)
    members |= {
        "__len__": standins.length,
        "__getitem__": lambda self, index: standins.viewed(self, "__getitem__", index),
        "__torch_function__": classmethod(_function),
        "__torch_dispatch__": classmethod(_dispatched),
    }
    return type("Tensor", (torch.Tensor,), members)


_Tensor = _make_class()


class TorchKind:
    """Stand-ins that are torch.Tensors, with torch's own dtypes, devices and sizes."""

    def tensor(self, facts: StandInFacts) -> Any:
        with torch._C.DisableTorchFunction():
            return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
                _Tensor, facts.view.shape, strides=facts.view.strides, dtype=torch_type(facts.dtype),
                device=torch.device(facts.device), storage_offset=0,
            )  # fmt: skip

    def dtype(self, name: str) -> Any:
        return torch_type(name)

    def device(self, text: str) -> Any:
        return torch.device(text)

    def shape(self, lengths: Sequence[int]) -> Any:
        return torch.Size(lengths)


# ---------------------------------------------------------------- functions of torch


def _empty(*size: Any, dtype: Any = None, device: Any = None, fill: float | None = None, **_: Any) -> Any:
    return allocate(standins.views.sizes_of(size), dtype or torch.get_default_dtype(), device or "cpu", fill)


def _like(other: Any, dtype: Any = None, device: Any = None, fill: float | None = None, **_: Any) -> Any:
    facts = facts_of(other)
    if facts is None:
        raise refused("an allocation like something that is not an operand")
    strides = _dense(facts)
    return allocate(facts.view.shape, dtype or facts.dtype, device or facts.device, fill, strides)


def _dense(facts: StandInFacts) -> tuple[int, ...]:
    """torch.preserve_format: the order of the dimensions stays, gaps go."""
    order = sorted(range(len(facts.view.shape)), key=lambda i: -facts.view.strides[i])
    strides, step = [0] * len(order), 1
    for i in reversed(order):
        strides[i], step = step, step * max(facts.view.shape[i], 1)
    return tuple(strides)


def _strided(size: Any, stride: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    return allocate(size, dtype or torch.get_default_dtype(), device or "cpu", None, tuple(stride))


_ALLOCATIONS: dict[str, Callable[..., Any]] = {
    "empty": _empty,
    "empty_like": _like,
    "empty_strided": _strided,
    "zeros": lambda *size, **k: _empty(*size, fill=0.0, **k),
    "zeros_like": lambda other, **k: _like(other, fill=0.0, **k),
    "full": lambda size, fill_value, **k: _empty(size, fill=float(fill_value), **k),
    "full_like": lambda other, fill_value, **k: _like(other, fill=float(fill_value), **k),
}


def _called(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    name = getattr(function, "__name__", str(function))
    tensors = [a for a in (*args, *kwargs.values()) if facts_of(a)]
    if name in _ALLOCATIONS and getattr(torch, name, None) is function:
        return _ALLOCATIONS[name](*args, **kwargs)
    if name in standins.VIEWS and tensors:
        return standins.viewed(*args[:1], name, *args[1:], **kwargs)
    if name in _PLAIN and not tensors:
        with torch._C.DisableTorchFunction():
            return function(*args, **kwargs)
    raise refused(f"torch.{name}", tensors[0] if tensors else None)


class _Functions(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _called(function, args, kwargs or {})


class _Operators(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise refused(str(function), next((a for a in args if facts_of(a)), None))


# ---------------------------------------------------------------- torch.cuda where there is no GPU


class _Stream:
    def __init__(self, handle: int):
        self.cuda_stream = handle


class _DeviceProperties:
    @property
    def multi_processor_count(self) -> int:
        return int(os.environ.get("PORTER_SM_COUNT") or 132)

    def __getattr__(self, name: str) -> Any:
        raise refused(f".{name} of the device's properties")


def _refusing(name: str) -> Callable[..., Any]:
    def function(*_: Any, **__: Any) -> Any:
        raise refused(name)

    return function


@contextmanager
def torch_seen(record: Record, device: str) -> Iterator[None]:
    """While this lasts, functions of torch are seen, and torch.cuda says what the stand-ins say."""
    index = int(device.rpartition(":")[2])
    stand_ins: dict[str, Any] = {
        "current_stream": lambda device=None: _Stream(record.stream),
        "current_device": lambda: index,
        "device": lambda device=None: nullcontext(),
        "is_available": lambda: True,
        "is_current_stream_capturing": lambda: False,
        "get_device_capability": lambda device=None: _CAPABILITY,
        "get_device_properties": lambda device=None: _DeviceProperties(),
        "Stream": _refusing("torch.cuda.Stream()"),
        "synchronize": _refusing("torch.cuda.synchronize()"),
    }
    originals = {name: getattr(torch.cuda, name) for name in stand_ins}
    with ExitStack() as stack:
        for name, value in stand_ins.items():
            setattr(torch.cuda, name, value)
            stack.callback(setattr, torch.cuda, name, originals[name])
        stack.enter_context(_Operators())
        stack.enter_context(_Functions())
        yield
