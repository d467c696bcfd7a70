"""PRT848: results that ptxas can make of one side, by fusing products into sums, and of the other side cannot."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from porter.case.reader import parse_case
from porter.model import Instance, KernelInfo, KernelParam, Severity, Status
from porter.verify.backends.emulator import EmulatorBackend
from porter.verify.backends.interface import Build
from porter.verify.checks import contraction
from porter.verify.execute import InstanceUnderTest, run_trial
from porter.verify.launches.trials import choose_trials
from porter.verify.numerics.tolerance import derive
from porter.verify.verdicts import InstanceRun, numerics_verdict

CASE = """kernel = "k"
[sizes]
n = 64
[launch]
grid = 1
block = 64
[[buffers]]
name = "x"
dtype = "T"
shape = ["4", "n"]
role = "in"
[[buffers]]
name = "o"
dtype = "T"
shape = ["n"]
role = "out"
"""
INFO = KernelInfo("k", "k", (KernelParam("x", "const void*"), KernelParam("o", "void*")), ())
WORD = {"f16": ("b16", 2), "bf16": ("b16", 2), "f32": ("b32", 4)}


def kernel(body: str, kind: str) -> str:
    """A kernel over x and o of 64 elements a row: `body` makes %r of %a, %b, %c and %d, the rows of x."""
    word, size = WORD[kind]
    body = body.replace(".T", f".{kind}")
    loads = "".join(f"ld.global.{word} %{v}, [%rd4+{64 * n * size}];\n" for n, v in enumerate("abcd"))
    registers = "".join(f".reg .{word} %{v};" for v in "abcdmnr")
    return (
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 x, .param .u64 o)\n{\n"
        f".reg .b64 %rd<7>; .reg .b32 %t; .reg .b32 %v<9>; {registers}\n"
        "ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [o];\n"
        "cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;\n"
        f"mov.u32 %t, %tid.x; mul.wide.u32 %rd3, %t, {size}; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\n"
        f"{loads}{body}\nst.global.{word} [%rd5], %r;\nret;\n}}\n"
    )


PLAIN = "mul.T %m, %a, %b; sub.T %r, %m, %c;"
ROUNDED = "mul.rn.T %m, %a, %b; sub.T %r, %m, %c;"
FUSED = "neg.T %n, %c; fma.rn.T %r, %a, %b, %n;"
TWO = "mul.T %m, %a, %b; mul.T %n, %c, %d; sub.T %r, %m, %n;"
TWO_ROUNDED = "mul.rn.T %m, %a, %b; mul.rn.T %n, %c, %d; sub.T %r, %m, %n;"
MOVED = "mul.T %m, %a, %b; mov.b16 %n, %m; sub.T %r, %n, %c;"
PACKED = (
    "mov.b32 %v1, {%a, %a}; mov.b32 %v2, {%b, %b}; mov.b32 %v3, {%c, %c}; mul.Tx2 %v4, %v1, %v2;"
    "sub.Tx2 %v5, %v4, %v3; mov.b32 {%r, %n}, %v5;"
)


def verified(original: str, port: str, kind: str, more: str = ""):
    """The numerics verdict, and the launches behind it, of one kernel's PTX against another's; `more` of the case."""
    case = parse_case((CASE + more).replace('"T"', f'"{kind}"'), Path("k.case.toml"))
    builds = [
        Build(label, kernel(body, kind), "k", "sm_90a") for label, body in (("original", original), ("port", port))
    ]
    subject = InstanceUnderTest(case, INFO, {}, builds[0], builds[1], reduces=False)
    backend = EmulatorBackend()
    trials = choose_trials(case, case.instances[0], {}, 13, 4)
    shapes = [(case.launch_at(t.point, {}, 8),) * 2 for t in trials]
    run = InstanceRun(Instance(), {"x": kind, "o": kind}, planned=len(trials))
    run.results += [run_trial(subject, t, backend, s) for t, s in zip(trials, shapes, strict=True)]
    before = [len(r.findings) for r in run.results]
    contraction.check(subject, run.results, shapes, backend)
    assert before == [len(r.findings) for r in run.results]
    return numerics_verdict(case, [run], 13, ["normal"]), run.results


@pytest.mark.parametrize("kind", WORD)
@pytest.mark.parametrize(("original", "port"), [(ROUNDED, PLAIN), (TWO_ROUNDED, TWO)], ids=["one", "two"])
def test_what_only_the_port_may_fuse_is_a_difference(kind, original, port):
    verdict, results = verified(original, port, kind)
    assert verdict.status is Status.FAIL
    (found,) = [d for d in verdict.diagnostics if d.severity is Severity.ERROR]
    assert found.code == "PRT848" and "sums of the port" in found.message and f"`sub.{kind}" in found.message
    assert all(c.different == 0 for r in results for c in r.comparisons.values())  # step by step they are equal


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_packed_halves_are_fused_too(kind):
    verdict, _ = verified(ROUNDED, PACKED, kind)
    assert [d.code for d in verdict.diagnostics] == ["PRT848"] and f"`sub.{kind}x2`" in verdict.diagnostics[0].message


@pytest.mark.parametrize("kind", WORD)
def test_what_only_the_original_may_fuse_is_a_difference(kind):
    """ptxas fuses where it may, so a port that rounds gives other results on hardware."""
    verdict, _ = verified(PLAIN, ROUNDED, kind)
    assert verdict.status is Status.FAIL
    assert verdict.diagnostics[0].code == "PRT848" and "sums of the original" in verdict.diagnostics[0].message


@pytest.mark.parametrize(
    ("original", "port", "kind"),
    [
        (PLAIN, PLAIN, "f16"), (PLAIN, PLAIN, "f32"), (TWO, TWO, "f32"), (TWO, TWO, "bf16"), (PLAIN, MOVED, "f16"),
        (PLAIN, PACKED, "f16"), (PLAIN, PACKED, "bf16"), (ROUNDED, ROUNDED, "f32"),
    ],
)  # fmt: skip
def test_the_same_choices_are_no_difference(original, port, kind):
    verdict, _ = verified(original, port, kind)
    assert verdict.status is Status.PASS and verdict.detail.startswith("bit-equal")


def test_a_port_that_is_fused_already_is_compared_as_it_is():
    """The compilers' own fma is in the PTX: the emulator executes it, and there is nothing left to choose."""
    verdict, results = verified(PLAIN, FUSED, "f16")
    assert verdict.status is Status.FAIL and verdict.diagnostics[0].code == "PRT801"
    assert not any(r.contraction for r in results)


def test_differences_within_the_bound_are_none():
    """The bound is that of the output: what the launch itself would be allowed."""
    wide = '[tolerance.o]\nrtol = 1.0\nreason = "no bound to speak of"\n'
    tight, loose = (verified(ROUNDED, PLAIN, "f16", *bound)[1] for bound in ((), (wide,)))
    assert any(r.contraction for r in tight)
    # a row of one huge value gives NaN on one side alone, which no bound allows
    assert not any(r.contraction for r in loose if r.trial.scenario != "rows")


def test_the_nearest_of_several_results_is_found_for_each_element():
    rows = [1.0, np.nan, 3.0, np.inf], [1.5, np.nan, 3.0, 1.0], [1.25, 0.0, 2.0, np.inf]
    of, one, two = (
        SimpleNamespace(dtype="f32", view=lambda r=r: np.array(r, np.float32).view(np.uint32)) for r in rows
    )
    found = contraction.nearest(of, [one, two]).view(np.float32)
    assert found[0] == 1.25 and np.isnan(found[1]) and found[2] == 3.0 and np.isinf(found[3])


def test_machine_code_is_counted_where_it_can_be_read():
    assert contraction.machine_counts(Build("port", "", "k", "sm_90a")) == {}
    from porter.verify.compile.nvdisasm import find_nvdisasm
    from porter.verify.compile.ptxas import cubin_of

    cubin = cubin_of(kernel(PLAIN, "f32"), "sm_90a")
    if cubin is None or find_nvdisasm() is None:
        pytest.skip("ptxas and nvdisasm are not installed")
    assert contraction.machine_counts(Build("port", "", "k", "sm_90a", cubin)) == {"FFMA": 1}
    rounded = cubin_of(kernel(ROUNDED, "f32"), "sm_90a")
    assert contraction.machine_counts(Build("port", "", "k", "sm_90a", rounded)) == {"FMUL": 1, "FADD": 1}


def built(body: str, kind: str) -> Build:
    return Build("k", kernel(body, kind), "k", "sm_90a")


@pytest.mark.parametrize(("kind", "rounding"), [("f16", 2.0**-10), ("bf16", 2.0**-7), ("f32", 2.0**-23)])
def test_on_a_gpu_either_product_of_two_may_be_the_fused_one(kind, rounding):
    """Seen on an H200: both sides have one sum of two products, and ptxas fused the other product in the port."""
    assert contraction.choice_of_products(built(TWO, kind), built(TWO, kind)) == rounding
    tolerance = derive(kind, "close", products=rounding)
    assert tolerance.row == rounding and tolerance.bit_equal == 0.0 and "ptxas fuses either" in tolerance.why


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("sides", [(PLAIN, PLAIN), (TWO, TWO_ROUNDED), (TWO_ROUNDED, TWO_ROUNDED), (TWO, PLAIN)])
def test_a_gpu_has_no_choice_where_the_sides_offer_none(kind, sides):
    assert contraction.choice_of_products(*(built(side, kind) for side in sides)) == 0.0
    assert derive(kind, "close").exact
