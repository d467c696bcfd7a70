"""PTX executed on the CPU: load a module, launch an entry over numpy buffers, get its outputs, violations and counts.

Usable alone; needs numpy only (llvmlite for the fast backend).
"""

from porter.verify.ptx.checks import Checks, Violation
from porter.verify.ptx.errors import LaunchError, PtxError, PtxSyntaxError, UnsupportedPtx
from porter.verify.ptx.ir import Module
from porter.verify.ptx.launching import Result, launch, launch_ranks
from porter.verify.ptx.memory import Buffer, Multicast, Pointer, PointerTable
from porter.verify.ptx.parse import load
from porter.verify.ptx.perturb import Perturbation
from porter.verify.ptx.taps import Event, Taps

__all__ = [
    "Buffer",
    "Checks",
    "Event",
    "LaunchError",
    "Module",
    "Multicast",
    "Perturbation",
    "Pointer",
    "PointerTable",
    "PtxError",
    "PtxSyntaxError",
    "Result",
    "Taps",
    "UnsupportedPtx",
    "Violation",
    "launch",
    "launch_ranks",
    "load",
]
