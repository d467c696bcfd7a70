"""How porter parses without a toolkit: the clang command line, our own headers, and where a project ends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HEADERS = Path(__file__).parents[1] / "headers"
PRELUDE = HEADERS / "porter_prelude.h"
VIRTUAL = "/porter-virtual"  # never exists on disk: holds stand-ins for includes


@dataclass(frozen=True)
class ParseOptions:
    """What the user may say about a parse: -I folders, -D macros ("NAME" or "NAME=VALUE"), C++ standard, target, files
    that are included first (absolute paths). `math`: nvcc's options for how the original rounds (porter.config.MATH),
    which a parse does not need."""

    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    std: str = "c++17"
    arch: str = "sm_90a"
    math: tuple[str, ...] = ()
    pre_include: tuple[str, ...] = ()


def language(options: ParseOptions) -> str:
    """The standard that sources are read and originals compiled by, such as c++17: the oldest that CUDA 13's headers
    take is C++17, which older code reads the same in, but for what nobody writes in a kernel."""
    return "c++17" if options.std in ("c++11", "c++14") else options.std


def arguments(options: ParseOptions) -> list[str]:
    """The clang command line of one parse, without the file."""
    args = [
        "-x", "cuda", "--cuda-device-only", f"--cuda-gpu-arch={options.arch}", "-nocudainc", "-nocudalib", "-nostdinc",
        "-nostdinc++", f"-std={language(options)}", "-ferror-limit=0", "-Wno-everything", "-Wno-error",
        # nvcc's device pass does not define these on a gcc host, and public code branches on them.
        "-U__clang__", "-U__clang_major__",
    ]  # fmt: skip
    args += [f"-D{d}" for d in options.defines]
    args += [f"-I{d}" for d in options.include_dirs]
    first = [word for path in (str(PRELUDE), *options.pre_include) for word in ("-include", path)]
    return [*args, *first, f"-I{VIRTUAL}"]


_ROOT_MARKS = (".git", "setup.py", "pyproject.toml", ".gitmodules", "LICENSE", "PKG-INFO")
_MAX_UP = 8


def project_root(path: Path) -> Path:
    """Where include lookup may search: the nearest ancestor that looks like a repository, else the parent folder."""
    folder = path.resolve().parent
    for a in [folder, *folder.parents][:_MAX_UP]:
        if any((a / mark).exists() for mark in _ROOT_MARKS):
            return a
    # Without a mark, never search a home folder or a top-level folder.
    return folder.parent if len(folder.parent.parts) > 3 else folder
