"""One kernel a group of library functions, for the test that pins their instructions."""

import cutlass.cute as cute
from cutlass import BFloat16, Boolean, Float16, Float32, Int32, Uint32

from porter.corpus import lib, runtime


@cute.kernel
def floats(f: cute.Pointer, i: cute.Pointer, u: cute.Pointer):
    t = cute.arch.thread_idx()[0]
    a, b = f[t], f[t + 64]
    f[t + 100] = lib.exp2_approx(a)
    f[t + 200] = lib.log2_approx(a)
    f[t + 300] = lib.sin_approx(a)
    f[t + 400] = lib.cos_approx(a)
    f[t + 500] = lib.tanh_approx(a)
    f[t + 600] = lib.div_approx(a, b)
    f[t + 700] = lib.rcp_approx_ftz(a)
    f[t + 800] = lib.rsqrt(a)
    f[t + 900] = lib.rcp_rn(a)
    f[t + 1000] = lib.sqrt_rn(a)
    f[t + 1100] = lib.add_rn(lib.mul_rn(a, b), b)
    f[t + 1200] = lib.sub_rn(a, b)
    f[t + 1300] = lib.fma(a, b, a)
    f[t + 1400] = lib.fmax(a, b)
    f[t + 1500] = lib.fmin_nan(a, b)
    f[t + 1600] = lib.saturate(a)
    f[t + 1700] = lib.rint(a)
    i[t] = lib.float_to_int(a, Int32, "rmi")
    i[t + 100] = Int32(lib.float_to_int8_sat(a))
    f[t + 1800] = lib.int_to_float(i[t], "rz")


@cute.kernel
def integers(f: cute.Pointer, i: cute.Pointer, u: cute.Pointer):
    t = cute.arch.thread_idx()[0]
    a, b = Uint32(u[t]), Uint32(u[t + 64])
    i[t + 100] = lib.c_div(i[t], i[t + 1])
    i[t + 200] = lib.c_mod(i[t + 2], i[t + 3])
    i[t + 300] = lib.popc(a)
    i[t + 400] = lib.clz(a)
    u[t + 100] = lib.brev(a)
    u[t + 200] = lib.byte_perm(a, b, Uint32(0x5410))
    u[t + 300] = lib.funnel_shift_l(a, b, Uint32(i[t]))
    i[t + 500] = lib.dp4a(Int32(a), Int32(b), i[t])


@cute.kernel
def memory(f: cute.Pointer, i: cute.Pointer, u: cute.Pointer):
    t = cute.arch.thread_idx()[0]
    v = lib.local(Float32, 4)
    lib.copy(v, f + 4 * t, 4)
    lib.copy(f + 4096 + 4 * t, v, 4)
    w = lib.local(Float32, 2)
    lib.copy(w, f + 8192 + 2 * t, 2, readonly=True)
    lib.copy(f + 16384 + 2 * t, w, 2)
    i[t + 64] = lib.ldg(i + t)
    s = lib.shared(Float32, 64)
    s[t] = v[1]
    lib.sync_threads()
    f[t] = s[t ^ 1]


@cute.kernel
def warps(f: cute.Pointer, i: cute.Pointer, u: cute.Pointer):
    t = cute.arch.thread_idx()[0]
    f[t + 64] = lib.shfl_xor(f[t], 4) + lib.shfl_down(f[t], 1) + lib.shfl_up(f[t], 2) + lib.shfl(f[t], 0, width=16)
    u[t] = lib.ballot(i[t] > 0)
    u[t + 64] = lib.match_any(i[t])
    i[t + 64] = lib.redux(i[t], "add")
    lib.sync_warp()
    u[t + 128] = lib.activemask()
    i[t + 128] = lib.sync_threads_count(Boolean(i[t] > 0))


@cute.kernel
def order(f: cute.Pointer, i: cute.Pointer, u: cute.Pointer):
    t = cute.arch.thread_idx()[0]
    lib.atomic_add(f, f[t])
    lib.atomic_max(i, i[t])
    lib.atomic_inc(u, Uint32(9))
    lib.fence()
    lib.st_release(i + 8, Int32(1))
    i[t] = lib.ld_acquire(i + 9) + lib.ld_volatile(i + 10, Int32)
    lib.pdl_wait()
    lib.pdl_launch_dependents()
    lib.grid_sync()


@cute.kernel
def packed(f: cute.Pointer, i: cute.Pointer, u: cute.Pointer):
    t = cute.arch.thread_idx()[0]
    lib.prefetch_line(f + 32 * t, lib.first_in_cache_line(16))
    i[t + 9] = lib.ld_relaxed(i + t, Int32)
    a = lib.load_words(u + 4 * t, 16)
    b = lib.load_words(u + 512 + 4 * t, 16, lib.CACHED)
    c = lib.load_words(u + 1024 + 2 * t, 8, lib.STREAMING, inside=t < 9)
    lib.store_words(u + 2048 + 4 * t, lib.mul_words(a, b, BFloat16), 16)
    lib.store_words(u + 4096 + 4 * t, lib.mul_words(a, b, Float16), 16)
    lib.store_words(u + 6144 + 2 * t, lib.pack(lib.unpack(c, 4, Float16), BFloat16), 8)
    lib.store_words(u + 8192 + 2 * t, lib.pack(lib.unpack(c, 4, BFloat16), Float16), 8)
    lib.store_words(u + 9000 + t, lib.pack_e4m3(lib.unpack(c, 4, BFloat16)), 4)
    u[t] = lib.max_words(a[0], b[0], BFloat16)
    lib.prefetch_bytes(lib.view(u, Uint32), 128, t == 0)


@cute.kernel
def activations(f: cute.Pointer, i: cute.Pointer, u: cute.Pointer):
    t = cute.arch.thread_idx()[0]
    x = f[t]
    f[t + 100] = lib.silu(x)
    f[t + 200] = lib.sigmoid(x)
    f[t + 300] = lib.exp2_approx_ftz(x)
    f[t + 400] = lib.dynamic_scale(lib.absmax([x, f[t + 1]]))


@cute.kernel
def exact_silu(f: cute.Pointer, i: cute.Pointer, u: cute.Pointer):
    t = cute.arch.thread_idx()[0]
    f[t + 100] = lib.silu_exact(f[t])


@cute.kernel
def selections(f: cute.Pointer, i: cute.Pointer, u: cute.Pointer):
    t = cute.arch.thread_idx()[0]
    code, index = lib.warp_argmax(lib.ordered(f[t]), Uint32(t))
    f[t] = lib.from_ordered(code)
    u[t] = index
    i[t] = lib.select(i[t + 1] > 3, i[t + 2], i[t + 3])


@cute.kernel
def cluster_softmax(f: cute.Pointer, i: cute.Pointer, u: cute.Pointer):
    t = cute.arch.thread_idx()[0]
    box = lib.inbox(8 * 2 * 4)
    lib.cluster_wait()
    f[t], f[t + 64] = lib.join_exp_sums(f[t], f[t + 64], 2, 4, box)


@cute.jit
def _launch(
    f: cute.Pointer,
    i: cute.Pointer,
    u: cute.Pointer,
    grid_x: Int32,
    grid_y: Int32,
    grid_z: Int32,
    block_x: Int32,
    block_y: Int32,
    block_z: Int32,
    smem_bytes: Int32,
    stream,
):
    grid, block = (grid_x, grid_y, grid_z), (block_x, block_y, block_z)
    floats(f, i, u).launch(grid=grid, block=block, stream=stream)
    integers(f, i, u).launch(grid=grid, block=block, stream=stream)
    memory(f, i, u).launch(grid=grid, block=block, stream=stream)
    warps(f, i, u).launch(grid=grid, block=block, stream=stream)
    order(f, i, u).launch(grid=grid, block=block, stream=stream)
    packed(f, i, u).launch(grid=grid, block=block, stream=stream)
    activations(f, i, u).launch(grid=grid, block=block, stream=stream)
    exact_silu(f, i, u).launch(grid=grid, block=block, stream=stream)
    selections(f, i, u).launch(grid=grid, block=block, stream=stream)
    cluster_softmax(f, i, u).launch(grid=grid, block=block, cluster=(4, 1, 1), stream=stream)


KERNEL = runtime.Kernel(
    launch=_launch,
    name="library",
    params=(runtime.Ptr("f", "f32"), runtime.Ptr("i", "i32"), runtime.Ptr("u", "u32")),
)
