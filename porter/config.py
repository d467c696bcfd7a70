"""What a run is asked to do: `[tool.porter]` of the nearest pyproject.toml, then the command line, which wins."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from porter import codes
from porter.case.toml_lines import key_line, parsed_toml
from porter.model import Diagnostic, PorterError
from porter.plain_files import read_plain, read_plain_text
from porter.source import Span

ARCHES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_120", "sm_120a")
STANDARDS = ("c++11", "c++14", "c++17", "c++20", "c++23")
MATH = ("use_fast_math", "ftz=true", "prec-div=false", "prec-sqrt=false", "fmad=false")  # nvcc's options
STYLES = ("pointer", "tensor")
BACKENDS = ("auto", "emulator", "gpu")


@dataclass(frozen=True)
class PortConfig:
    """The settings of one `porter port`. Paths are as the user would type them (relative to the working folder)."""

    output: Path = Path("ported")
    include: tuple[str, ...] = ()
    define: tuple[str, ...] = ()  # NAME or NAME=VALUE
    math: tuple[str, ...] = ()  # how nvcc rounds: of MATH
    pre_include: tuple[str, ...] = ()  # files that are included before the source
    build: Path | None = None  # compile_commands.json, or its folder
    std: str = "c++17"
    arch: tuple[str, ...] = ("sm_90a", "sm_100a")
    kernel: tuple[str, ...] = ()  # empty: every kernel of the file
    instantiate: tuple[str, ...] = ()  # 'k<__nv_bfloat16, 8>'
    case: Path | None = None
    confirm_cases: bool = False  # cases that porter derived have been read and are right
    standalone: bool = False
    style: str = "pointer"  # how kernels are written: one of STYLES
    force: bool = False
    seed: int | None = None  # None: fresh, and printed
    verify: bool = True
    thorough: bool = False
    jobs: int = 0  # 0: one per core
    backend: str = "auto"  # where kernels run: one of BACKENDS
    cpu_limit: int = 15  # seconds of CPU time to parse a file, and to translate a kernel; 0: none
    verify_cpu_limit: int = 600  # ... to verify a kernel
    memory_limit: int = 8  # GiB that parsing, or translating, may map beside what is there already; 0: none
    dsl: str = ""  # version of nvidia-cutlass-dsl that compiles ports; "": the one installed


# What may stand in [tool.porter]: the rest belongs to one run.
FILE_KEYS: dict[str, type] = {
    "output": str,
    "include": list,
    "define": list,
    "math": list,
    "pre_include": list,
    "build": str,
    "std": str,
    "arch": list,
    "standalone": bool,
    "style": str,
    "verify": bool,
    "thorough": bool,
    "jobs": int,
    "cpu_limit": int,
    "verify_cpu_limit": int,
    "memory_limit": int,
}
PATH_KEYS = ("output", "include", "pre_include", "build")


def find_pyproject(start: Path) -> Path | None:
    """The nearest pyproject.toml at or above `start` that has a [tool.porter] table."""
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        try:
            if b"tool.porter" in read_plain(path):
                return path
        except OSError:
            continue
    return None


def load_config(start: Path | None = None) -> PortConfig:
    """The defaults with [tool.porter] of the nearest pyproject.toml applied. Raises PorterError PRT951."""
    path = find_pyproject((start or Path.cwd()).resolve())
    if path is None:
        return PortConfig()
    try:
        text = read_plain_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise PorterError(
            Diagnostic(codes.CONFIG_KEY, f"pyproject.toml cannot be read: {error}", Span(str(path), 0))
        ) from None
    try:
        tables = parsed_toml(text).get("tool", {})
        table = tables.get("porter", {}) if isinstance(tables, dict) else {}
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+), column (\d+)", str(error))
        at = Span(str(path), int(found[1]), int(found[2])) if found else Span(str(path), len(text.splitlines()))
        raise PorterError(Diagnostic(codes.CONFIG_KEY, f"pyproject.toml does not parse: {error}", at)) from error
    return apply_table(PortConfig(), table, path, text)


def apply_table(config: PortConfig, table: dict[str, Any], path: Path, text: str) -> PortConfig:
    """`config` changed by a [tool.porter] table. Raises PorterError PRT951 naming the line and key at fault."""
    changes: dict[str, Any] = {}
    for key, given in table.items():
        if key == "agent":
            continue  # porter.agents.settings reads that table
        wanted = FILE_KEYS.get(key)
        value: Any = [given] if isinstance(given, str) and wanted is list else given
        if wanted is None:
            raise _bad_key(path, text, key, f"unknown key `{key}`", f"known keys: {', '.join(FILE_KEYS)}")
        if type(value) is not wanted:
            raise _bad_key(path, text, key, f"`{key}` must be {_a(wanted)}, not {value!r}")
        items: Any = value
        if wanted is list and not all(isinstance(v, str) for v in items):
            raise _bad_key(path, text, key, f"`{key}` must be a list of strings")
        changes[key] = tuple(items) if wanted is list else items
    for key in PATH_KEYS:  # paths of the file are relative to the file
        if key in changes:
            one: Any = changes[key]
            changes[key] = tuple(_from(path, v) for v in one) if isinstance(one, tuple) else Path(_from(path, one))
    config = replace(config, **changes)
    try:
        return check(config)
    except PorterError as error:
        d = error.diagnostics[0]
        raise _bad_key(path, text, d.key, d.message, d.help) from error


def check(config: PortConfig) -> PortConfig:
    """Raises PorterError PRT952 for a value that cannot be."""
    for arch in config.arch:
        if arch not in ARCHES:
            raise _bad("arch", arch, f"one of {', '.join(ARCHES)}")
    if config.std not in STANDARDS:
        raise _bad("std", config.std, f"one of {', '.join(STANDARDS)}")
    for define in config.define:
        if not re.fullmatch(r"[A-Za-z_]\w*(\([^)]*\))?(=.*)?", define, re.S):
            raise _bad("define", define, "NAME or NAME=VALUE")
    for flag in config.math:
        if flag not in MATH:
            raise _bad("math", flag, f"one of {', '.join(MATH)}")
    if config.style not in STYLES:
        raise _bad("style", config.style, f"one of {', '.join(STYLES)}")
    if config.jobs < 0:
        raise _bad("jobs", str(config.jobs), "a number of workers, 0 for one per core")
    for name in ("cpu_limit", "verify_cpu_limit", "memory_limit"):
        if getattr(config, name) < 0:
            raise _bad(name, str(getattr(config, name)), "a whole number, 0 for no limit")
    if not config.arch:
        raise _bad("arch", "", f"one of {', '.join(ARCHES)}")
    return config


def merge(config: PortConfig, **flags: Any) -> PortConfig:
    """`config` with every flag that was given (is not None and not empty) on top; flags win."""
    names = {f.name for f in fields(PortConfig)}
    given = {k: v for k, v in flags.items() if k in names and v is not None and v != ()}
    return check(replace(config, **given))


def worker_count(config: PortConfig) -> int:
    """Workers to run at once: `jobs`, or the cores this process may use."""
    return config.jobs or len(os.sched_getaffinity(0))


def _from(path: Path, value: str) -> str:
    return os.path.relpath(path.parent / value)


def _a(kind: type) -> str:
    return {str: "a string", list: "a list of strings", bool: "true or false", int: "a whole number"}[kind]


def _bad(name: str, value: str, wanted: str) -> PorterError:
    return PorterError(Diagnostic(codes.BAD_OPTION, f"`{name}` is {value!r}", help=f"give {wanted}", key=name))


def _bad_key(path: Path, text: str, key: str, message: str, help_: str = "") -> PorterError:
    line = key_line(text, ("tool", "porter", key)) if key else 0
    return PorterError(
        Diagnostic(codes.CONFIG_KEY, f"[tool.porter]: {message}", Span(str(path), line), help=help_, key=key)
    )
