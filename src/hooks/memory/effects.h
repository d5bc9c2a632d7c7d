// SPDX-License-Identifier: MIT
/* effects.h - memory written by the kernel or by the engine for the program: implicit stores
 *
 *     tbd_effects_clear(e);
 *     tbd_effects_watch(e, ranges, n);      before: saves the old bytes of what may be written
 *     ... the call ...
 *     tbd_effects_written(e, ranges, n);    after: what was written
 *     tbd_effects_send(e, ...);             one message or more, new bytes read now
 *
 * Context: APP. */
#ifndef TBD_HOOKS_EFFECTS_H
#define TBD_HOOKS_EFFECTS_H

#include "hooks/stream/ring.h"
#include "hooks/table/syscalls.h"
#include "hooks/memory/window_pages.h"

struct tbd_effects;
struct tbd_snapshot;

/* The only instance; its buffers are reserved at the first call.  NULL: no address space left. */
struct tbd_effects *tbd_effects_get(void);
void tbd_effects_clear(struct tbd_effects *effects);
/* In a free run nobody is told what was written, and a look at memory that is about to be may do what the program does not: have somebody
 * fill a page (userfaultfd), who may be this thread.  From now on nothing is watched. */
void tbd_effects_off(void);
/* Parts that cannot be read are left out: the kernel cannot write them either. */
void tbd_effects_watch(struct tbd_effects *effects, const struct tbd_sys_range *ranges,
                       size_t count);
/* The program has asked that forks do not inherit these pages. */
void tbd_effects_note_wiped(uint64_t start, uint64_t end);
/* Watches all writable memory (hooks/memory/snapshot.h): for calls that the table does not
 * describe. */
void tbd_effects_watch_all(struct tbd_effects *effects);
/* The watched range was cut: some old bytes are missing. */
bool tbd_effects_is_cut(const struct tbd_effects *effects);
/* Part of a watched range was not there: whoever writes to it stops somewhere before. */
bool tbd_effects_is_short(const struct tbd_effects *effects);
/* Nothing was written so far. */
bool tbd_effects_are_none(const struct tbd_effects *effects);

void tbd_effects_written(struct tbd_effects *effects, const struct tbd_sys_range *ranges,
                         size_t count);
/* Adds a write for all bytes that differ from the saved ones. */
void tbd_effects_compare(struct tbd_effects *effects);
/* What all memory was before; NULL if there is no snapshot.  Borrowed until it has been compared. */
const struct tbd_snapshot *tbd_effects_snapshot(const struct tbd_effects *effects);
/* All bytes that differ from the saved ones are set back to them, and nothing is reported. */
void tbd_effects_undo(struct tbd_effects *effects);
/* Adds a write at `address` that replaced `old` (borrowed until sent), without the bytes that were
 * added before. */
void tbd_effects_add(struct tbd_effects *effects, uint64_t address, const void *old, size_t bytes);
/* Those of them that have changed. */
void tbd_effects_add_changed(struct tbd_effects *effects, uint64_t address, const void *old,
                             size_t bytes);

/* Like tbd_effects_add(), but takes the new contents from `now` instead of reading them when sent;
 * both are copied. */
void tbd_effects_add_known(struct tbd_effects *effects, uint64_t address, const void *old,
                           const void *now, size_t bytes);

/* A message's fixed part, and pointers to the counters in it. */
struct tbd_effect_head {
    enum tbd_message_kind kind;
    void *data;
    size_t bytes;
    uint32_t *write_count;
    uint32_t *flags;
    uint32_t more;      /* set in flags when another message follows */
    uint32_t continued; /* set in every message but the first */
};
/* Sends `head` and all writes; `tail` is appended to the last message (NULL: nothing).  Marks the
 * pages as written. */
void tbd_effects_send(struct tbd_effects *effects, struct tbd_ring *ring, struct tbd_thread *thread,
                      struct tbd_pages *pages, const struct tbd_effect_head *head,
                      const struct tbd_part *tail, size_t tail_count);

/* For effects that a replay finds by itself, so that nothing need be sent: does what sending does to pages and views.  False, and
 * nothing was done: there are more than `most` bytes of writes, or new contents of memory that others may write would be read
 * only now. */
bool tbd_effects_settle(struct tbd_effects *effects, struct tbd_pages *pages, size_t most);

#endif
