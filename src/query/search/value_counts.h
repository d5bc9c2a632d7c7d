// SPDX-License-Identifier: MIT
/* value_counts.h - how often each of many numbers was met */
#ifndef TBD_QUERY_VALUE_COUNTS_H
#define TBD_QUERY_VALUE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tbd_value_count {
    uint64_t value, count; /* count 0: free */
};
struct tbd_value_counts {
    struct tbd_value_count *cells; /* hash table, owned */
    size_t count, capacity;        /* capacity: 0, or a power of two */
};

/* False without memory. */
bool tbd_value_counts_add(struct tbd_value_counts *counts, uint64_t value);
void tbd_value_counts_free(struct tbd_value_counts *counts);

#endif
