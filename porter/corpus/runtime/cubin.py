"""Resources of a kernel read from its cubin (an ELF file): registers, stack frame, static shared memory."""

from __future__ import annotations

import struct
from dataclasses import dataclass

# Attributes of .nv.info records whose value is (symbol index, number).
_REGCOUNT, _FRAME_SIZE = 0x2F, 0x11
_HAS_WORD_ARRAY = 0x04  # format byte: a u16 byte count follows the attribute; other formats are 4 bytes in all
_RESERVED_SHARED = 1024  # bytes that the driver keeps in each block from sm_90 on; part of .nv.shared.<kernel>


@dataclass(frozen=True)
class CubinKernel:
    """What one kernel of a cubin uses. `local_bytes` is the stack frame of a thread, `shared_bytes` the static part."""

    name: str
    registers: int
    local_bytes: int
    shared_bytes: int


@dataclass(frozen=True)
class _Section:
    name: str
    data: bytes
    size: int


def _sections(blob: bytes) -> list[_Section]:
    if blob[:4] != b"\x7fELF" or blob[4] != 2:
        raise ValueError("not a 64-bit ELF file")
    offset = struct.unpack_from("<Q", blob, 0x28)[0]
    entry_size, count, names_at = struct.unpack_from("<HHH", blob, 0x3A)
    heads = [struct.unpack_from("<IIQQQQIIQQ", blob, offset + i * entry_size) for i in range(count)]

    def data(head: tuple[int, ...]) -> bytes:
        return b"" if head[1] == 8 else blob[head[4] : head[4] + head[5]]  # type 8: no bytes in the file

    names = data(heads[names_at])
    return [_Section(_string(names, h[0]), data(h), h[5]) for h in heads]


def _string(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _info(data: bytes) -> dict[tuple[int, int], int]:
    """(attribute, symbol index) -> number."""
    found: dict[tuple[int, int], int] = {}
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _HAS_WORD_ARRAY:
            if size == 8:
                symbol, value = struct.unpack_from("<II", data, at)
                found[attribute, symbol] = value
            at += size
    return found


def read_cubin(blob: bytes) -> dict[str, CubinKernel]:
    """The kernels of a cubin by symbol name. Raises ValueError for bytes that are not one."""
    try:
        sections = {s.name: s for s in _sections(blob)}
        symbols, names = sections[".symtab"].data, sections[".strtab"].data
        info = _info(sections[".nv.info"].data)
        kernels = {}
        for index in range(len(symbols) // 24):
            name_at = struct.unpack_from("<I", symbols, index * 24)[0]
            name = _string(names, name_at)
            if (_REGCOUNT, index) not in info or f".text.{name}" not in sections:
                continue
            shared = sections.get(f".nv.shared.{name}")
            shared_bytes = shared.size if shared else 0
            if shared and ".nv.shared.reserved.0" in sections:
                shared_bytes = max(0, shared_bytes - _RESERVED_SHARED)
            kernels[name] = CubinKernel(name, info[_REGCOUNT, index], info.get((_FRAME_SIZE, index), 0), shared_bytes)
        return kernels
    except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
        raise ValueError(f"not a readable cubin: {error}") from error
