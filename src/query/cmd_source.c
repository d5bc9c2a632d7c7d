// SPDX-License-Identifier: MIT
/* cmd_source.c - frame, up, down, list: where a position is in the program's own text */
#include "query/commands.h"
#include "query/output.h"

#include <inttypes.h>

#define LIST_MAX 100000u

/* ---- frames ---- */

static enum tbd_exit select_frame(struct tbd_command_run *run, struct tbd_source_stack *stack,
                                  uint64_t number)
{
    if (number >= stack->count)
        return tbd_command_usage(run, "there is no such frame: see `tbdq bt`");
    tbd_source_select(run->session, stack->position, (size_t)number);
    tbd_command_print_frame(run, stack, (size_t)number);
    return TBD_EXIT_FOUND;
}

/* `argument` is the optional number; `step` is 0 for "frame N", else the direction. */
static enum tbd_exit move_frame(struct tbd_command_run *run, int step)
{
    struct tbd_position position = tbd_session_current(run->session);
    struct tbd_source_stack stack;
    enum tbd_exit result = TBD_EXIT_FOUND;
    enum tbd_status status;
    uint64_t number = 1;

    if (run->argc > 1)
        return tbd_command_usage(run, "it takes at most a number");
    if (run->argc == 1)
        result = tbd_command_value(run, 0, position, &number);
    if (result != TBD_EXIT_FOUND)
        return result;
    status = tbd_source_stack(run->session, position, &stack);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    if (step == 0)
        number = run->argc == 1 ? number : stack.selected;
    else if (step > 0)
        number = number > stack.count ? stack.count : stack.selected + number;
    else
        number = number > stack.selected ? stack.count : stack.selected - number;
    result = select_frame(run, &stack, number);
    tbd_source_stack_free(&stack);
    return result;
}

enum tbd_exit tbd_command_frame(struct tbd_command_run *run)
{
    return move_frame(run, 0);
}

enum tbd_exit tbd_command_up(struct tbd_command_run *run)
{
    return move_frame(run, 1);
}

enum tbd_exit tbd_command_down(struct tbd_command_run *run)
{
    return move_frame(run, -1);
}

/* ---- list ---- */

static void print_line(const struct tbd_command_run *run, const char *file, uint32_t line,
                       uint32_t current, const char *text)
{
    json_t *object;

    if (!run->session->json) {
        fprintf(run->out, "%s%5" PRIu32 "  %s\n", line == current ? "=>" : "  ", line, text);
        return;
    }
    object = json_object();
    json_object_set_new(object, "file", tbd_output_text(file));
    json_object_set_new(object, "line", json_integer((json_int_t)line));
    json_object_set_new(object, "current", json_boolean(line == current));
    json_object_set_new(object, "text", tbd_output_text(text));
    tbd_output_line(object, run->out);
}

static enum tbd_exit print_lines(const struct tbd_command_run *run,
                                 const struct tbd_source_line *at, uint32_t count)
{
    struct tbd_source_text text;
    uint32_t first = at->line > count / 2 ? at->line - count / 2 : 1;

    if (!tbd_source_load(at->file, &text)) {
        fprintf(stderr, "tbdq: cannot read %s, line %" PRIu32 "\n", at->file, at->line);
        return TBD_EXIT_NOT_FOUND;
    }
    for (uint32_t line = first; line <= text.line_count && line - first < count; line++)
        print_line(run, at->file, line, at->line, text.lines[line]);
    tbd_source_unload(&text);
    return TBD_EXIT_FOUND;
}

enum tbd_exit tbd_command_list(struct tbd_command_run *run)
{
    struct tbd_position position = tbd_session_current(run->session);
    struct tbd_source_stack stack;
    enum tbd_exit result = TBD_EXIT_FOUND;
    enum tbd_status status;
    uint64_t count = 10;

    if (run->argc > 1)
        return tbd_command_usage(run, "list takes at most a number of lines");
    if (run->argc == 1)
        result = tbd_command_value(run, 0, position, &count);
    if (result != TBD_EXIT_FOUND)
        return result;
    status = tbd_source_stack(run->session, position, &stack);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    if (stack.calls[stack.selected].source.line == 0) {
        fprintf(stderr, "tbdq: no source line is known for this place\n");
        result = TBD_EXIT_NOT_FOUND;
    } else {
        result = print_lines(run, &stack.calls[stack.selected].source,
                             (uint32_t)(count > LIST_MAX ? LIST_MAX : count));
    }
    tbd_source_stack_free(&stack);
    return result;
}
