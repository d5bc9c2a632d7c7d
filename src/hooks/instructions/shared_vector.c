// SPDX-License-Identifier: MIT
/* shared_vector.c - gathers, scatters, masked and long stores, in memory which other
 * processes may write
 *
 * A gather's elements are read first, one by one, and differences from the log are logged
 * (hooks/memory/shared.h).  Then the gather runs on the memory itself, for its other effects, and
 * its target is set to the logged values.  A scatter (in any memory) runs on the memory itself; its
 * source register tells what it stored.  Other stores run on a buffer, and the bytes that they
 * write are copied to the memory.  Before a store without a replaceable operand (maskmovdqu,
 * enter), writes of others to its range are logged.
 *
 * An instruction that will fault runs on the memory itself, and gets the processor's fault.  In a
 * replay process there is no such memory.  Context: APP. */
#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/decoded.h"
#include "hooks/instructions/processor.h"
#include "hooks/instructions/redirect.h"
#include "hooks/instructions/special.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"

#define MAX_ELEMENT_BYTES 8u

bool tbd_shared_is_writable(const struct tbd_sys_range *range)
{
    const struct tbd_mapped_region *first = tbd_regions_find(&tbd_memory.regions, range->address);
    const struct tbd_mapped_region *last =
        tbd_regions_find(&tbd_memory.regions, range->address + range->bytes - 1);

    return first && last && (first->map.prot & PROT_WRITE) && (last->map.prot & PROT_WRITE);
}

static bool is_present(uint64_t address, uint64_t bytes)
{
    uint8_t end;

    return tbd_copy_from_program(&end, address, 1) &&
           tbd_copy_from_program(&end, address + bytes - 1, 1);
}

static bool is_shared(uint64_t address, uint64_t bytes)
{
    return tbd_shared_holds(address, address + bytes);
}

static bool any_is_shared(const struct tbd_slot_elements *elements)
{
    for (size_t i = 0; i < elements->count; i++)
        if (is_shared(elements->address[i], elements->bytes))
            return true;
    return false;
}

/* ---- gathers ---- */

/* Logs writes of others to the elements.  False: an element is not mapped; the gather will stop
 * before it. */
static bool load_elements(struct tbd_special_run *s, const struct tbd_slot_elements *elements)
{
    for (size_t i = 0; i < elements->count; i++) {
        uint8_t now[MAX_ELEMENT_BYTES];

        if (!is_shared(elements->address[i], elements->bytes)) {
            if (!is_present(elements->address[i], elements->bytes))
                return false;
            continue;
        }
        if (!tbd_shared_load(s->effects, now, elements->address[i], elements->bytes, &s->others))
            return false;
        tbd_shared_logged(elements->address[i], now, elements->bytes);
    }
    return true;
}

/* Sets the target to the logged values: another process may have written between our reading and
 * the gather. */
static void correct_target(const struct tbd_slot_elements *elements)
{
    uint8_t loaded[TBD_VECTOR_REGISTER_BYTES], logged[TBD_VECTOR_REGISTER_BYTES];

    tbd_vector_read(&tbd_processor.vector, elements->data, loaded);
    memcpy(logged, loaded, sizeof(logged));
    for (size_t i = 0; i < elements->count; i++)
        if (is_shared(elements->address[i], elements->bytes))
            tbd_shared_read(logged + elements->place[i] * elements->bytes, elements->address[i],
                            elements->bytes);
    if (memcmp(loaded, logged, sizeof(logged)) != 0)
        tbd_vector_write(&tbd_processor.vector, elements->data, logged);
}

static void mark_elements(const struct tbd_slot_elements *elements)
{
    for (size_t i = 0; i < elements->count; i++)
        tbd_pages_mark_read(&tbd_memory.pages, elements->address[i],
                            elements->address[i] + elements->bytes);
}

/* Sends writes of others before a fault in a message of their own. */
static void send_others(struct tbd_special_run *s)
{
    if (s->others)
        tbd_special_send(s, TBD_SPECIAL_F_REPLAYED | TBD_SPECIAL_F_MORE);
    s->others = 0;
    tbd_effects_clear(s->effects);
}

static void gather_again(struct tbd_special_run *s, const struct tbd_slot_elements *elements)
{
    const struct tbd_msg_special *logged = tbd_next_others(s->effects, &s->others);

    if (logged && (logged->flags & TBD_SPECIAL_F_MORE))
        send_others(s);
    tbd_slot_run(s->thread, s->slot);
    for (size_t i = 0; i < elements->count; i++)
        tbd_special_tell_read(s, &(struct tbd_sys_range){ elements->address[i], elements->bytes });
}

void tbd_shared_gather(struct tbd_special_run *s)
{
    struct tbd_slot_elements elements;

    tbd_slot_elements(s->thread, s->slot, &elements);
    mark_elements(&elements);
    if (tbd_next_others) {
        gather_again(s, &elements);
        return;
    }
    if (!any_is_shared(&elements) || elements.bytes > MAX_ELEMENT_BYTES) {
        tbd_slot_run(s->thread, s->slot);
        return;
    }
    if (!load_elements(s, &elements))
        send_others(s);
    tbd_slot_run(s->thread, s->slot);
    correct_target(&elements);
}

/* ---- scatters ---- */

/* Elements can overlap: each one's logged store has its final contents. */
static void scatter_all(struct tbd_special_run *s, const struct tbd_slot_elements *elements)
{
    uint8_t source[TBD_VECTOR_REGISTER_BYTES], old[TBD_SLOT_MAX_RANGES][MAX_ELEMENT_BYTES],
        now[MAX_ELEMENT_BYTES];

    tbd_vector_read(&tbd_processor.vector, elements->data, source);
    for (size_t i = 0; i < elements->count; i++)
        tbd_shared_read(old[i], elements->address[i], elements->bytes);
    tbd_slot_run(s->thread, s->slot);
    for (size_t i = 0; i < elements->count; i++)
        tbd_shared_logged(elements->address[i], source + elements->place[i] * elements->bytes,
                          elements->bytes);
    for (size_t i = 0; i < elements->count; i++) {
        tbd_shared_read(now, elements->address[i], elements->bytes);
        tbd_effects_add_known(s->effects, elements->address[i], old[i], now, elements->bytes);
    }
}

/* The number of leading elements that can be stored without a fault. */
static size_t count_writable(const struct tbd_slot_elements *elements)
{
    size_t count = 0;

    while (count < elements->count) {
        struct tbd_sys_range range = { elements->address[count], elements->bytes };

        if (!tbd_shared_is_writable(&range) || !is_present(range.address, range.bytes))
            break;
        count++;
    }
    return count;
}

static uint64_t places(const struct tbd_slot_elements *elements, size_t from, size_t to)
{
    uint64_t bits = 0;

    for (size_t i = from; i < to; i++)
        bits |= 1ull << elements->place[i];
    return bits;
}

/* If an element will fault, the elements before it run first as a piece of their own: it clears
 * their mask bits, as the processor does, and their stores are logged.  Used for any memory, in
 * play and in replay. */
static bool scatter(struct tbd_special_run *s)
{
    struct tbd_slot_elements elements;
    size_t count = tbd_slot_elements(s->thread, s->slot, &elements), good;

    if (!count || elements.bytes > MAX_ELEMENT_BYTES)
        return false;
    good = count_writable(&elements);
    if (good && good < count && elements.mask) {
        elements.count = good;
        tbd_vector_write_mask(&tbd_processor.vector, elements.mask, places(&elements, 0, good));
        scatter_all(s, &elements);
        tbd_special_send(s, TBD_SPECIAL_F_REPLAYED | TBD_SPECIAL_F_MORE);
        tbd_effects_clear(s->effects);
        tbd_vector_write_mask(&tbd_processor.vector, elements.mask, places(&elements, good, count));
        tbd_slot_elements(s->thread, s->slot, &elements);
    }
    scatter_all(s, &elements);
    return true;
}

/* ---- other stores ---- */

/* Runs the instruction on a buffer with the memory's contents, and returns the buffer.  NULL: it
 * has no operand that can be replaced. */
static uint8_t *run_on_buffer(struct tbd_special_run *s, uint64_t operand,
                              const struct tbd_sys_range *ranges, size_t count)
{
    uint8_t bytes[TBD_INSN_MAX_BYTES];
    const struct tbd_insn *insn = tbd_decoded(s->thread->regs.rip, bytes, s->insn_bytes);
    struct tbd_redirected redirected;

    if (!insn || !tbd_redirect(insn, bytes, operand, &redirected))
        return NULL;
    for (size_t i = 0; i < count; i++)
        tbd_copy_prefix_from_program(redirected.buffer + (ranges[i].address - operand),
                                     ranges[i].address, ranges[i].bytes);
    tbd_redirect_run(s->thread, &redirected);
    return redirected.buffer;
}

static void put(struct tbd_special_run *s, uint64_t address, const uint8_t *now, uint64_t bytes)
{
    uint8_t old[TBD_REDIRECT_STORE_BYTES];

    tbd_shared_read(old, address, bytes);
    tbd_store_to_program(address, now, bytes);
    tbd_effects_add_known(s->effects, address, old, now, bytes);
}

/* Stores the bytes that differ from the memory, for an instruction whose exact range is not
 * known. */
static void put_differences(struct tbd_special_run *s, const struct tbd_sys_range *range,
                            const uint8_t *now)
{
    uint8_t before[TBD_REDIRECT_STORE_BYTES];
    uint64_t end;

    tbd_copy_prefix_from_program(before, range->address, range->bytes);
    for (uint64_t at = 0; at < range->bytes; at = end) {
        bool differs = now[at] != before[at];

        for (end = at + 1; end < range->bytes && (now[end] != before[end]) == differs;)
            end++;
        if (differs)
            put(s, range->address + at, now + at, end - at);
    }
}

static bool can_store(const struct tbd_sys_range *ranges, size_t count, uint64_t operand)
{
    bool shared = false;

    for (size_t i = 0; i < count; i++) {
        uint64_t end = ranges[i].address + ranges[i].bytes;

        if (!ranges[i].bytes)
            continue;
        if (ranges[i].address < operand || end - operand > TBD_REDIRECT_STORE_BYTES ||
            !tbd_shared_is_writable(&ranges[i]) || !is_present(ranges[i].address, ranges[i].bytes))
            return false;
        shared = shared || is_shared(ranges[i].address, ranges[i].bytes);
    }
    return shared;
}

/* Logs writes of others, so that all later differences from the log are the instruction's
 * stores. */
static void add_others(struct tbd_special_run *s, const struct tbd_sys_range *ranges, size_t count)
{
    uint8_t now[TBD_REDIRECT_STORE_BYTES];

    for (size_t i = 0; i < count; i++) {
        const struct tbd_sys_range *range = &ranges[i];
        bool fits =
            range->bytes && range->bytes <= sizeof(now) && is_shared(range->address, range->bytes);

        if (fits && tbd_shared_load(s->effects, now, range->address, range->bytes, &s->others))
            tbd_shared_logged(range->address, now, range->bytes);
    }
}

bool tbd_shared_store(struct tbd_special_run *s, const struct tbd_sys_range *ranges, size_t count,
                      bool exactly)
{
    uint64_t operand = tbd_slot_operand(s->thread, s->slot);
    const uint8_t *buffer;

    /* for other kinds, the replay takes all from the log */
    if (tbd_next_others && s->kind == TBD_SPECIAL_MASKED_STORE)
        tbd_next_others(s->effects, &s->others);
    if (scatter(s))
        return true;
    if (tbd_next_others)
        return false;
    if (!can_store(ranges, count, operand))
        return false;
    buffer = run_on_buffer(s, operand, ranges, count);
    for (size_t i = 0; buffer && i < count; i++)
        if (exactly)
            put(s, ranges[i].address, buffer + (ranges[i].address - operand), ranges[i].bytes);
        else
            put_differences(s, &ranges[i], buffer + (ranges[i].address - operand));
    if (!buffer)
        add_others(s, ranges, count);
    return buffer;
}
