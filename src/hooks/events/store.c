// SPDX-License-Identifier: MIT
/* store.c - the store event: old bytes (the address: load.c)
 *
 * Old bytes go through the scratch register, eight at a time: no vector register is touched. */
#include "patcher/templates.h"

void tbd_hook_store(struct tbd_emit *e, const struct tbd_hook_access *a, uint32_t data_at)
{
    uint32_t at = 0;

    while (at < a->size) {
        uint32_t left = a->size - at;
        uint32_t step = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        struct tbd_ea from = a->ea;
        struct tbd_ea to = tbd_hook_operand(data_at + at);

        from.disp += at;
        tbd_emit_load(e, a->scratch, &from, step);
        tbd_emit_store(e, a->scratch, &to, step);
        at += step;
    }
}
