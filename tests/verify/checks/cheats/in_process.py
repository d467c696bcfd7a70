"""Torch-facing functions called in this process: for ports that the tests make themselves, without a child for each."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from porter.verify.checks.entry.child import call_all
from porter.verify.compile.child import _failure


def ask(path: Path, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What `entry_answers` answers, from a module that is imported here and forgotten again."""
    name = f"_asked_{path.stem}_{abs(hash(str(path)))}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    kept = os.environ.get("PORTER_SM_COUNT")
    try:
        spec.loader.exec_module(module)
        request = {"calls": calls, "port": str(path)}
        return {
            "ok": True,
            **call_all(module, request, lambda error: _failure(error, str(path)), "torch" in vars(module)),
        }
    finally:
        del sys.modules[name]
        if kept is not None:
            os.environ["PORTER_SM_COUNT"] = kept
