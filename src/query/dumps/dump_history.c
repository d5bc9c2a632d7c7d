// SPDX-License-Identifier: MIT
/* dump_history.c - history in a dump: the values that a variable in memory had, by the stores to it that the ring has (dump_values.h)
 *
 * Only stores whose address is known are rows.  Others may have changed it too; they are counted.  Registers are not followed: at
 * each instruction that uses one `path insns --values --only` shows it. */
#include "query/dumps/dump_values.h"

#include "query/dumps/dump_run.h"
#include "query/output/output.h"
#include "query/past/past.h"
#include "query/session/source/source_place.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { INSNS = 100000, ROWS_MAX = 200 };

struct dump_history {
    struct tbd_dump_run dump;
    struct tbd_past *past;         /* to be given back */
    struct tbd_source_place place; /* where the expression was evaluated */
    bool is_open;
    struct tbd_data object;
    size_t bytes;
    size_t *stores; /* owned; steps of the simulation that change it, ascending */
    size_t count, capacity;
    uint64_t unsure; /* stores that may have */
};

/* ---- the variable ---- */

static enum tbd_exit find_object(struct tbd_command_run *run, struct dump_history *h)
{
    enum tbd_exit result;

    if (run->argc == 0 || strstr(run->text, " where ") != NULL)
        return tbd_command_usage(run, "history takes an expression there, without a condition");
    tbd_past_enter(h->past, false);
    result = tbd_command_value_of(run, (struct tbd_position){ 0 }, run->arguments,
                                  strlen(run->text), &h->place, &h->object);
    tbd_past_leave(h->past);
    if (result != TBD_EXIT_FOUND)
        return result;
    h->is_open = true;
    h->bytes = tbd_type_look(&h->object.type).bytes;
    if (h->object.is_known && h->object.in_memory && h->bytes != 0 && h->bytes <= TBD_DATA_BYTES)
        return TBD_EXIT_FOUND;
    fprintf(stderr,
            "tbdq: history: there it must be a variable of 1 to 256 bytes in memory, whose address "
            "is known\n");
    return TBD_EXIT_NOT_FOUND;
}

/* ---- stores ---- */

/* Adds the step if this piece changes the object; counts it if it may. */
static bool look_at(struct dump_history *h, size_t step, size_t index)
{
    const struct tbd_insn_memory *memory = &tbd_simulation_insn(h->past->sim, step)->memory[index];
    struct tbd_simulated address;

    if (!memory->write)
        return true;
    address = tbd_simulation_address(h->past->sim, step, index);
    if (!tbd_bits_full(address.bits) || memory->range) {
        h->unsure++;
        return true;
    }
    if (address.bits.value >= h->object.address + h->bytes ||
        address.bits.value + memory->bytes <= h->object.address ||
        (h->count != 0 && h->stores[h->count - 1] == step))
        return true;
    if (!tbd_array_grow(&h->stores, h->count, &h->capacity, sizeof(*h->stores)))
        return false;
    h->stores[h->count++] = step;
    return true;
}

static bool find_stores(struct dump_history *h)
{
    size_t steps = tbd_simulation_counts(h->past->sim).steps;
    bool enough = true;

    for (size_t i = 0; enough && i < steps; i++) {
        const struct tbd_sim_insn *insn = tbd_simulation_insn(h->past->sim, i);

        for (size_t k = 0; enough && k < insn->memory_count; k++)
            enough = look_at(h, i, k);
    }
    return enough;
}

/* ---- rows ---- */

/* The object where the past is. */
static char *value_text(struct dump_history *h, enum tbd_certainty *out, bool *out_any)
{
    struct tbd_printer printer = tbd_source_printer(&h->place, 0);
    uint8_t known[TBD_DATA_BYTES], exact[TBD_DATA_BYTES];
    struct tbd_data data = h->object;
    struct tbd_print_parts parts;
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    if (file == NULL)
        return NULL;
    data.in_memory = false;
    data.byte_count = (uint32_t)h->bytes;
    tbd_past_bytes(h->past, h->object.address, h->bytes, data.bytes, known, exact);
    *out = TBD_EXACT;
    for (size_t i = 0; i < h->bytes; i++) {
        data.lost[i] = known[i] != 0xff;
        if (data.lost[i])
            *out = TBD_UNKNOWN;
        else if (exact[i] != 0xff && *out == TBD_EXACT)
            *out = TBD_INFERRED;
    }
    tbd_past_enter(h->past, false);
    printer.brief = true;
    parts = tbd_data_print(&printer, &data, file);
    *out_any = parts.known != 0;
    tbd_past_leave(h->past);
    fclose(file);
    return text;
}

/* Goes to the step, or to the one after it. */
static bool go(struct dump_history *h, size_t sim_step, bool after)
{
    uint64_t step;
    uint32_t insn;

    tbd_past_where(h->past, sim_step, &step, &insn);
    return tbd_past_go(h->past, step, insn + after);
}

static json_t *position_of(const struct dump_history *h, size_t sim_step)
{
    struct tbd_dump_place place = { .thread = h->past->thread };

    tbd_past_where(h->past, sim_step, &place.step, &place.insn);
    return tbd_dump_position_text(&place);
}

static void put_value(struct dump_history *h, json_t *row)
{
    enum tbd_certainty certainty = TBD_UNKNOWN;
    bool any = false;
    char *text = value_text(h, &certainty, &any);

    json_object_set_new(row, "value", text == NULL || !any ? json_null() : tbd_output_text(text));
    json_object_set_new(row, "certainty", json_string(tbd_certainty_text(certainty)));
    free(text);
}

/* The value that begins with store number `i`; SIZE_MAX: the one before the first. */
static void add_row(struct dump_history *h, size_t i, struct tbd_rows *rows)
{
    struct tbd_dump_place place = { .thread = h->past->thread };
    size_t next = i == SIZE_MAX ? 0 : i + 1;
    json_t *row;

    if (i == SIZE_MAX) {
        row = json_object();
        json_object_set_new(row, "from", json_null());
        if (!go(h, 0, false)) {
            json_decref(row);
            return;
        }
    } else {
        tbd_past_where(h->past, h->stores[i], &place.step, &place.insn);
        row = tbd_dump_row(&h->dump, &place);
        json_object_set_new(row, "from", tbd_dump_position_text(&place));
        if (!go(h, h->stores[i], true)) {
            json_decref(row);
            return;
        }
    }
    put_value(h, row);
    json_object_set_new(row, "to", next < h->count ? position_of(h, h->stores[next]) : json_null());
    tbd_rows_add(rows, row);
}

static enum tbd_exit print_history(struct tbd_command_run *run, struct dump_history *h)
{
    static const char *const columns[] = { "value",    "certainty", "from", "to",
                                           "function", "source",    NULL };
    size_t first = h->count > ROWS_MAX ? h->count - ROWS_MAX : 0;
    struct tbd_rows rows;

    tbd_rows_start(&rows, run, columns);
    if (first == 0)
        add_row(h, SIZE_MAX, &rows);
    for (size_t i = first; i < h->count; i++)
        add_row(h, i, &rows);
    if (first != 0)
        fprintf(stderr, "tbdq: note: the last %d of %zu values\n", ROWS_MAX, h->count);
    if (h->unsure != 0)
        fprintf(stderr,
                "tbdq: note: %" PRIu64
                " stores to unknown addresses, or of unknown length, may have changed it, too\n",
                h->unsure);
    return tbd_rows_end(&rows);
}

enum tbd_exit tbd_dump_run_history(struct tbd_command_run *run)
{
    struct dump_history h = { .past = NULL };
    enum tbd_exit result = tbd_dump_open_past(run, &h.dump, INSNS, &h.past);

    if (result == TBD_EXIT_FOUND)
        result = find_object(run, &h);
    if (result == TBD_EXIT_FOUND)
        result = find_stores(&h) ? print_history(run, &h) : tbd_command_no_memory();
    if (h.is_open)
        tbd_source_place_close(&h.place);
    free(h.stores);
    tbd_past_give_back(h.past);
    tbd_dump_close(&h.dump);
    return result;
}
