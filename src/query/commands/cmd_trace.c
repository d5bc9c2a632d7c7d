// SPDX-License-Identifier: MIT
/* cmd_trace.c - info, windows, modules, dump: what the trace holds */
#include "query/commands/commands.h"
#include "query/output/output.h"
#include "query/session/cpu_features.h"
#include "query/session/signal_info.h"
#include "query/session/wall_time.h"
#include "hooks/table/syscalls.h"

#include "base/safe_stream.h"
#include "format/reading/window_read.h"
#include "format/window/cursor.h"
#include "format/window/window_make.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- info ---- */

const char *tbd_command_end_text(const struct tbd_trace_info *info, char *out, size_t bytes)
{
    static const char *const words[] = {
        [TBD_ENDED_EXIT] = "exit",         [TBD_ENDED_SIGNAL] = "signal", [TBD_ENDED_EXEC] = "exec",
        [TBD_ENDED_DETACHED] = "detached", [TBD_ENDED_KILLED] = "killed", [TBD_ENDED_STOP] = "stop",
    };
    uint32_t how = info->end.how;

    if (!info->finished)
        return "recording";
    if (how == 0 || how >= sizeof(words) / sizeof(words[0]))
        return "unknown";
    if (how == TBD_ENDED_EXIT || how == TBD_ENDED_SIGNAL)
        snprintf(out, bytes, "%s %" PRIu32, words[how], info->end.value);
    else
        snprintf(out, bytes, "%s", words[how]);
    return out;
}

/* The signal that ended the program, as an object with the place of its instruction; NULL if none
 * did.  Only the last window's summary is read. */
static json_t *end_object(struct tbd_session *session)
{
    struct tbd_event event = { .type = TBD_EVENT_SIGNAL };
    uint32_t count = tbd_trace_window_count(session->trace);
    struct tbd_window *last = NULL;
    struct tbd_error why;
    json_t *object;

    if (!tbd_signal_take_fatal(&event, session->info))
        return NULL;
    object = json_object();
    tbd_output_signal(&event, object);
    if (count != 0 && tbd_window_load_summaries(session->trace, count - 1, &last, &why) == TBD_OK &&
        last->complete) {
        json_object_set_new(object, "thread", json_integer((json_int_t)last->end_regs.thread));
        json_object_set_new(object, "pc", tbd_output_hex(last->end_regs.rip));
        tbd_output_symbol(session, count - 1, last->end_regs.rip, object);
    }
    tbd_window_free(last);
    return object;
}

static void print_end(struct tbd_session *session, FILE *out)
{
    json_t *object = end_object(session);

    if (object != NULL) {
        fprintf(out, "           ");
        tbd_output_print_signal(object, out);
    }
    json_decref(object);
}

char *tbd_command_arguments(const struct tbd_trace_info *info)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    for (int i = 0; i < info->argc; i++)
        fprintf(out, "%s%s", i == 0 ? "" : " ", info->argv[i]);
    fclose(out);
    return text;
}

#define LEVELS (TBD_LEVEL_EVENTS + 1)

struct level_sum {
    uint32_t windows;
    uint64_t toc, trace, block;
};

static uint32_t count_uncounted(const struct tbd_session *session)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < tbd_trace_window_count(session->trace); i++)
        count += tbd_trace_window(session->trace, i)->is_uncounted;
    return count;
}

static void sum_levels(const struct tbd_session *session, struct level_sum sums[LEVELS])
{
    memset(sums, 0, LEVELS * sizeof(sums[0]));
    for (uint32_t i = 0; i < tbd_trace_window_count(session->trace); i++) {
        const struct tbd_window_summary *window = tbd_trace_window(session->trace, i);
        struct level_sum *sum = &sums[window->level];

        sum->windows++;
        sum->toc += window->toc_bytes;
        sum->trace += window->trace_bytes;
        sum->block += window->block_bytes;
    }
}

static void put_count(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *safe_string(const char *text)
{
    return text == NULL ? json_null() : tbd_output_text(text);
}

static json_t *levels_object(const struct level_sum sums[LEVELS])
{
    json_t *levels = json_array();

    for (unsigned i = TBD_LEVEL_BITS; i < LEVELS; i++) {
        json_t *level = json_object();

        put_count(level, "level", i);
        put_count(level, "windows", sums[i].windows);
        put_count(level, "toc_bytes", sums[i].toc);
        put_count(level, "trace_bytes", sums[i].trace);
        put_count(level, "block_bytes", sums[i].block);
        json_array_append_new(levels, level);
    }
    return levels;
}

static json_t *needs_array(const struct tbd_session *session)
{
    struct tbd_cpu_feature features[TBD_CPU_FEATURES_MAX];
    size_t count = tbd_cpu_features(session->trace, features);
    json_t *needs = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *need = json_object();

        json_object_set_new(need, "feature", json_string(features[i].name));
        put_count(need, "blocks", features[i].blocks);
        json_array_append_new(needs, need);
    }
    return needs;
}

/* On which processors can which windows be replayed? */
static void print_needing(struct tbd_session *session, FILE *out)
{
    struct tbd_left_out windows = { .count = 0 };
    bool perhaps;

    tbd_cpu_feature_windows(session, &windows, &perhaps);
    fprintf(out, "           more than x86-64-v3 is %s in %zu of %" PRIu32 " windows",
            perhaps ? "perhaps needed" : "needed", windows.count,
            tbd_trace_window_count(session->trace));
    if (windows.count != 0 && windows.count != tbd_trace_window_count(session->trace)) {
        fprintf(out, ": ");
        tbd_left_out_print(&windows, out);
    }
    fputc('\n', out);
    tbd_left_out_clear(&windows);
}

static json_t *needing_array(struct tbd_session *session)
{
    struct tbd_left_out windows = { .count = 0 };
    json_t *array = json_array();
    bool perhaps;

    tbd_cpu_feature_windows(session, &windows, &perhaps);
    for (size_t i = 0; i < windows.count; i++)
        json_array_append_new(array, json_integer(windows.windows[i]));
    tbd_left_out_clear(&windows);
    return array;
}

static void print_needs(struct tbd_session *session, FILE *out)
{
    struct tbd_cpu_feature features[TBD_CPU_FEATURES_MAX];
    size_t count = tbd_cpu_features(session->trace, features);

    fprintf(out, "needs      x86-64-v3");
    for (size_t i = 0; i < count; i++)
        fprintf(out, ", %s (%" PRIu32 " block%s)", features[i].name, features[i].blocks,
                features[i].blocks == 1 ? "" : "s");
    fputc('\n', out);
    if (count != 0)
        print_needing(session, out);
}

/* When the recording began and ended; false: nobody knows when it ended. */
static bool find_times(struct tbd_session *session, char *start, char *end)
{
    struct tbd_wall_time first = { session->info->realtime_ns, true }, last;

    tbd_wall_time_text(&first, true, start);
    return tbd_wall_time_at(session, session->info->blocks, &last) &&
           tbd_wall_time_text(&last, true, end) != NULL;
}

/* Whose numbers are not among those of the windows that are left. */
static uint32_t dropped_windows(const struct tbd_session *session)
{
    return tbd_trace_window_count(session->trace) ? tbd_trace_window(session->trace, 0)->number : 0;
}

static json_t *info_object(struct tbd_session *session, const struct level_sum sums[LEVELS])
{
    const struct tbd_trace_info *info = session->info;
    json_t *object = json_object();
    json_t *args = json_array();
    json_t *notes = json_array();
    json_t *damage = json_array();
    char end[64], first[TBD_WALL_TIME_BYTES], last[TBD_WALL_TIME_BYTES];

    for (int i = 0; i < info->argc; i++)
        json_array_append_new(args, safe_string(info->argv[i]));
    for (uint64_t i = 0; i < info->note_count; i++)
        json_array_append_new(notes, safe_string(tbd_trace_note(session->trace, i)));
    for (uint64_t i = 0; i < info->damage_count; i++)
        json_array_append_new(damage, safe_string(tbd_trace_damage(session->trace, i)));
    json_object_set_new(object, "trace", safe_string(info->path));
    json_object_set_new(object, "program", safe_string(info->program));
    json_object_set_new(object, "args", args);
    json_object_set_new(object, "cwd", safe_string(info->cwd));
    put_count(object, "pid", info->pid);
    put_count(object, "parent_pid", info->parent_pid);
    json_object_set_new(object, "forked", json_boolean(info->is_forked));
    json_object_set_new(object, "dump", json_boolean(info->is_dump));
    json_object_set_new(object, "finished", json_boolean(info->finished));
    json_object_set_new(object, "end",
                        tbd_output_text(tbd_command_end_text(info, end, sizeof(end))));
    if (info->finished && info->end.how == TBD_ENDED_SIGNAL)
        json_object_set_new(object, "end_signal", end_object(session));
    put_count(object, "end_value", info->finished ? info->end.value : 0);
    json_object_set_new(object, "end_text", safe_string(info->end_text));
    if (find_times(session, first, last))
        json_object_set_new(object, "ended", json_string(last));
    json_object_set_new(object, "started", json_string(first));
    put_count(object, "blocks", info->blocks);
    put_count(object, "windows", tbd_trace_window_count(session->trace));
    put_count(object, "dropped_windows", dropped_windows(session));
    json_object_set_new(object, "window_blocks",
                        info->own_code ? json_null()
                                       : json_integer((json_int_t)info->window_blocks));
    put_count(object, "uncounted", count_uncounted(session));
    put_count(object, "distinct_blocks", tbd_trace_block_count(session->trace));
    put_count(object, "stores", info->stores);
    put_count(object, "calls", info->calls);
    put_count(object, "returns", info->returns);
    put_count(object, "syscalls", info->syscalls);
    put_count(object, "specials", info->specials);
    put_count(object, "signals", info->signals);
    put_count(object, "threads", tbd_trace_thread_count(session->trace));
    put_count(object, "switches", info->switches);
    put_count(object, "dropped", info->dropped);
    json_object_set_new(object, "needs", needs_array(session));
    json_object_set_new(object, "needing_windows", needing_array(session));
    json_object_set_new(object, "levels", levels_object(sums));
    json_object_set_new(object, "notes", notes);
    json_object_set_new(object, "damage", damage);
    return object;
}

static void print_extent(struct tbd_session *session, const struct level_sum sums[LEVELS],
                         FILE *out)
{
    const struct tbd_trace_info *info = session->info;
    uint32_t uncounted = count_uncounted(session), dropped = dropped_windows(session);

    fprintf(out, "blocks     %" PRIu64 " entered, %" PRIu32 " different\n", info->blocks,
            tbd_trace_block_count(session->trace));
    fprintf(out, "windows    %" PRIu32 " of ", tbd_trace_window_count(session->trace));
    if (info->own_code)
        fprintf(out, "native play, by processor time");
    else
        fprintf(out, "%" PRIu64 " blocks", info->window_blocks);
    if (dropped != 0)
        fprintf(out, "; %" PRIu32 " before them were dropped (budget or keep)", dropped);
    fprintf(out, "\n");
    fprintf(out,
            "events     %" PRIu64 " stores, %" PRIu64 " calls, %" PRIu64 " returns, %" PRIu64
            " system calls, %" PRIu64 " special instructions, %" PRIu64 " signals\n",
            info->stores, info->calls, info->returns, info->syscalls, info->specials,
            info->signals);
    if (uncounted != 0)
        fprintf(out,
                "uncounted  %" PRIu32
                " windows, whose stores, calls and returns are not among these: "
                "`raise` counts them\n",
                uncounted);
    if (tbd_trace_thread_count(session->trace) > 1)
        fprintf(out, "threads    %" PRIu32 ", %" PRIu64 " switches\n",
                tbd_trace_thread_count(session->trace), info->switches);
    fprintf(out, "dropped    %" PRIu64 "\n", info->dropped);
    print_needs(session, out);
    for (unsigned i = TBD_LEVEL_BITS; i < LEVELS; i++) {
        if (sums[i].windows != 0)
            fprintf(out,
                    "level %u    %" PRIu32 " windows: TOC %" PRIu64 ", trace %" PRIu64
                    ", block %" PRIu64 " bytes\n",
                    i, sums[i].windows, sums[i].toc, sums[i].trace, sums[i].block);
    }
}

static void print_info(struct tbd_session *session, const struct level_sum sums[LEVELS], FILE *out)
{
    const struct tbd_trace_info *info = session->info;
    char end[64], first[TBD_WALL_TIME_BYTES], last[TBD_WALL_TIME_BYTES];

    fprintf(out, "trace      %s\nprogram    %s\narguments ", tbd_shown(info->path),
            tbd_shown(info->program));
    for (int i = 0; i < info->argc; i++)
        fprintf(out, " %s", tbd_shown(info->argv[i]));
    fprintf(out, "\ndirectory  %s\nprocess    %" PRIu32 ", %s %" PRIu32 "\nend        %s%s%s\n",
            tbd_shown(info->cwd), info->pid, info->is_forked ? "forked by" : "started by",
            info->parent_pid, tbd_command_end_text(info, end, sizeof(end)),
            info->end_text != NULL && *info->end_text != '\0' ? ": " : "",
            tbd_shown(info->end_text != NULL ? info->end_text : ""));
    print_end(session, out);
    if (find_times(session, first, last))
        fprintf(out, "time       %s to %s\n", first, last);
    else
        fprintf(out, "time       %s; the trace does not say when its events happened\n", first);
    if (info->is_dump)
        fprintf(out,
                "events     none: a crash dump has the state at its end, %" PRIu32 " threads; "
                "`path` shows what ran last\n",
                tbd_trace_thread_count(session->trace));
    else
        print_extent(session, sums, out);
    for (uint64_t i = 0; i < info->note_count; i++)
        fprintf(out, "note       %s\n", tbd_shown(tbd_trace_note(session->trace, i)));
    for (uint64_t i = 0; i < info->damage_count; i++)
        fprintf(out, "damaged    %s\n", tbd_shown(tbd_trace_damage(session->trace, i)));
}

enum tbd_exit tbd_command_info(struct tbd_command_run *run)
{
    struct level_sum sums[LEVELS];

    if (run->argc != 0)
        return tbd_command_usage(
            run,
            "info takes no arguments; `tbdq help gdb` lists the equivalents of gdb's `info ...`");
    sum_levels(run->session, sums);
    if (run->session->json)
        tbd_output_line(info_object(run->session, sums), run->out);
    else
        print_info(run->session, sums, run->out);
    return TBD_EXIT_FOUND;
}

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
    put_count(object, "window", index);
    put_count(object, "time", window->first_time);
    put_count(object, "blocks", window->blocks);
    put_count(object, "level", window->level);
    json_object_set_new(object, "complete", json_boolean(window->complete));
    json_object_set_new(object, "uncounted", json_boolean(window->is_uncounted));
    put_count(object, "toc_bytes", window->toc_bytes);
    put_count(object, "trace_bytes", window->trace_bytes);
    put_count(object, "block_bytes", window->block_bytes);
    put_count(object, "stores", window->stores);
    put_count(object, "calls", window->calls);
    put_count(object, "returns", window->returns);
    put_count(object, "syscalls", window->syscalls);
    put_count(object, "specials", window->specials);
    put_count(object, "signals", window->signals);
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
    json_object_set_new(object, "module", safe_string(module->name));
    json_object_set_new(object, "path", safe_string(module->path));
    json_object_set_new(object, "build_id", safe_string(module->build_id));
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
    } else if (message.kind == TBD_MSG_SPECIAL) {
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
