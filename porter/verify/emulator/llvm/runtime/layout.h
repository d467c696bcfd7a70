// What compiled code, this runtime and Python share in memory. abi.py has the same as numbers: constants.h is made from
// it, and the assertions at the end hold the structures to it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "constants.h"

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

// One word a warp of the block (at most 32).
typedef u32 WarpVector __attribute__((ext_vector_type(32), aligned(64)));
typedef int WarpMask __attribute__((ext_vector_type(32), aligned(64)));  // -1 or 0 each

// Where a memory's records of accesses are, for the race check. Records of writes come first, then those of reads.
typedef struct {
    u64 writes;    // address of the records of writes; 0: accesses are not recorded
    u64 to_reads;  // distance to the records of reads
    u64 form;      // log2 of the granule; + SHARED_FORM for shared memory
} Records;

// A row of the table of memory. Each access site keeps a copy of the row that it used last.
typedef struct {
    u64 base, size;
    u64 to_host;    // what to add to an address for the host's
    u64 to_shadow;  // the same for the flags of initialised bytes; 0: there are none
    u64 writable;
    Records records;
} Region;

// A launch. One 64-bit word each, in the order of abi.CONTEXT.
typedef struct {
    const Region *regions;
    u64 region_count;
    u8 *params;
    u64 params_size;
    u8 *smem;
    u64 smem_size;
    u8 *smem_shadow;  // null: initialisation is not tracked
    u8 *local;
    u8 *local_shadow;
    u64 local_stride;
    u8 *warp_memory;
    u64 warps, warp_stride;
    i64 *counts;
    Region *sites;
    const u64 *order;
    const u32 *alive;
    u64 tid_x, tid_y, tid_z, ctaid_x, ctaid_y, ctaid_z, ntid_x, ntid_y, ntid_z, nctaid_x, nctaid_y, nctaid_z;
    u64 dynamic_smem, crossed;
    i64 fuel;
    u8 *scratch;
    u64 local_bytes;
    // races: are they looked for; where the epochs of a block start; what all warps of it know
    u64 races, epoch0, universal;
    Records smem_records, no_records;
    u64 renumber;  // set where epochs must be numbered anew before the next block
} Context;

// The head of a warp's memory; slots of registers follow.
typedef struct {
    u32 alive;           // one bit a lane
    u32 status;          // READY, WAITING, DONE or BAIL
    u32 barrier, count;  // which one it waits at, and for how many threads (0: all)
    u32 number;
    u32 epoch;  // races: its epoch, that of its last access, and the least of what it knows
    u32 last;
    u32 floor;
    u32 pcs[32] __attribute__((aligned(64)));
    WarpVector known;  // below which epoch of each warp all accesses are ordered
} Warp;

#define WORD(name, slot) _Static_assert(offsetof(Context, name) == 8 * (slot), #name);
CONTEXT_WORDS(WORD)
#undef WORD
_Static_assert(sizeof(Context) == 8 * CONTEXT_SIZE, "Context");
_Static_assert(sizeof(Region) == 8 * REGION_WORDS, "Region");
_Static_assert(offsetof(Region, records) == 8 * RACE_WORD, "records of a Region");
#define FIELD(name, offset) _Static_assert(offsetof(Warp, name) == (offset), #name);
WARP_FIELDS(FIELD)
#undef FIELD
_Static_assert(sizeof(Warp) == REGISTERS, "Warp");
