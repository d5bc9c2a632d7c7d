// SPDX-License-Identifier: MIT
/* call_list.h - calls: entries of functions, each with what ended it */
#ifndef TBD_QUERY_CALL_LIST_H
#define TBD_QUERY_CALL_LIST_H

#include "query/stepping/frame_end.h"

struct tbd_listed_call {
    struct tbd_call_entry enter;
    struct tbd_position exit; /* of TBD_FRAME_RETURNS */
    uint64_t retval;
    enum tbd_frame_end end;
    bool is_closed; /* its frame does not come back */
};

/* What own_calls.h needs of a return. */
struct tbd_own_return {
    struct tbd_position position;
    uint64_t sp;
    uint64_t retval;
    uint32_t thread;
    uint32_t flags; /* TBD_EVENT_ELSEWHERE, TBD_EVENT_OF_OTHER, TBD_EVENT_OVERWRITES */
};

/* The arrays lie in large buffers. */
struct tbd_call_list {
    struct tbd_listed_call *all; /* owned; by entry */
    size_t count, capacity;
    struct tbd_event *events; /* owned: entries, and returns that may end them; in order.  ... */
    size_t event_count, event_capacity;
    bool has_kept; /* some of them have values that are owned, too */
    struct tbd_own_return
        *returns; /* owned: with own_calls.h, which has only entries in `events` */
    size_t return_count, return_capacity;
    bool is_odd; /* with own_calls.h, which cannot tell */
};

/* Finds the calls whose entries the question, of func_enter, is about; takes the question.  Each window
 * is searched once at most: those that may have entries, and those in which one of these calls may
 * end. */
enum tbd_exit tbd_call_list_find(struct tbd_command_run *run, struct tbd_question *question,
                                 struct tbd_call_list *out);
void tbd_call_list_free(struct tbd_call_list *list);

#endif
