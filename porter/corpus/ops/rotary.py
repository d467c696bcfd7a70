"""Rotary embedding as engines call it: vLLM's name and schema."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from porter.corpus.ops import rotary_reference as reference
from porter.corpus.ops.rows import check_dtype
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, op
from porter.corpus.runtime.tuning import Choice, choose

FLOATS = ("bf16", "f16", "f32")


def _key(
    positions: Any,
    query: Any,
    key: Any,
    head_size: int,
    cos_sin_cache: Any,
    is_neox: bool,
    rope_dim_offset: int = 0,
    inverse: bool = False,
) -> Any:
    return (
        query.shape, query.stride(), query.dtype, query.get_device(), key is not None and (key.shape, key.stride()),
        positions.dim(), head_size, cos_sin_cache.shape[-1], cos_sin_cache.dtype, is_neox, rope_dim_offset, inverse,
    )  # fmt: skip


@op(
    "rotary_embedding(Tensor positions, Tensor(a!) query, Tensor(b!)? key, int head_size, Tensor cos_sin_cache, "
    "bool is_neox, int rope_dim_offset=0, bool inverse=False) -> ()",
    key=_key,
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

    dtype = check_dtype("query", query, *FLOATS)
    cache = check_dtype("cos_sin_cache", cos_sin_cache, dtype, "f32")
    check_dtype("positions", positions, "i64")
    rot, lead = cos_sin_cache.shape[-1], positions.dim()
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
        if t.shape[:lead] != positions.shape or t.dim() - lead not in (1, 2):
            raise ValueError(f"{name} has shape {tuple(t.shape)}, positions {tuple(positions.shape)}")
        if t.stride(-1) != 1 or t.shape[-1] % head_size or (t.dim() - lead == 2 and t.shape[-1] != head_size):
            raise ValueError(f"{name} must end in contiguous heads of {head_size}, it has shape {tuple(t.shape)}")
        views.append(_heads(name, t, head_size, lead))
    tokens, q_heads = views[0].shape[:2]
    k_heads = views[1].shape[1] if key is not None else 0
    if tokens == 0 or rot == 0 or q_heads + k_heads == 0:
        return None
    if q_heads == 0:
        raise Unsupported("there is no head of query")
    vec = _width(views, rope_dim_offset, rot // 2, is_neox)
    pairs = vec if is_neox else max(1, vec // 2)
    size = query.element_size()
    slots = rot // 2 // pairs
    choice = spread_heads(device, dtype, tokens, q_heads + k_heads, slots)
    kernel = Rotary(
        dtype, cache, q_heads, k_heads, head_size, rot, views[0].stride(1), views[-1].stride(1), pairs,
        choice["lanes"], choice["splits"], choice["tokens"], is_neox, inverse, rope_dim_offset, vec * size, device.pdl,
        choice["prefetch"],
    )  # fmt: skip
    blocks = kernel.blocks(tokens)
    direct = lead == 1 and query.dim() == 3 and (key is None or key.dim() == 3)

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda positions, query, key, _, table, *__: launch(positions, query, key, table, blocks)

        def call(positions: Any, query: Any, key: Any, head_size: int, table: Any, *_: Any) -> None:
            key = None if key is None else key.view(tokens, -1, head_size)
            launch(positions.view(-1), query.view(tokens, -1, head_size), key, table, blocks)

        return call

    return kernel, bind


def _heads(name: str, t: Any, head_size: int, lead: int) -> Any:
    """The (tokens, heads, head_size) view."""
    heads = t.shape[lead] if t.dim() == lead + 2 else t.shape[lead] // head_size
    try:
        return t.view(math.prod(t.shape[:lead]), heads, head_size)
    except RuntimeError:
        raise Unsupported(f"{name} has strides {t.stride()}: its tokens are not at even distances") from None


def _width(views: list[Any], offset: int, half: int, is_neox: bool) -> int:
    """Elements of one access: the largest power of two that fits 16 bytes, the strides, the addresses and the pairs."""
    vec = 1
    while True:
        wider = vec * 2
        fits = wider * views[0].element_size() <= 16 and offset % wider == 0
        fits = fits and half % (wider if is_neox else max(1, wider // 2)) == 0
        for t in views:
            fits = fits and t.data_ptr() % (wider * t.element_size()) == 0
            fits = fits and all(t.stride(i) % wider == 0 for i in (0, 1) if t.shape[i] > 1)
        if not fits:
            return vec
        vec = wider


def spread_heads(device: Device, dtype: str, tokens: int, heads: int, slots: int) -> Choice:
    """The tuning table's choice or a rule: threads that share the heads of a token in a block ("lanes"), blocks of a
    token ("splits"), tokens of a block ("tokens"), "prefetch".

    Few tokens: one head a thread, in blocks of about 64 threads. Many: about five heads a thread, which then all wait
    for memory at once and share one read of the angles.
    """

    def choice(each: int, threads: int, several: int, prefetch: bool) -> dict[str, Any]:
        groups = -(-heads // each)  # threads that share the heads of a token
        lanes = max(1, min(groups, threads // slots))
        return {"lanes": lanes, "splits": -(-groups // lanes), "tokens": several, "prefetch": prefetch}

    def candidates() -> list[dict[str, Any]]:
        return [
            choice(each, threads, several, prefetch)
            for each in (1, 2, 4, 5, 8, 10)
            for threads in (64, 128, 256, 512)
            for several in (1, 2, 4, 8)
            if several * min(threads, slots * -(-heads // each)) <= 512 and (several == 1 or tokens > device.sm_count)
            for prefetch in (False, True)
        ]

    work = tokens * heads * slots
    each = max(1, min(5, work // (device.sm_count * 1024)))
    if tokens * 2 <= device.sm_count:
        default = choice(each, 64, 1, True)
    else:
        default = choice(each, 1024, 1, work <= device.sm_count * 2048)
        default["tokens"] = max(1, 256 // (default["lanes"] * slots))
    return choose(device, "rotary_embedding", f"{dtype} {heads}x{slots}", tokens, default, candidates)
