"""Device memory: buffers over numpy arrays, their addresses, and the table that finds the buffer of an address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from porter.verify.emulator.memory.layout import ALLOCATION_ALIGN, MULTICAST_BASE, align_up

if TYPE_CHECKING:
    from porter.verify.emulator.checks.sums import FloatSums

RAW: dict[int, np.dtype] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
    16: np.dtype(np.complex128),
}


class Buffer:
    """Device memory over a C-contiguous numpy array, used in place: after the launch the array holds the result.

    `initialised`: True, False (reading before writing is reported), or a boolean mask of the array's shape.
    `guard`: bytes of no-man's-land on both sides. Memory is not copied (unless it is not aligned to 16 bytes), so a
    lazily committed array (np.zeros, memmap) of any extent is fine; the shadow of an uninitialised buffer is
    committed lazily too.
    """

    def __init__(
        self,
        array: np.ndarray,
        name: str = "",
        initialised: bool | np.ndarray = True,
        writable: bool = True,
        guard: int = 256,
    ):
        if not isinstance(array, np.ndarray):
            raise TypeError("a Buffer needs a numpy array")
        if not array.flags.c_contiguous:
            raise ValueError("a Buffer needs a C-contiguous array; pass the array that owns the memory")
        if writable and not array.flags.writeable:
            raise ValueError("the array is read-only; pass writable=False")
        self.array = array
        self.name = name
        self.initialised = initialised
        self.writable = writable
        self.guard = guard
        if isinstance(initialised, np.ndarray) and initialised.shape != array.shape:
            raise ValueError("the mask of initialised elements must have the array's shape")

    def at(self, offset: int) -> Pointer:
        """A pointer `offset` bytes behind the start, to pass as an argument."""
        return Pointer(self, offset)

    def bytes(self) -> np.ndarray:
        """The memory as flat uint8."""
        return self.array.reshape(-1).view(np.uint8) if self.array.size else np.zeros(0, np.uint8)


class Multicast:
    """One address for the same range of several buffers, for multimem instructions: the replicas, in rank order."""

    def __init__(self, buffers: Sequence[Buffer], name: str = ""):
        if not buffers or len({b.array.nbytes for b in buffers}) != 1:
            raise ValueError("a multicast object needs buffers of one size")
        self.buffers, self.name = tuple(buffers), name

    def at(self, offset: int) -> Pointer:
        return Pointer(self, offset)


@dataclass(frozen=True, slots=True)
class Pointer:
    buffer: Buffer | Multicast
    offset: int


class PointerTable(Buffer):
    """A read-only buffer that holds addresses: of buffers, places in them, multicast objects, or null."""

    def __init__(self, items: Sequence[Buffer | Pointer | Multicast | None], name: str = "pointers"):
        super().__init__(np.zeros(len(items), np.uint64), name, writable=False)
        self.items = tuple(items)


class MemoryRegion:
    """A stretch of bytes that threads access: one buffer, or the shared (local) memory of all blocks (threads)."""

    __slots__ = ("_shadows", "_views", "base", "data", "name", "race", "shadow", "size", "space", "writable")

    def __init__(
        self, space: str, name: str, base: int, data: np.ndarray, shadow: np.ndarray | None, writable: bool = True
    ):
        self.space, self.name, self.base, self.writable = space, name, base, writable
        self.data, self.shadow, self.size = data, shadow, int(data.size)
        self._views: dict[int, np.ndarray] = {1: data}
        self._shadows: dict[int, np.ndarray] = {} if shadow is None else {1: shadow}
        self.race: object = None

    def view(self, width: int) -> np.ndarray:
        """The bytes as an array of `width`-byte numbers (a tail that does not divide is left out)."""
        found = self._views.get(width)
        if found is None:
            found = self._views[width] = self.data[: self.size // width * width].view(RAW[width])
        return found

    def shadow_view(self, width: int) -> np.ndarray:
        found = self._shadows.get(width)
        if found is None:
            assert self.shadow is not None
            found = self._shadows[width] = self.shadow[: self.size // width * width].view(RAW[width])
        return found


def shadow_of(buffer: Buffer) -> np.ndarray | None:
    """One byte per byte, 1 where initialised; None when everything is."""
    initialised = buffer.initialised
    if isinstance(initialised, np.ndarray):
        return np.repeat(initialised.reshape(-1).astype(np.uint8), buffer.array.itemsize)
    return None if initialised else np.zeros(buffer.array.nbytes, np.uint8)


class AddressSpace:
    """The allocation table of global memory."""

    def __init__(self, first_free: int):
        self.next = first_free
        self.regions: list[MemoryRegion] = []
        self.copies: list[tuple[np.ndarray, np.ndarray]] = []  # (array, aligned copy of it)
        self.module_span = 0  # bytes from one rank's module variables to the next one's
        self.multicasts: list[tuple[int, int, list[MemoryRegion]]] = []  # address, bytes, replicas
        self.sums: FloatSums | None = None  # watches additions of floats by atomics
        self.hits: dict[object, MemoryRegion] = {}  # by instruction: the region that it found last
        self._starts = np.zeros(0, np.uint64)
        self._dirty = False

    def place(self, buffer: Buffer, track: bool) -> MemoryRegion:
        """Gives a buffer its address."""
        start = align_up(self.next + buffer.guard, ALLOCATION_ALIGN)
        data = self.aligned(buffer)
        region = MemoryRegion("global", buffer.name, start, data, shadow_of(buffer) if track else None, buffer.writable)
        return self.insert(region, buffer.guard)

    def aligned(self, buffer: Buffer) -> np.ndarray:
        """The bytes of a buffer, or of a copy of it that `finish` writes back where it is not aligned to 16 bytes."""
        data = buffer.bytes()
        if data.ctypes.data % 16 and data.size:
            copy = np.zeros(data.size + 16, np.uint8)
            shift = -copy.ctypes.data % 16
            copy = copy[shift : shift + data.size]
            copy[:] = data
            if buffer.writable:
                self.copies.append((data, copy))
            data = copy
        return data

    def place_multicast(self, regions: list[MemoryRegion]) -> int:
        """The address that multimem instructions use for these regions of equal size."""
        address = MULTICAST_BASE
        for start, size, _ in self.multicasts:
            address = max(address, align_up(start + size + 1, 1 << 21))
        self.multicasts.append((address, regions[0].size, regions))
        return address

    def multicast_at(self, address: int) -> tuple[int, int, list[MemoryRegion]] | None:
        return next((m for m in self.multicasts if m[0] <= address < m[0] + max(m[1], 1)), None)

    def finish(self) -> None:
        """Results of misaligned arrays go back into them."""
        for array, copy in self.copies:
            array[:] = copy

    def insert(self, region: MemoryRegion, guard: int) -> MemoryRegion:
        self.regions.append(region)
        self.next = max(self.next, region.base + region.size + guard)
        self._dirty = True
        return region

    def _table(self) -> np.ndarray:
        if self._dirty:
            self.regions.sort(key=lambda r: r.base)
            self._starts = np.array([r.base for r in self.regions], np.uint64)
            self._dirty = False
        return self._starts

    def index_of(self, addresses: np.ndarray) -> np.ndarray:
        """For each address the index of the last region that starts at or before it, -1 for none."""
        return np.searchsorted(self._table(), addresses, side="right") - 1

    def nearest(self, address: int) -> tuple[MemoryRegion | None, int]:
        """The region that an address lies in or is closest to, with the offset from its start."""
        best: tuple[int, MemoryRegion] | None = None
        for region in self.regions:
            distance = max(region.base - address, address - (region.base + region.size - 1), 0)
            if best is None or distance < best[0]:
                best = (distance, region)
        if best is None or best[0] > 1 << 32:
            return None, 0
        return best[1], address - best[1].base
