// SPDX-License-Identifier: MIT
/* calling.c - the calling context (base/calling.h): the thread block has its value, and the distance from each return
 * address to the memory that keeps the value of the caller (hooks/memory/calling_memory.h)
 *
 *     mov s, distance ; mov v, value ; mov [rsp + s - 8], v         before the push of a call
 *     rorx v, v, 27 ; lea v, [v + v * 8 + number] ; mov value, v    after it (order)
 *     mov v, distance ; mov v, [rsp + v] ; pop r11 ; mov value, v   a return
 *
 * The last instruction of each is the only one that changes the value.  Programs use r14 and r15 much more often than they
 * call: with both in registers a call took three instructions less, and python3 a quarter more. */
#include "patcher/templates.h"

#define VALUE_AT    TBD_THREAD_GS(calling_value)
#define DISTANCE_AT TBD_THREAD_GS(calling_distance)

static struct tbd_ea beside(unsigned distance, int64_t disp)
{
    return (struct tbd_ea){ .disp = disp, .base = TBD_RSP, .index = (uint8_t)distance, .scale = 1 };
}

void tbd_hook_calling_keep(struct tbd_emit *e, const uint8_t *scratch)
{
    struct tbd_ea kept = beside(scratch[0], -8);

    tbd_emit_load_gs(e, scratch[0], DISTANCE_AT);
    tbd_emit_load_gs(e, scratch[1], VALUE_AT);
    tbd_emit_store(e, scratch[1], &kept, 8);
}

void tbd_hook_calling_get(struct tbd_emit *e, unsigned dst)
{
    struct tbd_ea kept = beside(dst, 0);

    tbd_emit_load_gs(e, dst, DISTANCE_AT);
    tbd_emit_load(e, dst, &kept, 8);
}

/* a ^ b = a + 2 * ~(a & b) + 2 + b, where a & b is deposited from what is extracted. */
void tbd_hook_xor(struct tbd_emit *e, unsigned dst, unsigned number, unsigned s)
{
    struct tbd_ea rest = { .disp = 2, .base = (uint8_t)dst, .index = (uint8_t)s, .scale = 2 };
    struct tbd_ea sum = { .base = (uint8_t)s, .index = (uint8_t)number, .scale = 1 };

    tbd_emit_pext(e, s, dst, number);
    tbd_emit_pdep(e, s, s, number);
    tbd_emit_not(e, s);
    tbd_emit_lea(e, s, &rest);
    tbd_emit_lea(e, dst, &sum);
}

void tbd_hook_calling_enter(struct tbd_emit *e, enum tbd_calling_scheme scheme, uint64_t number,
                            const uint8_t *scratch)
{
    unsigned v = scratch[0];
    struct tbd_ea turned = {
        .disp = tbd_calling_addend(number), .base = (uint8_t)v, .index = (uint8_t)v, .scale = 8
    };
    struct tbd_ea sum = { .base = (uint8_t)v, .index = scratch[1], .scale = 1 };

    if (scheme == TBD_CALLING_ORDER)
        tbd_emit_rorx(e, v, v, TBD_CALLING_TURN);
    else
        tbd_emit_mov_imm(e, scratch[1], number);
    if (scheme == TBD_CALLING_XOR)
        tbd_hook_xor(e, v, scratch[1], scratch[2]);
    else
        tbd_emit_lea(e, v, scheme == TBD_CALLING_ORDER ? &turned : &sum);
    tbd_emit_store_gs(e, v, VALUE_AT);
}

void tbd_hook_calling_set(struct tbd_emit *e, unsigned src)
{
    tbd_emit_store_gs(e, src, VALUE_AT);
}

void tbd_hook_calling_tell(struct tbd_emit *e)
{
    tbd_emit_load_gs(e, TBD_RAX, VALUE_AT);
}
