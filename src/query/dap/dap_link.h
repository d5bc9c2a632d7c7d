// SPDX-License-Identifier: MIT
/* dap_link.h - requests from a client of the Debug Adapter Protocol, and what is sent to it
 *
 * A thread of its own reads, so that a request to cancel, to pause or to disconnect reaches a question that is
 * running: it ends as with Ctrl-C (text/user_interrupt.h).  All else is carried out in order, by the thread
 * that opened the link, which alone sends. */
#ifndef TBD_QUERY_DAP_LINK_H
#define TBD_QUERY_DAP_LINK_H

#include "query/dap/dap_bytes.h"

#include <jansson.h>
#include <pthread.h>

#define TBD_DAP_QUEUE 256u /* requests that wait; more are not read yet */

struct tbd_dap_waiting {
    json_t *request; /* owned; NULL: what came was no request, and `why` says why */
    const char *why;
    bool is_cancelled;
};

struct tbd_dap_link {
    int in, out;
    int wake[2]; /* a pipe: the reader ends when it can be read */
    pthread_t reader;
    pthread_mutex_t lock; /* of all that follows, but for `sent` and `is_broken` */
    pthread_cond_t changed;
    struct tbd_dap_waiting queue[TBD_DAP_QUEUE]; /* a ring: `first` is the next */
    size_t first, count;
    json_int_t running;  /* seq of the request being carried out; 0: none */
    bool may_be_stopped; /* by `pause`: it moves */
    bool has_ended;      /* nothing more comes */
    json_int_t sent;     /* seq of the last message */
    bool is_broken;      /* nothing can be sent any more */
};

/* False: the system refuses. */
TBD_MUST_CHECK bool tbd_dap_link_open(struct tbd_dap_link *link, int in, int out);
void tbd_dap_link_close(struct tbd_dap_link *link);

/* Waits for a request, which the caller owns; false: the client has gone. */
TBD_MUST_CHECK bool tbd_dap_link_receive(struct tbd_dap_link *link, struct tbd_dap_waiting *out);
/* From now on the request that was received may be stopped by `pause`. */
void tbd_dap_link_moves(struct tbd_dap_link *link);

/* Adds "seq" to the message, sends it and releases it. */
void tbd_dap_link_send(struct tbd_dap_link *link, json_t *message);

#endif
