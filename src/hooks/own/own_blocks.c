// SPDX-License-Identifier: MIT
/* own_blocks.c - see own_blocks.h */
#include "hooks/own/own_blocks.h"

#include "base/hash.h"
#include "base/string.h"
#include "hooks/memory/code_traps.h"
#include "hooks/memory/safe_copy.h"
#include "hooks/stream/recording.h"

#define PLACES 4096u

static struct {
    uint64_t pc; /* also 0: a call of nothing faults there */
    uint32_t id; /* 0: the place is free */
    uint32_t bytes;
} known[PLACES];

static uint32_t define(uint64_t pc, uint32_t bytes, enum tbd_end end)
{
    uint8_t code[TBD_INSN_MAX_BYTES] = { 0 };
    struct tbd_block_def def = { .start = pc, .code_bytes = bytes, .end = (uint8_t)end };

    def.insn_count = 1;
    tbd_copy_from_program(code, pc, bytes);
    tbd_code_traps_hide(code, pc, bytes);
    def.code_hash = tbd_hash64(code, bytes);
    return tbd_ring_define(&tbd_recording.ring, &def, NULL, code);
}

void tbd_own_enter_block(struct tbd_thread *thread, uint32_t bytes, enum tbd_end end)
{
    uint64_t pc = thread->regs.rip;
    size_t place = (size_t)(pc ^ pc >> 12) % PLACES;

    if (!known[place].id || known[place].pc != pc || known[place].bytes != bytes) {
        known[place].pc = pc;
        known[place].bytes = bytes;
        known[place].id = define(pc, bytes, end);
    }
    tbd_ring_enter(&tbd_recording.ring, thread, known[place].id);
}

void tbd_own_forget_blocks(void)
{
    memset(known, 0, sizeof(known));
}
