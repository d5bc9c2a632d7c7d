// SPDX-License-Identifier: MIT
/* logged_events.h - shared by logged_events.c, map_calls.c, fault.c and reexecute.c
 *
 * Contexts: APP. */
#ifndef TBD_STUB_LOGGED_EVENTS_H
#define TBD_STUB_LOGGED_EVENTS_H

#include "hooks/instructions/special.h"
#include "replay/stub/stub.h"

/* The next log message if it is of this kind and due now, else NULL. */
const struct tbd_message *tbd_log_peek(enum tbd_message_kind kind);
/* Is the next log message of this kind, and due at `time`? */
bool tbd_log_is_next(enum tbd_message_kind kind, uint64_t time);
/* The log entry's message; NULL after the last one. */
const struct tbd_message *tbd_log_message(uint64_t index);
/* Puts a log message into the stream unchanged, and advances the log. */
void tbd_log_send(const struct tbd_message *message);
/* INTERRUPTED of the block entered last; of native play's, the number of instructions is not known. */
void tbd_log_send_interrupted(const struct tbd_message *message, uint64_t instructions);
/* Counts a fault as a stop. */
void tbd_log_stopped(void);
/* The same for a fault. */
void tbd_log_faulted(void);
/* Checks the old bytes of `count` writes and applies the new ones.  Returns the address after
 * them. */
const uint8_t *tbd_log_apply_writes(const uint8_t *at, uint32_t count);

/* map_calls.c.  Before such a call: sends the touched pages of a range that it removes, as in
 * play. */
void tbd_maps_before(const struct tbd_msg_syscall *call);
/* Changes the mapping again; false if that is impossible.  True for calls that change no
 * mapping. */
bool tbd_maps_change(const struct tbd_msg_syscall *call, struct tbd_thread *thread);
/* A change that no argument of a call tells. */
bool tbd_maps_apply(const struct tbd_msg_mapped *mapped);

/* fault.c: registers after rt_sigreturn, from the frame in the program's memory. */
/* `is_bad`: the kernel has not accepted the frame. */
void tbd_signal_return(struct tbd_thread *thread, bool is_bad);

/* reexecute.c: executes a special whose outputs follow from its inputs. */
void tbd_special_reexecute(struct tbd_thread *thread, enum tbd_special special,
                           uint32_t insn_bytes);

/* Makes the stores of others in the special's next message (tbd_next_others). */
__attribute__((visibility("hidden"))) const struct tbd_msg_special *
tbd_stub_next_others(struct tbd_effects *effects, uint32_t *others);

#endif
