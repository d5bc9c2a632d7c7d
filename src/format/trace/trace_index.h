// SPDX-License-Identifier: MIT
/* trace_index.h - a trace's index in memory: for rewriting it, and for callers that need more of a
 * window than its summary */
#ifndef TBD_FORMAT_TRACE_INDEX_H
#define TBD_FORMAT_TRACE_INDEX_H

#include "format/files/disk.h"
#include "format/trace/trace.h"

struct tbd_index_window {
    struct tbd_window_summary summary;
    struct tbd_disk_window disk;
    const uint8_t *pages; /* page_list.h; borrowed from the index file, or from `damage` */
    size_t pages_bytes;
    bool has_no_pages; /* they are damaged: the pages that the window modified are unknown */
};

struct tbd_index_module {
    struct tbd_disk_module disk;
    const char *path;  /* borrowed from the index file */
    char *copy;        /* owned: name of the copy below the directory */
    bool is_exchanged; /* what has that name is another file */
};

struct tbd_trace_index {
    struct tbd_disk_base base;
    bool is_aged;        /* windows were merged or dropped: places are not numbers */
    bool has_end;        /* it has an END record */
    uint64_t highest_id; /* of a block that windows may name */
    struct tbd_index_window *windows;
    size_t window_count, window_capacity;
    struct tbd_index_module *modules;
    size_t module_count;
    const char **notes; /* each is borrowed from the index file */
    size_t note_count;
};

const struct tbd_trace_index *tbd_trace_index(const struct tbd_trace *trace);

/* Number and time that the next window must have. */
void tbd_trace_next_window(const struct tbd_trace *trace, uint32_t *out_number, uint64_t *out_time);

/* Converts a window number + 1, as in a summary on disk, to a place + 1; 0 if it was dropped.  In
 * an index that is not aged they are equal. */
uint32_t tbd_trace_place_of(const struct tbd_trace *trace, uint32_t number_plus_1);

#endif
