"""The judge of numbers, judged: results made wrong on purpose must fail, true ones must pass over many seeds.

`original` and the ports here are numpy functions in float32 that stand for kernels.
"""

from pathlib import Path

import numpy as np
import pytest

from porter.case.reader import ToleranceSpec, parse_case
from porter.verify.execute import EXTREME
from porter.verify.launches.inputs import SCENARIOS, conditioning, make_inputs, read_buffer, scenarios
from porter.verify.numerics.comparison import Ledger, check_guards, check_input, compare_output
from porter.verify.numerics.formats import decode, encode
from porter.verify.numerics.segments import canonical_rows
from porter.verify.numerics.tolerance import approximations, derive, has_reduction, is_loosened
from porter.verify.numerics.ulps import ordered, ulp_distance, ulp_size

CASE = parse_case(
    """kernel = "k"
[sizes]
rows = 6
cols = 256
[launch]
grid = 1
block = 32
[[buffers]]
name = "x"
dtype = "T"
shape = ["rows", "cols"]
[[buffers]]
name = "gamma"
dtype = "T"
shape = ["cols"]
[[buffers]]
name = "beta"
dtype = "T"
shape = ["cols"]
[[buffers]]
name = "out"
dtype = "O"
shape = ["rows", "cols"]
strides = ["cols + 8", 1]
role = "out"
""",
    Path("k.case.toml"),
)
SEEDS = range(30)
f32 = np.float32


def launch(function, seed, scenario="normal", dtype="bf16", out=None):
    """Inputs, and the output buffer before and after `function(x, gamma, beta)` -> float array has run."""
    values = {"T": dtype, "O": out or dtype}
    (point,) = CASE.points(values=values)
    buffers = make_inputs(CASE, point, values, scenario, seed)
    x, gamma, beta = (read_buffer(buffers[n]).astype(f32) for n in ("x", "gamma", "beta"))
    after = buffers["out"].copy()
    with np.errstate(all="ignore"):
        words = function(x, gamma, beta)
        after.view()[...] = words if words.dtype.kind == "u" else encode(words, values["O"])
    return buffers, after, (x, gamma, beta)


# ---- a layer norm: two sums over the row, in two orders; and float64

EPS = f32(1e-5)


def sums(x, order):
    if order == "tree":
        while x.shape[1] > 1:
            x = (x[:, 0::2] + x[:, 1::2]).astype(f32)
        return x
    lanes = np.zeros((len(x), 32), f32)
    for i in range(0, x.shape[1], 32):
        lanes += x[:, i : i + 32]
    return sums(lanes, "tree")


def layer_norm(x, gamma, beta, order="tree"):
    n = f32(x.shape[1])
    mean = sums(x, order) / n
    centred = x - mean
    variance = sums(centred * centred, order) / n
    return centred * (f32(1) / np.sqrt(variance + EPS)) * gamma + beta


def layer_norm64(x, gamma, beta):
    x, gamma, beta = (a.astype(np.float64) for a in (x, gamma, beta))
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + np.float64(EPS)) * gamma + beta


def softmax(x, _gamma, _beta, order="tree", subtract=True):
    e = np.exp(x - x.max(axis=1, keepdims=True) if subtract else x).astype(f32)
    return e / sums(e, order)


def softmax64(x, _gamma, _beta):
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def judge(original, port, reference=None, seeds=SEEDS, dtype="bf16", reduction=256, only=None, spec=None):
    """The verdict over several launches, as the verifier draws it: the ledger's answer and all findings."""
    ledger = Ledger("out", dtype)
    values = {"T": dtype, "O": dtype}
    names = [s for s in scenarios(CASE, values) if only is None or s in only]
    for seed in seeds:
        scenario = names[seed % len(names)]
        buffers, a, inputs = launch(original, seed, scenario, dtype)
        _, b, _ = launch(port, seed, scenario, dtype)
        with np.errstate(all="ignore"):
            truth = reference(*inputs) if reference else None
        condition = conditioning(CASE, values, scenario)
        tolerance = derive(dtype, "close", reduction, spec=spec, condition=condition)
        compared = compare_output(buffers["out"], a, b, tolerance, truth)
        if scenario in EXTREME and any(f.code == "PRT806" for f in compared.findings):
            truth = None  # as run_trial does
        ledger.add(compare_output(buffers["out"], a, b, tolerance, truth), tolerance, f"{scenario} seed {seed}")
    verdict = ledger.close()
    return verdict, [f for f in ledger.findings if f.is_port], ledger


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("reference", [None, layer_norm64], ids=["alone", "float64"])
def test_the_same_arithmetic_is_bit_equal(dtype, reference):
    verdict, findings, ledger = judge(layer_norm, layer_norm, reference, dtype=dtype)
    assert verdict == "bit-equal" and not findings and not ledger.findings and ledger.elements == 30 * 6 * 256


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("reference", [None, layer_norm64], ids=["alone", "float64"])
def test_another_order_of_summation_passes(dtype, reference):
    """Over every scenario, not-a-number among them."""
    verdict, findings, _ = judge(
        layer_norm, lambda *a: layer_norm(*a, order="lanes"), reference, seeds=range(135), dtype=dtype
    )
    assert verdict in ("within-bound", "closer-or-equal", "bit-equal"), findings


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_another_order_of_softmax_passes(dtype):
    # without `small`: its values are nearly one, so that a sum's rounding moves whole rows, by chance to the worse side
    only = [*SCENARIOS["normal"], "normal"]
    only.remove("small")
    verdict, findings, _ = judge(softmax, lambda *a: softmax(*a, order="lanes"), softmax64, range(60), dtype, only=only)
    assert verdict in ("closer-or-equal", "bit-equal"), findings


def truncated(words, dtype):
    """Float32 results cut off instead of rounded to a 16-bit dtype."""
    bits = np.asarray(words, f32).view(np.uint32)
    assert dtype == "bf16"
    return (bits >> 16).astype(np.uint16)


def with_element(function, change, index=(2, 17)):
    def port(x, gamma, beta):
        y = np.array(function(x, gamma, beta))
        y[index] = change(y[index])
        return y

    return port


def poison_last(x, gamma, beta):
    words = encode(layer_norm(x, gamma, beta), "bf16")
    words[-1, -1] = 0xFFEB  # what the buffer held before
    return words


def norm_with(**change):
    def port(x, gamma, beta):
        n = f32(x.shape[1])
        keep = x if change.get("lane") is None else np.where(np.arange(x.shape[1]) % 32 == change["lane"], 0, x)
        mean = sums(keep.astype(f32), "tree") / n
        centred = x - mean
        squares = (centred * centred).astype(f32)
        if change.get("accumulate"):
            acc = np.zeros((len(x), 1))
            for i in range(x.shape[1]):
                acc = decode(encode(acc + squares[:, i : i + 1], "bf16"), "bf16")
            total = acc.astype(f32)
        else:
            total = sums(squares, "tree")
        variance = total / n
        if change.get("eps_outside"):
            return centred * (f32(1) / (np.sqrt(variance) + EPS)) * gamma + beta
        if change.get("eps_in_sum"):
            return centred * (f32(1) / np.sqrt((total + EPS) / n)) * gamma + beta
        return centred * (f32(1) / np.sqrt(variance + EPS)) * gamma + beta

    return port


WRONG = {
    "zeros": lambda x, g, b: np.zeros(x.shape),
    "ones": lambda x, g, b: np.ones(x.shape),
    "nothing written": lambda x, g, b: np.full(x.shape, 0xFFEB, np.uint16),
    "the input itself": lambda x, g, b: x,
    "one element two ulp off": with_element(layer_norm, lambda v: v * f32(1 + 2 * 2.0**-7)),
    "one element off by 2 %": with_element(layer_norm, lambda v: v * f32(1.02)),
    "one element NaN": with_element(layer_norm, lambda v: np.nan),
    "one element infinite": with_element(layer_norm, lambda v: np.inf),
    "one sign flipped": with_element(layer_norm, lambda v: -v),
    "last element never written": poison_last,
    "gamma and beta swapped": lambda x, g, b: layer_norm(x, b, g),
    "gamma dropped": lambda x, g, b: layer_norm(x, np.ones_like(g), b),
    "rows swapped": lambda x, g, b: layer_norm(x, g, b)[::-1],
    "columns shifted": lambda x, g, b: np.roll(layer_norm(x, g, b), 1, axis=1),
    "one lane missing in the sum": norm_with(lane=31),
    "bf16 accumulator": norm_with(accumulate=True),
    "eps outside of the root": norm_with(eps_outside=True),
    "eps before the mean": norm_with(eps_in_sum=True),
    "truncated, not rounded": lambda x, g, b: truncated(layer_norm(x, g, b), "bf16"),
    "rounded to fp8 on the way": lambda x, g, b: decode(encode(layer_norm(x, g, b), "e4m3"), "e4m3"),
    "NaN becomes zero": lambda x, g, b: np.nan_to_num(layer_norm(x, g, b), nan=0.0),
    "unbiased variance": lambda x, g, b: (layer_norm(x, g, b) - b) * f32(np.sqrt(255 / 256)) + b,
    "rms instead of layer norm": lambda x, g, b: x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * g + b,
    "tail of the row missing": lambda x, g, b: np.concatenate([layer_norm(x, g, b)[:, :248], x[:, 248:]], axis=1),
}


@pytest.mark.parametrize("reference", [None, layer_norm64], ids=["alone", "float64"])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_norms_fail(name, reference):
    """One pass over the scenarios, as a single run of the verifier has it, from any of several seeds."""
    once = len(SCENARIOS["normal"]) + 1
    for first in (0, 100, 200):
        verdict, findings, _ = judge(layer_norm, WRONG[name], reference, seeds=range(first, first + once))
        assert verdict in ("different", "worse") and findings, (name, first)
    if "never written" in name:
        assert any("never written" in f.message for f in findings)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_dropped_maximum_fails(dtype):
    verdict, findings, _ = judge(softmax, lambda *a: softmax(*a, subtract=False), softmax64, range(8), dtype)
    assert verdict == "different" and any("NaN" in f.message for f in findings)


def test_nan_does_not_hide_what_comes_after_it():
    def port(x, gamma, beta):
        y = layer_norm(x, gamma, beta)
        row, column = np.argwhere(np.isfinite(y))[-1]
        y[row, column] += f32(0.5)
        return y

    buffers, a, inputs = launch(layer_norm, 3, "nonfinite")
    _, b, _ = launch(port, 3, "nonfinite")
    assert np.isnan(decode(a.view(), "bf16")).any()
    comparison = compare_output(buffers["out"], a, b, derive("bf16", "close", 256), layer_norm64(*inputs))
    assert comparison.failed and comparison.different == 1


def test_a_finding_names_the_element_and_both_values():
    _, findings, _ = judge(layer_norm, WRONG["one sign flipped"], layer_norm64, seeds=range(1))
    (finding,) = findings
    assert finding.code == "PRT801" and finding.index == (2, 17) and finding.launch == "normal seed 0"
    assert "1 of 1536 elements" in finding.message and "float64" in finding.message and "0x" in finding.message


def test_closer_to_the_truth_is_reported_not_failed():
    """The original rounds on the way, the port does not."""

    def rounds_twice(x, gamma, beta):
        return decode(encode(layer_norm(x, gamma, np.zeros_like(beta)), "bf16"), "bf16").astype(f32) + beta

    only = ("normal", "large", "outlier")
    verdict, findings, ledger = judge(rounds_twice, layer_norm, layer_norm64, only=only)
    was, now = ledger.rms
    assert verdict == "closer-or-equal" and not findings and now < was and ledger.different > 0
    verdict, findings, _ = judge(layer_norm, rounds_twice, layer_norm64, only=only)
    assert verdict in ("worse", "different") and findings
    verdict, _, _ = judge(rounds_twice, layer_norm, None, only=only)
    assert verdict == "different"  # nothing says which of the two is right


def test_elementwise_kernels_must_be_bit_equal_without_a_reference():
    def scaled(x, gamma, beta):
        return x * gamma

    def nudged(x, gamma, beta):
        y = encode(x * gamma, "bf16")
        y[0, 0] ^= 1
        return y

    assert judge(scaled, scaled, reduction=1)[0] == "bit-equal"
    verdict, findings, _ = judge(scaled, nudged, reduction=1)
    assert verdict == "different" and "no float64 reference says" in findings[0].message


def test_original_that_is_not_the_reference_is_told():
    verdict, findings, ledger = judge(softmax, softmax, layer_norm64, seeds=range(3))
    assert verdict == "bit-equal" and not findings
    assert any(f.code == "PRT806" and not f.is_port for f in ledger.findings)


def test_a_tightened_case_is_obeyed():
    def port(x, gamma, beta):
        words = encode(layer_norm(x, gamma, beta), "bf16")
        words[2, 17] ^= 1
        return words

    loose = judge(layer_norm, port, None, seeds=range(1))
    assert loose[0] == "within-bound"
    tight = judge(layer_norm, port, None, seeds=range(1), spec=ToleranceSpec(ulp=0, bit_equal=1.0, rtol=0))
    assert tight[0] == "different"


# ---------------------------------------------------------------- integers, codes


SCALE = f32(0.03)


def quantised(x, _gamma, _beta):
    return encode(np.clip(x / SCALE, -448, 448), "e4m3")


def code_launch(port, pre=True, seeds=range(12)):
    ledger = Ledger("out", "e4m3")
    tolerance = derive("e4m3", "exact")
    for seed in seeds:
        buffers, a, (x, _, _) = launch(quantised, seed, "normal", "bf16", "e4m3")
        _, b, _ = launch(port, seed, "normal", "bf16", "e4m3")
        before = np.clip(x.astype(np.float64) / np.float64(SCALE), -448, 448)
        truth = decode(encode(before, "e4m3"), "e4m3")
        ledger.add(
            compare_output(buffers["out"], a, b, tolerance, truth, before if pre else None), tolerance, str(seed)
        )
    return ledger.close(), ledger


def test_codes_may_differ_on_a_rounding_boundary_only():
    assert code_launch(quantised)[0] == "bit-equal"

    def on_ties(x, g, b):
        pre = (x / SCALE).astype(np.float64)
        return encode(np.where(np.arange(256) == 0, pre * (1 - 1e-7), pre), "e4m3")

    assert code_launch(on_ties)[0] in ("bit-equal", "within-bound")

    def truncating(x, g, b):
        pre = np.clip(x / SCALE, -448, 448).astype(np.float64)
        words = encode(pre, "e4m3")
        return np.where(np.abs(decode(words, "e4m3")) > np.abs(pre), words - 1, words).astype(np.uint8)

    verdict, ledger = code_launch(truncating)
    assert verdict == "different" and "not on a rounding boundary" in ledger.findings[0].message

    def one_off(x, g, b):
        words = quantised(x, g, b)
        words[0, 0] ^= 1
        return words

    assert code_launch(one_off)[0] == "different"
    assert code_launch(one_off, pre=False)[0] == "different"


def test_a_boundary_excuses_neighbours_and_nothing_else():
    before = launch(quantised, 0, "zeros", "bf16", "e4m3")[0]["out"]
    a, b = before.copy(), before.copy()
    pre = np.ones((6, 256))
    a.view()[...] = b.view()[...] = encode(pre, "e4m3")
    tie = 1.0625  # half way between 1.0 and 1.125
    pre[0, 0] = tie * (1 + 2.0**-19)
    a.view()[0, 0], b.view()[0, 0] = encode(np.array([1.0, 1.125]), "e4m3")
    exact = derive("e4m3", "exact")
    result = compare_output(before, a, b, exact, None, pre)
    assert not result.failed and result.excused == 1
    pre[0, 0] = tie * (1 + 2.0**-16)
    assert compare_output(before, a, b, exact, None, pre).failed
    pre[0, 0] = 1.125
    b.view()[0, 0] = encode(np.array([1.25]), "e4m3")[0]
    assert compare_output(before, a, b, exact, None, pre).failed


INT_CASE = parse_case(
    """kernel = "k"
[sizes]
n = 64
[launch]
grid = 1
block = 32
[[buffers]]
name = "offsets"
dtype = "i32"
shape = [5]
role = "out"
[[buffers]]
name = "ids"
dtype = "i32"
shape = ["n"]
role = "out"
compare = "set-per-segment"
compare_reason = "atomics"
segments = "offsets"
[[buffers]]
name = "rows"
dtype = "bf16"
shape = ["n", 4]
role = "out"
compare = "set-per-segment"
compare_reason = "atomics"
segments = "offsets"
[[buffers]]
name = "input"
dtype = "i8"
shape = ["n"]
strides = [3]
""",
    Path("k.case.toml"),
)


def int_buffers(seed=0):
    (point,) = INT_CASE.points()
    return make_inputs(INT_CASE, point, {}, "normal", seed)


def test_integers_are_exact():
    buffers = int_buffers()
    before, a = buffers["ids"], buffers["ids"].copy()
    a.view()[...] = np.arange(64)
    exact = derive("i32", "exact")
    b = a.copy()
    assert compare_output(before, a, b, exact).different == 0
    for change in (1, -1, 1 << 31):
        b = a.copy()
        b.view()[63] = (int(b.view()[63]) + change) & 0xFFFFFFFF
        assert compare_output(before, a, b, exact).failed
    b = a.copy()
    b.view()[63] = before.poison
    (finding,) = compare_output(before, a, b, exact).findings
    assert "never written" in finding.message and finding.index == (63,)
    (finding,) = compare_output(before, b, a, exact).findings
    assert "leaves it untouched" in finding.message


def test_two_ids_may_tie_in_float32_and_not_in_float64():
    """Original and port choose the same; the float64 reference chooses another at two places, or at many."""
    buffers = int_buffers()
    before, a = buffers["ids"], buffers["ids"].copy()
    a.view()[...] = np.arange(64)
    exact = derive("i32", "exact")
    for others, told in ((2, False), (3, True), (40, True)):
        reference = np.arange(64, dtype=np.float64)
        reference[:others] += 7
        found = compare_output(before, a, a.copy(), exact, reference)
        assert found.different == 0
        assert any(f.code == "PRT806" for f in found.findings) is told


def test_order_within_a_segment_is_free_and_nothing_else():
    buffers = int_buffers()
    rng = np.random.default_rng(1)
    for b in buffers.values():
        if b.name == "offsets":
            b.view()[...] = [0, 10, 10, 30, 50]  # rows 50.. belong to no segment
        elif b.name == "ids":
            b.view()[...] = rng.permutation(64)
        elif b.name == "rows":
            b.view()[...] = rng.integers(0, 1 << 15, (64, 4))
    ids, rows, offsets = buffers["ids"], buffers["rows"], buffers["offsets"]

    def same(ids_b, rows_b):
        a, b = canonical_rows([ids, rows], offsets), canonical_rows([ids_b, rows_b], offsets)
        exact = derive("i32", "set-per-segment")
        return not any(
            compare_output(x, x, y, exact, words=(a[x.name], b[x.name])).failed
            for x, y in ((ids, ids_b), (rows, rows_b))
        )

    order = np.arange(64)
    order[10:30] = rng.permutation(order[10:30])
    order[0:10] = rng.permutation(order[0:10])

    def reordered(buffer, order):
        other = buffer.copy()
        other.view()[...] = buffer.view()[order]
        return other

    assert same(reordered(ids, order), reordered(rows, order))
    assert not same(reordered(ids, order), rows)  # each alone is a permutation, together they are not
    across = np.arange(64)
    across[[5, 15]] = across[[15, 5]]
    assert not same(reordered(ids, across), reordered(rows, across))
    outside = np.arange(64)
    outside[[55, 60]] = outside[[60, 55]]
    assert not same(reordered(ids, outside), reordered(rows, outside))
    lost = reordered(ids, np.arange(64))
    lost.view()[3] = lost.view()[4]
    assert not same(lost, rows)


# ---------------------------------------------------------------- bytes that nobody should touch


def test_inputs_gaps_and_guards_must_stay():
    buffers = int_buffers()
    before = buffers["input"]
    a, b = before.copy(), before.copy()
    assert not check_input(before, a, b) and not check_guards(a, b)
    b.raw[4] ^= 1
    (finding,) = check_input(before, a, b)
    assert finding.code == "PRT803" and finding.is_port
    (finding,) = check_input(before, b, a)
    assert not finding.is_port
    b.allocation[10] ^= 1
    (finding,) = check_guards(a, b)
    assert finding.code == "PRT802" and finding.is_port

    out, a, _ = launch(layer_norm, 0)
    b = a.copy()
    gap = np.flatnonzero(~b.element_mask())[3]
    b.raw[gap] = 0
    (finding,) = compare_output(out["out"], a, b, derive("bf16", "close", 256)).findings
    assert finding.code == "PRT802" and "between the rows" in finding.message


# ---------------------------------------------------------------- tolerances and distances


def test_tolerances_come_from_dtype_reduction_and_instructions():
    assert derive("i32", "exact").exact and derive("e4m3", "exact").exact and derive("bf16", "exact").exact
    plain = derive("bf16", "close", 1)
    assert plain.exact and plain.bit_equal == 1.0
    summed = derive("bf16", "close", 4096)
    assert (summed.ulp, summed.bit_equal) == (1.0, 0.999) and 0 < summed.row < 1e-5
    assert derive("f32", "close", 4096).row > derive("f32", "close", 64).row
    same = derive("f32", "close", 1, frozenset({"ex2.approx"}), frozenset({"ex2.approx"}))
    assert same.exact
    other = derive("f32", "close", 1, frozenset({"ex2.approx"}), frozenset({"tanh.approx"}))
    assert other.row >= 2.0**-11 and "tanh.approx" in other.why
    given = derive("bf16", "close", 4096, spec=ToleranceSpec(ulp=4, reason="two roundings"))
    assert given.ulp == 4 and "two roundings" in given.why and is_loosened(summed, given)
    assert not is_loosened(summed, derive("bf16", "close", 4096, spec=ToleranceSpec(bit_equal=1.0)))


def test_instructions_are_read_from_ptx():
    ptx = "ex2.approx.ftz.f32 %f1, %f2; rsqrt.approx.f32 %f3, %f4; div.full.f32 %f1, %f2, %f3;"
    ptx += "tanh.approx.bf16x2 %r1, %r2;"
    assert approximations(ptx) == {"ex2.approx", "rsqrt.approx", "div.full", "tanh.approx.bf16"}
    assert approximations("div.rn.f32 %f1, %f2, %f3; sqrt.rn.f32 %f1, %f2;") == frozenset()
    assert has_reduction("shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;") and has_reduction("\tbar.sync 0;")
    assert has_reduction("barrier.cta.sync.aligned 0;") and not has_reduction("ld.global.v4.u32 {%r1}, [%rd1];")


@pytest.mark.parametrize("dtype", ["bf16", "f16", "e4m3", "e5m2", "f32", "f64"])
def test_ulp_distance_counts_numbers(dtype):
    word = encode(np.array([1.0]), dtype).dtype
    one = int(encode(np.array([1.0]), dtype)[0])
    near = np.array([one, one + 2], word)
    step = 2 if dtype != "f64" else 1  # f64 words are halved
    assert ulp_distance(near[:1], near[1:], dtype)[0] == step
    zeros = encode(np.array([0.0, -0.0]), dtype)
    assert zeros[0] != zeros[1] and (ordered(zeros, dtype) == 0).all()
    x = decode(np.array([one, one + 1], word), dtype)
    assert ulp_size(x[:1], dtype)[0] == x[1] - x[0]
    tiny = decode(np.array([1], word), dtype)
    assert ulp_size(np.array([0.0]), dtype)[0] == tiny[0] and np.isnan(ulp_size(np.array([np.nan]), dtype))[0]


def test_sums_that_one_thread_takes_count_against_the_reference_only():
    """A row summed in order is an error of its own: 768 squares are off by some 20 ulp, in original and port alike."""
    alone, tolerance = derive("f32", "close"), derive("f32", "close", terms=768)
    assert (tolerance.ulp, tolerance.row, tolerance.bit_equal) == (alone.ulp, alone.row, alone.bit_equal)
    x = np.random.default_rng(5).normal(size=(300, 768)).astype(f32) * f32(600)
    in_order = np.add.accumulate(x * x, axis=1, dtype=f32)[:, -1]
    truth = np.square(x.astype(np.float64)).sum(axis=1)
    off = np.abs(in_order - truth) / truth
    assert 2.0 * alone.reference_row < off.max() < tolerance.reference_row / 4
