"""Scales of one byte from rows to the tiles that tensor cores take, and back: FlashInfer's names."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.quant import block_scaled_reference as reference
from porter.corpus.ops.quant.block_scaled_reference import TILE_ROWS, as_bytes, layout_of
from porter.corpus.ops.rows import check_dtype
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op

_BYTES = ("u8", "e4m3", "e8m0")


@op(
    "block_scale_interleave(Tensor(a!) output, Tensor input, bool is_sf_8x4_layout=False) -> ()",
    key=compact_key("(input.nbytes, input.shape[0])", {"is_sf_8x4_layout": False}),
    fallback=reference.block_scale_interleave,
)
def block_scale_interleave(device: Device, output: Any, input: Any, is_sf_8x4_layout: bool) -> Plan:
    """`output` = the scales `input` (M, K), bytes or 8-bit floats, in tiles of 128x4 or 8x4 (see scaled_fp4_quant).

    Both contiguous; `output` has as many bytes as whole tiles take, flat or in rows of whole tiles' columns. What fills
    up is zero. FlashInfer's function of this name returns a new tensor and takes a batch too. Raises ValueError for
    other arguments.
    """
    return _planned(device, "input", input, "output", output, is_sf_8x4_layout, back=False)


@op(
    "block_scale_deinterleave(Tensor(a!) output, Tensor input, bool is_sf_8x4_layout=False) -> ()",
    key=compact_key("(output.nbytes, output.shape[0])", {"is_sf_8x4_layout": False}),
    fallback=reference.block_scale_deinterleave,
)
def block_scale_deinterleave(device: Device, output: Any, input: Any, is_sf_8x4_layout: bool) -> Plan:
    """`output` (M, K) = the scales that `input` holds in tiles: the inverse of block_scale_interleave."""
    return _planned(device, "output", output, "input", input, is_sf_8x4_layout, back=True)


def _planned(device: Device, name: str, by_row: Any, other: str, tiles: Any, narrow_tiles: bool, back: bool) -> Plan:
    from porter.corpus.kernels.quant.block_layouts import BlockLayout
    from porter.corpus.lib.quantisation.block_scales import BlockScales

    check_dtype(name, by_row, *_BYTES)
    check_dtype(other, tiles, *_BYTES)
    if by_row.dim() != 2:
        raise ValueError(f"{name} has shape {tuple(by_row.shape)}, the kernel takes rows of scales")
    layout, (rows, columns) = layout_of(True, narrow_tiles), by_row.shape
    tile = TILE_ROWS[layout]
    want = -(-rows // tile) * tile, -(-columns // 4) * 4
    if tiles.numel() != want[0] * want[1] or tiles.shape[-1] not in (want[1], tiles.numel()):
        raise ValueError(f"{other} has shape {tuple(tiles.shape)}, the {layout} layout takes {want} bytes")
    for n, t in ((name, by_row), (other, tiles)):
        if not t.is_contiguous():
            raise ValueError(f"{n} must be contiguous")
    if rows == 0 or columns == 0:
        return None
    if tiles.data_ptr() % 4:
        raise Unsupported(f"{other} is not aligned to four bytes")
    scales = BlockScales("e4m3", 1, "e8m0", layout, "ceil", False, want[1])
    threads = min(256, max(32, -(-(want[1] // 4) // 32) * 32))
    kernel = BlockLayout(scales, columns, threads, back, device.pdl)
    blocks = kernel.blocks(want[0])

    def bind(launch: Any) -> Any:
        def call(output: Any, input: Any, *_: Any) -> None:
            rows_, tiles_ = (output, input) if back else (input, output)
            launch(as_bytes(rows_), as_bytes(tiles_).view(-1, want[1]), blocks)

        return call

    return kernel, bind
