// SPDX-License-Identifier: MIT
/* array.h - the capacity of growing arrays
 *
 * For ordinary processes: it allocates with realloc(3).  Any thread; an array has one owner, who
 * frees it.  `array` is the address of the pointer to the elements, which is NULL at first;
 * `element` is the size of one in bytes.  False: no memory; array and capacity are unchanged. */
#ifndef TBD_BASE_ARRAY_H
#define TBD_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Grows to at least `count` + 1 elements. */
bool tbd_array_grow(void *array, size_t count, size_t *capacity, size_t element);

/* Grows to at least `need` elements. */
bool tbd_array_reserve(void *array, size_t need, size_t *capacity, size_t element);

/* Grows an array without a capacity field to at least `count` + 1 elements: its capacity is the
 * least power of two >= `count`. */
bool tbd_array_double(void *array, size_t count, size_t element);

/* Grows a table by number, such as a block's id, to include `index`; new elements are zero. */
bool tbd_array_reach(void *array, size_t index, size_t *capacity, size_t element);

/* The same for two tables that share a capacity.  False: one of them may be larger than the
 * capacity says. */
bool tbd_array_reach_both(void *array, size_t element, void *other, size_t other_element,
                          size_t index, size_t *capacity);

/* For qsort(3) of an array of uint64_t. */
int tbd_compare_words(const void *left, const void *right);

#endif
