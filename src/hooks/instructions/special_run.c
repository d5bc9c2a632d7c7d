// SPDX-License-Identifier: MIT
/* special_run.c - common to all instructions that the engine executes (special.h): messages, and
 * waiting for missing pages */
#include "hooks/instructions/special.h"

#include "base/string.h"
#include "hooks/memory/program_memory.h"
#include "hooks/memory/userfault.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"

tbd_next_others_function tbd_next_others;
bool tbd_special_is_unlogged;

void tbd_special_tell_read(struct tbd_special_run *s, const struct tbd_sys_range *range)
{
    struct tbd_msg_read read = { range->address, range->bytes };
    struct tbd_part part = { &read, sizeof(read) };

    if (tbd_next_others && (tbd_recording.hooks & TBD_HOOK_LOADS) && read.bytes)
        tbd_ring_send(&tbd_recording.ring, s->thread, TBD_MSG_READ, &part, 1);
}

/* What a replay finds by itself is not logged where it counts block entries anyway. */
static bool needs_no_message(const struct tbd_special_run *s, uint32_t flags)
{
    bool is_unlogged = tbd_next_others ? tbd_special_is_unlogged
                                       : s->kind == TBD_SPECIAL_SHARED &&
                                             flags == TBD_SPECIAL_F_REPLAYED && !s->others;

    return is_unlogged && tbd_recording.ring.counting &&
           tbd_effects_settle(s->effects, &tbd_memory.pages,
                              TBD_UNLOGGED_MOST_BYTES - sizeof(struct tbd_msg_special));
}

void tbd_special_send(struct tbd_special_run *s, uint32_t flags)
{
    const struct tbd_regs *regs = &s->thread->regs;
    struct tbd_msg_special message; /* every field is set here, or as it is sent */
    struct tbd_effect_head head = {
        .kind = tbd_special_is_unlogged ? TBD_MSG_UNLOGGED : TBD_MSG_SPECIAL,
        .data = &message,
        .bytes = sizeof(message),
        .write_count = &message.write_count,
        .flags = &message.flags,
        .more = flags & TBD_SPECIAL_F_MORE ? 0 : TBD_SPECIAL_F_MORE,
    };

    if (needs_no_message(s, flags))
        return;
    message.special = (uint32_t)s->kind;
    message.rflags = regs->rflags;
    message.flags = flags;
    message.others = s->others;
    message.gpr_mask = 0;
    memcpy(message.gpr, regs->gpr, sizeof(message.gpr));
    for (unsigned r = 0; r < TBD_REG_COUNT; r++)
        message.gpr_mask |= (uint64_t)(regs->gpr[r] != s->before.gpr[r]) << r;
    tbd_effects_send(s->effects, &tbd_recording.ring, s->thread, &tbd_memory.pages, &head, NULL, 0);
}

void tbd_special_finish(struct tbd_special_run *s, uint32_t flags)
{
    s->thread->regs.rip += s->insn_bytes;
    tbd_special_send(s, flags);
}

void tbd_special_give_up(struct tbd_special_run *s, const char *why)
{
    tbd_detach(s->thread, why, tbd_slot_last_insn(s->thread));
}

/* ---- pages that others fill ---- */

static void send_left(struct tbd_special_run *s)
{
    struct tbd_msg_shared none = { 0 };
    struct tbd_part part = { &none, sizeof(none) };

    tbd_recording_interrupted(tbd_slot_last_insn(s->thread));
    tbd_ring_send(&tbd_recording.ring, s->thread, TBD_MSG_SHARED, &part, 1);
}

void tbd_special_leave_block(struct tbd_special_run *s, uint64_t address, bool is_write)
{
    s->thread->regs = s->before;
    send_left(s);
    s->wait = (struct tbd_page_wait){ address, is_write, true };
}

bool tbd_special_leaves(struct tbd_special_run *s, const struct tbd_sys_range *ranges, size_t count,
                        bool is_write)
{
    uint64_t address;

    if (!tbd_userfault_count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!tbd_userfault_misses(&ranges[i], is_write, &address))
            continue;
        tbd_special_leave_block(s, address, is_write);
        return true;
    }
    for (size_t i = 0; i < count; i++)
        tbd_userfault_adopt(s->effects, &ranges[i], &s->others);
    return false;
}
