// SPDX-License-Identifier: MIT
// links: tbd_query_probe
// sources: ../../src/hooks/probes/probe_session.c
// iterations: 20000
/* fuzz_probe.c - scripts of `tbd probe` from anywhere
 *
 * Oracles: an error points into the text and has a message; parsing again gives the same code; what the compiler makes, the engine's own
 * check lets pass, clause by clause: it has one entry for each place, ends, goes forward only, and names maps that exist. */
#include "hooks/probes/probe_session.h"
#include "query/probe/probe_script.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good)
        abort();
}

/* A clause's code is from its first instruction to the next END that no skip passes: the whole code is checked, and each
 * entry is inside and after an END. */
static void check_script(const struct tbd_probe_script *script)
{
    check(tbd_probe_check_maps(script->maps, script->map_count));
    if (script->code_count)
        check(tbd_probe_check_code(script->code, script->code_count, script->maps,
                                   script->map_count) == script->code_count);
    for (uint32_t i = 0; i < script->where_count; i++) {
        const struct tbd_script_where *where = &script->where[i];

        if (where->place.kind <= TBD_WHERE_INTERVAL) {
            check(where->first_action + where->action_count <= script->action_count);
            continue;
        }
        check(where->code < script->code_count);
        check(where->code == 0 || script->code[where->code - 1].op == TBD_PROBE_END);
    }
}

static void check_error(const struct tbd_query_error *error, size_t length)
{
    check(error->status != TBD_OK && error->message[0] != '\0');
    check(error->at <= length && error->at + error->length <= length + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct tbd_query_error error = { 0 };
    struct tbd_probe_script *script, *again;

    check(text != NULL);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    script = tbd_script_parse(text, &error);
    if (!script) {
        check_error(&error, strlen(text));
    } else {
        again = tbd_script_parse(text, &error);
        check(again && again->code_count == script->code_count &&
              memcmp(again->code, script->code, script->code_count * sizeof(script->code[0])) == 0);
        check_script(script);
        tbd_script_free(again);
        tbd_script_free(script);
    }
    free(text);
    return 0;
}
