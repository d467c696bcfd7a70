"""A mixture-of-experts layer for bench.layer.

Residual and RMS norm (so that numbers keep their size over several layers), router GEMM, top-k softmax, the rows of
tokens copied to their experts, grouped GEMM, SiLU and product, grouped GEMM, weighted sum of a token's rows. In fp8,
rows are quantised per token before they are copied and after SiLU: torch's grouped GEMM takes a scale for each row.
Weights are such that the residual outweighs what layers add, so that all sides route alike; how many choices differ is
recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from bench.chains import ALONE, graph_of, medians, row_error, summary
from bench.moe_sides import EPS, Buffers, MoeSide, MoeState, sides

FP8 = torch.float8_e4m3fn
LARGEST_CODE = 100.0  # standard deviation of a weight's codes
RESIDUAL = 0.05  # what a layer adds, in parts of the residual it is added to, about
CLOSE = {"bf16": 0.03, "fp8": 0.12}
CLOSE_LOGITS, CLOSE_WEIGHTS = 0.03, 1e-4


@dataclass(frozen=True)
class MoeLayer:
    """Sizes of the layer; `layers` are chained in one graph, each with weights of its own."""

    hidden: int
    intermediate: int
    dtype: str  # bf16, fp8
    layers: int
    experts: int = 128
    topk: int = 8

    @property
    def name(self) -> str:
        return f"moe {self.hidden}x{self.intermediate} {self.dtype}"

    @property
    def fp8(self) -> bool:
        return self.dtype == "fp8"

    def bytes_between(self, tokens: int) -> int:
        """What the operations between the GEMMs read and write at least, in bytes; indices left out."""
        h, i, rows, code = self.hidden, self.intermediate, tokens * self.topk, 1 if self.fp8 else 2
        norm, logits = 8 * h * tokens, 2 * self.experts * tokens
        quantised = 3 * h * tokens if self.fp8 else 0
        copied = code * h * (tokens + rows)
        activated = rows * i * (4 + code)
        return norm + logits + quantised + copied + activated + 2 * h * (rows + tokens)

    def weights(self, device: str, seed: int) -> Buffers:
        """Experts' weights with a row for each output, in fp8 with a scale for each."""
        generator = torch.Generator(device=device).manual_seed(seed)
        h, i = self.hidden, self.intermediate
        found = {
            "norm": torch.ones(h, device=device, dtype=torch.bfloat16),
            "router": torch.empty(h, self.experts, device=device, dtype=torch.bfloat16),
        }
        found["router"].normal_(0.0, h**-0.5, generator=generator)
        for name, rows, columns, gain in (("gate_up", 2 * i, h, 1.0), ("down", h, i, 2.0 * RESIDUAL)):
            deviation = gain * columns**-0.5
            shape = (self.experts, rows, columns)
            found[name] = torch.empty(shape, device=device, dtype=FP8 if self.fp8 else torch.bfloat16)
            one = torch.empty(rows, columns, device=device, dtype=torch.bfloat16)
            for e in range(self.experts):  # one at a time: half of the memory of all of them is not free
                one.normal_(0.0, LARGEST_CODE if self.fp8 else deviation, generator=generator)
                found[name][e] = one.clamp_(-448, 448).to(found[name].dtype)
            if self.fp8:
                scale = torch.rand(self.experts, rows, device=device, generator=generator) + 0.5
                found[f"{name}_scale"] = scale * (deviation / LARGEST_CODE)
        return found

    def buffers(self, tokens: int, device: str) -> Buffers:
        generator = torch.Generator(device=device).manual_seed(tokens)
        h, i, rows = self.hidden, self.intermediate, tokens * self.topk

        def normal(*shape: int) -> torch.Tensor:
            return torch.empty(shape, device=device, dtype=torch.bfloat16).normal_(generator=generator)

        found = {
            "x": normal(tokens, h).mul_(RESIDUAL), "residual": normal(tokens, h),
            "rows": normal(rows, h), "act": normal(rows, i),
        }  # fmt: skip
        if self.fp8:
            found |= {
                "codes": normal(tokens, h).to(FP8), "scale": torch.ones(tokens, 1, device=device),
                "rows": found["rows"].to(FP8), "row_scale": torch.ones(rows, 1, device=device),
                "act_codes": found["act"].to(FP8), "act_scale": torch.ones(rows, 1, device=device),
            }  # fmt: skip
        return found

    def states(self, tokens: int, device: str) -> list[MoeState]:
        return [MoeState.of(tokens, self.experts, self.topk, device) for _ in range(self.layers)]

    def run(self, side: MoeSide | None, b: Buffers, s: MoeState, w: Buffers) -> None:
        """One layer; without `side` its GEMMs alone, which read `s.ends` for the rows of each expert."""
        if side:
            side.norm(b["x"], b["residual"], w["norm"], EPS)
        torch.mm(b["x"], w["router"], out=s.logits)
        if side:
            side.route(s)
            side.copy_to_experts(b, s)
        gate_up = grouped_mm(b["rows"], w["gate_up"], s.ends, b.get("row_scale"), w.get("gate_up_scale"))
        if side:
            side.activate(b, gate_up)
        act = b["act_codes"] if self.fp8 else b["act"]
        down = grouped_mm(act, w["down"], s.ends, b.get("act_scale"), w.get("down_scale"))
        if side:
            side.combine(b, s, down)


def grouped_mm(
    rows: torch.Tensor, weights: torch.Tensor, ends: torch.Tensor, row_scale: Any, weight_scale: Any
) -> torch.Tensor:
    """bf16 rows (R, N): those up to ends[e] (int32, (E,)) and from the end before, times weights[e] (N, K) transposed.

    torch's grouped GEMM; on a CPU, where it has none for fp8, a GEMM for each expert in float32."""
    if rows.device.type == "cpu":
        found = torch.zeros(rows.shape[0], weights.shape[1], dtype=torch.bfloat16)
        start = 0
        for e, end in enumerate(ends.tolist()):
            a, b = rows[start:end].float(), weights[e].float()
            if row_scale is not None:
                a, b = a * row_scale[start:end], b * weight_scale[e][:, None]
            found[start:end] = (a @ b.t()).bfloat16()
            start = end
        return found
    if row_scale is None:
        return torch._grouped_mm(rows, weights.transpose(-2, -1), offs=ends)
    return torch._scaled_grouped_mm(
        rows, weights.transpose(-2, -1), row_scale.view(-1), weight_scale, offs=ends, out_dtype=torch.bfloat16,
        use_fast_accum=True,
    )  # fmt: skip


def expected(layer: MoeLayer, first: Buffers, w: Buffers) -> Buffers:
    """What a layer leaves, computed in float32 after the norm: residual, logits, and each expert's rows where chosen.

    The choice itself is checked against the logits that a side really had: equal within rounding, another choice may be
    right."""
    total = first["x"].float() + first["residual"].float()
    residual = total.bfloat16()
    x = (total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + EPS)).bfloat16()
    return {"residual": residual, "x": x, "logits": x.float() @ w["router"].float()}


def experts_sum(layer: MoeLayer, x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, w: Buffers) -> torch.Tensor:
    """Float32: the sum of the chosen experts' outputs, each by its weight; an expert at a time."""
    total = torch.zeros_like(x, dtype=torch.float32)

    def weight(name: str, e: int) -> torch.Tensor:
        found = w[name][e].float()
        return found * w[f"{name}_scale"][e][:, None] if layer.fp8 else found

    for e in range(layer.experts):
        token, choice = (ids == e).nonzero(as_tuple=True)
        if token.numel():
            gate, up = (x[token].float() @ weight("gate_up", e).t()).chunk(2, -1)
            out = (torch.nn.functional.silu(gate) * up) @ weight("down", e).t()
            total.index_add_(0, token, out * weights[token, choice, None])
    return total


def wrong(layer: MoeLayer, side: MoeSide, first: Buffers, w: Buffers, right: Buffers) -> str:
    """Why a side is not timed: "" where routing is that of its logits and the layer's output is the reference's."""
    b = {k: v.clone() for k, v in first.items()}
    s = MoeState.of(first["x"].shape[0], layer.experts, layer.topk, str(first["x"].device))
    try:
        layer.run(side, b, s, w)
        logits = s.logits.float()
        error = float((logits - right["logits"]).abs().max() / right["logits"].abs().max())
        if not error <= CLOSE_LOGITS:
            return f"logits are off by {error:.3g} of the largest"
        # equal logits go to the expert with the lower number
        order = torch.sort(logits, dim=-1, descending=True, stable=True).indices[:, : layer.topk]
        if not torch.equal(order.to(s.ids.dtype), s.ids):
            return f"{int((order != s.ids).sum())} choices of experts differ"
        chosen = torch.softmax(logits, -1).gather(1, order)
        error = float((chosen / chosen.sum(-1, keepdim=True) - s.weights).abs().max())
        if not error <= CLOSE_WEIGHTS:
            return f"weights of experts are off by {error:.3g}"
        ends = torch.bincount(s.ids.flatten().long(), minlength=layer.experts).cumsum(0)
        if not torch.equal(ends.to(s.ends.dtype), s.ends):
            return "the rows of experts end elsewhere"
        if (error := row_error(b["residual"], right["residual"])) > CLOSE["bf16"]:
            return f"a row of the residual is off by {error:.3g} of its length"
        error = row_error(b["x"], experts_sum(layer, right["x"], s.ids, s.weights, w))
    except Exception as error_:
        return f"{type(error_).__name__}: {error_}"[:300]
    return "" if error <= CLOSE[layer.dtype] else f"a row of the output is off by {error:.3g} of its length"


def row(layer: MoeLayer, tokens: int, all_weights: list[Buffers], device: str) -> dict[str, Any]:
    """One row: the sides that are right, timed in turns (on a CPU only checked)."""
    found: dict[str, Any] = {"layer": layer.name, "tokens": tokens, "layers": len(all_weights)}
    absent: dict[str, str] = {}
    first = layer.buffers(tokens, device)
    right = expected(layer, first, all_weights[0])
    good: dict[str, MoeSide] = {}
    for name, make in sides(absent).items():
        try:
            side = make(tokens, layer, device)
        except AttributeError as error:  # an operation that the library does not have
            absent[name] = str(error)
            continue
        if why := wrong(layer, side, first, all_weights[0], right):
            absent[name] = why
        else:
            good[name] = side
    found["checked"] = list(good)
    if absent:
        found["not_timed"] = absent
    if device == "cpu" or not good:
        return found
    del right
    return found | timed(layer, tokens, all_weights, first, good)


def timed(
    layer: MoeLayer, tokens: int, all_weights: list[Buffers], first: Buffers, good: dict[str, MoeSide]
) -> dict[str, Any]:
    """Medians of the sides and of the GEMMs alone, which have as many rows of each expert as the first side."""
    work = {k: v.clone() for k, v in first.items()}

    def restart() -> None:
        for name in ("x", "residual"):
            work[name].copy_(first[name])

    def captured(side: MoeSide | None, states: list[MoeState]) -> torch.cuda.CUDAGraph:
        def layers() -> None:
            for w, s in zip(all_weights, states, strict=True):
                layer.run(side, work, s, w)

        restart()
        graph = graph_of(layers)
        restart()
        graph.replay()
        torch.cuda.synchronize()
        return graph

    states = {name: layer.states(tokens, "cuda") for name in good}
    graphs = {name: captured(side, states[name]) for name, side in good.items()}
    routed = next(iter(states.values()))
    differ = {
        name: sum(int((a.ids != b.ids).sum()) for a, b in zip(routed, theirs, strict=True))
        for name, theirs in states.items()
    }
    alone = layer.states(tokens, "cuda")
    for mine, theirs in zip(alone, routed, strict=True):
        mine.ends.copy_(theirs.ends)
    graphs[ALONE] = captured(None, alone)
    us = medians({ALONE: graphs.pop(ALONE), **graphs}, restart, len(all_weights))
    return {"choices_that_differ": differ, "choices": tokens * layer.topk * len(all_weights), **summary(us)}
