"""Layout of routed rows written with torch's operators: fallbacks, and what the tests compare to."""

from __future__ import annotations

from typing import Any


def _local(topk_ids: Any, experts: int, expert_map: Any, first: int, count: int) -> Any:
    """For each entry its expert here, or -1."""
    ids = topk_ids.reshape(-1).long()
    known = (ids >= 0) & (ids < experts)
    local = ids - first if expert_map is None else expert_map.long()[ids * known]
    return local.masked_fill(~(known & (local >= 0) & (local < count)), -1)


def _sorted(local: Any, count: int, multiple: int) -> tuple[Any, Any, Any]:
    """(place of each entry or -1, starts (count + 1,), sizes (count,)) of a stable sort with padding."""
    import torch

    held = local >= 0
    sizes = torch.bincount(local[held], minlength=count)[:count]
    padded = (sizes + multiple - 1) // multiple * multiple
    starts = torch.cat([padded.new_zeros(1), padded.cumsum(0)])
    entries = held.nonzero().flatten()
    entries = entries[local[entries].argsort(stable=True)]
    rank = (
        torch.arange(entries.numel(), device=local.device)
        - torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])[local[entries]]
    )
    place = local.new_full(local.shape, -1)
    place[entries] = starts[local[entries]] + rank
    return place, starts, sizes


def moe_align_block_size(
    topk_ids: Any, num_experts: int, block_size: int, sorted_token_ids: Any, experts_ids: Any, num_tokens_post_pad: Any,
    maybe_expert_map: Any = None, scatter_idx: Any = None,
) -> None:  # fmt: skip
    """See porter.corpus.ops.moe.align.moe_align_block_size."""
    import torch

    local = _local(topk_ids, num_experts, maybe_expert_map, 0, num_experts)
    place, starts, _ = _sorted(local, num_experts, block_size)
    sorted_token_ids.fill_(topk_ids.numel())
    entries = ((place >= 0) & (place < sorted_token_ids.numel())).nonzero().flatten()
    sorted_token_ids[place[entries]] = entries.to(sorted_token_ids.dtype)
    first = torch.arange(experts_ids.numel(), device=topk_ids.device) * block_size
    owner = torch.searchsorted(starts[1:].contiguous(), first, right=True)
    experts_ids.copy_(owner.masked_fill(first >= starts[-1], -1))
    num_tokens_post_pad.copy_(starts[-1:])
    if scatter_idx is not None:
        scatter_idx.copy_(place.view(scatter_idx.shape))


def batched_moe_align_block_size(
    max_tokens_per_batch: int, block_size: int, expert_num_tokens: Any, sorted_token_ids: Any, experts_ids: Any,
    num_tokens_post_pad: Any,
) -> None:  # fmt: skip
    """See porter.corpus.ops.moe.align.batched_moe_align_block_size."""
    import torch

    sizes = expert_num_tokens.long().clamp(0, max_tokens_per_batch)
    padded = (sizes + block_size - 1) // block_size * block_size
    starts = torch.cat([padded.new_zeros(1), padded.cumsum(0)])
    ends = starts[1:].contiguous()
    place = torch.arange(sorted_token_ids.numel(), device=sizes.device)
    batch = torch.searchsorted(ends, place, right=True)
    inside = batch < sizes.numel()
    batch = batch * inside
    offset = place - starts[batch]
    held = inside & (offset < sizes[batch])
    sentinel = sizes.numel() * max_tokens_per_batch
    sorted_token_ids.copy_((batch * max_tokens_per_batch + offset).where(held, place.new_tensor(sentinel)))
    first = torch.arange(experts_ids.numel(), device=sizes.device) * block_size
    experts_ids.copy_(torch.searchsorted(ends, first, right=True).masked_fill(first >= starts[-1], -1))
    num_tokens_post_pad.copy_(starts[-1:])


def get_cutlass_moe_mm_data(
    topk_ids: Any, expert_offsets: Any, problem_sizes1: Any, problem_sizes2: Any, input_permutation: Any,
    output_permutation: Any, num_experts: int, n: int, k: int, blockscale_offsets: Any = None, is_gated: bool = True,
    swap_ab: bool = False,
) -> None:  # fmt: skip
    """See porter.corpus.ops.moe.align.get_cutlass_moe_mm_data."""
    import torch

    place, starts, sizes = _sorted(_local(topk_ids, num_experts, None, 0, num_experts), num_experts, 1)
    expert_offsets.copy_(starts)
    for problems, columns, depth in ((problem_sizes1, n * (2 if is_gated else 1), k), (problem_sizes2, k, n)):
        wide = sizes.new_full(sizes.shape, columns)
        problems.copy_(torch.stack([*((wide, sizes) if swap_ab else (sizes, wide)), torch.full_like(sizes, depth)], 1))
    input_permutation.zero_()
    entries = (place >= 0).nonzero().flatten()
    input_permutation[place[entries]] = (entries // topk_ids.shape[-1]).to(input_permutation.dtype)
    output_permutation.copy_(place.clamp_min(0).view(output_permutation.shape))
    if blockscale_offsets is not None:
        padded = (sizes + 127) // 128 * 128
        blockscale_offsets.copy_(torch.cat([padded.new_zeros(1), padded.cumsum(0)]))


def shuffle_rows(input_tensor: Any, dst2src_map: Any, output_tensor: Any) -> None:
    """See porter.corpus.ops.moe.rows.shuffle_rows."""
    sources = dst2src_map.long()
    rows = ((sources >= 0) & (sources < input_tensor.shape[0])).nonzero().flatten()
    output_tensor[rows] = input_tensor[sources[rows]]


def moe_permute(
    input: Any, topk_ids: Any, token_expert_indices: Any, expert_map: Any, n_expert: int, n_local_expert: int,
    topk: int, permuted_input: Any, expert_first_token_offset: Any, inv_permuted_idx: Any, permuted_idx: Any,
) -> None:  # fmt: skip
    """See porter.corpus.ops.moe.rows.moe_permute."""
    local = _local(topk_ids, n_expert, expert_map, 0, n_local_expert)
    place, starts, _ = _sorted(local.masked_fill(local < 0, n_local_expert), n_local_expert + 1, 1)
    expert_first_token_offset.copy_(starts[:-1])
    stands = place.new_zeros(place.shape) + token_expert_indices.reshape(-1).long()
    inverse = inv_permuted_idx.view(-1)
    inverse[stands] = place.to(inverse.dtype)
    permuted_idx.fill_(topk_ids.numel())
    valid = (place < starts[-2]).nonzero().flatten()
    permuted_idx[place[valid]] = stands[valid].to(permuted_idx.dtype)
    kept = valid[place[valid] < permuted_input.shape[0]]
    permuted_input[place[kept]] = input[stands[kept] // topk]


def moe_unpermute(
    permuted: Any, topk_weights: Any, inv_permuted_idx: Any, expert_first_token_offset: Any, topk: int,
    hidden_states: Any,
) -> None:  # fmt: skip
    """See porter.corpus.ops.moe.rows.moe_unpermute."""
    rows = inv_permuted_idx.view(-1, topk).long()
    bound = permuted.shape[0]
    if expert_first_token_offset is not None:
        bound = expert_first_token_offset.reshape(-1)[-1].clamp_max(bound)
    added(hidden_states, permuted, rows, (rows >= 0) & (rows < bound), topk_weights)


def added(out: Any, permuted: Any, rows: Any, valid: Any, weights: Any, base: Any = None) -> None:
    """Rows added up in the order of a token's choices, each with one rounding of product and sum to float32."""
    import torch

    total = torch.zeros(out.shape, dtype=torch.float32, device=out.device) if base is None else base.float()
    for j in range(rows.shape[1]):
        if permuted.shape[0] == 0:
            break
        row = permuted[rows[:, j] * valid[:, j]].float()
        # in float64 the product is exact, and the sum is rounded twice, which shows in one of 2^29 cases
        new = total + row if weights is None else (weights[:, j, None].double() * row.double() + total.double()).float()
        total = new.where(valid[:, j, None], total)
    out.copy_(total)


def moe_sum(input: Any, output: Any, topk_ids: Any = None, expert_map: Any = None) -> None:
    """See porter.corpus.ops.moe.rows.moe_sum."""
    import torch

    counts = torch.ones(input.shape[:2], dtype=torch.bool, device=input.device)
    if topk_ids is not None:
        counts = topk_ids >= 0
        if expert_map is not None:
            counts = counts & (topk_ids < expert_map.numel())
            counts = counts & (expert_map[topk_ids.long() * counts] >= 0)
    total = torch.zeros(output.shape, dtype=torch.float32, device=output.device)
    for j in range(input.shape[1]):
        total = (total + input[:, j].float()).where(counts[:, j, None], total)
    output.copy_(total)


def moe_dispatch(
    output: Any, expert_offsets: Any, inverse: Any, input: Any, topk_ids: Any, num_experts: int, first_expert: int = 0,
    padding: int = 1, expert_map: Any = None, output_scale: Any = None, input_scale: Any = None,
    expert_num_tokens: Any = None, source: Any = None, row_weights: Any = None, topk_weights: Any = None,
) -> None:  # fmt: skip
    """See porter.corpus.ops.moe.dispatch.moe_dispatch."""
    here, k = expert_offsets.numel() - 1, topk_ids.shape[1]
    place, starts, sizes = _sorted(_local(topk_ids, num_experts, expert_map, first_expert, here), here, padding)
    expert_offsets.copy_(starts)
    inverse.copy_(place.view(inverse.shape))
    if expert_num_tokens is not None:
        expert_num_tokens.copy_(sizes)
    if source is not None:
        source.fill_(topk_ids.numel())
        entries = ((place >= 0) & (place < source.numel())).nonzero().flatten()
        source[place[entries]] = entries.to(source.dtype)
    if row_weights is not None:
        row_weights.zero_()
        entries = ((place >= 0) & (place < row_weights.numel())).nonzero().flatten()
        row_weights[place[entries]] = topk_weights.reshape(-1)[entries]
    entries = ((place >= 0) & (place < output.shape[0])).nonzero().flatten()
    output[place[entries]] = input[entries // k]
    if input_scale is not None:
        output_scale[place[entries]] = input_scale[entries // k]


def moe_combine(output: Any, input: Any, inverse: Any, topk_weights: Any = None, shared_output: Any = None) -> None:
    """See porter.corpus.ops.moe.dispatch.moe_combine."""
    rows = inverse.long()
    added(output, input, rows, (rows >= 0) & (rows < input.shape[0]), topk_weights, shared_output)
