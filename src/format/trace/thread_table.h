// SPDX-License-Identifier: MIT
/* thread_table.h - threads in the index of a trace
 *
 * Nothing of this is written for a program that has one thread. */
#ifndef TBD_FORMAT_THREAD_TABLE_H
#define TBD_FORMAT_THREAD_TABLE_H

#include "format/files/disk.h"
#include "format/files/file.h"
#include "format/trace/trace.h"

/* Events of a thread as the index has them. */
struct tbd_thread_event_note {
    struct tbd_disk_when when;
    struct tbd_disk_thread thread;
};

/* Who ran in one window. */
struct tbd_ran {
    uint32_t window;
    uint32_t count;
    const uint8_t *records; /* struct tbd_disk_ran; borrowed from the index file */
};

struct tbd_thread_table {
    struct tbd_thread_event_note *events;
    size_t event_count, event_room;
    struct tbd_ran *ran; /* by window */
    size_t ran_count, ran_room;
    void **sums; /* owned: records of merged windows */
    size_t sum_count, sum_room;
    struct tbd_thread_info *threads;
    size_t thread_count, thread_room;
};

/* An index record of type THREAD or RAN.  TBD_CORRUPT: it is impossible. */
TBD_MUST_CHECK enum tbd_status tbd_thread_table_read(struct tbd_thread_table *table,
                                                     const struct tbd_record_view *record);
/* The windows at places first .. first+count-1 of the trace are going to be one; moments in each
 * are shifted.  `first`.. are places, in the table windows are numbers still. */
TBD_MUST_CHECK enum tbd_status tbd_thread_table_merge(struct tbd_trace *trace, uint32_t first,
                                                      uint32_t count, const uint8_t *shifts);
/* Numbers become places. */
void tbd_thread_table_place(struct tbd_trace *trace,
                            uint32_t (*place)(const struct tbd_trace *trace, uint32_t number));
void tbd_thread_table_free(struct tbd_thread_table *table);

/* Of the trace, with windows by place. */
const struct tbd_thread_table *tbd_trace_threads(const struct tbd_trace *trace);

#endif
