// SPDX-License-Identifier: MIT
/* shared_quick.c - see shared_quick.h
 *
 * Instructions and pages are remembered in two small tables.  What is remembered is right until mappings change or a view
 * is dropped, which are counted, and in one process: these make the tables' `stamp`.
 *
 * SHARED_QUICK-1  An instruction is remembered only where the program cannot change its bytes without a change of mappings.
 *     (not checked: is_constant() decides)
 * SHARED_QUICK-2  Where the memory is not what the view has, or cannot be accessed, nothing has been done. (not checked:
 *     registers are set last) */
#include "hooks/instructions/shared_quick.h"

#include "base/linux.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/instructions/decoded.h"
#include "hooks/instructions/shared_quick_shape.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/memory/shared.h"
#include "hooks/memory/userfault.h"
#include "hooks/stream/recording.h"
#include "patcher/forced_specials.h"
#include "patcher/interrupted.h"

/* ---- compare and exchange ---- */

static bool exchange_16(uint64_t address, const uint64_t *old, const uint64_t *now)
{
    uint64_t low = old[0], high = old[1];
    bool done;

    __asm__ volatile("lock cmpxchg16b (%[at])"
                     : "=@ccz"(done), "+a"(low), "+d"(high)
                     : [at] "r"(address), "b"(now[0]), "c"(now[1])
                     : "memory");
    return done;
}

bool tbd_shared_exchange(uint64_t address, const uint8_t *old, const uint8_t *now, uint64_t bytes)
{
    uint64_t a[2] = { 0 }, b[2] = { 0 };

    memcpy(a, old, bytes);
    memcpy(b, now, bytes);
    switch (bytes) {
#define EXCHANGE(type)                                                                             \
    {                                                                                              \
        type expected = (type)a[0];                                                                \
        return __atomic_compare_exchange_n((type *)address, &expected, (type)b[0], false,          \
                                           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                    \
    }
    case 1: EXCHANGE(uint8_t)
    case 2: EXCHANGE(uint16_t)
    case 4: EXCHANGE(uint32_t)
    case 8: EXCHANGE(uint64_t)
#undef EXCHANGE
    case 16: return exchange_16(address, a, b);
    default: return tbd_store_to_program(address, now, bytes);
    }
}

/* ---- what is remembered ---- */

enum { INSNS = 2048, PAGES = 1024 };

struct quick_insn {
    uint64_t pc;
    uint64_t stamp;
    struct tbd_forced_special *forced; /* if it has this pc */
    struct tbd_quick_shape shape;
    uint32_t bytes;
};

struct quick_page {
    uint64_t page; /* address */
    uint64_t stamp;
    uint8_t *view; /* NULL: none */
    bool is_own;   /* no other process may write it; plain data */
    bool is_writable;
};

static struct quick_insn insns[INSNS];
static struct quick_page pages[PAGES];

/* Never 0. */
static uint64_t stamp_now(void)
{
    return ((uint64_t)tbd_recording.pid << 40) + tbd_memory.regions.changes +
           tbd_shared_views_dropped + 1;
}

static bool is_constant(uint64_t pc, uint32_t bytes)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, pc);

    return region && region->map.end - pc >= bytes && !(region->map.prot & PROT_WRITE) &&
           !(region->map.map_flags & MAP_SHARED);
}

static void fill_insn(struct quick_insn *q, uint64_t pc, uint32_t bytes, uint64_t stamp)
{
    uint8_t code[TBD_INSN_MAX_BYTES];
    const struct tbd_insn *insn = is_constant(pc, bytes) ? tbd_decoded(pc, code, bytes) : NULL;

    *q = (struct quick_insn){ .pc = pc, .stamp = stamp, .bytes = bytes };
    if (insn && insn->length == bytes)
        q->shape = tbd_quick_shape_of(insn, code);
}

static struct quick_insn *insn_at(uint64_t pc, uint32_t bytes)
{
    struct quick_insn *q = &insns[(pc * 0x9e3779b97f4a7c15ull >> 32) % INSNS];
    uint64_t stamp = stamp_now();

    if (q->pc != pc || q->stamp != stamp || q->bytes != bytes)
        fill_insn(q, pc, bytes, stamp);
    if (q->shape.form != TBD_QUICK_NONE && (!q->forced || q->forced->pc != pc))
        q->forced = tbd_forced_specials_find(pc);
    return q;
}

/* Memory of the process alone, without code. */
static bool is_own(uint64_t page)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, page);

    return region && (region->map.prot & PROT_READ) && !(region->map.prot & PROT_EXEC) &&
           !(region->map.flags & (TBD_REGION_SHARED | TBD_REGION_VVAR | TBD_REGION_VDSO));
}

/* A shared page without a view will have one after its first use. */
static const struct quick_page *page_at(uint64_t page)
{
    struct quick_page *q = &pages[(page >> TBD_PAGE_SHIFT) % PAGES];
    uint64_t stamp = stamp_now();

    if (q->page == page && q->stamp == stamp && (q->view || q->is_own))
        return q;
    *q = (struct quick_page){ page, stamp, tbd_shared_view_of(page), is_own(page), false };
    q->is_writable = tbd_regions_allow(&tbd_memory.regions, page, page + TBD_PAGE_SIZE, PROT_WRITE);
    return q;
}

/* ---- doing it ---- */

struct quick_access {
    uint64_t address;
    uint8_t *view; /* of these bytes; NULL: no other process may write them */
};

static void set_view(const struct quick_access *a, uint64_t now, uint8_t size)
{
    if (a->view)
        memcpy(a->view, &now, size);
}

/* A store does not depend on what is there, which the log need not know. */
static bool store(const struct tbd_quick_shape *shape, const struct quick_access *a,
                  struct tbd_regs *regs)
{
    uint64_t now = tbd_quick_run(shape, regs, 0);

    if (!tbd_store_to_program(a->address, (const uint8_t *)&now, shape->size))
        return false;
    set_view(a, now, shape->size);
    return true;
}

/* The instruction on the memory, whose contents are first compared with the view.  A load that fails is repeated the long way. */
static bool run(const struct tbd_quick_shape *shape, const struct quick_access *a,
                struct tbd_regs *regs)
{
    struct tbd_regs now;
    uint64_t old = 0, new;

    for (;;) {
        if (!tbd_load_from_program(&old, a->address, shape->size) ||
            (a->view && memcmp(&old, a->view, shape->size) != 0))
            return false;
        memcpy(now.gpr, regs->gpr, sizeof(now.gpr));
        now.rflags = regs->rflags;
        new = tbd_quick_run(shape, &now, old);
        if (!shape->writes)
            break;
        if (!shape->is_locked) {
            if (!tbd_store_to_program(a->address, (const uint8_t *)&new, shape->size))
                return false;
            break;
        }
        if (tbd_shared_exchange(a->address, (const uint8_t *)&old, (const uint8_t *)&new,
                                shape->size))
            break;
    }
    if (shape->writes)
        set_view(a, new, shape->size);
    memcpy(regs->gpr, now.gpr, sizeof(now.gpr));
    regs->rflags = now.rflags;
    return true;
}

/* Is everything as it must be, so that nothing need be logged? */
static bool is_usual(void)
{
    return tbd_recording.ring.counting && tbd_recording.is_on && !tbd_userfault_count;
}

bool tbd_shared_quick(struct tbd_thread *thread, uint32_t insn_bytes)
{
    struct tbd_regs *regs = &thread->regs;
    const struct quick_page *page;
    struct quick_insn *q;
    struct quick_access a;
    uint64_t offset;

    if (!is_usual() || !insn_bytes)
        return false;
    q = insn_at(regs->rip, insn_bytes);
    if (q->shape.form == TBD_QUICK_NONE)
        return false;
    a.address = tbd_ea_address(&q->shape.ea, regs);
    offset = a.address & (TBD_PAGE_SIZE - 1);
    if (a.address >= TBD_USER_END || offset + q->shape.size > TBD_PAGE_SIZE)
        return false;
    page = page_at(a.address - offset);
    if ((!page->view && !page->is_own) || (q->shape.writes && !page->is_writable))
        return false;
    a.view = page->view ? page->view + offset : NULL;
    if (!(q->shape.form == TBD_QUICK_STORE ? store(&q->shape, &a, regs) : run(&q->shape, &a, regs)))
        return false;
    if (q->forced) {
        q->forced->runs++;
        q->forced->hits += page->view != NULL;
    }
    tbd_pages_mark_read(&tbd_memory.pages, a.address, a.address + q->shape.size);
    if (q->shape.writes)
        tbd_pages_mark_written(&tbd_memory.pages, a.address, a.address + q->shape.size);
    regs->rip += insn_bytes;
    return true;
}
