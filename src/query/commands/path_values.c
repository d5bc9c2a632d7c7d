// SPDX-License-Identifier: MIT
/* path_values.c - see path_values.h
 *
 * A value is shown before the row, and after it if it has changed: "i = 3 -> 4".  Variables are evaluated as `print` does, once with all
 * that is known and once with what is exact; what is the same both times is exact. */
#include "query/commands/path_values.h"

#include "query/debuginfo/register_names.h"
#include "query/output/output.h"
#include "query/past/past_condition.h"
#include "query/past/past_kept.h"
#include "query/session/source/source_place.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WANTED_MAX = 64, NAME_BYTES = 256, NAMES_MAX = 24 };

struct wanted_value {
    const char *name;  /* within `words` */
    uint64_t from, to; /* of an address range; to 0: a name */
};

struct tbd_path_values {
    struct tbd_command_run *run;
    struct tbd_rings *ring;
    struct tbd_session *session; /* on the dump: the command's own, or `other` */
    struct tbd_session other;
    bool is_open; /* it was tried */
    struct tbd_path_wanted what;
    struct tbd_past_condition condition;
    enum tbd_status opened;
    enum tbd_status failed; /* the first thread that has no values */
    struct tbd_error why;   /* and why */
    size_t with, without;   /* threads */
    char *words;            /* owned */
    struct wanted_value wanted[WANTED_MAX];
    size_t wanted_count;
    struct tbd_past *past; /* owned; NULL: no values */
};

/* ---- what is wanted ---- */

/* "0x1000-0x1fff" */
static bool read_range(const char *text, struct wanted_value *out)
{
    char *end;

    if (text[0] != '0' || text[1] != 'x')
        return false;
    out->from = strtoull(text, &end, 16);
    if (*end != '-')
        return false;
    out->to = strtoull(end + 1, &end, 16);
    return *end == '\0' && out->to >= out->from && out->to != 0;
}

static bool take_only(struct tbd_path_values *values, const char *only)
{
    char *rest = values->words = strdup(only);

    for (char *word; rest != NULL && (word = strsep(&rest, ",")) != NULL;) {
        struct wanted_value *wanted = &values->wanted[values->wanted_count];

        if (*word == '\0' || strlen(word) >= NAME_BYTES || values->wanted_count == WANTED_MAX)
            return false;
        wanted->name = word;
        if (!read_range(word, wanted))
            wanted->to = 0;
        values->wanted_count++;
    }
    return values->wanted_count != 0;
}

static bool is_wanted_register(const struct tbd_path_values *values, const char *name)
{
    for (size_t i = 0; i < values->wanted_count; i++)
        if (strcmp(values->wanted[i].name + (*values->wanted[i].name == '$'), name) == 0)
            return true;
    return values->wanted_count == 0;
}

static bool is_wanted_address(const struct tbd_path_values *values, uint64_t address, bool is_known,
                              unsigned bytes)
{
    for (size_t i = 0; i < values->wanted_count; i++)
        if (values->wanted[i].to != 0 && is_known && address <= values->wanted[i].to &&
            address + bytes > values->wanted[i].from)
            return true;
    return values->wanted_count == 0;
}

/* ---- one value ---- */

/* Before and after, as text; NULL: there is none.  What is unknown may have parts that are known. */
struct shown_value {
    char *text[2];
    enum tbd_certainty certainty[2];
    bool is_partial[2];
    uint64_t address[2]; /* of a variable in memory; 0: it is not, or none */
    uint32_t why;
};

static void free_value(struct shown_value *value)
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

/* What an inferred value rests on. */
static json_t *why_text(const struct tbd_path_values *values, uint32_t why)
{
    struct tbd_assumption assumption;
    char store[64], text[256];

    if (!tbd_simulation_assumption(values->past->sim, why, &assumption))
        return NULL;
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
    else if (assumption.address >> 63 != 0) /* it stands for an address that is not known */
        snprintf(text, sizeof(text),
                 "if the store at %s, to an unknown address, did not change this memory", store);
    else
        snprintf(text, sizeof(text),
                 "if the store at %s, to an unknown address, did not change 0x%" PRIx64, store,
                 assumption.address);
    return json_string(text);
}

static const char *mark_of(enum tbd_certainty certainty)
{
    return certainty == TBD_INFERRED ? " (inferred)" : "";
}

/* Not even a part of it is known. */
static bool is_all_unknown(const struct shown_value *value, int which)
{
    return value->certainty[which] == TBD_UNKNOWN && !value->is_partial[which];
}

static const char *text_of(const struct shown_value *value, int which)
{
    return is_all_unknown(value, which) ? "unknown" : value->text[which];
}

static bool has_changed(const struct shown_value *value)
{
    return value->text[1] != NULL &&
           (value->text[0] == NULL || strcmp(text_of(value, 0), text_of(value, 1)) != 0);
}

static json_t *value_line(const char *name, const struct shown_value *value, const json_t *why)
{
    json_t *line;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    fprintf(out, "%s =", name);
    if (value->text[0] != NULL)
        fprintf(out, " %s%s", text_of(value, 0), mark_of(value->certainty[0]));
    if (has_changed(value))
        fprintf(out, " -> %s%s", text_of(value, 1), mark_of(value->certainty[1]));
    if (why != NULL)
        fprintf(out, " (%s)", json_string_value(why));
    fclose(out);
    line = tbd_output_text(text);
    free(text);
    return line;
}

static json_t *value_object(const char *name, const struct shown_value *value, const json_t *why)
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

static void put_value(const struct tbd_path_values *values, json_t *list, const char *name,
                      const struct shown_value *value)
{
    bool is_json = values->run->session->json;
    json_t *why = is_json || values->what.why ? why_text(values, value->why) : NULL;

    json_array_append_new(list,
                          is_json ? value_object(name, value, why) : value_line(name, value, why));
    json_decref(why);
}

/* ---- instructions ---- */

/* How well it is known, as far as that is wanted. */
static enum tbd_certainty certainty_of(const struct tbd_path_values *values,
                                       struct tbd_simulated value, uint64_t bits)
{
    enum tbd_certainty certainty = tbd_past_certainty(value, bits);

    return values->what.exact && certainty == TBD_INFERRED ? TBD_UNKNOWN : certainty;
}

static void take_simulated(const struct tbd_path_values *values, struct shown_value *out, int which,
                           struct tbd_simulated value, uint64_t bits)
{
    out->certainty[which] = certainty_of(values, value, bits);
    if (asprintf(&out->text[which], "0x%" PRIx64, value.bits.value & bits) < 0)
        out->text[which] = NULL;
    if (out->certainty[which] == TBD_INFERRED && out->why == 0)
        out->why = value.why;
}

static void put_register(const struct tbd_path_values *values, size_t step, unsigned place,
                         bool reads, bool writes, json_t *list)
{
    static const char *const names[] = { [TBD_PLACE_FLAGS] = "flags",
                                         [TBD_PLACE_DF] = "df",
                                         [TBD_PLACE_FS] = "fs_base",
                                         [TBD_PLACE_GS] = "gs_base" };
    const char *name = place < 16 ? tbd_register_text(place) : names[place];
    uint64_t bits = place == TBD_PLACE_FLAGS ? TBD_STATUS_FLAGS : UINT64_MAX;
    struct shown_value value = { .why = 0 };

    /* flags are set by most instructions, and wanted of few */
    if (!is_wanted_register(values, name) || (place >= 16 && values->wanted_count == 0))
        return;
    if (reads)
        take_simulated(values, &value, 0, tbd_simulation_place(values->past->sim, step, place),
                       bits);
    if (writes)
        take_simulated(values, &value, 1, tbd_simulation_place(values->past->sim, step + 1, place),
                       bits);
    put_value(values, list, name, &value);
    free_value(&value);
}

static void put_registers(const struct tbd_path_values *values, size_t step, json_t *list)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(values->past->sim, step);
    bool reads[TBD_PLACE_COUNT + 1] = { false }, writes[TBD_PLACE_COUNT + 1] = { false };

    for (size_t i = 0; i < insn->read_count; i++)
        reads[insn->reads[i].place] = true;
    for (size_t i = 0; i < insn->write_count; i++)
        writes[insn->writes[i].place] = true;
    for (size_t i = 0; i < insn->copy_count; i++) {
        reads[insn->copies[i].from] = true; /* TBD_PLACE_COUNT: none */
        writes[insn->copies[i].to] = true;
    }
    for (unsigned place = 0; place < TBD_PLACE_VECTOR; place++)
        if (reads[place] || writes[place])
            put_register(values, step, place, reads[place], writes[place], list);
}

static void put_memory(const struct tbd_path_values *values, size_t step, size_t index,
                       json_t *list)
{
    const struct tbd_insn_memory *memory =
        &tbd_simulation_insn(values->past->sim, step)->memory[index];
    struct tbd_simulated address = tbd_simulation_address(values->past->sim, step, index);
    enum tbd_certainty certainty = certainty_of(values, address, UINT64_MAX);
    struct shown_value value = { .why = 0 };
    char name[64];

    if (memory->range ||
        !is_wanted_address(values, address.bits.value, certainty != TBD_UNKNOWN, memory->bytes))
        return;
    if (certainty != TBD_UNKNOWN)
        snprintf(name, sizeof(name), "[0x%" PRIx64 "]%s", address.bits.value, mark_of(certainty));
    else
        snprintf(name, sizeof(name), "[unknown]");
    take_simulated(values, &value, memory->write,
                   tbd_simulation_data(values->past->sim, step, index),
                   tbd_bits_low(8u * memory->bytes));
    put_value(values, list, name, &value);
    free_value(&value);
}

static void put_insn(struct tbd_path_values *values, const struct tbd_path_span *span, json_t *list)
{
    size_t step;
    const struct tbd_sim_insn *insn;

    if (!tbd_past_go(values->past, span->step, span->insn))
        return;
    step = values->past->at;
    insn = tbd_simulation_insn(values->past->sim, step);
    if (insn == NULL || insn->address != tbd_past_pc(values->past))
        return; /* it did not run */
    put_registers(values, step, list);
    for (size_t i = 0; i < insn->memory_count; i++)
        put_memory(values, step, i, list);
}

/* ---- variables ---- */

/* Can the text be evaluated there?  Then *out is its value, for the caller to free, *parts says what of it is known, and *address
 * where it lies in memory, if it does. */
static bool evaluate(struct tbd_path_values *values, const char *name, bool exact_only, char **out,
                     struct tbd_print_parts *parts, uint64_t *address)
{
    struct tbd_query_error error = { .status = TBD_OK };
    struct tbd_source_place place;
    struct tbd_printer printer;
    struct tbd_data data;
    size_t bytes;
    FILE *file;
    enum tbd_status status;

    *out = NULL;
    tbd_past_enter_row(values->past, exact_only);
    status = tbd_source_evaluate(values->session, (struct tbd_position){ 0 }, name, 0, strlen(name),
                                 &place, &data, &error);
    if (status == TBD_OK) {
        struct tbd_type_view view = tbd_type_look(&data.type);

        file = view.kind == TBD_TYPE_FUNCTION || view.kind == TBD_TYPE_VOID
                   ? NULL
                   : open_memstream(out, &bytes);
        if (file != NULL) {
            printer = tbd_source_printer(&place, 0);
            printer.brief = true;
            *parts = tbd_data_print(&printer, &data, file);
            fclose(file);
            *address = data.in_memory ? data.address : 0;
        }
        tbd_source_place_close(&place);
    }
    tbd_past_leave(values->past);
    return *out != NULL;
}

static void take_variable(struct tbd_path_values *values, const char *name, int which,
                          struct shown_value *out)
{
    struct tbd_print_parts parts, exact_parts;
    bool is_known;
    uint64_t address;
    char *exact;

    if (!evaluate(values, name, values->what.exact, &out->text[which], &parts,
                  &out->address[which]))
        return;
    is_known = parts.unknown == 0;
    out->is_partial[which] = !is_known && parts.known != 0;
    if (values->what.exact) {
        out->certainty[which] = is_known ? TBD_EXACT : TBD_UNKNOWN;
        return;
    }
    out->certainty[which] = is_known ? TBD_INFERRED : TBD_UNKNOWN;
    if (out->why == 0 && parts.known != 0)
        out->why = values->past->used_why;
    if (is_known && evaluate(values, name, true, &exact, &exact_parts, &address)) {
        if (exact_parts.unknown == 0 && strcmp(exact, out->text[which]) == 0)
            out->certainty[which] = TBD_EXACT;
        free(exact);
    }
}

/* The names of a row: at its beginning, then at its end. */
struct names {
    char text[NAMES_MAX][NAME_BYTES];
    struct shown_value values[NAMES_MAX];
    size_t count;
};

static void add_name(struct names *names, const char *name, size_t bytes)
{
    if (names->count == NAMES_MAX || bytes == 0 || bytes >= NAME_BYTES)
        return;
    for (size_t i = 0; i < names->count; i++)
        if (strlen(names->text[i]) == bytes && memcmp(names->text[i], name, bytes) == 0)
            return;
    memcpy(names->text[names->count], name, bytes);
    names->text[names->count++][bytes] = '\0';
}

/* What could be variables in a line of C, up to a comment: what stands in quotes, numbers, members and calls are none. */
static void find_names(struct names *names, const char *text)
{
    while (*text != '\0' && !(text[0] == '/' && (text[1] == '/' || text[1] == '*'))) {
        size_t bytes = 0;

        if (*text == '"' || *text == '\'') {
            char quote = *text++;

            while (*text != '\0' && *text != quote)
                text += text[0] == '\\' && text[1] != '\0' ? 2 : 1;
            text += *text != '\0';
            continue;
        }
        while (isalnum((unsigned char)text[bytes]) || text[bytes] == '_')
            bytes++;
        if (bytes != 0 && !isdigit((unsigned char)*text) && text[bytes] != '(')
            add_name(names, text, bytes);
        text += bytes;
        if (text[0] == '.' || (text[0] == '-' && text[1] == '>')) { /* a member follows */
            text += text[0] == '.' ? 1 : 2;
            while (isalnum((unsigned char)*text) || *text == '_')
                text++;
        } else if (bytes == 0) {
            text++;
        }
    }
}

/* A name may mean another variable after the row, of an inner block, or of the outer one again: that one has another place. */
static void drop_another(const char *name, struct shown_value *value)
{
    bool is_name =
        name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] ==
        '\0';

    if (!is_name || value->address[0] == 0 || value->address[1] == 0 ||
        value->address[0] == value->address[1])
        return;
    free(value->text[1]);
    value->text[1] = NULL;
}

/* Registers of an instruction are not evaluated: they are shown where it uses them. */
static bool is_evaluated(const struct wanted_value *wanted, bool is_insn)
{
    struct tbd_register_name found;
    const char *name = wanted->name + (*wanted->name == '$');

    return wanted->to == 0 && !(is_insn && tbd_register_find(name, strlen(name), &found));
}

static void put_variables(struct tbd_path_values *values, const struct tbd_path_span *span,
                          json_t *list)
{
    struct names *names = calloc(1, sizeof(*names));

    if (names == NULL)
        return;
    for (size_t i = 0; i < values->wanted_count; i++)
        if (is_evaluated(&values->wanted[i], span->is_insn))
            add_name(names, values->wanted[i].name, strlen(values->wanted[i].name));
    if (values->wanted_count == 0 && span->text != NULL)
        find_names(names, span->text);
    for (int which = 0; which < 2; which++) {
        uint64_t step = which == 0 ? span->step : span->end_step;
        uint32_t insn = which == 0 ? span->insn : span->end_insn;

        for (size_t i = 0;
             step != UINT64_MAX && tbd_past_go(values->past, step, insn) && i < names->count; i++)
            take_variable(values, names->text[i], which, &names->values[i]);
    }
    for (size_t i = 0; i < names->count; i++) {
        drop_another(names->text[i], &names->values[i]);
        if (names->values[i].text[0] != NULL)
            put_value(values, list, names->text[i], &names->values[i]);
        free_value(&names->values[i]);
    }
    free(names);
}

bool tbd_path_values_match(struct tbd_path_values *values, const struct tbd_path_span *span)
{
    enum tbd_certainty certainty;

    if (values->what.where != NULL && values->past == NULL) {
        values->condition.asked++;
        values->condition.undecided++;
        return false;
    }
    return values->what.where == NULL ||
           (tbd_past_go(values->past, span->step, span->insn) &&
            tbd_past_decide(values->past, &values->condition, &certainty) == TBD_PAST_TRUE);
}

void tbd_path_values_put(struct tbd_path_values *values, const struct tbd_path_span *span,
                         json_t *row)
{
    json_t *list;

    if (!values->what.values)
        return;
    list = json_array();
    if (values->past != NULL && span->is_insn && !values->what.variables)
        put_insn(values, span, list);
    if (values->past != NULL &&
        (!span->is_insn || values->what.variables || values->wanted_count != 0))
        put_variables(values, span, list);
    json_object_set_new(row, "values", list);
}

/* ---- the dump ---- */

enum tbd_exit tbd_path_values_new(struct tbd_command_run *run, struct tbd_rings *ring,
                                  const struct tbd_path_wanted *wanted,
                                  struct tbd_path_values **out)
{
    struct tbd_path_values *values = *out = calloc(1, sizeof(*values));

    if (values == NULL)
        return tbd_command_no_memory();
    values->run = run;
    values->ring = ring;
    values->what = *wanted;
    values->condition.text = wanted->where;
    values->condition.exact_only = wanted->exact;
    if (wanted->only != NULL && !take_only(values, wanted->only))
        return tbd_command_usage(run, "--only takes names, registers and address ranges "
                                      "(0x1000-0x1fff), with commas between them");
    return TBD_EXIT_FOUND;
}

void tbd_path_values_free(struct tbd_path_values *values)
{
    if (values == NULL)
        return;
    tbd_past_give_back(values->past);
    if (values->is_open)
        tbd_session_close(&values->other);
    free(values->words);
    free(values);
}

/* Questions that follow in the same session find the simulation there. */
static void open_session(struct tbd_path_values *values)
{
    struct tbd_session *session = values->run->session;

    if (session->trace != NULL && strcmp(session->info->path, values->ring->path) == 0) {
        values->session = session;
        return;
    }
    values->session = &values->other;
    values->is_open = true;
    values->other.takes_rings = true;
    values->opened = tbd_session_open(values->session, values->ring->path);
}

/* The session has the dump's threads for itself: in the same order. */
static enum tbd_status take_past(struct tbd_path_values *values,
                                 const struct tbd_rings_thread *thread, uint64_t first)
{
    struct tbd_rings *rings;
    enum tbd_status status = tbd_past_rings(values->session, &rings);
    size_t number = (size_t)(thread - values->ring->threads);

    if (status == TBD_OK && thread->after != 0)
        status = tbd_past_too_far(values->session);
    if (status != TBD_OK)
        return status;
    if (number >= rings->dump.head->thread_count ||
        tbd_rings_steps(rings, &rings->threads[number]) == NULL)
        return TBD_NOMEM;
    return tbd_past_take(values->session, &rings->threads[number], first, TBD_PAST_BEFORE,
                         &values->past);
}

enum tbd_status tbd_path_values_begin(struct tbd_path_values *values,
                                      struct tbd_rings_thread *thread, uint64_t first)
{
    enum tbd_status status;

    tbd_past_give_back(values->past);
    values->past = NULL;
    if (values->session == NULL)
        open_session(values);
    status = values->opened;
    if (status == TBD_OK)
        status = take_past(values, thread, first);
    if (status != TBD_OK && values->failed == TBD_OK) {
        values->failed = status;
        values->why = values->session->why;
    }
    *(status == TBD_OK ? &values->with : &values->without) += 1;
    return status;
}

/* Threads that had ended are in the rings alone. */
static bool is_some(const struct tbd_path_values *values)
{
    return values->failed == TBD_NOREPLAY && values->with != 0;
}

enum tbd_exit tbd_path_values_tell(const struct tbd_path_values *values)
{
    if (is_some(values))
        fprintf(
            stderr,
            "tbdq: note: of %zu threads the dump has no registers: what they held is not known\n",
            values->without);
    if (values->failed == TBD_OK || is_some(values))
        return values->what.where == NULL || tbd_past_condition_tell(&values->condition)
                   ? TBD_EXIT_FOUND
                   : TBD_EXIT_USAGE;
    values->run->session->why = values->why;
    return tbd_command_fail(values->run, values->failed);
}
