// SPDX-License-Identifier: MIT
/* output.h - answers for people and for scripts
 *
 * JSON: one object per line; addresses and values are hexadecimal strings, counts are numbers. */
#ifndef TBD_QUERY_OUTPUT_H
#define TBD_QUERY_OUTPUT_H

#include "query/session/event.h"
#include "query/session/session.h"
#include "query/session/source/source.h"

#include <jansson.h>
#include <stdio.h>

/* Values up to this many bytes are printed as one number, longer ones byte by byte. */
#define TBD_OUTPUT_NUMBER_BYTES 16u
#define TBD_OUTPUT_CUT_BYTES    64u

/* An object with the keys time, offset, thread, type, pc, module, function, text and those of this
 * type of event; owned by the caller. */
json_t *tbd_output_event(struct tbd_session *session, const struct tbd_event *event);
/* A time: a number, or text where blocks before it are not counted (query/session/position_text.h). */
json_t *tbd_output_time(const struct tbd_session *session, uint64_t time);
/* The keys of a signal event, without `from`. */
void tbd_output_signal(const struct tbd_event *event, json_t *object);
/* Prints such an object as one line of JSON, or as lines of text. */
void tbd_output_print_event(const struct tbd_session *session, const json_t *object, FILE *out);
/* The end of the first of these lines: "0x401136  crash!main+0x10  crash.c:7  push rbp". */
void tbd_output_print_place(const json_t *object, FILE *out);
/* "SIGSEGV  reason SEGV_MAPERR  addr 0x0  at 0x401136  crash!main+0x10  crash.c:7", of such keys. */
void tbd_output_print_signal(const json_t *object, FILE *out);
/* One line of JSON; releases `object`. */
void tbd_output_line(json_t *object, FILE *out);
json_t *tbd_output_hex(uint64_t value);
void tbd_output_count(json_t *object, const char *key, uint64_t value);
/* A string that may not be UTF-8: a byte that is not becomes \xff, four characters.  NULL: null. */
json_t *tbd_output_text(const char *text);
/* The numbers of windows that an answer lacks. */
json_t *tbd_output_windows(const struct tbd_left_out *left);
/* Puts file and line into `object`, if they are known. */
void tbd_output_source(const struct tbd_source_line *line, json_t *object);
/* Puts "list.c:12" into `row` as `source`, the cell of tables. */
void tbd_output_source_cell(const char *file, uint32_t line, json_t *row);
/* "  list.c:12", safe for a terminal, or "" if it is not known; returns `out`. */
char *tbd_output_source_text(const struct tbd_source_line *line, char *out, size_t bytes);
/* Puts module, function, function_offset, file and line of `address` as of `window` into `object`. */
void tbd_output_symbol(struct tbd_session *session, uint32_t window, uint64_t address,
                       json_t *object);
/* The same of a frame's pc, which the call at `call_pc` returns to. */
void tbd_output_symbol_of_frame(struct tbd_session *session, uint32_t window, uint64_t call_pc,
                                uint64_t pc, json_t *object);

#endif
