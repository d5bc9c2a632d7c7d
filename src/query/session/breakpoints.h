// SPDX-License-Identifier: MIT
/* breakpoints.h - the places and variables at which `continue` stops
 *
 * A session has one list; it lasts as long as the session.  A breakpoint is a question, as text: the
 * kind of event and its condition.
 *
 * BREAKPOINTS-1  Numbers begin with 1, ascend in the list, and are never given twice.  */
#ifndef TBD_QUERY_BREAKPOINTS_H
#define TBD_QUERY_BREAKPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tbd_breakpoint {
    unsigned number;
    bool is_temporary; /* removed at its first stop */
    uint64_t stops;
    char *shown;    /* owned: "break insert", as the user wrote it */
    char *question; /* owned: "TYPE where CONTEXT" */
};

struct tbd_breakpoints {
    struct tbd_breakpoint *all;
    size_t count, capacity;
    unsigned last_number;
};

/* The question of watched memory.  CHANGE: stores that change it, as a debugger's watchpoint stops at; more than
 * eight bytes: all stores, as conditions compare at most eight. */
enum tbd_watch_kind { TBD_WATCH_CHANGE, TBD_WATCH_STORE, TBD_WATCH_LOAD };
#define TBD_WATCH_BYTES 256u
void tbd_watch_question(enum tbd_watch_kind what, uint64_t address, uint64_t bytes,
                        char out[TBD_WATCH_BYTES]);

/* Copies both texts.  NULL: no memory.  Borrowed until the list changes. */
struct tbd_breakpoint *tbd_breakpoints_add(struct tbd_breakpoints *list, const char *shown,
                                           const char *question, bool is_temporary);
/* False: there is no such number. */
bool tbd_breakpoints_remove(struct tbd_breakpoints *list, unsigned number);
void tbd_breakpoints_clear(struct tbd_breakpoints *list);

#endif
