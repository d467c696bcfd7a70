"""The operations between the GEMMs of bench.moe_layer, by library: porter's, and vLLM's in two orders.

"vllm permute" copies rows by moe_permute, whose offsets are int64 and become int32 for torch's grouped GEMM;
"vllm shuffle" gets offsets and order from get_cutlass_moe_mm_data and copies by shuffle_rows. Scales of rows, which
neither copies, are gathered by torch. vLLM's GEMM that gathers rows itself is Triton code, not one of these libraries'.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

EPS = 1e-6
Buffers = dict[str, torch.Tensor]
Operation = Callable[..., Any]


class Sizes(Protocol):
    """What a side asks of a layer."""

    @property
    def experts(self) -> int: ...
    @property
    def topk(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def intermediate(self) -> int: ...
    @property
    def fp8(self) -> bool: ...


@dataclass
class MoeState:
    """The routing of one layer. `ends` (E,) int32: the row past the last of each expert, a view of `offsets`."""

    logits: torch.Tensor
    weights: torch.Tensor
    ids: torch.Tensor
    order: torch.Tensor
    offsets: torch.Tensor
    ends: torch.Tensor
    inverse: torch.Tensor

    @classmethod
    def of(cls, tokens: int, experts: int, topk: int, device: str) -> MoeState:
        def integers(*shape: int) -> torch.Tensor:
            return torch.zeros(shape, dtype=torch.int32, device=device)

        # the ends are aligned as a tensor's begin, which torch's grouped GEMM may want: offsets start 3 numbers later
        offsets = integers(experts + 4)[3:]
        return cls(
            torch.zeros(tokens, experts, dtype=torch.bfloat16, device=device),
            torch.zeros(tokens, topk, device=device), integers(tokens, topk), integers(tokens, topk),
            offsets, offsets[1:], integers(tokens, topk),
        )  # fmt: skip


@dataclass
class MoeSide:
    """A library's operations; each reads what the one before wrote."""

    norm: Operation  # (x, residual, weight, epsilon)
    topk_softmax: Operation
    quantise: Operation  # (codes, x, scales, None)
    silu_and_mul: Operation
    copy: Callable[[Buffers, MoeState], None]
    collect: Callable[[Buffers, MoeState, torch.Tensor], None]
    fp8: bool

    def route(self, s: MoeState) -> None:
        self.topk_softmax(s.weights, s.ids, s.order, s.logits, True, None, None)

    def copy_to_experts(self, b: Buffers, s: MoeState) -> None:
        if self.fp8:
            self.quantise(b["codes"], b["x"], b["scale"], None)
        self.copy(b, s)

    def activate(self, b: Buffers, gate_up: torch.Tensor) -> None:
        self.silu_and_mul(b["act"], gate_up)
        if self.fp8:
            self.quantise(b["act_codes"], b["act"], b["act_scale"], None)

    def combine(self, b: Buffers, s: MoeState, down: torch.Tensor) -> None:
        self.collect(b, s, down)


Make = Callable[[int, Sizes, str], MoeSide]
SHARED = ("fused_add_rms_norm", "topk_softmax", "dynamic_per_token_scaled_fp8_quant", "silu_and_mul")


def porter_side(tokens: int, sizes: Sizes, device: str) -> MoeSide:
    import porter.corpus as corpus

    dispatch, combine = corpus.moe_dispatch, corpus.moe_combine

    def copy(b: Buffers, s: MoeState) -> None:
        if sizes.fp8:
            dispatch(
                b["rows"], s.offsets, s.inverse, b["codes"], s.ids, sizes.experts, 0, 1, None, b["row_scale"],
                b["scale"],
            )  # fmt: skip
        else:
            dispatch(b["rows"], s.offsets, s.inverse, b["x"], s.ids, sizes.experts)

    def collect(b: Buffers, s: MoeState, down: torch.Tensor) -> None:
        combine(b["x"], down, s.inverse, s.weights)

    return MoeSide(*(getattr(corpus, n) for n in SHARED), copy, collect, sizes.fp8)


def engine_sides(op: Callable[[str], Operation]) -> dict[str, Make]:
    """vLLM's two orders over a library with its names and arguments. `op` raises AttributeError for what is absent."""
    shared = [op(n) for n in SHARED]
    unpermute = op("moe_unpermute")

    def gather_scales(b: Buffers, source: torch.Tensor) -> None:
        torch.index_select(b["scale"], 0, source, out=b["row_scale"])

    def permute(tokens: int, sizes: Sizes, device: str) -> MoeSide:
        entries, experts, k = tokens * sizes.topk, sizes.experts, sizes.topk
        call = op("moe_permute")
        order = torch.arange(entries, dtype=torch.int32, device=device).view(tokens, k)
        first = torch.zeros(experts + 1, dtype=torch.int64, device=device)
        index, token = (torch.zeros(entries, dtype=torch.int32, device=device) for _ in range(2))

        def copy(b: Buffers, s: MoeState) -> None:
            x = b["codes"] if sizes.fp8 else b["x"]
            call(x, s.ids, order, None, experts, experts, k, b["rows"], first, s.inverse, index)
            s.ends.copy_(first[1:])
            if sizes.fp8:
                torch.div(index, k, rounding_mode="floor", out=token)
                gather_scales(b, token)

        def collect(b: Buffers, s: MoeState, down: torch.Tensor) -> None:
            unpermute(down, s.weights, s.inverse, first, k, b["x"])

        return MoeSide(*shared, copy, collect, sizes.fp8)

    def shuffle(tokens: int, sizes: Sizes, device: str) -> MoeSide:
        entries, experts, k = tokens * sizes.topk, sizes.experts, sizes.topk
        data, rows = op("get_cutlass_moe_mm_data"), op("shuffle_rows")
        problems = [torch.zeros(experts, 3, dtype=torch.int32, device=device) for _ in range(2)]
        source = torch.zeros(entries, dtype=torch.int32, device=device)

        def copy(b: Buffers, s: MoeState) -> None:
            data(
                s.ids, s.offsets, *problems, source, s.inverse.view(-1), experts, sizes.intermediate, sizes.hidden,
                None, True,
            )  # fmt: skip
            rows(b["codes"] if sizes.fp8 else b["x"], source, b["rows"])
            if sizes.fp8:
                gather_scales(b, source)

        def collect(b: Buffers, s: MoeState, down: torch.Tensor) -> None:
            unpermute(down, s.weights, s.inverse, None, k, b["x"])

        return MoeSide(*shared, copy, collect, sizes.fp8)

    return {"vllm permute": permute, "vllm shuffle": shuffle}


def sides(absent: dict[str, str]) -> dict[str, Make]:
    """What makes each library's side; `absent` gets why one is left out."""
    found: dict[str, Make] = {"porter": porter_side}
    namespaces = []
    for variable, name in (("VLLM_C", "_C"), ("VLLM_MOE_C", "_moe_C")):
        path = os.environ.get(variable, "")
        if not path:
            absent["vllm"] = f"{variable} is not set"
            return found
        try:
            torch.ops.load_library(path)
        except OSError as error:
            absent["vllm"] = f"{path}: {error}"[:300]
            return found
        namespaces.append(getattr(torch.ops, name))

    def op(name: str) -> Operation:
        for namespace in namespaces:
            if hasattr(namespace, name):
                return getattr(namespace, name)  # type: ignore[no-any-return]
        raise AttributeError(f"vLLM's libraries have no {name}")

    try:
        return found | engine_sides(op)
    except AttributeError as error:
        absent["vllm"] = str(error)
        return found
