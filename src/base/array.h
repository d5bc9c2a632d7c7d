// SPDX-License-Identifier: MIT
/* array.h - the room of arrays that grow
 *
 * For ordinary processes: it allocates with realloc(3).  Any thread; an array has one owner,
 * who frees it.  `array` is the address of the pointer to the elements, which is NULL at
 * first; `element` is the size of one in bytes.  False: without memory; array and capacity
 * are then as they were. */
#ifndef TBD_BASE_ARRAY_H
#define TBD_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Room for one more behind `count` of `*capacity` elements. */
bool tbd_array_grow(void *array, size_t count, size_t *capacity, size_t element);

/* Room for `need` elements in all. */
bool tbd_array_reserve(void *array, size_t need, size_t *capacity, size_t element);

/* Room for one more behind `count` elements, in an array without a capacity of its own: it is the
 * power of two that holds `count`. */
bool tbd_array_double(void *array, size_t count, size_t element);

/* A table by number, such as a block's id: `index` is inside of it afterwards, and elements that are
 * new are zero. */
bool tbd_array_reach(void *array, size_t index, size_t *capacity, size_t element);

/* Two such tables that share a capacity.  False: one of them may be larger than that says. */
bool tbd_array_reach_both(void *array, size_t element, void *other, size_t other_element,
                          size_t index, size_t *capacity);

#endif
