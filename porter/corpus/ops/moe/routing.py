"""Expert routing as engines call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from porter.corpus.ops.moe import routing_reference as reference
from porter.corpus.ops.rows import access_width, check_dtype, check_vector, row_dimensions
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import Plan, Unsupported, compact_key, op
from porter.corpus.runtime.tuning import choose

FLOATS = ("bf16", "f16", "f32")
INDICES = ("i32", "i64", "u32")
_MOST_K = 32  # lanes of a warp
_MOST_EXPERTS = 64 * 32  # of a token, in registers of a warp


@op(
    "topk_softmax(Tensor(a!) topk_weights, Tensor(b!) topk_indices, Tensor(c!) token_expert_indices, "
    "Tensor gating_output, bool renormalize, Tensor? bias=None, Tensor? is_padding=None) -> ()",
    key=compact_key(
        "gating_output.nbytes", {"renormalize": True, "bias is None": True, "is_padding is None": True}
    ),
    fallback=reference.topk_softmax,
)  # fmt: skip
def topk_softmax(
    device: Device, topk_weights: Any, topk_indices: Any, token_expert_indices: Any, gating_output: Any,
    renormalize: bool, bias: Any, is_padding: Any,
) -> Plan:  # fmt: skip
    """The k = topk_weights.shape[-1] experts of each token with the largest softmax(gating_output) + `bias`.

    Largest first, equal ones in the order of experts. `topk_weights` (T, k) float32 holds their softmax without the
    bias, with `renormalize` times 1 / their sum (where that is above 0); `topk_indices` (T, k) int32, int64 or uint32;
    `token_expert_indices[t, j]` = j * T + t, int32. `gating_output` (T, E) bfloat16, float16 or float32, E of any
    number up to 2048, k up to 32; `bias` (E,) float32. A probability that is NaN counts as 0: a row with NaN, or
    without a finite largest logit, gets experts 0 to k - 1 with weight 0. Tokens that `is_padding` (T,), bool, marks
    get expert -1 with weight 0. Raises ValueError for other arguments.
    """
    return _routing(
        device, "topk_softmax", topk_weights, topk_indices, token_expert_indices, gating_output,
        bias=bias, padding=is_padding, score="softmax", renormalize=renormalize,
    )  # fmt: skip


@op(
    "topk_sigmoid(Tensor(a!) topk_weights, Tensor(b!) topk_indices, Tensor(c!) token_expert_indices, "
    "Tensor gating_output, bool renormalize, Tensor? bias=None, float routed_scaling_factor=1.0, "
    "Tensor? is_padding=None) -> ()",
    key=compact_key(
        "gating_output.nbytes",
        {"renormalize": True, "bias is None": True, "is_padding is None": True, "routed_scaling_factor": 1.0},
    ),
    fallback=reference.topk_sigmoid,
)  # fmt: skip
def topk_sigmoid(
    device: Device, topk_weights: Any, topk_indices: Any, token_expert_indices: Any, gating_output: Any,
    renormalize: bool, bias: Any, routed_scaling_factor: float, is_padding: Any,
) -> Plan:  # fmt: skip
    """As topk_softmax, with scores 1 / (1 + exp(-gating_output)); weights times `routed_scaling_factor` at the end.

    Raises ValueError for arguments that do not fit.
    """
    return _routing(
        device, "topk_sigmoid", topk_weights, topk_indices, token_expert_indices, gating_output,
        bias=bias, padding=is_padding, score="sigmoid", renormalize=renormalize, scale=routed_scaling_factor,
    )  # fmt: skip


@op(
    "topk_softplus_sqrt(Tensor(a!) topk_weights, Tensor(b!) topk_indices, Tensor(c!) token_expert_indices, "
    "Tensor gating_output, bool renormalize, float routed_scaling_factor=1.0, Tensor? bias=None, "
    "Tensor? input_ids=None, Tensor? tid2eid=None) -> ()",
    key="(gating_output.nbytes, renormalize, routed_scaling_factor, bias is None, tid2eid is None)",
    fallback=reference.topk_softplus_sqrt,
)  # fmt: skip
def topk_softplus_sqrt(
    device: Device, topk_weights: Any, topk_indices: Any, token_expert_indices: Any, gating_output: Any,
    renormalize: bool, routed_scaling_factor: float, bias: Any, input_ids: Any, tid2eid: Any,
) -> Plan:  # fmt: skip
    """As topk_softmax, with scores sqrt(log(1 + exp(gating_output))); weights times `routed_scaling_factor`.

    With `tid2eid` (V, k), int32 or int64, the experts of token t are tid2eid[input_ids[t]] and only the weights come
    from the logits; `input_ids` (T,) int32 or int64, all below V; an expert that is not below E has weight 0. (DeepSeek
    V4's layers that route by a hash; there without `bias`.) Raises ValueError for arguments that do not fit.
    """
    if tid2eid is None:
        return _routing(
            device, "topk_softplus_sqrt", topk_weights, topk_indices, token_expert_indices, gating_output,
            bias=bias, score="softplus_sqrt", renormalize=renormalize, scale=routed_scaling_factor,
        )  # fmt: skip
    from porter.corpus.kernels.moe.hash_routing import HashRouting

    if input_ids is None or bias is not None:
        raise ValueError("tid2eid goes with input_ids and without bias")
    dtype, index, rows, experts, k = _operands(topk_weights, topk_indices, token_expert_indices, gating_output)
    ids, table = check_dtype("input_ids", input_ids, "i32", "i64"), check_dtype("tid2eid", tid2eid, "i32", "i64")
    check_vector("input_ids", input_ids, rows)
    if tid2eid.dim() != 2 or tid2eid.shape[1] != k or (k > 1 and tid2eid.stride(1) != 1):
        raise ValueError(f"tid2eid has shape {tuple(tid2eid.shape)}, not (V, {k}) with contiguous rows")
    if rows == 0 or k == 0:
        return None
    lanes = 1 << (k - 1).bit_length()
    per_block = max(1, (128 if rows > 64 * device.sm_count else 32) // lanes)
    kernel = HashRouting(dtype, index, ids, table, experts, k, lanes, per_block, renormalize, pdl=device.pdl)
    blocks, scale = -(-rows // per_block), routed_scaling_factor

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        return lambda w, i, s, x, r, f, b, ids, table: launch(w, i, s, x, ids, table, scale, blocks)

    return kernel, bind


@op(
    "llama4_topk(Tensor(a!) topk_weights, Tensor(b!) topk_indices, Tensor(c!) token_expert_indices, "
    "Tensor gating_output) -> ()",
    key="gating_output.nbytes",
    fallback=reference.llama4_topk,
)  # fmt: skip
def llama4_topk(
    device: Device, topk_weights: Any, topk_indices: Any, token_expert_indices: Any, gating_output: Any
) -> Plan:
    """The k largest logits of each token, and the sigmoid of each as its weight: Llama 4's routing, where k is 1.

    Otherwise as topk_softmax; NaN counts as minus infinity. Raises ValueError for arguments that do not fit.
    """
    return _routing(
        device, "llama4_topk", topk_weights, topk_indices, token_expert_indices, gating_output,
        score="none", sigmoid_after=True,
    )  # fmt: skip


@op(
    "grouped_topk(Tensor(a!) topk_weights, Tensor(b!) topk_indices, Tensor scores, int n_group, int topk_group, "
    "bool renormalize, float routed_scaling_factor, Tensor? bias=None, int scoring_func=1) -> ()",
    key="(scores.nbytes, n_group, topk_group, renormalize, routed_scaling_factor, bias is None, scoring_func)",
    fallback=reference.grouped_topk,
)  # fmt: skip
def grouped_topk(
    device: Device, topk_weights: Any, topk_indices: Any, scores: Any, n_group: int, topk_group: int,
    renormalize: bool, routed_scaling_factor: float, bias: Any, scoring_func: int,
) -> Plan:  # fmt: skip
    """DeepSeek V3's routing: the k best experts of the `topk_group` best of `n_group` groups of neighbouring experts.

    s = sigmoid(scores) (`scoring_func` 1) or `scores` (0), choices s + `bias`, always in float32; a choice that is not
    finite counts as minus infinity. A group's score is the sum of its two largest choices. Equal groups and equal
    choices go to the lower one. Weights are s (0 if not finite), with
    `renormalize` times routed_scaling_factor / (their sum + 1e-20),
    else times `routed_scaling_factor`. Where fewer than `topk_group` groups have a score above minus infinity, experts
    are 0 to k - 1 and weights 1 / k. `n_group` up to 32, of two experts and more each; other operands as for
    topk_softmax. vLLM's function of this name returns new tensors, SGLang's is `moe_fused_gate`, FlashInfer's
    `fused_topk_deepseek`. Raises ValueError for other arguments.
    """
    experts = scores.shape[-1] if scores.dim() else 0
    k = topk_weights.shape[-1] if topk_weights.dim() else 0
    if n_group < 1 or experts % n_group or (experts // n_group < 2 and experts):
        raise ValueError(f"{experts} experts are not {n_group} groups of two and more")
    if not 1 <= topk_group <= n_group or k > topk_group * (experts // n_group):
        raise ValueError(f"{topk_group} of {n_group} groups of {experts} experts do not have {k}")
    if scoring_func not in (0, 1):
        raise ValueError(f"scoring_func is {scoring_func}, not 0 (none) or 1 (sigmoid)")
    return _routing(
        device, "grouped_topk", topk_weights, topk_indices, None, scores, bias=bias,
        score="sigmoid" if scoring_func == 1 else "none", renormalize=renormalize, scale=routed_scaling_factor,
        groups=n_group, kept=topk_group,
    )  # fmt: skip


def _operands(
    weights: Any, indices: Any, order: Any, logits: Any
) -> tuple[str, str, int, int, int]:  # fmt: skip
    """(dtype, dtype of indices, tokens, experts, k) of a routing. Raises ValueError for tensors that do not fit."""
    dtype, index = check_dtype("gating_output", logits, *FLOATS), check_dtype("topk_indices", indices, *INDICES)
    check_dtype("topk_weights", weights, "f32")
    outputs = [("topk_weights", weights), ("topk_indices", indices)]
    if order is not None:
        check_dtype("token_expert_indices", order, "i32")
        outputs.append(("token_expert_indices", order))
    if logits.dim() != 2 or weights.dim() != 2:
        raise ValueError(f"logits and outputs must be matrices, logits have shape {tuple(logits.shape)}")
    row_dimensions([("gating_output", logits)])
    row_dimensions(outputs)
    (rows, experts), k = logits.shape, weights.shape[1]
    if weights.shape[0] != rows:
        raise ValueError(f"topk_weights has {weights.shape[0]} rows, gating_output {rows}")
    if k > experts:
        raise ValueError(f"there are {experts} experts, not the {k} of topk_weights")
    return dtype, index, rows, experts, k


def _routing(
    device: Device, name: str, weights: Any, indices: Any, order: Any, logits: Any, *, score: str, bias: Any = None,
    padding: Any = None, renormalize: bool = False, scale: float | None = None, groups: int = 0, kept: int = 0,
    sigmoid_after: bool = False,
) -> Plan:  # fmt: skip
    from porter.corpus.kernels.moe.routing import Routing

    dtype, index, rows, experts, k = _operands(weights, indices, order, logits)
    if bias is not None:
        check_dtype("bias", bias, "f32")
        check_vector("bias", bias, experts)
    if padding is not None:
        check_dtype("is_padding", padding, "bool", "u8")
        if tuple(padding.shape) != (rows,):
            raise ValueError(f"is_padding has shape {tuple(padding.shape)}, there are {rows} tokens")
    if rows == 0 or k == 0:
        return None
    if k > _MOST_K or experts > _MOST_EXPERTS or groups > 32:
        raise Unsupported(f"{k} of {experts} experts in {groups} groups do not fit into a warp")
    widest = access_width(experts, [logits], [bias])
    if groups:
        per_lane, lanes = _group_lanes(experts, groups, k)
        vec, per_block = _dividing(per_lane, widest), 128 // lanes if rows > device.sm_count else max(1, 32 // lanes)
    else:
        choice = spread_routing(device, name, dtype, rows, experts, k, widest)
        lanes, per_block, vec = choice["lanes"], choice["rows"], choice["vec"]
        per_lane = -(-experts // (lanes * vec)) * vec
    if per_lane > 64:
        raise Unsupported(f"{experts} experts are {per_lane} for each of {lanes} lanes")
    if groups == 1:
        kept = 1
    kernel = Routing(
        dtype, index, experts, k, vec, per_lane, lanes, per_block, score, bias is not None, renormalize,
        scale is not None and (scale != 1.0 or groups > 0), padding is not None, order is not None, groups, kept,
        sigmoid_after, device.pdl,
    )  # fmt: skip
    blocks, factor, byte = -(-rows // per_block), 1.0 if scale is None else scale, padding is not None
    return kernel, _binding(name, blocks, factor, byte)


def _binding(name: str, blocks: int, factor: float, byte: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The launcher of a routing: its arguments in the kernel's order."""
    import torch

    def bind(launch: Callable[..., None]) -> Callable[..., None]:
        if name == "topk_softmax":
            if byte:
                return lambda w, i, s, x, r, b, p: launch(w, i, s, x, b, p.view(torch.uint8), factor, blocks)
            return lambda w, i, s, x, r, b, p: launch(w, i, s, x, b, p, factor, blocks)
        if name == "topk_sigmoid":
            if byte:
                return lambda w, i, s, x, r, b, f, p: launch(w, i, s, x, b, p.view(torch.uint8), factor, blocks)
            return lambda w, i, s, x, r, b, f, p: launch(w, i, s, x, b, p, factor, blocks)
        if name == "topk_softplus_sqrt":
            return lambda w, i, s, x, r, f, b, ids, table: launch(w, i, s, x, b, None, factor, blocks)
        if name == "llama4_topk":
            return lambda w, i, s, x: launch(w, i, s, x, None, None, factor, blocks)
        return lambda w, i, x, g, kg, r, f, b, fn: launch(w, i, None, x, b, None, factor, blocks)

    return bind


def _dividing(per_lane: int, vec: int) -> int:
    while per_lane % vec:
        vec //= 2
    return vec


def _group_lanes(experts: int, groups: int, k: int) -> tuple[int, int]:
    """(experts of a lane, lanes): a power of two of lanes for each group, a warp in all at most, k lanes at least."""
    of_group, lanes = experts // groups, 1
    while of_group % (2 * lanes) == 0 and groups * 2 * lanes <= 32:
        lanes *= 2
    return of_group // lanes, max(1 << (groups * lanes - 1).bit_length(), 1 << (k - 1).bit_length())


def spread_routing(device: Device, name: str, dtype: str, rows: int, experts: int, k: int, widest: int) -> Any:
    """The tuning table's choice, or a rule: lanes of a token ("lanes"), tokens of a block ("rows"), experts of an
    access ("vec"). A warp a token where there are enough experts, four warps a block where there are many tokens."""
    least = 1 << (k - 1).bit_length()

    def choice(lanes: int, threads: int, vec: int) -> dict[str, Any]:
        return {"lanes": lanes, "rows": max(1, threads // lanes), "vec": vec}

    def width(lanes: int) -> int:
        vec = widest
        while vec > 1 and lanes * vec >= 2 * experts:
            vec //= 2
        return vec

    lanes = max(least, min(32, 1 << (experts - 1).bit_length()))
    threads = 128 if rows > 2 * device.sm_count else 32

    def candidates() -> list[dict[str, Any]]:
        return [
            choice(n, t, width(n)) for n in (4, 8, 16, 32) for t in (32, 64, 128, 256)
            if n >= least and -(-experts // n) <= 64
        ]  # fmt: skip

    return choose(device, name, f"{dtype} {experts} {k}", rows, choice(lanes, threads, width(lanes)), candidates)
