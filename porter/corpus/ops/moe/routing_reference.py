"""Expert routing written with torch's operators: fallbacks, and what the tests compare to."""

from __future__ import annotations

from typing import Any


def _scores(gating_output: Any, kind: str) -> Any:
    import torch

    x = gating_output.float()
    if kind == "softmax":
        # the largest number, as fmaxf finds it; a row with NaN is NaN all over, because its sum is
        largest = x.masked_fill(x.isnan(), -float("inf")).amax(-1, keepdim=True)
        terms = (x - largest).exp()
        scores = terms * terms.sum(-1, keepdim=True).reciprocal()
    elif kind == "sigmoid":
        scores = 1 / (1 + (-x).exp())
    elif kind == "softplus_sqrt":
        scores = (x.clamp_min(0) + torch.log1p((-x.abs()).exp())).sqrt()
    else:
        return x
    return scores.masked_fill(~scores.isfinite(), 0)


def _best(choices: Any, k: int) -> Any:
    """Indices of the k largest, equal numbers in the order of their indices, NaN as minus infinity."""
    choices = choices.masked_fill(choices.isnan(), -float("inf")) + 0.0
    return choices.sort(dim=-1, descending=True, stable=True).indices[..., :k]


def _finish(
    topk_weights: Any, topk_indices: Any, token_expert_indices: Any, weights: Any, indices: Any, is_padding: Any
) -> None:
    import torch

    if is_padding is not None:
        rows = is_padding.bool().unsqueeze(-1)
        weights, indices = weights.masked_fill(rows, 0), indices.masked_fill(rows, -1)
    topk_weights.copy_(weights)
    topk_indices.copy_(indices)
    if token_expert_indices is not None:
        tokens, k = indices.shape
        order = torch.arange(tokens * k, device=indices.device, dtype=torch.int32)
        token_expert_indices.copy_(order.view(k, tokens).t())


def _renormalised(weights: Any) -> Any:
    total = weights.sum(-1, keepdim=True)
    return weights * total.reciprocal().where(total > 0, total.new_ones(()))


def routed(
    topk_weights: Any, topk_indices: Any, token_expert_indices: Any, gating_output: Any, renormalize: bool, bias: Any,
    is_padding: Any, kind: str, scale: float = 1.0,
) -> None:  # fmt: skip
    """Scores of a kind, chosen with a bias, weighed without."""
    scores = _scores(gating_output, kind)
    indices = _best(scores if bias is None else scores + bias, topk_weights.shape[-1])
    weights = scores.gather(-1, indices)
    if renormalize:
        weights = _renormalised(weights)
    _finish(topk_weights, topk_indices, token_expert_indices, weights * scale, indices, is_padding)


def topk_softmax(
    topk_weights: Any, topk_indices: Any, token_expert_indices: Any, gating_output: Any, renormalize: bool,
    bias: Any = None, is_padding: Any = None,
) -> None:  # fmt: skip
    """See porter.corpus.ops.moe.routing.topk_softmax."""
    routed(
        topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias, is_padding, "softmax"
    )  # fmt: skip


def topk_sigmoid(
    topk_weights: Any, topk_indices: Any, token_expert_indices: Any, gating_output: Any, renormalize: bool,
    bias: Any = None, routed_scaling_factor: float = 1.0, is_padding: Any = None,
) -> None:  # fmt: skip
    """See porter.corpus.ops.moe.routing.topk_sigmoid."""
    routed(
        topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias, is_padding, "sigmoid",
        routed_scaling_factor,
    )  # fmt: skip


def topk_softplus_sqrt(
    topk_weights: Any, topk_indices: Any, token_expert_indices: Any, gating_output: Any, renormalize: bool,
    routed_scaling_factor: float = 1.0, bias: Any = None, input_ids: Any = None, tid2eid: Any = None,
) -> None:  # fmt: skip
    """See porter.corpus.ops.moe.routing.topk_softplus_sqrt."""
    if tid2eid is None:
        routed(
            topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias, None,
            "softplus_sqrt", routed_scaling_factor,
        )  # fmt: skip
        return
    indices = tid2eid[input_ids.long()].long()
    held = (indices >= 0) & (indices < gating_output.shape[-1])
    weights = _scores(gating_output, "softplus_sqrt").gather(-1, indices * held) * held
    if renormalize:
        weights = _renormalised(weights)
    weights = weights * routed_scaling_factor
    _finish(topk_weights, topk_indices, token_expert_indices, weights, indices, None)


def llama4_topk(topk_weights: Any, topk_indices: Any, token_expert_indices: Any, gating_output: Any) -> None:
    """See porter.corpus.ops.moe.routing.llama4_topk."""
    x = gating_output.float()
    indices = _best(x, topk_weights.shape[-1])
    weights = 1 / (1 + (-x.gather(-1, indices)).exp())
    _finish(topk_weights, topk_indices, token_expert_indices, weights, indices, None)


def grouped_topk(
    topk_weights: Any, topk_indices: Any, scores: Any, n_group: int, topk_group: int, renormalize: bool,
    routed_scaling_factor: float, bias: Any = None, scoring_func: int = 1,
) -> None:  # fmt: skip
    """See porter.corpus.ops.moe.routing.grouped_topk."""
    import torch

    tokens, experts = scores.shape
    k, low = topk_weights.shape[-1], -float("inf")
    found = 1 / (1 + (-scores.float()).exp()) if scoring_func == 1 else scores.float()
    choices = found if bias is None else found + bias
    choices = choices.masked_fill(~choices.isfinite(), low)
    by_group = choices.view(tokens, n_group, experts // n_group)
    of_group = by_group.topk(2, -1).values.sum(-1)
    kept = _best(of_group, topk_group)
    mask = torch.zeros_like(of_group).scatter_(-1, kept, 1.0).bool().unsqueeze(-1)
    # experts of other groups come after those of the kept ones, even after minus infinity
    order = choices.sort(dim=-1, descending=True, stable=True).indices
    allowed = mask.expand_as(by_group).reshape(tokens, experts).gather(-1, order)
    first = (~allowed).to(torch.int32).sort(dim=-1, stable=True).indices
    indices = order.gather(-1, first)[:, :k]
    weights = found.masked_fill(~found.isfinite(), 0).gather(-1, indices)
    if renormalize:
        weights = weights * (routed_scaling_factor / (weights.sum(-1, keepdim=True) + 1e-20))
    else:
        weights = weights * routed_scaling_factor
    proceed = (of_group > low).sum(-1, keepdim=True) >= topk_group
    plain = torch.arange(k, device=indices.device).expand_as(indices)
    topk_weights.copy_(weights.where(proceed, weights.new_tensor(1.0 / k)))
    topk_indices.copy_(indices.where(proceed, plain))
