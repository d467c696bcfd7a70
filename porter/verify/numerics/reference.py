"""The float64 reference that a case names: one of porter's own, or a function in a file beside the case."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from porter import codes
from porter.case.reader import Case


def load_reference(case: Case) -> Callable[..., Mapping[str, np.ndarray]] | None:
    """The reference function of a case, None when it names none. Raises PorterError PRT907 at the case's line.

    `file.py:function` is code of the case's author and is imported here; anything else is a name (and profile) of
    porter.verify.numerics.references.
    """
    name = case.reference
    if not name:
        return None
    if ".py:" in name:
        return _from_file(case, *name.rsplit(":", 1))
    from porter.verify.numerics import references

    try:
        return references.get(name)
    except KeyError as error:
        case.fail(codes.REFERENCE_NOT_LOADED, str(error.args[0]), "reference", "function")


def _from_file(case: Case, file: str, function: str) -> Callable[..., Mapping[str, np.ndarray]]:
    path = case.path.parent / file
    where = ("reference", "function")
    spec = importlib.util.spec_from_file_location(f"_porter_reference_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        case.fail(codes.REFERENCE_NOT_LOADED, f"there is no file {path}", *where)
    module: Any = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        case.fail(codes.REFERENCE_NOT_LOADED, f"{path} cannot be imported: {type(error).__name__}: {error}", *where)
    found = getattr(module, function, None)
    if not callable(found):
        known = sorted(n for n, v in vars(module).items() if callable(v) and not n.startswith("_"))
        case.fail(
            codes.REFERENCE_NOT_LOADED, f"{path} has no function {function}", *where, help=f"it has {', '.join(known)}"
        )
    return found
