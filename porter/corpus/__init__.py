"""Kernels for inference engines in CuTeDSL, the library that ports are built on, and the runtime of both.

`porter.corpus.NAME` is the function of an op (`rms_norm`, ...); the first use imports torch and registers
`torch.ops.porter.*`. Kernels are compiled on their first launch, or by `porter.corpus.warm_up`.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    import importlib

    if not name.startswith("_"):
        module = importlib.import_module("porter.corpus.build" if name == "warm_up" else "porter.corpus.ops")
        if name == "warm_up" or name in module.__all__:
            found = globals()[name] = getattr(module, name)  # once: coming here at every call takes a microsecond
            return found
    raise AttributeError(f"module 'porter.corpus' has no attribute {name!r}")
