"""What porter and its GPU child process say to each other: launches with their buffers as bytes, and timing jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from porter.case.reader import LaunchShape
from porter.verify import emulator as ptx
from porter.verify.backends.emulator import module_of
from porter.verify.backends.interface import Argument, Build
from porter.verify.emulator.memory.arguments import encode_argument
from porter.verify.launches.buffers import HostBuffer
from porter.wording import plural


@dataclass(frozen=True)
class BufferPointer:
    """An argument that is the address of the first element of a buffer, by the buffer's number in its job."""

    buffer: int


@dataclass(frozen=True)
class Image:
    """A buffer's bytes: `segments` at their offsets in an allocation of `nbytes`; the rest is left as it comes.

    `origin` is the offset of the first element. Guard zones are segments like any other.
    """

    nbytes: int
    origin: int
    segments: tuple[tuple[int, np.ndarray], ...] = field(repr=False)


@dataclass(frozen=True)
class BufferVariable:
    """A module variable, and the buffer of its values by its number in the job."""

    symbol: str
    buffer: int
    nbytes: int


@dataclass(frozen=True)
class KernelCall:
    """One launch, with its arguments as the bytes of each parameter or the number of a buffer.

    `variables` are module variables by their symbols in the cubin: each takes the elements of a buffer before the
    launch, and gives them back after it.
    """

    cubin: bytes = field(repr=False)
    entry: str
    shape: LaunchShape
    arguments: tuple[bytes | BufferPointer, ...]
    variables: tuple[BufferVariable, ...] = ()


@dataclass(frozen=True)
class RunJob:
    """Upload, launch, download what `Image.segments` cover."""

    call: KernelCall
    images: tuple[Image, ...]


@dataclass(frozen=True)
class RunAnswer:
    """The bytes of each segment of each image afterwards. `fault` is a CUDA error that ended the context."""

    segments: tuple[tuple[np.ndarray, ...], ...] = ()
    seconds: float = 0.0
    error: str = ""
    fault: str = ""


def image_of(buffer: HostBuffer) -> Image:
    """A buffer with its guards: whole, or of a sparse one the guards and the rows."""
    origin = buffer.raw.ctypes.data - buffer.allocation.ctypes.data if buffer.raw.size else 0
    if not buffer.sparse:
        return Image(buffer.allocation.size, origin, ((0, buffer.allocation),))
    end = origin + buffer.raw.nbytes
    pieces = [(0, buffer.allocation[:origin])]
    rows = buffer.shape[:-1] if buffer.strides[-1] == 1 else buffer.shape
    length = (buffer.shape[-1] if buffer.strides[-1] == 1 else 1) * buffer.itemsize
    for index in np.ndindex(*rows):
        at = origin + sum(i * s for i, s in zip(index, buffer.strides, strict=False)) * buffer.itemsize
        pieces.append((at, buffer.allocation[at : at + length]))
    pieces.append((end, buffer.allocation[end:]))
    return Image(buffer.allocation.size, origin, tuple(pieces))


def store(buffer: HostBuffer, image: Image, segments: Sequence[np.ndarray]) -> None:
    """Put the bytes that came back into the host buffer."""
    for (offset, _), data in zip(image.segments, segments, strict=True):
        buffer.allocation[offset : offset + data.size] = data


def call_of(
    build: Build,
    shape: LaunchShape,
    arguments: Sequence[Argument],
    variables: Mapping[str, HostBuffer] | None = None,
) -> tuple[KernelCall, list[HostBuffer]]:
    """The launch with its arguments packed as the build's PTX declares them, and the buffers that it points to.

    Those of module variables are the last.

    Raises PtxError where an argument does not fit its parameter, ValueError when the build has no cubin.
    """
    if not build.cubin:
        raise ValueError(f"{build.label} has no cubin: a GPU runs cubins only")
    declared = module_of(build.ptx).declarations[build.entry].params
    if len(declared) != len(arguments):
        counts = f"{plural(len(declared), 'parameter')}, {plural(len(arguments), 'argument')} given"
        raise ptx.LaunchError(f"{build.entry} has {counts}")
    buffers: list[HostBuffer] = []
    packed: list[bytes | BufferPointer] = []
    for value, parameter in zip(arguments, declared, strict=True):
        if isinstance(value, HostBuffer) and value.raw.size:
            packed.append(BufferPointer(len(buffers)))
            buffers.append(value)
        else:  # a buffer without elements has no address
            packed.append(encode_argument(None if isinstance(value, HostBuffer) else value, parameter, {}))
    filled = []
    for symbol, buffer in (variables or {}).items():
        filled.append(BufferVariable(symbol, len(buffers), buffer.raw.nbytes))
        buffers.append(buffer)
    return KernelCall(build.cubin, build.entry, shape, tuple(packed), tuple(filled)), buffers
