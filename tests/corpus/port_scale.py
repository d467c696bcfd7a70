"""A port as porter writes them, small: out = T(in * factor * VEC). Used by the tests of the runtime and the worker."""

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus import runtime


@cute.kernel
def scale_kernel(
    out: cute.Pointer, inp: cute.Pointer, factor: Float32, n: Int32, T: cutlass.Constexpr, VEC: cutlass.Constexpr
):
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    if i < n:
        out[i] = T(Float32(inp[i]) * factor * Float32(VEC))


@cute.jit
def _launch_scale(
    out: cute.Pointer,
    inp: cute.Pointer,
    factor: Float32,
    n: Int32,
    grid_x: Int32,
    grid_y: Int32,
    grid_z: Int32,
    block_x: Int32,
    block_y: Int32,
    block_z: Int32,
    smem_bytes: Int32,
    T: cutlass.Constexpr,
    VEC: cutlass.Constexpr,
    stream,
):
    scale_kernel(out, inp, factor, n, T, VEC).launch(
        grid=(grid_x, grid_y, grid_z), block=(block_x, block_y, block_z), smem=smem_bytes, stream=stream
    )


KERNEL = runtime.Kernel(
    launch=_launch_scale,
    name="scale_kernel",
    params=(
        runtime.Ptr("out", "T"),
        runtime.Ptr("inp", "T"),
        runtime.Num("factor", "f32"),
        runtime.Num("n", "i32"),
    ),
    constexprs=("T", "VEC"),
)


def launch_config(n: int) -> tuple[tuple[int, int, int], tuple[int, int, int], int]:
    return ((n + 127) // 128, 1, 1), (128, 1, 1), 0


def scale(out, inp, factor: float) -> None:
    grid, block, smem = launch_config(inp.numel())
    dtype = runtime.name_of(inp.dtype)
    runtime.check("inp", inp, dtype, (inp.numel(),))
    runtime.check("out", out, dtype, (inp.numel(),), device=inp.device)
    if dtype not in ("bf16", "f32"):
        raise ValueError(f"scale takes bf16 and f32, not {dtype}")
    constexprs = {"T": dtype, "VEC": 2 if dtype == "bf16" else 3}
    KERNEL.launch(constexprs, (out, inp, factor, inp.numel()), grid=grid, block=block, smem_bytes=smem)
