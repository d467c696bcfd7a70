# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the porter authors
"""per_token_fp8_quant_kernel, ported from per_token_fp8_quant.cu by porter 0.1.0.

Template arguments:
    scalar_t='BFloat16', VEC=8
    scalar_t='Float16', VEC=8
    scalar_t='BFloat16', VEC=1
"""

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Float8E4M3FN, Int32, Int64, Uint32

from porter.corpus import lib, runtime


@cute.jit
def block_reduce_max(value: Float32, warp_max: cute.Pointer):
    tidx = cute.arch.thread_idx()[0]
    bdimx = lib.block_dim()[0]
    for mask in (16, 8, 4, 2, 1):
        value = lib.fmax(value, lib.shfl_xor(value, mask, 0xffffffff, 32))
    if tidx & 31 == 0:
        warp_max[(tidx >> 5)] = value
    cute.arch.sync_threads()
    value = warp_max[0]
    for warp in range(1, bdimx >> 5):
        value = lib.fmax(value, warp_max[warp])
    return value


@cute.jit
def quantize(value: Float32, scale: Float32):
    q = value / scale
    return Float8E4M3FN(lib.fmax(Float32(-448.0), lib.fmin(q, Float32(448.0))))


@cute.kernel
def per_token_fp8_quant_kernel(
    out: cute.Pointer,  # Float8E4M3FN* (tokens, hidden)
    scales: cute.Pointer,  # Float32* (tokens, 1)
    input: cute.Pointer,  # scalar_t* (tokens, hidden)
    input_stride: Int64,
    hidden_size: Int32,
    scalar_t: cutlass.Constexpr,
    VEC: cutlass.Constexpr,
):
    tidx = cute.arch.thread_idx()[0]
    bidx = cute.arch.block_idx()[0]
    bdimx = lib.block_dim()[0]
    warp_max = lib.shared(Float32, 32)
    token = Int64(Uint32(bidx))
    x = input + token * input_stride
    q = out + token * Int64(hidden_size)
    vecs = lib.c_div(hidden_size, VEC)
    absmax = Float32(0.0)
    for i in range(tidx, vecs, bdimx):
        v = lib.local(scalar_t, VEC)
        lib.copy(v, x + Int64(i) * VEC, VEC, readonly=True)
        for j in cutlass.range_constexpr(VEC):
            absmax = lib.fmax(absmax, cute.math.abs(Float32(v[j])))
    absmax = block_reduce_max(absmax, warp_max)
    scale = lib.fmax(absmax / 448.0, Float32(4.359654e-06))
    if tidx == 0:
        scales[token] = scale
    for i in range(tidx, vecs, bdimx):
        v = lib.local(scalar_t, VEC)
        lib.copy(v, x + Int64(i) * VEC, VEC, readonly=True)
        r = lib.local(Float8E4M3FN, VEC)
        for j in cutlass.range_constexpr(VEC):
            r[j] = quantize(Float32(v[j]), scale)
        lib.copy(q + Int64(i) * VEC, r, VEC)


@cute.jit
def _launch_per_token_fp8_quant_kernel(
    out: cute.Pointer,
    scales: cute.Pointer,
    input: cute.Pointer,
    input_stride: Int64,
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
    per_token_fp8_quant_kernel(out, scales, input, input_stride, hidden_size, scalar_t, VEC).launch(
        grid=(grid_x, grid_y, grid_z),
        block=(block_x, block_y, block_z),
        stream=stream,
    )


KERNEL = runtime.Kernel(
    launch=_launch_per_token_fp8_quant_kernel,
    name="per_token_fp8_quant_kernel",
    params=(
        runtime.Ptr("out", "e4m3"),
        runtime.Ptr("scales", "f32"),
        runtime.Ptr("input", "scalar_t"),
        runtime.Num("input_stride", "i64"),
        runtime.Num("hidden_size", "i32"),
    ),
    constexprs=("scalar_t", "VEC"),
)


def launch_config(*, VEC, hidden, tokens, **_):
    """(grid, block, dynamic shared memory in bytes) of a launch."""
    return (tokens, 1, 1), (min(-(-(-(-hidden // VEC)) // 32) * 32, 256), 1, 1), 0


def per_token_fp8_quant(out, scales, input):
    """per_token_fp8_quant_kernel on torch tensors, on the current stream.

    out: out, e4m3 (tokens, hidden)
    scales: out, f32 (tokens, 1)
    input: in, scalar_t (tokens, hidden)

    Raises ValueError for a dtype, shape, stride or device that the kernel does not take.
    """
    scalar_t = runtime.name_of(input.dtype)
    tokens = out.shape[0]
    hidden = out.shape[1]
    input_stride = input.stride(0)
    hidden_size = hidden
    runtime.check("out", out, "e4m3", (tokens, hidden))
    runtime.check("scales", scales, "f32", (tokens, 1), device=out.device)
    runtime.check("input", input, scalar_t, (tokens, hidden), strides=(input_stride, 1), device=out.device)
    if scalar_t == "bf16" and hidden % 8 == 0 and input_stride % 8 == 0 and runtime.aligned(input, 16) and runtime.aligned(out, 8):
        constexprs = {"scalar_t": "bf16", "VEC": 8}
    elif scalar_t == "f16" and hidden % 8 == 0 and input_stride % 8 == 0 and runtime.aligned(input, 16) and runtime.aligned(out, 8):
        constexprs = {"scalar_t": "f16", "VEC": 8}
    elif scalar_t == "bf16":
        constexprs = {"scalar_t": "bf16", "VEC": 1}
    else:
        raise ValueError(f"per_token_fp8_quant_kernel: no instance of the port for scalar_t={scalar_t}, tokens={tokens}, hidden={hidden}")
    grid, block, smem_bytes = launch_config(tokens=tokens, hidden=hidden, **constexprs)
    args = (out, scales, input, input_stride, hidden_size,)
    KERNEL.launch(constexprs, args, grid=grid, block=block, smem_bytes=smem_bytes)
