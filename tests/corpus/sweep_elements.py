"""Activations, rotary embedding, softmax, top-k and embedding over sizes, dtypes and kinds of inputs, emulated.

`python -m tests.corpus.sweep_elements` writes elements_sweep.json: for each op, dtype and architecture the number of
launches and outputs, how many outputs differ from the reference that rounds as the kernel does, and by how many units
in the last place at most.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from porter import corpus
from porter.corpus.ops import activation_reference, embedding_reference, rotary_reference, softmax_reference
from tests.corpus.emulated import run
from tests.corpus.test_activations import ulps

RESULT = Path(__file__).with_name("elements_sweep.json")
ARCHS = ("sm_90a", "sm_100a")
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
TOKENS = (1, 3, 31)
WIDTHS = (64, 128, 576, 769, 2880, 5125, 7168)
HEADS = (64, 80, 96, 128, 192, 256)
LENGTHS = (1, 64, 77, 128, 1000, 4096, 5125, 32768)
INPUTS = ("normal", "small", "large", "outlier", "special")


@dataclass
class Row:
    """What came of one op, dtype and architecture."""

    op: str
    dtype: str
    arch: str
    launches: int = 0
    outputs: int = 0
    unequal: int = 0
    most_units: int = 0

    def add(self, got: torch.Tensor, want: torch.Tensor) -> None:
        nan = want.float().isnan()
        assert torch.equal(nan, got.float().isnan()), f"{self}: NaN in other places"
        distance = ulps(got, want).masked_fill(nan, 0)
        self.outputs += got.numel()
        self.unequal += int((distance > 0).sum())
        self.most_units = max(self.most_units, int(distance.max())) if got.numel() else self.most_units


def numbers(kind: str, dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Inputs of a kind, the same at every run."""
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(len(kind) + shape[-1])) * 3
    if kind in ("small", "large"):
        x *= 1e-4 if kind == "small" else 1e4
    elif kind == "outlier":
        x[..., shape[-1] // 3] *= 1000
    elif kind == "special":
        flat = x.view(-1)
        values = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-40, -1e-40, 3e38, -3e38, -88.0, -89.0, 88.5]
        flat[: len(values)] = torch.tensor(values)[: flat.numel()]
    return x.to(dtype)


def gated(name: str, options: tuple[float, ...] = (), pairs: int = 2) -> Callable[[Row, torch.dtype], None]:
    """Over tokens, widths and inputs; `pairs` inputs an output."""

    def sweep(row: Row, dtype: torch.dtype) -> None:
        for width in WIDTHS:
            for tokens in TOKENS:
                x = numbers(INPUTS[(width + tokens) % 5], dtype, tokens, pairs * width)
                got, want = (torch.empty(tokens, width, dtype=dtype) for _ in range(2))
                row.launches += len(run(getattr(corpus, name), got, x, *options, arch=row.arch))
                GELU.get(name, getattr(activation_reference, name))(want, x, *options)
                row.add(got, want)

    return sweep


def gelu_and_mul(out: torch.Tensor, x: torch.Tensor) -> None:
    """CUDA's formula: torch's for the CPU gives other results for infinities, which depend on the shape."""
    gate, up = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    g = gate.float()
    out.copy_((g * 0.5 * (1.0 + (g * 0.7071067811865476).erf())).to(x.dtype) * up)


def gelu_tanh_and_mul(out: torch.Tensor, x: torch.Tensor) -> None:
    """As gelu_and_mul."""
    gate, up = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    g = gate.float()
    inner = 0.7978845608028654 * (g + 0.044715 * (g * g * g))
    out.copy_((0.5 * g * (1.0 + inner.tanh())).to(x.dtype) * up)


GELU = {"gelu_and_mul": gelu_and_mul, "gelu_tanh_and_mul": gelu_tanh_and_mul}


def static_fp8(row: Row, dtype: torch.dtype) -> None:
    for width in WIDTHS:
        x, scale = numbers("normal", dtype, 3, 2 * width), torch.tensor([0.021])
        got, want = (torch.empty(3, width, dtype=torch.float8_e4m3fn) for _ in range(2))
        row.launches += len(run(corpus.silu_and_mul_quant, got, x, scale, arch=row.arch))
        activation_reference.silu_and_mul_quant(want, x, scale)
        row.add(got, want)


def block_fp8(row: Row, dtype: torch.dtype) -> None:
    for width in (128, 768, 2048, 7168):
        for group in (64, 128):
            for transposed in (False, True):
                x = numbers("outlier" if transposed else "normal", dtype, 5, 2 * width)
                shape = (width // group, 5) if transposed else (5, width // group)
                got, want = (torch.empty(5, width, dtype=torch.float8_e4m3fn) for _ in range(2))
                scales, wanted = torch.empty(shape), torch.empty(shape)
                options = (group, None, transposed)
                row.launches += len(run(corpus.silu_and_mul_per_block_quant, got, x, scales, *options, arch=row.arch))
                activation_reference.silu_and_mul_per_block_quant(want, x, wanted, *options)
                torch.testing.assert_close(scales, wanted, rtol=1e-6, atol=0)
                row.add(got, want)


def rotary(row: Row, dtype: torch.dtype) -> None:
    for head in HEADS:
        for neox in (True, False):
            for rot, offset, cache in ((head, 0, dtype), (head // 2, head // 4, torch.float32)):
                packed = numbers("normal", dtype, 7, 6 * head)
                want = packed.clone()
                angles = numbers("normal", torch.float32, 32, rot // 2)
                table = torch.cat([angles.cos(), angles.sin()], -1).to(cache)
                positions = torch.arange(7) * 4
                options = (head, table, neox, offset, rot < head)
                q, k = packed[:, : 4 * head], packed[:, 4 * head : 5 * head]
                row.launches += len(run(corpus.rotary_embedding, positions, q, k, *options, arch=row.arch))
                rotary_reference.rotary_embedding(
                    positions, want[:, : 4 * head], want[:, 4 * head : 5 * head], *options
                )
                row.add(packed, want)


def softmax(row: Row, dtype: torch.dtype) -> None:
    for length in LENGTHS:
        for kind in INPUTS if length < 5000 else INPUTS[:1]:
            x = numbers(kind, dtype, 2, length)
            got = torch.empty_like(x)
            row.launches += len(run(corpus.softmax, got, x, arch=row.arch))
            row.add(got, x.double().softmax(-1).to(dtype))


def topk(row: Row, dtype: torch.dtype) -> None:
    for length in (64, 128, 256, 1000, 4096):
        for k in (1, 8, 50):
            x = (numbers("normal", torch.float32, 3, length) * 2).round().to(dtype)
            got, want = (torch.empty(3, k, dtype=dtype) for _ in range(2))
            where, there = (torch.empty(3, k, dtype=torch.int32) for _ in range(2))
            row.launches += len(run(corpus.topk, got, where, x, arch=row.arch))
            softmax_reference.topk(want, there, x)
            assert torch.equal(where, there), f"{row}: other indices for {length}, {k}"
            row.add(got, want)


def embedding(row: Row, dtype: torch.dtype) -> None:
    for width in WIDTHS:
        weight, indices = numbers("normal", dtype, 40, width), torch.arange(-5, 60, 3)
        got, want = (torch.empty(len(indices), width, dtype=dtype) for _ in range(2))
        row.launches += len(run(corpus.embedding, got, indices, weight, 10, arch=row.arch))
        embedding_reference.embedding(want, indices, weight, 10)
        row.add(got, want)


SWEEPS: dict[str, Callable[[Row, torch.dtype], None]] = {
    "silu_and_mul": gated("silu_and_mul"),
    "mul_and_silu": gated("mul_and_silu"),
    "gelu_and_mul": gated("gelu_and_mul"),
    "gelu_tanh_and_mul": gated("gelu_tanh_and_mul"),
    "fatrelu_and_mul": gated("fatrelu_and_mul", (0.5,)),
    "relu_squared": gated("relu_squared", pairs=1),
    "gelu_new": gated("gelu_new", pairs=1),
    "gelu_fast": gated("gelu_fast", pairs=1),
    "gelu_quick": gated("gelu_quick", pairs=1),
    "silu_and_mul_quant": static_fp8,
    "silu_and_mul_per_block_quant": block_fp8,
    "rotary_embedding": rotary,
    "softmax": softmax,
    "topk": topk,
    "embedding": embedding,
}


def rows(names: list[str]) -> Iterator[Row]:
    for name in names:
        for label, dtype in DTYPES.items():
            if label == "f32" and "gelu" in name:
                continue  # in the tail 1 + tanh is a few units of 1: units of the result say nothing there
            for arch in ARCHS:
                row = Row(name, label, arch)
                SWEEPS[name](row, dtype)
                print(row, file=sys.stderr, flush=True)
                yield row


def main(names: list[str]) -> None:
    for row in rows(names or list(SWEEPS)):
        kept = json.loads(RESULT.read_text()) if RESULT.is_file() else []
        kept = [r for r in kept if (r["op"], r["dtype"], r["arch"]) != (row.op, row.dtype, row.arch)] + [asdict(row)]
        kept.sort(key=lambda r: (r["op"], r["dtype"], r["arch"]))
        RESULT.write_text("[\n" + ",\n".join(json.dumps(r) for r in kept) + "\n]\n")


if __name__ == "__main__":
    main(sys.argv[1:])
