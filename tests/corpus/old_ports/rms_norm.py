# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the porter authors
"""rms_norm_kernel, ported from rms_norm.cu by porter 0.1.0.

Template arguments:
    scalar_t='BFloat16', VEC=8
    scalar_t='Float16', VEC=8
    scalar_t='BFloat16', VEC=1
    scalar_t='Float16', VEC=1
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32, Int64, Uint32

from porter.corpus import lib, runtime


# The sum over the block; only the first warp's result is complete.
@cute.jit
def block_reduce_sum(value: Float32, partial: cute.Pointer):
    tidx = cute.arch.thread_idx()[0]
    bdimx = lib.block_dim()[0]
    lane = tidx & 31
    warp = tidx >> 5
    value = warp_reduce_sum(value)
    if lane == 0:
        partial[warp] = value
    cute.arch.sync_threads()
    if warp == 0:
        value = partial[lane] if lane < bdimx >> 5 else Float32(0.0)
        value = warp_reduce_sum(value)
    return value


@cute.jit
def warp_reduce_sum(value: Float32):
    for offset in (16, 8, 4, 2, 1):
        value = value + lib.shfl_xor(value, offset, 0xffffffff, 32)
    return value


@cute.kernel
def rms_norm_kernel(
    out: cute.Pointer,  # scalar_t* (tokens, hidden)
    input: cute.Pointer,  # scalar_t* (tokens, hidden)
    input_stride: Int64,
    weight: cute.Pointer,  # scalar_t* (hidden)
    epsilon: Float32,
    hidden_size: Int32,
    scalar_t: cutlass.Constexpr,
    VEC: cutlass.Constexpr,
):
    tidx = cute.arch.thread_idx()[0]
    bidx = cute.arch.block_idx()[0]
    bdimx = lib.block_dim()[0]
    partial = lib.shared(Float32, 32)
    s_rstd = lib.shared(Float32, 1)
    row = Int64(Uint32(bidx))
    x_vec = input + row * input_stride
    w_vec = weight
    y_vec = out + row * Int64(hidden_size)
    num_vecs = lib.c_div(hidden_size, VEC)
    sum_sq = Float32(0.0)
    for i in range(tidx, num_vecs, bdimx):
        x = lib.local(scalar_t, VEC)
        lib.copy(x, x_vec + Int64(i) * VEC, VEC, readonly=True)
        for j in cutlass.range_constexpr(VEC):
            f = Float32(x[j])
            sum_sq = sum_sq + f * f
    sum_sq = block_reduce_sum(sum_sq, partial)
    if tidx == 0:
        s_rstd[0] = lib.rsqrt(sum_sq / Float32(hidden_size) + epsilon)
    cute.arch.sync_threads()
    rstd = s_rstd[0]
    for i in range(tidx, num_vecs, bdimx):
        x = lib.local(scalar_t, VEC)
        lib.copy(x, x_vec + Int64(i) * VEC, VEC, readonly=True)
        w = lib.local(scalar_t, VEC)
        lib.copy(w, w_vec + Int64(i) * VEC, VEC, readonly=True)
        y = lib.local(scalar_t, VEC)
        for j in cutlass.range_constexpr(VEC):
            f = Float32(x[j]) * rstd
            y[j] = scalar_t(f * Float32(w[j]))
        lib.copy(y_vec + Int64(i) * VEC, y, VEC)


@cute.jit
def _launch_rms_norm_kernel(
    out: cute.Pointer,
    input: cute.Pointer,
    input_stride: Int64,
    weight: cute.Pointer,
    epsilon: Float32,
    hidden_size: Int32,
    grid_x: Int32,
    grid_y: Int32,
    grid_z: Int32,
    block_x: Int32,
    block_y: Int32,
    block_z: Int32,
    smem_bytes: Int32,
    scalar_t: cutlass.Constexpr,
    VEC: cutlass.Constexpr,
    stream,
):
    rms_norm_kernel(out, input, input_stride, weight, epsilon, hidden_size, scalar_t, VEC).launch(
        grid=(grid_x, grid_y, grid_z),
        block=(block_x, block_y, block_z),
        stream=stream,
    )


KERNEL = runtime.Kernel(
    launch=_launch_rms_norm_kernel,
    name="rms_norm_kernel",
    params=(
        runtime.Ptr("out", "scalar_t"),
        runtime.Ptr("input", "scalar_t"),
        runtime.Num("input_stride", "i64"),
        runtime.Ptr("weight", "scalar_t"),
        runtime.Num("epsilon", "f32"),
        runtime.Num("hidden_size", "i32"),
    ),
    constexprs=("scalar_t", "VEC"),
)


def launch_config(*, VEC, hidden, tokens, **_):
    """(grid, block, dynamic shared memory in bytes) of a launch."""
    return (tokens, 1, 1), (min(-(-(-(-hidden // VEC)) // 32) * 32, 1024), 1, 1), 0


def rms_norm(out, input, weight, epsilon):
    """rms_norm_kernel on torch tensors, on the current stream.

    out: out, scalar_t (tokens, hidden)
    input: in, scalar_t (tokens, hidden)
    weight: in, scalar_t (hidden)
    epsilon: number

    Raises ValueError for a dtype, shape, stride or device that the kernel does not take.
    """
    scalar_t = runtime.name_of(out.dtype)
    tokens = out.shape[0]
    hidden = out.shape[1]
    input_stride = input.stride(0)
    hidden_size = hidden
    runtime.check("out", out, scalar_t, (tokens, hidden))
    runtime.check("input", input, scalar_t, (tokens, hidden), strides=(input_stride, 1), device=out.device)
    runtime.check("weight", weight, scalar_t, (hidden,), device=out.device)
    if scalar_t == "bf16" and hidden % 8 == 0 and input_stride % 8 == 0 and runtime.aligned(input, 16) and runtime.aligned(weight, 16) and runtime.aligned(out, 16):
        constexprs = {"scalar_t": "bf16", "VEC": 8}
    elif scalar_t == "f16" and hidden % 8 == 0 and input_stride % 8 == 0 and runtime.aligned(input, 16) and runtime.aligned(weight, 16) and runtime.aligned(out, 16):
        constexprs = {"scalar_t": "f16", "VEC": 8}
    elif scalar_t == "bf16":
        constexprs = {"scalar_t": "bf16", "VEC": 1}
    elif scalar_t == "f16":
        constexprs = {"scalar_t": "f16", "VEC": 1}
    else:
        raise ValueError(f"rms_norm_kernel: no instance of the port for scalar_t={scalar_t}, tokens={tokens}, hidden={hidden}")
    grid, block, smem_bytes = launch_config(tokens=tokens, hidden=hidden, **constexprs)
    args = (out, input, input_stride, weight, epsilon, hidden_size,)
    KERNEL.launch(constexprs, args, grid=grid, block=block, smem_bytes=smem_bytes)
