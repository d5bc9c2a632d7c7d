// SPDX-License-Identifier: MIT
/* recording.h - the stream that this process writes
 *
 * One instance, tbd_recording, in play and in a replay process.  Written at boot, in a forked child, and by the
 * thread that holds the turn lock; signal handlers use the ring as ring.h lets them.  Contexts: BOOT, APP. */
#ifndef TBD_HOOKS_RECORDING_H
#define TBD_HOOKS_RECORDING_H

#include "hooks/stream/ring.h"

struct tbd_recording {
    struct tbd_ring ring;
    uint64_t hooks;         /* TBD_HOOK_*: what translated code reports in the stream */
    uint64_t window;        /* block entries in a window */
    uint64_t window_due;    /* time at which the window ends */
    uint64_t realtime_ns;   /* start of the recording, as in START */
    uint64_t unknown_calls; /* system calls whose writes were found by comparison */
    uint32_t pid;
    bool is_on;     /* an organizer consumes the stream */
    bool has_stops; /* native play: only the engine enters blocks, and settles after each of them */
};

extern struct tbd_recording tbd_recording;

/* Does translated code store an entry for each block?  If not, it reports nothing else, and never
 * stops at a boundary. */
static inline bool tbd_recording_has_blocks(void)
{
    return tbd_recording.hooks & TBD_HOOK_BLOCKS;
}

/* Is the next entry of a block to fault, so that translated code comes to a boundary? */
static inline bool tbd_recording_kicks(void)
{
    return tbd_recording_has_blocks() && !tbd_recording.has_stops;
}

/* Are the pages that the program touches recorded? */
static inline bool tbd_recording_has_pages(void)
{
    return tbd_recording.is_on && (tbd_recording.hooks & TBD_HOOK_TOUCH);
}

/* NOTE in the trace; severity 1 = something is missing. */
void tbd_recording_note(uint32_t severity, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sends INTERRUPTED: only the first `instructions` of the block entered last were executed. */
void tbd_recording_interrupted(uint64_t instructions);
/* Called after a message that is sent while a block is made, with no settle() before the block: the
 * message may have opened a chunk, so that the area that brings a kicked thread to a boundary is no
 * longer protected. */
void tbd_recording_keep_kick(struct tbd_thread *thread);
/* The number of instructions in the block entered last; 0: no block was entered, or blocks are not
 * recorded. */
uint32_t tbd_recording_last_insns(const struct tbd_thread *thread);
/* Why there is no organizer any more, in words. */
const char *tbd_recording_gone_why(void);
/* Waits until the organizer has written everything, or is gone: then says so. */
void tbd_recording_wait_done(void);

#endif
