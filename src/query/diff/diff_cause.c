// SPDX-License-Identifier: MIT
/* diff_cause.c - see diff_cause.h
 *
 *   branch -> its inputs, those whose values differ -> their writers on both sides
 *   the same instruction on both sides    -> go on with its inputs that differ
 *   no input differs, or other writers    -> this is where the runs began to differ
 *
 * Addresses differ from run to run without a reason: an input is followed for its address only if no other differs.
 *
 * DIFF_CAUSE-1  Every step goes back in time on both sides; there are at most ROWS_MAX. (not checked: DIFF_WRITER-1, and
 *     the bound of rows) */
#include "query/diff/diff_cause.h"
#include "query/diff/diff_branch.h"
#include "query/diff/diff_origin.h"

#include "base/assert.h"
#include "query/commands/rows.h"
#include "query/output/output.h"
#include "query/session/source/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX      160u
#define PAGE          4096u
#define ADDRESS_LEAST 0x10000000u
#define ADDRESS_END   0x800000000000u

struct cause_following {
    struct tbd_diff_side *sides;
    struct tbd_diff_cause *cause;
    enum tbd_status status;
    unsigned rows;
    uint64_t limit[2]; /* branches in ignored code are looked for before these times */
};

/* ---- rows ---- */

json_t *tbd_diff_instruction(struct tbd_diff_side *side, struct tbd_position at)
{
    struct tbd_session *session = &side->session;
    json_t *object = json_object();
    struct tbd_source_line line;
    struct tbd_place place;
    char text[256];

    json_object_set_new(object, "position", tbd_rows_position(at));
    if (tbd_session_place(session, at, &place) != TBD_OK)
        return object;
    json_object_set_new(object, "thread", json_integer(place.thread));
    json_object_set_new(object, "pc", tbd_output_hex(place.pc));
    json_object_set_new(object, "function",
                        tbd_output_text(tbd_symbols_format(session->symbols, place.window, place.pc,
                                                           text, sizeof(text))));
    if (tbd_source_line_at(session, place.window, place.pc, &line))
        tbd_output_source_cell(line.file, line.line, object);
    if (place.insn_bytes != 0 &&
        tbd_disas_text(session->disas, place.window, place.code, place.insn_bytes, place.pc, text,
                       sizeof(text)) != 0)
        json_object_set_new(object, "code", tbd_output_text(text));
    return object;
}

static void value_text(const uint8_t *bytes, size_t count, char *out, size_t size)
{
    uint64_t number = 0;
    size_t used = 0;

    if (count == 0) {
        snprintf(out, size, "?");
    } else if (count <= 8) {
        memcpy(&number, bytes, count);
        snprintf(out, size, "0x%" PRIx64, number);
    } else {
        for (size_t i = 0; i < count && used + 4 < size; i++)
            used += (size_t)snprintf(out + used, size - used, i == 0 ? "%02x" : " %02x", bytes[i]);
    }
}

static void put_value(struct cause_following *following, const struct tbd_diff_value *value,
                      unsigned side, json_t *row)
{
    uint8_t bytes[TBD_DIFF_BYTES_MAX];
    char text[4 * TBD_DIFF_BYTES_MAX];
    size_t count = tbd_diff_value_read(&following->sides[side], value, bytes);

    value_text(bytes, count, text, sizeof(text));
    json_object_set_new(row, "value", json_string(text));
}

static void name_value(const struct tbd_diff_value *value, char *out, size_t bytes)
{
    if (value->place == TBD_WHY_FLAGS)
        snprintf(out, bytes, "flags");
    else if (value->place == TBD_WHY_REGISTER)
        snprintf(out, bytes, "%s", ZydisRegisterGetString(value->reg));
    else
        snprintf(out, bytes, "memory at 0x%" PRIx64, value->address);
}

/* A value that differs, and who wrote it. */
static void add_row(struct cause_following *following, const struct tbd_diff_value values[2],
                    const struct tbd_diff_writer writers[2])
{
    json_t *row = json_object();

    for (unsigned side = 0; side < 2; side++) {
        json_t *half = writers[side].is_there
                           ? tbd_diff_instruction(&following->sides[side], writers[side].at)
                           : json_object();
        char name[64];

        name_value(&values[side], name, sizeof(name));
        json_object_set_new(half, "what", json_string(name));
        put_value(following, &values[side], side, half);
        json_object_set_new(row, side == 0 ? "a" : "b", half);
    }
    json_array_append_new(following->cause->rows, row);
    following->rows++;
}

/* A branch on the way, which went elsewhere. */
static void add_parting(struct cause_following *following, const struct tbd_diff_writer at[2])
{
    json_t *row = json_object();

    for (unsigned side = 0; side < 2; side++) {
        json_t *half = tbd_diff_instruction(&following->sides[side], at[side].at);

        json_object_set_new(half, "what", json_string("a branch that goes elsewhere"));
        json_object_set_new(row, side == 0 ? "a" : "b", half);
    }
    json_array_append_new(following->cause->rows, row);
    following->rows++;
}

/* ---- the end of the chain ---- */

static void end_at(struct cause_following *following, const struct tbd_diff_writer writers[2],
                   enum tbd_diff_origin origin)
{
    following->cause->origin = origin;
    for (unsigned side = 0; side < 2; side++) {
        following->cause->has_at[side] = writers[side].is_there;
        following->cause->at[side] = writers[side].at;
    }
}

/* ---- inputs ---- */

enum likeness { EQUAL, ADDRESSES, DIFFERENT, UNKNOWN };

/* Are both values addresses in memory of the same kind? */
static bool are_addresses(struct cause_following *following, const struct tbd_diff_value values[2],
                          const uint8_t bytes[2][TBD_DIFF_BYTES_MAX], const size_t counts[2])
{
    enum tbd_diff_memory kinds[2];
    uint64_t addresses[2];

    for (unsigned side = 0; side < 2; side++) {
        memcpy(&addresses[side], bytes[side], sizeof(addresses[side]));
        if (counts[side] != 8)
            return false;
        kinds[side] = tbd_diff_memory_at(&following->sides[side], values[side].at, addresses[side]);
    }
    if (kinds[0] != TBD_DIFF_MEMORY_NONE && kinds[0] == kinds[1])
        return true;
    /* memory that was mapped later: it lies elsewhere by whole pages */
    return addresses[0] % PAGE == addresses[1] % PAGE && addresses[0] >= ADDRESS_LEAST &&
           addresses[1] >= ADDRESS_LEAST && addresses[0] < ADDRESS_END &&
           addresses[1] < ADDRESS_END;
}

static enum likeness compare(struct cause_following *following,
                             const struct tbd_diff_value values[2])
{
    uint8_t bytes[2][TBD_DIFF_BYTES_MAX];
    size_t counts[2];

    for (unsigned side = 0; side < 2; side++)
        counts[side] = tbd_diff_value_read(&following->sides[side], &values[side], bytes[side]);
    if (counts[0] == 0 || counts[1] == 0)
        return UNKNOWN;
    if (counts[0] == counts[1] && memcmp(bytes[0], bytes[1], counts[0]) == 0)
        return EQUAL;
    return are_addresses(following, values, (const uint8_t(*)[TBD_DIFF_BYTES_MAX])bytes, counts)
               ? ADDRESSES
               : DIFFERENT;
}

/* Leaves only the bytes of a long value that differ. */
static void narrow(struct cause_following *following, struct tbd_diff_value values[2])
{
    uint8_t bytes[2][TBD_DIFF_BYTES_MAX];
    size_t counts[2], first = 0, last;

    for (unsigned side = 0; side < 2; side++)
        counts[side] = tbd_diff_value_read(&following->sides[side], &values[side], bytes[side]);
    if (values[0].place != TBD_WHY_MEMORY || values[1].place != TBD_WHY_MEMORY ||
        counts[0] != counts[1] || counts[0] <= 8)
        return;
    last = counts[0] - 1;
    while (first < last && bytes[0][first] == bytes[1][first])
        first++;
    while (last > first && bytes[0][last] == bytes[1][last])
        last--;
    for (unsigned side = 0; side < 2; side++) {
        values[side].address += first;
        values[side].bytes = first == last ? 1 : last - first + 1;
    }
}

/* The inputs of both instructions, and the registers that the addresses of those in memory are made of. */
#define PAIRS_MAX (3u * TBD_WHY_INPUTS_MAX)

struct inputs {
    struct tbd_diff_value values[PAIRS_MAX][2];
    enum likeness like[PAIRS_MAX];
    size_t count;
    bool is_copy;
    bool constants_differ; /* or the instructions do */
};

/* Another element was read where a register that its address is made of differs. */
static void take_address(struct cause_following *following, struct tbd_diff_writer writers[2],
                         const ZydisDecodedOperand *operand, struct inputs *out)
{
    const ZydisRegister registers[] = { operand->mem.index, operand->mem.base };

    for (unsigned i = 0; i < 2; i++) {
        struct tbd_diff_value *pair = out->values[out->count];
        ZydisRegister whole = tbd_why_whole(registers[i]);

        if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15 || whole == ZYDIS_REGISTER_RSP)
            continue;
        for (unsigned side = 0; side < 2; side++)
            pair[side] = (struct tbd_diff_value){ .at = writers[side].at,
                                                  .thread = writers[side].thread,
                                                  .place = TBD_WHY_REGISTER,
                                                  .reg = whole,
                                                  .bytes = 8 };
        out->like[out->count] = compare(following, pair);
        out->count += out->like[out->count] == DIFFERENT;
    }
}

static void take_inputs(struct cause_following *following, struct tbd_diff_writer writers[2],
                        const struct tbd_diff_value *values, struct inputs *out)
{
    struct tbd_why_inputs from[2];

    *out = (struct inputs){ .count = 0 };
    for (unsigned side = 0; side < 2; side++)
        from[side] = tbd_why_inputs_of(&writers[side].insn,
                                       values == NULL ? TBD_WHY_FLAGS : values[side].place,
                                       values == NULL ? ZYDIS_REGISTER_NONE : values[side].reg);
    out->constants_differ = from[0].count != from[1].count ||
                            writers[0].insn.insn.mnemonic != writers[1].insn.insn.mnemonic;
    out->is_copy = from[0].is_copy && from[1].is_copy && values != NULL;
    for (size_t i = 0; i < from[0].count && i < from[1].count; i++) {
        struct tbd_diff_value *pair;
        bool is_there = from[0].inputs[i].place == from[1].inputs[i].place;

        if (is_there && from[0].inputs[i].place == TBD_WHY_MEMORY)
            take_address(following, writers, from[0].inputs[i].operand, out);
        pair = out->values[out->count];
        if (!is_there || (from[0].inputs[i].place == TBD_WHY_CONSTANT &&
                          from[0].inputs[i].constant != from[1].inputs[i].constant))
            out->constants_differ = true;
        for (unsigned side = 0; side < 2; side++)
            is_there =
                tbd_diff_input(&following->sides[side], &writers[side], &from[side].inputs[i],
                               out->is_copy ? &values[side] : NULL, &pair[side]) &&
                is_there;
        if (!is_there)
            continue;
        out->like[out->count] = compare(following, pair);
        if (out->like[out->count] == DIFFERENT)
            narrow(following, pair);
        out->count++;
    }
}

/* ---- following ---- */

static bool follow(struct cause_following *following, struct tbd_diff_value values[2]);
static bool follow_inputs(struct cause_following *following, struct tbd_diff_writer writers[2],
                          const struct tbd_diff_value *values);

static bool follow_those(struct cause_following *following, struct inputs *inputs,
                         enum likeness like)
{
    for (size_t i = 0; i < inputs->count && following->status == TBD_OK; i++)
        if (inputs->like[i] == like && follow(following, inputs->values[i]))
            return true;
    return false;
}

/* The inputs of the same instruction on both sides; true: the origin is known. */
static bool follow_inputs(struct cause_following *following, struct tbd_diff_writer writers[2],
                          const struct tbd_diff_value *values)
{
    struct inputs *inputs = malloc(sizeof(*inputs));
    bool is_known = false;

    if (inputs == NULL) {
        following->status = TBD_NOMEM;
        return false;
    }
    take_inputs(following, writers, values, inputs);
    if (inputs->constants_differ) {
        end_at(following, writers, TBD_DIFF_CODE);
        snprintf(following->cause->text, sizeof(following->cause->text),
                 "the two builds calculate it differently here");
        is_known = true;
    }
    if (!is_known)
        is_known = follow_those(following, inputs, DIFFERENT);
    if (!is_known)
        is_known = follow_those(following, inputs, UNKNOWN);
    if (!is_known)
        is_known = follow_those(following, inputs, ADDRESSES);
    if (!is_known && following->status == TBD_OK && inputs->is_copy && inputs->count == 1 &&
        inputs->like[0] == EQUAL) /* a part of it that is not seen here */
        is_known = follow(following, inputs->values[0]);
    free(inputs);
    return is_known;
}

/* Neither is the same instruction: both may be copies, made by other code of an ignored module. */
static bool are_both_copies(const struct tbd_diff_writer writers[2],
                            const struct tbd_diff_value values[2])
{
    for (unsigned side = 0; side < 2; side++) {
        if (!writers[side].is_there || writers[side].is_syscall || writers[side].is_kernel ||
            !writers[side].is_decoded ||
            !tbd_why_inputs_of(&writers[side].insn, values[side].place, values[side].reg).is_copy)
            return false;
    }
    return true;
}

static bool are_at_one_place(struct cause_following *following,
                             const struct tbd_diff_writer writers[2])
{
    uint64_t keys[2];

    for (unsigned side = 0; side < 2; side++)
        keys[side] = tbd_diff_place_key(&following->sides[side], writers[side].place.window,
                                        writers[side].pc);
    return keys[0] == keys[1];
}

static uint32_t stream_of(const struct tbd_diff_side *side, const struct tbd_diff_writer *writer)
{
    const struct tbd_trace *trace = side->session.trace;
    const struct tbd_thread_info *thread =
        tbd_trace_thread_of(trace, writer->thread, writer->at.time);

    return thread == NULL ? 0 : 2 * (uint32_t)(thread - tbd_trace_thread(trace, 0));
}

static bool are_of_one_thread(struct cause_following *following,
                              const struct tbd_diff_writer writers[2])
{
    return stream_of(&following->sides[0], &writers[0]) ==
           stream_of(&following->sides[1], &writers[1]);
}

/* Other code of an ignored module wrote the value, because a branch in it went elsewhere: its inputs are followed. */
static bool follow_parting(struct cause_following *following,
                           const struct tbd_diff_writer writers[2],
                           const struct tbd_diff_value values[2])
{
    struct tbd_position branch[2] = { values[0].at, values[1].at };
    struct tbd_diff_writer *at = calloc(2, sizeof(*at));
    bool is_known = false;

    if (at == NULL)
        following->status = TBD_NOMEM;
    else
        following->status =
            tbd_diff_branch_before(following->sides, stream_of(&following->sides[0], &writers[0]),
                                   following->limit, branch);
    if (following->status == TBD_NOTFOUND) {
        following->status = TBD_OK;
        free(at);
        return false;
    }
    for (unsigned side = 0; side < 2 && following->status == TBD_OK; side++)
        following->status = tbd_diff_writer_at(&following->sides[side], branch[side], &at[side]);
    if (following->status == TBD_OK && at[0].is_decoded && at[1].is_decoded) {
        add_parting(following, at);
        following->limit[0] = branch[0].time;
        following->limit[1] = branch[1].time;
        is_known = follow_inputs(following, at, NULL);
    }
    for (unsigned side = 0; at != NULL && side < 2; side++)
        tbd_diff_writer_free(&at[side]);
    free(at);
    return is_known;
}

/* What both writers are; true: this is the origin. */
static bool is_origin(struct cause_following *following, struct tbd_diff_writer writers[2],
                      const struct tbd_diff_value values[2])
{
    struct tbd_diff_cause *cause = following->cause;
    enum tbd_diff_origin origin =
        tbd_diff_origin_of(following->sides, writers, values, cause->text, sizeof(cause->text));

    if (origin != TBD_DIFF_NOT_FOUND) {
        end_at(following, writers, origin);
        return true;
    }
    if (!are_of_one_thread(following, writers)) {
        end_at(following, writers, TBD_DIFF_ORDER);
        snprintf(cause->text, sizeof(cause->text),
                 "thread %" PRIu32 " wrote it last in A, %" PRIu32 " in B",
                 stream_of(&following->sides[0], &writers[0]) / 2 + 1,
                 stream_of(&following->sides[1], &writers[1]) / 2 + 1);
        return true;
    }
    if (are_at_one_place(following, writers) || are_both_copies(writers, values))
        return false;
    if (follow_parting(following, writers, values))
        return true;
    end_at(following, writers, TBD_DIFF_ORDER);
    snprintf(cause->text, sizeof(cause->text), "other code wrote it last");
    return true;
}

static bool follow(struct cause_following *following, struct tbd_diff_value values[2])
{
    struct tbd_diff_writer *writers = calloc(2, sizeof(*writers));
    bool is_known = false;

    if (writers == NULL)
        following->status = TBD_NOMEM;
    for (unsigned side = 0; side < 2 && following->status == TBD_OK; side++)
        following->status =
            tbd_diff_writer_of(&following->sides[side], &values[side], &writers[side]);
    if (following->status == TBD_NOTFOUND || following->rows >= ROWS_MAX) {
        following->status = TBD_OK;
    } else if (following->status == TBD_OK) {
        add_row(following, values, writers);
        is_known =
            is_origin(following, writers, values) || follow_inputs(following, writers, values);
        if (!is_known && following->status == TBD_OK && following->rows < ROWS_MAX) {
            end_at(following, writers, TBD_DIFF_NOT_FOUND);
            snprintf(following->cause->text, sizeof(following->cause->text),
                     "its inputs are not known to differ");
        }
    }
    for (unsigned side = 0; writers != NULL && side < 2; side++)
        tbd_diff_writer_free(&writers[side]);
    free(writers);
    return is_known;
}

/* The registers from which addresses are made, one after the other. */
static bool follow_addresses(struct cause_following *following, struct tbd_diff_writer writers[2])
{
    for (ZydisRegister reg = ZYDIS_REGISTER_RAX; reg <= ZYDIS_REGISTER_R15; reg++) {
        struct tbd_diff_value values[2];
        bool is_used = false;

        for (unsigned i = 0; i < writers[0].insn.insn.operand_count; i++) {
            const ZydisDecodedOperand *operand = &writers[0].insn.operands[i];

            is_used = is_used ||
                      (operand->type == ZYDIS_OPERAND_TYPE_MEMORY && reg != ZYDIS_REGISTER_RSP &&
                       (operand->mem.base == reg || operand->mem.index == reg));
        }
        for (unsigned side = 0; side < 2; side++)
            values[side] = (struct tbd_diff_value){ .at = writers[side].at,
                                                    .thread = writers[side].thread,
                                                    .place = TBD_WHY_REGISTER,
                                                    .reg = reg,
                                                    .bytes = 8 };
        if (is_used && compare(following, values) == DIFFERENT && follow(following, values))
            return true;
    }
    return false;
}

static bool follow_branch(struct cause_following *following, struct tbd_diff_writer writers[2])
{
    return follow_inputs(following, writers, NULL);
}

enum tbd_status tbd_diff_cause_find(struct tbd_diff_side sides[2],
                                    const struct tbd_position branch[2], bool is_fault,
                                    struct tbd_diff_cause *out)
{
    struct cause_following following = { .sides = sides,
                                         .cause = out,
                                         .limit = { branch[0].time, branch[1].time } };
    struct tbd_diff_writer *writers = calloc(2, sizeof(*writers));

    *out = (struct tbd_diff_cause){ .rows = json_array() };
    if (writers == NULL)
        return TBD_NOMEM;
    for (unsigned side = 0; side < 2 && following.status == TBD_OK; side++)
        following.status = tbd_diff_writer_at(&sides[side], branch[side], &writers[side]);
    if (following.status == TBD_OK && writers[0].is_decoded && writers[1].is_decoded)
        (void)(is_fault ? follow_addresses : follow_branch)(&following, writers);
    for (unsigned side = 0; side < 2; side++)
        tbd_diff_writer_free(&writers[side]);
    free(writers);
    return following.status;
}

enum tbd_status tbd_diff_cause_of(struct tbd_diff_side sides[2],
                                  const struct tbd_diff_value values[2], struct tbd_diff_cause *out)
{
    struct cause_following following = { .sides = sides,
                                         .cause = out,
                                         .limit = { values[0].at.time, values[1].at.time } };
    struct tbd_diff_value own[2] = { values[0], values[1] };

    *out = (struct tbd_diff_cause){ .rows = json_array() };
    (void)follow(&following, own);
    return following.status;
}

void tbd_diff_cause_free(struct tbd_diff_cause *cause)
{
    json_decref(cause->rows);
    cause->rows = NULL;
}

const char *tbd_diff_origin_name(enum tbd_diff_origin origin)
{
    static const char *const names[] = {
        [TBD_DIFF_NOT_FOUND] = "not found",
        [TBD_DIFF_CODE] = "code",
        [TBD_DIFF_INPUT] = "input",
        [TBD_DIFF_TIME] = "time",
        [TBD_DIFF_PID] = "pid",
        [TBD_DIFF_ADDRESS] = "address",
        [TBD_DIFF_START] = "start",
        [TBD_DIFF_ORDER] = "order",
    };

    return names[origin];
}
