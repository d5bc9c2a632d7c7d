// SPDX-License-Identifier: MIT
/* opened.h - what the descriptors lead to that system calls of a window have made: a list of bytes
 *
 * Per descriptor the index of the call in the window's log (4), the length of the payload (4), and the payload of
 * its TBD_MSG_OPENED: a struct tbd_msg_opened and addresses.
 *
 * OPENED-1  Every list in a struct tbd_window has been checked: it ends where its last item ends, its calls are in the
 * log, in order. */
#ifndef TBD_FORMAT_OPENED_H
#define TBD_FORMAT_OPENED_H

#include "format/stream/messages.h"
#include "format/window/window.h"

struct tbd_opened {
    uint32_t call; /* index in the log */
    struct tbd_msg_opened what;
    const uint8_t *local,
        *peer; /* addresses of a socket, as long as `what` says; borrowed from the list */
};

/* Is it what a TBD_MSG_OPENED may say? */
bool tbd_opened_is_good(const void *payload, size_t bytes);
/* Does the list keep OPENED-1, for a log of `log_count` messages? */
bool tbd_opened_check(const uint8_t *list, size_t bytes, size_t log_count);
/* The item at *at of a checked list; moves *at past it.  False: there is none. */
bool tbd_opened_next(const struct tbd_window *window, size_t *at, struct tbd_opened *out);
/* Adds `later` to the calls' indices in a checked list. */
void tbd_opened_move(uint8_t *list, size_t bytes, uint32_t later);

#endif
