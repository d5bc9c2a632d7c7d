// SPDX-License-Identifier: MIT
/* last_position.c - see last_position.h
 *
 * A question begins at the recording's end, where nobody has chosen another position.  To replay the last window for that alone took most of the
 * question's time.
 *
 * The trace says at which instruction a signal ended the program.  A program that exits has run its last block to the end, which is a
 * system call.  Which block that was follows from the summaries: they have each block's last entry, or, at level 1, the blocks
 * that were entered, and of these the one that ends at the registers' instruction.
 *
 * LAST_POSITION-1  The answer is that of the window's events, or there is none. (not checked: test_native_parts.py compares them) */
#include "query/session/last_position.h"

#include "format/stream/block_def.h"
#include "format/window/blocks.h"
#include "format/window/window_make.h"

#include <string.h>

/* Does the window end with a system call from which the program does not come back? */
static bool ends_with_call(const struct tbd_window *window)
{
    const struct tbd_log_entry *last;
    struct tbd_msg_syscall call;

    if (window->log_count == 0)
        return false;
    last = &window->log[window->log_count - 1];
    if (last->time != window->blocks || tbd_message_kind(last->message) != TBD_MSG_SYSCALL)
        return false;
    memcpy(&call, last->message + 1, sizeof(call));
    return (call.flags & TBD_SYSCALL_NORETURN) != 0 && (call.flags & TBD_SYSCALL_REFUSED) == 0;
}

/* Was the last block left before its end, by another word than the trace's?  Then its events have to tell. */
static bool is_contradicted(const struct tbd_window *window)
{
    uint64_t ran;

    for (size_t i = window->log_count; i-- > 0 && window->log[i].time == window->blocks;) {
        if (tbd_message_kind(window->log[i].message) != TBD_MSG_INTERRUPTED)
            continue;
        memcpy(&ran, window->log[i].message + 1, sizeof(ran));
        if (!window->has_last_block || ran != window->last_offset)
            return true;
    }
    return false;
}

/* The instruction at which a signal came that ended the program. */
static bool is_ended_at(const struct tbd_session *session, const struct tbd_window *window)
{
    return window->has_last_block && session->info->end.how == TBD_ENDED_SIGNAL &&
           window->last_offset < TBD_BLOCK_MAX_INSNS;
}

static bool ends_at(const struct tbd_block *block, uint64_t pc)
{
    return block->def.end == TBD_END_SYSCALL && (block->def.start + block->def.last_insn == pc ||
                                                 block->def.start + block->def.code_bytes == pc);
}

/* The number of instructions of the block that was entered last; 0: several may be that one. */
static uint32_t last_insns(const struct tbd_session *session, const struct tbd_window *window)
{
    bool has_times = window->level > TBD_LEVEL_BITS;
    uint32_t insns = 0;

    if (!has_times && !ends_with_call(window))
        return 0;
    for (size_t i = 0; i < window->block_summary_count; i++) {
        const struct tbd_block_summary *summary = &window->block_summaries[i];
        const struct tbd_block *block = tbd_trace_block(session->trace, summary->id);

        if (block == NULL || (has_times ? summary->last + 1ull != window->blocks
                                        : !ends_at(block, window->end_regs.rip)))
            continue;
        if (insns != 0 && insns != block->def.insn_count)
            return 0;
        insns = block->def.insn_count;
    }
    return insns;
}

bool tbd_last_insn(const struct tbd_session *session, const struct tbd_window *window,
                   uint32_t *out)
{
    uint32_t insns;

    if (!window->complete || is_contradicted(window))
        return false;
    if (is_ended_at(session, window)) {
        *out = (uint32_t)window->last_offset;
        return true;
    }
    insns = last_insns(session, window);
    if (insns == 0)
        return false;
    *out = insns - 1;
    if (window->has_last_block && window->last_offset < *out)
        *out = (uint32_t)window->last_offset;
    return true;
}
