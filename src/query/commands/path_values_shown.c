// SPDX-License-Identifier: MIT
/* path_values_shown.c - a value of a row, as text and as JSON (path_values_private.h)
 *
 * A value is shown before the row, and after it if it has changed: "i = 3 -> 4". */
#include "query/commands/path_values_private.h"

#include "query/output/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void tbd_shown_value_free(struct tbd_shown_value *value)
{
    free(value->text[0]);
    free(value->text[1]);
}

/* "-12+3" */
static void put_where(const struct tbd_path_values *values, size_t sim_step, char *out,
                      size_t bytes)
{
    uint64_t step;
    uint32_t insn;

    tbd_past_where(values->past, sim_step, &step, &insn);
    snprintf(out, bytes, "-%" PRIu64 "+%" PRIu32, tbd_rings_back(values->past->thread, step), insn);
}

/* The steps between are stores to unknown addresses; if there are more threads, all those that touch memory, since these may
 * have written meanwhile. */
static void put_unchanged(const struct tbd_path_values *values,
                          const struct tbd_assumption *assumption, char *out, size_t bytes)
{
    char store[64], from[64], to[64], what[32] = "this memory";

    put_where(values, assumption->store, store, sizeof(store));
    put_where(values, assumption->from, from, sizeof(from));
    put_where(values, assumption->to, to, sizeof(to));
    if (assumption->address >> 63 == 0) /* else it stands for an address that is not known */
        snprintf(what, sizeof(what), "0x%" PRIx64, assumption->address);
    if (values->past->ring->dump.head->thread_count > 1)
        snprintf(out, bytes,
                 "if neither another thread nor a store to an unknown address changed %s between "
                 "%s and %s",
                 what, from, to);
    else if (assumption->stores > 1)
        snprintf(out, bytes,
                 "if none of %" PRIu32
                 " stores to unknown addresses, one of them at %s, changed %s",
                 assumption->stores, store, what);
    else
        snprintf(out, bytes, "if the store at %s, to an unknown address, did not change %s", store,
                 what);
}

/* What an inferred value rests on.  If that is no assumption of its own, stores lie between whose addresses are inferred. */
static json_t *why_text(const struct tbd_path_values *values, uint32_t why)
{
    struct tbd_assumption assumption;
    char store[64], text[256];

    if (!tbd_simulation_assumption(values->past->sim, why, &assumption))
        return json_string("if stores in between went where inferred values say");
    put_where(values, assumption.store, store, sizeof(store));
    if (assumption.is_supposed)
        snprintf(
            text, sizeof(text),
            "if the function at %s was entered at its beginning, and those that it called kept "
            "their callers' registers",
            store);
    else if (assumption.is_tie)
        snprintf(text, sizeof(text),
                 "if the signal handler that returned to %s had changed nothing of what the signal "
                 "saved",
                 store);
    else
        put_unchanged(values, &assumption, text, sizeof(text));
    return json_string(text);
}

const char *tbd_path_values_mark(enum tbd_certainty certainty)
{
    return certainty == TBD_INFERRED ? " (inferred)" : "";
}

/* Not even a part of it is known. */
static bool is_all_unknown(const struct tbd_shown_value *value, int which)
{
    return value->certainty[which] == TBD_UNKNOWN && !value->is_partial[which];
}

static const char *text_of(const struct tbd_shown_value *value, int which)
{
    return is_all_unknown(value, which) ? "unknown" : value->text[which];
}

static bool has_changed(const struct tbd_shown_value *value)
{
    return value->text[1] != NULL &&
           (value->text[0] == NULL || strcmp(text_of(value, 0), text_of(value, 1)) != 0);
}

static json_t *value_line(const char *name, const struct tbd_shown_value *value, const json_t *why)
{
    json_t *line;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    fprintf(out, "%s =", name);
    if (value->text[0] != NULL)
        fprintf(out, " %s%s", text_of(value, 0), tbd_path_values_mark(value->certainty[0]));
    if (has_changed(value))
        fprintf(out, " -> %s%s", text_of(value, 1), tbd_path_values_mark(value->certainty[1]));
    if (why != NULL)
        fprintf(out, " (%s)", json_string_value(why));
    fclose(out);
    line = tbd_output_text(text);
    free(text);
    return line;
}

static json_t *value_object(const char *name, const struct tbd_shown_value *value,
                            const json_t *why)
{
    static const char *const keys[2][2] = { { "value", "certainty" },
                                            { "after", "after_certainty" } };
    json_t *object = json_object();

    json_object_set_new(object, "name", tbd_output_text(name));
    for (int i = 0; i < 2; i++) {
        if (value->text[i] == NULL)
            continue;
        json_object_set_new(object, keys[i][0],
                            is_all_unknown(value, i) ? json_null()
                                                     : tbd_output_text(value->text[i]));
        json_object_set_new(object, keys[i][1],
                            json_string(tbd_certainty_text(value->certainty[i])));
    }
    json_object_set_new(object, "text", value_line(name, value, NULL));
    if (why != NULL)
        json_object_set(object, "why", (json_t *)(uintptr_t)why);
    return object;
}

static bool is_inferred(const struct tbd_shown_value *value)
{
    for (int i = 0; i < 2; i++)
        if (value->text[i] != NULL &&
            (value->certainty[i] == TBD_INFERRED || (value->is_partial[i] && value->why != 0)))
            return true;
    return false;
}

void tbd_path_values_put_one(const struct tbd_path_values *values, json_t *list, const char *name,
                             const struct tbd_shown_value *value)
{
    bool is_json = values->run->session->json;
    bool has_why = (is_json || values->what.why) && is_inferred(value);
    json_t *why = has_why ? why_text(values, value->why) : NULL;

    json_array_append_new(list,
                          is_json ? value_object(name, value, why) : value_line(name, value, why));
    json_decref(why);
}
