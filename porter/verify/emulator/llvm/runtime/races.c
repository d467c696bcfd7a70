// The race check: records.py says what a record is, and how the check works.

static u32 epoch_of(u32 record) { return record >> SHIFT; }

static bool same_warp(u32 a, u32 b) { return ((a ^ b) & (WARP_BITS | WARPS)) == 0; }

// Is the access `me` ordered behind those of `record`? `low`: records below it are of other blocks.
static bool ordered(const Warp *warp, u32 record, u32 me, u32 low) {
    if (record == 0)
        return true;
    if (record < low)
        return false;
    if (record & WARPS)
        return epoch_of(record) < warp->floor;
    u32 differing = record ^ me;
    if (differing & WARP_BITS)
        return epoch_of(record) < warp->known[(record & WARP_BITS) >> 5];
    return epoch_of(differing) != 0 || ((differing & LANE) | ((record | me) & LANES)) == 0;
}

static bool both_strong(u32 record, u32 me) {
    return (record & me & STRONG) && (!(record & AFTER_WEAK) || same_warp(record, me));
}

// May a record that the access `me` is ordered behind be forgotten?
static bool forgotten(const Context *ctx, u32 record, u32 me) {
    bool weak = !(me & STRONG);
    bool strong_only = (record & (STRONG | AFTER_WEAK)) == STRONG;
    return weak || record == 0 || strong_only || epoch_of(record) < (u32)ctx->universal;
}

// The record of an access that is ordered behind `record`.
static u32 succeed(const Context *ctx, u32 record, u32 me) {
    if (forgotten(ctx, record, me))
        return me;
    return same_warp(record, me) ? me | AFTER_WEAK : me & ~(u32)(STRONG | AFTER_WEAK);
}

// The record of several accesses that are not ordered.
static u32 join(u32 record, u32 me, u32 low) {
    u32 strong = record & me & STRONG;
    u32 after_weak = (record | me) & AFTER_WEAK;
    u32 clean_strong = after_weak ? 0 : strong;
    if (record < low)
        return FOREIGN | clean_strong;
    if (same_warp(record, me))
        return (me & ~(u32)(STRONG | AFTER_WEAK)) | LANES | strong | after_weak;
    u32 mine = me & ~(u32)FLAGS, other = record & ~(u32)FLAGS;
    return (other > mine ? other : mine) | WARPS | clean_strong;
}

static bool read_granule(const Context *ctx, const Warp *warp, u32 *writes, u32 *reads, u32 me, u32 low) {
    if (!ordered(warp, *writes, me, low) && !both_strong(*writes, me))
        return false;
    *reads = ordered(warp, *reads, me, low) ? succeed(ctx, *reads, me) : join(*reads, me, low);
    return true;
}

// `same`: the write leaves the memory as it is.
static bool write_granule(const Context *ctx, const Warp *warp, u32 *writes, u32 *reads, u32 me, u32 low, bool same) {
    bool behind_reads = ordered(warp, *reads, me, low);
    if (!behind_reads && !both_strong(*reads, me))
        return false;
    if (ordered(warp, *writes, me, low))
        *writes = succeed(ctx, *writes, me);
    else if (both_strong(*writes, me) || same)
        *writes = join(*writes, me, low);
    else
        return false;
    if (behind_reads && forgotten(ctx, *reads, me))
        *reads = 0;
    return true;
}

// What an access looks at: the records of its granules, and how it will be recorded but for the thread and flags.
typedef struct {
    u32 *writes, *reads;
    u32 stamp, low;
    u32 shift;
} Granules;

// Also notes that the warp has made an access in its epoch.
static Granules granules_of(const Context *ctx, Warp *warp, const Records *records, u64 offset) {
    u32 shift = records->form & 0xFF;
    u64 writes = records->writes + 4 * (offset >> shift);
    warp->last = warp->epoch;
    return (Granules){(u32 *)writes, (u32 *)(writes + records->to_reads), warp->epoch << SHIFT,
                      records->form >= SHARED_FORM ? 0 : (u32)ctx->epoch0 << SHIFT, shift};
}

static u64 count_of(Granules g, u64 width) { return width >> g.shift ? width >> g.shift : 1; }

// One lane's access of `width` bytes; `who`: its thread and flags. False where a race cannot be excluded.
__attribute__((noinline)) bool lane_read(const Context *ctx, Warp *warp, const Records *records, u64 offset, u64 width,
                                         u32 who) {
    if (!records->writes)
        return true;
    Granules g = granules_of(ctx, warp, records, offset);
    for (u64 i = 0, n = count_of(g, width); i < n; i++)
        if (!read_granule(ctx, warp, &g.writes[i], &g.reads[i], g.stamp | who, g.low))
            return false;
    return true;
}

__attribute__((noinline)) static bool lane_write(const Context *ctx, Warp *warp, const Records *records, u64 offset,
                                                 u64 width, u32 who, bool same) {
    if (!records->writes)
        return true;
    Granules g = granules_of(ctx, warp, records, offset);
    for (u64 i = 0, n = count_of(g, width); i < n; i++)
        if (!write_granule(ctx, warp, &g.writes[i], &g.reads[i], g.stamp | who, g.low, same))
            return false;
    return true;
}

// Weak accesses of consecutive threads, eight granules at a time. Comparisons give -1 or 0 in each element.
typedef u32 Granules8 __attribute__((ext_vector_type(8), aligned(4)));
typedef int Mask8 __attribute__((ext_vector_type(8)));

static Mask8 same_warp8(Granules8 record, Granules8 me, u32 low) {
    return (((record ^ me) & (WARP_BITS | WARPS)) == 0) & (record >= low);
}

// Nobody, behind a barrier (`span`: from `low` to what the warp knows of all), or this warp's own earlier or same-lane
// access.
static Mask8 ordered8(Granules8 record, Granules8 me, u32 low, u32 span) {
    Granules8 differing = record ^ me;
    Mask8 earlier_or_same_lane = (differing >> SHIFT != 0) | ((differing & (LANE | LANES)) == 0);
    return (record == 0) | (record - low < span) | (same_warp8(record, me, low) & earlier_or_same_lane);
}

static bool all8(Mask8 mask) { return __builtin_reduce_and(mask) != 0; }

static Granules8 join8(Granules8 record, Granules8 me, u32 low) {
    Granules8 mine = me & ~(u32)FLAGS, other = record & ~(u32)FLAGS;
    Granules8 several_warps = __builtin_elementwise_max(mine, other) | WARPS;
    Granules8 joined = same_warp8(record, me, low) ? me | LANES : several_warps;
    return record < low ? (Granules8)FOREIGN : joined;
}

// What eight granules from the i-th on will be recorded as, 1 << log_width bytes a thread.
static Granules8 recorded_as(Granules g, u32 thread, u32 log_width, u64 i) {
    Granules8 granule = (u32)i + (Granules8){0, 1, 2, 3, 4, 5, 6, 7};
    return (g.stamp | thread) + (granule >> (log_width - g.shift));
}

// Accesses of `total` bytes by consecutive threads from `thread` on. False: look at each lane.
bool row_read(const Context *ctx, Warp *warp, const Records *records, u64 offset, u64 total, u32 log_width,
              u32 thread) {
    if (!records->writes)
        return true;
    Granules g = granules_of(ctx, warp, records, offset);
    u32 span = (warp->floor << SHIFT) - g.low;
    for (u64 i = 0, n = total >> g.shift; i < n; i += 8) {
        Granules8 me = recorded_as(g, thread, log_width, i);
        Granules8 *reads = (Granules8 *)&g.reads[i];
        if (!all8(ordered8(*(Granules8 *)&g.writes[i], me, g.low, span)))
            return false;
        *reads = ordered8(*reads, me, g.low, span) ? me : join8(*reads, me, g.low);
    }
    return true;
}

bool row_write(const Context *ctx, Warp *warp, const Records *records, u64 offset, u64 total, u32 log_width,
               u32 thread) {
    if (!records->writes)
        return true;
    Granules g = granules_of(ctx, warp, records, offset);
    u32 span = (warp->floor << SHIFT) - g.low;
    for (u64 i = 0, n = total >> g.shift; i < n; i += 8) {
        Granules8 me = recorded_as(g, thread, log_width, i);
        Granules8 *writes = (Granules8 *)&g.writes[i], *reads = (Granules8 *)&g.reads[i];
        if (!all8(ordered8(*writes, me, g.low, span)) || !all8(ordered8(*reads, me, g.low, span)))
            return false;
        *writes = me;
        *reads = 0;
    }
    return true;
}
