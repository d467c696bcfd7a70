"""Barriers, fences, flags and atomics. Flag loads and stores are inline PTX, so they are barriers for the compiler
too."""

import cutlass
import cutlass.cute as cute
from cutlass import BFloat16, Float16, Float32, Int32, Int64, Uint16, Uint32

from porter.corpus.lib.inline import asm
from porter.corpus.lib.integers import select
from porter.corpus.lib.warp import as_predicate
from porter.corpus.library import add_old_names


def _state(ptr):
    return {cute.AddressSpace.smem: ".shared", cute.AddressSpace.gmem: ".global"}.get(ptr.memspace, "")


def sync_threads():
    """`__syncthreads` (`bar.sync 0`)."""
    cute.arch.sync_threads()


def sync_threads_count(pred):
    """`__syncthreads_count`: how many threads of the block pass a true predicate, Int32 (`bar.red.popc.u32`)."""
    return cute.arch.inline_ptx(
        "bar.red.popc.u32 {$w0}, 0, {$r0};", write_only_types=[Int32], read_only_args=[as_predicate(pred)]
    )


def sync_threads_or(pred):
    """`__syncthreads_or`: true in every thread when any passes true (`bar.red.popc.u32`), Boolean."""
    return sync_threads_count(pred) != 0


def sync_threads_and(pred):
    """`__syncthreads_and`: true in every thread when all pass true, Boolean."""
    return sync_threads_count(as_predicate(pred) == cutlass.Boolean(False)) == 0


def barrier(barrier_id, threads):
    """Named barrier (`bar.sync id, threads`)."""
    cute.arch.barrier(barrier_id=barrier_id, number_of_threads=threads)


def fence_block():
    """`__threadfence_block` (`fence.acq_rel.cta`)."""
    cute.arch.fence_acq_rel_cta()


def fence():
    """`__threadfence` (`fence.acq_rel.gpu`)."""
    cute.arch.fence_acq_rel_gpu()


def fence_system():
    """`__threadfence_system` (`fence.acq_rel.sys`)."""
    cute.arch.fence_acq_rel_sys()


def ld_acquire(ptr, dtype=Int32, scope="gpu"):
    """Load with acquire order at `scope` (`ld.acquire.gpu.global.b32` or `.b64`)."""
    return cute.arch.inline_ptx(
        f"ld.acquire.{scope}{_state(ptr)}.b{dtype.width} {{$w0}}, [{{$r0}}];",
        write_only_types=[dtype],
        read_only_args=[ptr],
    )


def st_release(ptr, value, scope="gpu"):
    """Store with release order at `scope` (`st.release.gpu.global.b32` or `.b64`)."""
    cute.arch.inline_ptx(
        f"st.release.{scope}{_state(ptr)}.b{value.width} [{{$r0}}], {{$r1}};", read_only_args=[ptr, value]
    )


def add_release(ptr, value, scope="gpu"):
    """Add to an Int32 or Uint32 counter with release order at `scope`, no old value (`red.release.gpu.global.add.u32`):
    what was written before is seen by who finds the sum with `wait_at_least`."""
    cute.arch.inline_ptx(f"red.release.{scope}{_state(ptr)}.add.u32 [{{$r0}}], {{$r1}};", read_only_args=[ptr, value])


@cute.jit
def wait_at_least(flag: cute.Pointer, value, scope: cutlass.Constexpr = "gpu"):
    """Wait until an Int32 flag or counter is `value` or more, with acquire order at `scope`
    (`ld.acquire.gpu.global.b32` in a loop). Only the difference counts, so it may wrap around."""
    current = ld_acquire(flag, Int32, scope)
    while current - value < 0:
        current = ld_acquire(flag, Int32, scope)


def ld_volatile(ptr, dtype):
    """Volatile load that is never removed or merged (`ld.volatile.global.b32`, `.shared` for shared memory)."""
    if dtype.width < 32:
        wide = cute.arch.inline_ptx(
            f"{{ .reg .b16 t; ld.volatile{_state(ptr)}.b{dtype.width} t, [{{$r0}}]; cvt.u32.u16 {{$w0}}, t; }}",
            write_only_types=[Uint32],
            read_only_args=[ptr],
        )
        return dtype(wide) if dtype.width == 8 else Uint16(wide).bitcast(dtype)
    return cute.arch.inline_ptx(
        f"ld.volatile{_state(ptr)}.b{dtype.width} {{$w0}}, [{{$r0}}];", write_only_types=[dtype], read_only_args=[ptr]
    )


def st_volatile(ptr, value):
    """Volatile store (`st.volatile.global.b32`, `.shared` for shared memory)."""
    if value.width < 32:
        narrow = Uint32(value) if value.width == 8 else Uint32(value.bitcast(Uint16))
        cute.arch.inline_ptx(
            f"{{ .reg .b16 t; cvt.u16.u32 t, {{$r1}}; st.volatile{_state(ptr)}.b{value.width} [{{$r0}}], t; }}",
            read_only_args=[ptr, narrow],
        )
    else:
        cute.arch.inline_ptx(
            f"st.volatile{_state(ptr)}.b{value.width} [{{$r0}}], {{$r1}};", read_only_args=[ptr, value]
        )


def atomic_add(ptr, value):
    """`atomicAdd`: returns the old value (`atom.add` in the type of `value`)."""
    if type(value) in (Float16, BFloat16):
        kind = "f16" if type(value) is Float16 else "bf16"
        wide = cute.arch.inline_ptx(
            "{ .reg .b16 t, u; cvt.u16.u32 t, {$r1}; "
            f"atom{_state(ptr)}.add.noftz.{kind} u, [{{$r0}}], t; "
            "cvt.u32.u16 {$w0}, u; }",
            write_only_types=[Uint32],
            read_only_args=[ptr, Uint32(value.bitcast(Uint16))],
        )
        return Uint16(wide).bitcast(type(value))
    return cute.arch.atomic_add(ptr, value)


def atomic_add_pair(ptr, low, high):
    """`atomicAdd` of a half2 or bfloat162 without its old value (`red.add.noftz.f16x2` or `.bf16x2`): each element is
    added atomically. `ptr` points to the low one, at a multiple of 4 bytes."""
    kind = "f16x2" if type(low) is Float16 else "bf16x2"
    packed = Uint32(low.bitcast(Uint16)) | (Uint32(high.bitcast(Uint16)) << 16)
    cute.arch.inline_ptx(f"red{_state(ptr)}.add.noftz.{kind} [{{$r0}}], {{$r1}};", read_only_args=[ptr, packed])


def atomic_sub(ptr, value):
    """`atomicSub`: returns the old value (`atom.add` of the negated value)."""
    return cute.arch.atomic_add(ptr, type(value)(0) - value)


def atomic_max(ptr, value):
    """`atomicMax` on integers: returns the old value (`atom.max.s32`, `.u32`, 64-bit forms)."""
    return cute.arch.atomic_max(ptr, value)


def atomic_min(ptr, value):
    """`atomicMin` on integers: returns the old value (`atom.min.s32`, `.u32`, 64-bit forms)."""
    return cute.arch.atomic_min(ptr, value)


def atomic_and(ptr, value):
    """`atomicAnd`: returns the old value (`atom.and.b32`)."""
    return cute.arch.atomic_and(ptr, value)


def atomic_or(ptr, value):
    """`atomicOr`: returns the old value (`atom.or.b32`)."""
    return cute.arch.atomic_or(ptr, value)


def atomic_xor(ptr, value):
    """`atomicXor`: returns the old value (`atom.xor.b32`)."""
    return cute.arch.atomic_xor(ptr, value)


def atomic_exch(ptr, value):
    """`atomicExch`: returns the old value (`atom.exch.b32`)."""
    if type(value) is Float32:
        return cute.arch.atomic_exch(ptr, value.bitcast(Int32)).bitcast(Float32)
    return cute.arch.atomic_exch(ptr, value)


def atomic_cas(ptr, compare, value):
    """`atomicCAS`: returns the old value (`atom.cas.b32`, `.b64`, `.b16`)."""
    return cute.arch.atomic_cas(ptr, cmp=compare, val=value)


def atomic_inc(ptr, limit):
    """`atomicInc`: old >= limit ? 0 : old + 1; returns the old value, Uint32 (`atom.inc.u32`)."""
    return cute.arch.inline_ptx(
        f"atom{_state(ptr)}.inc.u32 {{$w0}}, [{{$r0}}], {{$r1}};",
        write_only_types=[Uint32],
        read_only_args=[ptr, limit],
    )


def atomic_dec(ptr, limit):
    """`atomicDec`; returns the old value, Uint32 (`atom.dec.u32`)."""
    return cute.arch.inline_ptx(
        f"atom{_state(ptr)}.dec.u32 {{$w0}}, [{{$r0}}], {{$r1}};",
        write_only_types=[Uint32],
        read_only_args=[ptr, limit],
    )


@cute.jit
def grid_barrier(counter: cute.Pointer):
    """All blocks of a cooperative launch meet. `counter` is one Int32 in global memory, zero before the first use and
    only ever increasing, so it needs no reset between launches (about 1.1 us on an H200 with 132 blocks).

    `atom.global.release.add.u32`, then `ld.acquire.gpu.global.b32` until all have come. Whether two launches would be
    quicker decides `porter.corpus.runtime.two_phases`."""
    cute.arch.sync_threads()
    tx, ty, tz = cute.arch.thread_idx()
    if (tx == 0) & (ty == 0) & (tz == 0):
        gx, gy, gz = cute.arch.grid_dim()
        blocks = gx * gy * gz
        cute.arch.fence_acq_rel_gpu()
        old = cute.arch.atomic_add(counter, Int32(1), sem="release", scope="gpu")
        goal = (old // blocks + 1) * blocks
        current = ld_acquire(counter)
        while current - goal < 0:
            current = ld_acquire(counter)
        cute.arch.fence_acq_rel_gpu()
    cute.arch.sync_threads()


def trap():
    """`__trap` (`trap`)."""
    cute.arch.inline_ptx("trap;")


def nanosleep(ns):
    """`__nanosleep` (`nanosleep.u32`)."""
    cute.arch.inline_ptx("nanosleep.u32 {$r0};", read_only_args=[Uint32(ns)])


def pdl_wait():
    """`cudaGridDependencySynchronize` (`griddepcontrol.wait`)."""
    cute.arch.griddepcontrol_wait()


def pdl_launch_dependents():
    """`cudaTriggerProgrammaticLaunchCompletion` (`griddepcontrol.launch_dependents`)."""
    cute.arch.griddepcontrol_launch_dependents()


def in_first_blocks(blocks):
    """Whether this block is one of the first `blocks` (`setp.lt`); 0 stands for all blocks: True, no instruction.

    The first blocks start while the previous kernel ends and leaves memory idle: what they prefetch into L2 then is
    there when `pdl_wait` returns. A block that starts later can load as soon as it could prefetch.
    """
    return True if blocks == 0 else cute.arch.block_idx()[0] < blocks


@cute.jit
def grid_sync():
    """`cooperative_groups::this_grid().sync()`: all blocks of a cooperative launch meet.

    Uses the workspace that the driver gives a cooperative launch (its address is in `%envreg1` and `%envreg2`, the
    barrier word 4 bytes into it), as cooperative groups do: block 0 adds 2^31 - (blocks - 1), the others 1, and all
    wait for the top bit to flip.
    """
    cute.arch.sync_threads()
    tx, ty, tz = cute.arch.thread_idx()
    if (tx == 0) & (ty == 0) & (tz == 0):
        word, old = _arrive()
        current = ld_acquire(word)
        while (old ^ current) >= 0:
            current = ld_acquire(word)
    cute.arch.sync_threads()


@cute.jit
def grid_arrive():
    """First half of `grid_sync`: what this block's first thread did before is seen by who has passed `grid_wait`, to
    which the result goes, an Int32 of that thread (`atom.add.release.gpu.global.u32`)."""
    cute.arch.sync_threads()
    tx, ty, tz = cute.arch.thread_idx()
    token = Int32(0)
    if (tx == 0) & (ty == 0) & (tz == 0):
        _, token = _arrive()
    return token


@cute.jit
def grid_wait(token):
    """Second half of `grid_sync`: wait until all blocks have passed `grid_arrive` (`ld.acquire.gpu.global.b32`). Work
    between the two hides the barrier's time."""
    tx, ty, tz = cute.arch.thread_idx()
    if (tx == 0) & (ty == 0) & (tz == 0):
        word = _grid_word()
        current = ld_acquire(word)
        while (token ^ current) >= 0:
            current = ld_acquire(word)
    cute.arch.sync_threads()


def _arrive():
    """(the barrier word of a cooperative launch, its old value), one thread of each block."""
    gx, gy, gz = cute.arch.grid_dim()
    bx, by, bz = cute.arch.block_idx()
    word = _grid_word()
    first = (bx == 0) & (by == 0) & (bz == 0)
    step = select(first, Int32(-0x80000000) - (gx * gy * gz - 1), Int32(1))
    place = Int64(word.toint())
    return word, asm("atom.add.release.gpu.global.u32 $0, [$1], $2;", (Int32,), [place, step], volatile=True)


def _grid_word():
    text = "{ .reg .b32 lo, hi; mov.b32 hi, %envreg1; mov.b32 lo, %envreg2; mov.b64 $0, {lo, hi}; }"
    base = asm(text, (Int64,), [], volatile=True)
    return cute.make_ptr(Int32, base + 4, cute.AddressSpace.gmem, assumed_align=4)


add_old_names(__name__)
