// SPDX-License-Identifier: MIT
/* special_strings.c - repeated string instructions, which the engine executes itself (special.c)
 *
 * Stores are cut into pieces that are known to be accessible: when a fault occurs, all earlier
 * pieces are recorded, and the registers are those between two elements, as on the processor.
 * Loads are cut into pieces within a page, so that only pages that are read are marked.  A segment
 * base applies only to the operand at rsi.
 *
 * Context: APP. */
#include "hooks/instructions/special.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/userfault.h"

#define PIECE_BYTES 65536u
#define FLAG_DF     0x400ull

/* ---- stores ---- */

struct string {
    uint32_t size; /* of an element */
    bool backward;
    bool has_source;
    uint64_t mask; /* of addresses and the count: with address-size prefix 32 bits */
    uint64_t base; /* of the source's segment */
};

static struct tbd_sys_range string_range(uint64_t pointer, uint64_t base, uint64_t count,
                                         const struct string *string)
{
    uint64_t bytes = count * string->size;
    uint64_t at = (pointer & string->mask) + base;

    return (struct tbd_sys_range){ string->backward ? at + string->size - bytes : at, bytes };
}

static bool is_allowed(const struct tbd_sys_range *range, uint32_t prot)
{
    uint64_t at = range->address;

    while (at < range->address + range->bytes) {
        const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, at);

        if (!region || (region->map.prot & prot) != prot)
            return false;
        at = region->map.end;
    }
    return true;
}

/* Tests the memory itself, because a file can be shorter than its mapping. */
static bool is_present(const struct tbd_sys_range *range)
{
    uint64_t last = range->address + range->bytes - 1;
    uint8_t byte;

    for (uint64_t at = range->address; at < last; at = (at | (TBD_PAGE_SIZE - 1)) + 1)
        if (!tbd_copy_from_program(&byte, at, 1))
            return false;
    return tbd_copy_from_program(&byte, last, 1);
}

static bool is_accessible(const struct tbd_regs *regs, uint64_t count, const struct string *string)
{
    struct tbd_sys_range to = string_range(regs->gpr[TBD_RDI], 0, count, string);
    struct tbd_sys_range from = string_range(regs->gpr[TBD_RSI], string->base, count, string);
    uint64_t unused;

    if (!is_allowed(&to, 3) || !is_present(&to) || tbd_userfault_misses(&to, true, &unused))
        return false;
    return !string->has_source || (is_allowed(&from, 1) && is_present(&from));
}

/* Is a page of the next element missing (userfaultfd)?  Gives the address of the byte. */
static bool waits_for_page(const struct tbd_regs *regs, const struct string *string,
                           uint64_t *address, bool *is_write)
{
    struct tbd_sys_range to = string_range(regs->gpr[TBD_RDI], 0, 1, string);
    struct tbd_sys_range from = string_range(regs->gpr[TBD_RSI], string->base, 1, string);

    *is_write = !string->has_source || !tbd_userfault_misses(&from, false, address);
    return !*is_write || tbd_userfault_misses(&to, true, address);
}

static struct tbd_string_piece make_piece(const struct tbd_regs *regs, const struct string *string,
                                          uint64_t count)
{
    struct tbd_string_piece piece = { .to = string_range(regs->gpr[TBD_RDI], 0, count, string),
                                      .size = string->size,
                                      .backward = string->backward };

    if (string->has_source)
        piece.from = string_range(regs->gpr[TBD_RSI], string->base, count, string);
    return piece;
}

/* Shortens a piece in memory that others may write; to one element if it overlaps its source. */
static uint64_t limit_shared(const struct tbd_regs *regs, const struct string *string,
                             uint64_t count)
{
    struct tbd_string_piece piece = make_piece(regs, string, count);
    uint64_t distance = piece.to.address - piece.from.address;

    if (!count || !tbd_shared_has_piece(&piece))
        return count;
    if (count > TBD_SHARED_PIECE_BYTES / string->size)
        count = TBD_SHARED_PIECE_BYTES / string->size;
    if (string->has_source && (distance < piece.to.bytes || 0 - distance < piece.to.bytes))
        return 1;
    return count;
}

static uint64_t next_piece(const struct tbd_regs *regs, const struct string *string)
{
    uint64_t count = PIECE_BYTES / string->size;

    if (count > (regs->gpr[TBD_RCX] & string->mask))
        count = regs->gpr[TBD_RCX] & string->mask;
    while (count > 1 && !is_accessible(regs, count, string))
        count /= 2;
    return limit_shared(regs, string, count);
}

/* The length of a piece, which in a replay comes from the log. */
static uint64_t piece_of_log(struct tbd_special_run *s, const struct string *string)
{
    const struct tbd_msg_special *logged =
        tbd_next_others ? tbd_next_others(s->effects, &s->others) : NULL;
    uint64_t left = s->thread->regs.gpr[TBD_RCX] & string->mask;

    s->is_left = logged && (logged->flags & TBD_SPECIAL_F_LEFT);
    if (!logged || logged->gpr[TBD_RCX] > left ||
        left - logged->gpr[TBD_RCX] > PIECE_BYTES / string->size)
        return next_piece(&s->thread->regs, string);
    return left - logged->gpr[TBD_RCX];
}

static bool copy_shared(struct tbd_special_run *s, const struct tbd_string_piece *piece,
                        uint64_t count, uint64_t mask)
{
    struct tbd_regs *regs = &s->thread->regs;
    uint64_t step = piece->backward ? 0 - piece->to.bytes : piece->to.bytes;

    if (!tbd_shared_has_piece(piece) || !tbd_shared_copy_piece(s, piece))
        return false;
    regs->gpr[TBD_RDI] = (regs->gpr[TBD_RDI] + step) & mask;
    if (piece->from.bytes)
        regs->gpr[TBD_RSI] = (regs->gpr[TBD_RSI] + step) & mask;
    regs->gpr[TBD_RCX] = (regs->gpr[TBD_RCX] - count) & mask;
    return true;
}

/* Runs a piece.  Only its first element can fault. */
static void run_piece(struct tbd_special_run *s, const struct string *string, uint64_t count)
{
    struct tbd_regs *regs = &s->thread->regs;
    struct tbd_string_piece piece = make_piece(regs, string, count);
    uint64_t rest = (regs->gpr[TBD_RCX] & string->mask) - count;

    tbd_userfault_adopt(s->effects, &piece.to, &s->others);
    if (string->has_source)
        tbd_userfault_adopt(s->effects, &piece.from, &s->others);
    if (!copy_shared(s, &piece, count, string->mask)) {
        tbd_effects_watch(s->effects, &piece.to, 1);
        regs->gpr[TBD_RCX] = count;
        s->thread->scratch[TBD_SLOT_REST] =
            rest; /* so that a fault's handler sees the full count */
        tbd_slot_run(s->thread, s->slot);
        regs->gpr[TBD_RCX] += rest;
        s->thread->scratch[TBD_SLOT_REST] = 0;
        tbd_effects_written(s->effects, &piece.to, 1);
    }
    if (string->has_source)
        tbd_pages_mark_read(&tbd_memory.pages, piece.from.address,
                            piece.from.address + piece.from.bytes);
    tbd_special_tell_read(s, &piece.from);
}

void tbd_special_string_stores(struct tbd_special_run *s)
{
    struct tbd_regs *regs = &s->thread->regs;
    struct string string = { .size = tbd_slot_string_bytes(s->slot),
                             .backward = regs->rflags & FLAG_DF,
                             .has_source = tbd_slot_reads_string(s->slot),
                             .mask = tbd_slot_address_mask(s->slot),
                             .base = tbd_slot_source_base(s->thread, s->slot) };

    uint64_t address;
    bool is_write;

    if (!string.size)
        tbd_special_give_up(s, "it uses a string instruction that is not known");
    if (tbd_userfault_count && (regs->gpr[TBD_RCX] & string.mask) &&
        waits_for_page(regs, &string, &address, &is_write)) {
        tbd_special_leave_block(s, address, is_write);
        return;
    }
    for (;;) {
        uint64_t count;

        s->before = *regs;
        s->others = 0;
        tbd_effects_clear(s->effects);
        count = piece_of_log(s, &string);
        if (count)
            run_piece(s, &string, count);
        if (!(regs->gpr[TBD_RCX] & string.mask))
            break;
        if (s->is_left ||
            (tbd_userfault_count && waits_for_page(regs, &string, &address, &is_write))) {
            tbd_special_send(s, TBD_SPECIAL_F_REPLAYED | TBD_SPECIAL_F_LEFT);
            return;
        }
        tbd_special_send(s, TBD_SPECIAL_F_REPLAYED | TBD_SPECIAL_F_MORE);
    }
    tbd_special_finish(s, TBD_SPECIAL_F_REPLAYED);
}

/* ---- loads ---- */

#define FLAG_ZF 0x40ull

/* The number of elements from `pointer` on that begin on its page. */
static uint64_t elements_on_page(uint64_t pointer, uint32_t size, bool backward)
{
    uint64_t offset = pointer & (TBD_PAGE_SIZE - 1);

    return backward ? offset / size + 1 : (TBD_PAGE_SIZE - offset + size - 1) / size;
}

static void mark_elements(uint64_t pointer, uint64_t count, uint32_t size, bool backward)
{
    uint64_t first = backward ? pointer - (count - 1) * size : pointer;

    tbd_pages_mark_read(&tbd_memory.pages, first, first + count * size);
}

/* Marks the pages of the next elements and returns their number.  All begin on one page, so no page
 * is marked that is not read; the last element may extend into the next page. */
static uint64_t mark_piece(const struct tbd_special_run *s, const struct tbd_string_loads *loads,
                           uint64_t mask)
{
    const struct tbd_regs *regs = &s->thread->regs;
    bool backward = regs->rflags & FLAG_DF;
    uint64_t rsi = (regs->gpr[TBD_RSI] & mask) + tbd_slot_source_base(s->thread, s->slot);
    uint64_t rdi = regs->gpr[TBD_RDI] & mask;
    uint64_t count = regs->gpr[TBD_RCX] & mask, most;

    most = loads->from_rsi ? elements_on_page(rsi, loads->bytes, backward) : count;
    count = most < count ? most : count;
    most = loads->from_rdi ? elements_on_page(rdi, loads->bytes, backward) : count;
    count = most < count ? most : count;
    if (count && loads->from_rsi)
        mark_elements(rsi, count, loads->bytes, backward);
    if (count && loads->from_rdi)
        mark_elements(rdi, count, loads->bytes, backward);
    return count;
}

static void run_string_loads(struct tbd_special_run *s, const struct tbd_string_loads *loads)
{
    struct tbd_regs *regs = &s->thread->regs;
    uint64_t mask = tbd_slot_address_mask(s->slot);
    uint64_t left, rest;

    do {
        uint64_t count = mark_piece(s, loads, mask);
        bool equal;

        rest = (regs->gpr[TBD_RCX] & mask) - count;
        if (count)
            regs->gpr[TBD_RCX] = count;
        s->thread->scratch[TBD_SLOT_REST] = rest;
        tbd_slot_run(s->thread, s->slot);
        left = regs->gpr[TBD_RCX] & mask;
        regs->gpr[TBD_RCX] += rest;
        s->thread->scratch[TBD_SLOT_REST] = 0;
        equal = regs->rflags & FLAG_ZF;
        if ((loads->while_equal && !equal) || (loads->until_equal && equal))
            break;
    } while (!left && rest);
    tbd_special_finish(s, TBD_SPECIAL_F_REPLAYED);
}

#define FAR_ENOUGH (1ull << 20) /* the bytes that are checked for shared memory */

static bool may_be_shared(uint64_t pointer, uint64_t count, uint32_t size, bool backward)
{
    uint64_t bytes = count < FAR_ENOUGH / size ? count * size : FAR_ENOUGH;
    uint64_t start = !backward ? pointer : pointer > bytes ? pointer + size - bytes : 0;

    return tbd_shared_holds(start, start + bytes) || tbd_userfault_holds(start, start + bytes);
}

static bool loads_shared(const struct tbd_special_run *s, const struct tbd_string_loads *loads)
{
    const struct tbd_regs *regs = &s->thread->regs;
    uint64_t mask = tbd_slot_address_mask(s->slot);
    uint64_t count = regs->gpr[TBD_RCX] & mask;
    bool backward = regs->rflags & FLAG_DF;

    if (loads->from_rsi &&
        may_be_shared((regs->gpr[TBD_RSI] & mask) + tbd_slot_source_base(s->thread, s->slot), count,
                      loads->bytes, backward))
        return true;
    return loads->from_rdi &&
           may_be_shared(regs->gpr[TBD_RDI] & mask, count, loads->bytes, backward);
}

/* In a replay, tbd_shared_perform() first makes the log's writes of others. */
void tbd_special_string_loads(struct tbd_special_run *s)
{
    struct tbd_string_loads loads = tbd_slot_string_loads(s->slot);

    if (tbd_next_others || loads_shared(s, &loads))
        tbd_shared_perform(s);
    else
        run_string_loads(s, &loads);
}
