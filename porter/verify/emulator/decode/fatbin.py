"""PTX out of fat binaries: a .fatbin, or an object, library or program with a `.nv_fatbin` section.

Layout as read from files that CUDA 13's `fatbinary` makes: containers of images, each with a header of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from porter.verify.emulator.errors import PtxError

_MAGIC = 0xBA55ED50
_PTX = 1
_LZ4, _ZSTD = 0x2000, 0x8000  # bits of an image's flags
_HEADER = 0x40
_MOST = 1 << 28  # bytes of text that an image may expand to


class FatbinError(PtxError):
    """Not a fat binary, or one whose PTX cannot be taken out; the message names the reason."""


@dataclass(frozen=True)
class Image:
    """One PTX text of a fat binary, for `arch` (90 for sm_90 and sm_90a)."""

    arch: int
    text: str = field(repr=False)


def is_binary(data: bytes) -> bool:
    """Whether a file's bytes are a fat binary or an ELF file rather than PTX text."""
    return data[:4] in (b"\x7fELF", _MAGIC.to_bytes(4, "little"))


def ptx_images(data: bytes) -> list[Image]:
    """Every PTX image, in order. Raises FatbinError, also where there is none."""
    images = 0
    found: list[Image] = []
    for container in _containers(_section(data) if data[:4] == b"\x7fELF" else data):
        for kind, arch, payload, flags, size in _entries(container):
            images += 1
            if kind == _PTX:
                found.append(Image(arch, _text(payload, flags, size)))
    if not found:
        raise FatbinError(f"no PTX among its {images} images: compile with -gencode arch=compute_90,code=compute_90")
    return found


def _section(data: bytes) -> bytes:
    """The `.nv_fatbin` section of a 64-bit ELF file (`.nvFatBinSegment` only points to it)."""
    try:
        if data[4] != 2:
            raise FatbinError("a 32-bit ELF file")
        machine = struct.unpack_from("<H", data, 0x12)[0]
        table = struct.unpack_from("<Q", data, 0x28)[0]
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        heads = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
        at = heads[names][4]
        for head in heads:
            name = data[at + head[0] : data.index(b"\0", at + head[0])]
            if name == b".nv_fatbin" and head[1] != 8:
                return data[head[4] : head[4] + head[5]]
    except (struct.error, IndexError, ValueError):
        raise FatbinError("a damaged ELF file") from None
    if machine == 190:
        raise FatbinError("a cubin: it holds machine code only, no PTX")
    raise FatbinError("an ELF file without a .nv_fatbin section")


def _containers(data: bytes) -> Iterator[bytes]:
    """The containers, which lie one after another with zeros between them."""
    at = 0
    while at + 16 <= len(data):
        magic, _, header, size = struct.unpack_from("<IHHQ", data, at)
        if magic != _MAGIC:
            if any(data[at : at + 8]):
                raise FatbinError(f"byte {at} starts no fat binary")
            at += 8
            continue
        if header < 16 or at + header + size > len(data):
            raise FatbinError("a fat binary that is cut off")
        yield data[at + header : at + header + size]
        at += header + size


def _entries(data: bytes) -> Iterator[tuple[int, int, bytes, int, int]]:
    """(kind, architecture, payload, flags, size when expanded) of each image in a container."""
    at = 0
    while at < len(data):
        if at + _HEADER > len(data):
            raise FatbinError("a fat binary whose image is cut off")
        kind, _, header, padded, packed = struct.unpack_from("<HHIQI", data, at)
        (arch,) = struct.unpack_from("<I", data, at + 0x1C)
        flags, _, expanded = struct.unpack_from("<QQQ", data, at + 0x28)
        end = at + header + padded
        if header < _HEADER or end > len(data) or packed > padded:
            raise FatbinError("a fat binary whose image is cut off")
        payload = data[at + header : at + header + packed] if packed else data[at + header : end]
        yield kind, arch, payload, flags, expanded
        at = end


def _text(payload: bytes, flags: int, size: int) -> str:
    if size > _MOST:
        raise FatbinError(f"a PTX image of {size} bytes is too much")
    if flags & _ZSTD:
        payload = _zstd(payload, size)
    elif flags & _LZ4:
        payload = _lz4(payload, size)
    try:
        return payload.rstrip(b"\0").decode()
    except UnicodeDecodeError:
        raise FatbinError("a PTX image that is not text") from None


def _zstd(payload: bytes, size: int) -> bytes:
    """zstd is what CUDA 13 compresses with unless told otherwise; Python has it from 3.14 on."""
    try:
        from compression import zstd  # type: ignore[import-not-found]

        data: bytes = zstd.decompress(payload)
    except ImportError:
        try:
            import zstandard  # type: ignore[import-not-found]
        except ImportError:
            help_ = "pip install zstandard, or build with -Xfatbin -compress-mode=speed"
            raise FatbinError(f"its PTX is compressed with zstd, which this Python lacks: {help_}") from None
        try:
            data = zstandard.ZstdDecompressor().decompress(payload, max_output_size=size)
        except zstandard.ZstdError as error:
            raise FatbinError(f"a damaged zstd image: {error}") from None
    except Exception as error:  # zstd.ZstdError, which has no name where the import failed
        raise FatbinError(f"a damaged zstd image: {error}") from None
    if len(data) != size:
        raise FatbinError(f"a zstd image of {len(data)} bytes instead of {size}")
    return data


def _lz4(data: bytes, size: int) -> bytes:
    """An LZ4 block (no frame): literals, then a match of earlier output, again and again."""
    out = bytearray()
    at = 0

    def length(nibble: int) -> int:
        nonlocal at
        if nibble == 15:
            while True:
                more = data[at]
                at += 1
                nibble += more
                if more != 255:
                    break
        return nibble

    try:
        while at < len(data):
            token = data[at]
            at += 1
            literals = length(token >> 4)
            out += data[at : at + literals]
            at += literals
            if at >= len(data):
                break
            distance = data[at] | data[at + 1] << 8
            at += 2
            match = length(token & 15) + 4
            start = len(out) - distance
            if distance == 0 or start < 0 or len(out) + match > size:
                raise FatbinError("a damaged LZ4 image")
            piece = bytes(out[start : start + match])  # shorter than the match where it overlaps itself
            out += (piece * (match // len(piece) + 1))[:match]
    except IndexError:
        raise FatbinError("a damaged LZ4 image") from None
    if len(out) != size:
        raise FatbinError(f"an LZ4 image of {len(out)} bytes instead of {size}")
    return bytes(out)
