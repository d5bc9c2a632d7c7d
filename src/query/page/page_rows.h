// SPDX-License-Identifier: MIT
/* page_rows.h - what a command prints, kept in memory up to a number of lines
 *
 * A question may have millions of rows, and a page shows some thousand.  The command is interrupted when it has
 * printed as many as are wanted. */
#ifndef TBD_QUERY_PAGE_ROWS_H
#define TBD_QUERY_PAGE_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct tbd_page_rows {
    FILE *out;   /* for the command; owned */
    char *bytes; /* owned: whole lines */
    size_t used, capacity, lines, most;
    bool is_cut; /* there was more, and the command was interrupted */
};

/* False without memory.  End it in any case. */
bool tbd_page_rows_start(struct tbd_page_rows *rows, size_t most);
/* Puts what was printed into `answer`: lines that are objects of JSON under "objects", all others under "text";
 * and "cut". */
void tbd_page_rows_put(struct tbd_page_rows *rows, json_t *answer);
void tbd_page_rows_end(struct tbd_page_rows *rows);

#endif
