// SPDX-License-Identifier: MIT
/* why_rows.c - see why_rows.h */
#include "query/why/why_rows.h"

#include "base/vector_layout.h"
#include "query/output/output.h"
#include "query/session/source/source.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CALLERS_MAX 8u

void tbd_why_say(struct tbd_why *why, const char *format, ...)
{
    size_t used = strlen(why->what);
    va_list args;

    va_start(args, format);
    vsnprintf(why->what + used, sizeof(why->what) - used, format, args);
    va_end(args);
}

/* In a table the inputs of a calculation stand below it, indented. */
void tbd_why_set_what(const struct tbd_why *why, json_t *row, uint32_t depth)
{
    char text[sizeof(why->what) + 2 * TBD_WHY_LIMIT_MAX + 2];
    bool is_table = !why->run->session->json && !why->run->session->csv;

    snprintf(text, sizeof(text), "%*s%s", is_table ? (int)(2 * depth) : 0, "", why->what);
    json_object_set_new(row, "what", tbd_output_text(text));
    json_object_set_new(row, "depth", json_integer(depth));
}

static void set_code(json_t *row)
{
    const char *path = json_string_value(json_object_get(row, "file"));
    json_int_t line = json_integer_value(json_object_get(row, "line"));
    struct tbd_source_text text;

    if (path == NULL || !tbd_source_load(path, &text))
        return;
    if (line > 0 && line <= text.line_count)
        json_object_set_new(row, "code", tbd_output_text(text.lines[line]));
    tbd_source_unload(&text);
}

/* A row without its value or caller must not pass for a whole one. */
static void note_loss(struct tbd_why *why, struct tbd_position at, enum tbd_status status)
{
    struct tbd_session *session = why->run->session;

    if (tbd_session_is_of_window(status))
        tbd_session_leave_out(session, tbd_trace_window_of(session->trace, at.time), status);
}

/* The bytes in the state, up to 8. */
static bool register_bytes(struct tbd_why *why, const struct tbd_why_value *value,
                           const struct tbd_reg_state *state, uint64_t *out)
{
    const struct tbd_trace_info *info = why->run->session->info;
    unsigned bytes = value->bytes < 8 ? (unsigned)value->bytes : 8;
    uint32_t there = state->regs.xsave_bytes < sizeof(state->xsave) ? state->regs.xsave_bytes
                                                                    : sizeof(state->xsave);
    struct tbd_vector_layout layout;

    if (value->reg >= ZYDIS_REGISTER_RAX && value->reg <= ZYDIS_REGISTER_R15) {
        *out = state->regs.gpr[value->reg - ZYDIS_REGISTER_RAX] >> 8 * (value->first % 8);
        if (bytes < 8)
            *out &= (1ull << 8 * bytes) - 1;
        return true;
    }
    return value->reg >= ZYDIS_REGISTER_ZMM0 && value->reg <= ZYDIS_REGISTER_ZMM31 &&
           tbd_vector_layout_find(info->xcr0, info->xsave_bytes, &layout) &&
           tbd_vector_image_read(&layout, state->xsave, there,
                                 (unsigned)(value->reg - ZYDIS_REGISTER_ZMM0),
                                 (unsigned)value->first, bytes, out);
}

/* The bytes of a register, at the value's position. */
static bool read_register(struct tbd_why *why, const struct tbd_why_value *value, uint64_t *out)
{
    struct tbd_reg_state *state = malloc(sizeof(*state));
    enum tbd_status status = state == NULL ? TBD_NOMEM : TBD_NOTFOUND;
    bool good;

    if (state != NULL && value->place == TBD_WHY_REGISTER)
        status = tbd_session_regs(why->run->session, value->at, state);
    note_loss(why, value->at, status);
    good = status == TBD_OK && state->regs.thread == value->thread &&
           register_bytes(why, value, state, out);
    free(state);
    return good;
}

/* The value that is asked for, where it is used. */
void tbd_why_set_value(struct tbd_why *why, const struct tbd_why_value *value, json_t *row)
{
    struct tbd_session *session = why->run->session;
    uint64_t number = 0, bytes = value->bytes < 8 ? value->bytes : 8;
    enum tbd_status status;
    bool is_known;

    if (value->place == TBD_WHY_MEMORY) {
        status = tbd_session_read(session, value->at, value->address, &number, (size_t)bytes);
        note_loss(why, value->at, status);
        is_known = status == TBD_OK;
        if (value->mask != 0)
            number = (number & value->mask) >> __builtin_ctzll(value->mask);
    } else {
        is_known = read_register(why, value, &number);
    }
    if (is_known)
        json_object_set_new(row, "value", tbd_output_hex(number));
}

/* Who called the function that the instruction is in. */
static void set_caller(struct tbd_why *why, struct tbd_position at, json_t *row)
{
    struct tbd_frame frames[CALLERS_MAX];
    char text[256];
    size_t count = 0;
    enum tbd_status status = tbd_session_stack(why->run->session, at, frames, CALLERS_MAX, &count);

    note_loss(why, at, status);
    if (status != TBD_OK || count < 2)
        return;
    json_object_set_new(
        row, "caller",
        tbd_output_text(tbd_symbols_format(why->run->session->symbols,
                                           tbd_trace_window_of(why->run->session->trace, at.time),
                                           frames[1].call_pc, text, sizeof(text))));
}

/* Which process the row is about. */
static void set_process(struct tbd_why *why, json_t *row)
{
    json_object_set_new(row, "process", json_integer((json_int_t)why->run->session->info->pid));
    if (why->process == TBD_WHY_OWN)
        return;
    json_object_set_new(row, "trace", tbd_output_text(why->run->session->info->path));
    why->has_others = true;
}

/* The row, with the process that it is about and those that it leads to. */
void tbd_why_put_row(struct tbd_why *why, json_t *row)
{
    set_process(why, row);
    if (why->leads_to != NULL)
        json_object_set_new(row, "followed", why->leads_to);
    why->leads_to = NULL;
    tbd_rows_add(&why->rows, row);
}

/* Where the thread made the call in which it has waited. */
static struct tbd_position called_at(struct tbd_why *why, const struct tbd_event *event)
{
    struct tbd_position at = { .time = event->began };
    struct tbd_place place;

    if ((event->flags & TBD_EVENT_RESUMED) == 0)
        return event->position;
    if (tbd_session_place(why->run->session, at, &place) == TBD_OK && place.insns != 0)
        at.offset = place.insns - 1;
    return at;
}

/* `value`: what the row is about. */
void tbd_why_add_row(struct tbd_why *why, const struct tbd_why_value *value,
                     const struct tbd_event *event, uint32_t depth)
{
    json_t *row = tbd_rows_event(why->run->session, event);

    tbd_why_set_what(why, row, depth);
    set_code(row);
    tbd_why_set_value(why, value, row);
    set_caller(why, called_at(why, event), row);
    tbd_why_put_row(why, row);
}
