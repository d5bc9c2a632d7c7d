// SPDX-License-Identifier: MIT
/* callers.c - see callers.h */
#include "query/callers.h"

#include <stdlib.h>

void tbd_callers_clear(struct tbd_callers *callers)
{
    callers->count = 0;
}

void tbd_callers_free(struct tbd_callers *callers)
{
    free(callers->frames);
    free(callers->pcs);
    *callers = (struct tbd_callers){ 0 };
}

static void drop_below(struct tbd_callers *callers, uint64_t slot)
{
    while (callers->count > 0 && callers->frames[callers->count - 1].slot <= slot)
        callers->count--;
}

bool tbd_callers_call(struct tbd_callers *callers, uint64_t slot, uint64_t call_pc)
{
    drop_below(callers, slot);
    if (callers->count == callers->capacity) {
        size_t capacity = callers->capacity == 0 ? 64 : callers->capacity * 2;
        struct tbd_callers_frame *bigger = realloc(callers->frames, capacity * sizeof(*bigger));

        if (bigger == NULL)
            return false;
        callers->frames = bigger;
        callers->capacity = capacity;
    }
    callers->frames[callers->count++] = (struct tbd_callers_frame){ slot, call_pc };
    return true;
}

void tbd_callers_return(struct tbd_callers *callers, uint64_t slot)
{
    drop_below(callers, slot);
}

const uint64_t *tbd_callers_pcs(struct tbd_callers *callers, uint64_t pc, size_t *out_count)
{
    size_t count = callers->count + 1;

    *out_count = 0;
    if (count > callers->pcs_capacity) {
        uint64_t *bigger = realloc(callers->pcs, count * 2 * sizeof(*bigger));

        if (bigger == NULL)
            return NULL;
        callers->pcs = bigger;
        callers->pcs_capacity = count * 2;
    }
    callers->pcs[0] = pc;
    for (size_t i = 1; i < count; i++)
        callers->pcs[i] = callers->frames[count - 1 - i].call_pc;
    *out_count = count;
    return callers->pcs;
}
