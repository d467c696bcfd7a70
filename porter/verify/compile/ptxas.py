"""ptxas, where one is installed (pip's nvidia-cuda-nvcc, or on PATH): machine code with its line table."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from porter.corpus.runtime import ArtifactCache, digest
from porter.corpus.runtime.scratch import Scratch
from porter.verify.compile.toolkit import nvidia_roots


@cache
def find_ptxas() -> Path | None:
    """The newest ptxas among pip's packages and PATH, or None."""
    return newest_tool("ptxas")


def newest_tool(name: str) -> Path | None:
    """The newest of a toolkit's programs that say their release as ptxas does, among pip's packages and PATH."""
    found = [f for root in nvidia_roots() if (f := root / "bin" / name).is_file() and os.access(f, os.X_OK)]
    on_path = shutil.which(name)
    if on_path:
        found.append(Path(on_path))
    return max(found, key=ptxas_version, default=None)


@cache
def ptxas_version(ptxas: Path) -> tuple[int, int]:
    """(major, minor) of the toolkit a ptxas belongs to; (0, 0) when it does not say."""
    try:
        text = subprocess.run([ptxas, "--version"], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    found = re.search(r"release (\d+)\.(\d+)", text)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def readable(ptx: str, ptxas: Path) -> bool:
    """Whether this ptxas is new enough for the PTX's .version (toolkit 13.n reads up to .version 9.n)."""
    stated = re.search(r"^\.version\s+(\d+)\.(\d+)", ptx, re.MULTILINE)
    major, minor = ptxas_version(ptxas)
    # toolkit 12.3 was .version 8.3, but 12.5 on lag by a minor or not at all: err on the side of trying
    return stated is None or (int(stated.group(1)), int(stated.group(2))) <= (major - 4, minor)


def cubin_of(ptx: str, arch: str) -> bytes | None:
    """The cubin of a PTX module with its line table, by ptxas (cached); None when no ptxas is there, or takes it."""
    tool = find_ptxas()
    if tool is None or not readable(ptx, tool):
        return None

    def build(folder: Path) -> None:
        with Scratch("ptxas") as work:
            source = Path(work) / "kernel.ptx"
            source.write_text(ptx)
            command = [str(tool), "-v", "-lineinfo", f"-arch={arch}", str(source), "-o", str(folder / "kernel.cubin")]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        (folder / "log").write_text(done.stdout + done.stderr)
        if done.returncode:
            (folder / "kernel.cubin").unlink(missing_ok=True)

    version = ".".join(map(str, ptxas_version(tool)))
    cubin = ArtifactCache("ptxas").get_or_build(digest(["1", ptx, arch, version, "-lineinfo"]), build) / "kernel.cubin"
    return cubin.read_bytes() if cubin.is_file() else None
