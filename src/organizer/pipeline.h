// SPDX-License-Identifier: MIT
/* pipeline.h - windows in work: what is to be done next
 *
 *   reader --add--> build (alone) -> join (in order) -> put (alone) -> commit (in order)
 *      '----offer-> early (the window that is being collected), if nothing else is to be done
 *
 * Workers ask for a step, do it, and ask again.  Nobody waits for the turn of a window: who has built one whose turn to be
 * joined has not come takes up another one, and whoever joins the one before goes on with this one. */
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
    TBD_STEP_EARLY,  /* of a window that is being collected: what is there is built */
};

/* A window in work: belongs to whoever does a step of it, and to nobody else. */
struct tbd_job {
    uint64_t number;        /* counted from 0 */
    bool is_pressed;        /* with its events it would be built too late, or others would */
    bool is_lean;           /* without its events: who builds it decides */
    bool keep;              /* it goes into the trace */
    enum tbd_status status; /* of the steps done */
    uint32_t highest_id;
    size_t entry_count, raw_bytes; /* of `raw`, as it came */
    struct tbd_raw_window raw;     /* until it is built */
    struct tbd_builder *builder;   /* has begun it early; NULL: nobody has */
    struct tbd_product product;    /* from then on */
    struct tbd_buffer coded;       /* what product.coded points to */
    struct tbd_page_bases bases;   /* of a lean one's pages */
    struct tbd_window_files files;
    uint64_t busy_ns;      /* to build and put it */
    bool is_built, is_put; /* kept by the pipeline */
};

struct tbd_pipeline;

/* For so many workers. NULL without memory. */
struct tbd_pipeline *tbd_pipeline_new(unsigned workers);
void tbd_pipeline_free(struct tbd_pipeline *pipeline); /* nobody is in it any more */
/* The reader: another window, whose memory it takes over, and that `builder` has begun (or NULL).  Waits for a place. */
void tbd_pipeline_add(struct tbd_pipeline *pipeline, const struct tbd_raw_window *raw,
                      struct tbd_builder *builder);
/* The reader: of the window that is being collected so much is there, for `builder`.  Nobody else uses that builder until the window is
 * added, and what is there stays where it is until the offer is withdrawn. */
void tbd_pipeline_offer(struct tbd_pipeline *pipeline, const struct tbd_raw_window *raw,
                        struct tbd_builder *builder);
/* Nobody is at what was offered, or comes to it. */
void tbd_pipeline_withdraw(struct tbd_pipeline *pipeline);
/* Will a window like the last one be pressed? */
bool tbd_pipeline_is_pressed(struct tbd_pipeline *pipeline);
/* Nothing more comes.  Returns how many windows are not committed yet. */
uint64_t tbd_pipeline_close(struct tbd_pipeline *pipeline);
/* A worker: the step *job, *step is done (TBD_STEP_NONE: it begins), which is the next?  Waits for one.  False: no more comes,
 * and everything is committed. */
bool tbd_pipeline_next(struct tbd_pipeline *pipeline, struct tbd_job **job, enum tbd_step *step);
/* The step is done, but the worker has something else to do before it asks for the next; what becomes possible others do
 * meanwhile. */
void tbd_pipeline_done(struct tbd_pipeline *pipeline, struct tbd_job **job, enum tbd_step *step);

#endif
