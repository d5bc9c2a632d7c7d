// SPDX-License-Identifier: MIT
/* other_threads.h - state of the threads that do not run, as stored in a TOC
 *
 * Nothing of this is written for a program that has one thread. */
#ifndef TBD_FORMAT_OTHER_THREADS_H
#define TBD_FORMAT_OTHER_THREADS_H

#include "format/files/file.h"
#include "format/window/window.h"

/* The THREADS and CALLED records of a TOC, if the window has other threads. */
void tbd_thread_states_put(struct tbd_buffer *out, const struct tbd_window *window);
/* Fills threads and end_threads of the window. */
TBD_MUST_CHECK enum tbd_status tbd_thread_states_get(const struct tbd_record_view *record,
                                                     struct tbd_window *window);
/* Fills `called` from the record of that name.  False without memory. */
TBD_MUST_CHECK bool tbd_called_threads_get(const struct tbd_record_view *record,
                                           struct tbd_window *window);

#endif
