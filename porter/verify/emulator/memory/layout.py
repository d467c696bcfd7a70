"""The emulated machine's address space: where each state space lies, and where module variables go."""

from __future__ import annotations

from dataclasses import dataclass

from porter.verify.emulator.decode.ir import Module, Variable

# Generic addresses. Everything below the windows is global memory. The .shared and .local windows are 4 GiB each; as on
# hardware one window serves every block and thread. A .shared::cluster address carries (rank + 1) << CLUSTER_SHIFT.
GLOBAL_BASE = 0x7000_0000_0000
MULTICAST_BASE = 0x6000_0000_0000
SHARED_WINDOW = 0x7FF0_0000_0000
LOCAL_WINDOW = 0x7FF4_0000_0000
PARAM_WINDOW = 0x7FF8_0000_0000
FUNCTION_BASE = 0x7FFC_0000_0000
WINDOW_BITS = 32
CLUSTER_SHIFT = 24
WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_WINDOW}
ALLOCATION_ALIGN = 256


def align_up(value: int, to: int) -> int:
    return (value + to - 1) // to * to


@dataclass(frozen=True, slots=True)
class Placed:
    """A module variable of global or const space and its address."""

    variable: Variable
    address: int


def place_variables(module: Module, guard: int = 256) -> dict[str, Placed]:
    """Addresses of all .global and .const variables: fixed by the module alone, so code may hold them."""
    found = module.cache.get("placed")
    if found is None:
        placed: dict[str, Placed] = {}
        at = GLOBAL_BASE
        for variable in module.variables.values():
            if variable.space in ("global", "const"):
                at = align_up(at, max(ALLOCATION_ALIGN, variable.align))
                placed[variable.name] = Placed(variable, at)
                at += variable.size + guard
        found = module.cache["placed"] = placed
        module.cache["placed_end"] = align_up(at, 1 << 20)
    return found  # type: ignore[return-value]


def first_free(module: Module) -> int:
    """Where the buffers of a launch start."""
    place_variables(module)
    return module.cache["placed_end"]  # type: ignore[return-value]
