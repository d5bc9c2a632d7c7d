// SPDX-License-Identifier: MIT
/* dump_function.h - which functions of a dump's rings a name means
 *
 * Those that have it; and what it means where the dump was taken: an alias, a pattern, an indirect function (memcpy, strlen, ... of libc),
 * which stands for what the program's import slots lead to.  A dump that has rings only knows the names alone. */
#ifndef TBD_QUERY_DUMP_FUNCTION_H
#define TBD_QUERY_DUMP_FUNCTION_H

#include "query/commands/commands.h"
#include "query/rings/dump_rings.h"

struct tbd_dump_function {
    const char *name;         /* or `module!name` */
    struct tbd_symbol *found; /* owned */
    size_t count;
    struct tbd_symbols *symbols; /* borrowed; NULL: there are none */
};

/* False without memory.  Free it all the same. */
bool tbd_dump_function_find(const struct tbd_command_run *run, const char *name,
                            struct tbd_dump_function *out);
void tbd_dump_function_free(struct tbd_dump_function *function);

/* Is the place in it? */
bool tbd_dump_is_function(const struct tbd_rings_place *place,
                          const struct tbd_dump_function *function);

#endif
