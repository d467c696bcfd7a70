"""Mixture of experts: routing, ordering of slots by expert, moving and adding up rows."""

from __future__ import annotations

import numpy as np

from porter.verify.numerics.references.registry import Args, Arrays, Scalars, Sizes, reference
from porter.verify.numerics.references.rounding import SLACK, to_f32

TINY = 2.0**-120  # below this, float32 probabilities are no longer accurate relative to themselves


def routing_probabilities(logits: np.ndarray) -> np.ndarray:
    """Softmax over experts as float32 can hold it; NaN (a poisoned row) counts as 0."""
    largest = np.fmax.reduce(logits, axis=-1, keepdims=True, initial=-np.inf)
    e = np.exp(logits - largest)
    p = e / np.sum(e, axis=-1, keepdims=True)
    return to_f32(np.where(np.isfinite(p), p, 0.0))


def ordered_choice(values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest of each row, larger first, ties to the lower index; and which places float32 can decide.

    A place is open when its value is nearly, but not exactly, that of another candidate: values are grouped in
    descending order as long as neighbours are within 2^-18 of each other, and a group of unequal values is open.
    """
    order = np.argsort(-values, axis=-1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=-1)
    near = ranked[:, :-1] - ranked[:, 1:] <= SLACK * np.abs(ranked[:, :-1]) + TINY
    differs = ranked[:, :-1] != ranked[:, 1:]
    decided = np.ones(values.shape, bool)
    for row in np.flatnonzero((near & differs).any(axis=-1)):
        edges = np.flatnonzero(~near[row]) + 1
        for group in np.split(np.arange(values.shape[1]), edges):
            decided[row, group] = not differs[row, group[:-1]].any()
    return order[:, :k], decided[:, :k]


@reference("topk_softmax")
def topk_softmax(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """Softmax, then the k best of probability plus bias; weights are the probabilities alone."""
    k = int(scalars["topk"])
    p = routing_probabilities(inputs["gating_output"])
    tokens = p.shape[0]
    choice = p + inputs["bias"] if "bias" in inputs else p
    experts, decided = ordered_choice(choice, k)
    weights = np.take_along_axis(p, experts, axis=-1)
    if scalars["renormalize"]:
        total = np.sum(weights, axis=-1, keepdims=True)
        weights = weights / np.where(total > 0.0, total, 1.0)
    source = np.arange(k)[None, :] * tokens + np.arange(tokens)[:, None]
    return {
        "topk_weights": weights,
        "topk_indices": experts if decided.all() else np.where(decided, experts.astype(np.float64), np.nan),
        "token_expert_indices": source,
    }


def expert_order(experts: np.ndarray, num_experts: int) -> tuple[np.ndarray, np.ndarray]:
    """Slots in expert order (stable, dropped ones left out) and how many each expert has; -1 drops a slot."""
    kept = np.flatnonzero(experts >= 0)
    order = kept[np.argsort(experts[kept], kind="stable")]
    return order, np.bincount(experts[kept], minlength=num_experts)


def local_experts(ids: np.ndarray, num_experts: int, expert_map: np.ndarray | None = None) -> np.ndarray:
    """Expert of each slot, -1 for ids outside [0, num_experts) or that the map sends to -1."""
    ids = ids.astype(np.int64)
    valid = (ids >= 0) & (ids < num_experts)
    if expert_map is None:
        return np.where(valid, ids, -1)
    return np.where(valid, expert_map.astype(np.int64)[np.where(valid, ids, 0)], -1)


@reference("moe_align_block_size")
def moe_align_block_size(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """Slots by expert, each expert padded to whole blocks with the sentinel `numel`; the order inside one is stable."""
    num_experts, block = int(scalars["num_experts"]), int(scalars["block_size"])
    numel, length = int(scalars["numel"]), int(scalars["max_num_tokens_padded"])
    experts = local_experts(inputs["topk_ids"], num_experts, inputs.get("expert_map"))
    order, counts = expert_order(experts, num_experts)
    blocks = -(-counts // block)
    starts = np.concatenate([[0], np.cumsum(blocks * block)])
    slots = np.full(length, numel, np.int64)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    slots[starts[experts[order]] + rank] = order
    owner = np.full(int(scalars["max_num_blocks"]), -1, np.int64)
    owner[: int(blocks.sum())] = np.repeat(np.arange(num_experts), blocks)
    return {
        "sorted_token_ids": slots,
        "expert_ids": owner,
        "num_tokens_post_pad": starts[-1:].copy(),
        "cumsum": starts,
    }


@reference("moe_dispatch")
def moe_dispatch(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """Rows of tokens in expert order; NaN where no row arrives."""
    num_experts, k = int(scalars["num_experts"]), int(scalars["topk"])
    experts = local_experts(inputs["topk_ids"], num_experts)
    order, counts = expert_order(experts, num_experts)
    rows = np.full(len(experts), -1, np.int64)
    rows[order] = np.arange(len(order))
    tokens = inputs["tokens"]
    moved = np.full((len(experts), tokens.shape[-1]), np.nan)
    moved[: len(order)] = tokens[order // k]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return {"dispatched": moved, "dst_row": rows, "expert_offsets": offsets}


@reference("moe_sum")
def moe_sum(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """The sum over the choices of a token."""
    return {"out": np.sum(inputs["input"], axis=1)}


@reference("moe_unpermute")
def moe_unpermute(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """Weighted sum of the rows of a token; rows below 0 or past num_valid contribute nothing."""
    permuted, rows = inputs["permuted"], inputs["inverse"].astype(np.int64)
    valid = (rows >= 0) & (rows < int(inputs["num_valid"][0]))
    out = np.zeros((rows.shape[0], permuted.shape[-1]))
    for j in range(rows.shape[1]):
        some = np.flatnonzero(valid[:, j])
        out[some] += inputs["topk_weights"][some, j, None] * permuted[rows[some, j]]
    return {"out": out}


@reference("permute_rows")
def permute_rows(inputs: Arrays, scalars: Scalars, sizes: Sizes, args: Args) -> dict[str, np.ndarray]:
    """out[i] = input[dst2src[i]]; a negative source leaves the row."""
    source = inputs["dst2src"].astype(np.int64)
    rows = inputs["input"][np.maximum(source, 0)]
    return {"out": np.where(source[:, None] >= 0, rows, inputs["out"])}
