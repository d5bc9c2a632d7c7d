// SPDX-License-Identifier: MIT
/* note_sites.c - the sites at which a worker's replay process notes registers
 *
 * Sites are only added: a question asks for almost the same ones in each window, and each change
 * costs all translations.  Blocks with other notes are different blocks, so a change also empties
 * their table. */
#include "replay/worker.h"

#include "format/window/blocks.h"

#include <stdlib.h>
#include <string.h>

/* Merges two lists, both sorted by pc; `out` has space for all.  Returns the number of sites. */
static size_t merge(const struct tbd_note_site *a, size_t a_count, const struct tbd_note_site *b,
                    size_t b_count, struct tbd_note_site *out)
{
    size_t count = 0;

    while (a_count != 0 || b_count != 0) {
        bool takes_a = a_count != 0 && (b_count == 0 || a->pc <= b->pc);
        bool takes_b = b_count != 0 && (a_count == 0 || b->pc <= a->pc);

        out[count] = takes_a ? *a : *b;
        if (takes_a && takes_b)
            out[count].registers |= b->registers;
        count++;
        a += takes_a;
        a_count -= takes_a;
        b += takes_b;
        b_count -= takes_b;
    }
    return count;
}

bool tbd_worker_add_notes(struct tbd_worker *worker, const struct tbd_note_site *sites,
                          size_t count)
{
    size_t capacity = worker->note_count + count, merged_count;
    struct tbd_note_site *merged = malloc((capacity + 1) * sizeof(*merged));
    struct tbd_block_table *table;

    if (!merged)
        return false;
    merged_count = merge(worker->notes, worker->note_count, sites, count, merged);
    if (worker->noted && merged_count == worker->note_count &&
        memcmp(merged, worker->notes, merged_count * sizeof(*merged)) == 0) {
        free(merged);
        return true;
    }
    table = tbd_block_table_new();
    if (!table) {
        free(merged);
        return false;
    }
    tbd_block_table_release(worker->noted);
    free(worker->notes);
    worker->noted = table;
    worker->notes = merged;
    worker->note_count = merged_count;
    worker->forget = true;
    return true;
}
