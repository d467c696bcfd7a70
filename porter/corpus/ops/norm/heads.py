"""Norms of attention heads, alone and with rotary embedding: vLLM's schema where it has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.norm import reference
from porter.corpus.ops.norm.functions import FLOATS, rounding
from porter.corpus.ops.rows import access_width, as_heads, check_dtype, check_vector
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op
from porter.corpus.runtime.tuning import Choice, choose


@op(
    "qk_norm(Tensor(a!) q, Tensor(b!) k, Tensor q_weight, Tensor k_weight, float epsilon, float weight_bias=0.0, "
    "str profile='vllm') -> ()",
    key=compact_key("q.nbytes", {"weight_bias": 0.0, "profile": "vllm"}),
    fallback=reference.qk_norm,
)  # fmt: skip
def qk_norm(
    device: Device, q: Any, k: Any, q_weight: Any, k_weight: Any, epsilon: float, weight_bias: float, profile: str
) -> Plan:
    """In place: every head of q and of k becomes its RMS norm, in one launch.

    `q` (T, q_heads, D) or (T, q_heads * D) and `k` likewise, last dimension contiguous, any other strides: parts
    of one packed tensor will do. `q_weight`, `k_weight` (D,) of the same dtype or float32. Arithmetic as in rms_norm.
    Raises ValueError for other arguments.
    """
    from porter.corpus.kernels.norm.qk_norm import QkNorm
    from porter.corpus.lib.rows import Rows

    dtype, length = check_dtype("q", q, *FLOATS), q_weight.shape[-1]
    check_dtype("k", k, dtype)
    check_vector("q_weight", q_weight, length)
    check_vector("k_weight", k_weight, length)
    weight = check_dtype("q_weight", q_weight, dtype, "f32")
    check_dtype("k_weight", k_weight, weight)
    heads_q, heads_k = as_heads("q", q, length), as_heads("k", k, length)
    tokens, q_heads, k_heads = heads_q.shape[0], heads_q.shape[1], heads_k.shape[1]
    if heads_k.shape[0] != tokens:
        raise ValueError(f"q has {tokens} tokens, k {heads_k.shape[0]}")
    if tokens == 0 or length == 0:
        return None
    if q_heads == 0 or k_heads == 0:
        raise Unsupported("q or k has no heads")
    vec = access_width(length, [heads_q, heads_k], [q_weight, k_weight])
    spread = spread_heads(device, dtype, tokens * (q_heads + k_heads), length, vec)
    kernel = QkNorm(
        dtype, q_heads, k_heads, Rows(length, vec, spread["threads"], spread["rows"]), weight, spread["batch"],
        weight_bias, rounding(profile), device.pdl, spread["prefetch_distance"], spread["prefetch"],
        spread["prefetch_blocks"],
    )  # fmt: skip
    blocks = -(-tokens * (q_heads + k_heads) // (spread["rows"] * spread["batch"]))
    direct = q.dim() == 3 and k.dim() == 3

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if direct:
            return lambda q, k, q_weight, k_weight, epsilon, bias, profile: launch(
                q, k, q_weight, k_weight, epsilon, blocks
            )
        return lambda q, k, q_weight, k_weight, epsilon, *_: launch(
            as_heads("q", q, length), as_heads("k", k, length), q_weight, k_weight, epsilon, blocks
        )

    return kernel, bind


def spread_heads(device: Device, dtype: str, rows: int, length: int, vec: int) -> Choice:
    """The tuning table's choice or a rule, a row within a warp: threads of a row ("threads"), rows of a block at once
    ("rows"), rows that a thread has in flight ("batch"); "prefetch_distance", "prefetch", "prefetch_blocks" as
    QkNorm."""
    vectors = -(-length // vec)
    threads = min(32, vectors & -vectors)  # no idle lanes: the largest power of two that divides the row
    if -(-vectors // threads) > 8:
        threads = min(32, 1 << (vectors - 1).bit_length())
    accesses = -(-vectors // threads)
    if accesses > 8:
        raise Unsupported(f"heads of {length} elements in accesses of {vec} do not fit into a warp's registers")
    per_warp = 32 // threads
    default: dict[str, Any] = {
        "threads": threads,
        "rows": 8 * per_warp,
        "batch": max(1, 4 // accesses),
        "prefetch_distance": 0,
    }
    if rows <= 64 * per_warp * device.sm_count:
        default |= {"rows": per_warp if rows <= 4 * per_warp * device.sm_count else 4 * per_warp, "batch": 1}
    default = with_early_prefetch(device, rows, threads, default)

    def candidates() -> list[dict[str, Any]]:
        lanes = [t for t in (threads // 2, threads, 2 * threads) if 1 <= t <= 32 and vectors <= 8 * t]
        found = [
            {"threads": t, "rows": warps * 32 // t, "batch": b}
            for t in lanes
            for warps in (1, 2, 4, 8)
            for b in (1, 2, 4)
        ]
        early = [with_early_prefetch(device, rows, c["threads"], c) for c in found]
        at_once = [(c, device.max_resident_blocks(c["threads"] * c["rows"])) for c in early if c["batch"] == 1]
        distances = [
            c | {"prefetch_distance": n // part} for c, n in at_once if rows > 4 * n * c["rows"] for part in (1, 2)
        ]
        return [c | {"prefetch": False, "prefetch_blocks": 0} for c in found] + early + distances

    return choose(device, "qk_norm", f"{dtype}x{vec} {length}", rows, default, candidates)


def with_early_prefetch(device: Device, rows: int, threads: int, choice: dict[str, Any]) -> dict[str, Any]:
    """The choice, for so many rows of `threads` threads, with the first blocks asking for theirs in L2."""
    blocks = -(-rows // (choice["rows"] * choice["batch"]))
    return choice | {"prefetch": True, "prefetch_blocks": device.prefetch_blocks(blocks, threads * choice["rows"])}


def _qk_norm_rope(
    device: Device, qkv: Any, num_heads_q: int, num_heads_k: int, num_heads_v: int, head_dim: int, eps: float,
    q_weight: Any, k_weight: Any, cos_sin_cache: Any, is_neox: bool, position_ids: Any,
    forced_token_heads_per_warp: int,
) -> Plan:  # fmt: skip
    """See qk_norm_rope."""
    from porter.corpus.kernels.norm.qk_norm_rope import QkNormRope
    from porter.corpus.lib.rows import Rows

    dtype = check_dtype("qkv", qkv, *FLOATS)
    cache = check_dtype("cos_sin_cache", cos_sin_cache, *FLOATS)
    check_dtype("position_ids", position_ids, "i64")
    for name, t in (("q_weight", q_weight), ("k_weight", k_weight)):
        check_vector(name, t, head_dim)
        check_dtype(name, t, dtype)
    heads = num_heads_q + num_heads_k
    width = (heads + num_heads_v) * head_dim
    if qkv.dim() != 2 or qkv.shape[1] != width or (width > 1 and qkv.stride(1) != 1):
        raise ValueError(f"qkv has shape {tuple(qkv.shape)} and strides {qkv.stride()}, not (T, {width}) by rows")
    check_vector("position_ids", position_ids, qkv.shape[0])
    rot = cos_sin_cache.shape[-1]
    if cos_sin_cache.dim() != 2 or not cos_sin_cache.is_contiguous() or rot % 2 or not 0 < rot <= head_dim:
        raise ValueError(f"cos_sin_cache has shape {tuple(cos_sin_cache.shape)}, not (positions, even, <= {head_dim})")
    tokens = qkv.shape[0]
    if tokens == 0 or heads == 0:
        return None
    vec = access_width(head_dim, [qkv], [q_weight, k_weight])
    vec, threads = pair_spread(head_dim, rot, vec) if is_neox else (vec, min(32, head_dim // vec & -(head_dim // vec)))
    accesses = -(-head_dim // (vec * threads))
    if accesses > 16 or (not is_neox and vec < 2):
        raise Unsupported(f"heads of {head_dim} elements in accesses of {vec} do not fit into a warp's registers")
    rows, per_warp = tokens * heads, 32 // threads
    default: dict[str, Any] = {"rows": 8 * per_warp, "batch": 2 if accesses <= 2 else 1}
    if rows <= 64 * per_warp * device.sm_count:
        default = {"rows": per_warp if rows <= 4 * per_warp * device.sm_count else 4 * per_warp, "batch": 1}
    default = with_early_prefetch(device, rows, threads, default)

    def candidates() -> list[dict[str, Any]]:
        found = [{"rows": w * per_warp, "batch": b} for w in (1, 2, 4, 8) for b in (1, 2, 4) if b * accesses <= 8]
        plain = [c | {"prefetch": p, "prefetch_blocks": 0} for c in found for p in (False, True)]
        early = [with_early_prefetch(device, rows, threads, c) for c in found]
        return plain + [c for c in early if c["prefetch_blocks"]]

    found = choose(device, "qk_norm_rope", f"{dtype}x{vec} {head_dim} {rot}", rows, default, candidates)
    kernel = QkNormRope(
        dtype, cache, num_heads_q, num_heads_k, num_heads_v, Rows(head_dim, vec, threads, found["rows"]), rot, is_neox,
        found["batch"], device.pdl, found["prefetch"], found["prefetch_blocks"],
    )  # fmt: skip
    blocks = -(-rows // (found["rows"] * found["batch"]))
    return (
        kernel,
        lambda launch: (
            lambda qkv, hq, hk, hv, d, eps, wq, wk, table, neox, positions, forced: launch(
                qkv, wq, wk, table, positions, eps, blocks
            )
        ),
    )


def pair_spread(head_dim: int, rot: int, vec: int) -> tuple[int, int]:
    """(elements of an access, threads of a head) such that the accesses of a thread meet both elements of its pairs:
    rot/2 is a multiple of what all threads read at once. Four threads or more where that is possible."""
    found = []
    while vec:
        if rot // 2 % vec == 0:
            units = rot // 2 // vec
            found.append((vec, min(32, units & -units)))
        vec //= 2
    return next((f for f in found if f[1] >= 4), max(found, key=lambda f: f[1]))


_QK_NORM_ROPE = (
    "(Tensor(a!) qkv, int num_heads_q, int num_heads_k, int num_heads_v, int head_dim, float eps, Tensor q_weight, "
    "Tensor k_weight, Tensor cos_sin_cache, bool is_neox, Tensor position_ids, "
    "int forced_token_heads_per_warp=-1) -> ()"
)


_ROPE_KEY = compact_key("(qkv.nbytes, num_heads_q, num_heads_k, head_dim)", {"is_neox": True})


@op("qk_norm_rope" + _QK_NORM_ROPE, key=_ROPE_KEY, fallback=reference.qk_norm_rope)
def qk_norm_rope(device: Device, *args: Any) -> Plan:
    """In place: every q and k head becomes its RMS norm, then is rotated; v heads stay as they are.

    `qkv` (T, (num_heads_q + num_heads_k + num_heads_v) * head_dim), rows any distance apart; `q_weight`, `k_weight`
    (head_dim,) of its dtype; `cos_sin_cache` (positions, rot), cosines then sines, of its dtype or float32;
    `position_ids` (T,) int64. `is_neox` pairs elements i and i + rot/2 of a head, else 2i and 2i + 1. Computed in
    float32, rounded once. `forced_token_heads_per_warp` is taken for the schema's sake. Raises ValueError for arguments
    that do not fit.
    """
    return _qk_norm_rope(device, *args)


@op("fused_qk_norm_rope" + _QK_NORM_ROPE, key=_ROPE_KEY, fallback=reference.qk_norm_rope)
def fused_qk_norm_rope(device: Device, *args: Any) -> Plan:
    """`qk_norm_rope` under vLLM's name."""
    return _qk_norm_rope(device, *args)
