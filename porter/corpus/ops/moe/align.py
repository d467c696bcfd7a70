"""Order of routed entries for grouped GEMMs as engines call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.moe import layout_reference as reference
from porter.corpus.ops.moe.operands import check_ids, check_int32, spread_sort
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, op

_MOST_BATCHES = 4096  # whose starts fit into shared memory


@op(
    "moe_align_block_size(Tensor topk_ids, int num_experts, int block_size, Tensor(a!) sorted_token_ids, "
    "Tensor(b!) experts_ids, Tensor(c!) num_tokens_post_pad, Tensor? maybe_expert_map=None, "
    "Tensor(d!)? scatter_idx=None) -> ()",
    key="(topk_ids.nbytes, sorted_token_ids.nbytes, num_experts, block_size, maybe_expert_map is None, scatter_idx is "
    "None)",
    fallback=reference.moe_align_block_size,
)  # fmt: skip
def moe_align_block_size(
    device: Device, topk_ids: Any, num_experts: int, block_size: int, sorted_token_ids: Any, experts_ids: Any,
    num_tokens_post_pad: Any, maybe_expert_map: Any, scatter_idx: Any,
) -> Plan:  # fmt: skip
    """Entries i of `topk_ids` (T, k) sorted by expert, each expert padded to whole blocks of `block_size`.

    Entries of an expert keep their order. `sorted_token_ids`, int32, T * k where there is no entry; `experts_ids`,
    int32, the expert of each block, -1 for blocks past the end; `num_tokens_post_pad`, one int32, the length with
    padding. All of both vectors is written; T * k + num_experts * (block_size - 1) places are enough, what lies beyond
    is dropped. Ids below 0 or from `num_experts` on are dropped. `maybe_expert_map` (num_experts,) int32 gives local
    numbers of experts, -1 for those elsewhere. `scatter_idx`, int32, T * k: the place of each entry, -1 if it was
    dropped. Ids are int32, int64 or uint32. SGLang's function of this name counts ids from -1 on and takes a buffer.
    Raises ValueError for other arguments.
    """
    from porter.corpus.kernels.moe.align import AlignBlocks

    index, entries = check_ids(topk_ids)
    check_int32("sorted_token_ids", sorted_token_ids)
    check_int32("experts_ids", experts_ids)
    check_int32("num_tokens_post_pad", num_tokens_post_pad, 1)
    if num_experts < 1 or block_size < 1:
        raise ValueError(f"{num_experts} experts in blocks of {block_size} are not a grouped GEMM")
    if entries + num_experts * (block_size - 1) >= 1 << 31:
        raise ValueError(f"{entries} entries, padded, have places past 2^31")
    if maybe_expert_map is not None:
        check_int32("maybe_expert_map", maybe_expert_map, num_experts)
    if scatter_idx is not None:
        check_int32("scatter_idx", scatter_idx, entries)
    sort = spread_sort(
        device, "moe_align_block_size", entries, num_experts, experts=num_experts, multiple=block_size
    )  # fmt: skip
    kernel = AlignBlocks(index, sort, maybe_expert_map is not None, scatter_idx is not None, device.pdl)
    blocks = sort.cluster

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if scatter_idx is None:
            return lambda ids, e, b, places, owners, total, local, s: launch(
                places, owners, total, ids.view(-1), local, s, blocks
            )
        return lambda ids, e, b, places, owners, total, local, s: launch(
            places, owners, total, ids.view(-1), local, s.view(-1), blocks
        )

    return kernel, bind


@op(
    "batched_moe_align_block_size(int max_tokens_per_batch, int block_size, Tensor expert_num_tokens, "
    "Tensor(a!) sorted_token_ids, Tensor(b!) experts_ids, Tensor(c!) num_tokens_post_pad) -> ()",
    key="(expert_num_tokens.nbytes, sorted_token_ids.nbytes, block_size)",
    fallback=reference.batched_moe_align_block_size,
)  # fmt: skip
def batched_moe_align_block_size(
    device: Device, max_tokens_per_batch: int, block_size: int, expert_num_tokens: Any, sorted_token_ids: Any,
    experts_ids: Any, num_tokens_post_pad: Any,
) -> Plan:  # fmt: skip
    """moe_align_block_size where token i of expert e is number e * max_tokens_per_batch + i already.

    `expert_num_tokens` (B,) int32: tokens of each expert, `max_tokens_per_batch` at most (more count as that).
    `sorted_token_ids` is B * max_tokens_per_batch where there is no token. Raises ValueError for other arguments.
    """
    from porter.corpus.kernels.moe.batched_align import BatchedAlign

    for name, t in (("sorted_token_ids", sorted_token_ids), ("experts_ids", experts_ids)):
        check_int32(name, t)
    check_int32("expert_num_tokens", expert_num_tokens)
    check_int32("num_tokens_post_pad", num_tokens_post_pad, 1)
    batches = expert_num_tokens.numel()
    if max_tokens_per_batch < 0 or block_size < 1 or (max_tokens_per_batch + block_size) * batches >= 1 << 31:
        raise ValueError(f"{batches} batches of {max_tokens_per_batch} in blocks of {block_size}: no 32-bit places")
    if not 1 <= batches <= _MOST_BATCHES:
        raise Unsupported(f"{batches} batches do not fit into shared memory")
    threads = 256
    kernel = BatchedAlign(batches, block_size, threads, device.pdl)
    blocks = max(1, min(device.sm_count, -(-sorted_token_ids.numel() // (4 * threads))))

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        return lambda most, b, counts, places, owners, total: launch(places, owners, total, counts, most, blocks)

    return kernel, bind


@op(
    "get_cutlass_moe_mm_data(Tensor topk_ids, Tensor(a!) expert_offsets, Tensor(b!) problem_sizes1, "
    "Tensor(c!) problem_sizes2, Tensor(d!) input_permutation, Tensor(e!) output_permutation, int num_experts, int n, "
    "int k, Tensor(f!)? blockscale_offsets=None, bool is_gated=True, bool swap_ab=False) -> ()",
    key="(topk_ids.shape, num_experts, blockscale_offsets is None, is_gated, swap_ab)",
    fallback=reference.get_cutlass_moe_mm_data,
)  # fmt: skip
def get_cutlass_moe_mm_data(
    device: Device, topk_ids: Any, expert_offsets: Any, problem_sizes1: Any, problem_sizes2: Any,
    input_permutation: Any, output_permutation: Any, num_experts: int, n: int, k: int, blockscale_offsets: Any,
    is_gated: bool, swap_ab: bool,
) -> Plan:  # fmt: skip
    """What two grouped GEMMs over experts are told: offsets, problem sizes, and the order of rows, all int32.

    `expert_offsets` (E + 1,): first row of each expert; `problem_sizes1` (E, 3): (rows, 2 n, k), n without `is_gated`;
    `problem_sizes2` (E, 3): (rows, k, n); `swap_ab` exchanges the first two (vLLM does that by itself for up to 64
    entries). `input_permutation`: the token of each row; `output_permutation`: the row of each entry of `topk_ids`
    (T, k); entries of an expert keep their order. Ids that are no expert have no row: output 0, and input 0 for the
    rows past the last. `blockscale_offsets` (E + 1,): as `expert_offsets`, experts padded to 128 rows. Raises
    ValueError for other arguments.
    """
    from porter.corpus.kernels.moe.gemm_offsets import GemmOffsets

    index, entries = check_ids(topk_ids)
    check_int32("expert_offsets", expert_offsets, num_experts + 1)
    for name, t in (("problem_sizes1", problem_sizes1), ("problem_sizes2", problem_sizes2)):
        check_int32(name, t, 3 * num_experts)
    for name, t in (("input_permutation", input_permutation), ("output_permutation", output_permutation)):
        check_int32(name, t, entries)
    if blockscale_offsets is not None:
        check_int32("blockscale_offsets", blockscale_offsets, num_experts + 1)
    if num_experts < 1:
        raise ValueError(f"there are {num_experts} experts")
    sort = spread_sort(device, "get_cutlass_moe_mm_data", entries, num_experts, experts=num_experts)
    each = topk_ids.shape[-1] if topk_ids.dim() else 1
    kernel = GemmOffsets(index, sort, max(1, each), blockscale_offsets is not None, is_gated, swap_ab, device.pdl)
    blocks, experts = sort.cluster, num_experts

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        def call(ids, offsets, first, second, inputs, outputs, e, n, k, scales, gated, swap):  # type: ignore[no-untyped-def]
            launch(
                offsets, first.view(experts, 3), second.view(experts, 3), inputs.view(-1), outputs.view(-1), scales,
                ids.view(-1), n, k, blocks,
            )  # fmt: skip

        return call

    return kernel, bind
