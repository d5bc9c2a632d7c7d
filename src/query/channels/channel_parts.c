// SPDX-License-Identifier: MIT
/* channel_parts.c - parts of writes: compared with what was read, and put into an answer (channels_private.h) */
#include "query/channels/channels_private.h"

#include "query/channels/channel_bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_BYTES 4096u /* compared at once */

void tbd_channel_refuse(struct tbd_channel_answer *answer, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(answer->refusal, sizeof(answer->refusal), format, args);
    va_end(args);
    answer->count = 0;
}

enum tbd_status tbd_channel_compare(struct tbd_channels *channels,
                                    const struct tbd_fd_transfer *write, uint64_t at,
                                    const uint8_t *expected, uint64_t bytes)
{
    struct tbd_session *session;
    enum tbd_status status = tbd_channels_session(channels, write->process, &session);
    uint8_t part[PART_BYTES];

    while (status == TBD_OK && bytes != 0) {
        size_t count = bytes < sizeof(part) ? (size_t)bytes : sizeof(part);

        status = tbd_bytes_written(session, write, at, part, count);
        if (status == TBD_OK && memcmp(part, expected, count) != 0)
            status = TBD_NOTFOUND;
        at += count;
        expected += count;
        bytes -= count;
    }
    return status == TBD_OK || status == TBD_NOMEM || status == TBD_INTERRUPTED ? status
                                                                                : TBD_NOTFOUND;
}

enum tbd_status tbd_channel_put_part(struct tbd_channels *channels,
                                     const struct tbd_channel_part *part,
                                     struct tbd_channel_answer *answer)
{
    const struct tbd_fd_transfer *write = part->write;
    struct tbd_channel_piece piece = { .process = write->process,
                                       .thread = write->thread,
                                       .number = write->number };
    struct tbd_bytes_layout layout;
    struct tbd_session *session;
    enum tbd_status status = tbd_channels_session(channels, write->process, &session);
    uint64_t done = 0;

    if (status == TBD_OK)
        status = tbd_bytes_position(session, write, &piece.at);
    if (status == TBD_OK)
        status = tbd_bytes_layout(session, write, &layout);
    if (status != TBD_OK)
        return status;
    while (done < part->bytes && answer->count < TBD_CHANNEL_PIECES_MAX) {
        struct tbd_bytes_span span;

        if (!tbd_bytes_place(&layout, part->offset + done, &span))
            break;
        piece.address = span.address;
        piece.bytes = span.bytes < part->bytes - done ? span.bytes : part->bytes - done;
        answer->pieces[answer->count++] = piece;
        done += piece.bytes;
    }
    free(layout.spans);
    return TBD_OK;
}
