// SPDX-License-Identifier: MIT
/* load.c - addresses of loads and stores, and the touch map
 *
 *     lea s, [ea]              mov [r14 + at], s
 *     lea s, [ea + distance]   rorx s, s, 12       mov byte gs:[s32 * 2 + which], 1
 *
 * After rorx the low half of s holds bits 12..43 of the address; doubled, in 32-bit address
 * arithmetic, that is the page's cell (base/layout.h). */
#include "patcher/templates.h"

#include "base/layout.h"

enum { READ, WRITTEN };

void tbd_hook_address(struct tbd_emit *e, const struct tbd_hook_access *a, uint32_t at,
                      bool base_only)
{
    struct tbd_ea slot = tbd_hook_operand(at);

    if (!base_only)
        tbd_emit_lea(e, a->scratch, &a->ea);
    tbd_emit_store(e, base_only ? a->ea.base : a->scratch, &slot, 8);
}

static void mark(struct tbd_emit *e, const struct tbd_hook_access *a, int distance, unsigned which)
{
    struct tbd_ea ea = a->ea;

    ea.disp += distance;
    if (ea.base == TBD_NO_REG && ea.index == TBD_NO_REG) {
        tbd_emit_mark_at(e, (uint32_t)(((uint64_t)ea.disp >> TBD_PAGE_SHIFT) * 2 + which));
        return;
    }
    if (ea.index != TBD_NO_REG || ea.disp != 0) {
        tbd_emit_lea(e, a->scratch, &ea);
        ea.base = a->scratch;
    }
    tbd_emit_rorx(e, a->scratch, ea.base, TBD_PAGE_SHIFT);
    tbd_emit_mark(e, a->scratch, which);
}

void tbd_hook_touch(struct tbd_emit *e, const struct tbd_hook_access *a)
{
    if (a->touch.marks & TBD_MARK_READ)
        mark(e, a, a->touch.read_at, READ);
    if (a->touch.marks & TBD_MARK_LOW)
        mark(e, a, a->touch.low_at, WRITTEN);
    if (a->touch.marks & TBD_MARK_HIGH)
        mark(e, a, a->touch.high_at, WRITTEN);
}
