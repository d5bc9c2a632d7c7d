// SPDX-License-Identifier: MIT
/* change.h - changes of a trace's windows: they are lowered, raised or merged
 *
 * Used by the organizer, while a trace grows, and by tbdq afterwards.  A change has two steps:
 * first the new files are written, under names that no reader opens yet, or with contents that
 * replace the old ones; then tbd_change_commit() appends one record to the index, and deletes files
 * that are not needed any more.  Wherever this is interrupted, the trace opens, with the windows as
 * before or after.
 *
 * `trace` was opened after the last merge was committed; its places name the windows.  If several
 * windows are lowered, the oldest is first. */
#ifndef TBD_FORMAT_CHANGE_H
#define TBD_FORMAT_CHANGE_H

#include "format/trace/trace.h"
#include "format/writer/writer.h"

/* A prepared change; always ends with tbd_change_free(). */
struct tbd_change {
    struct tbd_disk_change disk;
    struct tbd_disk_shift *shifts; /* owned; disk.count of them if there is more than one window */
    struct tbd_buffer pages;       /* for the index; empty: as before */
    char (*old)[64];               /* owned: files to delete */
    size_t old_count;
    bool is_brief; /* packed quickly: it will be merged again soon */
};
void tbd_change_free(struct tbd_change *change);

/* Can the window's events be dropped, because a replay brings them back? */
bool tbd_change_is_possible(const struct tbd_trace *trace, uint32_t window);

/* `level` is below the window's: 2 takes its events away, 1 its counts as well.  A window on disk goes
 * from 3 to 1 in two changes: a TOC of level 1 does not fit files of events, which are valid until the
 * index says otherwise. */
TBD_MUST_CHECK enum tbd_status tbd_change_lower(struct tbd_trace *trace, struct tbd_writer *writer,
                                                uint32_t window, enum tbd_level level,
                                                struct tbd_change *out, struct tbd_error *why);

/* All changes down to `level`, committed. */
TBD_MUST_CHECK enum tbd_status tbd_change_lower_to(struct tbd_trace *trace,
                                                   struct tbd_writer *writer, uint32_t window,
                                                   enum tbd_level level, struct tbd_error *why);

/* tbd_change_lower() from level 3 to level 2, when only the window's record is at hand. */
TBD_MUST_CHECK enum tbd_status tbd_change_drop_events(const struct tbd_disk_window *window,
                                                      struct tbd_change *out);

/* `count` windows from `first` on become one, of level 1 if that is `level` or one of them has
 * level 1, else 2.  With fewer than `brief_blocks` block entries it is packed quickly, and less
 * small.  TBD_NOREPLAY: it would be too large, or one of them is not complete. */
TBD_MUST_CHECK enum tbd_status tbd_change_merge(struct tbd_trace *trace, struct tbd_writer *writer,
                                                uint32_t first, uint32_t count,
                                                enum tbd_level level, uint64_t brief_blocks,
                                                struct tbd_change *out, struct tbd_error *why);

/* Writes the files of `window`, which has everything that a window of level 3 has; at level 2,
 * without its events.  Level 1 only makes sense for an uncounted window: its lists become those of what happened. */
TBD_MUST_CHECK enum tbd_status tbd_change_raise(struct tbd_trace *trace, struct tbd_writer *writer,
                                                const struct tbd_window *window,
                                                enum tbd_level level, struct tbd_change *out,
                                                struct tbd_error *why);

TBD_MUST_CHECK enum tbd_status tbd_change_commit(struct tbd_writer *writer,
                                                 const struct tbd_change *change);

#endif
