"""Source of rms_cutedsl.ptx: run it in an empty folder with nvidia-cutlass-dsl installed; it prints the PTX."""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Float32, Int32
from cutlass.cute.runtime import make_fake_stream, make_ptr


@cute.kernel
def rms(px: cute.Pointer, pw: cute.Pointer, po: cute.Pointer, n: Int32, eps: Float32):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    smem = cutlass.utils.SmemAllocator()
    part = smem.allocate_tensor(Float32, cute.make_layout(8), byte_alignment=16)
    acc = Float32(0.0)
    for i in range(tidx, n, 256):
        v = px[bidx * n + i].to(Float32)
        acc = acc + v * v
    for k in cutlass.range_constexpr(5):
        acc = acc + cute.arch.shuffle_sync_bfly(acc, offset=16 >> k)
    if tidx % 32 == 0:
        part[tidx // 32] = acc
    cute.arch.sync_threads()
    s = Float32(0.0)
    for k in cutlass.range_constexpr(8):
        s = s + part[k]
    r = cute.math.rsqrt(s / n + eps, fastmath=True)
    for i in range(tidx, n, 256):
        po[bidx * n + i] = (px[bidx * n + i].to(Float32) * r * pw[i].to(Float32)).to(BFloat16)


@cute.jit
def launch(px: cute.Pointer, pw: cute.Pointer, po: cute.Pointer, n: Int32, eps: Float32, stream):
    rms(px, pw, po, n, eps).launch(grid=(4, 1, 1), block=(256, 1, 1), stream=stream)


BF16 = make_ptr(BFloat16, 0, cute.AddressSpace.gmem, assumed_align=16)
OPTIONS = "--keep-ptx --dump-dir . --gpu-arch sm_90a --generate-line-info"
compiled = cute.compile(launch, BF16, BF16, BF16, Int32(1), Float32(1), make_fake_stream(), options=OPTIONS)
print(compiled.__ptx__)
