// SPDX-License-Identifier: MIT
/* cut_place.c - see cut_place.h
 *
 * Blocks that begin at the cut's address ask (patcher/asked_places.h).  After the last event before the cut, the first
 * arrival in the same state is the place: general registers, vector state, and what the pages hold that play has written.  Two equal states without an event between them have the same future, so that a later one would do as well.
 *
 * Translated code compares general registers itself, and the word of memory that differed last: in a loop that counts in
 * memory, this is the counter.
 *
 * CUT_PLACE-1  The word is in a page that can be read, whenever it is compared: it is chosen where the cut is due, so no event
 *     is left before the cut, and no call that could take the page away. (not checked: is_cut_due())
 *
 * Context: APP. */
#include "replay/stub/cut_place.h"

#include "base/fmt.h"
#include "base/string.h"
#include "hooks/instructions/processor.h"
#include "hooks/memory/program_memory.h"
#include "patcher/asked_places.h"
#include "patcher/patcher.h"
#include "replay/stub/memory.h"

static const struct tbd_plan_head *plan;
static struct tbd_asked_state state;
static const uint64_t nothing; /* a word that agrees */

/* How near the arrivals since the window's start came, for whoever looks for the cause when none is the place. */
static struct {
    uint64_t arrivals; /* in which the general registers agreed */
    const char *differs;
    uint64_t where;
} nearest;

static bool miss(const char *differs, uint64_t where)
{
    nearest.differs = differs;
    nearest.where = where;
    return false;
}

static const void *in_plan(uint64_t offset)
{
    return (const char *)plan + offset;
}

static void look_at(uint64_t address, uint64_t value)
{
    state.word = address;
    state.minus_value = 0 - value;
}

void tbd_cut_place_begin(struct tbd_thread *thread, const struct tbd_plan_head *given)
{
    plan = given;
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        state.minus_gpr[r] = 0 - plan->cut_regs.gpr[r];
    look_at((uint64_t)(uintptr_t)&nothing, nothing);
    memset(&nearest, 0, sizeof(nearest));
    tbd_asked_places_set_state(&state);
    tbd_patcher_ask(thread, plan->has_cut ? plan->cut_regs.rip : 0);
}

static bool same_registers(const struct tbd_regs *now)
{
    const struct tbd_regs *cut = &plan->cut_regs;

    if (memcmp(now->gpr, cut->gpr, sizeof(now->gpr)) != 0)
        return false;
    nearest.arrivals++;
    if (now->rflags != cut->rflags)
        return miss("rflags differ", now->rflags ^ cut->rflags);
    return (now->fs_base == cut->fs_base && now->gs_base == cut->gs_base) ||
           miss("segment bases differ", now->fs_base);
}

static bool same_vectors(void)
{
    _Alignas(64) uint8_t image[TBD_VECTOR_MAX_BYTES];
    const uint8_t *then = in_plan(plan->cut_xsave);
    uint32_t at = 0, bytes = tbd_vector_store(&tbd_processor.vector, image);

    if (bytes != plan->cut_regs.xsave_bytes)
        return miss("the vector state has another length", bytes);
    if (memcmp(image, then, bytes) == 0)
        return true;
    while (image[at] == then[at])
        at++;
    return miss("the vector state differs at byte", at);
}

static void note_word(uint64_t page, const uint64_t *now, const uint64_t *then)
{
    size_t i = 0;

    while (now[i] == then[i])
        i++;
    look_at(page + i * sizeof(*now), then[i]);
}

static bool same_page(const struct tbd_plan_page *page)
{
    static uint64_t now[TBD_PAGE_SIZE / sizeof(uint64_t)];
    const void *then = in_plan(page->contents);

    if (!tbd_memory_read(page->address, now, sizeof(now)))
        return miss("no page at", page->address);
    if (memcmp(now, then, sizeof(now)) == 0)
        return true;
    note_word(page->address, now, then);
    return miss("memory differs at", state.word);
}

static bool same_memory(void)
{
    const struct tbd_plan_section *section = &plan->cut_pages;
    const struct tbd_plan_page *pages = in_plan(section->offset);

    for (uint64_t i = 0; i < section->count; i++)
        if (!same_page(&pages[i]))
            return false;
    return true;
}

const char *tbd_cut_place_missed(void)
{
    static char text[128];

    if (!nearest.differs)
        return "no arrival there has its registers";
    tbd_fmt(text, sizeof(text), "%lu arrivals there have its registers, the last: %s 0x%lx",
            nearest.arrivals, nearest.differs, nearest.where);
    return text;
}

bool tbd_cut_place_is_here(const struct tbd_thread *thread)
{
    return same_registers(&thread->regs) && same_vectors() && same_memory();
}
