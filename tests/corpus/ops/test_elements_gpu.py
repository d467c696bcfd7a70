"""Activations, rotary embedding, embedding, softmax and top-k on a GPU, against torch; to the bit where promised."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch
from torch.nn import functional as F

from porter import corpus
from tests.corpus.element_cases import ELEMENTS, HALVES, ONCE, WIDTHS
from tests.corpus.inputs import E4M3
from tests.corpus.numerics import ulps
from tests.corpus.on_gpu import TOKENS, grid, label, repeat, sweep

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]


def rows(tokens, width, dtype, scale=3.0):
    return (torch.randn(tokens, width, device="cuda") * scale).to(dtype)


def same_bits(a, b):
    """Equal to the bit, but for the payload of NaN."""
    words = torch.int16 if a.element_size() == 2 else torch.int32
    nan = a.isnan()
    return torch.equal(nan, b.isnan()) and torch.equal(a.view(words)[~nan], b.view(words)[~nan])


@pytest.mark.parametrize(("op", "dtype", "length"), grid(ELEMENTS), ids=label)
def test_elements(op, dtype, length, found):
    found(sweep(op, dtype, length))


@pytest.mark.parametrize(("op", "dtype", "length"), grid(ONCE), ids=label)
def test_elements_rounded_once(op, dtype, length):
    sweep(op, dtype, length)


@pytest.mark.parametrize("op", ELEMENTS, ids=label)
def test_elements_come_out_the_same_again(op):
    repeat(op)


@pytest.mark.parametrize("dtype", HALVES)
def test_silu_of_every_16_bit_number_equals_eager(dtype):
    gate = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32, device="cuda").to(torch.int16).view(dtype)
    for up in (1.0, -3.140625, 0.0078125):
        x = torch.cat([gate, torch.full_like(gate, up)])[None]
        out = torch.empty(1, 1 << 16, dtype=dtype, device="cuda")
        corpus.silu_and_mul(out, x)
        assert same_bits(out[0], F.silu(gate) * torch.full_like(gate, up))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("width", WIDTHS)
def test_silu_and_mul_equals_eager(dtype, width):
    torch.manual_seed(width)
    for tokens in TOKENS:
        for scale in (3.0, 1e-4, 1e4):
            x = rows(tokens, 2 * width, dtype, scale)
            out = torch.empty(tokens, width, dtype=dtype, device="cuda")
            corpus.silu_and_mul(out, x)
            assert same_bits(out, F.silu(x[:, :width]) * x[:, width:])
            corpus.mul_and_silu(out, x)
            assert same_bits(out, x[:, :width] * F.silu(x[:, width:]))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("width", [64, 769, 4096, 14336])
def test_silu_and_mul_quant_is_the_pair_of_kernels(dtype, width):
    scale = torch.tensor([0.021], device="cuda")
    for tokens in TOKENS:
        x = rows(tokens, 2 * width, dtype)
        out = torch.empty(tokens, width, dtype=E4M3, device="cuda")
        corpus.silu_and_mul_quant(out, x, scale)
        y = (F.silu(x[:, :width]) * x[:, width:]).float() * scale.reciprocal()
        want = y.clamp(-448, 448).to(E4M3)
        assert torch.equal(out.view(torch.uint8), want.view(torch.uint8))


@pytest.mark.parametrize("group", [64, 128])
def test_scales_of_groups_by_tokens(group):
    """Both ways to give transposed scales have the scales of rows, to the bit."""
    for tokens in (1, 7, 129, 1024):
        for width in (128, 2048, 2944):
            x, groups = rows(tokens, 2 * width, torch.bfloat16), width // group
            outs = [torch.empty(tokens, width, dtype=E4M3, device="cuda") for _ in range(3)]
            by_row, memory, view = (
                torch.empty(*shape, device="cuda") for shape in ((tokens, groups), (groups, tokens), (groups, tokens))
            )
            for out, scales, transposed in zip(outs, (by_row, memory, view.t()), (False, True, True), strict=True):
                corpus.silu_and_mul_per_block_quant(out, x, scales, group, None, transposed)
            assert torch.equal(memory.t(), by_row) and torch.equal(view.t(), by_row)
            assert all(torch.equal(o.view(torch.uint8), outs[0].view(torch.uint8)) for o in outs)


@pytest.mark.parametrize("dtype", HALVES)
def test_softmax_in_float32_and_of_the_chosen(dtype):
    x = rows(129, 4096, dtype)
    out = torch.empty(129, 4096, device="cuda")
    corpus.softmax(out, x)
    torch.testing.assert_close(out.double(), x.double().softmax(-1), rtol=4e-6, atol=1e-37)
    values, indices = torch.empty(129, 8, device="cuda"), torch.empty(129, 8, dtype=torch.int64, device="cuda")
    corpus.topk(values, indices, x, True)
    want = x.double().sort(dim=-1, descending=True, stable=True)
    assert torch.equal(indices, want.indices[:, :8])
    torch.testing.assert_close(values.double(), want.values[:, :8].softmax(-1), rtol=2e-6, atol=0)


def test_softmax_of_rows_for_a_cluster_is_close_for_16_bits():
    x = rows(3, 262144, torch.bfloat16)
    out = torch.empty_like(x)
    corpus.softmax(out, x)
    distance = ulps(out, x.double().softmax(-1).bfloat16())
    assert distance.max() <= 1 and (distance > 0).double().mean() < 2e-3


def test_more_than_two_to_the_31_elements():
    width = 14336
    tokens = (1 << 31) // (2 * width) + 3
    x = torch.zeros(tokens, 2 * width, dtype=torch.bfloat16, device="cuda")
    x[-1] = rows(1, 2 * width, torch.bfloat16)[0]
    out = torch.empty(tokens, width, dtype=torch.bfloat16, device="cuda")
    corpus.silu_and_mul(out, x)
    assert same_bits(out[-1], F.silu(x[-1, :width]) * x[-1, width:]) and not out[:-1].any()


def test_in_a_graph_and_through_torch_compile():
    x = rows(128, 2 * 2048, torch.bfloat16)
    out, again = (torch.empty(128, 2048, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    corpus.silu_and_mul(out, x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3):
            corpus.silu_and_mul(again, x)
    again.zero_()
    graph.replay()
    assert torch.equal(out, again)

    @torch.compile(fullgraph=True)
    def block(x):
        y = torch.empty(x.shape[0], x.shape[1] // 2, dtype=x.dtype, device=x.device)
        torch.ops.porter.silu_and_mul(y, x)
        return y + 1

    assert torch.equal(block(x), out + 1)
