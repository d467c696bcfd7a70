"""Workloads of expert routing, of the order of routed entries, and of rows moved to experts and back."""

from __future__ import annotations

from typing import Any

from porter.corpus.ops.workload import Workload, empty, normal

_EXPERTS = ({"experts": 128, "k": 8}, {"experts": 256, "k": 8}, {"experts": 160, "k": 6})
_GROUPED = ({"experts": 256, "k": 8},)
_ONE = ({"experts": 128, "k": 1},)
_BLOCKS = ({"experts": 128, "k": 8}, {"experts": 256, "k": 8})
_ROWS = ({"hidden": 2048, "k": 8}, {"hidden": 7168, "k": 8})
_WIDTHS = ({"hidden": 2048}, {"hidden": 7168})
_HERE = 128  # experts whose rows are moved


def expert_ids(tokens: int, experts: int, k: int, device: Any) -> Any:
    """k different experts a token, int32."""
    import torch

    return torch.rand(tokens, experts, device=device).topk(k, -1).indices.int().contiguous()


def _outputs(tokens: int, k: int, device: Any) -> tuple[Any, ...]:
    return tuple(empty(tokens, k, dtype=t, device=device) for t in ("float32", "int32", "int32"))


def _softmax(tokens: int, dtype: Any, device: Any, experts: int, k: int) -> tuple[Any, ...]:
    return *_outputs(tokens, k, device), normal(tokens, experts, dtype=dtype, device=device), True, None, None


def _sigmoid(tokens: int, dtype: Any, device: Any, experts: int, k: int) -> tuple[Any, ...]:
    bias = normal(experts, dtype=_float32(), device=device)
    return *_outputs(tokens, k, device), normal(tokens, experts, dtype=dtype, device=device), True, bias, 2.5, None


def _softplus(tokens: int, dtype: Any, device: Any, experts: int, k: int) -> tuple[Any, ...]:
    bias = normal(experts, dtype=_float32(), device=device)
    logits = normal(tokens, experts, dtype=dtype, device=device)
    return *_outputs(tokens, k, device), logits, True, 2.5, bias, None, None


def _llama4(tokens: int, dtype: Any, device: Any, experts: int, k: int) -> tuple[Any, ...]:
    return *_outputs(tokens, k, device), normal(tokens, experts, dtype=dtype, device=device)


def _grouped(tokens: int, dtype: Any, device: Any, experts: int, k: int) -> tuple[Any, ...]:
    bias, logits = normal(experts, dtype=_float32(), device=device), normal(tokens, experts, dtype=dtype, device=device)
    return *_outputs(tokens, k, device)[:2], logits, 8, 4, True, 2.5, bias, 1


def _float32() -> Any:
    import torch

    return torch.float32


def _integers(*shape: int, device: Any, dtype: str = "int32") -> Any:
    return empty(*shape, dtype=dtype, device=device)


def _align(tokens: int, dtype: Any, device: Any, experts: int, k: int) -> tuple[Any, ...]:
    length = -(-(tokens * k + experts * 63) // 64) * 64
    places, owners, total = (_integers(n, device=device) for n in (length, length // 64, 1))
    return expert_ids(tokens, experts, k, device), experts, 64, places, owners, total, None, None


def _batched(tokens: int, dtype: Any, device: Any, experts: int, k: int) -> tuple[Any, ...]:
    import torch

    most = tokens * k
    counts = torch.randint(0, most + 1, (experts,), device=device, dtype=torch.int32)
    length = experts * -(-most // 64) * 64
    places, owners, total = (_integers(n, device=device) for n in (length, length // 64, 1))
    return most, 64, counts, places, owners, total


def _gemm_data(tokens: int, dtype: Any, device: Any, experts: int, k: int) -> tuple[Any, ...]:
    offsets, scale_offsets = (_integers(experts + 1, device=device) for _ in range(2))
    sizes = [_integers(experts, 3, device=device) for _ in range(2)]
    orders = [_integers(tokens * k, device=device) for _ in range(2)]
    ids = expert_ids(tokens, experts, k, device)
    return ids, offsets, *sizes, *orders, experts, 2048, 7168, scale_offsets, True, False


def _permute(tokens: int, dtype: Any, device: Any, hidden: int, k: int) -> tuple[Any, ...]:
    import torch

    x = normal(tokens, hidden, dtype=dtype, device=device)
    order = torch.arange(tokens * k, device=device, dtype=torch.int32).view(tokens, k)
    out, offsets = (
        empty(tokens * k, hidden, dtype=dtype, device=device),
        _integers(_HERE + 1, device=device, dtype="int64"),
    )
    inverse, source = _integers(tokens, k, device=device), _integers(tokens * k, device=device)
    return x, expert_ids(tokens, _HERE, k, device), order, None, _HERE, _HERE, k, out, offsets, inverse, source


def _unpermute(tokens: int, dtype: Any, device: Any, hidden: int, k: int) -> tuple[Any, ...]:
    import torch

    rows = normal(tokens * k, hidden, dtype=dtype, device=device)
    weights = torch.rand(tokens, k, device=device)
    inverse = torch.randperm(tokens * k, device=device, dtype=torch.int32).view(tokens, k)
    return rows, weights, inverse, None, k, empty(tokens, hidden, dtype=dtype, device=device)


def _sum(tokens: int, dtype: Any, device: Any, hidden: int, k: int) -> tuple[Any, ...]:
    rows = normal(tokens, k, hidden, dtype=dtype, device=device)
    return rows, empty(tokens, hidden, dtype=dtype, device=device), None, None


def _shuffle(tokens: int, dtype: Any, device: Any, hidden: int) -> tuple[Any, ...]:
    import torch

    rows = normal(tokens, hidden, dtype=dtype, device=device)
    order = torch.randperm(tokens, device=device, dtype=torch.int32)
    return rows, order, empty(tokens, hidden, dtype=dtype, device=device)


def _dispatch(tokens: int, dtype: Any, device: Any, hidden: int, k: int) -> tuple[Any, ...]:
    import torch

    rows = tokens * k
    x, out = (empty(n, hidden, dtype="float8_e4m3fn", device=device) for n in (tokens, rows))
    scale, out_scale = (empty(n, hidden // 128, dtype="float32", device=device) for n in (tokens, rows))
    offsets, counts = _integers(_HERE + 1, device=device), _integers(_HERE, device=device)
    inverse, source = _integers(tokens, k, device=device), _integers(rows, device=device)
    weights, row_weights = torch.rand(tokens, k, device=device), empty(rows, dtype="float32", device=device)
    ids = expert_ids(tokens, _HERE, k, device)
    given = out_scale, scale, counts, source, row_weights, weights
    return out, offsets, inverse, x, ids, _HERE, 0, 1, None, *given


def _combine(tokens: int, dtype: Any, device: Any, hidden: int, k: int) -> tuple[Any, ...]:
    rows, weights, inverse, *_ = _unpermute(tokens, dtype, device, hidden, k)
    shared = normal(tokens, hidden, dtype=dtype, device=device)
    return empty(tokens, hidden, dtype=dtype, device=device), rows, inverse, weights, shared


def _routed(t: int, e: int, experts: int, k: int) -> int:
    return t * (experts * e + 12 * k)


def _entries(t: int, e: int, experts: int, k: int) -> int:
    return 8 * t * k + 256 * experts


MOE: dict[str, Workload] = {
    "topk_softmax": Workload(_softmax, _routed, _EXPERTS),
    "topk_sigmoid": Workload(_sigmoid, _routed, _EXPERTS),
    "topk_softplus_sqrt": Workload(_softplus, _routed, _EXPERTS),
    "llama4_topk": Workload(_llama4, _routed, _ONE),
    "grouped_topk": Workload(_grouped, _routed, _GROUPED, tuned=False),
    "moe_align_block_size": Workload(_align, _entries, _BLOCKS),
    "batched_moe_align_block_size": Workload(_batched, _entries, _BLOCKS, tuned=False),
    "get_cutlass_moe_mm_data": Workload(_gemm_data, _entries, _BLOCKS),
    "moe_combine": Workload(_combine, lambda t, e, hidden, k: t * hidden * e * (k + 2), _ROWS),
    "moe_dispatch": Workload(_dispatch, lambda t, e, hidden, k: t * hidden * (k + 1), _ROWS),
    "moe_permute": Workload(_permute, lambda t, e, hidden, k: t * hidden * e * (k + 1), _ROWS),
    "moe_unpermute": Workload(_unpermute, lambda t, e, hidden, k: t * hidden * e * (k + 1), _ROWS),
    "moe_sum": Workload(_sum, lambda t, e, hidden, k: t * hidden * e * (k + 1), _ROWS),
    "shuffle_rows": Workload(_shuffle, lambda t, e, hidden: 2 * t * hidden * e, _WIDTHS),
}
