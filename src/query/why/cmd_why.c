// SPDX-License-Identifier: MIT
/* cmd_why.c - where a value came from: back through stores, loads, copies and calculations
 *
 *   memory    the last store to it; the stored value comes from a register, a constant, or memory
 *   register  the last instruction before that writes it, block by block
 *   flags     the same
 *
 * Copies are followed as far as they go, byte by byte: through a part of a vector register, too.  A calculation has several
 * inputs: each is followed in turn, so the answer is a tree, `limit` calculations deep.  Constants and system calls end it, but
 * for those that read what a recorded process has written: why_channels.c.
 *
 * CMD_WHY-1  Every hop in a process goes back in time; there are at most HOPS_MAX in a row and TBD_WHY_ROWS_MAX in all,
 *     and nothing is followed twice.
 * CMD_WHY-2  The search for a register's writer looks at BLOCKS_MAX blocks at most, and says so.
 *     (not checked: it is the bound of a loop) */
#include "query/text/user_interrupt.h"
#include "base/assert.h"
#include "query/output/output.h"
#include "query/commands/rows.h"
#include "query/session/source/source_place.h"
#include "query/why/why_rows.h"
#include "query/why/why_channels.h"
#include "query/why/why_copies.h"
#include "hooks/table/syscalls.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HOPS_MAX      64u
#define BLOCKS_MAX    100000u
#define LIMIT_DEFAULT 3u

/* The instruction that wrote it. */
struct writer {
    struct tbd_position at;
    struct tbd_place place;
    struct tbd_why_insn insn;
    uint64_t stored_at; /* MEMORY: where its store began */
    uint64_t stored_bytes;
    /* MEMORY: by a call in which its thread has waited; `place` is another thread's then */
    bool has_waited;
    uint64_t pc, began;
    uint32_t thread;
    bool is_calculation;
    struct tbd_reg_state state;
    bool has_state;
};

static bool decode(struct tbd_why *why, const struct tbd_place *place, struct tbd_why_insn *out)
{
    return place->insn_bytes != 0 &&
           ZYAN_SUCCESS(ZydisDecoderDecodeFull(&why->decoder, place->code, place->insn_bytes,
                                               &out->insn, out->operands));
}

/* ---- inputs ---- */

static bool get_register(const struct writer *w, ZydisRegister reg, uint64_t *out)
{
    ZydisRegister full = tbd_why_whole(reg);

    if (full >= ZYDIS_REGISTER_RAX && full <= ZYDIS_REGISTER_R15)
        *out = w->state.regs.gpr[full - ZYDIS_REGISTER_RAX];
    else if (reg == ZYDIS_REGISTER_FS)
        *out = w->state.regs.fs_base;
    else if (reg == ZYDIS_REGISTER_RIP)
        *out = w->state.regs.rip + w->insn.insn.length;
    else
        return false;
    return true;
}

static bool need_registers(struct tbd_why *why, struct writer *w)
{
    if (!w->has_state)
        why->status = tbd_session_regs(why->run->session, w->at, &w->state);
    w->has_state = why->status == TBD_OK;
    return w->has_state;
}

/* The address of a memory operand of the writer. */
static bool address_of(struct tbd_why *why, struct writer *w, const ZydisDecodedOperand *operand,
                       uint64_t *out)
{
    uint64_t base = 0, index = 0, segment = 0;

    if (!need_registers(why, w) ||
        (operand->mem.base != ZYDIS_REGISTER_NONE && !get_register(w, operand->mem.base, &base)) ||
        (operand->mem.index != ZYDIS_REGISTER_NONE && !get_register(w, operand->mem.index, &index)))
        return false;
    if (operand->mem.segment == ZYDIS_REGISTER_FS)
        segment = w->state.regs.fs_base;
    *out = segment + base + index * operand->mem.scale + (uint64_t)operand->mem.disp.value;
    return true;
}

static bool take_memory(struct tbd_why *why, struct writer *w, const struct tbd_why_input *input,
                        struct tbd_why_value *out)
{
    if (!address_of(why, w, input->operand, &out->address)) {
        tbd_why_say(why, "memory whose address is not known");
        return false;
    }
    out->address += input->first;
    tbd_why_say(why, "memory at 0x%" PRIx64, out->address);
    return true;
}

/* Describes one input in words, and as a value to follow; false: there is nothing to follow. */
static bool take_input(struct tbd_why *why, struct writer *w, const struct tbd_why_input *input,
                       struct tbd_why_value *out)
{
    char text[TBD_WHY_REGISTER_TEXT];

    *out = (struct tbd_why_value){ .at = w->at,
                                   .thread = w->place.thread,
                                   .place = input->place,
                                   .process = why->process,
                                   .bytes = input->bytes };
    switch (input->place) {
    case TBD_WHY_REGISTER:
        out->reg = input->reg;
        out->first = input->first;
        tbd_why_say(why, "%s", tbd_why_register_text(input, text));
        return true;
    case TBD_WHY_MEMORY: return take_memory(why, w, input, out);
    case TBD_WHY_FLAGS:
        out->flags = input->flags;
        tbd_why_say(why, "the flags");
        return true;
    default: tbd_why_say(why, "constant %" PRId64, input->constant); return false;
    }
}

/* ---- system calls ---- */

/* Says which call it was; its bytes may have come from a process that was recorded, too. */
static size_t explain_system_call(struct tbd_why *why, const struct tbd_why_value *value,
                                  const struct writer *w, struct tbd_why_value *out)
{
    struct tbd_question question = tbd_question_first(TBD_EVENT_SYSCALL);
    struct tbd_event event;
    const char *name = NULL;

    tbd_question_where_field(&question, TBD_FIELD_TIME, TBD_EXPR_EQ, w->at.time);
    tbd_question_where_field(&question, TBD_FIELD_THREAD, TBD_EXPR_EQ,
                             w->has_waited ? w->thread : w->place.thread);
    if (tbd_command_find_event(why->run, &question, &event) == TBD_OK)
        name = tbd_syscall_name(event.number);
    tbd_why_say(why, "made by the system call %s", name == NULL ? "?" : name);
    if (name == NULL || value->place != TBD_WHY_MEMORY)
        return 0;
    return tbd_why_from_channel(why, value, &event, out);
}

/* ---- writers ---- */

/* The last store to the value before `at`; of a bit-field, that may have changed its bits: those of its
 * neighbours write the same ones back. */
static enum tbd_status find_store_before(struct tbd_why *why, const struct tbd_why_value *value,
                                         struct tbd_position at, struct tbd_event *out)
{
    struct tbd_question question = tbd_question_before(at, TBD_EVENT_STORE);

    tbd_question_where(&question, value->mask != 0
                                      ? tbd_expr_changes(value->address, value->mask)
                                      : tbd_expr_touches(value->address, value->bytes));
    return tbd_command_find_event(why->run, &question, out);
}

/* Has this store of more than 8 bytes left the bit-field as it was? */
static bool leaves_bits(struct tbd_why *why, const struct tbd_why_value *value,
                        const struct tbd_event *store)
{
    struct tbd_session *session = why->run->session;
    struct tbd_position after = { store->position.time, store->position.offset + 1 };
    uint64_t before_it = 0, after_it = 0;

    return value->mask != 0 && store->size > 8 &&
           tbd_session_read(session, store->position, value->address, &before_it,
                            (size_t)value->bytes) == TBD_OK &&
           tbd_session_read(session, after, value->address, &after_it, (size_t)value->bytes) ==
               TBD_OK &&
           ((before_it ^ after_it) & value->mask) == 0;
}

/* Finds the last store that made the value; TBD_NOTFOUND: there is none. */
static enum tbd_status find_store(struct tbd_why *why, const struct tbd_why_value *value,
                                  struct writer *out)
{
    struct tbd_event store;
    enum tbd_status status = find_store_before(why, value, value->at, &store);

    while (status == TBD_OK && leaves_bits(why, value, &store))
        status = find_store_before(why, value, store.position, &store);
    if (status != TBD_OK)
        return status;
    out->at = store.position;
    out->stored_at = store.addr;
    out->stored_bytes = store.size;
    out->has_waited = (store.flags & TBD_EVENT_RESUMED) != 0;
    out->pc = store.pc;
    out->began = store.began;
    out->thread = store.thread;
    return tbd_session_place(why->run->session, out->at, &out->place);
}

/* What the writer writes of the value. */
static struct tbd_why_part part_of(const struct tbd_why_value *value, const struct writer *w)
{
    uint64_t first, end = value->address + value->bytes;

    if (value->place == TBD_WHY_REGISTER)
        return (struct tbd_why_part){ value->reg, value->first, value->bytes };
    first = value->address > w->stored_at ? value->address : w->stored_at;
    if (end > w->stored_at + w->stored_bytes)
        end = w->stored_at + w->stored_bytes;
    return (struct tbd_why_part){ ZYDIS_REGISTER_NONE, first - w->stored_at,
                                  end > first ? end - first : 1 };
}

/* `mov al, 1` does not write the other bytes of rax. */
static bool writes_part(const struct tbd_why_value *value, const struct writer *w)
{
    struct tbd_why_part part = part_of(value, w);
    struct tbd_sim_insn *insn;
    bool does = true;

    if (tbd_insn_make(w->place.pc, w->place.code, w->place.insn_bytes, &insn) == TBD_OK) {
        does = tbd_why_writes_part(insn, &part);
        tbd_insn_free(insn);
    }
    return does;
}

static bool is_writer(const struct tbd_why_value *value, const struct writer *w)
{
    return value->place == TBD_WHY_FLAGS
               ? tbd_why_writes_flags(&w->insn, value->flags)
               : tbd_why_writes_register(&w->insn, value->reg) && writes_part(value, w);
}

/* Finds the last instruction of a block before `limit` that writes the value. */
static bool find_in_block(struct tbd_why *why, const struct tbd_why_value *value, uint64_t time,
                          uint32_t limit, struct writer *out)
{
    for (uint32_t insn = limit; insn-- > 0;) {
        out->at = (struct tbd_position){ .time = time, .offset = insn };
        if (tbd_session_place(why->run->session, out->at, &out->place) == TBD_OK &&
            out->place.thread == value->thread && decode(why, &out->place, &out->insn) &&
            is_writer(value, out))
            return true;
    }
    return false;
}

/* Finds the last instruction that writes the value; TBD_NOTFOUND: too far away. */
static enum tbd_status find_instruction(struct tbd_why *why, const struct tbd_why_value *value,
                                        struct writer *out)
{
    uint32_t limit = value->at.offset;
    uint64_t time = value->at.time;

    for (uint32_t blocks = 0; blocks < BLOCKS_MAX; blocks++) {
        struct tbd_place place;
        enum tbd_status status;

        if (find_in_block(why, value, time, limit, out))
            return TBD_OK;
        if (tbd_is_interrupted())
            return TBD_INTERRUPTED;
        if (time-- == 0)
            break;
        status =
            tbd_session_place(why->run->session, (struct tbd_position){ .time = time }, &place);
        if (status != TBD_OK)
            return status;
        limit = place.insns;
    }
    return TBD_NOTFOUND;
}

/* ---- the tree ---- */

/* What the writer made the value from. */
static struct tbd_why_inputs inputs_of(const struct tbd_why_value *value, const struct writer *w)
{
    struct tbd_why_part part = part_of(value, w);
    struct tbd_sim_insn *insn = NULL;
    struct tbd_why_inputs out;
    bool is_known = value->place != TBD_WHY_FLAGS &&
                    tbd_insn_make(w->place.pc, w->place.code, w->place.insn_bytes, &insn) == TBD_OK;

    if (!is_known || !tbd_why_copies(insn, &w->insn, &part, &out))
        out = tbd_why_inputs_of(&w->insn, value->place, value->reg);
    if (out.is_copy && !out.is_moved && value->place != TBD_WHY_FLAGS)
        tbd_why_take_part(&w->insn, &part, &out.inputs[0]);
    tbd_insn_free(insn);
    return out;
}

/* Says what the writer made the value from; returns how many of `out` are to be followed.
 * *is_copy: the only input is the value itself. */
static size_t explain(struct tbd_why *why, const struct tbd_why_value *value, struct writer *w,
                      bool *is_copy, struct tbd_why_value *out)
{
    struct tbd_why_inputs from;
    size_t count = 0;

    *is_copy = false;
    if (!w->has_waited && value->place == TBD_WHY_MEMORY && !decode(why, &w->place, &w->insn)) {
        tbd_why_say(why, "written by the kernel, for a signal handler");
        return 0;
    }
    if (w->has_waited || w->insn.insn.mnemonic == ZYDIS_MNEMONIC_SYSCALL) {
        count = explain_system_call(why, value, w, out);
        *is_copy = count == 1;
        return count;
    }
    if (w->insn.insn.meta.category == ZYDIS_CATEGORY_CALL) {
        tbd_why_say(why, "a return address");
        return 0;
    }
    from = inputs_of(value, w);
    *is_copy = from.is_copy;
    w->is_calculation = !from.is_copy && !from.is_moved;
    tbd_why_say(why, "%s",
                from.count == 0                            ? "made here"
                : from.is_moved && !from.is_copy           ? "put together here from "
                : !from.is_copy                            ? "calculated here from "
                : from.inputs[0].place == TBD_WHY_CONSTANT ? "a "
                                                           : "from ");
    for (size_t i = 0; i < from.count && why->status == TBD_OK; i++) {
        tbd_why_say(why, "%s", i == 0 ? "" : ", ");
        count += take_input(why, w, &from.inputs[i], &out[count]);
    }
    return count;
}

static bool is_followed(const struct tbd_why *why, const struct tbd_why_value *value)
{
    for (size_t i = 0; i < why->followed_count; i++) {
        const struct tbd_why_value *other = &why->followed[i];

        if (other->at.time == value->at.time && other->at.offset == value->at.offset &&
            other->process == value->process && other->place == value->place &&
            other->reg == value->reg && other->first == value->first &&
            other->flags == value->flags && other->address == value->address)
            return true;
    }
    return false;
}

/* The row of memory that nobody stored to: no instruction belongs to it. */
static void add_initial(struct tbd_why *why, const struct tbd_why_value *value, uint32_t depth)
{
    struct tbd_session *session = why->run->session;
    uint32_t window = tbd_trace_window_of(session->trace, value->at.time);
    const struct tbd_module *module =
        tbd_symbols_module_at(session->symbols, window == UINT32_MAX ? 0 : window, value->address);
    json_t *row = json_object();

    tbd_why_say(why, value->mask != 0 ? "there since the start: no store changed these bits"
                                      : "there since the start: nobody stored it");
    if (module != NULL)
        tbd_why_say(why, "; initial data of %s", module->name);
    json_object_set_new(row, "position", json_null());
    tbd_why_set_what(why, row, depth);
    tbd_why_set_value(why, value, row);
    tbd_why_put_row(why, row);
}

/* The row of a value that has no writer. */
static void add_end(struct tbd_why *why, const struct tbd_why_value *value, uint32_t depth)
{
    struct tbd_place place;

    if (value->place == TBD_WHY_MEMORY) {
        add_initial(why, value, depth);
        return;
    }
    tbd_why_say(why, "the writer of %s is too far away",
                value->place == TBD_WHY_FLAGS ? "the flags" : ZydisRegisterGetString(value->reg));
    if (tbd_session_place(why->run->session, value->at, &place) == TBD_OK)
        tbd_why_add_row(
            why, value,
            &(struct tbd_event){ .position = value->at, .pc = place.pc, .thread = place.thread },
            depth);
}

/* What the hop's row shows: of a calculation all that it made, even if only a later byte of it was asked about. */
static struct tbd_why_value shown(const struct tbd_why_value *value, const struct writer *w)
{
    struct tbd_why_value out = *value;

    if (w->is_calculation && value->place == TBD_WHY_REGISTER && value->first < 8) {
        out.bytes = value->first != 0 ? 8 : value->bytes;
        out.first = 0;
    }
    return out;
}

/* One hop, with its row; returns the number of values it leads to. */
static size_t hop(struct tbd_why *why, const struct tbd_why_value *value, uint32_t depth,
                  struct writer *w, bool *is_copy, struct tbd_why_value *inputs)
{
    struct tbd_why_value row;
    struct tbd_event event;
    size_t count;

    why->what[0] = '\0';
    w->has_state = w->has_waited = w->is_calculation = false;
    w->stored_at = 0;
    why->status = value->place == TBD_WHY_MEMORY ? find_store(why, value, w)
                                                 : find_instruction(why, value, w);
    if (why->status == TBD_NOTFOUND) {
        why->status = TBD_OK;
        add_end(why, value, depth);
        return 0;
    }
    if (why->status != TBD_OK)
        return 0;
    count = explain(why, value, w, is_copy, inputs);
    event = (struct tbd_event){ .position = w->at, .pc = w->place.pc, .thread = w->place.thread };
    if (w->has_waited)
        event = (struct tbd_event){ .position = w->at,
                                    .pc = w->pc,
                                    .thread = w->thread,
                                    .began = w->began,
                                    .flags = TBD_EVENT_RESUMED };
    row = shown(value, w);
    tbd_why_add_row(why, &row, &event, depth);
    return count;
}

static void follow(struct tbd_why *why, struct tbd_why_value value, uint32_t depth)
{
    struct tbd_why_value inputs[TBD_WHY_INPUTS_MAX];
    struct writer *w = malloc(sizeof(*w));
    size_t count = 0;
    bool is_copy = w != NULL;

    if (w == NULL)
        why->status = TBD_NOMEM;
    for (unsigned hops = 0; is_copy && hops < HOPS_MAX; hops++) {
        count = 0;
        if (is_followed(why, &value) || why->followed_count >= TBD_WHY_ROWS_MAX ||
            why->status != TBD_OK)
            break;
        why->followed[why->followed_count++] = value;
        if (!tbd_why_enter(why, value.process))
            break;
        tbd_why_show_sender(why, &value, depth);
        count = hop(why, &value, depth, w, &is_copy, inputs);
        is_copy = is_copy && count == 1;
        TBD_INVARIANT("CMD_WHY-1", !is_copy || inputs[0].process != value.process ||
                                       tbd_position_compare(inputs[0].at, value.at) < 0);
        value = inputs[0];
    }
    free(w);
    for (size_t i = 0; !is_copy && i < count && depth < why->limit && why->status == TBD_OK; i++)
        follow(why, inputs[i], depth + 1);
}

/* ---- the command ---- */

static bool start_at_register(const char *text, struct tbd_why_value *out)
{
    out->reg = tbd_why_register_named(text, &out->bytes);
    out->place = TBD_WHY_REGISTER;
    return out->reg != ZYDIS_REGISTER_NONE;
}

/* Where the value lies; of a bit-field, the bytes that have its bits. */
static void take_place(const struct tbd_data *data, struct tbd_why_value *out)
{
    uint64_t end = data->bit_offset + data->bits;

    out->place = TBD_WHY_MEMORY;
    out->address = data->address;
    out->bytes = data->bits != 0 ? (end + 7) / 8 : tbd_type_look(&data->type).bytes;
    out->bytes = out->bytes == 0 ? 1 : out->bytes;
    if (data->bits != 0 && end <= 64)
        out->mask = (~0ull >> (64 - data->bits)) << data->bit_offset;
}

static enum tbd_exit start_at_variable(struct tbd_command_run *run, size_t from,
                                       struct tbd_why_value *out)
{
    struct tbd_query_error error = { .status = TBD_TYPE, .at = from, .length = 1 };
    struct tbd_source_place place;
    struct tbd_data data;
    enum tbd_exit result =
        tbd_command_value_of(run, out->at, from, strlen(run->text), &place, &data);

    if (result != TBD_EXIT_FOUND)
        return result;
    out->reg = tbd_why_register_of_value(&data, &out->bytes);
    if (place.stack.selected == 0 && out->reg != ZYDIS_REGISTER_NONE) {
        out->place = TBD_WHY_REGISTER;
        tbd_source_place_close(&place);
        return TBD_EXIT_FOUND;
    }
    if (!data.is_known || !data.in_memory) {
        snprintf(error.message, sizeof(error.message), "it is not in memory here: %s",
                 data.is_known ? "it is a constant, or a result of several values" : data.why);
        snprintf(error.hint, sizeof(error.hint), "a register is followed too: why $rax");
        result = tbd_command_wrong(run, &error);
    }
    take_place(&data, out);
    tbd_source_place_close(&place);
    return result;
}

/* Reads the depth, "/5" before the expression; returns where the expression begins, or 0 if the
 * depth is no number. */
static size_t take_limit(const struct tbd_command_run *run, uint32_t *out)
{
    const char *first = run->argv[0];
    char *end;
    unsigned long number;

    *out = LIMIT_DEFAULT;
    if (first[0] != '/' || run->argc < 2)
        return run->arguments;
    number = strtoul(first + 1, &end, 10);
    if (end == first + 1 || *end != '\0' || number > TBD_WHY_LIMIT_MAX)
        return 0;
    *out = (uint32_t)number;
    return (size_t)(strstr(run->text + run->arguments, first) - run->text) + strlen(first) +
           strspn(strstr(run->text + run->arguments, first) + strlen(first), " ");
}

static enum tbd_exit start(struct tbd_why *why, struct tbd_why_value *out)
{
    struct tbd_command_run *run = why->run;
    size_t from = take_limit(run, &why->limit);
    struct tbd_place place;

    if (from == 0)
        return tbd_command_usage(run, "how many calculations deep is a number up to 16: why /5 x");
    if (!ZYAN_SUCCESS(
            ZydisDecoderInit(&why->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
        return TBD_EXIT_SYSTEM;
    out->at = tbd_session_current(run->session);
    why->status = tbd_session_place(run->session, out->at, &place);
    if (why->status != TBD_OK)
        return tbd_command_fail(run, why->status);
    out->thread = place.thread;
    return start_at_register(run->text + from, out) ? TBD_EXIT_FOUND
                                                    : start_at_variable(run, from, out);
}

/* A table has the column only if the answer leads to other processes. */
static void hide_process(struct tbd_why *why)
{
    if (!why->has_others)
        tbd_rows_hide(&why->rows, "process");
}

enum tbd_exit tbd_command_why(struct tbd_command_run *run)
{
    static const char *const columns[] = { "process", "position", "what", "value",  "text",
                                           "source",  "function", "code", "caller", NULL };
    struct tbd_why *why;
    struct tbd_why_value value = { .process = TBD_WHY_OWN };
    enum tbd_exit result;

    if (run->argc == 0)
        return tbd_command_usage(run, "why takes a variable or a $register");
    why = calloc(1, sizeof(*why));
    if (why == NULL)
        return tbd_command_fail(run, TBD_NOMEM);
    why->run = why->own = run;
    why->process = TBD_WHY_OWN;
    result = start(why, &value);
    if (result == TBD_EXIT_FOUND) {
        tbd_rows_start(&why->rows, run, columns);
        follow(why, value, 0);
        tbd_why_end_channels(why);
        hide_process(why);
        result = tbd_rows_end(&why->rows);
        if (why->status != TBD_OK)
            result = tbd_command_fail(run, why->status);
    }
    free(why);
    return result;
}
