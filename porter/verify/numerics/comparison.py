"""Is what the port wrote what the original wrote? Every word of every buffer, then the float64 reference as arbiter.

NaN never ends a comparison: it is compared like any other value. "Never written" is told from "wrote NaN" by poison.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np

from porter import codes
from porter.case.model import CODE_NAMES
from porter.verify.launches.buffers import HostBuffer, is_integer, words_to_int
from porter.verify.numerics.formats import decode
from porter.verify.numerics.tolerance import EPS32, Tolerance
from porter.verify.numerics.ulps import ulp_distance, ulp_size

WORSE = 1.05  # RMS error against float64 may be this much of the original's
ROUNDING_RMS = 0.29  # ulp: one rounding to nearest gives 1/sqrt(12); below this nothing can be called worse
ROUNDING_RMS32 = 0.5  # of 32-bit outputs, whose error is that of several roundings: another order of sums scatters
BOUNDARY = 2.0**-18  # relative distance from a rounding boundary within which a quantised code may differ
CONTRADICTED = 0.01  # share of elements beyond the bound at which original and reference do not describe one function
NEAR_TIES = 2  # elements of an output that may be another than the float64 reference says


@dataclass(frozen=True)
class Finding:
    """One thing wrong with one buffer in one launch. `index` is the element's, empty where none is meant."""

    code: str
    buffer: str
    message: str
    launch: str = ""
    index: tuple[int, ...] = ()
    is_port: bool = True  # False: it says something about the original or the case


@dataclass
class Comparison:
    """What comparing one output of one launch gave. Sums are over elements whose float64 reference is finite."""

    elements: int = 0
    different: int = 0  # elements that are not bit-equal
    max_ulp: int = 0
    excused: int = 0  # code differences that lie on a rounding boundary, or elements closer to the reference
    ulps: list[int] = field(default_factory=list)  # elements by distance: see ulp_histogram
    judged: int = 0  # elements that entered the sums
    square_original: float = 0.0  # squared errors against the reference, in ulp of the output type
    square_port: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(f.is_port for f in self.findings)


@dataclass(frozen=True)
class _Pair:
    """An output as words and as numbers, original and port."""

    buffer: HostBuffer
    original: np.ndarray
    port: np.ndarray
    a: np.ndarray  # numbers of the original
    b: np.ndarray


def compare_output(
    before: HostBuffer,
    original: HostBuffer,
    port: HostBuffer,
    tolerance: Tolerance,
    reference: np.ndarray | None = None,
    pre: np.ndarray | None = None,
    words: tuple[np.ndarray, np.ndarray] | None = None,
    slack: np.ndarray | None = None,
    exact_ties: bool = False,
) -> Comparison:
    """Compare one output buffer after a launch, elements and gaps between them.

    `before` is the buffer as it was; `reference` the float64 values that the elements should have, in the buffer's
    shape (the numbers of the codes for quantised outputs); `pre` the float64 values before their rounding to integers
    or codes; `words` replaces the elements by canonical ones (set-per-segment); `slack` is how much each element may
    differ because the order of its sum is open (sum). `exact_ties`: the arithmetic before the rounding is exact,
    so that to lie on a boundary is no excuse (launches/rounding.py).
    """
    result = Comparison()
    _check_gaps(before, original, port, result)
    o, p = words if words is not None else (original.view(), port.view())
    result.elements = o.size
    if o.size == 0:
        return result
    dtype = original.dtype
    different = o != p
    if not different.any() and reference is None:
        return result
    a, b = numbers(o, dtype), numbers(p, dtype)
    pair = _Pair(original, o, p, a, b)
    if not is_integer(dtype):
        both_nan = np.isnan(a) & np.isnan(b)
        unwritten = (o == original.poison) != (p == original.poison)
        different &= ~(both_nan & ~unwritten)
    result.different = int(np.count_nonzero(different))
    if reference is not None:
        reference = np.broadcast_to(np.asarray(reference, np.float64), o.shape)
        _check_original(pair, reference, pre, tolerance, result)
    if result.different == 0:
        _sum_errors(pair, reference, different, result)
        return result
    if is_integer(dtype) or dtype in CODE_NAMES:
        _judge_codes(pair, different, pre, tolerance, result, exact_ties)
    else:
        _judge_floats(pair, different, reference, tolerance, result, slack)
    return result


def numbers(words: np.ndarray, dtype: str) -> np.ndarray:
    """Words as float64 numbers (64-bit integers lose low bits: use them for messages and distances only)."""
    return words_to_int(words, dtype).astype(np.float64) if is_integer(dtype) else decode(words, dtype)


def ulp_histogram(distance: np.ndarray) -> list[int]:
    """How many elements are 0, 1, 2 to 3, 4 to 7, 8 to 15, ... ulp away."""
    return [int(n) for n in np.bincount(np.frexp(distance.astype(np.float64))[1])] if distance.size else []


def check_input(before: HostBuffer, original: HostBuffer, port: HostBuffer) -> list[Finding]:
    """A read-only input must be as it was, gaps included."""
    found = []
    for buffer, who in ((original, False), (port, True)):
        changed = np.flatnonzero(buffer.words() != before.words())
        if changed.size:
            name = "the port" if who else "the original"
            text = f"{name} changed {changed.size} of {buffer.words().size} words of a read-only input"
            found.append(Finding(codes.INPUT_CHANGED, buffer.name, text, index=(int(changed[0]),), is_port=who))
    return found


def check_guards(original: HostBuffer, port: HostBuffer) -> list[Finding]:
    """The bytes around a buffer must be as they were. A port is not blamed beside an original that writes there too."""
    for buffer, who in ((original, False), (port, True)):
        broken = buffer.broken_guards()
        if broken:
            text = f"{'the port' if who else 'the original'} wrote {broken} bytes outside of the buffer"
            return [Finding(codes.WRITE_OUTSIDE_ELEMENTS, buffer.name, text, is_port=who)]
    return []


def _check_gaps(before: HostBuffer, original: HostBuffer, port: HostBuffer, result: Comparison) -> None:
    mask = original.element_mask()
    if mask is None:
        return
    for buffer, who in ((original, False), (port, True)):
        changed = np.flatnonzero((buffer.raw != before.raw) & ~mask)
        if changed.size:
            name = "the port" if who else "the original"
            text = f"{name} wrote {changed.size} words between the rows of a strided buffer"
            result.findings.append(
                Finding(codes.WRITE_OUTSIDE_ELEMENTS, buffer.name, text, index=(int(changed[0]),), is_port=who)
            )


def _finding(code: str, pair: _Pair, flat: int, count: int, why: str, reference: np.ndarray | None = None) -> Finding:
    index = tuple(int(i) for i in np.unravel_index(flat, pair.original.shape)) if pair.original.ndim else ()
    o, p = int(pair.original.flat[flat]), int(pair.port.flat[flat])
    poison = pair.buffer.poison
    if p == poison and o != poison:
        why = f"never written; {why}"
    elif o == poison and p != poison:
        why = f"written, though the original leaves it untouched; {why}"
    digits = 2 * pair.original.dtype.itemsize
    text = f"{count} of {pair.original.size} elements: {why}. At {list(index)} the original has "
    text += f"{_show(pair.a.flat[flat])} (0x{o:0{digits}x}), the port {_show(pair.b.flat[flat])} (0x{p:0{digits}x})"
    if reference is not None:
        text += f", float64 {_show(reference.flat[flat])}"
    return Finding(code, pair.buffer.name, text, index=index)


def _show(x: float) -> str:
    return f"{x:.9g}"


def row_scale(a: np.ndarray) -> np.ndarray:
    """The largest finite magnitude of each row; in one dimension (a value a row) each its own, at least the median."""
    magnitude = np.where(np.isfinite(a), np.abs(a), 0.0)
    if a.ndim <= 1:
        finite = magnitude[np.isfinite(a)] if a.ndim else magnitude
        return np.maximum(magnitude, np.median(finite) if finite.size else 0.0)
    return np.broadcast_to(magnitude.max(axis=-1, keepdims=True), a.shape)


def _judge_floats(
    pair: _Pair,
    different: np.ndarray,
    reference: np.ndarray | None,
    tolerance: Tolerance,
    result: Comparison,
    slack: np.ndarray | None = None,
) -> None:
    dtype = pair.buffer.dtype
    a, b = pair.a, pair.b
    nan = np.isnan(a) | np.isnan(b)
    distance = np.where(nan, 0, ulp_distance(pair.original, pair.port, dtype))
    result.max_ulp = int(distance[different].max())
    result.ulps = ulp_histogram(distance[different & ~nan])
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(a - b)
        within_row = gap <= tolerance.row * row_scale(a)
        if slack is not None:
            within_row |= gap <= slack
    allowed = (distance <= max(tolerance.ulp, tolerance.arbitrated_ulp if reference is not None else 0.0)) | within_row
    unwritten = (pair.original == pair.buffer.poison) != (pair.port == pair.buffer.poison)
    bad = different & (nan | unwritten | ~allowed)
    if slack is not None:
        bad &= unwritten | ~np.isposinf(slack)
    if reference is not None and bad.any():
        with np.errstate(invalid="ignore", over="ignore"):
            closer = np.abs(b - reference) <= WORSE * np.abs(a - reference)
        closer &= np.isfinite(reference) & np.isfinite(a) & np.isfinite(b) & ~unwritten
        result.excused += int(np.count_nonzero(bad & closer))
        bad &= ~closer
    if pair.buffer.spec.compare == "exact":  # zeros of either sign are the same number, and other bits
        bad |= different & (a == 0.0) & (b == 0.0)
    if bad.any():
        if (bad & nan).any():
            flat = int(np.flatnonzero(bad & nan)[0])
            why = "NaN on one side only"
        else:
            score = np.where(bad, distance, -1)
            flat = int(score.argmax())
            why = f"differ by up to {int(score.flat[flat])} ulp, allowed {tolerance.why}"
            if tolerance.exact and reference is None:
                why += ", and no float64 reference says which is right"
        result.findings.append(_finding(codes.WRONG_RESULT, pair, flat, int(bad.sum()), why, reference))
    if slack is not None or tolerance.condition > 1.0:  # which order is nearer to the truth is chance
        return
    _sum_errors(pair, reference, different, result)
    if reference is not None and not result.failed:
        _check_launch_errors(pair, reference, different, result)


def _errors(pair: _Pair, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors of original and port against the reference in ulp of the output type, and where they are defined."""
    with np.errstate(invalid="ignore", over="ignore"):
        unit = np.maximum(ulp_size(reference, pair.buffer.dtype), EPS32 * row_scale(reference))
        eo, ep = np.abs(pair.a - reference) / unit, np.abs(pair.b - reference) / unit
    return eo, ep, np.isfinite(eo) & np.isfinite(ep)


def _sum_errors(pair: _Pair, reference: np.ndarray | None, different: np.ndarray, result: Comparison) -> None:
    if reference is None or is_integer(pair.buffer.dtype) or pair.buffer.dtype == "e8m0":
        return
    eo, ep, defined = _errors(pair, reference)
    result.judged = int(np.count_nonzero(defined))
    result.square_original = float(np.sum(np.square(eo[defined])))
    result.square_port = float(np.sum(np.square(ep[defined])))


def _floor(dtype: str) -> float:
    return ROUNDING_RMS if dtype in ("f16", "bf16") else ROUNDING_RMS32


def _check_launch_errors(pair: _Pair, reference: np.ndarray, different: np.ndarray, result: Comparison) -> None:
    """Within one launch, is the port's error larger by more than the scatter of the elements that differ?"""
    eo, ep, defined = _errors(pair, reference)
    chosen = defined & different
    grown = np.square(ep[chosen]) - np.square(eo[chosen])
    scatter = 3.0 * float(np.sqrt(np.sum(np.square(grown))))
    limit = (WORSE**2 - 1.0) * result.square_original + scatter
    rms = np.sqrt(result.square_port / max(result.judged, 1))
    if float(np.sum(grown)) > limit and rms > _floor(pair.buffer.dtype):
        flat = int(np.where(chosen, ep - eo, -np.inf).argmax())
        was = np.sqrt(result.square_original / max(result.judged, 1))
        why = f"RMS error against float64 is {rms:.3f} ulp, the original's {was:.3f} ulp"
        result.findings.append(_finding(codes.LESS_ACCURATE, pair, flat, result.different, why, reference))


def _judge_codes(
    pair: _Pair,
    different: np.ndarray,
    pre: np.ndarray | None,
    tolerance: Tolerance,
    result: Comparison,
    exact_ties: bool = False,
) -> None:
    dtype = pair.buffer.dtype
    bad = different
    if pre is not None:
        rounded = np.broadcast_to(np.asarray(pre, np.float64), different.shape)
        on_boundary = different & _on_boundary(pair, rounded, exact_ties)
        result.excused += int(np.count_nonzero(on_boundary))
        bad = different & ~on_boundary
    if not is_integer(dtype):
        distance = ulp_distance(pair.original, pair.port, dtype)[different]
        result.max_ulp = int(distance.max())
        result.ulps = ulp_histogram(distance)
    if tolerance.ulp and pre is None and not is_integer(dtype):
        bad = bad & (ulp_distance(pair.original, pair.port, dtype) > tolerance.ulp)
    if bad.any():
        flat = int(np.flatnonzero(bad)[0])
        where = "" if pre is None else ", not on a rounding boundary"
        why = f"differ{where}" if is_integer(dtype) else f"codes differ{where}"
        result.findings.append(_finding(codes.WRONG_RESULT, pair, flat, int(np.count_nonzero(bad)), why, pre))


def _on_boundary(pair: _Pair, pre: np.ndarray, exact_ties: bool) -> np.ndarray:
    """Where original and port are neighbouring codes and the value before rounding lies on the boundary between; with
    `exact_ties` beside it, but not on it."""
    a, b = pair.a, pair.b
    if is_integer(pair.buffer.dtype):
        neighbours = np.abs(a - b) == 1.0
    else:
        neighbours = ulp_distance(pair.original, pair.port, pair.buffer.dtype) == 1
    boundary = (a + b) / 2.0
    with np.errstate(invalid="ignore"):
        near = np.abs(pre - boundary) <= BOUNDARY * np.maximum(np.abs(boundary), np.abs(pre))
    return neighbours & near & ~(exact_ties & (pre == boundary))


def _check_original(
    pair: _Pair, reference: np.ndarray, pre: np.ndarray | None, tolerance: Tolerance, result: Comparison
) -> None:
    """When the original itself is far from the reference, one of them (or the emulator) is wrong: nothing is proved."""
    dtype = pair.buffer.dtype
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(pair.a - reference)
        if is_integer(dtype):
            far = gap > 0
        elif dtype in CODE_NAMES:
            far = gap > 1.01 * ulp_size(reference, "e5m2" if dtype == "e8m0" else dtype)
        else:
            limit = tolerance.reference_ulp * ulp_size(reference, dtype)
            far = gap > limit + tolerance.reference_row * row_scale(reference)
    far &= np.isfinite(reference) & np.isfinite(pair.a)
    if pre is not None:
        rounding = np.broadcast_to(np.asarray(pre, np.float64), far.shape)
        between = np.abs(rounding - (pair.a + reference) / 2.0) <= BOUNDARY * np.maximum(np.abs(rounding), 1.0)
        far &= ~between
    count = int(np.count_nonzero(far))
    # Scores that tie in float32 and not in float64 choose another id; a largest value that was rounded in the middle,
    # the other way in float32, scales a row by an ulp of the narrow type.
    ties = NEAR_TIES if far.size >= 32 else 0
    if count > max(CONTRADICTED * far.size, ties):
        score = np.where(far, gap, -1.0)
        why = "the original is not near the reference"
        finding = _finding(codes.REFERENCE_DISAGREES, pair, int(score.argmax()), count, why, reference)
        result.findings.append(replace(finding, is_port=False))


# ---------------------------------------------------------------- over all launches of an instance


@dataclass
class Ledger:
    """One output buffer over every launch of one instance; `close` draws the conclusion."""

    buffer: str
    dtype: str
    elements: int = 0
    different: int = 0
    excused: int = 0
    max_ulp: int = 0
    ulps: list[int] = field(default_factory=list)
    judged: int = 0
    square_original: float = 0.0
    square_port: float = 0.0
    tolerance: Tolerance | None = None
    findings: list[Finding] = field(default_factory=list)

    def add(self, comparison: Comparison, tolerance: Tolerance, launch: str) -> None:
        self.elements += comparison.elements
        self.different += comparison.different
        self.excused += comparison.excused
        self.max_ulp = max(self.max_ulp, comparison.max_ulp)
        self.ulps = [a + b for a, b in zip_longest(self.ulps, comparison.ulps, fillvalue=0)]
        self.judged += comparison.judged
        self.square_original += comparison.square_original
        self.square_port += comparison.square_port
        if self.tolerance is None or tolerance.row > self.tolerance.row:
            self.tolerance = tolerance
        self.findings += [replace(f, launch=launch) for f in comparison.findings]

    @property
    def rms(self) -> tuple[float, float]:
        """RMS errors of original and port against float64, in ulp of the output type."""
        n = max(self.judged, 1)
        return float(np.sqrt(self.square_original / n)), float(np.sqrt(self.square_port / n))

    def close(self) -> str:
        """bit-equal, closer-or-equal, within-bound, worse or different; adds the findings that only the sum shows."""
        if any(f.is_port for f in self.findings):
            return "worse" if all(f.code == codes.LESS_ACCURATE for f in self.findings if f.is_port) else "different"
        if self.different == 0:
            return "bit-equal"
        if is_integer(self.dtype) or self.dtype in CODE_NAMES:
            return "within-bound"  # every difference lay on a rounding boundary
        assert self.tolerance is not None
        was, now = self.rms
        if self.judged:
            if now > WORSE * was and now > _floor(self.dtype):
                text = f"RMS error against float64 over all launches is {now:.3f} ulp, the original's {was:.3f} ulp"
                self.findings.append(Finding(codes.LESS_ACCURATE, self.buffer, text))
                return "worse"
            return "closer-or-equal"
        allowed = int((1.0 - self.tolerance.bit_equal) * self.elements) + (1 if self.tolerance.bit_equal < 1.0 else 0)
        if self.different > allowed:
            share = 100.0 * (1.0 - self.different / max(self.elements, 1))
            text = f"{share:.4g} % of {self.elements} elements are bit-equal; required {self.tolerance.why}"
            self.findings.append(Finding(codes.WRONG_RESULT, self.buffer, text))
            return "different"
        return "within-bound"

    def summary(self, verdict: str) -> str:
        """One line for a person."""
        text = f"{self.buffer}: {verdict}"
        if self.different:
            text += f", {self.different} of {self.elements} differ"
            text += f" by at most {self.max_ulp} ulp" if self.max_ulp else ""
        if self.excused:
            text += f", {self.excused} excused"
        if self.judged:
            was, now = self.rms
            text += f", RMS error {now:.3f} ulp (original {was:.3f})"
        return text
