"""Order of routed entries and rows moved to experts and back, in the emulator: equal to the bit, order included."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.runtime import tuning
from tests.corpus.emulated import run
from tests.corpus.ops.moe_inputs import (
    align_arguments,
    distinct,
    filled,
    ids,
    local_numbers,
    numbers,
    permute_arguments,
    same,
)

ARCHS = ("sm_90a", pytest.param("sm_100a", marks=pytest.mark.slow))  # both in CI: align, permute, unpermute
BF16 = torch.bfloat16


def entries(kind):
    """(expert ids, experts): any, with ids that are no expert; one hot expert; each expert once; none at all."""
    return {
        "any": (ids(-3, 70, 37, 6), 64),
        "wide": (ids(-3, 70, 37, 6, dtype=torch.int64), 64),
        "hot": (torch.full((40, 4), 5, dtype=torch.int32), 8),
        "once": (torch.arange(63, -1, -1, dtype=torch.int32).view(8, 8), 64),
        "none": (torch.full((3, 2), -1, dtype=torch.int32), 16),
        "no tokens": (torch.empty(0, 4, dtype=torch.int32), 16),
        "several blocks": (ids(0, 40, 640, 8), 40),
        "many experts": (ids(0, 900, 40, 8), 900),
    }[kind]


@pytest.mark.parametrize(
    ("arch", "kind"),
    [("sm_90a", k) for k in ("any", "wide", "hot", "once", "none", "no tokens", "several blocks", "many experts")]
    + [("sm_100a", "any")],
)  # fmt: skip
def test_align(arch, kind):
    found, experts = entries(kind)
    got = same(corpus.moe_align_block_size, lambda: align_arguments(found, experts, 16, None, True, 40), arch=arch)
    places, owners, total = got[3:6]
    assert (places[int(total) :] == found.numel()).all() and (owners[int(total) // 16 :] == -1).all()
    for block, owner in enumerate(owners[: int(total) // 16]):
        mine = places[16 * block : 16 * block + 16]
        mine = mine[mine < found.numel()]
        assert mine.numel() and (found.view(-1)[mine.long()] == owner).all() and (mine.diff() > 0).all()


def test_ids_beyond_32_bits_are_no_experts():
    found = torch.tensor([[3, (1 << 32) + 3, -(1 << 32)], [0, 1 << 31, 3]])
    got = same(corpus.moe_align_block_size, lambda: align_arguments(found, 4, 4))
    assert got[3][:8].tolist() == [3, 6, 6, 6, 0, 5, 6, 6]


@pytest.mark.parametrize("block", [1, 48])
def test_align_with_a_map_and_other_blocks(block):
    found, local = ids(-1, 65, 30, 4), local_numbers(64, 16)
    got = same(corpus.moe_align_block_size, lambda: align_arguments(found, 64, block, local, True))
    assert set(got[4].tolist()) <= set(range(-1, 16))


def test_places_that_there_is_no_room_for_are_dropped():
    found = ids(0, 8, 20, 2)

    def make():
        return found, 8, 16, filled(50), filled(3), filled(1), None, None

    got = same(corpus.moe_align_block_size, make)
    assert int(got[5]) > 50


@pytest.mark.parametrize("choice", [{"warps": 4, "cluster": 8}, {"warps": 16, "cluster": 2}])
def test_every_spread_gives_the_same_order(choice):
    found = ids(-1, 40, 150, 8)
    with tuning.forced(choice):
        same(corpus.moe_align_block_size, lambda: align_arguments(found, 40, 16, None, True))


@pytest.mark.parametrize("arch", ARCHS)
def test_batched_align(arch):
    counts = torch.tensor([3, 0, 17, 40, 5, 0, 99, -4], dtype=torch.int32)
    same(
        corpus.batched_moe_align_block_size, lambda: (40, 16, counts, filled(8 * 48), filled(24), filled(1)), arch=arch
    )
    none = torch.zeros(300, dtype=torch.int32)
    got = same(
        corpus.batched_moe_align_block_size, lambda: (4, 16, none, filled(4800), filled(300), filled(1)), arch=arch
    )
    assert int(got[5]) == 0 and (got[3] == 1200).all() and (got[4] == -1).all()


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("scales", "gated", "swapped"), [(True, True, False), (False, False, True)])
def test_what_a_grouped_gemm_is_told(arch, scales, gated, swapped):
    found = ids(-1, 66, 37, 6) if scales else distinct(37, 64, 6)

    def make():
        sizes, orders = [filled(64, 3) for _ in range(2)], [filled(37 * 6) for _ in range(2)]
        return found, filled(65), *sizes, *orders, 64, 96, 128, filled(65) if scales else None, gated, swapped

    got = same(corpus.get_cutlass_moe_mm_data, make, arch=arch)
    assert int(got[1][-1]) == ((found >= 0) & (found < 64)).sum()


@pytest.mark.parametrize(
    ("arch", "launches", "here"), [("sm_90a", 1, 64), ("sm_90a", 2, 24), ("sm_100a", 1, 24), ("sm_100a", 2, 64)]
)
def test_permute(arch, launches, here):
    """In one launch and in two, of more blocks than rows and of fewer, with experts that are elsewhere."""
    x, found = numbers(37, 264), ids(-1, 66, 37, 6)
    local = local_numbers(64, here) if here < 64 else None
    with tuning.forced({"launches": launches, "warps": 4}):
        got = same(corpus.moe_permute, lambda: permute_arguments(x, found, 64, here, local), arch=arch, sms=4)
    valid = int(got[8][-1])
    assert torch.equal(got[7][:valid], x[got[10][:valid].long() // 6]) and (got[7][valid:] == 7).all()
    assert (got[10][valid:] == 37 * 6).all() and 0 < valid < 37 * 6


@pytest.mark.parametrize("kind", ["hot", pytest.param("once", marks=pytest.mark.slow), "none", "no tokens"])
def test_permute_of_other_entries(kind):
    found, experts = entries(kind)
    same(corpus.moe_permute, lambda: permute_arguments(numbers(found.shape[0], 40), found, experts, experts), sms=3)


def test_permute_of_more_entries_than_a_block_sorts_for_itself():
    found = ids(0, 20, 260, 8)
    same(corpus.moe_permute, lambda: permute_arguments(numbers(260, 16), found, 20, 20), sms=2)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float32])
def test_permute_in_another_order_and_dtype(dtype):
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1)).int()
    x, found = numbers(15, 80).to(dtype), ids(0, 8, 15, 4)
    same(corpus.moe_permute, lambda: permute_arguments(x, found, 8, 8, None, order))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("dtype", "width", "k"), [(BF16, 264, 6), (torch.float32, 77, 9)])
def test_unpermute(arch, dtype, width, k):
    rows, weights, inverse = numbers(50, width, dtype=dtype), torch.rand(11, k), ids(-1, 55, 11, k)
    rows[7, 3], rows[49, 5] = float("nan"), float("inf")
    offsets = torch.tensor([0, 12, 40])
    for bound in (None, offsets):
        args = rows, weights, inverse, bound, k
        got = same(corpus.moe_unpermute, lambda a=args: (*a, filled(11, width, dtype=dtype)), arch=arch)
    assert torch.isfinite(got[5].float()).all() or (inverse == 7).any()


def test_what_was_permuted_comes_back():
    x, found = numbers(20, 128), distinct(20, 16, 4)
    args = permute_arguments(x, found, 16, 16)
    run(corpus.moe_permute, *args)
    out = filled(20, 128, dtype=BF16)
    run(corpus.moe_unpermute, args[7], torch.full((20, 4), 0.25), args[9], args[8], 4, out)
    assert torch.equal(out, x)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("dtype", "width", "k"), [(BF16, 264, 8), (torch.float16, 77, 2)])
def test_sum(arch, dtype, width, k):
    x = numbers(9, k, width, dtype=dtype)
    same(corpus.moe_sum, lambda: (x, filled(9, width, dtype=dtype), None, None), arch=arch)


def test_sum_of_some():
    x, found, local = numbers(9, 4, 64), ids(-1, 66, 9, 4), local_numbers(64, 30)
    found[2] = -1
    for index in (torch.int32, torch.int64):
        got = same(corpus.moe_sum, lambda i=index: (x, filled(9, 64, dtype=BF16), found.to(i), local))
        same(corpus.moe_sum, lambda i=index: (x, filled(9, 64, dtype=BF16), found.to(i), None))
    assert not got[1][2].any()


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_shuffle_rows(index):
    sources = torch.tensor([3, -1, 18, 19, 0, 3, 5]).to(index)
    for dtype, width in ((BF16, 264), (torch.float8_e4m3fn, 96), (torch.float32, 7)):
        x = numbers(19, width).to(dtype)
        got = same(
            corpus.shuffle_rows,
            lambda x=x: (x, sources, filled(7, x.shape[1], dtype=torch.float32, value=7).to(x.dtype)),
        )
        assert (got[2][[1, 3]].float() == 7).all()


def test_wrong_arguments_are_refused():
    found = ids(0, 8, 6, 2)
    with pytest.raises(ValueError, match="num_tokens_post_pad holds 2"):
        run(corpus.moe_align_block_size, found, 8, 16, filled(200), filled(20), filled(2))
    with pytest.raises(ValueError, match="maybe_expert_map holds 7"):
        run(corpus.moe_align_block_size, found, 8, 16, filled(200), filled(20), filled(1), filled(7))
    with pytest.raises(ValueError, match="6 tokens have 3 each"):
        args = list(permute_arguments(numbers(6, 16), found, 8, 8))
        run(corpus.moe_permute, *args[:6], 3, *args[7:])
    with pytest.raises(ValueError, match="expert_map goes with topk_ids"):
        run(corpus.moe_sum, numbers(6, 2, 16), filled(6, 16, dtype=BF16), None, filled(8))
    with pytest.raises(ValueError, match="dst2src_map holds 12"):
        run(corpus.shuffle_rows, numbers(6, 16), found.view(-1), filled(6, 16, dtype=BF16))
    with pytest.raises(ValueError, match="9 of 8 experts"):
        run(corpus.moe_permute, *permute_arguments(numbers(6, 16), found, 8, 9))
