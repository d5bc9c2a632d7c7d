// SPDX-License-Identifier: MIT
/* dump_why.c - see dump_why.h
 *
 * The rings have every instruction that ran, so the one that wrote a register is certain.  The last store to memory is so if no store to
 * an unknown address lies between; else the hop says how many do.  A search ends where the ring ends, at constants and system
 * calls, and where an address is not known.
 *
 * DUMP_WHY-1  Every hop goes back in time; there are at most HOPS_MAX in a row and ROWS_MAX in all. (not checked: these are the bounds
 *     of loops) */
#include "query/dumps/dump_why.h"

#include "base/string.h"
#include "hooks/table/syscalls.h"
#include "query/dumps/dump_run.h"
#include "query/output/output.h"
#include "query/past/past.h"
#include "query/past/past_paths.h"
#include "query/session/source/source_place.h"
#include "query/why/why_copies.h"
#include "query/why/why_inputs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { INSNS = 100000, HOPS_MAX = 64, ROWS_MAX = 256, LIMIT_DEFAULT = 3, LIMIT_MAX = 16 };

struct dump_why {
    struct tbd_dump_run dump;
    struct tbd_past *past; /* to be given back */
    ZydisDecoder decoder;
    struct tbd_rows rows;
    size_t row_count;
    unsigned long limit; /* how many calculations deep */
    char what[320];
};

/* Something whose writer before `at`, a position of the simulation, is wanted. */
struct dump_why_value {
    size_t at;
    unsigned place; /* of the simulation; TBD_PLACE_COUNT: memory */
    unsigned first; /* of a place's 8 bytes, the first that is asked about */
    uint64_t address;
    uint64_t bytes;             /* of memory, or from `first` on; 0: all */
    struct tbd_simulated value; /* where it is used */
};

/* ---- words ---- */

__attribute__((format(printf, 2, 3))) static void say(struct dump_why *why, const char *format, ...)
{
    size_t length = strlen(why->what);
    va_list list;

    va_start(list, format);
    vsnprintf(why->what + length, sizeof(why->what) - length, format, list);
    va_end(list);
}

static void put_value(const struct dump_why_value *wanted, json_t *row)
{
    uint64_t all = wanted->place == TBD_PLACE_FLAGS         ? (uint64_t)TBD_STATUS_FLAGS
                   : wanted->bytes > 0 && wanted->bytes < 8 ? (1ull << 8 * wanted->bytes) - 1
                                                            : UINT64_MAX;
    unsigned shift = 8 * wanted->first;
    enum tbd_certainty certainty = tbd_past_certainty(wanted->value, all << shift);

    json_object_set_new(row, "value",
                        certainty == TBD_UNKNOWN
                            ? json_null()
                            : tbd_output_hex(wanted->value.bits.value >> shift & all));
    json_object_set_new(row, "certainty", json_string(tbd_certainty_text(certainty)));
}

static void finish_row(struct dump_why *why, const struct dump_why_value *wanted, json_t *row,
                       unsigned depth)
{
    char text[400];

    snprintf(text, sizeof(text), "%*s%s", why->dump.run->session->json ? 0 : (int)(2 * depth), "",
             why->what);
    json_object_set_new(row, "what", tbd_output_text(text));
    json_object_set_new(row, "depth", json_integer(depth));
    put_value(wanted, row);
    tbd_rows_add(&why->rows, row);
    why->row_count++;
    why->what[0] = '\0';
}

/* `step` SIZE_MAX: it is older than what the dump has. */
static void put_row(struct dump_why *why, const struct dump_why_value *wanted, size_t step,
                    unsigned depth)
{
    struct tbd_dump_place place = { .thread = why->past->thread };
    json_t *row;

    if (step == SIZE_MAX) {
        row = json_object();
        json_object_set_new(row, "position", json_null());
    } else {
        tbd_past_where(why->past, step, &place.step, &place.insn);
        row = tbd_dump_row(&why->dump, &place);
    }
    finish_row(why, wanted, row, depth);
}

/* The row of an instruction that no ring has; TBD_PATHS_SEVERAL: of a function. */
static void put_place(struct dump_why *why, const struct dump_why_value *wanted, uint64_t address,
                      uint64_t function, unsigned depth)
{
    bool is_insn = address != TBD_PATHS_SEVERAL;
    struct tbd_rings_place place =
        tbd_rings_place_at(why->past->ring, is_insn ? address : function);
    json_t *row = json_object();

    json_object_set_new(row, "position", json_null());
    if (is_insn)
        json_object_set_new(row, "pc", tbd_output_hex(address));
    json_object_set_new(row, "function", tbd_dump_function_text(&place, false));
    if (is_insn && place.line.line != 0)
        tbd_output_source_cell(place.line.file, place.line.line, row);
    finish_row(why, wanted, row, depth);
}

/* ---- inputs ---- */

static bool decode(struct dump_why *why, size_t step, struct tbd_why_insn *out)
{
    struct tbd_dump_place place = { .thread = why->past->thread };
    const struct tbd_rings_step *at;
    const uint8_t *code;

    tbd_past_where(why->past, step, &place.step, &place.insn);
    at = &place.thread->walked.steps[place.step];
    code = tbd_rings_code(why->past->ring, at->block, place.insn);
    return code != NULL &&
           ZYAN_SUCCESS(ZydisDecoderDecodeFull(
               &why->decoder, code, why->past->ring->blocks[at->block].insns[place.insn].length,
               &out->insn, out->operands));
}

/* With the bits from `shift` on as its lowest ones. */
static struct tbd_simulated moved_down(struct tbd_simulated value, unsigned shift)
{
    value.bits = tbd_bits_right(value.bits, shift);
    value.exact = tbd_bits_right((struct tbd_bits){ 0, value.exact }, shift).known;
    return value;
}

/* The input's piece of memory that the step reads. */
static bool take_memory(struct dump_why *why, size_t step, const struct tbd_why_input *input,
                        struct dump_why_value *out)
{
    const struct tbd_simulation *sim = why->past->sim;
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);

    for (size_t k = 0; k < insn->memory_count; k++) {
        const struct tbd_insn_memory *piece = &insn->memory[k];
        uint64_t skip = input->first - piece->offset;
        struct tbd_simulated address;

        if (piece->write || input->first < piece->offset || skip >= piece->bytes)
            continue;
        address = tbd_simulation_address(sim, step, k);
        if (!tbd_bits_full(address.bits))
            break;
        out->address = address.bits.value + skip;
        out->bytes = input->bytes < piece->bytes - skip ? input->bytes : piece->bytes - skip;
        out->value = moved_down(tbd_simulation_data(sim, step, k), 8 * (unsigned)skip);
        say(why, "memory at 0x%" PRIx64, out->address);
        return true;
    }
    say(why, "memory whose address is not known");
    return false;
}

static void take_register(struct dump_why *why, const struct tbd_why_input *input,
                          struct dump_why_value *out)
{
    char text[TBD_WHY_REGISTER_TEXT];

    say(why, "%s", tbd_why_register_text(input, text));
    out->place = tbd_why_place_of(input->reg, input->first);
    if (out->place == TBD_PLACE_COUNT)
        return;
    out->first = input->first % 8;
    out->bytes = input->bytes < 8 - out->first ? input->bytes : 8 - out->first;
}

/* Describes an input of the step in words, and as a value to follow; false: there is nothing to follow. */
static bool take_input(struct dump_why *why, size_t step, const struct tbd_why_input *input,
                       struct dump_why_value *out)
{
    *out = (struct dump_why_value){ .at = step, .place = TBD_PLACE_COUNT };
    switch (input->place) {
    case TBD_WHY_REGISTER: take_register(why, input, out); break;
    case TBD_WHY_FLAGS:
        say(why, "the flags");
        out->place = TBD_PLACE_FLAGS;
        break;
    case TBD_WHY_MEMORY: return take_memory(why, step, input, out);
    case TBD_WHY_CONSTANT:
    default: say(why, "constant %" PRId64, input->constant); return false;
    }
    if (out->place == TBD_PLACE_COUNT)
        return false;
    out->value = tbd_simulation_place(why->past->sim, step, out->place);
    return true;
}

/* ---- writers ---- */

/* What is wanted, as a part of what the step writes; 0 bytes: no instruction's store wrote it. */
static struct tbd_why_part part_of(const struct dump_why *why, const struct dump_why_value *wanted,
                                   size_t step)
{
    const struct tbd_simulation *sim = why->past->sim;
    const struct tbd_sim_insn *insn = tbd_simulation_insn(sim, step);
    struct tbd_sim_storer storer;
    uint64_t start;

    if (wanted->place != TBD_PLACE_COUNT) {
        uint32_t lane;
        ZydisRegister reg = tbd_why_register_of(wanted->place, &lane);

        return (struct tbd_why_part){ reg, lane + wanted->first,
                                      wanted->bytes != 0 && wanted->bytes < 8 ? wanted->bytes
                                                                              : 8 - wanted->first };
    }
    storer = tbd_simulation_storer(sim, step + 1, wanted->address, wanted->bytes);
    if (storer.step != step || storer.index >= insn->memory_count)
        return (struct tbd_why_part){ .bytes = 0 };
    start = tbd_simulation_address(sim, step, storer.index).bits.value -
            insn->memory[storer.index].offset;
    if (wanted->address < start)
        return (struct tbd_why_part){ ZYDIS_REGISTER_NONE, 0,
                                      wanted->bytes - (start - wanted->address) };
    return (struct tbd_why_part){ ZYDIS_REGISTER_NONE, wanted->address - start, wanted->bytes };
}

/* The last step that wrote any of the bytes: `mov al, 1` does not write the others of rax. */
static size_t find_register_writer(struct dump_why *why, const struct dump_why_value *wanted)
{
    size_t step = wanted->at;

    for (;;) {
        struct tbd_why_part part;

        step = tbd_simulation_writer(why->past->sim, step, wanted->place);
        if (step == SIZE_MAX || wanted->place == TBD_PLACE_FLAGS)
            return step;
        part = part_of(why, wanted, step);
        if (tbd_why_writes_part(tbd_simulation_insn(why->past->sim, step), &part))
            return step;
    }
}

/* Says what the search passed by. */
static size_t find_writer(struct dump_why *why, const struct dump_why_value *wanted)
{
    struct tbd_sim_storer storer;

    if (wanted->place != TBD_PLACE_COUNT)
        return find_register_writer(why, wanted);
    storer = tbd_simulation_storer(why->past->sim, wanted->at, wanted->address, wanted->bytes);
    if (storer.unsure != 0)
        say(why, "(%zu stores to unknown addresses lie between) ", storer.unsure);
    return storer.step;
}

/* What the code says of a register that is older than the steps: by what all paths to there have set it. */
static void put_older(struct dump_why *why, const struct dump_why_value *wanted, unsigned depth)
{
    const struct tbd_past *past = why->past;
    struct tbd_paths paths = { .function = 0 };
    unsigned place = wanted->place;

    for (size_t i = 0; place < TBD_PATHS_REGISTERS && i < past->resumed_count; i++) {
        if (tbd_simulation_writer(past->sim, past->resumed[i].at, place) != SIZE_MAX ||
            !tbd_paths_to(past->session, past->pages, past->resumed[i].pc, &paths))
            break;
        if (paths.set_by[place] == TBD_PATHS_CALLER && (TBD_PATHS_KEPT >> place & 1) != 0)
            continue; /* the next one is the caller's, if it is there */
        if (paths.set_by[place] == TBD_PATHS_CALLER)
            break;
        if (paths.set_by[place] == TBD_PATHS_SEVERAL)
            say(why,
                "before that set in the function, on different paths by different instructions");
        else
            say(why, "before that set here, as the code says: every path to 0x%" PRIx64 " does",
                past->resumed[i].pc);
        put_place(why, wanted, paths.set_by[place], paths.function, depth);
        return;
    }
}

/* System calls and what nothing is known of. */
static bool is_end(struct dump_why *why, size_t step)
{
    const struct tbd_sim_insn *insn = tbd_simulation_insn(why->past->sim, step);
    struct tbd_simulated number;

    if (!tbd_simulation_ran(why->past->sim, step) || insn->kind == TBD_INSN_HAVOC) {
        say(why, "made by something that the dump does not show");
        return true;
    }
    if (insn->kind != TBD_INSN_SYSCALL)
        return false;
    number = tbd_simulation_place(why->past->sim, step, TBD_RAX);
    say(why, "made by the system call %s",
        tbd_bits_full(number.bits) && tbd_syscall_name(number.bits.value) != NULL
            ? tbd_syscall_name(number.bits.value)
            : "?");
    return true;
}

static void follow(struct dump_why *why, struct dump_why_value wanted, unsigned depth);

/* A calculation: each input in turn. */
static void follow_all(struct dump_why *why, size_t step, const struct dump_why_value *wanted,
                       const struct tbd_why_inputs *inputs, unsigned depth)
{
    struct dump_why_value next[TBD_WHY_INPUTS_MAX];
    bool goes_on[TBD_WHY_INPUTS_MAX];

    say(why, "%s from ", inputs->is_moved ? "put together" : "calculated");
    for (size_t i = 0; i < inputs->count; i++) {
        say(why, "%s", i == 0 ? "" : ", ");
        goes_on[i] = take_input(why, step, &inputs->inputs[i], &next[i]);
    }
    put_row(why, wanted, step, depth);
    for (size_t i = 0; i < inputs->count && depth < why->limit; i++)
        if (goes_on[i])
            follow(why, next[i], depth + 1);
}

/* What the step made it from. */
static struct tbd_why_inputs inputs_of(struct dump_why *why, const struct dump_why_value *wanted,
                                       size_t step, const struct tbd_why_insn *insn)
{
    struct tbd_why_part part = part_of(why, wanted, step);
    bool is_bytes = wanted->place != TBD_PLACE_FLAGS && part.bytes != 0;
    struct tbd_why_inputs out;

    if (is_bytes && tbd_why_copies(tbd_simulation_insn(why->past->sim, step), insn, &part, &out))
        return out;
    out = tbd_why_inputs_of(insn,
                            wanted->place == TBD_PLACE_COUNT   ? TBD_WHY_MEMORY
                            : wanted->place == TBD_PLACE_FLAGS ? TBD_WHY_FLAGS
                                                               : TBD_WHY_REGISTER,
                            part.reg);
    if (is_bytes && out.is_copy)
        tbd_why_take_part(insn, &part, &out.inputs[0]);
    return out;
}

/* False: it ends here. */
static bool hop(struct dump_why *why, struct dump_why_value *wanted, unsigned depth)
{
    size_t step = find_writer(why, wanted);
    struct tbd_why_inputs inputs = { .count = 0 };
    struct tbd_why_insn insn;
    struct dump_why_value next;
    bool goes_on;

    if (step == SIZE_MAX) {
        say(why, "it is older than what the dump has of the thread");
        put_row(why, wanted, step, depth);
        put_older(why, wanted, depth);
        return false;
    }
    if (!is_end(why, step) && decode(why, step, &insn))
        inputs = inputs_of(why, wanted, step, &insn);
    if (inputs.count > 1 || (inputs.count == 1 && !inputs.is_copy)) {
        follow_all(why, step, wanted, &inputs, depth);
        return false;
    }
    goes_on = inputs.count == 1;
    if (inputs.count == 0 && why->what[0] == '\0')
        say(why, "made here by %s",
            tbd_simulation_insn(why->past->sim, step)->mnemonic == 0
                ? "an instruction"
                : ZydisMnemonicGetString(
                      (ZydisMnemonic)tbd_simulation_insn(why->past->sim, step)->mnemonic));
    if (goes_on) {
        say(why, "copied from ");
        goes_on = take_input(why, step, &inputs.inputs[0], &next);
    }
    put_row(why, wanted, step, depth);
    if (goes_on)
        *wanted = next;
    return goes_on;
}

static void follow(struct dump_why *why, struct dump_why_value wanted, unsigned depth)
{
    for (unsigned i = 0; i < HOPS_MAX && why->row_count < ROWS_MAX; i++)
        if (!hop(why, &wanted, depth))
            break;
}

/* ---- the beginning ---- */

/* "/5" before the expression: returns where that begins, or 0. */
static size_t take_limit(const struct tbd_command_run *run, unsigned long *out)
{
    const char *first = run->argv[0];
    const char *at = strstr(run->text + run->arguments, first);
    char *end;

    *out = LIMIT_DEFAULT;
    if (first[0] != '/' || run->argc < 2 || at == NULL)
        return run->arguments;
    *out = strtoul(first + 1, &end, 10);
    if (end == first + 1 || *end != '\0' || *out > LIMIT_MAX)
        return 0;
    at += strlen(first);
    return (size_t)(at - run->text) + strspn(at, " ");
}

/* False: it is in no register that can be followed.  Of a vector register the first lane alone. */
static bool start_in_register(struct dump_why *why, ZydisRegister reg, uint64_t bytes,
                              struct dump_why_value *out)
{
    if (reg == ZYDIS_REGISTER_NONE)
        return false;
    *out = (struct dump_why_value){ .at = why->past->at, .place = tbd_why_place_of(reg, 0) };
    out->bytes = bytes < 8 ? bytes : 8;
    out->value = tbd_past_place(why->past, out->place);
    return true;
}

/* "$rax" */
static bool start_at_register(struct dump_why *why, const char *text, struct dump_why_value *out)
{
    uint64_t bytes = 0;
    ZydisRegister reg = tbd_why_register_named(text, &bytes);

    return start_in_register(why, reg, bytes, out);
}

static struct tbd_simulated memory_here(struct dump_why *why, uint64_t address, size_t bytes)
{
    uint8_t value[8] = { 0 }, known[8] = { 0 }, exact[8] = { 0 };
    struct tbd_simulated out = { .why = 0 };

    tbd_past_bytes(why->past, address, bytes < 8 ? bytes : 8, value, known, exact);
    memcpy(&out.bits.value, value, 8);
    memcpy(&out.bits.known, known, 8);
    memcpy(&out.exact, exact, 8);
    return out;
}

/* TBD_EXIT_NOT_FOUND: it is neither in memory whose address is known nor in a register. */
static enum tbd_exit find_variable(struct dump_why *why, size_t from, struct dump_why_value *out)
{
    struct tbd_command_run *run = why->dump.run;
    struct tbd_source_place place;
    struct tbd_data data;
    enum tbd_exit result;
    ZydisRegister reg;
    uint64_t bytes = 0;

    tbd_past_enter(why->past, false);
    result = tbd_command_value_of(run, (struct tbd_position){ 0 }, from, strlen(run->text), &place,
                                  &data);
    tbd_past_leave(why->past);
    if (result != TBD_EXIT_FOUND)
        return result;
    *out = (struct dump_why_value){ .at = why->past->at, .place = TBD_PLACE_COUNT };
    reg = tbd_why_register_of_value(&data, &bytes);
    if (start_in_register(why, reg, bytes, out)) {
        result = TBD_EXIT_FOUND;
    } else if (data.is_known && data.in_memory) {
        out->address = data.address;
        out->bytes = tbd_type_look(&data.type).bytes;
        out->bytes = out->bytes == 0 ? 1 : out->bytes;
        out->value = memory_here(why, out->address, out->bytes);
    } else {
        result = TBD_EXIT_NOT_FOUND;
    }
    tbd_source_place_close(&place);
    return result;
}

static enum tbd_exit start_at_variable(struct dump_why *why, size_t from,
                                       struct dump_why_value *out)
{
    enum tbd_exit result = find_variable(why, from, out);

    if (result == TBD_EXIT_NOT_FOUND)
        fprintf(stderr, "tbdq: why: it is neither in memory whose address is known nor in a "
                        "register there\n");
    return result;
}

static enum tbd_exit answer(struct dump_why *why)
{
    static const char *const columns[] = { "position", "what",     "value", "certainty",
                                           "source",   "function", NULL };
    struct tbd_command_run *run = why->dump.run;
    size_t from = take_limit(run, &why->limit);
    enum tbd_exit result = TBD_EXIT_FOUND;
    struct dump_why_value wanted;

    if (from == 0)
        return tbd_command_usage(run, "how many calculations deep is a number up to 16: why /5 x");
    if (!start_at_register(why, run->text + from, &wanted))
        result = start_at_variable(why, from, &wanted);
    if (result != TBD_EXIT_FOUND)
        return result;
    tbd_rows_start(&why->rows, run, columns);
    follow(why, wanted, 0);
    return tbd_rows_end(&why->rows);
}

json_t *tbd_dump_why_written(const struct tbd_dump_run *dump, struct tbd_past *past, size_t from)
{
    struct tbd_dump_place place = { .thread = past->thread };
    struct dump_why *why = calloc(1, sizeof(*why));
    struct dump_why_value wanted;
    json_t *row = NULL;
    size_t step;

    if (why == NULL)
        return NULL;
    why->dump = *dump;
    why->past = past;
    if (start_at_register(why, dump->run->text + from, &wanted) ||
        find_variable(why, from, &wanted) == TBD_EXIT_FOUND) {
        step = find_writer(why, &wanted);
        if (step == SIZE_MAX) {
            row = json_object();
            json_object_set_new(row, "position", json_null());
        } else {
            tbd_past_where(past, step, &place.step, &place.insn);
            row = tbd_dump_row(&why->dump, &place);
        }
        json_object_set_new(row, "certain", json_boolean(why->what[0] == '\0'));
    }
    free(why);
    return row;
}

enum tbd_exit tbd_dump_run_why(struct tbd_command_run *run)
{
    struct dump_why *why;
    enum tbd_exit result;

    if (run->argc == 0)
        return tbd_command_usage(run, "why takes a variable or a $register");
    why = calloc(1, sizeof(*why));
    if (why == NULL)
        return tbd_command_fail(run, TBD_NOMEM);
    ZydisDecoderInit(&why->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    result = tbd_dump_open_past(run, &why->dump, INSNS, &why->past);
    if (result == TBD_EXIT_FOUND)
        result = answer(why);
    tbd_past_give_back(why->past);
    tbd_dump_close(&why->dump);
    free(why);
    return result;
}
