// SPDX-License-Identifier: MIT
/* large_buffers.h - big pieces of memory, used again
 *
 * A window's events take tens of megabytes, and windows come and go: memory fresh from the kernel, cleared and
 * faulted in for each, took two fifths of the time of replaying perl.  What is given back here is kept for the
 * next that asks, up to a limit.  Any thread may give what another one took. */
#ifndef TBD_FORMAT_LARGE_BUFFERS_H
#define TBD_FORMAT_LARGE_BUFFERS_H

#include <stddef.h>

/* At least `bytes` bytes, 64-aligned, of any contents.  NULL without memory. */
void *tbd_large_buffer_take(size_t bytes);
/* The same with the first `used` bytes of `room`, which is given back; on failure it stays, and NULL is returned.
 * `room` may be NULL. */
void *tbd_large_buffer_grow(void *room, size_t used, size_t bytes);
/* How many bytes there are. */
size_t tbd_large_buffer_bytes(const void *room);
void tbd_large_buffer_give(void *room); /* NULL is fine */

#endif
