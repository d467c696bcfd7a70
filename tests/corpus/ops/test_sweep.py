"""Every op of the corpus against its references in the emulator: a little here, the rest in a committed sweep."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

import torch

from tests.corpus import sweep
from tests.corpus.element_cases import ONCE
from tests.corpus.norm_cases import TWICE
from tests.corpus.numerics import Op, Tally, cases, name_of

OPS = {op.name: op for op in sweep.OPS}


@pytest.mark.parametrize("arch", sweep.ARCHS)
@pytest.mark.parametrize("name", list(OPS))
def test_two_shapes_of_one_dtype(name, arch):
    op = OPS[name]
    tally = Tally(op, torch.bfloat16)
    for tokens, length in ((3, op.lengths[1]), (1, op.lengths[2])):
        for kind in ("normal", op.kinds[-1]):
            tally.try_case(sweep.emulated(arch), tokens, length, op.variants[0], kind, "cpu")
    row = tally.check()
    assert row.cases == 4 and row.outputs


@pytest.mark.parametrize("op", (*TWICE, *ONCE), ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_other_profiles(op, dtype):
    tally = Tally(op, dtype)
    for tokens, variant, kind in cases(op, op.lengths[0], (3,), (3,), 1 << 17):
        tally.try_case(sweep.emulated("sm_90a"), tokens, op.lengths[0], variant, kind, "cpu")
    assert tally.check().outputs


@pytest.mark.parametrize("row", sweep.read(), ids=lambda r: "-".join(sweep.key(r)))
def test_what_the_sweep_found(row):
    op, wide = OPS[row["op"]], row["dtype"] == "float32"
    assert row["cases"] > 10 and row["outputs"] > 1000
    assert row["most_units"] <= op.units[wide] and row["most_units_from_float64"] <= op.float64_units[wide]
    if not wide:
        assert row["unequal"] <= (1 - op.equal) * row["outputs"]


def test_every_op_was_swept():
    swept = {sweep.key(r) for r in sweep.read()}
    assert swept == {(op.name, name_of(d), a) for op in sweep.OPS for d in op.dtypes for a in sweep.ARCHS}


@pytest.mark.slow
@pytest.mark.parametrize("row", sweep.read(), ids=lambda r: "-".join(sweep.key(r)))
def test_the_sweep_comes_out_again(row):
    """As many cases, all within the limits; the bits may be others where a tuning table spreads rows in another way."""
    again = sweep.sweep(OPS[row["op"]], getattr(torch, row["dtype"]), row["arch"])
    assert again.cases == row["cases"]


def test_a_wrong_kernel_is_found():
    """The comparison is itself tried: a result a few units off, a guard overwritten, an input changed."""
    op: Op = OPS["rms_norm"]

    def with_error(wrong):
        def call(function, *args):
            sweep.emulated("sm_90a")(function, *args)
            wrong(*args)
            return True

        tally = Tally(op, torch.bfloat16)
        tally.try_case(call, 3, 96, "plain", "normal", "cpu")
        tally.check()

    with_error(lambda *args: None)
    with pytest.raises(AssertionError, match="units from the reference"):
        with_error(lambda out, *_: out[2, 5:6].mul_(1.02))
    with pytest.raises(AssertionError, match="in one only"):
        with_error(lambda out, *_: out[0, :1].fill_(float("nan")))
    with pytest.raises(AssertionError, match="outside were written"):
        with_error(lambda out, *_: torch.as_strided(out, (1,), (1,), out.storage_offset() + out.numel()).fill_(1))
    with pytest.raises(AssertionError, match="read only"):
        with_error(lambda out, x, *_: x[0, :1].add_(1))
