"""Arguments for a kernel of which only the signature is known: plausible numbers, buffers that are large enough.

Nobody knows what the kernel takes, so several attempts are made, each another guess at sizes, indices in memory and the
block; the original says which of them it takes. Arguments are made from the typed parameters of the lowered kernel, one
value a leaf: the port has a parameter for every leaf, the original packs those of a struct.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from porter import ir
from porter.case.model import BufferSpec
from porter.model import Launch
from porter.verify import emulator as ptx
from porter.verify.backends.emulator import as_argument
from porter.verify.launches.buffers import HostBuffer, host_buffer, is_integer, storage
from porter.verify.numerics.formats import encode

BUFFER_BYTES = 1 << 20
MOST = 1 << 30  # elements of a stride
LARGE = 1024  # a size from which the block is small, whatever the bounds say
PERIOD = 10_007  # elements after which the contents of a buffer repeat: no size divides it
TABLE = 512  # pointers in an array of pointers, to so many different buffers:
TARGETS = 16
SMEM_BYTES = 48 << 10

_FEW = re.compile(r"^(B|b|T|NH)$|token|batch|rows?$|seq|len|nnz|top_?k|^k$|^m$|layer|expert|beam", re.I)
_STRIDE = re.compile(r"stride", re.I)
_NONE = re.compile(r"offset|start|begin|rank|seed|^is_|^has_|^use_|pos$|shift", re.I)


@dataclass(frozen=True)
class ArgumentGuess:
    """One guess. `integers` in memory are few (from `least` below 4), zero, rising (0, 1, 2, ...) or signed (-8 to 8).

    With `least` 1 (no row is empty, no k is 0) floats in memory are as small as the probabilities of a row; where
    integers are signed, floats are as well.
    """

    size: int  # what an integer argument is
    least: int = 0
    block: tuple[int, ...] = ()  # (): as many threads as the kernel's bounds say, or as its launch in the file
    integers: str = "few"
    few: int = 4  # what counts of rows, tokens and the like are
    blocks: int = 2

    def __str__(self) -> str:
        shape = f", threads {'x'.join(map(str, self.block))}" if self.block else ""
        return f"sizes {self.size}, {self.few} rows, {self.integers} integers, {self.blocks} blocks{shape}"


ATTEMPTS = (
    ArgumentGuess(64),
    ArgumentGuess(128, 1),
    ArgumentGuess(128, 1, blocks=1),
    ArgumentGuess(256, 0, integers="rising"),
    ArgumentGuess(128, 1, (16, 16)),
    ArgumentGuess(64, 1, (4, 8, 4)),
    ArgumentGuess(32, 1, (32, 4)),
    ArgumentGuess(1024, 1),
    ArgumentGuess(16, 1, few=8),
    ArgumentGuess(64, 0, (32,), "zero", 1, 1),
    ArgumentGuess(8, 1, few=2),
    ArgumentGuess(2, 0, integers="zero", few=1),
)


class NotMadeUp(Exception):
    """Arguments of a kind that cannot be made up; says why."""


@dataclass(frozen=True)
class PointersTo:
    """An array of pointers in memory, to these buffers in turn."""

    items: tuple[HostBuffer, ...]


Value = HostBuffer | PointersTo | bytes


SYMBOL = -1


@dataclass
class ArgumentLeaf:
    """One scalar or pointer of the arguments, at `offset` bytes of the original's parameter number `parameter`; of none
    (SYMBOL) where it stands for a variable of the original."""

    name: str
    type: ir.Type
    parameter: int
    offset: int
    value: Value = b""


@dataclass
class Arguments:
    """What both sides are given; `buffers` is all memory in it."""

    leaves: list[ArgumentLeaf] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)  # bytes of each parameter of the original

    @property
    def buffers(self) -> list[HostBuffer]:
        found = []
        for leaf in self.leaves:
            if isinstance(leaf.value, HostBuffer):
                found.append(leaf.value)
            elif isinstance(leaf.value, PointersTo):
                found += leaf.value.items
        return found

    def copy(self) -> Arguments:
        """The same bytes in memory of their own."""

        def twin(value: Value) -> Value:
            if isinstance(value, PointersTo):
                return PointersTo(tuple(b.copy() for b in value.items))
            return value.copy() if isinstance(value, HostBuffer) else value

        leaves = [ArgumentLeaf(x.name, x.type, x.parameter, x.offset, twin(x.value)) for x in self.leaves]
        return Arguments(leaves, list(self.sizes))

    @property
    def variables(self) -> dict[str, HostBuffer]:
        """What the variables of the original hold, by the names of the parameters that stand for them."""
        return {x.name: x.value for x in self.leaves if x.parameter == SYMBOL and isinstance(x.value, HostBuffer)}

    def of_port(self) -> list[object]:
        """One argument a leaf."""
        return [as_device(leaf.value) for leaf in self.leaves]

    def of_original(self) -> list[object]:
        """One argument a parameter: structs as bytes, those that hold pointers as words and pointers."""
        made: list[object] = []
        for number, size in enumerate(self.sizes):
            own = [leaf for leaf in self.leaves if leaf.parameter == number]
            if len(own) == 1 and not isinstance(own[0].value, bytes):
                made.append(as_device(own[0].value))
                continue
            data = bytearray(size)
            for leaf in own:
                if isinstance(leaf.value, bytes):
                    data[leaf.offset : leaf.offset + len(leaf.value)] = leaf.value
            pointers = {x.offset: as_device(x.value) for x in own if not isinstance(x.value, bytes)}
            if not pointers:
                made.append(bytes(data))
                continue
            words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, size, 8)]
            made.append(tuple(pointers.get(8 * n, word) for n, word in enumerate(words)))
        return made


def as_device(value: Value) -> object:
    """A value as ptx.launch takes it."""
    if isinstance(value, PointersTo):
        places = [as_argument(b) for b in value.items]
        items = [places[n % len(places)] for n in range(TABLE)]
        return ptx.PointerTable([p for p in items if isinstance(p, ptx.Buffer)])
    return as_argument(value) if isinstance(value, HostBuffer) else value


def make_arguments(
    params: Sequence[ir.FunctionParam], attempt: ArgumentGuess, symbols: Sequence[ir.Symbol] = ()
) -> Arguments:
    """Arguments for the parameters of a kernel as the front end lowers it. Raises NotMadeUp."""
    made = Arguments()
    sizes = {s.name: ir.sizeof(s.type) for s in symbols}
    for number, p in enumerate(params):
        if p.name in sizes:
            assert isinstance(p.type, ir.Pointer)
            memory = _filled(p.name, p.type.elem, attempt, sizes[p.name])
            made.leaves.append(ArgumentLeaf(p.name, p.type, SYMBOL, 0, memory))
            continue
        pointer = ir.Pointer(p.type) if p.by_ref else p.type
        made.sizes.append(ir.sizeof(pointer))
        for name, t, offset in _leaves(pointer, p.name, 0):
            made.leaves.append(ArgumentLeaf(name, t, number, offset, make_value(name, t, attempt)))
    for group in _stride_groups(made.leaves):
        for level, leaf in enumerate(reversed(group)):
            assert isinstance(leaf.type, ir.Scalar)
            leaf.value = _words(leaf.type, np.array([min(attempt.size**level, MOST)]))
    return made


def _stride_groups(leaves: Sequence[ArgumentLeaf]) -> list[list[ArgumentLeaf]]:
    """The strides of each tensor with several, outermost first as signatures have them (`x_stride_b, x_stride_h` or
    `stride_x_b, stride_x_h`)."""
    groups: dict[str, list[ArgumentLeaf]] = {}
    for leaf in leaves:
        found = _STRIDE.search(leaf.name)
        if found and isinstance(leaf.type, ir.Scalar) and is_integer(leaf.type.name):
            tensor, _, axis = leaf.name[found.end() :].rpartition("_")
            groups.setdefault(leaf.name[: found.end()] + (tensor if axis else ""), []).append(leaf)
    return [g for g in groups.values() if len(g) > 1]


def _leaves(t: ir.Type, name: str, offset: int) -> Iterator[tuple[str, ir.Type, int]]:
    """(name, type, byte offset) of every scalar or pointer in an object, as patterns.struct_params orders them."""
    if isinstance(t, ir.Array):
        for i in range(int(t.length)):
            yield from _leaves(t.elem, f"{name}_{i}", offset + i * ir.sizeof(t.elem))
    elif isinstance(t, ir.Struct):
        if t.is_union:
            raise NotMadeUp(f"{name} is a union")
        for f in t.fields:
            yield from _leaves(f.type, f"{name}_{f.name}", offset + int(f.offset))
    else:
        yield name, t, offset


def make_value(name: str, t: ir.Type, attempt: ArgumentGuess) -> Value:
    """A plausible value for one scalar or pointer argument. Raises NotMadeUp."""
    if isinstance(t, ir.Pointer):
        return _memory(name, t.elem, attempt)
    assert isinstance(t, ir.Scalar)
    return _words(t, np.array([_number(name, t, attempt)]))


def _number(name: str, t: ir.Scalar, attempt: ArgumentGuess) -> float:
    """A number for a scalar argument: small ones for counts of rows, zero for offsets and flags."""
    if t.is_float:
        return 0.5 + zlib.crc32(name.encode()) % 16 / 64  # another one for each: one in the place of another shows
    if _NONE.search(name) or ir.sizeof(t) == 1:
        return 0
    return min(attempt.size, attempt.few) if _FEW.search(name) else attempt.size


def _words(t: ir.Scalar, numbers: np.ndarray) -> bytes:
    if is_integer(t.name):
        return numbers.astype(np.int64).astype(storage(t.name)).tobytes()
    return encode(numbers.astype(np.float64), t.name).tobytes()


def _memory(name: str, t: ir.Type, attempt: ArgumentGuess) -> Value:
    """What a pointer argument points to."""
    if isinstance(t, ir.Pointer):
        if isinstance(t.elem, ir.Pointer):
            raise NotMadeUp(f"{name} points to pointers to pointers")
        size = BUFFER_BYTES // TARGETS
        return PointersTo(tuple(_filled(f"{name}[{n}]", t.elem, attempt, size) for n in range(TARGETS)))
    return _filled(name, t, attempt, BUFFER_BYTES)


def _filled(name: str, t: ir.Type, attempt: ArgumentGuess, size: int) -> HostBuffer:
    """A buffer of `size` bytes full of objects of one type."""
    while isinstance(t, ir.Array):
        t = t.elem
    if t == ir.VOID:
        t = ir.BF16  # as a float too these bits are a plausible number
    rng = np.random.default_rng([zlib.crc32(name.encode()), attempt.size])
    if isinstance(t, ir.Scalar):
        one = np.frombuffer(_words(t, _contents(t, rng, attempt)), storage(t.name))
        return host_buffer(BufferSpec(name, t.name, (), role="inout"), t.name, np.resize(one, size // ir.sizeof(t)))
    leaves = list(_leaves(t, name, 0))
    if any(not isinstance(leaf, ir.Scalar) for _, leaf, _ in leaves):
        raise NotMadeUp(f"the memory of {name} holds pointers")
    width = ir.sizeof(t)
    rows = np.zeros((PERIOD, width), np.uint8)
    for _, leaf, offset in leaves:
        assert isinstance(leaf, ir.Scalar)
        words = np.frombuffer(_words(leaf, _contents(leaf, rng, attempt)), np.uint8)
        rows[:, offset : offset + ir.sizeof(leaf)] = words.reshape(PERIOD, -1)
    kinds = {leaf.name for _, leaf, _ in leaves if isinstance(leaf, ir.Scalar)}
    dtype = kinds.pop() if len(kinds) == 1 else "u8"
    if width % ir.SCALAR_BYTES[dtype]:
        dtype = "u8"
    words = np.frombuffer(np.resize(rows, size // width * width).tobytes(), storage(dtype))
    return host_buffer(BufferSpec(name, dtype, (), role="inout"), dtype, words)


def _contents(t: ir.Scalar, rng: np.random.Generator, attempt: ArgumentGuess) -> np.ndarray:
    if t.is_float:
        if attempt.integers == "signed":
            return rng.standard_normal(PERIOD)
        return rng.uniform(0.1, 1.0, PERIOD) * (2 / attempt.size if attempt.least else 1)
    if t == ir.BOOL:
        return rng.integers(0, 2, PERIOD)
    if attempt.integers == "zero":
        return np.zeros(PERIOD, np.int64)
    if attempt.integers == "rising" and ir.sizeof(t) > 1:
        return np.arange(PERIOD) % (1 << 15)
    if attempt.integers == "signed":
        return rng.integers(-8, 9, PERIOD)
    return rng.integers(attempt.least, 4, PERIOD)


# ---------------------------------------------------------------- launches


@dataclass(frozen=True)
class Bounds:
    """What a kernel says about its launch: exact and most threads of a block (PTX), blocks of a cluster; and the
    threads of a block that its source names, else 0."""

    required: tuple[int, ...] = ()
    most: tuple[int, ...] = ()
    cluster: tuple[int, ...] = ()
    launched: int = 0


Dim3 = tuple[int, int, int]


def launch_of(attempt: ArgumentGuess, bounds: Bounds) -> tuple[Dim3, Dim3, Dim3]:
    """(grid, block, cluster) of an attempt."""
    threads = math.prod(bounds.most) if bounds.most else 1024
    block: tuple[int, ...] = (min(threads, 128),)
    if bounds.required:
        block = bounds.required
    elif attempt.block and math.prod(attempt.block) <= threads:
        block = attempt.block
    elif bounds.launched:
        block = (min(bounds.launched, threads),)
    elif bounds.most and attempt.size < LARGE:
        block = (threads,)  # as most kernels with bounds are launched; block-wide reductions are made for it
    cluster = _dim3(bounds.cluster)
    return (attempt.blocks * cluster[0], cluster[1], cluster[2]), _dim3(block), cluster


def _dim3(given: tuple[int, ...]) -> Dim3:
    x, y, z = (*given, 1, 1, 1)[:3]
    return x, y, z


_THREADS = re.compile(r"(?:block|cta|thread).*(?:size|dim|num|count|per)|^(?:block|n?threads|tpb|num_?threads)$", re.I)
_INTEGER = re.compile(r"\s*(?:dim3\s*\(?)?\s*(\d+|[A-Za-z_]\w*)\s*\)?\s*$")


def threads_of_block(kernel: ir.Kernel, launches: Sequence[Launch], text: str, values: Mapping[str, object]) -> int:
    """The threads of a block that the source names for a kernel: its block-wide functions of cub, else one of the
    `launches` in its `text`, else a template value; 0 where nothing does."""
    blocks = [launch.block for launch in launches if launch.kernel.split("::")[-1] == kernel.name]
    return threads_of_cub(kernel) or launched_threads(blocks, text, values)


def threads_of_cub(kernel: ir.Kernel) -> int:
    """The threads of a block for which a kernel's block-wide functions of cub are made; 0 where it has none."""
    bodies = (kernel.body, *(f.body for f in kernel.functions.values()))
    for n in ir.walk(bodies):
        if isinstance(n, ir.Intrinsic) and n.name.startswith("cub::Block") and len(n.targs) > 1:
            threads = n.targs[1]
            if isinstance(threads, int) and 0 < threads <= 1024:
                return threads
    return 0


def launched_threads(blocks: Sequence[str], text: str, values: Mapping[str, object]) -> int:
    """The threads of a block as a launch in the source has them: a number, a constant of the file, a template value.

    Without such a launch: the template value that is named like one. 0: nothing says.
    """
    for block in blocks:
        found = _INTEGER.match(block)
        if not found:
            continue
        word = found.group(1)
        if not word.isdigit():
            given = values.get(word)
            constant = re.search(rf"(?:#define\s+{word}\s+|\b{word}\s*=\s*)\(?(\d+)\b", text)
            word = str(given) if isinstance(given, int) else constant.group(1) if constant else "0"
        if 0 < int(word) <= 1024:
            return int(word)
    named = (v for n, v in values.items() if isinstance(v, int) and not isinstance(v, bool) and _THREADS.search(n))
    return next((v for v in named if 32 <= v <= 1024), 0)
