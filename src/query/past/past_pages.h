// SPDX-License-Identifier: MIT
/* past_pages.h - memory at the end of a dump, for simulations: page by page, and whether it ever changed
 *
 * Memory that is shared with other processes is not known.  Memory that nobody may write at the end, and that has what the mapped file has, has always had it: code and constants. */
#ifndef TBD_QUERY_PAST_PAGES_H
#define TBD_QUERY_PAST_PAGES_H

#include "query/rings/dump_rings.h"
#include "query/session/session.h"
#include "replay/simulate/bits.h"

struct tbd_past_pages;

/* What a simulation of thread number `own` of the rings asks for.  Borrows all; `others` may be NULL. */
struct tbd_past_others;
struct tbd_past_pages_of {
    const struct tbd_rings *ring;
    const struct tbd_past_others *others;
    uint32_t own;
};
/* NULL without memory. */
struct tbd_past_pages *tbd_past_pages_new(struct tbd_session *session,
                                          const struct tbd_past_pages_of *of);
void tbd_past_pages_free(struct tbd_past_pages *pages);

/* For struct tbd_simulation_source: `pages` is a struct tbd_past_pages. */
struct tbd_bits tbd_past_pages_final(void *pages, uint64_t address);
struct tbd_bits tbd_past_pages_constant(void *pages, uint64_t address);

bool tbd_past_pages_is_theirs(void *pages, uint64_t address);
size_t tbd_past_pages_fixed_since(void *pages, uint64_t address);

/* A system call of the steps that are simulated: position `after` follows it; NULL: nothing is known of it.  Pages that nobody may write at
 * the end are the same since the last call that may have mapped or protected them, if no other thread runs. */
struct tbd_value_call;
TBD_MUST_CHECK enum tbd_status tbd_past_pages_note_call(struct tbd_past_pages *pages, size_t after,
                                                        const struct tbd_value_call *call);

#endif
