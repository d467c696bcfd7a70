// The loops around compiled code: blocks one after another, their warps in turn, barriers.

// Compiled code of the kernel: runs a warp until it ends, waits at a barrier or has to give up.
u32 warp(Context *ctx, Warp *memory, u32 number);

#define NEVER 0x7FFFFFFFu  // all of a warp that is not there is known

static const WarpVector lane_numbers = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static WarpVector select(WarpMask mask, WarpVector yes, WarpVector no) {
    return ((WarpVector)mask & yes) | ((WarpVector)~mask & no);
}

static Warp *warp_at(const Context *ctx, u64 i) { return (Warp *)(ctx->warp_memory + i * ctx->warp_stride); }

static void start_block(Context *ctx, u64 block) {
    u64 yz = block / ctx->nctaid_x;
    ctx->ctaid_x = block % ctx->nctaid_x;
    ctx->ctaid_y = yz % ctx->nctaid_y;
    ctx->ctaid_z = yz / ctx->nctaid_y;
    __builtin_memset(ctx->smem, 0, ctx->smem_size);
    if (ctx->smem_shadow)
        __builtin_memset(ctx->smem_shadow, 0, ctx->smem_size);
    if (ctx->local_shadow)
        __builtin_memset(ctx->local_shadow, 0, 32 * ctx->warps * ctx->local_stride);
    u32 epoch = (u32)ctx->epoch0;
    if (ctx->races)
        ctx->universal = ctx->epoch0;
    for (u64 i = 0; i < ctx->warps; i++) {
        Warp *w = warp_at(ctx, i);
        __builtin_memset(w, 0, sizeof(Warp));
        w->alive = ctx->alive[i];
        w->number = (u32)i;
        if (ctx->races) {
            w->epoch = w->floor = epoch;
            w->known = select(lane_numbers < (u32)ctx->warps, epoch, NEVER);
        }
    }
}

// A warp that ends without an access since its last barrier: nobody has to know more of it.
static void forget_ended(const Context *ctx, u64 ended) {
    const Warp *w = warp_at(ctx, ended);
    if (w->last < w->known[ended])
        for (u64 i = 0; i < ctx->warps; i++)
            ((u32 *)&warp_at(ctx, i)->known)[ended] = NEVER;
}

// How many warps wait, and how many are not done.
typedef struct {
    u64 waiting, running;
    bool bail;
} Turn;

// Runs every warp that is ready until it stops.
static Turn run_warps(Context *ctx) {
    Turn turn = {0, 0, false};
    for (u64 i = 0; i < ctx->warps; i++) {
        Warp *w = warp_at(ctx, i);
        if (w->status == READY) {
            w->status = warp(ctx, w, (u32)i);
            if (w->status == BAIL)
                return (Turn){0, 0, true};
            if (w->status == DONE && ctx->races)
                forget_ended(ctx, i);
        }
        turn.waiting += w->status == WAITING;
        turn.running += w->status != DONE;
    }
    return turn;
}

static bool waits_at(const Warp *w, u32 barrier) { return w->status == WAITING && w->barrier == barrier; }

static u64 members(const Context *ctx, u32 barrier) {
    u64 n = 0;
    for (u64 i = 0; i < ctx->warps; i++)
        n += waits_at(warp_at(ctx, i), barrier);
    return n;
}

// The first waiting warp whose barrier is complete, as (warp, number of warps there); null: none is.
static const Warp *complete_barrier(const Context *ctx, u64 running, u64 *count) {
    for (u64 i = 0; i < ctx->warps; i++) {
        const Warp *w = warp_at(ctx, i);
        if (w->status != WAITING)
            continue;
        *count = members(ctx, w->barrier);
        if (w->count ? 32 * *count == w->count : *count == running)
            return w;
    }
    return NULL;
}

// All that cross a barrier know what any of them knew, and take a common new epoch.
static void share_knowledge(Context *ctx, u32 barrier, bool everyone) {
    WarpVector known = 0;
    WarpMask member = 0;
    u32 epoch = 0;
    for (u64 i = 0; i < ctx->warps; i++) {
        const Warp *w = warp_at(ctx, i);
        if (!waits_at(w, barrier))
            continue;
        known = __builtin_elementwise_max(known, w->known);
        member |= lane_numbers == (u32)i;
        epoch = w->epoch > epoch ? w->epoch : epoch;
    }
    epoch++;
    known = select(member, epoch, known);
    u32 floor = __builtin_reduce_min(known);
    if (everyone)
        ctx->universal = epoch;
    for (u64 i = 0; i < ctx->warps; i++) {
        Warp *w = warp_at(ctx, i);
        if (!waits_at(w, barrier))
            continue;
        w->epoch = epoch;
        w->floor = floor;
        w->known = known;
    }
}

// Lets the warps of a complete barrier go on. False: there is none, or the block has crossed too many.
static bool cross(Context *ctx, u64 running) {
    u64 count;
    const Warp *first = complete_barrier(ctx, running, &count);
    if (!first)
        return false;
    u32 barrier = first->barrier;
    ctx->fuel -= (i64)(32 * ctx->warps);  // a loop with a barrier in it may never end
    if (ctx->fuel < 0)
        return false;
    ctx->crossed++;
    if (ctx->races)
        share_knowledge(ctx, barrier, count == running);
    for (u64 i = 0; i < ctx->warps; i++)
        if (waits_at(warp_at(ctx, i), barrier))
            warp_at(ctx, i)->status = READY;
    return true;
}

static bool run_block(Context *ctx) {
    for (;;) {
        Turn turn = run_warps(ctx);
        if (turn.bail)
            return false;
        if (!turn.waiting)
            return true;
        if (!cross(ctx, turn.running))
            return false;
    }
}

// The next block starts above every epoch of this one. False: they did not fit, and what was found is worthless.
static bool end_epochs(Context *ctx) {
    u32 latest = 0;
    for (u64 i = 0; i < ctx->warps; i++)
        latest = warp_at(ctx, i)->epoch > latest ? warp_at(ctx, i)->epoch : latest;
    if (latest >= EPOCHS)
        return false;
    ctx->epoch0 = latest + 1;
    return true;
}

// Runs the blocks ctx->order[first] to ctx->order[last - 1]. Returns how many of ctx->order are complete now.
u64 run(Context *ctx, u64 first, u64 last) {
    for (u64 block = first; block < last; block++) {
        if (ctx->races && ctx->epoch0 >= RENUMBER) {
            ctx->renumber = 1;
            return block;
        }
        start_block(ctx, ctx->order[block]);
        if (!run_block(ctx) || (ctx->races && !end_epochs(ctx)))
            return block;
    }
    return last;
}
