"""`porter doctor`: what is installed, what is missing, and the command that fixes each. Changes nothing."""

from __future__ import annotations

import importlib
import importlib.util
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from porter.extras import install

if TYPE_CHECKING:
    from rich.console import Console

MIB = 1 << 20


@dataclass(frozen=True)
class Requirement:
    """One line: what, whether it is there, what was found, what it is for, and how to get it."""

    name: str
    ok: bool
    found: str
    need: str  # what does not work without it
    required: bool
    fix: str = ""


def examine() -> list[Requirement]:
    """Everything porter uses, in the order of the pipeline. Probes that load a library run here, in this process."""
    probes: list[Callable[[], Requirement]] = [
        python,
        lambda: library("numpy", "numpy", "reading cases and comparing results", required=True),
        libclang,
        lambda: library("llvmlite", "llvmlite", "running PTX on the CPU at speed", required=True),
        dsl,
        nvrtc,
        lambda: library("torch", "torch", "calling a port from torch, torch references", extra="torch"),
        lambda: library("anthropic", "anthropic", "porter port --agent", extra="agent"),
        lambda: library("textual", "textual", "porter review in the terminal", extra="review"),
        nvdisasm,
        gpu,
        fence,
        cache_folder,
        output_folder,
    ]
    return [probe() for probe in probes]


def fence() -> Requirement:
    from porter.verify.compile.fence import available_layers

    layers = available_layers()
    whole = len(layers) == 4
    fix = (
        ""
        if whole
        else "docs/fence.md: Linux 5.13 or later with Landlock and seccomp; else read ports before verifying"
    )
    return Requirement("fence", whole, ", ".join(layers), "verifying ports that you do not trust", False, fix)


def python() -> Requirement:
    ok = sys.version_info >= (3, 11)
    return Requirement(
        "python", ok, platform.python_version(), "everything", True, "" if ok else "install Python 3.11 or later"
    )


def library(name: str, package: str, need: str, *, required: bool = False, extra: str = "") -> Requirement:
    """An importable package, found without importing it."""
    fix = install(extra) if extra else f"pip install {package}"
    version = version_of(package)
    if version is None:
        return Requirement(name, False, "not installed", need, required, fix)
    return Requirement(name, True, version, need, required)


def libclang() -> Requirement:
    """libclang really loads: the binding alone (package `clang`) has no library in it."""
    need, fix = "reading CUDA", "pip install libclang-ng"
    version = version_of("libclang-ng") or version_of("libclang")
    try:
        cindex = importlib.import_module("clang.cindex")
        cindex.Index.create()
    except Exception as error:
        return Requirement("libclang", False, f"does not load: {first_line(error)}", need, True, fix)
    return Requirement("libclang", True, version or "found", need, True)


def dsl() -> Requirement:
    """CuTeDSL with the CUDA 13 libraries: the plain wheel brings CUDA 12 only and cannot target every architecture."""
    need, fix = "compiling ports", install("dsl")
    version = version_of("nvidia-cutlass-dsl")
    if version is None or importlib.util.find_spec("cutlass") is None:
        return Requirement("CuTeDSL", False, "not installed", need, True, fix)
    flavours = [f for f in ("cu12", "cu13") if version_of(f"nvidia-cutlass-dsl-libs-{f}")]
    if "cu13" not in flavours:
        return Requirement("CuTeDSL", False, f"{version}, without the CUDA 13 libraries", need, True, fix)
    return Requirement("CuTeDSL", True, f"{version} ({', '.join(flavours)})", need, True)


def nvrtc() -> Requirement:
    """NVRTC from pip, with the headers the originals include."""
    need, fix = "compiling the original to verify against", install("oracle")
    found = {p: version_of(p) for p in ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-cccl")}
    missing = [p for p, v in found.items() if v is None]
    if missing:
        return Requirement("NVRTC", False, f"not installed: {', '.join(missing)}", need, True, fix)
    return Requirement("NVRTC", True, str(found["nvidia-cuda-nvrtc"]), need, True)


def nvdisasm() -> Requirement:
    """nvdisasm of pip's package, or on PATH."""
    from porter.verify.compile.nvdisasm import find_nvdisasm

    need, found = "machine code in porter review", find_nvdisasm()
    if found is None:
        return Requirement("nvdisasm", False, "not installed", need, False, install("review", "nvidia-cuda-nvdisasm"))
    return Requirement("nvdisasm", True, version_of("nvidia-cuda-nvdisasm") or str(found), need, False)


def gpu() -> Requirement:
    """The GPUs nvidia-smi lists; none is fine."""
    need = "measuring performance (everything else runs on the CPU)"
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Requirement("GPU", False, "none (no nvidia-smi)", need, False)
    try:
        query = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
        out = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return Requirement("GPU", False, f"nvidia-smi fails: {first_line(error)}", need, False, "check the driver")
    return Requirement("GPU", bool(out), out.replace("\n", "; ") or "none", need, False)


def cache_folder() -> Requirement:
    """Where the cache is, that it can be written, and how much it holds."""
    import warnings

    from porter.corpus.runtime.cache import cache_root

    need = "keeping compiled kernels (a run without it compiles everything again)"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        root = cache_root()
    if caught:
        return Requirement(
            "cache", False, first_line(caught[0].message), need, False, "set PORTER_CACHE to a writable folder"
        )
    size = sum(p.stat().st_size for p in root.rglob("*") if p.is_file() and not p.is_symlink())
    free = shutil.disk_usage(root).free
    ok = free > 200 * MIB
    fix = "" if ok else "free some space, or set PORTER_CACHE to another disk"
    return Requirement("cache", ok, f"{root}, {size / MIB:.1f} MiB used, {free / MIB:.0f} MiB free", need, False, fix)


def output_folder() -> Requirement:
    """That the working folder, where `ported/` goes by default, can be written."""
    need, here = "writing ports with the default -o", Path.cwd()
    try:
        with tempfile.TemporaryFile(dir=here):
            return Requirement("folder", True, f"{here} is writable", need, False)
    except OSError as error:
        return Requirement("folder", False, f"{here}: {error.strerror}", need, False, "give -o a writable folder")


def version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def first_line(error: object) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


# ---------------------------------------------------------------- printing


def print_examination(findings: list[Requirement], out: Console) -> None:
    from rich.text import Text

    for f in findings:
        mark, style = ("ok", "green") if f.ok else (("missing", "bold red") if f.required else ("no", "yellow"))
        line = Text(f"{f.name:<10}").append(f"{mark:<8}", style).append(f.found)
        if not f.ok:
            line.append(f"\n{'':18}for: {f.need}")
            if f.fix:
                line.append(f"\n{'':18}fix: ").append(f.fix, "bold")
        out.print(line)
    missing = [f.name for f in findings if f.required and not f.ok]
    out.print(f"\nmissing: {', '.join(missing)}" if missing else "\nporter has what it needs")


def examination_to_json(findings: list[Requirement]) -> dict[str, Any]:
    return {"schema": 1, "ok": all(f.ok or not f.required for f in findings), "findings": [asdict(f) for f in findings]}
