// SPDX-License-Identifier: MIT
/* organize.c - from a stream to a trace directory
 *
 *   main thread:  wait for chunks -> copy -> raw window --> pipeline
 *   a worker:     build -> join -> pack and write -> commit: the steps that the pipeline names (pipeline.h)
 *   the ager:     lowers, merges and drops windows that are in the trace (age.h)
 *
 * Joining (join.h) gives a window what only the order of windows tells.
 *
 * Invariants
 * O1  Windows are joined and committed in order, one at a time; `join` belongs to whoever joins.
 * O2  The writer, the ager, `keys`, `segment` and `failed` are guarded by `lock`.  Permission to write files is given in order: else
 *     a window that waits for room could wait for one that has it and cannot be committed before.  Windows in
 *     front of one that waits are committed by others, or by the ager's making room for the first of them.
 * O3  Keys of windows wait in `keys`, and are collected in `segment` as windows are committed; a full one is taken out under
 *     `lock`, waits for room, and is written when others may commit.  When nothing more comes, what has been collected is written
 *     while workers build the last windows, and the keys of these while they are written, as the program waits for all.
 * O4  A window is born lean (level 2) only if a replay brings its events back: what is built without them and turns out
 *     to be incomplete is coded when it is written.
 * O5  After a failure (`failed`) the stream says FAILED, so that the program detaches; windows that
 *     wait are dropped unseen, nothing more is taken, and the trace gets its end record at once.
 * O6  A window that is going to be lean is built early, piece by piece while it is collected, by workers that have nothing else to
 *     do: what is there stays where it is meanwhile (tbd_pipeline_withdraw()). */
#include "organizer/organize.h"

#include "format/file.h"
#include "format/window.h"
#include "format/writer.h"
#include "organizer/build.h"
#include "organizer/builders.h"
#include "organizer/join.h"
#include "organizer/pipeline.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 8u
#define WAIT_MS 100u
/* Where all processors are busy, workers ask for so much less.  Chunks that five or more wait with, bzip2, perl, python, sqlite3: 28, 22, 39
 * and 33 % without it, 19, 20, 30 and 21 % with it. */
#define WORKER_NICE 5
/* Pages that are held to make differences to: 64 MB. */
#define PAGE_VERSIONS 16384u
/* Windows in work at the end get a file of keys of their own, rather than that so many wait for them. */
#define EARLY_WINDOWS 4u

/* Block entries of a window that is being collected, for somebody to look at them early: waking him for less takes longer. */
#define EARLY_ENTRIES ((size_t)128 << 10)
/* So many windows are built early at a time: each has a builder. */
#define EARLY_WINDOWS_MOST 2u

/* The keys of a window that is not committed yet. */
struct window_keys {
    struct window_keys *next; /* a later window's */
    uint32_t window;
    uint64_t first_time;
    uint64_t blocks;
    struct tbd_buffer keys;
};

struct organizer {
    const struct tbd_organize_options *options;
    struct tbd_consumer *consumer;
    struct tbd_block_table *table;
    struct tbd_stream_head *head;
    int pidfd;

    struct tbd_pipeline *pipeline;
    struct tbd_builders builders;
    struct tbd_builder *early; /* has begun the window that is being collected; NULL: nobody has */
    size_t offered;            /* entries of it that were there the last time when somebody asked */
    unsigned early_windows;    /* begun and not built yet; atomic */
    struct tbd_join *join; /* see O1 */
    struct tbd_page_versions *versions; /* owned; NULL: all pages are stored whole */
    bool has_lean; /* a window was built without its events; atomic */

    pthread_mutex_t lock;
    pthread_cond_t room;   /* windows to be written wait for it, and for their turn */
    pthread_cond_t due;    /* the ager waits for work */
    uint64_t granted;      /* may write their files */
    struct tbd_writer *writer;
    struct window_keys *keys; /* owned; in order */
    uint64_t added;        /* windows: the main thread counts them */
    uint64_t collected;    /* those whose keys are there, if they have some */
    struct tbd_key_segment *segment; /* owned; NULL until the first window */
    struct tbd_ager *ager; /* owned; NULL: windows stay as they are */
    bool settled;          /* all windows are committed */
    pthread_cond_t idle;   /* a worker has nothing to do any more, or has collected keys */
    unsigned working;      /* workers that may have */
    pthread_t threads[MAX_THREADS]; /* the workers: they are joined when the program does not wait any more */
    unsigned thread_count;
    enum tbd_status failed; /* written under `lock`, read anywhere: has_failed() */
    char failure[320]; /* an error's detail and its status */
};

static void say_state(struct tbd_stream_head *head, uint32_t state)
{
    __atomic_store_n(&head->organizer_state, state, __ATOMIC_RELEASE);
    syscall(SYS_futex, &head->organizer_state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void fail_locked(struct organizer *o, enum tbd_status status, const char *what)
{
    if (o->failed)
        return;
    snprintf(o->failure, sizeof(o->failure), "%s: %s", what, tbd_status_text(status));
    __atomic_store_n(&o->failed, status, __ATOMIC_RELEASE);
    say_state(o->head, TBD_ORGANIZER_FAILED);
}

static void fail(struct organizer *o, enum tbd_status status, const char *what)
{
    pthread_mutex_lock(&o->lock);
    fail_locked(o, status, what);
    pthread_mutex_unlock(&o->lock);
}

static bool has_failed(const struct organizer *o)
{
    return __atomic_load_n(&o->failed, __ATOMIC_ACQUIRE) != TBD_OK;
}

/* ---- workers ---- */

static bool is_replayable(const struct organizer *o, bool is_complete)
{
    return is_complete && (o->head->hook_set & TBD_HOOKS_PLAY) == TBD_HOOKS_PLAY;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The program has ended, and waits for its last windows.  If all others have their events, these have them, too. */
static bool is_waited_for(const struct organizer *o)
{
    return __atomic_load_n(&o->has_lean, __ATOMIC_RELAXED) &&
           __atomic_load_n(&o->head->engine_state, __ATOMIC_ACQUIRE) == TBD_ENGINE_ENDED;
}

/* Shall the window be built without its events? */
static bool is_lean(const struct organizer *o, const struct tbd_job *job)
{
    enum tbd_organize_lean lean = o->options->lean;
    bool is_urgent = job->is_pressed || is_waited_for(o);

    return (lean == TBD_ORGANIZE_LEAN_ALWAYS || (lean == TBD_ORGANIZE_LEAN_AUTO && is_urgent)) &&
           is_replayable(o, !job->raw.cut);
}

/* NULL: the window has not been begun. */
static void drop_early(struct organizer *o, struct tbd_builder *builder)
{
    if (!builder)
        return;
    tbd_builder_free(builder);
    __atomic_fetch_sub(&o->early_windows, 1, __ATOMIC_RELAXED);
}

static struct tbd_builder *take_builder(struct organizer *o)
{
    struct tbd_builder *builder = tbd_builders_take(&o->builders);

    if (!builder)
        abort();
    return builder;
}

/* One that has begun the window, or any. */
static struct tbd_builder *builder_for(struct organizer *o, struct tbd_job *job)
{
    struct tbd_builder *builder = job->builder;

    job->is_lean = builder || is_lean(o, job);
    if (builder)
        __atomic_fetch_sub(&o->early_windows, 1, __ATOMIC_RELAXED);
    else
        builder = take_builder(o);
    job->builder = NULL;
    tbd_builder_code(builder, !job->is_lean);
    return builder;
}

static void build_window(struct organizer *o, struct tbd_job *job)
{
    uint64_t begin_ns = now_ns();
    struct tbd_builder *builder;

    if (has_failed(o)) {
        drop_early(o, job->builder);
        tbd_raw_window_free(&job->raw);
        return;
    }
    builder = builder_for(o, job);
    job->status = tbd_build(builder, &job->raw, tbd_consumer_plans(o->consumer), o->table, &job->product);
    if (!job->status)
        tbd_builder_give_coded(builder, &job->product, &job->coded);
    tbd_builders_give(&o->builders, builder);
    if (job->status)
        return;
    if (job->is_lean && job->product.window->complete) {
        job->product.counts.level = 2;
        __atomic_store_n(&o->has_lean, true, __ATOMIC_RELAXED);
        tbd_page_bases_copy(&job->bases, o->versions, job->product.window);
    }
    job->busy_ns = now_ns() - begin_ns;
}

static void join_window(struct organizer *o, struct tbd_job *job)
{
    if (!job->status && job->product.window && !has_failed(o)) {
        job->status = tbd_join_window(o->join, &job->product, job->highest_id, &job->keep);
        if (job->keep)
            tbd_page_bases_join(&job->bases, o->versions, &job->product);
        else
            tbd_page_versions_unmap(o->versions, &job->product);
        if (!job->status && job->product.damaged)
            fail(o, TBD_CORRUPT, "stream");
    }
    if (job->status)
        fail(o, job->status, "window");
}

static void free_keys(struct window_keys *keys)
{
    tbd_buffer_free(&keys->keys);
    free(keys);
}

/* A window's, which may go into the trace soon. */
static struct window_keys *make_keys(const struct tbd_window *window)
{
    struct window_keys *keys = calloc(1, sizeof(*keys));

    if (!keys)
        return NULL;
    *keys = (struct window_keys){ .window = window->number, .first_time = window->first_time, .blocks = window->blocks };
    tbd_keys_collect(window, &keys->keys);
    return keys;
}

static void collect_keys(struct organizer *o, const struct tbd_job *job)
{
    struct window_keys *keys = job->keep ? make_keys(job->product.window) : NULL;
    struct window_keys **at = &o->keys;

    pthread_mutex_lock(&o->lock);
    while (keys && *at && (*at)->window < keys->window)
        at = &(*at)->next;
    if (keys) {
        keys->next = *at;
        *at = keys;
    }
    o->collected++;
    pthread_cond_signal(&o->idle);
    pthread_mutex_unlock(&o->lock);
}

/* Takes the first of the keys that wait.  Returns a segment that is complete, to be written by the caller. */
static struct tbd_key_segment *add_keys_locked(struct organizer *o)
{
    struct window_keys *keys = o->keys;
    struct tbd_key_segment *full = NULL;

    o->keys = keys->next;
    if (!o->segment || !tbd_key_segment_add(o->segment, keys->window, keys->first_time, keys->blocks, &keys->keys)) {
        full = o->segment;
        o->segment = calloc(1, sizeof(*o->segment));
        if (o->segment)
            (void)tbd_key_segment_add(o->segment, keys->window, keys->first_time, keys->blocks, &keys->keys);
    } else if (tbd_key_segment_is_full(o->segment)) { /* sooner than the program ends */
        full = o->segment;
        o->segment = NULL;
    }
    free_keys(keys);
    return full;
}


static void wait_for_keys_room(struct organizer *o, uint64_t bytes)
{
    pthread_mutex_lock(&o->lock);
    tbd_ager_expect_keys_locked(o->ager, bytes);
    while (!tbd_ager_may_write_keys_locked(o->ager)) {
        pthread_cond_signal(&o->due);
        pthread_cond_wait(&o->room, &o->lock);
    }
    pthread_mutex_unlock(&o->lock);
}

static void count_keys(struct organizer *o, uint64_t bytes)
{
    pthread_mutex_lock(&o->lock);
    tbd_ager_add_keys_locked(o->ager, bytes);
    pthread_cond_broadcast(&o->room);
    pthread_mutex_unlock(&o->lock);
}

static void write_keys(struct organizer *o, struct tbd_key_segment *segment)
{
    struct tbd_buffer file = { 0 };

    tbd_writer_code_segment(o->writer, segment, &file);
    if (o->ager)
        wait_for_keys_room(o, file.used);
    tbd_writer_segment(o->writer, segment, &file);
    if (o->ager)
        count_keys(o, file.used);
    tbd_buffer_free(&file);
}

static void write_segment(struct organizer *o, struct tbd_key_segment *segment)
{
    if (!segment)
        return;
    if (segment->windows)
        write_keys(o, segment);
    tbd_key_segment_clear(segment);
    free(segment);
}

/* The window's files may be written now; room has been made. */
static void wait_for_room(struct organizer *o, uint64_t number, bool keep)
{
    pthread_mutex_lock(&o->lock);
    while (o->granted != number || (keep && o->ager && !tbd_ager_may_write_locked(o->ager))) {
        pthread_cond_signal(&o->due); /* more is being written than when the ager looked */
        pthread_cond_wait(&o->room, &o->lock);
    }
    o->granted++;
    pthread_cond_broadcast(&o->room);
    pthread_mutex_unlock(&o->lock);
}

static enum tbd_status put_files(struct organizer *o, struct tbd_job *job)
{
    const struct tbd_product *product = &job->product;
    bool is_lean = product->counts.level == 2;
    struct tbd_window_extra extra = { .coded = product->coded, .base = is_lean ? tbd_page_bases_find : NULL,
                                      .context = &job->bases };

    return tbd_writer_put_window(o->writer, product->window, &product->counts, &extra, &job->files);
}

/* For the next window that is coded. */
static void give_coded(struct organizer *o, struct tbd_job *job)
{
    struct tbd_builder *builder = job->coded.capacity ? take_builder(o) : NULL;

    if (!builder)
        return;
    tbd_builder_take_coded(builder, &job->coded);
    tbd_builders_give(&o->builders, builder);
}

static void put_window(struct organizer *o, struct tbd_job *job)
{
    uint64_t begin_ns;

    wait_for_room(o, job->number, job->keep);
    begin_ns = now_ns();
    collect_keys(o, job);
    if (job->keep)
        job->status = put_files(o, job);
    give_coded(o, job);
    tbd_page_bases_free(&job->bases);
    tbd_product_free(&job->product);
    job->busy_ns += now_ns() - begin_ns;
}

/* `job` is in the trace now, or could not be written. */
static void age_locked(struct organizer *o, const struct tbd_job *job)
{
    enum tbd_status status = job->status;

    if (status || (o->failed && o->failed != TBD_CORRUPT))
        tbd_ager_take_back_locked(o->ager);
    else
        status = tbd_ager_add_locked(o->ager, &job->files.disk, is_replayable(o, job->files.disk.complete));
    if (status)
        fail_locked(o, status, "window");
    pthread_cond_broadcast(&o->room);
    if (tbd_ager_is_due_locked(o->ager))
        pthread_cond_signal(&o->due);
}

/* Returns a segment that is complete, to be written by the caller. */
static struct tbd_key_segment *commit_locked(struct organizer *o, struct tbd_job *job)
{
    struct tbd_key_segment *full = NULL;

    if (job->status)
        fail_locked(o, job->status, "window");
    if (job->keep && (!o->failed || o->failed == TBD_CORRUPT)) {
        job->status = tbd_writer_commit_window(o->writer, &job->files);
        if (job->status)
            fail_locked(o, job->status, "index");
        else if (o->keys && o->keys->window == job->files.disk.window)
            full = add_keys_locked(o);
    }
    if (job->keep && o->ager)
        age_locked(o, job);
    return full;
}

static struct tbd_key_segment *commit_window(struct organizer *o, struct tbd_job *job)
{
    struct tbd_key_segment *full;

    pthread_mutex_lock(&o->lock);
    full = commit_locked(o, job);
    pthread_mutex_unlock(&o->lock);
    free(job->files.pages);
    return full;
}

/* Of `least` windows or more: fewer may wait. */
static void write_keys_so_far(struct organizer *o, uint32_t least)
{
    struct tbd_key_segment *segment = NULL;

    pthread_mutex_lock(&o->lock);
    if (o->segment && o->segment->windows >= least) {
        segment = o->segment;
        o->segment = NULL;
    }
    pthread_mutex_unlock(&o->lock);
    write_segment(o, segment);
}

/* Those of the last windows, which may not be in the trace yet: nothing is wrong if they never are. */
static void write_last_keys(struct organizer *o)
{
    struct tbd_key_segment *full;

    do {
        full = NULL;
        pthread_mutex_lock(&o->lock);
        while (o->collected < o->added)
            pthread_cond_wait(&o->idle, &o->lock);
        while (o->keys && !full)
            full = add_keys_locked(o);
        pthread_mutex_unlock(&o->lock);
        write_segment(o, full);
    } while (full);
    write_keys_so_far(o, 1);
}

/* The reader, for whom the program waits soon, is let in front of workers.  (Linux: of the calling thread alone; setpriority(2), "C
 * library/kernel differences".) */
static void step_back(void)
{
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + WORKER_NICE);
}

static void *work(void *context)
{
    struct organizer *o = context;
    enum tbd_step step = TBD_STEP_NONE;
    struct tbd_job *job = NULL;

    step_back();
    while (tbd_pipeline_next(o->pipeline, &job, &step)) {
        struct tbd_key_segment *full = NULL;

        if (step == TBD_STEP_BUILD)
            build_window(o, job);
        else if (step == TBD_STEP_JOIN)
            join_window(o, job);
        else if (step == TBD_STEP_PUT)
            put_window(o, job);
        else if (step == TBD_STEP_EARLY)
            (void)tbd_build_early(job->builder, &job->raw, tbd_consumer_plans(o->consumer), o->table);
        else
            full = commit_window(o, job);
        if (!full)
            continue;
        tbd_pipeline_done(o->pipeline, &job, &step); /* others may commit meanwhile */
        write_segment(o, full);
    }
    pthread_mutex_lock(&o->lock);
    o->working--;
    pthread_cond_signal(&o->idle);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* Until all windows are in the trace, and nothing is due any more. */
static void *grow_old(void *context)
{
    struct organizer *o = context;
    enum tbd_status status = TBD_OK;

    pthread_mutex_lock(&o->lock);
    while (!status) {
        bool is_due = tbd_ager_is_due_locked(o->ager);

        if (!is_due && o->settled)
            break;
        if (!is_due) {
            pthread_cond_wait(&o->due, &o->lock);
            continue;
        }
        pthread_mutex_unlock(&o->lock);
        status = tbd_ager_step(o->ager);
        pthread_mutex_lock(&o->lock);
        pthread_cond_broadcast(&o->room);
    }
    if (status) {
        tbd_ager_stop_locked(o->ager);
        fail_locked(o, status, "making room");
        pthread_cond_broadcast(&o->room);
    }
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* ---- the main thread ---- */

/* execve succeeded: the process lives on as another program (TBD_ENGINE_EXEC). */
static bool has_executed(const struct organizer *o)
{
    return __atomic_load_n(&o->head->engine_state, __ATOMIC_ACQUIRE) == TBD_ENGINE_EXEC &&
           (__atomic_load_n(&o->head->engine_lock, __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED);
}

static bool is_gone(const struct organizer *o)
{
    struct pollfd fd = { .fd = o->pidfd, .events = POLLIN };

    if (__atomic_load_n(&o->head->engine_state, __ATOMIC_ACQUIRE) == TBD_ENGINE_ENDED ||
        has_executed(o))
        return true;
    if (o->pidfd < 0) /* it had been killed, and reaped, before we looked */
        return o->options->pid && kill(o->options->pid, 0) && errno == ESRCH;
    return poll(&fd, 1, 0) == 1;
}

static void break_stream(struct organizer *o, enum tbd_status status, const struct tbd_error *why)
{
    fail(o, status, why->detail[0] ? why->detail : "stream");
}

/* Before what is collected is moved, or freed. */
static void withdraw(void *context)
{
    struct organizer *o = context;

    if (o->early)
        tbd_pipeline_withdraw(o->pipeline);
}

/* The window that was begun does not come. */
static void forget_early(struct organizer *o)
{
    withdraw(o);
    drop_early(o, o->early);
    o->early = NULL;
    o->offered = 0;
}

static bool will_be_lean(const struct organizer *o)
{
    enum tbd_organize_lean lean = o->options->lean;

    return (lean == TBD_ORGANIZE_LEAN_ALWAYS || (lean == TBD_ORGANIZE_LEAN_AUTO && tbd_pipeline_is_pressed(o->pipeline))) &&
           is_replayable(o, true) && !o->options->discard;
}

static bool begin_early(struct organizer *o)
{
    if (__atomic_load_n(&o->early_windows, __ATOMIC_RELAXED) == EARLY_WINDOWS_MOST || !will_be_lean(o))
        return false;
    o->early = tbd_builders_take(&o->builders);
    if (!o->early)
        return false;
    __atomic_fetch_add(&o->early_windows, 1, __ATOMIC_RELAXED);
    tbd_builder_code(o->early, false);
    return true;
}

/* Nothing comes at the moment: O6. */
static void offer_early(struct organizer *o)
{
    struct tbd_raw_window raw = tbd_consumer_collected(o->consumer);

    if (raw.entry_count < o->offered + EARLY_ENTRIES)
        return;
    o->offered = raw.entry_count;
    if (o->early || begin_early(o))
        tbd_pipeline_offer(o->pipeline, &raw, o->early);
}

static void add_window(struct organizer *o, struct tbd_raw_window *raw)
{
    if (has_failed(o) || o->options->discard) {
        forget_early(o);
        tbd_raw_window_free(raw);
        return;
    }
    o->added++;
    tbd_pipeline_add(o->pipeline, raw, o->early);
    o->early = NULL;
    o->offered = 0;
}

/* What the producer left behind. */
static void salvage(struct organizer *o)
{
    struct tbd_raw_window raw;
    struct tbd_error why = { 0 };
    enum tbd_status status = tbd_consumer_salvage(o->consumer, &raw, &why);

    if (status == TBD_OK)
        add_window(o, &raw);
    else if (status != TBD_NOTFOUND)
        break_stream(o, status, &why);
}

/* Until the producer has ended and nothing is left, or nothing can be written any more. */
static void take_stream(struct organizer *o)
{
    struct tbd_raw_window raw;
    struct tbd_error why = { 0 };
    enum tbd_status status;
    bool gone = false;

    while (!has_failed(o)) {
        status = tbd_consumer_take(o->consumer, &raw, &why);
        if (status == TBD_OK) {
            add_window(o, &raw);
            continue;
        }
        if (status != TBD_NOTFOUND)
            return break_stream(o, status, &why);
        if (gone)
            return salvage(o);
        /* looked at once more after this: what was published before the end is not missed */
        gone = is_gone(o);
        if (gone)
            continue;
        offer_early(o);
        tbd_consumer_wait(o->consumer, WAIT_MS);
    }
}

static enum tbd_status write_end(struct organizer *o)
{
    struct tbd_msg_end end = { .how = TBD_ENDED_KILLED, .offset = TBD_END_WHOLE };
    char text[352] = "the program vanished (SIGKILL?)";
    bool has_end = tbd_join_end(o->join, &end, text, sizeof(text));

    if (o->failed) {
        end = (struct tbd_msg_end){ .how = TBD_ENDED_DETACHED, .offset = TBD_END_WHOLE };
        snprintf(text, sizeof(text), "recording stopped: %s", o->failure);
    } else if (!has_end && has_executed(o)) {
        end.how = TBD_ENDED_EXEC;
        text[0] = '\0';
    } else if (!has_end) {
        tbd_join_keep_files(o->join);
    }
    return tbd_writer_end(o->writer, &end, text);
}

static unsigned thread_count(const struct tbd_organize_options *options)
{
    unsigned count = options->threads;
    cpu_set_t allowed;
    int cores = sched_getaffinity(0, sizeof(allowed), &allowed) ? 1 : CPU_COUNT(&allowed);

    if (!count)
        count = cores > 2 ? (unsigned)cores - 1 : 1;
    return count > MAX_THREADS ? MAX_THREADS : count;
}

static bool begin_work(struct organizer *o)
{
    unsigned wanted = thread_count(o->options);

    pthread_mutex_lock(&o->lock);
    while (o->thread_count < wanted && !pthread_create(&o->threads[o->thread_count], NULL, work, o))
        o->thread_count++;
    o->working = o->thread_count;
    pthread_mutex_unlock(&o->lock);
    return o->thread_count;
}

/* What workers have to free takes them a while longer. */
static void wait_for_work(struct organizer *o)
{
    pthread_mutex_lock(&o->lock);
    while (o->working)
        pthread_cond_wait(&o->idle, &o->lock);
    pthread_mutex_unlock(&o->lock);
}

/* What can be done while they are built. */
static void help_last_windows(struct organizer *o)
{
    if (!has_failed(o))
        (void)!tbd_join_blocks(o->join, tbd_block_table_count(o->table));
    write_keys_so_far(o, EARLY_WINDOWS);
    tbd_writer_expect_end(o->writer);
}

static enum tbd_status run_threads(struct organizer *o)
{
    pthread_t ager;

    if (!begin_work(o))
        return TBD_NOMEM;
    if (o->ager && pthread_create(&ager, NULL, grow_old, o)) {
        tbd_ager_free(o->ager);
        o->ager = NULL;
    }
    tbd_consumer_watch(o->consumer, withdraw, o);
    take_stream(o);
    forget_early(o);
    if (tbd_pipeline_close(o->pipeline))
        help_last_windows(o);
    write_last_keys(o);
    wait_for_work(o);
    pthread_mutex_lock(&o->lock);
    o->settled = true;
    pthread_cond_signal(&o->due);
    pthread_mutex_unlock(&o->lock);
    if (o->ager)
        pthread_join(ager, NULL);
    return tbd_join_has_started(o->join) ? write_end(o) : TBD_OK;
}

/* ---- set-up ---- */

/* "gzip" from the program's own name, which is cut at 15 characters, or its executable's. */
static void program_name(pid_t pid, char *out, size_t bytes)
{
    char name[64];
    ssize_t length = -1;
    FILE *file;

    snprintf(out, bytes, "program");
    snprintf(name, sizeof(name), "/proc/%d/comm", pid);
    file = fopen(name, "re");
    if (file) {
        if (fgets(out, (int)bytes, file))
            out[strcspn(out, "\n")] = 0;
        fclose(file);
    }
    if (strlen(out) < 15)
        return;
    snprintf(name, sizeof(name), "/proc/%d/exe", pid);
    length = readlink(name, out, bytes - 1);
    if (length > 0)
        out[length] = 0;
}

static enum tbd_status make_writer(struct organizer *o, struct tbd_error *why)
{
    const struct tbd_organize_options *options = o->options;
    char root[4096];
    char program[4096];

    if (options->root)
        snprintf(root, sizeof(root), "%s", options->root);
    else if (tbd_trace_root(root, sizeof(root)))
        return tbd_error_set(why, TBD_NOTRACE, "", 0,
                             "none of TBD_DIR, XDG_DATA_HOME, HOME is set");
    if (options->program)
        snprintf(program, sizeof(program), "%s", options->program);
    else
        program_name(options->pid, program, sizeof(program));
    return tbd_writer_new(root, program, &o->writer, why);
}

/* The program waits for READY: to clear one large page takes as long as everything else until then. */
static bool put_off_large_pages(void)
{
    return prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0 && !prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

static enum tbd_status set_up(struct organizer *o, struct tbd_error *why)
{
    enum tbd_status status;

    o->table = tbd_block_table_new();
    if (!o->table)
        return TBD_NOMEM;
    if (o->options->lean != TBD_ORGANIZE_LEAN_NEVER)
        o->versions = tbd_page_versions_new(PAGE_VERSIONS);
    status = tbd_consumer_new(o->options->stream_fd, o->table, NULL, &o->consumer, why);
    if (status)
        return status;
    o->head = tbd_consumer_head(o->consumer);
    if (o->options->pid)
        o->pidfd = (int)syscall(SYS_pidfd_open, o->options->pid, 0);
    status = make_writer(o, why);
    if (status) {
        say_state(o->head, TBD_ORGANIZER_FAILED);
        return status;
    }
    o->join = tbd_join_new(o->writer, &o->lock, o->table, o->head, o->options->age.budget);
    o->pipeline = tbd_pipeline_new(thread_count(o->options));
    if (!o->join || !o->pipeline)
        return TBD_NOMEM;
    if (tbd_ager_is_needed(&o->options->age))
        status = tbd_ager_new(&o->options->age, o->writer, &o->lock, &o->ager);
    if (status)
        return status;
    if (o->options->ready)
        o->options->ready(o->options->context, tbd_writer_path(o->writer));
    say_state(o->head, TBD_ORGANIZER_READY);
    return TBD_OK;
}

static void tear_down(struct organizer *o, enum tbd_status status)
{
    tbd_ager_free(o->ager);
    tbd_writer_free(o->writer);
    if (o->head && !o->failed && !status)
        say_state(o->head, TBD_ORGANIZER_DONE);
    while (o->thread_count)
        pthread_join(o->threads[--o->thread_count], NULL);
    tbd_consumer_free(o->consumer);
    tbd_join_free(o->join);
    tbd_page_versions_free(o->versions);
    tbd_pipeline_free(o->pipeline);
    tbd_builders_free(&o->builders);
    tbd_block_table_release(o->table);
    if (o->pidfd >= 0)
        close(o->pidfd);
    pthread_mutex_destroy(&o->lock);
    pthread_cond_destroy(&o->room);
    pthread_cond_destroy(&o->due);
    pthread_cond_destroy(&o->idle);
}

enum tbd_status tbd_organize(const struct tbd_organize_options *options, struct tbd_error *why)
{
    struct organizer o = { .options = options, .pidfd = -1, .builders = { .lock = PTHREAD_MUTEX_INITIALIZER } };
    enum tbd_status status;
    bool is_put_off;

    pthread_mutex_init(&o.lock, NULL);
    pthread_cond_init(&o.room, NULL);
    pthread_cond_init(&o.due, NULL);
    pthread_cond_init(&o.idle, NULL);
    is_put_off = put_off_large_pages();
    status = set_up(&o, why);
    if (is_put_off)
        (void)prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    if (!status) {
        status = run_threads(&o);
        if (!status)
            status = o.failed;
        if (status)
            tbd_error_set(why, status, tbd_writer_path(o.writer), 0, "%s",
                          o.failed ? o.failure : "cannot end the trace");
    }
    tear_down(&o, status);
    return status;
}
