"""PTX executed on the CPU: load a module, launch an entry over numpy buffers, get its outputs, violations and counts.

Usable alone; needs numpy only (llvmlite for the fast backend).
"""

from porter.verify.emulator.checks.sums import Sums
from porter.verify.emulator.checks.taps import Event, Taps
from porter.verify.emulator.checks.touched import Reached, Touched
from porter.verify.emulator.checks.violations import Checks, Violation
from porter.verify.emulator.decode.ir import Module
from porter.verify.emulator.decode.parse import load
from porter.verify.emulator.errors import LaunchError, PtxError, PtxSyntaxError, UnsupportedPtx
from porter.verify.emulator.launching import Result, adds_floats, launch, launch_ranks, telling_orders
from porter.verify.emulator.machine.directed import DIRECTED
from porter.verify.emulator.machine.perturb import Perturbation
from porter.verify.emulator.memory.buffers import Buffer, Multicast, Pointer, PointerTable

__all__ = [
    "DIRECTED",
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
    "Reached",
    "Result",
    "Sums",
    "Taps",
    "Touched",
    "UnsupportedPtx",
    "Violation",
    "adds_floats",
    "launch",
    "launch_ranks",
    "load",
    "telling_orders",
]
