// SPDX-License-Identifier: MIT
/* diff_builds.h - the modules of two runs, and what two builds of a module have in common */
#ifndef TBD_QUERY_DIFF_BUILDS_H
#define TBD_QUERY_DIFF_BUILDS_H

#include "query/debuginfo/dwarf_file.h"
#include "query/session/session.h"

struct tbd_diff_builds;

/* Pairs the modules of both sides, and compares the functions of pairs that are two builds.  Free it in any case. */
TBD_MUST_CHECK enum tbd_status tbd_diff_builds_new(struct tbd_session *a, struct tbd_session *b,
                                                   struct tbd_diff_builds **out);
void tbd_diff_builds_free(struct tbd_diff_builds *builds); /* NULL is fine */

/* The number of the pair that a module of `side` (0, 1) belongs to; UINT32_MAX: the other side has no such module. */
uint32_t tbd_diff_builds_pair(const struct tbd_diff_builds *builds, unsigned side,
                              const struct tbd_module *module);
/* Do both sides have the same file? */
bool tbd_diff_builds_is_same(const struct tbd_diff_builds *builds, uint32_t pair);
/* Have the functions of this name the same code on both sides? */
bool tbd_diff_builds_is_same_function(const struct tbd_diff_builds *builds, uint32_t pair,
                                      const char *name);
#define TBD_DIFF_ONLY_SECOND 0x40000000u
/* The number of a line that both sides' texts of the source file have alike is the first side's.  A line that only
 * the second one has gets one from TBD_DIFF_ONLY_SECOND on.  0: the texts are not both known. */
uint32_t tbd_diff_builds_line(const struct tbd_diff_builds *builds, unsigned side, const char *file,
                              uint32_t line);
/* The next module, from *io_index on, that is of two builds. */
bool tbd_diff_builds_differ(const struct tbd_diff_builds *builds, size_t *io_index,
                            const char **out_name);

/* ---- texts of source files (diff_lines.c) ---- */

struct tbd_diff_lines;

struct tbd_diff_lines *tbd_diff_lines_new(void);        /* NULL without memory */
void tbd_diff_lines_free(struct tbd_diff_lines *lines); /* NULL is fine */
/* Adds the source files that both sides name; either may be NULL.  False without memory. */
bool tbd_diff_lines_add(struct tbd_diff_lines *lines, struct tbd_dwarf *a, struct tbd_dwarf *b);
uint32_t tbd_diff_lines_number(const struct tbd_diff_lines *lines, unsigned side, const char *file,
                               uint32_t line);

#endif
