"""What the emulator sweep must be told of some kernels: structs of pointers, instances, text that a build generates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from porter.verify import emulator as ptx

Instances = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Given:
    """One launch of a kernel; without `instances` they are guessed. `smem` is in bytes."""

    arguments: Callable[[], list[object]]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    smem: int = 0
    instances: Instances = ()


def _two(low: int, high: int) -> int:
    """Two 32-bit members side by side."""
    return low | high << 32


def _filled(name: str, value: object, dtype: str, count: int = 1 << 18) -> ptx.Buffer:
    return ptx.Buffer(np.full(count, value, dtype), name)


HALF_BF16 = 0x3F00  # 0.5


def _scores(lengths: list[int]) -> tuple[ptx.Buffer, ptx.Buffer, ptx.Buffer, int]:
    """Input, output and lengths of a selection in ragged rows, and the rows' stride in elements."""
    stride = -(-max(lengths) // 32) * 32
    scores = np.random.default_rng(7).standard_normal((len(lengths), stride)).astype(np.float32)
    out = np.zeros((len(lengths), 2048), np.int32)
    return (
        ptx.Buffer(scores, "input"),
        ptx.Buffer(out, "output"),
        ptx.Buffer(np.array(lengths, np.int32), "lengths"),
        stride,
    )


def _cooperative_topk() -> list[object]:
    """Rows of each path: padding only, one block's histogram, the whole cluster."""
    scores, out, lengths, stride = _scores([100, 9000, 60000])
    return [(scores, out, lengths, _filled("tie_ws", 0, "u4"), _two(3, stride))]


def _persistent_topk() -> list[object]:
    """Rows of each path: padding, short, medium, two blocks together."""
    scores, out, lengths, stride = _scores([100, 5000, 20000, 40000])
    return [(scores, out, lengths, _filled("row_states", 0, "u4"), _two(4, stride), _two(2048, 20000), _two(2, 40000))]


def _filtered_topk() -> list[object]:
    scores, out, lengths, stride = _scores([100, 5000, 40000])
    return [scores, out, lengths, 3, 2048, stride]


def _sampled_topk() -> list[object]:
    scores, out, lengths, stride = _scores([100, 5000, 70000])
    return [scores, lengths, out, stride, 70000]


def _grouped_topk() -> list[object]:
    """Three tokens, 256 experts in eight groups, of which four are taken; eight experts a token."""
    words = np.random.default_rng(7).integers(0x3000, 0x3C00, 3 * 256).astype(np.uint16)  # small as f16 and as bf16
    scores, bias = ptx.Buffer(words, "scores"), ptx.Buffer(words[::-1].copy(), "bias")
    return [scores, _filled("values", 0, "f4"), _filled("indices", 0, "i4"), bias, 3, 256, 8, 4, 8, 1, 1.0]


def _fused_layernorm() -> list[object]:
    """Two rows of one batch, epsilon 1e-6."""
    bf16 = {n: _filled(n, HALF_BF16, "u2") for n in ("output", "input", "residual", "gate", "scale", "shift")}
    f32 = {n: _filled(n, 0.5, "f4") for n in ("gamma", "beta", "gate_bias", "scale_bias", "shift_bias", "sf", "in_sf")}
    epsilon = int(np.float32(1e-6).view(np.uint32))
    return [(
        _filled("normed_output", 0, "u4"), bf16["output"], bf16["input"], bf16["residual"], _two(1, 2), epsilon,
        f32["gamma"], f32["beta"], bf16["gate"], f32["gate_bias"], bf16["scale"], f32["scale_bias"], bf16["shift"],
        f32["shift_bias"], f32["sf"], f32["in_sf"], _filled("sf_out", 0, "u4"), 3072,
    )]  # fmt: skip


def _rope_append() -> list[object]:
    """Four tokens of two sequences, two query heads, one key head, pages of eight tokens, 64 rotated of 128."""
    page = (_two(8, 0), _two(0, 3), _two(8, 1), _two(128, 2), _two(8 * 128, 128), _two(128, 8 * 128), _two(128, 128))
    cache = (_filled("k_data", 0, "u1"), _filled("v_data", 0, "u1"), ptx.Buffer(np.array([1, 0], np.int64), "indices"),
             ptx.Buffer(np.array([0, 1, 2], np.int64), "indptr"), _filled("last_page_len", 2, "i8", 2), 0)  # fmt: skip
    ones = int(np.float32(1).view(np.uint32))
    strides = (128, 64) * 4 + (64, 64) * 2 + (128, 128)
    return [
        *(_filled(n, HALF_BF16, "u2") for n in ("q_rope_in", "k_rope_in", "q_nope_in", "k_nope_in", "v_in")),
        _filled("q_rope_out", 0, "u1"),
        _filled("q_nope_out", 0, "u1"),
        (*page, *cache),
        ptx.Buffer(np.array([0, 0, 1, 1], np.int64), "batch_indices"),
        ptx.Buffer(np.array([0, 1, 0, 1], np.int64), "positions"),
        _filled("cos_sin_cache", 0.5, "f4"),
        ptx.Buffer(np.array([0, 1, 0, 1], np.int64), "pos_ids"),
        (_two(4, 2), _two(1, 64), 64, *strides, _two(ones, ones)),
    ]


def _rms_silu() -> list[object]:
    """Three rows of 1024 columns, one batch, epsilon 1e-6."""
    x, z, gamma = (_filled(n, HALF_BF16, "u2") for n in ("x", "z", "gamma"))
    flags = 1 | 1 << 16 | 1 << 32  # isRMSNorm, noBias, isBatchFirst, of five bytes
    epsilon = int(np.float32(1e-6).view(np.uint32))
    base = (_two(3, 3), _two(1024, 1), 3, x, 0, _filled("rs", 0, "f4"), gamma, 0, 0, flags)
    return [(*base, z, 0, epsilon, 0, 0, 0, 0, 0, 0, 0), np.array([1 << 31, 0, 2], np.uint32).tobytes()]


_TRUE_FALSE = ("true", "false")
_CACHE = "flashinfer::paged_kv_t<__nv_fp8_e4m3, long>"
GIVEN: dict[str, Given] = {
    **{
        f"cooperative_topk_cs{n}": Given(
            _cooperative_topk, (3, n, 1), (1024, 1, 1), 227 << 10, (("512",), ("2048",))
        )
        for n in (2, 4, 8, 16)
    },
    "persistent_topk_kernel": Given(_persistent_topk, (4, 1, 1), (1024, 1, 1), 96 << 10, (("2048", "1"), ("512", "4"))),
    "FilteredTopKUnifiedKernel": Given(
        _filtered_topk, (3, 1, 1), (1024, 1, 1), 128 << 10, (("float", "int", "4"), ("float", "int", "1"))
    ),
    "sampled_topk_kernel": Given(_sampled_topk, (3, 1, 1), (1024, 1, 1), 128 << 10, (("512",), ("2048",))),
    "grouped_topk_fused_kernel": Given(_grouped_topk, (3, 1, 1), (256, 1, 1), 16 << 10),
    "meta_fused_layernorm": Given(_fused_layernorm, (2, 1, 1), (384, 1, 1)),
    "ln_fwd_kernel": Given(_rms_silu, (3, 1, 1), (128, 1, 1), 16 << 10),
    "RopeQuantizeAppendPagedKVCacheKernel": Given(
        _rope_append, (1, 7, 1), (4, 32, 1), 0,
        tuple((turn, "16", "4", "__nv_bfloat16", "long", "long", "__nv_fp8_e4m3", _CACHE) for turn in _TRUE_FALSE),
    ),
}  # fmt: skip
# The file launches more than these kernels take: its float instances only fill the padding.
INSTANCES: dict[str, Instances] = {
    "situ_and_mul_quant_group_pipelined_kernel": tuple(
        (dtype, "c10::Float8_e4m3fn", "256", "4", "128", "1056", "3072") for dtype in ("c10::BFloat16", "c10::Half")
    ),
}
# Text replaced in files before they are parsed.
_LN_CONFIG = """
#include <flashinfer/norm/ln_silu_headers.cuh>
using Ktraits = Kernel_traits<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, __nv_bfloat16, uint32_t, 1024, 1, 1,
                              1, 4, 16, true, false, true, true, false, false>;
constexpr int DESIRED_OCCUPANCY = 1;
constexpr bool isFP8Out = false, isFP4Out = false, isBlockScaleOut = false, isBlockScale_1D2X2X = false,
               isBlockScale_1D2X2X_Transpose = false, useBlockScaleColwiseKernel = false, isZeroCenteredGamma = false,
               isZeroCenteredGammaCastBeforeAdd = false, hasAmax = false, hasScaleInv = false,
               GAMMA_ON_DEMAND = false;
"""
EDITS: dict[str, tuple[tuple[str, str], ...]] = {
    # NVRTC refuses what nvcc takes as gcc does: an operator of which one conversion is worse than the built-in's.
    "flashinfer/include/flashinfer/norm/fused_qk_rmsnorm_rope.cuh": (
        ("tokenIdx % seq_len", "static_cast<int>(tokenIdx) % seq_len"),
    ),
    # Its build writes a file of these.
    "flashinfer/include/flashinfer/norm/ln_fwd_silu_kernel.cuh": (("#pragma once\n", _LN_CONFIG),),
}
