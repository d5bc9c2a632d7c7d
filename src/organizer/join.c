// SPDX-License-Identifier: MIT
/* join.c - see join.h
 *
 * Invariants
 * JOIN-1  One thread at a time, in the order of windows, uses everything here: `heads`, the
 *     counters and what one window hands on to the next. `lock` guards only the writer, `started`
 *     and `blocks_written`, and is not taken while backlinks are made. (not checked: threads: tsan
 *     does) */
#include "organizer/join.h"

#include "organizer/backlink_heads.h"
#include "organizer/mapped_files.h"
#include "organizer/thread_states.h"
#include "base/binary_search.h"
#include "format/files/numbers.h"
#include "format/merging/index_write.h"
#include "format/trace/trace_handle.h"
#include "format/trace/trace_index.h"
#include "format/window/window_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct tbd_join {
    struct tbd_writer *writer; /* borrowed, like the next three */
    pthread_mutex_t *lock;     /* others use the writer, too */
    struct tbd_block_table *table;
    const struct tbd_stream_head *head;
    uint64_t budget;                  /* bytes, for the trace's configuration */
    struct tbd_backlink_heads *heads; /* owned */
    uint32_t windows;                 /* so far */
    uint64_t next_time;
    uint32_t blocks_written;
    struct tbd_end_state state; /* at the end of the window before */
    struct tbd_trace *from; /* has dropped the windows before; NULL: there were none; borrowed */
    struct tbd_called called;
    struct tbd_mapped_files mapped;
    uint64_t realtime_ns; /* at the program's start */
    uint64_t *lost;       /* pages of a dump that the disk has no space for, ascending */
    size_t lost_count;
    uint32_t lost_blocks; /* of a dump, that are in its rings alone: the disk had no space */
    uint32_t lost_files;  /* of a dump, that the disk had no space to copy */
    bool is_dump;
    bool started;
    bool has_windows;
    bool has_end;
    struct tbd_msg_end end;
    char end_text[256];
    bool has_end_siginfo;
    uint8_t end_siginfo[TBD_SIGINFO_BYTES];
};

/* ---- after windows that were dropped ---- */

bool tbd_join_after(struct tbd_join *join, struct tbd_trace *from, const struct tbd_window *first)
{
    const struct tbd_disk_base *base = &tbd_trace_index(from)->base;
    const struct tbd_window before = { .end_regs = first->regs,
                                       .end_xsave = first->xsave,
                                       .end_threads = first->threads,
                                       .end_thread_count = first->thread_count };

    join->from = from;
    join->windows = base->window;
    join->next_time = base->first_time;
    return tbd_end_state_take(&join->state, &before);
}

static enum tbd_status take_base(struct tbd_join *join)
{
    const struct tbd_trace_index *index = tbd_trace_index(join->from);

    for (size_t i = 0; i < index->module_count; i++)
        (void)tbd_writer_module(join->writer, index->modules[i].path, index->modules[i].disk.inode,
                                index->modules[i].disk.device);
    return tbd_base_give(join->from, join->writer);
}

/* ---- windows ---- */

static enum tbd_status write_blocks_locked(struct tbd_join *join, uint32_t highest_id)
{
    enum tbd_status status =
        tbd_writer_blocks(join->writer, join->table, join->blocks_written + 1, highest_id);

    if (!status && highest_id > join->blocks_written)
        join->blocks_written = highest_id;
    return status;
}

static enum tbd_status note_lost(struct tbd_join *join, const struct tbd_page_contents *pages,
                                 size_t count)
{
    if (!count)
        return TBD_OK;
    join->lost = malloc(count * sizeof(*join->lost));
    if (!join->lost)
        return TBD_NOMEM;
    for (size_t i = 0; i < count; i++)
        join->lost[i] = pages[i].address;
    join->lost_count = tbd_numbers_sort_unique(join->lost, count);
    return TBD_OK;
}

/* If there is no space for all blocks, those that are entered: rings have their own. */
static enum tbd_status put_dump_blocks(struct tbd_join *join, const struct tbd_window *window,
                                       uint32_t highest_id)
{
    enum tbd_status status = write_blocks_locked(join, highest_id);

    if (status != TBD_NOSPACE)
        return status;
    status = TBD_OK;
    for (size_t i = 0; i < window->block_summary_count && !status; i++)
        status = tbd_writer_blocks(join->writer, join->table, window->block_summaries[i].id,
                                   window->block_summaries[i].id);
    if (!status)
        join->lost_blocks = highest_id - (uint32_t)window->block_summary_count;
    join->blocks_written = highest_id;
    return status;
}

/* A dump's blocks go first, then its pages, stacks before the rest: of these as many as there is space for.  Without them
 * there are still registers.  Halving takes no longer in all than twice the first attempt. */
static enum tbd_status put_dump(struct tbd_join *join, const struct tbd_product *product,
                                uint32_t highest_id)
{
    enum tbd_status status = put_dump_blocks(join, product->window, highest_id);
    size_t count = product->image_count;

    if (status)
        return status;
    status = tbd_writer_image(join->writer, NULL, product->image, count);
    while (status == TBD_NOSPACE && count) {
        count /= 2;
        status = tbd_writer_image(join->writer, NULL, product->image, count);
    }
    return status ? status : note_lost(join, product->image + count, product->image_count - count);
}

static enum tbd_status put_image(struct tbd_join *join, const struct tbd_product *product,
                                 uint32_t highest_id)
{
    if (join->from)
        return take_base(join);
    return join->is_dump
               ? put_dump(join, product, highest_id)
               : tbd_writer_image(join->writer, NULL, product->image, product->image_count);
}

static enum tbd_status join_start(struct tbd_join *join, const struct tbd_product *product,
                                  uint32_t highest_id)
{
    struct tbd_msg_start start;
    struct tbd_disk_config config = {
        .window_blocks = join->head->window_blocks,
        .hook_set = join->head->hook_set,
        .budget = join->budget,
        .flags = (join->head->flags & TBD_STREAM_ONLY_COUNTS ? TBD_CONFIG_COUNT_LATER : 0) |
                 (join->head->flags & TBD_STREAM_NATIVE ? TBD_CONFIG_COUNT_STOPS : 0) |
                 (join->head->flags & TBD_STREAM_OWN_CODE ? TBD_CONFIG_OWN_CODE : 0),
    };
    enum tbd_status status;

    if (join->started)
        return TBD_OK;
    if (!product->start)
        return TBD_CORRUPT;
    memcpy(&start, product->start, sizeof(start));
    join->realtime_ns = start.realtime_ns;
    join->is_dump = start.flags & TBD_START_DUMP;
    status = tbd_writer_start(join->writer, product->start, product->start_bytes, &config);
    if (!status)
        status = put_image(join, product, highest_id);
    join->started = !status;
    return status;
}

static void join_note(struct tbd_join *join, const struct tbd_disk_when *when, const char *text)
{
    char note[600];
    uint32_t severity = 1;

    memcpy(note, &severity, sizeof(severity));
    snprintf(note + sizeof(severity), sizeof(note) - sizeof(severity), "%s", text);
    tbd_writer_event(join->writer, TBD_REC_NOTE, when, note,
                     sizeof(severity) + strlen(note + sizeof(severity)) + 1);
}

/* The program's pages of such a file are in the stream (hooks/memory/unlinked_files.h). */
static bool is_deleted(const char *path)
{
    static const char end[] = " (deleted)";
    size_t length = strlen(path);

    return length >= sizeof(end) && !strcmp(path + length - (sizeof(end) - 1), end);
}

/* Replays of native play need the file: the stream has only pages that are not the file's. */
static enum tbd_status keep_file(struct tbd_join *join, const struct tbd_disk_when *when,
                                 const struct tbd_msg_region *region, const char *path)
{
    enum tbd_status status = tbd_writer_module(join->writer, path, region->inode, region->device);
    char text[500];

    if (join->is_dump && status == TBD_NOSPACE)
        join->lost_files++;
    if (!status || !(join->head->flags & TBD_STREAM_OWN_CODE) || is_deleted(path))
        return TBD_OK;
    if (status != TBD_NOTFOUND)
        return status;
    snprintf(text, sizeof(text), "the file was not kept, replays that read it diverge: %.400s",
             path);
    join_note(join, when, text);
    return TBD_OK;
}

static bool has_lost_pages(const struct tbd_join *join, const struct tbd_msg_region *region)
{
    size_t first = TBD_COUNT_BEFORE(i, join->lost_count, join->lost[i] < region->start);

    return first < join->lost_count && join->lost[first] < region->end;
}

/* A mapping with pages that were lost has no others than the image: the rest is not known. */
static enum tbd_status put_region(struct tbd_join *join, const struct tbd_disk_when *when,
                                  const struct tbd_side_message *side)
{
    struct tbd_msg_region region;
    uint8_t *changed;

    memcpy(&region, side->payload, sizeof(region));
    if (!has_lost_pages(join, &region)) {
        tbd_writer_event(join->writer, TBD_REC_REGION, when, side->payload, side->bytes);
        return TBD_OK;
    }
    changed = malloc(side->bytes);
    if (!changed)
        return TBD_NOMEM;
    region.flags = (region.flags | TBD_REGION_PARTIAL) & ~TBD_REGION_ANON_ZERO;
    memcpy(changed, side->payload, side->bytes);
    memcpy(changed, &region, sizeof(region));
    tbd_writer_event(join->writer, TBD_REC_REGION, when, changed, side->bytes);
    free(changed);
    return TBD_OK;
}

static enum tbd_status join_region(struct tbd_join *join, const struct tbd_disk_when *when,
                                   const struct tbd_side_message *side)
{
    const char *path = (const char *)side->payload + sizeof(struct tbd_msg_region);
    enum tbd_status status = put_region(join, when, side);
    struct tbd_msg_region region;

    if (status)
        return status;
    memcpy(&region, side->payload, sizeof(region));
    if ((region.prot & PROT_EXEC || join->head->flags & TBD_STREAM_OWN_CODE) && region.inode &&
        *path == '/' && !(region.flags & TBD_REGION_PATCH))
        return keep_file(join, when, &region, path);
    tbd_mapped_files_add(&join->mapped, &region, path);
    return TBD_OK;
}

static void join_unmap(struct tbd_join *join, const struct tbd_disk_when *when,
                       const struct tbd_side_message *side)
{
    struct tbd_range range;

    tbd_writer_event(join->writer, TBD_REC_UNMAP, when, side->payload, side->bytes);
    memcpy(&range, side->payload, sizeof(range));
    tbd_mapped_files_remove(&join->mapped, range.start, range.end);
}

static enum tbd_status join_side(struct tbd_join *join, const struct tbd_product *product)
{
    enum tbd_status status = TBD_OK;

    for (size_t i = 0; i < product->side_count && !status; i++) {
        const struct tbd_side_message *side = &product->side[i];
        struct tbd_disk_when when = { join->windows, side->order, side->time };

        switch (side->kind) {
        case TBD_MSG_REGION: status = join_region(join, &when, side); break;
        case TBD_MSG_UNMAP: join_unmap(join, &when, side); break;
        default: tbd_writer_event(join->writer, TBD_REC_NOTE, &when, side->payload, side->bytes);
        }
    }
    return status;
}

/* The stream is damaged: the trace ends here, and says so. */
static void join_damage(struct tbd_join *join, const struct tbd_product *product)
{
    char text[300];
    struct tbd_disk_when when = { .window = join->windows, .time = product->window->blocks };

    if (!product->damaged)
        return;
    snprintf(text, sizeof(text), "the stream is damaged in window %u, %s: recording ends there",
             join->windows, product->damage);
    join_note(join, &when, text);
}

/* Gives the window its start registers, and keeps its end registers for the next window. */
static enum tbd_status join_regs(struct tbd_join *join, struct tbd_window *window,
                                 const struct tbd_product *product)
{
    if (!product->has_start_regs && !tbd_end_state_give(&join->state, window))
        return TBD_NOMEM;
    if (window->complete && !tbd_end_state_take(&join->state, window))
        return TBD_NOMEM;
    return TBD_OK;
}

static bool keep_called(const struct tbd_join *join, struct tbd_window *window)
{
    size_t bytes = join->called.count * sizeof(*join->called.threads);
    struct tbd_called_thread *called = tbd_window_memory(window, bytes);

    if (!called)
        return false;
    if (bytes)
        memcpy(called, join->called.threads, bytes);
    window->called = called;
    window->called_count = join->called.count;
    return true;
}

/* A window that begins with a block of a thread whose last one, in an earlier window, was a call. */
static enum tbd_status join_threads(struct tbd_join *join, const struct tbd_product *product)
{
    struct tbd_window *window = product->window;
    bool had_turns = product->thread_messages || (join->from && !join->has_windows);

    if (window->thread_count && !keep_called(join, window))
        return TBD_NOMEM;
    if (!tbd_turns_join(&product->turns, &join->called, window))
        return TBD_NOMEM;
    return tbd_threads_note(join->writer, window, had_turns) ? TBD_OK : TBD_NOMEM;
}

/* Makes backlinks to where words and blocks occurred last: this takes longest, and needs no
 * lock. */
static enum tbd_status join_summaries(struct tbd_join *join, struct tbd_window *window)
{
    enum tbd_status status;

    if (window->is_uncounted) /* nobody asks level 1 for backlinks, and raising makes them */
        return TBD_OK;
    status = tbd_backlink_heads_words(join->heads, join->windows,
                                      (struct tbd_word_summary *)(uintptr_t)window->words,
                                      window->word_count);

    return status ? status
                  : tbd_backlink_heads_blocks(
                        join->heads, join->windows,
                        (struct tbd_block_summary *)(uintptr_t)window->block_summaries,
                        window->block_summary_count);
}

enum tbd_status tbd_join_blocks(struct tbd_join *join, uint32_t highest_id)
{
    enum tbd_status status = TBD_OK;

    pthread_mutex_lock(join->lock);
    if (join->started)
        status = write_blocks_locked(join, highest_id);
    pthread_mutex_unlock(join->lock);
    return status;
}

static enum tbd_status join_kept_locked(struct tbd_join *join, struct tbd_product *product,
                                        uint32_t highest_id)
{
    struct tbd_window *window = product->window;
    enum tbd_status status;

    window->index = window->number = join->windows;
    window->first_time = join->next_time;
    product->counts.first_time = join->next_time;
    status = join_regs(join, window, product);
    if (!status)
        status = join_threads(join, product);
    if (!status)
        status = write_blocks_locked(join, highest_id);
    if (status)
        return status;
    join->has_windows = true;
    join->next_time += window->blocks;
    join->windows++;
    return TBD_OK;
}

static bool is_worth_keeping(const struct tbd_window *window)
{
    return window->entry_count || window->blocks || window->dirty_count || window->gone_count;
}

/* The files of a dump's one window are still to be written. */
static void finish_dump(struct tbd_join *join, const struct tbd_product *product)
{
    const struct tbd_disk_when when = { .window = join->windows };
    char text[120];

    if (!join->is_dump)
        return;
    if (join->lost_count && product->image_count) {
        snprintf(text, sizeof(text),
                 "the disk is full: %zu of %zu pages of memory are not in this dump",
                 join->lost_count, product->image_count);
        join_note(join, &when, text);
    }
    if (join->lost_blocks != 0) {
        snprintf(text, sizeof(text), "the disk is full: %u blocks are in the rings alone",
                 join->lost_blocks);
        join_note(join, &when, text);
    }
    if (join->lost_files != 0) {
        snprintf(text, sizeof(text), "the disk is full: copies of %u files are not in this dump",
                 join->lost_files);
        join_note(join, &when, text);
    }
    tbd_writer_use_reserve(join->writer);
}

static enum tbd_status join_locked(struct tbd_join *join, struct tbd_product *product,
                                   uint32_t highest_id, bool *out_keep)
{
    enum tbd_status status = join_start(join, product, highest_id);

    if (status)
        return status;
    if (product->has_end) {
        join->has_end = true;
        join->end = product->end;
        memcpy(join->end_text, product->end_text, sizeof(product->end_text));
        join->has_end_siginfo = product->end_siginfo != NULL;
        if (product->end_siginfo)
            memcpy(join->end_siginfo, product->end_siginfo, sizeof(join->end_siginfo));
    }
    status = join_side(join, product);
    finish_dump(join, product);
    join_damage(join, product);
    if (status || !is_worth_keeping(product->window))
        return status;
    status = join_kept_locked(join, product, highest_id);
    *out_keep = !status;
    return status;
}

enum tbd_status tbd_join_window(struct tbd_join *join, struct tbd_product *product,
                                uint32_t highest_id, bool *out_keep)
{
    enum tbd_status status = TBD_OK;

    *out_keep = false;
    if (is_worth_keeping(product->window))
        status = join_summaries(join, product->window);
    if (status)
        return status;
    pthread_mutex_lock(join->lock);
    status = join_locked(join, product, highest_id, out_keep);
    pthread_mutex_unlock(join->lock);
    return status;
}

/* ---- the whole ---- */

struct tbd_join *tbd_join_new(struct tbd_writer *writer, pthread_mutex_t *lock,
                              struct tbd_block_table *table, const struct tbd_stream_head *head,
                              uint64_t budget)
{
    struct tbd_join *join = calloc(1, sizeof(*join));

    if (!join)
        return NULL;
    *join = (struct tbd_join){ .writer = writer,
                               .lock = lock,
                               .table = table,
                               .head = head,
                               .budget = budget,
                               .heads = tbd_backlink_heads_new() };
    if (join->heads)
        return join;
    free(join);
    return NULL;
}

void tbd_join_free(struct tbd_join *join)
{
    if (!join)
        return;
    tbd_backlink_heads_free(join->heads);
    tbd_mapped_files_free(&join->mapped);
    tbd_end_state_free(&join->state);
    free(join->called.threads);
    free(join->lost);
    free(join);
}

bool tbd_join_has_started(const struct tbd_join *join)
{
    return join->started;
}

const uint8_t *tbd_join_end_siginfo(const struct tbd_join *join)
{
    return join->has_end_siginfo ? join->end_siginfo : NULL;
}

bool tbd_join_end(const struct tbd_join *join, struct tbd_msg_end *out, char *out_text,
                  size_t bytes)
{
    if (!join->has_end)
        return false;
    *out = join->end;
    snprintf(out_text, bytes, "%s", join->end_text);
    return true;
}

void tbd_join_keep_files(struct tbd_join *join)
{
    tbd_mapped_files_keep(&join->mapped, join->writer, join->realtime_ns);
}
