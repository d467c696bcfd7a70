"""Quantisation of the corpus on a GPU: the whole grid to the bit, ways to launch, layouts of scales, streams."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.runtime import tuning
from porter.corpus.runtime.device import device_of
from porter.corpus.runtime.ops import OPS
from tests.corpus.inputs import E4M3
from tests.corpus.on_gpu import grid, label, repeat, sweep
from tests.corpus.quant_cases import EPS, QUANT

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]


@pytest.mark.parametrize(("op", "dtype", "length"), grid(QUANT), ids=label)
def test_quantisation(op, dtype, length, found):
    found(sweep(op, dtype, length))


@pytest.mark.parametrize("op", QUANT, ids=label)
def test_quantisation_comes_out_the_same_again(op):
    if op.name != "per_token_group_fp8_quant_packed":  # whose scales lie in columns: the layouts are tried below
        repeat(op)


def bits(t):
    return t.clone(memory_format=torch.contiguous_format).view(torch.uint8)


def candidates(name, *args):
    """(choice, launcher) of everything that the tuner would measure."""
    op = OPS[name]
    args = op.bind(args, {})
    with tuning.forced({}) as questions:
        op.plan(device_of(args[0]), *args)
    for choice in questions[0].candidates():
        with tuning.forced(choice):
            yield choice, op.launcher(device_of(args[0]), args)


@pytest.mark.parametrize("shape", [(1, 4096), (7, 2880), (128, 4096), (1024, 7168), (8192, 4096)])
def test_every_way_to_find_one_scale(shape):
    """One launch with a barrier, one block, two launches: all candidates, twice, and in a graph."""
    x = torch.randn(shape, device="cuda").bfloat16()
    want, scale = torch.empty(shape, dtype=E4M3, device="cuda"), torch.full((1,), float("nan"), device="cuda")
    OPS["dynamic_scaled_fp8_quant"].fallback(want, x, scale)
    kinds = set()
    for choice, launch in candidates("dynamic_scaled_fp8_quant", want, x, scale):
        got, found = torch.zeros_like(want), torch.full((1,), 1e9, device="cuda")
        for _ in range(2):
            launch(got, x, found)
        assert torch.equal(bits(got), bits(want)) and torch.equal(found, scale), choice
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch(got, x, found)
        got.zero_()
        found.fill_(-1.0)
        graph.replay()
        assert torch.equal(bits(got), bits(want)) and torch.equal(found, scale), choice
        kinds.add((choice["launches"], choice["most"] > 1))
    assert {(2, True), (1, True)} <= kinds or shape[0] == 1


def test_barriers_of_several_streams_do_not_meet():
    """Launches of one kernel side by side each have a barrier of their own."""
    streams, tensors = [torch.cuda.Stream() for _ in range(4)], []
    for i in range(4):
        x = torch.randn(64, 4096, device="cuda").bfloat16() * (i + 1)
        tensors.append((torch.empty(64, 4096, dtype=E4M3, device="cuda"), x, torch.empty(1, device="cuda")))
    choice = {"launches": 1, "threads": 1024, "most": 16, "kept": 2}
    with tuning.forced(choice):
        launch = OPS["dynamic_scaled_fp8_quant"].launcher(device_of(tensors[0][1]), tensors[0])
    torch.cuda.synchronize()
    for _ in range(50):
        for stream, operands in zip(streams, tensors, strict=True):
            with torch.cuda.stream(stream):
                launch(*operands)
    torch.cuda.synchronize()
    for codes, x, scale in tensors:
        want, found = torch.empty_like(codes), torch.empty_like(scale)
        OPS["dynamic_scaled_fp8_quant"].fallback(want, x, found)
        assert torch.equal(bits(codes), bits(want)) and torch.equal(scale, found)


@pytest.mark.parametrize("group", [64, 128])
@pytest.mark.parametrize("hidden", [128, 640, 1536, 7168])
@pytest.mark.parametrize("tokens", [1, 3, 4, 7, 129, 1024])
def test_layouts_of_group_scales(group, hidden, tokens):
    """Columns, padded columns and packed bytes hold the scales of rows, and nothing else is written."""
    x = torch.randn(tokens, hidden, device="cuda").bfloat16()
    plain, out = (torch.empty(tokens, hidden, dtype=E4M3, device="cuda") for _ in range(2))
    groups, padded = hidden // group, -(-tokens // 4) * 4
    limits = EPS, -448.0, 448.0
    for power in (False, True):
        by_row = torch.empty(tokens, groups, device="cuda")
        corpus.per_token_group_fp8_quant(x, plain, by_row, group, *limits, power)
        for wide in (tokens, padded + 4):
            memory = torch.full((groups, wide), -7.0, device="cuda")
            corpus.per_token_group_fp8_quant(x, out, memory.t()[:tokens], group, *limits, power, True, wide > tokens)
            assert torch.equal(memory[:, :tokens].t(), by_row) and (memory[:, tokens:] == -7.0).all()
            assert torch.equal(bits(out), bits(plain))
    words = -(-groups // 4)
    memory = torch.full((words, padded), 0x5A5A5A5A, dtype=torch.int32, device="cuda")
    codes = torch.ones(padded, hidden, device="cuda").to(E4M3)
    corpus.per_token_group_fp8_quant_packed(x, codes, memory.t()[:tokens], group, *limits)
    want = torch.zeros(padded, 4 * words, dtype=torch.uint8, device="cuda")
    want[:tokens, :groups] = (by_row.view(torch.int32) >> 23).to(torch.uint8)
    want[tokens:, -4:] = 0x5A
    assert torch.equal(bits(memory.t()).view(padded, -1), want)
    assert torch.equal(bits(codes[:tokens]), bits(plain)) and not codes[tokens:].float().any()


def test_more_than_2_to_the_31_elements():
    """A million tokens and more: rows far apart in one tensor, ends and middle compared."""
    tokens, hidden = (1 << 31) // 1152 + 1000, 1152
    x = torch.empty(tokens, hidden, dtype=torch.bfloat16, device="cuda").normal_()
    out, scale = torch.empty(tokens, hidden, dtype=E4M3, device="cuda"), torch.empty(tokens, 1, device="cuda")
    by_group, given = torch.empty(tokens, hidden // 128, device="cuda"), torch.full((1,), 0.02, device="cuda")
    parts = [slice(0, 300), slice(tokens // 2, tokens // 2 + 300), slice(tokens - 300, tokens)]
    calls = {
        "dynamic_per_token_scaled_fp8_quant": (out, x, scale, None),
        "per_token_group_fp8_quant": (x, out, by_group, 128, EPS, -448.0, 448.0, False),
        "static_scaled_fp8_quant": (out, x, given, None),
        "dynamic_scaled_fp8_quant": (out, x, torch.empty(1, device="cuda")),
    }
    for name, arguments in calls.items():
        getattr(corpus, name)(*arguments)
        for part in parts:
            mine = [a[part] if torch.is_tensor(a) and a.dim() > 1 else a for a in arguments]
            want = [a.clone() if torch.is_tensor(a) else a for a in mine]
            if name == "dynamic_scaled_fp8_quant":  # the scale is that of all rows
                OPS["static_scaled_fp8_quant"].fallback(want[0], want[1], want[2])
            else:
                OPS[name].fallback(*OPS[name].bind(tuple(want), {}))
            for got, right in zip(mine, want, strict=True):
                if torch.is_tensor(got):
                    assert torch.equal(bits(got), bits(right)), name
