// SPDX-License-Identifier: MIT
/* worker.h - one worker of a replayer: a process, its view of the trace, the window it works on
 *
 * Context: ORG; a worker is used by one thread at a time. */
#ifndef TBD_REPLAY_WORKER_H
#define TBD_REPLAY_WORKER_H

#include "organizer/build.h"
#include "replay/gather.h"
#include "replay/process.h"
#include "replay/replay.h"

/* A page with code that the process has, and may have translated. */
struct tbd_code_page {
    uint64_t address; /* 0 = free */
    uint64_t hash;    /* of its contents */
    bool changes;     /* it is writable, too: translations compare its bytes at every entry */
    bool is_whole;    /* the trace had its contents, not only the code of some blocks */
};

/* A part of a window's events (replay/plan.h), in relative times; all 0: the whole window. */
struct tbd_worker_range {
    uint64_t from, until, slice;
};

struct tbd_worker {
    struct tbd_trace *trace; /* own handle: page histories are not shared between threads */
    struct tbd_process process;
    uint32_t hook_set; /* of the present plan */

    const struct tbd_window *window; /* the present window; borrowed */
    struct tbd_window *kept;         /* the window before, as it was loaded; owned; NULL: none */
    /* of `window`: the replay begins at its start; NULL: at the window's start; borrowed */
    const struct tbd_window *slice;
    struct tbd_worker_range range;
    const struct tbd_region *regions; /* those where the replay begins; borrowed from the trace */
    size_t region_count;
    const struct tbd_block **code; /* blocks entered in it, by start; owned; NULL until needed */
    size_t code_count;

    struct tbd_consumer *consumer; /* of the process's stream; owned; NULL until needed */
    struct tbd_builder *builder;   /* owned; NULL until needed */
    struct tbd_gather *gather;     /* owned; NULL until needed */
    struct tbd_skim *skim;         /* owned; NULL until needed */
    struct tbd_areas *areas;       /* of the process's stream; owned; NULL until needed */
    struct tbd_block_table *loads; /* blocks with load events, by the trace's ids; owned */
    struct tbd_block_table *noted; /* blocks with notes at `notes`; owned */
    struct tbd_note_site *notes;   /* by pc; owned */
    size_t note_count;

    struct tbd_code_page *pages; /* hash table of code pages, owned */
    size_t page_capacity;        /* power of two, or 0 */
    size_t page_count;
    bool forget; /* its translations may be stale */

    uint64_t *given; /* pages that the present plan gives the process; sorted; owned */
    size_t given_count, given_capacity;
    uint64_t *before; /* those of the previous plan; likewise */
    size_t before_count, before_capacity;
    uint64_t asked; /* sum of the block entries of its replays */
    bool is_at_end; /* pages of `before` are in the process as at the end of window `ended` */
    uint32_t ended;
};

/* The window or slice with whose start state the replay begins. */
static inline const struct tbd_window *tbd_worker_start(const struct tbd_worker *worker)
{
    return worker->slice ? worker->slice : worker->window;
}

/* Ends the process and frees all that depends on it. */
void tbd_worker_stop(struct tbd_worker *worker);

/* contents.c: a page as it was where the replay begins (`order` 0), or when the last of the next
 * `order` log messages made its mapping.  *known: TBD_OK if the contents are complete; TBD_NOTFOUND
 * if only the code of this window's blocks is given, or nothing; else the error of the trace, which
 * has lost the page. */
enum tbd_page_answer tbd_worker_page(struct tbd_worker *worker, uint64_t address, uint64_t order,
                                     uint8_t *out, enum tbd_status *known);
/* For an absent page: TBD_OK if the trace never had it, else `known`, and `why` says where it
 * was. */
enum tbd_status tbd_worker_page_lost(struct tbd_worker *worker, enum tbd_status known,
                                     struct tbd_error *why);
/* Lists the blocks entered in the window, by address. */
TBD_MUST_CHECK bool tbd_worker_code(struct tbd_worker *worker);
const struct tbd_region *tbd_worker_region(const struct tbd_worker *worker, uint64_t address);

/* code_pages.c: code pages that the process has.  Is it code that changes (writable, too, or
 * shared)? */
bool tbd_worker_code_changes(const struct tbd_region *region);
TBD_MUST_CHECK bool tbd_worker_note_code(struct tbd_worker *worker, uint64_t address,
                                         const uint8_t *contents, bool is_whole);
void tbd_worker_forget_code(struct tbd_worker *worker);

/* The page, if it is known as code; else NULL. */
const struct tbd_code_page *tbd_worker_code_page(const struct tbd_worker *worker, uint64_t address);

/* resident_pages.c: pages that the process still has from the previous window.  Called: when a plan
 * is begun; for each page in it with complete contents; to ask whether the process has the page as
 * it is at the window's start (data, code); when the window's end was reached and equals play's. */
void tbd_worker_clear_given(struct tbd_worker *worker);
TBD_MUST_CHECK bool tbd_worker_note_given(struct tbd_worker *worker, uint64_t address);
bool tbd_worker_holds(const struct tbd_worker *worker, uint64_t address);
bool tbd_worker_holds_code(const struct tbd_worker *worker, const struct tbd_code_page *page);
void tbd_worker_at_end(struct tbd_worker *worker);

/* note_sites.c: from now on registers are noted at these sites (by pc), too. */
TBD_MUST_CHECK bool tbd_worker_add_notes(struct tbd_worker *worker,
                                         const struct tbd_note_site *sites, size_t count);

/* plan_memory.c, for plan_build.c: mappings, pages, and which code stays translated. */
TBD_MUST_CHECK enum tbd_status tbd_worker_build_memory(struct tbd_worker *worker,
                                                       struct tbd_error *why);
enum tbd_status tbd_worker_no_memory(struct tbd_error *why); /* for the plan; TBD_NOMEM */

/* plan_cut.c, for plan_build.c: where native play has cut the window, after its log was added. */
TBD_MUST_CHECK enum tbd_status tbd_worker_add_cut(struct tbd_worker *worker, struct tbd_error *why);

/* plan_build.c: writes the plan for worker->window.  `states` may be NULL. */
TBD_MUST_CHECK enum tbd_status tbd_worker_build(struct tbd_worker *worker, uint32_t hook_set,
                                                const struct tbd_reg_state *states, size_t count,
                                                struct tbd_error *why);

#endif
