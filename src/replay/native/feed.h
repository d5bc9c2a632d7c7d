// SPDX-License-Identifier: MIT
/* feed.h - a stream made by this process, for an organizer in a thread of it
 *
 * Only messages, as from a program that only counts (format/stream/stream.h).  Context: ORG, one thread. */
#ifndef TBD_REPLAY_FEED_H
#define TBD_REPLAY_FEED_H

#include "base/status.h"
#include "format/stream/stream.h"
#include "format/window/blocks.h"

struct tbd_feed;

struct tbd_feed_start {
    uint64_t window_blocks;
    uint32_t hook_set;
    uint64_t first_time;                 /* of the first window */
    const struct tbd_block_table *table; /* blocks have its ids in the stream; borrowed */
};

TBD_MUST_CHECK enum tbd_status tbd_feed_new(const struct tbd_feed_start *start,
                                            struct tbd_feed **out);
void tbd_feed_free(struct tbd_feed *feed);
int tbd_feed_fd(const struct tbd_feed *feed); /* borrowed */
/* Defines the blocks of the table up to `last`; false: there are too many. */
TBD_MUST_CHECK bool tbd_feed_blocks(struct tbd_feed *feed, uint32_t last);
/* Appends a message; false: the organizer is gone. */
TBD_MUST_CHECK bool tbd_feed_message(struct tbd_feed *feed, const struct tbd_message *head,
                                     const void *payload);
/* The number of block entries, by the messages so far. */
uint64_t tbd_feed_time(const struct tbd_feed *feed);
/* The window has ended with the last message. */
TBD_MUST_CHECK bool tbd_feed_end_window(struct tbd_feed *feed);
/* Why the organizer has given up; NULL: it has not. */
const char *tbd_feed_failure(const struct tbd_feed *feed);
/* Nothing follows; `executed`: the program executed another one. */
void tbd_feed_end(struct tbd_feed *feed, bool executed);

#endif
