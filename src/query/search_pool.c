// SPDX-License-Identifier: MIT
/* search_pool.c - many windows at once
 *
 *   workers:  take the next window in the direction of the search, count its matches, note that
 *   main:     adds the numbers up in order; stops the workers when it knows the wanted window, and
 *             searches that one itself
 *
 * Each worker has a session (trace handle, symbols) and a copy of the question of its own; all
 * share the replayer, each with its own number.
 *
 * I1  results[i] is written by the worker that took i and read by main after `done` was seen under
 *     the lock. */
#include "query/search_private.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct result {
    enum tbd_status status;
    bool done;
    uint64_t matches;
};

struct pool {
    struct tbd_search_run *run;
    uint32_t start, windows;
    _Atomic uint32_t next;
    _Atomic bool stop;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a result is there, or a worker has ended */
    struct result *results; /* by number in the direction of the search */
    unsigned running;       /* under the lock */
};

struct helper {
    struct pool *pool;
    pthread_t thread;
    bool started;
    struct tbd_session session;
    struct tbd_question question;
    struct tbd_query_error error;
    enum tbd_status status;
};

static enum tbd_status count_matches(struct tbd_search_run *run, uint32_t window, uint64_t *out)
{
    enum tbd_status status;

    run->total = 0;
    status = tbd_search_window(run, window);
    *out = run->total;
    return status;
}

static void note(struct pool *pool, uint32_t i, enum tbd_status status, uint64_t matches)
{
    pthread_mutex_lock(&pool->lock);
    pool->results[i] = (struct result){ .status = status, .done = true, .matches = matches };
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

static void change_running(struct pool *pool, int by)
{
    pthread_mutex_lock(&pool->lock);
    pool->running += (unsigned)by;
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

/* Forward and to the end of each window: the cheapest way to count. */
static void search_some(struct helper *helper, struct tbd_search_run *run)
{
    struct pool *pool = helper->pool;
    uint32_t i;

    while (!atomic_load(&pool->stop) && (i = atomic_fetch_add(&pool->next, 1)) < pool->windows) {
        uint64_t matches = 0;
        enum tbd_status status =
            count_matches(run, tbd_search_window_number(pool->run, pool->start, i), &matches);

        helper->status = status;
        note(pool, i, status, matches);
    }
}

static void *help(void *argument)
{
    struct helper *helper = argument;
    struct pool *pool = helper->pool;
    struct tbd_search search = { .session = &helper->session,
                                 .question = &helper->question,
                                 .error = &helper->error };
    struct tbd_search_run run = { .search = &search,
                                  .session = &helper->session,
                                  .question = &helper->question,
                                  .where = helper->question.where,
                                  .uses = pool->run->uses,
                                  .span = pool->run->span };

    helper->question.backward = false;
    helper->question.count = UINT64_MAX;
    helper->status = tbd_search_prepare(&run, pool->start);
    if (helper->status == TBD_OK)
        search_some(helper, &run);
    tbd_search_release(&run);
    change_running(pool, -1);
    return NULL;
}

/* ---- main ---- */

static void show(const struct pool *pool, uint32_t i)
{
    const struct tbd_search *search = pool->run->search;

    if (search->progress != NULL)
        search->progress(search->progress_context, i, pool->windows, pool->run->total);
}

/* False: all workers ended and result i never came. */
static bool wait_for(struct pool *pool, uint32_t i)
{
    bool done;

    pthread_mutex_lock(&pool->lock);
    while (!pool->results[i].done && pool->running > 0) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100 * 1000 * 1000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&pool->changed, &pool->lock, &until);
        show(pool, i);
    }
    done = pool->results[i].done;
    pthread_mutex_unlock(&pool->lock);
    return done;
}

/* A window that holds the wanted event, or all of whose events are wanted, is searched again here.
 */
static enum tbd_status use_result(struct pool *pool, uint32_t i)
{
    struct tbd_search_run *run = pool->run;
    const struct result *result = &pool->results[i];
    struct tbd_session_stats *stats = &run->session->stats;
    struct tbd_session_stats before = *stats;
    uint64_t divisions = run->env.divisions;
    uint64_t unmapped = run->env.unmapped;
    enum tbd_status status;

    if (result->status != TBD_OK)
        return tbd_search_window(run, tbd_search_window_number(run, pool->start, i));
    if (result->matches == 0)
        return TBD_OK;
    if (run->search->each == NULL && run->total + result->matches < run->question->count) {
        run->total += result->matches;
        return TBD_OK;
    }
    status = tbd_search_window(run, tbd_search_window_number(run, pool->start, i));
    run->env.divisions = divisions; /* the worker counted them, and the window */
    run->env.unmapped = unmapped;
    stats->considered = before.considered;
    stats->scanned = before.scanned;
    stats->candidates = before.candidates;
    return status;
}

static enum tbd_status add_up(struct pool *pool, uint32_t first)
{
    enum tbd_status status = TBD_OK;

    for (uint32_t i = first;
         i < pool->windows && status == TBD_OK && !tbd_search_is_done(pool->run); i++) {
        if (!wait_for(pool, i))
            return tbd_search_window(pool->run,
                                     tbd_search_window_number(pool->run, pool->start, i));
        show(pool, i);
        status = use_result(pool, i);
    }
    return status;
}

static bool start_helper(struct pool *pool, struct helper *helper, unsigned number)
{
    struct tbd_session *session = pool->run->session;

    helper->pool = pool;
    if (tbd_session_open_helper(&helper->session, session, number) != TBD_OK ||
        tbd_question_copy(pool->run->question, &helper->question) != TBD_OK)
        return false;
    change_running(pool, 1);
    helper->started = pthread_create(&helper->thread, NULL, help, helper) == 0;
    if (!helper->started)
        change_running(pool, -1);
    return helper->started;
}

static void end_helper(struct helper *helper, struct tbd_session_stats *stats)
{
    const struct tbd_session_stats *own = &helper->session.stats;

    if (helper->started)
        pthread_join(helper->thread, NULL);
    stats->considered += own->considered;
    stats->skipped += own->skipped;
    stats->scanned += own->scanned;
    stats->raised += own->raised;
    stats->candidates += own->candidates;
    stats->replayed += own->replayed;
    stats->divisions += own->divisions;
    stats->unmapped += own->unmapped;
    tbd_question_free(&helper->question);
    tbd_session_close(&helper->session);
}

static bool needs_replay(const struct tbd_search_run *run)
{
    if (run->question->type == TBD_EVENT_LOAD || (run->uses & TBD_USES_REGS) != 0)
        return true;
    for (uint32_t i = 0; i < tbd_trace_window_count(run->session->trace); i++) {
        if (tbd_trace_window(run->session->trace, i)->level < 3)
            return true;
    }
    return false;
}

static enum tbd_status run_pool(struct pool *pool, struct helper *helpers, unsigned count,
                                uint32_t first)
{
    enum tbd_status status = TBD_OK;
    unsigned started = 0;

    /* Number 0 is the session's own: it may replay while helpers still do. */
    while (started < count && start_helper(pool, &helpers[started], started + 1))
        started++;
    status = add_up(pool, first);
    atomic_store(&pool->stop, true);
    for (unsigned i = 0; i < count && i <= started; i++)
        end_helper(&helpers[i], &pool->run->session->stats);
    return status;
}

enum tbd_status tbd_search_pool(struct tbd_search_run *run, uint32_t start, uint32_t first,
                                uint32_t windows)
{
    struct pool pool = { .run = run,
                         .start = start,
                         .windows = windows,
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .changed = PTHREAD_COND_INITIALIZER };
    unsigned count = run->session->workers;
    struct helper *helpers;
    enum tbd_status status = TBD_OK;

    if (count > windows - first)
        count = windows - first;
    if (needs_replay(run))
        status = tbd_session_replayer(run->session);
    if (status != TBD_OK)
        return status;
    pool.results = calloc(windows, sizeof(*pool.results));
    helpers = calloc(count, sizeof(*helpers));
    atomic_store(&pool.next, first);
    status = pool.results == NULL || helpers == NULL ? TBD_NOMEM
                                                     : run_pool(&pool, helpers, count, first);
    free(pool.results);
    free(helpers);
    return status;
}
