// SPDX-License-Identifier: MIT
/* open_tocs.c - TOCs that stay open for a while, and what one of them says */
#include "format/pages/pages_private.h"
#include "format/summaries/summaries.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void close_toc(struct tbd_trace *trace, size_t window)
{
    if (!trace->tocs[window])
        return;
    tbd_toc_close(trace->tocs[window]);
    free(trace->tocs[window]);
    trace->tocs[window] = NULL;
    trace->toc_count--;
}

void tbd_trace_forget_toc(struct tbd_trace *trace, uint32_t window)
{
    pthread_mutex_lock(&trace->lock);
    if (window < trace->toc_slots)
        close_toc(trace, window);
    tbd_page_kept_forget_locked(trace, window);
    pthread_mutex_unlock(&trace->lock);
}

void tbd_pages_free(struct tbd_trace *trace)
{
    tbd_page_history_free(&trace->history);
    for (size_t i = 0; i < trace->toc_slots; i++)
        close_toc(trace, i);
    free(trace->tocs);
    free(trace->kept);
    for (size_t i = 0; i < trace->copy_count; i++)
        munmap((void *)(uintptr_t)trace->copies[i].bytes, trace->copies[i].size);
    free(trace->copies);
    tbd_toc_close(&trace->image);
}

/* Makes room for `window` in the list. */
static bool reserve_tocs(struct tbd_trace *trace, uint32_t window)
{
    size_t slots = window + window / 2 + 64;
    struct toc **grown;

    if (window < trace->toc_slots)
        return true;
    grown = realloc(trace->tocs, slots * sizeof(*grown));
    if (!grown)
        return false;
    memset(grown + trace->toc_slots, 0, (slots - trace->toc_slots) * sizeof(*grown));
    trace->tocs = grown;
    trace->toc_slots = slots;
    return true;
}

/* Too many are open: those that were not used for longest are closed, half of all. */
static void close_old_tocs(struct tbd_trace *trace)
{
    for (size_t i = 0; i < trace->toc_slots; i++)
        if (trace->tocs[i] && trace->toc_clock - trace->tocs[i]->used > TOC_CACHE / 2)
            close_toc(trace, i);
}

struct toc *tbd_toc_of_locked(struct tbd_trace *trace, uint32_t window)
{
    struct toc *toc;

    trace->toc_failure = TBD_NOWINDOW;
    if (window >= trace->window_count) /* a forged mapping says when it was made */
        return NULL;
    trace->toc_failure = TBD_NOMEM;
    if (!reserve_tocs(trace, window))
        return NULL;
    toc = trace->tocs[window];
    if (toc) {
        toc->used = trace->toc_clock;
        return toc;
    }
    if (trace->toc_count >= TOC_CACHE)
        close_old_tocs(trace);
    toc = malloc(sizeof(*toc));
    trace->toc_failure = toc ? tbd_toc_open(trace, window, toc, &trace->page_why) : TBD_NOMEM;
    if (trace->toc_failure) {
        free(toc);
        return NULL;
    }
    toc->page_why = &trace->page_why;
    toc->used = ++trace->toc_clock;
    trace->tocs[window] = toc;
    trace->toc_count++;
    return toc;
}

/* The window's table, with the trace locked; NULL: `out_status` says why, and nothing is locked. */
static const struct toc *lock_toc(struct tbd_trace *trace, uint32_t window,
                                  enum tbd_status *out_status)
{
    const struct toc *toc;

    *out_status = TBD_NOWINDOW;
    if (window >= trace->window_count)
        return NULL;
    pthread_mutex_lock(&trace->lock);
    toc = tbd_toc_of_locked(trace, window);
    *out_status = trace->toc_failure;
    if (!toc)
        pthread_mutex_unlock(&trace->lock);
    return toc;
}

enum tbd_status tbd_trace_find_word(struct tbd_trace *trace, uint32_t window, uint64_t word,
                                    struct tbd_word_summary *out)
{
    enum tbd_status status;
    const struct toc *toc = lock_toc(trace, window, &status);

    if (!toc)
        return status;
    if (toc->words.payload) {
        status = tbd_words_find(&toc->words, toc->meta.window.window, word & ~7ull, out);
        out->previous = status ? 0 : tbd_place_of(trace, out->previous);
    } else {
        *out = (struct tbd_word_summary){ .word = word & ~7ull, .count = 1 };
        status = tbd_word_bits_find(&toc->word_bits, word);
    }
    pthread_mutex_unlock(&trace->lock);
    return status;
}

enum tbd_status tbd_trace_find_block(struct tbd_trace *trace, uint32_t window, uint32_t id,
                                     struct tbd_block_summary *out)
{
    enum tbd_status status;
    const struct toc *toc = lock_toc(trace, window, &status);

    if (!toc)
        return status;
    if (toc->block_summaries.payload) {
        status = tbd_block_summaries_find(&toc->block_summaries, toc->meta.window.window, id, out);
        out->previous = status ? 0 : tbd_place_of(trace, out->previous);
    } else {
        *out = (struct tbd_block_summary){ .id = id, .count = 1 };
        status = tbd_block_bits_find(&toc->block_bits, id);
        out->enters = tbd_block_bits_find(&toc->called_bits, id) == TBD_OK;
    }
    pthread_mutex_unlock(&trace->lock);
    return status;
}
