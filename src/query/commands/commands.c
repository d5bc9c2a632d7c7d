// SPDX-License-Identifier: MIT
/* commands.c - what commands share: arguments, messages, exit statuses */
#include "query/commands/commands.h"

#include "query/condition/window_names.h"
#include "query/condition/field_names.h"
#include "query/session/source/source_place.h"

#include "base/safe_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void help_types(uint32_t types, FILE *out)
{
    const char *before = " [";

    if (types == 0xffffffffu)
        return;
    for (unsigned i = TBD_EVENT_FUNC_ENTER; i <= TBD_EVENT_CALL; i++) {
        if ((types & 1u << i) == 0)
            continue;
        fprintf(out, "%s%s", before, tbd_event_type_name((enum tbd_event_type)i));
        before = " ";
    }
    fputc(']', out);
}

void tbd_command_help_context(FILE *out)
{
    fprintf(
        out,
        "A CONTEXT is a condition on an event and the state at it.\n\n"
        "Operators, loosest first:\n"
        "  ? :   or   and   not   == != < <= > >= =~   |   ^   &   << >>   + -   * / %%   - ~ ! (one "
        "operand)\n"
        "|| is `or`, && is `and`.  Numbers: 12 0x1f 0o17 0b101 1ul 1.5 1.5f 'c', of C's types; true,\n"
        "false, nullptr.\n"
        "An event's own values are unsigned 64-bit numbers; signed(X) makes comparisons, / %% and\n"
        ">> signed.  Beside a variable they are taken as its type.\n\n"
        "Variables of the program are written as in C: list->head, table[i].key, *p, &a.b,\n"
        "(type)x, sizeof x; they mean what is in scope at the event's instruction.  Where a name is\n"
        "not in scope, the event does not match.  Strings, also std::string and std::string_view:\n"
        "name == \"bob\", name =~ \"^b.*\" (an extended regular expression, on the first 256 bytes).\n"
        "var(NAME) is a variable whose name means something below.  At a function's first instruction\n"
        "its parameters are what was passed.\n\n"
        "Names; in [] the events that have one, if not all do:\n");
    for (const struct tbd_field_name *row = tbd_field_names; row->name != NULL; row++) {
        fprintf(out, "  %-8s  %s", row->name, row->help);
        help_types(row->types, out);
        fputc('\n', out);
    }
    fprintf(
        out,
        "  rax .. r15, rip, rflags, fs_base, gs_base and parts (eax, ax, al, r8d, ...)\n"
        "  func, module    compared with a name or \"pattern*\" by == or !=; also in inlined\n"
        "                  copies of the function, which have no entries and exits\n"
        "  caller          of func_enter and calls: the function that makes the call, compared as func\n"
        "  syscall         compared with a name or number: syscall==write\n"
        "  &NAME           address of a symbol; &module!NAME chooses the module\n"
        "  mem[ADDR,SIZE]  memory at the event, SIZE 1 to 8 bytes; after[ADDR,SIZE] after it\n"
        "  real[ADDR,SIZE], real_after[ADDR,SIZE]  the same for floating point, SIZE 4 or 8\n"
        "  src=<FILE,LINE> the instruction belongs to this source line; src=<FILE>: to any of it\n"
        "  old.M, new.M    with `of EXPR`: its member M before and after; oldval and newval\n"
        "                  are EXPR itself, with its type\n"
        "  touches[ADDR,SIZE]  the store or load overlaps this range\n"
        "  stack=<A,B,C>   the call stack, innermost last: function names or patterns,\n"
        "                  * is any one frame, ** any run of frames; inlined functions have\n"
        "                  frames, too, as in bt\n\n"
        "An event does not match if its condition divides by zero or reads memory that is not\n"
        "mapped; the number of such events is printed at the end.\n");
}

/* ---- messages ---- */

static enum tbd_exit exit_of(enum tbd_status status)
{
    if (status == TBD_OK)
        return TBD_EXIT_FOUND;
    if (status == TBD_NOTFOUND || status == TBD_INTERRUPTED)
        return TBD_EXIT_NOT_FOUND;
    if (status == TBD_SYNTAX || status == TBD_NAME || status == TBD_TYPE || status == TBD_USAGE ||
        status == TBD_NOTIME || status == TBD_NOWINDOW || status == TBD_UNMAPPED)
        return TBD_EXIT_USAGE;
    if (status == TBD_NOMEM || status == TBD_IO || status == TBD_NOSPACE || status == TBD_SYSTEM)
        return TBD_EXIT_SYSTEM;
    return TBD_EXIT_TRACE;
}

static void print_divergence(const struct tbd_divergence *divergence)
{
    fprintf(stderr, "tbdq: replay of window %" PRIu32 " diverged at %" PRIu64 "+%" PRIu32 ": %s\n",
            divergence->window, divergence->position.time, divergence->position.offset,
            tbd_shown(divergence->what));
}

enum tbd_exit tbd_command_no_memory(void)
{
    fprintf(stderr, "tbdq: %s\n", tbd_status_text(TBD_NOMEM));
    return exit_of(TBD_NOMEM);
}

enum tbd_exit tbd_command_fail(struct tbd_command_run *run, enum tbd_status status)
{
    const struct tbd_error *why = &run->session->why;

    if (status == TBD_DIVERGED) {
        print_divergence(&run->session->divergence);
        return exit_of(status);
    }
    fprintf(stderr, "tbdq: %s", tbd_status_text(status));
    if (why->status == status && why->file[0] != '\0') {
        fprintf(stderr, ": %s", tbd_shown(why->file));
        if (status >= TBD_TRUNCATED && status <= TBD_CORRUPT)
            fprintf(stderr, " at offset %" PRIu64, why->offset);
    }
    if (why->status == status && why->detail[0] != '\0')
        fprintf(stderr, ": %s", tbd_shown(why->detail));
    fputc('\n', stderr);
    return exit_of(status);
}

enum tbd_exit tbd_command_wrong(const struct tbd_command_run *run,
                                const struct tbd_query_error *error)
{
    size_t width = strlen(run->text);
    const char *message =
        error->message[0] != '\0' ? error->message : tbd_status_text(error->status);

    fprintf(stderr, "tbdq: %s\n", tbd_shown(message));
    if (error->length != 0 && error->at <= width) {
        fprintf(stderr, "  %s\n  %*s^", run->text, (int)error->at, "");
        for (size_t i = 1; i < error->length && error->at + i < width; i++)
            fputc('~', stderr);
        fputc('\n', stderr);
    }
    if (error->hint[0] != '\0')
        fprintf(stderr, "hint: %s\n", tbd_shown(error->hint));
    return exit_of(error->status);
}

enum tbd_exit tbd_command_usage(const struct tbd_command_run *run, const char *message)
{
    struct tbd_query_error error = { .status = TBD_USAGE, .at = run->arguments };
    const char *space = strchr(run->text, ' ');
    char name[32];
    const struct tbd_command *command;

    snprintf(name, sizeof(name), "%.*s",
             (int)(space == NULL ? strlen(run->text) : (size_t)(space - run->text)), run->text);
    command = tbd_command_find(name);
    snprintf(error.message, sizeof(error.message), "%s", message);
    snprintf(error.hint, sizeof(error.hint), "tbdq %s %s", name,
             command == NULL ? "" : command->synopsis);
    error.length = strlen(run->text) > run->arguments ? strlen(run->text) - run->arguments : 1;
    return tbd_command_wrong(run, &error);
}

/* ---- values on the command line ---- */

struct value_context {
    struct tbd_session *session;
    struct tbd_position position;
};

static enum tbd_value_state read_value(void *context, uint64_t address, uint64_t bytes,
                                       uint64_t *out)
{
    const struct value_context *value = context;

    *out = 0;
    return tbd_session_read(value->session, value->position, address, out, (size_t)bytes) == TBD_OK
               ? TBD_VALUE_OK
               : TBD_VALUE_BAD;
}

static enum tbd_exit evaluate(struct tbd_command_run *run, const struct tbd_expr *expr,
                              struct tbd_position position, uint64_t *out)
{
    struct value_context context = { run->session, position };
    struct tbd_event event = { .type = TBD_EVENT_POSITION, .position = position };
    struct tbd_reg_state *state = NULL;
    struct tbd_expr_env env = { .event = &event, .read = read_value, .read_context = &context };
    struct tbd_value value;
    enum tbd_status status = TBD_OK;

    if (expr->nodes[expr->root].op != TBD_EXPR_NUMBER) {
        state = calloc(1, sizeof(*state));
        status = state == NULL ? TBD_NOMEM : tbd_session_regs(run->session, position, state);
        if (status == TBD_OK) {
            event.pc = state->regs.rip;
            event.thread = state->regs.thread;
            env.regs = &state->regs;
        }
    }
    if (status == TBD_OK) {
        value = tbd_expr_eval(expr, expr->root, &env);
        *out = value.v;
        status = value.state == TBD_VALUE_OK ? TBD_OK : TBD_UNMAPPED;
    }
    free(state);
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}

/* The value of a C expression over the program's variables; its address if it is no number. */
static enum tbd_exit evaluate_typed(struct tbd_command_run *word, struct tbd_position position,
                                    uint64_t *out)
{
    struct tbd_source_place place;
    struct tbd_data data;
    enum tbd_exit result =
        tbd_command_value_of(word, position, 0, strlen(word->text), &place, &data);

    if (result != TBD_EXIT_FOUND)
        return result;
    if (!data.is_known) {
        fprintf(stderr, "tbdq: it has no value here: %s\n", tbd_shown(data.why));
        result = TBD_EXIT_NOT_FOUND;
    } else if (!tbd_data_scalar(&place.places[0], &data, out)) {
        *out = data.address;
        if (!data.in_memory)
            result = tbd_command_fail(word, TBD_TYPE);
    }
    tbd_source_place_close(&place);
    return result;
}

enum tbd_exit tbd_command_value(struct tbd_command_run *run, unsigned index,
                                struct tbd_position position, uint64_t *out)
{
    uint32_t window = tbd_trace_window_of(run->session->trace, position.time);
    struct tbd_window_names context = { run->session, window == UINT32_MAX ? 0 : window,
                                        TBD_EVENT_POSITION };
    struct tbd_expr_names names = tbd_window_names_of(&context);
    struct tbd_query_error error = { 0 };
    struct tbd_expr *expr;
    struct tbd_command_run word = *run;
    enum tbd_exit result;

    word.text = run->argv[index];
    if (tbd_expr_parse(word.text, 0, TBD_EVENT_POSITION, &expr, &error) != TBD_OK)
        return tbd_command_wrong(&word, &error);
    if ((expr->uses & TBD_USES_TYPES) != 0)
        result = evaluate_typed(&word, position, out);
    else if (tbd_expr_bind_symbols(expr, &names, &error) != TBD_OK ||
             tbd_expr_bind_names(expr, &names, true, &error) != TBD_OK)
        result = tbd_command_wrong(&word, &error);
    else
        result = evaluate(run, expr, position, out);
    tbd_expr_free(expr);
    return result;
}
