"""Mixture-of-experts operations on a GPU: the whole grid to the bit, every way to launch, again and in graphs."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.runtime import tuning
from porter.corpus.runtime.device import device_of
from porter.corpus.runtime.ops import OPS
from tests.corpus.ops.moe_inputs import align_arguments, bits, distinct, filled, ids, local_numbers, permute_arguments
from tests.corpus.ops.test_moe_dispatch import arguments

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

TOKENS = (0, 1, 7, 64, 129, 1024, 8192)
BF16, E4M3 = torch.bfloat16, torch.float8_e4m3fn


def on_gpu(args):
    return [a.cuda() if torch.is_tensor(a) else a for a in args]


def same(name, args, launch=None):
    """An op and its fallback on copies of the same arguments: all tensors equal to the bit; what the op wrote."""
    got, want = ([a.clone() if torch.is_tensor(a) else a for a in on_gpu(args)] for _ in range(2))
    (launch or getattr(corpus, name))(*got)
    OPS[name].fallback(*want)
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        if torch.is_tensor(a):
            assert torch.equal(bits(a), bits(b)), (name, i)
    return got


def candidates(name, args):
    """(choices, launcher) of everything that the tuner would measure, question by question."""
    op = OPS[name]
    args = op.bind(tuple(on_gpu(args)), {})
    with tuning.forced({}) as questions:
        op.plan(device_of(next(a for a in args if torch.is_tensor(a))), *args)
    for question in questions:
        for choice in question.candidates():
            with tuning.forced(choice):
                yield choice, op.launcher(device_of(next(a for a in args if torch.is_tensor(a))), args)


def routed(name, x, k, *options):
    """Experts equal to the reference's but where two choices are as good as equal, weights to 3e-6."""
    tokens = x.shape[0]

    def outputs():
        found = [filled(tokens, k, dtype=torch.float32), filled(tokens, k)]
        return on_gpu(found if name == "grouped_topk" else [*found, filled(tokens, k)])

    got, want = outputs(), outputs()
    options = on_gpu(options)
    getattr(corpus, name)(*got, x, *options)
    OPS[name].fallback(*OPS[name].bind((*want, x, *options), {}))
    other = (got[1] != want[1]).any(-1)
    assert other.sum() <= 2e-3 * max(tokens, 500), int(other.sum())
    torch.testing.assert_close(got[0].sort(-1).values, want[0].sort(-1).values, rtol=5e-6, atol=1e-6)
    torch.testing.assert_close(got[0][~other], want[0][~other], rtol=5e-6, atol=1e-9)
    return got


@pytest.mark.parametrize("experts", [8, 16, 60, 72, 128, 160, 256, 384, 512, 1024])
@pytest.mark.parametrize("dtype", [BF16, torch.float16, torch.float32])
def test_routing(experts, dtype):
    bias = torch.randn(experts) * 0.1
    for tokens in TOKENS:
        x = torch.randn(tokens, experts, device="cuda").to(dtype)
        for k in (1, 2, 6, 8) if tokens != 64 else range(1, min(experts, 16) + 1):
            routed("topk_softmax", x, k, True)
            routed("topk_sigmoid", x, k, True, bias, 2.5, None)
            routed("topk_softplus_sqrt", x, k, True, 1.5, bias)
            routed("topk_softmax", x, k, False, bias, torch.arange(tokens) % 3 == 0)
            routed("llama4_topk", x, k)
        for groups, kept in ((8, 4), (4, 2), (1, 1)):
            if experts % groups == 0 and experts // groups >= 2:
                routed("grouped_topk", x, min(8, kept * experts // groups), groups, kept, True, 2.5, bias, 1)


def test_routing_of_ties_is_exact():
    for tokens in TOKENS:
        x = (torch.randn(tokens, 256, device="cuda") * 2).round()
        for name, options in (("topk_softmax", (True,)), ("topk_sigmoid", (True,)), ("llama4_topk", ())):
            got = routed(name, x, 8, *options)
            order = x.sort(dim=-1, descending=True, stable=True).indices[:, :8]
            assert torch.equal(got[1].long(), order)


def test_every_spread_of_a_routing():
    x = (torch.randn(999, 256) * 2).round()
    args = filled(999, 8, dtype=torch.float32), filled(999, 8), filled(999, 8), x, True, None, None
    want = x.sort(dim=-1, descending=True, stable=True).indices[:, :8].cuda()
    for choice, launch in candidates("topk_softmax", args):
        got = on_gpu(args)
        launch(*got)
        assert torch.equal(got[1].long(), want), choice


@pytest.mark.parametrize("experts", [8, 60, 128, 256, 512, 1024])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_align(experts, index):
    for tokens in TOKENS:
        for k in (1, 6, 8):
            for block in (1, 16, 64, 128):
                found = ids(-2, experts + 3, tokens, k, dtype=index)
                same("moe_align_block_size", align_arguments(found, experts, block, None, True))
                same("moe_align_block_size", align_arguments(found, experts, block, local_numbers(experts, 5)))
        hot = torch.full((tokens, 8), experts - 1, dtype=index)
        same("moe_align_block_size", align_arguments(hot, experts, 64))


@pytest.mark.parametrize("tokens", [1, 128, 8192])
def test_every_spread_of_a_sort(tokens):
    args = align_arguments(distinct(tokens, 128, 8), 128, 64, None, True)
    for choice, launch in candidates("moe_align_block_size", args):
        for _ in range(3):
            same("moe_align_block_size", args, launch)
        assert choice


@pytest.mark.parametrize("tokens", TOKENS)
def test_what_grouped_gemms_are_told(tokens):
    for experts in (8, 128, 257):
        found = ids(-1, experts + 1, tokens, 8)
        sizes, orders = [filled(experts, 3) for _ in range(2)], [filled(tokens * 8) for _ in range(2)]
        offsets = filled(experts + 1), filled(experts + 1)
        same("get_cutlass_moe_mm_data", (found, offsets[0], *sizes, *orders, experts, 96, 128, offsets[1], True, False))
        most = max(tokens, 1)
        counts = torch.randint(0, most + 1, (experts,), dtype=torch.int32)
        length = experts * -(-most // 64) * 64
        same("batched_moe_align_block_size", (most, 64, counts, filled(length), filled(length // 64), filled(1)))


@pytest.mark.parametrize("hidden", [16, 77, 2048, 2880, 7168])
@pytest.mark.parametrize("tokens", TOKENS)
def test_rows_to_experts_and_back(hidden, tokens):
    x, found, local = torch.randn(tokens, hidden).to(BF16), ids(-1, 130, tokens, 8), local_numbers(128, 40)
    for here, numbers in ((128, None), (40, local)):
        got = same("moe_permute", permute_arguments(x, found, 128, here, numbers))
        weights, out = torch.rand(tokens, 8), filled(tokens, hidden, dtype=BF16)
        same("moe_unpermute", (got[7], weights, got[9], got[8], 8, out))
    rows, inverse, shared = got[7], got[9], torch.randn(tokens, hidden).to(BF16)
    for w in (None, weights):
        for s in (None, shared):
            same("moe_combine", (out, rows, inverse, w, s))
    if tokens <= 1024:
        same("moe_sum", (torch.randn(tokens, 8, hidden).to(BF16), out, None, None))
        same("moe_sum", (torch.randn(tokens, 8, hidden).to(BF16), out, found, local))
    same("shuffle_rows", (x, ids(-1, tokens + 1, 3 * tokens), filled(3 * tokens, hidden, dtype=BF16)))


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("padding", [1, 128])
def test_dispatch(tokens, padding):
    x, found = torch.randn(tokens, 384).to(E4M3), distinct(tokens, 256, 8)
    same("moe_dispatch", arguments(x, found, 256, 64, 32, padding))
    for choice, launch in candidates("moe_dispatch", arguments(x, found, 256, 64, 32, padding)) if tokens else ():
        assert choice
        same("moe_dispatch", arguments(x, found, 256, 64, 32, padding), launch)


@pytest.mark.parametrize("tokens", [128, 1024])
def test_in_a_graph_and_again(tokens):
    """The same bits from every replay, with new ids in the same memory."""
    args = on_gpu(arguments(torch.randn(tokens, 384).to(E4M3), distinct(tokens, 128, 8), 128, 128))
    corpus.moe_dispatch(*args)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        corpus.moe_dispatch(*args)
    for seed in range(20):
        args[4].copy_(distinct(tokens, 128, 8, seed=seed))
        graph.replay()
        want = [a.clone() if torch.is_tensor(a) else a for a in args]
        OPS["moe_dispatch"].fallback(*want)
        for a, b in zip(args, want, strict=True):
            assert not torch.is_tensor(a) or torch.equal(bits(a), bits(b))


def test_more_than_2_to_the_31_elements():
    """Rows far apart in one tensor: the last ones are right."""
    tokens, hidden, k = 40000, 7168, 8  # 2.3e9 elements
    x, found = torch.randn(tokens, hidden, device="cuda").to(BF16), distinct(tokens, 64, k).cuda()
    args = on_gpu(permute_arguments(x[:0], found[:0], 64, 64))
    out = torch.empty(tokens * k, hidden, dtype=BF16, device="cuda")
    order = torch.arange(tokens * k, device="cuda", dtype=torch.int32).view(tokens, k)
    inverse, source = torch.empty_like(order), torch.empty_like(order).view(-1)
    corpus.moe_permute(x, found, order, None, 64, 64, k, out, args[8], inverse, source)
    for part in (slice(0, 200), slice(tokens * k - 200, tokens * k)):
        assert torch.equal(out[part], x[source[part].long() // k])
    back = torch.empty_like(x)
    corpus.moe_unpermute(out, torch.full((tokens, k), 0.125, device="cuda"), inverse, args[8], k, back)
    assert torch.equal(back, x)
