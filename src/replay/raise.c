// SPDX-License-Identifier: MIT
/* raise.c - writes the events of windows to disk again, or only their counts
 *
 *   workers:  take the next window, replay it, put it into its place
 *   caller:   takes windows in order, joins them to the windows before, writes and commits them
 *
 * A replayed window has everything that play's had except the backlinks of its summaries.  At level
 * 2 the TOC still has them.  At level 1 it only says which words and blocks occurred; then all
 * earlier windows are read once, for these bits.
 *
 * Where windows get counts, the index over windows is written again, segment by segment.
 *
 * Invariants
 * RAISE-1  At most `ahead` windows are replayed and not written: memory is bounded.
 * RAISE-2  Whenever this ends, each window is as before or raised (change.h). (not checked: test_counting kills it) */
#include "replay/raise.h"

#include "base/assert.h"
#include "format/merging/change.h"
#include "format/merging/keys_again.h"
#include "format/window/window.h"
#include "format/reading/window_read.h"
#include "organizer/backlink_heads.h"
#include "replay/slices.h"

#include <pthread.h>
#include <stdlib.h>

/* A window on its way from a worker to the caller. */
struct raise_place {
    struct tbd_window *window; /* owned; NULL: it failed, or is not there yet */
    bool is_there;
    enum tbd_status status;
    struct tbd_divergence divergence;
    struct tbd_error why;
};

struct raise_run {
    const struct tbd_raise *how;
    struct tbd_replayer *replayer;
    struct tbd_backlink_heads *heads; /* for the windows before `next`; NULL until needed */
    uint32_t next;
    uint64_t grown; /* bytes of files */
    uint32_t raised;
    bool has_segment; /* a window of `segment` was counted, and its keys are old */
    size_t segment;
    uint32_t segment_last; /* index of its last window */

    /* the windows to raise, in order */
    uint32_t *wanted; /* owned */
    uint32_t count;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t change;
    uint32_t taken, written; /* places in `wanted` */
    uint32_t ahead;
    bool is_over;
    struct raise_place *places; /* owned: `ahead` of them, used again and again */
};

struct raise_worker {
    struct raise_run *run;
    unsigned number;
    pthread_t thread;
    bool is_started;
};

/* ---- replaying ---- */

static void replay_window(struct raise_run *r, unsigned worker, uint32_t index,
                          struct raise_place *out)
{
    enum tbd_level before = tbd_trace_window(r->how->trace, index)->level;

    if (before > TBD_LEVEL_BITS)
        out->status = tbd_replay_events(r->replayer, worker, index, TBD_HOOKS_FULL, &out->window,
                                        &out->divergence, &out->why);
    else if (r->how->level == TBD_LEVEL_EVENTS)
        out->status = tbd_replay_full(r->replayer, worker, index, TBD_HOOKS_FULL, &out->window,
                                      &out->divergence, &out->why);
    else
        out->status = tbd_replay_counts(r->replayer, worker, index, &out->window, &out->divergence,
                                        &out->why);
}

/* The next window; false: there is none, or this is over. */
static bool take(struct raise_run *r, uint32_t *out)
{
    bool is_good;

    pthread_mutex_lock(&r->lock);
    while (!r->is_over && r->taken < r->count && r->taken >= r->written + r->ahead)
        pthread_cond_wait(&r->change, &r->lock);
    is_good = !r->is_over && r->taken < r->count;
    if (is_good)
        *out = r->taken++;
    TBD_INVARIANT("RAISE-1", r->taken <= r->written + r->ahead);
    pthread_mutex_unlock(&r->lock);
    return is_good;
}

static void give(struct raise_run *r, uint32_t place, const struct raise_place *raised)
{
    pthread_mutex_lock(&r->lock);
    r->places[place % r->ahead] = *raised;
    r->places[place % r->ahead].is_there = true;
    pthread_cond_broadcast(&r->change);
    pthread_mutex_unlock(&r->lock);
}

static void *work(void *argument)
{
    const struct raise_worker *worker = argument;
    struct raise_run *r = worker->run;
    uint32_t place;

    while (take(r, &place)) {
        struct raise_place raised = { 0 };

        replay_window(r, worker->number, r->wanted[place], &raised);
        give(r, place, &raised);
    }
    return NULL;
}

/* ---- backlinks ---- */

static struct tbd_word_summary *words_of(const struct tbd_window *window)
{
    return (struct tbd_word_summary *)(uintptr_t)window->words;
}

static struct tbd_block_summary *blocks_of(const struct tbd_window *window)
{
    return (struct tbd_block_summary *)(uintptr_t)window->block_summaries;
}

static enum tbd_status pass_window(struct raise_run *r, struct tbd_window *window)
{
    enum tbd_status status =
        tbd_backlink_heads_words(r->heads, window->number, words_of(window), window->word_count);

    if (!status)
        status = tbd_backlink_heads_blocks(r->heads, window->number, blocks_of(window),
                                           window->block_summary_count);
    r->next = window->index + 1;
    return status;
}

/* Finds backlinks in the earlier windows. */
static enum tbd_status find_links(struct raise_run *r, struct tbd_window *window,
                                  struct tbd_error *why)
{
    enum tbd_status status = TBD_OK;

    if (!r->heads)
        r->heads = tbd_backlink_heads_new();
    if (!r->heads)
        return TBD_NOMEM;
    while (r->next < window->index && !status) {
        struct tbd_window *before;

        status = tbd_window_load_summaries(r->how->trace, r->next, &before, why);
        if (!status) {
            status = pass_window(r, before);
            tbd_window_free(before);
        }
    }
    return status ? status : pass_window(r, window);
}

/* Replaces indices by numbers, which files use. */
static void number_links(const struct tbd_trace *trace, struct tbd_window *window)
{
    struct tbd_word_summary *words = words_of(window);
    struct tbd_block_summary *blocks = blocks_of(window);

    for (size_t i = 0; i < window->word_count; i++)
        if (words[i].previous)
            words[i].previous = tbd_trace_window(trace, words[i].previous - 1)->number + 1;
    for (size_t i = 0; i < window->block_summary_count; i++)
        if (blocks[i].previous)
            blocks[i].previous = tbd_trace_window(trace, blocks[i].previous - 1)->number + 1;
}

/* ---- writing ---- */

static uint64_t bytes_of(const struct tbd_disk_window *window)
{
    return window->toc_bytes + window->trace_bytes + window->block_bytes;
}

static enum tbd_status write_window(struct raise_run *r, const struct tbd_window *window,
                                    struct tbd_error *why)
{
    const struct tbd_raise *how = r->how;
    const struct tbd_window_summary *summary = tbd_trace_window(how->trace, window->index);
    uint64_t before = summary->toc_bytes + summary->trace_bytes + summary->block_bytes;
    struct tbd_change change = { 0 };
    enum tbd_status status =
        tbd_change_raise(how->trace, how->writer, window, how->level, &change, why);

    if (!status)
        status = tbd_change_commit(how->writer, &change);
    if (!status && bytes_of(&change.disk.window) > before)
        r->grown += bytes_of(&change.disk.window) - before;
    r->raised += !status;
    tbd_change_free(&change);
    return status;
}

static void write_keys(struct raise_run *r)
{
    if (r->has_segment)
        tbd_keys_write_again(r->how->trace, r->how->writer, r->segment);
    r->has_segment = false;
}

/* The index knew nothing of an uncounted window. */
static void note_keys(struct raise_run *r, uint32_t index)
{
    if (!tbd_trace_window(r->how->trace, index)->is_uncounted || r->has_segment)
        return;
    r->has_segment = tbd_keys_segment_of(r->how->trace, index, &r->segment, &r->segment_last);
}

static enum tbd_status put_window(struct raise_run *r, struct tbd_window *window,
                                  struct tbd_error *why)
{
    const struct tbd_raise *how = r->how;
    enum tbd_status status = TBD_OK;

    if (tbd_trace_window(how->trace, window->index)->level > TBD_LEVEL_BITS)
        number_links(how->trace, window);
    else
        status = find_links(r, window, why);
    if (!status && how->is_aside)
        status = tbd_writer_take_again(how->writer, why);
    if (status)
        return status;
    if (r->has_segment && window->index > r->segment_last)
        write_keys(r);
    status = write_window(r, window, why);
    if (!status)
        note_keys(r, window->index);
    if (how->is_aside)
        tbd_writer_let_go(how->writer);
    return status;
}

/* ---- in order ---- */

/* Does the failure concern only this window? */
static bool is_passed_over(const struct raise_run *r, enum tbd_status status)
{
    return r->how->is_aside && status != TBD_OK && status != TBD_NOMEM && status != TBD_SYSTEM &&
           status != TBD_IO && status != TBD_NOSPACE;
}

static struct raise_place await(struct raise_run *r, uint32_t place)
{
    struct raise_place raised;

    pthread_mutex_lock(&r->lock);
    while (!r->places[place % r->ahead].is_there)
        pthread_cond_wait(&r->change, &r->lock);
    raised = r->places[place % r->ahead];
    r->places[place % r->ahead] = (struct raise_place){ 0 };
    r->written++;
    pthread_cond_broadcast(&r->change);
    pthread_mutex_unlock(&r->lock);
    return raised;
}

static bool goes_on(const struct raise_run *r, uint32_t done)
{
    return !r->how->goes_on || r->how->goes_on(r->how->context, done, r->count);
}

static enum tbd_status write_in_order(struct raise_run *r, struct tbd_divergence *divergence,
                                      struct tbd_error *why)
{
    const struct tbd_raise *how = r->how;
    enum tbd_status status = TBD_OK;

    for (uint32_t i = 0; i < r->count && !status; i++) {
        struct raise_place raised;

        if (!goes_on(r, i))
            return TBD_INTERRUPTED;
        if (how->most_bytes && r->grown > how->most_bytes)
            return TBD_OK;
        raised = await(r, i);
        status = raised.status;
        if (is_passed_over(r, status)) {
            status = TBD_OK;
        } else if (status) {
            *divergence = raised.divergence;
            if (why)
                *why = raised.why;
        } else {
            status = put_window(r, raised.window, why);
        }
        tbd_window_free(raised.window);
    }
    return status;
}

/* Keys of windows that were counted, once there is nothing more to come for them. */
static void write_last_keys(struct raise_run *r)
{
    if (!r->has_segment)
        return;
    if (r->how->is_aside && tbd_writer_take_again(r->how->writer, NULL))
        return;
    write_keys(r);
    if (r->how->is_aside)
        tbd_writer_let_go(r->how->writer);
}

static enum tbd_status run_workers(struct raise_run *r, struct tbd_divergence *divergence,
                                   struct tbd_error *why)
{
    struct raise_worker *workers = calloc(r->how->workers, sizeof(*workers));
    enum tbd_status status = TBD_NOMEM;
    unsigned started = 0;

    for (; workers && started < r->how->workers; started++) {
        workers[started] = (struct raise_worker){ .run = r, .number = started };
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]))
            break;
    }
    if (started)
        status = write_in_order(r, divergence, why);
    pthread_mutex_lock(&r->lock);
    r->is_over = true;
    pthread_cond_broadcast(&r->change);
    pthread_mutex_unlock(&r->lock);
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    if (!status)
        write_last_keys(r);
    for (uint32_t i = 0; i < r->ahead; i++)
        tbd_window_free(r->places[i].window);
    free(workers);
    return status;
}

bool tbd_raise_is_possible(const struct tbd_trace *trace, uint32_t window, enum tbd_level level)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, window);

    return summary->level < level && summary->span == 1 && tbd_slice_count(trace, window) <= 1;
}

bool tbd_raise_is_left(const struct tbd_trace *trace, uint32_t window)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, window);

    return summary->is_uncounted && summary->complete &&
           tbd_raise_is_possible(trace, window, TBD_LEVEL_COUNTS);
}

static bool is_wanted(const struct tbd_raise *how, uint32_t window)
{
    return how->is_aside ? tbd_raise_is_left(how->trace, window)
                         : tbd_raise_is_possible(how->trace, window, how->level);
}

static bool list_windows(struct raise_run *r)
{
    const struct tbd_raise *how = r->how;

    r->ahead = 2 * how->workers;
    r->wanted = calloc(how->to - how->from + 1ul, sizeof(*r->wanted));
    r->places = calloc(r->ahead, sizeof(*r->places));
    for (uint32_t i = how->from; r->wanted && i <= how->to; i++)
        if (is_wanted(how, i))
            r->wanted[r->count++] = i;
    return r->wanted && r->places;
}

enum tbd_status tbd_raise_windows(const struct tbd_raise *raise, uint32_t *out_raised,
                                  struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct raise_run r = { .how = raise,
                           .lock = PTHREAD_MUTEX_INITIALIZER,
                           .change = PTHREAD_COND_INITIALIZER };
    enum tbd_status status = list_windows(&r) ? TBD_OK : TBD_NOMEM;

    if (!status)
        status = tbd_replayer_new(raise->trace, raise->workers, &r.replayer, why);
    if (!status && raise->is_aside)
        tbd_writer_let_go(raise->writer);
    if (!status && r.count)
        status = run_workers(&r, divergence, why);
    tbd_replayer_free(r.replayer);
    tbd_backlink_heads_free(r.heads);
    free(r.wanted);
    free(r.places);
    *out_raised = r.raised;
    return status;
}
