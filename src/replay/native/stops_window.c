// SPDX-License-Identifier: MIT
/* stops_window.c - see stops_window.h
 *
 * Of block entries only the number, the first and the last matter: the replay counts them (TBD_PLAN_COUNTS), and chunks, which are taken in
 * place, have little more than events.  The state at the end is
 * compared with play's: every register, and every byte of the pages that either has modified. */
#include "replay/native/stops_window.h"

#include "base/copy_once.h"
#include "format/window/window_make.h"
#include "replay/compare.h"
#include "replay/full.h"
#include "replay/replay_end.h"
#include "replay/run_plan.h"

#include <string.h>

struct stops_run {
    struct tbd_worker *worker;
    struct tbd_stops_blocks *blocks;
    struct tbd_buffer *out;
    struct tbd_msg_passed passed; /* since the last message of `out` */
    uint64_t entered;
    uint32_t pending; /* an entry whose operands come with the next chunk; 0: none */
    bool is_over;
    struct tbd_replay_end end;
    struct tbd_window *window; /* owned: the replay's end state */
};

static enum tbd_status begin(void *context, struct tbd_error *why)
{
    struct stops_run *run = context;
    struct tbd_worker *worker = run->worker;
    enum tbd_status status = TBD_OK;

    if (!worker->consumer)
        status = tbd_consumer_new(worker->process.stream_fd, run->blocks->table, NULL,
                                  &worker->consumer, why);
    if (status != TBD_OK)
        return status;
    tbd_consumer_drop(worker->consumer);
    tbd_consumer_area(worker->consumer, TBD_NO_AREA);
    tbd_consumer_expect(worker->consumer, UINT64_MAX, UINT64_MAX);
    worker->process.published = &tbd_consumer_head(worker->consumer)->published;
    return TBD_OK;
}

static enum tbd_status wrong(struct tbd_error *why, const char *what)
{
    return tbd_process_error(why, TBD_CORRUPT, "%s", what);
}

/* ---- messages ---- */

static void put(struct tbd_buffer *out, uint32_t kind, const void *payload, uint32_t bytes)
{
    struct tbd_message head = { kind, bytes };

    tbd_buffer_put(out, &head, sizeof(head));
    tbd_buffer_put(out, payload, bytes);
}

static void put_passed(struct stops_run *run)
{
    if (run->passed.blocks)
        put(run->out, TBD_MSG_PASSED, &run->passed, sizeof(run->passed));
    run->passed = (struct tbd_msg_passed){ 0 };
}

/* The ids are those of the replay process. */
static enum tbd_status take_passed(struct stops_run *run, const uint8_t *payload, uint32_t bytes,
                                   struct tbd_error *why)
{
    const struct tbd_block_plan *plans = tbd_consumer_plans(run->worker->consumer);
    size_t count = tbd_consumer_plan_count(run->worker->consumer);
    struct tbd_msg_passed passed;

    if (bytes != sizeof(passed))
        return wrong(why, "a number of blocks of another size");
    tbd_copy_once(&passed, payload, sizeof(passed));
    if (!passed.first || passed.first > count || !plans[passed.first].id || !passed.last ||
        passed.last > count || !plans[passed.last].id)
        return wrong(why, "a block that was not defined");
    if (run->passed.blocks > INT32_MAX || passed.blocks > INT32_MAX)
        put_passed(run);
    if (!run->passed.blocks)
        run->passed.first = plans[passed.first].id;
    run->passed.last = plans[passed.last].id;
    run->passed.blocks += passed.blocks;
    run->entered += passed.blocks;
    return TBD_OK;
}

static enum tbd_status take_message(struct stops_run *run, uint32_t kind, const uint8_t *payload,
                                    uint32_t bytes, struct tbd_error *why)
{
    const char *what = NULL;
    enum tbd_status status = TBD_OK;

    if (tbd_replay_end_takes(kind))
        status = tbd_replay_end_take(&run->end, run->window, kind, payload, bytes, &what);
    if (what)
        return wrong(why, what);
    if (kind == TBD_MSG_PASSED)
        return take_passed(run, payload, bytes, why);
    if (kind == TBD_MSG_READ_PAGES)
        put(run->out, kind, payload, bytes);
    if (status || !tbd_message_is_event(kind))
        return status;
    put_passed(run);
    put(run->out, kind, payload, bytes);
    tbd_replay_end_go_on(&run->end);
    return run->out->failed ? TBD_NOMEM : TBD_OK;
}

/* ---- chunks ---- */

struct chunk_part {
    const uint8_t *at, *end; /* operands not yet taken */
};

/* TBD_NOTFOUND: its operands are not in this chunk. */
static enum tbd_status take_block(struct stops_run *run, uint32_t entry, struct chunk_part *part,
                                  struct tbd_error *why)
{
    const struct tbd_block_plan *plans = tbd_consumer_plans(run->worker->consumer);

    if (!entry || entry > tbd_consumer_plan_count(run->worker->consumer) || !plans[entry].id)
        return wrong(why, "a block that was not defined");
    if (plans[entry].operand_bytes > (size_t)(part->end - part->at))
        return TBD_NOTFOUND;
    part->at += plans[entry].operand_bytes;
    if (!run->passed.blocks)
        run->passed.first = plans[entry].id;
    run->passed.last = plans[entry].id;
    run->passed.blocks++;
    run->entered++;
    if (run->passed.blocks == INT32_MAX)
        put_passed(run);
    return TBD_OK;
}

static enum tbd_status take_entry(struct stops_run *run, uint32_t entry, struct chunk_part *part,
                                  struct tbd_error *why)
{
    struct tbd_message head;
    enum tbd_status status;

    if (!(entry & TBD_ENTRY_MESSAGE))
        return take_block(run, entry, part, why);
    if ((size_t)(part->end - part->at) < sizeof(head))
        return TBD_NOTFOUND;
    tbd_copy_once(&head, part->at, sizeof(head));
    if (head.kind != (entry & ~TBD_ENTRY_MESSAGE))
        return wrong(why, "a message of another kind");
    if (head.bytes > (size_t)(part->end - part->at) - sizeof(head))
        return TBD_NOTFOUND;
    status = take_message(run, head.kind, part->at + sizeof(head), head.bytes, why);
    part->at += sizeof(head) + head.bytes;
    return status;
}

static enum tbd_status take_chunk(struct stops_run *run, const struct tbd_chunk_view *chunk,
                                  struct tbd_error *why)
{
    struct chunk_part part = { chunk->operands, chunk->operands + chunk->operand_bytes };
    enum tbd_status status = TBD_OK;
    uint32_t pending = run->pending;

    run->pending = 0;
    if (pending)
        status = take_entry(run, pending, &part, why);
    for (size_t i = 0; i < chunk->entry_count && !status && !run->pending; i++) {
        uint32_t entry = chunk->entries[i];

        status = take_entry(run, entry, &part, why);
        if (status == TBD_NOTFOUND && i + 1 == chunk->entry_count) {
            run->pending = entry;
            status = TBD_OK;
        }
    }
    return status == TBD_NOTFOUND ? wrong(why, "a record outside the operands") : status;
}

static enum tbd_status take_chunks(struct stops_run *run, struct tbd_error *why)
{
    struct tbd_consumer *consumer = run->worker->consumer;
    enum tbd_status status = TBD_OK;

    while (!status && !run->is_over) {
        struct tbd_chunk_view chunk;

        pthread_mutex_lock(&run->blocks->lock);
        status = tbd_consumer_peek(consumer, &chunk, why);
        pthread_mutex_unlock(&run->blocks->lock);
        if (status)
            return status;
        status = take_chunk(run, &chunk, why);
        run->is_over = chunk.ends_window;
        tbd_consumer_pass(consumer);
    }
    return status;
}

static enum tbd_status take(void *context, struct tbd_error *why)
{
    struct stops_run *run = context;
    struct tbd_process *process = &run->worker->process;

    process->seen_published = __atomic_load_n(process->published, __ATOMIC_ACQUIRE);
    return tbd_full_judge(take_chunks(run, why), why);
}

/* ---- a window ---- */

/* The trace has pages and registers at the window's end, but not the number of blocks. */
static enum tbd_status compare(struct stops_run *run, struct tbd_divergence *divergence,
                               struct tbd_error *why)
{
    struct tbd_window *replayed = run->window;
    enum tbd_status status;

    put_passed(run);
    if (run->out->failed || !tbd_replay_end_finish(&run->end, replayed, run->entered, 0))
        return tbd_process_error(why, TBD_NOMEM, "no memory");
    replayed->index = run->worker->window->index;
    status = tbd_compare_ends(run->worker->window, replayed, divergence);
    return status ? tbd_process_error(why, status, "%s", divergence->what) : TBD_OK;
}

static enum tbd_status replay(struct stops_run *run, struct tbd_divergence *divergence,
                              struct tbd_error *why)
{
    struct tbd_run_consumer consumer = {
        .begin = begin, .take = take, .takes_stops = true, .context = run
    };
    enum tbd_status status;

    run->window = tbd_window_new(run->blocks->table);
    if (!run->window)
        return tbd_process_error(why, TBD_NOMEM, "no memory");
    run->end.page_most = SIZE_MAX;
    tbd_replay_end_clear(&run->end);
    status = tbd_run_plan(run->worker, TBD_HOOKS_PLAY | TBD_PLAN_COUNTS, NULL, 0, &consumer,
                          divergence, why);
    if (!status && !run->is_over)
        status = tbd_process_error(why, TBD_STUBDIED, "the window's stream has no end");
    return status ? status : compare(run, divergence, why);
}

enum tbd_status tbd_stops_replay(struct tbd_replayer *replayer, unsigned worker, uint32_t index,
                                 struct tbd_stops_blocks *blocks, struct tbd_buffer *out,
                                 struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct stops_run run = { .worker = &replayer->workers[worker], .blocks = blocks, .out = out };
    struct tbd_window *window;
    enum tbd_status status = tbd_replayer_begin(replayer, worker, index, false, &window, why);

    if (!status)
        status = replay(&run, divergence, why);
    tbd_window_free(run.window);
    tbd_replay_end_free(&run.end);
    tbd_replayer_finish(replayer, worker, window);
    return status;
}

/* The consumer of another replay has a table of its own. */
enum tbd_status tbd_stops_end(struct tbd_worker *worker, struct tbd_window **out,
                              struct tbd_divergence *divergence, struct tbd_error *why)
{
    struct tbd_stops_blocks blocks = { .table = tbd_block_table_new(),
                                       .lock = PTHREAD_MUTEX_INITIALIZER };
    struct tbd_buffer events = { 0 };
    struct stops_run run = { .worker = worker, .blocks = &blocks, .out = &events };
    enum tbd_status status = TBD_NOMEM;

    tbd_worker_stop(worker);
    if (blocks.table)
        status = replay(&run, divergence, why);
    tbd_worker_stop(worker);
    *out = run.is_over ? run.window : NULL;
    if (!run.is_over)
        tbd_window_free(run.window);
    tbd_replay_end_free(&run.end);
    tbd_buffer_free(&events);
    tbd_block_table_release(blocks.table);
    return status;
}
