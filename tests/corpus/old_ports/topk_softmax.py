# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the porter authors
"""topk_softmax_kernel, ported from topk_softmax.cu by porter 0.1.0.

Template arguments:
    scalar_t='BFloat16', VEC=8, EXPERTS=64
    scalar_t='Float16', VEC=8, EXPERTS=8
    scalar_t='Float32', VEC=4, EXPERTS=256
"""

import cutlass
import cutlass.cute as cute
from cutlass import Boolean, Float32, Int32, Int64

from porter.corpus import lib, runtime


@cute.kernel
def topk_softmax_kernel(
    gating_output: cute.Pointer,  # scalar_t* (tokens, num_experts)
    topk_weights: cute.Pointer,  # Float32* (tokens, topk)
    topk_indices: cute.Pointer,  # Int32* (tokens, topk)
    token_expert_indices: cute.Pointer,  # Int32* (tokens, topk)
    bias: cute.Pointer,  # Float32* (num_experts)
    num_tokens: Int32,
    topk: Int32,
    renormalize: Boolean,
    scalar_t: cutlass.Constexpr,
    VEC: cutlass.Constexpr,
    EXPERTS: cutlass.Constexpr,
):
    tidx = cute.arch.thread_idx()[0]
    bidx = cute.arch.block_idx()[0]
    bdimx = lib.block_dim()[0]
    VALUES = 8
    LANES = EXPERTS // 8
    thread = bidx * bdimx + tidx
    row = lib.c_div(thread, LANES)
    lane = tidx % LANES
    active = row < num_tokens
    load_row = Int64(row if active else num_tokens - 1)
    # Value i of this lane belongs to expert (i / VEC) * LANES * VEC + lane * VEC + i % VEC.
    prob = lib.local(Float32, 8)
    logits = gating_output + load_row * EXPERTS + lane * VEC
    for load in cutlass.range_constexpr(8 // VEC):
        v = lib.local(scalar_t, VEC)
        lib.copy(v, logits + load * LANES * VEC, VEC, readonly=True)
        for i in cutlass.range_constexpr(VEC):
            prob[load * VEC + i] = Float32(v[i])
    largest = prob[0]
    for i in cutlass.range_constexpr(1, 8):
        largest = lib.fmax(largest, prob[i])
    for offset in lib.halving(LANES // 2):
        largest = lib.fmax(largest, lib.shfl_xor(largest, offset, 0xffffffff, LANES))
    sum = Float32(0.0)
    for i in cutlass.range_constexpr(8):
        prob[i] = cute.math.exp(prob[i] - largest)
        sum = sum + prob[i]
    for offset in lib.halving(LANES // 2):
        sum = sum + lib.shfl_xor(sum, offset, 0xffffffff, LANES)
    inv_sum = 1.0 / sum
    choice = lib.local(Float32, 8)
    for i in cutlass.range_constexpr(8):
        prob[i] = prob[i] * inv_sum
        if Boolean(True) if lib.isnan(prob[i]) else lib.isinf(prob[i]):
            prob[i] = 0.0
        choice[i] = prob[i]
    if bias.toint() != 0:
        for i in cutlass.range_constexpr(8):
            choice[i] = choice[i] + lib.ldg(bias + i // VEC * LANES * VEC + lane * VEC + i % VEC)
    selected_sum = Float32(0.0)
    for k in range(topk):
        best = choice[0]
        weight = prob[0]
        expert = lane * VEC
        for i in cutlass.range_constexpr(1, 8):
            if choice[i] > best:
                best = choice[i]
                weight = prob[i]
                expert = i // VEC * LANES * VEC + lane * VEC + i % VEC
        for offset in lib.halving(LANES // 2):
            other = lib.shfl_xor(best, offset, 0xffffffff, LANES)
            other_weight = lib.shfl_xor(weight, offset, 0xffffffff, LANES)
            other_expert = lib.shfl_xor(expert, offset, 0xffffffff, LANES)
            if (other > best) | ((other == best) & (other_expert < expert)):
                best = other
                weight = other_weight
                expert = other_expert
        selected_sum = selected_sum + weight
        if active & (lane == 0):
            slot = Int64(row) * Int64(topk) + Int64(k)
            topk_weights[slot] = weight
            topk_indices[slot] = expert
            token_expert_indices[slot] = k * num_tokens + row
        for i in cutlass.range_constexpr(8):
            if expert == i // VEC * LANES * VEC + lane * VEC + i % VEC:
                choice[i] = Float32(-float("inf"))
    if (renormalize & active) & (lane == 0):
        inv = 1.0 / selected_sum if selected_sum > 0.0 else Float32(1.0)
        for k in range(topk):
            topk_weights[Int64(row) * Int64(topk) + Int64(k)] = topk_weights[Int64(row) * Int64(topk) + Int64(k)] * inv


@cute.jit
def _launch_topk_softmax_kernel(
    gating_output: cute.Pointer,
    topk_weights: cute.Pointer,
    topk_indices: cute.Pointer,
    token_expert_indices: cute.Pointer,
    bias: cute.Pointer,
    num_tokens: Int32,
    topk: Int32,
    renormalize: Boolean,
    grid_x: Int32,
    grid_y: Int32,
    grid_z: Int32,
    block_x: Int32,
    block_y: Int32,
    block_z: Int32,
    smem_bytes: Int32,
    scalar_t: cutlass.Constexpr,
    VEC: cutlass.Constexpr,
    EXPERTS: cutlass.Constexpr,
    stream,
):
    topk_softmax_kernel(
        gating_output,
        topk_weights,
        topk_indices,
        token_expert_indices,
        bias,
        num_tokens,
        topk,
        renormalize,
        scalar_t,
        VEC,
        EXPERTS,
    ).launch(
        grid=(grid_x, grid_y, grid_z),
        block=(block_x, block_y, block_z),
        stream=stream,
    )


KERNEL = runtime.Kernel(
    launch=_launch_topk_softmax_kernel,
    name="topk_softmax_kernel",
    params=(
        runtime.Ptr("gating_output", "scalar_t"),
        runtime.Ptr("topk_weights", "f32"),
        runtime.Ptr("topk_indices", "i32"),
        runtime.Ptr("token_expert_indices", "i32"),
        runtime.Ptr("bias", "f32"),
        runtime.Num("num_tokens", "i32"),
        runtime.Num("topk", "i32"),
        runtime.Num("renormalize", "bool"),
    ),
    constexprs=("scalar_t", "VEC", "EXPERTS"),
)


def launch_config(*, EXPERTS, VEC, tokens, **_):
    """(grid, block, dynamic shared memory in bytes) of a launch."""
    return (-(-tokens // (128 // (EXPERTS // max(EXPERTS // 32, VEC)))), 1, 1), (128, 1, 1), 0


def topk_softmax(gating_output, topk_weights, topk_indices, token_expert_indices, bias, renormalize):
    """topk_softmax_kernel on torch tensors, on the current stream.

    gating_output: in, scalar_t (tokens, num_experts)
    topk_weights: out, f32 (tokens, topk)
    topk_indices: out, i32 (tokens, topk)
    token_expert_indices: out, i32 (tokens, topk)
    bias: in, f32 (num_experts), may be None
    renormalize: number

    Raises ValueError for a dtype, shape, stride or device that the kernel does not take.
    """
    scalar_t = runtime.name_of(gating_output.dtype)
    tokens = gating_output.shape[0]
    num_experts = gating_output.shape[1]
    topk = topk_weights.shape[1]
    num_tokens = tokens
    runtime.check("gating_output", gating_output, scalar_t, (tokens, num_experts))
    runtime.check("topk_weights", topk_weights, "f32", (tokens, topk), device=gating_output.device)
    runtime.check("topk_indices", topk_indices, "i32", (tokens, topk), device=gating_output.device)
    runtime.check("token_expert_indices", token_expert_indices, "i32", (tokens, topk), device=gating_output.device)
    runtime.check("bias", bias, "f32", (num_experts,), device=gating_output.device, optional=True)
    if scalar_t == "bf16" and num_experts == 64 and runtime.aligned(gating_output, 16):
        constexprs = {"scalar_t": "bf16", "VEC": 8, "EXPERTS": 64}
    elif scalar_t == "f16" and num_experts == 8 and runtime.aligned(gating_output, 16):
        constexprs = {"scalar_t": "f16", "VEC": 8, "EXPERTS": 8}
    elif scalar_t == "f32" and num_experts == 256 and runtime.aligned(gating_output, 16):
        constexprs = {"scalar_t": "f32", "VEC": 4, "EXPERTS": 256}
    else:
        raise ValueError(f"topk_softmax_kernel: no instance of the port for scalar_t={scalar_t}, tokens={tokens}, num_experts={num_experts}, topk={topk}")
    grid, block, smem_bytes = launch_config(tokens=tokens, **constexprs)
    args = (gating_output, topk_weights, topk_indices, token_expert_indices, bias, num_tokens, topk, renormalize,)
    KERNEL.launch(constexprs, args, grid=grid, block=block, smem_bytes=smem_bytes)
