// SPDX-License-Identifier: MIT
/* callers.c - see callers.h */
#include "query/session/callers.h"

#include "base/array.h"

#include <stdlib.h>

void tbd_callers_clear(struct tbd_callers *callers)
{
    callers->count = 0;
    callers->is_cut = false;
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

bool tbd_callers_call(struct tbd_callers *callers, uint64_t slot, uint64_t call_pc, uint64_t time)
{
    drop_below(callers, slot);
    if (!tbd_array_grow(&callers->frames, callers->count, &callers->capacity,
                        sizeof(*callers->frames)))
        return false;
    callers->frames[callers->count++] =
        (struct tbd_callers_frame){ slot, call_pc, time, TBD_CALLERS_UNKNOWN };
    return true;
}

void tbd_callers_return(struct tbd_callers *callers, uint64_t slot)
{
    drop_below(callers, slot);
}

const struct tbd_callers_frame *tbd_callers_at(const struct tbd_callers *callers, uint64_t slot,
                                               bool *out_is_over)
{
    size_t i = callers->count;

    while (i != 0 && callers->frames[i - 1].slot < slot)
        i--;
    *out_is_over = i != callers->count;
    return i != 0 && callers->frames[i - 1].slot == slot ? &callers->frames[i - 1] : NULL;
}

uint32_t tbd_callers_marked(struct tbd_callers *callers,
                            bool (*is_marked)(const void *context, uint64_t pc),
                            const void *context)
{
    size_t i = callers->count;
    uint32_t marked;

    while (i != 0 && callers->frames[i - 1].marked == TBD_CALLERS_UNKNOWN)
        i--;
    marked = i == 0 ? 0 : callers->frames[i - 1].marked;
    for (; i < callers->count; i++) {
        marked += is_marked(context, callers->frames[i].call_pc);
        callers->frames[i].marked = marked;
    }
    return callers->is_cut ? TBD_CALLERS_UNKNOWN : marked;
}

const uint64_t *tbd_callers_pcs(struct tbd_callers *callers, uint64_t pc, size_t *out_count)
{
    size_t count = callers->count + 1;

    *out_count = 0;
    if (!tbd_array_reserve(&callers->pcs, count, &callers->pcs_capacity, sizeof(*callers->pcs)))
        return NULL;
    callers->pcs[0] = pc;
    for (size_t i = 1; i < count; i++)
        callers->pcs[i] = callers->frames[count - 1 - i].call_pc;
    *out_count = count;
    return callers->pcs;
}
