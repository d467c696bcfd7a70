"""Softmax as engines call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops import softmax_reference as reference
from porter.corpus.ops.rows import access_width, as_rows, check_dtype, row_dimensions
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, op

FLOATS = ("bf16", "f16", "f32")
_MOST_CLUSTER = 8  # blocks; more are not portable
_MOST_WORDS = 64  # registers that a thread may hold a row in


@op(
    "softmax(Tensor(a!) out, Tensor input, Tensor? temperature=None) -> ()",
    key=lambda out, input, temperature=None: (
        input.shape, input.stride(), input.dtype, out.dtype, input.get_device(), temperature is None
    ),
    fallback=reference.softmax,
)  # fmt: skip
def softmax(device: Device, out: Any, input: Any, temperature: Any) -> Plan:
    """`out` = softmax(input / temperature) over the last dimension.

    `input` (..., N) in bfloat16, float16 or float32, last dimension contiguous; `out` like it or float32, or `input`
    itself; `temperature` float32, one positive number a row, or None for 1. In float32 less the largest element,
    rounded once; probabilities below 2^-126 are zero. A row of minus infinities, or with NaN or infinity in it, is NaN.
    Raises ValueError for other arguments.
    """
    from porter.corpus.kernels.softmax.softmax import Softmax
    from porter.corpus.lib.rows import Rows

    dtype = check_dtype("input", input, *FLOATS)
    out_dtype = check_dtype("out", out, dtype, "f32")
    rows, inner = row_dimensions([("input", input), ("out", out)])
    length = input.shape[-1] if input.dim() else 0
    if inner != 1:
        raise Unsupported(f"input has strides {input.stride()}: its rows are not at even distances")
    if temperature is not None:
        check_dtype("temperature", temperature, "f32")
        if temperature.numel() != rows or not temperature.is_contiguous():
            raise ValueError(f"temperature must hold {rows} numbers, it has shape {tuple(temperature.shape)}")
    if rows == 0 or length == 0:
        return None
    vec = access_width(length, [input, out])
    threads, per_block, cluster = spread_rows(device, rows, length, vec, max(1, vec * input.element_size() // 4))
    accesses = -(-length // (vec * threads))
    kernel = Softmax(
        dtype, out_dtype, Rows(length, vec, threads, per_block), cluster, temperature is not None,
        keep=accesses * vec <= 32, pdl=device.pdl,
    )  # fmt: skip
    blocks = -(-rows // per_block) * cluster
    direct = input.dim() == 2 and (temperature is None or temperature.dim() == 1)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda out, input, temperature: launch(out, input, temperature, blocks)
        return lambda out, input, temperature: launch(
            as_rows(out, 1), as_rows(input, 1), temperature if temperature is None else temperature.view(-1), blocks
        )

    return kernel, bind


def spread_rows(device: Device, rows: int, length: int, vec: int, words: int) -> tuple[int, int, int]:
    """(threads of a row, rows of a block, blocks of a row) for rows held in registers, `words` of them an access.

    Short rows share warps and blocks. Others take four accesses a thread, up to 512 threads, then eight; then
    clusters. When there are fewer rows than multiprocessors a row spreads over more threads and blocks.
    """
    vectors = -(-length // vec)
    if vectors <= 32:
        threads = 1 << (vectors - 1).bit_length()
        per_block = max(1, 128 // threads)
        while per_block > 1 and per_block * threads > 32 and -(-rows // per_block) < device.sm_count:
            per_block //= 2
        return threads, per_block, 1
    least = 1 if rows <= device.sm_count else 4
    most = max(1, _MOST_WORDS // words)
    cluster = 1
    while True:
        for accesses in (least, 2 * least, 4 * least):
            if accesses <= min(most, 8) and vectors <= accesses * 512 * cluster:
                threads = -(-vectors // (accesses * cluster))
                return -(-threads // 32) * 32 * cluster, 1, cluster
        if cluster == _MOST_CLUSTER:
            break
        cluster *= 2
    for threads in (512, 1024):
        if vectors <= most * threads * cluster:
            return threads * cluster, 1, cluster
    raise Unsupported(f"rows of {length} elements in accesses of {vec} do not fit into a cluster's registers")
