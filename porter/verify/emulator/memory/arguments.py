"""Arguments of a launch: buffers get their addresses, values become parameter bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from porter.verify.emulator.checks.violations import Checks
from porter.verify.emulator.decode.ir import Variable
from porter.verify.emulator.decode.types import PtxType
from porter.verify.emulator.errors import LaunchError
from porter.verify.emulator.memory.buffers import AddressSpace, Buffer, MemoryRegion, Multicast, Pointer, PointerTable
from porter.verify.emulator.memory.layout import SHARED_WINDOW


def _address(value: object, addresses: dict[int, int]) -> int:
    if isinstance(value, Pointer):
        return addresses[id(value.buffer)] + value.offset
    if isinstance(value, (Buffer, Multicast)):
        return addresses[id(value)]
    if value is None:
        return 0
    if isinstance(value, (int, np.integer)):
        return int(value)
    raise LaunchError(f"a struct of pointers cannot hold {type(value).__name__}")


def encode_argument(value: object, parameter: Variable, addresses: dict[int, int]) -> bytes:
    """The bytes of one argument for its declared parameter. Raises LaunchError."""
    t, size = parameter.type, parameter.size
    if isinstance(value, (tuple, list)):
        value = b"".join(_address(v, addresses).to_bytes(8, "little") for v in value)
    elif value is None or isinstance(value, (Buffer, Pointer, Multicast)):
        value = _address(value, addresses)
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
    elif isinstance(value, (np.ndarray, np.void)):
        data = value.tobytes()
    elif parameter.is_array:
        if isinstance(value, (bool, int)) and size in (1, 2, 4, 8):
            return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        if isinstance(value, np.generic) and value.nbytes == size:
            return value.tobytes()
        raise LaunchError(f"parameter {parameter.name} is a {size}-byte array: pass bytes, not {type(value).__name__}")
    else:
        return _encode_scalar(value, t, parameter.name)
    if len(data) != size:
        raise LaunchError(f"parameter {parameter.name} has {size} bytes, the argument {len(data)}")
    return data


def _encode_scalar(value: object, t: PtxType, name: str) -> bytes:
    floating = isinstance(value, (float, np.floating))
    if t.kind in "fh" or (floating and t.kind == "b"):
        number = np.float64(value)  # type: ignore[arg-type]
        if isinstance(value, np.floating) and t.kind == "b" and value.nbytes != t.bytes:
            raise LaunchError(f"parameter {name} is {t.name}, the argument {value.dtype}")
        if t.name == "bf16":
            bits = int(np.float32(number).view(np.uint32))
            return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF).to_bytes(2, "little")
        return number.astype({2: np.float16, 4: np.float32, 8: np.float64}[t.bytes]).tobytes()
    if floating or not isinstance(value, (bool, int, np.integer, np.bool_)):
        raise LaunchError(f"parameter {name} is {t.name}, the argument {type(value).__name__}")
    number_int = int(value)
    if not -(1 << (t.bits - 1)) <= number_int < 1 << t.bits:
        raise LaunchError(f"argument {number_int} does not fit parameter {name} ({t.name})")
    return (number_int & ((1 << t.bits) - 1)).to_bytes(t.bytes, "little")


def _objects(value: object, name: str) -> Iterable[Buffer | Multicast]:
    """The buffers and multicast objects that an argument leads to, what others hold first."""
    if isinstance(value, Pointer):
        value = value.buffer
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from _objects(each, name)
    elif isinstance(value, Multicast):
        for each in value.buffers:
            yield from _objects(each, name)
        yield value
    elif isinstance(value, Buffer):
        if isinstance(value, PointerTable):
            for item in value.items:
                yield from _objects(item, name)
        if not value.name:
            value.name = name
        yield value


def place_buffers(
    rank_args: Sequence[Sequence[object]], parameters: tuple[Variable, ...], space: AddressSpace, checks: Checks
) -> dict[int, int]:
    """Addresses by the id of each buffer and multicast object. Raises LaunchError."""
    addresses: dict[int, int] = {}
    regions: dict[int, MemoryRegion] = {}
    for rank, args in enumerate(rank_args):
        for value, parameter in zip(args, parameters, strict=True):
            name = parameter.name if len(rank_args) == 1 else f"{parameter.name} of rank {rank}"
            for found in _objects(value, name):
                if id(found) in addresses:
                    continue
                if isinstance(found, Multicast):
                    addresses[id(found)] = space.place_multicast([regions[id(b)] for b in found.buffers])
                    continue
                if isinstance(found, PointerTable):
                    found.array[:] = [_address(item, addresses) for item in found.items]
                region = regions[id(found)] = space.place(found, checks.uninitialised)
                addresses[id(found)] = region.base
    if space.next > SHARED_WINDOW:
        raise LaunchError("the buffers do not fit into the address space")
    return addresses
