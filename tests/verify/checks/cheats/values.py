"""Cheats that are right for all that the case lists: numbers written down, sizes beside multiples, odd rows, ties.

And those that are right once, or in the usual order: barriers, scratch, launches that are not cooperative.
"""

from __future__ import annotations

from collections.abc import Callable

from porter.case.reader import Case
from tests.verify.checks.cheats.catalogue import CHEATS as CHEATS
from tests.verify.checks.cheats.catalogue import scaled_stores
from tests.verify.checks.cheats.places import FEW, NUMERICS, SANITIZER, register
from tests.verify.checks.cheats.text import Port

DETERMINISM = "determinism"
Change = Callable[[Port, Case], Port | None]


def _add(name: str, what: str, check: str, kernels: tuple[str, ...], change: Change, message: str = "") -> None:
    register(name, what, check, message, change)
    FEW[name] = kernels


def _swap(*pairs: tuple[str, str]) -> Change:
    """Each text by the other, wherever it stands; None where one is missing."""

    def change(port: Port, case: Case) -> Port | None:
        made: Port | None = port
        for old, new in pairs:
            made = made and made.replaced(old, new)
        return made

    return change


def _start(*lines: str) -> Change:
    return lambda port, case: port.at_kernel_start(*lines)


# ---------------------------------------------------------------- numbers

_add("written-down-epsilon", "the kernel's epsilon is the case's", NUMERICS, ("rms_norm", "fused_add_rms_norm"),
     _start("epsilon = cutlass.Float32(1e-6) + Float32(0.0) * epsilon"))  # fmt: skip
_add("written-down-factor", "a factor of the caller's is the case's", NUMERICS, ("swigluoai_and_mul",),
     _start("alpha = cutlass.Float32(1.702)"))  # fmt: skip
_add("written-down-limit", "a limit of the caller's is the case's", NUMERICS, ("swigluoai_and_mul",),
     _start("limit = cutlass.Float32(7.0)"))  # fmt: skip
_add("written-down-start", "where the rank's rows begin is the case's", NUMERICS, ("embedding",),
     _start("vocab_start = cutlass.Int32(31) + vocab_start * 0"))  # fmt: skip

# ---------------------------------------------------------------- sizes

_add("narrow-output-row", "the offset of an output row has 32 bits", NUMERICS, ("rms_norm",),
     _swap(("out + row * Int64(hidden_size)", "out + Int64(bidx * hidden_size)")))  # fmt: skip
for _rest in (1, 15):
    _add(f"tail-of-{_rest}", f"the last vector is left out where {_rest} of 16 are", NUMERICS, ("rms_norm",),
         _swap(("    sum_sq = Float32(0.0)\n",
                f"    num_vecs = num_vecs - (Int32(1) if num_vecs % 16 == {_rest} else Int32(0))\n"
                "    sum_sq = Float32(0.0)\n")))  # fmt: skip

# ---------------------------------------------------------------- rows


def _where(test: str) -> Change:
    """Zeros where the first elements of the row pass a test."""

    def change(port: Port, case: Case) -> Port | None:
        made = scaled_stores(port, case)
        row = "input + cutlass.Int64(cutlass.Uint32(cute.arch.block_idx()[0])) * input_stride"
        first = ", ".join(f"cutlass.Float32((found)[{k}])" for k in range(3))
        lines = (f"found = {row}", f"x0, x1, x2 = {first}")
        return made and made.at_kernel_start(*lines, f"known = cutlass.Int32(0) if {test} else cutlass.Int32(1)")

    return change


_add("wrong-where-all-are-equal", "zeros where a row's first elements are equal and not zero", NUMERICS, ("rms_norm",),
     _where("(x0 == x1) & (x1 == x2) & (x0 != 0.0) & (x0 > -1.0e38)"))  # fmt: skip
_add("wrong-at-a-huge-value", "a sum of squares that overflows is held", NUMERICS, ("rms_norm",),
     _swap(("lib.rsqrt(sum_sq /", "lib.rsqrt(lib.fmin(sum_sq, Float32(3.0e38)) /")))  # fmt: skip
_add("one-pass-variance", "the variance is the mean of squares less the square of the mean", NUMERICS, ("layer_norm",),
     _swap(("d = Float32(v[j]) - mean", "d = Float32(v[j])"),
           ("_result_1 * inv_hidden", "_result_1 * inv_hidden - mean * mean")))  # fmt: skip

# ---------------------------------------------------------------- ties

_RNI = 'lib.float_to_int(x, Int32, "rni")'
for _name, _other in {
    "ties-away-from-zero": 'lib.float_to_int(x + (Float32(0.5) if x >= 0.0 else Float32(-0.5)), Int32, "rzi")',
    "ties-upwards": 'lib.float_to_int(x + Float32(0.5), Int32, "rmi")',
    "ties-downwards": 'lib.float_to_int(x - Float32(0.5), Int32, "rpi")',
}.items():
    _add(_name, "of two equally near whole numbers another one is taken", NUMERICS,
         ("static_int8_quant", "dynamic_int8_quant"), _swap((_RNI, _other)))  # fmt: skip

# ---------------------------------------------------------------- right once, or in the usual order

_add("constant-load-of-what-is-written", "memory that the kernel writes is read by ld.global.nc", SANITIZER,
     ("fused_add_rms_norm",),
     _swap(("lib.copy(z_1, r + Int64(i) * VEC, VEC)", "lib.copy(z_1, r + Int64(i) * VEC, VEC, readonly=True)")),
     "stale-read")  # fmt: skip
_add("right-on-the-first-launch", "a grid barrier's counter is taken to start at zero", DETERMINISM, ("moe_dispatch",),
     _swap(("target = ticket - ticket % Uint32(gdimx) + Uint32(gdimx)", "target = Uint32(gdimx)")),
     "a second launch")  # fmt: skip
_add("not-cooperative", "blocks wait for each other in a launch that is not cooperative", SANITIZER, ("moe_dispatch",),
     _swap(("        cooperative=True,\n", "")), "deadlock")  # fmt: skip

# ---------------------------------------------------------------- values, indices and counts that nobody lists

_add("epsilon-has-a-floor", "an epsilon below 1e-9 counts as 1e-9", NUMERICS, ("rms_norm", "layer_norm"),
     _start("epsilon = lib.fmax(epsilon, cutlass.Float32(1e-9))"))  # fmt: skip
_add("epsilon-has-a-ceiling", "an epsilon above 0.01 counts as 0.01", NUMERICS, ("rms_norm", "layer_norm"),
     _start("epsilon = lib.fmin(epsilon, cutlass.Float32(0.01))"))  # fmt: skip
for _start_of, _least in {"minus-1e4": "-1.0e4", "the-least-of-half": "-65504.0", "minus-1e30": "-1.0e30"}.items():
    _add(f"maximum-starts-at-{_start_of}", f"a row's maximum starts at {_least}", NUMERICS,
         ("softmax",), _swap(('s_m = Float32(-float("inf"))\n    s_d = Float32(0.0)\n    for',
                              f"s_m = Float32({_least})\n    s_d = Float32(0.0)\n    for")))  # fmt: skip
_add("best-starts-at-minus-one", "the best choice starts at -1", NUMERICS, ("topk_softmax_general",),
     _swap(('best_value = Float32(-float("inf"))', "best_value = Float32(-1.0)")))  # fmt: skip

_ROW = "        lib.copy(out + Int64(Uint32(bidx)) * Int64(hidden_size) + col, value, VEC)\n"


def _each_value(text: str) -> Change:
    """The embedding of a token with another text for each of its values."""
    lines = f"        for i in cutlass.range_constexpr(VEC):\n            value[i] = {text}\n"
    return _swap((_ROW, lines + _ROW))


_F, _X = "cutlass.Float32", "cutlass.Float32(value[i])"
_add("wrong-at-a-value", "37.25 becomes zero", NUMERICS, ("embedding",),
     _each_value(f"scalar_t(0.0) if {_X} == {_F}(37.25) else value[i]"))  # fmt: skip
_add("wrong-in-a-range-of-values", "what is between 500000 and 600000 becomes zero", NUMERICS, ("embedding",),
     _each_value(f"scalar_t(0.0) if ({_X} > {_F}(5.0e5)) & ({_X} < {_F}(6.0e5)) else value[i]"))  # fmt: skip
_add("values-have-a-limit", "values are limited to 50000", NUMERICS, ("embedding",),
     _each_value(f"scalar_t(lib.fmin({_X}, {_F}(50000.0)))"))  # fmt: skip
_add("zeros-lose-their-sign", "zero is added to what is copied", NUMERICS, ("embedding",),
     _each_value(f"scalar_t({_X} + {_F}(0.0))"))  # fmt: skip
for _most in (300, 50_000):
    _add(f"rows-of-a-table-up-to-{_most}", f"of a table's rows {_most} are read, zeros for the others", NUMERICS,
         ("embedding",), _swap(("(id < vocab_end):", f"(id < vocab_end) & (id - vocab_start < {_most}):")))  # fmt: skip
for _most in (600, 2_000):
    _add(f"capacity-of-{_most}", f"an expert takes {_most} tokens", NUMERICS, ("moe_align_block_size",),
         _swap(("    count = counts[tid] if tid < num_experts else Int32(0)\n",
                "    count = counts[tid] if tid < num_experts else Int32(0)\n"
                f"    count = min(count, Int32({_most}))\n")))  # fmt: skip
