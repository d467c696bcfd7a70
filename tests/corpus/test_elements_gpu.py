"""Activations, rotary embedding, embedding, softmax and top-k on a GPU, against torch; to the bit where promised."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch
from torch.nn import functional as F

from porter import corpus
from porter.corpus.ops import activation_reference as activations
from porter.corpus.ops import embedding_reference, rotary_reference
from porter.corpus.ops import softmax_reference as selections
from tests.corpus.test_activations import ulps

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
HALVES = (torch.bfloat16, torch.float16)
DTYPES = (*HALVES, torch.float32)
TOKENS = (0, 1, 2, 3, 7, 16, 31, 64, 127, 128, 129, 256, 1024, 4096)
WIDTHS = (64, 96, 128, 576, 768, 769, 1536, 2048, 2880, 4096, 5125, 7168, 13824, 14336)


def rows(tokens, width, dtype, scale=3.0):
    return (torch.randn(tokens, width, device="cuda") * scale).to(dtype)


def same_bits(a, b):
    """Equal to the bit, but for the payload of NaN."""
    words = torch.int16 if a.element_size() == 2 else torch.int32
    nan = a.isnan()
    return torch.equal(nan, b.isnan()) and torch.equal(a.view(words)[~nan], b.view(words)[~nan])


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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "options"),
    [("gelu_and_mul", ()), ("gelu_tanh_and_mul", ()), ("fatrelu_and_mul", (0.5,)), ("silu_and_mul", ()),
     ("silu_and_mul_with_clamp", (2.0, 1.5, 0.25)), ("swigluoai_and_mul", (1.702, 2.0))],
)  # fmt: skip
def test_gated_activations_are_within_a_unit(name, options, dtype):
    torch.manual_seed(1)
    for tokens in (1, 7, 129):
        for width in (96, 769, 2880, 8192):
            x = rows(tokens, 2 * width, dtype)
            out, want = (torch.empty(tokens, width, dtype=dtype, device="cuda") for _ in range(2))
            getattr(corpus, name)(out, x, *options)
            getattr(activations, name)(want, x, *options)
            if dtype == torch.float32:
                torch.testing.assert_close(out, want, rtol=2e-6, atol=2e-6)
            else:
                distance = ulps(out, want)
                assert distance.max() <= 1 and (distance > 0).double().mean() < 1e-3


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("width", [64, 769, 4096, 14336])
def test_silu_and_mul_quant_is_the_pair_of_kernels(dtype, width):
    scale = torch.tensor([0.021], device="cuda")
    for tokens in TOKENS:
        x = rows(tokens, 2 * width, dtype)
        out = torch.empty(tokens, width, dtype=torch.float8_e4m3fn, device="cuda")
        corpus.silu_and_mul_quant(out, x, scale)
        y = (F.silu(x[:, :width]) * x[:, width:]).float() * scale.reciprocal()
        want = y.clamp(-448, 448).to(torch.float8_e4m3fn)
        assert torch.equal(out.view(torch.uint8), want.view(torch.uint8))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("group", [64, 128])
@pytest.mark.parametrize("transposed", [False, True])
def test_silu_and_mul_per_block_quant(dtype, group, transposed):
    torch.manual_seed(group)
    for tokens in TOKENS[1:]:
        for width in (128, 2048, 2944, 14336):
            x = rows(tokens, 2 * width, dtype)
            shape = (width // group, tokens) if transposed else (tokens, width // group)
            out, want = (torch.empty(tokens, width, dtype=torch.float8_e4m3fn, device="cuda") for _ in range(2))
            scales, wanted = (torch.empty(shape, device="cuda") for _ in range(2))
            corpus.silu_and_mul_per_block_quant(out, x, scales, group, None, transposed)
            activations.silu_and_mul_per_block_quant(want, x, wanted, group, None, transposed)
            torch.testing.assert_close(scales, wanted, rtol=1e-6, atol=0)
            assert (out.view(torch.uint8) == want.view(torch.uint8)).double().mean() > 0.999


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("neox", [True, False])
@pytest.mark.parametrize("head", [64, 80, 96, 128, 192, 256])
def test_rotary_embedding(dtype, neox, head):
    torch.manual_seed(head)
    for tokens in TOKENS:
        for rot, offset, cache in ((head, 0, dtype), (head // 2, head // 4, torch.float32)):
            packed = rows(tokens, 42 * head, dtype)
            want = packed.clone()
            angles = torch.randn(512, rot // 2, device="cuda") * 3
            table = torch.cat([angles.cos(), angles.sin()], -1).to(cache)
            positions = torch.randint(0, 512, (tokens,), device="cuda")
            for t, rotate in ((packed, corpus.rotary_embedding), (want, rotary_reference.rotary_embedding)):
                rotate(positions, t[:, : 32 * head], t[:, 32 * head : 40 * head], head, table, neox, offset, tokens > 9)
            assert same_bits(packed, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 64, 77, 128, 1000, 4096, 5125, 32768, 65536, 131072, 151936])
def test_softmax(dtype, length):
    torch.manual_seed(length)
    for tokens in (1, 3, 129, 300):
        x = rows(tokens, length, dtype)
        want = x.double().softmax(-1)
        out = torch.empty_like(x)
        corpus.softmax(out, x)
        if dtype == torch.float32:
            torch.testing.assert_close(out.double(), want, rtol=4e-6, atol=1e-37)
        else:
            distance = ulps(out, want.to(dtype))
            assert distance.max() <= 1 and (distance > 0).double().mean() < 1e-3
        corpus.softmax(x, x)
        assert same_bits(x, out)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["relu_squared", "gelu_new", "gelu_fast", "gelu_quick"])
def test_pointwise_activations(name, dtype):
    for tokens, width in ((0, 64), (1, 96), (7, 769), (129, 2880), (1024, 8192)):
        x = rows(tokens, width, dtype)
        out, want = torch.empty_like(x), torch.empty_like(x)
        getattr(corpus, name)(out, x)
        getattr(activations, name)(want, x)
        if dtype == torch.float32:
            torch.testing.assert_close(out, want, rtol=2e-6, atol=2e-6)
        elif tokens:
            distance = ulps(out, want)
            assert distance.max() <= 2 and (distance > 0).double().mean() < 1e-3


@pytest.mark.parametrize("neox", [True, False])
@pytest.mark.parametrize(("head", "rot", "offset"), [(64, 64, 0), (128, 128, 0), (192, 64, 128), (80, 40, 20)])
def test_rotary_embedding_fp8(neox, head, rot, offset):
    for tokens in TOKENS:
        q, k = rows(tokens, 32 * head, torch.bfloat16), rows(tokens, 8 * head, torch.bfloat16)
        angles = torch.randn(512, rot // 2, device="cuda") * 3
        table = torch.cat([angles.cos(), angles.sin()], -1)
        positions = torch.randint(0, 512, (tokens,), device="cuda")
        outs, wanted = ([torch.empty_like(t, dtype=torch.float8_e4m3fn) for t in (q, k)] for _ in range(2))
        for got, turn in ((outs, corpus.rotary_embedding_fp8), (wanted, rotary_reference.rotary_embedding_fp8)):
            turn(*got, positions, q, k, head, table, neox, 0.5, 40.0, offset)
        for got, want in zip(outs, wanted, strict=True):
            assert torch.equal(got.view(torch.uint8), want.view(torch.uint8))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [64, 77, 128, 256, 1000, 4096, 32768])
def test_topk(dtype, length):
    for tokens in (1, 3, 129, 1024):
        x = (rows(tokens, length, torch.float32) * 2).round().to(dtype)
        for k in (1, 8, 50):
            values, want = (torch.empty(tokens, k, dtype=dtype, device="cuda") for _ in range(2))
            indices, there = (torch.empty(tokens, k, dtype=torch.int32, device="cuda") for _ in range(2))
            corpus.topk(values, indices, x)
            selections.topk(want, there, x)
            assert torch.equal(indices, there) and torch.equal(values, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_embedding(dtype, index):
    for width in (64, 769, 2880, 4096):
        weight = rows(1000, width, dtype)
        for tokens in TOKENS:
            indices = torch.randint(-100, 1500, (tokens,), device="cuda").to(index)
            out, want = (torch.empty(tokens, width, dtype=dtype, device="cuda") for _ in range(2))
            corpus.embedding(out, indices, weight, 200, 1100)
            embedding_reference.embedding(want, indices, weight, 200, 1100)
            assert torch.equal(out, want)


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
