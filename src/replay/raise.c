// SPDX-License-Identifier: MIT
/* raise.c - writes the events of windows to disk again
 *
 * A replayed window has everything that play's had except the backlinks of its summaries.  At level
 * 2 the TOC still has them.  At level 1 it only says which words and blocks occurred; then all
 * earlier windows are read once, for these bits. */
#include "replay/raise.h"

#include "format/merging/change.h"
#include "format/window/window.h"
#include "format/reading/window_read.h"
#include "organizer/backlink_heads.h"
#include "replay/slices.h"

#include <stdlib.h>

struct raise_run {
    struct tbd_trace *trace;
    struct tbd_replayer *replayer;
    struct tbd_writer *writer;
    struct tbd_backlink_heads *heads; /* for the windows before `next`; NULL until needed */
    uint32_t next;
    enum tbd_level level; /* wanted */
};

static struct tbd_word_summary *words_of(const struct tbd_window *window)
{
    return (struct tbd_word_summary *)(uintptr_t)window->words;
}

static struct tbd_block_summary *blocks_of(const struct tbd_window *window)
{
    return (struct tbd_block_summary *)(uintptr_t)window->block_summaries;
}

static enum tbd_status pass_window(struct raise_run *r, struct tbd_window *window)
{
    enum tbd_status status =
        tbd_backlink_heads_words(r->heads, window->number, words_of(window), window->word_count);

    if (!status)
        status = tbd_backlink_heads_blocks(r->heads, window->number, blocks_of(window),
                                           window->block_summary_count);
    r->next = window->index + 1;
    return status;
}

/* Finds backlinks in the earlier windows. */
static enum tbd_status find_links(struct raise_run *r, struct tbd_window *window,
                                  struct tbd_error *why)
{
    enum tbd_status status = TBD_OK;

    if (!r->heads)
        r->heads = tbd_backlink_heads_new();
    if (!r->heads)
        return TBD_NOMEM;
    while (r->next < window->index && !status) {
        struct tbd_window *before;

        status = tbd_window_load_summaries(r->trace, r->next, &before, why);
        if (!status) {
            status = pass_window(r, before);
            tbd_window_free(before);
        }
    }
    return status ? status : pass_window(r, window);
}

/* Replaces indices by numbers, which files use. */
static void number_links(const struct tbd_trace *trace, struct tbd_window *window)
{
    struct tbd_word_summary *words = words_of(window);
    struct tbd_block_summary *blocks = blocks_of(window);

    for (size_t i = 0; i < window->word_count; i++)
        if (words[i].previous)
            words[i].previous = tbd_trace_window(trace, words[i].previous - 1)->number + 1;
    for (size_t i = 0; i < window->block_summary_count; i++)
        if (blocks[i].previous)
            blocks[i].previous = tbd_trace_window(trace, blocks[i].previous - 1)->number + 1;
}

static enum tbd_status raise_window(struct raise_run *r, uint32_t index,
                                    struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_change change = { 0 };
    bool has_counts = tbd_trace_window(r->trace, index)->level > TBD_LEVEL_BITS;
    struct tbd_window *window;
    enum tbd_status status = (has_counts ? tbd_replay_events : tbd_replay_full)(
        r->replayer, 0, index, TBD_HOOKS_FULL, &window, divergence, why);

    if (status)
        return status;
    if (has_counts)
        number_links(r->trace, window);
    else
        status = find_links(r, window, why);
    if (!status)
        status = tbd_change_raise(r->trace, r->writer, window, r->level, &change, why);
    if (!status)
        status = tbd_change_commit(r->writer, &change);
    tbd_change_free(&change);
    tbd_window_free(window);
    return status;
}

bool tbd_raise_is_possible(const struct tbd_trace *trace, uint32_t window, enum tbd_level level)
{
    const struct tbd_window_summary *summary = tbd_trace_window(trace, window);

    return summary->level < level && summary->span == 1 && tbd_slice_count(trace, window) <= 1;
}

enum tbd_status tbd_raise_windows(struct tbd_trace *trace, struct tbd_replayer *replayer,
                                  struct tbd_writer *writer, uint32_t from, uint32_t to,
                                  enum tbd_level level, struct tbd_divergence *divergence,
                                  struct tbd_error *why)
{
    struct raise_run r = { .trace = trace, .replayer = replayer, .writer = writer, .level = level };
    enum tbd_status status = TBD_OK;

    for (uint32_t i = from; i <= to && !status; i++)
        if (tbd_raise_is_possible(trace, i, level))
            status = raise_window(&r, i, divergence, why);
    tbd_backlink_heads_free(r.heads);
    return status;
}
