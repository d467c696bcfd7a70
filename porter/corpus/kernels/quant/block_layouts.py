"""Scales of one byte from rows to the tiles that tensor cores take, and back."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Uint8, Uint32

from porter.corpus import lib
from porter.corpus.lib.chunks import ChunkedRows
from porter.corpus.lib.quantisation.block_scales import BlockScales
from porter.corpus.runtime.signature import Tensor, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class BlockLayout(ChunkedRows, Specialisation):
    """Static choices. A thread moves four neighbours of a row, one word of a tile.

    scales: the tiles' layout; a block is one number there, so that columns are scales.  back: from tiles to rows.
    columns: scales of a row, those beyond are zeros in tiles.
    """

    scales: BlockScales
    columns: int
    block: int  # threads
    back: bool = False
    pdl: bool = True
    rows: int = 1
    vec: int = 4

    @property
    def d(self) -> int:  # type: ignore[override]
        """Scales of a row of tiles."""
        return self.scales.columns

    def arguments(self):
        rows, tiles = Tensor("u8", ("T", self.columns), (self.columns, 1), 1), Tensor(*self.scales.argument())
        return (written(rows), tiles) if self.back else (rows, written(tiles))

    @cute.jit
    def __call__(
        self,
        mX: cute.Tensor,  # (T, columns), read, or with `back` written
        mS: cute.Tensor,  # whole tiles: (rows, columns)
        blocks: Int32,
        stream,
    ):
        self.kernel(mX, mS).launch(grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl)

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mS: cute.Tensor):
        row, col = lib.rows_and_column(self)
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        if (col < self.scales.columns) & (row < mS.shape[0]):
            place = self.scales.scale_ptr(mS, row, col)
            if cutlass.const_expr(self.back):
                (word,) = lib.load_words(place, 4, lib.CACHED)
                for j in cutlass.range_constexpr(4):
                    if (row < mX.shape[0]) & (col + j < self.columns):
                        mX[row, col + j] = Uint8((word >> (8 * j)) & Uint32(0xFF))
            else:
                word = Uint32(0)
                for j in cutlass.range_constexpr(4):
                    if (row < mX.shape[0]) & (col + j < self.columns):
                        word = word | (Uint32(Uint8(mX[row, col + j])) << (8 * j))
                lib.store_words(place, (word,), 4)
