"""Embedding as engines with a vocabulary that is split over GPUs need it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.embedding import reference
from porter.corpus.ops.rows import access_width, as_rows, check_dtype, row_dimensions
from porter.corpus.ops.spread import spread_elements
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, op


@op(
    "embedding(Tensor(a!) out, Tensor indices, Tensor weight, int vocab_start=0, int vocab_end=-1) -> ()",
    key="out.nbytes if vocab_end == -1 else (out.nbytes, weight.nbytes, vocab_end - vocab_start)",
    fallback=reference.embedding,
)  # fmt: skip
def embedding(device: Device, out: Any, indices: Any, weight: Any, vocab_start: int, vocab_end: int) -> Plan:
    """`out[i]` = weight[indices[i] - vocab_start] where vocab_start <= indices[i] < vocab_end, else zeros.

    `weight` (rows, d) in bfloat16, float16 or float32, last dimension contiguous, holds the vocabulary from
    `vocab_start` on; `vocab_end` -1 stands for its last row. `indices` int32 or int64, contiguous; `out` has their
    shape and d behind it. Sums of the parts of a split vocabulary give the whole embedding. Raises ValueError for
    other arguments.
    """
    from porter.corpus.kernels.embedding.embedding import Embedding

    dtype = check_dtype("weight", weight, "bf16", "f16", "f32")
    check_dtype("out", out, dtype)
    index = check_dtype("indices", indices, "i32", "i64")
    if weight.dim() != 2 or (weight.shape[1] > 1 and weight.stride(1) != 1):
        raise ValueError(f"weight must be (rows, d), the last contiguous, it has shape {tuple(weight.shape)}")
    d = weight.shape[1]
    if tuple(out.shape) != (*indices.shape, d):
        raise ValueError(f"out has shape {tuple(out.shape)}, the other operands imply {(*indices.shape, d)}")
    if not indices.is_contiguous():
        raise ValueError("indices must be contiguous")
    count = weight.shape[0] if vocab_end == -1 else vocab_end - vocab_start
    if not 0 <= count <= weight.shape[0]:
        raise ValueError(f"weight has {weight.shape[0]} rows, not those of {vocab_start} to {vocab_end}")
    rows, inner = row_dimensions([("out", out)])
    if inner != 1 or out.dim() == 1:
        raise Unsupported(f"out has strides {out.stride()}: its rows are not evenly spaced")
    if rows == 0 or d == 0:
        return None
    if weight.shape[0] == 0:
        raise Unsupported("weight has no rows")
    vec = access_width(d, [out, weight])
    spread = spread_elements(device, "embedding", dtype, rows, d, vec)
    kernel = Embedding(
        dtype, index, d, vec, spread.threads, spread.rows, device.pdl, spread.prefetch, spread.prefetch_blocks
    )
    blocks, direct = kernel.blocks(rows), out.dim() == 2
    count = -1 if vocab_end == -1 else count  # the table may have another length in the next call

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda out, indices, weight, start, end: launch(out, indices, weight, start, count, blocks)
        return lambda out, indices, weight, start, end: launch(
            as_rows(out, 1), indices.view(-1), weight, start, count, blocks
        )

    return kernel, bind
