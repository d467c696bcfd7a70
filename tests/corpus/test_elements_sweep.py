"""The sweep over all sizes, dtypes and inputs: its committed result holds what is promised, and comes out again."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutlass")

from tests.corpus import sweep_elements as sweep

ROWS = [sweep.Row(**r) for r in json.loads(sweep.RESULT.read_text())]
# Where the reference's exp, erf or tanh is not CUDA's to the last bit: 16-bit results that are a unit or two off, many
# for gelu with erf, whose 1 + erf(x) cancels in the tail.
NEARLY = {
    "gelu_and_mul": (32, 1e-2), "gelu_tanh_and_mul": (2, 1e-3), "gelu_quick": (1, 1e-3), "gelu_new": (2, 1e-3),
    "gelu_fast": (2, 1e-3), "softmax": (1, 1e-3), "silu_and_mul_per_block_quant": (1, 1e-3),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r.op}-{r.dtype}-{r.arch}")
def test_what_the_sweep_found(row):
    assert row.launches and row.outputs
    if row.dtype == "f32" and row.op not in (
        "relu_squared",
        "topk",
        "embedding",
        "fatrelu_and_mul",
        "rotary_embedding",
    ):
        assert row.most_units <= 64
        return
    units, share = NEARLY.get(row.op, (0, 0.0))
    assert row.most_units <= units and row.unequal <= share * row.outputs


def test_every_op_was_swept():
    swept = {(r.op, r.dtype, r.arch) for r in ROWS}
    wanted = {(o, d, a) for o in sweep.SWEEPS for d in sweep.DTYPES for a in sweep.ARCHS}
    assert swept == {(o, d, a) for o, d, a in wanted if not (d == "f32" and "gelu" in o)}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(sweep.SWEEPS))
def test_the_sweep_comes_out_again(name):
    assert list(sweep.rows([name])) == [r for d in sweep.DTYPES for a in sweep.ARCHS for r in ROWS
                                        if (r.op, r.dtype, r.arch) == (name, d, a)]  # fmt: skip
