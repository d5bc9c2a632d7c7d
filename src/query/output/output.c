// SPDX-License-Identifier: MIT
/* output.c - an event in words
 *
 * The JSON object is made first; text is printed from it, so the two cannot differ. */
#include "query/output/output.h"
#include "query/session/inlined_calls.h"
#include "query/session/position_text.h"
#include "query/session/signal_info.h"
#include "query/session/wall_time.h"

#include "base/escape.h"
#include "base/safe_stream.h"
#include "base/string.h"
#include "hooks/table/syscalls.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

json_t *tbd_output_hex(uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "0x%" PRIx64, value);
    return json_string(text);
}

/* Jansson escapes everything that is not printable ASCII, except DEL. */
static void print_json(const json_t *object, FILE *out)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);

    for (const char *at = text; at != NULL && *at != '\0';) {
        size_t plain = strcspn(at, "\x7f");

        fwrite(at, 1, plain, out);
        at += plain;
        if (*at != '\0')
            fputs("\\u007f", out);
        at += *at != '\0';
    }
    fputc('\n', out);
    free(text);
}

void tbd_output_line(json_t *object, FILE *out)
{
    print_json(object, out);
    json_decref(object);
}

json_t *tbd_output_windows(const struct tbd_left_out *left)
{
    json_t *windows = json_array();

    for (size_t i = 0; i < left->count; i++)
        json_array_append_new(windows, json_integer((json_int_t)left->windows[i]));
    return windows;
}

void tbd_output_count(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

json_t *tbd_output_text(const char *text)
{
    size_t length, bytes;
    json_t *value;
    char *copy;

    if (text == NULL)
        return json_null();
    length = strlen(text);
    bytes = tbd_escape(TBD_ESCAPE_UTF8, text, length, NULL, 0) + 1;
    copy = malloc(bytes);
    if (copy == NULL)
        return json_string("");
    (void)tbd_escape(TBD_ESCAPE_UTF8, text, length, copy, bytes);
    value = json_string(copy);
    free(copy);
    return value;
}

void tbd_output_source(const struct tbd_source_line *line, json_t *object)
{
    if (line->line == 0)
        return;
    json_object_set_new(object, "file", tbd_output_text(line->file));
    json_object_set_new(object, "line", json_integer((json_int_t)line->line));
}

char *tbd_output_source_text(const struct tbd_source_line *line, char *out, size_t bytes)
{
    const char *slash = line->line == 0 ? NULL : strrchr(line->file, '/');

    *out = '\0';
    if (line->line != 0)
        snprintf(out, bytes, "  %s:%" PRIu32, tbd_shown(slash == NULL ? line->file : slash + 1),
                 line->line);
    return out;
}

void tbd_output_source_cell(const char *file, uint32_t line, json_t *row)
{
    char text[600];

    snprintf(text, sizeof(text), "%s:%" PRIu32, tbd_base_name(file), line);
    json_object_set_new(row, "source", tbd_output_text(text));
}

void tbd_output_symbol_of_frame(struct tbd_session *session, uint32_t window, uint64_t call_pc,
                                uint64_t pc, json_t *object)
{
    struct tbd_source_line line;
    struct tbd_symbol symbol;

    if (tbd_source_line_at(session, window, call_pc, &line))
        tbd_output_source(&line, object);
    if (!tbd_symbols_at(session->symbols, window, call_pc, &symbol)) {
        json_object_set_new(object, "module", json_string(""));
        json_object_set_new(object, "function", json_string(""));
        return;
    }
    json_object_set_new(object, "module", tbd_output_text(symbol.module));
    json_object_set_new(object, "function",
                        tbd_output_text(symbol.name == NULL ? "" : symbol.name));
    json_object_set_new(object, "function_offset", json_integer((json_int_t)(pc - symbol.start)));
}

void tbd_output_symbol(struct tbd_session *session, uint32_t window, uint64_t address,
                       json_t *object)
{
    tbd_output_symbol_of_frame(session, window, address, address, object);
}

/* ---- values ---- */

static json_t *number_value(const uint8_t *bytes, size_t size)
{
    char text[2 + 2 * TBD_OUTPUT_NUMBER_BYTES + 1] = "0x";
    size_t used = 2;
    size_t top = size;

    while (top > 1 && bytes[top - 1] == 0)
        top--;
    for (size_t i = top; i > 0; i--)
        used += (size_t)snprintf(text + used, sizeof(text) - used, i == top ? "%x" : "%02x",
                                 bytes[i - 1]);
    return json_string(text);
}

static json_t *bytes_value(const uint8_t *bytes, size_t size)
{
    char text[2 * TBD_OUTPUT_CUT_BYTES + 4] = "";
    size_t shown = size < TBD_OUTPUT_CUT_BYTES ? size : TBD_OUTPUT_CUT_BYTES;

    for (size_t i = 0; i < shown; i++)
        snprintf(text + 2 * i, sizeof(text) - 2 * i, "%02x", bytes[i]);
    if (shown < size)
        strcat(text, "...");
    return json_string(text);
}

/* Puts a value under `number_key` as one number, or, if it is long, under `bytes_key` as bytes in
 * order of address. */
static void put_value(json_t *object, const char *number_key, const char *bytes_key,
                      const uint8_t *bytes, uint64_t size)
{
    if (size <= TBD_OUTPUT_NUMBER_BYTES)
        json_object_set_new(object, number_key, number_value(bytes, (size_t)size));
    else
        json_object_set_new(object, bytes_key, bytes_value(bytes, (size_t)size));
}

static uint64_t shown_bytes(uint64_t size)
{
    return size < TBD_OUTPUT_CUT_BYTES + 1 ? size : TBD_OUTPUT_CUT_BYTES + 1;
}

static void put_memory(struct tbd_session *session, const struct tbd_event *event, bool after,
                       json_t *object)
{
    uint8_t bytes[TBD_OUTPUT_CUT_BYTES + 1];
    struct tbd_position position = event->position;
    uint64_t size = shown_bytes(event->size);

    position.offset += after;
    if ((event->flags & TBD_EVENT_HAS_VALUE) != 0 && size <= sizeof(event->value))
        memcpy(bytes, &event->value, (size_t)size);
    else if (tbd_session_read(session, position, event->addr, bytes, (size_t)size) != TBD_OK)
        return;
    put_value(object, after ? "newval" : "oldval", after ? "newbytes" : "oldbytes", bytes, size);
}

static void put_access(struct tbd_session *session, const struct tbd_event *event, json_t *object)
{
    json_object_set_new(object, "addr", tbd_output_hex(event->addr));
    json_object_set_new(object, "size", json_integer((json_int_t)event->size));
    if (event->type == TBD_EVENT_LOAD) {
        put_memory(session, event, false, object);
        return;
    }
    if (event->old != NULL)
        put_value(object, "oldval", "oldbytes", event->old, event->size);
    if (event->fresh != NULL)
        put_value(object, "newval", "newbytes", event->fresh, event->size);
    else
        put_memory(session, event, true, object);
}

static void put_args(const struct tbd_event *event, json_t *object)
{
    json_t *args = json_array();

    for (unsigned i = 0; i < 6; i++)
        json_array_append_new(args, tbd_output_hex(event->args[i]));
    json_object_set_new(object, "args", args);
}

struct call_reading {
    struct tbd_session *session;
    struct tbd_position position;
};

static bool read_for_call(void *context, uint64_t address, void *out, size_t bytes)
{
    const struct call_reading *reading = context;

    return tbd_session_read(reading->session, reading->position, address, out, bytes) == TBD_OK;
}

/* The call as a line.  Strings and data are read after the call, which does not change its inputs. */
static void put_call(struct tbd_session *session, const struct tbd_event *event, json_t *object)
{
    struct call_reading reading = { session, event->position };
    struct tbd_sys_call call = { .number = event->number };
    char line[1024];

    reading.position.offset++;
    memcpy(call.args, event->args, sizeof(call.args));
    tbd_syscall_print(&call, (int64_t)event->retval, read_for_call, &reading, line, sizeof(line));
    json_object_set_new(object, "call", tbd_output_text(line));
}

static void put_syscall(struct tbd_session *session, const struct tbd_event *event, json_t *object)
{
    const char *name = tbd_syscall_name(event->number);

    put_call(session, event, object);
    json_object_set_new(object, "syscall",
                        name != NULL ? json_string(name) : tbd_output_hex(event->number));
    put_args(event, object);
    json_object_set_new(object, "retval", tbd_output_hex(event->retval));
}

static void put_switch(const struct tbd_event *event, json_t *object)
{
    static const char *const reasons[] = { "", "waits", "time over", "yields", "ended" };

    json_object_set_new(object, "previous", json_integer((json_int_t)event->previous));
    if (event->reason < sizeof(reasons) / sizeof(reasons[0]))
        json_object_set_new(object, "reason", json_string(reasons[event->reason]));
}

void tbd_output_signal(const struct tbd_event *event, json_t *object)
{
    const char *code = tbd_signal_code_name(event->number, event->code);
    bool is_fatal = (event->flags & TBD_EVENT_FATAL) != 0;
    char text[32];

    json_object_set_new(object, "signal",
                        json_string(tbd_signal_name(event->number, text, sizeof(text))));
    snprintf(text, sizeof(text), "%" PRId32, event->code);
    if ((event->flags & TBD_EVENT_HAS_CODE) != 0)
        json_object_set_new(object, "reason", json_string(code == NULL ? text : code));
    if ((event->flags & TBD_EVENT_HAS_ADDR) != 0)
        json_object_set_new(object, "addr", tbd_output_hex(event->addr));
    if ((event->flags & TBD_EVENT_HAS_SENDER) != 0)
        json_object_set_new(object, "sender", json_integer((json_int_t)event->sender));
    json_object_set_new(object, "effect", json_string(is_fatal ? "ends the program" : "handled"));
}

static void put_own(struct tbd_session *session, const struct tbd_event *event, json_t *object)
{
    switch (event->type) {
    case TBD_EVENT_STORE:
    case TBD_EVENT_LOAD: put_access(session, event, object); break;
    case TBD_EVENT_FUNC_ENTER:
        if ((event->flags & TBD_EVENT_BARE) == 0)
            put_args(event, object);
        json_object_set_new(object, "from", tbd_output_hex(event->from));
        if ((event->flags & TBD_EVENT_BARE) == 0)
            json_object_set_new(object, "sp", tbd_output_hex(event->sp));
        break;
    case TBD_EVENT_FUNC_EXIT:
        json_object_set_new(object, "retval", tbd_output_hex(event->retval));
        json_object_set_new(object, "sp", tbd_output_hex(event->sp));
        break;
    case TBD_EVENT_SYSCALL: put_syscall(session, event, object); break;
    case TBD_EVENT_THREAD_SWITCH: put_switch(event, object); break;
    case TBD_EVENT_SIGNAL:
        tbd_output_signal(event, object);
        json_object_set_new(object, "from", tbd_output_hex(event->from));
        break;
    case TBD_EVENT_POSITION:
        if ((event->flags & TBD_EVENT_FATAL) != 0)
            tbd_output_signal(event, object);
        break;
    case TBD_EVENT_LINE:
    case TBD_EVENT_STATE:
    case TBD_EVENT_BLOCK_ENTRY:
    case TBD_EVENT_TYPE_COUNT: break;
    }
}

/* The block's code tells most places, without its window. */
static bool place_in_block(const struct tbd_session *session, const struct tbd_event *event,
                           struct tbd_place *out)
{
    struct tbd_block_insn insn;

    *out =
        (struct tbd_place){ .window = tbd_trace_window_of(session->trace, event->position.time) };
    if (event->block == 0 || out->window == UINT32_MAX ||
        !tbd_disas_insn(session->disas, event->block, event->position.offset, &insn) ||
        insn.pc != event->pc)
        return false;
    out->pc = insn.pc;
    out->code = insn.bytes;
    out->insn_bytes = insn.length;
    return true;
}

/* The place of the event's instruction.  A thread that waited in a system call is still at the call,
 * although the event comes later. */
static enum tbd_status place_of(struct tbd_session *session, const struct tbd_event *event,
                                struct tbd_place *out)
{
    struct tbd_position position = event->position;
    enum tbd_status status;

    if ((event->flags & TBD_EVENT_RESUMED) == 0) {
        if (place_in_block(session, event, out))
            return TBD_OK;
        status = tbd_session_place(session, position, out);
        if (out->thread != event->thread) /* that thread is elsewhere */
            out->insn_bytes = 0;
        return status;
    }
    position = (struct tbd_position){ .time = event->began };
    status = tbd_session_place(session, position, out);
    if (status != TBD_OK || out->block->def.insn_count == 0)
        return status;
    position.offset = out->block->def.insn_count ? out->block->def.insn_count - 1u : 0;
    return tbd_session_place(session, position, out);
}

/* For people the time of day, for scripts all of it, if it is wanted. */
static void put_wall(struct tbd_session *session, uint64_t time, json_t *object)
{
    struct tbd_wall_time wall;
    char text[TBD_WALL_TIME_BYTES];

    if (!session->shows_wall || !tbd_wall_time_at(session, time, &wall))
        return;
    json_object_set_new(object, "wall",
                        json_string(tbd_wall_time_text(&wall, session->json, text)));
    if (session->json)
        json_object_set_new(object, "wall_exact", json_boolean(wall.is_exact));
}

/* In code of inlined functions the innermost is the event's; `outer` is the one whose code it is. */
static void put_inlined(struct tbd_session *session, uint32_t window, const struct tbd_event *event,
                        json_t *object)
{
    const char *name;

    if (tbd_event_is_of_function(event->type))
        return;
    name = tbd_inlined_calls_innermost(session, window, event->pc);
    if (name == NULL)
        return;
    json_object_set(object, "outer", json_object_get(object, "function"));
    json_object_set(object, "outer_offset", json_object_get(object, "function_offset"));
    json_object_set_new(object, "function", tbd_output_text(name));
    json_object_del(object, "function_offset");
}

json_t *tbd_output_time(const struct tbd_session *session, uint64_t time)
{
    return session->trace == NULL || tbd_position_has_time(session, time)
               ? json_integer((json_int_t)time)
               : json_string(tbd_time_text(session, time).text);
}

json_t *tbd_output_event(struct tbd_session *session, const struct tbd_event *event)
{
    json_t *object = json_object();
    struct tbd_place place;
    char text[256] = "";

    json_object_set_new(object, "time", tbd_output_time(session, event->position.time));
    json_object_set_new(object, "offset", json_integer((json_int_t)event->position.offset));
    json_object_set_new(object, "thread", json_integer((json_int_t)event->thread));
    json_object_set_new(object, "type", json_string(tbd_event_type_name(event->type)));
    json_object_set_new(object, "pc", tbd_output_hex(event->pc));
    put_wall(session, event->position.time, object);
    if (place_of(session, event, &place) != TBD_OK)
        place.window = 0;
    else if (place.insn_bytes != 0)
        tbd_disas_text(session->disas, place.window, place.code, place.insn_bytes, place.pc, text,
                       sizeof(text));
    tbd_output_symbol(session, place.window, event->pc, object);
    put_inlined(session, place.window, event, object);
    json_object_set_new(object, "text", tbd_output_text(text));
    put_own(session, event, object);
    if ((event->flags & TBD_EVENT_RESUMED) != 0)
        json_object_set_new(object, "began", tbd_output_time(session, event->began));
    return object;
}

/* ---- text ---- */

static const char *get(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text == NULL ? "" : tbd_shown(text);
}

static void print_place(const json_t *object, FILE *out)
{
    const char *inlined = json_object_get(object, "outer") == NULL ? "" : get(object, "function");
    const char *function = get(object, *inlined == '\0' ? "function" : "outer");
    json_int_t offset = json_integer_value(
        json_object_get(object, *inlined == '\0' ? "function_offset" : "outer_offset"));
    struct tbd_source_line line = { .file = get(object, "file") };
    char text[256];

    fprintf(out, "%s", get(object, "pc"));
    if (*get(object, "module") == '\0')
        return;
    fprintf(out, "  %s", get(object, "module"));
    if (*function != '\0')
        fprintf(out, "!%s", function);
    if (offset != 0)
        fprintf(out, "+0x%" PRIx64, (uint64_t)offset);
    if (*inlined != '\0')
        fprintf(out, " (inlined %s)", inlined);
    line.line = (uint32_t)json_integer_value(json_object_get(object, "line"));
    fprintf(out, "%s", tbd_output_source_text(&line, text, sizeof(text)));
}

/* tbd_output_time() has made it. */
static void print_time(const json_t *object, const char *key, FILE *out)
{
    const json_t *time = json_object_get(object, key);

    if (json_is_string(time))
        fprintf(out, "%s", json_string_value(time));
    else
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(time));
}

static void print_args(const json_t *object, FILE *out)
{
    const json_t *args = json_object_get(object, "args");

    if (args == NULL)
        return;
    fprintf(out, " (");
    for (size_t i = 0; i < json_array_size(args); i++)
        fprintf(out, "%s%s", i == 0 ? "" : ", ", json_string_value(json_array_get(args, i)));
    fprintf(out, ")");
}

static void print_own(const json_t *object, FILE *out)
{
    static const char *const keys[] = { "signal", "previous", "reason", "addr",     "size",
                                        "oldval", "oldbytes", "newval", "newbytes", "retval",
                                        "sender", "effect",   "from",   "sp",       "result" };

    if (json_object_get(object, "call") != NULL) {
        fprintf(out, "  %s", get(object, "call"));
        if (json_object_get(object, "began") != NULL) {
            fprintf(out, "  (began at ");
            print_time(object, "began", out);
            fprintf(out, ")");
        }
        return;
    }
    if (json_object_get(object, "args") != NULL)
        fprintf(out, "  %s", get(object, "function"));
    print_args(object, out);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const json_t *value = json_object_get(object, keys[i]);

        if (json_is_integer(value))
            fprintf(out, "  %s %" JSON_INTEGER_FORMAT, keys[i], json_integer_value(value));
        else if (json_is_string(value))
            fprintf(out, "  %s %s", keys[i], json_string_value(value));
    }
}

static bool has_own(const json_t *object)
{
    return json_object_get(object, "addr") != NULL || json_object_get(object, "args") != NULL ||
           json_object_get(object, "retval") != NULL ||
           json_object_get(object, "previous") != NULL || json_object_get(object, "signal") != NULL;
}

void tbd_output_print_signal(const json_t *object, FILE *out)
{
    static const char *const keys[] = { "reason", "addr" };

    fprintf(out, "%s", get(object, "signal"));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (json_object_get(object, keys[i]) != NULL)
            fprintf(out, "  %s %s", keys[i], get(object, keys[i]));
    }
    if (json_object_get(object, "sender") != NULL)
        fprintf(out, "  sender %" JSON_INTEGER_FORMAT,
                json_integer_value(json_object_get(object, "sender")));
    if (json_object_get(object, "pc") != NULL) {
        fprintf(out, "  at ");
        print_place(object, out);
    }
    fputc('\n', out);
}

void tbd_output_print_place(const json_t *object, FILE *out)
{
    print_place(object, out);
    fprintf(out, "  %s\n", get(object, "text"));
}

void tbd_output_print_event(const struct tbd_session *session, const json_t *object, FILE *out)
{
    if (session->json) {
        print_json(object, out);
        return;
    }
    print_time(object, "time", out);
    fprintf(out, "+%" JSON_INTEGER_FORMAT "  %s  ",
            json_integer_value(json_object_get(object, "offset")), get(object, "type"));
    if (json_object_get(object, "wall") != NULL)
        fprintf(out, "%s  ", get(object, "wall"));
    if (session->trace == NULL ? session->shows_threads
                               : tbd_trace_thread_count(session->trace) > 1)
        fprintf(out, "thread %" JSON_INTEGER_FORMAT "  ",
                json_integer_value(json_object_get(object, "thread")));
    tbd_output_print_place(object, out);
    if (has_own(object)) {
        fprintf(out, "   ");
        print_own(object, out);
        fputc('\n', out);
    }
}
