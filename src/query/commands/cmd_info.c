// SPDX-License-Identifier: MIT
/* cmd_info.c - info: what the trace holds, in one look */
#include "query/commands/commands.h"
#include "query/commands/info_rings.h"
#include "query/output/output.h"
#include "query/session/cpu_features.h"
#include "query/session/signal_info.h"
#include "query/session/wall_time.h"

#include "base/safe_stream.h"
#include "format/reading/window_read.h"

#include <inttypes.h>
#include <string.h>

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

static json_t *levels_object(const struct level_sum sums[LEVELS])
{
    json_t *levels = json_array();

    for (unsigned i = TBD_LEVEL_BITS; i < LEVELS; i++) {
        json_t *level = json_object();

        tbd_output_count(level, "level", i);
        tbd_output_count(level, "windows", sums[i].windows);
        tbd_output_count(level, "toc_bytes", sums[i].toc);
        tbd_output_count(level, "trace_bytes", sums[i].trace);
        tbd_output_count(level, "block_bytes", sums[i].block);
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
        tbd_output_count(need, "blocks", features[i].blocks);
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
        json_array_append_new(args, tbd_output_text(info->argv[i]));
    for (uint64_t i = 0; i < info->note_count; i++)
        json_array_append_new(notes, tbd_output_text(tbd_trace_note(session->trace, i)));
    for (uint64_t i = 0; i < info->damage_count; i++)
        json_array_append_new(damage, tbd_output_text(tbd_trace_damage(session->trace, i)));
    json_object_set_new(object, "trace", tbd_output_text(info->path));
    json_object_set_new(object, "program", tbd_output_text(info->program));
    json_object_set_new(object, "args", args);
    json_object_set_new(object, "cwd", tbd_output_text(info->cwd));
    tbd_output_count(object, "pid", info->pid);
    tbd_output_count(object, "parent_pid", info->parent_pid);
    json_object_set_new(object, "forked", json_boolean(info->is_forked));
    json_object_set_new(object, "dump", json_boolean(info->is_dump));
    json_object_set_new(object, "finished", json_boolean(info->finished));
    json_object_set_new(object, "end",
                        tbd_output_text(tbd_command_end_text(info, end, sizeof(end))));
    if (info->finished && info->end.how == TBD_ENDED_SIGNAL)
        json_object_set_new(object, "end_signal", end_object(session));
    tbd_output_count(object, "end_value", info->finished ? info->end.value : 0);
    json_object_set_new(object, "end_text", tbd_output_text(info->end_text));
    if (find_times(session, first, last))
        json_object_set_new(object, "ended", json_string(last));
    json_object_set_new(object, "started", json_string(first));
    tbd_output_count(object, "blocks", info->blocks);
    tbd_output_count(object, "windows", tbd_trace_window_count(session->trace));
    tbd_output_count(object, "dropped_windows", dropped_windows(session));
    json_object_set_new(object, "window_blocks",
                        info->own_code ? json_null()
                                       : json_integer((json_int_t)info->window_blocks));
    tbd_output_count(object, "uncounted", count_uncounted(session));
    tbd_output_count(object, "distinct_blocks", tbd_trace_block_count(session->trace));
    tbd_output_count(object, "stores", info->stores);
    tbd_output_count(object, "calls", info->calls);
    tbd_output_count(object, "returns", info->returns);
    tbd_output_count(object, "syscalls", info->syscalls);
    tbd_output_count(object, "specials", info->specials);
    tbd_output_count(object, "signals", info->signals);
    tbd_output_count(object, "threads", tbd_trace_thread_count(session->trace));
    tbd_output_count(object, "switches", info->switches);
    tbd_output_count(object, "dropped", info->dropped);
    json_object_set_new(object, "needs", needs_array(session));
    json_object_set_new(object, "needing_windows", needing_array(session));
    json_object_set_new(object, "levels", levels_object(sums));
    json_object_set_new(object, "notes", notes);
    json_object_set_new(object, "damage", damage);
    if (info->is_dump)
        json_object_set_new(object, "rings", tbd_info_rings_object(session));
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

static void print_dump(struct tbd_session *session, FILE *out)
{
    fprintf(out,
            "events     none: a crash dump has the state at its end, %" PRIu32 " threads; "
            "`path` shows what ran last\n",
            tbd_trace_thread_count(session->trace));
    tbd_info_rings_print(session, out);
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
        print_dump(session, out);
    else
        print_extent(session, sums, out);
    for (uint64_t i = 0; i < info->note_count; i++)
        fprintf(out, "note       %s\n", tbd_shown(tbd_trace_note(session->trace, i)));
    for (uint64_t i = 0; i < info->damage_count; i++)
        fprintf(out, "damaged    %s\n", tbd_shown(tbd_trace_damage(session->trace, i)));
}

static void info_of_trace(struct tbd_session *session, FILE *out)
{
    struct level_sum sums[LEVELS];

    sum_levels(session, sums);
    if (session->json)
        tbd_output_line(info_object(session, sums), out);
    else
        print_info(session, sums, out);
}

enum tbd_exit tbd_command_info(struct tbd_command_run *run)
{
    if (run->argc != 0)
        return tbd_command_usage(
            run,
            "info takes no arguments; `tbdq help gdb` lists the equivalents of gdb's `info ...`");
    if (run->session->info->has_rings_only && run->session->json)
        tbd_output_line(tbd_info_killed_object(run->session), run->out);
    else if (run->session->info->has_rings_only)
        tbd_info_killed_print(run->session, run->out);
    else
        info_of_trace(run->session, run->out);
    return TBD_EXIT_FOUND;
}
