"""What a fenced child compiled, before it gets into the cache: everything that can be read off the code itself is."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from porter.corpus.runtime import read_cubin

REQUIRED_FILES = ("kernel.ptx", "kernel.cubin", "meta.json")
OPTIONAL_FILES = ("kernel.o",)
PORT = "<port>"  # what stands in kept PTX for the port's path: an answer of the cache serves a port in any folder
_FILE = re.compile(rb'^(\s*\.file\s+\d+\s+")([^"\n]*)(")', re.M)
_MOST = 1 << 40  # no count of bytes is larger


def checked(files: Mapping[str, bytes], arch: str) -> dict[str, bytes]:
    """The files with a meta.json of porter's own making: entries from the PTX, resources from the cubin.

    Only the bytes spilled come from the child: nothing else says them. Raises ValueError where the files do not fit.
    """
    entries = re.findall(r"\.entry\s+([\w$]+)", files["kernel.ptx"].decode())
    try:
        kernels = read_cubin(files["kernel.cubin"])
    except (struct.error, IndexError) as error:
        raise ValueError(f"its cubin cannot be read: {error}") from None
    missing = [e for e in entries if e not in kernels]
    if not entries or missing:
        raise ValueError(f"its cubin has no kernel {missing[0]}" if missing else "its PTX has no kernel")
    recorded = json.loads(files["meta.json"]).get("resources", {})
    resources = {
        name: {
            "registers": kernel.registers,
            "local_bytes": kernel.local_bytes,
            "spill_stores": _count(recorded, name, "spill_stores"),
            "spill_loads": _count(recorded, name, "spill_loads"),
            "static_smem": kernel.shared_bytes,
        }
        for name, kernel in kernels.items()
    }
    meta = {"schema": 1, "arch": arch, "entries": entries, "resources": resources}
    return {**files, "meta.json": json.dumps(meta).encode()}


def without_path(ptx: bytes, port: Path) -> bytes:
    """The PTX of a port, PORT in its line table in place of the port's path."""
    return _FILE.sub(lambda m: m[1] + PORT.encode() + m[3] if m[2] == os.fsencode(port) else m[0], ptx)


def with_path(ptx: str, port: Path) -> str:
    """The inverse of `without_path`, for a port that may lie elsewhere by now."""
    return ptx.replace(f'"{PORT}"', f'"{port}"')


def _count(recorded: Any, kernel: str, name: str) -> int:
    value = recorded[kernel][name] if kernel in recorded else 0
    if not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError(f"{name} of {kernel} is {value!r}")
    return value
