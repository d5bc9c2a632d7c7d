// SPDX-License-Identifier: MIT
/* condition_check TRACE SAMPLES SEED: variables in conditions against evaluated ones at random
 * positions
 *
 * Every variable in scope of the innermost frame is read both ways: through the debug information
 * at the position, and as a condition (`where NAME`) has it, lowered once per instruction.  Prints
 * how many were the same, known to neither, and known to the evaluation only; exits 1 at the first
 * difference. */
#include "query/search/search_private.h"
#include "query/session/source/source_place.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 4096

static struct tbd_session session;
static struct meanings {
    char *text; /* as written in a condition */
    struct tbd_expr *where;
    struct tbd_scopes *scopes;
} meanings[NAMES_MAX];
static unsigned same, unknown, missing, elsewhere;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct meanings *meanings_of(const char *text)
{
    struct tbd_query_error error;
    size_t i = 0;

    for (; i < NAMES_MAX && meanings[i].text != NULL; i++) {
        if (strcmp(meanings[i].text, text) == 0)
            return &meanings[i];
    }
    if (i == NAMES_MAX ||
        tbd_expr_parse(text, 0, TBD_EVENT_LINE, &meanings[i].where, &error) != TBD_OK ||
        tbd_scopes_new(&session, &meanings[i].scopes) != TBD_OK)
        exit(2);
    meanings[i].text = strdup(text);
    return &meanings[i];
}

static enum tbd_value_state read_now(void *context, uint64_t address, uint64_t bytes, uint64_t *out)
{
    const struct tbd_stack_memory *memory = context;

    *out = 0;
    return bytes <= sizeof(*out) && memory->read(memory->context, address, out, bytes)
               ? TBD_VALUE_OK
               : TBD_VALUE_BAD;
}

/* Vector registers of an XSAVE image; NULL: they are not there, or not in use. */
static const uint8_t *vector_of(const struct tbd_source_place *place)
{
    const uint8_t *xsave = place->places[0].xsave;

    return xsave != NULL && (xsave[512] & 2) != 0 ? xsave + 160 : NULL;
}

/* The condition's value; false where it has none. */
static bool value_of(struct tbd_source_place *place, const char *text, uint64_t *out)
{
    const struct tbd_frame *frame = place->places[0].frame;
    struct meanings *of = meanings_of(text);
    struct tbd_event event = { .type = TBD_EVENT_LINE, .pc = frame->pc };
    struct tbd_regs regs = { .rip = frame->pc, .fs_base = place->places[0].fs_base };
    struct tbd_expr_env env = { .event = &event,
                                .regs = &regs,
                                .vector = vector_of(place),
                                .frame = frame->cfa,
                                .read = read_now,
                                .read_context = &place->memory };
    const struct tbd_window *window;
    struct tbd_value value;
    struct tbd_expr *here;

    memcpy(regs.gpr, frame->gpr, sizeof(regs.gpr));
    if (tbd_session_slice_at(&session, place->stack.window, place->state->position.time, &window) !=
        TBD_OK)
        exit(2);
    tbd_scopes_set_window(of->scopes, window);
    here = tbd_scopes_get(of->scopes, of->where, &event);
    if (here == NULL)
        exit(2);
    value = tbd_expr_eval(here, here->root, &env);
    *out = value.v;
    return value.state == TBD_VALUE_OK;
}

/* A condition is a number: of a struct its address is taken, and a double is compared. */
static void write_condition(const struct tbd_place_of *place, const char *name,
                            const struct tbd_data *data, char *out, size_t bytes)
{
    long double real;

    if (tbd_type_look(&data->type).kind == TBD_TYPE_STRUCT)
        snprintf(out, bytes, "&(var(%s))", name);
    else if (tbd_data_float(place, data, &real))
        snprintf(out, bytes, "var(%s) == %.17Lg", name, real);
    else
        snprintf(out, bytes, "var(%s)", name);
}

static bool is_right(const struct tbd_place_of *place, const struct tbd_data *data, uint64_t value)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    long double real;
    uint64_t wanted;

    if (view.kind == TBD_TYPE_STRUCT || view.kind == TBD_TYPE_ARRAY)
        return data->in_memory && data->address == value;
    if (tbd_data_float(place, data, &real))
        return value == 1;
    return tbd_data_scalar(place, data, &wanted) && wanted == value;
}

static void check(struct tbd_source_place *place, const char *name)
{
    const struct tbd_place_of *at = &place->places[0];
    struct tbd_c_scope scope = tbd_source_scope(place);
    struct tbd_query_error error;
    struct tbd_data data;
    char text[256];
    uint64_t value;

    if (tbd_c_evaluate(&scope, name, 0, strlen(name), &data, &error) != TBD_OK) {
        printf("%s: %s\n", name, error.message);
        exit(1);
    }
    /* What a reference leads to. */
    if (tbd_type_look(&data.type).kind == TBD_TYPE_REFERENCE) {
        elsewhere++;
        return;
    }
    write_condition(at, name, &data, text, sizeof(text));
    if (!value_of(place, text, &value)) {
        unknown += !data.is_known;
        missing += data.is_known;
        return;
    }
    if (!is_right(at, &data, value)) {
        printf("%s at %#" PRIx64 ", %" PRIu64 "+%" PRIu32 ": value %#" PRIx64 " %s\n", text,
               at->frame->pc, place->stack.position.time, place->stack.position.offset, value,
               data.why);
        exit(1);
    }
    same++;
}

static void check_scope(struct tbd_source_place *place, const Dwarf_Die *scope)
{
    Dwarf_Die die;

    for (bool more = tbd_die_child(scope, &die); more; more = tbd_die_next(&die, &die)) {
        const char *name = tbd_die_name(&die);

        if ((dwarf_tag(&die) == DW_TAG_variable || dwarf_tag(&die) == DW_TAG_formal_parameter) &&
            name != NULL && !tbd_die_flag(&die, DW_AT_declaration))
            check(place, name);
    }
}

static void check_position(struct tbd_position position)
{
    static struct tbd_source_place place;
    const struct tbd_place_of *at = &place.places[0];

    if (tbd_source_place_open(&session, position, 0, &place) != TBD_OK)
        return;
    for (size_t i = at->first; i < at->end && i < at->scopes.count; i++)
        check_scope(&place, &at->scopes.dies[i]);
    tbd_source_place_close(&place);
}

int main(int argc, char **argv)
{
    uint64_t random, last;
    unsigned long samples;

    if (argc != 4 || tbd_session_open(&session, argv[1]) != TBD_OK) {
        fprintf(stderr, "usage: condition_check TRACE SAMPLES SEED\n");
        return 2;
    }
    samples = strtoul(argv[2], NULL, 10);
    random = strtoul(argv[3], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
    last = tbd_session_last(&session).time;
    for (unsigned long i = 0; i < samples; i++)
        check_position((struct tbd_position){ .time = next_random(&random) % (last + 1) });
    printf("same %u unknown %u missing %u references %u\n", same, unknown, missing, elsewhere);
    for (size_t i = 0; i < NAMES_MAX && meanings[i].text != NULL; i++) {
        tbd_scopes_free(meanings[i].scopes);
        tbd_expr_free(meanings[i].where);
        free(meanings[i].text);
    }
    tbd_session_close(&session);
    return same == 0;
}
