"""Host memory of a verification run: strided buffers inside guard zones, poisoned where a kernel is to write."""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from porter.case.expressions import Value
from porter.case.reader import BufferSpec, Case, Point, span_of
from porter.ir import SCALAR_BYTES
from porter.verify.numerics.formats import encode

GUARD_BYTES = 256  # both sides of a buffer; a multiple of every alignment a kernel may rely on
SPARSE = 1 << 26  # elements from which only the rows of a strided buffer get memory
# Poison of floats is a quiet NaN with a payload that no arithmetic makes, so "never written" can be told from "NaN".
_POISON = {
    "f64": 0xFFFB5A5A5A5A5A5A, "f32": 0xFFEB5A5A, "bf16": 0xFFEB, "f16": 0xFEEB,
    "e4m3": 0xFF, "e5m2": 0xFE, "e8m0": 0xFF,
}  # fmt: skip
_STORAGE: dict[int, type[np.unsignedinteger]] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def storage(dtype: str) -> type[np.unsignedinteger]:
    """The unsigned numpy type that holds the bits of an ir scalar (e2m1: a byte with two packed values)."""
    return _STORAGE[SCALAR_BYTES[dtype]]


def is_integer(dtype: str) -> bool:
    """True where words are compared and filled as they are: integers, bool, and e2m1 (two packed values a byte)."""
    return dtype in ("bool", "e2m1") or dtype[0] in "iu"


def words_to_int(words: np.ndarray, dtype: str) -> np.ndarray:
    """Words of an integer dtype as int64 (u64: uint64, bool: bool), in the same shape."""
    if dtype == "bool":
        return words != 0
    signed = np.ascontiguousarray(words).view(f"i{words.dtype.itemsize}") if dtype[0] == "i" else words
    return signed.astype(np.uint64 if dtype == "u64" else np.int64)


def generator(seed: int, *labels: str) -> np.random.Generator:
    """An independent stream for each (seed, labels); the same on every machine."""
    return np.random.default_rng([seed & 0xFFFFFFFF, *(zlib.crc32(label.encode()) for label in labels)])


@dataclass
class HostBuffer:
    """One kernel buffer on the host. `raw` holds its bits (one unsigned word an element) from the first element to the
    last, gaps of the strides included; it is a view into `allocation`, which has guard zones on both sides."""

    spec: BufferSpec
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # elements
    allocation: np.ndarray = field(repr=False)  # uint8
    raw: np.ndarray = field(repr=False)
    guard: int = 0x5C  # the byte that fills the guard zones
    poison: int = 0  # the word that fills what is not to be read
    initialised: np.ndarray | bool = field(default=True, repr=False)  # one flag a word of raw, or one for all
    sparse: bool = False  # rows so far apart that only they are filled and compared; the rest is never committed

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def itemsize(self) -> int:
        return self.raw.dtype.itemsize

    def view(self) -> np.ndarray:
        """The elements, in `shape`, as unsigned words (a view)."""
        if self.raw.size == 0:
            return np.zeros(self.shape, self.raw.dtype)
        byte_strides = tuple(s * self.itemsize for s in self.strides)
        return np.lib.stride_tricks.as_strided(self.raw, self.shape, byte_strides)

    def words(self) -> np.ndarray:
        """Every word that is compared: all of raw, of a sparse buffer its elements."""
        return self.view() if self.sparse else self.raw

    def element_mask(self) -> np.ndarray | None:
        """One flag a word of raw: does it belong to an element? None when every word does, and for sparse buffers."""
        if self.sparse or self.raw.size == int(np.prod(self.shape, dtype=np.int64)):
            return None
        mask = np.zeros(self.raw.size, bool)
        np.lib.stride_tricks.as_strided(mask, self.shape, self.strides)[...] = True
        return mask

    def copy(self) -> HostBuffer:
        """An independent buffer with the same bytes, guards included, at the same alignment."""
        offset = self.raw.ctypes.data - self.allocation.ctypes.data if self.raw.size else 0
        allocation = (_lazy_bytes if self.sparse else _aligned_bytes)(self.allocation.size)
        raw = allocation[offset : offset + self.raw.nbytes].view(self.raw.dtype)
        twin = replace(self, allocation=allocation, raw=raw)
        if self.sparse:
            twin.view()[...] = self.view()
            allocation[:offset], allocation[offset + raw.nbytes :] = self.guard, self.guard
        else:
            allocation[:] = self.allocation
        return twin

    def broken_guards(self) -> int:
        """How many guard bytes were changed."""
        offset = self.raw.ctypes.data - self.allocation.ctypes.data if self.raw.size else 0
        before, after = self.allocation[:offset], self.allocation[offset + self.raw.nbytes :]
        return int(np.count_nonzero(before != self.guard) + np.count_nonzero(after != self.guard))


Buffers = dict[str, HostBuffer]


def _aligned_bytes(size: int, alignment: int = GUARD_BYTES) -> np.ndarray:
    block = np.empty(size + alignment, np.uint8)
    start = -block.ctypes.data % alignment
    return block[start : start + size]


def _lazy_bytes(size: int) -> np.ndarray:
    """Zeroed memory that takes no room before it is written to, and does not count as promised. Raises OSError."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint8)


def poison_word(dtype: str, rng: np.random.Generator) -> int:
    """A NaN with a payload for floats; for integers a word that changes with the seed, so that none can be aimed at."""
    if dtype in _POISON:
        return _POISON[dtype]
    bits = 8 * SCALAR_BYTES[dtype]
    return int(rng.integers(1 << (bits - 2), 1 << (bits - 1), dtype=np.uint64)) | 0x80 if bits > 8 else 0xA5


def allocate(
    case: Case, point: Point, values: Mapping[str, Value], seed: int, misaligned: frozenset[str] = frozenset()
) -> Buffers:
    """Every buffer of the case at a point, poisoned throughout (`init` values set), inside guard zones.

    Buffers start on a multiple of GUARD_BYTES; those in `misaligned` one element later.
    """
    made: Buffers = {}
    for spec in case.buffers:
        dtype = spec.dtype_at(values)
        rng = generator(seed, "poison", spec.name)
        shape, strides = point.shapes[spec.name], point.strides[spec.name]
        word = storage(dtype)
        nbytes = span_of(shape, strides) * np.dtype(word).itemsize
        offset = GUARD_BYTES + (np.dtype(word).itemsize if spec.name in misaligned else 0)
        sparse = span_of(shape, strides) > SPARSE
        allocation = (_lazy_bytes if sparse else _aligned_bytes)(offset + nbytes + GUARD_BYTES)
        guard = int(rng.integers(1, 255))
        raw = allocation[offset : offset + nbytes].view(word)
        poison = poison_word(dtype, rng)
        buffer = HostBuffer(spec, dtype, shape, strides, allocation, raw, guard, poison, sparse, sparse)
        if sparse:
            buffer.view()[...] = poison
            allocation[:offset], allocation[offset + nbytes :] = guard, guard
        else:
            allocation[:] = guard
            raw[:] = poison
        if spec.init is not None:
            buffer.view()[...] = init_word(dtype, spec.init)
        if not sparse and (spec.init is not None or spec.is_read):
            mask = buffer.element_mask()
            buffer.initialised = True if mask is None else mask
        made[spec.name] = buffer
    return made


def init_word(dtype: str, value: float | int) -> int:
    """The bits of a number in a dtype."""
    if is_integer(dtype):
        return int(value) & ((1 << (8 * SCALAR_BYTES[dtype])) - 1)
    return int(encode(np.array([value], np.float64), dtype)[0])


def host_buffer(spec: BufferSpec, dtype: str, words: np.ndarray) -> HostBuffer:
    """A contiguous buffer with these words (unsigned, of the dtype's size) inside guard zones, initialised."""
    allocation = _aligned_bytes(2 * GUARD_BYTES + words.nbytes)
    guard = 0x5C
    allocation[:] = guard
    raw = allocation[GUARD_BYTES : GUARD_BYTES + words.nbytes].view(words.dtype)
    raw[:] = words
    poison = poison_word(dtype, np.random.default_rng(0))
    return HostBuffer(spec, dtype, words.shape, (1,), allocation, raw, guard, poison)
