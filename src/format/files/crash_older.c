// SPDX-License-Identifier: MIT
/* crash_older.c - entries that stay condensed in the file `crash`, expanded when somebody asks for them (crash_file.h)
 *
 * Chunks were checked as far as their places and sizes go; their bits are looked at here. */
#include "format/files/crash_file.h"
#include "format/stream/condensed.h"

#include <stdlib.h>
#include <string.h>

struct expanding {
    const struct tbd_crash_dump *dump;
    struct tbd_condenser *tables; /* owned */
    uint32_t *blocks;             /* owned: of the chunk that was expanded last */
};

static enum tbd_status begin(struct expanding *e, const struct tbd_crash_dump *dump)
{
    *e = (struct expanding){ .dump = dump,
                             .tables = malloc(sizeof(*e->tables)),
                             .blocks = malloc(TBD_CONDENSED_IDS * sizeof(*e->blocks)) };
    return e->tables && e->blocks ? TBD_OK : TBD_NOMEM;
}

static void end(struct expanding *e)
{
    free(e->tables);
    free(e->blocks);
}

static enum tbd_status expand(struct expanding *e, const struct tbd_crash_chunk *chunk)
{
    const struct tbd_crash_dump *dump = e->dump;

    if (!tbd_expand(e->tables, dump->older + chunk->offset, chunk->bytes, chunk->id_bits, e->blocks,
                    chunk->count))
        return TBD_CORRUPT;
    for (uint32_t i = 0; i < chunk->count; i++) {
        uint32_t id = e->blocks[i];

        if (id > dump->head->id_count || dump->ids[id - 1] == UINT32_MAX)
            return TBD_CORRUPT;
        e->blocks[i] = dump->ids[id - 1];
    }
    return TBD_OK;
}

enum tbd_status tbd_crash_older(const struct tbd_crash_dump *dump, uint32_t thread, uint64_t first,
                                uint64_t count, uint32_t *out)
{
    struct expanding e;
    enum tbd_status status = begin(&e, dump);
    uint64_t at = 0; /* the entry that the chunk begins with */

    for (uint32_t i = 0; !status && i < dump->head->chunk_count && at < first + count; i++) {
        const struct tbd_crash_chunk *chunk = &dump->chunks[i];
        uint64_t from, to;

        if (chunk->thread != thread)
            continue;
        from = at > first ? at : first;
        to = at + chunk->count < first + count ? at + chunk->count : first + count;
        if (from < to) {
            status = expand(&e, chunk);
            if (!status)
                memcpy(out + (from - first), e.blocks + (from - at), (to - from) * sizeof(*out));
        }
        at += chunk->count;
    }
    end(&e);
    return status;
}

enum tbd_status tbd_crash_find_older(const struct tbd_crash_dump *dump, uint32_t thread,
                                     const bool *wanted, uint64_t *at)
{
    struct expanding e;
    enum tbd_status status = begin(&e, dump);
    uint64_t first = dump->threads[thread].older;

    for (uint32_t i = dump->head->chunk_count; !status && i-- > 0;) {
        const struct tbd_crash_chunk *chunk = &dump->chunks[i];

        if (chunk->thread != thread)
            continue;
        first -= chunk->count;
        if (first >= *at)
            continue;
        status = expand(&e, chunk);
        for (uint64_t k = *at - first < chunk->count ? *at - first : chunk->count;
             !status && k-- > 0;)
            if (wanted[e.blocks[k]]) {
                *at = first + k;
                end(&e);
                return TBD_OK;
            }
    }
    end(&e);
    return status ? status : TBD_NOTFOUND;
}
