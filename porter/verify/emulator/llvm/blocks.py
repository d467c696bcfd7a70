"""The outer loops of compiled code, as LLVM IR text: blocks one after another, their warps in turn, barriers."""
# ruff: noqa: E501 (lines of IR)

from __future__ import annotations

from porter.verify.emulator.llvm.records import EPOCHS, RENUMBER
from porter.verify.emulator.llvm.runtime import (
    BAIL,
    BARRIER,
    COUNT,
    DONE,
    EPOCH,
    FLOOR,
    KNOWN,
    LAST,
    NUMBER,
    READY,
    REGISTERS,
    SLOT,
    STATUS,
    WAITING,
    context,
)

_NEVER = 0x7FFFFFFF  # knows all of a warp that is not there
_V = "<32 x i32>"


def _splat(name: str, value: str) -> str:
    return (
        f"  %{name}.one = insertelement {_V} poison, i32 {value}, i64 0\n"
        f"  %{name} = shufflevector {_V} %{name}.one, {_V} poison, <32 x i32> zeroinitializer\n"
    )


def _at_barrier(i: str) -> str:
    """%{i}p: the memory of warp %{i}; %{i}go: whether the warp waits at barrier %lid."""
    return f"""\
  %{i}off = mul i64 %{i}, %c.warp_stride
  %{i}p = getelementptr i8, ptr %memory, i64 %{i}off
  %{i}s.p = getelementptr i8, ptr %{i}p, i64 {STATUS}
  %{i}s = load i32, ptr %{i}s.p
  %{i}id.p = getelementptr i8, ptr %{i}p, i64 {BARRIER}
  %{i}id = load i32, ptr %{i}id.p
  %{i}w = icmp eq i32 %{i}s, {WAITING}
  %{i}same = icmp eq i32 %{i}id, %lid
  %{i}go = and i1 %{i}w, %{i}same
"""


# Epochs start above those of the blocks before; block.first comes from `block` and goes to `set`.
_FIRST = f"""
block.first:
  %epoch0 = load i64, ptr %cp.epoch0
  %worn = icmp uge i64 %epoch0, {RENUMBER}
  br i1 %worn, label %wait, label %block.clear
wait:
  store i64 1, ptr %cp.renumber
  br label %out
block.clear:
  store i64 %epoch0, ptr %cp.universal
  %e0 = trunc i64 %epoch0 to i32
{_splat("e0s", "%e0")}{_splat("warps0", "%warps32")}
  %there = icmp ult {_V} <{", ".join(f"i32 {k}" for k in range(32))}>, %warps0
  %known0 = select <32 x i1> %there, {_V} %e0s, {_V} splat (i32 {_NEVER})
  br label %set
"""

_INIT = f"""
  %ie.p = getelementptr i8, ptr %iwp, i64 {EPOCH}
  store i32 %e0, ptr %ie.p
  %if.p = getelementptr i8, ptr %iwp, i64 {FLOOR}
  store i32 %e0, ptr %if.p
  %ik.p = getelementptr i8, ptr %iwp, i64 {KNOWN}
  store {_V} %known0, ptr %ik.p, align 64
"""

# A warp that ends without an access since its last barrier: nobody has to know more of it.
_ENDED = f"""
warp.ended:
  %d.done = icmp eq i32 %r, {DONE}
  br i1 %d.done, label %ended, label %warp.end
ended:
  %d.last.p = getelementptr i8, ptr %wp, i64 {LAST}
  %d.last = load i32, ptr %d.last.p
  %d.row = getelementptr i8, ptr %wp, i64 {KNOWN}
  %d.own.p = getelementptr i32, ptr %d.row, i64 %w
  %d.own = load i32, ptr %d.own.p
  %d.clean = icmp ult i32 %d.last, %d.own
  br i1 %d.clean, label %forget, label %warp.end
forget:
  %g = phi i64 [ 0, %ended ], [ %g.next, %forget ]
  %g.off = mul i64 %g, %c.warp_stride
  %g.at = add i64 %g.off, {KNOWN}
  %g.row = getelementptr i8, ptr %memory, i64 %g.at
  %g.p = getelementptr i32, ptr %g.row, i64 %w
  store i32 {_NEVER}, ptr %g.p
  %g.next = add i64 %g, 1
  %g.more = icmp ult i64 %g.next, %c.warps
  br i1 %g.more, label %forget, label %warp.end
"""

# All that cross a barrier know what any of them knew, and take a common new epoch.
_JOIN = f"""
  br label %join
join:
  %j = phi i64 [ 0, %cross ], [ %j.next, %join.end ]
  %j.known = phi {_V} [ zeroinitializer, %cross ], [ %j.known.next, %join.end ]
  %j.epoch = phi i32 [ 0, %cross ], [ %j.epoch.next, %join.end ]
  %j.bits = phi i32 [ 0, %cross ], [ %j.bits.next, %join.end ]
  %jmore = icmp ult i64 %j, %c.warps
  br i1 %jmore, label %join.body, label %joined
join.body:
{_at_barrier("j")}  br i1 %jgo, label %join.it, label %join.end
join.it:
  %jk.p = getelementptr i8, ptr %jp, i64 {KNOWN}
  %jk = load {_V}, ptr %jk.p, align 64
  %jk.more = icmp ugt {_V} %jk, %j.known
  %jk.max = select <32 x i1> %jk.more, {_V} %jk, {_V} %j.known
  %je.p = getelementptr i8, ptr %jp, i64 {EPOCH}
  %je = load i32, ptr %je.p
  %je.more = icmp ugt i32 %je, %j.epoch
  %je.max = select i1 %je.more, i32 %je, i32 %j.epoch
  %j32 = trunc i64 %j to i32
  %jbit = shl i32 1, %j32
  %jbits = or i32 %j.bits, %jbit
  br label %join.end
join.end:
  %j.known.next = phi {_V} [ %j.known, %join.body ], [ %jk.max, %join.it ]
  %j.epoch.next = phi i32 [ %j.epoch, %join.body ], [ %je.max, %join.it ]
  %j.bits.next = phi i32 [ %j.bits, %join.body ], [ %jbits, %join.it ]
  %j.next = add i64 %j, 1
  br label %join
joined:
  %epoch.new = add i32 %j.epoch, 1
  %members = bitcast i32 %j.bits to <32 x i1>
{_splat("news", "%epoch.new")}
  %known.new = select <32 x i1> %members, {_V} %news, {_V} %j.known
  %floor.new = call i32 @llvm.vector.reduce.umin.v32i32({_V} %known.new)
  %everyone = icmp eq i64 %n, %running
  br i1 %everyone, label %all.know, label %free
all.know:
  %epoch.new64 = zext i32 %epoch.new to i64
  store i64 %epoch.new64, ptr %cp.universal
  br label %free
"""

_FREE = f"""
  %fe.p = getelementptr i8, ptr %fp, i64 {EPOCH}
  store i32 %epoch.new, ptr %fe.p
  %ff.p = getelementptr i8, ptr %fp, i64 {FLOOR}
  store i32 %floor.new, ptr %ff.p
  %fk.p = getelementptr i8, ptr %fp, i64 {KNOWN}
  store {_V} %known.new, ptr %fk.p, align 64
"""

# The next block starts above every epoch of this one. Epochs that did not fit make what was found worthless.
_LAST = f"""
block.end:
  br label %latest
latest:
  %t = phi i64 [ 0, %block.end ], [ %t.next, %latest ]
  %t.epoch = phi i32 [ 0, %block.end ], [ %t.max, %latest ]
  %t.off = mul i64 %t, %c.warp_stride
  %t.at = add i64 %t.off, {EPOCH}
  %t.p = getelementptr i8, ptr %memory, i64 %t.at
  %t.e = load i32, ptr %t.p
  %t.more = icmp ugt i32 %t.e, %t.epoch
  %t.max = select i1 %t.more, i32 %t.e, i32 %t.epoch
  %t.next = add i64 %t, 1
  %t.go = icmp ult i64 %t.next, %c.warps
  br i1 %t.go, label %latest, label %ended.block
ended.block:
  %t.fits = icmp ult i32 %t.max, {EPOCHS}
  br i1 %t.fits, label %block.next, label %out
block.next:
  %t.new = add i32 %t.max, 1
  %t.new64 = zext i32 %t.new to i64
  store i64 %t.new64, ptr %cp.epoch0
  %b.next = add i64 %b, 1
  br label %block
"""


def run_function(races: bool) -> str:
    """@run(ctx, first, last) -> how many blocks were completed. Blocks run one after another, their warps in turn."""
    names = (
        "smem", "smem_size", "smem_shadow", "local_shadow", "local_stride", "warp_memory", "warps", "warp_stride", "order", "alive",
        "nctaid_x", "nctaid_y", "crossed", "epoch0", "universal", "renumber", "fuel",
    )  # fmt: skip
    loads = "".join(context(n) for n in names)
    last = _LAST if races else "block.end:\n  %b.next = add i64 %b, 1\n  br label %block\n"
    return f"""
define i64 @run(ptr %ctx, i64 %first, i64 %last) {{
entry:
{loads}
  %px = getelementptr i64, ptr %ctx, i64 {SLOT["ctaid_x"]}
  %py = getelementptr i64, ptr %ctx, i64 {SLOT["ctaid_y"]}
  %pz = getelementptr i64, ptr %ctx, i64 {SLOT["ctaid_z"]}
  %order = inttoptr i64 %c.order to ptr
  %alive0 = inttoptr i64 %c.alive to ptr
  %memory = inttoptr i64 %c.warp_memory to ptr
  %smem = inttoptr i64 %c.smem to ptr
  %smem_shadow = inttoptr i64 %c.smem_shadow to ptr
  %track = icmp ne i64 %c.smem_shadow, 0
  %local_shadow = inttoptr i64 %c.local_shadow to ptr
  %ltrack = icmp ne i64 %c.local_shadow, 0
  %threads = mul i64 %c.warps, 32
  %warps32 = trunc i64 %c.warps to i32
  %lbytes = mul i64 %threads, %c.local_stride
  br label %block
block:
  %b = phi i64 [ %first, %entry ], [ %b.next, %{"block.next" if races else "block.end"} ]
  %go = icmp ult i64 %b, %last
  br i1 %go, label %{"block.first" if races else "set"}, label %out
{_FIRST if races else ""}set:
  %o.p = getelementptr i64, ptr %order, i64 %b
  %o = load i64, ptr %o.p
  %x = urem i64 %o, %c.nctaid_x
  %yz = udiv i64 %o, %c.nctaid_x
  %y = urem i64 %yz, %c.nctaid_y
  %z = udiv i64 %yz, %c.nctaid_y
  store i64 %x, ptr %px
  store i64 %y, ptr %py
  store i64 %z, ptr %pz
  call void @llvm.memset.p0.i64(ptr %smem, i8 0, i64 %c.smem_size, i1 false)
  br i1 %track, label %clear, label %clear2
clear:
  call void @llvm.memset.p0.i64(ptr %smem_shadow, i8 0, i64 %c.smem_size, i1 false)
  br label %clear2
clear2:
  br i1 %ltrack, label %clear3, label %init
clear3:
  call void @llvm.memset.p0.i64(ptr %local_shadow, i8 0, i64 %lbytes, i1 false)
  br label %init
init:
  %iw = phi i64 [ 0, %clear2 ], [ 0, %clear3 ], [ %iw.next, %init.body ]
  %imore = icmp ult i64 %iw, %c.warps
  br i1 %imore, label %init.body, label %round
init.body:
  %ioff = mul i64 %iw, %c.warp_stride
  %iwp = getelementptr i8, ptr %memory, i64 %ioff
  call void @llvm.memset.p0.i64(ptr %iwp, i8 0, i64 {REGISTERS}, i1 false)
  %ia.p = getelementptr i32, ptr %alive0, i64 %iw
  %ia = load i32, ptr %ia.p
  store i32 %ia, ptr %iwp
  %in.p = getelementptr i8, ptr %iwp, i64 {NUMBER}
  %in = trunc i64 %iw to i32
  store i32 %in, ptr %in.p
{_INIT if races else ""}  %iw.next = add i64 %iw, 1
  br label %init
round:
  br label %warp
warp:
  %w = phi i64 [ 0, %round ], [ %w.next, %warp.end ]
  %waiting = phi i64 [ 0, %round ], [ %waiting.next, %warp.end ]
  %running = phi i64 [ 0, %round ], [ %running.next, %warp.end ]
  %wmore = icmp ult i64 %w, %c.warps
  br i1 %wmore, label %warp.body, label %check
warp.body:
  %woff = mul i64 %w, %c.warp_stride
  %wp = getelementptr i8, ptr %memory, i64 %woff
  %ws.p = getelementptr i8, ptr %wp, i64 {STATUS}
  %ws = load i32, ptr %ws.p
  %ready = icmp eq i32 %ws, {READY}
  br i1 %ready, label %warp.run, label %warp.end
warp.run:
  %wn = trunc i64 %w to i32
  %r = call i32 @warp(ptr %ctx, ptr %wp, i32 %wn)
  store i32 %r, ptr %ws.p
  %bail = icmp eq i32 %r, {BAIL}
  br i1 %bail, label %out, label %warp.ended
{_ENDED if races else "warp.ended:" + chr(10) + "  br label %warp.end"}
warp.end:
  %state = phi i32 [ %ws, %warp.body ], [ %r, %warp.ended ]{", [ %r, %ended ], [ %r, %forget ]" if races else ""}
  %isw = icmp eq i32 %state, {WAITING}
  %isw64 = zext i1 %isw to i64
  %waiting.next = add i64 %waiting, %isw64
  %isd = icmp ne i32 %state, {DONE}
  %isd64 = zext i1 %isd to i64
  %running.next = add i64 %running, %isd64
  %w.next = add i64 %w, 1
  br label %warp
check:
  %none = icmp eq i64 %waiting, 0
  br i1 %none, label %block.end, label %leader
leader:
  ; release the barrier of the first waiting warp whose barrier is complete
  %l = phi i64 [ 0, %check ], [ %l.next, %leader.no ]
  %lmore = icmp ult i64 %l, %c.warps
  br i1 %lmore, label %leader.body, label %out
leader.body:
  %loff = mul i64 %l, %c.warp_stride
  %lp = getelementptr i8, ptr %memory, i64 %loff
  %ls.p = getelementptr i8, ptr %lp, i64 {STATUS}
  %ls = load i32, ptr %ls.p
  %lw = icmp eq i32 %ls, {WAITING}
  br i1 %lw, label %count, label %leader.no
leader.no:
  %l.next = add i64 %l, 1
  br label %leader
count:
  %lid.p = getelementptr i8, ptr %lp, i64 {BARRIER}
  %lid = load i32, ptr %lid.p
  %lc.p = getelementptr i8, ptr %lp, i64 {COUNT}
  %lc = load i32, ptr %lc.p
  br label %member
member:
  %m = phi i64 [ 0, %count ], [ %m.next, %member.end ]
  %n = phi i64 [ 0, %count ], [ %n.next, %member.end ]
  %mmore = icmp ult i64 %m, %c.warps
  br i1 %mmore, label %member.body, label %decide
member.body:
{_at_barrier("m")}  br label %member.end
member.end:
  %c64 = zext i1 %mgo to i64
  %n.next = add i64 %n, %c64
  %m.next = add i64 %m, 1
  br label %member
decide:
  %whole = icmp eq i32 %lc, 0
  %allhere = icmp eq i64 %n, %running
  %lanes = mul i64 %n, 32
  %lc64 = zext i32 %lc to i64
  %enough = icmp eq i64 %lanes, %lc64
  %complete = select i1 %whole, i1 %allhere, i1 %enough
  br i1 %complete, label %release, label %leader.no
release:
  ; a loop with a barrier in it may never end
  %fuel = load i64, ptr %cp.fuel
  %fuel.left = sub i64 %fuel, %threads
  store i64 %fuel.left, ptr %cp.fuel
  %fuel.out = icmp slt i64 %fuel.left, 0
  br i1 %fuel.out, label %out, label %cross
cross:
  %old = load i64, ptr %cp.crossed
  %new = add i64 %old, 1
  store i64 %new, ptr %cp.crossed
{_JOIN if races else "  br label %free"}
free:
  %f = phi i64 {"[ 0, %joined ], [ 0, %all.know ]" if races else "[ 0, %cross ]"}, [ %f.next, %free.end ]
  %fmore = icmp ult i64 %f, %c.warps
  br i1 %fmore, label %free.body, label %round
free.body:
{_at_barrier("f")}  br i1 %fgo, label %free.it, label %free.end
free.it:
  store i32 {READY}, ptr %fs.p
{_FREE if races else ""}  br label %free.end
free.end:
  %f.next = add i64 %f, 1
  br label %free
{last}
out:
  ret i64 %b
}}
"""
