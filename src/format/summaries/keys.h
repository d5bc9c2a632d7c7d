// SPDX-License-Identifier: MIT
/* keys.h - the index over windows: for a memory word, a block, a function, a system call or a
 * signal, the windows that contain it, without opening each window's TOC
 *
 * A key is a kind and a number.  The keys of up to TBD_KEY_WINDOWS consecutive windows are one file
 * below keys/ of the trace, a *segment*, which says for each key in which of those windows it
 * occurs: a mask, bit i for the i-th window of the segment.  Windows are known by their times, so
 * that a segment stays right when windows are merged, renumbered or lowered.
 *
 * The index has no false negatives: damaged or missing parts answer "perhaps".
 *
 * Invariants
 * KEYS-1  Keys of a segment ascend strictly; a group never reaches past the file's end.
 * KEYS-2  A mask has no bits beyond the segment's windows. */
#ifndef TBD_FORMAT_KEYS_H
#define TBD_FORMAT_KEYS_H

#include "format/files/codec.h"
#include "format/files/disk.h"
#include "format/files/trace_dir.h"
#include "format/window/window.h"

enum tbd_key_kind {
    TBD_KEY_WORD = 1,      /* address / 8: a store touches it */
    TBD_KEY_BLOCK = 2,     /* id: entered */
    TBD_KEY_ENTER = 3,     /* id: entered by a call */
    TBD_KEY_TARGET = 4,    /* address: where the program goes on after the window */
    TBD_KEY_READ_PAGE = 5, /* page number */
    TBD_KEY_SYSCALL = 6,   /* number */
    TBD_KEY_SIGNAL = 7,    /* number */
    TBD_KEY_CARRIED = 8,   /* 0: a system call ends here that an earlier window's block began */
    /* of uncounted windows, in place of words and blocks: */
    TBD_KEY_ALL_WORDS = 9,   /* page number: stores may touch any of its words */
    TBD_KEY_ALL_BLOCKS = 10, /* 0: any block may be entered */
};

#define TBD_KEY_BITS 58
static inline uint64_t tbd_key(enum tbd_key_kind kind, uint64_t number)
{
    return (uint64_t)kind << TBD_KEY_BITS | (number & (((uint64_t)1 << TBD_KEY_BITS) - 1));
}

/* ---- making segments ---- */

/* All keys of a window in ascending order, as varints: each is the difference to the key before. */
void tbd_keys_collect(const struct tbd_window *window, struct tbd_buffer *out);

struct tbd_key_segment {
    struct tbd_buffer keys[TBD_KEY_WINDOWS]; /* owned; of each window */
    uint64_t times[TBD_KEY_WINDOWS + 1];
    uint32_t first_window;
    uint32_t windows;
    size_t bytes; /* of all keys */
};
/* Takes over the keys of the window after the last one.  False: the segment is full, or this window
 * does not follow; then nothing has changed. */
bool tbd_key_segment_add(struct tbd_key_segment *segment, uint32_t window, uint64_t first_time,
                         uint64_t blocks, struct tbd_buffer *keys);
bool tbd_key_segment_is_full(const struct tbd_key_segment *segment);
void tbd_key_segment_clear(struct tbd_key_segment *segment);
/* Appends the whole file. */
void tbd_key_segment_encode(struct tbd_key_segment *segment, uint64_t trace_id,
                            struct tbd_buffer *out);
/* The file's name, relative to the trace directory. */
void tbd_key_segment_name(const struct tbd_key_segment *segment, char *out, size_t bytes);

/* ---- asking ---- */

/* Keys of some windows, in memory or in a mapped file; tbd_keys_free(). */
struct tbd_keys {
    uint64_t times[TBD_KEY_WINDOWS + 1];
    uint32_t windows;
    const struct tbd_disk_key_group *directory; /* borrowed from `file` */
    size_t groups;
    const uint8_t *data;
    size_t data_bytes;
    size_t count;
    void *file; /* owned; NULL: all keys are in `own` */
    size_t file_bytes;
    uint64_t *own; /* owned; the keys of one window */
};
void tbd_keys_free(struct tbd_keys *keys);
/* Mask of the windows that have one of the keys first .. last. */
uint64_t tbd_keys_range(const struct tbd_keys *keys, uint64_t first, uint64_t last);
/* Mask of the windows that have one of these keys, which ascend. */
uint64_t tbd_keys_any(const struct tbd_keys *keys, const uint64_t *wanted, size_t count);
/* Mask of the windows inside [first_time, first_time + blocks); `*out_blocks`: block entries in
 * them. */
uint64_t tbd_keys_windows(const struct tbd_keys *keys, uint64_t first_time, uint64_t blocks,
                          uint64_t *out_blocks);
static inline uint64_t tbd_keys_all(const struct tbd_keys *keys)
{
    return keys->windows == 64 ? ~0ull : ((uint64_t)1 << keys->windows) - 1;
}

/* ---- the segments below a trace's directory, ascending by time: listed on first use ---- */
struct tbd_key_file;
struct tbd_key_files {
    struct tbd_key_file *files; /* owned */
    size_t count, capacity;
    bool is_listed;
};
void tbd_key_files_list(struct tbd_key_files *files, int dir);
void tbd_key_files_free(struct tbd_key_files *files);
/* For a trace with this directory and id.  Opened on first use, borrowed until all are freed.  NULL: it
 * is damaged. */
const struct tbd_keys *tbd_key_files_get(struct tbd_key_files *files, size_t index,
                                         struct tbd_dir dir, uint64_t trace_id);
/* The number of the first window of the segment with this index, which must exist, by its name. */
uint32_t tbd_key_files_window(const struct tbd_key_files *files, size_t index);
/* The first segment that does not end before `time`. */
size_t tbd_key_files_from(const struct tbd_key_files *files, uint64_t time);
/* Does the segment with this index begin before `time`? */
bool tbd_key_files_begins_before(const struct tbd_key_files *files, size_t index, uint64_t time);

#endif
