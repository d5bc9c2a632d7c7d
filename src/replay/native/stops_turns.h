// SPDX-License-Identifier: MIT
/* stops_turns.h - when threads of native play began to wait in a system call, as times that count blocks
 *
 * Context: ORG. */
#ifndef TBD_REPLAY_STOPS_TURNS_H
#define TBD_REPLAY_STOPS_TURNS_H

#include "format/stream/stream.h"

#include <stdbool.h>
#include <stddef.h>

struct tbd_stops_turns {
    struct tbd_stops_turn *last; /* of each thread that gave way; owned */
    size_t count, capacity;
    /* of windows that were dropped: threads may have given way before; 0: there are none */
    uint64_t dropped;
};

/* A turn of another thread at `time`: the message gets the time at which its block was entered.  False: no
 * memory. */
bool tbd_stops_turn(struct tbd_stops_turns *turns, struct tbd_msg_thread *message, uint64_t time);
void tbd_stops_turns_free(struct tbd_stops_turns *turns);

#endif
