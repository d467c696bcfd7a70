"""Kernels for inference engines in CuTeDSL, the library that ports are built on, and the runtime of both.

`porter.corpus.NAME` is the function of an op (`rms_norm`, ...); the first use imports torch and registers
`torch.ops.porter.*`. Kernels are compiled on their first launch, or by `porter.corpus.warm_up`, which
takes what `porter.corpus.model_calls` lists for a model.
"""

from typing import Any

_OWN = {"warm_up": "build", "model_calls": "models.calls"}  # functions that are no ops, and their modules


def __getattr__(name: str) -> Any:
    import importlib.util

    # `from porter.corpus import lib` asks here first: modules of the package must not bring torch and the ops along.
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is None:
        own = _OWN.get(name)
        module = importlib.import_module(f"{__name__}.{own or 'ops'}")
        if own or name in module.__all__:
            found = globals()[name] = getattr(module, name)  # once: coming here at every call takes a microsecond
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
