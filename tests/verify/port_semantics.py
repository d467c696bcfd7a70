"""CuTeDSL written plainly where releases of it compiled something else: comparisons in a chain, branches, predicates.

Used by test_dsl_semantics. One thread an element; `a`, `b` are int32, `x` float32, results go to `out`.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Boolean, Float32, Int32

from porter.corpus import runtime


@cute.kernel
def chained(out: cute.Pointer, a: cute.Pointer, b: cute.Pointer, x: cute.Pointer, n: Int32):
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    if i < n:
        code = Int32(0)
        if -5 <= a[i] < 5:
            code = Int32(1)
        elif 5 <= a[i] <= b[i] < 40:
            code = Int32(2)
        elif not (a[i] < b[i] <= 60):
            code = Int32(3)
        if Float32(-1.0) < x[i] <= Float32(1.0):
            code = code + 10
        if a[i] == b[i] == 7:
            code = code + 100
        if a[i] < b[i] > 3:
            code = code + 1000
        out[i] = code


@cute.kernel
def branches(out: cute.Pointer, a: cute.Pointer, b: cute.Pointer, x: cute.Pointer, n: Int32):
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    if i < n:
        p = a[i]
        q = b[i]
        kind = Int32(0)
        if p > q:
            if p > 20:
                kind = Int32(1)
                p = p - q
            else:
                q = q + 1
                if q % 2 == 0:
                    kind = Int32(2)
        elif p == q:
            kind = Int32(3)
            p = Int32(0)
        else:
            p = p + 2 if q > 0 else p - 2
        total = Int32(0)
        for k in range(q % 8):
            if k % 2 == 0 and k != 4:
                total = total + k
            elif k == 3:
                total = total - p
            else:
                total = total ^ k
        go = Boolean(True)
        steps = Int32(0)
        while go:
            steps = steps + 1
            if steps * steps > p:
                go = Boolean(False)
        out[i] = kind * 1000000 + total * 100 + p + 7 * q + steps * 10000


@cute.kernel
def predicated(out: cute.Pointer, a: cute.Pointer, b: cute.Pointer, x: cute.Pointer, n: Int32):
    """out = a where the element exists and b is positive, else -1: by a predicated copy, four elements a thread."""
    tidx = cute.arch.thread_idx()[0]
    start = (cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + tidx) * 4
    layout = cute.make_layout(4)
    gA = cute.make_tensor(a + start, layout)
    gOut = cute.make_tensor(out + start, layout)
    rA = cute.make_rmem_tensor(layout, Int32)
    pred = cute.make_rmem_tensor(layout, Boolean)
    inside = cute.make_rmem_tensor(layout, Boolean)
    for j in cutlass.range_constexpr(4):
        rA[j] = Int32(-1)
        inside[j] = start + j < n
        pred[j] = Boolean(False)
        if start + j < n:
            pred[j] = b[start + j] > 0
    cute.basic_copy_if(pred, gA, rA)
    cute.basic_copy_if(inside, rA, gOut)


@cute.kernel
def predicated_atom(out: cute.Pointer, a: cute.Pointer, b: cute.Pointer, x: cute.Pointer, n: Int32):
    """The same through copy atoms with `pred`, one element each."""
    tidx = cute.arch.thread_idx()[0]
    start = (cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + tidx) * 4
    layout = cute.make_layout((1, 4), stride=(0, 1))
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), Int32, num_bits_per_copy=32)
    gA = cute.make_tensor(a + start, layout)
    gOut = cute.make_tensor(out + start, layout)
    rA = cute.make_rmem_tensor(layout, Int32)
    pred = cute.make_rmem_tensor(cute.make_layout((1, 4), stride=(0, 1)), Boolean)
    inside = cute.make_rmem_tensor(cute.make_layout((1, 4), stride=(0, 1)), Boolean)
    for j in cutlass.range_constexpr(4):
        rA[0, j] = Int32(-1)
        inside[0, j] = start + j < n
        pred[0, j] = Boolean(False)
        if start + j < n:
            pred[0, j] = b[start + j] > 0
    cute.copy(atom, gA, rA, pred=pred)
    cute.copy(atom, rA, gOut, pred=inside)


@cute.kernel
def predicated_async(out: cute.Pointer, a: cute.Pointer, b: cute.Pointer, x: cute.Pointer, n: Int32):
    """The same through shared memory by predicated cp.async."""
    tidx = cute.arch.thread_idx()[0]
    start = (cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + tidx) * 4
    layout = cute.make_layout((1, 4), stride=(0, 1))
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), Int32, num_bits_per_copy=32)
    shared = cute.arch.alloc_smem(Int32, 512, alignment=16)
    sA = cute.make_tensor(shared + tidx * 4, layout)
    gA = cute.make_tensor(a + start, layout)
    pred = cute.make_rmem_tensor(cute.make_layout((1, 4), stride=(0, 1)), Boolean)
    for j in cutlass.range_constexpr(4):
        sA[0, j] = Int32(-1)
        pred[0, j] = Boolean(False)
        if start + j < n:
            pred[0, j] = b[start + j] > 0
    cute.copy(atom, gA, sA, pred=pred)
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    for j in cutlass.range_constexpr(4):
        if start + j < n:
            out[start + j] = sA[0, j]


@cute.jit
def _launch(
    out: cute.Pointer,
    a: cute.Pointer,
    b: cute.Pointer,
    x: cute.Pointer,
    n: Int32,
    grid_x: Int32,
    grid_y: Int32,
    grid_z: Int32,
    block_x: Int32,
    block_y: Int32,
    block_z: Int32,
    smem_bytes: Int32,
    WHICH: cutlass.Constexpr,
    stream,
):
    grid = (grid_x, grid_y, grid_z)
    block = (block_x, block_y, block_z)
    if cutlass.const_expr(WHICH == 0):
        chained(out, a, b, x, n).launch(grid=grid, block=block, stream=stream)
    if cutlass.const_expr(WHICH == 1):
        branches(out, a, b, x, n).launch(grid=grid, block=block, stream=stream)
    if cutlass.const_expr(WHICH == 2):
        predicated(out, a, b, x, n).launch(grid=grid, block=block, stream=stream)
    if cutlass.const_expr(WHICH == 3):
        predicated_atom(out, a, b, x, n).launch(grid=grid, block=block, stream=stream)
    if cutlass.const_expr(WHICH == 4):
        predicated_async(out, a, b, x, n).launch(grid=grid, block=block, stream=stream)


KERNEL = runtime.Kernel(
    launch=_launch,
    name="semantics",
    params=(
        runtime.Ptr("out", "i32"),
        runtime.Ptr("a", "i32"),
        runtime.Ptr("b", "i32"),
        runtime.Ptr("x", "f32"),
        runtime.Num("n", "i32"),
    ),
    constexprs=("WHICH",),
)
