// SPDX-License-Identifier: MIT
/* value_slots.h - values beside the rings (format/stream/crash_values.h): the engine's side
 *
 * Some blocks begin with a check whether registers are due (patcher/record_code.c): thread->record_in is the negative
 * of the ring's place from which on they are.  System calls, the end of a ring, and a block that is
 * not found leave translated code anyway.
 *
 * Contexts: APP without the lock, by the thread itself; _sigsafe SIG. */
#ifndef TBD_HOOKS_VALUE_SLOTS_H
#define TBD_HOOKS_VALUE_SLOTS_H

#include "format/stream/crash.h"
#include "hooks/table/syscalls.h"
#include "patcher/thread.h"

#include <stdbool.h>

/* Slots lie at `slots`; NULL: nothing is recorded any more. */
void tbd_crash_values_start(struct tbd_crash *crash, uint8_t *slots);
/* All threads are at a boundary.  Each one's block is given to tbd_crash_values_due() after it.  False: no such setting. */
bool tbd_crash_values_set(uint32_t setting);

/* The thread's ring begins at its start again, and its older laps are lost. */
void tbd_crash_values_begin(struct tbd_thread *thread, uint32_t index);
/* The same; the thread, if there is one, is given to tbd_crash_values_due(). */
void tbd_crash_values_restart(uint32_t index);
/* A lap is over: the next entry goes to `start`.  True: registers are due. */
bool tbd_crash_values_lap_sigsafe(struct tbd_thread *thread, uint32_t index, uint64_t start);
/* The setting has changed. */
void tbd_crash_values_due(struct tbd_thread *thread);

/* The thread is about to enter the block at regs.rip; all its registers are exact.  `ring`: of which area it is. */
void tbd_crash_values_registers(struct tbd_thread *thread, uint32_t index, uint64_t ring);
/* The same, unless the last ones are from not long ago. */
void tbd_crash_values_sometimes(struct tbd_thread *thread, uint32_t index, uint64_t ring);
/* It is not: a signal's handler comes before.  Memory of this moment is dropped, too. */
void tbd_crash_values_cancel(struct tbd_thread *thread, uint32_t index, uint64_t ring);
/* The same at a place where somebody wants to know them, whatever the setting is. */
void tbd_crash_values_probe(struct tbd_thread *thread, uint32_t index, uint64_t ring);
/* After that: memory, TBD_VALUE_PROBE_BYTES at most. */
void tbd_crash_values_bytes(struct tbd_thread *thread, uint32_t index, uint64_t ring,
                            uint64_t address, uint64_t bytes);
/* A lap is over, and registers of this moment are recorded: how many bytes of memory may follow, once; else 0. */
uint64_t tbd_crash_values_memory_due(struct tbd_thread *thread, uint32_t index);
/* It follows: the same registers, which last as long as the memory. */
void tbd_crash_values_memory_begin(struct tbd_thread *thread, uint32_t index, uint64_t ring);
/* After that: some of it.  Returns how many bytes there were. */
uint64_t tbd_crash_values_memory(struct tbd_thread *thread, uint32_t index, uint64_t ring,
                                 uint64_t address, uint64_t bytes);
/* It has made this system call, with this result; `began` is a stamp. */
void tbd_crash_values_call(struct tbd_thread *thread, uint32_t index, uint64_t ring,
                           const struct tbd_sys_call *call, int64_t result, uint64_t began);

#endif
