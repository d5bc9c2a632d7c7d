// SPDX-License-Identifier: MIT
/* count_stops_private.h - a trace of native play that is being counted: what the files of count_stops.h share
 *
 * count_stops.c has the whole, stops_workers.c the replays, stops_put.c puts them together with play's messages. */
#ifndef TBD_REPLAY_COUNT_STOPS_PRIVATE_H
#define TBD_REPLAY_COUNT_STOPS_PRIVATE_H

#include "format/trace/trace_handle.h"
#include "format/writer/writer.h"
#include "replay/native/count_stops.h"
#include "replay/native/feed.h"
#include "replay/native/stops_claim.h"
#include "replay/native/stops_turns.h"
#include "replay/native/stops_window.h"

#define TBD_STOPS_WORKERS_MOST 64u

struct stops_place {
    struct tbd_buffer events; /* owned */
    bool is_there;
    enum tbd_status status;
    struct tbd_divergence divergence;
    struct tbd_error why;
};

struct stops_counting;

/* What an idle worker may still be at, when helpers have gone on with a later handle. */
struct stops_left {
    struct tbd_trace *trace;       /* owned; NULL: the first handle, which others own */
    struct tbd_replayer *replayer; /* owned */
    struct stops_left *next;       /* owned */
};

struct stops_worker {
    struct stops_counting *counting;
    unsigned number;
    bool is_helper; /* of ordinary priority, as somebody waits */
    pthread_t thread;
};

struct stops_counting {
    const struct tbd_count_stops *how;
    struct tbd_trace *trace; /* owned; while it is recorded, another handle every now and then */
    struct tbd_trace *begun; /* owned: the first handle, which may be `trace` */
    struct tbd_dir dir;
    struct tbd_stops_claim claim;
    char root[4096];               /* folder in which the new trace is made */
    struct tbd_replayer *replayer; /* owned; changes with the trace, under the lock */
    struct tbd_stops_blocks blocks;
    struct tbd_feed *feed;
    uint64_t ran; /* instructions of the block entered last, if it was left */
    struct tbd_stops_turns turns;
    struct tbd_kept_modules modules; /* its list is owned */
    bool is_translated;              /* from this window on */
    bool has_end;                    /* play's message was sent */
    bool is_live;                    /* the trace was still being recorded when it was opened */
    bool has_said_ended;
    uint32_t windows, from, to; /* windows [from, to) are counted */
    uint32_t next;              /* the first one that is not in the new trace yet */
    uint64_t next_number;       /* its number as recorded */
    uint64_t budget;            /* of the new trace; 0: none */
    uint64_t told_ns;           /* when who waits was told last */
    struct stops_left *left;    /* owned */
    struct tbd_window *first;   /* owned: if windows before it were dropped */
    pthread_t organizer;
    bool has_organizer;
    enum tbd_status organized;
    struct stops_worker workers[TBD_STOPS_WORKERS_MOST];
    unsigned started;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t change;
    uint32_t taken, written, ahead;
    bool is_over, is_hurried;
    struct stops_place *places; /* owned: `ahead` of them, used again and again */
};

/* ---- stops_workers.c ---- */

/* Workers of the usual number, and those who may help them. */
unsigned tbd_stops_workers_most(const struct tbd_count_stops *how);
/* False if there is not one. */
TBD_MUST_CHECK bool tbd_stops_workers_start(struct stops_counting *c);
/* The result of a window's replay, whose events are the caller's. */
struct stops_place tbd_stops_workers_await(struct stops_counting *c, uint32_t index);
/* They take nothing more.  Some may have a window that is not needed any more. */
/* Does somebody wait for the trace, which has ended then?  The first time, helpers begin. */
bool tbd_stops_workers_hurry(struct stops_counting *c);
void tbd_stops_workers_end(struct stops_counting *c);
void tbd_stops_workers_join(struct stops_counting *c);

/* ---- stops_put.c ---- */

/* The message with which the stream of dropped windows began. */
TBD_MUST_CHECK enum tbd_status tbd_stops_put_beginning(struct stops_counting *c,
                                                       struct tbd_error *why);
/* A window that is replayed; TBD_INTERRUPTED: it diverged, and the trace is not complete. */
TBD_MUST_CHECK enum tbd_status tbd_stops_put_replayed(struct stops_counting *c, uint32_t index,
                                                      struct tbd_error *why);
/* The window keeps its stops; `note` says why, NULL: nobody has asked about it. */
TBD_MUST_CHECK enum tbd_status tbd_stops_put_stops(struct stops_counting *c, uint32_t index,
                                                   const char *note, struct tbd_error *why);
/* What came after the last window. */
TBD_MUST_CHECK enum tbd_status tbd_stops_put_end(struct stops_counting *c, struct tbd_error *why);

/* ---- stops_follow.c ---- */

/* While the trace is recorded: waits for more windows, or for its end, and goes on with the trace as it is then.
 * TBD_NOWINDOW: the next one was dropped already. */
TBD_MUST_CHECK enum tbd_status tbd_stops_follow(struct stops_counting *c, struct tbd_error *why);
/* Windows that may be counted: while it is recorded, all but the last one. */
void tbd_stops_take_windows(struct stops_counting *c);
/* Lists the trace's copies of files: files may have changed since the program ran.  Called again for the same trace as it has grown. */
TBD_MUST_CHECK bool tbd_stops_find_modules(struct stops_counting *c);
void tbd_stops_free_modules(struct stops_counting *c);
/* Called once or more: the caller hears it once. */
void tbd_stops_say_ended(struct stops_counting *c);
void tbd_stops_free_left(struct stops_counting *c);

#endif
