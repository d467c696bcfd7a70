"""Sizes at which the reference kernels are timed, as a decode step and a prefill have them; launches are the case's."""

from __future__ import annotations

_HIDDEN = [{"tokens": t, "hidden": 4096} for t in (1, 32, 512, 4096)]
_GATED = [{"tokens": t, "d": 8192} for t in (1, 32, 512, 2048)]
_EXPERTS = [{"tokens": t, "num_experts": 64, "topk": 8} for t in (1, 64, 4096)]
SHAPES: dict[str, list[dict[str, int]]] = {
    "rms_norm": _HIDDEN,
    "fused_add_rms_norm": _HIDDEN,
    "layer_norm": _HIDDEN,
    "rms_norm_dynamic_fp8_quant": _HIDDEN,
    "rms_norm_static_fp8_quant": _HIDDEN,
    "qk_norm": [{"tokens": t, "num_q_heads": 32, "num_k_heads": 8, "head_dim": 128} for t in (1, 32, 512, 4096)],
    "silu_and_mul": _GATED,
    "gelu_tanh_and_mul": _GATED,
    "swigluoai_and_mul": _GATED,
    "embedding": [{"tokens": t, "hidden": 4096, "vocab": 2048} for t in (1, 32, 4096)],
    "rotary_embedding": [
        {"tokens": t, "num_heads": 32, "num_kv_heads": 8, "head_size": 128, "rot_dim": 128, "max_position": 8192}
        for t in (1, 32, 4096)
    ],
    "per_token_fp8_quant": _HIDDEN,
    "per_token_group_fp8_quant": _HIDDEN,
    "dynamic_int8_quant": _HIDDEN,
    "static_int8_quant": [{"numel": n} for n in (4096, 1 << 17, 1 << 22)],
    "per_tensor_fp8_quant": [{"numel": n, "max_blocks": 132} for n in (4096, 1 << 17, 1 << 24)],
    "softmax": [{"rows": r, "cols": c} for r, c in ((1, 32768), (32, 32768), (4096, 4096))],
    "warp_log_softmax": [{"rows": r, "cols": 64} for r in (1, 64, 65536)],
    "topk_softmax": _EXPERTS,
    "topk_softmax_general": [{"tokens": t, "num_experts": 160, "topk": 6} for t in (1, 64, 4096)],
    "moe_align_block_size": [
        {"tokens": t, "topk": 8, "num_experts": 64, "block_size": 64} for t in (1, 64, 2048)
    ],
    "moe_dispatch": [
        {"num_tokens": t, "topk": 8, "num_experts": 64, "hidden": 4096, "max_blocks": 132} for t in (1, 64, 2048)
    ],
    "moe_sum": [{"tokens": t, "topk": 2, "hidden": 4096} for t in (1, 32, 4096)],
    "moe_unpermute": [{"tokens": t, "topk": 8, "hidden": 4096} for t in (1, 32, 1024)],
    "permute_rows": [{"num_dst": n, "num_src": n, "hidden": 4096} for n in (8, 256, 4096)],
}  # fmt: skip

#: for kernels of other folders that take rows and cols (tests/emit/trees)
ROWS = [{"rows": r, "cols": c} for r, c in ((1, 256), (1, 4096), (132, 1024), (4096, 4096))]
