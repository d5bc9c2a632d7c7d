// SPDX-License-Identifier: MIT
/* writer.h - making a trace directory
 *
 * Order of calls: new, start; then any of blocks, region, unmap, note, module and for each window
 * in ascending order put_window (from any thread) before commit_window; end; free.  A window is in
 * the trace when commit_window has returned; the blocks and mappings that it needs are written
 * before.  A trace is complete with its end record; before that, readers see "still being
 * recorded", or "the organizer died" once the writer's lock on the header file is gone.
 *
 * Fails with TBD_NOSPACE, TBD_IO, TBD_NOMEM; after a failure only tbd_writer_end() makes sense. */
#ifndef TBD_FORMAT_WRITER_H
#define TBD_FORMAT_WRITER_H

#include "format/window/blocks.h"
#include "format/coding/coding.h"
#include "format/files/modules.h"
#include "format/summaries/keys.h"

struct tbd_writer;

/* Makes ROOT/PROGRAM-N (mode 0700) with the next free N; missing parents of it too. */
TBD_MUST_CHECK enum tbd_status tbd_writer_new(const char *root, const char *program,
                                              struct tbd_writer **out, struct tbd_error *why);
/* A writer that has not written a header deletes its directory. */
void tbd_writer_free(struct tbd_writer *writer);
const char *tbd_writer_path(const struct tbd_writer *writer);
int tbd_writer_dir(const struct tbd_writer *writer); /* borrowed */

/* `payload` is that of TBD_MSG_START.  Makes the trace visible, and ROOT/latest point to it. */
TBD_MUST_CHECK enum tbd_status tbd_writer_start(struct tbd_writer *writer, const void *payload,
                                                size_t bytes, const struct tbd_disk_config *config);

/* Writes blocks first .. last of the table, which follow the ones written before. */
TBD_MUST_CHECK enum tbd_status tbd_writer_blocks(struct tbd_writer *writer,
                                                 const struct tbd_block_table *table,
                                                 uint32_t first, uint32_t last);

/* Events are kept until the next commit_window or end.  `message`: payload of TBD_MSG_REGION,
 * ... */
void tbd_writer_event(struct tbd_writer *writer, enum tbd_record_type type,
                      const struct tbd_disk_when *when, const void *message, size_t bytes);
/* Copies the file (or shares its blocks) into modules/.  A file that cannot be copied is
 * left out: TBD_NOTFOUND, or TBD_NOSPACE. */
enum tbd_status tbd_writer_module(struct tbd_writer *writer, const char *path, uint64_t inode,
                                  uint32_t device);
/* From now on copies of files are rather those of another trace; `kept` is borrowed for as long as the writer lives. */
void tbd_writer_take_modules(struct tbd_writer *writer, const struct tbd_kept_modules *kept);

/* Appends records as they are, to be written with the next commit_window or end. */
void tbd_writer_records(struct tbd_writer *writer, const struct tbd_buffer *records);

/* The image with which the trace begins, of pages in any order; base NULL: the program's initial one. */
TBD_MUST_CHECK enum tbd_status tbd_writer_image(struct tbd_writer *writer,
                                                const struct tbd_disk_base *base,
                                                const struct tbd_page_contents *pages,
                                                size_t count);

/* Sizes and counts of a window: filled by put_window, given back to commit_window. */
struct tbd_window_files {
    struct tbd_disk_window disk;
    uint8_t *pages; /* owned, until commit_window: the PAGES record's varints */
    size_t pages_bytes;
};

/* Further contents of a window's files; all borrowed, all may be NULL. */
struct tbd_window_extra {
    const struct tbd_buffer *coded; /* its records, coded */
    /* The base of a difference for a page's contents at the window's end (struct
     * tbd_toc_content). */
    const uint8_t *(*base)(void *context, uint64_t address);
    void *context;
};

/* Writes the window's files.  WINDOW-1 holds for the window; `counts` has stores, calls, ... */
TBD_MUST_CHECK enum tbd_status tbd_writer_put_window(struct tbd_writer *writer,
                                                     const struct tbd_window *window,
                                                     const struct tbd_window_summary *counts,
                                                     const struct tbd_window_extra *extra,
                                                     struct tbd_window_files *out);
TBD_MUST_CHECK enum tbd_status tbd_writer_commit_window(struct tbd_writer *writer,
                                                        struct tbd_window_files *files);

/* Appends the file of a segment of the index over windows to `out`. */
void tbd_writer_code_segment(const struct tbd_writer *writer, struct tbd_key_segment *segment,
                             struct tbd_buffer *out);
/* Writes the file when the windows are committed; from any thread.  Without it questions are only
 * slower. */
void tbd_writer_segment(const struct tbd_writer *writer, const struct tbd_key_segment *segment,
                        const struct tbd_buffer *file);

/* ---- changes of a written trace (change.h) ---- */
/* Opens a trace whose recording has ended.  TBD_BUSY: it has not, or somebody else changes it. */
TBD_MUST_CHECK enum tbd_status tbd_writer_open(const char *path, struct tbd_writer **out,
                                               struct tbd_error *why);
/* Lets others change the trace until tbd_writer_take_again().  That fails with TBD_BUSY if somebody does
 * or has, or if the trace is not there any more; then only tbd_writer_free() makes sense. */
void tbd_writer_let_go(struct tbd_writer *writer);
TBD_MUST_CHECK enum tbd_status tbd_writer_take_again(struct tbd_writer *writer,
                                                     struct tbd_error *why);
/* Writes a whole file of the trace, or leaves it as it was. */
TBD_MUST_CHECK enum tbd_status tbd_writer_file(struct tbd_writer *writer, const char *name,
                                               const struct tbd_buffer *content);
void tbd_writer_remove(struct tbd_writer *writer, const char *name); /* an empty folder, too */
/* Replaces the index. */
TBD_MUST_CHECK enum tbd_status tbd_writer_index(struct tbd_writer *writer,
                                                const struct tbd_buffer *content);
/* Bytes of the append-only files. */
uint64_t tbd_writer_bytes(const struct tbd_writer *writer);
uint64_t tbd_writer_index_bytes(const struct tbd_writer *writer); /* of these, the index's */
/* `pages`: for the PAGES record; empty: as before.  `shifts`: change->count if more than one. */
TBD_MUST_CHECK enum tbd_status tbd_writer_change(struct tbd_writer *writer,
                                                 const struct tbd_disk_change *change,
                                                 const struct tbd_disk_shift *shifts,
                                                 const struct tbd_buffer *pages);

/* Only one window is still to be written, and the end record: both may use what was kept for the end. */
void tbd_writer_use_reserve(struct tbd_writer *writer);
/* The end is near, and the program waits for it: does early what can be done for it, while other
 * threads still write windows. */
void tbd_writer_expect_end(struct tbd_writer *writer);
/* `siginfo`: TBD_SIGINFO_BYTES of the signal that ended the program, or NULL. */
TBD_MUST_CHECK enum tbd_status tbd_writer_end(struct tbd_writer *writer,
                                              const struct tbd_msg_end *end, const char *text,
                                              const uint8_t *siginfo);

#endif
