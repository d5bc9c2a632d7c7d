// SPDX-License-Identifier: MIT
/* calling.c - the calling context (base/calling.h): r14 has the thread's value, and memory at a constant distance r15 from
 * each return address keeps the value of the caller (hooks/memory/calling_memory.h)
 *
 *     mov [rsp + r15 - 8], r14        before the push of a call
 *     rorx s, r14, 27 ; lea r14, [s + s * 8 + number]        after it (order)
 *     mov s, [rsp + r15] ; pop r11 ; mov r14, s              a return
 *
 * The last instruction of each is the only one that changes r14. */
#include "patcher/templates.h"

static struct tbd_ea beside(int64_t disp)
{
    return (struct tbd_ea){ .disp = disp, .base = TBD_RSP, .index = TBD_R15, .scale = 1 };
}

void tbd_hook_calling_keep(struct tbd_emit *e)
{
    struct tbd_ea kept = beside(-8);

    tbd_emit_store(e, TBD_R14, &kept, 8);
}

void tbd_hook_calling_get(struct tbd_emit *e, unsigned dst)
{
    struct tbd_ea kept = beside(0);

    tbd_emit_load(e, dst, &kept, 8);
}

static void add(struct tbd_emit *e, unsigned first, unsigned second)
{
    struct tbd_ea sum = { .base = (uint8_t)first, .index = (uint8_t)second, .scale = 1 };

    tbd_emit_lea(e, TBD_R14, &sum);
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
    struct tbd_ea next = {
        .disp = tbd_calling_addend(number), .base = scratch[0], .index = scratch[0], .scale = 8
    };

    if (scheme == TBD_CALLING_ORDER) {
        tbd_emit_rorx(e, scratch[0], TBD_R14, TBD_CALLING_TURN);
        tbd_emit_lea(e, TBD_R14, &next);
        return;
    }
    tbd_emit_mov_imm(e, scratch[0], number);
    if (scheme == TBD_CALLING_XOR)
        tbd_hook_xor(e, TBD_R14, scratch[0], scratch[1]);
    else
        add(e, TBD_R14, scratch[0]);
}

void tbd_hook_calling_set(struct tbd_emit *e, unsigned src)
{
    tbd_emit_mov(e, TBD_R14, src);
}

void tbd_hook_calling_tell(struct tbd_emit *e)
{
    tbd_emit_mov(e, TBD_RAX, TBD_R14);
}
