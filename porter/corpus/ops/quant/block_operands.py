"""What operations with block scales (NVFP4, MXFP4, MXFP8) check about codes and scales, and how kernels see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from porter.corpus.ops.quant.block_scaled_reference import TILE_ROWS, as_bytes, layout_of
from porter.corpus.ops.rows import access_width, as_rows, check_dtype, row_dimensions
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.dtypes import torch_type
from porter.corpus.runtime.ops import Unsupported

RULES = {"e4m3": ("fast", "exact"), "e8m0": ("ceil", "floor")}


@dataclass(frozen=True)
class Format:
    """A format of codes with block scales. rule_name: what the argument is called that chooses among RULES."""

    codes: str
    group: int
    scales: str
    rule_name: str

    @property
    def per_byte(self) -> int:
        """Codes of a byte."""
        return 2 if self.codes == "e2m1" else 1


NVFP4 = Format("e2m1", 16, "e4m3", "recipe")
MXFP4 = Format("e2m1", 32, "e8m0", "sf_rounding")
MXFP8 = Format("e4m3", 32, "e8m0", "sf_rounding")


def check_rule(format: Format, rule: str) -> str:
    """The rule; raises ValueError for one that the format does not have."""
    if rule not in RULES[format.scales]:
        raise ValueError(f"{format.rule_name} is {' or '.join(RULES[format.scales])}, not {rule!r}")
    return rule


def code_rows(format: Format, name: str, codes: Any, other: str, numbers: Any, d: int) -> tuple[int, int]:
    """(rows, numbers of a row of codes) of codes, called `name`, of rows of `d` numbers: those of `numbers`, which is
    called `other`, or made of these.

    Raises ValueError unless they are as many rows, of `d` codes, or for e4m3 of a multiple of the block not below it;
    Unsupported for rows that are not evenly spaced.
    """
    check_dtype(name, codes, *(("u8", "e2m1") if format.codes == "e2m1" else ("e4m3",)))
    if d % format.group:
        raise ValueError(f"a row must be whole blocks of {format.group} numbers, {other} has {d}")
    length = codes.shape[-1] * format.per_byte if codes.dim() else 0
    longer = format.codes == "e4m3" and length > d and length % format.group == 0
    if codes.shape[:-1] != numbers.shape[:-1] or (length != d and not longer):
        want = (*numbers.shape[:-1], d // format.per_byte)
        raise ValueError(f"{name} has shape {tuple(codes.shape)}, the rows of {other} imply {want}")
    rows, inner = row_dimensions([(name, codes)])
    if inner != 1 or row_dimensions([(other, numbers)])[1] != 1:
        raise Unsupported("rows must be evenly spaced")
    return rows, length


def scales_layout(
    format: Format, name: str, scales: Any, rows: int, length: int, swizzled: bool, narrow_tiles: bool
) -> tuple[str, str]:
    """(layout, dtype as the kernel sees it) of the scales of `rows` rows of `length` numbers, called `name`.

    Raises ValueError unless they are bytes, scales of the format or four of these in an int32; contiguous; and as many
    as the layout has: (rows, blocks), or with tiles both rounded up to whole ones; as such a shape or flat.
    """
    held = check_dtype(name, scales, "u8", format.scales, "i32")
    layout, blocks = layout_of(swizzled, narrow_tiles), length // format.group
    if narrow_tiles and not swizzled:
        raise ValueError("is_sf_8x4_layout is a kind of swizzled layout: is_sf_swizzled_layout must be true too")
    tile = TILE_ROWS[layout]
    want = (-(-rows // tile) * tile, blocks if layout == "linear" else -(-blocks // 4) * 4)
    width = scales.shape[-1] * scales.element_size() if scales.dim() else 0
    nbytes = scales.numel() * scales.element_size()
    if nbytes != want[0] * want[1] or width not in (want[1], nbytes):
        raise ValueError(f"{name} has shape {tuple(scales.shape)}, the {layout} layout takes {want} bytes")
    if not scales.is_contiguous():
        raise ValueError(f"{name} must be contiguous")
    if scales.data_ptr() % 4:
        raise Unsupported(f"{name} is not aligned to four bytes")
    return layout, "u8" if held == "e8m0" or width != want[1] or scales.dim() != 2 else held


def seen_scales(scales: Any, columns: int, held: str) -> Any:
    """The (rows, columns) view of scales that a kernel takes: bytes where `held` is "u8"."""
    return as_bytes(scales).view(-1, columns) if held == "u8" else scales


def seen_codes(codes: Any) -> Any:
    """The (rows, bytes) view of codes that a kernel takes."""
    return as_rows(as_bytes(codes) if codes.dtype != torch_type("e4m3") else codes, 1)


def is_plain(codes: Any, scales: Any, held: str) -> bool:
    """Whether a kernel takes codes and scales without another view of them."""
    bytes_ = scales.dtype == torch_type("u8") if held == "u8" else True
    return codes.dim() == scales.dim() == 2 and codes.dtype in (torch_type("u8"), torch_type("e4m3")) and bytes_


def block_scales(format: Format, layout: str, rule: str, device: Device, length: int, held: str) -> Any:
    """The kernels' description of scales (porter.corpus.lib.quantisation.block_scales.BlockScales)."""
    from porter.corpus.lib.quantisation.block_scales import BlockScales

    hardware = device.capability >= 100
    return BlockScales(format.codes, format.group, format.scales, layout, rule, hardware, length, held)


def code_access(format: Format, codes: Any, length: int) -> int:
    """Bytes of the widest access to rows of codes."""
    return access_width(length // format.per_byte, [as_bytes(codes)])
