// SPDX-License-Identifier: MIT
/* module_names.h - variables and types that the module of a place does not have, in the other modules of the program
 *
 * A module without debug information has symbols: a variable of an unknown type. */
#ifndef TBD_QUERY_MODULE_NAMES_H
#define TBD_QUERY_MODULE_NAMES_H

#include "query/debuginfo/dwarf_location.h"

struct tbd_name_module {
    struct tbd_dwarf *dwarf; /* NULL: no debug information */
    uint64_t bias;
    bool is_main_program;
};

/* The modules of a trace's window, or of a process. */
struct tbd_name_modules {
    /* Module `index`, from 0; false: there are no more. */
    bool (*at)(void *context, size_t index, struct tbd_name_module *out);
    bool (*symbol)(void *context, const char *name, uint64_t *out_address);
    void *context;
    const struct tbd_place_of *place; /* borrowed; in whose module the name was not found */
};

/* `of_program`: of the main program's debug information alone. */
bool tbd_modules_variable(const struct tbd_name_modules *modules, const char *name, bool of_program,
                          struct tbd_data *out);
bool tbd_modules_type(const struct tbd_name_modules *modules, const char *name,
                      struct tbd_type *out);

#endif
