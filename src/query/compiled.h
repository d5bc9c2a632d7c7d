// SPDX-License-Identifier: MIT
/* compiled.h - one C expression at every place of a trace, fast
 *
 *   tbd_compiled_new()    an expression over variables, members, registers and the caller's fields
 *   tbd_compiled_at()     its code for an address: compiled when the first event comes there, then
 *                         found in a table of address ranges
 *   tbd_c_code_run()      c_code.h: evaluates it, with no look at debug information
 *
 * For conditions on events: one call of tbd_compiled_at() and one of tbd_c_code_run() for each.
 * Needs what the code needs only: code->needs names the registers, code->needs_memory says whether
 * memory is read. One expression from one thread; helpers make their own. */
#ifndef TBD_QUERY_COMPILED_H
#define TBD_QUERY_COMPILED_H

#include "query/c_code.h"
#include "query/session.h"

struct tbd_compiled;

/* Copies the text; borrows the session and what `fields` (may be NULL) points to.  Fails for text
 * that is wrong anywhere (*error points at it); names are looked up later, at each place. */
TBD_MUST_CHECK enum tbd_status tbd_compiled_new(struct tbd_session *session,
                                                const struct tbd_c_fields *fields, const char *text,
                                                size_t from, size_t to, struct tbd_compiled **out,
                                                struct tbd_query_error *error);
void tbd_compiled_free(struct tbd_compiled *compiled); /* NULL is fine */

enum tbd_compiled_state {
    TBD_COMPILED_CODE =
        0,             /* *out is the code, borrowed until tbd_compiled_free() or a question about
                              another window */
    TBD_COMPILED_SLOW, /* tbd_source_place_open() and tbd_c_evaluate() at the position can tell */
    TBD_COMPILED_NOWHERE, /* a name does not mean anything here, or not something of a fitting type */
};
/* For an instruction at `address` in `window`. */
enum tbd_compiled_state tbd_compiled_at(struct tbd_compiled *compiled, uint32_t window,
                                        uint64_t address, const struct tbd_c_code **out);
/* Why the last answer was NOWHERE or SLOW. */
const struct tbd_query_error *tbd_compiled_error(const struct tbd_compiled *compiled);

#endif
