"""Dispatch of tokens to experts and their combination, in the emulator: equal to the bit, in one launch and in two."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.runtime import tuning
from tests.corpus.emulated import run
from tests.corpus.ops.moe_inputs import distinct, filled, ids, local_numbers, numbers, same

E4M3, BF16 = torch.float8_e4m3fn, torch.bfloat16


def arguments(x, found, experts, here, first=0, padding=1, expert_map=None, everything=True, room=None):
    tokens, k = found.shape
    rows = tokens * k + here * (padding - 1) if room is None else room
    out = filled(rows, x.shape[1], dtype=torch.float32, value=7).to(x.dtype)
    base = out, filled(here + 1), filled(tokens, k), x, found, experts, first, padding, expert_map
    if not everything:
        return base
    scale, weights = torch.rand(tokens, 3, generator=torch.Generator().manual_seed(4)), torch.rand(tokens, k)
    weights = weights.copy_(torch.arange(tokens * k).view(tokens, k) / 8)
    out_scale, row_weights = (filled(*s, dtype=torch.float32) for s in ((rows, 3), (rows,)))
    return *base, out_scale, scale, filled(here), filled(rows), row_weights, weights


@pytest.mark.parametrize(
    ("arch", "launches", "padding"), [("sm_90a", 1, 1), ("sm_90a", 2, 16), ("sm_100a", 1, 16), ("sm_100a", 2, 1)]
)
def test_codes_with_scales_of_a_range_of_experts(arch, launches, padding):
    """Experts 16 to 39 of 64: offsets, counts, sources and weights of rows, codes, scales; other rows untouched."""
    x, found = numbers(23, 384).to(E4M3), ids(-1, 66, 23, 6)
    with tuning.forced({"launches": launches, "warps": 4, "at_once": 2}):
        got = same(corpus.moe_dispatch, lambda: arguments(x, found, 64, 24, 16, padding), arch=arch, sms=4)
    out, offsets, inverse, source = got[0].float(), got[1], got[2].view(-1), got[12]
    held = (found.view(-1) >= 16) & (found.view(-1) < 40)
    assert torch.equal(inverse >= 0, held) and (offsets % padding == 0).all()
    for entry in held.nonzero().flatten().tolist():
        row = int(inverse[entry])
        assert source[row] == entry and torch.equal(out[row], x[entry // 6].float())
        assert offsets[found.view(-1)[entry] - 16] <= row < offsets[found.view(-1)[entry] - 15]
    free = source == found.numel()
    assert (out[free] == 7).all() and not got[13][free].any() and int((~free).sum()) == int(held.sum())


def test_experts_by_a_map_and_too_little_room():
    x, found, local = numbers(19, 64), distinct(19, 32, 4), local_numbers(32, 8)
    same(corpus.moe_dispatch, lambda: arguments(x, found, 32, 8, 0, 8, local, False), sms=3)
    same(corpus.moe_dispatch, lambda: arguments(x, found, 32, 8, 0, 8, local, True, 9), sms=3)


@pytest.mark.parametrize("launches", [1, 2])
@pytest.mark.parametrize("tokens", [0, 1, 9])
def test_few_tokens(launches, tokens):
    hot = torch.full((tokens, 3), 2, dtype=torch.int64)
    with tuning.forced({"launches": launches}):
        same(corpus.moe_dispatch, lambda: arguments(numbers(tokens, 40), hot, 4, 4, everything=False), sms=2)


def test_the_same_again_under_other_schedules():
    """Which warp or block comes first does not matter."""
    from porter.corpus.runtime.device import Device
    from tests.corpus.emulated import launches

    x, found = numbers(40, 64), ids(0, 16, 40, 4)
    for ways in (1, 2):
        first = None
        for seed in (0, 3, 8):
            args = arguments(x, found, 16, 16, everything=False)
            with tuning.forced({"launches": ways, "warps": 4, "cluster": 4 if ways == 2 else 1}):
                op = corpus.moe_dispatch.op
                kernel, bind = op.plan(Device("sm_90a", 4, "emulated"), *op.bind(args, {}))
            calls = []
            bind(lambda *a, calls=calls: calls.append(a))(*op.bind(args, {}))
            launches(kernel, calls[0], "sm_90a", seed=seed)
            first = first or [t.clone() for t in args[:3]]
            assert all(torch.equal(a, b) for a, b in zip(first, args[:3], strict=True))


@pytest.mark.parametrize(
    ("arch", "dtype", "width", "k"),
    [("sm_90a", BF16, 264, 8), ("sm_100a", torch.float16, 77, 3), ("sm_90a", torch.float32, 32, 16)],
)  # fmt: skip
def test_combine(arch, dtype, width, k):
    rows, inverse = numbers(30, width, dtype=dtype), ids(-2, 33, 7, k)
    weights, shared = torch.rand(7, k), numbers(7, width, seed=9, dtype=dtype)
    for w, s in ((weights, shared), (None, shared), (weights, None), (None, None)):
        same(corpus.moe_combine, lambda w=w, s=s: (filled(7, width, dtype=dtype), rows, inverse, w, s), arch=arch)


def test_what_was_dispatched_comes_back():
    x, found, weights = numbers(20, 128), distinct(20, 16, 4), torch.full((20, 4), 0.25)
    args = arguments(x, found, 16, 16, 0, 4, everything=False)
    run(corpus.moe_dispatch, *args)
    out = filled(20, 128, dtype=BF16)
    run(corpus.moe_combine, out, args[0], args[2], weights, None)
    assert torch.equal(out, x)


def test_wrong_arguments_are_refused():
    x, found = numbers(6, 16), ids(0, 8, 6, 2)
    with pytest.raises(ValueError, match="experts 4 to 11, padded to 1, of 8"):
        run(corpus.moe_dispatch, *arguments(x, found, 8, 8, 4))
    with pytest.raises(ValueError, match="first_expert must be 0"):
        run(corpus.moe_dispatch, *arguments(x, found, 8, 4, 4, 1, local_numbers(8, 4)))
    with pytest.raises(ValueError, match="input_scale and output_scale go together"):
        run(corpus.moe_dispatch, *arguments(x, found, 8, 8, everything=False), None, torch.rand(6, 2))
    with pytest.raises(ValueError, match="shared_output has 5 rows"):
        run(corpus.moe_combine, filled(6, 16, dtype=BF16), x, ids(0, 6, 6, 2), None, numbers(5, 16))
