// SPDX-License-Identifier: MIT
/* print_text.h - characters and strings in words, by the rules of gdb
 *
 * Runs of more than TBD_TEXT_REPEATS equal characters become 'a' <repeats 20 times>; no new run
 * begins after TBD_TEXT_SHOWN characters; only the last of the NULs at the end is left out.  These
 * are gdb's defaults (print repeats 10, print elements 200, print null-stop off).  Any thread. */
#ifndef TBD_QUERY_PRINT_TEXT_H
#define TBD_QUERY_PRINT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TBD_TEXT_SHOWN   200u
#define TBD_TEXT_REPEATS 10u

void tbd_text_print_char(FILE *out, uint8_t c, char quote);
/* is_cut: the string has more characters than these. */
void tbd_text_print(FILE *out, const uint8_t *text, size_t count, bool is_cut);

#endif
