// SPDX-License-Identifier: MIT
/* replay_stream.h - what a replay process does with its stream, done by a test: one block, entered again and again, and messages
 *
 * Each word of a record is the entry's number.  Fails the test where the stream cannot be made. */
#ifndef TBD_TEST_REPLAY_STREAM_H
#define TBD_TEST_REPLAY_STREAM_H

#include "format/stream/messages.h"
#include "format/window/window_make.h"
#include "hooks/stream/ring.h"
#include "organizer/consume.h"

struct replay_stream {
    int fd;
    struct tbd_ring ring;
    struct tbd_thread thread;
    uint32_t id; /* of the block */
    uint32_t record_bytes;
    struct tbd_block_table *table;
    struct tbd_consumer *consumer;
};

/* The block has a store, and its records have `record_bytes`. */
void replay_stream_open(struct replay_stream *stream, const struct tbd_ring_config *config,
                        uint32_t record_bytes);
void replay_stream_close(struct replay_stream *stream);

/* Writes `entry`, which is stream->id unless the process does wrong, and the record of entry `number`. */
void replay_stream_enter(struct replay_stream *stream, uint32_t entry, uint32_t number);
void replay_stream_send(struct replay_stream *stream, enum tbd_message_kind kind,
                        const void *payload, size_t bytes);
/* Modified pages; the bytes of page i are i + 1. */
void replay_stream_send_pages(struct replay_stream *stream, uint32_t count);
/* The window ends after `blocks`. */
void replay_stream_end_window(struct replay_stream *stream, uint32_t blocks);

/* Asserts that the window has these numbers, and the pages' contents. */
void replay_stream_check(const struct tbd_window *window, uint32_t blocks, uint32_t messages,
                         uint32_t pages);

#endif
