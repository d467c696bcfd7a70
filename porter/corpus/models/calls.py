"""The calls of corpus ops that vLLM would make for a model, in the form that `porter build` takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from porter.corpus.models.config import Experts, Model, ModelError, read_model
from porter.corpus.models.inputs import Inputs

TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)  # what engines capture graphs for, and more
ALIGN_BLOCK = 64  # rows of an expert's tile; which one a GEMM takes is its own table's choice


@dataclass(frozen=True)
class ModelCalls:
    """`calls`: configurations {op, args, tokens, for}, `for` the places in the model that call it so. `left_out`: what
    the engine calls besides that the corpus has no op of that name for, with its places."""

    model: Model
    calls: tuple[Mapping[str, Any], ...]
    left_out: Mapping[str, tuple[str, ...]]


def model_calls(
    path: Path | str, *, tensor_parallel: int = 1, fusion: bool = True, arch: str = "sm_90a",
    tokens: tuple[int, ...] = TOKENS,
) -> ModelCalls:  # fmt: skip
    """The calls for a model's config.json (or its folder) on one of `tensor_parallel` GPUs.

    `fusion`: norms and activations also quantise where the corpus has an op for it, and norms of heads also turn;
    otherwise one op after the other. `arch` decides the layout of scales of groups (see `Inputs`). Raises ModelError
    (a ValueError; codes PRT970 to PRT973). `warm_up` takes `calls`.
    """
    from porter.corpus.ops import __all__ as known

    model = read_model(path)
    sizes = {"query heads": model.q_heads, "elements of the MLP": model.width}
    if model.experts is not None:
        sizes["elements of an expert"] = model.experts.width
    for what, size in sizes.items():
        if tensor_parallel < 1 or size % tensor_parallel:
            raise ModelError(
                "PRT973", f"{size} {what} cannot be divided among {tensor_parallel} GPUs", Path(path),
                "give a --tensor-parallel that divides them",
            )  # fmt: skip
    found: dict[str, tuple[dict[str, Any], list[str]]] = {}
    missing: dict[str, list[str]] = {}
    for place, op, args in _Engine(model, tensor_parallel, fusion, arch).calls():
        if op not in known:
            places = missing.setdefault(op, [])
        else:
            call = {"op": op, "tokens": list(tokens), "args": args}
            places = found.setdefault(repr(call), (call, []))[1]
        if place not in places:
            places.append(place)
    calls = tuple({**call, "for": places} for call, places in found.values())
    return ModelCalls(model, calls, {op: tuple(places) for op, places in missing.items()})


Call = tuple[str, str, dict[str, Any]]  # place, op, arguments by name


class _Engine:
    """What the layers of a model call, one after the other."""

    def __init__(self, model: Model, gpus: int, fusion: bool, arch: str):
        self.model = model
        self.gpus = gpus
        self.fusion = fusion
        self.inputs = Inputs(model.dtype, model.eps, fusion, arch)
        self.q_heads, self.k_heads = model.q_heads // gpus, max(1, model.k_heads // gpus)

    def calls(self) -> Iterator[Call]:
        model, dtype = self.model, self.model.dtype
        rows = -(-model.vocab // 64) * 64 // self.gpus
        yield "embedding", "embedding", {
            "out": f"{dtype}[T,{model.hidden}]", "indices": f"i64[T]<{min(rows, model.vocab)}",
            "weight": f"{dtype}[{rows},{model.hidden}]", "vocab_start": 0, "vocab_end": rows,
        }  # fmt: skip
        seen = set()
        for layer in range(model.layers):
            scheme = partial(model.schemes.of, layer=layer)
            parts = ("qkv", "q_b", "o", "up", "down", "shared_up", "shared_down", "experts_up", "experts_down")
            kind = layer == 0, model.experts_of[layer], tuple(map(scheme, parts))
            if kind in seen:
                continue
            seen.add(kind)
            yield from self.inputs.normed("input norm", model.hidden, scheme("qkv"), residual=layer > 0)
            yield from self._latent(scheme) if model.latent else self._attention(scheme)
            if model.experts_of[layer] and model.experts is not None:
                yield from self._experts(model.experts, scheme)
            else:
                yield from self.inputs.normed("norm after attention", model.hidden, scheme("up"), residual=True)
                yield from self._gated("MLP", "T", model.width // self.gpus, scheme("down"))
        yield from self.inputs.normed("last norm", model.hidden, "none", residual=True)

    def _attention(self, scheme: Any) -> Iterator[Call]:
        model, d, dtype = self.model, self.model.head, self.model.dtype
        row = (self.q_heads + 2 * self.k_heads) * d
        if model.qk_norm and self.fusion:
            yield "query and key norms, rotary embedding", "fused_qk_norm_rope", {
                "qkv": f"{dtype}[T,{row}]", "num_heads_q": self.q_heads, "num_heads_k": self.k_heads,
                "num_heads_v": self.k_heads, "head_dim": d, "eps": model.eps, "q_weight": f"{dtype}[{d}]",
                "k_weight": f"{dtype}[{d}]", "cos_sin_cache": self._table(), "is_neox": model.neox,
                "position_ids": f"i64[T]<{model.positions}",
            }  # fmt: skip
        else:
            sides = {"query": self.q_heads, "key": self.k_heads}
            for name, heads in sides.items() if model.qk_norm else ():
                yield f"{name} norm", "rms_norm", {
                    "result": f"{dtype}[T,{heads},{d}]", "input": f"{dtype}[T,{heads},{d}:{row},{d},1]",
                    "weight": f"{dtype}[{d}]", "epsilon": model.eps,
                }  # fmt: skip
            strides = "" if model.qk_norm else f":{row},1"
            query, key = (f"{dtype}[T,{heads * d}{strides}]" for heads in sides.values())
            yield self._rotary(query, key)
        yield from self.inputs.given("attention's result", f"{dtype}[T,{self.q_heads * d}]", scheme("o"))

    def _rotary(self, query: str, key: str) -> Call:
        model = self.model
        head = model.rotary if model.latent else model.head
        return "rotary embedding", "rotary_embedding", {
            "positions": f"i64[T]<{model.positions}", "query": query, "key": key, "head_size": head,
            "cos_sin_cache": self._table(), "is_neox": model.neox,
        }  # fmt: skip

    def _table(self) -> str:
        return f"{self.model.dtype}[{self.model.positions},{self.model.rotary}]"

    def _latent(self, scheme: Any) -> Iterator[Call]:
        """Multi-head latent attention: queries, and what keys and values are made of, come as one packed row."""
        model, latent, dtype = self.model, self.model.latent, self.model.dtype
        assert latent is not None
        row = latent.q_rank + latent.kv_rank + latent.rope
        norms = {"compressed queries' norm": latent.q_rank, "compressed keys' norm": latent.kv_rank}
        for place, rank in norms.items() if latent.q_rank else list(norms.items())[1:]:
            yield place, "rms_norm", {
                "result": f"{dtype}[T,{rank}]", "input": f"{dtype}[T,{rank}:{row},1]", "weight": f"{dtype}[{rank}]",
                "epsilon": model.eps,
            }  # fmt: skip
        if latent.q_rank:
            yield from self.inputs.given("compressed queries", f"{dtype}[T,{latent.q_rank}]", scheme("q_b"))
        head = latent.nope + latent.rope
        yield self._rotary(
            f"{dtype}[T,{self.q_heads},{latent.rope}:{self.q_heads * head},{head},1]",
            f"{dtype}[T,1,{latent.rope}:{row},{row},1]",
        )
        yield from self.inputs.given("attention's result", f"{dtype}[T,{self.q_heads * latent.value}]", scheme("o"))

    def _experts(self, experts: Experts, scheme: Any) -> Iterator[Call]:
        # the router reads what the norm gives, so that the norm does not quantise
        model, k = self.model, experts.chosen
        yield from self.inputs.normed("norm after attention", model.hidden, "none", residual=True)
        yield from self._routing(experts)
        normed = f"{model.dtype}[T,{model.hidden}]"
        if experts.shared_width:
            yield from self.inputs.given("shared experts' input", normed, scheme("shared_up"))
            yield from self._gated("shared experts", "T", experts.shared_width // self.gpus, scheme("shared_down"))
        yield from self.inputs.given("experts' input", normed, scheme("experts_up"))
        yield "blocks of the experts' GEMM", "moe_align_block_size", {
            "topk_ids": f"i32[T,{k}]<{experts.count}", "num_experts": experts.count, "block_size": ALIGN_BLOCK,
            "sorted_token_ids": f"i32[up(T*{k},{ALIGN_BLOCK})+{experts.count * ALIGN_BLOCK}]",
            "experts_ids": f"i32[up(T*{k},{ALIGN_BLOCK})+{experts.count}]", "num_tokens_post_pad": "i32[1]",
            "maybe_expert_map": None,
        }  # fmt: skip
        yield from self._gated("experts", f"T*{k}", experts.width // self.gpus, scheme("experts_down"))
        yield "sum over a token's experts", "moe_sum", {
            "input": f"{model.dtype}[T,{k},{model.hidden}]", "output": normed
        }  # fmt: skip

    def _routing(self, experts: Experts) -> Iterator[Call]:
        n, k = experts.count, experts.chosen
        if experts.groups:
            yield "routing", "grouped_topk", {
                "topk_weights": f"f32[T,{k}]", "topk_indices": f"i32[T,{k}]", "scores": f"f32[T,{n}]",
                "n_group": experts.groups, "topk_group": experts.chosen_groups, "renormalize": experts.renormalize,
                "routed_scaling_factor": experts.scale, "bias": f"f32[{n}]",
                "scoring_func": int(experts.scores == "sigmoid"),
            }  # fmt: skip
        else:
            yield "routing", "topk_softmax", {
                "topk_weights": f"f32[T,{k}]", "topk_indices": f"i32[T,{k}]", "token_expert_indices": f"i32[T,{k}]",
                "gating_output": f"{self.model.dtype}[T,{n}]", "renormalize": experts.renormalize, "bias": None,
                "is_padding": None,
            }  # fmt: skip

    def _gated(self, place: str, rows: str, width: int, scheme: str) -> Iterator[Call]:
        return self.inputs.gated(f"activation of the {place}", rows, width, self.model.activation, scheme)
