"""The race check of compiled code, as LLVM IR text; records.py says how it works."""
# ruff: noqa: E501 (lines of IR)

from __future__ import annotations

from porter.verify.emulator.llvm.records import (
    AFTER_WEAK,
    FLAGS,
    FOREIGN,
    LANE,
    LANES,
    SHIFT,
    STRONG,
    THREAD,
    WARP_BITS,
    WARPS,
)
from porter.verify.emulator.llvm.runtime import EPOCH, FLOOR, KNOWN, LAST, SLOT

_EPOCH_MASK = (1 << 32) - 1 - FLAGS - (1 << 32)  # as i32
_NOT_STRONG = -1 - (STRONG | AFTER_WEAK)

# what both widths of check begin with: where the records are, what is foreign, this warp's epoch
_HEAD = f"""
  %race = load i64, ptr %triple
  %untracked = icmp eq i64 %race, 0
  br i1 %untracked, label %good, label %start
start:
  %delta.p = getelementptr i64, ptr %triple, i64 1
  %delta = load i64, ptr %delta.p
  %form.p = getelementptr i64, ptr %triple, i64 2
  %form = load i64, ptr %form.p
  %shift = and i64 %form, 255
  %shared64 = lshr i64 %form, 8
  %shared = icmp ne i64 %shared64, 0
  %e0.p = getelementptr i64, ptr %ctx, i64 {SLOT["epoch0"]}
  %e0.64 = load i64, ptr %e0.p
  %e0.32 = trunc i64 %e0.64 to i32
  %e0 = shl i32 %e0.32, {SHIFT}
  %low = select i1 %shared, i32 0, i32 %e0
  %epoch.p = getelementptr i8, ptr %wp, i64 {EPOCH}
  %epoch = load i32, ptr %epoch.p
  %last.p = getelementptr i8, ptr %wp, i64 {LAST}
  store i32 %epoch, ptr %last.p
  %stamp = shl i32 %epoch, {SHIFT}
  %first = lshr i64 %offset, %shift
  %first4 = shl i64 %first, 2
  %w.at = add i64 %race, %first4
  %w.base = inttoptr i64 %w.at to ptr
  %r.at = add i64 %w.at, %delta
  %r.base = inttoptr i64 %r.at to ptr
"""

SCALAR = f"""
define internal i1 @ordered(ptr %wp, i32 %rec, i32 %me, i32 %low) {{
entry:
  %none = icmp eq i32 %rec, 0
  br i1 %none, label %yes, label %some
some:
  %foreign = icmp ult i32 %rec, %low
  br i1 %foreign, label %no, label %here
here:
  %e = lshr i32 %rec, {SHIFT}
  %many.b = and i32 %rec, {WARPS}
  %many = icmp ne i32 %many.b, 0
  br i1 %many, label %all, label %single
all:
  %floor.p = getelementptr i8, ptr %wp, i64 {FLOOR}
  %floor = load i32, ptr %floor.p
  %below = icmp ult i32 %e, %floor
  ret i1 %below
single:
  %x = xor i32 %rec, %me
  %xw = and i32 %x, {WARP_BITS}
  %mine = icmp eq i32 %xw, 0
  br i1 %mine, label %own, label %other
own:
  %xe = lshr i32 %x, {SHIFT}
  %earlier = icmp ne i32 %xe, 0
  %xl = and i32 %x, {LANE}
  %either = or i32 %rec, %me
  %several = and i32 %either, {LANES}
  %bits = or i32 %xl, %several
  %self = icmp eq i32 %bits, 0
  %fine = or i1 %earlier, %self
  ret i1 %fine
other:
  %warp.b = and i32 %rec, {WARP_BITS}
  %warp = lshr i32 %warp.b, 5
  %column = zext i32 %warp to i64
  %row = getelementptr i8, ptr %wp, i64 {KNOWN}
  %known.p = getelementptr i32, ptr %row, i64 %column
  %known = load i32, ptr %known.p
  %told = icmp ult i32 %e, %known
  ret i1 %told
yes:
  ret i1 true
no:
  ret i1 false
}}

define internal i1 @both.strong(i32 %rec, i32 %me) {{
  %both = and i32 %rec, %me
  %s = and i32 %both, {STRONG}
  %strong = icmp ne i32 %s, 0
  %a = and i32 %rec, {AFTER_WEAK}
  %clean = icmp eq i32 %a, 0
  %x = xor i32 %rec, %me
  %xw = and i32 %x, {WARP_BITS | WARPS}
  %mine = icmp eq i32 %xw, 0
  %fine = or i1 %clean, %mine
  %r = and i1 %strong, %fine
  ret i1 %r
}}

; may a record that this access is ordered behind be forgotten, when the access is strong?
define internal i1 @forgotten(ptr %ctx, i32 %rec, i32 %me) {{
  %m = and i32 %me, {STRONG}
  %weak = icmp eq i32 %m, 0
  %none = icmp eq i32 %rec, 0
  %sa = and i32 %rec, {STRONG | AFTER_WEAK}
  %strong = icmp eq i32 %sa, {STRONG}
  %u.p = getelementptr i64, ptr %ctx, i64 {SLOT["universal"]}
  %u64 = load i64, ptr %u.p
  %u = trunc i64 %u64 to i32
  %e = lshr i32 %rec, {SHIFT}
  %old = icmp ult i32 %e, %u
  %a = or i1 %weak, %none
  %b = or i1 %strong, %old
  %r = or i1 %a, %b
  ret i1 %r
}}

; the record of an access that is ordered behind `rec`
define internal i32 @succeed(ptr %ctx, i32 %rec, i32 %me) {{
entry:
  %free = call i1 @forgotten(ptr %ctx, i32 %rec, i32 %me)
  br i1 %free, label %plain, label %keep
plain:
  ret i32 %me
keep:
  %x = xor i32 %rec, %me
  %xw = and i32 %x, {WARP_BITS | WARPS}
  %mine = icmp eq i32 %xw, 0
  %after = or i32 %me, {AFTER_WEAK}
  %weak = and i32 %me, {_NOT_STRONG}
  %r = select i1 %mine, i32 %after, i32 %weak
  ret i32 %r
}}

; the record of several accesses that are not ordered
define internal i32 @join(i32 %rec, i32 %me, i32 %low) {{
entry:
  %both = and i32 %rec, %me
  %strong = and i32 %both, {STRONG}
  %either = or i32 %rec, %me
  %after = and i32 %either, {AFTER_WEAK}
  %clean = icmp eq i32 %after, 0
  %strong.c = select i1 %clean, i32 %strong, i32 0
  %foreign = icmp ult i32 %rec, %low
  br i1 %foreign, label %away, label %here
away:
  %f = or i32 %strong.c, {FOREIGN}
  ret i32 %f
here:
  %x = xor i32 %rec, %me
  %xw = and i32 %x, {WARP_BITS | WARPS}
  %mine = icmp eq i32 %xw, 0
  br i1 %mine, label %own, label %other
own:
  %base = and i32 %me, {_NOT_STRONG}
  %l0 = or i32 %base, {LANES}
  %l1 = or i32 %l0, %strong
  %l2 = or i32 %l1, %after
  ret i32 %l2
other:
  %e1 = and i32 %rec, {_EPOCH_MASK}
  %e2 = and i32 %me, {_EPOCH_MASK}
  %later = icmp ugt i32 %e1, %e2
  %e = select i1 %later, i32 %e1, i32 %e2
  %m0 = or i32 %e, {WARPS}
  %m1 = or i32 %m0, %strong.c
  ret i32 %m1
}}

define internal i1 @race.read(ptr %ctx, ptr %wp, ptr %wrec, ptr %rrec, i32 %me, i32 %low) {{
entry:
  %w = load i32, ptr %wrec
  %w.o = call i1 @ordered(ptr %wp, i32 %w, i32 %me, i32 %low)
  %w.s = call i1 @both.strong(i32 %w, i32 %me)
  %ok = or i1 %w.o, %w.s
  br i1 %ok, label %readers, label %bad
readers:
  %r = load i32, ptr %rrec
  %r.o = call i1 @ordered(ptr %wp, i32 %r, i32 %me, i32 %low)
  br i1 %r.o, label %alone, label %more
alone:
  %n1 = call i32 @succeed(ptr %ctx, i32 %r, i32 %me)
  store i32 %n1, ptr %rrec
  ret i1 true
more:
  %n2 = call i32 @join(i32 %r, i32 %me, i32 %low)
  store i32 %n2, ptr %rrec
  ret i1 true
bad:
  ret i1 false
}}

; %same: the write leaves the memory as it is
define internal i1 @race.write(ptr %ctx, ptr %wp, ptr %wrec, ptr %rrec, i32 %me, i32 %low, i1 %same) {{
entry:
  %r = load i32, ptr %rrec
  %r.o = call i1 @ordered(ptr %wp, i32 %r, i32 %me, i32 %low)
  %r.s = call i1 @both.strong(i32 %r, i32 %me)
  %r.ok = or i1 %r.o, %r.s
  br i1 %r.ok, label %writers, label %bad
writers:
  %w = load i32, ptr %wrec
  %w.o = call i1 @ordered(ptr %wp, i32 %w, i32 %me, i32 %low)
  br i1 %w.o, label %alone, label %unordered
unordered:
  %w.s = call i1 @both.strong(i32 %w, i32 %me)
  %w.ok = or i1 %w.s, %same
  br i1 %w.ok, label %more, label %bad
alone:
  %n1 = call i32 @succeed(ptr %ctx, i32 %w, i32 %me)
  br label %put
more:
  %n2 = call i32 @join(i32 %w, i32 %me, i32 %low)
  br label %put
put:
  %n = phi i32 [ %n1, %alone ], [ %n2, %more ]
  store i32 %n, ptr %wrec
  %free = call i1 @forgotten(ptr %ctx, i32 %r, i32 %me)
  %clear = and i1 %free, %r.o
  br i1 %clear, label %forget, label %done
forget:
  store i32 0, ptr %rrec
  br label %done
done:
  ret i1 true
bad:
  ret i1 false
}}
"""


def _lane(kind: str, more: str, passed: str) -> str:
    return f"""
define internal i1 @lane.{kind}(ptr %ctx, ptr %wp, ptr %triple, i64 %offset, i64 %width, i32 %who{more}) noinline {{
entry:{_HEAD}
  %me = or i32 %stamp, %who
  %n0 = lshr i64 %width, %shift
  %small = icmp eq i64 %n0, 0
  %n = select i1 %small, i64 1, i64 %n0
  br label %next
next:
  %i = phi i64 [ 0, %start ], [ %i.next, %step ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %check, label %good
check:
  %w.p = getelementptr i32, ptr %w.base, i64 %i
  %r.p = getelementptr i32, ptr %r.base, i64 %i
  %ok = call i1 @race.{kind}(ptr %ctx, ptr %wp, ptr %w.p, ptr %r.p, i32 %me, i32 %low{passed})
  br i1 %ok, label %step, label %bad
step:
  %i.next = add i64 %i, 1
  br label %next
good:
  ret i1 true
bad:
  ret i1 false
}}
"""


# one lane's access of `width` bytes, %who: its thread and flags; false where a race cannot be excluded
LANE_CHECKS = _lane("read", "", "") + _lane("write", ", i1 %same", ", i1 %same")

_V = "<8 x i32>"


def _splat(name: str, value: str) -> str:
    return (
        f"  %{name}.one = insertelement {_V} poison, i32 {value}, i64 0\n"
        f"  %{name} = shufflevector {_V} %{name}.one, {_V} poison, <8 x i32> zeroinitializer\n"
    )


def _fine(x: str) -> str:
    """%<x>.ok: nobody, behind a barrier, or this warp's own earlier or same-lane access; %<x>.samewarp beside it."""
    return f"""
  %{x} = load {_V}, ptr %{x}.p, align 4
  %{x}.none = icmp eq {_V} %{x}, zeroinitializer
  %{x}.d = sub {_V} %{x}, %lows
  %{x}.below = icmp ult {_V} %{x}.d, %span
  %{x}.x = xor {_V} %{x}, %me
  %{x}.xw = and {_V} %{x}.x, splat (i32 {WARP_BITS | WARPS})
  %{x}.own = icmp eq {_V} %{x}.xw, zeroinitializer
  %{x}.here = icmp uge {_V} %{x}, %lows
  %{x}.samewarp = and <8 x i1> %{x}.own, %{x}.here
  %{x}.xe = lshr {_V} %{x}.x, splat (i32 {SHIFT})
  %{x}.earlier = icmp ne {_V} %{x}.xe, zeroinitializer
  %{x}.xl = and {_V} %{x}.x, splat (i32 {LANE | LANES})
  %{x}.self = icmp eq {_V} %{x}.xl, zeroinitializer
  %{x}.either = or <8 x i1> %{x}.earlier, %{x}.self
  %{x}.mine = and <8 x i1> %{x}.samewarp, %{x}.either
  %{x}.nb = or <8 x i1> %{x}.none, %{x}.below
  %{x}.ok = or <8 x i1> %{x}.nb, %{x}.mine
"""


def _all(x: str) -> str:
    return f"  %{x}.bits = bitcast <8 x i1> %{x}.ok to i8\n  %{x}.all = icmp eq i8 %{x}.bits, -1\n"


def _row(kind: str) -> str:
    head = f"""
define internal i1 @row.{kind}(ptr %ctx, ptr %wp, ptr %triple, i64 %offset, i64 %total, i32 %wlog, i32 %thread) noinline {{
entry:{_HEAD}
  %floor.p = getelementptr i8, ptr %wp, i64 {FLOOR}
  %floor0 = load i32, ptr %floor.p
  %floor = shl i32 %floor0, {SHIFT}
  %span0 = sub i32 %floor, %low
  %who = or i32 %stamp, %thread
  %shift32 = trunc i64 %shift to i32
  %per = sub i32 %wlog, %shift32
  %n = lshr i64 %total, %shift
{_splat("lows", "%low")}{_splat("span", "%span0")}{_splat("base", "%who")}{_splat("pers", "%per")}
  br label %next
next:
  %i = phi i64 [ 0, %start ], [ %i.next, %step ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %check, label %good
check:
  %i32 = trunc i64 %i to i32
{_splat("is", "%i32")}
  %idx = add {_V} %is, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %lane = lshr {_V} %idx, %pers
  %me = add {_V} %base, %lane
  %w.p = getelementptr i32, ptr %w.base, i64 %i
  %r.p = getelementptr i32, ptr %r.base, i64 %i
{_fine("w")}{_fine("r")}{_all("w")}"""
    if kind == "read":
        body = f"""
  br i1 %w.all, label %put, label %bad
put:
  %foreign = icmp ult {_V} %r, %lows
  %several = or {_V} %me, splat (i32 {LANES})
  %e1 = and {_V} %r, splat (i32 {_EPOCH_MASK})
  %e2 = and {_V} %me, splat (i32 {_EPOCH_MASK})
  %later = icmp ugt {_V} %e1, %e2
  %e = select <8 x i1> %later, {_V} %e1, {_V} %e2
  %many = or {_V} %e, splat (i32 {WARPS})
  %n1 = select <8 x i1> %r.samewarp, {_V} %several, {_V} %many
  %n2 = select <8 x i1> %foreign, {_V} splat (i32 {FOREIGN}), {_V} %n1
  %n3 = select <8 x i1> %r.ok, {_V} %me, {_V} %n2
  store {_V} %n3, ptr %r.p, align 4
  br label %step
"""
    else:
        body = f"""{_all("r")}
  %both = and i1 %w.all, %r.all
  br i1 %both, label %put, label %bad
put:
  store {_V} %me, ptr %w.p, align 4
  store {_V} zeroinitializer, ptr %r.p, align 4
  br label %step
"""
    tail = """step:
  %i.next = add i64 %i, 8
  br label %next
good:
  ret i1 true
bad:
  ret i1 false
}
"""
    return head + body + tail


# weak accesses of consecutive threads from %thread on, 1 << wlog bytes each; false: look at each lane
ROW_CHECKS = _row("read") + _row("write")
assert THREAD == LANE | WARP_BITS
