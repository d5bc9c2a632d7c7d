// SPDX-License-Identifier: MIT
/* pager.h - output for a person at a terminal: coloured, and paged when it is longer
 * than the screen
 *
 * A stream that holds back what it gets until that fills the screen; only then is a pager started
 * ($PAGER, else less), and everything goes there. */
#ifndef TBD_QUERY_PAGER_H
#define TBD_QUERY_PAGER_H

#include <stdbool.h>
#include <stdio.h>

struct tbd_pager;

/* `rows` of the screen; 0: never page.  NULL without memory.  Write to tbd_pager_stream(), then
 * close. */
struct tbd_pager *tbd_pager_open(unsigned rows, bool colours);
FILE *tbd_pager_stream(struct tbd_pager *pager);
/* Writes what is left and waits for the pager's end. */
void tbd_pager_close(struct tbd_pager *pager);

#endif
