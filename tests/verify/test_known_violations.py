"""What a case may know about its original: reads without effect, races that are there, products that are fused."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.case.reader import LaunchShape, parse_case
from porter.model import Instance, KernelInfo, KernelParam, PorterError, Status
from porter.source import Span
from porter.verify.backends.emulator import EmulatorBackend
from porter.verify.backends.interface import Build, RunResult, Violation
from porter.verify.emulator.checks.violations import KINDS
from porter.verify.execute import InstanceUnderTest, TrialResult, run_trial
from porter.verify.launches.trials import Trial
from porter.verify.numerics.tolerance import adds_products, derive
from porter.verify.verdicts import InstanceRun, sanitizer_verdict

CASE = """
kernel = "k"
[sizes]
n = 32
[[buffers]]
name = "out"
dtype = "f32"
shape = ["n"]
role = "out"
[launch]
grid = 1
block = 32
"""
PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .pred %q; .reg .f32 %f<4>; .reg .b32 %r<4>; .reg .b64 %d<4>;
  .shared .align 4 .b8 s[256];
  ld.param.u64 %d1, [p];
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d2, %r1, 4;
  add.s64 %d3, %d1, %d2;
  mov.f32 %f1, 0f3F800000;
  ld.shared.f32 %f2, [s+128];
  add.f32 %f2, %f1, %f2;
  setp.lt.u32 %q, %r1, LIMIT;
  selp.f32 %f3, %f2, %f1, %q;
  st.global.f32 [%d3], %f3;
  ret;
}
"""
SHAPE = LaunchShape((1, 1, 1), (32, 1, 1))


def result_of(limit: int) -> TrialResult:
    """A launch of a kernel that loads shared memory nobody wrote, and uses it in threads below `limit`."""
    case = parse_case(CASE, Path("k.case.toml"))
    info = KernelInfo("k", "k", (KernelParam("out", "float *"),), span=Span("k.cu", 1))
    build = Build("original", PTX.replace("LIMIT", str(limit)), "k", "sm_90a")
    (point,) = case.points()
    return run_trial(
        InstanceUnderTest(case, info, {}, build, build), Trial(point, "normal", 1), EmulatorBackend(), (SHAPE, SHAPE)
    )


def test_a_read_whose_value_is_thrown_away_is_no_violation() -> None:
    result = result_of(0)
    assert not result.error
    assert not result.original.violations and not result.port.violations


def test_a_read_whose_value_is_used_is_one() -> None:
    result = result_of(3)
    assert {v.kind for v in result.original.violations} == {"uninitialised-read"}
    assert {v.kind for v in result.port.violations} == {"uninitialised-read"}


def verdict(original: tuple[str, ...], port: tuple[str, ...], known: str = ""):
    case = parse_case(CASE + known, Path("k.case.toml"))
    (point,) = case.points()
    found = TrialResult(Trial(point, "normal", 1), comparisons={"out": None})  # type: ignore[dict-item]
    found.original = RunResult(tuple(Violation(k, "m") for k in original))
    found.port = RunResult(tuple(Violation(k, "m") for k in port))
    return sanitizer_verdict(case, [InstanceRun(Instance(), {"out": "f32"}, [found], 1)], ("shared-race",))


RACE = '[original]\nviolations = ["shared-race"]\nreason = "scratch is used twice"\n'


def test_a_known_race_passes_with_its_reason() -> None:
    assert verdict(("shared-race",), ("shared-race",)).status is Status.ERROR
    passed = verdict(("shared-race",), ("shared-race",), RACE)
    assert passed.status is Status.PASS
    assert "scratch is used twice" in passed.detail and passed.diagnostics
    assert verdict(("shared-race",), (), RACE).status is Status.PASS


def test_a_known_race_excuses_the_port_only_where_the_original_has_it() -> None:
    assert verdict((), ("shared-race",), RACE).status is Status.FAIL
    assert verdict(("shared-race",), ("shared-race", "out-of-bounds"), RACE).status is Status.FAIL
    assert verdict(("shared-race", "out-of-bounds"), (), RACE).status is Status.ERROR


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_may_be_known(kind: str) -> None:
    known = f'[original]\nviolations = ["{kind}"]\nreason = "x"\n'
    assert verdict((kind,), (kind,)).status is Status.ERROR
    assert verdict((kind,), (kind,), known).status is Status.PASS
    assert verdict((), (kind,), known).status is Status.FAIL


@pytest.mark.parametrize(
    "text", ['[original]\nviolations = ["shared-race"]\n', '[original]\nviolations = ["rudeness"]\nreason = "x"\n']
)
def test_known_violations_need_a_reason_and_a_kind_that_there_is(text: str) -> None:
    with pytest.raises(PorterError, match=r"original\.violations"):
        parse_case(CASE + text, Path("k.case.toml"))


def test_sums_of_products_are_found_in_ptx() -> None:
    product = "mul.f32 %f5, %f3, %f4;\n"
    assert adds_products(product + "fma.rn.f32 %f6, %f1, %f2, %f5;")
    assert not adds_products(product + "fma.rn.f32 %f6, %f5, %f2, %f1;")
    assert not adds_products("mul.rn.f32 %f5, %f3, %f4;\nfma.rn.f32 %f6, %f1, %f2, %f5;")  # rounded on request
    assert derive("f32", "close").exact and not derive("f32", "close", contracts=True).exact
    assert derive("i32", "exact", contracts=True).exact
