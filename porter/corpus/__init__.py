"""Kernels for inference engines in CuTeDSL, the library that ports are built on, and the runtime of both.

`porter.corpus.NAME` is the function of an op (`rms_norm`, ...); the first use imports torch and registers
`torch.ops.porter.*`. Kernels are compiled on their first launch.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    import importlib

    if not name.startswith("_"):
        ops = importlib.import_module("porter.corpus.ops")
        if name in ops.__all__:
            found = globals()[name] = getattr(
                ops, name
            )  # looked up here once: a function like this costs a microsecond
            return found
    raise AttributeError(f"module 'porter.corpus' has no attribute {name!r}")
