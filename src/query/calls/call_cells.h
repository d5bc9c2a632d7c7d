// SPDX-License-Identifier: MIT
/* call_cells.h - rows of calls as texts, for tables and CSV
 *
 * A row has the same texts as one made by way of its JSON object, in a tenth of the time: names are looked up once for
 * an address, debug information once for a function. */
#ifndef TBD_QUERY_CALL_CELLS_H
#define TBD_QUERY_CALL_CELLS_H

#include "query/calls/call_registers.h"
#include "query/commands/rows.h"

struct tbd_call_cells;

/* Borrows both.  NULL without memory. */
struct tbd_call_cells *tbd_call_cells_new(struct tbd_rows *rows, struct tbd_call_shapes *shapes);
void tbd_call_cells_free(struct tbd_call_cells *cells); /* NULL is fine */
/* False: the call needs more than is known here, and nothing is done. */
bool tbd_call_cells_add(struct tbd_call_cells *cells, const struct tbd_listed_call *call,
                        const struct tbd_output_registers *at_entry,
                        const struct tbd_output_registers *at_return);

#endif
