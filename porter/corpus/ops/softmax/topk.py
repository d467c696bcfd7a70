"""Row top-k as engines call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.rows import access_width, as_rows, check_dtype, row_dimensions
from porter.corpus.ops.softmax import reference
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op

_MOST_ELEMENTS = 64  # of a thread, one register each
_MOST_K = 1024


@op(
    "topk(Tensor(a!) values, Tensor(b!) indices, Tensor input, bool softmax=False) -> ()",
    key=compact_key("input.nbytes", {"softmax": False}),
    fallback=reference.topk,
)  # fmt: skip
def topk(device: Device, values: Any, indices: Any, input: Any, softmax: bool) -> Plan:
    """The k = values.shape[-1] largest numbers of each row of `input`, largest first, and their indices.

    Equal numbers come in the order of their indices; NaN counts as the largest number, -0 equals 0. `input` (..., N) in
    bfloat16, float16 or float32, last dimension contiguous; `values` (..., k) like it or float32; `indices` (..., k)
    int32 or int64. With `softmax` the values are the softmax of the k numbers, in float32, rounded once. Raises
    ValueError for other arguments.
    """
    from porter.corpus.kernels.softmax.topk import TopK
    from porter.corpus.lib.rows import Rows

    dtype = check_dtype("input", input, "bf16", "f16", "f32")
    out, index = check_dtype("values", values, dtype, "f32"), check_dtype("indices", indices, "i32", "i64")
    rows, inner = row_dimensions([("values", values), ("indices", indices)])
    length, k = input.shape[-1], values.shape[-1]
    if input.shape[:-1] != values.shape[:-1]:
        raise ValueError(f"values has shape {tuple(values.shape)}, input {tuple(input.shape)}")
    if k > length:
        raise ValueError(f"rows of {length} numbers have no {k} largest")
    if inner != 1 or row_dimensions([("input", input)])[1] != 1:
        raise Unsupported("rows of topk must be evenly spaced")
    if rows == 0 or k == 0:
        return None
    if k > _MOST_K:
        raise Unsupported(f"k is {k}, the kernel takes {_MOST_K} at most")
    vec = access_width(length, [input])
    threads, per_block = _spread(device, rows, length, vec, k)
    kernel = TopK(dtype, out, index, Rows(length, vec, threads, per_block), k, softmax, device.pdl)
    blocks, direct = -(-rows // per_block), input.dim() == 2

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda values, indices, input, _: launch(values, indices, input, blocks)
        return lambda values, indices, input, _: launch(
            as_rows(values, 1), as_rows(indices, 1), as_rows(input, 1), blocks
        )

    return kernel, bind


def _spread(device: Device, rows: int, length: int, vec: int, k: int) -> tuple[int, int]:
    """(threads of a row, rows of a block): a warp for up to 512 numbers, four warps in a block; else about 16 numbers a
    thread, 64 at most."""
    threads = 32
    while threads < k or (threads * 16 < length and threads < 1024):
        threads *= 2
    if -(-length // (threads * vec)) * vec > _MOST_ELEMENTS:
        raise Unsupported(f"rows of {length} numbers do not fit into a block's registers")
    per_block = 4 if threads == 32 and rows > 4 * device.sm_count else 1
    return threads, per_block
