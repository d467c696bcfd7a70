"""What compiled code asks of the machine: special registers and instructions whose answers no kernel controls.

A port may ask nothing that its original does not ask. Where both do, the emulator answers otherwise under each schedule
(emulator/machine/drawn), so that what depends on it shows as nondeterminism.
"""

from __future__ import annotations

import re

NO_QUESTIONS = "a result may not depend on the machine, the time or the place where a block runs"

# of the launch alone: where a thread is in it, and how large it is
_OF_THE_LAUNCH = re.compile(
    r"(n?tid|n?ctaid|n?clusterid|cluster_n?ctaid|cluster_n?ctarank|laneid|lanemask_(eq|lt|le|gt|ge)|is_explicit_cluster"
    r"|envreg[12])"  # of a cooperative launch: where grid barriers are counted
)
_SPECIAL = (
    *("warpid", "nwarpid", "smid", "nsmid", "gridid", "current_graph_exec"),
    *("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi"),
    *("total_smem_size", "aggr_smem_size", "dynamic_smem_size"),
    *("reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap"),
)
_REGISTER = re.compile(r"%(" + "|".join(sorted(_SPECIAL, key=len, reverse=True)) + r"|pm\d(?:_64)?|envreg\d+)\b")
_INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?(discard|pmevent|brkpt)\b", re.MULTILINE)


def machine_reads(ptx: str) -> frozenset[str]:
    """Special registers (`%smid`) and instructions in PTX that ask or tell the machine what is not of the launch."""
    registers = {f"%{m}" for m in _REGISTER.findall(ptx) if not _OF_THE_LAUNCH.fullmatch(m)}
    return frozenset(registers | set(_INSTRUCTION.findall(ptx)))


def own_reads(original: str, port: str) -> list[str]:
    """What only the port asks, in order."""
    return sorted(machine_reads(port) - machine_reads(original))
