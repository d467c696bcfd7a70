"""What is known of a compiled original: apart from how it is made, so that a machine without libclang can hold it."""

from __future__ import annotations

from dataclasses import dataclass, field

from porter.model import Instance


@dataclass(frozen=True)
class OriginalBuild:
    """One instance of the original. `entry` is its symbol; registers and bytes are 0 when no cubin was asked for.

    `.loc` lines of the PTX are those of the .cu file. `seconds` is 0 when it came from the cache.
    """

    instance: Instance
    ptx: str = field(repr=False)
    cubin: bytes = field(repr=False)
    entry: str
    registers: int
    local_bytes: int
    static_smem: int
    log: str = field(repr=False)
    seconds: float
