// SPDX-License-Identifier: MIT
/* wall_clock.h - when things happened, for people: the wall-clock time goes into the stream now and then
 *
 * A system call takes far longer than a look at the processor's counter, so each may ask.  A time is
 * sent only if the counter has moved on by some microseconds, and the kernel is asked for it once in
 * some milliseconds.  The program and replay know nothing of it.  Called by the thread that holds the turn lock.  Context: APP. */
#ifndef TBD_HOOKS_WALL_CLOCK_H
#define TBD_HOOKS_WALL_CLOCK_H

struct tbd_thread;

/* Before a system call, which may wait: its end is told from its beginning by the times of both. */
void tbd_wall_clock_note_begin(struct tbd_thread *thread);
/* Sends the time, unless that was done just now. */
void tbd_wall_clock_note(struct tbd_thread *thread);
/* Sends the time. */
void tbd_wall_clock_note_now(struct tbd_thread *thread);

#endif
