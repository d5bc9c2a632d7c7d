// SPDX-License-Identifier: MIT
/* cmd_step.c - steps by line, function and instruction, both ways
 *
 * A step is a goto: lines are events, and a function's frame is known by its CFA, which conditions
 * call `frame`.  The caller's frame has a larger one. */
#include "query/commands/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The count behind the command, 1 without; false if it is none. */
static bool take_count(const struct tbd_command_run *run, uint64_t *out)
{
    char *end = NULL;

    *out = 1;
    if (run->argc == 0)
        return true;
    *out = strtoull(run->argv[0], &end, 0);
    return run->argc == 1 && *end == '\0' && *out != 0 && run->argv[0][0] != '-';
}

/* "current forward TYPE COUNT [where CONDITION]" */
static enum tbd_exit go(struct tbd_command_run *run, bool backward, const char *type,
                        const char *where)
{
    char text[256];
    uint64_t count;

    if (!take_count(run, &count))
        return tbd_command_usage(run, "expected a count of at least 1");
    snprintf(text, sizeof(text), "current %s %s %" PRIu64 "%s%s", backward ? "backward" : "forward",
             type, count, *where == '\0' ? "" : " where ", where);
    return tbd_command_goto_text(run, text);
}

/* The frame of the function at the current position. */
static enum tbd_status current_frame(struct tbd_session *session, uint64_t *out)
{
    struct tbd_frame frames[2];
    size_t count = 0;
    enum tbd_status status =
        tbd_session_stack(session, tbd_session_current(session), frames, 2, &count);

    *out = status == TBD_OK && count != 0 ? frames[0].cfa : 0;
    if (status == TBD_OK && *out == 0 && count > 1)
        *out = frames[1].sp;
    return status;
}

static enum tbd_status current_thread(struct tbd_session *session, uint32_t *out)
{
    struct tbd_place place;
    enum tbd_status status = tbd_session_place(session, tbd_session_current(session), &place);

    *out = status == TBD_OK ? place.thread : 0;
    return status;
}

/* The call under way, of a command without arguments. */
static enum tbd_exit current_call(struct tbd_command_run *run, const char *usage,
                                  uint64_t *out_frame, uint32_t *out_thread)
{
    enum tbd_status status = current_frame(run->session, out_frame);

    if (run->argc != 0)
        return tbd_command_usage(run, usage);
    if (status == TBD_OK)
        status = current_thread(run->session, out_thread);
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}

/* Also by thread: other threads have larger frames too. */
static enum tbd_exit go_in_frame(struct tbd_command_run *run, bool backward, const char *type)
{
    uint32_t thread;
    char where[96];
    uint64_t frame;
    enum tbd_status status = current_frame(run->session, &frame);

    if (status == TBD_OK)
        status = current_thread(run->session, &thread);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    snprintf(where, sizeof(where), "frame >= 0x%" PRIx64 " and thread == %" PRIu32, frame, thread);
    return go(run, backward, type, where);
}

enum tbd_exit tbd_command_step(struct tbd_command_run *run)
{
    return go(run, false, "line", "");
}

enum tbd_exit tbd_command_reverse_step(struct tbd_command_run *run)
{
    return go(run, true, "line", "");
}

enum tbd_exit tbd_command_next(struct tbd_command_run *run)
{
    return go_in_frame(run, false, "line");
}

enum tbd_exit tbd_command_reverse_next(struct tbd_command_run *run)
{
    return go_in_frame(run, true, "line");
}

/* ---- functions ---- */

/* The thread's next block from here on, or the one before: other threads may come between.  The
 * position is its first instruction, or behind us its last one. */
static enum tbd_status thread_block(struct tbd_command_run *run, bool backward, uint32_t thread,
                                    struct tbd_position *out)
{
    struct tbd_event event;
    struct tbd_place place;
    char text[128];
    enum tbd_status status;

    snprintf(text, sizeof(text),
             "%" PRIu64 "+%" PRIu32 " %s block_entry 1 where thread == %" PRIu32, out->time,
             out->offset, backward ? "backward" : "forward", thread);
    status = tbd_command_find_event(run, text, &event);
    if (status == TBD_OK)
        *out = event.position;
    if (status == TBD_OK && backward)
        status = tbd_session_place(run->session, *out, &place);
    if (status == TBD_OK && backward)
        out->offset = place.insns == 0 ? 0 : place.insns - 1;
    return status;
}

enum tbd_exit tbd_command_finish(struct tbd_command_run *run)
{
    struct tbd_position from = tbd_session_current(run->session), behind;
    uint64_t frame;
    uint32_t thread;
    char text[192];
    enum tbd_exit result = current_call(run, "finish takes no arguments", &frame, &thread);

    if (result != TBD_EXIT_FOUND)
        return result;
    /* From before this instruction: it may be the return itself. */
    if (from.offset != 0)
        from.offset--;
    else if (from.time != 0)
        from = (struct tbd_position){ from.time - 1, TBD_BLOCK_MAX_INSNS };
    snprintf(text, sizeof(text),
             "%" PRIu64 "+%" PRIu32 " forward func_exit 1 where sp >= 0x%" PRIx64
             " and thread == %" PRIu32,
             from.time, from.offset, frame - 8, thread);
    result = tbd_command_goto_text(run, text);
    behind = tbd_session_current(run->session);
    if (result != TBD_EXIT_FOUND || thread_block(run, false, thread, &behind) != TBD_OK)
        return result;
    return tbd_command_go(run, behind);
}

enum tbd_exit tbd_command_reverse_finish(struct tbd_command_run *run)
{
    struct tbd_position start = tbd_session_current(run->session), call;
    struct tbd_command_run entry = *run;
    uint64_t frame;
    uint32_t thread;
    char text[192];
    enum tbd_status status;
    enum tbd_exit result = current_call(run, "reverse-finish takes no arguments", &frame, &thread);

    if (result != TBD_EXIT_FOUND)
        return result;
    /* From behind this instruction: it may be the function's first one. */
    snprintf(text, sizeof(text),
             "%" PRIu64 "+%" PRIu32 " backward func_enter 1 where sp >= 0x%" PRIx64
             " and thread == %" PRIu32,
             start.time, start.offset + 1, frame - 8, thread);
    entry.silent = true;
    result = tbd_command_goto_text(&entry, text);
    if (result != TBD_EXIT_FOUND)
        return result;
    call = tbd_session_current(run->session);
    status = thread_block(run, true, thread, &call);
    return status == TBD_OK ? tbd_command_go(run, call) : tbd_command_fail(run, status);
}

/* ---- instructions ---- */

static enum tbd_status insns_at(struct tbd_session *session, uint64_t time, uint64_t *out)
{
    struct tbd_place place;
    enum tbd_status status =
        tbd_session_place(session, (struct tbd_position){ .time = time }, &place);

    *out = status == TBD_OK ? place.insns : 0;
    return status;
}

enum tbd_status tbd_command_states(struct tbd_session *session, struct tbd_position from,
                                   bool backward, uint64_t count, struct tbd_position *out)
{
    uint64_t insns = 0, offset = from.offset;
    enum tbd_status status = insns_at(session, from.time, &insns);

    while (status == TBD_OK && backward && count > offset) {
        count -= offset + 1;
        status = from.time == 0 ? TBD_NOTIME : insns_at(session, --from.time, &insns);
        offset = insns == 0 ? 0 : insns - 1;
    }
    while (status == TBD_OK && !backward && count != 0 && offset + count >= insns) {
        count -= insns > offset ? insns - offset : 1;
        status = insns_at(session, ++from.time, &insns);
        offset = 0;
    }
    from.offset = (uint32_t)(backward ? offset - count : offset + count);
    *out = from;
    return status;
}

enum tbd_exit tbd_command_stepi(struct tbd_command_run *run)
{
    return go(run, false, "state", "");
}

enum tbd_exit tbd_command_reverse_stepi(struct tbd_command_run *run)
{
    return go(run, true, "state", "");
}
