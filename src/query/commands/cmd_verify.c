// SPDX-License-Identifier: MIT
/* cmd_verify.c - replays all windows on several workers and says where they diverge
 *
 *   workers:  take the next few windows (atomic), replay them, note the results
 *   main:     waits for them, showing progress; prints results in order of windows at the end
 *
 * Each worker uses its own worker number of one replayer (replay.h allows that). */
#include "query/commands/commands.h"
#include "query/commands/diverged.h"
#include "query/text/user_interrupt.h"
#include "query/output/output.h"
#include "query/text/progress.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_MOST 16u
#define EXPLAINED  10u /* windows whose divergence is told at length */

struct outcome {
    enum tbd_status status;
    struct tbd_divergence divergence; /* TBD_DIVERGED */
    struct tbd_error why;             /* other failures */
};

struct verify {
    struct tbd_session *session;
    enum tbd_verify how;
    uint32_t windows;
    uint32_t batch; /* consecutive windows, which one process replays faster */
    _Atomic uint32_t next;
    _Atomic uint32_t done;
    _Atomic uint32_t diverged;
    _Atomic uint32_t failed;  /* could not be replayed at all */
    struct outcome *outcomes; /* one per window; written by the worker that took it */
};

struct worker {
    struct verify *verify;
    unsigned number;
    pthread_t thread;
    bool started;
};

static void verify_window(struct verify *verify, unsigned worker, uint32_t window)
{
    struct outcome *outcome = &verify->outcomes[window];

    outcome->status = tbd_replay_verify(verify->session->replayer, worker, window, verify->how,
                                        &outcome->divergence, &outcome->why);
    if (outcome->status == TBD_DIVERGED)
        atomic_fetch_add(&verify->diverged, 1);
    else if (outcome->status != TBD_OK)
        atomic_fetch_add(&verify->failed, 1);
    atomic_fetch_add(&verify->done, 1);
}

static void *verify_windows(void *argument)
{
    const struct worker *worker = argument;
    struct verify *verify = worker->verify;
    uint32_t from;

    while (!tbd_is_interrupted() &&
           (from = atomic_fetch_add(&verify->next, verify->batch)) < verify->windows) {
        uint32_t left = verify->windows - from,
                 to = from + (left < verify->batch ? left : verify->batch);

        for (uint32_t i = from; i < to && !tbd_is_interrupted(); i++)
            verify_window(verify, worker->number, i);
    }
    return NULL;
}

static void watch(struct verify *verify, bool quiet)
{
    struct tbd_progress progress;
    struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };

    tbd_progress_start(&progress, quiet);
    while (progress.enabled && atomic_load(&verify->done) < verify->windows &&
           !tbd_is_interrupted()) {
        tbd_progress_show(&progress, "verifying", atomic_load(&verify->done), verify->windows,
                          atomic_load(&verify->diverged));
        nanosleep(&pause, NULL);
    }
    tbd_progress_clear(&progress);
}

static enum tbd_status run_workers(struct verify *verify, unsigned count, bool quiet)
{
    struct worker *workers = calloc(count, sizeof(*workers));
    bool any = false;

    if (workers == NULL)
        return TBD_NOMEM;
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (struct worker){ .verify = verify, .number = i };
        workers[i].started =
            pthread_create(&workers[i].thread, NULL, verify_windows, &workers[i]) == 0;
        any = any || workers[i].started;
    }
    if (any)
        watch(verify, quiet);
    for (unsigned i = 0; i < count; i++) {
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
    }
    free(workers);
    return any ? TBD_OK : TBD_SYSTEM;
}

/* ---- result ---- */

static void describe(const struct outcome *outcome, char *out, size_t bytes)
{
    const struct tbd_error *why = &outcome->why;
    char place[330] = "";

    if (outcome->status == TBD_DIVERGED) {
        snprintf(out, bytes, "%s", outcome->divergence.what);
        return;
    }
    if (why->file[0] != '\0')
        snprintf(place, sizeof(place), ": %s at offset %" PRIu64, why->file, why->offset);
    snprintf(out, bytes, "%s%s%s%s", tbd_status_text(outcome->status), place,
             why->detail[0] == '\0' ? "" : ": ", why->detail);
}

/* What play did before, and what such a difference often means. */
static void print_explanation(const struct tbd_command_run *run,
                              const struct tbd_divergence *divergence)
{
    const char *cause = tbd_diverged_cause(divergence->what);
    json_t *lines = tbd_diverged_before(run->session, divergence);

    for (size_t i = 0; i < json_array_size(lines); i++)
        fprintf(run->out, "    %s\n", tbd_shown(json_string_value(json_array_get(lines, i))));
    json_decref(lines);
    if (cause != NULL)
        fprintf(run->out, "  likely: %s\n", cause);
}

static void print_outcome(const struct tbd_command_run *run, uint32_t window,
                          const struct outcome *outcome, bool explain)
{
    const struct tbd_position *position = &outcome->divergence.position;
    char text[800];
    json_t *object;

    describe(outcome, text, sizeof(text));
    if (!run->session->json && outcome->status == TBD_DIVERGED) {
        fprintf(run->out, "window %" PRIu32 " diverged at %" PRIu64 "+%" PRIu32, window,
                position->time, position->offset);
        if (outcome->divergence.thread != 0 && tbd_trace_thread_count(run->session->trace) > 1)
            fprintf(run->out, " in thread %" PRIu32, outcome->divergence.thread);
        fprintf(run->out, ": %s\n", tbd_shown(text));
        if (explain)
            print_explanation(run, &outcome->divergence);
        return;
    }
    if (!run->session->json) {
        fprintf(run->out, "window %" PRIu32 " was not replayed: %s\n", window, tbd_shown(text));
        return;
    }
    object = json_object();
    json_object_set_new(object, "window", json_integer((json_int_t)window));
    json_object_set_new(object, "diverged", json_boolean(outcome->status == TBD_DIVERGED));
    json_object_set_new(object, "time", json_integer((json_int_t)position->time));
    json_object_set_new(object, "offset", json_integer((json_int_t)position->offset));
    if (outcome->divergence.thread != 0)
        json_object_set_new(object, "thread", json_integer((json_int_t)outcome->divergence.thread));
    json_object_set_new(object, "what", tbd_output_text(text));
    if (explain && outcome->status == TBD_DIVERGED) {
        json_object_set_new(object, "before",
                            tbd_diverged_before(run->session, &outcome->divergence));
        if (tbd_diverged_cause(text) != NULL)
            json_object_set_new(object, "likely", tbd_output_text(tbd_diverged_cause(text)));
    }
    tbd_output_line(object, run->out);
}

/* Had replay processes namespaces of their own?  null: none was started. */
static json_t *isolation(void)
{
    enum tbd_isolation isolation = tbd_replay_isolation();

    return isolation == TBD_ISOLATION_UNKNOWN ? json_null()
                                              : json_boolean(isolation == TBD_ISOLATION_FULL);
}

/* Windows of which play has counted no events: the rest of what it knew was compared. */
static uint32_t count_uncounted(const struct verify *verify)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < verify->windows; i++)
        count += tbd_trace_window(verify->session->trace, i)->is_uncounted;
    return count;
}

static enum tbd_exit print_result(const struct tbd_command_run *run, const struct verify *verify,
                                  double seconds)
{
    uint32_t diverged = atomic_load(&verify->diverged);
    uint32_t failed = atomic_load(&verify->failed);
    uint32_t uncounted = count_uncounted(verify);
    json_t *object;

    for (uint32_t i = 0, shown = 0; i < verify->windows; i++) {
        if (verify->outcomes[i].status != TBD_OK)
            print_outcome(run, i, &verify->outcomes[i], shown++ < EXPLAINED);
    }
    if (run->session->json) {
        object = json_object();
        json_object_set_new(object, "verified", json_boolean(diverged + failed == 0));
        json_object_set_new(object, "windows", json_integer((json_int_t)verify->windows));
        json_object_set_new(object, "blocks", json_integer((json_int_t)run->session->info->blocks));
        json_object_set_new(object, "divergences", json_integer((json_int_t)diverged));
        json_object_set_new(object, "not_replayed", json_integer((json_int_t)failed));
        json_object_set_new(object, "uncounted", json_integer((json_int_t)uncounted));
        json_object_set_new(object, "incomplete", json_boolean(failed != 0));
        json_object_set_new(object, "seconds", json_real(seconds));
        json_object_set_new(object, "namespaces", isolation());
        tbd_output_line(object, run->out);
    } else {
        fprintf(run->out,
                "%" PRIu32 " windows, %" PRIu64 " blocks, %" PRIu32 " divergences, %.2f s\n",
                verify->windows, run->session->info->blocks, diverged, seconds);
        if (failed != 0)
            fprintf(run->out, "%" PRIu32 " windows were not replayed: nothing is known of them\n",
                    failed);
        if (uncounted != 0)
            fprintf(run->out,
                    "%" PRIu32
                    " windows were recorded uncounted: their time, log and end state were "
                    "compared\n",
                    uncounted);
        if (run->explain && tbd_replay_isolation() == TBD_ISOLATION_CALLS)
            fprintf(run->out, "replay processes had no namespaces of their own here\n");
    }
    if (failed != 0)
        return TBD_EXIT_TRACE;
    return diverged == 0 ? TBD_EXIT_FOUND : TBD_EXIT_NOT_FOUND;
}

/* 0 if it is no number of workers. */
static unsigned parse_workers(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    return *text == '\0' || *end != '\0' || value > 256 ? 0 : (unsigned)value;
}

/* --quick, "-j N" or "-jN".  NULL, or what is wrong. */
static const char *parse_options(const struct tbd_command_run *run, struct verify *verify)
{
    for (size_t i = 0; i < run->argc; i++) {
        const char *word = run->argv[i];

        if (strcmp(word, "--quick") == 0) {
            verify->how = TBD_VERIFY_QUICK;
            continue;
        }
        if (strncmp(word, "-j", 2) != 0)
            return "verify takes -j WORKERS and --quick";
        if (word[2] == '\0' && ++i == run->argc)
            return "-j needs a number of workers";
        run->session->workers = parse_workers(word[2] == '\0' ? run->argv[i] : word + 2);
    }
    return run->session->workers == 0 ? "the number of workers is from 1 to 256" : NULL;
}

/* Small enough that no worker is left with much to do alone at the end. */
static uint32_t batch_of(uint32_t windows, unsigned workers)
{
    uint32_t share = windows / (workers * 8);

    return share < 1 ? 1 : share < BATCH_MOST ? share : BATCH_MOST;
}

/* Replays all windows, each by itself. */
static enum tbd_status verify_all(const struct tbd_command_run *run, struct verify *verify)
{
    enum tbd_status status;

    verify->windows = tbd_trace_window_count(run->session->trace);
    verify->batch = batch_of(verify->windows, run->session->workers);
    verify->outcomes = calloc(verify->windows + 1, sizeof(*verify->outcomes));
    status = verify->outcomes == NULL ? TBD_NOMEM : tbd_session_replayer(run->session);
    if (status == TBD_OK)
        status = run_workers(verify, run->session->workers, run->quiet);
    return status == TBD_OK && tbd_is_interrupted() ? TBD_INTERRUPTED : status;
}

enum tbd_status tbd_verify_find(struct tbd_command_run *run, uint32_t *out)
{
    struct verify verify = { .session = run->session };
    enum tbd_status status = verify_all(run, &verify);
    uint32_t i = 0;

    while (status == TBD_OK && i < verify.windows && verify.outcomes[i].status != TBD_DIVERGED)
        i++;
    if (status == TBD_OK && i == verify.windows)
        status = TBD_NOTFOUND;
    *out = i;
    free(verify.outcomes);
    return status;
}

enum tbd_exit tbd_command_verify(struct tbd_command_run *run)
{
    struct verify verify = { .session = run->session };
    double started = tbd_progress_now();
    const char *wrong = parse_options(run, &verify);
    enum tbd_exit result;
    enum tbd_status status;

    if (wrong != NULL)
        return tbd_command_usage(run, wrong);
    status = verify_all(run, &verify);
    result = status == TBD_OK ? print_result(run, &verify, tbd_progress_now() - started)
                              : tbd_command_fail(run, status);
    free(verify.outcomes);
    return result;
}
