"""The table of float64 references, filled by the decorator `reference`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]
Scalars = Mapping[str, Any]
Sizes = Mapping[str, int]
Args = Mapping[str, Any]
Reference = Callable[[Arrays, Scalars, Sizes, Args], dict[str, np.ndarray]]

_REFERENCES: dict[str, Reference] = {}


def reference(*given: str) -> Callable[[Reference], Reference]:
    """Register a function under one or more names; floating-point warnings are off while it runs."""

    def register(function: Reference) -> Reference:
        def quiet(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
            with np.errstate(all="ignore"):
                return function(inputs, scalars, sizes, args)

        quiet.__name__, quiet.__doc__ = function.__name__, function.__doc__
        for name in given:
            if name in _REFERENCES:
                raise ValueError(f"two references are called {name}")
            _REFERENCES[name] = quiet
        return quiet

    return register


def get(name: str) -> Reference:
    """The reference called `name`, a profile included (`silu_and_mul:vllm`); raises KeyError with near names."""
    if name in _REFERENCES:
        return _REFERENCES[name]
    near = difflib.get_close_matches(name, _REFERENCES, n=3)
    hint = f"; did you mean {', '.join(near)}?" if near else f"; there are {', '.join(names())}"
    raise KeyError(f"no float64 reference `{name}`{hint}")


def names() -> list[str]:
    """All names, sorted."""
    return sorted(_REFERENCES)
