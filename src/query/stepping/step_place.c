// SPDX-License-Identifier: MIT
/* step_place.c - see step_place.h */
#include "query/stepping/step_place.h"

#include "query/session/code/inlined.h"

#include <stdlib.h>
#include <string.h>

#define CACHED 1024u

struct tbd_step_places {
    struct tbd_session *session; /* borrowed */
    uint32_t window;             /* of the cached places: modules come and go */
    struct tbd_step_place cached[CACHED];
};

enum tbd_status tbd_step_places_new(struct tbd_session *session, struct tbd_step_places **out)
{
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return TBD_NOMEM;
    (*out)->session = session;
    return TBD_OK;
}

void tbd_step_places_free(struct tbd_step_places *places)
{
    free(places);
}

static bool has_address(const struct tbd_dwarf_inlined *copy, uint64_t address)
{
    for (size_t i = 0; i < copy->range_count; i++) {
        if (address >= copy->ranges[i].start && address < copy->ranges[i].end)
            return true;
    }
    return false;
}

static void take_inlined(struct tbd_session *session, uint32_t window, struct tbd_step_place *place)
{
    struct tbd_dwarf_inlined copies[TBD_STEP_INLINED];

    place->count =
        (unsigned)tbd_inlined_around(session->symbols, window, place->pc, copies, TBD_STEP_INLINED);
    for (unsigned i = 0; i < place->count; i++) {
        place->around[i] = (struct tbd_step_inlined){ copies[i].id, copies[i].call };
        if (place->starting == i &&
            (copies[i].entry == place->pc || !has_address(&copies[i], place->pc - 1)))
            place->starting = i + 1;
    }
}

static void fill(struct tbd_session *session, uint32_t window, uint64_t pc,
                 struct tbd_step_place *out)
{
    struct tbd_source_line before;

    *out = (struct tbd_step_place){ .pc = pc };
    if (!tbd_source_line_at(session, window, pc, &out->line))
        return;
    out->is_line_event = !(tbd_source_line_at(session, window, pc - 1, &before) &&
                           tbd_source_same_line(&before, &out->line));
    take_inlined(session, window, out);
}

const struct tbd_step_place *tbd_step_place_at(struct tbd_step_places *places, uint32_t window,
                                               uint64_t pc)
{
    struct tbd_step_place *place = &places->cached[(pc ^ (pc >> 12)) % CACHED];

    if (places->window != window)
        memset(places->cached, 0, sizeof(places->cached));
    places->window = window;
    if (place->pc != pc)
        fill(places->session, window, pc, place);
    return place;
}

/* push rbp; mov rbp, rsp; perhaps after endbr64: how many bytes. */
static size_t frame_setup(const uint8_t *code, size_t bytes)
{
    static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
    static const uint8_t setups[][4] = { { 0x55, 0x48, 0x89, 0xe5 }, { 0x55, 0x48, 0x8b, 0xec } };
    size_t at =
        bytes >= sizeof(endbr) && memcmp(code, endbr, sizeof(endbr)) == 0 ? sizeof(endbr) : 0;

    for (size_t i = 0; i < 2; i++) {
        if (bytes >= at + sizeof(setups[i]) && memcmp(code + at, setups[i], sizeof(setups[i])) == 0)
            return at + sizeof(setups[i]);
    }
    return 0;
}

uint64_t tbd_step_after_prologue(struct tbd_session *session, uint32_t window, uint64_t start)
{
    struct tbd_source_line line;
    struct tbd_symbol function;
    uint8_t code[16] = { 0 };
    size_t setup = frame_setup(
        code, tbd_symbols_read_file(session->symbols, window, start, code, sizeof(code)));
    uint64_t body = start + setup;

    if (setup == 0 || !tbd_source_line_at(session, window, body, &line))
        return start;
    if (line.starts || !tbd_symbols_at(session->symbols, window, start, &function) ||
        body + line.after >= function.end)
        return body;
    return body + line.after;
}
