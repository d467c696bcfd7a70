"""Rotary embedding as engines call it: vLLM's name and schema."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from porter.corpus.ops.rotary import reference
from porter.corpus.ops.rows import check_dtype
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op
from porter.corpus.runtime.tuning import Choice, choose

FLOATS = ("bf16", "f16", "f32")


_KEY = compact_key(
    "(query.nbytes, head_size)", {"key is None": False, "is_neox": True, "rope_dim_offset": 0, "inverse": False}
)


@op(
    "rotary_embedding(Tensor positions, Tensor(a!) query, Tensor(b!)? key, int head_size, Tensor cos_sin_cache, "
    "bool is_neox, int rope_dim_offset=0, bool inverse=False) -> ()",
    key=_KEY,
    fallback=reference.rotary_embedding,
)
def rotary_embedding(
    device: Device,
    positions: Any,
    query: Any,
    key: Any,
    head_size: int,
    cos_sin_cache: Any,
    is_neox: bool,
    rope_dim_offset: int,
    inverse: bool,
) -> Plan:
    """Rotate the heads of `query` and `key` (or None) in place by the angles of their tokens' positions.

    `positions` int64, (tokens,) or (batch, length); `query` and `key` have these dimensions in front, then
    (heads * head_size) or (heads, head_size), with any strides but the last; bfloat16, float16 or float32.
    `cos_sin_cache` (positions, rot): cosines, then sines, of the same dtype or float32. The rot elements of a head from
    `rope_dim_offset` on turn, in pairs (i, i + rot/2) if `is_neox`, else (2i, 2i + 1): (x cos - y sin, y cos + x sin)
    in float32, rounded once; the product with sin is rounded before the sum, the other one is fused with it.
    `inverse` turns the other way. Raises ValueError for other arguments; positions are not checked.
    """
    from porter.corpus.kernels.rotary.rotary import Rotary

    work = rotary_work(device, positions, query, key, head_size, cos_sin_cache, is_neox, rope_dim_offset, inverse)
    if work is None:
        return None
    kernel = Rotary(**work.choices)
    blocks, tokens = kernel.blocks(work.tokens), work.tokens

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if work.direct:
            return lambda positions, query, key, head_size, table, is_neox, offset, inverse: launch(
                positions, query, key, table, blocks
            )

        def call(positions: Any, query: Any, key: Any, head_size: int, table: Any, *_: Any) -> None:
            key = None if key is None else key.view(tokens, -1, head_size)
            launch(positions.view(-1), query.view(tokens, -1, head_size), key, table, blocks)

        return call

    return kernel, bind


@op(
    "rotary_embedding_fp8(Tensor(a!) query_out, Tensor(b!)? key_out, Tensor positions, Tensor query, Tensor? key, "
    "int head_size, Tensor cos_sin_cache, bool is_neox, float query_scale=1.0, float key_scale=1.0, "
    "int rope_dim_offset=0, bool inverse=False) -> ()",
    key=_KEY,
    fallback=reference.rotary_embedding_fp8,
)
def rotary_embedding_fp8(
    device: Device,
    query_out: Any,
    key_out: Any,
    positions: Any,
    query: Any,
    key: Any,
    head_size: int,
    cos_sin_cache: Any,
    is_neox: bool,
    query_scale: float,
    key_scale: float,
    rope_dim_offset: int,
    inverse: bool,
) -> Plan:
    """`query_out`, `key_out` (float8_e4m3fn): the heads of `rotary_embedding` times `query_scale`, `key_scale`.

    In float32 up to the one rounding to e4m3, which saturates and keeps NaN; what does not turn is scaled and rounded
    too. The results have the shapes of `query` and `key`, any strides but the last, and do not overlap them. Otherwise
    as `rotary_embedding`.
    """
    from porter.corpus.kernels.rotary.rotary_fp8 import RotaryFp8

    if (key is None) != (key_out is None):
        raise ValueError("key and key_out are given both or not at all")
    work = rotary_work(device, positions, query, key, head_size, cos_sin_cache, is_neox, rope_dim_offset, inverse)
    outs = []
    for name, t, like in (("query_out", query_out, query), ("key_out", key_out, key)):
        if t is not None:
            check_dtype(name, t, "e4m3")
            if t.shape != like.shape or t.stride(-1) != 1:
                raise ValueError(f"{name} must have shape {tuple(like.shape)}, the last dimension contiguous")
            outs.append(heads_of(name, t, head_size, positions.dim()))
    if work is None:
        return None
    rot = cos_sin_cache.shape[-1]
    kernel = RotaryFp8(
        **work.choices, qo_stride=outs[0].stride(1), ko_stride=outs[-1].stride(1),
        rest=power_of_two(8, (rope_dim_offset, head_size, rot)),
        out_align=aligned_elements(outs, (rope_dim_offset, rot // 2)),
    )  # fmt: skip
    blocks, tokens = kernel.blocks(work.tokens), work.tokens

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if work.direct:
            return lambda q_out, k_out, positions, q, k, size, table, neox, q_scale, k_scale, offset, inverse: launch(
                q_out, k_out, positions, q, k, table, q_scale, k_scale, blocks
            )

        def call(
            query_out: Any, key_out: Any, positions: Any, query: Any, key: Any, head_size: int, table: Any,
            is_neox: bool, query_scale: float, key_scale: float, *_: Any
        ) -> None:  # fmt: skip
            positions = positions.view(-1)
            query_out, key_out, query, key = (
                t if t is None else t.view(tokens, -1, head_size) for t in (query_out, key_out, query, key)
            )
            launch(query_out, key_out, positions, query, key, table, query_scale, key_scale, blocks)

        return call

    return kernel, bind


@dataclass(frozen=True)
class RotaryWork:
    """Static choices of Rotary, the number of tokens, and whether tensors go to the kernel without a view."""

    choices: dict[str, Any]
    tokens: int
    direct: bool


def rotary_work(
    device: Device, positions: Any, query: Any, key: Any, head_size: int, cos_sin_cache: Any, is_neox: bool,
    rope_dim_offset: int, inverse: bool, most_pairs: int = 16,
) -> RotaryWork | None:  # fmt: skip
    """Checks the arguments (ValueError, Unsupported); None when there is nothing to turn. `most_pairs` of a thread."""
    dtype = check_dtype("query", query, *FLOATS)
    cache = check_dtype("cos_sin_cache", cos_sin_cache, dtype, "f32")
    check_dtype("positions", positions, "i64")
    rot, leading = cos_sin_cache.shape[-1], positions.dim()
    if cos_sin_cache.dim() != 2 or not cos_sin_cache.is_contiguous() or rot % 2:
        raise ValueError(f"cos_sin_cache must be (positions, rot), contiguous, it has shape {cos_sin_cache.shape}")
    if not positions.is_contiguous():
        raise ValueError("positions must be contiguous")
    if not 0 <= rope_dim_offset <= head_size - rot:
        raise ValueError(f"{rot} elements from {rope_dim_offset} on do not fit into heads of {head_size}")
    tensors = [("query", query)] + ([] if key is None else [("key", key)])
    views = []
    for name, t in tensors:
        check_dtype(name, t, dtype)
        if t.shape[:leading] != positions.shape or t.dim() - leading not in (1, 2):
            raise ValueError(f"{name} has shape {tuple(t.shape)}, positions {tuple(positions.shape)}")
        if t.stride(-1) != 1 or t.shape[-1] % head_size or (t.dim() - leading == 2 and t.shape[-1] != head_size):
            raise ValueError(f"{name} must end in contiguous heads of {head_size}, it has shape {tuple(t.shape)}")
        views.append(heads_of(name, t, head_size, leading))
    tokens, q_heads = views[0].shape[:2]
    k_heads = views[1].shape[1] if key is not None else 0
    if tokens == 0 or rot == 0 or q_heads + k_heads == 0:
        return None
    if q_heads == 0:
        raise Unsupported("query has no heads")
    size, half = query.element_size(), rot // 2
    vec = min(16 // size, aligned_elements(views, (rope_dim_offset,)))
    pairs = power_of_two(min(most_pairs, vec if is_neox else max(1, vec // 2)), (half,))
    dims = {query.dim(), query.dim() if key is None else key.dim()}
    choices = {
        "dtype": dtype, "cache": cache, "q_heads": q_heads, "k_heads": k_heads, "head_size": head_size, "rot": rot,
        "q_stride": views[0].stride(1), "k_stride": views[-1].stride(1), "pairs": pairs, "neox": is_neox,
        "inverse": inverse, "offset": rope_dim_offset, "align": size * (min(vec, pairs) if is_neox else vec),
        "flat": leading == 1 and dims == {2}, "pdl": device.pdl,
        **spread_heads(device, dtype, tokens, q_heads + k_heads, half // pairs),
    }  # fmt: skip
    return RotaryWork(choices, tokens, leading == 1 and (dims == {2} or dims == {3}))


def heads_of(name: str, t: Any, head_size: int, leading: int) -> Any:
    """The (tokens, heads, head_size) view."""
    heads = t.shape[leading] if t.dim() == leading + 2 else t.shape[leading] // head_size
    try:
        return t.view(math.prod(t.shape[:leading]), heads, head_size)
    except RuntimeError:
        raise Unsupported(f"{name} has strides {t.stride()}: its tokens are not evenly spaced") from None


def power_of_two(most: int, multiples: Sequence[int]) -> int:
    """The largest power of two up to `most` that divides all of `multiples`."""
    while any(m % most for m in multiples):
        most //= 2
    return most


def aligned_elements(views: Sequence[Any], offsets: Sequence[int]) -> int:
    """Elements, 16 at most, to whose bytes all heads of views are aligned at these offsets."""
    strides = [t.stride(i) for t in views for i in (0, 1) if t.shape[i] > 1]
    starts = [t.data_ptr() // t.element_size() for t in views]
    return power_of_two(16, (*offsets, *strides, *starts))


def spread_heads(device: Device, dtype: str, tokens: int, heads: int, slots: int) -> Choice:
    """The tuning table's choice or a rule: threads that share the heads of a token in a block ("lanes"), blocks of a
    token ("splits"), tokens of a block ("tokens"), "prefetch", "prefetch_blocks".

    One head a thread; blocks of about 64 threads when there are few tokens, of 256 otherwise. (Fitted to what the tuner
    found on an H200: more heads a thread, with one read of the angles for all of them, were slower.)
    """

    def choice(each: int, threads: int, several: int, prefetch: bool) -> dict[str, Any]:
        groups = -(-heads // each)  # threads that share the heads of a token
        lanes = max(1, min(groups, threads // slots))
        splits = -(-groups // lanes)
        first = device.prefetch_blocks(-(-tokens // several) * splits, several * lanes * slots) if prefetch else 0
        return {"lanes": lanes, "splits": splits, "tokens": several, "prefetch": prefetch, "prefetch_blocks": first}

    def candidates() -> list[dict[str, Any]]:
        found = [
            choice(each, threads, several, prefetch)
            for each in (1, 2, 4, 5, 8, 10)
            for threads in (64, 128, 256, 512)
            for several in (1, 2, 4, 8)
            if several * min(threads, slots * -(-heads // each)) <= 512 and (several == 1 or tokens > device.sm_count)
            for prefetch in (False, True)
        ]
        return found + [c | {"prefetch_blocks": 0} for c in found if c["prefetch_blocks"]]

    threads = 64 if tokens * 2 <= device.sm_count else 256
    default = choice(1, threads, 2 if tokens > 4 * device.sm_count else 1, True)
    return choose(device, "rotary_embedding", f"{dtype} {heads}x{slots}", tokens, default, candidates)
