"""What a project's build says of its CUDA files: compile_commands.json, as CMake, Bear and Ninja write it.

Of nvcc's options those count that decide what a kernel means: include folders, macros, the standard, the architectures,
how floating point is rounded. The others are for the host compiler, the linker or the output.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from porter import codes
from porter.config import ARCHES, MATH, STANDARDS, PortConfig
from porter.model import Diagnostic, PorterError
from porter.plain_files import read_plain_text
from porter.source import Span

NAME = "compile_commands.json"
SUFFIXES = (".cu",)
_JOINED = ("-I", "-D", "-U")
_WITH_VALUE = {
    "-isystem": "-I", "--include-path": "-I", "--system-include": "-I", "-idirafter": "-I", "-iquote": "-I",
    "--define-macro": "-D", "--undefine-macro": "-U", "--std": "-std", "-std": "-std",
    "-arch": "-arch", "--gpu-architecture": "-arch",
    "-code": "-code", "--gpu-code": "-code", "-gencode": "-gencode", "--generate-code": "-gencode",
    "-include": "-include", "--pre-include": "-include", "--options-file": "@", "-optf": "@",
}  # fmt: skip
# Options that take the word after them, which is then no option and no file.
_SKIP_NEXT = frozenset({
    "-o", "--output-file", "-Xcompiler", "--compiler-options", "-Xptxas", "--ptxas-options", "-Xlinker",
    "--linker-options", "-ccbin", "--compiler-bindir", "-x", "--x", "-MF", "-MT", "-MQ", "-L", "-l", "-t", "--threads",
    "-maxrregcount", "--maxrregcount", "-diag-suppress", "--diag-suppress", "-Xcudafe", "-Xfatbin", "-rdc", "-cudart",
})  # fmt: skip
_FAST_MATH = ("-use_fast_math", "--use_fast_math", "-ffast-math")
_ROUNDING = tuple(flag.partition("=")[0] for flag in MATH if "=" in flag)


@dataclass(frozen=True)
class BuildFlags:
    """The flags of one file, folders and files as absolute paths. `arch` is in porter's names, newest last."""

    include: tuple[str, ...] = ()
    define: tuple[str, ...] = ()
    std: str = ""
    arch: tuple[str, ...] = ()
    math: tuple[str, ...] = ()
    pre_include: tuple[str, ...] = ()


def database_path(given: Path) -> Path:
    """The file that `-p` names: itself, or in the folder. Raises PorterError PRT969."""
    path = given / NAME if given.is_dir() else given
    if path.is_file():
        return path
    help_ = "cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON writes one; `bear -- make` records one"
    raise PorterError(
        Diagnostic(
            codes.UNREADABLE_COMPILATION_DATABASE, f"there is no {NAME} at {given}", Span(str(path), 0), help=help_
        )
    )


@lru_cache(maxsize=4)
def read_database(path: Path) -> dict[str, BuildFlags]:
    """The flags of every CUDA file, by real path. Raises PorterError PRT969 for a file that is not such a database."""
    try:
        rows = json.loads(read_plain_text(path))
        entries = [(str(r["directory"]), str(r["file"]), _words(r)) for r in rows]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        message = f"{path} cannot be read as a compilation database: {type(error).__name__}: {error}"
        raise PorterError(
            Diagnostic(
                codes.UNREADABLE_COMPILATION_DATABASE, message, Span(str(path), 0), help="let the build write it again"
            )
        ) from None
    found: dict[str, BuildFlags] = {}
    for folder, file, words in entries:
        where = os.path.realpath(os.path.join(folder, file))
        if where.endswith(SUFFIXES):
            found.setdefault(where, flags_of_command(words, Path(folder), path))
    return found


def _words(row: dict[str, Any]) -> list[str]:
    return [str(w) for w in row["arguments"]] if "arguments" in row else shlex.split(str(row["command"]))


def flags_of_command(words: Sequence[str], folder: Path, database: Path) -> BuildFlags:
    """What a command line of nvcc or clang says. Raises PorterError PRT969 for a response file that cannot be read."""
    include: list[str] = []
    define: dict[str, str] = {}
    math: dict[str, None] = {}
    arches: list[str] = []
    pre: list[str] = []
    std = ""
    for option, value in _options(list(words[1:]), folder, database, 0):
        if option == "-I":
            include.append(os.path.normpath(folder / value))
        elif option == "-D":
            define[value.partition("=")[0]] = value
        elif option == "-U":
            define.pop(value, None)
        elif option == "-std":
            std = value.replace("gnu++", "c++")
        elif option in ("-arch", "-gencode", "-code"):
            arches += re.findall(r"\b(?:sm|compute)_(\d+[af]?)\b", value)
        elif option == "math":
            math[value] = None
        elif option == "-include":
            pre.append(str(folder / value))
    known = [f"sm_{a}" for a in dict.fromkeys(arches) if f"sm_{a}" in ARCHES]
    standard = std if std in STANDARDS else {"c++03": "c++11"}.get(std, "")
    return BuildFlags(tuple(include), tuple(define.values()), standard, tuple(known), tuple(math), tuple(pre))


def _options(words: list[str], folder: Path, database: Path, depth: int) -> Iterator[tuple[str, str]]:
    """(option, value) of those that count, response files read in place."""
    rest = iter(words)
    for word in rest:
        name, equals, given = word.partition("=")
        if word.startswith("@"):
            yield from _response(word[1:], folder, database, depth)
        elif name in _WITH_VALUE:
            option, value = _WITH_VALUE[name], given if equals else next(rest, "")
            yield from _response(value, folder, database, depth) if option == "@" else [(option, value)]
        elif word[:2] in _JOINED:
            yield word[:2], word[2:] or next(rest, "")
        elif name.lstrip("-") in _ROUNDING and word.startswith("-"):
            flag = f"{name.lstrip('-')}={given if equals else next(rest, '')}"
            if flag in MATH:
                yield "math", flag
        elif word in _FAST_MATH:
            yield "math", "use_fast_math"
        elif word in _SKIP_NEXT:
            next(rest, "")


def _response(name: str, folder: Path, database: Path, depth: int) -> Iterator[tuple[str, str]]:
    path = folder / name
    try:
        text = read_plain_text(path)
    except (OSError, UnicodeDecodeError) as error:
        message = f"{database} names the response file {path}, which cannot be read: {error}"
        raise PorterError(
            Diagnostic(
                codes.UNREADABLE_COMPILATION_DATABASE, message, Span(str(path), 0), help="build the project once"
            )
        ) from None
    if depth < 8:
        yield from _options(shlex.split(text), folder, database, depth + 1)


# ---------------------------------------------------------------- for a run


def with_build_flags(config: PortConfig, source: Path) -> PortConfig:
    """`config` with the flags of the build for one file; what the command line and [tool.porter] say comes first.

    Without `-p`, or for a file that the build does not name (a header), the config as it is.
    """
    if config.build is None:
        return config
    flags = read_database(database_path(config.build)).get(os.path.realpath(source))
    if flags is None:
        return config
    own = {d.partition("=")[0] for d in config.define}
    arch = config.arch
    if config.arch == PortConfig.arch and flags.arch:
        arch = tuple(a for a in flags.arch if a in _PORTABLE) or config.arch
    return replace(
        config,
        include=tuple(dict.fromkeys((*config.include, *flags.include))),
        define=(*config.define, *(d for d in flags.define if d.partition("=")[0] not in own)),
        std=flags.std if flags.std and config.std == PortConfig.std else config.std,
        arch=arch,
        math=tuple(dict.fromkeys((*config.math, *flags.math))),
        pre_include=tuple(dict.fromkeys((*config.pre_include, *flags.pre_include))),
    )


_PORTABLE = ("sm_90a", "sm_100a", "sm_103a", "sm_120a")  # a build for sm_80 says nothing of where the port is to run


def files_of(paths: Sequence[Path], config: PortConfig) -> list[Path]:
    """The files that a command line names: folders stand for the .cu files below them; without any, those of `-p`.

    Raises PorterError PRT010 for a folder without one.
    """
    from porter.files.folders import files_below

    if not paths and config.build is not None:
        named = read_database(database_path(config.build))
        return [Path(os.path.relpath(p)) for p in sorted(named)]
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        below = [p for s in SUFFIXES for p in files_below(path, s)]
        if not below:
            raise PorterError(
                Diagnostic(codes.UNREADABLE_SOURCE, f"there is no .cu file below {path}", Span(str(path), 0))
            )
        found += below
    return found
