"""One mutant of each class, killed by a check that is meant for it; the committed result of the whole sweep."""

from __future__ import annotations

import ast
import json
from functools import cache

import pytest

from porter.model import PorterError, Status
from porter.verify.original.nvrtc import require_nvrtc
from tools.mutation.classes import CLASSES
from tools.mutation.port_text import PortText
from tools.mutation.subjects import EQUIVALENT, Subject, failing, judge, mutants, sources, subjects
from tools.mutation.table import DOCUMENT, RESULT, table

KERNELS = {  # small ones that have the class
    "dropped-max": "topk_softmax", "eps-outside-mean": "rms_norm", "eps-outside-root": "layer_norm",
    "bf16-accumulator": "layer_norm", "truncation": "dynamic_int8_quant", "wrong-scale-floor": "per_token_fp8_quant",
    "nan-rule": "per_token_fp8_quant", "wrong-constant": "per_token_fp8_quant", "wrong-clamp": "per_token_fp8_quant",
    "dropped-abs": "per_token_fp8_quant", "wrong-sign": "dequant_bias", "extra-rounding": "rms_norm_static_fp8_quant",
    "wrong-start": "topk_softmax", "missing-tail": "dequant_bias", "odd-vector": "per_token_fp8_quant",
    "unwritten-last": "dequant_bias", "unwritten-first": "dequant_bias", "off-by-one-guard": "dynamic_int8_quant",
    "unguarded-id": "moe_align_block_size", "short-grid": "dequant_bias", "missing-barrier": "layer_norm",
    "missing-lane": "rms_norm", "mask-lane": "per_token_fp8_quant", "lost-atomic": "moe_align_block_size",
    "missing-fence": "moe_dispatch", "wrong-tie-break": "topk_softmax", "swapped-parameters": "layer_norm",
    "off-by-one-stride": "rms_norm", "contiguous-rows": "rms_norm", "narrow-index": "rms_norm",
    "vector-stride": "per_token_fp8_quant", "transposed-scales": "topk_softmax", "dropped-store": "dequant_bias",
    "unsigned-as-signed": "dequant_bias", "unsigned-compare": "dequant_bias", "floor-division": "dequant_bias",
    "disagreeing-masks": "per_token_fp8_quant", "early-barrier": "moe_dispatch", "unset-local": "embedding",
    "power-of-two-step": "per_token_group_fp8_quant",
}  # fmt: skip
INSTANCES = {"power-of-two-step": 3}  # where the first does not have the class


@cache
def subject_of(kernel: str) -> Subject:
    (subject,) = subjects({kernel})
    return subject


def needs_compilers() -> None:
    pytest.importorskip("cutlass")
    try:
        require_nvrtc()
    except PorterError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("kind", CLASSES)
def test_one_mutant_of_each_class_is_killed_by_its_check(kind, tmp_path):
    needs_compilers()
    subject = subject_of(KERNELS[kind])
    mutant = mutants(subject, {kind})[0]
    found = judge(subject, mutant.text, tmp_path, 5, only=(INSTANCES.get(kind, 0),), launches=10)
    assert set(failing(found)) & set(mutant.kind.checks), (mutant.before, mutant.after, found)


@pytest.mark.parametrize("kernel", sorted(set(KERNELS.values())))
def test_the_ports_that_they_are_made_of_pass(kernel, tmp_path):
    needs_compilers()
    subject = subject_of(kernel)
    found = judge(subject, subject.text, tmp_path, 5, only=(0,), launches=10)
    assert {v.status for v in found} <= {Status.PASS, Status.SKIP}, found


PORT = """
@cute.kernel
def k(out: cute.Pointer, n: Int32):
    a = 1
    if a < n:
        out[a] = (a -
                  n)


def launch_config(*, n, **_):
    return (n, 1, 1), (32, 1, 1), 0
"""


def test_an_edit_keeps_line_numbers_and_everything_else():
    port = PortText(PORT)
    (edit,) = CLASSES["wrong-sign"].edits(port)
    text = port.applied(edit)
    assert "out[a] = ((a + n))" in text and text.count("\n") == PORT.count("\n")
    assert text.splitlines()[8:] == PORT.splitlines()[8:]
    (grid,) = CLASSES["short-grid"].edits(port)
    assert "return (max((n) - 1, 1), 1, 1)" in port.applied(grid)


@pytest.mark.parametrize("kernel", ["softmax", "moe_dispatch", "qk_norm"])
def test_every_mutant_is_another_program(kernel):
    subject = subject_of(kernel)
    for mutant in mutants(subject, every=True):
        assert ast.dump(ast.parse(mutant.text)) != ast.dump(ast.parse(subject.text)), mutant.key
        assert mutant.before != mutant.after


# ---------------------------------------------------------------- the committed sweep


def test_the_sweep_covers_what_it_claims():
    found = json.loads(RESULT.read_text())
    rows = found["mutants"]
    kernels = {r["kernel"] for r in rows} - set(found["fixtures"])
    assert len(rows) >= 80 and len(kernels) >= 12
    assert {r["class"] for r in rows} == set(CLASSES)
    for row in rows:
        assert set(row["killed_by"]) & set(CLASSES[row["class"]].checks), row
    for kernel, true in found["true_ports"].items():
        assert true["rejected"] == [], kernel
    assert kernels <= set(found["true_ports"])
    assert all(kernel in {p.stem for p in sources()} for kernel in kernels)
    assert all(reason for reason in EQUIVALENT.values())


def test_the_table_in_the_documentation_is_the_committed_sweep_s():
    assert table(json.loads(RESULT.read_text())) in DOCUMENT.read_text()
