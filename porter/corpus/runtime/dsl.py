"""One call of cute.compile, made safe to repeat: own dump folder, one at a time in a process, everything kept as files.

CuTeDSL is not thread-safe and names its dumps by the host signature only, so two compiles must share neither.
It can also crash the process: compile unverified code in a child process (porter.verify.compile.worker).
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import json
import os
import re
import shlex
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from porter.corpus.runtime.cubin import read_cubin
from porter.corpus.runtime.overlap_check import Pair, checking

_LOCK = threading.RLock()
# CuTeDSL puts "cutlass" into names of kernels, and ptxas decides otherwise where it finds that word. Seen in the SASS
# of reference ports (ptxas 13.4): four registers more, a load behind a reciprocal, exponentials one after the other.
# Names of porter's kernels say "porter"; PORTER_NAME_PREFIX=cutlass compiles as CuTeDSL would, to compare.
NAME_PREFIX = os.environ.get("PORTER_NAME_PREFIX", "porter")
FORMAT = f"2 {NAME_PREFIX}"  # of what `build` writes, part of every cache key; raise the number when that changes
FUNCTION = "launch"  # name of the host function in the exported object file
FLAVOURS = ("ffi", "ptx")  # with the host side exported for TVM-FFI; device code only
WITHOUT_REMARKS = ("4.2.", "4.3.", "4.4.", "4.5.", "4.6.")  # versions that refuse the options; spills are then 0


@dataclass(frozen=True)
class Resources:
    """What ptxas says of one kernel. `local_bytes` is the stack frame a thread; spills are bytes stored and loaded."""

    registers: int
    local_bytes: int
    spill_stores: int
    spill_loads: int
    static_smem: int


@cache
def dsl_version() -> str:
    """The installed CuTeDSL version; raises importlib.metadata.PackageNotFoundError when there is none."""
    return importlib.metadata.version("nvidia-cutlass-dsl")


def build(
    folder: Path, launch: Any, args: Callable[[], Sequence[Any]], arch: str, flavour: str, pairs: Sequence[Pair] = ()
) -> None:  # fmt: skip
    """Compile `launch` for `arch` and write kernel.ptx, kernel.cubin, meta.json and, for "ffi", kernel.o into `folder`.

    `args()` makes the compile-time arguments. What the DSL raises for a wrong program is passed on, with the PTX as its
    attribute `ptx` if the compile got that far. The exported function raises ValueError where `pairs` of
    arguments overlap; meta.json says whether it does.
    """
    cute = importlib.import_module("cutlass.cute")
    with _LOCK, tempfile.TemporaryDirectory(prefix="porter-dump-") as dumps, warnings.catch_warnings():
        # A block size known only at the launch is how ports are written; the DSL warns that it cannot state .reqntid.
        warnings.filterwarnings("ignore", message=".*nvvm.reqntid.*")
        remarks = Path(dumps) / "remarks.yaml"
        options = ["--keep-ptx", "--keep-cubin", "--generate-line-info", "--gpu-arch", arch, "--dump-dir", dumps]
        if not dsl_version().startswith(WITHOUT_REMARKS):
            options += ["--remark-filter", ".*", "--remark-output", str(remarks)]
        if flavour == "ffi":
            options.append("--enable-tvm-ffi")
        try:
            with _named(NAME_PREFIX), checking(pairs if flavour == "ffi" else ()) as checked:
                compiled = cute.compile(launch, *args(), options=shlex.join(options))
        except Exception as error:
            # When ptxas rejects the code, its PTX is in the dump folder already; ptxas names lines of it.
            for dump in Path(dumps).glob("*.ptx"):
                error.ptx = dump.read_text().rstrip("\0")  # type: ignore[attr-defined]
            raise
        ptx, cubin = compiled.__ptx__, compiled.__cubin__
        if not isinstance(ptx, str) or ".entry" not in ptx or not isinstance(cubin, bytes):
            raise RuntimeError("CuTeDSL kept no PTX and cubin of this compile (is there a kernel launch in it?)")
        ptx = ptx.rstrip("\0")
        entries = re.findall(r"\.entry\s+([\w$]+)", ptx)
        notes = remarks.read_text() if remarks.is_file() else ""
        resources = {name: asdict(r) for name, r in _resources(cubin, notes).items()}
        (folder / "kernel.ptx").write_text(ptx)
        (folder / "kernel.cubin").write_bytes(cubin)
        meta = {"schema": 1, "arch": arch, "entries": entries, "resources": resources, "checked": len(pairs) in checked}
        (folder / "meta.json").write_text(json.dumps(meta))
        if flavour == "ffi":
            compiled.export_to_c(str(folder / "kernel.o"), function_name=FUNCTION)


@contextlib.contextmanager
def _named(prefix: str) -> Iterator[None]:
    """The DSL's own word in kernel names, replaced meanwhile; versions that keep it elsewhere are left as they are."""
    base = getattr(importlib.import_module("cutlass.cutlass_dsl.cutlass"), "CutlassBaseDSL", None)
    usual = getattr(base, "_name_mangling_prefix", None)
    if base is None or not usual:
        yield
        return
    base._name_mangling_prefix = prefix
    try:
        yield
    finally:
        base._name_mangling_prefix = usual


def load(object_file: Path) -> Callable[..., None]:
    """The launch function of an exported object file, called positionally with numbers and addresses."""
    runtime = importlib.import_module("cutlass.cute.runtime")
    with _LOCK:
        return runtime.load_module(str(object_file), enable_tvm_ffi=True)[FUNCTION]


_FUNCTION_LINE = re.compile(
    r"Function properties for ([\w$]+)\s*\n"
    r".*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)


def _resources(cubin: bytes, remarks: str) -> dict[str, Resources]:
    spills = {name: (int(st), int(ld)) for name, _, st, ld in _FUNCTION_LINE.findall(remarks)}
    return {
        k.name: Resources(k.registers, k.local_bytes, *spills.get(k.name, (0, 0)), k.shared_bytes)
        for k in read_cubin(cubin).values()
    }
