// SPDX-License-Identifier: MIT
/* remote_motion.h - where a debugger stands in the recording, and how it moves: steps and runs, both ways
 *
 * A run is a search for the nearest of all that it may stop at; nothing is stepped through.  A step is
 * the thread's next instruction; whatever other threads do before that has happened then.
 *
 * A stop for a signal with a handler is at a place that is no position of the recording: the thread has not begun the handler, and its
 * registers are those of the code that the signal interrupts.  `at` is the handler's first instruction then. */
#ifndef TBD_QUERY_REMOTE_MOTION_H
#define TBD_QUERY_REMOTE_MOTION_H

#include "query/remote/remote_packet.h"
#include "query/search/nearest.h"

/* What a run stops at; the numbers are those of the packets Z0 to Z4. */
enum tbd_remote_point_kind {
    TBD_POINT_SOFTWARE = 0,
    TBD_POINT_HARDWARE,
    TBD_POINT_WRITE,
    TBD_POINT_READ,
    TBD_POINT_ACCESS,
    TBD_POINT_KINDS
};

struct tbd_remote_point {
    enum tbd_remote_point_kind kind;
    uint64_t address, bytes; /* `bytes` of watched memory */
    char *condition;         /* of a place; owned by the list; NULL: none */
};

enum tbd_remote_reason {
    TBD_STOP_STEP = 0, /* also at first, and where nothing moved */
    TBD_STOP_POINT,    /* point.kind, point.address */
    TBD_STOP_SIGNAL,
    TBD_STOP_CALL,   /* a system call begins */
    TBD_STOP_RETURN, /* ... or has returned */
    TBD_STOP_ENDS,   /* the recording ends, or begins, here */
    TBD_STOP_HALTED, /* by the client's interrupt */
    TBD_STOP_FAILED  /* session->why says why */
};

struct tbd_remote_stop {
    enum tbd_remote_reason reason;
    bool backward;
    struct tbd_remote_point point;
    uint64_t number;     /* signal, system call */
    enum tbd_status why; /* FAILED */
};

#define TBD_REMOTE_PASSED 65u /* signals */

struct tbd_remote_motion {
    struct tbd_session *session;
    struct tbd_remote_link *link; /* interrupts come through it */
    struct tbd_position at;
    uint32_t thread;    /* that stopped */
    bool is_signalled;  /* ... by a signal whose handler begins at `at` */
    bool is_turned;     /* the client's steps and runs go the other way */
    bool names_process; /* the client wants threads as pPID.TID */
    bool has_stepped;   /* ... and has neither run nor changed a point since */
    struct tbd_remote_point *points;
    size_t count, capacity;
    bool passed[TBD_REMOTE_PASSED]; /* signals that are no stop */
    bool catches;                   /* system calls ... */
    uint64_t *calls;                /* ... these; none: all of them */
    size_t call_count;
};

/* Stands at the session's current position. */
TBD_MUST_CHECK enum tbd_status tbd_motion_start(struct tbd_remote_motion *motion,
                                                struct tbd_session *session,
                                                struct tbd_remote_link *link);
/* Goes to the session's current position, which somebody has moved. */
TBD_MUST_CHECK enum tbd_status tbd_motion_take(struct tbd_remote_motion *motion);
void tbd_motion_end(struct tbd_remote_motion *motion);

/* Takes point->condition, also on failure; one that is no condition is as none, and a point that is there gets this one.  False
 * without memory, or if there are too many. */
TBD_MUST_CHECK bool tbd_motion_add(struct tbd_remote_motion *motion,
                                   const struct tbd_remote_point *point);
void tbd_motion_remove(struct tbd_remote_motion *motion, const struct tbd_remote_point *point);

/* One instruction of `thread`; with `to` greater than `from`, forward, as many as begin in [from, to). */
struct tbd_remote_stop tbd_motion_step(struct tbd_remote_motion *motion, uint32_t thread,
                                       bool backward, uint64_t from, uint64_t to);
struct tbd_remote_stop tbd_motion_run(struct tbd_remote_motion *motion, bool backward);

/* Registers of `thread` where the motion stands. */
TBD_MUST_CHECK enum tbd_status tbd_motion_state(struct tbd_remote_motion *motion, uint32_t thread,
                                                struct tbd_reg_state *out);
/* What the kernel told the handler, TBD_SIGINFO_BYTES; false: no signal has just come. */
TBD_MUST_CHECK bool tbd_motion_siginfo(struct tbd_remote_motion *motion, uint8_t *out);

/* ---- for the files of motion ---- */

/* A run on its way: the nearest stop so far. */
struct tbd_remote_run {
    struct tbd_remote_motion *motion;
    struct tbd_remote_stop stop;
    struct tbd_nearest nearest;
    bool leaves_conditions; /* to the client */
};
/* Is it nearer than the nearest stop so far?  Then it is that. */
void tbd_remote_offer(struct tbd_remote_run *run, struct tbd_position position, uint32_t thread,
                      const struct tbd_remote_stop *stop);
/* Registers of `thread` at motion->at; after a signal, of its handler. */
TBD_MUST_CHECK enum tbd_status tbd_remote_state_at(struct tbd_remote_motion *motion,
                                                   uint32_t thread, struct tbd_reg_state *out);
/* Searches for the system calls that the client catches, and for their returns. */
TBD_MUST_CHECK enum tbd_status tbd_remote_look_for_calls(struct tbd_remote_run *run);

#endif
