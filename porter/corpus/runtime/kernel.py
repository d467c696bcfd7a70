"""How a ported kernel is compiled, cached and launched: the object that a port makes of its launch function."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from porter.corpus.runtime import arch as archs
from porter.corpus.runtime import dsl
from porter.corpus.runtime.cache import ArtifactCache, digest
from porter.corpus.runtime.dsl import FLAVOURS, Resources
from porter.corpus.runtime.dtypes import DTYPES, cutlass_type, dtype
from porter.corpus.runtime.sources import source_closure


@dataclass(frozen=True)
class Ptr:
    """A pointer parameter in global memory. `dtype`: a scalar name, the name of a type constexpr, or a scalar name for
    each value of the constexpr `by`.

    `align` (bytes) is what the compiler may assume of the address; default: the size of an element.
    """

    name: str
    dtype: str | Mapping[Any, str]
    align: int | None = None
    by: str = ""


@dataclass(frozen=True)
class Num:
    """A number parameter, passed by value. `dtype` as for `Ptr`."""

    name: str
    dtype: str | Mapping[Any, str]
    by: str = ""


@dataclass(frozen=True)
class Compiled:
    """One compiled specialisation: a folder of the cache."""

    folder: Path

    @cached_property
    def _meta(self) -> dict[str, Any]:
        return json.loads((self.folder / "meta.json").read_text())

    @cached_property
    def ptx(self) -> str:
        return (self.folder / "kernel.ptx").read_text()

    @cached_property
    def cubin(self) -> bytes:
        return (self.folder / "kernel.cubin").read_bytes()

    @property
    def arch(self) -> str:
        return self._meta["arch"]

    @property
    def entries(self) -> tuple[str, ...]:
        """Symbols of the kernels in the PTX, in order."""
        return tuple(self._meta["entries"])

    @property
    def entry(self) -> str:
        """The kernel's symbol in the PTX (the first, where the launch function launches several)."""
        return self.entries[0]

    @property
    def resources(self) -> dict[str, Resources]:
        return {name: Resources(**r) for name, r in self._meta["resources"].items()}

    @property
    def registers(self) -> int:
        return self.resources[self.entry].registers

    @property
    def spill(self) -> int:
        """Bytes of spill stores and loads together."""
        return self.resources[self.entry].spill_stores + self.resources[self.entry].spill_loads

    @property
    def local_bytes(self) -> int:
        return self.resources[self.entry].local_bytes

    @property
    def static_smem(self) -> int:
        return self.resources[self.entry].static_smem

    @property
    def object_path(self) -> Path:
        """The object file with the launch function (flavour "ffi" only)."""
        return self.folder / "kernel.o"

    @property
    def checks_overlap(self) -> bool:
        """Whether the launch function refuses arguments that overlap (see porter.corpus.runtime.overlap)."""
        return bool(self._meta.get("checked"))

    def load(self) -> Callable[..., None]:
        """The launch function: parameters, grid x y z, block x y z, shared memory bytes, stream, all as numbers."""
        if not self.object_path.is_file():
            raise RuntimeError("compiled as device code only; compile with flavour='ffi' to launch it")
        return dsl.load(self.object_path)


class Kernel:
    """A launch function with its parameters: compiles once per (constexprs, architecture), launches many times.

    `launch` is a `@cute.jit` function of: the parameters in order; grid_x, grid_y, grid_z, block_x, block_y, block_z,
    smem_bytes (Int32 each); the constexprs in order; stream.
    """

    def __init__(
        self,
        launch: Any,
        name: str,
        params: Sequence[Ptr | Num],
        constexprs: Sequence[str] = (),
    ):
        self.launch_function = launch
        self.name = name
        self.params = tuple(params)
        self.constexprs = tuple(constexprs)
        for p in self.params:
            known = [*p.dtype.values(), p.by] if isinstance(p.dtype, Mapping) else [p.dtype]
            if any(d not in DTYPES and d not in self.constexprs for d in known):
                raise ValueError(f"{name}: parameter {p.name} has dtype {p.dtype!r}, neither a scalar nor a constexpr")
        # Read now, while the file is what was imported.
        self._sources = source_closure(_source_file(launch))
        self._pointer = tuple(isinstance(p, Ptr) for p in self.params)
        self._ready: dict[tuple[Any, ...], Callable[..., None]] = {}
        self._cache = ArtifactCache("port")

    def key(self, constexprs: Mapping[str, Any], arch: str, flavour: str) -> str:
        """The cache key: everything that the compiled code depends on."""
        values = self._values(constexprs)
        return digest(
            [
                dsl.FORMAT,
                *sorted(f"{path.name} {sha}" for path, sha in self._sources),
                getattr(self.launch_function, "__qualname__", self.name),
                arch,
                dsl.dsl_version(),
                flavour,
                repr(self.params),
                *(f"{n}={v!r}" for n, v in zip(self.constexprs, values, strict=True)),
            ]
        )

    def compile(self, constexprs: Mapping[str, Any], arch: str, flavour: str = "ffi") -> Compiled:
        """Compile for an architecture (no GPU needed), or take it from the cache.

        Constexprs that are types are scalar names (`"bf16"`). Flavour "ptx" leaves out the host side: quicker, for
        looking at the code only. What CuTeDSL raises is passed on; a program that crashes it takes the process along.
        """
        if flavour not in FLAVOURS:
            raise ValueError(f"flavour is one of {FLAVOURS}, not {flavour!r}")

        def write(folder: Path) -> None:
            dsl.build(folder, self.launch_function, lambda: self._arguments(constexprs), arch, flavour)

        return Compiled(self._cache.get_or_build(self.key(constexprs, arch, flavour), write))

    def prepare(self, constexprs: Mapping[str, Any], device: Any = None) -> Callable[..., None]:
        """Compile and load for a device, so that the next `launch` does neither (before a graph capture, say)."""
        index = archs.device_index(device)
        ready = self.compile(constexprs, archs.arch_for(index)).load()
        self._ready[(index, *self._values(constexprs))] = ready
        return ready

    def launch(
        self,
        constexprs: Mapping[str, Any],
        args: Sequence[Any],
        *,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        smem_bytes: int = 0,
        stream: Any = None,
        device: Any = None,
    ) -> None:
        """Launch on torch's current stream of the tensors' device (or on `stream`, a torch stream or its handle).

        `args` follow the parameters: for a pointer a CUDA tensor (its data_ptr is passed), an address or None (null);
        for a number an int, float or bool. A grid with a zero in it launches nothing. Raises ValueError for tensors
        that are not on one CUDA device, TypeError for a wrong count of arguments. Never synchronises.
        """
        if 0 in grid:
            return
        if len(args) != len(self.params):
            raise TypeError(f"{self.name} takes {len(self.params)} arguments, got {len(args)}")
        index = -1 if device is None else archs.device_index(device)
        values = list(args)
        for i, is_pointer in enumerate(self._pointer):
            if is_pointer and type(values[i]) is not int:
                tensor = values[i]
                if tensor is None:
                    values[i] = 0
                    continue
                where = tensor.get_device()
                if index < 0:
                    index = where
                if where < 0 or where != index:
                    name = self.params[i].name
                    raise ValueError(f"{self.name}: {name} is on {tensor.device}, not on the launch's CUDA device")
                values[i] = tensor.data_ptr()
        if index < 0:
            index = archs.device_index(None)
        ready = self._ready.get((index, *self._values(constexprs)))
        if ready is None:
            ready = self.prepare(constexprs, index)
        cuda, current_handle = _torch_cuda()
        if stream is None:
            stream = current_handle(index)
        handle = stream if isinstance(stream, int) else stream.cuda_stream
        if cuda.current_device() == index:
            ready(*values, *grid, *block, smem_bytes, handle)
        else:
            with cuda.device(index):
                ready(*values, *grid, *block, smem_bytes, handle)

    def _values(self, constexprs: Mapping[str, Any]) -> tuple[Any, ...]:
        if len(constexprs) != len(self.constexprs):
            raise TypeError(f"{self.name} takes the constexprs {self.constexprs}, got {tuple(constexprs)}")
        try:
            return tuple([constexprs[n] for n in self.constexprs])
        except KeyError as missing:
            raise TypeError(f"{self.name}: no value for the constexpr {missing}") from None

    def _arguments(self, constexprs: Mapping[str, Any]) -> list[Any]:
        cute = importlib.import_module("cutlass.cute")
        runtime = importlib.import_module("cutlass.cute.runtime")
        cutlass = importlib.import_module("cutlass")
        values = self._values(constexprs)
        args: list[Any] = []
        for p in self.params:
            given = p.dtype[constexprs[p.by]] if isinstance(p.dtype, Mapping) else p.dtype
            scalar = constexprs.get(given, given)
            kind = cutlass_type(scalar)
            if isinstance(p, Ptr):
                align = p.align or dtype(scalar).bytes
                args.append(runtime.make_ptr(kind, 0, cute.AddressSpace.gmem, assumed_align=align))
            else:
                args.append(kind(0))
        args += [cutlass.Int32(1)] * 7
        args += [v if not isinstance(v, str) else cutlass_type(v) if v in DTYPES else _Spelled(v) for v in values]
        args.append(runtime.make_fake_stream())
        return args


class _Spelled(str):
    """A C++ type as a constexpr. CuTeDSL makes it part of the kernel's name, in which `*` and `&` may not stand."""

    def __str__(self) -> str:
        return re.sub(r"[*&+!~^]", "_", str.__str__(self))

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


@cache
def _torch_cuda() -> tuple[Any, Callable[[int], int]]:
    """torch.cuda, and what gives the handle of a device's current stream (a Stream object takes microseconds)."""
    torch = importlib.import_module("torch")
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return torch.cuda, raw or (lambda index: torch.cuda.current_stream(index).cuda_stream)


def _source_file(launch: Any) -> Path:
    function = inspect.unwrap(launch)
    file = inspect.getsourcefile(function)
    if file is None:
        raise ValueError(f"{launch!r} has no source file")
    return Path(file)
