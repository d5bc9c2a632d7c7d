// SPDX-License-Identifier: MIT
/* operands.h - the operand areas of a replay process's stream, seen from the driver
 *
 * The bytes that a process writes into an area become a window's operands in place, without a copy.
 * So an area is lent to one window at a time, and lives as long as the window, even if the process
 * ends.
 *
 * OPERANDS-1  Areas are mapped privately: after tbd_area_own() the process cannot change these
 *     bytes.  That is needed for messages, whose lengths are read repeatedly; the other bytes are
 *     values, which no code relies on.
 * OPERANDS-2  An area that is given back shows the process' memory again, all of it.  Any thread
 * may give an area back. */
#ifndef TBD_REPLAY_OPERANDS_H
#define TBD_REPLAY_OPERANDS_H

#include "organizer/consume.h"

struct tbd_areas;
struct tbd_operand_area;

/* Maps the areas of the stream in `fd`.  NULL: it has none, or they cannot be mapped; areas are
 * optional. */
struct tbd_areas *tbd_areas_new(int fd, const struct tbd_stream_areas *where);
/* Lent areas stay mapped until they are given back. */
void tbd_areas_free(struct tbd_areas *areas);

/* Takes a free area; NULL if there is none (or `areas` is NULL). */
struct tbd_operand_area *tbd_area_take(struct tbd_areas *areas);
void tbd_area_give(struct tbd_operand_area *area); /* NULL is fine */

uint8_t *tbd_area_bytes(const struct tbd_operand_area *area);
size_t tbd_area_capacity(const struct tbd_operand_area *area);
uint32_t tbd_area_index(const struct tbd_operand_area *area);

/* Makes the bytes [from, from + bytes) this process' own (OPERANDS-1).  False without memory. */
TBD_MUST_CHECK bool tbd_area_own(struct tbd_operand_area *area, size_t from, size_t bytes);
/* Called after the process has written `bytes` more bytes after the first `from`; they are at
 * `written`.  Copies them to pages that are owned already. */
void tbd_area_more(struct tbd_operand_area *area, size_t from, const uint8_t *written,
                   size_t bytes);

#endif
