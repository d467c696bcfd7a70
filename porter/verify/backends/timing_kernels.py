"""The kernels that stand beside a timed one: one that does nothing, one that reads and rewrites a buffer.

Compiled like a port, in a worker process; nothing else imports this module.
"""

import cutlass.cute as cute
from cutlass import Int32, Int64, Uint32

from porter.corpus import lib, runtime


@cute.kernel
def empty_kernel():
    pass


@cute.kernel
def touch_kernel(
    data: cute.Pointer,  # Uint32* (4 * quads), 16-byte aligned
    quads: Int32,
):
    cute.arch.griddepcontrol_wait()
    first = cute.arch.block_idx()[0] * lib.block_dim()[0] + cute.arch.thread_idx()[0]
    step = cute.arch.grid_dim()[0] * lib.block_dim()[0]
    for i in range(first, quads, step):
        at = data + Int64(i) * 4
        # inline PTX: a store of what was just loaded would be dropped
        a, b, c, d = cute.arch.inline_ptx(
            "ld.global.v4.b32 {{$w0}, {$w1}, {$w2}, {$w3}}, [{$r0}];",
            write_only_types=[Uint32, Uint32, Uint32, Uint32],
            read_only_args=[at],
        )
        cute.arch.inline_ptx("st.global.v4.b32 [{$r0}], {{$r1}, {$r2}, {$r3}, {$r4}};", read_only_args=[at, a, b, c, d])
    cute.arch.griddepcontrol_launch_dependents()


@cute.jit
def _launch_empty(
    grid_x: Int32,
    grid_y: Int32,
    grid_z: Int32,
    block_x: Int32,
    block_y: Int32,
    block_z: Int32,
    smem_bytes: Int32,
    stream,
):
    empty_kernel().launch(grid=(grid_x, grid_y, grid_z), block=(block_x, block_y, block_z), stream=stream)


@cute.jit
def _launch_touch(
    data: cute.Pointer,
    quads: Int32,
    grid_x: Int32,
    grid_y: Int32,
    grid_z: Int32,
    block_x: Int32,
    block_y: Int32,
    block_z: Int32,
    smem_bytes: Int32,
    stream,
):
    touch_kernel(data, quads).launch(grid=(grid_x, grid_y, grid_z), block=(block_x, block_y, block_z), stream=stream)


EMPTY = runtime.Kernel(launch=_launch_empty, name="empty", params=())
TOUCH = runtime.Kernel(
    launch=_launch_touch, name="touch", params=(runtime.Ptr("data", "u32"), runtime.Num("quads", "i32"))
)
