// SPDX-License-Identifier: MIT
/* passing_jumps.c - entries of functions by jumps, which have no operands, while their window passes (search_passing.c)
 *
 * Where the condition needs these, the entries that it does not rule out without them are listed, and a second replay tells their registers
 * (tbd_replay_skim_notes()).  It enters the same blocks: an entry is found by the number of its block. */
#include "query/search/passing.h"

#include "base/array.h"
#include "query/session/register_notes.h"

#define OPERANDS                                                                                   \
    (1u << TBD_RSP | 1u << TBD_RDI | 1u << TBD_RSI | 1u << TBD_RDX | 1u << TBD_RCX |               \
     1u << TBD_R8 | 1u << TBD_R9)
/* With more, which take 100 MB, the window is walked. */
#define LISTED_MOST ((size_t)8 << 20)

bool tbd_passing_list_jump(struct tbd_passing_window *p, const struct tbd_event *event)
{
    struct tbd_bad_events before = p->run->env.bad;
    enum tbd_verdict verdict = tbd_passing_judge(p, event);

    p->run->env.bad = before;
    if (verdict == TBD_VERDICT_MISS)
        return true;
    if (p->jump_count == LISTED_MOST) {
        p->gives_up = true;
        return false;
    }
    if (!tbd_array_grow(&p->jumps, p->jump_count, &p->jump_capacity, sizeof(*p->jumps)))
        return false;
    p->jumps[p->jump_count++] =
        (struct tbd_passing_jump){ (uint32_t)p->time, event->block, p->last };
    return true;
}

static bool take_note(void *context, uint64_t time, const struct tbd_op *op,
                      const uint8_t *registers)
{
    struct tbd_passing_window *p = context;
    const struct tbd_passing_jump *jump = &p->jumps[p->jump_next];
    struct tbd_noted noted = { 0 };
    struct tbd_event event;

    if (p->jump_next == p->jump_count || jump->time != time || op->insn != 0)
        return true;
    p->jump_next++;
    tbd_noted_unpack(&noted, op, registers);
    event = tbd_passing_event(p, jump->block, time, 0);
    event.from = p->block[jump->before]->def.start + p->block[jump->before]->def.last_insn;
    event.flags = TBD_EVENT_BY_JUMP;
    tbd_event_take_operands(&event, &noted.regs);
    return !tbd_passing_holds(p, &event) ||
           tbd_passing_take(p, &event, p->first[jump->block] + p->block[jump->block]->def.op_count);
}

enum tbd_status tbd_passing_take_jumps(struct tbd_passing_window *p)
{
    struct tbd_session *session = p->run->session;
    struct tbd_note_listener listener = { .note = take_note, .context = p };
    struct tbd_note_sites sites = { 0 };
    enum tbd_status status = TBD_OK;

    if (p->jump_count == 0)
        return TBD_OK;
    for (size_t i = 0; i < p->jump_count && status == TBD_OK; i++) {
        if (!tbd_note_sites_add(&sites, p->block[p->jumps[i].block]->def.start, OPERANDS))
            status = TBD_NOMEM;
    }
    tbd_note_sites_sort(&sites);
    if (status == TBD_OK)
        status = tbd_replay_skim_notes(session->replayer, session->worker, p->toc->index,
                                       sites.table.entries, sites.table.count, &listener,
                                       &session->divergence, &session->why);
    session->stats.noted += status == TBD_OK;
    tbd_note_sites_free(&sites);
    p->gives_up |= status == TBD_OK && p->jump_next != p->jump_count;
    return p->gives_up && status == TBD_OK ? TBD_NOTFOUND : status;
}
