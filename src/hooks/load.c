// SPDX-License-Identifier: MIT
/* load.c - the load event: a byte in the touch map, and the address when loads are reported
 *
 *     lea s, [ea]              mov [r14 + at], s      (loads as events)
 *     rorx s, s, 12            mov byte gs:[s32 * 2], 1
 *
 * After rorx the low half of s holds bits 12..43 of the address; doubled, in 32-bit address
 * arithmetic, that is the page's cell (base/layout.h). */
#include "hooks/templates.h"

#include "patcher/cut.h"

static uint32_t cell_of(uint64_t address)
{
    return (uint32_t)((address >> TBD_PAGE_SHIFT) * 2);
}

static bool is_constant(const struct tbd_ea *ea)
{
    return ea->base == TBD_NO_REG && ea->index == TBD_NO_REG;
}

static void touch_constant(struct tbd_emit *e, const struct tbd_hook_access *a, unsigned which)
{
    uint64_t address = (uint64_t)a->ea.disp;

    tbd_emit_mark_at(e, cell_of(address) + which);
    if (a->touch & TBD_TOUCH_LAST)
        tbd_emit_mark_at(e, cell_of(address + a->size - 1) + which);
}

static void mark(struct tbd_emit *e, unsigned scratch, unsigned which)
{
    tbd_emit_rorx(e, scratch, scratch, TBD_PAGE_SHIFT);
    tbd_emit_mark(e, scratch, which);
}

void tbd_hook_address(struct tbd_emit *e, const struct tbd_hook_access *a, bool is_store)
{
    bool constant = is_constant(&a->ea);
    struct tbd_ea last = a->ea;
    struct tbd_ea slot;

    if (a->address_at != TBD_BASE_NONE || (a->touch && !constant))
        tbd_emit_lea(e, a->scratch, &a->ea);
    if (a->address_at != TBD_BASE_NONE) {
        slot = tbd_hook_operand(a->address_at);
        tbd_emit_store(e, a->scratch, &slot, 8);
    }
    if (!a->touch)
        return;
    if (constant) {
        touch_constant(e, a, is_store);
        return;
    }
    mark(e, a->scratch, is_store);
    if (a->touch & TBD_TOUCH_LAST) {
        last.disp += (int64_t)a->size - 1;
        tbd_emit_lea(e, a->scratch, &last);
        mark(e, a->scratch, is_store);
    }
}

void tbd_hook_load(struct tbd_emit *e, const struct tbd_hook_access *a)
{
    tbd_hook_address(e, a, false);
}
