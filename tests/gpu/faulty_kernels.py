"""Kernels that do what the GPU backend has to survive or notice. Compiled in a worker, like a port."""

import cutlass.cute as cute
from cutlass import Int32, Int64

from porter.corpus import lib, runtime


@cute.kernel
def fill_kernel(out: cute.Pointer, n: Int32):
    i = cute.arch.block_idx()[0] * lib.block_dim()[0] + cute.arch.thread_idx()[0]
    if i < n:
        lib.store(out + Int64(i), Int32(7))


@cute.kernel
def spin_kernel(out: cute.Pointer, n: Int32):
    seen = Int32(0)
    while seen < n:  # nobody ever writes it
        seen = cute.arch.inline_ptx(
            "ld.volatile.global.b32 {$w0}, [{$r0}];", write_only_types=[Int32], read_only_args=[out]
        )
    lib.store(out, seen)


@cute.jit
def _launch_fill(
    out: cute.Pointer,
    n: Int32,
    grid_x: Int32,
    grid_y: Int32,
    grid_z: Int32,
    block_x: Int32,
    block_y: Int32,
    block_z: Int32,
    smem_bytes: Int32,
    stream,
):
    fill_kernel(out, n).launch(grid=(grid_x, grid_y, grid_z), block=(block_x, block_y, block_z), stream=stream)


@cute.jit
def _launch_spin(
    out: cute.Pointer,
    n: Int32,
    grid_x: Int32,
    grid_y: Int32,
    grid_z: Int32,
    block_x: Int32,
    block_y: Int32,
    block_z: Int32,
    smem_bytes: Int32,
    stream,
):
    spin_kernel(out, n).launch(grid=(grid_x, grid_y, grid_z), block=(block_x, block_y, block_z), stream=stream)


PARAMS = (runtime.Ptr("out", "i32"), runtime.Num("n", "i32"))
FILL = runtime.Kernel(launch=_launch_fill, name="fill", params=PARAMS)
SPIN = runtime.Kernel(launch=_launch_spin, name="spin", params=PARAMS)
