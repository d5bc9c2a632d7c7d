// SPDX-License-Identifier: MIT
/* cmd_trace.c - windows, modules, dump: what the trace holds */
#include "query/commands/commands.h"
#include "query/output/output.h"
#include "hooks/table/syscalls.h"

#include "base/safe_stream.h"
#include "format/reading/window_read.h"
#include "format/window/cursor.h"
#include "format/window/window_make.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- windows ---- */

static void print_window(const struct tbd_command_run *run, uint32_t index)
{
    const struct tbd_window_summary *window = tbd_trace_window(run->session->trace, index);
    json_t *object;

    if (!run->session->json) {
        fprintf(run->out,
                "%6" PRIu32 "  time %-12" PRIu64 " blocks %-9" PRIu64 " level %u%s%s  TOC %" PRIu64
                "  trace %" PRIu64 "  block %" PRIu64 "  stores %" PRIu64 "  calls %" PRIu64
                "  system calls %" PRIu64 "\n",
                index, window->first_time, window->blocks, window->level,
                window->complete ? "" : " incomplete", window->is_uncounted ? " uncounted" : "",
                window->toc_bytes, window->trace_bytes, window->block_bytes, window->stores,
                window->calls, window->syscalls);
        return;
    }
    object = json_object();
    tbd_output_count(object, "window", index);
    tbd_output_count(object, "time", window->first_time);
    tbd_output_count(object, "blocks", window->blocks);
    tbd_output_count(object, "level", window->level);
    json_object_set_new(object, "complete", json_boolean(window->complete));
    json_object_set_new(object, "uncounted", json_boolean(window->is_uncounted));
    tbd_output_count(object, "toc_bytes", window->toc_bytes);
    tbd_output_count(object, "trace_bytes", window->trace_bytes);
    tbd_output_count(object, "block_bytes", window->block_bytes);
    tbd_output_count(object, "stores", window->stores);
    tbd_output_count(object, "calls", window->calls);
    tbd_output_count(object, "returns", window->returns);
    tbd_output_count(object, "syscalls", window->syscalls);
    tbd_output_count(object, "specials", window->specials);
    tbd_output_count(object, "signals", window->signals);
    tbd_output_line(object, run->out);
}

/* A window number that exists. */
static bool parse_window(const struct tbd_command_run *run, const char *text, uint32_t *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 0);

    if (*text == '\0' || *text == '-' || *end != '\0' ||
        value >= tbd_trace_window_count(run->session->trace))
        return false;
    *out = (uint32_t)value;
    return true;
}

enum tbd_exit tbd_command_windows(struct tbd_command_run *run)
{
    uint32_t total = tbd_trace_window_count(run->session->trace);
    uint32_t first = 0;
    unsigned long count = total;
    char *end = NULL;

    if (run->argc > 2)
        return tbd_command_usage(run, "too many arguments");
    if (run->argc > 0 && !parse_window(run, run->argv[0], &first))
        return tbd_command_usage(run, "there is no such window");
    if (run->argc > 1)
        count = strtoul(run->argv[1], &end, 0);
    if (end != NULL && (*end != '\0' || run->argv[1][0] == '-'))
        return tbd_command_usage(run, "COUNT is a number");
    for (uint32_t i = first; i < total && i - first < count; i++)
        print_window(run, i);
    return TBD_EXIT_FOUND;
}

/* ---- modules ---- */

static void print_module(const struct tbd_command_run *run, const struct tbd_module *module)
{
    json_t *object;

    if (!run->session->json) {
        fprintf(run->out, "0x%012" PRIx64 "-0x%012" PRIx64 "  %-24s %s%s%s\n", module->start,
                module->end, tbd_shown(module->name), tbd_shown(module->path),
                *module->build_id == '\0' ? "" : "  build id ", tbd_shown(module->build_id));
        return;
    }
    object = json_object();
    json_object_set_new(object, "module", tbd_output_text(module->name));
    json_object_set_new(object, "path", tbd_output_text(module->path));
    json_object_set_new(object, "build_id", tbd_output_text(module->build_id));
    json_object_set_new(object, "start", tbd_output_hex(module->start));
    json_object_set_new(object, "end", tbd_output_hex(module->end));
    json_object_set_new(object, "bias", tbd_output_hex(module->bias));
    tbd_output_line(object, run->out);
}

enum tbd_exit tbd_command_modules(struct tbd_command_run *run)
{
    struct tbd_position position = tbd_session_current(run->session);
    uint32_t window = tbd_trace_window_of(run->session->trace, position.time);
    const struct tbd_module *modules;
    size_t count;
    enum tbd_status status;

    if (run->argc != 0)
        return tbd_command_usage(run, "modules takes no arguments");
    status = tbd_symbols_modules(run->session->symbols, window == UINT32_MAX ? 0 : window, &modules,
                                 &count);
    if (status != TBD_OK)
        return tbd_command_fail(run, status);
    for (size_t i = 0; i < count; i++)
        print_module(run, &modules[i]);
    return count == 0 ? TBD_EXIT_NOT_FOUND : TBD_EXIT_FOUND;
}

/* ---- dump ---- */

static void dump_op(const struct tbd_cursor *cursor, FILE *out)
{
    static const char *const names[] = { "?", "store", "call", "return", "load" };
    const struct tbd_op *op = cursor->op;
    const char *name = op->kind < sizeof(names) / sizeof(names[0]) ? names[op->kind] : "?";

    fprintf(out, "%10" PRIu32 "    %" PRIu64 "+%u %s", cursor->index, cursor->time, op->insn, name);
    if (op->kind == TBD_OP_STORE || op->kind == TBD_OP_LOAD)
        fprintf(out, " 0x%" PRIx64 " %" PRIu32, tbd_cursor_address(cursor), op->size);
    for (uint32_t i = 0; op->kind == TBD_OP_STORE && i < op->size && i < 64; i++)
        fprintf(out, "%s%02x", i == 0 ? " old " : "", cursor->record[op->data + i]);
    fputc('\n', out);
}

static void dump_writes(uint32_t kind, const uint8_t *payload, uint32_t bytes, FILE *out)
{
    struct tbd_write_cursor writes;
    struct tbd_write_view view;

    tbd_writes_first(kind, payload, bytes, &writes);
    while (tbd_writes_next(&writes, &view))
        fprintf(out, "                 wrote 0x%" PRIx64 " %" PRIu32 "%s\n", view.address,
                view.bytes, view.old_bytes == NULL ? " (old bytes not known)" : "");
}

static void dump_call(const struct tbd_msg_syscall *message, FILE *out)
{
    struct tbd_sys_call call = { .number = message->number };
    char line[512];

    memcpy(call.args, message->args, sizeof(call.args));
    tbd_syscall_print(&call, (int64_t)message->result, NULL, NULL, line, sizeof(line));
    fprintf(out, ": %s", tbd_shown(line));
}

static void dump_thread(const struct tbd_cursor *cursor, FILE *out)
{
    struct tbd_msg_thread message = tbd_thread_message(cursor->message);

    if (message.event == TBD_THREAD_START)
        fprintf(out, ": thread %" PRIu32 " made by %" PRIu32, message.thread, message.from);
    else if (message.event == TBD_THREAD_END)
        fprintf(out, ": thread %" PRIu32 " ended", message.thread);
    else
        fprintf(out, ": control to thread %" PRIu32 " from %" PRIu32, message.thread, message.from);
    if (message.event == TBD_THREAD_SWITCH && message.block_time != TBD_NO_BLOCK_TIME)
        fprintf(out, ", in the call of block %" PRIu64, message.block_time);
}

static void dump_message(const struct tbd_cursor *cursor, FILE *out)
{
    struct tbd_message message;
    const uint8_t *payload = (const uint8_t *)cursor->message + sizeof(message);
    struct tbd_msg_syscall call;
    struct tbd_msg_special special;

    memcpy(&message, cursor->message, sizeof(message));
    fprintf(out, "%10" PRIu32 "  message %" PRIu32 ", %" PRIu32 " bytes", cursor->index,
            message.kind, message.bytes);
    if (message.kind == TBD_MSG_SYSCALL) {
        memcpy(&call, payload, sizeof(call));
        dump_call(&call, out);
    } else if (message.kind == TBD_MSG_SPECIAL || message.kind == TBD_MSG_UNLOGGED) {
        memcpy(&special, payload, sizeof(special));
        fprintf(out, ": special instruction %" PRIu32, special.special);
    } else if (message.kind == TBD_MSG_THREAD) {
        dump_thread(cursor, out);
    }
    fputc('\n', out);
    dump_writes(message.kind, payload, message.bytes, out);
}

static void dump_block(struct tbd_command_run *run, const struct tbd_cursor *cursor)
{
    char name[256];

    tbd_symbols_format(run->session->symbols, cursor->window->index, cursor->block->def.start, name,
                       sizeof(name));
    fprintf(run->out, "%10" PRIu32 "  %" PRIu64 " block %" PRIu32 " 0x%" PRIx64 " %s\n",
            cursor->index, cursor->time, cursor->id, cursor->block->def.start, tbd_shown(name));
}

static void dump_window(struct tbd_command_run *run, const struct tbd_window *window)
{
    struct tbd_cursor cursor;

    tbd_cursor_first(window, &cursor);
    for (; cursor.kind != TBD_AT_END; tbd_cursor_next(&cursor)) {
        if (cursor.kind == TBD_AT_BLOCK)
            dump_block(run, &cursor);
        else if (cursor.kind == TBD_AT_OP)
            dump_op(&cursor, run->out);
        else
            dump_message(&cursor, run->out);
    }
}

enum tbd_exit tbd_command_dump(struct tbd_command_run *run)
{
    struct tbd_session_slice slice = { 0 };
    enum tbd_status status = TBD_OK;

    if (run->argc != 1 || !parse_window(run, run->argv[0], &slice.window))
        return tbd_command_usage(run, "dump takes the number of a window");
    slice.last = tbd_session_slices(run->session, slice.window, false) - 1;
    for (; slice.slice <= slice.last && status == TBD_OK; slice.slice++) {
        const struct tbd_window *window;

        status = tbd_session_slice(run->session, &slice, &window);
        if (status == TBD_OK)
            dump_window(run, window);
    }
    return status == TBD_OK ? TBD_EXIT_FOUND : tbd_command_fail(run, status);
}
