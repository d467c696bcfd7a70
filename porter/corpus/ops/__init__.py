"""The torch-facing functions of the corpus: arguments checked, a specialisation chosen, the kernel launched.

Importing this registers all of them as `torch.ops.porter.NAME`. Needs torch; CuTeDSL only when one is launched.
"""

from porter.corpus.ops.activation.functions import (
    fatrelu_and_mul,
    gelu_and_mul,
    gelu_fast,
    gelu_new,
    gelu_quick,
    gelu_tanh_and_mul,
    mul_and_silu,
    relu_squared,
    silu_and_mul,
    silu_and_mul_with_clamp,
    swigluoai_and_mul,
)
from porter.corpus.ops.activation.masked import (
    persistent_masked_m_silu_mul_quant,
)
from porter.corpus.ops.activation.quantised import (
    silu_and_mul_per_block_quant,
    silu_and_mul_quant,
)
from porter.corpus.ops.embedding.functions import (
    embedding,
)
from porter.corpus.ops.moe.align import (
    batched_moe_align_block_size,
    get_cutlass_moe_mm_data,
    moe_align_block_size,
)
from porter.corpus.ops.moe.dispatch import (
    moe_combine,
    moe_dispatch,
)
from porter.corpus.ops.moe.routing import (
    grouped_topk,
    llama4_topk,
    topk_sigmoid,
    topk_softmax,
    topk_softplus_sqrt,
)
from porter.corpus.ops.moe.rows import (
    moe_permute,
    moe_sum,
    moe_unpermute,
    shuffle_rows,
)
from porter.corpus.ops.norm.functions import (
    fused_add_rms_norm,
    layer_norm,
    rms_norm,
    rms_norm_gated,
    rms_norm_silu,
)
from porter.corpus.ops.norm.heads import (
    fused_qk_norm_rope,
    qk_norm,
    qk_norm_rope,
)
from porter.corpus.ops.norm.quantised import (
    fused_add_rms_norm_static_fp8_quant,
    rms_norm_dynamic_per_token_quant,
    rms_norm_per_block_quant,
    rms_norm_static_fp8_quant,
)
from porter.corpus.ops.quant.block_dequantised import (
    mxfp4_dequantize,
    mxfp8_dequantize,
    nvfp4_dequantize,
)
from porter.corpus.ops.quant.block_layouts import (
    block_scale_deinterleave,
    block_scale_interleave,
)
from porter.corpus.ops.quant.block_scaled import (
    mxfp4_quantize,
    mxfp8_quantize,
    scaled_fp4_quant,
)
from porter.corpus.ops.quant.gated_block_scaled import (
    gelu_tanh_and_mul_mxfp8_quant,
    gelu_tanh_and_mul_nvfp4_quant,
    silu_and_mul_mxfp4_quant,
    silu_and_mul_mxfp8_quant,
    silu_and_mul_nvfp4_quant,
)
from porter.corpus.ops.quant.norm_block_scaled import (
    rms_norm_mxfp8_quant,
    rms_norm_nvfp4_quant,
)
from porter.corpus.ops.quant.per_token import (
    dynamic_per_token_scaled_fp8_quant,
    dynamic_scaled_int8_quant,
    static_scaled_int8_quant,
)
from porter.corpus.ops.quant.per_token_group import (
    per_token_group_fp8_quant,
    per_token_group_fp8_quant_packed,
    per_token_group_quant_int8,
)
from porter.corpus.ops.quant.static_fp8 import (
    dynamic_scaled_fp8_quant,
    static_scaled_fp8_quant,
)
from porter.corpus.ops.rotary.functions import (
    rotary_embedding,
    rotary_embedding_fp8,
)
from porter.corpus.ops.rotary.quantised import (
    rope_quantize_fp8,
)
from porter.corpus.ops.softmax.functions import (
    softmax,
)
from porter.corpus.ops.softmax.topk import (
    topk,
)

__all__ = [
    "batched_moe_align_block_size",
    "block_scale_deinterleave",
    "block_scale_interleave",
    "dynamic_per_token_scaled_fp8_quant",
    "dynamic_scaled_fp8_quant",
    "dynamic_scaled_int8_quant",
    "embedding",
    "fatrelu_and_mul",
    "fused_add_rms_norm",
    "fused_add_rms_norm_static_fp8_quant",
    "fused_qk_norm_rope",
    "gelu_and_mul",
    "gelu_fast",
    "gelu_new",
    "gelu_quick",
    "gelu_tanh_and_mul",
    "gelu_tanh_and_mul_mxfp8_quant",
    "gelu_tanh_and_mul_nvfp4_quant",
    "get_cutlass_moe_mm_data",
    "grouped_topk",
    "layer_norm",
    "llama4_topk",
    "moe_align_block_size",
    "moe_combine",
    "moe_dispatch",
    "moe_permute",
    "moe_sum",
    "moe_unpermute",
    "mul_and_silu",
    "mxfp4_dequantize",
    "mxfp4_quantize",
    "mxfp8_dequantize",
    "mxfp8_quantize",
    "nvfp4_dequantize",
    "per_token_group_fp8_quant",
    "per_token_group_fp8_quant_packed",
    "per_token_group_quant_int8",
    "persistent_masked_m_silu_mul_quant",
    "qk_norm",
    "qk_norm_rope",
    "relu_squared",
    "rms_norm",
    "rms_norm_dynamic_per_token_quant",
    "rms_norm_gated",
    "rms_norm_mxfp8_quant",
    "rms_norm_nvfp4_quant",
    "rms_norm_per_block_quant",
    "rms_norm_silu",
    "rms_norm_static_fp8_quant",
    "rope_quantize_fp8",
    "rotary_embedding",
    "rotary_embedding_fp8",
    "scaled_fp4_quant",
    "shuffle_rows",
    "silu_and_mul",
    "silu_and_mul_mxfp4_quant",
    "silu_and_mul_mxfp8_quant",
    "silu_and_mul_nvfp4_quant",
    "silu_and_mul_per_block_quant",
    "silu_and_mul_quant",
    "silu_and_mul_with_clamp",
    "softmax",
    "static_scaled_fp8_quant",
    "static_scaled_int8_quant",
    "swigluoai_and_mul",
    "topk",
    "topk_sigmoid",
    "topk_softmax",
    "topk_softplus_sqrt",
]
