// SPDX-License-Identifier: MIT
/* identities.h - which descriptors of different processes lead to the same FIFO, connection or file
 *
 * The trace says what the kernel knows it by (TBD_MSG_OPENED).  A connection is one that a process has made to an address,
 * and one that was accepted there.  Its two addresses may be used again later, and a Unix socket's client seldom has one, so
 * connections with the same names are counted on both sides. */
#ifndef TBD_QUERY_IDENTITIES_H
#define TBD_QUERY_IDENTITIES_H

#include "base/status.h"
#include "format/window/opened.h"

#define TBD_IDENTITY_BYTES (2 * TBD_OPENED_ADDRESS_MAX + 16)

struct tbd_identity {
    uint8_t name[TBD_IDENTITY_BYTES];
    size_t bytes;
    uint32_t made, accepted; /* connections until now */
    uint32_t *numbers;       /* owned: what the caller calls each; 0: nothing yet */
    size_t count, capacity;
};

struct tbd_identities {
    struct tbd_identity *items; /* owned */
    size_t count, capacity;
};

enum tbd_identity_side {
    TBD_IDENTITY_ONE, /* a file or FIFO, which all share */
    TBD_IDENTITY_CONNECTS,
    TBD_IDENTITY_ACCEPTS,
};

/* The place of the number for what the descriptor leads to; borrowed until the next call.  `pid`: of the process
 * whose descriptor it is.  NULL: no memory. */
uint32_t *tbd_identities_find(struct tbd_identities *all, const struct tbd_opened *opened,
                              enum tbd_identity_side side, uint32_t pid);
void tbd_identities_free(struct tbd_identities *all);

#endif
