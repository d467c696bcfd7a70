"""Backends by name: `--backend auto|emulator|gpu`. The module of a backend is imported when it is chosen."""

from __future__ import annotations

from porter.config import BACKENDS
from porter.model import Diagnostic, PorterError
from porter.verify.backend import Backend


def choose(name: str = "auto") -> Backend:
    """The backend of a name; "auto" takes the GPU where there is one. Raises PorterError PRT878 where it cannot run."""
    if name not in BACKENDS:
        raise PorterError(Diagnostic("PRT952", f"`backend` is {name!r}", help=f"give one of {', '.join(BACKENDS)}"))
    if name == "emulator":
        return _emulator()
    found, why = _gpu()
    if found is not None:
        return found
    if name == "gpu":
        help_ = "`--backend auto` takes the emulator where there is no GPU"
        raise PorterError(Diagnostic("PRT878", f"the GPU backend cannot run here: {why}", help=help_))
    return _emulator()


def _emulator() -> Backend:
    from porter.verify.emulator import EmulatorBackend

    return EmulatorBackend()


def _gpu() -> tuple[Backend | None, str]:
    """The GPU backend, or why it cannot run."""
    return None, "this porter has no GPU backend"
