// SPDX-License-Identifier: MIT
/* shadow.c - see shadow.h */
#include "query/shadow.h"

#include <stdlib.h>

void tbd_shadow_clear(struct tbd_shadow *shadow)
{
    shadow->count = 0;
}

void tbd_shadow_free(struct tbd_shadow *shadow)
{
    free(shadow->frames);
    free(shadow->pcs);
    *shadow = (struct tbd_shadow){ 0 };
}

static void drop_below(struct tbd_shadow *shadow, uint64_t slot)
{
    while (shadow->count > 0 && shadow->frames[shadow->count - 1].slot <= slot)
        shadow->count--;
}

bool tbd_shadow_call(struct tbd_shadow *shadow, uint64_t slot, uint64_t call_pc)
{
    drop_below(shadow, slot);
    if (shadow->count == shadow->capacity) {
        size_t capacity = shadow->capacity == 0 ? 64 : shadow->capacity * 2;
        struct tbd_shadow_frame *bigger = realloc(shadow->frames, capacity * sizeof(*bigger));

        if (bigger == NULL)
            return false;
        shadow->frames = bigger;
        shadow->capacity = capacity;
    }
    shadow->frames[shadow->count++] = (struct tbd_shadow_frame){ slot, call_pc };
    return true;
}

void tbd_shadow_return(struct tbd_shadow *shadow, uint64_t slot)
{
    drop_below(shadow, slot);
}

const uint64_t *tbd_shadow_pcs(struct tbd_shadow *shadow, uint64_t pc, size_t *out_count)
{
    size_t count = shadow->count + 1;

    *out_count = 0;
    if (count > shadow->pcs_capacity) {
        uint64_t *bigger = realloc(shadow->pcs, count * 2 * sizeof(*bigger));

        if (bigger == NULL)
            return NULL;
        shadow->pcs = bigger;
        shadow->pcs_capacity = count * 2;
    }
    shadow->pcs[0] = pc;
    for (size_t i = 1; i < count; i++)
        shadow->pcs[i] = shadow->frames[count - 1 - i].call_pc;
    *out_count = count;
    return shadow->pcs;
}
