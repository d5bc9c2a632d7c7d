// SPDX-License-Identifier: MIT
/* functions.c - see functions.h */
#include "query/commands/functions.h"

#include "query/session/code/inlined.h"
#include "query/session/source/source.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FOUND_MAX 256

static bool is_pattern(const char *name)
{
    return strpbrk(name, "*?[!") != NULL;
}

size_t tbd_functions_called(struct tbd_session *session, uint32_t window, const char *name,
                            struct tbd_symbol out[TBD_FUNCTIONS_MAX])
{
    struct tbd_symbol *found = calloc(FOUND_MAX, sizeof(*found));
    size_t count = 0, used = 0;

    if (found != NULL)
        count = tbd_symbols_find(session->symbols, window, name, found, FOUND_MAX);
    for (size_t i = 0; i < count && i < FOUND_MAX && used < TBD_FUNCTIONS_MAX; i++) {
        if (found[i].is_function && !found[i].is_stub && (!found[i].is_part || used == 0))
            out[used++] = found[i];
    }
    free(found);
    return used;
}

static void tell_one(struct tbd_session *session, uint32_t window, const struct tbd_symbol *one)
{
    struct tbd_source_line line;
    const char *slash;

    fprintf(stderr, "%s", tbd_shown(one->name));
    if (!tbd_source_line_at(session, window, one->start, &line)) {
        fprintf(stderr, " (%s)", tbd_shown(one->module));
        return;
    }
    slash = strrchr(line.file, '/');
    fprintf(stderr, " (%s:%" PRIu32 ")", tbd_shown(slash == NULL ? line.file : slash + 1),
            line.line);
}

void tbd_functions_tell(struct tbd_session *session, const char *name)
{
    struct tbd_symbol all[TBD_FUNCTIONS_MAX];
    uint32_t window = tbd_session_current_window(session);
    size_t count = is_pattern(name) || window == UINT32_MAX
                       ? 0
                       : tbd_functions_called(session, window, name, all);

    if (count < 2)
        return;
    fprintf(stderr, "tbdq: note: '%s' means ", tbd_shown(name));
    for (size_t i = 0; i < count; i++) {
        fputs(i == 0 ? "" : ", ", stderr);
        tell_one(session, window, &all[i]);
    }
    fputs(count == TBD_FUNCTIONS_MAX ? ", ...\n" : "\n", stderr);
}

bool tbd_functions_tell_inlined(struct tbd_session *session, const char *name)
{
    struct tbd_dwarf_inlined *all = NULL;
    uint32_t window = tbd_session_current_window(session);
    char places[512];
    size_t count = 0;

    if (!is_pattern(name) && window != UINT32_MAX)
        all = tbd_inlined_find(session->symbols, window, name, &count);
    if (count != 0) {
        tbd_inlined_places(all, count, places, sizeof(places));
        fprintf(stderr, "tbdq: note: '%s' is also inlined, which is no call: %s\n", tbd_shown(name),
                tbd_shown(places));
    } else if (!is_pattern(name) && window != UINT32_MAX &&
               tbd_inlined_away(session->symbols, window, name))
        fprintf(stderr, "tbdq: note: '%s' is also inlined, where no instruction of it is left\n",
                tbd_shown(name));
    free(all);
    return count != 0;
}
