// SPDX-License-Identifier: MIT
/* search_pool.c - searches many windows at once
 *
 *   workers:  take the next window in the direction of the search; count its matches, or, when all
 *             are wanted, keep them, or what is to be written or listed of them
 *   main:     adds the numbers up, or hands the matches on, in order; stops the workers when it knows
 *             the wanted window, and searches that window itself
 *
 * Each worker has its own session (trace handle, symbols) and its own copy of the question; all
 * share the replayer, under different numbers.
 *
 * SEARCH_POOL-1  results[i] is written by the worker that took i and read by main after `done` was
 *                seen under the lock.
 * SEARCH_POOL-2  A worker takes window i only if main is fewer than AHEAD windows away from it, and no more
 *                than KEPT_BYTES of written or gathered events wait for main: this bounds the results kept for main. */
#include "query/search/kept_events.h"
#include "query/search/search_private.h"

#include "base/assert.h"
#include "query/text/user_interrupt.h"

#include <pthread.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <time.h>

#define AHEAD      64u
#define KEPT_BYTES (256u << 20) /* of what is written of one window's matches (tbd_search.write) */
#define GATHERED   128u         /* bytes that an event takes about (tbd_search.gather) */
#define KEPT_LOOKS 4096u        /* matches after which the bytes are looked at */

struct result {
    enum tbd_status status;
    bool done;
    bool is_kept; /* all events and their bytes are kept; else main walks the window again */
    uint64_t matches;
    uint64_t of_type;            /* with tbd_search.gather: those of the question's type */
    struct tbd_kept_events kept; /* owned */
    void *batch;                 /* owned: of tbd_search.gather, instead of them; NULL: nothing */
    /* With tbd_search.write instead of events: */
    const struct tbd_search *search;
    enum tbd_event_type type;    /* of the question */
    struct tbd_session *session; /* the worker's */
    FILE *out;                   /* owned, until the window is done */
    char *text;                  /* owned */
    size_t text_bytes;
};

struct pool {
    struct tbd_search_run *run;
    const uint32_t *windows; /* in the direction of the search */
    uint32_t count;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a result is there, or a worker has ended */
    pthread_cond_t moved;   /* main took a result, or wants no more */
    struct result *results; /* as `windows` */
    /* under the lock */
    uint32_t next, at_main;
    size_t kept_bytes; /* of results that main has not used */
    bool stop;
    unsigned running;
};

struct helper {
    struct pool *pool;
    pthread_t thread;
    bool started;
    struct tbd_session session;
    struct tbd_question question;
    struct tbd_query_error error;
    struct tbd_query_error problem; /* the problem that its scopes report */
    bool has_meaning;
    enum tbd_status status;
};

/* ---- keeping a window's matches ---- */

static void drop_events(struct result *result)
{
    if (result->out != NULL)
        fclose(result->out);
    free(result->text);
    result->out = NULL;
    result->text = NULL;
    result->text_bytes = 0;
    if (result->batch != NULL)
        result->search->drop(result->batch);
    result->batch = NULL;
    tbd_kept_events_free(&result->kept);
    result->is_kept = false;
}

/* ---- writing them instead ---- */

static void start_writing(struct result *result)
{
    result->out = open_memstream(&result->text, &result->text_bytes);
    result->is_kept = result->out != NULL;
    if (result->out != NULL)
        __fsetlocking(result->out, FSETLOCKING_BYCALLER);
}

static void write_event(struct result *result, const struct tbd_event *event)
{
    const struct tbd_search *search = result->search;

    if (!search->write(search->each_context, result->session, event, result->out) ||
        (result->matches % KEPT_LOOKS == 0 && ftello(result->out) > (off_t)KEPT_BYTES))
        drop_events(result);
}

/* Without memory for all of it main walks the window again. */
static void end_writing(struct result *result)
{
    bool is_whole = ferror(result->out) == 0;

    is_whole &= fclose(result->out) == 0;
    result->out = NULL;
    if (!is_whole)
        drop_events(result);
}

/* ---- workers ---- */

static bool keep(struct result *result, const struct tbd_event *event)
{
    if (result->search->gather == NULL)
        return tbd_kept_events_add(&result->kept, event);
    result->of_type += event->type == result->type;
    return result->search->gather(result->search->each_context, result->session, &result->batch,
                                  event, 1);
}

static bool keep_event(void *context, const struct tbd_event *event)
{
    struct result *result = context;

    if (result->search->write != NULL) {
        if (result->is_kept)
            write_event(result, event);
        result->matches += event->type == result->type;
        return true;
    }
    if (result->is_kept && !keep(result, event))
        drop_events(result);
    result->matches++;
    return true;
}

/* The same of many events at once. */
static bool keep_many(void *context, const struct tbd_event *event, uint64_t count)
{
    struct result *result = context;
    const struct tbd_search *search = result->search;

    result->of_type += count;
    if (result->is_kept &&
        !search->gather(search->each_context, result->session, &result->batch, event, count))
        drop_events(result);
    result->matches += count;
    return true;
}

/* A batch of numbers is small, however many events it counts. */
static size_t kept_bytes(const struct result *result)
{
    if (result->search != NULL && result->search->each_many != NULL)
        return result->text_bytes;
    return result->text_bytes + (result->batch == NULL ? 0 : result->matches * GATHERED);
}

static void note(struct pool *pool, uint32_t i, const struct result *result)
{
    pthread_mutex_lock(&pool->lock);
    TBD_INVARIANT("SEARCH_POOL-1", !pool->results[i].done);
    pool->results[i] = *result;
    pool->results[i].done = true;
    pool->kept_bytes += kept_bytes(result);
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

static bool is_far_ahead(const struct pool *pool)
{
    return pool->next >= pool->at_main + AHEAD ||
           (pool->kept_bytes > KEPT_BYTES && pool->next > pool->at_main);
}

static bool take(struct pool *pool, uint32_t *out)
{
    bool got;

    pthread_mutex_lock(&pool->lock);
    while (!pool->stop && pool->next < pool->count && is_far_ahead(pool))
        pthread_cond_wait(&pool->moved, &pool->lock);
    got = !pool->stop && pool->next < pool->count && !tbd_is_interrupted();
    *out = pool->next;
    TBD_INVARIANT("SEARCH_POOL-2", !got || *out < pool->at_main + AHEAD);
    pool->next += got;
    pthread_mutex_unlock(&pool->lock);
    return got;
}

/* Goes forward to the end of each window, which is the cheapest way to count. */
static void search_some(struct helper *helper, struct tbd_search_run *run)
{
    struct pool *pool = helper->pool;
    uint32_t i;

    while (take(pool, &i)) {
        struct result result = { .is_kept = run->search->each != NULL,
                                 .search = pool->run->search,
                                 .session = run->session,
                                 .type = run->question->type };

        result.kept.keeps = run->question->keeps + run->question->keeps_stack;
        run->search->each_context = &result;
        run->total = 0;
        if (result.search->write != NULL)
            start_writing(&result);
        result.status = tbd_search_chosen(run, pool->windows[i]);
        if (result.out != NULL)
            end_writing(&result);
        if (!result.is_kept)
            result.matches = run->total;
        helper->status = result.status;
        note(pool, i, &result);
    }
}

static void *help(void *argument)
{
    struct helper *helper = argument;
    struct pool *pool = helper->pool;
    struct tbd_search search = { .session = &helper->session,
                                 .question = &helper->question,
                                 .error = &helper->error,
                                 .each = pool->run->search->each == NULL ? NULL : keep_event,
                                 .each_many =
                                     pool->run->search->each_many == NULL ? NULL : keep_many,
                                 .many_by_value = pool->run->search->many_by_value };
    struct tbd_search_run run = { .search = &search,
                                  .session = &helper->session,
                                  .question = &helper->question,
                                  .where = helper->question.where,
                                  .uses = pool->run->uses,
                                  .wants_values = pool->run->wants_values,
                                  .span = pool->run->span };

    helper->question.backward = false;
    helper->question.count = UINT64_MAX;
    helper->status = tbd_search_prepare(&run, pool->windows[0]);
    if (helper->status == TBD_OK)
        search_some(helper, &run);
    if (run.scopes != NULL)
        helper->has_meaning = tbd_scopes_have_meaning(run.scopes, &helper->problem);
    tbd_search_release(&run);
    change_running(pool, -1);
    return NULL;
}

/* ---- main ---- */

static void show(const struct pool *pool, uint32_t i)
{
    const struct tbd_search *search = pool->run->search;

    if (search->progress != NULL)
        search->progress(search->progress_context, i, pool->count, pool->run->total);
}

/* False: all workers ended and result i never came. */
static bool wait_for(struct pool *pool, uint32_t i)
{
    bool done;

    pthread_mutex_lock(&pool->lock);
    pool->at_main = i;
    pthread_cond_broadcast(&pool->moved);
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

/* A window that holds the wanted event, or has too many to be kept, is searched again here. */
static enum tbd_status search_again(struct pool *pool, uint32_t i)
{
    struct tbd_search_run *run = pool->run;
    struct tbd_session_stats *stats = &run->session->stats;
    struct tbd_session_stats before = *stats;
    struct tbd_bad_events bad = run->env.bad;
    enum tbd_status status = tbd_search_chosen(run, pool->windows[i]);

    run->env.bad = bad; /* the worker counted these and the window already */
    stats->scanned = before.scanned;
    stats->searched_count = before.searched_count;
    stats->candidates = before.candidates;
    return status;
}

static void hand_on(struct tbd_search_run *run, const struct result *result)
{
    const struct tbd_search *search = run->search;
    const struct tbd_kept_events *kept = &result->kept;
    size_t next = 0;

    if (search->write != NULL) {
        run->total += result->matches;
        run->is_stopped =
            !search->take(search->each_context, result->text, result->text_bytes, result->matches);
        return;
    }
    if (search->gather != NULL) {
        run->total += result->of_type;
        run->is_stopped = !search->merge(search->each_context, result->batch);
        return;
    }
    while (!run->is_stopped && next < kept->count) {
        const struct tbd_event *event = &kept->events[next++];

        run->total += event->type == run->question->type;
        run->is_stopped = !search->each(search->each_context, event);
    }
    if (next != 0)
        run->found = kept->events[next - 1];
}

static enum tbd_status use_result(struct pool *pool, uint32_t i)
{
    struct tbd_search_run *run = pool->run;
    const struct result *result = &pool->results[i];

    if (result->status != TBD_OK)
        return tbd_search_chosen(run, pool->windows[i]);
    if (result->matches == 0)
        return TBD_OK;
    if (result->is_kept) {
        hand_on(run, result);
        return TBD_OK;
    }
    if (run->search->each == NULL && run->total + result->matches < run->question->count) {
        run->total += result->matches;
        return TBD_OK;
    }
    return search_again(pool, i);
}

static enum tbd_status add_up(struct pool *pool)
{
    enum tbd_status status = TBD_OK;

    for (uint32_t i = 0; i < pool->count && status == TBD_OK && !tbd_search_is_done(pool->run);
         i++) {
        if (!wait_for(pool, i))
            return tbd_search_chosen(pool->run, pool->windows[i]);
        show(pool, i);
        status = use_result(pool, i);
        pthread_mutex_lock(&pool->lock);
        pool->kept_bytes -= kept_bytes(&pool->results[i]);
        pthread_mutex_unlock(&pool->lock);
        drop_events(&pool->results[i]);
    }
    return status;
}

static void stop_helpers(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->moved);
    pthread_mutex_unlock(&pool->lock);
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

static void end_helper(struct helper *helper, struct tbd_search_run *run)
{
    const struct tbd_session_stats *own = &helper->session.stats;
    struct tbd_session_stats *stats = &run->session->stats;

    if (helper->started)
        pthread_join(helper->thread, NULL);
    run->has_helper_meaning |= helper->has_meaning;
    if (run->helper_problem.status == TBD_OK)
        run->helper_problem = helper->problem;
    for (uint32_t i = 0; i < own->searched_count && stats->searched_count < TBD_STATS_WINDOWS; i++)
        stats->searched[stats->searched_count++] = own->searched[i];
    tbd_left_out_merge(&run->session->left_out, &helper->session.left_out);
    stats->scanned += own->scanned;
    stats->plan_s += own->plan_s;
    stats->open_s += own->open_s;
    stats->walk_s += own->walk_s;
    stats->raised += own->raised;
    stats->noted += own->noted;
    stats->cached += own->cached;
    stats->candidates += own->candidates;
    stats->replayed += own->replayed;
    tbd_bad_events_add(&stats->bad, &own->bad);
    tbd_question_free(&helper->question);
    tbd_session_close(&helper->session);
}

static bool needs_replay(const struct tbd_search_run *run, const uint32_t *windows, uint32_t count)
{
    if (run->question->type == TBD_EVENT_LOAD ||
        (run->uses & (TBD_USES_REGS | TBD_USES_TYPES)) != 0 || tbd_search_wants_operands(run))
        return true;
    for (uint32_t i = 0; i < count; i++) {
        if (tbd_trace_window(run->session->trace, windows[i])->level < TBD_LEVEL_EVENTS)
            return true;
    }
    return false;
}

static enum tbd_status run_pool(struct pool *pool, struct helper *helpers, unsigned count)
{
    enum tbd_status status = TBD_OK;
    unsigned started = 0;

    /* Number 0 is the session's own: it may replay while helpers still do. */
    while (started < count && start_helper(pool, &helpers[started], started + 1))
        started++;
    status = add_up(pool);
    stop_helpers(pool);
    for (unsigned i = 0; i < count && i <= started; i++)
        end_helper(&helpers[i], pool->run);
    return status;
}

enum tbd_status tbd_search_pool(struct tbd_search_run *run, const uint32_t *windows, uint32_t count)
{
    struct pool pool = { .run = run,
                         .windows = windows,
                         .count = count,
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .changed = PTHREAD_COND_INITIALIZER,
                         .moved = PTHREAD_COND_INITIALIZER };
    unsigned workers = run->session->workers < count ? run->session->workers : count;
    struct helper *helpers;
    enum tbd_status status = TBD_OK;

    if (needs_replay(run, windows, count))
        status = tbd_session_replayer(run->session);
    if (status != TBD_OK)
        return status;
    pool.results = calloc(count, sizeof(*pool.results));
    helpers = calloc(workers, sizeof(*helpers));
    status =
        pool.results == NULL || helpers == NULL ? TBD_NOMEM : run_pool(&pool, helpers, workers);
    for (uint32_t i = 0; i < count && pool.results != NULL; i++)
        drop_events(&pool.results[i]);
    run->found.old = run->search->each == NULL ? run->found.old : NULL;
    run->found.fresh = run->search->each == NULL ? run->found.fresh : NULL;
    free(pool.results);
    free(helpers);
    return status;
}
