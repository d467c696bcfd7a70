"""Softmax in the emulator, against float64."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from porter import corpus
from porter.corpus.ops.softmax import reference
from porter.corpus.ops.softmax.functions import spread_softmax
from porter.corpus.runtime import tuning
from porter.corpus.runtime.device import Device
from tests.corpus.emulated import run
from tests.corpus.numerics import ulps
from tests.corpus.ops.test_activations import random

ARCHS = ("sm_90a", "sm_100a")


def check(x, out, temperature=None, **options):
    want = x.double() if temperature is None else x.double() / temperature.double()[:, None]
    want = want.softmax(-1)
    run(corpus.softmax, out, x, temperature, **options)
    if out.dtype == torch.float32:
        torch.testing.assert_close(out.double(), want, rtol=4e-6, atol=1e-37)
    else:
        distance = ulps(out, want.to(out.dtype))
        assert distance.max() <= 1 and (distance > 0).double().mean() < 1e-3


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("shape", [(2, 4096), (5, 77), (9, 128), (1, 32768)])
def test_softmax(arch, shape):
    x = random(*shape)
    check(x, torch.empty_like(x), arch=arch)


@pytest.mark.parametrize("arch", ARCHS)
def test_a_cluster_a_row(arch):
    x = random(2, 65536)
    check(x, torch.empty_like(x), arch=arch, sms=1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_dtypes_and_temperature(dtype):
    x = random(3, 1030, dtype=dtype)
    temperature = torch.tensor([1.0, 0.5, 3.0])
    check(x, torch.empty_like(x), temperature)
    check(x, torch.empty(3, 1030), temperature)


@pytest.mark.parametrize("shape", [(6,), (6, 1), (2, 3)])
def test_shapes_of_temperatures(shape):
    """One a row, in any shape: for the kernel and for torch's operators."""
    x, temperature = random(2, 3, 40, dtype=torch.float32), torch.linspace(0.5, 3.0, 6).view(shape)
    out, want = torch.empty_like(x), torch.empty_like(x)
    run(corpus.softmax, out, x, temperature)
    reference.softmax(want, x, temperature)
    torch.testing.assert_close(out, want, rtol=4e-6, atol=0.0)


def test_in_place_with_strided_rows():
    wide = random(6, 300)
    x = wide[:, 8:264]
    want = x.double().softmax(-1).bfloat16()
    before = wide.clone()
    run(corpus.softmax, x, x)
    assert ulps(x, want).max() <= 1
    assert torch.equal(wide[:, :8], before[:, :8]) and torch.equal(wide[:, 264:], before[:, 264:])


@pytest.mark.parametrize("length", [64, 4096, 65536])
def test_infinities_and_nan(length):
    x = random(5, length)
    x[0, ::2] = -float("inf")
    x[1] = -float("inf")
    x[2, 5] = float("nan")
    x[3, : length // 2] = -float("inf")
    x[3, length // 2 :] = -1e4
    x[4, 7] = float("inf")
    out = torch.empty_like(x)
    run(corpus.softmax, out, x, sms=2)
    want = x.double().softmax(-1).bfloat16()
    assert torch.equal(out.isnan(), want.isnan())
    assert torch.equal(out[3], want[3])
    assert ulps(out[0], want[0]).max() <= 1


def test_how_rows_are_spread():
    h200 = Device("sm_90a", 132)

    def spread(rows, length):
        with tuning.forced({}):  # the rule, whatever a tuning table says
            choice = spread_softmax(h200, "bf16", rows, length, 8, 4)
        return choice["threads"], choice["rows"], choice["cluster"]

    assert spread(4096, 4096) == (128, 1, 1)
    assert spread(1024, 32768) == (512, 1, 1)
    assert spread(256, 131072) == (512, 1, 4)
    assert spread(1, 32768) == (128, 1, 4)
    assert spread(1, 131072) == (256, 1, 8)
    assert spread(100000, 128) == (16, 32, 1)


@pytest.mark.parametrize(
    "choice",
    [
        {"keep": False},
        {"prefetch_distance": 2},
        {"prefetch": True, "prefetch_blocks": 4},
        {"threads": 32, "rows": 4},
        {"cluster": 2},
    ],
)
def test_other_choices_give_the_same(choice):
    x = random(9, 512)
    out, other = torch.empty_like(x), torch.empty_like(x)
    run(corpus.softmax, out, x)
    with tuning.forced(choice):
        run(corpus.softmax, other, x)
    assert ulps(out, other).max() <= 1
    assert ulps(other, x.double().softmax(-1).bfloat16()).max() <= 1
