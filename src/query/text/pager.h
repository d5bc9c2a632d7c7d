// SPDX-License-Identifier: MIT
/* pager.h - output for a person at a terminal: coloured, and paged when it is longer than the
 * screen
 *
 * The stream holds its text back until the text fills the screen; only then it starts a pager
 * ($PAGER, else less), and writes everything there. */
#ifndef TBD_QUERY_PAGER_H
#define TBD_QUERY_PAGER_H

#include <stdbool.h>
#include <stdio.h>

struct tbd_pager;

/* `rows` is the height of the screen; 0: never page. NULL if there is no memory. Write to
 * tbd_pager_stream(), then close. */
struct tbd_pager *tbd_pager_open(unsigned rows, bool colours);
FILE *tbd_pager_stream(struct tbd_pager *pager);
/* Writes the rest and waits until the pager ends. */
void tbd_pager_close(struct tbd_pager *pager);

#endif
