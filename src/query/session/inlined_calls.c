// SPDX-License-Identifier: MIT
/* inlined_calls.c - see inlined_calls.h */
#include "query/session/inlined_calls.h"

#include "base/address_table.h"
#include "base/array.h"
#include "query/session/code/inlined.h"

#include <stdlib.h>
#include <string.h>

#define AROUND_MAX 32u

/* An address that was looked up. */
struct known_calls {
    uint64_t pc;
    uint32_t first, count;
    const char *name; /* of the innermost copy; NULL: none.  Borrowed until tbd_symbols_free() */
};

struct tbd_inlined_calls {
    struct tbd_session *session; /* borrowed */
    uint32_t window;
    uint64_t modules;                /* tells which modules are mapped */
    struct tbd_address_table table;  /* of struct known_calls */
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
    (*out)->table.element = sizeof(struct known_calls);
    return TBD_OK;
}

void tbd_inlined_calls_free(struct tbd_inlined_calls *calls)
{
    if (calls == NULL)
        return;
    tbd_address_table_free(&calls->table);
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
    calls->copy_count = 0;
    tbd_address_table_clear(&calls->table);
}

/* Looks the address up in debug information. */
static struct known_calls *learn(struct tbd_inlined_calls *calls, uint64_t pc)
{
    struct tbd_dwarf_inlined around[AROUND_MAX];
    size_t count =
        tbd_inlined_around(calls->session->symbols, calls->window, pc, around, AROUND_MAX);

    struct known_calls *out;

    if (!tbd_array_reserve(&calls->copies, calls->copy_count + count, &calls->copy_capacity,
                           sizeof(*calls->copies)))
        return NULL;
    out = tbd_address_table_add(&calls->table, pc, 0);
    if (out == NULL)
        return NULL;
    *out = (struct known_calls){ pc, (uint32_t)calls->copy_count, (uint32_t)count,
                                 count == 0 ? NULL : around[0].name };
    for (size_t i = 0; i < count; i++)
        calls->copies[calls->copy_count++] =
            (struct tbd_inlined_copy){ around[i].entry, around[i].id };
    return out;
}

/* The copies around the address; NULL: there is no memory. */
static const struct known_calls *known(struct tbd_inlined_calls *calls, uint64_t pc)
{
    static const struct known_calls none = { .pc = 0 };
    const struct known_calls *found;

    if (pc == 0)
        return &none;
    found = tbd_address_table_find(&calls->table, pc, 0);
    return found != NULL ? found : learn(calls, pc);
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
