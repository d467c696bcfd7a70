"""What compiled code, its runtime in C and Python share: the words of a launch, a warp's memory, kinds of memory.

`runtime/constants.h` is made from this module; `runtime/layout.h` has the same as structures.
"""

from __future__ import annotations

from porter.verify.emulator.llvm import records
from porter.verify.emulator.memory.layout import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS

# A launch (Context in C) is an array of 64-bit words, one per name.
CONTEXT = (
    "regions", "region_count", "params", "params_size", "smem", "smem_size", "smem_shadow", "local", "local_shadow",
    "local_stride", "warp_memory", "warps", "warp_stride", "counts", "sites", "order", "alive",
    "tid_x", "tid_y", "tid_z",
    "ctaid_x", "ctaid_y", "ctaid_z", "ntid_x", "ntid_y", "ntid_z", "nctaid_x", "nctaid_y", "nctaid_z", "dynamic_smem",
    "crossed", "fuel", "scratch", "local_bytes",
    # races: are they looked for, where a block's epochs start, what all of it knows, records of shared memory, none,
    # and "renumber them first"
    "races", "epoch0", "universal", "smem_records.writes", "smem_records.to_reads", "smem_records.form",
    "no_records.writes", "no_records.to_reads", "no_records.form", "renumber",
)  # fmt: skip
SLOT = {name: k for k, name in enumerate(CONTEXT)}

# base, size, host address minus base, shadow address minus base (0: none), writable; address of the records of writes
# (0: none), distance to those of reads, log2 of the granule (+ SHARED_FORM for shared memory)
REGION_WORDS = 8
RACE_WORD = 5
SHARED_FORM = 1 << 8

# A warp's memory: the header below, then register slots. For races: its epoch, that of its last access, what it knows
# of every warp, and the least of that.
WARP = {
    "alive": 0, "status": 4, "barrier": 8, "count": 12, "number": 16, "epoch": 20, "last": 24, "floor": 28,
    "pcs": 64, "known": 192,
}  # fmt: skip
STATUS, BARRIER, COUNT, EPOCH, LAST, PCS = (WARP[n] for n in ("status", "barrier", "count", "epoch", "last", "pcs"))
REGISTERS = 320
READY, WAITING, DONE, BAIL = 0, 1, 2, 3

# Kinds of memory a site may access
GLOBAL, SHARED, LOCAL, GENERIC, PARAM = range(5)
KINDS = {"global": GLOBAL, "shared": SHARED, "local": LOCAL, "": GENERIC, "param": PARAM}

# What an atomic does, see combine32 in runtime/lanes.c
ATOMIC_OPS = (
    "add", "and", "or", "xor", "inc", "dec", "cas", "exch", "min_unsigned", "max_unsigned", "min_signed", "max_signed",
    "add_float",
)  # fmt: skip


def context(name: str, kind: str = "i64") -> str:
    """Two lines of LLVM IR that load a context word into %c.<name>."""
    return f"  %cp.{name} = getelementptr i64, ptr %ctx, i64 {SLOT[name]}\n  %c.{name} = load {kind}, ptr %cp.{name}\n"


def header() -> str:
    """The text of runtime/constants.h."""
    numbers = {
        "CONTEXT_SIZE": len(CONTEXT), "REGION_WORDS": REGION_WORDS, "RACE_WORD": RACE_WORD, "SHARED_FORM": SHARED_FORM,
        "REGISTERS": REGISTERS, "READY": READY, "WAITING": WAITING, "DONE": DONE, "BAIL": BAIL,
        "GLOBAL": GLOBAL, "SHARED": SHARED, "LOCAL": LOCAL, "GENERIC": GENERIC, "PARAM": PARAM,
        **{name: getattr(records, name) for name in (
            "LANE", "WARP_BITS", "LANES", "WARPS", "STRONG", "AFTER_WEAK", "FLAGS", "SHIFT", "EPOCHS", "FOREIGN",
            "RENUMBER",
        )},
        **{f"ATOMIC_{op.upper()}": k for k, op in enumerate(ATOMIC_OPS)},
        "SHARED_WINDOW": SHARED_WINDOW, "LOCAL_WINDOW": LOCAL_WINDOW, "WINDOW_BITS": WINDOW_BITS,
    }  # fmt: skip
    lines = ["// Made by `python -m tools.emulator_runtime` from abi.py and records.py.", "#pragma once", ""]
    lines += [f"#define {name} {_literal(value)}" for name, value in numbers.items()]
    for macro, fields in (("CONTEXT_WORDS", SLOT), ("WARP_FIELDS", WARP)):
        lines += ["", f"#define {macro}(X) \\", *(f"    X({name}, {at}) \\" for name, at in fields.items())]
        lines[-1] = lines[-1][:-2]
    return "\n".join(lines) + "\n"


def _literal(value: int) -> str:
    return str(value) if value < 256 else f"0x{value:X}u" if value < 1 << 32 else f"0x{value:X}ull"
