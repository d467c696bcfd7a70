"""Landlock: which files the process may read and which folder it may write, enforced by Linux (5.13 and newer).

From 6.7 on it also refuses TCP, from 6.12 on signals and abstract sockets to processes outside.
Structures and numbers: linux/landlock.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FIRST_VERSION = (1 << 13) - 1  # every access that the first version of the interface knows
_ALL_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract sockets, signals
_PR_SET_NO_NEW_PRIVS = 38


def landlock_version() -> int:
    """Version of the interface, 0 where the system has none."""
    if not sys.platform.startswith("linux"):
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))


def restrict_files(readable: Iterable[Path], listed: Iterable[Path], writable: Iterable[Path]) -> bool:
    """From now on only these may be used: read (folders with all below), listed, read and written. False: no Landlock.

    Paths that do not exist are left out. Holds for this thread and all that it starts; cannot be undone.
    """
    version = landlock_version()
    if not version:
        return False
    handled = _FIRST_VERSION | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    handled |= _IOCTL_DEV if version >= 5 else 0
    attributes = struct.pack("=QQQ", handled, _TCP, _SCOPES)[: 8 if version < 4 else 16 if version < 6 else 24]
    libc = ctypes.CDLL(None, use_errno=True)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return False
    try:
        write = handled & ~(_EXECUTE | _IOCTL_DEV)
        for paths, access in ((readable, _READ_FILE | _READ_DIR), (listed, _READ_DIR), (writable, write)):
            for path in paths:
                with contextlib.suppress(OSError):
                    _allow(libc, ruleset, path, access)
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(_RESTRICT_SELF, ruleset, 0):
            raise OSError(ctypes.get_errno(), "Landlock is available, but rejected the rules")
    finally:
        os.close(ruleset)
    return True


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, access: int) -> None:
    file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        access &= -1 if path.is_dir() else _ALL_OF_A_FILE
        if access:
            libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", access, file), 0)
    finally:
        os.close(file)
