"""Backends by name: `--backend auto|emulator|gpu`. The module of a backend is imported when it is chosen."""

from __future__ import annotations

from porter import codes
from porter.config import BACKENDS
from porter.model import Diagnostic, PorterError
from porter.verify.backends.interface import Backend


def choose(name: str = "auto", arch: str = "") -> Backend:
    """The backend of a name; "auto" takes the first GPU where there is one, "gpu:1" is the second.

    With `arch` ("sm_90a"), a GPU that does not run its cubins is as good as none. Raises PorterError PRT878
    where it cannot run, PRT952 for another name.
    """
    base, _, number = name.partition(":")
    if base not in BACKENDS or (number and (base != "gpu" or not number.isdecimal())):
        raise PorterError(
            Diagnostic(codes.BAD_OPTION, f"`backend` is {name!r}", help=f"give one of {', '.join(BACKENDS)}")
        )
    if name == "emulator":
        return emulator()
    found, why = _gpu(int(number or 0), arch)
    if found is not None:
        return found
    if base == "gpu":
        help_ = "`--backend auto` uses the emulator where there is no GPU"
        raise PorterError(Diagnostic(codes.BACKEND_UNAVAILABLE, f"the GPU backend cannot run here: {why}", help=help_))
    return emulator()


def emulator(seconds: float = 0.0) -> Backend:
    """The emulator, imported here: numpy is not there for everyone who names a backend. `seconds` of CPU time a launch;
    0: as many as it has by itself."""
    from porter.verify.backends.emulator import SECONDS, EmulatorBackend

    return EmulatorBackend(seconds=seconds or SECONDS)


def _gpu(index: int, arch: str) -> tuple[Backend | None, str]:
    """The GPU backend, or why it cannot run."""
    from porter.verify.backends.gpu import GpuBackend, has_driver

    if not has_driver():
        return None, "no NVIDIA driver (libcuda.so.1) on this machine"
    backend = GpuBackend(index)
    try:
        facts = backend.facts
    except PorterError as error:
        return None, error.diagnostics[0].message
    if arch and not facts.runs(arch):
        return None, f"{facts.name} is {facts.arch} and cannot run cubins for {arch}"
    return backend, ""
