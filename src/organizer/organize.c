// SPDX-License-Identifier: MIT
/* organize.c - from a stream to a trace directory
 *
 *   main thread:  wait for chunks -> copy -> raw window --> pipeline
 *   a worker:     build -> join -> pack and write -> commit: the steps that the pipeline names (pipeline.h; workers.c)
 *   the ager:     lowers, merges and drops windows that are in the trace (age.h)
 *
 * Joining (join.h) gives a window what only the order of windows tells.
 *
 * Invariants
 * ORGANIZE-1  Windows are joined and committed in order, one at a time; `join` belongs to the
 *     worker that joins.
 * ORGANIZE-2  The writer, the ager, `keys`, `segment` and `failed` are guarded by `lock`.
 *     Permission to write files is given in order: else window 5 could hold the last space while
 *     window 4 waits for it, and 5 cannot be committed before 4. Windows before one that waits are
 *     committed by others, or when the ager frees space for the first of them. (not checked:
 *     threads: tsan does)
 * ORGANIZE-3  Keys of windows wait in `keys`, and are collected in `segment` as windows are
 *     committed; a full one is taken out under `lock`, waits for space, and is written while others
 *     may commit. When nothing more comes, the collected keys are written while workers build the
 *     last windows, and the last windows' keys while their files are written, as the program waits
 *     for all of it. (not checked: it says when, not what)
 * ORGANIZE-4  A window is born lean (level 2) only if a replay brings its events back: a window
 *     built without them that turns out to be incomplete is coded when it is written. (not checked:
 *     test_ageing.py replays windows that were born lean)
 * ORGANIZE-5  After a failure (`failed`) the stream says FAILED, so that the program detaches;
 *     windows that wait are dropped unseen, nothing more is taken, and the trace gets its end
 *     record at once. (not checked: test_crash fills disks)
 * ORGANIZE-6  A window that will be lean is built early, piece by piece while it is collected, by
 *     idle workers; the collected part does not move meanwhile (tbd_pipeline_withdraw()). (not
 *     checked: it says when, not what) */
#include "organizer/organize_private.h"

#include "format/files/file.h"
#include "format/files/large_buffers.h"
#include "organizer/stops.h"

#include <errno.h>
#include <linux/futex.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAIT_MS 100u
/* At the end, keys of this many windows or more are written at once; windows still in work get a
 * key file of their own. */
#define EARLY_WINDOWS 4u
/* Pages kept as bases of differences: 64 MB; in native play 24, as memory beside the program is to be little there: windows of
 * programs that write much take a tenth more on disk. */
#define PAGE_VERSIONS        16384u
#define NATIVE_PAGE_VERSIONS 6144u
/* Windows of native play that wait for the workers, or are with them, have at most these bytes.  So there are two large ones, with the
 * one that is being collected, and the rings take what comes meanwhile. */
#define NATIVE_MOST_BYTES (16ull << 20)
/* At most this much memory that windows gave back is kept for the next ones; large pieces of malloc() go back to the system. */
#define NATIVE_KEPT_BYTES ((size_t)24 << 20)
#define NATIVE_KEPT_LEAST (1 << 20)
#define NATIVE_TRIMMED    (8 << 20)
/* A worker is woken to build early when this many block entries have been collected: waking it for
 * fewer costs more than it gains. */
#define EARLY_ENTRIES ((size_t)128 << 10)
/* This many windows are built early at a time: each has a builder. */
#define EARLY_WINDOWS_MOST 2u

static void say_state(struct tbd_stream_head *head, uint32_t state)
{
    __atomic_store_n(&head->organizer_state, state, __ATOMIC_RELEASE);
    syscall(SYS_futex, &head->organizer_state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void tbd_organizer_fail_locked(struct organizer *o, enum tbd_status status, const char *what)
{
    if (o->failed)
        return;
    snprintf(o->failure, sizeof(o->failure), "%s: %s", what, tbd_status_text(status));
    snprintf(o->head->failure, sizeof(o->head->failure), "%s", o->failure);
    __atomic_store_n(&o->failed, status, __ATOMIC_RELEASE);
    say_state(o->head, TBD_ORGANIZER_FAILED);
}

void tbd_organizer_fail(struct organizer *o, enum tbd_status status, const char *what)
{
    pthread_mutex_lock(&o->lock);
    tbd_organizer_fail_locked(o, status, what);
    pthread_mutex_unlock(&o->lock);
}

/* Ages windows until all are in the trace, and no change is due. */
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
        pthread_cond_broadcast(&o->space);
    }
    if (status) {
        tbd_ager_stop_locked(o->ager);
        tbd_organizer_fail_locked(o, status, "making space");
        pthread_cond_broadcast(&o->space);
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
    if (o->pidfd < 0) /* it was killed and reaped before we opened a pidfd */
        return o->options->pid && kill(o->options->pid, 0) && errno == ESRCH;
    return poll(&fd, 1, 0) == 1;
}

static void break_stream(struct organizer *o, enum tbd_status status, const struct tbd_error *why)
{
    tbd_organizer_fail(o, status, why->detail[0] ? why->detail : "stream");
}

/* Called before the collected part is moved or freed. */
static void withdraw(void *context)
{
    struct organizer *o = context;

    if (o->early)
        tbd_pipeline_withdraw(o->pipeline);
}

/* The window that was begun early will not come. */
static void forget_early(struct organizer *o)
{
    withdraw(o);
    tbd_workers_drop_early(o, o->early);
    o->early = NULL;
    o->offered = 0;
}

static bool will_be_lean(const struct organizer *o)
{
    return !o->options->discard &&
           tbd_organizer_is_lean(o, tbd_pipeline_is_pressed(o->pipeline), true);
}

/* A window's messages are kept as they came (stops.h), and building consumes them where they are. */
static bool keeps_stops(const struct organizer *o)
{
    return o->head->flags & TBD_STREAM_NATIVE;
}

static bool begin_early(struct organizer *o)
{
    if (keeps_stops(o) ||
        __atomic_load_n(&o->early_windows, __ATOMIC_RELAXED) == EARLY_WINDOWS_MOST ||
        !will_be_lean(o))
        return false;
    o->early = tbd_builders_take(&o->builders);
    if (!o->early)
        return false;
    __atomic_fetch_add(&o->early_windows, 1, __ATOMIC_RELAXED);
    tbd_builder_code(o->early, false);
    return true;
}

/* No chunk is waiting: offers the window for early building (ORGANIZE-6). */
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
    enum tbd_status status = TBD_OK;

    if (tbd_organizer_has_failed(o) || o->options->discard) {
        forget_early(o);
        tbd_raw_window_free(raw);
        return;
    }
    if (keeps_stops(o))
        status = tbd_stops_keep(tbd_writer_dir(o->writer), o->added, raw, o->packer);
    if (status)
        tbd_organizer_fail(o, status, "keeping the stops of native play");
    o->added++;
    tbd_pipeline_add(o->pipeline, raw, o->early);
    o->early = NULL;
    o->offered = 0;
}

/* Takes what a dead producer left in the stream. */
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

/* Takes chunks until the producer has ended and nothing is left, or nothing can be written any
 * more. */
static void take_stream(struct organizer *o)
{
    struct tbd_raw_window raw;
    struct tbd_error why = { 0 };
    enum tbd_status status;
    bool gone = false;

    while (!tbd_organizer_has_failed(o)) {
        status = tbd_consumer_take(o->consumer, &raw, &why);
        if (status == TBD_OK) {
            add_window(o, &raw);
            continue;
        }
        if (status != TBD_NOTFOUND)
            return break_stream(o, status, &why);
        if (gone)
            return salvage(o);
        /* the stream is read once more after this, so that nothing published before the end is
         * missed */
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
    const uint8_t *siginfo = o->failed ? NULL : tbd_join_end_siginfo(o->join);

    if (o->failed) {
        end = (struct tbd_msg_end){ .how = TBD_ENDED_DETACHED, .offset = TBD_END_WHOLE };
        snprintf(text, sizeof(text), "recording stopped: %s", o->failure);
    } else if (!has_end && has_executed(o)) {
        end.how = TBD_ENDED_EXEC;
        text[0] = '\0';
    } else if (!has_end) {
        tbd_join_keep_files(o->join);
    }
    return tbd_writer_end(o->writer, &end, text, siginfo);
}

/* Writes what can be written while the last windows are built. */
static void help_last_windows(struct organizer *o)
{
    if (!tbd_organizer_has_failed(o))
        (void)!tbd_join_blocks(o->join, tbd_block_table_count(o->table));
    tbd_key_files_write_so_far(o, EARLY_WINDOWS);
    tbd_writer_expect_end(o->writer);
}

static enum tbd_status run_threads(struct organizer *o)
{
    pthread_t ager;

    if (o->ager && pthread_create(&ager, NULL, grow_old, o)) {
        tbd_ager_free(o->ager);
        o->ager = NULL;
    }
    tbd_consumer_watch(o->consumer, withdraw, o);
    take_stream(o);
    forget_early(o);
    if (tbd_pipeline_close(o->pipeline))
        help_last_windows(o);
    tbd_key_files_write_last(o);
    tbd_workers_wait(o);
    pthread_mutex_lock(&o->lock);
    o->settled = true;
    pthread_cond_signal(&o->due);
    pthread_mutex_unlock(&o->lock);
    if (o->ager)
        pthread_join(ager, NULL);
    return tbd_join_has_started(o->join) ? write_end(o) : TBD_OK;
}

/* ---- set-up ---- */

enum tbd_status tbd_organizer_place(const struct tbd_organize_options *options, char root[4096],
                                    char program[4096], struct tbd_error *why)
{
    if (options->root)
        snprintf(root, 4096, "%s", options->root);
    else if (tbd_trace_root(root, 4096))
        return tbd_error_set(why, TBD_NOTRACE, "", 0,
                             "none of TBD_DIR, XDG_DATA_HOME, HOME is set");
    snprintf(program, 4096, "%s", options->program ? options->program : "program");
    return TBD_OK;
}

static enum tbd_status make_writer(struct organizer *o, struct tbd_error *why)
{
    char root[4096], program[4096];
    enum tbd_status status = tbd_organizer_place(o->options, root, program, why);

    if (!status)
        status = tbd_writer_new(root, program, &o->writer, why);
    if (status)
        return status;
    if (o->options->pid && !o->options->keeps_rings) /* a dump is awaited by who asked for it */
        tbd_one_process_begin(&o->process, root, o->options->pid);
    tbd_writer_take_modules(o->writer, o->options->modules);
    return TBD_OK;
}

/* The program waits for READY: clearing one large page takes as long as everything else until
 * then. */
static bool put_off_large_pages(void)
{
    return prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0 && !prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

static enum tbd_status set_up(struct organizer *o, struct tbd_error *why)
{
    struct tbd_age_limits age = o->options->age;
    enum tbd_status status;

    o->table = tbd_block_table_new();
    if (!o->table)
        return TBD_NOMEM;
    status = tbd_consumer_new(o->options->stream_fd, o->table, NULL, &o->consumer, why);
    if (status)
        return status;
    o->head = tbd_consumer_head(o->consumer);
    if (o->options->modules) /* of a trace, not from a program */
        tbd_consumer_take_frames(o->consumer);
    if (keeps_stops(o)) {
        o->packer = tbd_page_packer_new(NATIVE_PAGE_VERSIONS);
        if (!o->packer)
            return TBD_NOMEM;
        tbd_consumer_pack(o->consumer, o->packer);
        tbd_large_buffers_keep(NATIVE_KEPT_BYTES);
        (void)mallopt(M_MMAP_THRESHOLD, NATIVE_KEPT_LEAST);
        (void)mallopt(M_TRIM_THRESHOLD, NATIVE_TRIMMED);
    } else if (o->options->lean != TBD_ORGANIZE_LEAN_NEVER) {
        o->versions = tbd_page_versions_new(PAGE_VERSIONS);
    }
    if (o->options->pid)
        o->pidfd = (int)syscall(SYS_pidfd_open, o->options->pid, 0);
    status = make_writer(o, why);
    if (status)
        return status;
    o->join = tbd_join_new(o->writer, &o->lock, o->table, o->head, tbd_age_bytes(&o->options->age));
    o->pipeline = tbd_pipeline_new(tbd_workers_count(o->options),
                                   keeps_stops(o) ? NATIVE_MOST_BYTES : UINT64_MAX);
    if (!o->join || !o->pipeline)
        return TBD_NOMEM;
    if (o->options->after && !tbd_join_after(o->join, o->options->after, o->options->first))
        return TBD_NOMEM;
    age.only_drops = keeps_stops(o);
    if (tbd_ager_is_needed(&age))
        status = tbd_ager_new(&age, o->writer, &o->lock, &o->ager);
    if (status)
        return status;
    if (!tbd_workers_begin(o))
        return tbd_error_set(why, TBD_NOMEM, tbd_writer_path(o->writer), 0,
                             "no thread can be started: processes are limited (ulimit -u)");
    if (o->options->ready)
        o->options->ready(o->options->context, tbd_writer_path(o->writer));
    say_state(o->head, TBD_ORGANIZER_READY);
    return TBD_OK;
}

/* It waits for DONE then, and no other program follows in its process. */
static bool has_ended(const struct organizer *o)
{
    struct tbd_msg_end end;
    char text[352];

    return tbd_join_end(o->join, &end, text, sizeof(text)) &&
           (end.how == TBD_ENDED_EXIT || end.how == TBD_ENDED_SIGNAL);
}

static void say_done(struct organizer *o)
{
    tbd_one_process_end(&o->process);
    if (has_ended(o))
        tbd_one_process_wait(&o->process);
    say_state(o->head, TBD_ORGANIZER_DONE);
}

static void tear_down(struct organizer *o, enum tbd_status status)
{
    tbd_ager_free(o->ager);
    tbd_writer_free(o->writer);
    if (o->head && !o->failed && !status)
        say_done(o);
    tbd_one_process_free(&o->process);
    while (o->thread_count)
        pthread_join(o->threads[--o->thread_count], NULL);
    tbd_consumer_free(o->consumer);
    tbd_join_free(o->join);
    tbd_page_versions_free(o->versions);
    tbd_page_packer_free(o->packer);
    tbd_pipeline_free(o->pipeline);
    tbd_builders_free(&o->builders);
    tbd_block_table_release(o->table);
    if (o->pidfd >= 0)
        close(o->pidfd);
    pthread_mutex_destroy(&o->lock);
    pthread_cond_destroy(&o->space);
    pthread_cond_destroy(&o->due);
    pthread_cond_destroy(&o->idle);
}

enum tbd_status tbd_organize(const struct tbd_organize_options *options, struct tbd_error *why)
{
    struct organizer o = { .options = options,
                           .pidfd = -1,
                           .process.fd = -1,
                           .builders = { .lock = PTHREAD_MUTEX_INITIALIZER } };
    enum tbd_status status;
    bool is_put_off;

    pthread_mutex_init(&o.lock, NULL);
    pthread_cond_init(&o.space, NULL);
    pthread_cond_init(&o.due, NULL);
    pthread_cond_init(&o.idle, NULL);
    is_put_off = put_off_large_pages();
    status = set_up(&o, why);
    if (status && o.head) {
        snprintf(o.head->failure, sizeof(o.head->failure), "%s",
                 why && why->detail[0] ? why->detail : tbd_status_text(status));
        say_state(o.head, TBD_ORGANIZER_FAILED);
    }
    /* Native play's windows are small, and large pages would be most of their memory. */
    if (is_put_off && !(o.head && keeps_stops(&o)))
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
