"""Which architecture name a device compiles for, and how many SMs it has. No counts are written down here."""

from __future__ import annotations

import importlib
import os
from functools import cache
from typing import Any

# From 9.0 on, code that uses an architecture's own instructions needs the "a" target; such code runs on that
# compute capability only, which is right for a just-in-time compile for the device at hand.
_FIRST_SPECIFIC = (9, 0)


def arch_of_capability(major: int, minor: int) -> str:
    """The `sm_` name to compile for on compute capability major.minor: 9.0 -> sm_90a, 8.9 -> sm_89."""
    suffix = "a" if (major, minor) >= _FIRST_SPECIFIC else ""
    return f"sm_{major}{minor}{suffix}"


@cache
def _arch_of_index(index: int) -> str:
    torch = importlib.import_module("torch")
    return arch_of_capability(*torch.cuda.get_device_capability(index))


@cache
def _sm_count_of_index(index: int) -> int:
    torch = importlib.import_module("torch")
    return int(torch.cuda.get_device_properties(index).multi_processor_count)


def device_index(device: Any = None) -> int:
    """The CUDA device number of a torch device, a number, a string or None (the current device)."""
    if isinstance(device, int):
        return device
    torch = importlib.import_module("torch")
    found = torch.device("cuda") if device is None else torch.device(device)
    return int(torch.cuda.current_device() if found.index is None else found.index)


def arch_for(device: Any = None) -> str:
    """The architecture to compile for on a device (memoised). Raises what torch raises when there is no such device."""
    return _arch_of_index(device_index(device))


def sm_count(device: Any = None) -> int:
    """How many SMs a device has. PORTER_SM_COUNT overrides it: the verifier sets it where there is no GPU."""
    override = os.environ.get("PORTER_SM_COUNT")
    return int(override) if override else _sm_count_of_index(device_index(device))
