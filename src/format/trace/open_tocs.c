// SPDX-License-Identifier: MIT
/* open_tocs.c - see open_tocs.h
 *
 * Invariants
 * OPEN_TOCS-1  A TOC does not move until others are opened, however the list grows. (not checked: a
 *     reader under asan would tell) */
#include "format/trace/trace_private.h"

#include <stdlib.h>

#define OPEN_MOST 4096u

static void close_toc(struct tbd_open_tocs *open, size_t window)
{
    if (!open->tocs[window])
        return;
    tbd_toc_close(open->tocs[window]);
    free(open->tocs[window]);
    open->tocs[window] = NULL;
    open->count--;
}

void tbd_trace_forget_toc(struct tbd_trace *trace, uint32_t window)
{
    pthread_mutex_lock(&trace->lock);
    if (window < trace->open_tocs.slots)
        close_toc(&trace->open_tocs, window);
    for (size_t i = 0; i < TBD_TRACE_PART_COUNT; i++)
        if (trace->parts[i].part && trace->parts[i].class->forget_window)
            trace->parts[i].class->forget_window(trace->parts[i].part, window);
    pthread_mutex_unlock(&trace->lock);
}

void tbd_open_tocs_free(struct tbd_open_tocs *open)
{
    for (size_t i = 0; i < open->slots; i++)
        close_toc(open, i);
    free(open->tocs);
    tbd_toc_close(&open->image);
}

/* Extends the list to `window`. */
static bool reserve(struct tbd_open_tocs *open, uint32_t window)
{
    size_t slots = window + window / 2 + 64;
    struct tbd_toc **grown;

    if (window < open->slots)
        return true;
    grown = realloc(open->tocs, slots * sizeof(*grown));
    if (!grown)
        return false;
    memset(grown + open->slots, 0, (slots - open->slots) * sizeof(*grown));
    open->tocs = grown;
    open->slots = slots;
    return true;
}

/* Too many are open: closes the least recently used half. */
static void close_old(struct tbd_open_tocs *open)
{
    for (size_t i = 0; i < open->slots; i++)
        if (open->tocs[i] && open->clock - open->tocs[i]->used > OPEN_MOST / 2)
            close_toc(open, i);
}

static enum tbd_status open_toc(struct tbd_trace *trace, uint32_t window, struct tbd_toc **out)
{
    struct tbd_open_tocs *open = &trace->open_tocs;
    struct tbd_toc *toc;
    enum tbd_status status;

    if (open->count >= OPEN_MOST)
        close_old(open);
    toc = malloc(sizeof(*toc));
    if (!toc)
        return TBD_NOMEM;
    status = tbd_toc_open(trace, window, toc, &open->page_why);
    if (status) {
        free(toc);
        return status;
    }
    toc->page_why = &open->page_why;
    toc->used = ++open->clock;
    open->tocs[window] = *out = toc;
    open->count++;
    return TBD_OK;
}

enum tbd_status tbd_open_toc_locked(struct tbd_trace *trace, uint32_t window, struct tbd_toc **out)
{
    struct tbd_open_tocs *open = &trace->open_tocs;

    *out = NULL;
    if (window >= trace->index.window_count) /* a forged mapping can name any window */
        return TBD_NOWINDOW;
    if (!reserve(open, window))
        return TBD_NOMEM;
    *out = open->tocs[window];
    if (!*out)
        return open_toc(trace, window, out);
    (*out)->used = open->clock;
    return TBD_OK;
}

enum tbd_status tbd_open_image_locked(struct tbd_trace *trace, struct tbd_toc **out)
{
    struct tbd_open_tocs *open = &trace->open_tocs;

    if (!open->image_tried) {
        open->image_tried = true;
        open->image_failure = tbd_image_open(trace, &open->image, &open->image_why);
        open->image.page_why = &open->page_why;
    }
    if (open->image_failure)
        open->page_why = open->image_why;
    *out = &open->image;
    return open->image_failure;
}

struct tbd_error *tbd_page_why_locked(struct tbd_trace *trace)
{
    return &trace->open_tocs.page_why;
}
