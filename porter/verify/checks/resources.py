"""Registers, spills, shared memory, wide accesses, barriers: the port's against the original's, from PTX and cubin."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from porter import codes
from porter.model import Diagnostic, Severity
from porter.verify.checks.ptx_stats import PtxStats

REGISTER_WARNING, REGISTER_RATIO = 1.25, 1.5  # from here a warning, from there a failure
LOCAL_SLACK = 16  # bytes of local memory a thread that only warn: a register or two that the assembler put aside
LOCAL_ALIGNMENT = 32  # as LOCAL_SLACK where the original has such memory too: CuTeDSL aligns arrays of a thread to it
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

    @property
    def counts(self) -> dict[str, int]:
        """All numbers by name, for the record of a port."""
        found = asdict(self)
        return {**found.pop("stats"), **found}


def compare_resources(original: Usage, port: Usage, instance: str) -> list[Diagnostic]:
    """What the port uses more of than it may, as diagnostics; warnings do not fail the check.

    Fewer instructions or barriers are no complaint.
    """
    found = []

    def complain(message: str, help: str, severity: Severity = Severity.ERROR) -> None:
        label = f"{instance}: " if instance else ""
        found.append(Diagnostic(codes.USES_MORE_RESOURCES, label + message, severity=severity, help=help))

    ratio = port.registers / max(original.registers, 1)
    if original.registers and port.registers > FREE_REGISTERS and ratio > REGISTER_WARNING:
        complain(
            f"{port.registers} registers per thread, {ratio:.2f} times the original's {original.registers}",
            f"up to {REGISTER_RATIO} times is allowed: shorten live ranges, unroll less",
            Severity.WARNING if ratio <= REGISTER_RATIO else Severity.ERROR,
        )
    if port.local_bytes > original.local_bytes or (port.spills and not original.spills):
        few = port.local_bytes - original.local_bytes <= (LOCAL_ALIGNMENT if original.local_bytes else LOCAL_SLACK)
        spilled = f" ({port.spills} of them spilled and reloaded)" if port.spills else ""
        complain(
            f"{port.local_bytes} bytes of local memory per thread{spilled}, the original {original.local_bytes}",
            "a register array indexed at run time lives in local memory: unroll the loop that indexes it",
            Severity.WARNING if few else Severity.ERROR,
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
