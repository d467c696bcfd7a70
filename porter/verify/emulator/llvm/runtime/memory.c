// From a PTX address to the host's memory, and which bytes are initialised.

typedef struct {
    u8 *host;
    u8 *shadow;  // one flag a byte, 1 where it was written; null: not tracked
    const Records *records;
    u64 offset;  // from the start of the memory that `records` are of
} Place;

static bool inside(u64 address, u64 size, u64 width) { return address < size && size - address >= width; }

static bool in_local(const Context *ctx, u64 address, u64 width, u64 thread, Place *found) {
    if (!inside(address, ctx->local_bytes, width))
        return false;
    u64 offset = thread * ctx->local_stride + address;
    *found = (Place){ctx->local + offset, ctx->local_shadow ? ctx->local_shadow + offset : NULL, &ctx->no_records, 0};
    return true;
}

// Looks through the table of memory. The site keeps the row.
static bool in_regions(const Context *ctx, Region *site, u64 address, u64 width, bool write, Place *found) {
    for (u64 i = 0; i < ctx->region_count; i++) {
        const Region *region = &ctx->regions[i];
        u64 offset = address - region->base;
        if (!inside(offset, region->size, width))
            continue;
        if (write && !region->writable)
            return false;
        *site = *region;
        *found = (Place){(u8 *)(address + region->to_host),
                         region->to_shadow ? (u8 *)(address + region->to_shadow) : NULL, &site->records, offset};
        return true;
    }
    return false;
}

// Where `width` bytes of a thread's memory are. False: it may not make this access.
__attribute__((noinline)) static bool resolve(const Context *ctx, Region *site, u64 address, u64 width, u64 align_mask,
                                              u32 kind, u64 thread, bool write, Place *found) {
    if (address & align_mask)
        return false;
    if (kind == GENERIC && address >> WINDOW_BITS == LOCAL_WINDOW >> WINDOW_BITS) {
        kind = LOCAL;
        address = (u32)address;
    }
    switch (kind) {
    case SHARED:
        if (!inside(address, ctx->smem_size, width))
            return false;
        *found = (Place){ctx->smem + address, ctx->smem_shadow ? ctx->smem_shadow + address : NULL, &ctx->smem_records,
                         address};
        return true;
    case LOCAL: return in_local(ctx, address, width, thread, found);
    case PARAM:
        if (write || !inside(address, ctx->params_size, width))
            return false;
        *found = (Place){ctx->params + address, NULL, &ctx->no_records, 0};
        return true;
    default:  // GLOBAL, GENERIC
        return in_regions(ctx, site, address, width, write, found);
    }
}

#define INITIALISED 0x0101010101010101ull  // eight flags

// Are `total` bytes initialised?
bool verify(const u8 *shadow, u64 total) {
    typedef u64 Flags __attribute__((ext_vector_type(8), aligned(1)));
    typedef u64 Words __attribute__((aligned(1)));
    if (!shadow)
        return true;
    const u8 *end = shadow + total;
    for (; end - shadow >= 64; shadow += 64)
        if (__builtin_reduce_or(*(const Flags *)shadow != INITIALISED))
            return false;
    for (; end - shadow >= 8; shadow += 8)
        if (*(const Words *)shadow != INITIALISED)
            return false;
    for (; shadow < end; shadow++)
        if (*shadow != 1)
            return false;
    return true;
}

void mark(u8 *shadow, u64 total) {
    if (shadow)
        __builtin_memset(shadow, 1, total);
}
