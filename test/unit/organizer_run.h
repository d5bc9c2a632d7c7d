// SPDX-License-Identifier: MIT
/* organizer_run.h - runs the organizer in a thread beside a producer, and opens its trace
 *
 * All functions fail the test when something goes wrong. */
#ifndef TEST_ORGANIZER_RUN_H
#define TEST_ORGANIZER_RUN_H

#include "folder.h"
#include "format/trace/trace.h"
#include "organizer/organize.h"
#include "stream_maker.h"

#include <pthread.h>

extern char run_root[FOLDER_BYTES]; /* traces are made here */

/* A group's set-up and tear-down. */
int run_make_root(void **state);
int run_remove_root(void **state);

struct run {
    struct tbd_organize_options options;
    struct tbd_error why;
    enum tbd_status status;
    pthread_t thread;
};

void run_start(struct run *run, const struct maker *m, unsigned threads,
               enum tbd_organize_lean lean);
/* Starts an organizer that gives up details as the trace grows. */
void run_start_aged(struct run *run, const struct maker *m, const struct tbd_age_limits *age);
/* Starts an organizer that watches its producer. */
void run_start_of(struct run *run, const struct maker *m, pid_t producer);
void run_finish(struct run *run);

/* The latest trace, and windows of it. */
struct tbd_trace *run_open_latest(void);
struct tbd_window *run_load(struct tbd_trace *trace, uint32_t index);
struct tbd_window *run_load_as(struct tbd_trace *trace, uint32_t index, bool with_events);

/* Runs the simulation with these sizes into a fresh trace. */
void run_simulate(struct sim *s, struct maker *m, uint64_t seed, uint32_t chunk_entries,
                  uint32_t steps, uint32_t window_steps);
void run_simulate_as(enum tbd_organize_lean lean, struct sim *s, struct maker *m, uint64_t seed,
                     uint32_t chunk_entries, uint32_t steps, uint32_t window_steps);

#endif
