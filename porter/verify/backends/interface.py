"""Where a compiled kernel runs: one interface, with the emulator (emulator.py) and GPUs (gpu.py) behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from porter.case.reader import LaunchShape
from porter.verify.launches.buffers import HostBuffer

Argument = HostBuffer | int | float | bool | None  # None is a null pointer


@dataclass(frozen=True)
class Build:
    """A compiled kernel: PTX and, where one was made, a cubin.

    `fused`: how the emulator fuses products and sums before it runs the PTX (emulator/decode/contraction.py); "": not
    at all. `work`: thread instructions, about, after which an emulated launch is ended; 0: what the backend allows.
    """

    label: str  # "original" or "port", for messages
    ptx: str = field(repr=False)
    entry: str
    arch: str
    cubin: bytes = field(default=b"", repr=False)
    fused: Literal["", "first", "second"] = ""
    work: int = 0


@dataclass(frozen=True)
class RunOptions:
    """How a launch is run.

    `schedule` seeds the order in which blocks and warps run; one below zero is a chosen one of the backend's
    (`directed`). `checks`: look for violations. `fill`: the byte that shared and local memory is full of at the start.
    `variables`: what module variables hold, by their names in the PTX; the kernel's writes are in the buffers
    afterwards.
    """

    schedule: int = 0
    checks: bool = True
    fill: int = 0
    variables: Mapping[str, HostBuffer] = field(default_factory=dict)


ORDINARY = RunOptions()


@dataclass(frozen=True)
class Violation:
    """Something a kernel must not do. `kind` is a word (race, ...); `line` the source line, 0: unknown."""

    kind: str
    message: str
    file: str = ""
    line: int = 0
    ptx_line: int = 0
    space: str = ""  # of the memory: global, shared, local; "" where it does not apply


@dataclass(frozen=True)
class Summed:
    """What float atomics added to a buffer, one number for each word of its `raw`. `rounding`: of one addition."""

    terms: np.ndarray
    magnitude: np.ndarray  # of the terms, added up
    rounding: float


@dataclass(frozen=True)
class RunResult:
    """What a launch did besides writing to its buffers. `error` is set when it could not be run at all.

    `sums`: by buffer, what float atomics added; None where the backend does not count. `work`: what the
    launch took of the backend's budget, 0 where it has none.
    """

    violations: tuple[Violation, ...] = ()
    seconds: float = 0.0
    instructions: int = 0  # thread instructions; 0 where the backend does not count
    error: str = ""
    sums: Mapping[str, Summed] | None = None
    work: int = 0
    strong_writes: int = 0  # to global memory: atomics and strong stores; where the backend counts them


class Backend(Protocol):
    """Runs builds. Launches write into the HostBuffers they are given."""

    name: str
    checked: tuple[str, ...]  # kinds of violations that it looks for; what is not listed has not been checked
    schedules: tuple[int, ...]  # of the repeats that the determinism check compares

    @property
    def sm_count(self) -> int:
        """Of the machine: launches that fill it are as large as this says."""
        ...

    def run(
        self, build: Build, shape: LaunchShape, arguments: Sequence[Argument], options: RunOptions = ORDINARY
    ) -> RunResult:
        """One launch. Backends that cannot choose `options.fill` report no uninitialised reads of that memory."""
        ...
