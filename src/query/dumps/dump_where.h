// SPDX-License-Identifier: MIT
/* dump_where.h - a condition over values at places of a dump's rings */
#ifndef TBD_QUERY_DUMP_WHERE_H
#define TBD_QUERY_DUMP_WHERE_H

#include "query/dumps/dump_run.h"
#include "query/past/past_condition.h"

struct tbd_dump_where {
    struct tbd_past_condition condition;
    struct tbd_past *past;  /* to be given back; NULL: none yet */
    enum tbd_status status; /* why the search cannot go on; the session says more */
};

/* Is the condition true there?  False with `status` set: values are not computed as far back. */
bool tbd_dump_where_holds(struct tbd_dump_run *dump, struct tbd_dump_where *where,
                          const struct tbd_dump_place *place);

#endif
