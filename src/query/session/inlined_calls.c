// SPDX-License-Identifier: MIT
/* inlined_calls.c - see inlined_calls.h
 *
 * INLINED_CALLS-1  The table of addresses has free entries, so that a search in it ends. */
#include "query/session/inlined_calls.h"

#include "base/array.h"
#include "base/assert.h"
#include "query/session/inlined.h"

#include <stdlib.h>
#include <string.h>

#define AROUND_MAX  32u
#define FIRST_TABLE 256u

/* An address that was looked up. */
struct known_calls {
    uint64_t pc; /* 0: a free entry */
    uint32_t first, count;
    const char *name; /* of the innermost copy; NULL: none.  Borrowed until tbd_symbols_free() */
};

struct tbd_inlined_calls {
    struct tbd_session *session; /* borrowed */
    uint32_t window;
    uint64_t modules;          /* tells which modules are mapped */
    struct known_calls *table; /* owned; open addressing */
    size_t mask, used;
    struct tbd_inlined_copy *copies; /* owned: of all known addresses */
    size_t copy_count, copy_capacity;
    struct tbd_inlined_call *calls; /* owned: the last answer */
    size_t call_capacity;
};

enum tbd_status tbd_inlined_calls_new(struct tbd_session *session, struct tbd_inlined_calls **out)
{
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return TBD_NOMEM;
    (*out)->session = session;
    (*out)->window = UINT32_MAX;
    return TBD_OK;
}

void tbd_inlined_calls_free(struct tbd_inlined_calls *calls)
{
    if (calls == NULL)
        return;
    free(calls->table);
    free(calls->copies);
    free(calls->calls);
    free(calls);
}

void tbd_inlined_calls_set_window(struct tbd_inlined_calls *calls, uint32_t window)
{
    const struct tbd_module *modules = NULL;
    size_t count = 0;
    uint64_t hash;

    if (calls->window == window)
        return;
    calls->window = window;
    if (tbd_symbols_modules(calls->session->symbols, window, &modules, &count) != TBD_OK)
        count = 0;
    hash = tbd_symbols_hash(modules, count);
    if (calls->modules == hash)
        return;
    calls->modules = hash;
    calls->used = calls->copy_count = 0;
    if (calls->table != NULL)
        memset(calls->table, 0, (calls->mask + 1) * sizeof(*calls->table));
}

/* ---- the table ---- */

/* The entry of the address, or a free one for it. */
static struct known_calls *find(const struct tbd_inlined_calls *calls, uint64_t pc)
{
    size_t at = (size_t)((pc * 0x9e3779b97f4a7c15ull) >> 32) & calls->mask;

    TBD_INVARIANT("INLINED_CALLS-1", calls->used <= calls->mask);
    while (calls->table[at].pc != 0 && calls->table[at].pc != pc)
        at = (at + 1) & calls->mask;
    return &calls->table[at];
}

static bool grow(struct tbd_inlined_calls *calls)
{
    struct known_calls *old = calls->table;
    size_t size = old == NULL ? 0 : calls->mask + 1;
    size_t capacity = size == 0 ? FIRST_TABLE : size * 2;

    if (size != 0 && calls->used * 2 < size)
        return true;
    calls->table = calloc(capacity, sizeof(*calls->table));
    if (calls->table == NULL) {
        calls->table = old;
        return false;
    }
    calls->mask = capacity - 1;
    for (size_t i = 0; i < size; i++) {
        if (old[i].pc != 0)
            *find(calls, old[i].pc) = old[i];
    }
    free(old);
    return true;
}

/* Looks the address up in debug information. */
static bool learn(struct tbd_inlined_calls *calls, uint64_t pc, struct known_calls *out)
{
    struct tbd_dwarf_inlined around[AROUND_MAX];
    size_t count =
        tbd_inlined_around(calls->session->symbols, calls->window, pc, around, AROUND_MAX);

    if (!tbd_array_reserve(&calls->copies, calls->copy_count + count, &calls->copy_capacity,
                           sizeof(*calls->copies)))
        return false;
    *out = (struct known_calls){ pc, (uint32_t)calls->copy_count, (uint32_t)count,
                                 count == 0 ? NULL : around[0].name };
    for (size_t i = 0; i < count; i++)
        calls->copies[calls->copy_count++] =
            (struct tbd_inlined_copy){ around[i].entry, around[i].id };
    calls->used++;
    return true;
}

/* The copies around the address; NULL: there is no memory. */
static const struct known_calls *known(struct tbd_inlined_calls *calls, uint64_t pc)
{
    static const struct known_calls none = { .pc = 0 };
    struct known_calls *found;

    if (pc == 0)
        return &none;
    if (!grow(calls))
        return NULL;
    found = find(calls, pc);
    return found->pc == pc || learn(calls, pc, found) ? found : NULL;
}

const struct tbd_inlined_call *tbd_inlined_calls_of(struct tbd_inlined_calls *calls,
                                                    const uint64_t *pcs, size_t count,
                                                    bool is_entry, size_t *out_count)
{
    size_t used = 0;

    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct known_calls *at = known(calls, i == 0 && is_entry ? 0 : pcs[i]);

        if (at == NULL || !tbd_array_reserve(&calls->calls, used + at->count + 1,
                                             &calls->call_capacity, sizeof(*calls->calls)))
            return NULL;
        for (uint32_t k = 0; k < at->count; k++)
            calls->calls[used++] =
                (struct tbd_inlined_call){ pcs[i], calls->copies[at->first + k] };
        calls->calls[used++] = (struct tbd_inlined_call){ .pc = pcs[i] };
    }
    *out_count = used;
    return calls->calls;
}

const char *tbd_inlined_calls_innermost(struct tbd_session *session, uint32_t window, uint64_t pc)
{
    const struct known_calls *at;

    if (session->inlined == NULL && tbd_inlined_calls_new(session, &session->inlined) != TBD_OK)
        return NULL;
    tbd_inlined_calls_set_window(session->inlined, window);
    at = known(session->inlined, pc);
    return at == NULL ? NULL : at->name;
}
