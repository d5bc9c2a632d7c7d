// SPDX-License-Identifier: MIT
/* pipeline.h - windows in work: what is to be done next
 *
 *   reader --add--> build (alone) -> join (in order) -> put (alone) -> commit (in order)
 *      '----offer-> early (the window that is being collected), if nothing else is to be done
 *
 * Workers ask for a step, do it, and ask again.  No worker waits for a window's turn: a worker that
 * has built window 7 before 6 is joined takes another step, and whoever joins 6 goes on with 7. */
#ifndef TBD_ORGANIZER_PIPELINE_H
#define TBD_ORGANIZER_PIPELINE_H

#include "format/writer/writer.h"
#include "organizer/page_versions.h"

enum tbd_step {
    TBD_STEP_NONE = 0,
    TBD_STEP_BUILD,
    TBD_STEP_JOIN,   /* one window at a time, in the order in which they were added */
    TBD_STEP_PUT,    /* begun in order */
    TBD_STEP_COMMIT, /* like JOIN */
    TBD_STEP_EARLY,  /* builds the part of the window being collected that is there */
};

/* A window in work: belongs to the worker that does a step of it. */
struct tbd_job {
    uint64_t number;        /* counted from 0 */
    bool is_pressed;        /* built with its events, it or others would be late */
    bool is_lean;           /* without its events; decided when it is built */
    bool keep;              /* it goes into the trace */
    enum tbd_status status; /* of the steps done */
    uint32_t highest_id;
    size_t entry_count, raw_bytes; /* of `raw`, as it came */
    struct tbd_raw_window raw;     /* until it is built */
    struct tbd_builder *builder;   /* has begun it early; NULL: none has */
    struct tbd_product product;    /* from then on */
    struct tbd_buffer coded;       /* what product.coded points to */
    struct tbd_page_bases bases;   /* of a lean one's pages */
    struct tbd_window_files files;
    uint64_t busy_ns;      /* to build and put it */
    bool is_built, is_put; /* kept by the pipeline */
};

struct tbd_pipeline;

/* For this many workers, and raw windows of at most `most_bytes` bytes together (a larger one comes alone); UINT64_MAX: no limit.
 * NULL without memory. */
struct tbd_pipeline *tbd_pipeline_new(unsigned workers, uint64_t most_bytes);
void tbd_pipeline_free(struct tbd_pipeline *pipeline); /* no thread uses it any more */
/* Called by the reader: adds a window, takes over its memory; `builder` has begun it (or NULL).
 * Waits for a free slot. */
void tbd_pipeline_add(struct tbd_pipeline *pipeline, const struct tbd_raw_window *raw,
                      struct tbd_builder *builder);
/* Called by the reader: offers the part of the window being collected that is there, to be built
 * with `builder`.  Only the pipeline uses that builder until the window is added, and `raw` does
 * not move until the offer is withdrawn. */
void tbd_pipeline_offer(struct tbd_pipeline *pipeline, const struct tbd_raw_window *raw,
                        struct tbd_builder *builder);
/* Takes the offer back: afterwards no worker uses it. */
void tbd_pipeline_withdraw(struct tbd_pipeline *pipeline);
/* Will a window like the last one be pressed? */
bool tbd_pipeline_is_pressed(struct tbd_pipeline *pipeline);
/* Nothing more comes.  Returns how many windows are not committed yet. */
uint64_t tbd_pipeline_close(struct tbd_pipeline *pipeline);
/* Called by a worker that has done *step of *job (TBD_STEP_NONE: it begins): the next step.  Waits
 * for one.  False: no more windows come, and everything is committed. */
bool tbd_pipeline_next(struct tbd_pipeline *pipeline, struct tbd_job **job, enum tbd_step *step);
/* The step is done, but the worker does something else before it asks for the next; other workers
 * take the steps that this one made possible. */
void tbd_pipeline_done(struct tbd_pipeline *pipeline, struct tbd_job **job, enum tbd_step *step);

#endif
