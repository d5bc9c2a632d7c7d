// SPDX-License-Identifier: MIT
/* path_rows.h - the rows of `path`: stretches of what a thread ran, at one source line, or block by block, or an instruction each */
#ifndef TBD_QUERY_PATH_ROWS_H
#define TBD_QUERY_PATH_ROWS_H

#include "query/commands/rows.h"
#include "query/rings/dump_rings.h"

enum tbd_path_unit { TBD_PATH_LINES = 0, TBD_PATH_BLOCKS, TBD_PATH_INSNS };

struct tbd_path_source;
struct tbd_path_values;

struct tbd_path_rows {
    struct tbd_rings *ring;
    enum tbd_path_unit unit;
    enum tbd_syntax syntax;
    uint64_t from;                        /* entries before the thread's end; 0: its end */
    uint32_t from_insn;                   /* with `forward`: of that block */
    bool forward;                         /* from there; else up to there */
    bool folds;                           /* rows that repeat are shown once, with how often */
    bool with_text;                       /* of source lines */
    struct tbd_path_values *values;       /* borrowed; NULL: not wanted */
    bool with_values;                     /* a column of them */
    const struct tbd_path_merged *merged; /* borrowed; NULL: rows of each thread by itself */
    const struct tbd_crash_when *when;    /* borrowed; NULL: rows are of a thread, not of a table */
    bool is_kept;                         /* that table is of what parts have kept */
    struct tbd_disas *disas;              /* owned; NULL until needed */
    struct tbd_path_source *sources;      /* owned; NULL: none */
    uint64_t
        on; /* set: where to go on, as `from`, if the last thread's stretch ended before `max` rows; or 0 */
};

/* Rows of the merged view are those of one stretch of a thread. */
struct tbd_path_merged {
    uint64_t first, end; /* of the thread's entries */
    uint64_t group;      /* from 1, in order */
    const uint32_t *
        beside; /* borrowed: threads that ran something of which nobody knows whether it was before or after */
    size_t beside_count;
};

const char *const *tbd_path_rows_columns(const struct tbd_path_rows *path);
/* At most `max` rows of one thread.  As tbd_rings_reach(). */
TBD_MUST_CHECK enum tbd_status tbd_path_rows_add(struct tbd_path_rows *path,
                                                 struct tbd_rings_thread *thread, size_t max,
                                                 struct tbd_rows *rows);
/* How many rows it would add. */
TBD_MUST_CHECK enum tbd_status tbd_path_rows_count(struct tbd_path_rows *path,
                                                   struct tbd_rings_thread *thread, size_t max,
                                                   size_t *out);
void tbd_path_rows_free(struct tbd_path_rows *path);

#endif
