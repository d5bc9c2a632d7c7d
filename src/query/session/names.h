// SPDX-License-Identifier: MIT
/* names.h - the fixed names of the context language: an event's own values, and registers */
#ifndef TBD_QUERY_NAMES_H
#define TBD_QUERY_NAMES_H

#include "query/condition/expr.h"

struct tbd_field_name {
    const char *name;
    enum tbd_field field;
    uint32_t types; /* bit per enum tbd_event_type that has it */
    const char *help;
};

/* Rows in order of documentation; ends with a NULL name. */
extern const struct tbd_field_name tbd_field_names[];

struct tbd_register_name {
    uint32_t which; /* enum tbd_reg or TBD_EXPR_RIP ... */
    uint8_t shift;
    uint8_t width; /* bits */
};

const struct tbd_field_name *tbd_field_find(const char *name, size_t bytes);
bool tbd_register_find(const char *name, size_t bytes, struct tbd_register_name *out);
/* "rax" for a number below TBD_REG_COUNT, "rip", "rflags", "fs_base", "gs_base". */
const char *tbd_register_text(uint32_t which);

#endif
