"""Kernels for inference engines in CuTeDSL, the library that ports are built on, and the runtime of both.

`porter.corpus.NAME` is the function of an op (`rms_norm`, ...); the first use imports torch and registers
`torch.ops.porter.*`. Kernels are compiled on their first launch, or by `porter.corpus.warm_up`.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    import importlib.util

    # `from porter.corpus import lib` asks here first: modules of the package must not bring torch and the ops along.
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is None:
        module = importlib.import_module(f"{__name__}.build" if name == "warm_up" else f"{__name__}.ops")
        if name == "warm_up" or name in module.__all__:
            found = globals()[name] = getattr(module, name)  # once: coming here at every call takes a microsecond
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
