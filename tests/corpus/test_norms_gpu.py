"""The norms of the corpus on a GPU, over dtypes, sizes, strides and unaligned addresses; in graphs and streams."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops import norm_reference as reference
from tests.corpus.test_norms import EPS, agree

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
TOKENS = (0, 1, 2, 3, 7, 16, 31, 64, 127, 128, 129, 256, 1024, 4096)
HIDDEN = (64, 96, 128, 576, 768, 769, 1536, 2048, 2880, 4096, 5120, 5125, 7168, 8192, 16384, 32768)


def rows(tokens, hidden, dtype, scale=1.0):
    return (torch.randn(tokens, hidden, device="cuda") * scale).to(dtype)


def compare(got, want, dtype, units=1):
    if dtype == torch.float32:
        torch.testing.assert_close(got, want, rtol=2e-6, atol=1e-6)
    else:
        agree(got.cpu(), want.cpu(), units=units)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hidden", HIDDEN)
def test_rms_norm_and_fused_add(dtype, hidden):
    torch.manual_seed(hidden)
    w = rows(1, hidden, dtype)[0]
    for tokens in TOKENS:
        x, r = rows(tokens, hidden, dtype), rows(tokens, hidden, dtype)
        out, want = torch.empty_like(x), torch.empty_like(x)
        corpus.rms_norm(out, x, w, EPS)
        reference.rms_norm(want, x, w, EPS)
        compare(out, want, dtype)
        for profile in ("vllm", "flashinfer"):
            a, b, want_a, want_b = x.clone(), r.clone(), x.clone(), r.clone()
            corpus.fused_add_rms_norm(a, b, w, EPS, profile=profile)
            reference.fused_add_rms_norm(want_a, want_b, w, EPS, profile=profile)
            assert torch.equal(b, want_b)
            compare(a, want_a, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("head", [64, 80, 96, 128, 192, 256])
def test_qk_norm(dtype, head):
    torch.manual_seed(head)
    wq, wk = rows(2, head, dtype)
    for tokens in TOKENS:
        packed = rows(tokens, 48 * head, dtype)
        want = packed.clone()
        corpus.qk_norm(packed[:, : 32 * head], packed[:, 32 * head : 40 * head].view(tokens, 8, head), wq, wk, EPS)
        reference.qk_norm(want[:, : 32 * head], want[:, 32 * head : 40 * head], wq, wk, EPS)
        compare(packed, want, dtype)


def test_unaligned_and_strided_rows():
    base, w = rows(1, 64 * 4104 + 1, torch.bfloat16)[0], rows(1, 4096, torch.bfloat16)[0]
    for offset, stride in ((0, 4104), (1, 4104), (0, 4097), (0, 4096), (1, 4096), (4, 4100)):
        x = torch.as_strided(base, (60, 4096), (stride, 1), offset)
        out, want = torch.empty(60, 4096, device="cuda").bfloat16(), torch.empty(60, 4096, device="cuda").bfloat16()
        for _ in range(2):  # the second from the table
            corpus.rms_norm(out.zero_(), x, w, EPS)
            reference.rms_norm(want, x, w, EPS)
            compare(out, want, torch.bfloat16)


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
    compare(out, want, torch.bfloat16)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        corpus.rms_norm(out.zero_(), x, w, EPS)
    side.synchronize()
    compare(out, want, torch.bfloat16)


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
    compare(out[-1:], want, torch.bfloat16)
    assert not out[:-1].any()


def test_runs_give_the_same_bits_whatever_the_other_rows_are():
    x, w = rows(300, 4096, torch.bfloat16), rows(1, 4096, torch.bfloat16)[0]
    first = torch.empty_like(x)
    corpus.rms_norm(first, x, w, EPS)
    for _ in range(20):
        again = torch.empty_like(x)
        corpus.rms_norm(again, x, w, EPS)
        assert torch.equal(first, again)
