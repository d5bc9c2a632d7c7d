// SPDX-License-Identifier: MIT
/* message_limits.c - see message_limits.h */
#include "replay/message_limits.h"

#include "base/layout.h"
#include "format/window/window_make.h"

#include <string.h>

void tbd_message_limits_begin(struct tbd_message_limits *limits, const struct tbd_gather_most *most)
{
    *limits = (struct tbd_message_limits){ .most = *most };
}

static const char *take_logged(struct tbd_message_limits *l, uint32_t bytes)
{
    l->event_bytes += bytes;
    if (l->events >= l->most.events || l->event_bytes > l->most.event_bytes)
        return "more messages than play had";
    l->events++;
    return NULL;
}

static const char *take_read(struct tbd_message_limits *l, const uint8_t *payload)
{
    struct tbd_msg_read read;

    memcpy(&read, payload, sizeof(read));
    if (!read.bytes || read.address >= TBD_USER_END || read.bytes > TBD_USER_END - read.address)
        return "an impossible load";
    if (l->reads++ >= l->most.reads)
        return "more loads of special instructions than play can have had";
    return NULL;
}

static const char *take_unlogged(struct tbd_message_limits *l, uint32_t bytes)
{
    if (bytes > TBD_UNLOGGED_MOST_BYTES)
        return "an impossible instruction that play has not logged";
    if (l->unlogged++ >= l->most.unlogged)
        return "more instructions that play has not logged than there can be";
    return NULL;
}

const char *tbd_message_limits_take(struct tbd_message_limits *limits, uint32_t kind,
                                    const uint8_t *payload, uint32_t bytes)
{
    if (!tbd_message_check(kind, payload, bytes))
        return "a message that is too short";
    if (kind == TBD_MSG_READ)
        return take_read(limits, payload);
    return kind == TBD_MSG_UNLOGGED ? take_unlogged(limits, bytes) : take_logged(limits, bytes);
}
