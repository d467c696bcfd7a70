"""Element-wise work: a row is cut into chunks, one a block, and a thread takes the same vector of a few rows."""

import cutlass
import cutlass.cute as cute
from cutlass import Int32, Uint32


class ChunkedRows:
    """Base of element-wise kernels: how many blocks there are, from static choices that they all have.

    d: elements of a row of the result.  vec: elements of a thread and row.  block: threads.  rows: rows of a thread.
    """

    d: int
    vec: int
    block: int
    rows: int

    @property
    def threads(self) -> int:
        return self.block

    @property
    def chunks(self) -> int:
        """Blocks that share a row."""
        return -(-self.d // (self.vec * self.threads))

    def blocks(self, rows: int) -> int:
        """Blocks of a launch over so many rows."""
        return -(-rows // self.rows) * self.chunks


def rows_and_column(choices):
    """(first row, column) of this thread of a kernel of `ChunkedRows`, Int32. The division is by a constant
    (`mul.hi.u32`)."""
    block = Uint32(cute.arch.block_idx()[0])
    group = block // choices.chunks
    thread = Int32(block - group * choices.chunks) * choices.threads + cute.arch.thread_idx()[0]
    return Int32(group) * choices.rows, thread * choices.vec


def clamped_row(first, step, mX):
    """`first + step`, or the last row of mX: a row that may be read (`min.s32`). Row `first` is there."""
    return first if step == 0 else cutlass.min(first + step, mX.shape[0] - 1)
