// SPDX-License-Identifier: MIT
/* thread_table.h - threads in the index of a trace
 *
 * Nothing of this is written for a program that has one thread. */
#ifndef TBD_FORMAT_THREAD_TABLE_H
#define TBD_FORMAT_THREAD_TABLE_H

#include "format/files/disk.h"
#include "format/files/file.h"
#include "format/trace/trace.h"

/* An event of a thread, as the index has it. */
struct tbd_thread_event_note {
    struct tbd_disk_when when;
    struct tbd_disk_thread thread;
};

/* The threads that ran in one window. */
struct tbd_ran {
    uint32_t window;
    uint32_t count;
    const uint8_t *records; /* struct tbd_disk_ran; borrowed from the index file */
};

struct tbd_thread_table {
    struct tbd_thread_event_note *events;
    size_t event_count, event_capacity;
    struct tbd_ran *ran; /* by window */
    size_t ran_count, ran_capacity;
    void **sums; /* owned: records of merged windows */
    size_t sum_count, sum_capacity;
    struct tbd_thread_info *threads;
    size_t thread_count, thread_capacity;
};

/* An index record of type THREAD or RAN.  TBD_CORRUPT: it is impossible. */
TBD_MUST_CHECK enum tbd_status tbd_thread_table_read(struct tbd_thread_table *table,
                                                     const struct tbd_record_view *record);
/* Merges the windows at places first .. first+count-1; moments in each are shifted.  `first` is a
 * place; the table still has window numbers. */
TBD_MUST_CHECK enum tbd_status tbd_thread_table_merge(struct tbd_trace *trace, uint32_t first,
                                                      uint32_t count, const uint8_t *shifts);
/* Converts window numbers to places. */
void tbd_thread_table_place(struct tbd_trace *trace,
                            uint32_t (*place)(const struct tbd_trace *trace, uint32_t number));
void tbd_thread_table_free(struct tbd_thread_table *table);

/* The trace's table, with windows by place. */
const struct tbd_thread_table *tbd_trace_threads(const struct tbd_trace *trace);

#endif
