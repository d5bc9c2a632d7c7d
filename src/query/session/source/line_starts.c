// SPDX-License-Identifier: MIT
/* line_starts.c - see line_starts.h */
#include "query/session/source/line_starts.h"

#include "query/session/source/source.h"

#include <stdlib.h>
#include <string.h>

struct line_start {
    uint64_t bits;
    bool is_known;
};

struct tbd_line_starts {
    struct tbd_session *session;
    struct line_start *blocks; /* by id */
    uint32_t count;
};

_Static_assert(TBD_BLOCK_MAX_INSNS <= 64, "a bit for each instruction of a block");

enum tbd_status tbd_line_starts_new(struct tbd_session *session, struct tbd_line_starts **out)
{
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return TBD_NOMEM;
    (*out)->session = session;
    return TBD_OK;
}

void tbd_line_starts_free(struct tbd_line_starts *starts)
{
    if (starts == NULL)
        return;
    free(starts->blocks);
    free(starts);
}

static bool begins_line(struct tbd_session *session, uint32_t window, uint64_t pc)
{
    struct tbd_source_line here, before;

    return tbd_source_line_at(session, window, pc, &here) &&
           !(tbd_source_line_at(session, window, pc - 1, &before) &&
             tbd_source_same_line(&here, &before));
}

static uint64_t find_bits(struct tbd_session *session, uint32_t window, uint32_t id)
{
    const struct tbd_block *block = tbd_trace_block(session->trace, id);
    uint32_t count = block == NULL ? 0 : block->def.insn_count;
    struct tbd_block_insn insn;
    uint64_t bits = 0;

    for (uint32_t i = 0; i < count && i < 64; i++) {
        if (tbd_disas_insn(session->disas, id, i, &insn) && begins_line(session, window, insn.pc))
            bits |= 1ull << i;
    }
    return bits;
}

static bool reserve(struct tbd_line_starts *starts, uint32_t id)
{
    uint32_t capacity = starts->count == 0 ? 1024 : starts->count;
    struct line_start *bigger;

    if (id < starts->count)
        return true;
    while (capacity <= id && capacity <= UINT32_MAX / 2)
        capacity *= 2;
    bigger = capacity <= id ? NULL : realloc(starts->blocks, capacity * sizeof(*bigger));
    if (bigger == NULL)
        return false;
    memset(bigger + starts->count, 0, (capacity - starts->count) * sizeof(*bigger));
    starts->blocks = bigger;
    starts->count = capacity;
    return true;
}

uint64_t tbd_line_starts_of(struct tbd_line_starts *starts, uint32_t window, uint32_t id)
{
    struct line_start *block;

    if (!reserve(starts, id))
        return find_bits(starts->session, window, id);
    block = &starts->blocks[id];
    if (!block->is_known)
        *block = (struct line_start){ find_bits(starts->session, window, id), true };
    return block->bits;
}
