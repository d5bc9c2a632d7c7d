// SPDX-License-Identifier: MIT
/* interrupted.h - from the registers of a signal frame to the program's registers */
#ifndef TBD_PATCHER_INTERRUPTED_H
#define TBD_PATCHER_INTERRUPTED_H

#include "patcher/cache.h"
#include "patcher/patcher.h"

struct tbd_interruption tbd_interrupt_find(const struct tbd_patcher_callbacks *callbacks,
                                           const struct tbd_codegen_config *config,
                                           const struct tbd_thread *thread,
                                           const struct tbd_regs *cpu, struct tbd_regs *state);

/* The indirect branch that `block` ends with was executed: thread->regs but rip are the program's
 * after it.  Its target is no address, so the fault is the branch's: *state and what is returned are
 * as just before it. */
struct tbd_interruption tbd_interrupt_branch(const struct tbd_patcher_callbacks *callbacks,
                                             const struct tbd_codegen_config *config,
                                             const struct tbd_thread *thread,
                                             const struct tbd_block_code *block, uint64_t target,
                                             struct tbd_regs *state);

/* The address of an access that has no bit number and no al for its index. */
uint64_t tbd_ea_address(const struct tbd_ea *ea, const struct tbd_regs *regs);
/* The processor takes no other for addresses: all bits from bit 47 on are the same, or from bit 56
 * on where page tables have five levels (Intel SDM vol. 1, 3.3.7.1). */
bool tbd_is_canonical(const struct tbd_patcher_callbacks *callbacks, uint64_t address);

#endif
