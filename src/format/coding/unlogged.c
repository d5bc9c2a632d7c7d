// SPDX-License-Identifier: MIT
/* unlogged.c - see unlogged.h
 *
 * UNLOGGED-1  What is given lies in the content, has a complete payload, and is checked as a message of its kind. (not checked:
 *     it is what reading checks of its input) */
#include "format/coding/unlogged.h"

#include "format/window/window_make.h"

#include <string.h>

void tbd_unlogged_put(struct tbd_buffer *out, const struct tbd_buffer *messages)
{
    uint64_t bytes = messages->used;

    out->failed |= messages->failed;
    if (!bytes)
        return;
    tbd_buffer_put(out, messages->bytes, bytes);
    tbd_buffer_put(out, &bytes, sizeof(bytes));
}

bool tbd_unlogged_occur(const uint32_t *entries, size_t count)
{
    bool any = false;

    for (size_t i = 0; i < count; i++)
        any |= entries[i] == (TBD_ENTRY_MESSAGE | TBD_MSG_UNLOGGED);
    return any;
}

/* Takes them from the end of the content. */
static bool open_list(struct tbd_unlogged *unlogged, struct tbd_reader *in)
{
    size_t left = (size_t)(in->end - in->at);
    uint64_t bytes;

    if (left < sizeof(bytes))
        return false;
    memcpy(&bytes, in->end - sizeof(bytes), sizeof(bytes));
    if (!bytes || bytes > left - sizeof(bytes))
        return false;
    unlogged->end = in->end - sizeof(bytes);
    unlogged->at = in->end = unlogged->end - bytes;
    return true;
}

const struct tbd_message *tbd_unlogged_next(struct tbd_unlogged *unlogged, struct tbd_reader *in,
                                            uint32_t kind)
{
    const uint8_t *at;
    struct tbd_message head;
    size_t left;

    if (!unlogged->end && (!in->end || !open_list(unlogged, in)))
        return NULL;
    at = unlogged->at;
    left = (size_t)(unlogged->end - at);
    if (left < sizeof(head))
        return NULL;
    memcpy(&head, at, sizeof(head));
    if (head.kind != kind || head.bytes > left - sizeof(head) ||
        !tbd_message_check(kind, at + sizeof(head), head.bytes))
        return NULL;
    unlogged->at += sizeof(head) + head.bytes;
    return (const void *)at;
}
