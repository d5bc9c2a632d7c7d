// SPDX-License-Identifier: MIT
/* toc_summaries.c - reads one summary of a window from its TOC, which stays open */
#include "format/reading/window_read.h"

#include "format/summaries/stamps.h"
#include "format/summaries/summaries.h"
#include "format/trace/open_tocs.h"
#include "format/trace/trace_handle.h"
#include "format/trace/trace_index.h"

#include <stdlib.h>

/* The window's TOC, with the trace locked; on failure it is not locked. */
static enum tbd_status lock_toc(struct tbd_trace *trace, uint32_t window, struct tbd_toc **out)
{
    enum tbd_status status;

    tbd_trace_lock(trace);
    status = tbd_open_toc_locked(trace, window, out);
    if (status)
        tbd_trace_unlock(trace);
    return status;
}

enum tbd_status tbd_trace_find_word(struct tbd_trace *trace, uint32_t window, uint64_t word,
                                    struct tbd_word_summary *out)
{
    struct tbd_toc *toc;
    enum tbd_status status = lock_toc(trace, window, &toc);

    if (status)
        return status;
    if (toc->words.payload) {
        status = tbd_words_find(&toc->words, toc->meta.window.window, word & ~7ull, out);
        out->previous = status ? 0 : tbd_trace_place_of(trace, out->previous);
    } else {
        *out = (struct tbd_word_summary){ .word = word & ~7ull, .count = 1 };
        status = tbd_word_bits_find(&toc->word_bits, word);
    }
    tbd_trace_unlock(trace);
    return status;
}

enum tbd_status tbd_trace_find_block(struct tbd_trace *trace, uint32_t window, uint32_t id,
                                     struct tbd_block_summary *out)
{
    struct tbd_toc *toc;
    enum tbd_status status = lock_toc(trace, window, &toc);

    if (status)
        return status;
    if (toc->block_summaries.payload) {
        status = tbd_block_summaries_find(&toc->block_summaries, toc->meta.window.window, id, out);
        out->previous = status ? 0 : tbd_trace_place_of(trace, out->previous);
    } else {
        *out = (struct tbd_block_summary){ .id = id, .count = 1 };
        status = tbd_block_bits_find(&toc->block_bits, id);
        out->enters = tbd_block_bits_find(&toc->called_bits, id) == TBD_OK;
    }
    tbd_trace_unlock(trace);
    return status;
}

enum tbd_status tbd_trace_stamps(struct tbd_trace *trace, uint32_t window, struct tbd_stamp **out,
                                 size_t *out_count)
{
    struct tbd_toc *toc;
    enum tbd_status status = lock_toc(trace, window, &toc);
    size_t most;

    *out = NULL;
    *out_count = 0;
    if (status)
        return status;
    most = tbd_stamps_most(&toc->stamps);
    if (most)
        *out = calloc(most, sizeof(**out));
    if (most && !*out)
        status = TBD_NOMEM;
    else if (most && !tbd_stamps_get(&toc->stamps, toc->meta.window.blocks, *out, out_count))
        status = TBD_CORRUPT;
    tbd_trace_unlock(trace);
    if (status) {
        free(*out);
        *out = NULL;
        *out_count = 0;
    }
    return status;
}
