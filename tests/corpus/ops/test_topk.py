"""Row top-k in the emulator: values and indices equal to a stable sort's."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.softmax import reference
from tests.corpus.emulated import run
from tests.corpus.ops.test_activations import random

ARCHS = ("sm_90a", "sm_100a")


def check(x, k, index=torch.int32, values=None, **options):
    shape = (*x.shape[:-1], k)
    got, want = (torch.zeros(shape, dtype=values or x.dtype) for _ in range(2))
    where, there = (torch.zeros(shape, dtype=index) for _ in range(2))
    run(corpus.topk, got, where, x, **options)
    reference.topk(want, there, x)
    assert torch.equal(where, there)
    assert torch.equal(got.nan_to_num(nan=7.0), want.nan_to_num(nan=7.0))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("shape", "k"), [((5, 128), 8), ((3, 1000), 50), ((2, 77), 77)])
def test_topk(arch, shape, k):
    check((random(*shape) * 2).round() / 2, k, arch=arch)  # many equal numbers


def test_several_rows_a_block_and_other_dtypes():
    check(random(9, 64, dtype=torch.float32), 4, torch.int64, sms=1)
    check(random(2, 3, 256, dtype=torch.float16), 6, values=torch.float32)


def test_ties_zeros_infinities_and_nan():
    x = torch.zeros(6, 256)
    x[0] = 1.5
    x[1, 3::2] = -0.0
    x[2] = -float("inf")
    x[3, [9, 200]] = float("nan")
    x[4, [5, 6, 7]] = float("inf")
    x[5, 100:] = float("nan")
    check(x.bfloat16(), 12)


def test_softmax_of_the_chosen():
    x = random(4, 512)
    values, indices = torch.empty(4, 8), torch.empty(4, 8, dtype=torch.int32)
    run(corpus.topk, values, indices, x, True)
    want = x.double().sort(dim=-1, descending=True, stable=True)
    assert torch.equal(indices, want.indices[:, :8].int())
    torch.testing.assert_close(values.double(), want.values[:, :8].softmax(-1), rtol=2e-6, atol=0)


def test_wrong_arguments_are_refused():
    x = random(4, 64)
    with pytest.raises(ValueError, match="no 65 largest"):
        run(corpus.topk, torch.empty(4, 65).bfloat16(), torch.empty(4, 65, dtype=torch.int32), x)
    with pytest.raises(ValueError, match="indices has shape"):
        run(corpus.topk, torch.empty(4, 6).bfloat16(), torch.empty(4, 5, dtype=torch.int32), x)
    assert run(corpus.topk, torch.empty(0, 4), torch.empty(0, 4).int(), torch.empty(0, 64)) == []
