// SPDX-License-Identifier: MIT
/* join.h - completes a window with what only the order of windows tells
 *
 * A window that was built alone gets its number, its start registers and the previous windows of its summaries;
 * blocks, mappings and notes go to the writer.  One thread at a time, in the order of windows, unless something else is said. */
#ifndef TBD_ORGANIZER_JOIN_H
#define TBD_ORGANIZER_JOIN_H

#include "format/writer/writer.h"
#include "organizer/build.h"

#include <pthread.h>

struct tbd_join;

/* `writer`, its `lock`, `table` and `head` are borrowed as long as it lives.  `budget`: for the trace's configuration.
 * NULL without memory. */
struct tbd_join *tbd_join_new(struct tbd_writer *writer, pthread_mutex_t *lock,
                              struct tbd_block_table *table, const struct tbd_stream_head *head,
                              uint64_t budget);
void tbd_join_free(struct tbd_join *join);
/* The windows follow those that `from` has dropped, of which `first` is the first one left. Both are borrowed until the
 * first window is joined.  False without memory. */
TBD_MUST_CHECK bool tbd_join_after(struct tbd_join *join, struct tbd_trace *from,
                                   const struct tbd_window *first);
/* The next window; takes the writer's lock.  `highest_id`: of the blocks that it may have.
 * *out_keep: it goes into the trace.  A damaged product is joined up to the damage; nothing can be
 * joined after it. */
TBD_MUST_CHECK enum tbd_status tbd_join_window(struct tbd_join *join, struct tbd_product *product,
                                               uint32_t highest_id, bool *out_keep);
/* Writes blocks up to this id into the trace, before the windows that have them; takes the writer's
 * lock.  Any thread.  On failure joining will fail, too. */
TBD_MUST_CHECK enum tbd_status tbd_join_blocks(struct tbd_join *join, uint32_t highest_id);
/* Has the trace been started: was there a window? */
bool tbd_join_has_started(const struct tbd_join *join);
/* How the program ended, as the stream says; false if it does not. */
bool tbd_join_end(const struct tbd_join *join, struct tbd_msg_end *out, char *out_text,
                  size_t bytes);
/* TBD_SIGINFO_BYTES of the signal that ended it; NULL if not known. */
const uint8_t *tbd_join_end_siginfo(const struct tbd_join *join);
/* Copies the mapped files into the trace: a killed program's last window may need them. */
void tbd_join_keep_files(struct tbd_join *join);

#endif
