// SPDX-License-Identifier: MIT
/* dump_values.c - see dump_values.h
 *
 * print, locals and x are the commands of traces, asked twice: once with all that is known, once with what is exact alone.  An
 * answer is exact if both are the same; so it rests on nothing that is not exact, whatever it was computed from. */
#include "query/dumps/dump_values.h"

#include "query/dumps/dump_run.h"
#include "query/dumps/dump_why.h"
#include "query/output/output.h"
#include "query/past/past.h"
#include "query/debuginfo/dwarf_location.h"
#include "query/debuginfo/register_names.h"

#include "base/safe_stream.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MEM_MAX = 16 << 20, LINE = 16 };

/* A command at the session's position in a dump. */
struct dump_values {
    struct tbd_dump_run dump;
    struct tbd_past *past; /* to be given back */
};

/* ---- the position ---- */

static struct tbd_rings_thread *thread_of(struct tbd_dump_run *dump, uint32_t tid)
{
    if (tid != 0)
        dump->tid = tid;
    return tbd_dump_thread(dump);
}

static enum tbd_exit not_there(const struct tbd_command_run *run,
                               const struct tbd_session_before *before)
{
    fprintf(stderr, "tbdq: %.*s: -%" PRIu64 "+%" PRIu32 " is not in the ring of the thread\n",
            (int)strcspn(run->text, " "), run->text, before->back, before->insn);
    return TBD_EXIT_NOT_FOUND;
}

/* Prints errors; close it all the same. */
static enum tbd_exit open_values(struct tbd_command_run *run, struct dump_values *out)
{
    struct tbd_session_before before = tbd_session_before(run->session);
    struct tbd_rings_thread *thread;
    enum tbd_status status;
    enum tbd_exit result;
    uint64_t step;

    out->past = NULL;
    result = tbd_dump_open(run, &out->dump);
    if (result != TBD_EXIT_FOUND)
        return result;
    thread = thread_of(&out->dump, before.thread);
    if (thread == NULL || !tbd_rings_has(thread, before.back) ||
        before.insn >= thread->walked.steps[tbd_rings_step_at(thread, before.back)].insns)
        return not_there(run, &before);
    step = tbd_rings_step_at(thread, before.back);
    status = tbd_past_take(run->session, thread, step, TBD_PAST_BEFORE, &out->past);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    return tbd_past_go(out->past, step, before.insn) ? TBD_EXIT_FOUND : not_there(run, &before);
}

static void close_values(struct dump_values *values)
{
    tbd_past_give_back(values->past);
    tbd_dump_close(&values->dump);
}

/* What is unknown may follow from what ran longer ago.  False: there is nothing more, and nothing has changed. */
static bool look_farther(struct dump_values *values)
{
    struct tbd_past *near = values->past, *far = NULL;
    uint64_t after = tbd_past_insns_from(near->thread, near->step);

    if (near->first_step == 0 || after + TBD_PAST_FAR >= TBD_PAST_MOST ||
        tbd_past_take(near->session, near->thread, near->step, TBD_PAST_FAR, &far) != TBD_OK)
        return false;
    if (!tbd_past_go(far, near->step, near->insn)) {
        tbd_past_give_back(far);
        return false;
    }
    values->past = far;
    tbd_past_give_back(near);
    return true;
}

static void put_position(const struct dump_values *values, json_t *object)
{
    const struct tbd_past *past = values->past;
    struct tbd_dump_place place = { past->thread, past->step, past->insn };

    json_object_set_new(object, "position", tbd_dump_position_text(&place));
    json_object_set_new(object, "thread", json_integer(past->thread->tid));
}

static void put_certainty(json_t *object, enum tbd_certainty certainty)
{
    json_object_set_new(object, "certainty", json_string(tbd_certainty_text(certainty)));
}

/* ---- regs ---- */

/* The registers of `regs`, and what of each is a status or other bit that is followed. */
struct shown_register {
    uint32_t which;
    unsigned place;
    uint64_t bits;
};

static struct shown_register shown_register(uint32_t which)
{
    if (which < TBD_REG_COUNT)
        return (struct shown_register){ which, which, UINT64_MAX };
    if (which == TBD_REGISTER_RFLAGS)
        return (struct shown_register){ which, TBD_PLACE_FLAGS, TBD_STATUS_FLAGS };
    return (struct shown_register){ which,
                                    which == TBD_REGISTER_FS_BASE ? TBD_PLACE_FS : TBD_PLACE_GS,
                                    UINT64_MAX };
}

static json_t *register_object(const struct tbd_past *past, uint32_t which)
{
    struct shown_register shown = shown_register(which);
    struct tbd_simulated value = tbd_past_place(past, shown.place);
    enum tbd_certainty certainty = tbd_past_certainty(value, shown.bits);
    json_t *object = json_object();

    if (which == TBD_REGISTER_RIP) {
        value.bits.value = tbd_past_pc(past);
        certainty = TBD_EXACT;
    }
    json_object_set_new(object, "value",
                        certainty == TBD_UNKNOWN ? json_null() : tbd_output_hex(value.bits.value));
    put_certainty(object, certainty);
    return object;
}

static bool all_registers_known(const struct tbd_past *past)
{
    for (unsigned place = 0; place < TBD_REG_COUNT; place++)
        if (tbd_past_certainty(tbd_past_place(past, place), UINT64_MAX) == TBD_UNKNOWN)
            return false;
    return true;
}

static void print_register(FILE *out, uint32_t which, const json_t *object)
{
    const char *value = json_string_value(json_object_get(object, "value"));
    const char *certainty = json_string_value(json_object_get(object, "certainty"));
    char text[64];

    snprintf(text, sizeof(text), "%s%s%s", value != NULL ? value : "", value != NULL ? "  " : "",
             value != NULL && strcmp(certainty, "exact") == 0 ? "" : certainty);
    fprintf(out, "%-7s %-30s%s", tbd_register_text(which), text, which % 2 == 1 ? "\n" : " ");
}

enum tbd_exit tbd_dump_run_regs(struct tbd_command_run *run)
{
    struct dump_values values;
    enum tbd_exit result = open_values(run, &values);
    json_t *all = json_object();

    if (result == TBD_EXIT_FOUND && run->argc != 0)
        result = tbd_command_usage(run, "regs takes no arguments but a thread");
    if (result == TBD_EXIT_FOUND)
        put_position(&values, all);
    if (result == TBD_EXIT_FOUND && !all_registers_known(values.past))
        (void)look_farther(&values);
    for (uint32_t i = 0; result == TBD_EXIT_FOUND && i <= TBD_REGISTER_GS_BASE; i++) {
        json_t *object = register_object(values.past, i);

        if (!run->session->json)
            print_register(run->out, i, object);
        json_object_set_new(all, tbd_register_text(i), object);
    }
    if (result == TBD_EXIT_FOUND && run->session->json)
        tbd_output_line(json_incref(all), run->out);
    json_decref(all);
    close_values(&values);
    return result;
}

/* ---- mem ---- */

/* A stretch of memory, and how well each byte is known. */
struct known_bytes {
    uint8_t *bytes, *known, *exact; /* owned, in one piece */
    size_t count;
};

static enum tbd_certainty certainty_of(const struct known_bytes *all, size_t from, size_t to)
{
    enum tbd_certainty least = TBD_EXACT;

    for (size_t i = from; i < to; i++) {
        if (all->known[i] != 0xff)
            return TBD_UNKNOWN;
        if (all->exact[i] != 0xff)
            least = TBD_INFERRED;
    }
    return least;
}

static void print_byte(FILE *out, const struct known_bytes *all, size_t i)
{
    if (all->known[i] == 0xff)
        fprintf(out, " %02x", all->bytes[i]);
    else
        fputs(" ??", out);
}

static void print_memory_line(FILE *out, uint64_t address, const struct known_bytes *all,
                              size_t from)
{
    size_t to = all->count - from < LINE ? all->count : from + LINE;
    enum tbd_certainty certainty = certainty_of(all, from, to);

    fprintf(out, "0x%012" PRIx64 " ", address + from);
    for (size_t i = from; i < from + LINE; i++) {
        if (i == from + LINE / 2)
            fputc(' ', out);
        if (i < to)
            print_byte(out, all, i);
        else
            fputs("   ", out);
    }
    fputs("  ", out);
    for (size_t i = from; i < to; i++)
        fputc(all->known[i] == 0xff && isprint(all->bytes[i]) ? all->bytes[i] : '.', out);
    fprintf(out, "%s%s\n", certainty == TBD_EXACT ? "" : "  ",
            certainty == TBD_EXACT ? "" : tbd_certainty_text(certainty));
}

/* "00ff??": two characters a byte. */
static void hex_text(const struct known_bytes *all, char *text)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->known[i] == 0xff)
            snprintf(text + 2 * i, 3, "%02x", all->bytes[i]);
        else
            snprintf(text + 2 * i, 3, "??");
}

/* One letter a byte: e, i or u. */
static void certainty_letters(const struct known_bytes *all, char *text)
{
    for (size_t i = 0; i < all->count; i++)
        text[i] = *tbd_certainty_text(certainty_of(all, i, i + 1));
    text[all->count] = '\0';
}

static enum tbd_exit print_memory_json(const struct dump_values *values, uint64_t address,
                                       const struct known_bytes *all)
{
    char *text = calloc(all->count + 1, 2);
    json_t *object = json_object();

    if (text == NULL) {
        json_decref(object);
        return tbd_command_no_memory();
    }
    put_position(values, object);
    json_object_set_new(object, "addr", tbd_output_hex(address));
    json_object_set_new(object, "size", json_integer((json_int_t)all->count));
    hex_text(all, text);
    json_object_set_new(object, "bytes", json_string(text));
    certainty_letters(all, text);
    json_object_set_new(object, "bytes_certainty", json_string(text));
    put_certainty(object, certainty_of(all, 0, all->count));
    tbd_output_line(object, values->dump.run->out);
    free(text);
    return TBD_EXIT_FOUND;
}

static enum tbd_exit print_memory(struct dump_values *values, uint64_t address, size_t count)
{
    const struct tbd_command_run *run = values->dump.run;
    struct known_bytes all = { .bytes = calloc(count, 3), .count = count };
    enum tbd_exit result = TBD_EXIT_FOUND;

    if (all.bytes == NULL)
        return tbd_command_no_memory();
    all.known = all.bytes + count;
    all.exact = all.known + count;
    tbd_past_bytes(values->past, address, count, all.bytes, all.known, all.exact);
    if (run->session->json)
        result = print_memory_json(values, address, &all);
    for (size_t i = 0; !run->session->json && i < count; i += LINE)
        print_memory_line(run->out, address, &all, i);
    free(all.bytes);
    return result;
}

enum tbd_exit tbd_dump_run_mem(struct tbd_command_run *run)
{
    struct dump_values values;
    uint64_t address = 0, count = 0;
    enum tbd_exit result = open_values(run, &values);

    if (result == TBD_EXIT_FOUND && run->argc != 2)
        result = tbd_command_usage(run, "mem takes an address and a length");
    if (result == TBD_EXIT_FOUND) {
        tbd_past_enter(values.past, false);
        result = tbd_command_value(run, 0, (struct tbd_position){ 0 }, &address);
        if (result == TBD_EXIT_FOUND)
            result = tbd_command_value(run, 1, (struct tbd_position){ 0 }, &count);
        tbd_past_leave(values.past);
    }
    if (result == TBD_EXIT_FOUND && (count == 0 || count > MEM_MAX))
        result = tbd_command_usage(run, "the length is from 1 to 16 MiB");
    if (result == TBD_EXIT_FOUND)
        result = print_memory(&values, address, (size_t)count);
    close_values(&values);
    return result;
}

/* ---- commands of traces ---- */

typedef enum tbd_exit command_function(struct tbd_command_run *run);

static json_t *read_lines(char *text)
{
    json_t *all = json_array();
    char *rest = text;

    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line != '\0')
            json_array_append_new(all, json_loads(line, JSON_ALLOW_NUL, NULL));
    return all;
}

/* What the command answers, as objects: with what is exact alone, or all that is known. */
static json_t *answers_of(struct dump_values *values, command_function *command, bool exact_only,
                          enum tbd_exit *result)
{
    struct tbd_command_run *run = values->dump.run;
    bool json = run->session->json;
    FILE *out = run->out;
    char *text = NULL;
    size_t bytes = 0;
    json_t *answers = NULL;

    run->out = open_memstream(&text, &bytes);
    if (run->out != NULL) {
        run->session->json = true;
        tbd_past_enter(values->past, exact_only);
        *result = command(run);
        tbd_past_leave(values->past);
        run->session->json = json;
        fclose(run->out);
        answers = read_lines(text);
    } else {
        *result = tbd_command_no_memory();
    }
    run->out = out;
    free(text);
    return answers;
}

/* Is something in it not known? */
static bool has_unknown(const json_t *answer)
{
    return json_is_false(json_object_get(answer, "known")) ||
           json_object_get(answer, "unknown_parts") != NULL;
}

/* What is not known was written somewhere all the same: the row of that, in the answer of print. */
static void put_written(const struct dump_values *values, json_t *answer)
{
    const struct tbd_command_run *run = values->dump.run;
    const char *expression = json_string_value(json_object_get(answer, "expression"));
    const char *at = expression == NULL ? NULL : strstr(run->text + run->arguments, expression);
    json_t *row;

    if (at == NULL || strcmp(at, expression) != 0)
        return;
    tbd_past_enter(values->past, false);
    row = tbd_dump_why_written(&values->dump, values->past, (size_t)(at - run->text));
    tbd_past_leave(values->past);
    if (row != NULL)
        json_object_set_new(answer, "written", row);
}

static void print_written(const json_t *written, FILE *out)
{
    const char *position = json_string_value(json_object_get(written, "position"));
    const char *source = json_string_value(json_object_get(written, "source"));
    const char *function = json_string_value(json_object_get(written, "function"));

    if (written == NULL)
        return;
    if (position == NULL)
        fputs("  written before what the dump has of the thread", out);
    else
        fprintf(out, "  written %s at %s, %s, %s",
                json_is_true(json_object_get(written, "certain")) ? "last" : "perhaps", position,
                tbd_shown(function), tbd_shown(source != NULL ? source : "no line"));
}

static void print_answer(const struct dump_values *values, json_t *answer, const char *name,
                         enum tbd_certainty certainty)
{
    FILE *out = values->dump.run->out;

    if (values->dump.run->session->json) {
        put_position(values, answer);
        put_certainty(answer, certainty);
        tbd_output_line(json_incref(answer), out);
        return;
    }
    if (name != NULL)
        fprintf(out, "%s = ", tbd_shown(name));
    fprintf(out, "%s%s%s", json_string_value(json_object_get(answer, "value")),
            certainty == TBD_EXACT ? "" : "  ",
            certainty == TBD_EXACT ? "" : tbd_certainty_text(certainty));
    print_written(json_object_get(answer, "written"), out);
    fputc('\n', out);
}

/* Looks back for what is unknown in the answers of print. */
static void print_answers(const struct dump_values *values, json_t *all, const json_t *exact)
{
    size_t index;
    json_t *answer;

    json_array_foreach(all, index, answer)
    {
        bool is_same = json_equal(answer, json_array_get(exact, index)) != 0;

        if (has_unknown(answer))
            put_written(values, answer);
        print_answer(values, answer, json_string_value(json_object_get(answer, "name")),
                     has_unknown(answer) ? TBD_UNKNOWN
                     : is_same           ? TBD_EXACT
                                         : TBD_INFERRED);
    }
}

/* The program has no such value there. */
static bool is_nowhere(const json_t *answer)
{
    const char *text = json_string_value(json_object_get(answer, "value"));

    return json_is_false(json_object_get(answer, "known")) && text != NULL &&
           (strcmp(text, "<optimized out: " TBD_DATA_NO_LOCATION ">") == 0 ||
            strcmp(text, "<optimized out: " TBD_DATA_NO_POINTER TBD_DATA_NO_LOCATION ">") == 0);
}

static bool any_unknown(const json_t *all)
{
    size_t index;
    json_t *answer;

    json_array_foreach(all, index, answer)
    {
        if (has_unknown(answer) && !is_nowhere(answer))
            return true;
    }
    return false;
}

/* An error is told once: what fails with all that is known is not asked again. */
static enum tbd_exit ask_twice(struct tbd_command_run *run, command_function *command)
{
    struct dump_values values;
    enum tbd_exit result = open_values(run, &values), again;
    json_t *all = NULL, *exact = NULL;

    if (result == TBD_EXIT_FOUND)
        all = answers_of(&values, command, false, &result);
    if (result == TBD_EXIT_FOUND && any_unknown(all) && look_farther(&values)) {
        json_decref(all);
        all = answers_of(&values, command, false, &result);
    }
    if (result == TBD_EXIT_FOUND)
        exact = answers_of(&values, command, true, &again);
    if (result == TBD_EXIT_FOUND)
        print_answers(&values, all, exact);
    json_decref(all);
    json_decref(exact);
    close_values(&values);
    return result;
}

enum tbd_exit tbd_dump_run_print(struct tbd_command_run *run)
{
    return ask_twice(run, tbd_command_print);
}

enum tbd_exit tbd_dump_run_locals(struct tbd_command_run *run)
{
    return ask_twice(run, tbd_command_locals);
}

/* What a command answers there that shows no values. */
static enum tbd_exit ask_there(struct tbd_command_run *run, command_function *command,
                               bool exact_only)
{
    struct dump_values values;
    enum tbd_exit result = open_values(run, &values);

    if (result == TBD_EXIT_FOUND) {
        tbd_past_enter(values.past, exact_only);
        result = command(run);
        tbd_past_leave(values.past);
    }
    close_values(&values);
    return result;
}

enum tbd_exit tbd_dump_run_list(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_list, false);
}

enum tbd_exit tbd_dump_run_frame(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_frame, false);
}

enum tbd_exit tbd_dump_run_up(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_up, false);
}

enum tbd_exit tbd_dump_run_down(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_down, false);
}

enum tbd_exit tbd_dump_run_ptype(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_ptype, false);
}

enum tbd_exit tbd_dump_run_symbol(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_symbol, false);
}

enum tbd_exit tbd_dump_run_line(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_line, false);
}

/* It has no place for a mark: what rests on an assumption is unavailable. */
enum tbd_exit tbd_dump_run_printf(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_printf, true);
}

/* An assumption proves nothing. */
enum tbd_exit tbd_dump_run_assert(struct tbd_command_run *run)
{
    return ask_there(run, tbd_command_assert, true);
}

/* ---- x ---- */

/* Notes how well the memory is known that each answer shows; returns the least. */
static enum tbd_certainty examined_certainty(struct dump_values *values, json_t *answers)
{
    enum tbd_certainty least = TBD_EXACT;
    size_t index;
    json_t *answer;

    json_array_foreach(answers, index, answer)
    {
        const char *text = json_string_value(json_object_get(answer, "addr"));
        uint64_t address = strtoull(text != NULL ? text : "0", NULL, 16);
        size_t count = (size_t)json_integer_value(json_object_get(answer, "size"));
        struct known_bytes all = { .bytes = calloc(count + 1, 3), .count = count };
        enum tbd_certainty certainty = TBD_INFERRED;

        if (all.bytes != NULL) {
            all.known = all.bytes + count;
            all.exact = all.known + count;
            tbd_past_bytes(values->past, address, count, all.bytes, all.known, all.exact);
            certainty = certainty_of(&all, 0, count);
        }
        free(all.bytes);
        put_certainty(answer, certainty);
        least = certainty < least ? certainty : least;
    }
    return least;
}

static enum tbd_exit print_examined(struct dump_values *values, json_t *answers,
                                    enum tbd_certainty certainty)
{
    struct tbd_command_run *run = values->dump.run;
    enum tbd_exit result = TBD_EXIT_FOUND;
    size_t index;
    json_t *answer;

    if (run->session->json) {
        json_array_foreach(answers, index, answer)
        {
            put_position(values, answer);
            tbd_output_line(json_incref(answer), run->out);
        }
        return result;
    }
    tbd_past_enter(values->past, false);
    result = tbd_command_examine(run);
    tbd_past_leave(values->past);
    if (certainty != TBD_EXACT)
        fprintf(run->out, "(%s)\n", tbd_certainty_text(certainty));
    return result;
}

enum tbd_exit tbd_dump_run_examine(struct tbd_command_run *run)
{
    uint64_t next = run->session->examined.next;
    struct dump_values values;
    enum tbd_exit result = open_values(run, &values);
    json_t *answers = NULL;

    if (result == TBD_EXIT_FOUND)
        answers = answers_of(&values, tbd_command_examine, false, &result);
    if (result == TBD_EXIT_FOUND) {
        run->session->examined.next = next;
        result = print_examined(&values, answers, examined_certainty(&values, answers));
    }
    json_decref(answers);
    close_values(&values);
    return result;
}
