"""What a cubin says of its kernels' parameters and of the toolchain that made it, read from its ELF sections."""

from __future__ import annotations

import re
import struct

from porter.corpus.runtime.cubin import _sections

_KPARAM_INFO = 0x17
_SIZED = 0x04  # the attribute's form that carries a length


def parameter_layout(cubin: bytes, entry: str) -> list[tuple[int, int]]:
    """(offset, size) in bytes of each parameter of a kernel, in order. Raises KeyError for an unknown entry.

    From EIATTR_KPARAM_INFO: index, ordinal, offset, then a word whose bits from 18 on are the size.
    """
    sections = {s.name: s for s in _sections(cubin)}
    data = sections[f".nv.info.{entry}"].data
    found: dict[int, tuple[int, int]] = {}
    at = 0
    while at + 4 <= len(data):
        form, attribute, length = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != _SIZED:
            continue  # the value is the length field itself
        if attribute == _KPARAM_INFO:
            _, ordinal, offset, flags = struct.unpack_from("<IHHI", data, at)
            found[ordinal] = (offset, flags >> 18)
        at += length
    return [found[n] for n in sorted(found)]


def entries(cubin: bytes) -> list[str]:
    """The kernels of a cubin, by symbol."""
    return [s.name.removeprefix(".text.") for s in _sections(cubin) if s.name.startswith(".text.")]


def toolchain(cubin: bytes) -> str:
    """The CUDA release that assembled it ("13.4"). A driver loads cubins of its own major release; "" when unstated."""
    for section in _sections(cubin):
        if section.name == ".note.nv.tkinfo":
            found = re.search(rb"release (\d+\.\d+)", section.data)
            return found.group(1).decode() if found else ""
    return ""
