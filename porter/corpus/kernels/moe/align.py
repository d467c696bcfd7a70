"""Routed entries sorted by expert, each expert padded to whole blocks: what grouped GEMMs with tiles read."""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import Int32

from porter.corpus import lib
from porter.corpus.lib.moe.sorting import ExpertSort, SortsEntries, bin_at
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import vector, written
from porter.corpus.runtime.specialisation import Specialisation


@dataclass(frozen=True)
class AlignBlocks(SortsEntries, Specialisation):
    """Static choices. sort: how entries are sorted.  scatter: whether the place of each entry is written."""

    index: str
    sort: ExpertSort
    mapped: bool = False
    scatter: bool = False
    pdl: bool = True

    def arguments(self):
        places, blocks, total = (written(vector("i32", n, 4)) for n in ("L", "N", 1))
        ids = vector(self.index, "M", scalar(self.index).bytes)
        expert_map = vector("i32", self.sort.experts, 4) if self.mapped else None
        return places, blocks, total, ids, expert_map, written(vector("i32", "M", 4)) if self.scatter else None

    @cute.jit
    def __call__(
        self,
        mP: cute.Tensor,  # (L,) int32
        mE: cute.Tensor,  # (N,) int32
        mN: cute.Tensor,  # (1,) int32
        mI: cute.Tensor,  # (M,)
        mMap: cute.Tensor | None,  # (E,) int32
        mS: cute.Tensor | None,  # (M,) int32
        blocks: Int32,
        stream,
    ):
        self.kernel(mP, mE, mN, mI, mMap, mS).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), cluster=(self.cluster, 1, 1), stream=stream,
            use_pdl=self.pdl,
        )  # fmt: skip

    @cute.kernel
    def kernel(
        self,
        mP: cute.Tensor,
        mE: cute.Tensor,
        mN: cute.Tensor,
        mI: cute.Tensor,
        mMap: cute.Tensor | None,
        mS: cute.Tensor | None,
    ):
        sort, total = self.sort, mI.shape[0]
        memory = sort.memory()
        counts, _, _, starts, places, _ = memory
        every = sort.threads * sort.cluster
        lib.pdl_launch_dependents()
        lib.pdl_wait()
        for i in range(sort.thread(), mP.shape[0], every):
            mP[i] = total
        sort.count(memory, mI, mMap, total)
        padded = sort.base_places(memory)
        if sort.thread() == 0:
            mN[0] = padded
        for i in range(sort.thread(), mE.shape[0], every):
            start = i * sort.multiple
            mE[i] = bin_at(starts, sort.bins, start) if start < padded else Int32(-1)
        self.place(counts, places, mP, mI, mMap, mS, total)
        sort.leave()

    @cute.jit
    def place(
        self, counts: cute.Pointer, places: cute.Pointer, mP: cute.Tensor, mI: cute.Tensor, mMap, mS, total: Int32
    ):
        """Write each entry to its place."""
        sort = self.sort
        first, last = sort.run(total)
        for base in range(first, last, 32 * sort.unroll):
            for entry, inside, bin_ in sort.read(mI, mMap, base, last):
                rank = sort.take(counts, bin_)
                place = Int32(-1)
                if bin_ >= 0:
                    place = Int32(places[bin_]) + rank
                    if place < mP.shape[0]:
                        mP[place] = entry
                if cutlass.const_expr(mS is not None):  # noqa: SIM102 (only one is dynamic)
                    if inside:
                        mS[entry] = place
