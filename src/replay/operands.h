// SPDX-License-Identifier: MIT
/* operands.h - the operand areas of a replay process's stream, seen from the driver
 *
 * What a process writes into an area becomes a window's operands where it lies, without a copy.  So
 * an area is lent to one window at a time, and outlives the process when the window does.
 *
 * OPERANDS-1  Areas are mapped privately: what tbd_area_own() has taken cannot be changed by the
 *     process any more.  It is for messages, whose lengths are read again and again; all else in an
 *     area is values, which nobody relies on.
 * OPERANDS-2  When an area is given back it is the process's again, all of it.
 * Any thread may give an area back. */
#ifndef TBD_REPLAY_OPERANDS_H
#define TBD_REPLAY_OPERANDS_H

#include "organizer/consume.h"

struct tbd_areas;
struct tbd_operand_area;

/* Of the stream behind `fd`.  NULL: there are none, or they cannot be mapped: one can do
 * without. */
struct tbd_areas *tbd_areas_new(int fd, const struct tbd_stream_areas *where);
/* Lent ones stay until they are given back. */
void tbd_areas_free(struct tbd_areas *areas);

/* One that nobody has; NULL if there is none (or `areas` is NULL). */
struct tbd_operand_area *tbd_area_take(struct tbd_areas *areas);
void tbd_area_give(struct tbd_operand_area *area); /* NULL is fine */

uint8_t *tbd_area_bytes(const struct tbd_operand_area *area);
size_t tbd_area_capacity(const struct tbd_operand_area *area);
uint32_t tbd_area_index(const struct tbd_operand_area *area);

/* The bytes [from, from + bytes) are this process's own from here on (OPERANDS-1).  False without
 * memory. */
TBD_MUST_CHECK bool tbd_area_own(struct tbd_operand_area *area, size_t from, size_t bytes);
/* The process has written `bytes` more behind the first `from`; `written` is where it did: pages of
 * both that are owned already get them from there. */
void tbd_area_more(struct tbd_operand_area *area, size_t from, const uint8_t *written,
                   size_t bytes);

#endif
