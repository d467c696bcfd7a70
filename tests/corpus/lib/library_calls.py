"""One call of each function of porter.corpus.lib whose docstring names instructions, for the test that looks for them.

`v` is a place of floats, integers and pointers: see `Values`. A call gives what its kernel stores; a function of
several types is called with each.
"""

from dataclasses import dataclass

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Float16, Float32, Float64, Int32, Int64, Uint32, Uint64

from porter.corpus import lib
from porter.corpus.lib.moe import routing
from porter.corpus.lib.rows import load_vector, store_vector
from porter.corpus.runtime.signature import Tensor
from porter.corpus.runtime.specialisation import Specialisation

HALVES = (Float16, BFloat16)


class Values:
    """What calls are made of: x, y, z Float32; i, j Int32; u, w Uint32; f, n, m pointers to such numbers in global
    memory; words, four Uint32; t the thread."""

    def __init__(self, f, n, m, t):
        self.f, self.n, self.m, self.t = f, n, m, t
        self.x, self.y, self.z = f[t], f[t + 32], f[t + 64]
        self.i, self.j = n[t], n[t + 32]
        self.u, self.w = Uint32(m[t]), Uint32(m[t + 32])
        self.words = [self.u, self.w, self.u ^ self.w, self.u + self.w]

    @property
    def eight(self):
        return [self.f[self.t + 128 + 32 * k] for k in range(8)]

    def half(self, dtype):
        return [dtype(v) for v in (self.x, self.y, self.z)]

    def scratch(self, dtype=Float32, count=64):
        return lib.shared(dtype, count)


def _stored(dtype):
    def call(v):
        p = v.scratch(dtype)
        p[v.t] = dtype(v.i)
        lib.sync_threads()
        return dtype(p[v.t ^ 1])

    return call


def _vector(v):
    r = lib.local(Float32, 4)
    load_vector(r, v.f + 4 * v.t, 4)
    store_vector(v.f + 512 + 4 * v.t, r, 4)


def _loaded(v):
    rows = cute.local_tile(lib.tensor(v.f, (4096,), vector=4), (4,), (None,))
    x, y = lib.load(rows[None, v.t]), lib.load(rows[None, 64 + v.t], readonly=True)
    return [x[0] + x[3], y[1] + y[2]]


def _largest(v):
    rows = cute.local_tile(lib.tensor(v.f, (4096,), vector=4), (4,), (None,))
    return lib.largest(lib.load(rows[None, v.t]), v.x)


CALLS = {
    "finite": lambda v: Int32(routing.finite(v.x)),
    "normaliser": lambda v: routing.normaliser(v.x),
    "group_max": lambda v: [routing.group_max(v.u, 32), routing.group_max(v.u, 8)],
    "chosen": lambda v: routing.chosen([v.x, v.y, v.z], v.i),
    "exp": lambda v: lib.exp(v.x),
    "over_one_plus_exp": lambda v: lib.over_one_plus_exp(v.x, v.y),
    "sigmoid": lambda v: lib.sigmoid(v.x),
    "silu_exact": lambda v: lib.silu_exact(v.x),
    "group_reduce": lambda v: lib.group_reduce(v.x, "max", 8),
    "block_reduce": lambda v: lib.block_reduce(v.x, v.scratch(), 32, "sum"),
    "warp_inclusive_sum": lambda v: lib.warp_inclusive_sum(v.i),
    "block_exclusive_sum": lambda v: lib.block_exclusive_sum(v.i, v.scratch(Int32)),
    "cluster_rank": lambda v: lib.cluster_rank(),
    "cluster_blocks": lambda v: lib.cluster_blocks(),
    "cluster_position": lambda v: lib.cluster_position("x"),
    "cluster_extent": lambda v: lib.cluster_extent("x"),
    "cluster_index": lambda v: lib.cluster_index(),
    "clusters": lambda v: lib.clusters(),
    "cluster_arrive": lambda v: lib.cluster_sync(),
    "cluster_wait": lambda v: lib.cluster_sync(),
    "map_shared_rank": lambda v: lib.map_shared_rank(v.scratch(), 1).load(),
    "cluster_reduce": lambda v: (lib.cluster_arrive(), lib.cluster_reduce(v.x, 1, 2, "sum"))[1],
    "finite_top": lambda v: lib.finite_top(v.x),
    "exp2_approx": lambda v: lib.exp2_approx(v.x),
    "exp2_approx_ftz": lambda v: lib.exp2_approx_ftz(v.x),
    "exp_approx": lambda v: lib.exp_approx(v.x),
    "exp10_approx": lambda v: lib.exp10_approx(v.x),
    "log2_approx": lambda v: lib.log2_approx(v.x),
    "log_approx": lambda v: lib.log_approx(v.x),
    "log10_approx": lambda v: lib.log10_approx(v.x),
    "sin_approx": lambda v: lib.sin_approx(v.x),
    "cos_approx": lambda v: lib.cos_approx(v.x),
    "tanh_approx": lambda v: lib.tanh_approx(v.x),
    "div_approx": lambda v: lib.div_approx(v.x, v.y),
    "rcp_approx": lambda v: lib.rcp_approx(v.x),
    "rcp_approx_ftz": lambda v: lib.rcp_approx_ftz(v.x),
    "rsqrt": lambda v: lib.rsqrt(v.x),
    "rsqrt_rn": lambda v: lib.rsqrt_rn(v.x),
    "rcp_rn": lambda v: lib.rcp_rn(v.x),
    "sqrt_rn": lambda v: lib.sqrt_rn(v.x),
    "sqrt_approx": lambda v: lib.sqrt_approx(v.x),
    "add_rn": lambda v: lib.add_rn(v.x, v.y),
    "sub_rn": lambda v: lib.sub_rn(v.x, v.y),
    "mul_rn": lambda v: lib.mul_rn(v.x, v.y),
    "div_rn": lambda v: lib.div_rn(v.x, v.y),
    "fma": lambda v: lib.fma(v.x, v.y, v.z),
    "rounded": lambda v: [Float32(lib.rounded(v.x * v.y, T)) for T in HALVES],
    "half_rn": lambda v: [
        Float32(lib.half_rn(operation, *v.half(T)[:2]))
        for operation, T in (("add", Float16), ("sub", BFloat16), ("mul", Float16))
    ],
    "fma_half": lambda v: [Float32(lib.fma_half(*v.half(T))) for T in HALVES],
    "fmax": lambda v: lib.fmax(v.x, v.y),
    "fmin": lambda v: lib.fmin(v.x, v.y),
    "fmax_nan": lambda v: lib.fmax_nan(v.x, v.y),
    "fmin_nan": lambda v: lib.fmin_nan(v.x, v.y),
    "fmax64": lambda v: Float32(lib.fmax64(Float64(v.x), Float64(v.y))),
    "fmin64": lambda v: Float32(lib.fmin64(Float64(v.x), Float64(v.y))),
    "hmax": lambda v: [Float32(lib.hmax(*v.half(T)[:2])) for T in HALVES],
    "hmin": lambda v: [Float32(lib.hmin(*v.half(T)[:2])) for T in HALVES],
    "saturate": lambda v: lib.saturate(v.x),
    "float_to_int": lambda v: lib.float_to_int(v.x, Int32, "rni"),
    "float_to_int8_sat": lambda v: Int32(lib.float_to_int8_sat(v.x)),
    "float_to_uint8_sat": lambda v: Int32(lib.float_to_uint8_sat(v.x)),
    "rint": lambda v: lib.rint(v.x),
    "int_to_float": lambda v: lib.int_to_float(v.i),
    "isnan": lambda v: Int32(lib.isnan(v.x)),
    "absmax": lambda v: lib.absmax([v.x, v.y]),
    "divided_codes": lambda v: lib.divided_codes(v.eight, v.x),
    "quotients": lambda v: lib.quotients([v.x, v.y], v.z, True),
    "hexp": lambda v: [Float32(lib.hexp(T(v.x))) for T in HALVES],
    "hexp2": lambda v: [Float32(lib.hexp2(T(v.x))) for T in HALVES],
    "hlog2": lambda v: [Float32(lib.hlog2(T(v.x))) for T in HALVES],
    "hlog": lambda v: [Float32(lib.hlog(T(v.x))) for T in HALVES],
    "hlog10": lambda v: [Float32(lib.hlog10(T(v.x))) for T in HALVES],
    "hrcp": lambda v: [Float32(lib.hrcp(T(v.x))) for T in HALVES],
    "hrsqrt": lambda v: [Float32(lib.hrsqrt(T(v.x))) for T in HALVES],
    "htanh_approx": lambda v: [Float32(lib.htanh_approx(T(v.x))) for T in HALVES],
    "hsqrt": lambda v: [Float32(lib.hsqrt(T(v.x))) for T in HALVES],
    "dynamic_int8_scale": lambda v: lib.dynamic_int8_scale(v.x),
    "int8_codes": lambda v: lib.int8_codes(v.eight, v.x),
    "divided_int8_codes": lambda v: lib.divided_int8_codes(v.eight, v.x),
    "pack_int8": lambda v: lib.pack_int8(v.eight),
    "pack_codes": lambda v: lib.pack_codes(v.words),
    "shifted_int8_codes": lambda v: lib.shifted_int8_codes(v.eight, v.x, v.i),
    "grid_arrive": lambda v: lib.grid_arrive(),
    "grid_wait": lambda v: lib.grid_wait(v.i),
    "group_absmax": lambda v: lib.group_absmax(v.eight, 8),
    "power_of_two_scale": lambda v: lib.power_of_two_scale(v.x),
    "clamped_codes": lambda v: lib.clamped_codes(v.eight, v.x, v.y, "e4m3")
                               + lib.clamped_codes(v.eight, v.x, v.y, "i8"),
    "four_groups": lambda v: lib.four_groups(v.u, v.i, 8),
    "c_div": lambda v: lib.c_div(v.i, v.j),
    "c_mod": lambda v: lib.c_mod(v.i, v.j),
    "trips": lambda v: Int32(lib.trips(Int64(v.i), Int64(v.j), 8)),
    "mul_hi": lambda v: [lib.mul_hi(v.i, v.j), lib.mul_hi(v.u, v.w)],
    "mul_hi64": lambda v: Uint32(lib.mul_hi64(Uint64(v.u) << 20, Uint64(v.w) << 20)),
    "popc": lambda v: lib.popc(v.u),
    "popc64": lambda v: lib.popc64(Uint64(v.u) * Uint64(v.w)),
    "clz": lambda v: lib.clz(v.u),
    "clz64": lambda v: lib.clz64(Uint64(v.u) * Uint64(v.w)),
    "brev": lambda v: lib.brev(v.u),
    "byte_perm": lambda v: lib.byte_perm(v.u, v.w, v.u),
    "prmt": lambda v: lib.prmt(v.u, v.w, v.u),
    "funnel_shift_l": lambda v: lib.funnel_shift_l(v.u, v.w, v.u),
    "funnel_shift_r": lambda v: lib.funnel_shift_r(v.u, v.w, v.u),
    "dp4a": lambda v: lib.dp4a(v.i, v.j, v.i),
    "sad": lambda v: lib.sad(v.i, v.j, v.u),
    "imin": lambda v: [lib.imin(v.i, v.j), lib.imin(v.u, v.w)],
    "imax": lambda v: [lib.imax(v.i, v.j), lib.imax(v.u, v.w)],
    "iabs": lambda v: lib.iabs(v.i),
    "select": lambda v: lib.select(v.x > v.y, v.i, v.j),
    "smid": lambda v: lib.smid(),
    "ldg": lambda v: lib.ldg(v.f + v.t + 7),
    "copy": lambda v: [lib.copy(v.f + 4 * v.t, v.f + 512 + 4 * v.t, 4),
                       lib.copy(v.f + 1024 + 4 * v.t, v.f + 1536 + 4 * v.t, 4, readonly=True)],
    "address": lambda v: Int32(lib.address(v.scratch())),
    "shared_address": lambda v: lib.shared_address(lib.pointer(Float32, lib.address(v.scratch()))),
    "in_register": lambda v: lib.in_register(v.scratch())[v.i & 7],
    "pointer": lambda v: lib.pointer(Float32, lib.address(v.f + v.t)).load(),
    "e8m0_up": lambda v: lib.e8m0_up(v.x, True),
    "e8m0_down": lambda v: lib.e8m0_down(v.x, True),
    "from_e8m0": lambda v: lib.from_e8m0(v.u, True),
    "pack_e2m1": lambda v: lib.pack_e2m1(v.eight, True) + lib.pack_e2m1(v.eight),
    "unpack_e2m1": lambda v: lib.unpack_e2m1((v.u,), True) + lib.unpack_e2m1((v.w,)),
    "unpack_e4m3": lambda v: lib.unpack_e4m3((v.u,), 4),
    "unpack_e5m2": lambda v: lib.unpack_e5m2((v.u,), 4),
    "pack_e5m2": lambda v: lib.pack_e5m2(v.eight[:4], clamp=True),
    "pack_fp8": lambda v: lib.pack_fp8(v.eight, "e4m3") + lib.pack_fp8(v.eight, "e5m2"),
    "warp_argmax": lambda v: lib.warp_argmax(v.u, v.w),
    "group_argmax": lambda v: lib.group_argmax(v.u, v.w, 8),
    "block_argmax": lambda v: lib.block_argmax(v.u, v.w, v.scratch(Uint32), v.scratch(Uint32), 2, 0),
    "load_words": lambda v: lib.load_words(v.m + 4 * v.t, 16),
    "prefetch_line": lambda v: lib.prefetch_line(v.f + 32 * v.t),
    "ld_relaxed": lambda v: lib.ld_relaxed(v.n + v.t + 3, Int32),
    "store_words": lambda v: lib.store_words(v.m + 4 * v.t, v.words, 16),
    "unpack": lambda v: lib.unpack((v.u,), 2, Float16) + lib.unpack((v.u,), 2, BFloat16),
    "pack": lambda v: [w for T in HALVES for w in lib.pack([v.x, v.y], T)],
    "opaque_words": lambda v: lib.opaque_words((v.u,)),
    "round_to": lambda v: lib.round_to(v.x, BFloat16),
    "mul_words": lambda v: [lib.mul_words((v.u,), (v.w,), T)[0] for T in (*HALVES, Float32)],
    "max_words": lambda v: [lib.max_words(v.u, v.w, T) for T in (*HALVES, Float32)],
    "pack_e4m3": lambda v: lib.pack_e4m3(v.eight),
    "clamped_row": lambda v: lib.clamped_row(v.i, 1, cute.make_tensor(v.f, cute.make_layout((v.j, 4)))),
    "load_vector": _vector,
    "store_vector": _vector,
    "sync_threads_count": lambda v: lib.sync_threads_count(v.i > 0),
    "sync_threads_or": lambda v: Int32(lib.sync_threads_or(v.i > 0)),
    "fence_block": lambda v: lib.fence_block(),
    "fence": lambda v: lib.fence(),
    "fence_system": lambda v: lib.fence_system(),
    "ld_acquire": lambda v: lib.ld_acquire(v.n + 3),
    "st_release": lambda v: lib.st_release(v.n + 3, v.i),
    "add_release": lambda v: lib.add_release(v.n + 3, v.i),
    "wait_at_least": lambda v: lib.wait_at_least(v.n + 3, v.i),
    "ld_volatile": lambda v: lib.ld_volatile(v.n + 3, Int32),
    "st_volatile": lambda v: lib.st_volatile(v.n + 3, v.i),
    "atomic_add": lambda v: lib.atomic_add(v.n + 3, v.i),
    "atomic_add_pair": lambda v: [lib.atomic_add_pair(v.f + 2, *v.half(t)[:2]) for t in HALVES],
    "atomic_sub": lambda v: lib.atomic_sub(v.n + 3, v.i),
    "atomic_max": lambda v: [lib.atomic_max(v.n + 3, v.i), lib.atomic_max(v.m + 3, v.u)],
    "atomic_min": lambda v: [lib.atomic_min(v.n + 3, v.i), lib.atomic_min(v.m + 3, v.u)],
    "atomic_and": lambda v: lib.atomic_and(v.n + 3, v.i),
    "atomic_or": lambda v: lib.atomic_or(v.n + 3, v.i),
    "atomic_xor": lambda v: lib.atomic_xor(v.n + 3, v.i),
    "atomic_exch": lambda v: lib.atomic_exch(v.n + 3, v.i),
    "atomic_cas": lambda v: lib.atomic_cas(v.n + 3, v.i, v.j),
    "atomic_inc": lambda v: lib.atomic_inc(v.m + 3, v.u),
    "atomic_dec": lambda v: lib.atomic_dec(v.m + 3, v.u),
    "grid_barrier": lambda v: lib.grid_barrier(v.n + 3),
    "trap": lambda v: lib.trap(),
    "nanosleep": lambda v: lib.nanosleep(20),
    "pdl_wait": lambda v: lib.pdl_wait(),
    "pdl_launch_dependents": lambda v: lib.pdl_launch_dependents(),
    "in_first_blocks": lambda v: Int32(lib.in_first_blocks(5)),
    "grid_sync": lambda v: lib.grid_sync(),
    "shfl_xor": lambda v: lib.shfl_xor(v.x, 4),
    "shfl_down": lambda v: lib.shfl_down(v.x, 4),
    "shfl_up": lambda v: lib.shfl_up(v.x, 4),
    "shfl": lambda v: lib.shfl(v.x, 4),
    "ballot": lambda v: lib.ballot(v.i > 0),
    "any_sync": lambda v: Int32(lib.any_sync(v.i > 0)),
    "all_sync": lambda v: Int32(lib.all_sync(v.i > 0)),
    "activemask": lambda v: lib.activemask(),
    "match_any": lambda v: lib.match_any(v.i),
    "sync_warp": lambda v: lib.sync_warp(),
    "redux": lambda v: lib.redux(v.i, "add"),
    "load": _loaded,
    "largest": _largest,
    "elect_mask_lt": lambda v: lib.elect_mask_lt(),
}  # fmt: skip


@dataclass(frozen=True)
class Call(Specialisation):
    """A kernel of one call; what it gives is stored."""

    name: str

    @property
    def threads(self):
        return 32

    @property
    def cluster(self):
        return 2 if "cluster" in self.name or self.name == "map_shared_rank" else 1

    def arguments(self):
        return tuple(Tensor(t, (4096,), (1,), 16) for t in ("f32", "i32", "u32"))

    @cute.jit
    def __call__(self, mF: cute.Tensor, mI: cute.Tensor, mU: cute.Tensor, blocks: Int32, stream):
        self.kernel(mF, mI, mU).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), cluster=(self.cluster, 1, 1), stream=stream
        )

    @cute.kernel
    def kernel(self, mF: cute.Tensor, mI: cute.Tensor, mU: cute.Tensor):
        t = cute.arch.thread_idx()[0]
        given = CALLS[self.name](Values(mF.iterator, mI.iterator, mU.iterator, t))
        for k, value in enumerate(given if isinstance(given, (list, tuple)) else [given]):
            if cutlass.const_expr(value is not None):
                place = {Float32: mF, Int32: mI, Uint32: mU}[type(value)]
                place[2048 + 64 * k + t] = value
