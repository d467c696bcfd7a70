"""The arithmetic that norms share: 1/rms of a row, and the weight with the rounding of each profile."""

import cutlass
from cutlass import Float32

from porter.corpus.lib.floats import div_rn, rsqrt


def inverse_rms(rows, x, eps, scratch):
    """1 / sqrt(mean(x^2) + eps) of each row, Float32. x: float32 values (vec, accesses) of this thread, zeros beyond
    the row. `div.rn.f32` by the length (exactly so: `mul.f32` for powers of two), then `rsqrt.approx.f32`, as
    `rsqrtf(sum / n + eps)` in CUDA."""
    total = rows.reduce(rows.fold(x * x), scratch)
    if cutlass.const_expr(rows.length & (rows.length - 1) == 0):
        return rsqrt(total * (1.0 / rows.length) + eps)
    return rsqrt(div_rn(total, Float32(rows.length)) + eps)


def add_residual(rows, tXrX, tXrR, gR, lane, inside, rounded, T):
    """x + residual as float32 values; the sum rounded to T goes to gR, on its way while the row is reduced.

    `rounded`: the result is what was stored; else it is the sum before it was rounded. Without a residual (None), x.
    """
    if cutlass.const_expr(tXrR is None):
        return tXrX.load().to(Float32)
    h = tXrX.load().to(Float32) + tXrR.load().to(Float32)
    tXrR.store(h.to(T))
    rows.store(gR, lane, tXrR, inside)
    return tXrR.load().to(Float32) if cutlass.const_expr(rounded) else h


def weighted(y, tXrW, bias, rounding, T, out=None):
    """y * (w + bias) as values of type `out` (T if None). y: float32 values; tXrW: the weight's registers, or None.

    "single" rounds once, at the end; "double" rounds y to T first.
    """
    out = T if out is None else out
    if cutlass.const_expr(tXrW is None):
        return y.to(out)
    if cutlass.const_expr(rounding == "double"):
        y = y.to(T).to(Float32)
    w = tXrW.load().to(Float32)
    return (y * (w if bias == 0 else w + bias)).to(out)
