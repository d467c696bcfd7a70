"""Which tensors count as sharing memory: the rule against every element's address, and compiled functions with it."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("torch")

import torch

import porter.corpus.ops  # noqa: F401 (declares them)
from porter import corpus
from porter.corpus.runtime import overlap, overlap_check
from porter.corpus.runtime.device import Device
from porter.corpus.runtime.ops import OPS

EPS = 1e-6


def addresses(t):
    """The bytes that a tensor has, as a set, and whether it has none of them twice."""
    index = torch.arange(t.untyped_storage().nbytes() // t.element_size())
    places = torch.as_strided(index, t.shape, t.stride(), t.storage_offset()).flatten().tolist()
    size = t.element_size()
    found = {t.untyped_storage().data_ptr() + p * size + i for p in places for i in range(size)}
    return found, len(set(places)) == len(places)


def views(rng, base):
    """Two views like those that kernels take, in one piece of memory of 512 elements."""
    found = []
    heads, d = rng.choice([1, 2, 3]), rng.choice([2, 4])
    strides = rng.choice([(heads * d, d), (2 * heads * d, d), (3 * heads * d, 3 * d), (d, 40), (24, 8), (0, d)])
    for other in range(2):
        tokens = rng.choice([1, 2, 5])
        if rng.random() < 0.3:
            strides = rng.choice([(heads * d, d), (17, 5), (64, 2 * d), (d, 40)])
        found.append(torch.as_strided(base, (tokens, heads, d), (*strides, 1), rng.randrange(0, 90) if other else 30))
    return found


def test_what_counts_as_apart_shares_no_address():
    rng, base, apart, exact = random.Random(1), torch.zeros(512, dtype=torch.int16), 0, 0
    for _ in range(4000):
        a, b = views(rng, base)
        found, once = addresses(a)
        disjoint = not found & addresses(b)[0]
        if overlap.apart(a, b):
            assert disjoint, (a.shape, a.stride(), b.shape, b.stride(), b.storage_offset())
            apart += 1
        exact += disjoint
        try:
            overlap.refuse("op", [("a", a)], ("a",), ())
        except ValueError:
            pass
        else:
            assert once, (a.shape, a.stride())
    assert apart > 0.9 * exact > 1000  # what else is disjoint interleaves at different distances


def packed(tokens, *lengths, heads=None):
    """Parts of rows of one tensor, or of its heads."""
    rows = torch.zeros(tokens, sum(lengths)) if heads is None else torch.zeros(tokens, heads, sum(lengths))
    return rows.split(lengths, dim=-1)


@pytest.mark.parametrize("tokens", [1, 2, 7])
def test_parts_of_a_packed_tensor_are_apart(tokens):
    q, k, v = packed(tokens, 4 * 8, 2 * 8, 2 * 8)
    assert overlap.apart(q, k) and overlap.apart(k, q) and overlap.apart(q.view(tokens, 4, 8), v.view(tokens, 2, 8))
    nope, rope = packed(tokens, 16, 8, heads=3)  # of each head
    assert overlap.apart(nope, rope) and overlap.apart(rope, nope)
    both = torch.zeros(2 * tokens, 8)
    assert overlap.apart(both[::2], both[1::2])  # every other row
    heads_first = torch.zeros(3, tokens, 16).transpose(0, 1)
    assert overlap.apart(heads_first[..., :8], heads_first[..., 8:])
    codes = torch.zeros(tokens, 8 + 4, dtype=torch.uint8)
    assert overlap.apart(codes[:, :8], codes[:, 8:].view(torch.float32))  # scales behind the codes of their row
    assert not overlap.apart(q, torch.as_strided(q, (tokens, 16), (64, 1), 24))
    assert not overlap.apart(both[::2], both[: tokens + 1])


def test_compiled_functions_have_the_same_rule():
    pytest.importorskip("cutlass")
    pytest.importorskip("tvm_ffi")
    if torch.cuda.is_available():
        pytest.skip("a GPU would be given host memory")
    from porter.corpus.runtime.specialisation import loaded
    from tests.corpus.runtime.fake_gpu import launch

    q = torch.as_strided(torch.zeros(64, dtype=torch.bfloat16), (2, 3, 4), (13, 4, 1))
    w, device = torch.zeros(4, dtype=torch.bfloat16), Device("sm_90a", 132, "")
    kernel, _ = OPS["qk_norm"].plan(device, q, q, w, w, EPS, 0.0, "vllm")
    function, rng, base = loaded(kernel, device.arch), random.Random(2), torch.zeros(512, dtype=torch.bfloat16)
    count = {True: 0, False: 0}
    while min(count.values()) < 150:
        a, b = views(rng, base)
        if a.shape[1:] != (3, 4) or a.shape[0] != b.shape[0]:
            continue
        try:
            overlap.refuse("qk_norm", [("q", a), ("k", b)], ("q", "k"), ())
            accepted = True
        except ValueError:
            accepted = False
        count[accepted] += 1
        said = launch(function, (a, b, w, w, EPS, 1))
        assert (said == "launched") == accepted, (a.shape, a.stride(), b.stride(), b.storage_offset(), said)


def rows(*shape, dtype=torch.bfloat16):
    return torch.zeros(*shape, dtype=dtype)


def test_overlapping_operands_are_refused_and_named():
    base, w = rows(4 * 64 + 64), rows(64)
    x, shifted = base[: 4 * 64].view(4, 64), base[64:].view(4, 64)
    for function in (corpus.rms_norm, torch.ops.porter.rms_norm):
        with pytest.raises(ValueError, match=r"rms_norm: result and input overlap.*or must be exactly input"):
            function(shifted, x, w, EPS)
        function(x, x, w, EPS)
    with pytest.raises(ValueError, match="fused_add_rms_norm: input and residual overlap"):
        corpus.fused_add_rms_norm(x, shifted, w, EPS)
    with pytest.raises(ValueError, match="fused_add_rms_norm: input and residual overlap"):
        corpus.fused_add_rms_norm(x, x, w, EPS)
    qkv = rows(3, 6 * 16)
    corpus.qk_norm(qkv[:, :64], qkv[:, 64:], rows(16), rows(16), EPS)
    with pytest.raises(ValueError, match="qk_norm: q and k overlap"):
        corpus.qk_norm(qkv[:, :64], qkv[:, 48:], rows(16), rows(16), EPS)  # a head in common
    with pytest.raises(ValueError, match="rms_norm: result and weight overlap"):
        corpus.rms_norm(x, x, x[0], EPS)
    with pytest.raises(ValueError, match="rms_norm: elements of result share memory"):
        corpus.rms_norm(rows(1, 64).expand(4, 64), rows(4, 64), w, EPS)
    corpus.qk_norm(qkv[:, :64], qkv[:, 64:], w[:16], w[:16], EPS)  # read only: may be one tensor


def test_without_a_place_for_it_the_check_is_in_python():
    pair = overlap_check.Pair(0, 1, True)
    calls, x = [], rows(4, 64)
    function = overlap.checked_launch(lambda *args: calls.append(args), (pair, overlap_check.Pair(0, 0, False)))
    function(x, x, 1)
    function(x, None, 1)
    function(x[:2], x[2:], 1)
    for a, b in ((x[:3], x[1:]), (x, x[:2]), (rows(1, 64).expand(4, 64), x)):
        with pytest.raises(ValueError, match="overlap"):
            function(a, b, 1)
    assert len(calls) == 3
