"""Torch-facing functions of corpus kernels: a table from what a call looks like to a launcher that is ready.

One declaration makes a Python function, the custom op `torch.ops.porter.NAME`, its fake implementation and its
implementation on the CPU (the fallback).
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any

from porter.corpus.runtime.device import Device, device_of
from porter.corpus.runtime.specialisation import Specialisation, loaded

Launcher = Callable[..., Any]
# A kernel, and what makes a launcher (same arguments as the op) of its launch function; None launches nothing.
Plan = tuple[Specialisation, Callable[[Callable[..., None]], Launcher]] | None

OPS: dict[str, Op] = {}
_MOST_READY = 1 << 14  # entries of an op's table; a server sees a few thousand shapes, a fuzzer any number


class Unsupported(ValueError):
    """Raised by a plan for right arguments that no specialisation takes: the fallback runs."""


class Op:
    """One operation of the corpus.

    Calls go `key(*args)` -> launcher -> compiled function, which checks its tensors itself. Only a new key, and a call
    that the compiled function refuses (an unaligned address, say), reach `plan`.
    """

    def __init__(self, schema: str, plan: Callable[..., Plan], key: Callable[..., Any], fallback: Launcher):
        self.name = schema.partition("(")[0]
        self.schema = schema
        self.plan = plan
        self.key = key
        self.fallback = fallback
        self.signature = inspect.signature(key)
        self.ready: dict[Any, Launcher] = {}
        self._exact: dict[Any, Launcher] = {}

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, defaults filled in; raises TypeError as a call of the op would."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args

    def launcher(self, device: Device, args: tuple[Any, ...]) -> Launcher:
        """Plan for these arguments, compile (or take from the cache) and load. Raises ValueError for wrong ones."""
        try:
            plan = self.plan(device, *args)
        except Unsupported:
            return self.fallback
        if plan is None:
            return _nothing
        kernel, bind = plan
        return bind(loaded(kernel, device.arch))

    def prepare(self, args: tuple[Any, ...]) -> Launcher:
        """The launcher for calls like this one with aligned addresses, put into the table."""
        tensors = _tensors(args)
        use = self.fallback
        if tensors[0].is_cuda and enabled(self.name):
            use = self.launcher(device_of(tensors[0]), tuple(_aligned_like(a) for a in args))
        if len(self.ready) >= _MOST_READY:
            self.ready.clear()
        self.ready[self.key(*args)] = use
        return use

    def refused(self, args: tuple[Any, ...]) -> None:
        """A call that the launcher of its key refused: same shapes, but other strides or alignment, or an error."""
        tensors = _tensors(args)
        key = (self.key(*args), *((t.stride(), t.dtype, t.data_ptr() % 32) for t in tensors))
        use = self._exact.get(key)
        if use is None:
            use = self.launcher(device_of(tensors[0]), args)
            if len(self._exact) >= _MOST_READY:
                self._exact.clear()
            self._exact[key] = use
        use(*args)

    def forget(self) -> None:
        """Empty the tables, so that the next calls plan anew (after a change of the environment or of the tuning)."""
        self.ready.clear()
        self._exact.clear()


def op(schema: str, *, key: Callable[..., Any], fallback: Launcher) -> Callable[[Callable[..., Plan]], Any]:
    """Declare an op. `schema` is torch's (`"rms_norm(Tensor(a!) result, Tensor input, ...) -> ()"`).

    The decorated function is the plan: of a Device and the op's arguments, it checks them (ValueError), chooses the
    specialisation and returns it with what makes a launcher of its launch function. `key` takes the op's arguments,
    with their defaults, and returns everything that the plan depends on except strides and alignment that the compiled
    function checks. The plan sees tensors without memory or, when the compiled function refused the call, the
    real ones; it keeps none of them. `fallback` does the same with torch's own operators, on any device.
    """

    def declare(plan: Callable[..., Plan]) -> Any:
        made = Op(schema, plan, key, fallback)
        OPS[made.name] = made
        call = _function(made, plan)
        _register(made, call)
        return call

    return declare


def enabled(name: str) -> bool:
    """False when PORTER_DISABLE names the op ("rms_norm,qk_norm", or "all"): its fallback runs then."""
    off = os.environ.get("PORTER_DISABLE", "")
    return not off or ("all" not in (names := [n.strip() for n in off.split(",")]) and name not in names)


def forget_plans() -> None:
    """Empty the tables of all ops; call it after changing PORTER_DISABLE, PORTER_PDL or the tuning table."""
    for each in OPS.values():
        each.forget()


def _tensors(args: tuple[Any, ...]) -> list[Any]:
    return [a for a in args if hasattr(a, "data_ptr")]


def _aligned_like(a: Any) -> Any:
    """A tensor without memory, at address 0; anything else as it is."""
    if not hasattr(a, "data_ptr"):
        return a
    import torch

    return torch.empty_strided(a.shape, a.stride(), dtype=a.dtype, device="meta")


def _nothing(*_: Any) -> None:
    """Launches nothing: there are no rows."""


# The function of an op has the op's own parameters, so that Python itself fills in defaults and keywords: binding them
# by hand takes twenty times as long as all the rest.
_FUNCTION = """\
def {name}({header}):
    if _is_compiling():
        return _custom_op({names})
    _launch = _ready.get(_key({names}))
    if _launch is None:
        _launch = _prepare(({names},))
    try:
        _launch({names})
    except (ValueError, TypeError, RuntimeError):
        if _launch is _fallback:
            raise
        _refused(({names},))
"""


def _function(made: Op, plan: Callable[..., Plan]) -> Any:
    """The Python function of an op. It costs a key, a look-up and three Python calls."""
    import torch

    parameters = made.signature.parameters.values()
    header = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters)
    names = ", ".join(made.signature.parameters)
    scope: dict[str, Any] = {
        "_is_compiling": torch.compiler.is_compiling,
        "_custom_op": lambda *args: getattr(torch.ops.porter, made.name)(*args),
        "_ready": made.ready,
        "_key": made.key,
        "_prepare": made.prepare,
        "_refused": made.refused,
        "_fallback": made.fallback,
    }  # fmt: skip  (underscores: an op may have a parameter called `key`)
    exec(_FUNCTION.format(name=made.name, header=header, names=names), scope)
    call = scope[made.name]
    functools.update_wrapper(call, plan)
    del call.__wrapped__  # the plan has other parameters
    call.__name__ = call.__qualname__ = made.name
    call.op = made
    return call


_LIBRARY: Any = None


def _register(made: Op, call: Callable[..., None]) -> None:
    global _LIBRARY
    import torch

    if _LIBRARY is None:
        _LIBRARY = torch.library.Library("porter", "FRAGMENT")
    _LIBRARY.define(made.schema)
    _LIBRARY.impl(made.name, call, "CUDA")
    _LIBRARY.impl(made.name, made.fallback, "CPU")
    torch.library.register_fake(f"porter::{made.name}", lambda *args, **kwargs: None, lib=_LIBRARY)
