"""The compiled code's own runtime, as LLVM IR text: finding memory, lanes one by one, the loop over blocks and warps."""
# ruff: noqa: E501 (lines of IR)

from __future__ import annotations

# The context is an array of 64-bit words, one per name.
CONTEXT = (
    "regions", "region_count", "params", "params_size", "smem", "smem_size", "smem_shadow", "local", "local_shadow",
    "local_stride", "warp_memory", "warps", "warp_stride", "counts", "sites", "order", "alive", "tid_x", "tid_y", "tid_z",
    "ctaid_x", "ctaid_y", "ctaid_z", "ntid_x", "ntid_y", "ntid_z", "nctaid_x", "nctaid_y", "nctaid_z", "dynamic_smem",
    "crossed", "fuel", "scratch", "local_bytes",
)  # fmt: skip
SLOT = {name: k for k, name in enumerate(CONTEXT)}
REGION_WORDS = 5  # base, size, host address minus base, shadow address minus base (0: none), writable

# A warp's memory: the header below, then register slots.
ALIVE, STATUS, BARRIER, COUNT, NUMBER, PCS, REGISTERS = 0, 4, 8, 12, 16, 64, 192
READY, WAITING, DONE, BAIL = 0, 1, 2, 3

# Kinds of memory a site may access
GLOBAL, SHARED, LOCAL, GENERIC, PARAM = range(5)
KINDS = {"global": GLOBAL, "shared": SHARED, "local": LOCAL, "": GENERIC, "param": PARAM}


def context(name: str, kind: str = "i64") -> str:
    """Two lines that load a context word into %c.<name>."""
    return f"  %cp.{name} = getelementptr i64, ptr %ctx, i64 {SLOT[name]}\n  %c.{name} = load {kind}, ptr %cp.{name}\n"


def resolve(local_window: int) -> str:
    """@resolve(ctx, site, address, width, align mask, kind, thread, write) -> (host pointer or null, shadow or null)."""
    loads = "".join(
        context(n)
        for n in ("regions", "region_count", "params", "params_size", "smem", "smem_size", "smem_shadow", "local", "local_shadow",
                  "local_stride", "local_bytes")
    )  # fmt: skip
    return f"""
define internal {{ptr, ptr}} @resolve(ptr %ctx, ptr %site, i64 %addr, i64 %width, i64 %amask, i32 %kind, i64 %thread, i1 %write) noinline {{
entry:
{loads}
  %low = and i64 %addr, %amask
  %aligned = icmp eq i64 %low, 0
  br i1 %aligned, label %pick, label %fail
pick:
  switch i32 %kind, label %search [ i32 {SHARED}, label %shared i32 {LOCAL}, label %local i32 {GENERIC}, label %generic i32 {PARAM}, label %param ]
shared:
  %s.in = icmp ult i64 %addr, %c.smem_size
  %s.room = sub i64 %c.smem_size, %addr
  %s.fits = icmp uge i64 %s.room, %width
  %s.ok = and i1 %s.in, %s.fits
  %s.host = add i64 %c.smem, %addr
  %s.hasshadow = icmp ne i64 %c.smem_shadow, 0
  %s.sh = add i64 %c.smem_shadow, %addr
  %s.shadow = select i1 %s.hasshadow, i64 %s.sh, i64 0
  br i1 %s.ok, label %done, label %fail
generic:
  %g.window = lshr i64 %addr, 32
  %g.local = icmp eq i64 %g.window, {local_window >> 32}
  br i1 %g.local, label %genericlocal, label %search
genericlocal:
  %g.off = and i64 %addr, 4294967295
  br label %local
local:
  %l.addr = phi i64 [ %addr, %pick ], [ %g.off, %genericlocal ]
  %l.in = icmp ult i64 %l.addr, %c.local_bytes
  %l.room = sub i64 %c.local_bytes, %l.addr
  %l.fits = icmp uge i64 %l.room, %width
  %l.ok = and i1 %l.in, %l.fits
  %l.base = mul i64 %thread, %c.local_stride
  %l.off = add i64 %l.base, %l.addr
  %l.host = add i64 %c.local, %l.off
  %l.hasshadow = icmp ne i64 %c.local_shadow, 0
  %l.sh = add i64 %c.local_shadow, %l.off
  %l.shadow = select i1 %l.hasshadow, i64 %l.sh, i64 0
  br i1 %l.ok, label %done, label %fail
param:
  %p.in = icmp ult i64 %addr, %c.params_size
  %p.room = sub i64 %c.params_size, %addr
  %p.fits = icmp uge i64 %p.room, %width
  %p.ok1 = and i1 %p.in, %p.fits
  %p.read = xor i1 %write, true
  %p.ok = and i1 %p.ok1, %p.read
  %p.host = add i64 %c.params, %addr
  br i1 %p.ok, label %done, label %fail
search:
  %table = inttoptr i64 %c.regions to ptr
  br label %next
next:
  %i = phi i64 [ 0, %search ], [ %i.next, %skip ]
  %more = icmp ult i64 %i, %c.region_count
  br i1 %more, label %try, label %fail
try:
  %word = mul i64 %i, {REGION_WORDS}
  %entry.p = getelementptr i64, ptr %table, i64 %word
  %base = load i64, ptr %entry.p
  %size.p = getelementptr i64, ptr %entry.p, i64 1
  %size = load i64, ptr %size.p
  %off = sub i64 %addr, %base
  %in = icmp ult i64 %off, %size
  %room = sub i64 %size, %off
  %fits = icmp uge i64 %room, %width
  %hit = and i1 %in, %fits
  br i1 %hit, label %found, label %skip
skip:
  %i.next = add i64 %i, 1
  br label %next
found:
  %w.p = getelementptr i64, ptr %entry.p, i64 4
  %w = load i64, ptr %w.p
  %w.ok = icmp ne i64 %w, 0
  %w.no = xor i1 %write, true
  %allowed = or i1 %w.ok, %w.no
  br i1 %allowed, label %keep, label %fail
keep:
  call void @llvm.memcpy.p0.p0.i64(ptr %site, ptr %entry.p, i64 {8 * REGION_WORDS}, i1 false)
  %delta.p = getelementptr i64, ptr %entry.p, i64 2
  %delta = load i64, ptr %delta.p
  %host = add i64 %addr, %delta
  %shadow.p = getelementptr i64, ptr %entry.p, i64 3
  %shadow.d = load i64, ptr %shadow.p
  %hasshadow = icmp ne i64 %shadow.d, 0
  %sh = add i64 %shadow.d, %addr
  %shadow = select i1 %hasshadow, i64 %sh, i64 0
  br label %done
done:
  %r.host = phi i64 [ %s.host, %shared ], [ %l.host, %local ], [ %p.host, %param ], [ %host, %keep ]
  %r.shadow = phi i64 [ %s.shadow, %shared ], [ %l.shadow, %local ], [ 0, %param ], [ %shadow, %keep ]
  %r.h = inttoptr i64 %r.host to ptr
  %r.s = inttoptr i64 %r.shadow to ptr
  %r0 = insertvalue {{ptr, ptr}} poison, ptr %r.h, 0
  %r1 = insertvalue {{ptr, ptr}} %r0, ptr %r.s, 1
  ret {{ptr, ptr}} %r1
fail:
  ret {{ptr, ptr}} zeroinitializer
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @llvm.cttz.i32(i32, i1)
declare i32 @llvm.ctpop.i32(i32)
"""


_LANE_HEAD = """
define internal i1 @{name}(ptr %ctx, ptr %site, ptr %addrs, i32 %lanes, i64 %amask, ptr %data, i32 %kind, i64 %thread0{more}) noinline {{
entry:
  br label %next
next:
  %left = phi i32 [ %lanes, %entry ], [ %rest, %stored ]
  %empty = icmp eq i32 %left, 0
  br i1 %empty, label %good, label %lane
lane:
  %n = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %k = zext i32 %n to i64
  %addr.p = getelementptr i64, ptr %addrs, i64 %k
  %addr = load i64, ptr %addr.p
  %thread = add i64 %thread0, %k
  %found = call {{ptr, ptr}} @resolve(ptr %ctx, ptr %site, i64 %addr, i64 {width}, i64 %amask, i32 %kind, i64 %thread, i1 {write})
  %host = extractvalue {{ptr, ptr}} %found, 0
  %shadow = extractvalue {{ptr, ptr}} %found, 1
  %missing = icmp eq ptr %host, null
  br i1 %missing, label %bad, label %have
have:
  %untracked = icmp eq ptr %shadow, null
  br i1 %untracked, label %access, label %flags
"""
_LANE_TAIL = """
good:
  ret i1 true
bad:
  ret i1 false
}}
"""


VERIFY = """
define internal i1 @verify(i64 %shadow, i64 %total) noinline {
entry:
  %none = icmp eq i64 %shadow, 0
  br i1 %none, label %good, label %start
start:
  %p = inttoptr i64 %shadow to ptr
  br label %next
next:
  %i = phi i64 [ 0, %start ], [ %i64, %wide ], [ %i8, %words ], [ %i1, %byte.on ]
  %left = sub i64 %total, %i
  %q = getelementptr i8, ptr %p, i64 %i
  %more64 = icmp uge i64 %left, 64
  br i1 %more64, label %wide, label %narrow
wide:
  %v = load <8 x i64>, ptr %q, align 1
  %i64 = add i64 %i, 64
  %e = icmp ne <8 x i64> %v, splat (i64 72340172838076673)
  %eb = bitcast <8 x i1> %e to i8
  %ok64 = icmp eq i8 %eb, 0
  br i1 %ok64, label %next, label %bad
narrow:
  %more8 = icmp uge i64 %left, 8
  br i1 %more8, label %words, label %tail
words:
  %w = load i64, ptr %q, align 1
  %i8 = add i64 %i, 8
  %ok8 = icmp eq i64 %w, 72340172838076673
  br i1 %ok8, label %next, label %bad
tail:
  %more1 = icmp ne i64 %left, 0
  br i1 %more1, label %byte, label %good
byte:
  %f = load i8, ptr %q
  %i1 = add i64 %i, 1
  %ok1 = icmp eq i8 %f, 1
  br i1 %ok1, label %byte.on, label %bad
byte.on:
  br label %next
good:
  ret i1 true
bad:
  ret i1 false
}
"""

MARK = """
define internal void @mark(i64 %shadow, i64 %total) noinline {
entry:
  %none = icmp eq i64 %shadow, 0
  br i1 %none, label %done, label %set
set:
  %p = inttoptr i64 %shadow to ptr
  call void @llvm.memset.p0.i64(ptr %p, i8 1, i64 %total, i1 false)
  br label %done
done:
  ret void
}
"""


def _ones(width: int) -> int:
    return int.from_bytes(b"\1" * width, "little")


def lane_load(width: int) -> str:
    """@load<width>: each lane's bytes into data[lane * width]; false when a lane may not read."""
    t = f"i{8 * width}"
    return (_LANE_HEAD + """
flags:
  %f = load {t}, ptr %shadow, align 1
  %written = icmp eq {t} %f, {ones}
  br i1 %written, label %access, label %bad
access:
  %v = load {t}, ptr %host, align 1
  %at = mul i64 %k, {width}
  %to = getelementptr i8, ptr %data, i64 %at
  store {t} %v, ptr %to, align 1
  br label %stored
stored:
  br label %next
""" + _LANE_TAIL).format(name=f"load{width}", width=width, t=t, ones=_ones(width), write="false", more="")  # fmt: skip


def lane_store(width: int) -> str:
    """@store<width>: the reverse; what is written becomes initialised."""
    t = f"i{8 * width}"
    return (_LANE_HEAD + """
flags:
  store {t} {ones}, ptr %shadow, align 1
  br label %access
access:
  %at = mul i64 %k, {width}
  %from = getelementptr i8, ptr %data, i64 %at
  %v = load {t}, ptr %from, align 1
  store {t} %v, ptr %host, align 1
  br label %stored
stored:
  br label %next
""" + _LANE_TAIL).format(name=f"store{width}", width=width, t=t, ones=_ones(width), write="true", more="")  # fmt: skip


_ATOMIC_OPS = {
    "add": "  %new = add {t} %old, %x\n",
    "and": "  %new = and {t} %old, %x\n",
    "or": "  %new = or {t} %old, %x\n",
    "xor": "  %new = xor {t} %old, %x\n",
    "exch": "  %new = select i1 true, {t} %x, {t} %x\n",
    "inc": "  %q1 = add {t} %old, 1\n  %q2 = icmp uge {t} %old, %x\n  %new = select i1 %q2, {t} 0, {t} %q1\n",
    "dec": "  %q1 = sub {t} %old, 1\n  %q2 = icmp eq {t} %old, 0\n  %q3 = icmp ugt {t} %old, %x\n  %q4 = or i1 %q2, %q3\n"
           "  %new = select i1 %q4, {t} %x, {t} %q1\n",
    "cas": "  %c.p = getelementptr {t}, ptr %compares, i64 %k\n  %c = load {t}, ptr %c.p\n  %q1 = icmp eq {t} %old, %c\n"
           "  %new = select i1 %q1, {t} %x, {t} %old\n",
}  # fmt: skip


def lane_atomic(op: str, kind: str, width: int) -> tuple[str, str]:
    """(name, text) of the function that does one atomic lane by lane. Raises KeyError for what is not done here."""
    t = f"i{8 * width}"
    name = f"atomic.{op}.{kind}"
    if kind in ("f32", "f64") and op == "add":
        f = "float" if width == 4 else "double"
        nan = 0x7FFFFFFF if width == 4 else 0x7FF8000000000000
        body = (f"  %fo = bitcast {t} %old to {f}\n  %fx = bitcast {t} %x to {f}\n  %fs = fadd {f} %fo, %fx\n"
                f"  %fb = bitcast {f} %fs to {t}\n  %fn = fcmp uno {f} %fs, %fs\n")  # fmt: skip
        body += f"  %new = select i1 %fn, {t} {nan}, {t} %fb\n" if width == 4 else f"  %new = add {t} %fb, 0\n"
    elif op in ("min", "max") and kind[0] in "us":
        order = ("s" if kind[0] == "s" else "u") + ("lt" if op == "min" else "gt")
        body = f"  %q1 = icmp {order} {t} %x, %old\n  %new = select i1 %q1, {t} %x, {t} %old\n"
    elif kind in ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64") and op not in ("exch", "cas"):
        raise KeyError(op)
    else:
        body = _ATOMIC_OPS[op].format(t=t)
    check = (
        f"  %f = load {t}, ptr %shadow, align 1\n  %written = icmp eq {t} %f, {_ones(width)}\n"
        "  br i1 %written, label %access, label %bad\n"
        if op != "exch"
        else f"  store {t} {_ones(width)}, ptr %shadow, align 1\n  br label %access\n"
    )
    text = (_LANE_HEAD + "flags:\n" + check + """
access:
  %x.p = getelementptr {t}, ptr %operands, i64 %k
  %x = load {t}, ptr %x.p
  %old = load {t}, ptr %host, align 1
""" + body.replace("{", "{{").replace("}", "}}") + """
  store {t} %new, ptr %host, align 1
  %to = getelementptr {t}, ptr %data, i64 %k
  store {t} %old, ptr %to
  br label %stored
stored:
  br label %next
""" + _LANE_TAIL).format(name=name, width=width, t=t, write="true", more=", ptr %operands, ptr %compares")  # fmt: skip
    return name, text


def run_function() -> str:
    """@run(ctx, first, last) -> how many blocks were completed. Blocks run one after another, their warps in turn."""
    names = (
        "smem", "smem_size", "smem_shadow", "local_shadow", "local_stride", "warp_memory", "warps", "warp_stride", "order", "alive",
        "nctaid_x", "nctaid_y", "crossed",
    )  # fmt: skip
    loads = "".join(context(n) for n in names)
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
  %lbytes = mul i64 %threads, %c.local_stride
  br label %block
block:
  %b = phi i64 [ %first, %entry ], [ %b.next, %block.end ]
  %go = icmp ult i64 %b, %last
  br i1 %go, label %set, label %out
set:
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
  %iw.next = add i64 %iw, 1
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
  br i1 %bail, label %out, label %warp.end
warp.end:
  %state = phi i32 [ %ws, %warp.body ], [ %r, %warp.run ]
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
  %moff = mul i64 %m, %c.warp_stride
  %mp = getelementptr i8, ptr %memory, i64 %moff
  %ms.p = getelementptr i8, ptr %mp, i64 {STATUS}
  %ms = load i32, ptr %ms.p
  %mid.p = getelementptr i8, ptr %mp, i64 {BARRIER}
  %mid = load i32, ptr %mid.p
  %mw = icmp eq i32 %ms, {WAITING}
  %same = icmp eq i32 %mid, %lid
  %counts = and i1 %mw, %same
  br label %member.end
member.end:
  %c64 = zext i1 %counts to i64
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
  %old = load i64, ptr %cp.crossed
  %new = add i64 %old, 1
  store i64 %new, ptr %cp.crossed
  br label %free
free:
  %f = phi i64 [ 0, %release ], [ %f.next, %free.end ]
  %fmore = icmp ult i64 %f, %c.warps
  br i1 %fmore, label %free.body, label %round
free.body:
  %foff = mul i64 %f, %c.warp_stride
  %fp = getelementptr i8, ptr %memory, i64 %foff
  %fs.p = getelementptr i8, ptr %fp, i64 {STATUS}
  %fs = load i32, ptr %fs.p
  %fid.p = getelementptr i8, ptr %fp, i64 {BARRIER}
  %fid = load i32, ptr %fid.p
  %fw = icmp eq i32 %fs, {WAITING}
  %fsame = icmp eq i32 %fid, %lid
  %fgo = and i1 %fw, %fsame
  br i1 %fgo, label %free.it, label %free.end
free.it:
  store i32 {READY}, ptr %fs.p
  br label %free.end
free.end:
  %f.next = add i64 %f, 1
  br label %free
block.end:
  %b.next = add i64 %b, 1
  br label %block
out:
  ret i64 %b
}}
"""
