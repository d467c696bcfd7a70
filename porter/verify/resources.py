"""Registers, spills, shared memory, wide accesses, barriers: the port's against the original's, from PTX and cubin."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from porter.model import Diagnostic
from porter.verify.ptx_stats import PtxStats

CODE = "PRT812"
REGISTER_RATIO = 1.25
FREE_REGISTERS = 32  # up to here every block size reaches full occupancy
SHARED_RATIO, SHARED_SLACK = 1.25, 1024


@dataclass(frozen=True)
class Usage:
    """What one compiled kernel uses. Registers are 0 where no cubin was made; bytes are per thread (local) or block."""

    stats: PtxStats
    registers: int = 0
    local_bytes: int = 0
    spills: int = 0
    shared_bytes: int = 0


def compare_resources(original: Usage, port: Usage, instance: str) -> list[Diagnostic]:
    """What the port uses more of than it may, as diagnostics. Fewer instructions or barriers are no complaint."""
    found = []

    def complain(message: str, help: str) -> None:
        found.append(Diagnostic(CODE, f"{instance}{': ' if instance else ''}{message}", help=help))

    limit = max(REGISTER_RATIO * original.registers, FREE_REGISTERS)
    if original.registers and port.registers > limit:
        complain(
            f"{port.registers} registers a thread, the original {original.registers}",
            f"{REGISTER_RATIO} times as many (and {FREE_REGISTERS}) are allowed: shorten live ranges, unroll less",
        )
    if port.spills and not original.spills:
        complain(f"spills {port.spills} bytes, the original none", "too many values are alive at once")
    if port.local_bytes > original.local_bytes:
        complain(
            f"{port.local_bytes} bytes of local memory a thread, the original {original.local_bytes}",
            "a register array indexed at run time lives in local memory: unroll the loop that indexes it",
        )
    if port.shared_bytes > SHARED_RATIO * original.shared_bytes + SHARED_SLACK:
        complain(f"{port.shared_bytes} bytes of static shared memory, the original {original.shared_bytes}", "")
    for kind in ("loads", "stores"):
        wide = getattr(original.stats, f"{kind}_128") + getattr(original.stats, f"{kind}_256")
        kept = getattr(port.stats, f"{kind}_128") + getattr(port.stats, f"{kind}_256")
        if wide and not kept:
            complain(
                f"no 128-bit global {kind}, the original has {wide}",
                "give the tensor an alignment of 16 bytes and copy vectors, not elements",
            )
    return found


def summary(original: Usage, port: Usage) -> str:
    """One line: registers, wide loads and stores, barriers, port against original."""
    o, p = original.stats, port.stats
    parts = [f"registers {port.registers} ({original.registers})"] if port.registers else []
    parts.append(f"128-bit loads {p.loads_128 + p.loads_256} ({o.loads_128 + o.loads_256})")
    parts.append(f"stores {p.stores_128 + p.stores_256} ({o.stores_128 + o.stores_256})")
    parts.append(f"barriers {p.barriers} ({o.barriers})")
    return ", ".join(parts)


def as_data(usage: Usage) -> dict[str, int]:
    """The numbers of a usage as plain data, for the record of a port."""
    found = asdict(usage)
    return {**found.pop("stats"), **found}
