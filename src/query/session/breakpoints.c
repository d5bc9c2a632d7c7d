// SPDX-License-Identifier: MIT
/* breakpoints.c - see breakpoints.h */
#include "query/session/breakpoints.h"

#include "base/array.h"
#include "base/assert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tbd_watch_question(enum tbd_watch_kind what, uint64_t address, uint64_t bytes,
                        char out[TBD_WATCH_BYTES])
{
    const char *type = what == TBD_WATCH_LOAD ? "load" : "store";
    char place[64];

    snprintf(place, sizeof(place), "[%#" PRIx64 ",%" PRIu64 "]", address, bytes);
    if (what == TBD_WATCH_CHANGE && bytes <= 8)
        snprintf(out, TBD_WATCH_BYTES, "%s where touches%s and mem%s != after%s", type, place,
                 place, place);
    else
        snprintf(out, TBD_WATCH_BYTES, "%s where touches%s", type, place);
}

struct tbd_breakpoint *tbd_breakpoints_add(struct tbd_breakpoints *list, const char *shown,
                                           const char *question, bool is_temporary)
{
    struct tbd_breakpoint made = { .number = list->last_number + 1,
                                   .is_temporary = is_temporary,
                                   .shown = strdup(shown),
                                   .question = strdup(question) };

    if (made.shown == NULL || made.question == NULL ||
        !tbd_array_grow(&list->all, list->count, &list->capacity, sizeof(*list->all))) {
        free(made.shown);
        free(made.question);
        return NULL;
    }
    TBD_INVARIANT("BREAKPOINTS-1",
                  list->count == 0 || list->all[list->count - 1].number < made.number);
    list->last_number = made.number;
    list->all[list->count] = made;
    return &list->all[list->count++];
}

static void drop(struct tbd_breakpoint *breakpoint)
{
    free(breakpoint->shown);
    free(breakpoint->question);
}

bool tbd_breakpoints_remove(struct tbd_breakpoints *list, unsigned number)
{
    size_t at = 0;

    while (at < list->count && list->all[at].number != number)
        at++;
    if (at == list->count)
        return false;
    drop(&list->all[at]);
    list->count--;
    memmove(list->all + at, list->all + at + 1, (list->count - at) * sizeof(*list->all));
    return true;
}

void tbd_breakpoints_clear(struct tbd_breakpoints *list)
{
    for (size_t i = 0; i < list->count; i++)
        drop(&list->all[i]);
    free(list->all);
    *list = (struct tbd_breakpoints){ .last_number = list->last_number };
}
