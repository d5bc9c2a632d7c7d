// SPDX-License-Identifier: MIT
/* past_kept.c - see past_kept.h
 *
 * Stretches that are simulated have one of a few lengths, so that places near each other have the same one.  What was given back last is
 * kept, together no more instructions than one simulation may have. */
#include "query/past/past_kept.h"

#include "query/past/past_others.h"
#include "query/past/past_values.h"

#include <stdlib.h>
#include <string.h>

enum {
    PASTS = 4,
    LEAST = 16384,
    FOCUS_SHARE = 2, /* a stretch of more than one of as many instructions is no focus */
};

struct past_kept {
    struct tbd_rings rings;
    struct tbd_past_others *others; /* owned; NULL: not looked for, or none */
    bool has_others;
    struct tbd_past *pasts[PASTS]; /* owned; the one given back last comes first, NULLs last */
};

static void forget_last(struct past_kept *kept, size_t count)
{
    while (count < PASTS && kept->pasts[count] != NULL) {
        size_t last = PASTS;

        while (kept->pasts[--last] == NULL)
            ;
        tbd_past_free(kept->pasts[last]);
        kept->pasts[last] = NULL;
    }
}

static void free_kept(void *what)
{
    struct past_kept *kept = what;

    forget_last(kept, 0);
    tbd_past_others_free(kept->others);
    tbd_rings_close(&kept->rings);
    free(kept);
}

static struct past_kept *kept_of(const struct tbd_session *session)
{
    return session->kept.what;
}

enum tbd_status tbd_past_rings(struct tbd_session *session, struct tbd_rings **out)
{
    struct past_kept *kept = kept_of(session);
    enum tbd_status status;

    *out = NULL;
    if (kept == NULL) {
        kept = calloc(1, sizeof(*kept));
        if (kept == NULL)
            return TBD_NOMEM;
        status = tbd_rings_open(session->info->path, &kept->rings, &session->why);
        if (status == TBD_OK)
            status = tbd_trace_take_crash(session->trace, &kept->rings.dump);
        if (status != TBD_OK) {
            free_kept(kept);
            return status;
        }
        session->kept = (struct tbd_session_kept){ .what = kept, .free = free_kept };
    }
    *out = &kept->rings;
    return TBD_OK;
}

/* ---- simulations ---- */

/* Instructions before the step that are simulated, so that their number up to the thread's end is a power of two. */
static uint64_t rounded(const struct tbd_rings_thread *thread, uint64_t step, uint64_t before)
{
    uint64_t after = tbd_past_insns_from(thread, step), least = LEAST;
    uint64_t all = after + (before > after / 2 ? before : after / 2);

    while (least < all)
        least *= 2;
    if (least > TBD_PAST_MOST)
        least = all < TBD_PAST_MOST ? TBD_PAST_MOST : all;
    return least - after;
}

/* From `before` instructions before the step up to a little after step `until`, so that places near each other have the same.  Not if that
 * is most of all. */
static struct tbd_past_focus focus_on(const struct tbd_rings_thread *thread, uint64_t step,
                                      uint64_t before, uint64_t until, uint64_t all)
{
    uint64_t last = tbd_past_insns_from(thread, until);
    uint64_t from = tbd_past_insns_from(thread, step) + before;
    uint64_t to = last > TBD_PAST_BEFORE ? last - TBD_PAST_BEFORE : 0;

    from = (from + LEAST - 1) / LEAST * LEAST;
    to = to / LEAST * LEAST;
    return to > 0 && from - to <= all / FOCUS_SHARE ? (struct tbd_past_focus){ from, to }
                                                    : (struct tbd_past_focus){ 0, 0 };
}

/* Takes the first one that fits out of the list. */
static struct tbd_past *find_past(struct past_kept *kept, const struct tbd_rings_thread *thread,
                                  uint64_t first_step, struct tbd_past_focus focus)
{
    for (size_t i = 0; i < PASTS && kept->pasts[i] != NULL; i++) {
        struct tbd_past *past = kept->pasts[i];

        if (past->thread != thread || past->first_step != first_step ||
            past->focus.from != focus.from || past->focus.to != focus.to)
            continue;
        memmove(&kept->pasts[i], &kept->pasts[i + 1], (PASTS - 1 - i) * sizeof(past));
        kept->pasts[PASTS - 1] = NULL;
        return past;
    }
    return NULL;
}

/* Without a state at the end, all that is known comes from registers recorded before: as many instructions as reach back to them. */
static uint64_t reaching_registers(const struct tbd_rings *ring,
                                   const struct tbd_rings_thread *thread, uint64_t step,
                                   uint64_t before)
{
    uint64_t from = tbd_past_registers_before(ring, (uint32_t)(thread - ring->threads), step);
    uint64_t insns = 0;

    for (; from < step && insns < TBD_PAST_MOST; from++)
        insns += thread->walked.steps[from].insns;
    return insns > before && insns < TBD_PAST_MOST ? insns : before;
}

enum tbd_status tbd_past_others(struct tbd_session *session, const struct tbd_past_others **out)
{
    struct tbd_rings *rings;
    enum tbd_status status = tbd_past_rings(session, &rings);
    struct past_kept *kept = kept_of(session);

    *out = NULL;
    if (status == TBD_OK && !kept->has_others) {
        status = tbd_past_others_new(session, rings, &kept->others);
        kept->has_others = status == TBD_OK;
    }
    if (status == TBD_OK)
        *out = kept->others;
    return status;
}

enum tbd_status tbd_past_take(struct tbd_session *session, struct tbd_rings_thread *thread,
                              uint64_t step, uint64_t before, uint64_t until, struct tbd_past **out)
{
    struct tbd_past_reach reach = { .step = step };
    struct tbd_rings *rings;
    enum tbd_status status = tbd_past_rings(session, &rings);

    *out = NULL;
    if (status != TBD_OK)
        return status;
    if (thread->after != 0)
        return tbd_past_too_far(session);
    status = tbd_past_others(session, &reach.others);
    if (status != TBD_OK)
        return status;
    if (session->info->has_rings_only && before >= TBD_PAST_FAR)
        before = reaching_registers(rings, thread, step, before);
    reach.before = rounded(thread, step, before);
    reach.focus =
        focus_on(thread, step, before, until, tbd_past_insns_from(thread, step) + reach.before);
    *out = find_past(kept_of(session), thread, tbd_past_step_before(thread, step, reach.before),
                     reach.focus);
    return *out != NULL ? TBD_OK : tbd_past_new(session, rings, thread, &reach, out);
}

/* As many of those kept as have no more instructions together than one may have. */
static size_t how_many(const struct past_kept *kept)
{
    size_t count = 0, steps = 0;

    for (; count < PASTS && kept->pasts[count] != NULL; count++) {
        steps += tbd_simulation_counts(kept->pasts[count]->sim).steps;
        if (count > 0 && steps > TBD_PAST_MOST)
            break;
    }
    return count;
}

void tbd_past_give_back(struct tbd_past *past)
{
    struct past_kept *kept;

    if (past == NULL)
        return;
    tbd_past_leave(past);
    kept = kept_of(past->session);
    forget_last(kept, PASTS - 1);
    memmove(&kept->pasts[1], &kept->pasts[0], (PASTS - 1) * sizeof(past));
    kept->pasts[0] = past;
    forget_last(kept, how_many(kept));
}
