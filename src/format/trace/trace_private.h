// SPDX-License-Identifier: MIT
/* trace_private.h - struct tbd_trace, shared by the files that read traces
 *
 * Written once by tbd_trace_open(); what is made later on demand (regions, page history, open TOCs)
 * is guarded by `lock`, so that replay workers may ask at the same time. */
#ifndef TBD_FORMAT_TRACE_PRIVATE_H
#define TBD_FORMAT_TRACE_PRIVATE_H

#include "base/layout.h"
#include "format/window/blocks.h"
#include "format/files/damage.h"
#include "format/files/file.h"
#include "format/summaries/keys.h"
#include "format/files/page_numbers.h"
#include "format/trace/thread_table.h"
#include "format/trace/trace.h"

#include <pthread.h>

struct trace_window {
    struct tbd_window_summary summary;
    struct tbd_disk_window disk;
    const uint8_t *pages; /* TBD_REC_PAGES varints; borrowed from the index file, or from
                             `damage` */
    size_t pages_bytes;
    bool has_no_pages; /* they are damaged: nobody knows which pages the window modified */
};

/* A moment in the order of events, comparable over the whole trace. */
struct tbd_moment {
    uint32_t window;
    uint32_t order;
    uint64_t time; /* relative */
};

struct region_event {
    struct tbd_disk_when when;
    bool unmap; /* then only region.start and .end count */
    struct tbd_region region;
};

struct module {
    struct tbd_disk_module disk;
    const char *path; /* borrowed from the index file */
    char *copy;       /* owned: path of the copy */
};

/* A part of a region whose contents began at one moment. */
struct region_piece {
    struct tbd_region region;
    struct tbd_moment born;
    bool initial; /* mapped before take-over */
};

struct region_map {
    struct region_piece *pieces; /* owned; sorted by start, no overlap */
    size_t count;
    size_t capacity;
};

struct region_snapshot {
    size_t events;              /* how many were applied */
    struct tbd_region *regions; /* owned */
    size_t count;
    struct region_snapshot *next;
};

/* Pages that share a frame: their neighbours are asked for next. */
struct unpacked_group {
    const uint8_t *frame; /* NULL: none */
    size_t bytes;
    uint8_t pages[TBD_PAGE_GROUP * 4096];
};

/* One window's TOC, mapped. */
struct toc {
    struct tbd_file file;
    uint32_t window;
    uint64_t used; /* for throwing out the oldest */
    struct tbd_disk_meta meta;
    const struct tbd_disk_page *pages;
    size_t page_count;
    const uint8_t *page_data;
    size_t page_data_bytes;
    const uint32_t *checks; /* of the image's page entries */
    size_t check_count;
    bool is_damaged; /* page_data as a whole: `checks` say which pages are not */
    struct tbd_record_view state, read_pages, log, words, block_summaries, threads, called;
    struct tbd_record_view word_bits, block_bits, called_bits, early_calls;
    struct unpacked_group *group; /* owned; NULL, or the group of pages that was unpacked last */
    struct tbd_error *page_why;   /* of a page that cannot be unpacked; NULL: nobody asks */
};

#define TOC_CACHE 4096

struct page_visit {
    uint32_t window;
    uint32_t kinds;  /* TBD_PAGES_* */
    uint32_t before; /* index + 1 of the page's previous visit; once sorted, the page's visits */
};

/* A file below modules/. */
struct mapped_copy {
    const char *path; /* borrowed from the trace's module */
    const uint8_t *bytes;
    size_t size;
};

struct page_history {
    struct tbd_page_numbers last; /* by page number: index + 1 of the page's last visit */
    struct page_visit *visits;
    size_t visit_count;
    size_t visit_capacity;
    bool made;
    bool is_partial; /* between tbd_page_history_begin() and _end() */
};

/* A file below keys/. */
struct key_file {
    uint64_t first_time; /* by its name */
    uint32_t window;
    bool tried;
    struct tbd_keys *keys; /* owned; NULL until asked for, or damaged */
};

struct tbd_trace {
    struct tbd_trace_info info;
    char *path;
    char **argv;
    uint64_t id;
    struct tbd_file header;
    struct tbd_file header_copy; /* the index once more, if the header is damaged */
    bool has_config;
    uint64_t closed_bytes; /* that the index had at least when its last writer was done with it; 0:
                              not known */
    struct tbd_file index;
    bool index_is_borrowed; /* tbd_trace_open_again() */
    bool is_recorded;       /* the program ran still when the index was opened */
    struct tbd_block_table *blocks;
    uint64_t highest_id; /* that windows may name */
    struct tbd_disk_base base;
    bool is_aged; /* windows were merged or dropped: places are not numbers */

    struct trace_window *windows;
    size_t window_count;
    size_t window_capacity;
    const uint8_t *next_pages; /* read already, for the window record that follows */
    size_t next_pages_bytes;
    uint32_t next_pages_window;
    struct region_event *region_events;
    size_t region_event_count;
    size_t region_event_capacity;
    struct module *modules;
    size_t module_count;
    const char **notes;
    size_t note_count;
    struct tbd_thread_table threads;
    char end_text[256];
    struct tbd_damage damage;

    pthread_mutex_t lock;
    struct region_map regions; /* after the first `regions_at` events */
    size_t regions_at;
    struct region_snapshot *snapshots;
    struct page_history history;
    struct key_file *key_files; /* owned; sorted by first_time */
    size_t key_file_count;
    size_t key_file_capacity;
    bool key_files_listed;
    struct toc image;
    bool image_tried;
    enum tbd_status image_failure;
    struct tbd_error image_why;
    struct page_kept *kept; /* owned; NULL until a difference was seen (page_kept.c) */
    struct mapped_copy *copies;
    size_t copy_count;
    struct toc **tocs; /* by window; NULL = not open */
    size_t toc_slots;
    struct tbd_error page_why;   /* of the contents of a page that could not be had last */
    enum tbd_status toc_failure; /* why the last one that could not be opened could not */
    size_t toc_count;            /* open ones, about TOC_CACHE at most */
    uint64_t toc_clock;          /* how many were opened so far */
};

/* trace_head.c; waits for a header that is just being made */
TBD_MUST_CHECK enum tbd_status tbd_trace_read_head(struct tbd_trace *trace, struct tbd_error *why);
/* trace_blocks.c; after the index */
TBD_MUST_CHECK enum tbd_status tbd_trace_read_blocks(struct tbd_trace *trace,
                                                     struct tbd_error *why);
/* trace_index.c */
TBD_MUST_CHECK enum tbd_status
tbd_trace_read_index(struct tbd_trace *trace, const struct tbd_trace *of, struct tbd_error *why);
/* Number and time that the next window must have. */
void tbd_trace_next_window(const struct tbd_trace *trace, uint32_t *out_number, uint64_t *out_time);
/* The next window; takes next_pages. */
TBD_MUST_CHECK enum tbd_status
tbd_trace_add_window(struct tbd_trace *trace, const struct tbd_disk_window *disk, uint32_t span);

/* mappings.c; the lock is held */
TBD_MUST_CHECK enum tbd_status tbd_regions_at_locked(struct tbd_trace *trace, size_t events);
size_t tbd_region_events_before(const struct tbd_trace *trace, const struct tbd_moment *moment);
bool tbd_region_apply(struct region_map *map, const struct region_event *event);
const struct region_piece *tbd_region_find(const struct region_map *map, uint64_t address);
bool tbd_region_map_copy(const struct region_map *from, struct region_map *out);
void tbd_region_free(struct tbd_trace *trace);

/* toc.c */
/* `number`, `span`: as in struct tbd_window_summary. */
void tbd_toc_name(uint32_t number, uint32_t span, const char *suffix, char *out, size_t bytes);
void tbd_image_name(const struct tbd_disk_base *base, char *out, size_t bytes);
TBD_MUST_CHECK enum tbd_status tbd_toc_open(const struct tbd_trace *trace, uint32_t window,
                                            struct toc *out, struct tbd_error *why);
/* Without asking the index whether it fits. */
TBD_MUST_CHECK enum tbd_status tbd_toc_peek(const struct tbd_trace *trace, uint32_t number,
                                            uint32_t span, struct toc *out);
TBD_MUST_CHECK enum tbd_status tbd_image_open(const struct tbd_trace *trace, struct toc *out,
                                              struct tbd_error *why);
void tbd_toc_close(struct toc *toc);
/* What is stored of one entry of the page table: its contents, or with DELTA a difference.  `out`
 * has 4096 bytes. */
TBD_MUST_CHECK enum tbd_status tbd_toc_page(struct toc *toc, const struct tbd_disk_page *page,
                                            uint8_t *out);
/* First entry of the table with this address; `*out_count` of them. */
const struct tbd_disk_page *tbd_toc_find_page(const struct toc *toc, uint64_t address,
                                              size_t *out_count);

/* thread_table.c: once the index is read */
TBD_MUST_CHECK enum tbd_status tbd_threads_settle(struct tbd_trace *trace);

/* keys_read.c */
void tbd_trace_keys_free(struct tbd_trace *trace);

/* open_tocs.c */
/* The window has another TOC now: what is open is closed. */
void tbd_trace_forget_toc(struct tbd_trace *trace, uint32_t window);
void tbd_pages_free(struct tbd_trace *trace);

/* page_base.c */
/* Contents of `page`, an END entry in the window's table: `bytes` are what is stored of it. */
TBD_MUST_CHECK enum tbd_status tbd_trace_page_at_end(struct tbd_trace *trace, const struct toc *toc,
                                                     const struct tbd_disk_page *page,
                                                     uint8_t *bytes);

/* The latest contents of the page from before window `first`, if it may serve for a difference that is
 * stored for the windows from `first` to `last` as one: it is of the mapping that is there at their end,
 * and no more than `depth` differences were put together for it. */
bool tbd_trace_delta_base(struct tbd_trace *trace, uint32_t first, uint32_t last, uint64_t address,
                          uint32_t depth, uint8_t *out);

/* The latest contents from before window `first`, if the page's mapping is there when it begins and
 * the window does not have them itself.  TBD_NOTFOUND. */
TBD_MUST_CHECK enum tbd_status tbd_trace_page_for_image(struct tbd_trace *trace, uint32_t first,
                                                        uint64_t address, uint8_t *out);
/* Pages that the image and the windows before `first` have contents of, in any order, perhaps more
 * than once; owned by the caller. */
TBD_MUST_CHECK enum tbd_status tbd_trace_known_pages(struct tbd_trace *trace, uint32_t first,
                                                     uint64_t **out, size_t *out_count);

static inline void tbd_page_xor(uint8_t *restrict page, const uint8_t *restrict with)
{
    for (size_t i = 0; i < 4096; i++)
        page[i] ^= with[i];
}

static inline void tbd_page_difference(uint8_t *restrict out, const uint8_t *restrict a,
                                       const uint8_t *restrict b)
{
    for (size_t i = 0; i < 4096; i++)
        out[i] = a[i] ^ b[i];
}

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

/* A summary on disk names windows by number + 1: the same by place, 0 if it was dropped. */
static inline uint32_t tbd_place_of(const struct tbd_trace *trace, uint32_t number_plus_1)
{
    return trace->is_aged && number_plus_1 ? tbd_trace_window_with(trace, number_plus_1 - 1) + 1
                                           : number_plus_1;
}

static inline int tbd_moment_compare(const struct tbd_moment *a, const struct tbd_moment *b)
{
    if (a->window != b->window)
        return a->window < b->window ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return 0;
}

#endif
