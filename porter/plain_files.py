"""Reads plain files of a bounded size, whatever somebody names: a FIFO would wait for ever, a device never end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MOST_BYTES = 32 << 20  # the longest source of a public kernel has 2 MB

_KINDS = {
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class NotPlain(OSError):
    """What is named is a pipe, a device or a socket, is too large, or cannot be a path; `strerror` says which."""


def read_plain(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """The content of a plain file. Raises OSError, NotPlain for what is none and for more than `most` bytes."""
    try:
        # O_NONBLOCK: to open a FIFO would otherwise wait for somebody who writes into it
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a NUL in the path
        raise NotPlain(errno.EINVAL, str(error), str(path)) from None
    try:
        found = os.fstat(file)
        kind = stat.S_IFMT(found.st_mode)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if kind != stat.S_IFREG:
            raise NotPlain(errno.EINVAL, f"it is {_KINDS.get(kind, 'not a regular file')}", str(path))
        with os.fdopen(file, "rb", closefd=False) as opened:
            data = opened.read(most + 1)  # not by its size, which /proc gives as 0
    finally:
        os.close(file)
    if len(data) > most:
        raise NotPlain(errno.EFBIG, f"it has more than {most >> 20} MiB", str(path))
    return data


def read_plain_text(path: str | Path, most: int = MOST_BYTES) -> str:
    """As read_plain, as text with the line ends that Python makes. Raises OSError and UnicodeDecodeError."""
    text = read_plain(path, most).decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def text_or_none(path: str | Path, most: int = MOST_BYTES) -> str | None:
    """As read_plain_text; None for what cannot be read or is no text."""
    try:
        return read_plain_text(path, most)
    except (OSError, UnicodeDecodeError):
        return None


def is_plain(path: str | Path) -> bool:
    """Whether there is a plain file; False also for what cannot be a path."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
