// SPDX-License-Identifier: MIT
/* channel_bytes.c - see channel_bytes.h
 *
 * What was read is in the log.  What was written is in the writer's memory, at the call. */
#include "query/channels/channel_bytes.h"

#include "format/reading/window_read.h"
#include "format/window/window_make.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum tbd_status tbd_bytes_position(struct tbd_session *session,
                                   const struct tbd_fd_transfer *transfer, struct tbd_position *out)
{
    struct tbd_place place;
    enum tbd_status status;

    *out = (struct tbd_position){ .time = transfer->began };
    status = tbd_session_place(session, *out, &place);
    if (status == TBD_OK && place.insns != 0)
        out->offset = place.insns - 1;
    return status;
}

/* ---- places ---- */

/* Where the array of struct iovec is, and how many it has. */
static enum tbd_status find_array(struct tbd_session *session,
                                  const struct tbd_fd_transfer *transfer,
                                  struct tbd_position position, uint64_t *out, uint64_t *out_count)
{
    struct msghdr message;
    enum tbd_status status;

    *out = transfer->args[1];
    *out_count = transfer->args[2];
    if (transfer->layout != TBD_FD_MSGHDR)
        return TBD_OK;
    status = tbd_session_read(session, position, transfer->args[1], &message, sizeof(message));
    *out = (uint64_t)(uintptr_t)message.msg_iov;
    *out_count = message.msg_iovlen;
    return status;
}

static enum tbd_status layout_of_array(struct tbd_session *session,
                                       const struct tbd_fd_transfer *transfer,
                                       struct tbd_bytes_layout *out)
{
    uint64_t array = 0, count = 0, left = transfer->bytes;
    struct iovec vectors[64];
    struct tbd_position position;
    enum tbd_status status = tbd_bytes_position(session, transfer, &position);

    if (status == TBD_OK)
        status = find_array(session, transfer, position, &array, &count);
    if (status != TBD_OK)
        return status;
    if (count > IOV_MAX)
        return TBD_NOTKEPT;
    out->spans = calloc(count + 1, sizeof(*out->spans));
    if (out->spans == NULL)
        return TBD_NOMEM;
    for (uint64_t i = 0; i < count && left != 0; i++) {
        size_t at = i % 64, part = count - i < 64 ? (size_t)(count - i) : 64;
        uint64_t bytes;

        if (at == 0)
            status = tbd_session_read(session, position, array + i * sizeof(*vectors), vectors,
                                      part * sizeof(*vectors));
        if (status != TBD_OK)
            return status;
        bytes = vectors[at].iov_len < left ? vectors[at].iov_len : left;
        out->spans[out->count++] =
            (struct tbd_bytes_span){ (uint64_t)(uintptr_t)vectors[at].iov_base, bytes };
        left -= bytes;
    }
    return TBD_OK;
}

/* The caller frees out->spans also after a failure. */
static enum tbd_status layout_of(struct tbd_session *session,
                                 const struct tbd_fd_transfer *transfer,
                                 struct tbd_bytes_layout *out)
{
    *out = (struct tbd_bytes_layout){ .spans = NULL };
    if (transfer->layout != TBD_FD_PLAIN)
        return layout_of_array(session, transfer, out);
    out->spans = malloc(sizeof(*out->spans));
    if (out->spans == NULL)
        return TBD_NOMEM;
    out->spans[out->count++] = (struct tbd_bytes_span){ transfer->args[1], transfer->bytes };
    return TBD_OK;
}

enum tbd_status tbd_bytes_layout(struct tbd_session *session,
                                 const struct tbd_fd_transfer *transfer,
                                 struct tbd_bytes_layout *out)
{
    enum tbd_status status = layout_of(session, transfer, out);

    if (status != TBD_OK) {
        free(out->spans);
        *out = (struct tbd_bytes_layout){ .spans = NULL };
    }
    return status;
}

bool tbd_bytes_place(const struct tbd_bytes_layout *layout, uint64_t offset,
                     struct tbd_bytes_span *out)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct tbd_bytes_span *span = &layout->spans[i];

        if (offset < span->bytes) {
            *out = (struct tbd_bytes_span){ span->address + offset, span->bytes - offset };
            return true;
        }
        offset -= span->bytes;
    }
    return false;
}

bool tbd_bytes_find(const struct tbd_bytes_layout *layout, uint64_t address, uint64_t bytes,
                    uint64_t *out_offset, uint64_t *out_bytes)
{
    uint64_t before = 0;

    for (size_t i = 0; i < layout->count; i++) {
        const struct tbd_bytes_span *span = &layout->spans[i];
        uint64_t from = address > span->address ? address - span->address : 0;
        uint64_t skipped = span->address > address ? span->address - address : 0;

        if (from < span->bytes && skipped < bytes) {
            *out_offset = before + from;
            *out_bytes =
                bytes - skipped < span->bytes - from ? bytes - skipped : span->bytes - from;
            return true;
        }
        before += span->bytes;
    }
    return false;
}

/* ---- contents ---- */

enum tbd_status tbd_bytes_written(struct tbd_session *session,
                                  const struct tbd_fd_transfer *transfer, uint64_t offset,
                                  uint8_t *out, size_t bytes)
{
    struct tbd_bytes_layout layout;
    struct tbd_position position;
    enum tbd_status status = tbd_bytes_layout(session, transfer, &layout);

    if (status == TBD_OK)
        status = tbd_bytes_position(session, transfer, &position);
    while (status == TBD_OK && bytes != 0) {
        struct tbd_bytes_span span;
        size_t part;

        if (!tbd_bytes_place(&layout, offset, &span)) {
            status = TBD_NOTKEPT;
            break;
        }
        part = span.bytes < bytes ? (size_t)span.bytes : bytes;
        status = tbd_session_read(session, position, span.address, out, part);
        out += part;
        bytes -= part;
        offset += part;
    }
    free(layout.spans);
    return status;
}

/* One message of the call: its part of the bytes at `address`. */
static uint64_t take_writes(const struct tbd_message *message, const struct tbd_bytes_span *span,
                            uint8_t *out)
{
    const uint8_t *payload = (const uint8_t *)message + sizeof(*message);
    struct tbd_write_cursor writes;
    struct tbd_write_view view;
    uint64_t taken = 0;

    tbd_writes_first(TBD_MSG_SYSCALL, payload, tbd_message_payload_bytes(message), &writes);
    while (tbd_writes_next(&writes, &view)) {
        uint64_t from = view.address > span->address ? view.address - span->address : 0;
        uint64_t skipped = span->address > view.address ? span->address - view.address : 0;
        uint64_t bytes;

        if (from >= span->bytes || skipped >= view.bytes)
            continue;
        bytes =
            view.bytes - skipped < span->bytes - from ? view.bytes - skipped : span->bytes - from;
        memcpy(out + from, view.new_bytes + skipped, bytes);
        taken += bytes;
    }
    return taken;
}

/* The message `index` is one more of the same call. */
static bool is_continued(const struct tbd_window *window, size_t index)
{
    struct tbd_msg_syscall call;

    if (index >= window->log_count ||
        tbd_message_kind(window->log[index].message) != TBD_MSG_SYSCALL)
        return false;
    memcpy(&call, (const uint8_t *)window->log[index].message + sizeof(struct tbd_message),
           sizeof(call));
    return (call.flags & TBD_SYSCALL_CONTINUED) != 0;
}

/* Is it still the message that the transfer was made from?  Windows may have been merged since. */
static bool is_message_of(const struct tbd_window *window, const struct tbd_fd_transfer *transfer)
{
    struct tbd_msg_syscall call;

    if (transfer->message >= window->log_count ||
        tbd_message_kind(window->log[transfer->message].message) != TBD_MSG_SYSCALL)
        return false;
    memcpy(&call,
           (const uint8_t *)window->log[transfer->message].message + sizeof(struct tbd_message),
           sizeof(call));
    return call.number == transfer->number && call.result == transfer->bytes &&
           memcmp(call.args, transfer->args, sizeof(transfer->args)) == 0;
}

/* The writes in the log have no more bytes than this. */
static uint64_t logged_bytes(const struct tbd_window *window, size_t index)
{
    uint64_t sum = 0;

    do
        sum += tbd_message_payload_bytes(window->log[index].message);
    while (is_continued(window, ++index));
    return sum;
}

static enum tbd_status take_span(const struct tbd_window *window, size_t index,
                                 const struct tbd_bytes_span *span, uint8_t *out)
{
    uint64_t taken = 0;

    do
        taken += take_writes(window->log[index].message, span, out);
    while (is_continued(window, ++index));
    return taken >= span->bytes ? TBD_OK : TBD_NOTKEPT;
}

enum tbd_status tbd_bytes_read(struct tbd_session *session, const struct tbd_fd_transfer *transfer,
                               uint8_t **out)
{
    struct tbd_bytes_layout layout;
    struct tbd_window *window = NULL;
    uint64_t offset = 0;
    enum tbd_status status = tbd_bytes_layout(session, transfer, &layout);

    *out = NULL;
    if (status == TBD_OK)
        status =
            tbd_window_load_summaries(session->trace, transfer->window, &window, &session->why);
    if (status == TBD_OK && (!is_message_of(window, transfer) ||
                             logged_bytes(window, transfer->message) < transfer->bytes))
        status = TBD_NOTKEPT;
    if (status == TBD_OK)
        *out = calloc(transfer->bytes + 1, 1);
    if (status == TBD_OK && *out == NULL)
        status = TBD_NOMEM;
    for (size_t i = 0; status == TBD_OK && i < layout.count; i++) {
        status = take_span(window, transfer->message, &layout.spans[i], *out + offset);
        offset += layout.spans[i].bytes;
    }
    if (status == TBD_OK && offset != transfer->bytes)
        status = TBD_NOTKEPT;
    if (status != TBD_OK) {
        free(*out);
        *out = NULL;
    }
    tbd_window_free(window);
    free(layout.spans);
    return status;
}
