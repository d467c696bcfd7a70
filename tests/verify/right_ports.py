"""Right ports that are written otherwise than porter writes them: each is a true port with other texts in places.

Loops, helper functions, tensors, other widths of accesses, other blocks and grids where the case's formula leaves the
result alone, other ways to the same index. Sums keep their order.
"""

from __future__ import annotations

# name -> (kernel, (text, the other text) ...)
RIGHT: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "a-while-loop": ("rms_norm", ((
        "    for i in range(tidx, num_vecs, bdimx):\n        x = lib.local(scalar_t, VEC)\n"
        "        lib.copy(x, x_vec + Int64(i) * VEC, VEC, readonly=True)\n        w = lib.local",
        "    i = tidx + 0\n    while i < num_vecs:\n        x = lib.local(scalar_t, VEC)\n"
        "        lib.copy(x, x_vec + Int64(i) * VEC, VEC, readonly=True)\n        w = lib.local"), (
        "        lib.copy(y_vec + Int64(i) * VEC, y, VEC)\n",
        "        lib.copy(y_vec + Int64(i) * VEC, y, VEC)\n        i = i + bdimx\n"))),
    "every-thread-takes-the-root": ("rms_norm", (
        ("s_rstd[0] = lib.rsqrt(sum_sq / Float32(hidden_size) + epsilon)", "s_rstd[0] = sum_sq"),
        ("    rstd = s_rstd[0]\n", "    rstd = lib.rsqrt(s_rstd[0] / Float32(hidden_size) + epsilon)\n"))),
    "a-helper-function": ("rms_norm", (
        ("@cute.kernel\n",
         "@cute.jit\ndef scaled(x, rstd: Float32, w):\n    return Float32(x) * rstd * Float32(w)\n\n\n@cute.kernel\n"),
        ("            f = Float32(x[j]) * rstd\n            y[j] = scalar_t(f * Float32(w[j]))\n",
         "            y[j] = scalar_t(scaled(x[j], rstd, w[j]))\n"))),
    "a-larger-block-for-copies": ("permute_rows", (
        ("(min(-(-num_dst // 4), 5), 1, 1), (128, 1, 1)", "(min(-(-num_dst // 8), 5), 1, 1), (256, 1, 1)"),)),
    "one-block-does-all": ("permute_rows", (("(min(-(-num_dst // 4), 5), 1, 1)", "(min(num_dst, 1), 1, 1)"),)),
    "rows-by-a-range": ("permute_rows", (
        ("    row = bidx * (bdimx >> 5) + (tidx >> 5)\n    while row < num_dst:\n",
         "    for row in range(bidx * (bdimx >> 5) + (tidx >> 5), num_dst, warps_per_grid):\n"),
        ("        row = row + warps_per_grid\n", ""))),
    "zeros-first": ("embedding", (
        ("        if (id >= vocab_start)",
         "        for i in cutlass.range_constexpr(VEC):\n            value[i] = scalar_t(0.0)\n"
         "        if (id >= vocab_start)"),
        ("        else:\n            for i in cutlass.range_constexpr(VEC):\n"
         "                value[i] = scalar_t(0.0)\n", ""))),
    "a-row-that-is-always-there": ("embedding", (
        ("        if (id >= vocab_start) & (id < vocab_end):\n"
         "            lib.copy(value, weight + (id - vocab_start) * Int64(hidden_size) + col, VEC, readonly=True)\n"
         "        else:\n            for i in cutlass.range_constexpr(VEC):\n"
         "                value[i] = scalar_t(0.0)\n",
         "        inside = (id >= vocab_start) & (id < vocab_end)\n"
         "        row = id - vocab_start if inside else Int64(0)\n"
         "        lib.copy(value, weight + row * Int64(hidden_size) + col, VEC, readonly=True)\n"
         "        if not inside:\n            for i in cutlass.range_constexpr(VEC):\n"
         "                value[i] = scalar_t(0.0)\n"),)),
    "tensors": ("warp_log_softmax", (
        ("        y = out + Int64(Uint64(Int64(row)) * Uint64(Int64(cols)))\n",
         "        y = cute.make_tensor(out + Int64(row) * Int64(cols), cute.make_layout(cols))\n"),)),
    "a-narrower-block": ("embedding", (
        ("-(-(-(-hidden // VEC)) // 128), 1), (128, 1, 1)", "-(-(-(-hidden // VEC)) // 64), 1), (64, 1, 1)"),)),
    "columns-by-a-difference": ("gelu_tanh_and_mul", (
        ("Int32(lib.c_mod(i, Int64(vecs_per_row))) * VEC", "Int32(i - token * Int64(vecs_per_row)) * VEC"),)),
    "more-blocks": ("gelu_tanh_and_mul", (("// 256), 8), 1, 1), (256, 1, 1)", "// 128), 32), 1, 1), (128, 1, 1)"),)),
    "a-polynomial-in-another-form": ("gelu_tanh_and_mul", (
        ("    return 0.5 * x * (1.0 + cute.math.tanh(inner))\n",
         "    half = 0.5 * x\n    one_more = 1.0 + cute.math.tanh(inner)\n    return half * one_more\n"),)),
    "a-maximum-by-fmax": ("dynamic_int8_quant", (
        ("absmax = a if a > absmax else absmax", "absmax = lib.fmax(absmax, a)"),)),
    "a-butterfly": ("dynamic_int8_quant", (
        ("    for delta in (16, 8, 4, 2, 1):\n        absmax = lib.fmax(absmax, lib.shfl_down(",
         "    for delta in (1, 2, 4, 8, 16):\n        absmax = lib.fmax(absmax, lib.shfl_xor("),)),
    "two-values-at-a-time": ("per_token_fp8_quant", (
        ("        for j in cutlass.range_constexpr(VEC):\n"
         "            absmax = lib.fmax(absmax, cute.math.abs(Float32(v[j])))\n",
         "        for j in cutlass.range_constexpr(VEC):\n            a = cute.math.abs(Float32(v[VEC - 1 - j]))\n"
         "            absmax = lib.fmax(a, absmax)\n"),)),
    "a-block-of-half": ("silu_and_mul", (("(min(d // VEC, 1024), 1, 1)", "(min(d // VEC, 512), 1, 1)"),)),
}  # fmt: skip


def written(text: str, name: str) -> str:
    """The true port of the kernel with what `name` writes otherwise."""
    for old, new in RIGHT[name][1]:
        assert old in text, (name, old)
        text = text.replace(old, new, 1)
    return text
