// SPDX-License-Identifier: MIT
/* organize.c - from a stream to a trace directory
 *
 *   main thread:  wait for chunks -> copy -> raw window --queue--> workers
 *   a worker:     build (alone) -> join (in order) -> pack and write (alone) -> commit (in order)
 *   the ager:     lowers, merges and drops windows that are in the trace (age.h)
 *
 * Joining (join.h) gives a window what only the order of windows tells.
 *
 * Invariants
 * O1  Workers take windows in order, so the oldest one in work never waits for another: no
 *     deadlock.
 * O2  join and commit run under `lock`; what they use (writer, `join`) is guarded by it.
 *     Permission to write files is given in order, too: else a window that waits for room could wait
 *     for one that has it and waits for its turn.
 * O3  Keys of windows are collected in `segment` as windows are committed; a full one is taken out under
 *     `lock` and written without it.
 * O4  A window is born lean (level 2) only if a replay brings its events back: what is built without them and turns out
 *     to be incomplete is coded when it is written.
 * O5  After a failure (`failed`) the stream says FAILED, so that the program detaches; windows that
 *     wait are dropped unseen, nothing more is taken, and the trace gets its end record at once. */
#include "organizer/organize.h"

#include "format/file.h"
#include "format/window.h"
#include "format/writer.h"
#include "organizer/build.h"
#include "organizer/join.h"

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
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 8u
/* Windows that wait: so many that workers find one even behind a window that takes ten times as long as others;
 * more take memory, tens of megabytes each, and gain nothing. */
#define QUEUE_SLOTS 4u
#define WAIT_MS 100u
/* For a block entry with its events, before a window has been measured: all caches are cold. */
#define FIRST_BUILD_NS 40u

struct job {
    uint64_t number;
    bool is_lean; /* without its events, unless nobody could bring them back */
    struct tbd_raw_window raw;
};

struct organizer {
    const struct tbd_organize_options *options;
    struct tbd_consumer *consumer;
    struct tbd_block_table *table;
    struct tbd_stream_head *head;
    int pidfd;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job queue[QUEUE_SLOTS];
    uint64_t queued;   /* windows put in so far */
    uint64_t taken;    /* and taken out */
    uint64_t joined;
    uint64_t granted;  /* may write its files */
    uint64_t committed;
    uint64_t window_ns; /* from one window to the next */
    uint64_t put_ns;    /* when the last one came */
    uint64_t build_ns;  /* for a MiB of raw window, to build and write it with its events */
    struct tbd_ager *ager; /* owned; NULL: windows stay as they are */
    bool settled;      /* all windows are committed */
    bool closed;       /* nothing more comes */

    struct tbd_writer *writer;
    struct tbd_join *join;           /* in order, under `lock` */
    struct tbd_key_segment *segment; /* owned; NULL until the first window */
    enum tbd_status failed;
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
    o->failed = status;
    snprintf(o->failure, sizeof(o->failure), "%s: %s", what, tbd_status_text(status));
    say_state(o->head, TBD_ORGANIZER_FAILED);
    pthread_cond_broadcast(&o->changed);
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

/* A mean of the last few. */
static void note_time(uint64_t *mean, uint64_t ns)
{
    *mean = *mean ? (*mean * 3 + ns) / 4 : ns;
}

static size_t raw_bytes(const struct tbd_raw_window *raw)
{
    return raw->entry_count * sizeof(*raw->entries) + raw->operand_bytes;
}

/* How long one worker needs for the window with its events. */
static uint64_t guess_build_ns(const struct organizer *o, const struct tbd_raw_window *raw)
{
    return o->build_ns ? o->build_ns * raw_bytes(raw) >> 20 : raw->entry_count * FIRST_BUILD_NS;
}

/* Do windows come faster than one worker builds them with their events?  When another one waits
 * already, the program soon would, too; but workers that just keep up still take caches and memory
 * from it. */
static bool is_pressed_locked(const struct organizer *o, const struct tbd_raw_window *raw)
{
    return o->taken != o->queued || guess_build_ns(o, raw) > o->window_ns;
}

/* Shall the window just taken be built without its events? */
static bool is_lean_locked(const struct organizer *o, const struct tbd_raw_window *raw)
{
    enum tbd_organize_lean lean = o->options->lean;

    return (lean == TBD_ORGANIZE_LEAN_ALWAYS ||
            (lean == TBD_ORGANIZE_LEAN_AUTO && is_pressed_locked(o, raw))) &&
           is_replayable(o, !raw->cut);
}

static bool take_job(struct organizer *o, struct job *out)
{
    bool got = false;

    pthread_mutex_lock(&o->lock);
    while (o->taken == o->queued && !o->closed)
        pthread_cond_wait(&o->changed, &o->lock);
    if (o->taken < o->queued) {
        *out = o->queue[o->taken++ % QUEUE_SLOTS];
        out->is_lean = is_lean_locked(o, &out->raw);
        got = true;
        pthread_cond_broadcast(&o->changed);
    }
    pthread_mutex_unlock(&o->lock);
    return got;
}

static void wait_turn_locked(struct organizer *o, const uint64_t *turn, uint64_t number)
{
    while (*turn != number)
        pthread_cond_wait(&o->changed, &o->lock);
}

/* Returns a segment that is complete, to be written by the caller. */
static struct tbd_key_segment *add_keys_locked(struct organizer *o, const struct tbd_disk_window *disk,
                                               struct tbd_buffer *keys)
{
    struct tbd_key_segment *full = NULL;

    if (o->segment && tbd_key_segment_add(o->segment, disk->window, disk->first_time, disk->blocks,
                                          keys))
        return NULL;
    full = o->segment;
    o->segment = calloc(1, sizeof(*o->segment));
    if (o->segment)
        (void)tbd_key_segment_add(o->segment, disk->window, disk->first_time, disk->blocks, keys);
    return full;
}

static void write_segment(struct organizer *o, struct tbd_key_segment *segment)
{
    if (!segment)
        return;
    if (segment->windows)
        tbd_writer_segment(o->writer, segment);
    tbd_key_segment_clear(segment);
    free(segment);
}

/* The window's files may be written now; room has been made. */
static void wait_for_room(struct organizer *o, uint64_t number, bool keep)
{
    pthread_mutex_lock(&o->lock);
    wait_turn_locked(o, &o->granted, number);
    while (keep && o->ager && !tbd_ager_may_write_locked(o->ager))
        pthread_cond_wait(&o->changed, &o->lock);
    o->granted++;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

static void age_locked(struct organizer *o, const struct tbd_disk_window *window,
                       enum tbd_status status)
{
    if (status || (o->failed && o->failed != TBD_CORRUPT))
        tbd_ager_take_back_locked(o->ager);
    else
        status = tbd_ager_add_locked(o->ager, window, is_replayable(o, window->complete));
    if (status)
        fail_locked(o, status, "window");
}

static void commit(struct organizer *o, uint64_t number, struct tbd_window_files *files,
                   struct tbd_buffer *keys, enum tbd_status status, bool keep)
{
    struct tbd_key_segment *full = NULL;

    pthread_mutex_lock(&o->lock);
    wait_turn_locked(o, &o->committed, number);
    if (status)
        fail_locked(o, status, "window");
    if (keep && !status && (!o->failed || o->failed == TBD_CORRUPT)) {
        status = tbd_writer_commit_window(o->writer, files);
        if (status)
            fail_locked(o, status, "index");
        else
            full = add_keys_locked(o, &files->disk, keys);
    }
    if (keep && o->ager)
        age_locked(o, &files->disk, status);
    free(files->pages);
    o->committed++;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    write_segment(o, full);
}

static void note_build(struct organizer *o, uint64_t ns, size_t bytes)
{
    pthread_mutex_lock(&o->lock);
    note_time(&o->build_ns, (ns << 20) / (bytes + 1));
    pthread_mutex_unlock(&o->lock);
}

static void do_job(struct organizer *o, struct tbd_builder *builder, struct job *job)
{
    uint32_t highest_id = job->raw.highest_id;
    size_t bytes = raw_bytes(&job->raw);
    struct tbd_window_files files = { 0 };
    struct tbd_product product = { 0 };
    struct tbd_buffer keys = { 0 };
    uint64_t begin_ns = now_ns(), busy_ns;
    enum tbd_status status;
    bool keep = false;

    tbd_builder_code(builder, !job->is_lean);
    status = tbd_build(builder, &job->raw, tbd_consumer_plans(o->consumer), o->table, &product);
    busy_ns = now_ns() - begin_ns;
    if (!status && job->is_lean && product.window->complete)
        product.counts.level = 2;
    pthread_mutex_lock(&o->lock);
    wait_turn_locked(o, &o->joined, job->number);
    if (!status && !o->failed)
        status = tbd_join_window(o->join, &product, highest_id, &keep);
    if (status)
        fail_locked(o, status, "window");
    else if (product.damaged)
        fail_locked(o, TBD_CORRUPT, "stream");
    o->joined++;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    wait_for_room(o, job->number, keep);
    begin_ns = now_ns();
    if (keep) {
        status = tbd_writer_put_window(o->writer, product.window, &product.counts, product.coded,
                                       &files);
        tbd_keys_collect(product.window, &keys);
    }
    busy_ns += now_ns() - begin_ns;
    commit(o, job->number, &files, &keys, status, keep);
    tbd_buffer_free(&keys);
    tbd_product_free(&product);
    if (!job->is_lean)
        note_build(o, busy_ns, bytes);
}

static void *work(void *context)
{
    struct organizer *o = context;
    struct tbd_builder *builder = tbd_builder_new();
    struct job job;

    if (!builder)
        abort();
    while (take_job(o, &job))
        do_job(o, builder, &job);
    tbd_builder_free(builder);
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
            pthread_cond_wait(&o->changed, &o->lock);
            continue;
        }
        pthread_mutex_unlock(&o->lock);
        status = tbd_ager_step(o->ager);
        pthread_mutex_lock(&o->lock);
        pthread_cond_broadcast(&o->changed);
    }
    if (status) {
        tbd_ager_stop_locked(o->ager);
        fail_locked(o, status, "making room");
    }
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

/* The first one took the program's start as well: it says nothing of those to come. */
static void note_window(struct organizer *o, uint64_t ns)
{
    if (o->queued < 2)
        o->window_ns = 0;
    note_time(&o->window_ns, ns);
}

static void put_job(struct organizer *o, struct tbd_raw_window *raw)
{
    pthread_mutex_lock(&o->lock);
    while (o->queued - o->taken == QUEUE_SLOTS)
        pthread_cond_wait(&o->changed, &o->lock);
    if (o->failed || o->options->discard) {
        tbd_raw_window_free(raw);
    } else {
        note_window(o, now_ns() - o->put_ns);
        o->put_ns = now_ns();
        o->queue[o->queued % QUEUE_SLOTS] = (struct job){ .number = o->queued, .raw = *raw };
        o->queued++;
        pthread_cond_broadcast(&o->changed);
    }
    pthread_mutex_unlock(&o->lock);
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
    pthread_mutex_lock(&o->lock);
    fail_locked(o, status, why->detail[0] ? why->detail : "stream");
    pthread_mutex_unlock(&o->lock);
}

/* What the producer left behind. */
static void salvage(struct organizer *o)
{
    struct tbd_raw_window raw;
    struct tbd_error why = { 0 };
    enum tbd_status status = tbd_consumer_salvage(o->consumer, &raw, &why);

    if (status == TBD_OK)
        put_job(o, &raw);
    else if (status != TBD_NOTFOUND)
        break_stream(o, status, &why);
}

static bool has_failed(struct organizer *o)
{
    bool failed;

    pthread_mutex_lock(&o->lock);
    failed = o->failed != TBD_OK;
    pthread_mutex_unlock(&o->lock);
    return failed;
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
            put_job(o, &raw);
            continue;
        }
        if (status != TBD_NOTFOUND)
            return break_stream(o, status, &why);
        if (gone)
            return salvage(o);
        /* looked at once more after this: what was published before the end is not missed */
        gone = is_gone(o);
        if (!gone)
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

static enum tbd_status run_threads(struct organizer *o)
{
    pthread_t threads[MAX_THREADS];
    unsigned wanted = thread_count(o->options);
    unsigned count = 0;
    pthread_t ager;

    o->put_ns = now_ns();
    while (count < wanted && !pthread_create(&threads[count], NULL, work, o))
        count++;
    if (!count)
        return TBD_NOMEM;
    if (o->ager && pthread_create(&ager, NULL, grow_old, o)) {
        tbd_ager_free(o->ager);
        o->ager = NULL;
    }
    take_stream(o);
    pthread_mutex_lock(&o->lock);
    o->closed = true;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    while (count)
        pthread_join(threads[--count], NULL);
    write_segment(o, o->segment);
    o->segment = NULL;
    pthread_mutex_lock(&o->lock);
    o->settled = true;
    pthread_cond_broadcast(&o->changed);
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

static enum tbd_status set_up(struct organizer *o, struct tbd_error *why)
{
    enum tbd_status status;

    o->table = tbd_block_table_new();
    if (!o->table)
        return TBD_NOMEM;
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
    o->join = tbd_join_new(o->writer, o->table, o->head, o->options->age.budget);
    if (!o->join)
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
    tbd_consumer_free(o->consumer);
    tbd_join_free(o->join);
    tbd_block_table_release(o->table);
    if (o->pidfd >= 0)
        close(o->pidfd);
    pthread_mutex_destroy(&o->lock);
    pthread_cond_destroy(&o->changed);
}

enum tbd_status tbd_organize(const struct tbd_organize_options *options, struct tbd_error *why)
{
    struct organizer o = { .options = options, .pidfd = -1 };
    enum tbd_status status;

    pthread_mutex_init(&o.lock, NULL);
    pthread_cond_init(&o.changed, NULL);
    status = set_up(&o, why);
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
