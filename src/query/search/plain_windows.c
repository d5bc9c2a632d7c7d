// SPDX-License-Identifier: MIT
/* plain_windows.c - see plain_windows.h */
#include "query/search/plain_windows.h"

#include "format/window/window_make.h"
#include "query/search/scan_jumps.h"

#include <stdlib.h>

static bool is_plain_message(uint32_t kind)
{
    switch (kind) {
    case TBD_MSG_SYSCALL:
    case TBD_MSG_SPECIAL:
    case TBD_MSG_READ:
    case TBD_MSG_UNLOGGED:
    case TBD_MSG_SHARED:
    case TBD_MSG_MAPPED:
    case TBD_MSG_CUT:
    case TBD_MSG_TRANSLATED: return true;
    default: return false;
    }
}

/* Has a signal ended the program in the middle of the window's last block? */
static bool is_left(const struct tbd_window *window)
{
    return window->has_last_block && window->last_offset != TBD_END_WHOLE &&
           window->last_time - window->first_time < window->blocks;
}

bool tbd_is_plain_window(const struct tbd_window *window)
{
    if (!window->complete || window->thread_count != 0 || window->end_thread_count != 0 ||
        window->called_count != 0 || is_left(window))
        return false;
    for (size_t i = 0; i < window->log_count; i++) {
        if (!is_plain_message(tbd_message_kind(window->log[i].message)))
            return false;
    }
    return true;
}

bool tbd_is_plain_question(const struct tbd_search_run *run)
{
    const struct tbd_question *question = run->question;

    return !question->keeps_frames && !question->with_returns && !question->own_returns &&
           !question->every_return && !run->plan.has_pc;
}

static uint8_t lead_of(const struct tbd_block *block)
{
    const struct tbd_op *call = NULL;

    for (uint16_t i = 0; i < block->def.op_count; i++) {
        if (block->ops[i].kind == TBD_OP_CALL)
            call = &block->ops[i];
    }
    if (call != NULL)
        return (call->flags & TBD_OPF_TAIL) != 0 ? TBD_BY_STUB : TBD_BY_CALL;
    return tbd_scan_leads_on(block) ? TBD_BY_JUMP : 0;
}

static uint8_t wants_of(const struct tbd_search_plan *plan, uint32_t id)
{
    uint8_t planned;

    if (plan->blocks == NULL)
        return TBD_BY_CALL | TBD_BY_STUB;
    planned = id < plan->block_count ? plan->blocks[id] : 0;
    return ((planned & ~TBD_PLAN_NO_ENTRY) != 0 ? TBD_BY_CALL | TBD_BY_STUB : 0) |
           (plan->has_jumped && (planned & TBD_PLAN_JUMPED) != 0 ? TBD_BY_JUMP : 0);
}

bool tbd_leading_make(const struct tbd_search_run *run, uint32_t count, struct tbd_leading *out)
{
    *out = (struct tbd_leading){ .leads = calloc(count, 1), .wants = calloc(count, 1) };
    if (out->leads == NULL || out->wants == NULL)
        return false;
    for (uint32_t id = 1; id < count; id++) {
        const struct tbd_block *block = tbd_trace_block(run->session->trace, id);

        out->leads[id] = block == NULL ? 0 : lead_of(block);
        out->wants[id] = wants_of(&run->plan, id);
    }
    return true;
}

void tbd_leading_free(struct tbd_leading *leading)
{
    free(leading->leads);
    free(leading->wants);
}

/* As tbd_scan_run() and tbd_scan_meet_end() have it. */
bool tbd_enters_at_end(const struct tbd_search_run *run, const struct tbd_window *window,
                       const struct tbd_block *last, uint8_t lead)
{
    struct tbd_symbols *symbols = run->session->symbols;
    uint64_t pc = window->end_regs.rip;

    if ((lead & TBD_BY_CALL) != 0)
        return true;
    if ((lead & TBD_BY_STUB) != 0)
        return tbd_scan_is_function(symbols, window->index, pc);
    return (lead & TBD_BY_JUMP) != 0 && run->plan.has_jumped && symbols != NULL &&
           tbd_symbols_is_function_start(symbols, window->index, pc) &&
           !tbd_scan_is_inside(symbols, window->index, last->def.start + last->def.last_insn, pc);
}
