// SPDX-License-Identifier: MIT
/* placing.h - puts traps into the program's code, and takes them away
 *
 * Context: keeper. */
#ifndef TBD_HOOKS_PLACING_H
#define TBD_HOOKS_PLACING_H

#include "format/probe/probe.h"

/* What belongs to the keeper's process is made anew: the one before has gone. */
void tbd_placing_new_keeper(void);

/* Once: the decoder, memory for stubs, a descriptor of the program's memory. */
enum tbd_probe_refusal tbd_placing_begin(void);

/* Learns which memory is executable now. */
enum tbd_probe_refusal tbd_placing_look(void);

/* Adds a use to the probe at the place, which gets a trap if it has none. */
enum tbd_probe_refusal tbd_placing_put(const struct tbd_probe_place *place);

/* Makes a guard (guard.h) at an address, whose trap is written by tbd_placing_guards(). */
enum tbd_probe_refusal tbd_placing_prepare_guard(uint64_t address);
/* Writes the traps of all guards that were prepared. */
void tbd_placing_guards(void);

/* Before tbd_placing_take() of these: their jumps become traps. */
void tbd_placing_prepare_take(const struct tbd_probe_place *places, uint32_t count);

/* Probes with a trap get a jump where one fits.  Returns how many have one now. */
uint32_t tbd_placing_jump(void);

/* Takes the trap at an address away, if there is one of ours, and its uses. */
void tbd_placing_take(uint64_t address);

/* Takes all traps away, and all uses. */
void tbd_placing_clear(void);

#endif
