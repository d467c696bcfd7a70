"""Which launches are chosen, and one trial on a backend made of numpy functions: what it compares, what it reports."""

import resource
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from porter.case.reader import LaunchShape, parse_case
from porter.model import Instance, KernelInfo, KernelParam, Status, TemplateParam
from porter.verify.backends.interface import ORDINARY, Build, RunResult, Violation
from porter.verify.execute import InstanceUnderTest, arguments, run_trial
from porter.verify.launches.inputs import scenarios
from porter.verify.launches.trials import choose_trials, far_trial, may_misalign
from porter.verify.numerics.formats import decode, encode
from porter.verify.original_faults import excuse_port
from porter.verify.repeat import Repeats, repeat_trial
from porter.verify.verdicts import InstanceRun, determinism_verdict, loosened, numerics_verdict, sanitizer_verdict

TEXT = """kernel = "scale"
[[instances]]
args = ["__nv_bfloat16", 8]
when = "cols % 8 == 0 and aligned(x, 16) and aligned(out, 16)"
[[instances]]
args = ["float", 1]
[sizes]
rows = [0, 1, 5, 33]
cols = [64, 100, 768]
[[shapes]]
rows = 2
cols = 9216
[[buffers]]
name = "out"
dtype = "T"
shape = ["rows", "cols"]
role = "out"
[[buffers]]
name = "x"
dtype = "T"
shape = ["rows", "cols"]
strides = ["stride", 1]
[[buffers]]
name = "w"
dtype = "T"
shape = ["cols"]
optional = true
[scalars]
factor = [2.0, 0.5]
stride = "cols + 8"
[launch]
grid = ["rows"]
block = [128]
"""
CASE = parse_case(TEXT, Path("scale.case.toml"))
INFO = KernelInfo(
    "scale",
    "scale",
    (
        KernelParam("out", "T*"),
        KernelParam("factor", "float"),
        KernelParam("x", "const T*"),
        KernelParam("w", "const T*"),
        KernelParam("stride", "int"),
    ),
    (TemplateParam("T", "type"), TemplateParam("VEC", "value", "int")),
)
BF16, F32 = ({"T": "bf16", "VEC": 8}, {"T": "f32", "VEC": 1})


# ---------------------------------------------------------------- choice


@pytest.mark.parametrize("seed", range(10))
def test_every_size_and_every_scenario_is_tried(seed):
    trials = choose_trials(CASE, CASE.instances[1], F32, seed)
    assert {t.point.sizes["rows"] for t in trials} == {0, 1, 2, 5, 33}
    assert {t.point.sizes["cols"] for t in trials} == {64, 100, 768, 9216}
    assert {t.scenario for t in trials} == set(scenarios(CASE, F32))
    assert {t.point.scalars["factor"] for t in trials} == {2.0, 0.5}
    assert {bool(t.point.null) for t in trials} == {True, False}
    assert 10 <= len(trials) <= 20 and len({t.seed for t in trials}) == len(trials)
    assert sum(t.point.sizes["rows"] == 0 for t in trials) <= 2
    for t in trials:
        if t.scenario != "normal":
            assert t.point.sizes["rows"] > 0  # inputs that nobody reads show nothing
    planted = next(t for t in trials if t.scenario == "nonfinite")
    assert planted.point.sizes["rows"] >= 5
    assert trials == choose_trials(CASE, CASE.instances[1], F32, seed)


IDS = """kernel = "k"
[sizes]
tokens = [0, 1, 9]
experts = [8, 64]
[[buffers]]
name = "ids"
dtype = "i32"
shape = ["tokens"]
dist = "ids"
high = "experts"
[[buffers]]
name = "counts"
dtype = "i32"
shape = ["experts * 16"]
role = "out"
[launch]
grid = 1
block = 32
"""


@pytest.mark.parametrize("seed", range(20))
def test_inputs_that_are_empty_show_no_scenario(seed):
    case = parse_case(IDS, Path("k"))
    trials = choose_trials(case, case.instances[0], {}, seed)
    assert {t.point.sizes["tokens"] for t in trials if t.scenario == "bad_ids"} == {9}
    assert {t.point.sizes["tokens"] for t in trials} == {0, 1, 9}


def test_thorough_is_the_whole_product():
    trials = choose_trials(CASE, CASE.instances[1], F32, 1, thorough=True)
    points = CASE.instance_points(CASE.instances[1], F32)
    assert len(trials) == len(points) * len(scenarios(CASE, F32))


def test_an_instance_sees_only_points_that_are_its_own():
    assert {t.point.sizes["cols"] for t in choose_trials(CASE, CASE.instances[0], BF16, 3)} == {64, 768, 9216}
    never = replace(CASE.instances[0], when="cols == 3")
    assert choose_trials(CASE, never, BF16, 3) == []


def test_only_what_needs_no_alignment_is_misaligned():
    assert may_misalign(CASE, CASE.instances[0], BF16) == frozenset()
    assert may_misalign(CASE, CASE.instances[1], F32) == {"x", "out"}
    silent = parse_case(TEXT.replace(" and aligned(x, 16) and aligned(out, 16)", ""), Path("k"))
    assert may_misalign(silent, silent.instances[1], F32) == frozenset()
    assert any(t.misaligned for t in choose_trials(CASE, CASE.instances[1], F32, 3))
    assert not any(t.misaligned for t in choose_trials(CASE, CASE.instances[0], BF16, 3))


# ---------------------------------------------------------------- one trial


def kernel(arguments, shape, schedule):
    """out = x * factor * w in float32."""
    out, factor, x, w, stride = arguments
    assert stride == x.strides[0]
    with np.errstate(all="ignore"):
        y = decode(x.view(), x.dtype).astype(np.float32) * np.float32(factor)
        if w is not None:
            y = y * decode(w.view(), w.dtype).astype(np.float32)
        out.view()[...] = encode(y, out.dtype)


class NumpyBackend:
    """Runs functions instead of kernels."""

    name = "numpy"
    checked = ("out-of-bounds",)
    sm_count = 8
    schedules = (0, 1, 2)

    def __init__(self, original=kernel, port=kernel):
        self.functions = {"original": original, "port": port}
        self.launches = []

    def run(self, build, shape, arguments, options=ORDINARY):
        self.launches.append((build.label, shape, options.schedule))
        return self.functions[build.label](arguments, shape, options.schedule) or RunResult()


def reference(inputs, scalars, sizes, args):
    y = inputs["x"] * scalars["factor"]
    return {"out": y * inputs["w"] if "w" in inputs else y}


def subject(values=F32, reduces=False, reference=reference):
    builds = (Build("original", "", "k", "sm_90a"), Build("port", "", "k", "sm_90a"))
    return InstanceUnderTest(CASE, INFO, values, *builds, reduces=reduces, reference=reference)


def shapes(trial, values=F32):
    return (CASE.launch_at(trial.point, values),) * 2


def run_all(backend, seed=1, **options):
    subject_ = subject(**options)
    run = InstanceRun(Instance(("float", "1")), {"out": "f32", "x": "f32", "w": "f32"})
    trials = choose_trials(CASE, CASE.instances[1], F32, seed)
    run.planned = len(trials)
    run.results = [run_trial(subject_, t, backend, shapes(t)) for t in trials]
    return run


def verdict(backend, **options):
    return numerics_verdict(CASE, [run_all(backend, **options)], 1, ["normal"])


def test_arguments_follow_the_parameters():
    trial = next(t for t in choose_trials(CASE, CASE.instances[1], F32, 1) if t.point.null)
    buffers = {"out": "O", "x": "X", "w": "W"}
    assert arguments(subject(), trial, buffers) == [
        "O",
        trial.point.scalars["factor"],
        "X",
        None,
        trial.point.scalars["stride"],
    ]


def test_equal_kernels_pass_on_every_seed():
    for seed in range(15):
        run = run_all(NumpyBackend(), seed)
        answer = numerics_verdict(CASE, [run], seed, ["normal"])
        assert answer.status is Status.PASS and answer.detail.startswith("bit-equal in "), answer
        assert str(seed) in answer.detail and answer.facts.buffers["<float, 1>"]["out"].elements > 1000
        assert sanitizer_verdict(CASE, [run], ("out-of-bounds",)).status is Status.PASS
        assert sum(bool(r.skipped) for r in run.results) == sum(r.trial.point.sizes["rows"] == 0 for r in run.results)


def wrong(change):
    def port(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        change(*arguments)

    return port


def test_wrong_ports_fail_with_the_buffer_and_the_launch():
    def tail(out, factor, x, w, stride):
        out.raw[-1] = out.poison

    def input_changed(out, factor, x, w, stride):
        x.view()[0, 0] ^= 1

    def beyond(out, factor, x, w, stride):
        out.allocation[-10] ^= 1

    def between_rows(out, factor, x, w, stride):
        if x.shape[0] > 1:
            x.raw[x.shape[1]] = 0

    for change, code, text in (
        (tail, "PRT801", "never written"),
        (input_changed, "PRT803", "read-only input"),
        (beyond, "PRT802", "outside of the buffer"),
        (between_rows, "PRT803", "read-only input"),
    ):
        answer = verdict(NumpyBackend(port=wrong(change)))
        assert answer.status is Status.FAIL
        assert answer.diagnostics[0].code == code and text in answer.diagnostics[0].message, answer
        assert "seed" in answer.diagnostics[0].notes[0] and answer.diagnostics[0].span.line > 0


def test_what_the_original_does_wrong_is_an_error_not_a_failure():
    def changes_input(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        arguments[2].view()[0, 0] ^= 1

    answer = verdict(NumpyBackend(original=changes_input, port=changes_input))
    assert answer.status is Status.FAIL  # the port does it too
    answer = verdict(NumpyBackend(original=changes_input))
    assert answer.status is Status.ERROR and "the original changed" in answer.detail


def test_a_reference_that_is_not_the_kernel_is_an_error():
    answer = verdict(NumpyBackend(), reference=lambda i, s, z, a: {"out": i["x"] * 3.0})
    assert answer.status is Status.ERROR and answer.diagnostics[0].code == "PRT806"


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        (lambda i, s, z, a: {"out": np.ones((3, 7))}, "shape [3, 7], the buffer"),
        (lambda i, s, z, a: {"outt": i["x"]}, "no such buffer"),
        (lambda i, s, z, a: i["nothing"], "the reference fails: KeyError"),
    ],
)
def test_a_reference_that_fails_is_an_error(reference, text):
    answer = verdict(NumpyBackend(), reference=reference)
    assert answer.status is Status.ERROR and text in answer.detail


def test_a_null_buffer_has_no_results_to_compare():
    run = run_all(NumpyBackend())
    assert all("w" not in r.comparisons for r in run.results)


def test_violations_of_port_and_original():
    bad = RunResult((Violation("out-of-bounds", "store past the end of out", "port.py", 12),))

    def violating(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        return bad

    answer = sanitizer_verdict(CASE, [run_all(NumpyBackend(port=violating))], ("out-of-bounds",))
    assert answer.status is Status.FAIL and len(answer.diagnostics) == 1
    assert answer.diagnostics[0].code == "PRT840" and answer.diagnostics[0].span.line == 12
    answer = sanitizer_verdict(CASE, [run_all(NumpyBackend(violating, violating))], ("out-of-bounds",))
    assert answer.status is Status.ERROR and answer.diagnostics[0].code == "PRT841"


def test_what_cannot_be_run_has_not_passed():
    def refuses(arguments, shape, schedule):
        return RunResult(error="wgmma is not supported")

    answer = verdict(NumpyBackend(port=refuses))
    assert answer.status is Status.FAIL and "wgmma" in answer.diagnostics[0].message
    answer = verdict(NumpyBackend(original=refuses))
    assert answer.status is Status.ERROR and "the original: wgmma" in answer.detail
    run = run_all(NumpyBackend())
    run.planned += 3
    answer = numerics_verdict(CASE, [run], 1, [])
    assert answer.status is Status.ERROR and answer.diagnostics[0].code == "PRT808"
    answer = numerics_verdict(CASE, [InstanceRun(Instance(), {})], 1, [])
    assert answer.status is Status.ERROR


def test_a_port_that_launches_nothing_is_found():
    trial = max(choose_trials(CASE, CASE.instances[1], F32, 1), key=lambda t: t.point.elements)
    empty = LaunchShape((0, 1, 1), (128, 1, 1))
    result = run_trial(subject(), trial, NumpyBackend(), (shapes(trial)[0], empty))
    assert result.findings[0].code == "PRT807" and "the port launches no block" in result.findings[0].message


def far_subject():
    wide = tuple(replace(p, type="int64_t") if p.name == "stride" else p for p in INFO.params)
    return replace(subject(), info=replace(INFO, params=wide))


def test_rows_past_2_31_elements_take_no_memory():
    wide = far_subject()
    assert far_trial(CASE, CASE.instances[1], F32, INFO, 1) is None  # its stride is an int
    trial = far_trial(CASE, CASE.instances[1], F32, wide.info, 1)
    assert trial.far and trial.point.strides["x"][0] * 2 > 1 << 31 and trial.point.shapes["x"][0] >= 3
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run_trial(wide, trial, NumpyBackend(), shapes(trial))
    assert result.comparisons["out"].different == 0 and not result.findings and not result.skipped
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB

    def narrow(arguments, shape, schedule):
        """Row offsets computed in 32 bits: the rows after the first are somewhere else."""
        out, factor, x, w, stride = arguments
        near = x.copy()
        near.view()[1:] = 0
        kernel((out, factor, near, w, stride), shape, schedule)

    result = run_trial(wide, trial, NumpyBackend(port=narrow), shapes(trial))
    assert result.comparisons["out"].failed

    def refuses(arguments, shape, schedule):
        return RunResult((Violation("out-of-bounds", "an offset of 32 bits"),))

    result = run_trial(wide, trial, NumpyBackend(original=refuses), shapes(trial))
    assert result.skipped and not result.error and not result.original.violations


def test_results_that_depend_on_the_schedule_are_found():
    def scheduled(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        arguments[0].raw[0] ^= schedule & 1

    trial = max(choose_trials(CASE, CASE.instances[1], F32, 1), key=lambda t: t.point.elements)
    pair = shapes(trial)
    calm = repeat_trial(subject(), trial, NumpyBackend(), pair, (0, 1, 2))
    assert calm.findings == []
    repeated = repeat_trial(subject(), trial, NumpyBackend(port=scheduled), pair, (0, 1, 2))
    (found,) = repeated.findings
    assert found.is_port and "1 of" in found.message and "schedules 0 and 1" in found.message
    assert determinism_verdict([repeated]).status is Status.FAIL
    assert determinism_verdict([calm]).status is Status.PASS
    assert determinism_verdict([]).status is Status.ERROR


def test_what_depends_on_order_in_the_original_too_is_not_the_ports():
    def scheduled(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        arguments[0].raw[0] ^= (schedule & 1) << 20

    def otherwise(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        arguments[0].raw[0] ^= (1 - (schedule & 1)) << 20

    trial = max(choose_trials(CASE, CASE.instances[1], F32, 1), key=lambda t: t.point.elements)
    for port in (kernel, scheduled, otherwise):
        repeated = repeat_trial(subject(), trial, NumpyBackend(scheduled, port), shapes(trial), (0, 1, 2))
        (found,) = repeated.findings
        assert found.code == "PRT850" and not found.is_port and "the original too" in found.message
        answer = determinism_verdict([repeated])
        assert answer.status is Status.ERROR and 'compare = "sum"' in answer.diagnostics[0].help
    backend = NumpyBackend(scheduled, otherwise)
    run = run_all(backend)
    pairs = [(r, shapes(r.trial)) for r in run.results if r.comparisons]
    assert numerics_verdict(CASE, [run], 1, []).status is Status.FAIL
    Repeats(subject(), backend, pairs).excuse_open_order()
    answer = numerics_verdict(CASE, [run], 1, [])
    assert answer.status is Status.ERROR and answer.diagnostics[0].code == "PRT850"


def test_what_only_the_port_gets_wrong_is_not_excused_by_the_originals_order():
    def scheduled(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        arguments[0].raw[0] ^= schedule & 1

    def wrong(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        arguments[2].raw[0] ^= 1  # an input

    backend = NumpyBackend(scheduled, wrong)
    run = run_all(backend)
    Repeats(subject(), backend, [(r, shapes(r.trial)) for r in run.results if r.comparisons]).excuse_open_order()
    assert numerics_verdict(CASE, [run], 1, []).status is Status.FAIL


def test_the_port_is_not_blamed_beside_an_original_at_fault():
    def violating(kind):
        def run(arguments, shape, schedule):
            kernel(arguments, shape, schedule)
            return RunResult((Violation(kind, "m"),))

        return run

    def wrong(arguments, shape, schedule):
        kernel(arguments, shape, schedule)
        arguments[0].raw[:] ^= 1
        return RunResult((Violation("deadlock", "m"),))

    for kind in ("shared-race", "skipped-lane", "out-of-bounds"):
        run = run_all(NumpyBackend(violating(kind), wrong))
        assert numerics_verdict(CASE, [run], 1, []).status is Status.FAIL
        excuse_port(run.results, ())
        answer = numerics_verdict(CASE, [run], 1, [])
        assert answer.status is Status.ERROR and {d.code for d in answer.diagnostics} <= {"PRT841", "PRT808"}
        answer = sanitizer_verdict(CASE, [run], (kind,))
        assert answer.status is Status.ERROR and {d.code for d in answer.diagnostics} == {"PRT841"}


def test_an_original_that_stops_is_not_compared():
    for kind in ("assert", "trap", "deadlock", "budget"):
        run = run_all(NumpyBackend(lambda *a, kind=kind: RunResult((Violation(kind, "m"),))))
        assert all(not r.comparisons and r.skipped for r in run.results if r.original.violations)
        assert sanitizer_verdict(CASE, [run], (kind,)).status is Status.ERROR


def test_a_loosened_tolerance_is_in_the_report():
    case = parse_case(TEXT + '[tolerance]\nout = { ulp = 3, reason = "two roundings" }\n', Path("scale.case.toml"))
    (note,) = loosened(case)
    assert note.code == "PRT809" and "two roundings" in note.message
    tight = parse_case(TEXT + "[tolerance]\nout = { ulp = 0, bit_equal = 1.0, rtol = 0 }\n", Path("scale.case.toml"))
    assert loosened(tight) == []
