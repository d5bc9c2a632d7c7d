// SPDX-License-Identifier: MIT
/* large_buffers.h - large buffers that are reused
 *
 * A window's events take tens of megabytes, and windows come and go: new memory from the kernel,
 * cleared and faulted in for each, took two fifths of the time of replaying perl.  Buffers given
 * back are kept for the next caller, up to a limit.  A buffer may be given back by another thread
 * than the one that took it. */
#ifndef TBD_FORMAT_LARGE_BUFFERS_H
#define TBD_FORMAT_LARGE_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>

/* At least `bytes` bytes, 64-aligned, of any contents.  NULL without memory. */
void *tbd_large_buffer_take(size_t bytes);
/* A larger buffer with the first `used` bytes of `buffer`, which is given back; on failure NULL, and
 * `buffer` stays.  `buffer` may be NULL. */
void *tbd_large_buffer_grow(void *buffer, size_t used, size_t bytes);
/* The usable bytes of a buffer. */
size_t tbd_large_buffer_bytes(const void *buffer);
/* The first `bytes` bytes will be written: their pages are made at once, not by a fault for each. */
void tbd_large_buffer_ready(void *buffer, size_t bytes);
void tbd_large_buffer_give(void *buffer); /* NULL is fine */
/* From now on at most `bytes` bytes are kept for the next caller; less than by default. */
void tbd_large_buffers_keep(size_t bytes);

/* Like tbd_array_grow() (base/array.h), for arrays that may have a hundred thousand elements: they
 * lie in a large buffer, which is to be given back. */
bool tbd_large_array_grow(void *array, size_t count, size_t *capacity, size_t element);
/* Adds `more_count` elements to the array's `*count`; false without memory, and nothing was added. */
bool tbd_large_array_append(void *array, size_t *count, size_t *capacity, size_t element,
                            const void *more, size_t more_count);

#endif
