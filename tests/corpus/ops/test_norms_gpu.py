"""The norms of the corpus on a GPU, over dtypes, sizes, strides and kinds of numbers; in graphs and streams."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.norm import reference
from tests.corpus.norm_cases import EPS, NORMS, TWICE
from tests.corpus.numerics import ulps
from tests.corpus.on_gpu import grid, label, repeat, sweep

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
PLAIN = tuple(op for op in NORMS if not op.name.endswith("_quant"))


def rows(tokens, hidden, dtype, scale=1.0):
    return (torch.randn(tokens, hidden, device="cuda") * scale).to(dtype)


def compare(got, want):
    distance = ulps(got, want)
    assert distance.max() <= 1 and (distance == 0).double().mean() >= 0.999


@pytest.mark.parametrize(("op", "dtype", "length"), grid(PLAIN), ids=label)
def test_norms(op, dtype, length, found):
    found(sweep(op, dtype, length))


@pytest.mark.parametrize(("op", "dtype", "length"), grid(TWICE), ids=label)
def test_norms_rounded_twice(op, dtype, length):
    sweep(op, dtype, length)


@pytest.mark.parametrize("op", NORMS, ids=label)
def test_norms_come_out_the_same_again(op):
    repeat(op)


def test_unaligned_and_strided_rows():
    base, w = rows(1, 64 * 4104 + 1, torch.bfloat16)[0], rows(1, 4096, torch.bfloat16)[0]
    for offset, stride in ((0, 4104), (1, 4104), (0, 4097), (0, 4096), (1, 4096), (4, 4100)):
        x = torch.as_strided(base, (60, 4096), (stride, 1), offset)
        out, want = torch.empty(60, 4096, device="cuda").bfloat16(), torch.empty(60, 4096, device="cuda").bfloat16()
        for _ in range(2):  # the second from the table
            corpus.rms_norm(out.zero_(), x, w, EPS)
            reference.rms_norm(want, x, w, EPS)
            compare(out, want)


def test_wrong_arguments_raise_before_a_launch():
    x, w = rows(4, 64, torch.bfloat16), rows(1, 64, torch.bfloat16)[0]
    with pytest.raises(ValueError, match="weight has shape"):
        corpus.rms_norm(torch.empty_like(x), x, w[:32], EPS)
    corpus.rms_norm(torch.empty_like(x), x, w, EPS)
    with pytest.raises(ValueError, match="weight has shape"):  # also when the launcher is in the table
        corpus.rms_norm(torch.empty_like(x), x, w[:32], EPS)
    with pytest.raises(ValueError, match="dtype"):
        corpus.rms_norm(torch.empty_like(x), x, w.half(), EPS)


def test_in_a_graph_and_on_another_stream():
    x, w = rows(32, 4096, torch.bfloat16), rows(1, 4096, torch.bfloat16)[0]
    out, want = torch.empty_like(x), torch.empty_like(x)
    reference.rms_norm(want, x, w, EPS)
    corpus.rms_norm(out, x, w, EPS)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3):
            corpus.rms_norm(out, x, w, EPS)
    out.zero_()
    graph.replay()
    compare(out, want)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        corpus.rms_norm(out.zero_(), x, w, EPS)
    side.synchronize()
    compare(out, want)


def test_torch_compile():
    def layer(x, r, w):
        corpus.fused_add_rms_norm(x, r, w, EPS)
        return x * 2

    w = rows(1, 4096, torch.bfloat16)[0]
    x, r = rows(8, 4096, torch.bfloat16), rows(8, 4096, torch.bfloat16)
    want = layer(x.clone(), r.clone(), w)
    got = torch.compile(layer, fullgraph=True)(x.clone(), r.clone(), w)
    assert torch.equal(got, want)


def test_more_than_2_to_the_31_elements():
    hidden = 8192
    tokens = 2**31 // hidden + 1
    if torch.cuda.mem_get_info()[0] < 3 * tokens * hidden * 2:
        pytest.skip("not enough memory")
    x = torch.zeros(tokens, hidden, device="cuda", dtype=torch.bfloat16)
    x[-1] = rows(1, hidden, torch.bfloat16)
    w = rows(1, hidden, torch.bfloat16)[0]
    out, want = torch.empty_like(x), torch.empty_like(x[-1:])
    corpus.rms_norm(out, x, w, EPS)
    reference.rms_norm(want, x[-1:], w, EPS)
    compare(out[-1:], want)
    assert not out[:-1].any()


def test_heads_of_more_than_2_to_the_31_elements():
    head, heads = 128, 48
    tokens = 2**31 // (head * heads) + 2
    if torch.cuda.mem_get_info()[0] < 3 * tokens * heads * head * 2:
        pytest.skip("not enough memory")
    packed = torch.zeros(tokens, heads * head, device="cuda", dtype=torch.bfloat16)
    packed[-1] = rows(1, heads * head, torch.bfloat16)
    wq, wk = rows(2, head, torch.bfloat16)
    want = packed[-1:].clone()
    corpus.qk_norm(packed[:, : 32 * head], packed[:, 32 * head : 40 * head], wq, wk, EPS)
    reference.qk_norm(want[:, : 32 * head], want[:, 32 * head : 40 * head], wq, wk, EPS)
    compare(packed[-1:], want)
    assert not packed[:-1].any()


def test_runs_give_the_same_bits_whatever_the_other_rows_are():
    x, w = rows(300, 4096, torch.bfloat16), rows(1, 4096, torch.bfloat16)[0]
    first = torch.empty_like(x)
    corpus.rms_norm(first, x, w, EPS)
    for _ in range(20):
        again = torch.empty_like(x)
        corpus.rms_norm(again, x, w, EPS)
        assert torch.equal(first, again)
