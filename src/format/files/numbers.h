// SPDX-License-Identifier: MIT
/* numbers.h - lists of addresses and other 64-bit numbers
 *
 * Any thread; not for signal handlers (qsort may allocate). */
#ifndef TBD_FORMAT_NUMBERS_H
#define TBD_FORMAT_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

/* Puts `numbers` (NULL only with count 0) in ascending order, each once; gives how many are
 * left. */
size_t tbd_numbers_sort_unique(uint64_t *numbers, size_t count);

#endif
