// SPDX-License-Identifier: MIT
/* free.h - free run: what the engine does when translated code leaves, with threads that run at the same time
 *
 * As play.h, but whoever touches what threads share has the engine lock (threads/free_threads.h), and
 * system calls are the kernel's own (calls/free_calls.h).  Context: APP. */
#ifndef TBD_HOOKS_FREE_H
#define TBD_HOOKS_FREE_H

#include "patcher/patcher.h"

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

extern const struct tbd_patcher_callbacks tbd_free_callbacks;

/* BOOT, after the mode was entered. */
void tbd_free_start(void);
/* For struct tbd_signal_exits. */
void tbd_free_after_fault(struct tbd_thread *thread);
bool tbd_free_hides_child(uint8_t *info);
void tbd_free_delivers(struct tbd_thread *thread, uint32_t signo);
/* A new thread begins. */
void tbd_free_begin_thread(struct tbd_thread *thread);
/* For struct tbd_call_policy. */
bool tbd_free_record_child(struct tbd_thread *thread);

#pragma GCC visibility pop

#endif
