"""First divergence: wrong ports of each kind, the place that is named; taps; lines behind library calls."""

from __future__ import annotations

import ast
import os
from functools import cache

import numpy as np
import pytest

from porter.model import PorterError, Status
from porter.verify import emulator as ptx
from porter.verify.checks.divergence import Side, first_divergence
from porter.verify.original.nvrtc import require_nvrtc
from tools.mutation.subjects import Mutant, judge, mutants, subjects

pytest.importorskip("cutlass")
try:
    require_nvrtc()
except PorterError as error:
    pytest.skip(str(error), allow_module_level=True)


@cache
def of_class(kernel: str, kind: str) -> list[Mutant]:
    (subject,) = subjects({kernel})
    return mutants(subject, {kind}, every=True)


def accepted_lines(mutant: Mutant) -> set[int]:
    """The mutated line, and those of the statements that use what it gives: a name, a bound, a guard."""
    tree = ast.parse(mutant.text)
    line = mutant.line
    at = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno == line]
    names: set[str] = set()
    lines = {line}
    for node in at:
        if isinstance(node, ast.Assign):
            names |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        if isinstance(node, ast.For | ast.While | ast.If):  # what runs under it runs too seldom or too often
            lines |= {n.lineno for s in node.body for n in ast.walk(s) if isinstance(n, ast.stmt)}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef):
            used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            if used & names:
                lines.add(node.lineno)
                if isinstance(node, ast.For | ast.While | ast.If):
                    lines |= {n.lineno for s in node.body for n in ast.walk(s) if isinstance(n, ast.stmt)}
    return lines


WRONG = [
    ("layer_norm", "missing-lane", 0),
    ("rms_norm", "missing-lane", 0),
    ("per_token_fp8_quant", "wrong-constant", 0),
    ("gelu_tanh_and_mul", "wrong-constant", 1),
    ("permute_rows", "missing-tail", 0),
    ("layer_norm", "missing-tail", 0),
    ("softmax", "off-by-one-stride", 0),
    ("rms_norm", "off-by-one-stride", 0),
    ("layer_norm", "bf16-accumulator", 0),
    ("dequant_bias", "floor-division", 0),
]


@pytest.mark.parametrize(("kernel", "kind", "number"), WRONG, ids=lambda v: str(v))
def test_the_wrong_statement_is_named(kernel, kind, number, tmp_path):
    mutant = of_class(kernel, kind)[number]
    found = {v.check: v for v in judge(mutant.subject, mutant.text, tmp_path, 7, explain=True, launches=6)}
    numerics = found["numerics"]
    assert numerics.status is Status.FAIL
    assert numerics.facts.smallest.sizes
    place = numerics.facts.divergence
    note = next(d for d in numerics.diagnostics if d.code == "PRT805")
    assert place.port_line in accepted_lines(mutant), (place, mutant.line, mutant.after)
    span = next(e.span for e in mutant.subject.line_map if e.line == place.port_line)
    assert place.cuda_line == span.line
    assert note.span.line == place.port_line and os.path.basename(note.span.file) == f"{kernel}.py"
    assert f"line {span.line} of {kernel}.cu" in note.message


def test_a_true_port_does_not_part_by_more_than_rounding(tmp_path):
    (subject,) = subjects({"layer_norm"})
    verdicts = {v.check: v for v in judge(subject, subject.text, tmp_path, 3, explain=True, launches=4)}
    assert verdicts["numerics"].status is Status.PASS and verdicts["numerics"].facts.divergence is None


# ---------------------------------------------------------------- taps

KERNEL = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 x)
{{
    .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<8>;
    .shared .align 4 .b8 s[128];
    .loc 1 3 1
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [x];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    .loc 1 4 1
    ld.global.f32 %f1, [%rd4];
    .loc 1 5 1
    mul.f32 %f2, %f1, 0f{factor};
    mov.b32 %r2, %f2;
    .loc 1 6 1
    shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;
    .loc 1 7 1
    shl.b32 %r4, %r1, 2;
    mov.u32 %r5, s;
    add.s32 %r5, %r5, %r4;
    st.shared.b32 [%r5], %r3;
    .loc 1 8 1
    bar.sync 0;
    .loc 1 9 1
    add.s64 %rd5, %rd1, %rd3;
    st.global.b32 [%rd5], %r3;
    ret;
}}
.file 1 "k.cu"
"""


def record(text):
    module, taps = ptx.load(text), ptx.Taps()
    out = ptx.Buffer(np.zeros(32, np.float32), "out", initialised=False)
    x = ptx.Buffer(np.arange(1, 33, dtype=np.float32), "x", writable=False)
    ptx.launch(module, "k", 1, 32, [out, x], taps=taps)
    return taps, module, out.array


def test_taps_record_values_and_places_in_order():
    taps, _, out = record(KERNEL.format(factor="40000000"))
    assert [e.kind for e in taps.events] == [
        "load.global", "mul", "shfl", "store.shared", "barrier", "store.global",
    ]  # fmt: skip
    load, product, shuffled, shared, barrier, store = taps.events
    assert load.threads.tolist() == list(range(32)) and (np.diff(load.places[:, 0]) == 4).all()
    doubled = np.arange(1, 33, dtype=np.float32) * 2
    assert product.values[:, 0].astype(np.uint32).view(np.float32).tolist() == doubled.tolist()
    swapped = doubled.reshape(-1, 2)[:, ::-1].reshape(-1)
    for event in (shuffled, shared, store):
        assert event.values[:, 0].astype(np.uint32).view(np.float32).tolist() == swapped.tolist()
    assert out.tolist() == swapped.tolist() and barrier.values is None


def test_recording_stops_at_its_limit(monkeypatch):
    monkeypatch.setattr("porter.verify.emulator.checks.taps.LIMIT", 40)
    taps, _, out = record(KERNEL.format(factor="40000000"))
    assert taps.truncated and len(taps.events) == 2 and out[0] == 4.0


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (("0f40000000", "0f40400000"), "mul"),
        (("bfly.b32 %r3, %r2, 1,", "bfly.b32 %r3, %r2, 2,"), "shfl"),
        (("    bar.sync 0;\n", ""), "barrier"),
        (("mul.wide.u32 %rd3, %r1, 4", "mul.wide.u32 %rd3, %r1, 0"), "load.global"),
        (("    st.shared.b32 [%r5], %r3;\n", ""), "store.shared"),
    ],
    ids=["constant", "lane", "barrier", "stride", "store"],
)
def test_what_differs_first_is_found(change, kind):
    text = KERNEL.format(factor="40000000")
    assert change[0] in text
    sides = [Side(*record(t)[:2], "k.cu") for t in (text, text.replace(*change))]
    found = first_divergence(*sides, (), 32)
    assert found is not None and found.kind == kind
    assert first_divergence(sides[0], sides[0], (), 32) is None


def test_the_order_in_which_a_statement_loads_its_operands_is_no_divergence():
    """One compiler loads b before a: only what is stored tells whether the statement is right."""
    loads = ["    ld.global.f32 %f1, [%rd4];\n", "    ld.global.f32 %f3, [%rd4+4];\n"]
    line = "    shl.b32 %r4, %r1, 2;\n"
    text = KERNEL.format(factor="40000000").replace("%tid.x;", "%tid.x;\n    and.b32 %r1, %r1, 15;")
    one, other = (text.replace(loads[0], "".join(order)) for order in (loads, loads[::-1]))
    sides = [Side(*record(t)[:2], "k.cu") for t in (one, other)]
    assert sides[0].taps.events[0].places.tolist() != sides[1].taps.events[0].places.tolist()
    assert first_divergence(*sides, (), 32) is None
    wrong = Side(*record(other.replace(line, f"{line}    xor.b32 %r3, %r3, 8388608;\n"))[:2], "k.cu")
    found = first_divergence(sides[0], wrong, (), 32)
    assert found is not None and found.kind == "store.shared"
