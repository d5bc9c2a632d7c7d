// SPDX-License-Identifier: MIT
/* path_values_insn.c - registers and memory that an instruction of a row uses (path_values_private.h) */
#include "query/commands/path_values_private.h"

#include "query/debuginfo/register_names.h"

#include <inttypes.h>
#include <string.h>

/* How well it is known, as far as that is wanted. */
static enum tbd_certainty certainty_of(const struct tbd_path_values *values,
                                       struct tbd_simulated value, uint64_t bits)
{
    enum tbd_certainty certainty = tbd_past_certainty(value, bits);

    return values->what.exact && certainty == TBD_INFERRED ? TBD_UNKNOWN : certainty;
}

static void take_simulated(const struct tbd_path_values *values, struct tbd_shown_value *out,
                           int which, struct tbd_simulated value, uint64_t bits)
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
    struct tbd_shown_value value = { .why = 0 };

    /* flags are set by most instructions, and wanted of few */
    if (!tbd_path_values_want_register(values, name) || (place >= 16 && values->wanted_count == 0))
        return;
    if (reads)
        take_simulated(values, &value, 0, tbd_simulation_place(values->past->sim, step, place),
                       bits);
    if (writes)
        take_simulated(values, &value, 1, tbd_simulation_place(values->past->sim, step + 1, place),
                       bits);
    tbd_path_values_put_one(values, list, name, &value);
    tbd_shown_value_free(&value);
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
    struct tbd_shown_value value = { .why = 0 };
    char name[64];

    if (memory->range || !tbd_path_values_want_address(values, address.bits.value,
                                                       certainty != TBD_UNKNOWN, memory->bytes))
        return;
    if (certainty != TBD_UNKNOWN)
        snprintf(name, sizeof(name), "[0x%" PRIx64 "]%s", address.bits.value,
                 tbd_path_values_mark(certainty));
    else
        snprintf(name, sizeof(name), "[unknown]");
    take_simulated(values, &value, memory->write,
                   tbd_simulation_data(values->past->sim, step, index),
                   tbd_bits_low(8u * memory->bytes));
    tbd_path_values_put_one(values, list, name, &value);
    tbd_shown_value_free(&value);
}

void tbd_path_values_put_insn(struct tbd_path_values *values, const struct tbd_path_span *span,
                              json_t *list)
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
