// Accesses that are not a row of consecutive addresses, lane by lane. Each function returns false where some lane may
// not make its access, or where a race cannot be excluded.

#define INLINE static inline __attribute__((always_inline))

// `lanes`: which of a chunk's lanes take part, `thread0`: the thread of the first one; `data`: `width` bytes a lane;
// `flags`: of the access in the records of races.
#define ACCESS                                                                                                         \
    const Context *ctx, Warp *warp, Region *site, const u64 *addresses, u32 lanes, u64 align_mask, u8 *data, u32 kind, \
        u64 thread0, u32 flags
#define PASSED ctx, warp, site, addresses, lanes, align_mask, data, kind, thread0, flags

INLINE u64 load_word(const void *from, u32 width) {
    u64 value = 0;
    __builtin_memcpy(&value, from, width);
    return value;
}

INLINE void store_word(void *to, u64 value, u32 width) { __builtin_memcpy(to, &value, width); }

INLINE bool initialised(const u8 *shadow, u32 width) {
    for (; width > 8; width -= 8, shadow += 8)
        if (load_word(shadow, 8) != INITIALISED)
            return false;
    return load_word(shadow, width) == INITIALISED >> (64 - 8 * width);
}

INLINE bool equal(const u8 *a, const u8 *b, u32 width) {
    u64 differing = 0;
    for (u32 i = 0; i < width; i += 8)
        differing |= load_word(a + i, width < 8 ? width : 8) ^ load_word(b + i, width < 8 ? width : 8);
    return differing == 0;
}

// Each lane's bytes go to data.
INLINE bool load(ACCESS, u32 width) {
    for (u32 left = lanes; left; left &= left - 1) {
        u32 lane = __builtin_ctz(left);
        u64 thread = thread0 + lane;
        Place at;
        if (!resolve(ctx, site, addresses[lane], width, align_mask, kind, thread, false, &at))
            return false;
        if (at.shadow && !initialised(at.shadow, width))
            return false;
        if (at.records->writes && !lane_read(ctx, warp, at.records, at.offset, width, (u32)thread | flags))
            return false;
        __builtin_memcpy(data + lane * width, at.host, width);
    }
    return true;
}

// The reverse; what is written becomes initialised.
INLINE bool store(ACCESS, u32 width) {
    for (u32 left = lanes; left; left &= left - 1) {
        u32 lane = __builtin_ctz(left);
        u64 thread = thread0 + lane;
        Place at;
        if (!resolve(ctx, site, addresses[lane], width, align_mask, kind, thread, true, &at))
            return false;
        if (at.shadow)
            __builtin_memset(at.shadow, 1, width);
        const u8 *value = data + lane * width;
        if (at.records->writes &&
            !lane_write(ctx, warp, at.records, at.offset, width, (u32)thread | flags, equal(at.host, value, width)))
            return false;
        __builtin_memcpy(at.host, value, width);
    }
    return true;
}

#define LOAD_AND_STORE(width)                                                                                          \
    bool load##width(ACCESS) { return load(PASSED, width); }                                                           \
    bool store##width(ACCESS) { return store(PASSED, width); }
LOAD_AND_STORE(1)
LOAD_AND_STORE(2)
LOAD_AND_STORE(4)
LOAD_AND_STORE(8)
LOAD_AND_STORE(16)

INLINE u32 flushed(u32 bits, bool flush) { return flush && !(bits & 0x7F800000) ? bits & 0x80000000 : bits; }

// `flush`: subnormals, before and after.
INLINE u32 add_f32(u32 a, u32 b, bool flush) {
    float sum = __builtin_bit_cast(float, flushed(a, flush)) + __builtin_bit_cast(float, flushed(b, flush));
    return sum != sum ? 0x7FFFFFFF : flushed(__builtin_bit_cast(u32, sum), flush);
}

// The first NaN keeps its payload, as numpy's addition has it.
INLINE u64 add_f64(u64 a, u64 b) {
    const u64 quiet = 1ull << 51;
    double x = __builtin_bit_cast(double, a), y = __builtin_bit_cast(double, b);
    if (x != x)
        return a | quiet;
    return y != y ? b | quiet : __builtin_bit_cast(u64, x + y);
}

// What an atomic of 4 or 8 bytes leaves behind where `old` was (its low `width` bytes), by its operand x and, for CAS,
// what it compares with.
INLINE u64 combine(u32 op, u64 old, u64 x, u64 compare, bool flush, u32 width) {
    i64 signed_old = width == 4 ? (i32)old : (i64)old, signed_x = width == 4 ? (i32)x : (i64)x;
    switch (op) {
    case ATOMIC_ADD: return old + x;
    case ATOMIC_AND: return old & x;
    case ATOMIC_OR: return old | x;
    case ATOMIC_XOR: return old ^ x;
    case ATOMIC_INC: return old >= x ? 0 : old + 1;
    case ATOMIC_DEC: return old == 0 || old > x ? x : old - 1;
    case ATOMIC_CAS: return old == compare ? x : old;
    case ATOMIC_MIN_UNSIGNED: return x < old ? x : old;
    case ATOMIC_MAX_UNSIGNED: return x > old ? x : old;
    case ATOMIC_MIN_SIGNED: return signed_x < signed_old ? x : old;
    case ATOMIC_MAX_SIGNED: return signed_x > signed_old ? x : old;
    case ATOMIC_ADD_FLOAT: return width == 4 ? add_f32((u32)old, (u32)x, flush) : add_f64(old, x);
    default: return x;  // ATOMIC_EXCH
    }
}

// `operands` and, for CAS, `compares` have a value a lane; the old values go to data.
INLINE bool atomic(ACCESS, const u8 *operands, const u8 *compares, u32 op, u32 width) {
    for (u32 left = lanes; left; left &= left - 1) {
        u32 lane = __builtin_ctz(left);
        u64 thread = thread0 + lane;
        Place at;
        if (!resolve(ctx, site, addresses[lane], width, align_mask, kind, thread, true, &at))
            return false;
        if (at.shadow) {
            if (op == ATOMIC_EXCH)
                __builtin_memset(at.shadow, 1, width);
            else if (!initialised(at.shadow, width))
                return false;
        }
        if (at.records->writes && !lane_write(ctx, warp, at.records, at.offset, width, (u32)thread | flags, false))
            return false;
        u64 old = load_word(at.host, width), x = load_word(operands + lane * width, width);
        u64 compare = load_word(compares + lane * width, width);
        // the add of f32 flushes subnormals in global memory, see memory/atomics.py
        bool flush = kind == GLOBAL || (kind == GENERIC && addresses[lane] < SHARED_WINDOW);
        store_word(at.host, combine(op, old, x, compare, flush, width), width);
        store_word(data + lane * width, old, width);
    }
    return true;
}

bool atomic4(ACCESS, const u8 *operands, const u8 *compares, u32 op) {
    return atomic(PASSED, operands, compares, op, 4);
}

bool atomic8(ACCESS, const u8 *operands, const u8 *compares, u32 op) {
    return atomic(PASSED, operands, compares, op, 8);
}
