// SPDX-License-Identifier: MIT
/* templates.h - the code of each event, emitted before the instruction it belongs to
 *
 * Addresses are in hardware registers, already reachable; `scratch` is a register whose value the
 * program does not need until the translator reloads it.  r15 = next entry, r14 = start of this
 * block's operands (advanced once, at the block's end).
 *
 * TEMPLATES-1  Flags are never changed (EMIT-1), memory of the program never written. (not checked:
 *     test_patcher_random compares registers, flags and records with the processor's)
 * TEMPLATES-2  A template may fault on the program's memory exactly where the instruction itself
 *     would. (not checked: test_patcher_random compares registers, flags and records with the
 *     processor's)
 */
#ifndef TBD_PATCHER_TEMPLATES_H
#define TBD_PATCHER_TEMPLATES_H

#include "base/branching.h"
#include "base/calling.h"
#include "patcher/emit.h"
#include "patcher/thread.h"
#include "patcher/touch.h"

/* block.c: entry store and advance; 11 bytes, the entry store first. */
void tbd_hook_block(struct tbd_emit *e, uint32_t id);
/* Only counted: the entry's place is read, and not written; changes r10. */
void tbd_hook_counted_block(struct tbd_emit *e);
/* In a ring (format/stream/crash.h): the entry, and a 0 after it. */
void tbd_hook_ring_block(struct tbd_emit *e, uint32_t id);
/* block.c: the record is complete. */
void tbd_hook_block_end(struct tbd_emit *e, uint32_t record_bytes);

struct tbd_hook_access {
    struct tbd_ea ea; /* plain: no segment, 64-bit */
    uint32_t size;
    struct tbd_touch touch; /* marks of this access, also for other accesses */
    uint8_t scratch;
};

/* store.c: old bytes at `data_at` of the record. */
void tbd_hook_store(struct tbd_emit *e, const struct tbd_hook_access *access, uint32_t data_at);
/* load.c: the address (or, with `base_only`, its base register) at `at` of the record. */
void tbd_hook_address(struct tbd_emit *e, const struct tbd_hook_access *access, uint32_t at,
                      bool base_only);
/* load.c: marks in the touch map. */
void tbd_hook_touch(struct tbd_emit *e, const struct tbd_hook_access *access);

void tbd_hook_call(struct tbd_emit *e, uint32_t data_at);
void tbd_hook_return(struct tbd_emit *e, uint32_t data_at);

/* note.c: a register as it is before the instruction; the low half of a vector register; what is at rsp, by way of a
 * register that may be destroyed. */
void tbd_hook_note(struct tbd_emit *e, unsigned reg, uint32_t at);
void tbd_hook_note_vector(struct tbd_emit *e, unsigned number, uint32_t at);
void tbd_hook_note_top(struct tbd_emit *e, unsigned scratch, uint32_t at);

/* calling.c: thread->calling_value is the value of the thread's calls, calling_distance the distance.  Before a call pushes: keeps
 * the value.  `scratch`: two registers, of which the second has it then. */
void tbd_hook_calling_keep(struct tbd_emit *e, const uint8_t *scratch);
/* The value that was kept for the return address at rsp. */
void tbd_hook_calling_get(struct tbd_emit *e, unsigned dst);
#define TBD_CALLING_SCRATCH 3 /* registers that a scheme needs at most */
/* After the push; only the last instruction changes the value.  `scratch`: the register that has it, and another for
 * TBD_CALLING_SUM, two others for _XOR. */
void tbd_hook_calling_enter(struct tbd_emit *e, enum tbd_calling_scheme scheme, uint64_t number,
                            const uint8_t *scratch);
void tbd_hook_calling_set(struct tbd_emit *e, unsigned src);
/* rax = the value. */
void tbd_hook_calling_tell(struct tbd_emit *e);

/* dst ^= number; only the last instruction changes dst. */
void tbd_hook_xor(struct tbd_emit *e, unsigned dst, unsigned number, unsigned scratch);

/* branch.c: the branch context of a chosen function.  Registers that may be destroyed; of these `v` is rdx for a product. */
struct tbd_branch_scratch {
    uint8_t a, m, v, t;
};
/* The function is entered; `moves`: its first block will change rsp. */
void tbd_hook_branch_begin(struct tbd_emit *e, enum tbd_branch_scheme scheme,
                           const struct tbd_branch_function *f, bool moves,
                           const struct tbd_branch_scratch *s);
/* The function will jump to its own first instruction: that is no new call (a, m). */
void tbd_hook_branch_mark(struct tbd_emit *e, const struct tbd_branch_function *f,
                          const struct tbd_branch_scratch *s);
/* Before rsp changes: the value goes to the thread block; and back to where rsp says (a, m). */
void tbd_hook_branch_pick_up(struct tbd_emit *e, const struct tbd_branch_scratch *s);
void tbd_hook_branch_put_down(struct tbd_emit *e, const struct tbd_branch_scratch *s);
/* A branch jumps.  Done with the last instruction, not at all before it. */
void tbd_hook_branch_take(struct tbd_emit *e, enum tbd_branch_scheme scheme,
                          const struct tbd_branch_function *f, unsigned index,
                          const struct tbd_branch_scratch *s);
/* The function will make a call (a, m). */
void tbd_hook_branch_call(struct tbd_emit *e, uint64_t return_address,
                          const struct tbd_branch_scratch *s);
/* rax = the value of the function that called the one that begins here, if it is a chosen one; else 0. */
void tbd_hook_branch_tell(struct tbd_emit *e, const struct tbd_branch_scratch *s);

/* [r14 + at] */
static inline struct tbd_ea tbd_hook_operand(uint32_t at)
{
    return (struct tbd_ea){ .disp = at, .base = TBD_R14, .index = TBD_NO_REG, .scale = 1 };
}

#endif
