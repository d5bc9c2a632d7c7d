// SPDX-License-Identifier: MIT
/* organizer_run.c - see organizer_run.h */
#include "organizer_run.h"
#include "format/reading/window_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

char run_root[FOLDER_BYTES];

int run_make_root(void **state)
{
    (void)state;
    return folder_make(run_root, "organizer") ? 0 : -1;
}

int run_remove_root(void **state)
{
    (void)state;
    return folder_remove(run_root) ? 0 : -1;
}

static void *run_organizer(void *context)
{
    struct run *run = context;

    run->status = tbd_organize(&run->options, &run->why);
    return NULL;
}

void run_start(struct run *run, const struct maker *m, unsigned threads,
               enum tbd_organize_lean lean)
{
    *run = (struct run){ .options = { .stream_fd = m->fd,
                                      .root = run_root,
                                      .program = "sim",
                                      .threads = threads,
                                      .lean = lean } };
    assert_int_equal(pthread_create(&run->thread, NULL, run_organizer, run), 0);
}

void run_start_aged(struct run *run, const struct maker *m, const struct tbd_age_limits *age)
{
    *run = (struct run){
        .options = { .stream_fd = m->fd, .root = run_root, .program = "sim", .age = *age }
    };
    assert_int_equal(pthread_create(&run->thread, NULL, run_organizer, run), 0);
}

void run_start_of(struct run *run, const struct maker *m, pid_t producer)
{
    *run = (struct run){
        .options = { .stream_fd = m->fd, .root = run_root, .program = "sim", .pid = producer }
    };
    assert_int_equal(pthread_create(&run->thread, NULL, run_organizer, run), 0);
}

void run_finish(struct run *run)
{
    pthread_join(run->thread, NULL);
    if (run->status)
        print_message("organizer: %s: %s\n", run->why.file, run->why.detail);
    assert_int_equal(run->status, TBD_OK);
}

struct tbd_trace *run_open_latest(void)
{
    struct tbd_error why = { 0 };
    struct tbd_trace *trace;
    char path[128];

    snprintf(path, sizeof(path), "%s/latest", run_root);
    if (tbd_trace_open(path, &trace, &why))
        print_message("%s at %llu: %s\n", why.file, (unsigned long long)why.offset, why.detail);
    assert_non_null(trace);
    return trace;
}

struct tbd_window *run_load_as(struct tbd_trace *trace, uint32_t index, bool with_events)
{
    struct tbd_error why = { 0 };
    struct tbd_window *window;

    if (tbd_window_load(trace, index, with_events, &window, &why))
        print_message("%s at %llu: %s\n", why.file, (unsigned long long)why.offset, why.detail);
    assert_non_null(window);
    return window;
}

struct tbd_window *run_load(struct tbd_trace *trace, uint32_t index)
{
    return run_load_as(trace, index, true);
}

void run_simulate_as(enum tbd_organize_lean lean, struct sim *s, struct maker *m, uint64_t seed,
                     uint32_t chunk_entries, uint32_t steps, uint32_t window_steps)
{
    struct tbd_trace *trace;
    struct run run;

    maker_open(m, chunk_entries);
    run_start(&run, m, 3, lean);
    sim_run(s, m, seed, steps, window_steps);
    run_finish(&run);
    trace = run_open_latest();
    assert_null(tbd_trace_damage(trace, 0));
    tbd_trace_close(trace);
}

void run_simulate(struct sim *s, struct maker *m, uint64_t seed, uint32_t chunk_entries,
                  uint32_t steps, uint32_t window_steps)
{
    run_simulate_as(TBD_ORGANIZE_LEAN_NEVER, s, m, seed, chunk_entries, steps, window_steps);
}
