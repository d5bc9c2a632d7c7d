// SPDX-License-Identifier: MIT
/* page_queue.h - questions of all clients, one after another, for the one thread that uses the session
 *
 *   a connection's thread: tbd_page_queue_ask() ... waits ... has the answer
 *   the session's thread:  tbd_page_queue_next() -> answers -> tbd_page_queue_done()
 *
 * A client that goes away, or cancels, interrupts its question alone. */
#ifndef TBD_QUERY_PAGE_QUEUE_H
#define TBD_QUERY_PAGE_QUEUE_H

#include "query/page/page_request.h"

#include <jansson.h>

struct tbd_page_queue;

/* NULL without memory.  tbd_interrupt_catch() was called before. */
struct tbd_page_queue *tbd_page_queue_new(void);
void tbd_page_queue_free(struct tbd_page_queue *queue); /* nobody waits in it any more */

/* ---- threads of connections ---- */

/* Waits for the answer: text that the caller frees; NULL: there is none, as the server ends, or the client has
 * gone (the other end of `socket` is closed).  The question is the caller's. */
char *tbd_page_queue_ask(struct tbd_page_queue *queue, const struct tbd_page_question *question,
                         int socket);
/* Interrupts the questions with this id.  Does nothing if there is none. */
void tbd_page_queue_cancel(struct tbd_page_queue *queue, const char *id);
/* What is being done: {"waiting": 2, "running": {"id", "line", "what", "done", "total"}}; owned by the
 * caller. */
json_t *tbd_page_queue_progress(struct tbd_page_queue *queue);

/* ---- the session's thread ---- */

/* The next question, borrowed until done; NULL: a signal ended the server. */
const struct tbd_page_question *tbd_page_queue_next(struct tbd_page_queue *queue);
/* Hands the answer over; takes `answer`. */
void tbd_page_queue_done(struct tbd_page_queue *queue, char *answer);
/* All who wait get none. */
void tbd_page_queue_end(struct tbd_page_queue *queue);

#endif
