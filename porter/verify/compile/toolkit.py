"""NVIDIA's compiler packages as pip installs them: where NVRTC, its headers and ptxas are. Nothing is loaded here."""

from __future__ import annotations

import re
import site
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-cccl")


@dataclass(frozen=True)
class Nvrtc:
    """One NVRTC with the headers it compiles against. `version` is "13.4"."""

    library: Path
    builtins: Path
    includes: tuple[Path, ...]
    version: str

    def has_header(self, name: str) -> bool:
        return any((folder / name).is_file() for folder in self.includes)


@cache
def nvidia_roots() -> tuple[Path, ...]:
    """The folders that pip's CUDA packages share (site-packages/nvidia/cu13), newest major version first."""
    places = [*site.getsitepackages(), site.getusersitepackages(), *sys.path]
    roots = [p for place in dict.fromkeys(places) for p in Path(place or ".").glob("nvidia/cu1[3-9]") if p.is_dir()]
    return tuple(sorted(dict.fromkeys(roots), key=lambda p: p.name, reverse=True))


@cache
def find_nvrtc() -> Nvrtc | None:
    """The newest complete NVRTC: library, builtins, CUDA headers; None when a package is missing (see PACKAGES)."""
    for root in nvidia_roots():
        library = next(iter(sorted((root / "lib").glob("libnvrtc.so*"))), None)
        builtins = max((root / "lib").glob("libnvrtc-builtins.so.*"), default=None)
        include = root / "include"
        if library and builtins and (include / "cuda_fp16.h").is_file():
            version = re.search(r"\.so\.([\d.]+)", builtins.name)
            return Nvrtc(library, builtins, (include, include / "cccl"), version.group(1) if version else "")
    return None
