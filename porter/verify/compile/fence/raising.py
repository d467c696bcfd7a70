"""Puts the layers up, in the order in which they can be: limits, files, system calls, audit events."""

from __future__ import annotations

import os
import resource
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from porter.verify.compile.fence.audit import refuse_events
from porter.verify.compile.fence.landlock import landlock_version, restrict_files
from porter.verify.compile.fence.seccomp import forbid_calls, has_seccomp

GIB = 1 << 30
# What compilers and Python read of the system. No home, no other project, no other process.
_SYSTEM = (
    "/usr", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/localtime", "/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/sys/kernel", "/proc/sys/vm",
    "/sys/devices/system", "/sys/fs/cgroup", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random",
)  # fmt: skip


@dataclass(frozen=True)
class Fence:
    """What the process may do. Bytes and seconds; `files` are read beside what is installed, `folder` is written."""

    folder: Path
    files: tuple[Path, ...] = ()
    memory: int = 4 * GIB  # of address space; compiling a reference kernel takes 0.43
    cpu_seconds: int = 600
    file_bytes: int = 256 << 20
    open_files: int = 512


def available_layers() -> tuple[str, ...]:
    """The layers that this system has, for people."""
    found = ["limits of memory, CPU time and file size"]
    if landlock_version():
        found.append(f"Landlock {landlock_version()} (files)")
    if has_seccomp():
        found.append("seccomp (network, processes)")
    return (*found, "audit hook")


def raise_fence(fence: Fence) -> None:
    """Fence this process in, for good. What the system does not have is left out (`available_layers`)."""
    readable = (*installed(), Path(f"/proc/{os.getpid()}"), *fence.files)
    listed = tuple(dict.fromkeys(f.parent for f in fence.files))
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: fence.memory,
        resource.RLIMIT_CPU: fence.cpu_seconds,
        resource.RLIMIT_FSIZE: fence.file_bytes,
        resource.RLIMIT_NOFILE: fence.open_files,
    }
    for limit, value in limits.items():
        _, hard = resource.getrlimit(limit)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))
    restrict_files(readable, listed, (fence.folder, Path("/dev/null")))
    forbid_calls()
    refuse_events(readable, listed, fence.folder)


def installed() -> tuple[Path, ...]:
    """Python, its packages, this package and the system's libraries; folders of `sys.path` only if packages are there.

    The folder of a project that stands in PYTHONPATH is not read: keys may lie in it.
    """
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values(), *_SYSTEM]
    packages = [getattr(sys.modules.get(name), "__path__", ()) for name in ("porter", "cutlass", "numpy")]
    found += [str(path) for paths in packages for path in paths]
    found += [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages") or _pip_target(p)]
    found += [p for p in sys.path if p.endswith(".zip") or "nvidia_cutlass_dsl" in p]
    found += os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    real = (Path(os.path.realpath(p)) for p in dict.fromkeys(found) if p and os.path.isabs(p))
    return tuple(dict.fromkeys(p for p in real if p.exists() and len(p.parts) > 1))


def _pip_target(folder: str) -> bool:
    """Whether pip installed into this folder (`pip install --target`): the packages' records lie in it."""
    return bool(folder) and next(Path(folder).glob("*.dist-info/RECORD"), None) is not None
