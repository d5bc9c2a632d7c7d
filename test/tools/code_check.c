// SPDX-License-Identifier: MIT
/* code_check TRACE SAMPLES SEED: compiled expressions against evaluated ones at random positions
 *
 * Every variable in scope of the innermost frame is read both ways: through the debug information
 * at the position, and by code that was compiled at the first position of its range. Prints how many
 * were the same, unknown and not compiled, and evaluations per second; exits 1 at the first
 * difference. */
#include "query/compiled.h"
#include "query/source_place.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAMES_MAX 4096

static struct tbd_session session;
static struct {
    char *text;
    struct tbd_compiled *compiled;
} names[NAMES_MAX];
static unsigned same, unknown, slow, elsewhere;
static double seconds;
static uint64_t evaluations;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct tbd_compiled *compiled_of(const char *text)
{
    struct tbd_query_error error;
    size_t i = 0;

    for (; i < NAMES_MAX && names[i].text != NULL; i++) {
        if (strcmp(names[i].text, text) == 0)
            return names[i].compiled;
    }
    if (i == NAMES_MAX ||
        tbd_compiled_new(&session, NULL, text, 0, strlen(text), &names[i].compiled, &error))
        exit(2);
    names[i].text = strdup(text);
    return names[i].compiled;
}

/* The code alone counts here, not how the trace finds memory. */
static bool read_nothing(void *context, uint64_t address, void *out, size_t bytes)
{
    (void)context;
    (void)address;
    memset(out, 0, bytes);
    return true;
}

static void measure(const struct tbd_c_code *code, struct tbd_c_input input)
{
    struct tbd_stack_memory memory = { read_nothing, NULL };
    struct timespec from, to;
    uint64_t value;

    input.memory = &memory;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (int i = 0; i < 2000; i++)
        (void)tbd_c_code_run(code, &input, &value);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    evaluations += 2000;
    seconds += (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
}

static bool is_same(const struct tbd_place_of *place, const struct tbd_data *data,
                    const struct tbd_c_code *code, uint64_t value)
{
    uint64_t wanted;
    long double real;

    if (code->is_address)
        return data->in_memory && data->address == value;
    if (tbd_data_float(place, data, &real)) {
        double found;

        memcpy(&found, &value, sizeof(found));
        return found == (double)real || (found != found && real != real);
    }
    return tbd_data_scalar(place, data, &wanted) && wanted == value;
}

static bool is_readable(const struct tbd_place_of *place, const struct tbd_data *data)
{
    struct tbd_type_view view = tbd_type_look(&data->type);
    uint8_t byte;

    return data->is_known && (view.kind == TBD_TYPE_STRUCT || view.kind == TBD_TYPE_ARRAY ||
                              tbd_data_read(place, data, 0, &byte, 1));
}

static void check(struct tbd_source_place *place, const char *name)
{
    const struct tbd_place_of *at = &place->places[0];
    struct tbd_c_input input = { .gpr = at->frame->gpr,
                                 .known = at->frame->known,
                                 .pc = at->frame->pc,
                                 .fs_base = at->fs_base,
                                 .xsave = at->xsave,
                                 .memory = &place->memory };
    struct tbd_c_scope scope = tbd_source_scope(place);
    const struct tbd_c_code *code;
    struct tbd_query_error error;
    struct tbd_data data;
    uint64_t value;
    bool good, has_value;

    if (tbd_compiled_at(compiled_of(name), place->stack.window, at->frame->pc, &code) !=
        TBD_COMPILED_CODE) {
        slow++;
        return;
    }
    if (tbd_c_evaluate(&scope, name, 0, strlen(name), &data, &error) != TBD_OK) {
        printf("%s: compiled, but %s\n", name, error.message);
        exit(1);
    }
    /* What a reference leads to. */
    if (tbd_type_look(&data.type).kind == TBD_TYPE_REFERENCE) {
        elsewhere++;
        return;
    }
    has_value = tbd_c_code_run(code, &input, &value) == TBD_C_VALUE;
    good = has_value == is_readable(at, &data) && (!has_value || is_same(at, &data, code, value));
    if (!good) {
        printf("%s at %#" PRIx64 ", %" PRIu64 "+%" PRIu32 ": %s %#" PRIx64 " %s\n", name,
               at->frame->pc, place->stack.position.time, place->stack.position.offset,
               has_value ? "value" : "unknown", value, data.why);
        exit(1);
    }
    same += has_value;
    unknown += !has_value;
    if (has_value && code->needs_memory)
        measure(code, input);
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
        fprintf(stderr, "usage: code_check TRACE SAMPLES SEED\n");
        return 2;
    }
    samples = strtoul(argv[2], NULL, 10);
    random = strtoul(argv[3], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
    last = tbd_session_last(&session).time;
    for (unsigned long i = 0; i < samples; i++)
        check_position((struct tbd_position){ .time = next_random(&random) % (last + 1) });
    printf("same %u unknown %u slow %u references %u million/s %.1f\n", same, unknown, slow,
           elsewhere, seconds > 0 ? (double)evaluations / seconds / 1e6 : 0);
    for (size_t i = 0; i < NAMES_MAX && names[i].text != NULL; i++) {
        tbd_compiled_free(names[i].compiled);
        free(names[i].text);
    }
    tbd_session_close(&session);
    return same == 0;
}
