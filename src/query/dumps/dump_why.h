// SPDX-License-Identifier: MIT
/* dump_why.h - why in a dump: which instructions made a value, as far as rings and values tell (query/past) */
#ifndef TBD_QUERY_DUMP_WHY_H
#define TBD_QUERY_DUMP_WHY_H

#include "query/commands/commands.h"

#include <jansson.h>

struct tbd_dump_run;
struct tbd_past;

/* Where the thread last wrote what run->text has from `from` on, a $register or something with a place, before the past's position: a row whose
 * `certain` is false if stores to unknown addresses lie between, and whose position is null if that is older than what is
 * simulated.  NULL: it has no place. */
json_t *tbd_dump_why_written(const struct tbd_dump_run *dump, struct tbd_past *past, size_t from);
enum tbd_exit tbd_dump_run_why(struct tbd_command_run *run);

#endif
