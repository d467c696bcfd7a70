"""Rotary embedding in the emulator, equal to the bit to the reference."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.rotary import reference
from porter.corpus.ops.rotary.functions import spread_heads
from porter.corpus.runtime import tuning
from porter.corpus.runtime.device import Device
from tests.corpus.emulated import run

ARCHS = ("sm_90a", "sm_100a")


def inputs(tokens, q_heads, k_heads, head, rot, dtype=torch.bfloat16, cache=None, pad=0):
    """positions, query, key, cache; query and key are parts of one packed tensor with `pad` elements behind them."""
    generator = torch.Generator().manual_seed(3)
    width = (q_heads + k_heads) * head
    packed = torch.randn(tokens, width + pad, generator=generator).to(dtype)
    angles = torch.randn(64, rot // 2, generator=generator) * 3
    table = torch.cat([angles.cos(), angles.sin()], -1).to(cache or dtype)
    positions = torch.randint(0, 64, (tokens,), generator=generator)
    return positions, packed[:, : q_heads * head], packed[:, q_heads * head : width], table


def check(positions, query, key, head, table, *options, arch="sm_90a"):
    wanted = [None if t is None else t.clone() for t in (query, key)]
    reference.rotary_embedding(positions, *wanted, head, table, *options)
    run(corpus.rotary_embedding, positions, query, key, head, table, *options, arch=arch)
    assert torch.equal(query, wanted[0])
    assert key is None or torch.equal(key, wanted[1])


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("tokens", [1, 300])
def test_neox(arch, tokens):
    positions, q, k, table = inputs(tokens, 32, 8, 128, 128)
    check(positions, q, k, 128, table, True, arch=arch)


@pytest.mark.parametrize("arch", ARCHS)
def test_pairs_side_by_side(arch):
    positions, q, k, table = inputs(5, 6, 2, 64, 64, cache=torch.float32)
    check(positions, q, k, 64, table, False, arch=arch)


@pytest.mark.parametrize("neox", [True, False])
@pytest.mark.parametrize("inverse", [True, False])
def test_part_of_a_head(neox, inverse):
    positions, q, k, table = inputs(7, 4, 1, 96, 32, cache=torch.float32, pad=64)
    check(positions, q, k, 96, table, neox, 64, inverse)


@pytest.mark.parametrize(("dtype", "cache"), [(torch.float16, torch.float16), (torch.float32, torch.float32)])
def test_dtypes(dtype, cache):
    positions, q, k, table = inputs(4, 5, 3, 80, 80, dtype, cache)
    check(positions, q, k, 80, table, True)
    check(positions, q, k, 80, table, False)


def test_odd_alignment():
    positions, q, k, table = inputs(4, 3, 1, 30, 22, pad=3)
    check(positions, q, k, 30, table, True, 5)
    check(positions, q, k, 30, table, False, 5)


def test_without_key_and_in_batches():
    positions, q, k, table = inputs(6, 4, 4, 64, 64)
    check(positions, q.unflatten(-1, (4, 64)), None, 64, table, True)
    check(positions.view(2, 3), q.unflatten(0, (2, 3)), k.unflatten(0, (2, 3)), 64, table, True)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("neox", [True, False])
def test_fp8(arch, neox):
    for head, rot, offset, cache, pad in (
        (128, 128, 0, None, 0),
        (96, 32, 48, torch.float32, 32),
        (30, 22, 5, None, 3),
    ):
        positions, q, k, table = inputs(5, 6, 2, head, rot, cache=cache, pad=pad)
        outs, wanted = ([torch.zeros(t.shape).to(torch.float8_e4m3fn) for t in (q, k)] for _ in range(2))
        options = (head, table, neox, 0.5, 60.0, offset)
        run(corpus.rotary_embedding_fp8, *outs, positions, q, k, *options, arch=arch)
        reference.rotary_embedding_fp8(*wanted, positions, q, k, *options)
        for out, want in zip(outs, wanted, strict=True):
            assert torch.equal(out.view(torch.uint8), want.view(torch.uint8))


def test_no_tokens_launch_nothing():
    positions, q, k, table = inputs(0, 4, 4, 64, 64)
    assert run(corpus.rotary_embedding, positions, q, k, 64, table, True) == []


def test_wrong_arguments_are_refused():
    positions, q, k, table = inputs(6, 4, 4, 64, 64)
    with pytest.raises(ValueError, match="do not fit into heads"):
        run(corpus.rotary_embedding, positions, q, k, 64, table, True, 8)
    with pytest.raises(ValueError, match="query has shape"):
        run(corpus.rotary_embedding, positions[:5], q, k, 64, table, True)
    with pytest.raises(ValueError, match="positions has dtype"):
        run(corpus.rotary_embedding, positions.int(), q, k, 64, table, True)


def test_little_work_reaches_many_multiprocessors():
    device = Device("sm_90a", 132)
    with tuning.forced({}):  # the rule, whatever a tuning table says
        one, many = spread_heads(device, "bf16", 1, 40, 8), spread_heads(device, "bf16", 8192, 40, 8)
    assert one == {
        "lanes": 8,
        "splits": 5,
        "tokens": 1,
        "prefetch": True,
        "prefetch_blocks": 0,
    }  # five blocks of 64 threads
    assert many == {
        "lanes": 32,
        "splits": 2,
        "tokens": 2,
        "prefetch": True,
        "prefetch_blocks": 264,
    }  # of 528 that run at once


def test_several_heads_a_thread():
    positions, q, k, table = inputs(3, 7, 2, 64, 64)
    with tuning.forced({"lanes": 2, "splits": 2, "tokens": 2, "prefetch": True, "prefetch_blocks": 3}):
        check(positions, q, k, 64, table, True)


def test_a_wild_position_is_not_prefetched():
    """Before the wait the position may be anything, for example what an earlier kernel left there."""
    positions, q, k, table = inputs(3, 4, 1, 64, 64)
    before = q.clone()
    positions[1] = 1 << 40
    with pytest.raises(AssertionError, match=r"ld\.global"):  # the load after the wait is out of bounds, no prefetch
        run(corpus.rotary_embedding, positions, q, k, 64, table, True)
    assert q.shape == before.shape


def test_called_as_a_function_on_tensors_without_a_gpu():
    """It has a parameter called `key`."""
    positions, query, key, cache = inputs(3, 2, 1, 64, 64)
    query, key = query.clone(), key.clone()
    want_query, want_key = query.clone(), key.clone()
    corpus.rotary_embedding(positions, query, key, 64, cache, True)
    reference.rotary_embedding(positions, want_query, want_key, 64, cache, True)
    assert torch.equal(query, want_query)
    assert torch.equal(key, want_key)


def test_heads_in_two_parts_are_refused_where_they_do_not_fit():
    positions, q, k, table = inputs(3, 4, 1, 64, 64)
    q, outs = q.unflatten(-1, (4, 64)), [torch.zeros(3, h, 64).to(torch.float8_e4m3fn) for h in (4, 1)]
    with pytest.raises(ValueError, match="all or not at all"):
        run(corpus.rope_quantize_fp8, q, k, q, None, table, positions, True, 1.0, 1.0, *outs)
    with pytest.raises(ValueError, match="k_rope_out has shape"):
        run(corpus.rope_quantize_fp8, q, k, None, None, table, positions, True, 1.0, 1.0, outs[0], outs[0])
    with pytest.raises(ValueError, match="q_rope_out has dtype"):
        run(corpus.rope_quantize_fp8, q, k, None, None, table, positions, True, 1.0, 1.0, q, outs[1])
    q, k, positions, *outs = (t[:0] for t in (q, k, positions, *outs))
    assert run(corpus.rope_quantize_fp8, q, k, None, None, table, positions, True, 1.0, 1.0, *outs) == []


@pytest.mark.parametrize(
    ("neox", "dtype", "cache"), [(True, "bf16", "f32"), (False, "bf16", "bf16"), (False, "f32", "f32")]
)
def test_every_line_of_heads_and_angles_is_asked_for_once(neox, dtype, cache):
    from porter.corpus.kernels.rotary.rotary import Rotary
    from porter.corpus.runtime.dtypes import dtype as scalar

    kernel = Rotary(dtype, cache, 8, 2, 128, 128, 128, 128, pairs=4, lanes=2, neox=neox)
    for size in (scalar(dtype).bytes * (1 if neox else 2), scalar(cache).bytes):
        asking = [pair for pair in range(0, 64, 4) if kernel.first_in_cache_line(pair, size)]
        assert [pair * size for pair in asking] == list(range(0, 64 * size, 128))
