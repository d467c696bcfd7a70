"""How far a port may be from its original, derived from dtype, reduction length and approximate instructions.

Bounds are stated in units in the last place (ulp) of the output type and as float32 rounding relative to the largest
value of a row. Nothing here is an absolute tolerance.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from porter.case.reader import ToleranceSpec

EPS32 = 2.0**-24  # half a unit in the last place of float32: one rounding

# Error that an approximate instruction is allowed, relative to its result or to 1, from the PTX ISA 9.1: 9.7.3.8 (div),
# 9.7.3.13 (rcp), 9.7.3.15 (sqrt), 9.7.3.16 (rsqrt), 9.7.3.18-22 (sin, cos, lg2, ex2, tanh), 9.7.4.9 (tanh of halves,
# absolute), 9.7.4.10 (ex2 of halves). 1 ulp (rcp) and 2 ulp (div, ex2) are 2^-23 and 2^-22. lg2 is absolute for inputs
# in (0.5, 2) and relative elsewhere; sin and cos are absolute for inputs in [-2 pi, 2 pi]: up to 100 pi hardware may
# be off by 2^-14.7, which comparing on the emulator does not need.
# They only widen comparisons between different instructions and with float64, never those of equal instructions.
APPROX_ERROR: dict[str, float] = {
    "rcp.approx": 2.0**-23,
    "div.approx": 2.0**-22,
    "div.full": 2.0**-22,
    "ex2.approx": 2.0**-22,
    "lg2.approx": 2.0**-22,
    "rsqrt.approx": 2.0**-22.9,
    "sqrt.approx": 2.0**-23,
    "sin.approx": 2.0**-20.5,
    "cos.approx": 2.0**-20.5,
    "tanh.approx": 2.0**-11,
    "ex2.approx.f16": 2.0**-9.9,
    "ex2.approx.bf16": 2.0**-7,
    "tanh.approx.f16": 2.0**-10.987,
    "tanh.approx.bf16": 2.0**-8,
}
_APPROX = re.compile(
    r"\b(rcp|div|ex2|lg2|rsqrt|sqrt|sin|cos|tanh)\.(approx|full)(?:\.ftz)?\.(f32|f16x2|f16|bf16x2|bf16|f64)"
)
_REDUCTION = re.compile(r"\b(shfl\.|redux\.|bar(rier)?\.(cta\.)?(sync|red|arrive)|atom\.|red\.)")


_PRODUCT = re.compile(r"\bmul(?:\.ftz)?\.(?:f32|f64)\s+(%\w+),")
_FUSED = re.compile(r"\bfma\.rn(?:\.ftz)?\.(?:f32|f64)\s+%\w+,\s*\S+,\s*\S+,\s*(%\w+)\s*;")


@dataclass(frozen=True)
class Tolerance:
    """What a buffer's difference from the original is measured against."""

    ulp: float  # largest distance of an element, in ulp of its dtype ...
    row: float  # ... unless below this share of the largest finite value of its row
    bit_equal: float  # least share of elements that are bit-equal, over all launches of an instance
    arbitrated_ulp: float  # within this distance the float64 reference may excuse elements that are not bit-equal
    reference_ulp: float  # largest distance that the original itself should have from the float64 reference ...
    reference_row: float  # ... or this share of the row's largest value
    why: str
    condition: float = 1.0  # how much larger the terms of a sum are than what is left of them

    @property
    def exact(self) -> bool:
        return self.ulp == 0 and self.row == 0


def approximations(ptx: str) -> frozenset[str]:
    """The approximate instructions in a kernel's PTX, as keys of APPROX_ERROR."""
    found = set()
    for op, how, kind in _APPROX.findall(ptx):
        suffix = {"f16": ".f16", "f16x2": ".f16", "bf16": ".bf16", "bf16x2": ".bf16"}.get(kind, "")
        name = f"{op}.{how}{suffix}"
        found.add(name if name in APPROX_ERROR else f"{op}.{how}")
    return frozenset(found)


def has_reduction(ptx: str) -> bool:
    """True when threads combine values (shuffles, barriers, atomics): where a port may have another order of sums."""
    return _REDUCTION.search(ptx) is not None


def adds_products(ptx: str) -> bool:
    """True when a kernel adds products: of a * b + c * d one product is fused, and which one is up to the compiler.

    Measured: NVRTC 13 fuses the product whose operands are computed last, the DSL's compiler the other.
    """
    products = set(_PRODUCT.findall(ptx))
    return any(addend in products for addend in _FUSED.findall(ptx))


def derive(
    dtype: str,
    compare: str,
    reduction: int = 1,
    original: frozenset[str] = frozenset(),
    port: frozenset[str] = frozenset(),
    spec: ToleranceSpec | None = None,
    contracts: bool = False,
    terms: int = 1,
    products: float = 0.0,
    condition: float = 1.0,
) -> Tolerance:
    """The tolerance of one output buffer.

    `reduction` is the length of the longest sum that feeds an element (1: none crosses threads), `original` and `port`
    the approximate instructions of each. On one backend equal instructions give equal results, so only those that one
    side alone uses widen the comparison; against the float64 reference all of them count.
    `contracts`: see adds_products. `terms`: the longest row that a thread may sum by itself: in the same order on both
    sides, so it counts against the float64 reference only. `products`: the relative error of a product that ptxas may
    round on one side and fuse on the other (0.0: it has no such choice, or both sides ran as the PTX says).
    `condition`: how much larger the terms of a sum are than what is left of them.
    """
    summed = 2.0 * math.sqrt(max(reduction, 1)) * EPS32 * condition if reduction > 1 else 0.0
    differing = sum(APPROX_ERROR[a] for a in original ^ port)
    using = sum(APPROX_ERROR[a] for a in original | port)
    parts = []
    if compare in ("exact", "set-per-segment") or not dtype.startswith(("f", "bf")):
        ulp = row = 0.0
        share = 1.0
        parts.append("integers and codes are exact" if not dtype.startswith(("f", "bf")) else f"compare = {compare}")
    elif compare == "sum":  # what its order leaves open is known element by element, where terms are counted
        ulp, share = 0.0, 0.0
        row = max(summed, products) + differing
        parts.append("the order of sums is open: 2 n u times the magnitudes of their n terms")
    elif reduction > 1 or differing or contracts or products:
        if contracts:
            summed = max(summed, 2.0 * EPS32)
        summed = max(summed, products)
        ulp = 1.0 if dtype in ("f16", "bf16") else 4.0
        row = summed + differing
        share = 0.999 if dtype in ("f16", "bf16") and not products else 0.0
        if products:
            parts.append("sums of two products, of which ptxas fuses either")
        if reduction > 1:
            parts.append(f"sums of up to {reduction} terms")
        if contracts and reduction <= 1:
            parts.append("sums of products, one of which is fused")
        if differing:
            parts.append(f"only one side uses {', '.join(sorted(original ^ port))}")
    else:
        ulp = row = 0.0
        share = 1.0
        parts.append("same operations in the same order")
    arbitrated = max(ulp, 1.0 if dtype in ("f16", "bf16") else 4.0) if compare == "close" else 0.0
    reference_ulp = 4.0 if dtype in ("f16", "bf16") else 16.0
    alone = 2.0 * math.sqrt(terms) * EPS32 * condition if terms > 1 else 0.0
    reference_row = 8.0 * (max(summed, alone) + EPS32) + 2.0 * using
    if spec is not None:
        if spec.ulp is not None:
            ulp = arbitrated = float(spec.ulp)
        if spec.rtol is not None:
            row = float(spec.rtol)
        if spec.bit_equal is not None:
            share = float(spec.bit_equal)
        if spec.ulp is not None or spec.rtol is not None or spec.bit_equal is not None:
            parts.append(f"the case: {spec.reason or 'no reason given'}")
    why = f"{_text(ulp, row, share)} ({'; '.join(parts)})"
    return Tolerance(ulp, row, share, arbitrated, reference_ulp, reference_row, why, condition)


def is_loosened(derived: Tolerance, given: Tolerance) -> bool:
    """True when a case's tolerance accepts what the derived one does not."""
    return given.ulp > derived.ulp or given.row > derived.row or given.bit_equal < derived.bit_equal


def _text(ulp: float, row: float, share: float) -> str:
    if ulp == 0 and row == 0:
        return "bit-equal"
    text = f"<= {ulp:g} ulp"
    if row:
        text += f" or {row:.1e} of the row's largest value"
    return text + (f", >= {100 * share:g} % bit-equal" if share else "")
