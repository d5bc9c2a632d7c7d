// SPDX-License-Identifier: MIT
/* reexecute.c - specials whose outputs are determined by their inputs: play's code executes them
 *
 * It works on the same state as play, and sends the same messages.  Writes of other processes are
 * an input (hooks/memory/shared.h): they are in the logged messages, one for each piece of the
 * instruction. */
#include "base/string.h"
#include "format/stream/stream.h"
#include "hooks/instructions/slot.h"
#include "hooks/instructions/special.h"
#include "hooks/memory/effects.h"
#include "replay/stub/logged_events.h"

static struct {
    uint64_t next, end; /* log entries of this execution */
    struct tbd_msg_special message;
} again;

/* Skips the logged messages, which are sent again by the execution. */
static void skip_logged(void)
{
    again.next = tbd_stub.log_next;
    while (tbd_log_peek(TBD_MSG_SPECIAL))
        tbd_stub.log_next++;
    again.end = tbd_stub.log_next;
}

static void make_stores(struct tbd_effects *effects, const uint8_t *at, uint32_t count)
{
    tbd_log_apply_writes(at, count);
    for (uint32_t i = 0; i < count; i++) {
        struct tbd_write write;

        memcpy(&write, at, sizeof(write));
        at += sizeof(write);
        if (write.flags & TBD_WRITE_NO_OLD)
            tbd_stub_diverge(TBD_PLAN_LAST_INSN, "a store of another process without old bytes");
        tbd_effects_add_known(effects, write.address, at, at + write.bytes, write.bytes);
        at += 2ull * write.bytes;
    }
}

const struct tbd_msg_special *tbd_stub_next_others(struct tbd_effects *effects, uint32_t *others)
{
    const struct tbd_message *message = again.next < again.end ? tbd_log_message(again.next) : NULL;
    const uint8_t *payload;

    /* In play the access failed.  Here the memory may be present, because the file has changed
     * since. */
    if (!message && tbd_log_peek(TBD_MSG_INTERRUPTED))
        tbd_stub_faulted(tbd_slot_last_insn(tbd_thread_now()), 0, tbd_thread_now()->regs.rip);
    /* A program killed in the middle of a long instruction has executed only the logged pieces. */
    if (!message && !tbd_stub.plan->complete && tbd_stub_is_where_play_stopped())
        tbd_stub_finish();
    if (!message)
        return NULL;
    payload = (const uint8_t *)(message + 1);
    again.next++;
    memcpy(&again.message, payload, sizeof(again.message));
    if (again.message.others <= again.message.write_count)
        make_stores(effects, payload + sizeof(again.message), again.message.others);
    *others = again.message.others;
    return &again.message;
}

void tbd_special_reexecute(struct tbd_thread *thread, enum tbd_special special, uint32_t insn_bytes)
{
    skip_logged();
    tbd_special_is_unlogged = special == TBD_SPECIAL_SHARED && again.next == again.end;
    tbd_special_perform(thread, special, insn_bytes);
    tbd_special_is_unlogged = false;
}
