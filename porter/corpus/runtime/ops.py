"""Torch-facing functions of corpus kernels: a table from what a call looks like to a launcher that is ready.

One declaration makes a Python function, the custom op `torch.ops.porter.NAME`, its fake implementation and its
implementation on the CPU (the fallback).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from porter.corpus.library import add_old_names
from porter.corpus.runtime import overlap
from porter.corpus.runtime.device import Device, device_of, one_kind_of_device
from porter.corpus.runtime.specialisation import Specialisation, loaded

Launcher = Callable[..., Any]
# A kernel, and what makes a launcher (same arguments as the op) of its launch function; None launches nothing.
Plan = tuple[Specialisation, Callable[[Callable[..., None]], Launcher]] | None

OPS: dict[str, Op] = {}
_MAX_ENTRIES = 1 << 14  # entries of an op's table; a server sees a few thousand shapes, a fuzzer any number


class Unsupported(ValueError):
    """Raised by a plan for right arguments that no specialisation takes: the fallback runs."""


class Op:
    """One operation of the corpus.

    Three tables hold launchers. `fast` is looked up first, by a small key: the bytes of one tensor, and numbers that
    are constants of the kernel. All else (dtypes, shapes, strides, alignment, devices, None) the compiled function
    checks anyway, so that an entry refuses the calls that it is not for. Once calls of different kinds have met under a
    key, it leads to `by_shape`, looked up by all shapes, and from there, if need be, to `exact`, by everything a plan
    can see. New and refused calls go to `exact` at once. Only `exact` holds fallbacks, which refuse nothing, and
    kernels for badly aligned tensors, which would take well aligned ones too.
    """

    def __init__(
        self, schema: str, plan: Callable[..., Plan], key: str, fallback: Launcher, in_place: Sequence[str] = ()
    ):  # fmt: skip
        self.name = schema.partition("(")[0]
        self.schema = schema
        self.plan = plan
        self.key = key
        self.fallback = fallback
        self.signature = _signature(schema)
        self.written = _written(schema)
        self.in_place = tuple(in_place)
        self._tensors = [i for i, p in enumerate(self.signature.parameters.values()) if "Tensor" in p.annotation]
        self.fast: dict[Any, Launcher] = {}
        self.by_shape: dict[Any, Launcher] = {}
        self.exact: dict[Any, tuple[Launcher, bool]] = {}

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, defaults filled in; raises TypeError as a call of the op would."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args

    def launcher(self, device: Device, args: tuple[Any, ...]) -> Launcher:
        """Plan for these arguments, compile (or take from the cache) and load. Raises ValueError for wrong ones."""
        return self._launcher(device, args)[0]

    def slow_path(self, key: Any, args: tuple[Any, ...]) -> None:
        """A call that `fast` has no entry for, or whose entry refused it."""
        if _fake(args):
            getattr(_torch().ops.porter, self.name)(*args)
            return
        self.refuse_overlap(args)
        launcher, cacheable = self._lookup(args)
        if key in self.fast:  # it refused
            if launcher is not self.fallback:  # which is so slow, on the CPU say, that the others need not pay for it
                self.fast[key] = self._call_by_shape
        elif cacheable:
            _bounded(self.fast)[key] = launcher
        launcher(*args)

    def refuse_overlap(self, args: tuple[Any, ...]) -> None:
        """Raise ValueError if a tensor that the op writes shares memory with another one (see runtime.overlap).

        Launch functions find that out for themselves; here it gets its message, and fallbacks are kept from it.
        """
        overlap.refuse(self.name, list(zip(self.signature.parameters, args, strict=True)), self.written, self.in_place)

    def on_cpu(self, *args: Any, **kwargs: Any) -> None:
        """The op on the CPU: its fallback."""
        bound = self.bind(args, kwargs)
        self.refuse_overlap(bound)
        self.fallback(*bound)

    def clear(self) -> None:
        """Empty the tables, so that the next calls plan anew (after a change of the environment or of the tuning)."""
        for table in (self.fast, self.by_shape, self.exact):
            table.clear()

    def _call_by_shape(self, *args: Any) -> None:
        parts = _hashable(args)
        for i in self._tensors:
            if args[i] is not None:
                parts[i] = args[i].shape
        key = tuple(parts)
        launcher = self.by_shape.get(key)
        if launcher is None:
            found, cacheable = self._lookup(args)
            launcher = _bounded(self.by_shape)[key] = found if cacheable else self._call_exact
        try:
            launcher(*args)
            return
        except _REFUSALS:
            if launcher == self._call_exact:
                raise
        self.refuse_overlap(args)
        self.by_shape[key] = self._call_exact
        self._call_exact(*args)

    def _call_exact(self, *args: Any) -> None:
        launcher = self._lookup(args)[0]
        if launcher is self.fallback:
            self.refuse_overlap(args)
        try:
            launcher(*args)
        except ValueError:
            self.refuse_overlap(args)
            raise

    def _lookup(self, args: tuple[Any, ...]) -> tuple[Launcher, bool]:
        """The launcher of exactly these arguments, and whether `fast` and `by_shape` may hold it."""
        parts = _hashable(args)
        for i in self._tensors:
            t = args[i]
            if t is not None:
                parts[i] = t.shape, t.stride(), t.dtype, t.get_device(), t.data_ptr() % 32
        key = tuple(parts)
        found = self.exact.get(key)
        if found is None:
            where = args[self._tensors[0]]
            if where.is_cuda and enabled(self.name):
                device = device_of(where)
                launcher, kernel = self._launcher(device, args)
                best = kernel is not None and one_kind_of_device() and kernel == self._best_aligned(device, args)
                found = launcher, best
            else:
                found = self.fallback, False
            _bounded(self.exact)[key] = found
        return found

    def _launcher(self, device: Device, args: tuple[Any, ...]) -> tuple[Launcher, Specialisation | None]:
        try:
            plan = self.plan(device, *args)
        except Unsupported:
            return self.fallback, None
        if plan is None:
            return _no_launch, None
        kernel, bind = plan
        return bind(loaded(kernel, device.arch)), kernel

    def _best_aligned(self, device: Device, args: tuple[Any, ...]) -> Specialisation | None:
        """The kernel for arguments like these at addresses and strides that allow the widest accesses."""
        try:
            plan = self.plan(device, *[_as_if_aligned(a) if hasattr(a, "data_ptr") else a for a in args])
        except ValueError:
            return None
        return plan[0] if plan else None


def op(
    schema: str, *, key: str, fallback: Launcher, in_place: Sequence[str] = ()
) -> Callable[[Callable[..., Plan]], Any]:  # fmt: skip
    """Declare an op. `schema` is torch's (`"rms_norm(Tensor(a!) result, Tensor input, ...) -> ()"`).

    The decorated function is the plan: of a Device and the op's arguments, it checks them (ValueError), chooses the
    specialisation and returns it with what makes a launcher of its launch function. It keeps none of the tensors.
    `key`: a Python expression of the op's arguments, all that the plan depends on except what the compiled function
    checks (see Op). `fallback` does the same with torch's own operators, on any device.
    Tensors that the schema marks as written share no memory with others, except that the first of them may be exactly
    one of those named by `in_place`; the kernel's `arguments()` say the same of its own (`written`).
    """

    def declare(plan: Callable[..., Plan]) -> Any:
        new = Op(schema, plan, key, fallback, in_place)
        OPS[new.name] = new
        _register(new, _function(new, plan, traced=False))
        return _function(new, plan, traced=True)

    return declare


def compact_key(size: str, usual: Mapping[str, Any]) -> str:
    """A key that is `size` alone where the expressions in `usual` have the values given there, as in most calls: a
    number is looked up in half the time of a tuple."""
    same = [f"{e}" if v is True else f"not ({e})" if v is False else f"{e} == {v!r}" for e, v in usual.items()]
    return f"{size} if {' and '.join(same)} else ({size}, {', '.join(usual)})"


def enabled(name: str) -> bool:
    """False when PORTER_DISABLE names the op ("rms_norm,qk_norm", or "all"): its fallback runs then."""
    off = os.environ.get("PORTER_DISABLE", "")
    return not off or ("all" not in (names := [n.strip() for n in off.split(",")]) and name not in names)


def clear_plans() -> None:
    """Empty the tables of all ops; call it after changing PORTER_DISABLE, PORTER_PDL or the tuning table."""
    for each in OPS.values():
        each.clear()


def _hashable(args: tuple[Any, ...]) -> list[Any]:
    """The arguments, lists of numbers as tuples."""
    return [tuple(a) if isinstance(a, list) else a for a in args]


def _bounded(table: dict[Any, Any]) -> dict[Any, Any]:
    if len(table) >= _MAX_ENTRIES:
        table.clear()
    return table


def _as_if_aligned(t: Any) -> Any:
    """A tensor without memory like t, at address 0, with strides that are multiples of 16 bytes, unless t is contiguous
    (which is then the usual way)."""
    torch, strides = _torch(), t.stride()
    if not t.is_contiguous():
        unit = max(1, 16 // t.element_size())
        strides = [n if n <= 1 else -(-n // unit) * unit for n in strides]
    return torch.empty_strided(t.shape, strides, dtype=t.dtype, device="meta")


def _fake(args: tuple[Any, ...]) -> bool:
    """Whether a tensor has no memory: none of these may reach a kernel."""
    subclasses = sys.modules.get("torch._subclasses.fake_tensor")
    return subclasses is not None and any(isinstance(a, subclasses.FakeTensor) for a in args)


def _no_launch(*_: Any) -> None:
    """Launches nothing: there are no rows."""


# The function of an op has the op's own parameters, so that Python itself fills in defaults and keywords: binding them
# by hand takes twenty times as long as all the rest. It looks up and launches in one `try`, and holds its key's
# expression, because every Python call costs a hundredth of a launch.
_FUNCTION = """\
def {name}({header}):
{compiling}
    try:
        return _fast[{key}](
            {names}
        )
    except _REFUSALS:
        pass  # out of the handler first: errors of the next line are not about this one
    _slow(({key}), ({names},))
"""
# The first is true when Dynamo traces it, the second under torch.export; torch.compiler.is_compiling() is both, in five
# times the time.
_COMPILING = """\
    if _is_traced() or _torch_compiler._is_compiling_flag:
        return _custom_op({names})"""
_REFUSALS = (
    KeyError,
    ValueError,
    TypeError,
    RuntimeError,
)  # no entry, or what a compiled function raises for arguments


def _function(new: Op, plan: Callable[..., Plan], traced: bool) -> Any:
    """The Python function of an op; `traced`: it becomes the custom op where torch.compile traces it."""
    import torch

    parameters = new.signature.parameters.values()
    header = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters)
    names = ", ".join(new.signature.parameters)
    scope: dict[str, Any] = {
        "_is_traced": torch.compiler.is_dynamo_compiling,
        "_torch_compiler": torch.compiler,
        "_custom_op": lambda *args: getattr(torch.ops.porter, new.name)(*args),
        "_fast": new.fast,
        "_REFUSALS": _REFUSALS,
        "_slow": new.slow_path,
    }  # underscores: an op may have a parameter called `key`
    compiling = _COMPILING.format(names=names) if traced else ""
    exec(_FUNCTION.format(name=new.name, header=header, names=names, key=new.key, compiling=compiling), scope)
    call = scope[new.name]
    functools.update_wrapper(call, plan)
    del call.__wrapped__  # the plan has other parameters
    call.__name__ = call.__qualname__ = new.name
    call.op = new
    return call


def _signature(schema: str) -> inspect.Signature:
    """The Python signature of a torch schema."""
    import torch

    return inspect.Signature([
        inspect.Parameter(
            a.name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=a.default_value if a.has_default_value() else inspect.Parameter.empty, annotation=str(a.type),
        )
        for a in torch._C.parse_schema(schema).arguments
    ])  # fmt: skip


def _written(schema: str) -> tuple[str, ...]:
    """The arguments that a torch schema marks as written."""
    import torch

    parsed = torch._C.parse_schema(schema).arguments
    return tuple(a.name for a in parsed if a.alias_info is not None and a.alias_info.is_write)


def _torch() -> Any:
    return importlib.import_module("torch")


_LIBRARY: Any = None


def _register(new: Op, launch: Callable[..., None]) -> None:
    global _LIBRARY
    import torch

    if _LIBRARY is None:
        _LIBRARY = torch.library.Library("porter", "FRAGMENT")
        with contextlib.suppress(ImportError):  # where CuTeDSL is not installed
            importlib.import_module("tvm_ffi")  # takes 20 ms, which would be half of a process's first launch
    _LIBRARY.define(new.schema)
    _LIBRARY.impl(new.name, launch, "CUDA")
    _LIBRARY.impl(new.name, new.on_cpu, "CPU")
    torch.library.register_fake(f"porter::{new.name}", lambda *args, **kwargs: None, lib=_LIBRARY)


add_old_names(__name__)
