"""How every op launches on a GPU: in graphs, on the current stream, without waiting for the device or allocating."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.workloads import WORKLOADS
from porter.corpus.runtime.ops import OPS

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
NAMES = sorted(WORKLOADS)


def arguments(name, tokens=33):
    torch.manual_seed(tokens)
    return WORKLOADS[name].make(tokens, torch.bfloat16, "cuda", **WORKLOADS[name].dims[0])


def copies(args):
    return tuple(same_place(a) if torch.is_tensor(a) else a for a in args)


def same_place(t):
    """A copy with t's strides, padding between rows included."""
    return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device).copy_(t)


def refill(args, values):
    for a, v in zip(args, values, strict=True):
        if torch.is_tensor(a):
            a.copy_(v)


def bits(t):
    return t.clone(memory_format=torch.contiguous_format).view(torch.uint8)


def equal(got, want):
    """To the bit, in every tensor: what is written and what is only read."""
    return all(
        torch.equal(bits(g), bits(w))
        for g, w in zip(got, want, strict=True)
        if torch.is_tensor(g) and g.dim()
    )


@pytest.mark.parametrize("name", NAMES)
def test_in_a_graph_with_other_numbers(name):
    """A graph is captured (which fails where a call waits for the device), and replayed on what is there by then."""
    op, args = getattr(corpus, name), arguments(name)
    want = copies(args)
    op(*want)
    held = copies(args)
    op(*held)  # compiles, loads, plans
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op(*held)
    for _ in range(2):
        refill(held, args)
        graph.replay()
        torch.cuda.synchronize()
        assert equal(held, want)


@pytest.mark.parametrize("name", NAMES)
def test_neither_waits_nor_allocates(name):
    op, args = getattr(corpus, name), copies(arguments(name))
    op(*args)
    torch.cuda.synchronize()
    busy = torch.cuda.Event()
    torch.cuda._sleep(200_000_000)  # cycles: a tenth of a second
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    torch.cuda.set_sync_debug_mode("error")
    try:
        op(*args)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    busy.record()
    assert not busy.query(), "the call came back after the device had finished"
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before
    torch.cuda.synchronize()


@pytest.mark.parametrize("name", NAMES)
def test_on_the_current_stream(name):
    """Behind what its stream does, whatever the default stream does."""
    op, args = getattr(corpus, name), arguments(name)
    want = copies(args)
    op(*want)
    held = copies(args)
    for a in held:
        if torch.is_tensor(a) and a.is_floating_point():
            a.view(torch.uint8).zero_() if a.dim() else a.zero_()
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        refill(held, args)  # an op that did not wait would read zeros
        op(*held)
    side.synchronize()
    assert equal(held, want)


@pytest.mark.parametrize("name", NAMES)
def test_the_custom_op_is_the_same_launch(name):
    args = arguments(name)
    want, got = copies(args), copies(args)
    getattr(corpus, name)(*want)
    getattr(torch.ops.porter, name)(*got)
    assert equal(got, want)


@pytest.mark.parametrize("name", NAMES)
def test_the_kill_switch_runs_the_fallback(name, monkeypatch):
    op, ran = getattr(corpus, name), []
    monkeypatch.setattr(OPS[name], "fallback", lambda *args: ran.append(args))
    monkeypatch.setenv("PORTER_DISABLE", name)
    OPS[name].forget()
    args = arguments(name)
    op(*copies(args))
    op(*copies(args))
    assert len(ran) == 2
    monkeypatch.delenv("PORTER_DISABLE")
    OPS[name].forget()
    op(*copies(args))
    assert len(ran) == 2


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
@pytest.mark.parametrize("name", ["rms_norm", "silu_and_mul", "rotary_embedding"])
def test_on_a_gpu_that_is_not_the_current_one(name):
    args = arguments(name)
    there = tuple(a.to("cuda:1") if torch.is_tensor(a) else a for a in args)
    getattr(corpus, name)(*args)
    getattr(corpus, name)(*there)
    torch.cuda.synchronize(1)
    assert torch.cuda.current_device() == 0
    assert equal(tuple(a.to("cuda:0") if torch.is_tensor(a) else a for a in there), args)
