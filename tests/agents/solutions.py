"""A right answer for tasks of `porter eval`, as a good model would give it: code by region."""

from __future__ import annotations

_PACKED = "x = Uint32(a[i])\ny = Uint32(b[i])\n"
_INDEX = """\
tidx = cute.arch.thread_idx()[0]
bidx = cute.arch.block_idx()[0]
bdimx = lib.block_dim()[0]
"""

SOLUTIONS: dict[str, dict[str, str]] = {
    "packed_add_u8": {
        "hole-1": _PACKED
        + "out[i] = ((x & Uint32(0x7F7F7F7F)) + (y & Uint32(0x7F7F7F7F))) ^ ((x ^ y) & Uint32(0x80808080))"
    },
    "packed_average_u8": {"hole-1": _PACKED + "out[i] = (x | y) - (((x ^ y) >> Uint32(1)) & Uint32(0x7F7F7F7F))"},
    "packed_sub_u16": {
        "hole-1": _PACKED
        + """\
low = (x - y) & Uint32(0xFFFF)
high = ((x >> Uint32(16)) - (y >> Uint32(16))) << Uint32(16)
out[i] = high | low"""
    },
    "packed_greater_u8": {
        "hole-1": _PACKED
        + """\
mask = Uint32(0)
for k in cutlass.range_constexpr(4):
    p = (x >> Uint32(8 * k)) & Uint32(255)
    q = (y >> Uint32(8 * k)) & Uint32(255)
    mask = mask | (Uint32(255 << (8 * k)) if p > q else Uint32(0))
out[i] = mask"""
    },
    "packed_max_s16": {
        "hole-1": """\
x = Int32(a[i])
y = Int32(b[i])
xl = (x << 16) >> 16
yl = (y << 16) >> 16
xh = x >> 16
yh = y >> 16
low = xl if xl > yl else yl
high = xh if xh > yh else yh
out[i] = Uint32((high << 16) | (low & 0xFFFF))"""
    },
    "goto_loop": {"hole-1": "while x > 100:\n    x = x // 2\n    steps = steps + 1"},
    "goto_out": {
        "body:goto_out": _INDEX
        + """\
i = bidx * bdimx + tidx
if i < n:
    x = a[i]
    found = Int32(-1)
    for hi in cutlass.range_constexpr(3, 8):
        both = (x >> hi) & (x >> (hi - 3)) & 1
        if (both != 0) & (found < 0):
            found = Int32(hi * 8 + hi - 3)
    out[i] = found"""
    },
    "recursive_gcd": {
        "hole-1": """\
rest = Int32(0)
while b_2 != 0:
    rest = lib.c_mod(a_2, b_2)
    a_2 = b_2
    b_2 = rest
out[i] = a_2"""
    },
    "recursive_power": {
        "hole-1": "p = Float32(1.0)\nfor k in cutlass.range_constexpr(5):\n    p = p * a[i]\nout[i] = p"
    },
    "function_pointer": {"hole-1": "f = Int32(1)"},
    "reference_result": {
        "body:reference_result": _INDEX
        + """\
i = bidx * bdimx + tidx
if i < n:
    even = a[i]
    odd = Float32(2.0)
    if (i & 1) == 0:
        even = even + Float32(3.0)
    else:
        odd = odd + Float32(3.0)
    out[i] = even * odd"""
    },
    "case_inside_if": {
        "body:case_inside_if": _INDEX
        + """\
i = bidx * bdimx + tidx
if i < n:
    x = a[i]
    selector = x & 3
    r = Int32(300)
    if selector == 0:
        r = Int32(21) if x > 40 else Int32(1)
    if selector == 1:
        r = Int32(20)
    out[i] = r"""
    },
    "power_recomputed": {
        "body:power_recomputed": _INDEX
        + """\
one = base[bidx]
p = Float32(1.0)
for k in cutlass.range_constexpr(16):
    p = p * one
for c in range(tidx, cols, bdimx):
    at = Int64(Uint32(bidx) * Uint32(cols) + Uint32(c))
    out[at] = a[at] * p"""
    },
    "transpose_conflicts": {
        "body:transpose_conflicts": """\
tidx, tidy, _ = cute.arch.thread_idx()
bidx, bidy, _ = cute.arch.block_idx()
tile = lib.shared(Float32, 32 * 33)
c = bidx * 32 + tidx
r = bidy * 32 + tidy
for k in cutlass.range_constexpr(0, 32, 8):
    if (c < cols) & (r + k < rows):
        tile[(tidy + k) * 33 + tidx] = a[(r + k) * cols + c]
cute.arch.sync_threads()
oc = bidy * 32 + tidx
orow = bidx * 32 + tidy
for k in cutlass.range_constexpr(0, 32, 8):
    if (oc < rows) & (orow + k < cols):
        out[(orow + k) * rows + oc] = tile[tidx * 33 + tidy + k]"""
    },
    "needless_shared": {
        "body:needless_shared": _INDEX + "i = bidx * bdimx + tidx\nif i < n:\n    out[i] = lib.ldg(a + i) * s"
    },
    "bias_uncoalesced": {
        "body:bias_uncoalesced": _INDEX
        + """\
first = bidx * bdimx * 4 + tidx
for k in cutlass.range_constexpr(4):
    at = first + k * bdimx
    if at < n:
        out[at] = a[at] + bias[lib.c_mod(at, cols)]"""
    },
    "row_max_reread": {
        "body:row_max_reread": _INDEX
        + """\
row = a + Int64(Uint32(bidx) * Uint32(cols))
top = row[0]
if cols >= 64:
    best = lib.shared(Float32, 64)
    mine = row[tidx]
    for c in range(tidx, cols, bdimx):
        mine = row[c] if row[c] > mine else mine
    best[tidx] = mine
    cute.arch.sync_threads()
    for k in range(64):
        top = best[k] if best[k] > top else top
else:
    for c in range(1, cols):
        top = row[c] if row[c] > top else top
for c in range(tidx, cols, bdimx):
    out[Int64(Uint32(bidx) * Uint32(cols) + Uint32(c))] = row[c] - top"""
    },
    "row_sum_tree": {
        "body:row_sum_tree": """\
tidx = cute.arch.thread_idx()[0]
bidx = cute.arch.block_idx()[0]
part = lib.shared(Float32, 128)
sum = Float32(0.0)
for c in range(tidx, cols, 128):
    sum = sum + a[Int64(Uint32(bidx) * Uint32(cols) + Uint32(c))]
part[tidx] = sum
cute.arch.sync_threads()
if tidx < 64:
    part[tidx] = part[tidx] + part[tidx + 64]
cute.arch.sync_threads()
if tidx < 32:
    sum = part[tidx] + part[tidx + 32]
    for step in (16, 8, 4, 2, 1):
        sum = sum + cute.arch.shuffle_sync_down(sum, step)
    if tidx == 0:
        out[bidx] = sum"""
    },
}
