"""Random edits that no check refuses, and why each is no wrong port: one line an edit, by what was changed.

A rule holds for every edit that it fits; what hangs on a kernel is named with the edit. What fits nothing is open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Row = Mapping[str, Any]  # kernel, number, kind, line, before, after

#: edits of one kernel, by the line as it was and as it is
OWN: dict[tuple[str, str, str], str] = {
    ("fused_add_rms_norm", "0xffffffff, 32)", "0xffffffff, 64)"):
        "the lanes that a shuffle stays within are those of the warp for any multiple of 32",
    ("warp_log_softmax", "0xffffffff, 32)", "0xffffffff, -32)"):
        "the lanes that a shuffle stays within are those of the warp for any multiple of 32",
    ("gelu_tanh_and_mul", "stride = Int64(Uint32(gdimx)) * Int64(Uint32(bdimx))", "stride = Int64(Uint32(gdimx))"):
        "a smaller stride writes elements again, with the same value",
    ("static_int8_quant", "step = Int64(Uint32(gdimx)) * Int64(Uint32(bdimx))", "step = Int64(Uint32(bdimx))"):
        "a smaller stride writes elements again, with the same value",
    ("topk_softmax", "selected_sum > 0.0 else Float32(1.0)", "selected_sum > 0.0 else Float32(0.0)"):
        "the largest of the shares is positive unless it is NaN, and NaN stays NaN",
    ("topk_softmax_general", "selected_sum > 0.0 else Float32(1.0)", "selected_sum > 0.0 else Float32(-1.0)"):
        "the largest of the shares is positive unless it is NaN, and NaN stays NaN",
    ("moe_dispatch", "if slot < last else Int32(-1)", "if slot < last else Int32(-0)"):
        "only the last tile has such slots, and what they move is not read again",
    ("topk_softmax_general", "tid // 32 * 8", "tid // 31 * 8"):
        "only lane 0 stores: the quotients of 0, 32, 64, ... are the same in a block of at most 256 threads",
    ("qk_norm", "offset, half_warp, 16)", "offset, half_warp, 32)"):
        "masks of 8, 4, 2 and 1 stay within 16 lanes either way",
    ("rms_norm_dynamic_fp8_quant", "num_warps = bdimx + 31 >> 5", "num_warps = (bdimx + (31) - 1) >> 5"):
        "a block is whole warps",
    ("dynamic_int8_quant", "if tid < 32:", "if delta < 32:"):
        "every warp adds the partial sums then, and all get the same",
    ("rms_norm_static_fp8_quant", "lib.fmax(Float32(-448.0)", "lib.imax(Float32(-448.0)"):
        "the minimum inside has dropped NaN already, and of two other numbers the greater one is the same",
    ("swigluoai_and_mul", "up > limit", "(up >= limit)"): "equal values: either is the same number",
    ("qk_norm", "if token < Int64(num_tokens)", "if token < Uint32(num_tokens)"): "a count is not negative",
    ("moe_dispatch", 'runtime.Ptr("block_counts", "i32")', "runtime.Ptr(\"block_counts\", 'u32')"):
        "counts of slots are not negative, and have the same bits",
    ("qk_norm", "k_stride % 8 == 0", "k_stride % 16 == 0"):
        "raises at strides that the case does not list, and the kernel could take",
    ("per_tensor_fp8_quant", "lib.fmin(f, Float32(448.0))", "lib.imin(f, Float32(448.0))"):
        "it becomes comparisons that give 448 for NaN and above 448 as fmin does",
    ("moe_unpermute", "v = lib.local(scalar_t, VEC)", "v = lib.local(scalar_t, row)"):
        "a local whose indices are known is registers, whatever length it is given",
    ("per_token_group_fp8_quant", "mask = Uint32((1 << 16) - 1) << Uint32(first_lane)", "pass"):
        "the mask names all lanes, which shuffle together or have exited",
    ("per_token_group_fp8_quant", "if cutlass.const_expr(LANES < 32):", "if False:"):
        "the mask names all lanes, which shuffle together or have exited",
}  # fmt: skip

_TRUE = re.compile(r"\b(lane\w*|tidx?)( % 32| & 31)? == 0")


def _changed(row: Row) -> tuple[str, str]:
    """The parts of the line that differ, as they were and as they are."""
    a, b = row["before"], row["after"]
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    return a[start : len(a) - end], b[start : len(b) - end]


def _readonly(row: Row) -> bool:
    was, now = row["before"].replace("readonly=True", ""), re.sub("readonly=(True|False)", "", row["after"])
    return "readonly" in row["before"] and re.sub(r"[, ]", "", was) == re.sub(r"[, ]", "", now)


def _twice(row: Row) -> bool:
    first, found, second = row["after"].partition("; ")
    return bool(found) and first == second and not re.search(r"(\w+) = .*\b\1\b.*[+*-]", first)


def _writes_alone(row: Row) -> bool:
    return row["kind"] in ("branch", "operator") and bool(
        re.match(r"if ", row["before"]) and _TRUE.search(row["before"])
    )


def _narrow(row: Row) -> bool:
    """A conversion of an index or a size to another integer type, or left out."""
    if row["kind"] != "call":
        return False
    types = r"(cutlass\.)?(Int64|Int32|Uint32)"
    return re.sub(rf"{types}\(([^()]*)\)", r"\3", row["before"]) == re.sub(rf"{types}\(([^()]*)\)", r"\3", row["after"])


def _spans(row: Row) -> bool:
    """Another mask of a butterfly, whose masks still lead from each lane to every other."""
    found = re.search(r"for \w+ in \(([-\d, ]+)\):", row["after"])
    if not found or not re.search(r"for \w+ in \(16, 8, 4, 2, 1\):", row["before"]):
        return False
    reached = {0}
    for mask in (int(m) & 31 for m in found[1].split(",")):
        reached |= {lane ^ mask for lane in reached}
    return len(reached) == 32


#: name -> which edits, and why they are none to refuse
RULES: dict[str, tuple[Callable[[Row], bool], str]] = {
    "torch-facing": (
        lambda r: r["kind"].startswith("torch-facing"),
        "`entry` sees the same launch in every call, or an exception where the kernel has no instance",
    ),
    "launch": (
        lambda r: r["kind"] in ("launch arithmetic", "launch constant", "launch name"),
        "another grid or block, launched as the port says: threads stride over the rows, or find nothing to do",
    ),
    "attribute": (
        lambda r: r["kind"] in ("attribute", "launch call"),
        "a bound on registers, more shared memory or a cooperative launch: what is computed is the same",
    ),
    "description": (
        lambda r: (r["kind"] == "description" and r["before"].split(", ")[-1] == r["after"].split(", ")[-1])
        or r["before"].startswith("name="),
        "a name that only messages use",
    ),
    "readonly": (_readonly, "another path of the cache to the same values"),
    "twice": (_twice, "a statement that done twice does no more"),
    "one-writes": (_writes_alone, "other threads have the same value and write it too"),
    "narrow": (_narrow, "the number is not negative and, by its parameter's own type, below 2^31"),
    "butterfly": (_spans, "the masks still lead to every lane: the same terms in another order"),
    "dimension": (
        lambda r: bool(re.search(r"(block|grid)_dim\(\)\[0\]$", r["before"])) and r["kind"] in ("constant", "index"),
        "a stride of 1: elements are written several times, always with the same value",
    ),
    "maximum": (
        lambda r: "lib.shfl_xor" in r["before"] and "max" in r["before"].lower() and r["kind"] == "statement",
        "a maximum over lanes: once more changes nothing",
    ),
    "unrolled": (
        lambda r: r["before"].replace("cutlass.range_constexpr", "range") == r["after"],
        "the same loop, not unrolled",
    ),
    "strides": (
        lambda r: r["kind"] in ("name", "call") and bool(re.search(r"\brange\(|row = row \+", r["before"])),
        "a smaller stride: elements are written several times, always with the same value",
    ),
    "arguments": (
        lambda r: r["kind"] == "call" and re.match(r"\w+ = lib\.f(max|min)\(", r["before"]) is not None,
        "a maximum or minimum of the same two numbers",
    ),
    "last-barrier": (
        lambda r: (r["kernel"], r.get("line"), r["after"]) == ("moe_dispatch", 136, "pass"),
        "the last barrier of the loop: what is shared is written and read with one of the other two in between",
    ),
    "barrier": (
        lambda r: r["after"] == "cute.arch.sync_threads(); cute.arch.sync_threads()",
        "one barrier more than there has to be",
    ),
}  # fmt: skip


def explanation(row: Row) -> str:
    """Why an edit that passed is no wrong port; "" where that is open."""
    for (kernel, before, after), why in OWN.items():
        if row["kernel"] == kernel and before in row["before"] and after in row["after"]:
            return why
    return next((why for fits, why in RULES.values() if fits(row)), "")
