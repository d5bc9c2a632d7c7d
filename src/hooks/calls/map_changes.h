// SPDX-License-Identifier: MIT
/* map_changes.h - a change of the program's mappings: what is sent before it is lost, what is forgotten,
 * and what the trace is told
 *
 * For calls that change mappings (memory_calls.c) and for changes that no argument of a call tells
 * (growth.c, child_maps.c).  Context: APP. */
#ifndef TBD_HOOKS_MAP_CHANGES_H
#define TBD_HOOKS_MAP_CHANGES_H

#include "hooks/calls/call_run.h"

#include <stdbool.h>
#include <stdint.h>

uint64_t tbd_map_page_up(uint64_t bytes);
bool tbd_map_overlaps(uint64_t start, uint64_t end, uint64_t other_start, uint64_t other_end);
/* Is any byte of it the engine's, or in a patch area? */
bool tbd_map_is_engine(uint64_t start, uint64_t end);
/* Lets the program go before a call that would change such a range. */
void tbd_map_check(struct tbd_call *call, uint64_t start, uint64_t bytes);
/* Refuses advice that a recording cannot follow, and finishes the call. */
bool tbd_map_refuses_advice(struct tbd_call *call, uint64_t advice);

/* Sends contents and marks of touched pages in the range, before they are lost. */
void tbd_map_capture(struct tbd_thread *thread, uint64_t start, uint64_t end);
/* Forgets translations of code in the range. */
void tbd_map_flush_code(struct tbd_thread *thread, uint64_t start, uint64_t end);
/* Nothing is mapped in the range any more: takes it out of the table and tells the trace. */
void tbd_map_remove(struct tbd_thread *thread, uint64_t start, uint64_t end);
/* A new mapping, which replaces all others in its range. */
void tbd_map_add(struct tbd_thread *thread, struct tbd_msg_region *map, const char *path);
/* A mapping whose pages become known when they are touched. */
void tbd_map_add_unknown(struct tbd_thread *thread, const struct tbd_msg_region *map,
                         const char *path);
/* A message for what no argument of a call tells (TBD_MAPPED_*).  A replay sends its touched pages of the range then, as
 * tbd_map_capture() does. */
void tbd_map_tell(struct tbd_thread *thread, uint64_t start, uint64_t end, uint32_t prot,
                  uint32_t flags);
/* The contents of the range end here; the mappings stay. */
void tbd_map_drop_contents(struct tbd_thread *thread, uint64_t from, uint64_t to);
/* Tells the trace that the contents of the range end here; the table stays. */
void tbd_map_send_unmap(struct tbd_thread *thread, uint64_t start, uint64_t end);
/* Tells the trace every region in the range as it is now; `zero`: their pages are fresh. */
void tbd_map_send(struct tbd_thread *thread, uint64_t start, uint64_t end, bool zero);

#endif
