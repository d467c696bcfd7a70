"""Module variables (.global and .const) of a launch: their images and addresses."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from porter.verify.emulator.decode.declarations import initialisers
from porter.verify.emulator.decode.ir import Module, Sym
from porter.verify.emulator.errors import LaunchError, PtxSyntaxError
from porter.verify.emulator.memory.buffers import AddressSpace, Buffer, MemoryRegion
from porter.verify.emulator.memory.layout import Placed, place_variables

MOST_BYTES = 1 << 32  # of one module variable


def place_module(
    module: Module,
    used: frozenset[str],
    space: AddressSpace,
    shift: int = 0,
    given: Mapping[str, Buffer] | None = None,
) -> None:
    """The module variables that a program can reach, freshly initialised, `shift` bytes behind their addresses.

    The memory of those that are `given` is the buffer's own. Raises LaunchError where it has another size.
    """
    placed = place_variables(module)
    todo, done = list(used), set(used)
    while todo:
        name = todo.pop()
        if given and name in given:
            _place_given(placed[name], given[name], space, shift)
            continue
        image, more = _image(module, name)
        todo += [m for m in more if m not in done]
        done.update(more)
        variable = placed[name].variable
        writable = variable.space == "global"
        data = image.copy() if writable else image
        space.insert(MemoryRegion("global", name, placed[name].address + shift, data, None, writable), 0)


def _place_given(placed: Placed, buffer: Buffer, space: AddressSpace, shift: int) -> None:
    variable = placed.variable
    if buffer.array.nbytes != variable.size:
        raise LaunchError(f"{variable.name} has {variable.size} bytes, its values have {buffer.array.nbytes}")
    writable = variable.space == "global" and buffer.writable
    region = MemoryRegion("global", variable.name, placed.address + shift, space.aligned(buffer), None, writable)
    space.insert(region, 0)


def initial_bytes(module: Module, name: str) -> bytes:
    """What a module variable holds when the module has been loaded."""
    return _image(module, name)[0].tobytes()


def _image(module: Module, name: str) -> tuple[np.ndarray, frozenset[str]]:
    """The initial bytes of a module variable, and the variables whose addresses they hold."""
    key = ("image", name)
    if key in module.cache:
        return module.cache[key]  # type: ignore[return-value]
    placed = place_variables(module)
    variable = placed[name].variable
    if variable.size > MOST_BYTES:
        raise PtxSyntaxError(f"{name} has more than {MOST_BYTES} bytes", variable.line)
    image = np.zeros(variable.size, np.uint8)
    step, at, more = variable.type.bytes, 0, set()
    values = initialisers(variable)
    if len(values) * step > variable.size:
        raise PtxSyntaxError(f"{name} has more initial values than elements", variable.line)
    if values and all(isinstance(v, int) for v, _ in values):
        raw = np.array([v & ((1 << 8 * step) - 1) for v, _ in values], np.uint64)  # type: ignore[operator]
        image[: len(values) * step] = raw.view(np.uint8).reshape(-1, 8)[:, :step].reshape(-1)
        values = []
    for value, mask in values:
        if isinstance(value, Sym):
            if value.name in placed:
                more.add(value.name)
            number = _symbol_address(module, value)
            if mask:
                number = (number & mask) >> ((mask & -mask).bit_length() - 1)
            part = number.to_bytes(8, "little")[:step]
        elif isinstance(value, float):
            part = np.float64(value).astype({4: np.float32, 8: np.float64}.get(step, np.float32)).tobytes()
        else:
            part = (value & ((1 << 8 * step) - 1)).to_bytes(step, "little")
        image[at : at + step] = np.frombuffer(part, np.uint8)
        at += step
    module.cache[key] = image, frozenset(more)
    return image, frozenset(more)


def _symbol_address(module: Module, symbol: Sym) -> int:
    placed = place_variables(module)
    if symbol.name in placed:
        return placed[symbol.name].address + symbol.offset
    return symbol.offset
