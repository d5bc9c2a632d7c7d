// SPDX-License-Identifier: MIT
/* window_modules.h - the modules of a window, for names that expressions use (values/module_names.h) */
#ifndef TBD_QUERY_WINDOW_MODULES_H
#define TBD_QUERY_WINDOW_MODULES_H

#include "query/session/code/symbols.h"
#include "query/values/module_names.h"

struct tbd_window_modules {
    struct tbd_symbols *symbols; /* borrowed */
    uint32_t window;
};

/* Borrows both. */
struct tbd_name_modules tbd_window_modules_of(struct tbd_window_modules *modules,
                                              const struct tbd_place_of *place);
/* Is the module the program itself? */
bool tbd_module_is_program(const struct tbd_module *module);

#endif
