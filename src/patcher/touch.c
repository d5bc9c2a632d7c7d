// SPDX-License-Identifier: MIT
/* touch.c - which accesses of a block mark which pages in the touch map
 *
 * A mark costs a store, and the store port is the hooks' bottleneck (half of the play hooks' cost
 * on the lua benchmark before marks were shared). */
#include "patcher/touch.h"

#define SPAN   4096 /* no bracket is longer, so its bytes lie on two pages at most */
#define RECENT 12   /* how far back to look for a bracket to join */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Bytes from the lowest to the highest when [low, high] is added. */
static int64_t span_with(const struct tbd_bracket *b, int64_t low, int64_t high)
{
    if (b->read_low <= b->read_high) {
        low = least(low, b->read_low);
        high = greatest(high, b->read_high);
    }
    if (b->write_low <= b->write_high) {
        low = least(low, b->write_low);
        high = greatest(high, b->write_high);
    }
    return high - low + 1;
}

static void extend(struct tbd_bracket *b, int64_t low, int64_t high, uint8_t flags)
{
    if (flags & TBD_ACCESS_READ) {
        b->read_low = least(b->read_low, low);
        b->read_high = greatest(b->read_high, high);
    }
    if (flags & TBD_ACCESS_WRITE) {
        b->may_straddle |=
            b->write_low <= b->write_high && (low != b->write_low || high != b->write_high);
        b->write_low = least(b->write_low, low);
        b->write_high = greatest(b->write_high, high);
    }
}

/* Naturally aligned stack slots do not straddle, as long as rsp is a multiple of 8
 * (tbd_touch_plan.odd_stack). */
static bool may_straddle(const struct tbd_touch_plan *plan, const struct tbd_access *a)
{
    bool on_stack = a->ea.base == TBD_RSP && a->ea.index == TBD_NO_REG && a->size <= 8 &&
                    a->ea.disp % a->size == 0 && !plan->odd_stack;

    return !(a->flags & TBD_ACCESS_ALIGNED) && !on_stack;
}

/* From the bracket's first address.  Addresses wrap around: constants may be as far apart as can be. */
static int64_t distance(const struct tbd_bracket *b, const struct tbd_address *address)
{
    return (int64_t)((uint64_t)address->add - (uint64_t)b->first.add);
}

static struct tbd_bracket *find(struct tbd_touch_plan *plan, const struct tbd_address *address,
                                int64_t size)
{
    for (uint32_t n = plan->count; n > 0 && plan->count - n < RECENT; n--) {
        struct tbd_bracket *b = &plan->bracket[n - 1];
        int64_t low = distance(b, address);

        if (tbd_address_same_roots(&b->first, address) && low > -SPAN && low < SPAN &&
            span_with(b, low, low + size - 1) <= SPAN)
            return b;
    }
    return NULL;
}

void tbd_touch_add(struct tbd_touch_plan *plan, const struct tbd_access *a, uint32_t insn,
                   uint8_t access, const struct tbd_address *address, bool shares)
{
    struct tbd_bracket *b = shares ? find(plan, address, a->size) : NULL;
    int64_t low;

    if (!b) {
        b = &plan->bracket[plan->count++];
        *b = (struct tbd_bracket){ .first = *address,
                                   .insn = (uint16_t)insn,
                                   .access = access,
                                   .is_constant =
                                       shares && !address->base_root && !address->index_root,
                                   .read_low = INT64_MAX,
                                   .read_high = INT64_MIN,
                                   .write_low = INT64_MAX,
                                   .write_high = INT64_MIN };
        if (!shares)
            b->first.scale = 0; /* joins no access: no address has this scale */
    }
    if (a->flags & TBD_ACCESS_WRITE)
        b->may_straddle |= may_straddle(plan, a);
    low = distance(b, address);
    extend(b, low, low + a->size - 1, a->flags);
}

/* Are all bytes that the bracket, of constant addresses, writes on one page? */
static bool is_one_page(const struct tbd_bracket *b)
{
    uint64_t low = (uint64_t)b->first.add + (uint64_t)b->write_low;

    return (low & 4095) + (uint64_t)(b->write_high - b->write_low) < 4096;
}

static void finish_writes(const struct tbd_bracket *b, struct tbd_touch *t)
{
    if (b->write_low > b->write_high)
        return;
    t->marks |= TBD_MARK_LOW;
    t->low_at = (int16_t)b->write_low;
    if (b->is_constant ? is_one_page(b) : !b->may_straddle)
        return;
    t->marks |= TBD_MARK_HIGH;
    t->high_at = (int16_t)b->write_high;
}

/* A page written counts as read. */
static void finish_reads(const struct tbd_bracket *b, struct tbd_touch *t)
{
    bool covered = b->write_low <= b->write_high && b->read_low >= b->write_low &&
                   b->read_high <= b->write_high;

    if (b->read_low > b->read_high || covered)
        return;
    t->marks |= TBD_MARK_READ;
    t->read_at = (int16_t)b->read_low;
}

void tbd_touch_finish(const struct tbd_touch_plan *plan,
                      struct tbd_touch touch[TBD_BLOCK_MAX_INSNS][TBD_INSN_MAX_ACCESSES])
{
    for (uint32_t n = 0; n < plan->count; n++) {
        const struct tbd_bracket *b = &plan->bracket[n];
        struct tbd_touch *t = &touch[b->insn][b->access];

        finish_writes(b, t);
        finish_reads(b, t);
    }
}
