"""Embedding in the emulator: copies to the bit."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.embedding import reference
from tests.corpus.emulated import run
from tests.corpus.ops.test_activations import random

ARCHS = ("sm_90a", "sm_100a")


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("index", "dtype"), [(torch.int64, torch.bfloat16), (torch.int32, torch.float32)])
def test_part_of_a_vocabulary(arch, index, dtype):
    weight = random(50, 264, dtype=dtype)
    indices = torch.tensor([[0, 99, 100, 149], [-1, 150, 120, 100], [1 << 30, 149, 130, -(1 << 30)]]).to(index)
    out, want = (torch.full((3, 4, 264), 7.0, dtype=dtype) for _ in range(2))
    run(corpus.embedding, out, indices, weight, 100, 148, arch=arch)
    reference.embedding(want, indices, weight, 100, 148)
    assert torch.equal(out, want)
    assert out[0, 2].any() and not out[0, 3].any()  # 149 is a row of padding


def test_rows_of_odd_length_and_many_tokens():
    weight = random(20, 77)
    indices = torch.randint(0, 20, (300,), generator=torch.Generator().manual_seed(1))
    out = torch.empty(300, 77).bfloat16()
    run(corpus.embedding, out, indices, weight, sms=2)
    assert torch.equal(out, weight[indices])


def test_indices_beyond_a_whole_table_give_zeros():
    weight, indices = random(20, 64), torch.tensor([19, 20, 4000, -1, 0])
    out, want = torch.full((5, 64), 7.0).bfloat16(), torch.zeros(5, 64).bfloat16()
    want[[0, 4]] = weight[[19, 0]]
    run(corpus.embedding, out, indices, weight)
    assert torch.equal(out, want)


def test_wrong_arguments_are_refused():
    weight, indices = random(20, 64), torch.zeros(3, dtype=torch.int64)
    with pytest.raises(ValueError, match="out has shape"):
        run(corpus.embedding, torch.empty(4, 64).bfloat16(), indices, weight)
    with pytest.raises(ValueError, match="not those of"):
        run(corpus.embedding, torch.empty(3, 64).bfloat16(), indices, weight, 0, 21)
    assert run(corpus.embedding, torch.empty(0, 64).bfloat16(), indices[:0], weight) == []
