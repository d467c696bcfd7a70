"""A port that somebody went on working on, with names of library version 1."""

import cutlass.cute as cute
from cutlass import Float32, Int32, Uint32

from porter.corpus import lib, runtime
from porter.corpus.lib import peek
from porter.corpus.lib.rows import Rows

ROWS = Rows(length=256, vec=4, threads=32, rows=2)


@cute.kernel
def double_rows(out: cute.Pointer, rows_in: cute.Pointer, flags: cute.Pointer, count: Int32):
    mX = cute.make_tensor(rows_in, cute.make_layout((count, 256), stride=(256, 1)))
    mO = cute.make_tensor(out, cute.make_layout((count, 256), stride=(256, 1)))
    _, lane = ROWS.place()
    row, _, inside = ROWS.mine(count)
    lib.prefetch_line(rows_in + 4 * lane, lib.first_in_line(16) & lib.leading(8))
    ROWS.ask(ROWS.of(mX, row), lane, inside)
    ROWS.ask_ahead(mX, row + 2, count, lane)
    flag = peek(flags + row % 2, Uint32) + lib.peek(flags, Uint32)
    if inside:
        gX = ROWS.of(mX, row).iterator + ROWS.at(0, lane)
        words = lib.forget_words(lib.load_words(gX, 16, lib.STREAM))
        total = lib.pairwise(lib.unpack(words, 4, Float32), lambda a, b: a + b)
        ROWS.of(mO, row)[lane] = total + Float32(flag)


@cute.jit
def _launch(
    out: cute.Pointer,
    rows_in: cute.Pointer,
    flags: cute.Pointer,
    count: Int32,
    grid_x: Int32,
    grid_y: Int32,
    grid_z: Int32,
    block_x: Int32,
    block_y: Int32,
    block_z: Int32,
    smem_bytes: Int32,
    stream,
):
    grid, block = (grid_x, grid_y, grid_z), (block_x, block_y, block_z)
    double_rows(out, rows_in, flags, count).launch(grid=grid, block=block, stream=stream)


KERNEL = runtime.Kernel(
    launch=_launch,
    name="double_rows",
    params=(
        runtime.Ptr("out", "f32"),
        runtime.Ptr("rows_in", "f32"),
        runtime.Ptr("flags", "u32"),
        runtime.Num("count", "i32"),
    ),
)
