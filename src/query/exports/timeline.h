// SPDX-License-Identifier: MIT
/* timeline.h - the calls of chosen functions as nested slices of time, for files that other programs read
 *
 * A slice goes from a call's entry to its return, counted in block entries.  One that an exception or longjmp left
 * ends where that was seen; one that never ended, with the recording.  Slices of a thread are nested: a slice that seems
 * to end after the one around it (a stack of another coroutine) ends with it. */
#ifndef TBD_QUERY_TIMELINE_H
#define TBD_QUERY_TIMELINE_H

#include "query/commands/commands.h"

struct tbd_timeline_name {
    char *text;    /* owned; "shop::total" */
    char *file;    /* owned; "" if it is not known */
    uint32_t line; /* 0: not known */
    uint64_t pc;   /* its first instruction */
};

struct tbd_timeline_slice {
    uint64_t start, end; /* times; `end` one past its last block */
    uint32_t thread;
    uint32_t name;  /* index in `names` */
    uint32_t depth; /* of slices around it */
};

struct tbd_timeline {
    struct tbd_timeline_slice *slices; /* owned; by thread, then by start, outer ones first */
    size_t count, capacity;
    struct tbd_timeline_name *names; /* owned */
    size_t name_count, name_capacity;
};

/* The calls of `where`, a question of func_enter with a name of a function or module, which is taken. */
enum tbd_exit tbd_timeline_read(struct tbd_command_run *run, struct tbd_question *question,
                                struct tbd_timeline *out);
/* Only the slices with fewer than `depth` around them are left. */
void tbd_timeline_limit(struct tbd_timeline *timeline, uint32_t depth);
void tbd_timeline_free(struct tbd_timeline *timeline);

/* What happens in the order of time, thread by thread. */
struct tbd_timeline_visitor {
    void (*thread)(void *context, uint32_t thread); /* those that follow are of this thread */
    void (*open)(void *context, const struct tbd_timeline_slice *slice);
    /* `self`: its time without that of the slices in it */
    void (*close)(void *context, const struct tbd_timeline_slice *slice, uint64_t self);
    void *context;
};
/* False without memory. */
bool tbd_timeline_walk(const struct tbd_timeline *timeline,
                       const struct tbd_timeline_visitor *visitor);

/* ---- writers: false if there is no memory; errors of the file are in `out` ---- */

struct tbd_counter;

struct tbd_export {
    struct tbd_command_run *run;
    const struct tbd_timeline *timeline;
    struct tbd_counter *counters; /* borrowed */
    uint32_t counter_count;
    FILE *out;
};

bool tbd_export_folded(const struct tbd_export *export);
bool tbd_export_speedscope(const struct tbd_export *export);
bool tbd_export_callgrind(const struct tbd_export *export);
bool tbd_export_perfetto(const struct tbd_export *export);

/* A core file of the state at a position. */
enum tbd_exit tbd_export_core(struct tbd_command_run *run, struct tbd_position position, FILE *out);

#endif
