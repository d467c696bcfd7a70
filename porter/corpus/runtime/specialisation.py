"""A kernel with every static choice made: compiled once an architecture, kept on disk, loaded once a process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from porter.corpus.runtime import dsl
from porter.corpus.runtime.cache import ArtifactCache, digest
from porter.corpus.runtime.kernel import Compiled
from porter.corpus.runtime.overlap import checked_launch
from porter.corpus.runtime.overlap_check import pairs_of
from porter.corpus.runtime.signature import Argument, compile_arguments

_CACHE = ArtifactCache("corpus", shipped=True)
_LIBRARY = Path(__file__).resolve().parent.parent / "lib"


class Specialisation:
    """Base of corpus kernels: frozen dataclasses whose fields are the static choices, plain values only.

    A subclass has `__call__`, a `@cute.jit` function of the arguments, then `blocks` (Int32, how many to launch), then
    `stream`; it launches `kernel`, a `@cute.kernel` function of the arguments, or several such functions in turn.
    """

    @property
    def threads(self) -> int:
        """Threads of a block."""
        raise NotImplementedError

    @property
    def cluster(self) -> int:
        """Blocks of a cluster."""
        return 1

    @property
    def cooperative(self) -> bool:
        """Whether all blocks of a launch must run at once."""
        return False

    def grids(self, blocks: int) -> tuple[tuple[int, int, int], ...]:
        """(blocks, threads of a block, blocks of a cluster) of each launch of a call with so many `blocks`, where they
        differ; (): all launches have `blocks`, `threads` and `cluster`."""
        return ()

    def arguments(self) -> tuple[Argument, ...]:
        """What the kernel is called with, `blocks` and `stream` left out."""
        raise NotImplementedError


def compiled(kernel: Specialisation, arch: str, flavour: str = "ffi") -> Compiled:
    """The kernel compiled for an architecture (no GPU needed), from the cache when it has been before.

    What CuTeDSL raises is passed on.
    """

    def write(folder: Path) -> None:
        dsl.build(folder, kernel, lambda: _arguments(kernel), arch, flavour, pairs_of(kernel.arguments()))

    return Compiled(_CACHE.get_or_build(cache_key(kernel, arch, flavour), write))


def cache_key(kernel: Specialisation, arch: str, flavour: str) -> str:
    """Everything that the compiled code depends on."""
    kind = type(kernel)
    name = f"{kind.__module__}.{kind.__qualname__}"
    what = (repr(kernel), repr(kernel.arguments()))
    return digest([dsl.FORMAT, *_sources(kind.__module__), name, *what, arch, dsl.dsl_version(), flavour])


@cache
def loaded(kernel: Specialisation, arch: str) -> Callable[..., None]:
    """The launch function: the kernel's arguments as torch tensors and numbers, then the number of blocks.

    It checks dtypes, shapes, strides, alignment, devices and overlaps (ValueError, TypeError), launches on torch's
    current stream of the tensors' device, and does not synchronise.
    """
    made, pairs = compiled(kernel, arch), pairs_of(kernel.arguments())
    return made.load() if made.checks_overlap or not pairs else checked_launch(made.load(), pairs)


@cache
def _sources(module: str) -> tuple[bytes, ...]:
    """The text of the library and of the kernel's folder, which is what a kernel may be made of."""
    file = sys.modules[module].__file__
    assert file is not None
    return tuple(f.read_bytes() for folder in (_LIBRARY, Path(file).parent) for f in sorted(folder.rglob("*.py")))


def _arguments(kernel: Specialisation) -> list[Any]:
    import cutlass

    *arguments, stream = compile_arguments(kernel.arguments())
    return [*arguments, cutlass.Int32(1), stream]
