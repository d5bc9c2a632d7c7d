// SPDX-License-Identifier: MIT
/* user_interrupt.h - Ctrl-C at a prompt ends the question, not the program
 *
 * The handler only notes the signal; long operations check for it now and then, and end with
 * TBD_INTERRUPTED.  Without tbd_interrupt_catch() nothing is caught, and the signal ends the
 * program as it always did. */
#ifndef TBD_QUERY_USER_INTERRUPT_H
#define TBD_QUERY_USER_INTERRUPT_H

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_bool tbd_interrupt_noted;

/* From any thread. */
static inline bool tbd_is_interrupted(void)
{
    return atomic_load_explicit(&tbd_interrupt_noted, memory_order_relaxed);
}

/* From now on SIGINT is noted. The first call decides for the rest of the program's life. */
void tbd_interrupt_catch(void);
/* A descriptor that becomes readable when a signal comes; -1 without tbd_interrupt_catch(). */
int tbd_interrupt_descriptor(void);
/* As if the signal had come: ends a question from another thread. */
void tbd_interrupt_note(void);
/* Forgets the signals that came. */
void tbd_interrupt_clear(void);

#endif
