"""What kernels are verified on: a distribution for every buffer, varied by scenario, from a seed. numpy only.

A case names each input's distribution (`dist`); a scenario (`outlier`, `denormal`, `ties`, ...) varies all inputs of
one launch, each in the way that makes sense for its distribution.

| dist | values | scenarios beside `normal` |
|---|---|---|
| normal | N(0, 1) | small (1e-4), large (1e4), outlier (a channel x1000), shifted, wide, denormal, zeros, rows,
  half_way, steps, nonfinite |
| positive | abs of normal | as normal |
| uniform | [low, high) | zeros, nonfinite |
| logits | 3 N(0, 1), as routers give | ties, equal, neg_inf, nan_rows, rows, small, large, shifted |
| randint | whole numbers in [low, high) | extremes |
| ids | expert or token ids in [low, high) | bad_ids (-1, >= high), skewed (most to one id) |
| counts | whole numbers in [low, high] | skewed (one takes all), zeros |
| offsets | sorted from 0 to high | skewed |
| permutation | a permutation of 0..n-1 of the last dimension | |
| positions | whole numbers in [low, high), the last one among them | zeros, extremes |
| cos_sin | a rotary cache: cosines, then sines in each row | |
| scale | positive, 2^-8..2^2 | small, large, half_way |
| bits | every bit pattern that is not NaN | |
| bool, arange, zeros, ones | as named | |

`shifted` moves whole rows to a mean of -300 or 300: maxima that start at zero and variances by subtraction show there.
Of 32-bit numbers another order of sums then costs as much times what the derived bound allows (`conditioning`). `rows`:
one value throughout, one huge value, the least number throughout, -inf throughout, in turns. `half_way`: where what
the kernel rounds to ties (rounding.py). `steps`: where a scale that is a power of two changes (likewise). Three more
come from what the port compares with (own_values.py, constants.py): `around X`, `index N`, and `one`, all the same id.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from porter import codes
from porter.case import expressions
from porter.case.expressions import ExprError, Value
from porter.case.reader import FLOAT_NAMES, BufferSpec, Case, Point
from porter.ir import SCALAR_BYTES
from porter.model import Diagnostic, PorterError
from porter.source import Span
from porter.verify.launches.buffers import Buffers, HostBuffer, allocate, generator, is_integer, storage, words_to_int
from porter.verify.launches.own_values import around, index_of, indices, number_of
from porter.verify.launches.rounding import exponents, half_way, has_scales, quantised, steps, targets_of
from porter.verify.launches.symbol_values import fill_fixed
from porter.verify.numerics.formats import decode, encode

_REAL = ("small", "large", "outlier", "shifted", "wide", "denormal", "zeros", "rows", "half_way", "steps")
HUGE = 1e30  # its square is beyond float32
SHIFT = 300.0  # where `shifted` puts the mean of a row: far from zero, and exp of minus that underflows
CONDITION = {"shifted": SHIFT, "rows": 1e3}
SCENARIOS: dict[str, tuple[str, ...]] = {
    "normal": (*_REAL, "nonfinite"),
    "positive": (*_REAL, "nonfinite"),
    "uniform": ("zeros", "nonfinite"),
    "logits": ("ties", "equal", "neg_inf", "nan_rows", "rows", "small", "large", "shifted"),
    "randint": ("extremes",),
    "ids": ("bad_ids", "skewed"),
    "counts": ("skewed", "zeros"),
    "offsets": ("skewed",),
    "positions": ("zeros", "extremes"),
    "scale": ("small", "large", "half_way"),
}
LARGEST = {
    "f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38, "e4m3": 448.0, "e5m2": 57344.0,
    "f64": 1.7976931348623157e308,
}  # fmt: skip
_MIN_NORMAL = {
    "f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022, "e4m3": 2.0**-6, "e5m2": 2.0**-14,
}  # fmt: skip


def dist_of(spec: BufferSpec, dtype: str) -> str:
    """The distribution of an input: as the case says, else by dtype."""
    if spec.dist:
        return spec.dist
    if dtype in (*FLOAT_NAMES, "e4m3", "e5m2"):
        return "normal"
    return {"bool": "bool", "e8m0": "scale", "e2m1": "bits", "i8": "bits", "u8": "bits"}.get(dtype, "randint")


def scenarios(case: Case, values: Mapping[str, Value]) -> list[str]:
    """The scenarios that make sense for a case, `normal` first."""
    found = ["normal"]
    for spec in case.buffers:
        if not spec.is_read or spec.is_fixed:
            continue
        for name in SCENARIOS.get(dist_of(spec, spec.dtype_at(values)), ()):
            if name in ("nonfinite", "nan_rows") and not spec.nonfinite:
                continue
            if name == "half_way" and not targets_of(case, values):
                continue
            if name == "steps" and not has_scales(case, values):
                continue
            if name not in found:
                found.append(name)
    return found


def _index_buffers(case: Case, values: Mapping[str, Value]) -> list[BufferSpec]:
    read = (b for b in case.buffers if b.is_read and not b.is_fixed)
    return [b for b in read if dist_of(b, b.dtype_at(values)) in ("randint", "ids", "positions")]


def has_indices(case: Case, values: Mapping[str, Value]) -> bool:
    """Does a kernel read whole numbers that may be indices of something?"""
    return bool(_index_buffers(case, values))


def index_count(case: Case, values: Mapping[str, Value], point: Point) -> int:
    """How many of them the buffer with the most has at a point."""
    return max((math.prod(point.shapes[b.name]) for b in _index_buffers(case, values)), default=0)


@dataclass(frozen=True)
class _Request:
    """All that a filler needs: which values, for what shape."""

    spec: BufferSpec
    dtype: str
    shape: tuple[int, ...]
    scenario: str
    rng: np.random.Generator
    low: float
    high: float | None
    selected: bool  # of a kernel of logits, which chooses the largest
    main: bool  # scenarios of scale act on the main inputs only: weights stay of ordinary size
    target: str = ""  # half_way: the type that is rounded to
    starts: tuple[int, ...] = (0,)  # where indices may be counted from
    scales: tuple[int, ...] = ()  # half_way: exponents of the scales


def _check_memory(case: Case, point: Point, values: Mapping[str, Value]) -> None:
    """Raise PorterError PRT967 where the buffers of a point would take more than a quarter of the machine's memory.

    Rows far apart take only the pages that they are in, so elements count, not what lies between them.
    """
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    needed = sum(
        math.prod(point.shapes[b.name]) * SCALAR_BYTES[b.dtype_at(values)]
        for b in case.buffers
        if b.name in point.shapes
    )
    if needed > most:
        message = f"buffers at {point} need {needed / (1 << 30):.1f} GiB, more than a quarter of this machine's memory"
        span = Span(str(case.path), 0)
        raise PorterError(Diagnostic(codes.LIMIT_REACHED, message, span, help="give the case smaller sizes"))


def make_inputs(
    case: Case,
    point: Point,
    values: Mapping[str, Value],
    scenario: str = "normal",
    seed: int = 0,
    misaligned: frozenset[str] = frozenset(),
) -> Buffers:
    """Allocated buffers with their inputs filled; what a kernel has to write stays poisoned.

    Raises PorterError where `low` or `high` do not evaluate, or an integer input has no `high`.
    """
    _check_memory(case, point, values)
    buffers = allocate(case, point, values, seed, misaligned)
    reads = [b for b in buffers.values() if b.spec.is_read and b.name not in point.null]
    for buffer in reads:
        if buffer.spec.is_fixed:
            fill_fixed(case, buffer, point.names(values))
    reads = [b for b in reads if not b.spec.is_fixed]
    dists = {b.name: dist_of(b.spec, b.dtype) for b in reads}
    real = [b for b in reads if dists[b.name] in ("normal", "positive", "logits")]
    main = {b.name for b in real if len(b.shape) >= 2} or {b.name for b in real}
    targets, drawn = targets_of(case, values), generator(seed, "half_way")
    targets = quantised(targets) if scenario == "steps" else targets
    target = targets[int(drawn.integers(len(targets)))] if targets else ""
    scales = exponents(point, int(drawn.integers(-3, 4))) if targets else ()
    starts = (0, *sorted({v for v in point.scalars.values() if type(v) is int and v > 0}))
    for buffer in reads:
        low, high = _bounds(case, buffer.spec, point, values, dists[buffer.name])
        rng = generator(seed, scenario, buffer.name)
        request = _Request(
            buffer.spec, buffer.dtype, buffer.shape, scenario, rng, low, high, "logits" in dists.values(),
            buffer.name in main, target, starts, scales,
        )  # fmt: skip
        if 0 not in buffer.shape:
            buffer.view()[...] = _FILL[dists[buffer.name]](request)
    return buffers


def _bounds(
    case: Case, spec: BufferSpec, point: Point, values: Mapping[str, Value], dist: str
) -> tuple[float, float | None]:
    names = point.names(values)

    def number(text: str | None, key: str) -> float | None:
        if text is None:
            return None
        try:
            return float(expressions.evaluate(text, names))
        except (ExprError, ValueError) as error:
            case.fail(codes.CASE_EXPRESSION, str(error), *spec.where, key)

    low, high = number(spec.low, "low"), number(spec.high, "high")
    if high is None and dist in ("randint", "ids", "counts", "offsets", "positions"):
        case.fail(codes.MISSING_KEY, f'dist = "{dist}" needs `high`', *spec.where)
    return low or 0.0, high


def read_buffer(buffer: HostBuffer) -> np.ndarray:
    """The elements of a buffer as numbers, in its shape: float64 for floats and codes, int64/uint64/bool otherwise."""
    words = buffer.view()
    return words_to_int(words, buffer.dtype) if is_integer(buffer.dtype) else decode(words, buffer.dtype)


# ---------------------------------------------------------------- fillers: words of the dtype, in the shape asked for


def _real(r: _Request, x: np.ndarray) -> np.ndarray:
    """Vary numbers by the scenario, clip to the finite range, plant what is not finite, encode."""
    scenario = r.scenario if r.main or r.scenario == "nonfinite" else "normal"
    if r.scenario == "shifted" and r.selected and not r.main:
        x = x - SHIFT  # what is added to logits before they are compared
    if scenario == "small":
        x = x * 1e-4
    elif scenario == "large":
        x = x * 1e4
    elif scenario == "wide":
        x = np.sign(x) * np.exp2(r.rng.uniform(-24.0, 12.0, r.shape))
    elif scenario == "zeros":
        x = np.zeros(r.shape) * np.sign(x)  # both zeros
    elif scenario == "shifted":
        x = x + _shifts(r)
    elif scenario == "rows":
        x = _rows(r, x)
    elif scenario == "half_way":
        x = half_way(r.shape, r.target, r.scales, r.rng)
    elif scenario == "steps":
        x = steps(r.shape, r.target, r.dtype, r.rng)
    elif (number := number_of(scenario)) is not None:
        x = around(r.shape, number, r.dtype, r.rng)
    elif scenario == "outlier":
        x = x.copy()
        x[..., r.rng.integers(r.shape[-1])] *= 1000.0
    elif scenario == "denormal":
        x = np.sign(x) * r.rng.uniform(0.0, 1.0, r.shape) * _MIN_NORMAL[r.dtype]
    limit = LARGEST.get(r.dtype)
    if limit is not None and scenario != "rows":
        x = np.clip(x, -limit, limit)
    if scenario == "nonfinite" and r.spec.nonfinite:
        x = _plant(r, x, (np.nan, np.inf, -np.inf))
    return encode(np.asarray(x, np.float64), r.dtype).reshape(r.shape)


def _rows(r: _Request, x: np.ndarray) -> np.ndarray:
    """Every row of another kind: one value throughout, one huge value, the least number there is throughout, -inf
    throughout where the contract has it."""
    x = np.array(x, np.float64)
    rows = x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1)
    kinds = ["equal", "huge", "least", *(["negative infinity"] if r.spec.nonfinite else [])]
    first = int(r.rng.integers(len(kinds)))
    for k, row in enumerate(rows):
        kind = kinds[(first + k) % len(kinds)]
        if kind == "equal":
            row[:] = row[0]
        elif kind == "huge":
            row[r.rng.integers(row.size)] = min(HUGE, LARGEST.get(r.dtype, HUGE))
        elif kind == "least":
            row[:] = -LARGEST.get(r.dtype, HUGE)
        else:
            row[:] = -np.inf
    return rows.reshape(x.shape)


def conditioning(case: Case, values: Mapping[str, Value], scenario: str) -> float:
    """How much more the order of a sum may cost than elsewhere, where inputs of 32 bits are far from zero for their
    deviation: mean over deviation of shifted rows, the like of rows of one value in a norm with its epsilon."""
    if scenario not in CONDITION:
        return 1.0
    wide = (b for b in case.buffers if b.is_read and not b.is_fixed and b.dtype_at(values) in ("f32", "f64"))
    shifted = any("shifted" in SCENARIOS.get(dist_of(b, b.dtype_at(values)), ()) for b in wide)
    return CONDITION[scenario] if shifted else 1.0


def _shifts(r: _Request) -> np.ndarray:
    """-SHIFT or SHIFT for each row, the first row's negative."""
    rows = (*r.shape[:-1], 1)
    signs = np.where(r.rng.random(rows) < 0.5, -1.0, 1.0)
    signs.reshape(-1)[0] = -1.0
    return SHIFT * signs


def _plant(r: _Request, x: np.ndarray, specials: Sequence[float]) -> np.ndarray:
    """Put special values into at most half of the rows: the others must still come out right."""
    x = np.array(x, np.float64)
    rows = x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1)
    count = max(1, min(len(rows) // 2, 6)) if len(rows) > 1 else 1
    for n, row in enumerate(r.rng.permutation(len(rows))[:count]):
        columns = (0, rows.shape[1] - 1, int(r.rng.integers(rows.shape[1])))
        column = columns[int(r.rng.integers(3))]
        if n == 0 and rows.shape[1] > 1:  # beside the largest, in its vector: a maximum that loses to NaN loses it
            largest = int(np.abs(rows[row]).argmax())
            column = largest ^ 1 if largest ^ 1 < rows.shape[1] else largest - 1
        rows[row, column] = specials[n % len(specials)]
    return rows.reshape(x.shape)


def _normal(r: _Request) -> np.ndarray:
    return _real(r, r.rng.standard_normal(r.shape))


def _positive(r: _Request) -> np.ndarray:
    words = _real(r, np.abs(r.rng.standard_normal(r.shape)))
    sign = 1 << (8 * SCALAR_BYTES[r.dtype] - 1)
    return words & ~np.array(sign, words.dtype)


def _uniform(r: _Request) -> np.ndarray:
    high = 1.0 if r.high is None else r.high
    return _real(r, r.rng.uniform(r.low, high, r.shape))


def _logits(r: _Request) -> np.ndarray:
    x = 3.0 * r.rng.standard_normal(r.shape)
    rows = x.reshape(-1, r.shape[-1])
    some = r.rng.random(len(rows)) < 0.5
    some[r.rng.integers(len(rows))] = True
    if r.scenario == "ties":  # few distinct values: the largest one stands in several places
        rows[...] = np.rint(rows / 3.0)
    elif r.scenario == "equal":
        rows[some] = rows[some, :1]
    elif r.scenario == "neg_inf":
        rows[r.rng.random(rows.shape) < 0.5] = -np.inf  # masked experts
        if r.spec.nonfinite:
            rows[np.flatnonzero(some)[0]] = -np.inf
        else:
            rows[:, 0] = np.where(np.isinf(rows).all(axis=1), 0.0, rows[:, 0])
    elif r.scenario == "nan_rows" and r.spec.nonfinite:
        rows[np.flatnonzero(some)[0]] = np.nan
        for row in np.flatnonzero(some)[1:]:
            rows[row, r.rng.integers(rows.shape[1])] = np.nan
    elif r.scenario == "rows":
        x = _rows(r, x)
    elif r.scenario == "shifted":
        x += _shifts(r)
    elif r.scenario in ("small", "large"):
        rows *= 1e-4 if r.scenario == "small" else 1e4
        limit = LARGEST.get(r.dtype)
        if limit is not None:
            np.clip(rows, -limit, limit, out=rows)
    return encode(x, r.dtype).reshape(r.shape)


def _whole(r: _Request, x: np.ndarray) -> np.ndarray:
    """Whole numbers as words of the dtype (two's complement), or encoded when the dtype is a float."""
    if r.dtype in FLOAT_NAMES:
        return encode(x.astype(np.float64), r.dtype)
    return x.astype(np.int64).astype(storage(r.dtype))


def _top(r: _Request) -> int:
    return max(int(r.low) + 1, int(r.high or 0))


def _index(r: _Request, x: np.ndarray) -> None:
    if (number := index_of(r.scenario)) is not None:
        indices(x, number, r.starts, (int(r.low), _top(r)), r.rng)


def _randint(r: _Request) -> np.ndarray:
    x = r.rng.integers(int(r.low), _top(r), r.shape)
    _index(r, x)
    if r.scenario == "extremes":
        x = np.where(r.rng.random(r.shape) < 0.5, int(r.low), _top(r) - 1)
    return _whole(r, x)


def _ids(r: _Request) -> np.ndarray:
    low, high = int(r.low), _top(r)
    x = r.rng.integers(low, high, r.shape)
    ends = r.rng.permutation(x.size)[:2]
    x.reshape(-1)[ends] = (high - 1, low)[: ends.size]
    _index(r, x)
    if r.scenario == "one":
        x = np.full(r.shape, r.rng.integers(low, high))
    elif r.scenario == "bad_ids":
        bad = r.rng.choice([-1, high, high + 1, high + 1000], r.shape)
        x = np.where(r.rng.random(r.shape) < 0.3, bad, x)
        x.reshape(-1)[-1] = -1
    elif r.scenario == "skewed":
        x = np.where(r.rng.random(r.shape) < 0.9, r.rng.integers(low, high), x)
    return _whole(r, x)


def _counts(r: _Request) -> np.ndarray:
    low, high = int(r.low), int(r.high or 0)
    x = r.rng.integers(low, high + 1, r.shape)
    if r.scenario == "zeros":
        x = np.full(r.shape, low)
    elif r.scenario == "skewed":
        x = np.full(r.shape, low)
        x.reshape(-1)[r.rng.integers(x.size)] = high
    else:
        x.reshape(-1)[r.rng.integers(x.size)] = low
    return _whole(r, x)


def _offsets(r: _Request) -> np.ndarray:
    rows = r.shape[-1]
    top = int(r.high or 0)
    inner = np.sort(r.rng.integers(0, top + 1, (*r.shape[:-1], max(rows - 2, 0))), axis=-1)
    if r.scenario == "skewed":
        inner = np.where(np.arange(inner.shape[-1]) < r.rng.integers(inner.shape[-1] + 1), 0, top) + inner * 0
    ends = [np.zeros((*r.shape[:-1], 1), np.int64), inner, np.full((*r.shape[:-1], 1), top)]
    return _whole(r, np.concatenate(ends, axis=-1)[..., :rows])


def _permutation(r: _Request) -> np.ndarray:
    order = np.argsort(r.rng.random(r.shape), axis=-1)
    return _whole(r, order)


def _positions(r: _Request) -> np.ndarray:
    x = r.rng.integers(int(r.low), _top(r), r.shape)
    if r.scenario == "zeros":
        x = np.full(r.shape, int(r.low))
    elif r.scenario == "extremes":
        x = np.full(r.shape, _top(r) - 1)
    else:
        x.reshape(-1)[r.rng.integers(x.size)] = _top(r) - 1
        _index(r, x)
    return _whole(r, x)


def _cos_sin(r: _Request) -> np.ndarray:
    half = r.shape[-1] // 2
    frequencies = 10000.0 ** (-np.arange(half) / max(half, 1))
    angles = np.arange(int(np.prod(r.shape[:-1], dtype=np.int64)))[:, None] * frequencies
    table = np.concatenate([np.cos(angles), np.sin(angles), np.zeros((len(angles), r.shape[-1] - 2 * half))], axis=1)
    return encode(table.reshape(r.shape), r.dtype)


def _scale(r: _Request) -> np.ndarray:
    x = np.exp2(r.rng.uniform(-8.0, 2.0, r.shape))
    if r.scenario == "half_way":
        x = np.full(r.shape, 2.0 ** r.scales[0])
    if r.scenario in ("small", "large"):
        x *= 1e-4 if r.scenario == "small" else 1e4
    if r.dtype == "e8m0":
        x = np.exp2(np.clip(np.rint(np.log2(x)), -127, 127))
    limit = LARGEST.get(r.dtype)
    return encode(np.minimum(x, limit) if limit else x, r.dtype).reshape(r.shape)


def _bits(r: _Request) -> np.ndarray:
    word = storage(r.dtype)
    x = r.rng.integers(0, np.iinfo(word).max, r.shape, dtype=word, endpoint=True)
    if not is_integer(r.dtype):
        x = np.where(np.isfinite(decode(x, r.dtype)), x, word(0))
    return x


def _const(number: float) -> Callable[[_Request], np.ndarray]:
    def fill(r: _Request) -> np.ndarray:
        x = np.full(r.shape, number)
        return _whole(r, x) if is_integer(r.dtype) else encode(x, r.dtype)

    return fill


def _arange(r: _Request) -> np.ndarray:
    return _whole(r, np.arange(int(np.prod(r.shape, dtype=np.int64))).reshape(r.shape))


def _bool(r: _Request) -> np.ndarray:
    return _whole(r, r.rng.integers(0, 2, r.shape))


_FILL: dict[str, Callable[[_Request], np.ndarray]] = {
    "normal": _normal, "positive": _positive, "uniform": _uniform, "logits": _logits, "randint": _randint, "ids": _ids,
    "counts": _counts, "offsets": _offsets, "permutation": _permutation, "positions": _positions, "cos_sin": _cos_sin,
    "scale": _scale, "bits": _bits, "bool": _bool, "arange": _arange, "zeros": _const(0), "ones": _const(1),
}  # fmt: skip
