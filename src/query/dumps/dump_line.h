// SPDX-License-Identifier: MIT
/* dump_line.h - FILE:LINE as commands over dumps take it */
#ifndef TBD_QUERY_DUMP_LINE_H
#define TBD_QUERY_DUMP_LINE_H

#include "query/rings/dump_rings.h"

struct tbd_dump_line {
    char file[4096];
    uint32_t line; /* 0: any */
};

/* FILE:LINE, and FILE unless `needs_line`.  False: it is none. */
bool tbd_dump_line_read(const char *text, bool needs_line, struct tbd_dump_line *out);
/* Does the line, or one of the file, begin there? */
bool tbd_dump_is_line(const struct tbd_rings_place *names, const struct tbd_dump_line *wanted);

#endif
