// SPDX-License-Identifier: MIT
/* scan_threads.h - what a walk over a window's events keeps for each thread (for scan.c) */
#ifndef TBD_QUERY_SCAN_THREADS_H
#define TBD_QUERY_SCAN_THREADS_H

#include "query/search/scan.h"

/* Finds the calls of the previous window that wait for their targets. */
void tbd_scan_begin_turns(struct tbd_scan *scan);
void tbd_scan_end_turns(struct tbd_scan *scan);
/* Another thread takes over: scan->waiting becomes that thread's. */
void tbd_scan_change_turn(struct tbd_scan *scan, uint32_t from, uint32_t to);
/* The position of the system call inside which the thread at the cursor took over. */
bool tbd_scan_resumed_pc(const struct tbd_scan *scan, uint64_t *out);
/* Registers of a thread at the window's start; NULL if it was made later. */
const struct tbd_regs *tbd_scan_thread_regs(const struct tbd_window *window, uint32_t thread);

#endif
