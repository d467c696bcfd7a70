"""Softmax as engines call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.rows import access_width, as_rows, check_dtype, row_dimensions
from porter.corpus.ops.softmax import reference
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op
from porter.corpus.runtime.tuning import Choice, choose

FLOATS = ("bf16", "f16", "f32")
_MOST_CLUSTER = 8  # blocks; more are not portable
_MOST_WORDS = 64  # registers that a thread may hold a row in


@op(
    "softmax(Tensor(a!) out, Tensor input, Tensor? temperature=None) -> ()",
    key=compact_key("input.nbytes", {"temperature is None": True}),
    fallback=reference.softmax,
    in_place=("input",),
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
        raise Unsupported(f"input has strides {input.stride()}: its rows are not evenly spaced")
    if temperature is not None:
        check_dtype("temperature", temperature, "f32")
        if temperature.numel() != rows or not temperature.is_contiguous():
            raise ValueError(f"temperature must hold {rows} numbers, it has shape {tuple(temperature.shape)}")
    if rows == 0 or length == 0:
        return None
    vec = access_width(length, [input, out])
    choice = spread_softmax(device, dtype, rows, length, vec, max(1, vec * input.element_size() // 4))
    per_block, cluster = choice["rows"], choice["cluster"]
    kernel = Softmax(
        dtype, out_dtype, Rows(length, vec, choice["threads"] * cluster, per_block), cluster, temperature is not None,
        choice["keep"], device.pdl, choice["prefetch"], choice["prefetch_distance"],
        choice["streaming"], choice["prefetch_blocks"],
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


def spread_softmax(device: Device, dtype: str, rows: int, length: int, vec: int, words: int) -> Choice:
    """The tuning table's choice or a rule for rows held in registers, `words` of them an access: threads of a row in
    a block ("threads"), rows of a block ("rows"), blocks of a row ("cluster"); "keep", "prefetch", "prefetch_distance",
    "streaming", "prefetch_blocks" as Softmax.

    Short rows share warps and blocks. Others take four to eight accesses a thread. When there are fewer rows than
    multiprocessors, a long row spreads over a cluster of small blocks. (Rules fitted to what the tuner found on an
    H200.)
    """
    vectors = -(-length // vec)
    most = max(1, _MOST_WORDS // words)  # accesses of a thread
    few = rows <= device.sm_count
    shared = 1 << (vectors - 1).bit_length()  # threads of a row that takes less than a warp

    def choice(threads: int, per_block: int, cluster: int, keep: bool | None = None) -> dict[str, Any]:
        accesses = -(-vectors // (threads * cluster))
        keep = accesses * vec <= 32 if keep is None else keep
        first = device.prefetch_blocks(-(-rows // per_block) * cluster, threads * per_block)
        prefetch = few or first > 0 or accesses <= 4 or threads * cluster <= 128
        return {
            "threads": threads, "rows": per_block, "cluster": cluster, "keep": keep, "prefetch": prefetch,
            "prefetch_distance": 0, "streaming": not first, "prefetch_blocks": first,
        }  # fmt: skip

    def candidates() -> list[dict[str, Any]]:
        found = []
        if vectors <= 32:
            found = [choice(shared, n, 1) for n in (1, 2, 4, 8, 16, 32) if 32 <= n * shared <= 512]
        for cluster in (1, 2, 4, 8):
            for threads in (32, 64, 128, 256, 512, 1024):
                accesses = -(-vectors // (threads * cluster))
                if (1 if few else 2) <= accesses <= min(most, 8 * cluster) and accesses * vec <= 64:
                    found += [choice(threads, 1, cluster, keep) for keep in (False, True)]
        plain = [{**c, "prefetch": p, "prefetch_blocks": 0} for c in found for p in (False, True)]
        found = plain + [c for c in found if c["prefetch_blocks"]]
        if rows > 4 * device.sm_count and vectors > 32:
            distances = [device.sm_count * n for n in (1, 2, 8) if device.sm_count * n < rows // 2]
            found += [{**c, "prefetch_distance": n} for c in found for n in distances]
            return [{**c, "streaming": False} for c in found]
        return found + [{**c, "streaming": False} for c in found]

    if vectors <= 32:
        per_block = max(1, (512 if rows >= 32 * device.sm_count else 128) // shared)
        while per_block > 1 and per_block * shared > 32 and -(-rows // per_block) < device.sm_count:
            per_block //= 2
        default = choice(shared, per_block, 1)
    elif few and 1024 < vectors <= 8 * 256 * _MOST_CLUSTER and most >= 8:
        threads = 128 if vectors <= 8 * 128 * 4 else 256
        default = choice(threads, 1, 1 << (-(-vectors // (8 * threads)) - 1).bit_length())
    else:
        default = choice(*_long_row(vectors, 1 if few else 4, most))
    return choose(device, "softmax", f"{dtype}x{vec} {length}", rows, default, candidates)


def _long_row(vectors: int, least: int, most: int) -> tuple[int, int, int]:
    """(threads of a row in a block, 1, blocks of a row) for `least` accesses a thread or more, `most` at most."""
    for cluster in (1, 2, 4, _MOST_CLUSTER):
        for accesses in (least, 2 * least, 4 * least):
            if accesses <= min(most, 8) and vectors <= accesses * 512 * cluster:
                threads = -(-vectors // (accesses * cluster))
                return -(-threads // 32) * 32, 1, cluster
    if vectors <= most * 512 * _MOST_CLUSTER:
        return 512, 1, _MOST_CLUSTER
    raise Unsupported(f"rows of {vectors} accesses do not fit into a cluster's registers")
