// SPDX-License-Identifier: MIT
/* organize_private.h - an organizer at work: what its main thread (organize.c), its workers
 * (workers.c) and the key files (key_files.c) share
 *
 * Who may touch what: invariants ORGANIZE-1 to ORGANIZE-3. */
#ifndef TBD_ORGANIZER_ORGANIZE_PRIVATE_H
#define TBD_ORGANIZER_ORGANIZE_PRIVATE_H

#include "format/writer/writer.h"
#include "organizer/builders.h"
#include "organizer/join.h"
#include "organizer/one_process.h"
#include "organizer/organize.h"
#include "organizer/pipeline.h"

#include <pthread.h>

#define MAX_THREADS 8u

/* The keys of a window that is not committed yet. */
struct window_keys {
    struct window_keys *next; /* a later window's */
    uint32_t window;
    uint64_t first_time;
    uint64_t blocks;
    struct tbd_buffer keys;
};

/* organize.c: the trace root, and the program's name. */
TBD_MUST_CHECK enum tbd_status tbd_organizer_place(const struct tbd_organize_options *options,
                                                   char root[4096], char program[4096],
                                                   struct tbd_error *why);

struct organizer {
    const struct tbd_organize_options *options;
    struct tbd_consumer *consumer;
    struct tbd_block_table *table;
    struct tbd_stream_head *head;
    int pidfd;
    struct tbd_one_process process;

    struct tbd_pipeline *pipeline;
    struct tbd_builders builders;
    struct tbd_builder *early; /* has begun the window that is being collected; NULL: none has */
    size_t offered;            /* entries of it at the last offer */
    unsigned early_windows;    /* begun and not built yet; atomic */
    struct tbd_join *join;     /* see ORGANIZE-1 */
    struct tbd_page_versions *versions; /* owned; NULL: all pages are stored whole */
    struct tbd_page_packer *packer;     /* owned: of native play; NULL for others */
    bool has_lean;                      /* a window was built without its events; atomic */

    pthread_mutex_t lock;
    pthread_cond_t space; /* windows to be written wait for it, and for their turn */
    pthread_cond_t due;   /* the ager waits for work */
    uint64_t granted;     /* windows that may write their files */
    struct tbd_writer *writer;
    struct window_keys *keys;        /* owned; in order */
    uint64_t added;                  /* windows added; counted by the main thread */
    uint64_t collected;              /* windows whose keys are collected, if they have some */
    struct tbd_key_segment *segment; /* owned; NULL until the first window */
    struct tbd_ager *ager;           /* owned; NULL: windows stay as they are */
    bool settled;                    /* all windows are committed */
    pthread_cond_t idle;             /* a worker has finished, or has collected keys */
    unsigned working;                /* workers that have not finished */
    /* the workers; joined when the program does not wait any more */
    pthread_t threads[MAX_THREADS];
    unsigned thread_count;
    enum tbd_status failed; /* written under `lock`, read anywhere: has_failed() */
    char failure[320];      /* an error's detail and its status */
};

/* organize.c: the first failure counts (ORGANIZE-5). */
void tbd_organizer_fail_locked(struct organizer *o, enum tbd_status status, const char *what);
void tbd_organizer_fail(struct organizer *o, enum tbd_status status, const char *what);
static inline bool tbd_organizer_has_failed(const struct organizer *o)
{
    return __atomic_load_n(&o->failed, __ATOMIC_ACQUIRE) != TBD_OK;
}
static inline bool tbd_organizer_is_replayable(const struct organizer *o, bool is_complete)
{
    return is_complete && (o->head->hook_set & TBD_HOOKS_PLAY) == TBD_HOOKS_PLAY;
}

/* Shall a window be built without its events?  `is_urgent`: with them, the program would wait. */
static inline bool tbd_organizer_is_lean(const struct organizer *o, bool is_urgent,
                                         bool is_complete)
{
    enum tbd_organize_lean lean = o->options->lean;

    if (o->head->flags & TBD_STREAM_ONLY_COUNTS) /* there are no events */
        return is_complete;
    return (lean == TBD_ORGANIZE_LEAN_ALWAYS || (lean == TBD_ORGANIZE_LEAN_AUTO && is_urgent)) &&
           tbd_organizer_is_replayable(o, is_complete);
}

/* workers.c */
unsigned tbd_workers_count(const struct tbd_organize_options *options);
/* False if there is not one. */
bool tbd_workers_begin(struct organizer *o);
/* Waits until workers have nothing left to do, but not for the memory that they still free. */
void tbd_workers_wait(struct organizer *o);
/* Drops the window that the builder has begun.  NULL is fine. */
void tbd_workers_drop_early(struct organizer *o, struct tbd_builder *builder);

/* key_files.c: collects the keys of a window whose files are about to be written. */
void tbd_key_files_collect(struct organizer *o, const struct tbd_job *job);
/* Adds the first waiting keys to the segment.  Returns a full segment, to be written by the caller,
 * or NULL. */
struct tbd_key_segment *tbd_key_files_add_locked(struct organizer *o);
/* Waits for space, writes the segment, and frees it.  NULL is fine. */
void tbd_key_files_write(struct organizer *o, struct tbd_key_segment *segment);
/* Writes the keys collected so far if they are of `least` windows or more. */
void tbd_key_files_write_so_far(struct organizer *o, uint32_t least);
/* Writes the keys of the last windows, which may not be in the trace yet: keys of windows that
 * never get there do no harm. */
void tbd_key_files_write_last(struct organizer *o);

#endif
