// SPDX-License-Identifier: MIT
/* trace_private.h - struct tbd_trace: for the files of this folder alone
 *
 * Each part belongs to the file named with it; others read it. */
#ifndef TBD_FORMAT_TRACE_PRIVATE_H
#define TBD_FORMAT_TRACE_PRIVATE_H

#include "format/files/crash_file.h"
#include "format/files/file.h"
#include "format/trace/damage.h"
#include "format/trace/mappings.h"
#include "format/trace/open_tocs.h"
#include "format/trace/thread_table.h"
#include "format/trace/trace.h"
#include "format/trace/trace_handle.h"
#include "format/trace/trace_index.h"

#include <pthread.h>
#include <string.h>

/* trace_index.c: state while the index is read. */
struct tbd_index_reading {
    struct tbd_file file;
    uint64_t closed_bytes;     /* size of the index when its last writer finished; 0: not known */
    bool is_borrowed;          /* tbd_trace_open_again() */
    bool is_recorded;          /* the program still ran when the index was opened */
    const uint8_t *next_pages; /* read already, for the window record that follows */
    size_t next_pages_bytes;
    uint32_t next_pages_window;
};

/* mappings.c */
struct tbd_mapping_snapshot;
struct tbd_mappings {
    struct tbd_mapping_event *events; /* owned */
    size_t event_count, event_capacity;
    struct tbd_mapping_table table; /* owned; after the first `at` events */
    size_t at;
    struct tbd_mapping_snapshot *snapshots; /* owned */
};

/* open_tocs.c */
struct tbd_open_tocs {
    struct tbd_toc **tocs; /* owned; by window; NULL = not open */
    size_t slots;
    size_t count;   /* open ones, about TBD_OPEN_TOCS at most */
    uint64_t clock; /* how many were opened so far */
    struct tbd_toc image;
    bool image_tried;
    enum tbd_status image_failure;
    struct tbd_error image_why;
    struct tbd_error page_why; /* why the contents of a page could not be read last */
};

struct tbd_trace {
    struct tbd_trace_info info;
    char *path;
    struct tbd_dir dir; /* at `path`; stays this directory whatever happens there */
    uint64_t id;
    /* trace_head.c */
    char **argv;
    struct tbd_file header;
    struct tbd_file header_copy; /* a second mapping of the index, if the header is damaged */
    bool has_config;

    struct tbd_trace_index index;
    struct tbd_index_reading reading;
    char end_text[256]; /* made up if the index does not say how the program ended */
    struct tbd_thread_table threads;
    struct tbd_damage damage;
    struct tbd_block_table *blocks;
    struct tbd_crash_module *crash_modules; /* owned; trace_crash.c */

    pthread_mutex_t lock; /* guards the fields below */
    struct tbd_mappings mappings;
    struct tbd_open_tocs open_tocs;
    struct {
        const struct tbd_trace_part_class *class;
        void *part; /* owned */
    } parts[TBD_TRACE_PART_COUNT];
};

/* trace_head.c; waits for a header that is just being made */
TBD_MUST_CHECK enum tbd_status tbd_trace_read_head(struct tbd_trace *trace, struct tbd_error *why);
/* trace_blocks.c; after the index */
TBD_MUST_CHECK enum tbd_status tbd_trace_read_blocks(struct tbd_trace *trace,
                                                     struct tbd_error *why);
/* trace_index.c */
TBD_MUST_CHECK enum tbd_status
tbd_trace_read_index(struct tbd_trace *trace, const struct tbd_trace *of, struct tbd_error *why);
/* The next window; takes next_pages. */
TBD_MUST_CHECK enum tbd_status
tbd_trace_add_window(struct tbd_trace *trace, const struct tbd_disk_window *disk, uint32_t span);
void tbd_trace_index_free(struct tbd_trace *trace);

/* mappings.c */
TBD_MUST_CHECK enum tbd_status tbd_mappings_add(struct tbd_mappings *mappings,
                                                const struct tbd_mapping_event *event);
void tbd_mappings_free(struct tbd_mappings *mappings);

/* thread_table.c: once the index is read */
TBD_MUST_CHECK enum tbd_status tbd_threads_settle(struct tbd_trace *trace);

/* open_tocs.c */
void tbd_open_tocs_free(struct tbd_open_tocs *tocs);

/* The NUL-terminated string at `at`, or NULL if it does not end before `end`. */
static inline const char *tbd_record_string(const uint8_t *at, const uint8_t *end)
{
    return at < end && memchr(at, 0, (size_t)(end - at)) ? (const char *)at : NULL;
}

static inline enum tbd_status tbd_record_corrupt(const struct tbd_file *file,
                                                 const struct tbd_record_view *record,
                                                 const char *what, struct tbd_error *why)
{
    return tbd_error_set(why, TBD_CORRUPT, file->path, record->offset, "%s", what);
}

#endif
