// SPDX-License-Identifier: MIT
/* shared_traps.c - the set of instructions that the engine executes because they access shared
 * memory (patcher/forced_specials.h)
 *
 * The log says when the set changes.  Play left a block before an instruction that it then added to
 * the set; a trap before that instruction (tbd_patcher_trap) makes replay leave the block at the
 * same place. */
#include "replay/stub/logged_events.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "patcher/cut.h"
#include "patcher/forced_specials.h"
#include "patcher/patcher.h"

static struct tbd_msg_shared head_of(const struct tbd_message *message)
{
    struct tbd_msg_shared head;

    memcpy(&head, message + 1, sizeof(head));
    return head;
}

static uint64_t pc_of(const struct tbd_message *message, uint32_t i)
{
    uint64_t pc;

    memcpy(&pc, (const uint8_t *)(message + 1) + sizeof(struct tbd_msg_shared) + i * sizeof(pc),
           sizeof(pc));
    return pc;
}

static void forget_code(struct tbd_thread *thread, const uint64_t *pcs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tbd_patcher_flush_range(thread, pcs[i], pcs[i] + 1);
}

/* Replaces the set, and flushes the translations at addresses that only one of both sets has.
 * `now` has no duplicates. */
static void replace(struct tbd_thread *thread, const uint64_t *now, size_t now_count)
{
    static uint64_t before[TBD_MAX_FORCED_SPECIALS];
    size_t count = tbd_forced_specials_list(before);
    bool same = count == now_count;

    for (size_t i = 0; i < now_count && same; i++)
        same = tbd_forced_specials_has(now[i]);
    if (same)
        return;
    forget_code(thread, before, count);
    tbd_forced_specials_clear();
    for (size_t i = 0; i < now_count; i++)
        tbd_forced_specials_add(now[i]);
    forget_code(thread, now, now_count);
}

static void replace_by(struct tbd_thread *thread, const struct tbd_message *message)
{
    static uint64_t now[TBD_MAX_FORCED_SPECIALS];
    size_t count = 0;

    for (uint32_t i = 0; i < head_of(message).count && count < TBD_MAX_FORCED_SPECIALS; i++)
        now[count++] = pc_of(message, i);
    replace(thread, now, count);
}

static void add(struct tbd_thread *thread, const struct tbd_message *message)
{
    for (uint32_t i = 0; i < head_of(message).count; i++) {
        uint64_t pc = pc_of(message, i);

        tbd_forced_specials_add(pc);
        forget_code(thread, &pc, 1);
    }
}

bool tbd_stub_shared(struct tbd_thread *thread)
{
    const struct tbd_message *message = tbd_log_peek(TBD_MSG_SHARED);

    if (!message)
        return false;
    tbd_patcher_trap(thread, 0);
    if (head_of(message).flags & TBD_SHARED_WHOLE)
        replace_by(thread, message);
    else
        add(thread, message);
    tbd_log_send(message);
    return true;
}

void tbd_stub_shared_begin(struct tbd_thread *thread)
{
    const struct tbd_plan_head *plan = tbd_stub.plan;

    tbd_patcher_trap(thread, 0);
    if (!tbd_log_peek(TBD_MSG_SHARED) || plan->forced_specials.count)
        replace(thread, (const void *)((const char *)plan + plan->forced_specials.offset),
                plan->forced_specials.count);
    while (tbd_stub_shared(thread))
        ;
}

/* ---- blocks that were left ---- */

/* Was the block left for a reason that replay does not have: a new instruction in the set, or a
 * file that became shorter?  Replay has all other faults itself. */
static bool is_left_outside(const struct tbd_message *next)
{
    struct tbd_msg_signal signal;

    if (next->kind == TBD_MSG_SHARED)
        return !(head_of(next).flags & TBD_SHARED_WHOLE);
    if (next->kind != TBD_MSG_SIGNAL)
        return false;
    memcpy(&signal, next + 1, sizeof(signal));
    return signal.signo == SIGBUS && (signal.flags & TBD_SIGNAL_SYNC);
}

/* The log entry INTERRUPTED of the next such block. */
static const struct tbd_plan_log *next_left(void)
{
    const struct tbd_plan_head *plan = tbd_stub.plan;
    const struct tbd_plan_log *log = (const void *)((const char *)plan + plan->log.offset);

    if (tbd_stub.left < tbd_stub.log_next)
        tbd_stub.left = tbd_stub.log_next;
    for (; tbd_stub.left + 1 < plan->log.count; tbd_stub.left++)
        if (tbd_log_message(tbd_stub.left)->kind == TBD_MSG_INTERRUPTED &&
            is_left_outside(tbd_log_message(tbd_stub.left + 1)))
            return &log[tbd_stub.left];
    return NULL;
}

uint64_t tbd_stub_left_time(void)
{
    const struct tbd_plan_log *entry = next_left();

    return entry && entry->time ? entry->time - 1 : UINT64_MAX;
}

static struct tbd_cut cut;

static void cut_block(void *unused)
{
    struct tbd_codegen_config config = { .hook_set = TBD_HOOKS_PARTIAL,
                                         .max_insns = tbd_stub.plan->max_insns };

    (void)unused;
    tbd_cut_block(&cut, &tbd_stub_callbacks, &config, tbd_thread_now()->regs.rip);
}

void tbd_stub_leave_block(struct tbd_thread *thread)
{
    const struct tbd_plan_log *entry = next_left();
    uint64_t insn;

    if (!entry || entry->time != tbd_stub_time() + 1 || tbd_stub.plan->counts_stops)
        return;
    memcpy(&insn, (const char *)tbd_stub.plan + entry->message + sizeof(struct tbd_message),
           sizeof(insn));
    tbd_stub_callbacks.with_vector_state(cut_block, NULL);
    if (insn < cut.count)
        tbd_patcher_trap(thread, cut.insn[insn].pc);
}
