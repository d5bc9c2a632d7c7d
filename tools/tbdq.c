// SPDX-License-Identifier: MIT
/* tbdq.c - asks a trace: options, then one command of the table in query/commands/command_table.c, or a prompt
 *
 * Exit status: 0 found, 1 not found or assertion failed, 2 wrong usage or question, 3 the trace is
 * damaged or cannot be replayed, or the answer may be incomplete for that reason, 4 the system
 * refused something. */
#include "query/prompt/command_line.h"
#include "query/commands/bookmarks.h"
#include "query/page/page_command.h"
#include "query/prompt/complete.h"
#include "query/prompt/part_answer.h"
#include "query/prompt/prompt.h"
#include "query/condition/question.h"
#include "query/prompt/script.h"
#include "query/dap/dap_server.h"
#include "query/output/shard.h"
#include "query/remote/remote_commands.h"
#include "query/session/wall_time.h"
#include "query/text/other_places.h"
#include "query/text/progress.h"
#include "query/text/user_cache.h"
#include "query/triggers/late_dump.h"

#include "base/cut_file.h"
#include "base/processors.h"
#include "base/safe_stream.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_BYTES 256

struct options {
    const char *trace;
    const char *at;
    const char *script; /* "-": standard input */
    const char *thread;
    const char *since, *until; /* NULL: not given */
    const char *complete;      /* a line for which a shell wants the completions */
    const char *shard;         /* K/N; NULL: the whole run */
    bool json, csv, quiet, att, explain, no_cache, wall;
    unsigned workers;
};

static void print_usage(FILE *out)
{
    fprintf(
        out,
        "usage: tbdq [-t TRACE] [--at POS] [--json] [COMMAND [ARGUMENT...]]\n\n"
        "  -t, --trace TRACE   trace directory (default: the latest one)\n"
        "      --at POS        position to ask about: first, last, TIME[+K] or @wN+BLOCKS[+K];\n"
        "                      the remembered one stays\n"
        "      --thread N      thread to ask about (default: the one that has control there)\n"
        "      --since TIME, --until TIME  only events from then on, until then: 09:35:53.5,\n"
        "                      2026-11-23T09:35, @1795426553, +1.5s (after the start)\n"
        "      --shard K/N     ask only the K-th of N parts of the run, for `unite`\n"
        "      --wall          events show when they happened; ~ if that is interpolated\n"
        "      --json          one JSON object per line\n"
        "      --csv           rows as comma-separated values\n"
        "  -f, --file FILE     carry out the commands in FILE: see `tbdq help scripts`\n"
        "  -j, --workers N     windows replayed at once (default: number of processors)\n"
        "      --att           AT&T syntax\n"
        "      --source-map FROM=TO  sources below FROM are looked for below TO; may be repeated\n"
        "      --explain       say how a search went: windows skipped, replayed, seconds\n"
        "      --no-cache      neither use nor keep what earlier questions had replayed or found\n"
        "  -q, --quiet         no progress line\n"
        "      --help, --version\n\ncommands:\n");
    tbd_line_list(out);
    fprintf(out,
            "\nWithout a command, on a terminal: a prompt; else a script on standard input.\n"
            "exit status: 0 found, 1 not found, 2 wrong usage, 3 trace (also: the answer may be\n"
            "incomplete, as windows had to be left out), 4 system\n");
}

/* "-N" or "-N+K": a position of a crash dump's rings. */
static bool take_before(struct tbd_session *session, const char *at)
{
    struct tbd_session_before before = { 0 };
    char *end;

    if (!session->info->is_dump || at[0] != '-' || at[1] < '0' || at[1] > '9')
        return false;
    before.back = strtoull(at + 1, &end, 10);
    if (*end == '+' && end[1] >= '0' && end[1] <= '9')
        before.insn = (uint32_t)strtoul(end + 1, &end, 10);
    if (*end != '\0' || before.back == 0)
        return false;
    session->has_at = true;
    session->before = before;
    return true;
}

/* --at: first, last or TIME[+K]; in a crash dump -N[+K], too. */
static int set_at(struct tbd_command_run *run, const char *at)
{
    struct tbd_query_error error = { .status = TBD_NOMEM };
    struct tbd_question question = { 0 };
    struct tbd_command_run shown = *run;
    char *text = NULL;
    enum tbd_status status;

    if (take_before(run->session, at))
        return TBD_EXIT_FOUND;
    status = tbd_bookmarks_expand(run->session, at, &text);
    if (status == TBD_NOTIME)
        return (int)tbd_command_fail(run, status);
    if (status == TBD_OK)
        status = tbd_question_parse(text, 0, &question, &error);
    free(text);

    shown.text = at;
    if (status == TBD_OK && question.is_search) {
        error = (struct tbd_query_error){ .status = TBD_USAGE,
                                          .length = strlen(at),
                                          .message = "--at takes a position" };
        status = TBD_USAGE;
    }
    if (status == TBD_OK) {
        run->session->at = tbd_command_start(run->session, &question);
        run->session->has_at = true;
    }
    tbd_question_free(&question);
    return status == TBD_OK ? TBD_EXIT_FOUND : (int)tbd_command_wrong(&shown, &error);
}

static int set_thread(struct tbd_session *session, const char *text)
{
    if (!tbd_command_find_thread(session, text, &session->thread)) {
        fprintf(stderr,
                "tbdq: --thread takes the number of a thread, not '%s'\n"
                "hint: `tbdq threads` lists them\n",
                text);
        return TBD_EXIT_USAGE;
    }
    session->has_thread = true;
    return TBD_EXIT_FOUND;
}

/* The block entry at the time that an option says; NULL: the option was not given. */
static int find_moment(struct tbd_session *session, const char *option, const char *text,
                       uint64_t more, uint64_t *out)
{
    uint64_t ns;

    if (text == NULL)
        return TBD_EXIT_FOUND;
    if (!tbd_wall_time_read(session, text, &ns)) {
        fprintf(stderr,
                "tbdq: %s takes a time, not '%s'\n"
                "hint: for example 09:35:53.5, 2026-11-23T09:35:53, @1795426553 or +1.5s\n",
                option, text);
        return TBD_EXIT_USAGE;
    }
    if (tbd_wall_time_find(session, ns + more, out))
        return TBD_EXIT_FOUND;
    fprintf(stderr, "tbdq: %s: the trace does not say when its events happened\n", option);
    return TBD_EXIT_TRACE;
}

static int set_span(struct tbd_session *session, const struct options *options)
{
    int result = find_moment(session, "--since", options->since, 0, &session->span.since);

    if (result == TBD_EXIT_FOUND)
        result = find_moment(session, "--until", options->until, 1, &session->span.until);
    session->span.has_since = options->since != NULL;
    session->span.has_until = options->until != NULL;
    return result;
}

/* The times of a shard's windows; a shard of a trace with fewer windows may have none. */
static void narrow_to_shard(struct tbd_session *session)
{
    uint64_t windows = tbd_trace_window_count(session->trace), count = session->shard.count;
    uint64_t first = windows * (session->shard.number - 1) / count;
    uint64_t end = windows * session->shard.number / count;
    const struct tbd_window_summary *at = tbd_trace_window(session->trace, (uint32_t)first);
    const struct tbd_window_summary *after = tbd_trace_window(session->trace, (uint32_t)end);

    session->shard.given = session->span;
    session->shard.from = first < windows && at != NULL ? at->first_time : session->info->blocks;
    session->shard.to = end < windows && after != NULL ? after->first_time : session->info->blocks;
    if (session->shard.number != 1 &&
        (!session->span.has_since || session->span.since < session->shard.from))
        session->span.since = session->shard.from;
    if (session->shard.number != count &&
        (!session->span.has_until || session->span.until > session->shard.to))
        session->span.until = session->shard.to;
    session->span.has_since |= session->shard.number != 1;
    session->span.has_until |= session->shard.number != count;
}

static int set_shard(struct tbd_session *session, const char *text)
{
    char *end;
    unsigned long number, count;

    if (text == NULL)
        return TBD_EXIT_FOUND;
    number = strtoul(text, &end, 10);
    count = *end == '/' ? strtoul(end + 1, &end, 10) : 0;
    if (text[strspn(text, "0123456789/")] != '\0' || *end != '\0' || number < 1 || number > count ||
        count > TBD_SHARDS_MAX) {
        fprintf(stderr,
                "tbdq: --shard takes K/N, not '%s'\n"
                "hint: `--shard 1/4` to `--shard 4/4` ask a quarter of the run each\n",
                text);
        return TBD_EXIT_USAGE;
    }
    session->shard.number = (uint32_t)number;
    session->shard.count = (uint32_t)count;
    narrow_to_shard(session);
    return TBD_EXIT_FOUND;
}

static void print_owner(const struct tbd_session *session)
{
    if (session->info->is_foreign)
        fprintf(stderr, "tbdq: note: the trace belongs to another user (%" PRIu32 ")\n",
                session->info->owner);
}

/* Questions are still answered, from the parts that can be read. */
static void print_damage(const struct tbd_session *session)
{
    uint64_t count = session->info->damage_count;

    if (count != 0)
        fprintf(stderr, "tbdq: note: the trace is damaged: %s%s\n",
                tbd_shown(tbd_trace_damage(session->trace, 0)),
                count > 1 ? "; `tbdq info` has the whole list" : "");
}

static void print_symbol_notes(const struct tbd_session *session)
{
    const char *note;

    for (size_t i = 0; (note = tbd_symbols_note(session->symbols, i)) != NULL; i++)
        fprintf(stderr, "tbdq: note: %s\n", tbd_shown(note));
    for (size_t i = 0; (note = tbd_places_note(i)) != NULL; i++)
        fprintf(stderr, "tbdq: note: %s\n", tbd_shown(note));
}

static void print_forgotten(const struct tbd_session *session)
{
    if (session->part == NULL && /* else it is not yet written */
        (session->unwritten.has_position || session->unwritten.has_frame))
        fprintf(stderr,
                "tbdq: note: the trace's folder cannot be written, so this %s is forgotten\n"
                "hint: --at says a position; the prompt and scripts remember one until they end\n",
                session->unwritten.has_position ? "position" : "frame");
}

/* A shell's Tab key: one continuation a line. */
static int print_completions(struct tbd_session *session, FILE *out, const char *line)
{
    struct tbd_completions found;

    tbd_complete(session, line, strlen(line), &found);
    for (size_t i = 0; i < found.count; i++)
        fprintf(out, "%s\n", found.words[i]);
    tbd_completions_free(&found);
    return TBD_EXIT_FOUND;
}

static int run_script(struct tbd_session *session, const struct tbd_line_options *line,
                      const char *path)
{
    bool is_input = strcmp(path, "-") == 0;
    FILE *file = is_input ? stdin : fopen(path, "re");
    int result;

    if (file == NULL) {
        fprintf(stderr, "tbdq: cannot read %s\n", path);
        return TBD_EXIT_SYSTEM;
    }
    result = (int)tbd_script_run(session, line, file, is_input ? "standard input" : path);
    if (!is_input)
        fclose(file);
    return result;
}

static int answer(struct tbd_session *session, const struct options *options, FILE *out,
                  size_t count, char **words)
{
    struct tbd_line_options line = { .out = out,
                                     .quiet = options->quiet,
                                     .explain = options->explain };
    char nothing[] = "";
    char *none[] = { nothing };
    struct tbd_command_run run = { .session = session, .text = "", .argv = none, .out = out };
    int result = options->at == NULL ? TBD_EXIT_FOUND : set_at(&run, options->at);
    enum tbd_exit served;

    if (result == TBD_EXIT_FOUND && options->thread != NULL)
        result = set_thread(session, options->thread);
    if (result == TBD_EXIT_FOUND)
        result = set_span(session, options);
    if (result == TBD_EXIT_FOUND)
        result = set_shard(session, options->shard);
    if (result != TBD_EXIT_FOUND)
        return result;
    if (options->shard != NULL && (options->script != NULL || count == 0)) {
        fprintf(stderr, "tbdq: --shard is for one question\n");
        return TBD_EXIT_USAGE;
    }
    if (options->script != NULL)
        return run_script(session, &line, options->script);
    if (count == 0)
        return (int)tbd_prompt(session, &line);
    if (options->shard == NULL && tbd_page_command(session, count, words, out, &served))
        return (int)served;
    if (options->shard == NULL && tbd_remote_command(session, count, words, &served))
        return (int)served;
    result = (int)(count == 1 ? tbd_line_run(session, &line, words[0])
                              : tbd_words_run(session, &line, count, words));
    tbd_shard_end(session, result, out);
    print_forgotten(session);
    return result;
}

/* For a user who has no trace yet, or named none: where traces are looked for. */
static void print_traces_hint(void)
{
    char root[4096];

    if (tbd_trace_root(root, sizeof(root)) == TBD_OK)
        fprintf(stderr,
                "hint: `tbd record -- PROGRAM` makes one in %s; -t takes a name in there, or a "
                "folder; TBD_DIR sets another place\n",
                root);
}

/* The command of the line, if it is about no trace in particular; NULL: another one, or none. */
static const struct tbd_command *command_without_trace(size_t count, char **words)
{
    const struct tbd_command *command = count == 0 ? NULL : tbd_command_find(words[0]);

    return command != NULL && command->needs_no_trace ? command : NULL;
}

struct part_context {
    const struct options *options;
    size_t count;
    char **words;
};

static int answer_part(void *context, struct tbd_session *session, FILE *out)
{
    const struct part_context *part = context;
    int result;

    tbd_places_set_recorded(session->info->realtime_ns);
    result = answer(session, part->options, out, part->count, part->words);
    print_symbol_notes(session);
    return result;
}

/* With one of these, all windows are needed. */
static bool may_need_some(const struct options *options)
{
    return options->script == NULL && options->shard == NULL && options->since == NULL &&
           options->until == NULL && options->complete == NULL && !options->explain;
}

/* Native play: does the question need only some of the windows, while the others are not counted?  False: nothing was done. */
static bool ask_part(const struct tbd_session *session, const struct options *options, FILE *out,
                     size_t count, char **words, int *out_result)
{
    struct part_context context = { options, count, words };
    char buffer[4096];

    if (count == 0 || !may_need_some(options))
        return false;
    return tbd_part_ask(tbd_session_find(options->trace, buffer, sizeof(buffer)),
                        &(struct tbd_part_asking){ .session = session,
                                                   .at = options->at,
                                                   .count = count,
                                                   .words = words,
                                                   .out = out,
                                                   .answer = answer_part,
                                                   .context = &context },
                        out_result);
}

/* The prompt needs only some windows, too, as long as nobody asks about others. */
static bool start_prompt(struct tbd_session *session, struct tbd_counted_part *part,
                         const struct options *options, size_t count)
{
    char buffer[4096];

    return count == 0 && may_need_some(options) &&
           tbd_part_start(session, part, tbd_session_find(options->trace, buffer, sizeof(buffer)),
                          options->at);
}

/* Asks the words of the command line; without words starts the prompt. */
static int ask(const struct options *options, size_t count, char **words)
{
    struct tbd_session session = { .json = options->json,
                                   .csv = options->csv,
                                   .workers = options->workers,
                                   .no_cache = options->no_cache,
                                   .takes_rings = true,
                                   .print = { .object = true, .static_members = true },
                                   .shows_wall = options->wall,
                                   .syntax = options->att ? TBD_SYNTAX_ATT : TBD_SYNTAX_INTEL };
    FILE *out = tbd_safe_stream(stdout);
    struct tbd_command_run run = {
        .session = &session, .text = "", .out = out, .trace = options->trace
    };
    const struct tbd_command *command = command_without_trace(count, words);
    struct tbd_counted_part part = { .home = -1 };
    enum tbd_status status = out == NULL ? TBD_NOMEM : TBD_OK;
    int result;

    if (options->trace == NULL && options->complete == NULL)
        tbd_late_dump_await();
    if (status == TBD_OK && command != NULL && options->complete == NULL) {
        run.argc = (unsigned)count - 1;
        run.argv = words + 1;
        run.text = words[0];
        run.arguments = strlen(words[0]);
        result = (int)command->run(&run);
        fclose(out);
        return result;
    }
    if (status == TBD_OK && options->complete == NULL && count != 0 &&
        strcmp(words[0], "dap") == 0) { /* its client names the trace */
        result = (int)tbd_dap_command(options->trace, options->workers, count, words);
        fclose(out);
        return result;
    }
    if (status == TBD_OK && ask_part(&session, options, out, count, words, &result)) {
        fclose(out);
        return result;
    }
    if (status == TBD_OK && !start_prompt(&session, &part, options, count))
        status = tbd_session_open(&session, options->trace);
    if (options->complete != NULL) {
        result = print_completions(status == TBD_OK ? &session : NULL, out, options->complete);
    } else if (status != TBD_OK) {
        result = (int)tbd_command_fail(&run, status);
        if (status == TBD_NOTRACE)
            print_traces_hint();
    } else {
        tbd_places_set_recorded(session.info->realtime_ns);
        print_owner(&session);
        print_damage(&session);
        result = answer(&session, options, out, count, words);
        print_symbol_notes(&session);
    }
    tbd_session_close(&session);
    tbd_part_close(&part);
    if (out != NULL)
        fclose(out);
    return result;
}

static bool parse_workers(const char *text, unsigned *out)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    *out = (unsigned)value;
    return *text != '\0' && *end == '\0' && value >= 1 && value <= 256;
}

/* -1: go on; otherwise the exit status. */
static int parse_options(int argc, char **argv, struct options *options)
{
    static const struct option table[] = {
        { "trace", required_argument, NULL, 't' },
        { "at", required_argument, NULL, 'a' },
        { "file", required_argument, NULL, 'f' },
        { "json", no_argument, NULL, 'J' },
        { "csv", no_argument, NULL, 'c' },
        { "workers", required_argument, NULL, 'j' },
        { "att", no_argument, NULL, 'A' },
        { "explain", no_argument, NULL, 'E' },
        { "no-cache", no_argument, NULL, 'N' },
        { "quiet", no_argument, NULL, 'q' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'V' },
        { "thread", required_argument, NULL, 'T' },
        { "since", required_argument, NULL, 'S' },
        { "until", required_argument, NULL, 'U' },
        { "wall", no_argument, NULL, 'W' },
        { "shard", required_argument, NULL, 'H' },
        { "complete", required_argument, NULL, 'C' },
        { "source-map", required_argument, NULL, 'M' },
        { NULL, 0, NULL, 0 },
    };
    int option;

    while ((option = getopt_long(argc, argv, "+t:f:j:qh", table, NULL)) >= 0) {
        switch (option) {
        case 't': options->trace = optarg; break;
        case 'a': options->at = optarg; break;
        case 'T': options->thread = optarg; break;
        case 'S': options->since = optarg; break;
        case 'U': options->until = optarg; break;
        case 'W': options->wall = true; break;
        case 'H': options->shard = optarg; break;
        case 'C': options->complete = optarg; break;
        case 'M':
            if (tbd_places_add_source(optarg))
                break;
            fprintf(stderr, "tbdq: --source-map takes FROM=TO, at most %u of them\n",
                    TBD_PLACES_MAX);
            return TBD_EXIT_USAGE;
        case 'f': options->script = optarg; break;
        case 'c': options->csv = true; break;
        case 'J': options->json = true; break;
        case 'A': options->att = true; break;
        case 'E': options->explain = true; break;
        case 'N':
            options->no_cache = true;
            tbd_user_cache_off();
            break;
        case 'q':
            options->quiet = true;
            tbd_progress_silence();
            break;
        case 'j':
            if (parse_workers(optarg, &options->workers))
                break;
            fprintf(stderr, "tbdq: -j takes a number from 1 to 256, not '%s'\n", optarg);
            return TBD_EXIT_USAGE;
        case 'h': print_usage(stdout); return TBD_EXIT_FOUND;
        case 'V': printf("tbdq %s\n", TBD_VERSION); return TBD_EXIT_FOUND;
        default: fprintf(stderr, "hint: `tbdq --help` lists the options\n"); return TBD_EXIT_USAGE;
        }
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct options options = { 0 };
    char start[FIRST_BYTES] = "", *words[3] = { NULL };
    const char *second;
    size_t count;
    int result;

    tbd_safe_messages();
    tbd_cut_file_guard("tbdq", TBD_EXIT_TRACE);
    options.workers = tbd_processors();
    result = parse_options(argc, argv, &options);
    if (result >= 0)
        return result;
    count = (size_t)(argc - optind);
    if (count == 0 && options.complete == NULL && !isatty(STDIN_FILENO) && options.script == NULL)
        options.script = "-";
    if (count != 0 && options.script != NULL) {
        fprintf(stderr, "tbdq: -f takes the place of a command\nhint: `tbdq help scripts`\n");
        return TBD_EXIT_USAGE;
    }
    /* One argument may be the whole question, typed in quotes: 'goto first forward ...' */
    if (count > 0)
        snprintf(start, sizeof(start), "%s", argv[optind]);
    if (count > 0 && tbd_line_split(start, words, 2) == 0)
        return (int)tbd_line_unknown("");
    second = count > 1 ? argv[optind + 1] : words[1];
    /* `help` needs no trace; an unknown command is refused before a trace is opened. */
    if (count > 0 && strcmp(words[0], "help") == 0)
        result = (int)tbd_line_help(second, stdout);
    else if (count > 0 && second != NULL && strcmp(second, "--help") == 0)
        result = (int)tbd_line_help(words[0], stdout);
    else if (count > 0 && !tbd_line_is_known(words[0]))
        result = (int)tbd_line_unknown(words[0]);
    else
        result = ask(&options, count, argv + optind);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        fprintf(stderr, "tbdq: cannot write the answer\n");
        return TBD_EXIT_SYSTEM;
    }
    return result;
}
