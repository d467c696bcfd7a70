"""Expert routing in the emulator: experts equal to a stable sort's, weights to float32's last places."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.runtime import tuning
from tests.corpus.emulated import run
from tests.corpus.ops.moe_inputs import filled, ids, numbers

ARCHS = ("sm_90a", "sm_100a")
INF, NAN = float("inf"), float("nan")


def check(function, x, k, *options, index=torch.int32, **launch):
    """(weights, experts) of an op, after comparing all outputs with the reference's."""
    tokens = x.shape[0]

    def outputs():
        found = [filled(tokens, k, dtype=torch.float32), filled(tokens, k, dtype=torch.int64).to(index)]
        return found if function is corpus.grouped_topk else [*found, filled(tokens, k)]

    got, want = outputs(), outputs()
    run(function, *got, x, *options, **launch)
    function.op.fallback(*function.op.bind((*want, x, *options), {}))
    assert torch.equal(got[1].to(torch.int64), want[1].to(torch.int64))
    torch.testing.assert_close(got[0], want[0], rtol=3e-6, atol=1e-30)
    if len(got) == 3:
        assert torch.equal(got[2], torch.arange(tokens * k, dtype=torch.int32).view(k, tokens).t())
    return got[0], got[1]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("experts", "k", "dtype"), [(128, 8, torch.bfloat16), (60, 16, torch.float32)])
def test_softmax(arch, experts, k, dtype):
    x = numbers(5, experts, dtype=dtype)
    weights, _ = check(corpus.topk_softmax, x, k, True, arch=arch)
    torch.testing.assert_close(weights.sum(-1), torch.ones(5))


@pytest.mark.parametrize("arch", ["sm_90a", pytest.param("sm_100a", marks=pytest.mark.slow)])
def test_bias_padding_and_wide_indices(arch):
    bias, padding = numbers(160, seed=1, dtype=torch.float32) * 0.05, torch.arange(6) % 3 == 1
    weights, experts = check(
        corpus.topk_softmax, numbers(6, 160), 6, False, bias, padding, index=torch.int64, arch=arch
    )  # fmt: skip
    assert (experts[padding] == -1).all() and not weights[padding].any() and (experts[~padding] >= 0).all()


@pytest.mark.parametrize("arch", ["sm_90a", pytest.param("sm_100a", marks=pytest.mark.slow)])
def test_sigmoid_and_softplus(arch):
    bias = numbers(72, seed=2, dtype=torch.float32)
    check(corpus.topk_sigmoid, numbers(3, 72, dtype=torch.float16), 3, True, bias, 2.5, arch=arch)
    check(corpus.topk_softplus_sqrt, numbers(3, 72, dtype=torch.float32) * 8, 6, True, 1.5, bias, arch=arch)


@pytest.mark.parametrize("table", [torch.int32, torch.int64])
def test_experts_from_a_table_of_token_ids(table):
    """Weights of the table's experts; an expert that there is not has none."""
    tokens, lookup = torch.tensor([4, 0, 4]), ids(0, 40, 9, 6, dtype=table)
    lookup[4, 2], lookup[0, 5] = -1, 40
    x = numbers(3, 40)
    weights, experts = check(corpus.topk_softplus_sqrt, x, 6, True, 2.5, None, tokens, lookup)
    assert torch.equal(experts.long(), lookup[tokens].long())
    assert weights[0, 2] == 0 and weights[1, 5] == 0 and (weights > 0).sum() == 15


def test_llama4():
    _, experts = check(corpus.llama4_topk, numbers(4, 16, dtype=torch.float32), 1)
    assert torch.equal(experts[:, 0].long(), numbers(4, 16, dtype=torch.float32).argmax(-1))
    check(corpus.llama4_topk, numbers(2, 130, dtype=torch.float16), 3)


def poisoned(experts, dtype):
    """Rows of equal numbers, of zeros of both signs, of -inf, with NaN, with inf, and with one number that counts."""
    x = torch.zeros(7, experts)
    x[0] = 1.5
    x[1, 1::2] = -0.0
    x[2] = -INF
    x[3, [2, experts - 1]] = NAN
    x[4, [5, 6]] = INF
    x[5] = -INF
    x[5, experts - 2] = 0.25
    x[6, ::3] = 2.0
    return x.to(dtype)


@pytest.mark.parametrize("experts", [64, pytest.param(72, marks=pytest.mark.slow)])
def test_ties_and_numbers_that_are_not_finite(experts):
    """What wins among equals is the lower expert; a poisoned softmax takes 0 to k - 1 with weight 0."""
    first = torch.arange(6, dtype=torch.int32)
    for dtype in (torch.bfloat16, torch.float32):
        weights, chosen = check(corpus.topk_softmax, poisoned(experts, dtype), 6, True)
        for row in (0, 1, 2, 3, 4):
            assert torch.equal(chosen[row], first)
        assert not weights[2:5].any()
        assert chosen[5].tolist() == [experts - 2, 0, 1, 2, 3, 4] and weights[5].tolist() == [1, 0, 0, 0, 0, 0]
        assert chosen[6].tolist() == [0, 3, 6, 9, 12, 15]
    check(corpus.topk_sigmoid, poisoned(experts, torch.float32), 6, True)
    check(corpus.topk_softplus_sqrt, poisoned(experts, torch.float32), 6, False)
    bias = torch.zeros(experts)
    bias[3], bias[4] = -INF, NAN
    _, chosen = check(corpus.topk_softmax, poisoned(experts, torch.float32), 6, False, bias)
    assert not (chosen == 3).any() and not (chosen == 4).any()


@pytest.mark.parametrize("k", [1, 11, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 17) if k != 11)])
def test_every_k_and_experts_of_no_power_of_two(k):
    for experts in (k, k + 17):
        check(corpus.topk_softmax, (numbers(2, experts, seed=k, dtype=torch.float32) * 2).round(), k, True)


@pytest.mark.parametrize("lanes", [8, *(pytest.param(n, marks=pytest.mark.slow) for n in (16, 32))])
def test_every_spread(lanes):
    with tuning.forced({"lanes": lanes, "rows": 64 // lanes, "vec": 4}):
        check(corpus.topk_softmax, (numbers(9, 128, dtype=torch.float32) * 2).round(), 8, True)
        check(corpus.topk_softmax, (numbers(9, 36, dtype=torch.float32) * 2).round(), 8, True)


@pytest.mark.parametrize(
    ("arch", "experts", "k", "groups", "kept", "renormalize", "score"),
    [("sm_90a", 256, 8, 8, 4, True, 1), ("sm_90a", 60, 6, 3, 2, False, 0), ("sm_90a", 24, 8, 1, 1, True, 1),
     ("sm_90a", 36, 5, 2, 1, True, 1), ("sm_100a", 64, 6, 8, 3, True, 1)],
)  # fmt: skip
def test_groups(arch, experts, k, groups, kept, renormalize, score):
    bias = numbers(experts, seed=5, dtype=torch.float32) * 0.1
    x = numbers(3, experts, dtype=torch.float32)
    _, chosen = check(corpus.grouped_topk, x, k, groups, kept, renormalize, 2.5, bias, score, arch=arch)
    assert all(len(set((row // (experts // groups)).tolist())) <= kept for row in chosen)


def test_ties_of_groups_and_too_few_of_them():
    """Equal groups: the lower ones. Fewer groups with a finite score than wanted: experts 0 to k - 1, weights 1 / k."""
    x = torch.zeros(5, 64)
    x[1, 32:] = 1.0
    x[2, 8:] = -INF  # one group of 8 left
    x[3] = NAN
    x[4, 1::2] = NAN
    for score in (1, 0):
        weights, chosen = check(corpus.grouped_topk, x, 6, 8, 2, True, 2.5, None, score)
        assert chosen[0].tolist() == list(range(6)) and chosen[1].tolist() == list(range(32, 38))
        assert chosen[3].tolist() == list(range(6)) and torch.equal(weights[3], torch.full((6,), 1 / 6))
    assert torch.equal(weights[2], torch.full((6,), 1 / 6))


def test_wrong_arguments_are_refused():
    x, weights, indices = numbers(4, 64), filled(4, 6, dtype=torch.float32), filled(4, 6)
    with pytest.raises(ValueError, match="there are 64 experts, not the 65"):
        run(corpus.topk_softmax, filled(4, 65, dtype=torch.float32), filled(4, 65), filled(4, 65), x, True)
    with pytest.raises(ValueError, match="topk_indices has shape"):
        run(corpus.topk_softmax, weights, filled(4, 5), indices, x, True)
    with pytest.raises(ValueError, match="is_padding has shape"):
        run(corpus.topk_softmax, weights, indices, indices.clone(), x, True, None, torch.zeros(3).bool())
    with pytest.raises(ValueError, match="64 experts are not 5 groups"):
        run(corpus.grouped_topk, weights, indices, x, 5, 2, True, 1.0)
    with pytest.raises(ValueError, match="1 of 16 groups of 64 experts do not have 6"):
        run(corpus.grouped_topk, weights, indices, x, 16, 1, True, 1.0)
    with pytest.raises(ValueError, match="goes with input_ids"):
        run(corpus.topk_softplus_sqrt, weights, indices, indices.clone(), x, True, 1.0, None, None, filled(9, 6))
    empty = (filled(0, 6, dtype=torch.float32), filled(0, 6), filled(0, 6), x[:0], True)
    assert run(corpus.topk_softmax, *empty) == []
