// SPDX-License-Identifier: MIT
/* where.h - places in a running program, as a user names them: in a script of probes, in a trigger
 *
 * Names are untrusted text of bounded length. */
#ifndef TBD_QUERY_WHERE_H
#define TBD_QUERY_WHERE_H

#include <stddef.h>
#include <stdint.h>

#define TBD_WHERE_BYTES 512u

/* The first three are not in the program; only scripts have them. */
enum tbd_where_kind {
    TBD_WHERE_BEGIN,
    TBD_WHERE_END,
    TBD_WHERE_INTERVAL,
    TBD_WHERE_ENTRY,   /* uprobe:MODULE:FUNCTION[+OFFSET] */
    TBD_WHERE_RETURNS, /* uretprobe:MODULE:FUNCTION: each of its ret instructions */
    TBD_WHERE_ALL,     /* insn:MODULE:FUNCTION[+FROM..+TO]: each of its instructions */
    TBD_WHERE_RANGE,   /* range:MODULE:FROM-TO: each instruction there, by addresses of the file */
    TBD_WHERE_LINE,    /* line:FILE:NUMBER */
    TBD_WHERE_ADDRESS, /* address:NUMBER */
};

struct tbd_where {
    enum tbd_where_kind kind;
    size_t at, length; /* in the text */
    char module[TBD_WHERE_BYTES];
    char name[TBD_WHERE_BYTES]; /* of a function, or a source file; * stands for anything */
    uint64_t number;            /* offset, line, address; INTERVAL: nanoseconds */
    uint64_t limit;             /* ALL, RANGE: where they end; 0: with the function */
};

#endif
