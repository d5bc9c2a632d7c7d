// SPDX-License-Identifier: MIT
/* message_limits.h - how many events with messages a replay process may send, and what each must be like
 *
 * The process may be faulty, or an enemy: what it sends is bounded by what play had in the window (gather.h, skim.h).
 *
 * Context: ORG; one thread each. */
#ifndef TBD_REPLAY_MESSAGE_LIMITS_H
#define TBD_REPLAY_MESSAGE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* More than this is an error. */
struct tbd_gather_most {
    size_t events; /* messages of the log */
    size_t event_bytes;
    size_t reads;    /* READ messages, which are not in the log */
    size_t unlogged; /* nor are UNLOGGED messages */
    size_t pages;    /* at one time */
};

struct tbd_message_limits {
    struct tbd_gather_most most;
    size_t events, event_bytes, reads, unlogged; /* so far */
};

void tbd_message_limits_begin(struct tbd_message_limits *limits,
                              const struct tbd_gather_most *most);
/* Counts a message of an event, whose payload nobody else can change.  What is wrong with it (static text); NULL: nothing. */
const char *tbd_message_limits_take(struct tbd_message_limits *limits, uint32_t kind,
                                    const uint8_t *payload, uint32_t bytes);

#endif
