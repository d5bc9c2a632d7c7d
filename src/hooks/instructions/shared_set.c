// SPDX-License-Identifier: MIT
/* shared_set.c - see shared_set.h */
#include "hooks/instructions/shared_set.h"

#include "base/log.h"
#include "hooks/instructions/processor.h"
#include "hooks/stream/leaving.h"
#include "hooks/stream/recording.h"
#include "patcher/decode.h"
#include "patcher/forced_specials.h"
#include "patcher/patcher.h"

static void send_set(struct tbd_thread *thread, uint32_t flags, const uint64_t *pcs, size_t count)
{
    struct tbd_msg_shared head = { .flags = flags, .count = (uint32_t)count };
    struct tbd_part parts[2] = { { &head, sizeof(head) }, { pcs, count * sizeof(*pcs) } };

    tbd_ring_send(&tbd_recording.ring, thread, TBD_MSG_SHARED, parts, 2);
}

struct shared_decoding {
    struct tbd_insn insn;
    uint64_t pc;
    bool ok;
};

static void decode(void *arg)
{
    struct shared_decoding *d = arg;

    d->ok = tbd_decode(&d->insn, d->pc, (const uint8_t *)d->pc, 15);
}

void tbd_shared_found(struct tbd_thread *thread, uint32_t insn)
{
    struct shared_decoding d = { .pc = thread->regs.rip };

    tbd_processor_decode(decode, &d);
    if (!d.ok)
        tbd_detach(thread, "an instruction cannot be decoded again", insn);
    if (!tbd_forced_specials_add(d.pc))
        tbd_detach(thread, "too many of its instructions use memory that other processes may write",
                   insn);
    tbd_recording_interrupted(insn);
    send_set(thread, 0, &d.pc, 1);
    tbd_patcher_flush_range(thread, d.pc, d.pc + 1);
    TBD_LOG(TBD_LOG_DEBUG, "shared", "%p is executed by the engine from here on", (void *)d.pc);
}

/* Does the instruction use such memory often enough?  Others, for example those of memcpy, are
 * translated again. */
static bool is_worth_it(const struct tbd_forced_special *forced)
{
    return forced->runs < 16 || forced->hits >= forced->runs / 8;
}

void tbd_shared_begin_window(struct tbd_thread *thread)
{
    static uint64_t pcs[TBD_MAX_FORCED_SPECIALS];
    size_t count = tbd_forced_specials_list(pcs);
    size_t kept = 0;

    if (!count)
        return;
    for (size_t i = 0; i < count; i++) {
        if (is_worth_it(tbd_forced_specials_find(pcs[i])))
            pcs[kept++] = pcs[i];
        else
            tbd_patcher_flush_range(thread, pcs[i], pcs[i] + 1);
    }
    tbd_forced_specials_clear();
    for (size_t i = 0; i < kept; i++)
        tbd_forced_specials_add(pcs[i]);
    send_set(thread, TBD_SHARED_WHOLE, pcs,
             kept); /* even if the set is empty: windows can be merged */
}
