// SPDX-License-Identifier: MIT
/* full.c - full replay: the stream of a replay process becomes a window
 *
 * The organizer's code consumes the stream, so a replayed window is made in the same way as a
 * recorded one.  Blocks get the trace's ids.  With load events they are in a separate table,
 * because then a block has the same record but more ops. */
#include "replay/full.h"

#include "format/window/window_make.h"
#include "replay/compare.h"
#include "replay/run_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- limits of what the process may send ---- */

#define PAGES_TO_SPARE ((size_t)1 << 18) /* pages that share touch-map cells with modified ones */
#define CALL_ENTRIES   4u                /* most stream entries for a logged message */

static size_t event_bytes(const struct tbd_window *window)
{
    size_t sum = 0;

    for (size_t i = 0; i < window->log_count; i++)
        sum += tbd_message_payload_bytes(window->log[i].message);
    return sum;
}

/* The number of modified pages is not known for a window in which the program was killed. */
static size_t state_pages(const struct tbd_window *window)
{
    size_t known =
        window->dirty_count + window->gone_count + window->first_count + window->read_page_count;

    return PAGES_TO_SPARE * (window->complete ? 1 : 4) + 2 * known;
}

#define READS_OF_ONE 16u /* a gather has as many elements at most */
#define READ_BYTES   (sizeof(struct tbd_message) + sizeof(struct tbd_msg_read))

#define UNLOGGED_BYTES (sizeof(struct tbd_message) + TBD_UNLOGGED_MOST_BYTES)

/* Each piece of an instruction that the engine executes has a message in the log. */
static size_t most_reads(const struct tbd_window *window, uint32_t hooks)
{
    size_t specials = 0;

    for (size_t i = 0; (hooks & TBD_HOOK_LOADS) && i < window->log_count; i++)
        specials += tbd_message_kind(window->log[i].message) == TBD_MSG_SPECIAL;
    return specials * READS_OF_ONE;
}

/* An instruction that accesses shared memory ends its block; the log says which these are. */
static size_t most_unlogged(const struct tbd_window *window)
{
    for (size_t i = 0; i < window->log_count; i++)
        if (tbd_message_kind(window->log[i].message) == TBD_MSG_SHARED)
            return window->blocks;
    return 0;
}

struct tbd_gather_most tbd_full_most(const struct tbd_window *window, uint32_t hooks)
{
    size_t unlogged = most_unlogged(window);

    return (struct tbd_gather_most){
        .events = window->log_count,
        .event_bytes = event_bytes(window),
        .reads = most_reads(window, hooks) + (hooks & TBD_HOOK_LOADS ? unlogged * READS_OF_ONE : 0),
        .unlogged = unlogged,
        .pages = state_pages(window)
    };
}

/* Half of the machine's memory. */
static uint64_t half_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);

    return pages > 0 ? (uint64_t)pages / 2 * TBD_PAGE_SIZE : UINT64_MAX;
}

static void expect(const struct tbd_full *full)
{
    const struct tbd_worker *worker = full->worker;
    const struct tbd_window *window = worker->window;
    struct tbd_gather_most events = tbd_full_most(window, full->hooks);
    uint64_t states = worker->range.slice ? window->blocks / worker->range.slice + 2 : 1;
    uint64_t others = states * (events.pages + 2 * window->thread_count) +
                      CALL_ENTRIES * events.events + events.reads + events.unlogged;
    uint64_t bytes = window->blocks * TBD_RECORD_MAX_BYTES +
                     states * events.pages * 2 * TBD_PAGE_SIZE + CALL_ENTRIES * events.event_bytes +
                     events.reads * READ_BYTES + events.unlogged * UNLOGGED_BYTES;
    uint64_t most = worker->range.slice || full->skims ? UINT64_MAX : half_memory();

    tbd_consumer_expect(worker->consumer, window->blocks + others, bytes < most ? bytes : most);
}

enum tbd_status tbd_full_judge(enum tbd_status status, struct tbd_error *why)
{
    struct tbd_error wrong = { 0 };

    if (status == TBD_NOTFOUND)
        return TBD_OK;
    if (status != TBD_CORRUPT || !why)
        return status;
    wrong = *why;
    return tbd_process_error(why, TBD_STUBDIED, "it misbehaves: %.200s", wrong.detail);
}

/* ---- a complete window ---- */

enum tbd_status tbd_full_begin(struct tbd_full *full, struct tbd_error *why)
{
    struct tbd_worker *worker = full->worker;
    struct tbd_block_table *known = worker->window->blocks_by_id, *table = known;
    enum tbd_status status = TBD_OK;

    if (!worker->loads)
        worker->loads = tbd_block_table_new();
    if (!worker->builder)
        worker->builder = tbd_builder_new();
    if (!worker->loads || !worker->builder)
        return tbd_process_error(why, TBD_NOMEM, "no memory");
    if (full->hooks & TBD_HOOK_LOADS)
        table = worker->loads;
    if (full->hooks & TBD_HOOK_NOTES)
        table = worker->noted;
    if (!worker->consumer) {
        tbd_builder_forget(worker->builder);
        status = tbd_consumer_new(worker->process.stream_fd, table, known, &worker->consumer, why);
    }
    if (status != TBD_OK)
        return status;
    tbd_consumer_use(worker->consumer, table);
    tbd_consumer_drop(worker->consumer);
    tbd_consumer_area(worker->consumer, TBD_NO_AREA);
    expect(full);
    worker->process.published = &tbd_consumer_head(worker->consumer)->published;
    return TBD_OK;
}

static enum tbd_status begin(void *context, struct tbd_error *why)
{
    return tbd_full_begin(context, why);
}

static enum tbd_status take(void *context, struct tbd_error *why)
{
    struct tbd_full *full = context;
    struct tbd_process *process = &full->worker->process;
    enum tbd_status status = TBD_OK;

    process->seen_published = __atomic_load_n(process->published, __ATOMIC_ACQUIRE);
    while (status == TBD_OK && !full->has_raw) {
        status = tbd_consumer_take(full->worker->consumer, &full->raw, why);
        full->has_raw = status == TBD_OK;
    }
    return tbd_full_judge(status, why);
}

/* ---- the finished window ---- */

void tbd_full_fill_damage(const struct tbd_worker *worker, const struct tbd_window *window,
                          const char *what, struct tbd_divergence *divergence)
{
    divergence->position = (struct tbd_position){ window->first_time + window->blocks, 0 };
    divergence->window = worker->window->index;
    divergence->thread = 0;
    divergence->has_place = false;
    snprintf(divergence->what, sizeof(divergence->what), "%s", what);
}

static enum tbd_status understand(struct tbd_full *full, struct tbd_product *out,
                                  struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_worker *worker = full->worker;
    enum tbd_status status;

    if (!full->has_raw)
        return tbd_process_error(why, TBD_STUBDIED, "the window's stream has no end");
    status = tbd_build(worker->builder, &full->raw, tbd_consumer_plans(worker->consumer),
                       tbd_consumer_table(worker->consumer), out);
    full->has_raw = false;
    if (status != TBD_OK)
        return tbd_process_error(why, status, "the replayed window cannot be built");
    if (!out->damaged)
        return TBD_OK;
    if (divergence)
        tbd_full_fill_damage(worker, out->window, out->damage, divergence);
    tbd_process_error(why, TBD_DIVERGED, "%s", out->damage);
    tbd_product_free(out);
    return TBD_DIVERGED;
}

enum tbd_status tbd_full_replay(struct tbd_worker *worker, uint32_t hooks, struct tbd_window **out,
                                struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_full full = { .worker = worker, .hooks = hooks };
    struct tbd_run_consumer consumer = { .begin = begin, .take = take, .context = &full };
    struct tbd_product product = { 0 };
    enum tbd_status status;

    *out = NULL;
    status = tbd_run_plan(worker, hooks, NULL, 0, &consumer, divergence, why);
    if (status == TBD_OK)
        status = understand(&full, &product, divergence, why);
    if (full.has_raw)
        tbd_raw_window_free(&full.raw);
    if (status != TBD_OK)
        return status;
    *out = product.window;
    (*out)->stores = product.counts.stores;
    (*out)->calls = product.counts.calls;
    (*out)->returns = product.counts.returns;
    (*out)->index = worker->window->index;
    (*out)->regs.thread =
        worker->window->regs.thread; /* the thread in control at its start: for cursors */
    (*out)->number = worker->window->number;
    (*out)->level = TBD_LEVEL_EVENTS;
    (*out)->has_loads = (hooks & TBD_HOOK_LOADS) != 0;
    return TBD_OK;
}

/* ---- events alone ---- */

/* A page with a message in an area costs at least as much as copying seven pages from chunks. */
#define MESSAGES_MOST 400u

/* Takes the area for the window's operands.  NULL: they come in chunks, as those of slices do,
 * since the next slice runs while the last one is still in use. */
static struct tbd_operand_area *take_area(struct tbd_worker *worker)
{
    struct tbd_stream_areas where = tbd_consumer_areas(worker->consumer);
    struct tbd_operand_area *area;

    if (worker->range.slice || worker->window->log_count > MESSAGES_MOST ||
        most_unlogged(worker->window))
        return NULL;
    if (!worker->areas)
        worker->areas = tbd_areas_new(worker->process.stream_fd, &where);
    area = tbd_area_take(worker->areas);
    if (!area)
        return NULL;
    worker->process.plan->area = tbd_area_index(area);
    tbd_consumer_area(worker->consumer, tbd_area_index(area));
    return area;
}

void tbd_full_expect(struct tbd_worker *worker, uint32_t hooks)
{
    struct tbd_gather_most most = tbd_full_most(worker->window, hooks);

    tbd_gather_expect(worker->gather, &most);
}

enum tbd_status tbd_full_begin_events(void *context, struct tbd_error *why)
{
    struct tbd_full *full = context;
    struct tbd_worker *worker = full->worker;
    enum tbd_status status = tbd_full_begin(full, why);

    if (!worker->gather)
        worker->gather = tbd_gather_new();
    if (status == TBD_OK)
        status = worker->gather
                     ? tbd_gather_begin(worker->gather, worker->consumer, take_area(worker),
                                        worker->window->first_time + worker->range.from,
                                        tbd_worker_start(worker)->regs.thread)
                     : TBD_NOMEM;
    if (status == TBD_OK)
        tbd_full_expect(worker, full->hooks);
    return status == TBD_NOMEM ? tbd_process_error(why, status, "no memory") : status;
}

enum tbd_status tbd_full_take_events(void *context, struct tbd_error *why)
{
    struct tbd_full *full = context;
    struct tbd_process *process = &full->worker->process;
    enum tbd_status status;

    process->seen_published = __atomic_load_n(process->published, __ATOMIC_ACQUIRE);
    status = tbd_gather_take(full->worker->gather, why);
    return tbd_full_judge(status, why);
}

bool tbd_full_has_window(void *context)
{
    const struct tbd_full *full = context;

    return tbd_gather_is_over(full->worker->gather);
}

enum tbd_status tbd_full_finish_events(struct tbd_worker *worker, uint32_t hooks,
                                       struct tbd_window **out, struct tbd_divergence *divergence,
                                       struct tbd_error *why)
{
    struct tbd_error damage = { 0 };
    enum tbd_status status = tbd_gather_finish(worker->gather, out, &damage);

    if (*out) {
        (*out)->index = worker->window->index;
        (*out)->number = worker->window->number;
        (*out)->has_loads = (hooks & TBD_HOOK_LOADS) != 0;
    }
    if (damage.status && why)
        *why = damage;
    if (status != TBD_DIVERGED || !*out)
        return status;
    if (divergence)
        tbd_full_fill_damage(worker, *out, damage.detail, divergence);
    tbd_window_free(*out);
    *out = NULL;
    return status;
}

enum tbd_status tbd_full_events(struct tbd_worker *worker, uint32_t hooks, struct tbd_window **out,
                                struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_full full = { .worker = worker, .hooks = hooks };
    struct tbd_run_consumer consumer = { .begin = tbd_full_begin_events,
                                         .take = tbd_full_take_events,
                                         .context = &full };
    enum tbd_status status;

    *out = NULL;
    status = tbd_run_plan(worker, hooks, NULL, 0, &consumer, divergence, why);
    return status == TBD_OK ? tbd_full_finish_events(worker, hooks, out, divergence, why) : status;
}

/* ---- data that only play has ---- */

/* Both are sorted; a word that the TOC lacks gets no previous window. */
static void link_words(struct tbd_window *window, const struct tbd_window *toc)
{
    struct tbd_word_summary *words = (struct tbd_word_summary *)(uintptr_t)window->words;
    size_t at = 0;

    for (size_t i = 0; i < window->word_count; i++) {
        while (at < toc->word_count && toc->words[at].word < words[i].word)
            at++;
        if (at < toc->word_count && toc->words[at].word == words[i].word)
            words[i].previous = toc->words[at].previous;
    }
}

static void link_blocks(struct tbd_window *window, const struct tbd_window *toc)
{
    struct tbd_block_summary *blocks =
        (struct tbd_block_summary *)(uintptr_t)window->block_summaries;
    size_t at = 0;

    for (size_t i = 0; i < window->block_summary_count; i++) {
        while (at < toc->block_summary_count && toc->block_summaries[at].id < blocks[i].id)
            at++;
        if (at == toc->block_summary_count || toc->block_summaries[at].id != blocks[i].id)
            continue;
        blocks[i].previous = toc->block_summaries[at].previous;
        if (toc->level == TBD_LEVEL_BITS)
            continue;
        blocks[i].enters = toc->block_summaries[at].enters;
        blocks[i].last_enter = toc->block_summaries[at].last_enter;
    }
}

enum tbd_status tbd_full_index(struct tbd_window *window, struct tbd_error *why)
{
    size_t entry;

    if (tbd_window_index(window, &entry) == TBD_OK)
        return TBD_OK;
    return tbd_process_error(why, TBD_CORRUPT, "entry %zu of the replayed window is impossible",
                             entry);
}

enum tbd_status tbd_full_complete(struct tbd_window *window, struct tbd_window *toc,
                                  struct tbd_error *why)
{
    struct tbd_window from = *toc;

    link_words(window, toc);
    link_blocks(window, toc);
    window->early_calls = toc->early_calls;
    window->early_call_count = toc->early_call_count;
    window->stamps = toc->stamps;
    window->stamp_count = toc->stamp_count;
    window->opened = toc->opened;
    window->opened_bytes = toc->opened_bytes;
    if (toc->level == TBD_LEVEL_BITS)
        tbd_window_count_early_calls(window);
    if (!tbd_window_inherit(window, toc))
        return tbd_process_error(why, TBD_NOMEM, "no memory");
    window->regs = from.regs;
    window->xsave = from.xsave;
    window->threads = from.threads;
    window->thread_count = from.thread_count;
    window->called = from.called;
    window->called_count = from.called_count;
    window->first = from.first;
    window->first_count = from.first_count;
    window->gone = from.gone;
    window->gone_count = from.gone_count;
    window->read_pages = from.read_pages;
    window->read_page_count = from.read_page_count;
    return TBD_OK;
}
