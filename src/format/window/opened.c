// SPDX-License-Identifier: MIT
/* opened.c - see opened.h */
#include "format/window/opened.h"

#include "base/assert.h"

#include <string.h>

struct opened_head {
    uint32_t call;
    uint32_t bytes; /* of the payload */
};

bool tbd_opened_is_good(const void *payload, size_t bytes)
{
    struct tbd_msg_opened what;

    if (bytes < sizeof(what))
        return false;
    memcpy(&what, payload, sizeof(what));
    return what.local_bytes <= TBD_OPENED_ADDRESS_MAX &&
           what.peer_bytes <= TBD_OPENED_ADDRESS_MAX &&
           bytes == sizeof(what) + what.local_bytes + what.peer_bytes;
}

bool tbd_opened_check(const uint8_t *list, size_t bytes, size_t log_count)
{
    struct opened_head head, before = { 0 };

    for (size_t at = 0; at < bytes; at += sizeof(head) + head.bytes) {
        if (bytes - at < sizeof(head))
            return false;
        memcpy(&head, list + at, sizeof(head));
        if (head.bytes > bytes - at - sizeof(head) || head.call >= log_count ||
            head.call < before.call || !tbd_opened_is_good(list + at + sizeof(head), head.bytes))
            return false;
        before = head;
    }
    return true;
}

bool tbd_opened_next(const struct tbd_window *window, size_t *at, struct tbd_opened *out)
{
    const uint8_t *payload = window->opened + *at + sizeof(struct opened_head);
    struct opened_head head;

    if (*at >= window->opened_bytes)
        return false;
    memcpy(&head, window->opened + *at, sizeof(head));
    memcpy(&out->what, payload, sizeof(out->what));
    TBD_INVARIANT("OPENED-1",
                  head.call < window->log_count && tbd_opened_is_good(payload, head.bytes));
    out->call = head.call;
    out->local = payload + sizeof(out->what);
    out->peer = out->local + out->what.local_bytes;
    *at += sizeof(head) + head.bytes;
    return true;
}

void tbd_opened_move(uint8_t *list, size_t bytes, uint32_t later)
{
    struct opened_head head;

    for (size_t at = 0; at < bytes; at += sizeof(head) + head.bytes) {
        memcpy(&head, list + at, sizeof(head));
        head.call += later;
        memcpy(list + at, &head, sizeof(head));
    }
}
