// SPDX-License-Identifier: MIT
/* organize.h - from a stream to a trace directory: the whole of play's organizer
 *
 * Ordinary process; makes threads of its own. */
#ifndef TBD_ORGANIZER_ORGANIZE_H
#define TBD_ORGANIZER_ORGANIZE_H

#include "base/status.h"
#include "organizer/age.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Which windows are born lean: without the events that a replay brings back. */
enum tbd_organize_lean {
    TBD_ORGANIZE_LEAN_NEVER = 0, /* none: the program waits for their events to be written */
    /* those that come faster than one worker builds them with events */
    TBD_ORGANIZE_LEAN_AUTO,
    TBD_ORGANIZE_LEAN_ALWAYS, /* all that can be */
};

struct tbd_organize_options {
    int stream_fd;
    pid_t pid;           /* of the producer; 0: nobody to watch, the stream ends by itself */
    const char *root;    /* trace root; NULL: tbd_trace_root() */
    const char *program; /* for the trace's name, or a path that ends with it; NULL: "program" */
    unsigned threads;    /* that build and write windows; 0: chosen by the number of cores */
    struct tbd_age_limits age;
    enum tbd_organize_lean lean;
    /* of the trace that the stream is made from; NULL: it comes from a program */
    const struct tbd_kept_modules *modules;
    /* that trace, if its first windows were dropped, and the first one left; NULL: none was */
    struct tbd_trace *after;
    const struct tbd_window *first;
    bool discard;     /* measure only: take the stream, write nothing */
    bool keeps_rings; /* for tbd_collect() (organizer/collect.h) */
    const char
        *facts; /* for it: of the system, in a dump (format/writer/system_facts.h); NULL: all */
    const char *
        triggers; /* for it: found before the program runs (organizer/place_triggers.h); NULL: none */
    bool is_placed;    /* these are the engine's already: a forked child's */
    const char *parts; /* for it, too: functions among them are found then; NULL: there are none */
    void (*ready)(void *context, const char *path); /* may be NULL: the directory exists */
    void *context;
};

/* Returns when the stream has ended and everything is written (or cannot be).  The trace of a
 * killed program is complete up to its last block.  On failure before the directory exists nothing
 * is created; `why` says what is wrong.  organizer_state in the stream always tells the outcome. */
TBD_MUST_CHECK enum tbd_status tbd_organize(const struct tbd_organize_options *options,
                                            struct tbd_error *why);

#endif
