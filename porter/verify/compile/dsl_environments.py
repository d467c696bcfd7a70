"""Environments with one version of nvidia-cutlass-dsl each, below the cache folder, in which ports are compiled.

The compile worker of a version runs with that environment's interpreter; the rest of porter stays where it is. Packages
other than the DSL have the versions that are installed here, so that a difference is the DSL's.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from porter import codes
from porter.corpus.runtime import cache_root, digest
from porter.extras import DISTRIBUTION
from porter.model import Diagnostic, PorterError

PACKAGE = "nvidia-cutlass-dsl"
PORTER = (DISTRIBUTION, "porter")  # porter itself, which is linked, and whatever else PyPI has by that name
NEEDED = ("numpy", "filelock")  # what porter.corpus.runtime imports
# These follow the DSL: each of its versions asks for its own.
FOLLOWS = re.compile(r"(nvidia[-_]cutlass[-_]dsl.*|cuda[-_](bindings|pathfinder|python|core).*)", re.IGNORECASE)
VERSION = re.compile(r"\d+(\.\d+)+((a|b|rc)\d+|\.dev\d+)?")
INSTALL_SECONDS = 1200.0
LOCK_SECONDS = 1800.0


@dataclass(frozen=True)
class Toolchain:
    """An interpreter that has a version of the DSL, and the folder from which it imports porter and nothing else."""

    version: str
    python: str = sys.executable
    import_path: str = ""  # empty: the folder that porter lies in


def pins() -> list[str]:
    """`name==version` of every package installed here, but for those that follow the DSL's version."""
    found = {}
    for item in metadata.distributions():
        name = item.metadata["Name"]
        if name and not FOLLOWS.fullmatch(name) and name.lower() not in PORTER:
            found[name.lower()] = f"{name}=={item.version}"
    return [found[name] for name in sorted(found)]


def environment(version: str) -> Toolchain:
    """The environment of a DSL version; made when it is not there, which downloads about 200 MB.

    Raises PorterError PRT880 when it cannot be made: no such version, no network, no space.
    """
    from filelock import FileLock, Timeout

    if not VERSION.fullmatch(version):
        raise _failed(version, f"`{version}` is not a version")
    if version == _installed():
        return Toolchain(version)
    fixed = pins()
    tag = f"{sysconfig.get_python_version()}-{digest(fixed)[:12]}"
    folder = cache_root() / "dsl" / f"{version}-{tag}"
    package = Path(__file__).resolve().parents[2]
    alone = folder / f"porter-{digest([str(package)])[:12]}"  # several installations of porter may share the cache
    made = Toolchain(version, str(folder / "bin/python"), str(alone))
    ready = folder / "ready"
    if ready.is_file():
        _import_only(package, alone)
        return made
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(folder.name + ".lock"), timeout=LOCK_SECONDS):
            if not ready.is_file():
                shutil.rmtree(folder, ignore_errors=True)
                _make(folder, version, fixed)
                ready.write_text(version + "\n")
            _import_only(package, alone)
    except Timeout as error:
        raise _failed(version, "another porter has been creating it for half an hour") from error
    except OSError as error:
        raise _failed(version, str(error)) from error
    return made


def published() -> list[str]:
    """The versions of the DSL that the package index has, oldest first, pre-releases left out. Raises PRT880."""
    done = _pip("index", "versions", PACKAGE)
    found = re.search(r"Available versions: (.*)", done.stdout)
    if done.returncode or not found:
        raise _failed("", f"the package index could not be queried: {_last(done.stderr)}")
    versions = [v.strip() for v in found[1].split(",")]
    return sorted((v for v in versions if re.fullmatch(r"[\d.]+", v)), key=order)


def order(version: str) -> tuple[int, ...]:
    """A key that sorts versions."""
    return tuple(int(n) for n in re.findall(r"\d+", version))


@cache
def _installed() -> str:
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return ""


def _make(folder: Path, version: str, fixed: list[str]) -> None:
    # Without pip inside: this interpreter's pip installs from outside, which needs no ensurepip.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, capture_output=True)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(fixed) + "\n", encoding="utf-8")
    wanted = f"{PACKAGE}[cu13]=={version}"
    done = _pip("--python", str(folder / "bin/python"), "install", "-c", str(constraints), wanted, *NEEDED)
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise _failed(version, _last(done.stderr))


def _import_only(package: Path, alone: Path) -> None:
    """A folder with porter and nothing else: the one it lies in may be the site-packages with the other DSL."""
    link = alone / package.name
    if link.is_symlink():
        return
    alone.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        link.symlink_to(package, target_is_directory=True)


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    try:
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"ERROR: pip did not finish within {INSTALL_SECONDS:.0f} s")


def _last(stderr: str) -> str:
    """The line of pip's errors that says most."""
    lines = [line for line in stderr.splitlines() if line.startswith("ERROR")] or stderr.strip().splitlines()
    with contextlib.suppress(IndexError):
        return lines[0].removeprefix("ERROR: ")
    return "no reason was given"


def _failed(version: str, why: str) -> PorterError:
    what = f"no environment with {PACKAGE} {version}" if version else f"no versions of {PACKAGE}"
    help_ = "`pip index versions nvidia-cutlass-dsl` lists the versions; the environments need a network once"
    return PorterError(Diagnostic(codes.NO_DSL_ENVIRONMENT, f"{what}: {why}", help=help_))
