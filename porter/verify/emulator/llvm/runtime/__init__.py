"""The runtime that compiled code calls and is called by, written in C: how its functions are called, its machine code.

`python -m tools.emulator_runtime` compiles the C beside this file to `runtime.ll`, which is all that is needed later.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from porter.verify.emulator.llvm.machine_code import cache_folder, generate, host, write_atomically

COMPILED = Path(__file__).with_name("runtime.ll")


class Signature(NamedTuple):
    """Types of LLVM IR."""

    result: str
    parameters: tuple[str, ...]


@lru_cache(maxsize=1)
def text() -> str:
    return COMPILED.read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def signatures() -> dict[str, Signature]:
    """The functions that compiled code may call, by name."""
    found = {}
    for result, name, parameters in re.findall(r"^define (\w+) @(\w+)\((.*)\) \{$", text(), re.MULTILINE):
        found[name] = Signature(result, tuple(p.split()[0] for p in parameters.split(", ")))
    return found


@lru_cache(maxsize=1)
def machine_code() -> bytes:
    """An object file for this CPU, from the cache folder or compiled now."""
    digest = hashlib.blake2b(f"{host().key}\0{text()}".encode(), digest_size=20).hexdigest()
    path = cache_folder() / f"runtime-{digest}.o"
    try:
        return path.read_bytes()
    except OSError:
        code = generate(text(), host().machine(opt=2))
        write_atomically(path, code)
        return code
