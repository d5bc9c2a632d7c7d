// SPDX-License-Identifier: MIT
/* own_window.h - native play: how long a window lasts
 *
 * What a window costs is known when it ends: the engine's time there, and a page fault for each page written. The next one
 * is so long that this is 3 % of its time, and, up to 60 ms, that what the organizer has to do with the pages is a tenth of it;
 * but at least 20 ms and at most 100 ms of the process' processor time: a replay takes about five times as long, and half a
 * second is what a question may wait for it.
 *
 * Context: BOOT, FORK_CHILD for begin(), else APP. */
#ifndef TBD_HOOKS_OWN_WINDOW_H
#define TBD_HOOKS_OWN_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* The image is linked above 2 GiB: without "hidden", the address of a function would need a
 * table. */
#pragma GCC visibility push(hidden)

/* Each window lasts `fixed_ns`; 0: as its costs say.  `page_ns`: of a first write to a page; 0: not known yet. */
void tbd_own_window_begin(uint64_t fixed_ns, uint64_t page_ns);
/* The same, if it is known later. */
void tbd_own_window_set_page_ns(uint64_t page_ns);
/* After this much computing a tick looks whether the window is over. */
uint64_t tbd_own_window_tick_ns(void);
/* Is it over?  Asked at every stop, and so mostly answered by the counter of cycles: it is `now`. */
bool tbd_own_window_is_over_at_stop(uint64_t now);
bool tbd_own_window_is_over_at_tick(void);
/* Has it lasted so long that its end costs little beside it, if another thread waits for its turn? */
bool tbd_own_window_pays(void);
/* Processor time since the window began, in nanoseconds. */
uint64_t tbd_own_window_used_ns(void);
/* The next one begins. */
void tbd_own_window_next(void);
/* The end of the window before has taken the engine `end_ns`; `pages` were written in it. */
void tbd_own_window_cost(uint64_t end_ns, uint64_t pages);
/* Processor time of the process. */
uint64_t tbd_own_window_now_ns(void);

#pragma GCC visibility pop

#endif
