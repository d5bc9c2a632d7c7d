// SPDX-License-Identifier: MIT
/* field_names.h - an event's own values, by name: addr, oldval, retval, thread, ... */
#ifndef TBD_QUERY_FIELD_NAMES_H
#define TBD_QUERY_FIELD_NAMES_H

#include "query/condition/expr.h"

struct tbd_field_name {
    const char *name;
    enum tbd_event_field field;
    uint32_t types; /* bit per enum tbd_event_type that has it */
    const char *help;
};

/* Rows in order of documentation; ends with a NULL name. */
extern const struct tbd_field_name tbd_field_names[];

const struct tbd_field_name *tbd_field_find(const char *name, size_t bytes);
/* What is added to "there is no variable" where a field may have been meant ("; events have newval, oldval" for `value`); else "". */
const char *tbd_field_meant(const char *word);
/* "syscall == WORD", "signal != WORD": is the word at text[at] compared with the field `name`? */
bool tbd_field_is_compared(const char *text, size_t at, const char *name);

#endif
