"""What to look at first, by what a kernel did that is forbidden. Of an original, mostly the case asks for too much."""

from __future__ import annotations

ORIGINAL_DOES = {
    "out-of-bounds": "is a buffer of the case too small, or a size unsupported? otherwise the kernel is wrong",
    "misaligned": "`when` in the case has to keep away sizes and strides that the kernel does not take",
    "uninitialised-read": "is the buffer `in` or `inout`, or does it need an `init`? otherwise nothing wrote it",
    "read-only-write": "a buffer that the kernel writes is `out`, `inout` or `scratch` in the case",
    "shared-race": "a barrier is missing in the kernel, or the block is larger than it supports",
    "global-race": "blocks of the kernel write the same element, or the case gives two buffers the same memory",
    "missing-fence": "the kernel passes data between blocks without a fence",
    "divergent-barrier": "not every thread reaches the barrier: a block size that the kernel does not support?",
    "divergent-sync": "the mask names lanes that never arrive: a block size that the kernel does not support?",
    "deadlock": "threads wait for others that never arrive: `cooperative`, or a smaller grid, in the case?",
    "early-access": "the kernel touches memory before griddepcontrol.wait: it does not support `use_pdl`",
    "budget": "does a loop of the kernel end at these sizes? the launch was ended; smaller ones take less",
    "trap": "the kernel itself stops here: inputs or sizes that it does not accept",
    "assert": "an assertion of the kernel fails: inputs or sizes that it does not accept",
}
PORT_DOES = {
    "budget": "does a loop of the port end? its original took far less work, or time, for this launch",
    "out-of-bounds": "look at the index, the guard of the last elements and the row strides in this line",
    "shared-race": "look for the barrier of the original between these accesses",
    "divergent-barrier": "a barrier has to be reached by every thread of the block",
}
