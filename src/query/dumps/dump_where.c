// SPDX-License-Identifier: MIT
/* dump_where.c - see dump_where.h
 *
 * Places are asked from the thread's end back.  A simulation serves until a place has too few instructions before it; the next one
 * reaches four times as far back. */
#include "query/dumps/dump_where.h"

static bool covers(const struct tbd_past *past, const struct tbd_dump_place *place)
{
    return past != NULL && past->thread == place->thread && place->step >= past->first_step &&
           (past->first_step == 0 ||
            past->first_insn[place->step - past->first_step] >= TBD_PAST_BEFORE / 2);
}

bool tbd_dump_where_holds(struct tbd_dump_run *dump, struct tbd_dump_where *where,
                          const struct tbd_dump_place *place)
{
    enum tbd_certainty certainty;

    if (!covers(where->past, place)) {
        uint64_t so_far = where->past == NULL ? 0 : tbd_simulation_counts(where->past->sim).steps;

        tbd_past_give_back(where->past);
        where->past = NULL;
        where->status = tbd_past_take(dump->run->session, place->thread, place->step,
                                      so_far * 3 > TBD_PAST_BEFORE ? so_far * 3 : TBD_PAST_BEFORE,
                                      place->thread->count, &where->past);
        if (where->status == TBD_NOTKEPT) /* not as far, then */
            where->status = tbd_past_take(dump->run->session, place->thread, place->step,
                                          TBD_PAST_BEFORE, place->thread->count, &where->past);
    }
    return where->status == TBD_OK && tbd_past_go(where->past, place->step, place->insn) &&
           tbd_past_decide(where->past, &where->condition, &certainty) == TBD_PAST_TRUE;
}
