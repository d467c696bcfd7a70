"""The compiled code's own runtime, as LLVM IR text: finding memory, lanes one by one, the loop over blocks and warps."""
# ruff: noqa: E501 (lines of IR)

from __future__ import annotations

from porter.verify.emulator.memory.layout import SHARED_WINDOW

# The context is an array of 64-bit words, one per name.
CONTEXT = (
    "regions", "region_count", "params", "params_size", "smem", "smem_size", "smem_shadow", "local", "local_shadow",
    "local_stride", "warp_memory", "warps", "warp_stride", "counts", "sites", "order", "alive", "tid_x", "tid_y", "tid_z",
    "ctaid_x", "ctaid_y", "ctaid_z", "ntid_x", "ntid_y", "ntid_z", "nctaid_x", "nctaid_y", "nctaid_z", "dynamic_smem",
    "crossed", "fuel", "scratch", "local_bytes",
    # races: where a block's epochs start, what all of it knows, records of shared memory, none, and "renumber them first"
    "epoch0", "universal", "smem_race", "smem_race_delta", "smem_race_form", "no_race", "no_race_delta", "no_race_form",
    "renumber",
)  # fmt: skip
SLOT = {name: k for k, name in enumerate(CONTEXT)}
# base, size, host address minus base, shadow address minus base (0: none), writable; address of the records of writes
# (0: none), distance to those of reads, log2 of the granule (+ 256 for shared memory)
REGION_WORDS = 8
RACE_WORD = 5

# A warp's memory: the header below, then register slots. For races: its epoch, that of its last access, what it knows
# of every warp, and the least of that.
ALIVE, STATUS, BARRIER, COUNT, NUMBER, EPOCH, LAST, FLOOR = range(0, 32, 4)
PCS, KNOWN, REGISTERS = 64, 192, 320
READY, WAITING, DONE, BAIL = 0, 1, 2, 3

# Kinds of memory a site may access
GLOBAL, SHARED, LOCAL, GENERIC, PARAM = range(5)
KINDS = {"global": GLOBAL, "shared": SHARED, "local": LOCAL, "": GENERIC, "param": PARAM}


def context(name: str, kind: str = "i64") -> str:
    """Two lines that load a context word into %c.<name>."""
    return f"  %cp.{name} = getelementptr i64, ptr %ctx, i64 {SLOT[name]}\n  %c.{name} = load {kind}, ptr %cp.{name}\n"


def resolve(local_window: int) -> str:
    """@resolve(ctx, site, address, width, align mask, kind, thread, write) -> (host pointer or null, shadow or null,
    the three words about races, offset from the start of the memory)."""
    loads = "".join(
        context(n)
        for n in ("regions", "region_count", "params", "params_size", "smem", "smem_size", "smem_shadow", "local", "local_shadow",
                  "local_stride", "local_bytes")
    )  # fmt: skip
    return f"""
define internal {{ptr, ptr, ptr, i64}} @resolve(ptr %ctx, ptr %site, i64 %addr, i64 %width, i64 %amask, i32 %kind, i64 %thread, i1 %write) noinline {{
entry:
{loads}
  %s.triple = getelementptr i64, ptr %ctx, i64 {SLOT["smem_race"]}
  %l.triple = getelementptr i64, ptr %ctx, i64 {SLOT["no_race"]}
  %g.triple = getelementptr i64, ptr %site, i64 {RACE_WORD}
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
  %r.triple = phi ptr [ %s.triple, %shared ], [ %l.triple, %local ], [ %l.triple, %param ], [ %g.triple, %keep ]
  %r.offset = phi i64 [ %addr, %shared ], [ 0, %local ], [ 0, %param ], [ %off, %keep ]
  %r.h = inttoptr i64 %r.host to ptr
  %r.s = inttoptr i64 %r.shadow to ptr
  %r0 = insertvalue {{ptr, ptr, ptr, i64}} poison, ptr %r.h, 0
  %r1 = insertvalue {{ptr, ptr, ptr, i64}} %r0, ptr %r.s, 1
  %r2 = insertvalue {{ptr, ptr, ptr, i64}} %r1, ptr %r.triple, 2
  %r3 = insertvalue {{ptr, ptr, ptr, i64}} %r2, i64 %r.offset, 3
  ret {{ptr, ptr, ptr, i64}} %r3
fail:
  ret {{ptr, ptr, ptr, i64}} zeroinitializer
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @llvm.cttz.i32(i32, i1)
declare i32 @llvm.ctpop.i32(i32)
"""


_LANE_HEAD = """
define internal i1 @{name}(ptr %ctx, ptr %wp, ptr %site, ptr %addrs, i32 %lanes, i64 %amask, ptr %data, i32 %kind, i64 %thread0{more}) noinline {{
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
  %found = call {{ptr, ptr, ptr, i64}} @resolve(ptr %ctx, ptr %site, i64 %addr, i64 {width}, i64 %amask, i32 %kind, i64 %thread, i1 {write})
  %host = extractvalue {{ptr, ptr, ptr, i64}} %found, 0
  %shadow = extractvalue {{ptr, ptr, ptr, i64}} %found, 1
  %triple = extractvalue {{ptr, ptr, ptr, i64}} %found, 2
  %offset = extractvalue {{ptr, ptr, ptr, i64}} %found, 3
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


def _race(kind: str, width: int, mark: int | None, same: str = "") -> str:
    """The race check of one lane, `mark` the flags of its record (None: no check)."""
    if mark is None:
        return ""
    return (
        f"  %who.t = trunc i64 %thread to i32\n  %who = or i32 %who.t, {mark}\n"
        f"  %calm = call i1 @lane.{kind}(ptr %ctx, ptr %wp, ptr %triple, i64 %offset, i64 {width}, i32 %who{same})\n"
        "  br i1 %calm, label %calmed, label %bad\ncalmed:\n"
    )


def _named(name: str, mark: int | None) -> str:
    return name if mark is None else f"{name}.race{mark}"


def lane_load(width: int, mark: int | None) -> tuple[str, str]:
    """(name, text) of the function that copies each lane's bytes to data[lane * width]; false when a lane may not read."""
    t, name = f"i{8 * width}", _named(f"load{width}", mark)
    return name, (_LANE_HEAD + """
flags:
  %f = load {t}, ptr %shadow, align 1
  %written = icmp eq {t} %f, {ones}
  br i1 %written, label %access, label %bad
access:
{race}  %v = load {t}, ptr %host, align 1
  %at = mul i64 %k, {width}
  %to = getelementptr i8, ptr %data, i64 %at
  store {t} %v, ptr %to, align 1
  br label %stored
stored:
  br label %next
""" + _LANE_TAIL).format(
        name=name, width=width, t=t, ones=_ones(width), write="false", more="", race=_race("read", width, mark)
    )  # fmt: skip


def lane_store(width: int, mark: int | None) -> tuple[str, str]:
    """The reverse; what is written becomes initialised."""
    t, name = f"i{8 * width}", _named(f"store{width}", mark)
    before = "" if mark is None else f"  %old = load {t}, ptr %host, align 1\n  %same = icmp eq {t} %old, %v\n"
    return name, (_LANE_HEAD + """
flags:
  store {t} {ones}, ptr %shadow, align 1
  br label %access
access:
  %at = mul i64 %k, {width}
  %from = getelementptr i8, ptr %data, i64 %at
  %v = load {t}, ptr %from, align 1
{race}  store {t} %v, ptr %host, align 1
  br label %stored
stored:
  br label %next
""" + _LANE_TAIL).format(
        name=name, width=width, t=t, ones=_ones(width), write="true", more="",
        race=before + _race("write", width, mark, ", i1 %same"),
    )  # fmt: skip


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


def _flushed(to: str, x: str) -> str:
    """Lines that give %<to>: the f32 bits %<x>, without subnormals if %flush."""
    return (
        f"  %{to}.e = and i32 %{x}, {0x7F800000}\n  %{to}.0 = icmp eq i32 %{to}.e, 0\n  %{to}.s = and i32 %{x}, {-1 << 31}\n"
        f"  %{to}.f = and i1 %{to}.0, %flush\n  %{to} = select i1 %{to}.f, i32 %{to}.s, i32 %{x}\n"
    )


# the add of f32 flushes subnormals in global memory, see atomics.flushing_add
_FLUSHED_INPUTS = (
    f"  %isglobal = icmp eq i32 %kind, {GLOBAL}\n  %isgeneric = icmp eq i32 %kind, {GENERIC}\n"
    f"  %below = icmp ult i64 %addr, {SHARED_WINDOW}\n  %generic.flush = and i1 %isgeneric, %below\n"
    "  %flush = or i1 %isglobal, %generic.flush\n" + _flushed("fi", "old") + _flushed("fj", "x")
)
_FLUSHED_RESULT = _flushed("fr", "fb")


def lane_atomic(op: str, kind: str, width: int, mark: int | None) -> tuple[str, str]:
    """(name, text) of the function that does one atomic lane by lane. Raises KeyError for what is not done here."""
    t = f"i{8 * width}"
    name = _named(f"atomic.{op}.{kind}", mark)
    if kind in ("f32", "f64") and op == "add":
        f = "float" if width == 4 else "double"
        nan = 0x7FFFFFFF if width == 4 else 0x7FF8000000000000
        body = _FLUSHED_INPUTS if kind == "f32" else f"  %fi = add {t} %old, 0\n  %fj = add {t} %x, 0\n"
        body += (f"  %fo = bitcast {t} %fi to {f}\n  %fx = bitcast {t} %fj to {f}\n  %fs = fadd {f} %fo, %fx\n"
                 f"  %fb = bitcast {f} %fs to {t}\n  %fn = fcmp uno {f} %fs, %fs\n")  # fmt: skip
        body += (
            f"{_FLUSHED_RESULT}  %new = select i1 %fn, {t} {nan}, {t} %fr\n"
            if width == 4
            else f"  %new = add {t} %fb, 0\n"
        )
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
{race}  %x.p = getelementptr {t}, ptr %operands, i64 %k
  %x = load {t}, ptr %x.p
  %old = load {t}, ptr %host, align 1
""" + body.replace("{", "{{").replace("}", "}}") + """
  store {t} %new, ptr %host, align 1
  %to = getelementptr {t}, ptr %data, i64 %k
  store {t} %old, ptr %to
  br label %stored
stored:
  br label %next
""" + _LANE_TAIL).format(
        name=name, width=width, t=t, write="true", more=", ptr %operands, ptr %compares",
        race=_race("write", width, mark, ", i1 false"),
    )  # fmt: skip
    return name, text


# 0 where lanes that are here and name each other have the same mask, else 1
MASKS_AGREE = """
define internal i32 @masks_agree(<32 x i32> %masks, i32 %here) {
entry:
  br label %next
next:
  %left = phi i32 [ %here, %entry ], [ %rest, %one ]
  %none = icmp eq i32 %left, 0
  br i1 %none, label %agree, label %one
one:
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %mask = extractelement <32 x i32> %masks, i32 %lane
  %named = and i32 %mask, %here
  %first = insertelement <32 x i32> poison, i32 %mask, i32 0
  %all = shufflevector <32 x i32> %first, <32 x i32> poison, <32 x i32> zeroinitializer
  %equal = icmp eq <32 x i32> %masks, %all
  %bits = bitcast <32 x i1> %equal to i32
  %same = and i32 %bits, %here
  %other = xor i32 %same, -1
  %rest = and i32 %left, %other
  %fine = icmp eq i32 %same, %named
  br i1 %fine, label %next, label %part
agree:
  ret i32 0
part:
  ret i32 1
}
"""
